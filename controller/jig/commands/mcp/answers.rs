//! Answers to questions of tools: what the verbs print with `--json`.

use std::collections::VecDeque;
use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Component, Path};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jiff::{SignedDuration, Timestamp};
use jig_knowledge::retrieve::RetrievalContext;
use jig_lab::{
    AuditPage, KnowledgeDoor, KnowledgeOrder, KnowledgeReply, RigQuery, RigView, RunPage,
    RunStanding, RunSummary,
};
use jig_model::lease::{LeaseAnswer, LeaseOrder};
use jig_model::{Fault, PlaceName, RunId};
use jig_operator::tools::RigQuestion;
use jig_rig::report::baseline;
use jig_rig::store::{RunRecord, RunStore};
use jig_service::client::{RemoteRig, RunPart};
use jig_service::protocol::{AskKnowledge, DescribeRun, OrderLease, ReadRunFile};
use serde_json::{Value, json};

use super::search;
use crate::args::{Common, own_name};
use crate::commands::boards;
use crate::commands::execute::unexpected;
use crate::commands::explain::failure::{ExplainedFailure, HISTORY};
use crate::commands::rig::seen;
use crate::commands::runs::list;
use crate::commands::runs::log::{Form, merge};
use crate::commands::runs::source::{found, read_part, read_with_earlier};
use crate::failure::Failure;
use crate::render::Paint;

/// Most files of a run that are listed.
const MOST_FILES: usize = 1000;

/// Most bytes of the lines of a log, and of a list of runs, that are answered.
const MOST_LOG: usize = 28 << 10;

/// Answers a question.
pub(super) async fn answer(
    common: &Common,
    rig: Option<&RemoteRig>,
    door: &KnowledgeDoor,
    question: RigQuestion,
) -> Result<Value, Failure> {
    match question {
        RigQuestion::Boards => match seen(rig, common, RigQuery::Boards).await? {
            RigView::Boards(list) => Ok(boards::as_json(&list)),
            _ => Err(unexpected()),
        },
        RigQuestion::Places => match seen(rig, common, RigQuery::Places).await? {
            RigView::Places(places) => Ok(json!(places)),
            _ => Err(unexpected()),
        },
        RigQuestion::Health { place, history } => {
            match seen(rig, common, RigQuery::Health { place, history }).await? {
                RigView::Health(list) => Ok(json!(list)),
                _ => Err(unexpected()),
            }
        }
        RigQuestion::Leases => leases(common, rig).await,
        RigQuestion::Runs { place, before, limit } => {
            runs(common, rig, place.as_ref(), before.as_deref(), limit).await
        }
        RigQuestion::Run { run } => {
            let opened = read_part(rig, common, &run, RunPart::Record).await?;
            let standing = RunStanding::of(&opened.entry);
            let record = opened.entry.record?;
            let mut told = json!({ "state": standing, "dir": opened.dir, "record": record });
            if rig.is_none() {
                told["images_kept"] = json!(images_kept(&opened.dir, &record));
            }
            Ok(told)
        }
        RigQuestion::RunLog { run, from, lines } => {
            let opened = read_part(rig, common, &run, RunPart::Log).await?;
            log_lines(&opened.entry, from, lines)
        }
        RigQuestion::RunFiles { run } => files(common, rig, &run).await,
        RigQuestion::RunFile { run, file, from, length } => {
            read_file(common, rig, &run, &file, from, length).await
        }
        RigQuestion::Compare { before, after } => {
            let record = async |run: &str| -> Result<RunRecord, Failure> {
                let opened = read_part(rig, common, run, RunPart::Record).await?;
                Ok(opened.entry.record?)
            };
            compare(&record(&before).await?, &record(&after).await?)
        }
        RigQuestion::Explain { run } => {
            let (opened, earlier) = read_with_earlier(rig, common, &run, HISTORY).await?;
            let record = opened.entry.record?;
            let verdict = verdict_of(&record)?;
            Ok(ExplainedFailure::of(verdict, earlier).document(&record, verdict))
        }
        RigQuestion::Knowledge { question, board, limit } => {
            knowledge(common, (rig, door), question, board, limit).await
        }
        RigQuestion::RunsText { question, limit } => {
            search::runs(common, rig, &question, limit).await
        }
        RigQuestion::Audit { since_s, limit } => audit(common, rig, since_s, limit).await,
    }
}

/// Names the copies of its images that a run has kept, as `jig flash` takes them.
fn images_kept(dir: &Path, record: &RunRecord) -> Vec<String> {
    let mut kept = Vec::new();
    for (number, image) in record.images.iter().enumerate() {
        let copies = ["elf", "hex", "bin"].into_iter().map(|extension| {
            let name = format!("artefacts/image-{}.{extension}", number + 1);
            (extension, dir.join(name))
        });
        let mut found = copies.filter(|(_, path)| path.is_file());
        let Some((extension, path)) = found.next() else { continue };
        let address = image.path.rsplit_once('@').filter(|_| extension == "bin");
        let address = address.map_or_else(String::new, |(_, address)| format!("@{address}"));
        kept.push(format!("{}{address}", path.display()));
    }
    kept
}

async fn leases(common: &Common, rig: Option<&RemoteRig>) -> Result<Value, Failure> {
    let answer = match rig {
        Some(rig) => rig.call(&OrderLease { order: LeaseOrder::List }).await?,
        None => common.reader.read(&common.own_lab())?.order_lease(&LeaseOrder::List)?,
    };
    let LeaseAnswer::List { now, places, queue } = answer else { return Err(unexpected()) };
    Ok(json!({ "now": now, "places": places, "queue": queue }))
}

async fn runs(
    common: &Common,
    rig: Option<&RemoteRig>,
    place: Option<&PlaceName>,
    before: Option<&str>,
    limit: usize,
) -> Result<Value, Failure> {
    let mut before = match before {
        Some(before) => Some(before.parse::<RunId>().map_err(|error| {
            Failure::of(Fault::Usage, &error).help("name the id of a run: runs_list shows them")
        })?),
        None => None,
    };
    let wanted = |run: &RunSummary| place.is_none_or(|place| run.place.as_ref() == Some(place));
    let mut runs: Vec<RunSummary> = Vec::new();
    // One more than is told says whether there are more.
    match rig {
        // No more records are read than are told.
        None => {
            let store = RunStore::new(common.reader.read(&common.own_lab())?.runs_dir());
            let entries = store.newest_before(before.as_ref())?;
            runs.extend(entries.map(|entry| RunSummary::of(&entry)).filter(wanted).take(limit + 1));
        }
        Some(rig) => loop {
            let query = RigQuery::Runs { before: before.take() };
            let RigView::Runs(RunPage { runs: page, more, .. }) = rig.view(query).await? else {
                return Err(unexpected());
            };
            before = page.last().map(|run| run.id.clone()).filter(|_| more);
            runs.extend(page.into_iter().filter(wanted).take(limit + 1 - runs.len()));
            if runs.len() > limit || before.is_none() {
                break;
            }
        },
    }
    let found = runs.len();
    runs.truncate(limit);
    // What does not fit is left for the next page: a list with a hole would be taken for a whole one.
    let mut bytes = 0;
    let mut told: Vec<Value> = Vec::new();
    for run in runs.iter().map(list::as_json) {
        bytes += run.to_string().len() + 1;
        if bytes > MOST_LOG && !told.is_empty() {
            break;
        }
        told.push(run);
    }
    let more = found > told.len();
    Ok(json!({ "runs": told, "more": more }))
}

/// Reads lines of the time line of a run; the last ones where no first one is named.
fn log_lines(
    entry: &jig_rig::store::RunEntry,
    from: Option<u64>,
    most: usize,
) -> Result<Value, Failure> {
    let (mut number, mut bytes, mut more) = (0_u64, 0, false);
    let mut lines: VecDeque<String> = VecDeque::new();
    let warnings = std::cell::RefCell::new(Vec::new());
    let warn = |text: &str| {
        let mut warnings = warnings.borrow_mut();
        if warnings.len() < 16 {
            warnings.push(text.to_owned());
        }
    };
    merge(entry, Form::Text(Paint { on: false }), &warn, &mut |line| {
        let at = number;
        number += 1;
        match from {
            Some(from) if at < from => true,
            Some(_) if lines.len() >= most || bytes + line.len() > MOST_LOG => {
                more = true;
                false
            }
            Some(_) => {
                bytes += line.len();
                lines.push_back(line.to_owned());
                true
            }
            None => {
                bytes += line.len();
                lines.push_back(line.to_owned());
                while lines.len() > most || (bytes > MOST_LOG && lines.len() > 1) {
                    bytes -= lines.pop_front().map_or(0, |line| line.len());
                }
                true
            }
        }
    })?;
    let first = match from {
        Some(from) => from,
        None => number.saturating_sub(u64::try_from(lines.len()).unwrap_or_default()),
    };
    let next = first + u64::try_from(lines.len()).unwrap_or_default();
    Ok(json!({
        "run": entry.dir.id(),
        "from": first,
        "next": more.then_some(next),
        "lines": lines,
        "warnings": warnings.into_inner(),
    }))
}

async fn files(common: &Common, rig: Option<&RemoteRig>, run: &str) -> Result<Value, Failure> {
    let found = found(rig, common, run).await?;
    let mut files: Vec<(String, u64)> = match rig {
        Some(rig) => {
            let told = rig.call_again(&DescribeRun { run: found.run.clone() }).await?;
            told.files.into_iter().map(|file| (file.path, file.size)).collect()
        }
        None => {
            let mut files = Vec::new();
            walk(&found.dir, "", &mut files)?;
            files
        }
    };
    files.sort();
    let more = files.len() > MOST_FILES;
    files.truncate(MOST_FILES);
    let files: Vec<Value> =
        files.into_iter().map(|(path, bytes)| json!({ "file": path, "bytes": bytes })).collect();
    Ok(json!({ "run": found.run, "live": found.live, "files": files, "more": more }))
}

/// Lists the regular files of a folder; links and devices are none.
fn walk(folder: &Path, within: &str, files: &mut Vec<(String, u64)>) -> Result<(), Failure> {
    let unreadable = |error: std::io::Error| {
        Failure::new(Fault::Lab, format!("cannot read {}: {error}", folder.display()))
    };
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = if within.is_empty() { name } else { format!("{within}/{name}") };
        // Of a run under way, a file may be gone by now.
        let Ok(about) = entry.metadata() else { continue };
        if about.is_dir() {
            walk(&entry.path(), &path, files)?;
        } else if about.is_file() {
            files.push((path, about.len()));
        }
        if files.len() > MOST_FILES {
            return Ok(());
        }
    }
    Ok(())
}

async fn read_file(
    common: &Common,
    rig: Option<&RemoteRig>,
    run: &str,
    file: &str,
    from: u64,
    length: u64,
) -> Result<Value, Failure> {
    let no_file = || {
        Failure::new(Fault::Usage, format!("run {run} has no file {file:?}"))
            .help("runs_files lists the files of a run")
    };
    let plain = Path::new(file).components().all(|part| matches!(part, Component::Normal(_)));
    if file.is_empty() || !plain {
        return Err(no_file());
    }
    let found = found(rig, common, run).await?;
    let (size, bytes) = match rig {
        Some(rig) => {
            let told = rig.call_again(&DescribeRun { run: found.run.clone() }).await?;
            let size = told.files.into_iter().find(|known| known.path == file).map(|f| f.size);
            let size = size.ok_or_else(no_file)?;
            let mut bytes = Vec::new();
            while (bytes.len() as u64) < length {
                let offset = from + bytes.len() as u64;
                let call = ReadRunFile { run: found.run.clone(), path: file.to_owned(), offset };
                let chunk = rig.call_again(&call).await?;
                let chunk = BASE64_STANDARD.decode(chunk.data).map_err(|_| unexpected())?;
                if chunk.is_empty() {
                    break;
                }
                bytes.extend(chunk);
            }
            bytes.truncate(usize::try_from(length).unwrap_or(usize::MAX));
            (size, bytes)
        }
        None => {
            let folder = found.dir.canonicalize().map_err(|_| no_file())?;
            // What a symbolic link leads to may lie anywhere.
            let path = folder.join(file).canonicalize().map_err(|_| no_file())?;
            if !path.starts_with(&folder) || !path.is_file() {
                return Err(no_file());
            }
            let read = || {
                let mut open = fs::File::open(&path)?;
                let size = open.metadata()?.len();
                open.seek(SeekFrom::Start(from))?;
                let mut bytes = Vec::new();
                open.take(length).read_to_end(&mut bytes)?;
                Ok((size, bytes))
            };
            read().map_err(|error: std::io::Error| {
                Failure::new(Fault::Lab, format!("cannot read {}: {error}", path.display()))
            })?
        }
    };
    let to = from + bytes.len() as u64;
    Ok(json!({
        "run": found.run,
        "file": file,
        "from": from,
        "to": to,
        "bytes": size,
        "next": (to < size && !bytes.is_empty()).then_some(to),
        "text": jig_operator::tools::escaped(&bytes),
    }))
}

fn verdict_of(record: &RunRecord) -> Result<&jig_model::Verdict, Failure> {
    record.verdict.as_ref().ok_or_else(|| {
        Failure::new(Fault::Usage, format!("run {} has no verdict", record.id))
            .help("name a run that has ended: runs_list shows them")
    })
}

fn compare(before: &RunRecord, after: &RunRecord) -> Result<Value, Failure> {
    let (old, new) = (verdict_of(before)?, verdict_of(after)?);
    let changes = baseline::compare(&old.tests, &new.tests);
    let told = |record: &RunRecord, verdict: &jig_model::Verdict| {
        json!({ "run": record.id, "place": record.place, "verdict": verdict.kind,
            "cause": verdict.cause, "summary": verdict.summary })
    };
    let worse = changes.iter().filter(|change| change.is_worse()).count();
    Ok(json!({
        "before": told(before, old),
        "after": told(after, new),
        "worse": worse,
        "changes": changes,
    }))
}

/// Searches what the lab has learnt: that of the rig, wherever it is.
async fn knowledge(
    common: &Common,
    (rig, door): (Option<&RemoteRig>, &KnowledgeDoor),
    question: String,
    board: Option<String>,
    limit: usize,
) -> Result<Value, Failure> {
    let context = RetrievalContext { board, max_results: limit, ..RetrievalContext::new(question) };
    let order = KnowledgeOrder::Search { context: Box::new(context) };
    let reply = match rig {
        Some(rig) => rig.call_again(&AskKnowledge { order }).await?.reply,
        None => {
            let catalogue = common.reader.read(&common.own_lab())?;
            let reply = door.carry_out(&catalogue, order, &own_name(), &mut |_, _| {})?.reply;
            door.settle(&reply);
            reply
        }
    };
    let KnowledgeReply::Found(answer) = &reply else { return Err(unexpected()) };
    serde_json::to_value(answer).map_err(|error| Failure::of(Fault::Bug, &error))
}

async fn audit(
    common: &Common,
    rig: Option<&RemoteRig>,
    since_s: Option<u64>,
    limit: usize,
) -> Result<Value, Failure> {
    let since = since_s.and_then(|seconds| {
        let ago = SignedDuration::from_secs(i64::try_from(seconds).ok()?);
        Timestamp::now().checked_sub(ago).ok()
    });
    let (mut lines, mut damaged, mut skip) = (VecDeque::new(), 0_u64, Some(0));
    while let Some(behind) = skip {
        let page = seen(rig, common, RigQuery::Audit { since, skip: behind }).await?;
        let RigView::Audit(AuditPage { items, next }) = page else { return Err(unexpected()) };
        for item in items {
            damaged += u64::from(item.finding.is_some());
            lines.extend(item.content.filter(|line| since.is_none_or(|s| line.entry.at >= s)));
            if lines.len() > limit {
                lines.pop_front();
            }
        }
        skip = next.filter(|next| *next > behind);
    }
    Ok(json!({ "lines": lines, "damaged": damaged }))
}
