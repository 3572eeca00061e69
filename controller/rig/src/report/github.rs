//! What GitHub shows of a job: its step summary and its annotations.

use std::fmt::Write as _;

use super::text::{cut, one_line};
use super::{ReportRow, RowOutcome, RunReport};

/// Most rows of the summary's table. GitHub refuses a summary over 1 MiB; bad rows come
/// first, so what is left out is good.
const MAX_ROWS: usize = 200;
/// Longest cell: a table with longer ones cannot be read.
const MAX_CELL: usize = 300;
/// Most annotations: GitHub shows ten of a step and drops the rest.
const MAX_ANNOTATIONS: usize = 10;

/// Writes the step summary as Markdown.
pub fn summary(report: &RunReport) -> String {
    let verdict = &report.verdict;
    let mut rows = report.rows();
    // Stable: within each group the target's own order stays.
    rows.sort_by_key(|row| !is_bad(row));
    let mut out = format!(
        "### {}: {}\n\n**{}**: {}\n\n",
        cell(&report.suite),
        cell(verdict.kind.as_str()),
        cell(verdict.cause.as_str()),
        cell(&verdict.summary)
    );
    let facts = [("Board", &report.board), ("Place", &report.place), ("Run", &report.run)];
    for (name, value) in facts {
        if let Some(value) = value {
            let _ = writeln!(out, "- {name}: {}", cell(value));
        }
    }
    let _ = writeln!(out, "- Exit code: {}", report.exit_code());
    if let Some(words) = &report.seen_before {
        let _ = writeln!(out, "- Seen before: {}", cell(words));
    }
    for attempt in &report.attempts {
        let note = if attempt.replaced { ", rig recovered, made again" } else { "" };
        let (kind, cause) = (attempt.verdict.kind, attempt.verdict.cause);
        let _ = writeln!(
            out,
            "- Attempt {}: {} ({}{note})",
            attempt.attempt,
            cell(kind.as_str()),
            cell(cause.as_str())
        );
    }
    out.push_str("\n| Result | Test | Message |\n|---|---|---|\n");
    for row in rows.iter().take(MAX_ROWS) {
        let message = row.message.as_deref().unwrap_or_default();
        let _ =
            writeln!(out, "| {} | {} | {} |", word(row.outcome), cell(&row.name), cell(message));
    }
    if rows.len() > MAX_ROWS {
        let _ = writeln!(out, "\n{} more rows are left out.", rows.len() - MAX_ROWS);
    }
    out
}

/// Writes workflow commands, one line each, that mark what went wrong: `::error` for the
/// target's and the rig's failures, `::warning` for flaky ones. The first one stands at the line of
/// the source that a backtrace leads to, where there is one: a run ends in one place.
pub fn annotations(report: &RunReport) -> String {
    let mut out = String::new();
    let mut location = report.location.as_ref();
    for row in report.rows().iter().filter(|row| is_bad(row)).take(MAX_ANNOTATIONS) {
        let level = if row.outcome == RowOutcome::Flaky { "warning" } else { "error" };
        let title = format!("{} ({})", row.name, report.verdict.kind);
        let message = cut(row.message.as_deref().unwrap_or(row.name.as_str()), MAX_CELL);
        let at = match location.take() {
            Some(at) => format!("file={},line={},", property(&at.file), at.line),
            None => String::new(),
        };
        let _ = writeln!(out, "::{level} {at}title={}::{}", property(&title), command(&message));
    }
    out
}

fn is_bad(row: &ReportRow) -> bool {
    matches!(row.outcome, RowOutcome::Failure | RowOutcome::Error | RowOutcome::Flaky)
}

fn word(outcome: RowOutcome) -> &'static str {
    match outcome {
        RowOutcome::Pass => "pass",
        RowOutcome::Skip => "skipped",
        RowOutcome::Failure => "**failed**",
        RowOutcome::Error => "**error**",
        RowOutcome::Flaky => "**flaky**",
    }
}

/// Escapes a workflow command's text: the runner knows these three escapes.
fn command(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes the value of a workflow command's property.
fn property(text: &str) -> String {
    command(text).replace(':', "%3A").replace(',', "%2C")
}

/// Makes plain text of anything in a Markdown cell: no HTML, no links, no mentions.
fn cell(text: &str) -> String {
    let mut out = String::new();
    for c in one_line(&cut(text, MAX_CELL)).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // References and not backslashes: these start mentions, issue links, addresses
            // and cell borders, which GitHub finds behind a backslash too.
            '@' | '#' | '|' | ':' | '.' | '/' => {
                let _ = write!(out, "&#{};", u32::from(c));
            }
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '(' | ')' | '!' | '~' | '$' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use jig_model::{Cause, Verdict};

    use super::*;

    #[test]
    fn cells_hold_no_markup() {
        assert_eq!(cell("a|b\n<img>@x `c`"), "a&#124;b\\\\n&lt;img&gt;&#64;x \\`c\\`");
    }

    #[test]
    fn the_first_annotation_stands_where_the_run_ended() {
        let verdict = Verdict::of(Cause::CoreFault, "HardFault in uart_tx");
        let report = RunReport::new("plan", verdict).at_location("src/a,b.c", 41);
        assert_eq!(
            annotations(&report),
            "::error file=src/a%2Cb.c,line=41,title=plan (fail)::core_fault: HardFault in uart_tx\n"
        );
    }

    #[test]
    fn what_is_known_of_a_failure_is_told_as_text() {
        let verdict = Verdict::of(Cause::CoreFault, "HardFault");
        let report = RunReport::new("plan", verdict.clone());
        assert!(!summary(&report).contains("Seen before"));
        let report = RunReport::new("plan", verdict).with_seen_before(Some("3 times; <b>"));
        assert!(summary(&report).contains("\n- Seen before: 3 times; &lt;b&gt;\n"));
        let junit = crate::report::junit(&report).unwrap();
        let property = "<property name=\"jig.seen_before\" value=\"3 times; &lt;b&gt;\"/>";
        assert!(junit.contains(property), "{junit}");
    }

    #[test]
    fn commands_cannot_be_smuggled() {
        assert_eq!(command("50%\n::set-output::"), "50%25%0A::set-output::");
    }
}
