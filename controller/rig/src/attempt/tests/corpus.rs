//! Judges outputs that a file lists, for work on the rules of verdicts.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jig_model::VerdictKind;
use jig_model::pattern::Pattern;
use jig_model::plan::default_plan;
use jig_model::profile::{FaultSetText, FaultSets};
use serde::Deserialize;

use super::fake::*;
use crate::store::{NewRun, RunStore, SystemClock};

/// One output, and what may be said of it.
#[derive(Deserialize)]
struct Row {
    src: String,
    id: String,
    /// The output, one character a byte.
    text: String,
    args: Vec<String>,
    /// The exit codes that are right.
    allowed: Vec<u8>,
}

#[tokio::test(start_paused = true)]
#[ignore = "judges the rows of the file that JIG_TEST_CORPUS names"]
async fn judges_a_file_of_rows() {
    let path = std::env::var("JIG_TEST_CORPUS").unwrap();
    let only = std::env::var("JIG_TEST_ROWS").map(|text| regex::Regex::new(&text).unwrap());
    let faults = Arc::new(shipped_faults());
    let (mut rows, mut wrong) = (0, 0);
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let row: Row = serde_json::from_str(line).unwrap();
        if only.as_ref().is_ok_and(|only| !only.is_match(&format!("{} {}", row.src, row.id))) {
            continue;
        }
        let (code, summary) = judged(&row, &faults).await;
        rows += 1;
        if !row.allowed.contains(&code) {
            wrong += 1;
            println!(
                "{code}\t{:?}\t{}\t{}\t{:?}\t{summary}",
                row.allowed, row.src, row.id, row.args
            );
        }
    }
    println!("{wrong} of {rows} wrong");
}

async fn judged(row: &Row, faults: &Arc<FaultSets>) -> (u8, String) {
    let (mut until, mut reject, mut strict) = (None, Vec::new(), false);
    let mut args = row.args.iter();
    while let Some(arg) = args.next() {
        let (name, value) = arg.split_once('=').unwrap_or((arg, ""));
        let mut value = || match value {
            "" => args.next().unwrap().parse::<Pattern>().unwrap(),
            value => value.parse().unwrap(),
        };
        match name {
            "--until" => until = Some(value()),
            "--reject" => reject.push(value()),
            "--strict" => strict = true,
            _ => return (255, format!("unknown argument {arg}")),
        }
    }
    let mut plan = default_plan(true, 0, until, None, Duration::from_secs(3));
    (plan.reject, plan.strict) = (reject, strict);
    let bytes: Vec<u8> = row.text.chars().map(|c| c as u8).collect();
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
        _ => 75,
    };
    (code, end.verdict.summary)
}

/// Returns the fault signatures that Jig comes with.
fn shipped_faults() -> FaultSets {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../board-profiles/faults");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let texts: Vec<_> = files
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(&path).unwrap())
        })
        .collect();
    let sets = texts.iter().map(|(name, text)| FaultSetText { name, origin: name, text });
    FaultSets::parse(sets).unwrap_or_else(|problems| panic!("{}", problems[0]))
}
