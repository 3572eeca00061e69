//! What a result format declares, once, beside its grammar.

use std::fmt::Debug;

use jig_model::result::ResultFormat;

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
    /// A byte that such a line holds, where it may begin with any.
    pub(super) holds: Option<u8>,
    /// Tells whether this format alone can have printed a line.
    pub(super) opens: fn(&ReportLine<'_>) -> bool,
    /// Tells whether nothing of the report can be missing in front of its first line unnoticed:
    /// that line is the head, or a count of all cases comes last.
    pub(super) tells_size: fn(&ReportLine<'_>) -> bool,
    /// Begins to read a report; true means that other formats are not looked for.
    pub(super) grammar: fn(bool) -> Box<dyn Grammar>,
}

/// Reads the lines of one report.
pub(super) trait Grammar: Debug + Send + Sync {
    /// Reads a line; tells whether it belongs to the report.
    fn line(&mut self, line: &ReportLine<'_>, record: &mut ReportBuilder) -> bool;
    /// Is shown a line that is no result: it may explain one.
    fn prose(&mut self, _text: &str, _record: &mut ReportBuilder) {}
    /// Tells whether no further byte on this line could change its meaning.
    fn closed(&self, _line: &ReportLine<'_>) -> bool {
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
    /// The stream is over.
    fn finish(&mut self, _record: &mut ReportBuilder) {}
}

/// Tells whether a line starts with one of these.
pub(super) fn starts(line: &ReportLine<'_>, heads: &[&str]) -> bool {
    heads.iter().any(|head| line.text.starts_with(head))
}
