//! What a result format declares, once, beside its grammar.

use std::fmt::Debug;
use std::sync::OnceLock;

use jig_model::result::ResultFormat;
use regex::Regex;

use super::choice::Credibility;
use super::record::ReportBuilder;
use crate::console::lines::ReportLine;

/// A result format: how its reports are recognised, and what reads them.
pub(super) struct FormatSpec {
    pub(super) format: ResultFormat,
    /// The format under whose name a grammar that reads several is counted as one.
    pub(super) family: ResultFormat,
    /// Each byte that a line may begin with that [`FormatSpec::opens`] takes.
    pub(super) begins: &'static [u8],
    /// Texts one of which such a line holds, where it may begin with any byte.
    pub(super) holds: &'static [&'static str],
    /// Tells whether this format alone can have printed a line.
    pub(super) opens: fn(&ReportLine<'_>) -> bool,
    /// Tells whether nothing of the report can be missing in front of its first line unnoticed:
    /// that line is the head, or a count of all cases comes last.
    pub(super) tells_size: fn(&ReportLine<'_>) -> bool,
    /// Begins to read a report; true means that other formats are not looked for.
    pub(super) grammar: fn(bool) -> Box<dyn Grammar>,
    /// Lines that a failing assertion prints in front of the result that it belongs to, beside
    /// those that the grammar reads as failures itself.
    pub(super) failing: &'static AssertionSigns,
}

/// The lines of a format that say that an assertion failed.
///
/// A case that passes below one contradicts itself. What a skip prints as its reason, and what a
/// test that is expected to fail prints, must not match.
#[derive(Debug)]
pub(super) struct AssertionSigns {
    pattern: &'static str,
    compiled: OnceLock<Option<Regex>>,
}

/// No line: the grammar reads each failing assertion itself, or none has a form of its own.
pub(super) static NO_SIGNS: AssertionSigns = AssertionSigns::new("");

impl AssertionSigns {
    pub(super) const fn new(pattern: &'static str) -> Self {
        Self { pattern, compiled: OnceLock::new() }
    }

    #[cfg(test)]
    pub(super) fn compiles(&self) -> bool {
        Regex::new(self.pattern).is_ok()
    }

    pub(super) fn match_line(&self, text: &str) -> bool {
        if self.pattern.is_empty() {
            return false;
        }
        let compiled = self.compiled.get_or_init(|| Regex::new(self.pattern).ok());
        compiled.as_ref().is_some_and(|regex| regex.is_match(text))
    }
}

/// Reads the lines of one report.
pub(super) trait Grammar: Debug + Send + Sync {
    /// Reads a line; tells whether it belongs to the report.
    fn line(&mut self, line: &ReportLine<'_>, record: &mut ReportBuilder) -> bool;
    /// Is shown a line that is no result, with its white space: it may be the beginning of one.
    fn fragment(&mut self, _line: &str) {}
    /// Is shown a line that is no result: it may explain one.
    fn prose(&mut self, _text: &str, _record: &mut ReportBuilder) {}
    /// Tells whether no further byte on this line could change its meaning.
    fn closed(&self, _line: &ReportLine<'_>) -> bool {
        false
    }
    /// Tells whether an unfinished line behind the end of the report begins further tests.
    fn begins_more(&self, _line: &ReportLine<'_>) -> bool {
        false
    }
    /// Tells whether nothing says how many parts the report has, so that another one may follow
    /// its end.
    fn end_is_open(&self) -> bool {
        false
    }
    /// Tells whether a line that opens another format belongs to this report.
    fn covers(&self, _line: &ReportLine<'_>) -> bool {
        false
    }
    /// Tells how much the lines read so far prove.
    fn credibility(&self) -> Credibility {
        Credibility::Report
    }
    /// Tells whether a line that is no result holds the words of a failed one: behind other output,
    /// or nearly in their form.
    fn holds_failure(&self, _text: &str) -> bool {
        false
    }
    /// Tells whether the head of an overlong line looks like a result.
    fn resembles(&self, line: &ReportLine<'_>) -> bool;
    /// Tells whether the case that runs is to end by the crash that a line shows.
    fn awaits_crash(&self, _line: &str) -> bool {
        false
    }
    /// The stream is over.
    fn finish(&mut self, _record: &mut ReportBuilder) {}
}

/// Tells whether a line starts with one of these.
pub(super) fn starts(line: &ReportLine<'_>, heads: &[&str]) -> bool {
    heads.iter().any(|head| line.text.starts_with(head))
}
