//! TAP 14.

use std::fmt::Write as _;

use jig_model::VerdictKind;

use super::{RowOutcome, RunReport};

/// Writes a run as TAP 14. A rig failure bails out, so no reader takes it for the
/// target's. TAP knows no flaky: such a case is `not ok`, and its diagnostics say so.
pub fn tap(report: &RunReport) -> String {
    let rows = report.rows();
    let verdict = &report.verdict;
    let mut out = format!("TAP version 14\n1..{}\n", rows.len());
    let _ = writeln!(out, "# {}: {}: {}", verdict.kind, verdict.cause, escape(&verdict.summary));
    for (n, row) in (1_usize..).zip(&rows) {
        let name = escape(&row.name);
        let _ = match row.outcome {
            RowOutcome::Pass => writeln!(out, "ok {n} - {name}"),
            RowOutcome::Skip => {
                let why = row.message.as_deref().unwrap_or_default();
                let why = escape(why.lines().next().unwrap_or_default());
                writeln!(out, "ok {n} - {name} # SKIP {why}").map(|()| trim_line(&mut out))
            }
            RowOutcome::Failure | RowOutcome::Error | RowOutcome::Flaky => {
                writeln!(out, "not ok {n} - {name}")
            }
        };
        let severity = match row.outcome {
            RowOutcome::Pass | RowOutcome::Skip => continue,
            RowOutcome::Failure => "fail",
            RowOutcome::Error => "error",
            RowOutcome::Flaky => "flaky",
        };
        let _ = write!(
            out,
            "  ---\n  severity: {severity}\n  cause: {}\n  message: {}\n  ...\n",
            verdict.cause,
            quoted(row.message.as_deref().unwrap_or_default())
        );
    }
    if verdict.kind == VerdictKind::EnvError {
        let _ = writeln!(out, "Bail out! {}: {}", verdict.cause, escape(&verdict.summary));
    }
    out
}

fn trim_line(out: &mut String) {
    let kept = out.trim_end().len();
    out.truncate(kept);
    out.push('\n');
}

/// Escapes what TAP gives a meaning to in a description. Line ends are gone already.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('#', "\\#")
}

/// Writes a YAML double-quoted scalar; JSON's escapes are a part of YAML's.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
