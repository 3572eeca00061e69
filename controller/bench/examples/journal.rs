//! Measures the journal of the repair loop for `cargo xtask bench`, in a process of its own.
//!
//! A run whose steps do nothing is driven to its end, so that all that takes time is the loop: the
//! rows with their chain of hashes, each outcome flushed to the disk with the intent behind it, and
//! the fold. The floor beside it is an SQLite table with the same settings that gets as many rows of
//! the same length in as many transactions.

#![allow(clippy::print_stdout, reason = "it talks to the bench over its standard output")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jig_repair::drive::{RepairStep, RepairSteps, StepFuture, Waiting, drive};
use jig_repair::driver_lock::DriverLock;
use jig_repair::journal::{Contract, Effect, Journal, StepResult};
use jig_repair::machine::{RepairEvent, RepairState, RepairSubState};
use jig_repair::redact::Redactor;
use jig_repair::run::Run;
use jig_repair::task::RepairLimits;
use rusqlite::{Connection, params};
use serde_json::json;

/// Steps that lead through so many iterations without doing anything.
struct Idle {
    iterations: u64,
}

struct IdleStep {
    event: Option<RepairEvent>,
    iterations: u64,
}

impl RepairSteps for Idle {
    fn step(&self, state: RepairState, part: Option<RepairSubState>) -> Box<dyn RepairStep + '_> {
        let ends = part == state.sub_states().last().copied();
        let event = ends.then(|| event(state));
        Box::new(IdleStep { event, iterations: self.iterations })
    }
}

impl RepairStep for IdleStep {
    fn effect(&self) -> Effect {
        Effect::Idempotent
    }

    fn flashes(&self) -> u8 {
        0
    }

    fn limit(&self) -> Duration {
        Duration::from_secs(600)
    }

    fn run<'a>(&'a self, run: &'a Run) -> StepFuture<'a> {
        let event = match self.event {
            Some(RepairEvent::Continue) if run.iteration == self.iterations => {
                Some(RepairEvent::NoProgress)
            }
            event => event,
        };
        let reason = "nothing was done, and this is why, in a sentence of usual length";
        Box::pin(async move { StepResult { event, ..StepResult::of(RepairEvent::Abort, reason) } })
    }
}

/// The event by which a run gets on.
fn event(state: RepairState) -> RepairEvent {
    use RepairEvent as E;
    use RepairState as S;
    match state {
        S::Idle => E::TaskRequested,
        S::Init => E::ContextReady,
        S::CodeAnalysis => E::PatchPlanned,
        S::PatchGeneration => E::PatchValid,
        S::PatchApply => E::WorkspaceUpdated,
        S::BuildSetup => E::BuildReady,
        S::BuildRun => E::BuildPassed,
        S::TestSetup => E::EnvironmentReady,
        S::TestRun => E::TestFinished,
        S::ResultCollection => E::ResultNormalized,
        S::ResultAnalysis => E::DecisionProduced,
        S::ConvergenceCheck => E::Continue,
        S::ErrorRecovery => E::RecoveredToAnalysis,
        S::Success | S::Failure | S::Aborted => E::Reported,
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let folder = PathBuf::from(args.next().ok_or("name a folder")?);
    let rounds: u64 = args.next().ok_or("name the number of rounds")?.parse()?;
    let rows: u64 = args.next().ok_or("name the rows of the long journal")?.parse()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut floor, mut ours) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let (took, journal) = runtime.block_on(driven(&folder.join(format!("run-{round}")), 10))?;
        let lengths: Vec<usize> = bodies(&journal)?;
        let transitions = (lengths.len() - 1) as f64 / 2.0;
        let bare = bare(&folder.join(format!("bare-{round}.db")), &lengths)?;
        ours.push(transitions / took.as_secs_f64());
        floor.push(transitions / bare.as_secs_f64());
    }
    // Each iteration has 32 rows.
    let long = folder.join("long");
    runtime.block_on(driven(&long, rows.div_ceil(32)))?;
    let (mut read, mut resumed) = (Vec::new(), Vec::new());
    let mut found = 0;
    for _ in 0..rounds {
        read.push(milliseconds(|| bare_read(&long.join("journal.db")))?.0);
        let (took, run) = milliseconds(|| {
            let journal = Journal::open(&long, Redactor::default())?;
            Ok(Run::of(&journal.rows()?)?)
        })?;
        resumed.push(took);
        found = run.seq;
    }
    let answer = json!({
        "bare_transitions": floor,
        "transitions": ours,
        "rows": found,
        "bare_read": read,
        "resumed": resumed,
    });
    println!("{answer}");
    Ok(())
}

/// Drives a run of so many iterations; returns how long it took, and its journal.
async fn driven(folder: &Path, iterations: u64) -> Result<(Duration, PathBuf), Box<dyn Error>> {
    std::fs::create_dir_all(folder)?;
    let limits = RepairLimits { iterations, ..RepairLimits::default() };
    let contract =
        Contract { goal: "the journal is measured".to_owned(), limits, ..Contract::default() };
    let mut journal = Journal::begin(folder, contract, Redactor::default())?;
    let lock = DriverLock::take(folder)?;
    let began = Instant::now();
    let run = drive(&mut journal, &lock, &Idle { iterations }, Waiting::Leave).await?;
    let took = began.elapsed();
    if run.ended != Some(RepairState::Failure) || run.iteration != iterations {
        return Err(format!("the run ended as {:?}", run.ended).into());
    }
    Ok((took, folder.join("journal.db")))
}

fn bodies(journal: &Path) -> Result<Vec<usize>, Box<dyn Error>> {
    let db = Connection::open(journal)?;
    let mut query = db.prepare("SELECT length(body) FROM journal ORDER BY seq")?;
    let lengths = query.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(lengths)
}

/// Writes rows of these lengths, two in a transaction; returns how long that took.
fn bare(path: &Path, lengths: &[usize]) -> Result<Duration, Box<dyn Error>> {
    let db = Connection::open(path)?;
    db.pragma_update(None, "journal_mode", "wal")?;
    db.pragma_update(None, "synchronous", "full")?;
    db.execute_batch("CREATE TABLE bare (seq INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT")?;
    let began = Instant::now();
    // The first row is not written by who drives a run.
    for pair in lengths[1..].chunks(2) {
        db.execute_batch("BEGIN IMMEDIATE")?;
        for length in pair {
            let body = "x".repeat(*length);
            db.prepare("INSERT INTO bare (body) VALUES (?1)")?.execute(params![body])?;
        }
        db.execute_batch("COMMIT")?;
    }
    Ok(began.elapsed())
}

fn bare_read(path: &Path) -> Result<usize, Box<dyn Error>> {
    let db = Connection::open(path)?;
    let mut query = db.prepare("SELECT body FROM journal ORDER BY seq")?;
    let mut rows = query.query([])?;
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        bytes += row.get_ref(0)?.as_str()?.len();
    }
    Ok(bytes)
}

fn milliseconds<T>(
    work: impl FnOnce() -> Result<T, Box<dyn Error>>,
) -> Result<(f64, T), Box<dyn Error>> {
    let began = Instant::now();
    let done = work()?;
    Ok((began.elapsed().as_secs_f64() * 1e3, done))
}
