//! Verdicts about the outputs of `judged_outputs.jsonl`, which were written to mislead: reports of
//! frameworks whole, cut and contradictory, crashes around them, wording that no framework has.
//!
//! Each line is a row: what a target prints, one character a byte; the arguments of `jig run`; the exit
//! codes that a careful reader allows, decided before the row was first judged. `known` says of a row that
//! is judged otherwise why it still is. `JIG_JUDGED_OUTPUTS=FILE` judges the rows of another file.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jig_model::pattern::Pattern;
use jig_model::plan::{RunWaits, default_plan};
use jig_model::profile::{FaultSetText, FaultSets};
use jig_model::{Strictness, VerdictKind};
use serde::Deserialize;

use super::fake::*;
use crate::store::{NewRun, RunStore, SystemClock};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: String,
    allowed: Vec<u8>,
    args: Vec<String>,
    text: String,
    known: Option<String>,
}

#[test]
fn outputs_that_mislead_are_judged_rightly() {
    let other = std::env::var_os("JIG_JUDGED_OUTPUTS");
    let other = other.map(|file| std::fs::read_to_string(file).unwrap());
    let all = other.as_deref().unwrap_or(include_str!("judged_outputs.jsonl")).lines();
    let rows: Vec<Row> = all.map(|line| serde_json::from_str(line).unwrap()).collect();
    let faults = shipped_faults();
    let workers = std::thread::available_parallelism().map_or(2, usize::from).min(8);
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let parts = rows.chunks(rows.len().div_ceil(workers));
        let parts: Vec<_> = parts.map(|part| scope.spawn(|| wrong_among(part, &faults))).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

/// Lists the rows that are judged otherwise than they say.
fn wrong_among(rows: &[Row], faults: &Arc<FaultSets>) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    let judged = |row: &Row| {
        let (code, summary) = runtime.block_on(judged(row, faults));
        let right = row.allowed.contains(&code);
        let told = format!("{} {:?}: {code}, not {:?}: {summary}", row.id, row.args, row.allowed);
        match &row.known {
            None if !right => Some(told),
            Some(_) if right => Some(format!("{}: right, and no longer `known`", row.id)),
            _ => None,
        }
    };
    rows.iter().filter_map(judged).collect()
}

async fn judged(row: &Row, faults: &Arc<FaultSets>) -> (u8, String) {
    let (mut until, mut reject, mut strict) = (None, Vec::new(), Strictness::Off);
    let mut args = row.args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().unwrap().parse::<Pattern>().unwrap();
        match arg.as_str() {
            "--until" => until = Some(value()),
            "--reject" => reject.push(value()),
            "--strict" => strict = Strictness::All,
            _ => panic!("{}: {arg}", row.id),
        }
    }
    let mut plan = default_plan(true, RunWaits::new(until, Duration::from_secs(3)));
    (plan.reject, plan.strict) = (reject, strict);
    let bytes: Vec<u8> = row.text.chars().map(|c| u8::try_from(c).unwrap()).collect();
    let bench =
        Bench { faults: Arc::clone(faults), ..Bench::new(vec![vec![Beat::Print(0, bytes)]]) };
    let root = tempfile::tempdir().unwrap();
    let live =
        RunStore::new(root.path()).begin(NewRun::default(), Arc::new(SystemClock::new())).unwrap();
    let end = bench.perform_parsed(&live, &plan, &bench).await.unwrap();
    let code = match end.verdict.kind {
        VerdictKind::Pass => 0,
        VerdictKind::Fail => 1,
        VerdictKind::Inconclusive => 4,
        VerdictKind::Flaky => 5,
        VerdictKind::EnvError | VerdictKind::Cancelled => 75,
    };
    (code, end.verdict.summary)
}

/// Returns the fault signatures that Jig comes with.
fn shipped_faults() -> Arc<FaultSets> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../board-profiles/faults");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let texts: Vec<_> = files
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(&path).unwrap())
        })
        .collect();
    let sets = texts.iter().map(|(name, text)| FaultSetText { name, origin: name, text });
    Arc::new(FaultSets::parse(sets).unwrap_or_else(|problems| panic!("{}", problems[0])))
}
