//! Where repair runs stand, and what their journals say.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use jig_model::exit;
use jig_repair::driver_lock::DriverLock;
use jig_repair::export::{atif, otlp};
use jig_repair::journal::{Digest, Entry, Fact, Journal, Request, Row, SubmittedPatch};
use jig_repair::run::Run;
use jig_repair::steps::{exit_code, look_at, warning};
use jig_rig::console::escape;
use serde_json::{Value, json};

use super::folders::{find, names, open, policy_of, root};
use crate::args::{Common, ExportFormat};
use crate::failure::Failure;
use crate::render::Screen;

/// How often a journal is looked at by who follows it.
const LOOK: Duration = Duration::from_millis(200);

/// Lists the runs, newest first.
pub(super) fn list(common: &Common, screen: &Screen) -> Result<u8, Failure> {
    let root = root(common)?;
    let names = names(&root)?;
    let mut rows = Vec::new();
    for name in &names {
        match open(&root.join(name)) {
            Ok((_, run)) => rows.push(document(name, &root.join(name), &run)),
            Err(failure) => rows.push(json!({ "run": name, "error": failure.message })),
        }
    }
    if screen.json() {
        screen.out_json(&rows);
        return Ok(exit::PASS);
    }
    if rows.is_empty() {
        screen.say(&format!("there is no repair run in {}", root.display()));
    }
    for row in rows {
        let text = |name: &str| row[name].as_str().map(|text| escape(text.as_bytes()).to_string());
        let (run, state) = (text("run"), text("state").or_else(|| text("error")));
        let state =
            state.map(
                |state| {
                    if row["warning"].is_string() { format!("{state}, warned") } else { state }
                },
            );
        let goal = text("goal").unwrap_or_default();
        screen.out(&format!(
            "{}  {:<18} {goal}",
            run.unwrap_or_default(),
            state.unwrap_or_default()
        ));
    }
    Ok(exit::PASS)
}

/// Returns where a run stands, and which command drives it on where no process does.
pub(super) fn document(name: &str, folder: &Path, run: &Run) -> Value {
    let state = run.ended.unwrap_or(run.state);
    let driven = run.ended.is_none() && DriverLock::is_held(folder);
    let next = (run.ended.is_none() && !driven).then(|| format!("jig repair resume {name}"));
    let counts = run.attempts.last().map(|last| last.counts);
    json!({
        "run": name,
        "goal": run.contract.goal,
        "state": state,
        "ended": run.ended.is_some(),
        "exit_code": run.ended.map(|_| exit_code(run)),
        "why": run.why,
        "warning": run.ended.and_then(|_| warning(run)),
        "look_at": run.ended.map(|_| look_at(name, run, &policy_of(folder).unwrap_or_default())),
        "driven": driven,
        "next": next,
        "iteration": run.iteration,
        "tests": counts,
        "waits": run.waits.as_ref().filter(|_| !run.is_answered()).map(|digest| format!("sha256:{digest}")),
        "waits_for": run.waits.as_ref().filter(|_| !run.is_answered()).map(|_| if run.waits_for_patch() { "patch" } else { "approval" }),
        "usage": run.usage,
    })
}

/// Says where a run stands, and what can be done.
pub(super) fn status(common: &Common, screen: &Screen, wanted: &str) -> Result<u8, Failure> {
    let (name, folder) = find(common, wanted)?;
    let (_, run) = open(&folder)?;
    if screen.json() {
        screen.out_json(&document(&name, &folder, &run));
        return Ok(exit::PASS);
    }
    tell(screen, &name, &folder, &run);
    Ok(exit::PASS)
}

/// Says how a run stands in a few lines.
pub(super) fn tell(screen: &Screen, name: &str, folder: &Path, run: &Run) {
    standing(name, folder, run).iter().for_each(|line| screen.out(line));
}

/// Lines of a patch that are shown where it waits for an approval.
const SHOWN_LINES: usize = 60;

/// Returns how a run stands: a line, and what can be done.
pub(super) fn standing(name: &str, folder: &Path, run: &Run) -> Vec<String> {
    let plain = |text: &str| escape(text.as_bytes()).to_string();
    let state = state_text(run);
    let mut lines =
        vec![format!("{name}: {state} in iteration {}: {}", run.iteration, plain(&run.why))];
    if let Some(last) = run.attempts.last() {
        let signature = last.signature.as_deref().unwrap_or("all pass");
        let (passed, total) = (last.counts.passed, last.counts.total);
        lines.push(format!("  last test: {passed} of {total} passed, {}", plain(signature)));
    }
    if run.ended.is_some() {
        lines.extend(warning(run).map(|warning| format!("  warning: {}", plain(&warning))));
        let policy = policy_of(folder).unwrap_or_default();
        lines.extend(
            look_at(name, run, &policy).iter().map(|one| format!("  look at {}", plain(one))),
        );
        lines.push(format!("  report: {}", folder.join("report.md").display()));
    } else if run.stop.is_some() || run.is_answered() {
        if !DriverLock::is_held(folder) {
            lines.push(format!("  no process drives it; next: jig repair resume {name}"));
        }
    } else if run.waits_for_patch() {
        lines.push("  waits for a patch".to_owned());
        lines.push(format!("  next: jig repair submit {name} PATCH --why TEXT"));
        lines.push(format!("    or: jig repair mcp {name}, as the command of an MCP client"));
        lines.push(format!("    or: jig repair reject {name} --why TEXT"));
        if !DriverLock::is_held(folder) {
            lines.push(format!("  no process drives it; behind that: jig repair resume {name}"));
        }
    } else if let Some(digest) = &run.waits {
        if let Some(proposed) = &run.proposed {
            let patch = folder.join("patches").join(format!("{}.diff", proposed.patch));
            lines.push(format!("  waits for an approval of {}", patch.display()));
            let text = fs::read(&patch).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            lines.extend(text.lines().take(SHOWN_LINES).map(|line| format!("    {}", plain(line))));
            if text.lines().nth(SHOWN_LINES).is_some() {
                lines.push("    ... (the file has all of it)".to_owned());
            }
        }
        lines.push(format!("  next: jig repair approve {name} --digest sha256:{digest}"));
        lines.push(format!("    or: jig repair reject {name} --why TEXT"));
    }
    lines
}

/// Returns the state of a run, and whether it is a success that is not proven.
fn state_text(run: &Run) -> String {
    let state = run.ended.unwrap_or(run.state);
    let warned = run.ended.is_some() && warning(run).is_some();
    if warned { format!("{state}, with a warning,") } else { state.to_string() }
}

/// Prints the rows of a journal.
pub(super) fn log(common: &Common, screen: &Screen, wanted: &str) -> Result<u8, Failure> {
    let (_, folder) = find(common, wanted)?;
    let (journal, _) = open(&folder)?;
    for row in journal.rows()? {
        show_row(screen, &row, false);
    }
    Ok(exit::PASS)
}

/// Prints a run in the format of another tool.
pub(super) fn export(
    common: &Common,
    screen: &Screen,
    wanted: &str,
    format: ExportFormat,
) -> Result<u8, Failure> {
    let (name, folder) = find(common, wanted)?;
    let (journal, run) = open(&folder)?;
    let (rows, version) = (journal.rows()?, env!("CARGO_PKG_VERSION"));
    screen.out_json(&match format {
        ExportFormat::Otlp => otlp(&name, &rows, version),
        ExportFormat::Atif => atif(&name, &rows, &run, version),
    });
    Ok(exit::PASS)
}

/// Follows a run for as long as a process drives it; ends with its exit code, or with that of a run
/// that waits.
pub(super) fn watch(common: &Common, screen: &Screen, wanted: &str) -> Result<u8, Failure> {
    let (name, folder) = find(common, wanted)?;
    let (journal, _) = open(&folder)?;
    let mut follower = RowFollower { objects: true, ..RowFollower::default() };
    loop {
        // Before the journal is read: what its driver wrote last is seen, then.
        let driven = DriverLock::is_held(&folder);
        let waits = follower.show_new(&journal, screen)?;
        let run = open(&folder)?.1;
        if run.ended.is_some() || !driven {
            follower.show_new(&journal, screen)?;
            if !screen.json() {
                tell(screen, &name, &folder, &run);
            }
            return Ok(if run.ended.is_some() { exit_code(&run) } else { exit::INCONCLUSIVE });
        }
        if waits && !run.is_answered() {
            standing(&name, &folder, &run).iter().for_each(|line| screen.say(line));
        }
        if screen.closed() {
            return Ok(exit::PASS);
        }
        sleep(LOOK);
    }
}

/// Shows rows as they come.
#[derive(Default)]
pub(super) struct RowFollower {
    seq: u64,
    hash: Digest,
    /// With `--json` rows are shown, too.
    objects: bool,
}

impl RowFollower {
    /// Shows what has happened since the last call. Tells whether the run has begun to wait.
    pub(super) fn show_new(&mut self, journal: &Journal, screen: &Screen) -> Result<bool, Failure> {
        let mut waits = false;
        for row in journal.rows_behind(self.seq, self.hash)? {
            if self.objects && screen.json() {
                screen.out_json(&object(&row));
            } else {
                show_row(screen, &row, true);
            }
            waits |= match &row.entry {
                Entry::Outcome(outcome) => {
                    outcome.result.facts.iter().any(|fact| matches!(fact, Fact::Waits { .. }))
                }
                _ => false,
            };
            (self.seq, self.hash) = (row.seq, row.hash);
        }
        Ok(waits)
    }
}

/// Prints a row: as an object with `--json`, else as a line; `live` shows what happens while it does.
fn show_row(screen: &Screen, row: &Row, live: bool) {
    if screen.json() {
        if !live {
            screen.out_json(&object(row));
        }
        return;
    }
    let time = jiff::Timestamp::from_millisecond(i64::try_from(row.time_ms).unwrap_or(0));
    let time = time.map(|time| time.strftime("%H:%M:%S").to_string()).unwrap_or_default();
    let place = |state: &dyn std::fmt::Display, part: Option<&dyn std::fmt::Display>| match part {
        Some(part) => format!("{state}/{part}"),
        None => state.to_string(),
    };
    let said = match &row.entry {
        Entry::Begun(contract) => format!("begun: {}", contract.goal),
        Entry::Intent(intent) if !live => {
            let part = intent.part.as_ref().map(|part| part as &dyn std::fmt::Display);
            format!("{} begins", place(&intent.state, part))
        }
        Entry::Intent(_) => return,
        Entry::Outcome(outcome) => {
            let part = outcome.part.as_ref().map(|part| part as &dyn std::fmt::Display);
            let event = outcome.result.event.map(|event| format!(" {event}")).unwrap_or_default();
            format!("{}{event}: {}", place(&outcome.state, part), outcome.result.reason)
        }
        Entry::Request(Request::Resume) => "a process drives the run on".to_owned(),
        Entry::Request(Request::Stop { why }) => format!("asked to stop: {why}"),
        Entry::Request(Request::Approve { digest }) => format!("approved: sha256:{digest}"),
        Entry::Request(Request::Reject { why }) => format!("refused: {why}"),
        Entry::Request(Request::Submit(SubmittedPatch { hypothesis, .. })) => {
            format!("a client submits a patch: {}", hypothesis.lines().next().unwrap_or_default())
        }
    };
    let line = format!("{time} {:>4} {}", row.seq, escape(said.as_bytes()));
    if live { screen.say(&line) } else { screen.out(&line) }
}

/// Returns a row as an object: number, time, and what it says, flat.
fn object(row: &Row) -> Value {
    let mut object = serde_json::to_value(&row.entry).unwrap_or_default();
    if let Value::Object(members) = &mut object {
        members.insert("seq".to_owned(), row.seq.into());
        members.insert("time_ms".to_owned(), row.time_ms.into());
        members.insert("hash".to_owned(), row.hash.to_string().into());
    }
    object
}
