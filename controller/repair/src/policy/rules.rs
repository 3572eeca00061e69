//! The rules that hold where a policy says nothing, read from `rules.toml`.

use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;

use super::globs::Globs;
use crate::patch::LineKind;

pub(super) const TEXT: &str = include_str!("rules.toml");

/// The file as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleFile {
    pub(super) protected: Vec<ProtectedText>,
    pub(super) line: Vec<LineText>,
}

/// Files that decide what counts as right.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProtectedText {
    pub(super) name: String,
    pub(super) globs: Vec<String>,
    #[cfg_attr(not(test), expect(dead_code, reason = "the tests read it"))]
    pub(super) hits: Vec<String>,
    #[cfg_attr(not(test), expect(dead_code, reason = "the tests read it"))]
    pub(super) misses: Vec<String>,
}

/// A line that is refused, or that makes a patch riskier.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LineText {
    pub(super) name: String,
    pub(super) side: Side,
    #[serde(default)]
    pub(super) refused: bool,
    #[serde(default)]
    pub(super) weight: f64,
    pub(super) pattern: String,
    #[cfg_attr(not(test), expect(dead_code, reason = "the tests read it"))]
    pub(super) hits: Vec<String>,
    #[cfg_attr(not(test), expect(dead_code, reason = "the tests read it"))]
    pub(super) misses: Vec<String>,
}

/// The side of a patch on which a line stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Side {
    Added,
    Removed,
}

/// A line that is refused, or that makes a patch riskier.
#[derive(Debug)]
pub(super) struct LineRule {
    pub(super) name: String,
    pub(super) kind: LineKind,
    /// `None` where it is refused.
    pub(super) weight: Option<f64>,
    pub(super) pattern: Regex,
}

/// All rules.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) protected: Vec<(String, Globs)>,
    pub(super) lines: Vec<LineRule>,
}

/// The rules; one that is wrong is found by the tests.
pub(super) static RULES: LazyLock<Rules> = LazyLock::new(|| {
    let file: RuleFile = toml::from_str(TEXT).unwrap_or_default();
    let group = |text: ProtectedText| Some((text.name, Globs::of_any_case(&text.globs).ok()?));
    let line = |text: LineText| {
        let kind = match text.side {
            Side::Added => LineKind::Added,
            Side::Removed => LineKind::Removed,
        };
        let pattern = Regex::new(&text.pattern).ok()?;
        let weight = (!text.refused).then_some(text.weight);
        Some(LineRule { name: text.name, kind, weight, pattern })
    };
    Rules {
        protected: file.protected.into_iter().filter_map(group).collect(),
        lines: file.line.into_iter().filter_map(line).collect(),
    }
});
