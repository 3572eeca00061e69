//! `cargo xtask bench recovery`: a rig that fails on purpose, at random moments.
//!
//! Runs the `jig` program as a user would, with each fault of its own list, and reads what it
//! says: the verdict, and the events of the run. The other side is measured too: firmware
//! that is broken, on a rig that is well. Refuses to know a fault: what there is, and when it
//! can strike, is asked of the program.
//!
//! # Design
//! Each board has a lane: a lab of its own, whose runs follow one another. Lanes go side by
//! side, because a run on an emulated board mostly waits; `--in-turn` shows what that changes.
//! What a lane has done is written down at once, so that `--resume` goes on from there.

mod firmware;
mod journal;
mod lab;
mod lane;
mod leaks;
mod table;
mod trial;

use std::path::{Path, PathBuf};

use serde_json::json;

use super::report;
use super::setting::{RecoveryTarget, build, recovered};
use journal::{Beginning, Journal};
use lane::{Lane, Wanted};
use table::TrialTable;
use xtask::failure::TaskFailure;
use xtask::{fixtures, process};

/// What `cargo xtask bench recovery` can be told.
#[derive(clap::Args)]
pub(crate) struct RecoveryOptions {
    /// Moments at which each fault strikes on each board.
    #[arg(long, default_value_t = 20)]
    rounds: usize,
    /// Only faults whose name contains this; `firmware` is the other side.
    #[arg(long, value_name = "FAULT")]
    only: Option<String>,
    /// Where the random moments come from; printed, so that a run can be repeated.
    #[arg(long)]
    seed: Option<u64>,
    /// Tries this program instead of building one.
    #[arg(long, value_name = "FILE")]
    jig: Option<PathBuf>,
    /// Goes on where the last one of this program, seed and rounds was broken off.
    #[arg(long)]
    resume: bool,
    /// One board after the other, not side by side.
    #[arg(long)]
    in_turn: bool,
}

/// Runs every trial, prints the tables and keeps the numbers: as they come in
/// `<target>/bench/recovery.md`, and at the end in a JSON file beside it.
///
/// # Errors
/// Something could not be tried, or a goal was missed.
pub(crate) fn run(options: &RecoveryOptions) -> Result<(), TaskFailure> {
    let target = process::target_dir();
    let jig = match &options.jig {
        Some(jig) => std::path::absolute(jig).map_err(TaskFailure::io("find", jig))?,
        None => {
            println!("recovery: building");
            build(&["--bin", "jig"])?;
            target.join("release/jig")
        }
    };
    fixtures::run(&fixtures::FixtureChoice::default())?;
    let folder = target.join("bench");
    std::fs::create_dir_all(&folder).map_err(TaskFailure::io("create", &folder))?;
    let path = folder.join("recovery.jsonl");
    let beginning = Beginning::of(&jig, options.rounds, options.seed)?;
    let journal = match options.resume {
        true => Journal::resume(path, beginning, options.seed)?,
        false => Journal::begin(path, beginning)?,
    };
    let (seed, before) = (journal.seed(), report::load());
    let known = journal.table().len();
    println!(
        "recovery: seed {seed}, {} rounds, load average {before}, {} processors{}",
        options.rounds,
        report::processors(),
        if known > 0 { format!(", {known} known already") } else { String::new() }
    );
    let left = lanes(options, (&jig, &target), &journal)?;
    let table = TrialTable { left, ..journal.table() };
    let seconds = report::seconds();
    let numbers = folder.join(format!("recovery-{seconds}.json"));
    let document = json!({
        "format": "jig-bench-recovery",
        "version": 2,
        "unix_time": seconds,
        "seed": seed,
        "rounds": options.rounds,
        "side_by_side": !options.in_turn,
        "load_before": before,
        "load_after": report::load(),
        "faults": table.lines,
        "firmware": table.firmware,
        "left": table.left,
        "goals": table.goals(),
    });
    std::fs::write(&numbers, format!("{document:#}\n"))
        .map_err(TaskFailure::io("write", &numbers))?;
    let shown = folder.join("recovery.md");
    std::fs::write(&shown, table.markdown()).map_err(TaskFailure::io("write", &shown))?;
    print!("\n{}\n{}", table.markdown(), table.details());
    println!(
        "\nseed {seed}, load average {before} before, {} after; numbers: {}",
        report::load(),
        numbers.display()
    );
    let missed: Vec<_> = table.goals().into_iter().filter(|goal| !goal.met).collect();
    if missed.is_empty() {
        return Ok(());
    }
    let words: Vec<_> = missed.iter().map(|goal| goal.words.as_str()).collect();
    Err(TaskFailure::Because(format!("goals were missed: {}", words.join("; "))))
}

/// Drives a lane for each board; returns what is left behind.
fn lanes(
    options: &RecoveryOptions,
    (jig, target): (&Path, &Path),
    journal: &Journal,
) -> Result<Vec<String>, TaskFailure> {
    let wanted = Wanted { rounds: options.rounds, only: options.only.clone() };
    let drive = |recovered: &RecoveryTarget| -> Result<Vec<String>, TaskFailure> {
        Lane::prepare(jig, target, recovered)?.drive(&wanted, journal)
    };
    let places = recovered()?;
    let ended: Vec<_> = if options.in_turn {
        places.iter().map(drive).collect()
    } else {
        std::thread::scope(|scope| {
            let lanes: Vec<_> =
                places.iter().map(|recovered| scope.spawn(|| drive(recovered))).collect();
            let broken = |_| Err(TaskFailure::Because("a lane broke off".to_owned()));
            lanes.into_iter().map(|lane| lane.join().unwrap_or_else(broken)).collect()
        })
    };
    let left: Result<Vec<_>, _> = ended.into_iter().collect();
    left.map(|left| left.concat())
}
