//! `jig kb`: what this lab has learnt.

mod bench;
mod capture;
mod change;
mod search;
mod share;
mod show;

use std::path::Path;

use jig_knowledge::MeaningStats;
use jig_knowledge::embedding::EmbeddingConfig;
use jig_lab::{
    Catalogue, KnowledgeAnswered, KnowledgeDoor, KnowledgeOrder, KnowledgeOrderError,
    KnowledgeReply,
};
use jig_model::exit;
use jig_service::client::RemoteRig;
use jig_service::protocol::AskKnowledge;

use super::execute::unexpected;
use super::rig::{elsewhere, stopped};
use super::runtime::VerbRuntime;
use crate::args::{Common, KbArgs, KbCommand};
use crate::failure::Failure;
use crate::render::{Screen, one_line};

/// Does what is asked of the knowledge of a rig.
///
/// JSON: `search` prints the answer, `show`, `verify`, `reject`, `archive`, `restore` and `edit` the
/// unit, `add` what became of it, the others what they counted; `export` prints its lines.
pub(crate) fn knowledge(common: &Common, screen: &Screen, args: KbArgs) -> Result<u8, Failure> {
    let embedding = args.embedding.as_deref().map(EmbeddingConfig::read).transpose()?;
    if let KbCommand::Bench(args) = &args.command {
        return bench::bench(screen, embedding, args);
    }
    let at = KbDesk::of(common, screen, embedding)?;
    match args.command {
        KbCommand::Search(args) => search::search(&at, args),
        KbCommand::Show(args) => show::show(&at, &args),
        KbCommand::Add(args) => change::add(&at, args),
        KbCommand::Capture(args) => capture::capture(common, &at, &args),
        KbCommand::Edit(args) => change::edit(&at, args),
        KbCommand::Verify(args) => change::judge(&at, args, true),
        KbCommand::Reject(args) => change::judge(&at, args, false),
        KbCommand::Archive(args) => change::put_away(&at, args.id, true),
        KbCommand::Restore(args) => change::put_away(&at, args.id, false),
        KbCommand::Link(args) => change::link(&at, args),
        KbCommand::Export(args) => share::export(&at, &args),
        KbCommand::Import(args) => share::import(&at, &args),
        KbCommand::Stats => stats(&at),
        KbCommand::Reindex => reindex(&at),
        KbCommand::Fit => fit(&at),
        // Done above, without a rig.
        KbCommand::Bench(_) => Ok(exit::PASS),
    }
}

/// Where knowledge is, and where answers go.
struct KbDesk<'a> {
    screen: &'a Screen,
    source: KbSource,
}

enum KbSource {
    /// That of this host's rig.
    Here { catalogue: Box<Catalogue>, door: KnowledgeDoor, by: String },
    /// That of a rig elsewhere.
    There { rig: Box<RemoteRig>, runtime: VerbRuntime },
}

impl<'a> KbDesk<'a> {
    fn of(
        common: &Common,
        screen: &'a Screen,
        embedding: Option<EmbeddingConfig>,
    ) -> Result<Self, Failure> {
        if let Some(rig) = elsewhere(common)? {
            let (rig, runtime) = (Box::new(rig), VerbRuntime::new()?);
            return Ok(Self { screen, source: KbSource::There { rig, runtime } });
        }
        let catalogue = Box::new(Catalogue::load(&common.lab()?)?);
        let door = KnowledgeDoor::new(&catalogue.state(), embedding);
        let source = KbSource::Here { catalogue, door, by: crate::args::own_name() };
        Ok(Self { screen, source })
    }

    /// Tells whether the knowledge is that of a rig elsewhere.
    fn is_elsewhere(&self) -> bool {
        matches!(self.source, KbSource::There { .. })
    }

    /// Has an order carried out, and says what was noticed beside it.
    fn ask(&self, order: KnowledgeOrder) -> Result<KnowledgeReply, Failure> {
        let reindexes = matches!(order, KnowledgeOrder::Reindex);
        let KnowledgeAnswered { reply, outbox } = match &self.source {
            KbSource::Here { catalogue, door, by } => {
                let progress = reindexes.then(|| self.screen.progress());
                let mut told = |done, all| {
                    if let Some(progress) = &progress {
                        let words =
                            format!("{done} of {all} changed units looked at for their vectors");
                        progress.set(&words);
                    }
                };
                door.carry_out(catalogue, order, by, &mut told)?
            }
            KbSource::There { rig, runtime } => runtime.until_signalled(async |cancel| {
                tokio::select! {
                    answered = asked_there(rig, order) => answered,
                    () = cancel.cancelled() => Err(stopped()),
                }
            })?,
        };
        if outbox.stored > 0 {
            self.screen.say(&format!("{} units of the outbox are stored now", outbox.stored));
        }
        for path in &outbox.damaged {
            self.screen.insist(&format!("{} is damaged and was left where it is", shown(path)));
        }
        if let Some(why) = outbox.waits {
            self.screen.insist(&format!("the outbox waits: {}", one_line(&why)));
        }
        Ok(reply)
    }

    /// Does what may come behind the answer. A rig elsewhere has done it.
    fn settle(&self, reply: &KnowledgeReply) {
        if let KbSource::Here { door, .. } = &self.source {
            door.settle(reply);
        }
    }
}

async fn asked_there(rig: &RemoteRig, order: KnowledgeOrder) -> Result<KnowledgeAnswered, Failure> {
    let (again, ask) = (order.is_repeatable(), AskKnowledge { order });
    Ok(if again { rig.call_again(&ask).await? } else { rig.call(&ask).await? })
}

impl From<KnowledgeOrderError> for Failure {
    fn from(error: KnowledgeOrderError) -> Self {
        match error {
            KnowledgeOrderError::Access(error) => error.into(),
            KnowledgeOrderError::Audit(error) => error.into(),
            KnowledgeOrderError::Knowledge(error) => error.into(),
            KnowledgeOrderError::Share(error) => error.into(),
            KnowledgeOrderError::Learn(error) => error.into(),
        }
    }
}

fn shown(path: &Path) -> String {
    one_line(&path.display().to_string())
}

fn stats(at: &KbDesk<'_>) -> Result<u8, Failure> {
    let KnowledgeReply::Stats(stats) = at.ask(KnowledgeOrder::Stats)? else {
        return Err(unexpected());
    };
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

fn reindex(at: &KbDesk<'_>) -> Result<u8, Failure> {
    let KnowledgeReply::Reindexed(report) = at.ask(KnowledgeOrder::Reindex)? else {
        return Err(unexpected());
    };
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

fn fit(at: &KbDesk<'_>) -> Result<u8, Failure> {
    let KnowledgeReply::Fitted(report) = at.ask(KnowledgeOrder::Fit)? else {
        return Err(unexpected());
    };
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
