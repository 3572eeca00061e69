//! `jig runs show`.

use std::fmt::Write as _;

use jig_knowledge::SeenBefore;
use jig_lab::{Catalogue, RunStanding, seen_in, signature_of};
use jig_model::result::CaseStatus;
use jig_model::{Purpose, exit};
use jig_rig::store::{RunEntry, RunRecord};
use serde_json::json;

use super::source::OpenedRun;
use super::words;
use crate::args::Common;
use crate::failure::Failure;
use crate::render::{
    Paint, Screen, Style, line_of, one_line, quote, seconds, verdict_text, verdict_word,
};

/// Most ranges that are quoted.
const MAX_QUOTES: usize = 3;

/// Shows a run's record. JSON: `{"state","dir","record":RECORD}`, the record as stored, and `"seen_before"`
/// where something is known of its failure.
pub(super) fn show(common: &Common, screen: &Screen, run: &OpenedRun) -> Result<u8, Failure> {
    let (entry, dir) = (&run.entry, run.dir.display().to_string());
    let record = entry.record.as_ref().map_err(|error| {
        Failure::of(error.fault(), error).help(format!(
            "its logs may still be read: jig runs log {}, or look into {dir}",
            entry.dir.id(),
        ))
    })?;
    let seen = seen_now(common, entry, record);
    if screen.json() {
        let mut shown = json!({ "state": RunStanding::of(entry), "dir": dir, "record": record });
        if let Some(seen) = &seen {
            shown["seen_before"] = json!(seen);
        }
        screen.out_json(&shown);
    } else {
        screen.out(text(entry, record, &dir, screen.out_paint()).trim_end());
        if let Some(line) = seen.as_ref().and_then(line_of) {
            screen.out(&format!("  seen before: {line}"));
        }
    }
    Ok(exit::PASS)
}

/// Returns what is known of the failure of a run: of a run of this host what is known now, which may be
/// more than when it ended; else what its rig knew then.
fn seen_now(common: &Common, entry: &RunEntry, record: &RunRecord) -> Option<SeenBefore> {
    signature_of(record)?;
    let then = || seen_in(entry.dir.path());
    if common.is_elsewhere() || entry.dir.is_copy() {
        return then();
    }
    // A rig file that cannot be read keeps no run from being shown.
    let catalogue = common.lab().ok().and_then(|config| Catalogue::load(&config).ok());
    catalogue.and_then(|catalogue| catalogue.knowledge().seen_before(record)).or_else(then)
}

pub(super) fn text(entry: &RunEntry, record: &RunRecord, dir: &str, paint: Paint) -> String {
    let mut text = verdict_text(record, paint);
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {:<10}{}", format!("{name}:"), one_line(&value));
    };
    line("run", format!("{} ({})", record.id, RunStanding::of(entry).as_str()));
    line("folder", dir.to_owned());
    if let Some(started) = record.started {
        line("started", started.strftime("%Y-%m-%d %H:%M:%S UTC").to_string());
    }
    if let Some(board) = &record.board {
        line("board", board.to_string());
    }
    if let Some(plan) = &record.plan {
        line("plan", format!("{} ({})", plan.name, plan.origin));
    }
    if let Some(asked) = &record.asked {
        line("session", format!("{} (trace {})", asked.session, asked.trace_id));
    }
    for image in &record.images {
        let id = image.build_id.as_ref().map(|id| format!(", build id {id}")).unwrap_or_default();
        line("image", format!("{} (sha256 {:.12}{id})", image.path, image.sha256));
    }
    for (name, value) in &record.host {
        line("host", format!("{name} {value}"));
    }
    if let Some(swept) = &record.swept {
        let n = swept.killed.len();
        line("swept", format!("{}, {n} processes of it killed", swept.at));
        for remark in &swept.remarks {
            line("remark", remark.clone());
        }
    }
    for attempt in &record.attempts {
        let (word, style) = verdict_word(attempt.verdict.kind);
        let replaced = if attempt.replaced { ", made again" } else { "" };
        let _ = writeln!(
            text,
            "  {} {}: {} {} ({}{replaced}, {} boots)",
            match attempt.purpose {
                Purpose::Test => "attempt",
                Purpose::Canary => "known-good image as",
                Purpose::Restore => "own image put back as",
            },
            attempt.attempt,
            paint.paint(style, word),
            attempt.verdict.cause,
            seconds(attempt.duration_ms),
            attempt.boots.len()
        );
    }
    let Some(verdict) = &record.verdict else { return text };
    for case in &verdict.tests.cases {
        let (word, style) = match case.status {
            CaseStatus::Pass => ("pass", Style::Good),
            CaseStatus::Fail => ("fail", Style::Bad),
            CaseStatus::Skip => ("skip", Style::Warn),
            CaseStatus::Unfinished => ("open", Style::Warn),
        };
        let took = case.duration_ms.map(|ms| format!(" ({ms} ms)")).unwrap_or_default();
        let _ = writeln!(text, "  {}  {}{took}", paint.paint(style, word), one_line(&case.name));
    }
    for evidence in verdict.evidence.iter().take(MAX_QUOTES) {
        let Some(lines) = quote(&entry.dir, evidence) else { continue };
        let place = format!("{} @{}..{}", evidence.file, evidence.start, evidence.end);
        let _ = writeln!(text, "  {}", paint.paint(Style::Bold, &one_line(&place)));
        for line in lines {
            let _ = writeln!(text, "    | {}", words::cut(&line));
        }
    }
    text
}
