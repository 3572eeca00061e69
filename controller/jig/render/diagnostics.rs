//! Failures and problems of documents, with carets for people, as JSON for programs.

use jig_model::{Fault, Problems};
use jig_rig::console::escape;
use miette::{GraphicalReportHandler, GraphicalTheme, ThemeCharacters, ThemeStyles};
use serde_json::{Value, json};

use super::paint::{Paint, Style};
use crate::failure::Failure;

/// How diagnostics are drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DiagnosticStyle {
    pub(crate) paint: Paint,
    /// Whether lines are drawn with box characters.
    pub(crate) unicode: bool,
}

/// Columns of a diagnostic: what fits a split terminal and a CI log.
const WIDTH: usize = 100;

/// Makes a text harmless and puts it on one line.
pub(crate) fn one_line(text: &str) -> String {
    escape(text.as_bytes()).replace('\n', "\\n")
}

/// Writes a failure for people.
pub(super) fn failure_text(failure: &Failure, look: DiagnosticStyle) -> String {
    let mut text = String::new();
    for problems in &failure.problems {
        text.push_str(&problems_text(problems, look));
    }
    let head = look.paint.paint(Style::Bad, "error:");
    text.push_str(&format!("{head} {}\n", indented(&failure.message)));
    if let Some(help) = &failure.help {
        let head = look.paint.paint(Style::Bold, "help:");
        text.push_str(&format!("{head} {}\n", indented(help)));
    }
    text
}

/// Makes a text harmless; its further lines are indented, so none can pass for ours.
fn indented(text: &str) -> String {
    escape(text.as_bytes()).trim_end().replace('\n', "\n       ")
}

fn problems_text(problems: &Problems, look: DiagnosticStyle) -> String {
    let characters =
        if look.unicode { ThemeCharacters::unicode() } else { ThemeCharacters::ascii() };
    let styles = if look.paint.on { ThemeStyles::ansi() } else { ThemeStyles::none() };
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme { characters, styles })
        .with_links(false)
        .with_width(WIDTH);
    let mut text = String::new();
    for diagnostic in harmless(problems).diagnostics() {
        // A caret that falls outside the text is a slip of ours; the words still count.
        if handler.render_report(&mut text, &diagnostic).is_err() {
            text.push_str(&format!("{diagnostic}\n"));
        }
        // A problem without a place names no file otherwise.
        if miette::Diagnostic::labels(&diagnostic).is_none() {
            text.push_str(&format!("  in: {}\n", one_line(&problems.origin)));
        }
        text.push('\n');
    }
    text
}

/// Replaces what could act on a terminal, byte for byte, so that every place stays right.
fn harmless(problems: &Problems) -> Problems {
    let mut problems = problems.clone();
    problems.origin = one_line(&problems.origin);
    for problem in &mut problems.list {
        problem.message = one_line(&problem.message);
        problem.help = one_line(&problem.help);
    }
    problems.source = harmless_source(&problems.source);
    problems
}

fn harmless_source(source: &str) -> String {
    let mut text = String::with_capacity(source.len());
    let mut buffer = [0; 4];
    for c in source.chars() {
        let plain = matches!(c, ' '..='~' | '\n' | '\t');
        if plain || (!c.is_ascii() && escape(c.encode_utf8(&mut buffer).as_bytes()).starts_with(c))
        {
            text.push(c);
        } else {
            let stand_in = if c == '\r' { " " } else { "?" };
            text.push_str(&stand_in.repeat(c.len_utf8()));
        }
    }
    text
}

/// Builds the JSON of a failure:
/// `{"error":{"fault","message","help","exit_code","problems":[...]}}`.
pub(crate) fn failure_json(failure: &Failure) -> Value {
    let problems: Vec<_> = failure.problems.iter().flat_map(Problems::located).collect();
    json!({ "error": {
        "fault": fault_word(failure.fault),
        "message": failure.message,
        "help": failure.help,
        "exit_code": failure.exit_code(),
        "problems": problems,
    }})
}

fn fault_word(fault: Fault) -> &'static str {
    match fault {
        Fault::Usage => "usage",
        Fault::Profile => "profile",
        Fault::Lab => "lab",
        Fault::Target => "target",
        Fault::Unknown => "unknown",
        Fault::Cancelled => "cancelled",
        Fault::Bug => "bug",
    }
}

#[cfg(test)]
mod tests {
    use jig_model::plan::Plan;

    use super::*;

    const PLAIN: DiagnosticStyle = DiagnosticStyle { paint: Paint { on: false }, unicode: false };

    #[test]
    fn a_failure_says_what_to_do() {
        let failure = Failure::new(Fault::Usage, "no such\nthing \x1b[2J").help("try `jig boards`");
        assert_eq!(
            failure_text(&failure, PLAIN),
            "error: no such\n       thing \\x1b[2J\nhelp: try `jig boards`\n"
        );
    }

    #[test]
    fn every_problem_is_shown_with_a_caret_and_nothing_reaches_the_terminal() {
        let text = "version = 1\nnaem = \"a\u{202e}b\x1b[2J\"\n";
        let problems = Plan::parse("p\x1b.toml", text).unwrap_err();
        let failure = Failure::problems(vec![problems]);
        let shown = failure_text(&failure, PLAIN);
        assert!(shown.contains("p\\x1b.toml:2:"), "{shown}");
        assert!(shown.contains("naem = \"a???b?[2J\""), "{shown}");
        assert!(!shown.contains(['\x1b', '\u{202e}']), "{shown}");
        let json = failure_json(&failure);
        assert_eq!(json["error"]["exit_code"], 3);
        assert_eq!(json["error"]["problems"][0]["line"], 2);
    }
}
