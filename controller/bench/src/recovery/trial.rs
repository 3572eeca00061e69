//! One run of the program, and what it says of itself.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use jig_model::Cause;
use jig_model::event::{BoardEvent, Purpose, RunEvent, StampedEvent};
use jig_model::protocol::PowerState;
use serde_json::Value;

use super::lab::TrialLab;
use crate::faults::Natural;
use xtask::failure::TaskFailure;
use xtask::process;

/// How long a run may take that is made to fail. Longer than all it may wait for: ten seconds
/// for a report, as often as it is made, and what a ladder takes in between.
const TIMEOUT: Duration = Duration::from_secs(180);

/// The exit code of the program that says that it was asked for something wrong.
const USAGE: i32 = 2;

/// A run that is made to fail.
pub(super) struct FaultTrial<'a> {
    pub(super) lab: &'a TrialLab,
    /// The fault as it is written.
    pub(super) fault: &'a str,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TrialOutcome {
    /// The fault's moment did not come.
    Missed,
    /// The test was made, and passed.
    Passed {
        /// Seconds from the strike to the test's next attempt; none if it needed no other.
        recovered_s: Option<f64>,
    },
    /// The run ended otherwise, with this cause.
    Ended(Cause),
    /// There is no verdict; this is what the program said.
    Nothing(String),
    /// The fault is none for such a place, and was refused with these words.
    Refused(String),
}

/// What the program said, and how it ended.
pub(super) struct ProgramAnswer {
    pub(super) said: Value,
    /// Its exit code; none where a signal ended it.
    code: Option<i32>,
}

impl FaultTrial<'_> {
    /// Makes a run in which nothing fails.
    pub(super) fn natural(lab: &TrialLab) -> Result<Natural, TaskFailure> {
        let (ProgramAnswer { said, .. }, events) = FaultTrial { lab, fault: "" }.made()?;
        let passed = verdict(&said).is_ok_and(|cause| cause == Cause::Passed);
        if !passed {
            let place = &lab.place;
            let why = format!("a run at {place} in which nothing was to fail did not pass: {said}");
            return Err(TaskFailure::Because(why));
        }
        let power = |state| {
            let switched = RunEvent::Board(BoardEvent::Power { state });
            events.iter().position(|event| event.event == switched)
        };
        let (on, off) = (power(PowerState::On), power(PowerState::Off));
        let at = |index: Option<usize>| index.map_or(0, |i| events[i].mono_ns / 1_000_000);
        let run_ms = events.last().map_or(0, |event| event.mono_ns / 1_000_000);
        let talks = |event: &StampedEvent| matches!(event.event, RunEvent::Case { .. });
        let talked = at(events.iter().rposition(talks));
        Ok(Natural {
            run_ms,
            powered_ms: at(off).saturating_sub(at(on)),
            talking_ms: talked.saturating_sub(at(on)),
        })
    }

    /// Makes the run.
    pub(super) fn run(&self) -> Result<TrialOutcome, TaskFailure> {
        let (ProgramAnswer { said, code }, events) = self.made()?;
        // A run that could not be recorded cannot tell that it was struck, and was.
        let struck = first(&events, |event| matches!(event, RunEvent::Injected { .. }));
        let cause = match verdict(&said) {
            Ok(cause) => cause,
            Err(words) if code == Some(USAGE) => return Ok(TrialOutcome::Refused(words)),
            Err(words) => return Ok(TrialOutcome::Nothing(words)),
        };
        let Some(struck) = struck else { return Ok(TrialOutcome::Missed) };
        if cause != Cause::Passed {
            return Ok(TrialOutcome::Ended(cause));
        }
        let next = |event: &StampedEvent| {
            event.seq > struck.seq
                && matches!(event.event, RunEvent::AttemptStarted { purpose: Purpose::Test, .. })
        };
        let recovered_s = events
            .iter()
            .find(|event| next(event))
            .map(|next| next.mono_ns.saturating_sub(struck.mono_ns) as f64 / 1e9);
        Ok(TrialOutcome::Passed { recovered_s })
    }

    /// Calls the program; returns what it said and what happened.
    fn made(&self) -> Result<(ProgramAnswer, Vec<StampedEvent>), TaskFailure> {
        let mut command = self.lab.jig();
        command.args(["--json", "run", "--timeout", "10s", "-b", &self.lab.place]);
        command.arg(&self.lab.image);
        if !self.fault.is_empty() {
            command.args(["--inject", self.fault]);
        }
        let before = self.lab.newest();
        let said = answer(&mut command)?;
        let run = self.lab.newest().filter(|run| Some(run) != before.as_ref());
        let events = run.map(|run| events(&run)).unwrap_or_default();
        Ok((said, events))
    }
}

/// Runs the program to its end and returns the document it prints.
pub(super) fn answer(command: &mut std::process::Command) -> Result<ProgramAnswer, TaskFailure> {
    let mut child = command.spawn().map_err(process::start_failure(command))?;
    let (Some(out), Some(err)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(TaskFailure::Because("the program's output is not piped".to_owned()));
    };
    // Both are read while it runs, so that neither pipe can fill and hold it up.
    let reader = |mut from: Box<dyn std::io::Read + Send>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = from.read_to_end(&mut bytes);
            bytes
        })
    };
    let (out, err) = (reader(Box::new(out)), reader(Box::new(err)));
    let end = Instant::now() + TIMEOUT;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(process::start_failure(command))? {
            break Some(status);
        }
        if Instant::now() >= end {
            let _ = child.kill();
            let _ = child.wait();
            break None;
        }
        // A run takes a tenth of a second at least.
        std::thread::sleep(Duration::from_millis(2));
    };
    let (out, err) = (out.join().unwrap_or_default(), err.join().unwrap_or_default());
    let wordless = |words: String| serde_json::json!({ "error": { "message": words } });
    let Some(status) = status else {
        let said = wordless(format!("did not end within {TIMEOUT:?}"));
        return Ok(ProgramAnswer { said, code: None });
    };
    // Without a document, what it says to people is all there is.
    let said = serde_json::from_slice(&out)
        .unwrap_or_else(|_| wordless(String::from_utf8_lossy(&err).into_owned()));
    Ok(ProgramAnswer { said, code: status.code() })
}

/// Returns the cause a run ended with, or what the program said instead.
pub(super) fn verdict(said: &Value) -> Result<Cause, String> {
    let cause = said["verdict"]["cause"].as_str().and_then(|cause| cause.parse().ok());
    cause.ok_or_else(|| said["error"]["message"].as_str().unwrap_or("it said nothing").to_owned())
}

fn first(events: &[StampedEvent], wanted: impl Fn(&RunEvent) -> bool) -> Option<&StampedEvent> {
    events.iter().find(|event| wanted(&event.event))
}

/// Reads the events of a run; a line that could not be written is left out.
fn events(run: &std::path::Path) -> Vec<StampedEvent> {
    let text = fs::read_to_string(run.join("events.jsonl")).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

impl TrialLab {
    /// Returns the newest run: their names are the times they began.
    fn newest(&self) -> Option<PathBuf> {
        let entries = fs::read_dir(self.runs()).ok()?.filter_map(Result::ok);
        let runs = entries.map(|entry| entry.path());
        // Made a moment ago, even if a fault has set the clock that names it.
        runs.filter(|path| path.join("events.jsonl").exists()).max_by_key(|path| {
            fs::metadata(path.join("events.jsonl")).and_then(|m| m.created()).ok()
        })
    }
}
