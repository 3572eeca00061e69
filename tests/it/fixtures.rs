//! Every fixture on every board it fits: the verdict, and that everything that tells it agrees.
//!
//! The table of expectations is `manifest.json`, which `cargo xtask fixtures` writes from the
//! fixtures' own descriptions. There is one test per board; each lists all its failures at once.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::Value;

use crate::junit::Junit;
use crate::manifest::{self, Counts, Entry, repository};
use crate::workshop::{Ran, Slot, Workshop, ran};

/// Pairs of one board that are under way at once. Many of them only wait for a time-out.
const WORKERS: usize = 3;

/// How often a fixture that throws dice is run when all its attempts came out alike. One in
/// three fails: twenty of twenty pass in one of 3,000 runs, three times over in one of 10^10.
const THROWS: usize = 3;

/// A fixture that fails some milliseconds behind its end marker. A busy machine may let its
/// emulator wait for longer than boards are watched, so here they are watched for longer.
pub(crate) const FAILS_LATE: &str = "fault-after-ok";

/// The board whose flood is as large as its profile allows. The others have a lower limit.
const FLOODED_IN_FULL: &str = "lm3s6965evb";

macro_rules! boards {
    ($($test:ident = $board:literal,)+) => {
        $(#[test] fn $test() { whole_board($board); })+

        const TESTED: &[&str] = &[$($board,)+];
    };
}

boards! {
    lm3s6965evb = "lm3s6965evb",
    microbit = "microbit",
    mps2_an385 = "mps2-an385",
    mps2_an386 = "mps2-an386",
    mps2_an505 = "mps2-an505",
    netduinoplus2 = "netduinoplus2",
    riscv32_virt = "riscv32-virt",
    sifive_e = "sifive-e",
    stm32vldiscovery = "stm32vldiscovery",
}

#[test]
fn every_fixture_and_board_is_in_the_table() {
    let entries = manifest::entries();
    let names = |folder: &str| -> BTreeSet<String> {
        let all = fs::read_dir(repository().join(folder)).unwrap().map(|entry| entry.unwrap());
        all.map(|entry| entry.path().file_stem().unwrap().to_str().unwrap().to_owned()).collect()
    };
    let mut fixtures = names("firmware-fixtures");
    fixtures.retain(|name| {
        repository().join("firmware-fixtures").join(name).join("fixture.toml").is_file()
    });
    let built: BTreeSet<String> = entries.iter().map(|entry| entry.fixture.clone()).collect();
    assert_eq!(
        built, fixtures,
        "fixtures that are built, and those there are\nrun: cargo xtask fixtures"
    );
    let tested: BTreeSet<String> = TESTED.iter().map(|&board| board.to_owned()).collect();
    assert_eq!(
        tested,
        names("firmware-fixtures/boards"),
        "boards with a test here, and those with fixtures"
    );
}

fn whole_board(board: &str) {
    let mut entries = manifest::entries();
    entries.retain(|entry| entry.board == board);
    assert!(!entries.is_empty(), "nothing is built for {board}\nrun: cargo xtask fixtures");
    // The slow ones first, so that they do not trail behind all others.
    entries.sort_by_key(|entry| std::cmp::Reverse((entry.timeout_s, entry.repeat)));
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(entry) = entries.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(why) = check(entry) {
                        let failure = format!("{board} {}: {why}", entry.fixture);
                        // At once: libtest keeps what tests print until the last one has ended.
                        let _ = writeln!(io::stderr(), "{failure}");
                        failures.lock().unwrap().push(failure);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(
        failures.is_empty(),
        "{} of {} fixtures failed:\n{}",
        failures.len(),
        entries.len(),
        failures.join("\n")
    );
}

fn check(entry: &Entry) -> Result<(), String> {
    for throw in 1..=THROWS {
        let workshop = Workshop::new();
        let (ran, report) = run(&workshop, entry)?;
        let document = ran.json()?;
        if entry.repeat > 1 && throw < THROWS && all_alike(&document) {
            continue;
        }
        return judge(entry, &ran, &document, &report);
    }
    Err("unreachable: the last throw is judged".to_owned())
}

/// Runs an entry; returns what it said, and its JUnit report.
fn run(workshop: &Workshop, entry: &Entry) -> Result<(Ran, String), String> {
    let report = workshop.path("report.xml");
    let mut command = workshop.jig(["--json"]);
    match entry.plan() {
        Some(plan) => command.arg("test").arg(plan).arg("--image").arg(entry.elf()),
        None => command
            .arg("run")
            .arg(entry.elf())
            .args(["--timeout", &format!("{}s", entry.timeout_s)]),
    };
    command.args(["-b", &entry.board, "--repeat", &entry.repeat.to_string()]);
    command.arg("--report").arg(format!("junit={}", report.display()));
    if entry.fixture == FAILS_LATE {
        watch_for_long(workshop, &entry.board);
    }
    // 2 to 16 MiB, printed twice byte by byte, take seconds of the host's time on each board.
    if entry.fixture == "output-flood" && entry.board != FLOODED_IN_FULL {
        set_limit(workshop, &entry.board, "flood = \"64K\"");
    }
    let slot = Slot::take();
    let ran = ran(&mut command)?;
    drop(slot);
    let xml =
        fs::read_to_string(&report).map_err(|error| format!("no JUnit report: {error}: {ran}"))?;
    Ok((ran, xml))
}

/// Puts a profile of the board into the workshop whose time to settle is longer. It costs
/// nothing: what is watched for ends the wait.
pub(crate) fn watch_for_long(workshop: &Workshop, board: &str) {
    set_limit(workshop, board, "settle = \"10s\"");
}

/// Puts a profile of the board into the workshop that differs in one limit.
pub(crate) fn set_limit(workshop: &Workshop, board: &str, limit: &str) {
    set_in_profile(workshop, board, "[limits]", limit);
}

/// Puts a profile of the board into the workshop that differs in one key of a table.
pub(crate) fn set_in_profile(workshop: &Workshop, board: &str, table: &str, value: &str) {
    let file = format!("board-profiles/{board}.toml");
    let text = fs::read_to_string(repository().join(&file)).unwrap();
    let (key, _) = value.split_once(" = ").unwrap();
    let mut lines: Vec<&str> = text.lines().filter(|line| !line.starts_with(key)).collect();
    let at = lines.iter().position(|line| *line == table).unwrap_or_else(|| {
        lines.push(table);
        lines.len() - 1
    });
    lines.insert(at + 1, value);
    fs::create_dir(workshop.path("board-profiles")).unwrap();
    workshop.write(&file, lines.join("\n") + "\n");
}

fn all_alike(document: &Value) -> bool {
    let kinds: BTreeSet<_> = document["attempts"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|a| a["kind"].to_string())
        .collect();
    kinds.len() == 1
}

fn judge(entry: &Entry, ran: &Ran, document: &Value, xml: &str) -> Result<(), String> {
    let verdict = &document["verdict"];
    let same = |what: &str, got: &dyn std::fmt::Debug, want: &dyn std::fmt::Debug| {
        let (got, want) = (format!("{got:?}"), format!("{want:?}"));
        if got == want { Ok(()) } else { Err(format!("{what} is {got}, expected {want}: {ran}")) }
    };
    same("the cause", &verdict["cause"].as_str(), &Some(entry.cause.as_str()))?;
    same("the verdict", &verdict["kind"].as_str(), &Some(entry.verdict.as_str()))?;
    let code = exit_code(&entry.verdict)?;
    same("the exit code", &ran.code(), &code)?;
    same("the document's exit code", &document["exit_code"].as_i64(), &Some(i64::from(code)))?;
    same(
        "the number of attempts",
        // Those that were made again after a recovery count for nothing.
        &document["attempts"]
            .as_array()
            .map(|all| all.iter().filter(|made| made["replaced"] != true).count()),
        &Some(entry.repeat as usize),
    )?;
    let junit = Junit::parse(xml).map_err(|why| format!("{why}: {xml}"))?;
    same("JUnit's cause", &junit.property("jig.cause"), &entry.cause)?;
    same("JUnit's verdict", &junit.property("jig.verdict"), &entry.verdict)?;
    same("JUnit's exit code", &junit.property("jig.exit_code"), &code.to_string())?;
    // A CI service sees the blamed side of the verdict only: failure, error or flaky.
    let blamed = (junit.failures > 0, junit.errors > 0, junit.flaky > 0);
    let due = match entry.verdict.as_str() {
        "pass" => (false, false, false),
        "fail" => (true, false, false),
        "flaky" => (false, false, true),
        _ => (false, true, false),
    };
    same("JUnit's (failure, error, flaky)", &blamed, &due)?;
    if let Some(counts) = &entry.tests {
        same("the counts", &counted(verdict), counts)?;
        // Whatever else a report shows, it shows these.
        same("JUnit's good cases", &junit.good, &counts.passed)?;
        same("JUnit's skipped cases", &junit.skipped, &counts.skipped)?;
    }
    Ok(())
}

fn counted(verdict: &Value) -> Counts {
    let count = |status: &str| {
        let cases = verdict["tests"]["cases"].as_array().into_iter().flatten();
        cases.filter(|case| case["status"] == status).count()
    };
    Counts { passed: count("pass"), failed: count("fail"), skipped: count("skip") }
}

fn exit_code(verdict: &str) -> Result<i32, String> {
    Ok(match verdict {
        "pass" => 0,
        "fail" => 1,
        "inconclusive" => 4,
        "flaky" => 5,
        "env_error" => 75,
        "cancelled" => 130,
        other => return Err(format!("{other} is no verdict")),
    })
}
