//! `jig runs show`.

use std::fmt::Write as _;

use jig_lab::RunStanding;
use jig_model::result::CaseStatus;
use jig_model::{Purpose, exit};
use jig_rig::store::{RunEntry, RunRecord};
use serde_json::json;

use super::source::OpenedRun;
use super::words;
use crate::failure::Failure;
use crate::render::{Paint, Screen, Style, one_line, quote, seconds, verdict_text, verdict_word};

/// Most ranges that are quoted.
const MAX_QUOTES: usize = 3;

/// Shows a run's record. JSON: `{"state","dir","record":RECORD}`, the record as stored.
pub(super) fn show(screen: &Screen, run: &OpenedRun) -> Result<u8, Failure> {
    let (entry, dir) = (&run.entry, run.dir.display().to_string());
    let record = entry.record.as_ref().map_err(|error| {
        Failure::of(error.fault(), error).help(format!(
            "its logs may still be read: jig runs log {}, or look into {dir}",
            entry.dir.id(),
        ))
    })?;
    if screen.json() {
        screen.out_json(&json!({ "state": RunStanding::of(entry), "dir": dir, "record": record }));
    } else {
        screen.out(text(entry, record, &dir, screen.out_paint()).trim_end());
    }
    Ok(exit::PASS)
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
