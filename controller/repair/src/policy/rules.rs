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
    pub(super) hits: Vec<String>,
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
    pub(super) hits: Vec<String>,
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

/// Says which of the built-in rules cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the built-in rule of the policy {name:?} cannot be used: {why}")]
pub struct RuleError {
    /// The rule.
    pub name: String,
    /// What is wrong with it.
    pub why: String,
}

/// The rules. Where one is wrong there are none, and no patch is let through.
pub(super) static RULES: LazyLock<Result<Rules, RuleError>> = LazyLock::new(|| Rules::read(TEXT));

impl Rules {
    /// Reads rules, and checks each by its examples.
    ///
    /// # Errors
    /// Names the first rule that cannot be read, or that does not do what its examples say.
    pub(super) fn read(text: &str) -> Result<Self, RuleError> {
        let file: RuleFile = toml::from_str(text).map_err(|error| RuleError {
            name: "rules.toml".to_owned(),
            why: error.message().to_owned(),
        })?;
        let protected = file.protected.into_iter().map(ProtectedText::read);
        let lines = file.line.into_iter().map(LineText::read);
        Ok(Self {
            protected: protected.collect::<Result<_, _>>()?,
            lines: lines.collect::<Result<_, _>>()?,
        })
    }
}

impl ProtectedText {
    fn read(self) -> Result<(String, Globs), RuleError> {
        let globs = Globs::of_any_case(&self.globs).map_err(|error| failed(&self.name, error))?;
        checked(&self.name, &self.hits, &self.misses, |path| globs.matching(path).is_some())?;
        Ok((self.name, globs))
    }
}

impl LineText {
    fn read(self) -> Result<LineRule, RuleError> {
        let kind = match self.side {
            Side::Added => LineKind::Added,
            Side::Removed => LineKind::Removed,
        };
        let pattern = Regex::new(&self.pattern).map_err(|error| failed(&self.name, error))?;
        checked(&self.name, &self.hits, &self.misses, |line| pattern.is_match(line))?;
        let weight = (!self.refused).then_some(self.weight);
        if weight.is_some_and(|weight| weight <= 0.0 || weight >= 1.0) {
            return Err(failed(&self.name, "its weight is no number between 0 and 1"));
        }
        Ok(LineRule { name: self.name, kind, weight, pattern })
    }
}

/// Checks that a rule matches its hits and not its misses, and that it has both.
fn checked(
    name: &str,
    hits: &[String],
    misses: &[String],
    matches: impl Fn(&str) -> bool,
) -> Result<(), RuleError> {
    if hits.is_empty() || misses.is_empty() {
        return Err(failed(name, "it has no examples"));
    }
    if let Some(hit) = hits.iter().find(|hit| !matches(hit)) {
        return Err(failed(name, format!("it does not match {hit:?}")));
    }
    match misses.iter().find(|miss| matches(miss)) {
        Some(miss) => Err(failed(name, format!("it matches {miss:?}"))),
        None => Ok(()),
    }
}

fn failed(name: &str, why: impl ToString) -> RuleError {
    RuleError { name: name.to_owned(), why: why.to_string() }
}
