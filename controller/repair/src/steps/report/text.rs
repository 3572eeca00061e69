//! The report for people, as Markdown. Pure. What firmware, agents and tools said is quoted so that it
//! stays text.

use std::fmt::Write as _;

use super::document::RepairDocument;
use crate::journal::{Entry, EvidenceRef, Outcome, Row};
use crate::localise::RankedSuspect;
use crate::run::Run;

/// Suspect lines that the report shows.
const SHOWN_SUSPECTS: usize = 5;

/// Bytes of a diff that the report shows.
const SHOWN_DIFF: usize = 64 << 10;

/// What a report is written from.
pub(super) struct ReportParts<'r> {
    pub(super) run: &'r Run,
    pub(super) document: &'r RepairDocument,
    /// Suspect lines of the last iteration, best first.
    pub(super) suspects: &'r [RankedSuspect],
    /// The last patch.
    pub(super) diff: Option<&'r str>,
    /// The journal until here.
    pub(super) rows: &'r [Row],
}

/// Writes the report.
pub(super) fn markdown(parts: &ReportParts<'_>) -> String {
    let document = parts.document;
    let warned = if document.warning.is_some() { ", with a warning" } else { "" };
    let (name, state) = (&document.run, document.state);
    let mut text = format!("# Repair run {name}: {state}{warned}\n\n{}\n", cell(&document.why));
    if let Some(warning) = &document.warning {
        let _ = writeln!(text, "\n**Warning:** {}", cell(warning));
    }
    if !document.look_at.is_empty() {
        text += "\nWhat a person should look at:\n\n";
        document.look_at.iter().for_each(|one| {
            let _ = writeln!(text, "- {}", cell(one));
        });
    }
    text += "\n";
    text += &table(&["", ""], facts(parts));
    text += &suspects_text(parts.suspects);
    if let Some(diff) = parts.diff {
        text += &diff_text(diff);
    }
    text += &transitions(parts.rows);
    let _ = writeln!(text, "\nEach step, and what it has learnt: `jig repair log {name}`");
    text
}

/// Returns names and values of what the run came to.
fn facts(parts: &ReportParts<'_>) -> Vec<Vec<String>> {
    let ReportParts { run, document, .. } = parts;
    let mut rows = Vec::new();
    let mut row = |name: &str, value: String| rows.push(vec![name.to_owned(), value]);
    row("goal", document.goal.clone());
    row("base", document.base.clone());
    if let Some(baseline) = &run.baseline {
        let counts = baseline.counts;
        let signature = &baseline.signature;
        row("before", format!("{} of {} tests pass: {signature}", counts.passed, counts.total));
    }
    if let Some(last) = run.attempts.last() {
        let signature = last.signature.as_deref().unwrap_or("all pass");
        row(
            "after",
            format!("{} of {} tests pass: {signature}", last.counts.passed, last.counts.total),
        );
    }
    if let Some(commit) = &document.commit {
        row("repair", format!("{commit}, branch jig/repair/{}", document.run));
    }
    if let Some(diff) = &document.diff {
        row("last patch", diff.clone());
    }
    if let Some(agent) = &document.agent {
        row("proposed by", agent.clone());
    }
    if let Some(confidence) = &document.confidence {
        row("proof", confidence.clone());
    }
    row("iterations", document.iterations.to_string());
    row("tokens", document.usage.tokens.to_string());
    row("cost in USD", format!("{:.2}", document.usage.micro_usd as f64 / 1e6));
    row("exit code", document.exit_code.to_string());
    rows
}

/// Shows the first suspect lines of the last iteration, with what their rank comes from.
fn suspects_text(suspects: &[RankedSuspect]) -> String {
    if suspects.is_empty() {
        return String::new();
    }
    let rows = suspects.iter().take(SHOWN_SUSPECTS).map(|one| {
        let RankedSuspect { rank, file, line, score, failed_count, passed_count, .. } = one;
        let place = format!("{file}:{line}");
        let (failed, passed) = (failed_count.to_string(), passed_count.to_string());
        vec![
            rank.to_string(),
            place,
            score.to_string(),
            one.measure.as_str().to_owned(),
            failed,
            passed,
        ]
    });
    let head = ["rank", "suspect line", "score", "measure", "failed tests", "passed tests"];
    let text = "\n".to_owned() + &table(&head, rows.collect());
    text + "\n`ochiai`: the tests executed the line, as the emulator told; `call_graph`: they can \
            reach it, by the names in the sources.\n"
}

/// Shows the last patch, between marks that it does not contain.
fn diff_text(diff: &str) -> String {
    let shown = &diff[..diff.floor_char_boundary(SHOWN_DIFF)];
    let longest = shown.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let cut =
        if shown.len() < diff.len() { "\nThe patch is longer; its file is whole.\n" } else { "" };
    let end = if shown.ends_with('\n') { "" } else { "\n" };
    format!("\n## Last patch\n\n{fence}diff\n{shown}{end}{fence}\n{cut}")
}

/// Shows what moved the run from state to state.
fn transitions(rows: &[Row]) -> String {
    let moved = rows.iter().filter_map(|row| {
        let Entry::Outcome(Outcome { state, part, result }) = &row.entry else { return None };
        let event = result.event?;
        let state = part.map_or(state.to_string(), |part| format!("{state}/{part}"));
        let evidence: Vec<_> = result.evidence.iter().map(place).collect();
        let time = crate::export::rfc3339(row.time_ms);
        let seq = row.seq.to_string();
        Some(vec![seq, time, state, event.to_string(), result.reason.clone(), evidence.join(", ")])
    });
    let head = ["row", "time (UTC)", "state", "event", "reason", "evidence"];
    "\n## Transitions\n\n".to_owned() + &table(&head, moved.collect())
}

/// Writes a file with the bytes that are meant.
fn place(evidence: &EvidenceRef) -> String {
    match evidence.bytes {
        Some((from, to)) => format!("{} @{from}..{to}", evidence.file),
        None => evidence.file.clone(),
    }
}

fn table(head: &[&str], rows: Vec<Vec<String>>) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut text = line(head.iter().map(|&name| name.to_owned()).collect());
    text += &line(vec!["---".to_owned(); head.len()]);
    text.extend(rows.into_iter().map(|row| line(row.iter().map(|value| cell(value)).collect())));
    text
}

/// Writes a value on one line, without what Markdown and HTML would take for their own.
fn cell(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for character in value.chars() {
        match character {
            '|' | '`' | '*' | '_' | '[' | ']' | '\\' => text.extend(['\\', character]),
            '<' => text.push_str("&lt;"),
            '&' => text.push_str("&amp;"),
            character if character.is_control() => text.push(' '),
            character => text.push(character),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_others_said_stays_text_in_its_cell() {
        assert_eq!(cell("a|b\n<b>`x`\u{1b}[31m"), "a\\|b &lt;b>\\`x\\` \\[31m");
        let text = table(&["x"], vec![vec!["1|2".to_owned()]]);
        assert_eq!(text, "| x |\n| --- |\n| 1\\|2 |\n");
    }

    #[test]
    fn a_patch_does_not_end_its_own_quotation() {
        let text = diff_text("+ ```` x\n");
        assert!(text.contains("\n`````diff\n+ ```` x\n`````\n"), "{text}");
        let long = diff_text(&"é".repeat(SHOWN_DIFF));
        assert!(long.ends_with("its file is whole.\n") && long.len() < SHOWN_DIFF + 200);
    }

    proptest! {
        #[test]
        fn a_cell_is_one_line_without_a_bare_bar(value in ".{0,60}") {
            let cell = cell(&value);
            prop_assert!(!cell.contains('\n'));
            let mut escaped = false;
            for character in cell.chars() {
                prop_assert!(character != '|' || escaped);
                escaped = character == '\\' && !escaped;
            }
        }
    }
}
