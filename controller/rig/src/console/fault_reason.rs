//! The reason behind the headline of a fault: `*** RIOT kernel panic:` says nothing, and
//! `HARD FAULT HANDLER` behind it does. Pure.

use jig_model::profile::{FaultSignature, FaultText};
use regex_automata::{Anchored, Input, meta};

use super::fault_lines::texts;
use super::lines::{LineSplitter, lossy, plain};
use super::scan::{PatternSetError, finder};

/// A reason stands among so many lines behind its headline: behind some registers, and before the
/// backtrace.
pub(crate) const REASON_LINES: usize = 12;

/// Headlines that say no reason, and what their reason looks like.
#[derive(Debug)]
pub(crate) struct FaultReasons(Vec<(meta::Regex, meta::Regex)>);

impl FaultReasons {
    /// Compiles the signatures that have a reason; they are few.
    pub(crate) fn new(faults: &[FaultSignature]) -> Result<Self, PatternSetError> {
        let reasons = faults.iter().filter_map(|fault| Some((fault, fault.reason.as_ref()?)));
        let compiled = reasons.map(|(fault, reason)| {
            let (FaultText::Line(headline) | FaultText::Pattern(headline)) = &fault.text;
            Ok((finder(headline)?, finder(reason)?))
        });
        Ok(Self(compiled.collect::<Result<_, PatternSetError>>()?))
    }

    /// Finds the reason behind the headline that some bytes begin with; returns where its line ends
    /// in the bytes, and its text.
    pub(crate) fn find(&self, bytes: &[u8]) -> Option<(usize, String)> {
        let mut splitter = LineSplitter::new(0);
        let mut lines = Vec::new();
        let mut keep = |raw: super::lines::RawLine<'_>| {
            if lines.len() <= REASON_LINES {
                lines.push((raw.span.end as usize, lossy(&plain(raw.bytes)).into_owned()));
            }
        };
        splitter.feed(bytes, &mut keep);
        if let Some(raw) = splitter.begun() {
            keep(raw);
        }
        let ((_, headline), behind) = lines.split_first()?;
        self.0.iter().filter(|(known, _)| begins(known, headline).is_some()).find_map(
            |(_, reason)| {
                behind.iter().find_map(|(end, line)| {
                    Some((*end, begins(reason, line)?.trim_ascii_end().to_owned()))
                })
            },
        )
    }
}

/// Returns the text of a line, behind what loggers put in front, that a pattern begins.
fn begins<'a>(pattern: &meta::Regex, line: &'a str) -> Option<&'a str> {
    texts(line, true).find(|text| pattern.is_match(Input::new(text).anchored(Anchored::Yes)))
}
