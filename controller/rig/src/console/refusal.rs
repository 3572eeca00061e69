//! Tells whether a line is the answer of a shell or a modem that refuses what was sent to it. Pure.
//!
//! # Design
//! Firmware logs such lines for many reasons (a driver asks a modem), so they count only behind a text
//! that the plan has sent, and not where the plan spells the refusal out.
//! `refusal_lines.toml` holds examples and near misses.

use std::sync::LazyLock;

use regex_automata::meta::Regex;
use regex_automata::util::syntax;

use super::scan::searched_once;
use super::words::{is_zero, words};

/// Refusals, of ASCII in any case, behind a prompt.
const PATTERNS: &[&str] = &[
    r"(?:^|: ?)['\x22]?(?:unknown|unrecogni[sz]ed|invalid|illegal|bad|undefined|unsupported|no such) (?:command|cmd|sub-?command|option|argument|parameter|instruction)\b",
    r"^(?:the )?(?:command|cmd)\b.{0,40} (?:not (?:found|known|recogni[sz]ed|supported|implemented|valid)|unknown|invalid|failed)\b",
    r"\b(?:command not found|(?:is )?not a (?:valid |known |recogni[sz]ed )?command|not recogni[sz]ed as)\b",
    r"^(?:-?[\w./-]+: )+(?:not found|permission denied|no such file or directory|is a directory|input/output error|exec format error)$",
    r"^(?:parse|syntax|name|type|value|attribute|os|runtime) ?error\b",
    // Modems, instruments, JSON-RPC
    r"^\+CM[ES] ERROR: ?\S",
    r"^-[1-9]\d{2},\x22",
    r#""error" ?: ?\{"#,
    // In small letters it is also the echo of a command.
    r"^(?-i:ERROR|Error|ERR|NAK|NACK)[.!]?$",
    r"^(?:error|err)(?: ?[:!-] ?| )\S",
];

/// Text of which one stands in each such line.
const HINTS: &str = r#"command|cmd|: not found|denied|no such|directory|err|\bna?c?k\b|option|argument|parameter|instruction|not recog|-[1-9]\d{2},""#;

static REFUSALS: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(PATTERNS));
static PROMPT: LazyLock<Option<Regex>> =
    LazyLock::new(|| compiled(&[r"^(?:[\w@:~/.()-]{0,32}[>#$%] ?)+"]));
static CANDIDATE: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(&[HINTS]));

fn compiled(patterns: &[&str]) -> Option<Regex> {
    let ascii = syntax::Config::new().unicode(false).utf8(false).case_insensitive(true);
    Regex::builder().configure(searched_once()).syntax(ascii).build_many(patterns).ok()
}

/// Finds the first place in some output that a line with a refusal may have.
pub(crate) fn refusal_candidate(output: &[u8]) -> Option<usize> {
    match &*CANDIDATE {
        Some(pattern) => pattern.find(output).map(|found| found.start()),
        None => (!output.is_empty()).then_some(0),
    }
}

/// Tells whether a readable line refuses what was sent.
pub(crate) fn refuses(line: &str) -> bool {
    let line = line.trim_ascii();
    let prompt = PROMPT.as_ref().and_then(|prompt| prompt.find(line));
    let text = line[prompt.map_or(0, |prompt| prompt.end())..].trim_ascii();
    REFUSALS.as_ref().is_some_and(|refusals| refusals.is_match(text)) && !is_none(text)
}

/// `error: none`, `Error 0`, `err: OK`, `error count: 0`.
fn is_none(text: &str) -> bool {
    let words = words(text);
    let value = words.iter().skip(1).find(|word| {
        !matches!(word.text.as_str(), "count" | "counter" | "code" | "status" | "register")
    });
    let alone = words.len() == 2;
    let none =
        |text: &str| matches!(text, "none" | "ok" | "nil" | "cleared") || alone && text == "no";
    matches!(words.first().map(|word| word.text.as_str()), Some("error" | "err"))
        && value.is_some_and(|value| is_zero(&value.text) || none(&value.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct Lines {
        refused: Vec<String>,
        answered: Vec<String>,
    }

    #[test]
    fn refusals_are_told_from_answers() {
        let lines: Lines = toml::from_str(include_str!("refusal_lines.toml")).unwrap();
        for line in &lines.refused {
            for prompt in ["", "> ", "uart:~$ ", "root@board:/# "] {
                let line = format!("{prompt}{line}");
                assert!(refuses(&line), "{line:?}");
                assert!(refusal_candidate(line.as_bytes()).is_some(), "not searched: {line:?}");
            }
        }
        for line in &lines.answered {
            assert!(!refuses(line), "{line:?}");
        }
    }
}
