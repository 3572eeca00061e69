//! Regular expressions over console bytes.
//!
//! One dialect everywhere (plans, profiles, `--until`): bytes and not Unicode, because a
//! target prints bytes; `^` and `$` stand at line borders and know CR LF; `.` matches any
//! byte but a line end.

use std::ops::Range;

use regex_automata::util::syntax;
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
        if text.len() > MAX_PATTERN {
            return Err(PatternError {
                message: format!("longer than {MAX_PATTERN} bytes"),
                span: None,
            });
        }
        let hir = regex_syntax::ParserBuilder::new()
            .unicode(false)
            .utf8(false)
            .multi_line(true)
            .crlf(true)
            .build()
            .parse(text)
            .map_err(|error| PatternError::from_syntax(&error))?;
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

    /// Returns how many groups capture.
    pub fn groups(&self) -> usize {
        regex_syntax::ParserBuilder::new()
            .unicode(false)
            .utf8(false)
            .build()
            .parse(&self.0)
            .map_or(0, |hir| hir.properties().explicit_captures_len())
    }

    /// Returns the dialect, for the compiler of the expression.
    pub fn dialect() -> syntax::Config {
        syntax::Config::new().unicode(false).utf8(false).multi_line(true).crlf(true)
    }

    /// Tells whether a longer text could match too, so that the match found first holds
    /// only the shortest form: `(\d+)` on `12` yields `1`.
    pub fn is_open_ended(&self) -> bool {
        fn open(hir: &regex_syntax::hir::Hir) -> bool {
            use regex_syntax::hir::HirKind;
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
        regex_syntax::ParserBuilder::new()
            .unicode(false)
            .utf8(false)
            .multi_line(true)
            .crlf(true)
            .build()
            .parse(&self.0)
            .is_ok_and(|hir| open(&hir))
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
    fn open_ended_patterns_are_known() {
        assert!(Pattern::new(r"v(\d+)").unwrap().is_open_ended());
        assert!(!Pattern::new(r"v(\d+)\s").unwrap().is_open_ended());
        assert!(!Pattern::new(r"\d{3}").unwrap().is_open_ended());
        assert_eq!(Pattern::new(r"(a)(?:b)(?P<n>\xff)").unwrap().groups(), 2);
    }
}
