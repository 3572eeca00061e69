//! `jig kb`: what this lab has learnt.

mod bench;
mod capture;
mod change;
mod search;
mod share;
mod show;

use std::path::{Path, PathBuf};
use std::time::Duration;

use jig_knowledge::embedding::{EmbeddingConfig, LoadEmbedder, OnnxEmbedder};
use jig_knowledge::{Knowledge, KnowledgeOptions, MeaningStats};
use jig_lab::Catalogue;
use jig_model::{Fault, exit};

use crate::args::{Common, KbArgs, KbCommand};
use crate::failure::Failure;
use crate::render::{Screen, one_line};

/// How long a command waits for the embedding model to be loaded: .3 s on an idle host.
const LOAD: Duration = Duration::from_secs(20);

/// Does what is asked of knowledge.
///
/// JSON: `search` prints the answer, `show`, `verify`, `reject`, `archive`, `restore` and `edit` the
/// unit, `add` what became of it, the others what they counted; `export` prints its lines.
pub(crate) fn knowledge(common: &Common, screen: &Screen, args: KbArgs) -> Result<u8, Failure> {
    let at = KbFolder::of(common, screen, args.embedding.as_deref())?;
    match args.command {
        KbCommand::Search(args) => search::search(&at, args),
        KbCommand::Show(args) => show::show(&at, &args),
        KbCommand::Add(args) => change::add(common, &at, args),
        KbCommand::Capture(args) => capture::capture(common, &at, &args),
        KbCommand::Edit(args) => change::edit(&at, args),
        KbCommand::Verify(args) => change::judge(&at, &args, true),
        KbCommand::Reject(args) => change::judge(&at, &args, false),
        KbCommand::Archive(args) => change::put_away(&at, &args.id, true),
        KbCommand::Restore(args) => change::put_away(&at, &args.id, false),
        KbCommand::Link(args) => change::link(&at, &args),
        KbCommand::Export(args) => share::export(&at, &args),
        KbCommand::Import(args) => share::import(&at, &args),
        KbCommand::Stats => stats(&at),
        KbCommand::Reindex => reindex(&at),
        KbCommand::Fit => fit(&at),
        KbCommand::Bench(args) => bench::bench(&at, &args),
    }
}

/// Where knowledge is, and where answers go.
struct KbFolder<'a> {
    screen: &'a Screen,
    folder: PathBuf,
    by: String,
    embedder: Option<LoadEmbedder>,
}

impl<'a> KbFolder<'a> {
    fn of(common: &Common, screen: &'a Screen, embedding: Option<&Path>) -> Result<Self, Failure> {
        if common.is_elsewhere() {
            let words =
                "`jig kb` works on the knowledge of this host, not on that of a rig elsewhere";
            return Err(Failure::new(Fault::Usage, words)
                .help("type it at the host of that rig: ssh HOST jig kb search WORDS"));
        }
        let embedder = embedding.map(EmbeddingConfig::read).transpose()?;
        let embedder = embedder.map(OnnxEmbedder::loader);
        let folder = Knowledge::folder_in(&Catalogue::load(&common.lab()?)?.state());
        Ok(Self { screen, folder, by: crate::args::own_name(), embedder })
    }

    /// Opens knowledge without an embedding model, and stores what waits in the outbox.
    fn open(&self) -> Result<Knowledge, Failure> {
        self.open_as(KnowledgeOptions::default())
    }

    /// Opens knowledge with the embedding model, if one is named. One that cannot be loaded is told of by
    /// what uses it.
    fn open_with_model(&self) -> Result<Knowledge, Failure> {
        let embedder = self.embedder.clone();
        let knowledge =
            self.open_as(KnowledgeOptions { embedder, ..KnowledgeOptions::default() })?;
        let _ = knowledge.wait_for_model(LOAD);
        Ok(knowledge)
    }

    fn open_as(&self, options: KnowledgeOptions) -> Result<Knowledge, Failure> {
        let knowledge = Knowledge::open(&self.folder, options)?;
        match knowledge.empty_outbox() {
            Ok(report) => {
                if report.stored > 0 {
                    self.screen
                        .say(&format!("{} units of the outbox are stored now", report.stored));
                }
                for path in report.damaged {
                    self.screen
                        .insist(&format!("{} is damaged and was left where it is", shown(&path)));
                }
            }
            Err(error) => {
                let why = one_line(&jig_model::chain(&error));
                self.screen.insist(&format!("the outbox waits: {why}"));
            }
        }
        Ok(knowledge)
    }

    /// Brings the index up to date behind a command: it only makes the next search faster.
    fn maintain(&self, knowledge: &Knowledge) {
        if let Err(error) = knowledge.maintain() {
            tracing::debug!("the index was not written: {}", jig_model::chain(&error));
        }
    }
}

fn shown(path: &Path) -> String {
    one_line(&path.display().to_string())
}

fn stats(at: &KbFolder<'_>) -> Result<u8, Failure> {
    let knowledge = at.open_with_model()?;
    at.maintain(&knowledge);
    let stats = knowledge.stats()?;
    if at.screen.json() {
        at.screen.out_json(&stats);
        return Ok(exit::PASS);
    }
    let store = stats.store;
    at.screen.out(&format!(
        "{} units: {} verified, {} pending, {} rejected, {} archived\n{} answers of feedback, {} drafts in \
         the outbox\n{} units in the index, {} bytes; embedding model: {}",
        store.units,
        store.verified,
        store.pending,
        store.rejected,
        store.archived,
        store.feedback,
        stats.outbox,
        stats.indexed,
        stats.index_bytes,
        stats.meaning.as_ref().map_or_else(|| "none".to_owned(), model),
    ));
    Ok(exit::PASS)
}

fn model(meaning: &MeaningStats) -> String {
    match (&meaning.model, &meaning.problem) {
        (Some(name), _) => format!(
            "{}, vectors of {} numbers for {} units, {} bytes",
            one_line(name),
            meaning.dimension,
            meaning.vectors,
            meaning.bytes
        ),
        (None, Some(problem)) => format!("none: {}", one_line(problem)),
        (None, None) => "being loaded".to_owned(),
    }
}

fn reindex(at: &KbFolder<'_>) -> Result<u8, Failure> {
    let knowledge = at.open_with_model()?;
    let progress = at.screen.progress();
    let report = knowledge.reindex(&mut |done, all| {
        progress.set(&format!("{done} of {all} changed units looked at for their vectors"));
    })?;
    drop(progress);
    if at.screen.json() {
        at.screen.out_json(&report);
        return Ok(exit::PASS);
    }
    at.screen.out(&format!(
        "the store is whole; units in the index: {}; archived, because unread for a year: {}",
        report.indexed, report.archived
    ));
    if let Some(embedded) = report.embedded {
        at.screen.out(&format!(
            "vectors: {} made, {} unchanged, {} failed",
            embedded.embedded, embedded.unchanged, embedded.failed
        ));
        if let Some(problem) = embedded.problem {
            at.screen.insist(&format!("warning: {}", one_line(&problem)));
        }
    }
    Ok(exit::PASS)
}

fn fit(at: &KbFolder<'_>) -> Result<u8, Failure> {
    let knowledge = at.open_with_model()?;
    let report = knowledge.fit()?;
    if at.screen.json() {
        at.screen.out_json(&report);
        return Ok(exit::PASS);
    }
    at.screen.out(&match report {
        None => "fewer than 20 questions with an accepted unit: nothing was learnt; \
                 `jig kb verify UNIT --for QUESTION` adds one"
            .to_owned(),
        Some(report) => format!(
            "learnt from {} questions; on {} newer ones nDCG@10 is {:.3} with the weights in use and {:.3} \
             with those that were learnt, which are {}",
            report.learnt_from,
            report.compared_on,
            report.before,
            report.after,
            if report.kept { "used from now on" } else { "not kept" }
        ),
    });
    Ok(exit::PASS)
}
