//! `jig explain failure`: a failed run among the other runs of its place.

use jig_model::{Fault, RunId, Verdict, exit};
use jig_repair::setup::{first_bad_line, verdict_signature};
use jig_rig::console::escape;
use jig_rig::store::RunRecord;
use jig_service::client::MOST_RECORDS;
use serde_json::{Value, json};

use crate::args::Common;
use crate::commands::repair;
use crate::commands::runs::source::open_with_earlier;
use crate::failure::Failure;
use crate::render::Screen;

/// Runs of the place that are looked at.
pub(crate) const HISTORY: usize = 20;
const _: () = assert!(HISTORY <= MOST_RECORDS);

/// A failure among the other runs of its place.
pub(crate) struct ExplainedFailure {
    /// What is equal where two runs fail in the same way; nothing of a pass.
    signature: Option<String>,
    /// How many earlier runs of the place have a verdict.
    seen: usize,
    /// Those that failed in the same way.
    alike: Vec<RunId>,
    last_pass: Option<RunId>,
}

impl ExplainedFailure {
    pub(crate) fn of(verdict: &Verdict, earlier: Vec<RunRecord>) -> Self {
        let signature = verdict_signature(verdict);
        let (mut seen, mut alike, mut last_pass) = (0, Vec::new(), None);
        for other in earlier {
            let Some(verdict) = &other.verdict else { continue };
            seen += 1;
            match verdict_signature(verdict) {
                None => last_pass = last_pass.or(Some(other.id.clone())),
                found if found == signature => alike.push(other.id),
                Some(_) => {}
            }
        }
        Self { signature, seen, alike, last_pass }
    }

    /// Tells it as JSON.
    pub(crate) fn document(&self, record: &RunRecord, verdict: &Verdict) -> Value {
        json!({
            "run": record.id,
            "place": record.place,
            "verdict": verdict.kind,
            "cause": verdict.cause,
            "blame": verdict.cause.fault(),
            "summary": verdict.summary,
            "signature": self.signature,
            "first_bad_line": self.signature.as_ref().and_then(|_| first_bad_line(verdict)),
            "evidence": verdict.evidence,
            "earlier_runs": self.seen,
            "same_signature": self.alike,
            "last_pass": self.last_pass,
        })
    }
}

/// Says how a run failed, how often its place has seen that, and which run passed there last.
pub(super) fn explain(common: &Common, screen: &Screen, wanted: &str) -> Result<u8, Failure> {
    let (opened, earlier) = open_with_earlier(common, wanted, HISTORY).map_err(|failure| {
        // Repair runs are of this host.
        let own = (!common.is_elsewhere()).then(|| repair_run(common, wanted));
        own.flatten().unwrap_or(failure)
    })?;
    let (record, dir) = (opened.entry.record?, opened.dir);
    let Some(verdict) = &record.verdict else {
        screen.say(&format!("{} has no verdict", record.id));
        return Ok(exit::INCONCLUSIVE);
    };
    let found = ExplainedFailure::of(verdict, earlier);
    let first = verdict.evidence.first();
    if screen.json() {
        screen.out_json(&found.document(&record, verdict));
        return Ok(exit::PASS);
    }
    let ExplainedFailure { signature, seen, alike, last_pass } = found;
    let plain = |text: &str| escape(text.as_bytes()).to_string();
    screen.out(&format!("{}: {}", record.id, plain(&verdict.summary)));
    screen.out(&format!("  cause: {}", verdict.cause));
    let Some(signature) = signature else {
        screen.out("  it passed");
        return Ok(exit::PASS);
    };
    screen.out(&format!("  signature: {}", plain(&signature)));
    if let Some(line) = first_bad_line(verdict) {
        screen.out(&format!("  first bad line: {}", plain(line)));
    }
    let place = record.place.as_ref().map(ToString::to_string).unwrap_or_default();
    if first.is_none() && first_bad_line(verdict).is_none() {
        let dir = dir.display();
        screen.out(&format!("  nothing that was printed shows why; logs and record are in {dir}"));
        screen.out(&format!(
            "  next: {}",
            next(verdict.cause.fault(), &record.id.to_string(), &place)
        ));
    }
    if let Some(first) = first {
        let file = dir.join(&first.file);
        screen.out(&format!("  in {} @{}..{}", file.display(), first.start, first.end));
    }
    screen.out(&format!("  {place}: {} of the last {seen} runs failed like this", alike.len()));
    screen.out(&match last_pass {
        Some(run) => format!("  last pass: {run}"),
        None => format!("  no pass among the last {seen} runs"),
    });
    Ok(exit::PASS)
}

/// Most runs of the rig that a message names.
const NAMED: usize = 5;

/// Says which runs of the rig a repair run has made, where it is one that was named.
fn repair_run(common: &Common, wanted: &str) -> Option<Failure> {
    let (name, runs) = repair::rig_runs(common, wanted)?;
    let words = format!("{name} is a repair run, and a run of the rig is explained");
    let help = match runs.as_slice() {
        [] => format!("it has made no run of the rig; see jig repair status {name}"),
        [first, ..] => {
            let named = runs[..runs.len().min(NAMED)].join(", ");
            let more = runs.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("its runs of the rig are {named}{more}: jig explain failure {first}")
        }
    };
    Some(Failure::new(Fault::Usage, words).help(help))
}

/// Says what tells more of a failure that no output shows, by who is to blame.
fn next(blame: Option<Fault>, run: &str, place: &str) -> String {
    match blame {
        Some(Fault::Lab) => format!("jig recover {place}   # the rig is to blame"),
        Some(Fault::Usage | Fault::Profile) => {
            format!("jig runs show {run}   # what was asked for is to blame: see its notes")
        }
        _ => format!(
            "jig runs show {run}   # its notes and post-mortem; then jig bt {place}, to see where the core stands"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tells_more_depends_on_who_is_to_blame() {
        let next = |blame| next(blame, "r1", "ring");
        assert!(next(Some(Fault::Lab)).starts_with("jig recover ring"));
        assert!(next(Some(Fault::Profile)).starts_with("jig runs show r1"));
        assert!(next(Some(Fault::Target)).contains("jig bt ring"));
        assert_eq!(next(None), next(Some(Fault::Unknown)));
    }
}
