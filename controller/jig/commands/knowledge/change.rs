//! `jig kb add`, `edit`, `verify`, `reject`, `archive`, `restore` and `link`.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use jiff::Timestamp;
use jig_knowledge::Captured;
use jig_knowledge::store::Inserted;
use jig_knowledge::unit::{CaptureTrigger, Draft, MAX_UNIT, UnitContent, UnitId, UnitMetadata};
use jig_lab::{KnowledgeOrder, KnowledgeReply};
use jig_model::{Fault, exit};
use serde::Deserialize;
use serde_json::json;

use super::{KbDesk, show, shown};
use crate::args::{KbAddArgs, KbEditArgs, KbJudgeArgs, KbLinkArgs, KbTexts};
use crate::commands::execute::unexpected;
use crate::failure::Failure;
use crate::render::one_line;

/// A file of `--from`. What else `jig kb show --json` prints is not what a person changes.
#[derive(Deserialize)]
struct UnitFile {
    #[serde(default)]
    content: UnitContent,
    #[serde(default)]
    metadata: UnitMetadata,
}

/// Reads a file that has bounds.
fn read(path: &Path) -> Result<String, Failure> {
    let most = MAX_UNIT as u64 * 7;
    let failed = |error: std::io::Error| {
        Failure::new(Fault::Usage, format!("could not read {}: {error}", shown(path)))
            .help("name a text file that this user may read")
    };
    let mut text = String::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(most + 1).read_to_string(&mut text)
    } else {
        let regular = std::fs::metadata(path).map_err(failed)?.is_file();
        let file =
            if regular { File::open(path) } else { Err(std::io::Error::other("it is no file")) };
        file.map_err(failed)?.take(most + 1).read_to_string(&mut text)
    };
    read.map_err(failed)?;
    if text.len() as u64 > most {
        return Err(Failure::new(
            Fault::Usage,
            format!("{} is longer than a unit may be", shown(path)),
        )
        .help("quote less, and name the run"));
    }
    Ok(text)
}

fn read_unit(path: &Path) -> Result<(UnitContent, UnitMetadata), Failure> {
    let file: UnitFile = serde_json::from_str(&read(path)?).map_err(|error| {
        let words = format!("{} is no unit: {}", shown(path), one_line(&error.to_string()));
        Failure::new(Fault::Usage, words).help("`jig kb show UNIT --json` prints the form")
    })?;
    Ok((file.content, file.metadata))
}

/// Puts what was typed in place of what is there.
fn apply(
    texts: KbTexts,
    content: &mut UnitContent,
    metadata: &mut UnitMetadata,
) -> Result<(), Failure> {
    let put = |place: &mut String, text: Option<String>| {
        if let Some(text) = text {
            *place = text;
        }
    };
    put(&mut content.title, texts.title);
    put(&mut content.symptom, texts.symptom);
    put(&mut content.root_cause, texts.cause);
    put(&mut content.resolution, texts.resolution);
    if texts.summary.is_some() {
        content.summary_by_model = false;
    }
    put(&mut content.summary, texts.summary);
    if let Some(path) = texts.diff {
        content.diff = read(&path)?;
    }
    let lists = [
        (&mut content.steps, texts.step),
        (&mut metadata.files, texts.file),
        (&mut metadata.tags, texts.tag),
    ];
    for (place, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
        *place = list;
    }
    let names = [
        (&mut metadata.board, texts.board),
        (&mut metadata.component, texts.component),
        (&mut metadata.product_line, texts.product_line),
        (&mut metadata.class, texts.class),
        (&mut metadata.signature, texts.signature),
    ];
    for (place, name) in names.into_iter().filter(|(_, name)| name.is_some()) {
        *place = name;
    }
    metadata.confidence = texts.confidence.unwrap_or(metadata.confidence);
    Ok(())
}

/// Takes what a run shows of its failure. A run of the repair loop is learnt from as a whole:
/// `jig kb capture`.
fn of_run(at: &KbDesk<'_>, wanted: &str) -> Result<(UnitContent, UnitMetadata), Failure> {
    match at.ask(KnowledgeOrder::OfRun { wanted: wanted.to_owned() })? {
        KnowledgeReply::OfRun(unit) => Ok(*unit),
        _ => Err(unexpected()),
    }
}

/// JSON: `{"kept":"stored","what":"new"|"repeat"|"known","id"}` or `{"kept":"queued","file","why"}`.
pub(super) fn add(at: &KbDesk<'_>, args: KbAddArgs) -> Result<u8, Failure> {
    let (mut content, mut metadata) = match (&args.from, &args.from_run) {
        (Some(path), _) => read_unit(path)?,
        (None, Some(run)) => of_run(at, run)?,
        (None, None) => Default::default(),
    };
    // What a person writes down is surer than what is extracted.
    if args.from.is_none() {
        metadata.confidence = 0.8;
    }
    apply(args.texts, &mut content, &mut metadata)?;
    let draft = Draft {
        id: UnitId::random(),
        content,
        metadata,
        at: Timestamp::now(),
        by: crate::args::own_name(),
        trigger: CaptureTrigger::Marked,
    };
    let order = KnowledgeOrder::Add { draft: Box::new(draft) };
    let reply = at.ask(order)?;
    let KnowledgeReply::Kept(captured) = &reply else { return Err(unexpected()) };
    match captured {
        captured if at.screen.json() => at.screen.out_json(captured),
        Captured::Stored(Inserted::New { id }) => at.screen.out(id.as_str()),
        Captured::Stored(Inserted::Repeat { id, count }) => {
            at.screen.out(id.as_str());
            at.screen.say(&format!(
                "it repeats {id}, which was now seen {count} times: nothing new was stored"
            ));
        }
        Captured::Stored(Inserted::Known { id }) => at.screen.out(id.as_str()),
        Captured::Queued { file, why } => {
            at.screen.insist(&format!(
                "the store failed ({}); the unit waits in {} and is stored by the next `jig kb` that can",
                one_line(why),
                shown(file)
            ));
        }
    }
    at.settle(&reply);
    Ok(exit::PASS)
}

pub(super) fn edit(at: &KbDesk<'_>, args: KbEditArgs) -> Result<u8, Failure> {
    let order = KnowledgeOrder::Show { id: args.id.clone(), history: false };
    let KnowledgeReply::Shown(shown) = at.ask(order)? else { return Err(unexpected()) };
    let unit = shown.unit;
    let version = args.if_version.unwrap_or(unit.audit.version);
    let (mut content, mut metadata) = match &args.from {
        Some(path) => read_unit(path)?,
        None => (unit.content, unit.metadata),
    };
    apply(args.texts, &mut content, &mut metadata)?;
    let (content, metadata) = (Box::new(content), Box::new(metadata));
    changed(at, KnowledgeOrder::Edit { id: args.id, version, content, metadata })
}

pub(super) fn judge(at: &KbDesk<'_>, args: KbJudgeArgs, right: bool) -> Result<u8, Failure> {
    changed(at, KnowledgeOrder::Judge { id: args.id, right, question: args.question })
}

pub(super) fn put_away(at: &KbDesk<'_>, id: UnitId, away: bool) -> Result<u8, Failure> {
    changed(at, KnowledgeOrder::PutAway { id, away })
}

pub(super) fn link(at: &KbDesk<'_>, args: KbLinkArgs) -> Result<u8, Failure> {
    let KbLinkArgs { one, other, kind } = args;
    let kind = kind.kind();
    at.ask(KnowledgeOrder::Link { one: one.clone(), kind, other: other.clone() })?;
    if at.screen.json() {
        at.screen.out_json(&json!({ "one": one, "kind": kind, "other": other }));
    } else {
        at.screen.out(&format!("{one} {} {other}", kind.word()));
    }
    Ok(exit::PASS)
}

/// Changes a unit, and shows it.
fn changed(at: &KbDesk<'_>, order: KnowledgeOrder) -> Result<u8, Failure> {
    let reply = at.ask(order)?;
    let KnowledgeReply::Changed(unit) = &reply else { return Err(unexpected()) };
    match at.screen.json() {
        true => at.screen.out_json(&**unit),
        false => show::tell(at.screen, unit),
    }
    at.settle(&reply);
    Ok(exit::PASS)
}
