//! Regular expressions over console bytes.
//!
//! One dialect everywhere (plans, profiles, `--until`): bytes and not Unicode, because a
//! target prints bytes; `^` and `$` stand at line borders and know CR LF; `.` matches any
//! byte but a line end.

mod shipped;

use std::ops::Range;

use regex_automata::util::syntax;
use regex_syntax::hir::{self, Hir, HirKind};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

/// A checked regular expression.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Pattern(String);

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::new(&String::deserialize(from)?).map_err(de::Error::custom)
    }
}

/// Says what is wrong with a regular expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("bad regular expression: {message}")]
pub struct PatternError {
    /// What is wrong.
    pub message: String,
    /// Where, in bytes of the expression, if known.
    pub span: Option<Range<usize>>,
}

/// Longest accepted expression in bytes: enough for any banner, small enough to compile at once.
const MAX_PATTERN: usize = 4096;

impl Pattern {
    /// Checks an expression.
    ///
    /// # Errors
    /// Refuses bad syntax, expressions over 4096 bytes, and those that match the empty
    /// text: they would match before the target has printed anything.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        if shipped::is_shipped(text) { Ok(Self(text.to_owned())) } else { Self::checked(text) }
    }

    fn checked(text: &str) -> Result<Self, PatternError> {
        if text.len() > MAX_PATTERN {
            return Err(PatternError {
                message: format!("longer than {MAX_PATTERN} bytes"),
                span: None,
            });
        }
        let hir = parsed(text)?;
        if hir.properties().minimum_len().is_none_or(|min| min == 0) {
            return Err(PatternError {
                message: "it can match nothing at all, so it would match at once".to_owned(),
                span: None,
            });
        }
        Ok(Self(text.to_owned()))
    }

    /// Builds a pattern that matches a text literally.
    ///
    /// # Errors
    /// Refuses the empty text.
    pub fn literal(text: &str) -> Result<Self, PatternError> {
        Self::new(&regex_syntax::escape(text))
    }

    /// Returns the expression.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Tells whether it is one of the shipped fault signatures, which are known to compile.
    pub fn is_shipped(&self) -> bool {
        shipped::is_shipped(&self.0)
    }

    /// Lists texts of which each match holds one, whatever the case of its ASCII letters; none if no
    /// such texts are known.
    pub fn required_texts(&self) -> impl Iterator<Item = &'static str> {
        shipped::required_texts(&self.0)
    }

    /// Returns how many groups capture.
    pub fn groups(&self) -> usize {
        parsed(&self.0).map_or(0, |hir| hir.properties().explicit_captures_len())
    }

    /// Returns the expression with a group around each part that spells out its text, and no other
    /// group: `(Tests: )\d+( failed)` of `Tests: (\d+) failed`.
    pub fn spelled_groups(&self) -> Option<String> {
        Some(with_spelled_groups(&parsed(&self.0).ok()?).to_string())
    }

    /// Returns the dialect, for the compiler of the expression.
    pub fn dialect() -> syntax::Config {
        syntax::Config::new().unicode(false).utf8(false).multi_line(true).crlf(true)
    }

    /// Tells whether a longer text could match too, so that the match found first holds
    /// only the shortest form: `(\d+)` on `12` yields `1`.
    pub fn is_open_ended(&self) -> bool {
        fn open(hir: &Hir) -> bool {
            match hir.kind() {
                HirKind::Repetition(rep) => rep.max != Some(rep.min),
                HirKind::Capture(capture) => open(&capture.sub),
                HirKind::Concat(parts) => parts.last().is_some_and(open),
                HirKind::Alternation(parts) => parts.iter().any(open),
                HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => {
                    false
                }
            }
        }
        parsed(&self.0).is_ok_and(|hir| open(&hir))
    }
}

/// Parses an expression in the dialect of [`Pattern::dialect`].
fn parsed(text: &str) -> Result<Hir, PatternError> {
    let mut dialect = regex_syntax::ParserBuilder::new();
    let hir = dialect.unicode(false).utf8(false).multi_line(true).crlf(true).build().parse(text);
    hir.map_err(|error| PatternError::from_syntax(&error))
}

/// Most bytes of a class that spells out a letter, such as `[Ff]`.
const SPELLED_CLASS: usize = 4;

/// Puts each part of an expression that spells out its text into a group, the largest parts that do.
fn with_spelled_groups(hir: &Hir) -> Hir {
    let group = |sub: Hir| Hir::capture(hir::Capture { index: 1, name: None, sub: Box::new(sub) });
    if is_spelled(hir) {
        return group(hir.clone());
    }
    match hir.kind() {
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(with_spelled_groups).collect()),
        HirKind::Alternation(parts) => {
            Hir::alternation(parts.iter().map(with_spelled_groups).collect())
        }
        HirKind::Capture(capture) => with_spelled_groups(&capture.sub),
        HirKind::Repetition(repetition) => {
            Hir::repetition(repetition.with(with_spelled_groups(&repetition.sub)))
        }
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => hir.clone(),
    }
}

fn is_spelled(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Literal(_) => true,
        HirKind::Class(hir::Class::Bytes(class)) => {
            class.iter().map(|range| range.len()).sum::<usize>() <= SPELLED_CLASS
        }
        HirKind::Capture(capture) => is_spelled(&capture.sub),
        HirKind::Repetition(repetition) => is_spelled(&repetition.sub),
        HirKind::Concat(parts) => {
            let look = |part: &Hir| matches!(part.kind(), HirKind::Look(_));
            parts.iter().all(|part| is_spelled(part) || look(part)) && !parts.iter().all(look)
        }
        HirKind::Alternation(parts) => parts.iter().all(is_spelled),
        HirKind::Class(hir::Class::Unicode(_)) | HirKind::Empty | HirKind::Look(_) => false,
    }
}

impl PatternError {
    fn from_syntax(error: &regex_syntax::Error) -> Self {
        let (message, span) = match error {
            regex_syntax::Error::Parse(e) => (e.kind().to_string(), Some(e.span())),
            regex_syntax::Error::Translate(e) => (e.kind().to_string(), Some(e.span())),
            other => (other.to_string(), None),
        };
        Self { message, span: span.map(|s| s.start.offset..s.end.offset) }
    }
}

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for Pattern {
    type Err = PatternError;
    fn from_str(text: &str) -> Result<Self, PatternError> {
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_patterns_are_refused_with_a_place() {
        let error = Pattern::new("ab(c").unwrap_err();
        assert_eq!(error.span, Some(2..3));
        for empty in ["", "a*", "^", "(x|)"] {
            assert!(Pattern::new(empty).is_err(), "{empty}");
        }
        assert!(Pattern::new(r"\xff\x00").is_ok());
    }

    #[test]
    fn parts_that_spell_out_their_text_are_groups() {
        for (pattern, wanted) in [
            (r"Tests: (\d+) failed$", r"(Tests: )\d+( failed)$"),
            ("^DONE$", "(^DONE$)"),
            ("(?i)ok.*", "([Oo])([Kk]).*"),
            ("x: (PASS|FAIL|[a-z]+)", "(x: )(?:(PASS)|(FAIL)|[a-z]+)"),
        ] {
            let found = Pattern::new(pattern).unwrap().spelled_groups().unwrap();
            let wanted = Pattern::new(wanted).unwrap();
            let parse = |text: &str| {
                regex_syntax::ParserBuilder::new()
                    .unicode(false)
                    .utf8(false)
                    .multi_line(true)
                    .crlf(true)
                    .build()
                    .parse(text)
                    .unwrap()
            };
            assert_eq!(parse(&found), parse(wanted.as_str()), "{pattern} {found}");
        }
    }

    #[test]
    fn open_ended_patterns_are_known() {
        assert!(Pattern::new(r"v(\d+)").unwrap().is_open_ended());
        assert!(!Pattern::new(r"v(\d+)\s").unwrap().is_open_ended());
        assert!(!Pattern::new(r"\d{3}").unwrap().is_open_ended());
        assert_eq!(Pattern::new(r"(a)(?:b)(?P<n>\xff)").unwrap().groups(), 2);
    }
}
