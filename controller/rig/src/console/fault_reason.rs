//! The reason behind the headline of a fault: `*** RIOT kernel panic:` says nothing, and
//! `HARD FAULT HANDLER` behind it does. Pure.

use std::sync::OnceLock;

use jig_model::pattern::Pattern;
use jig_model::profile::{FaultSignature, FaultText};
use regex_automata::{Anchored, Input, meta};

use super::lines::{LineSplitter, lossy, plain};
use super::log_prefix::texts;
use super::scan::{PatternSetError, finder};

/// A reason stands among so many lines behind its headline: behind some registers, and before the
/// backtrace.
pub(crate) const REASON_LINES: usize = 12;

/// Headlines that say no reason, and what their reason looks like.
#[derive(Debug)]
pub(crate) struct FaultReasons(Vec<(LineStart, LineStart)>);

impl FaultReasons {
    /// Takes the signatures that have a reason; compiles what is not known to compile.
    pub(crate) fn new(faults: &[FaultSignature]) -> Result<Self, PatternSetError> {
        let reasons = faults.iter().filter_map(|fault| Some((fault, fault.reason.as_ref()?)));
        let compiled = reasons.map(|(fault, reason)| {
            let (FaultText::Line(headline) | FaultText::Pattern(headline)) = &fault.text;
            Ok((LineStart::new(headline)?, LineStart::new(reason)?))
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
        self.0.iter().filter(|(known, _)| known.of(headline).is_some()).find_map(|(_, reason)| {
            behind
                .iter()
                .find_map(|(end, line)| Some((*end, reason.of(line)?.trim_ascii_end().to_owned())))
        })
    }
}

/// What a line begins with, compiled when the first line is looked at: that is behind a crash.
#[derive(Debug)]
struct LineStart {
    pattern: Pattern,
    compiled: OnceLock<Option<meta::Regex>>,
}

impl LineStart {
    fn new(pattern: &Pattern) -> Result<Self, PatternSetError> {
        let start = Self { pattern: pattern.clone(), compiled: OnceLock::new() };
        if !pattern.is_shipped() {
            let _ = start.compiled.set(Some(finder(pattern)?));
        }
        Ok(start)
    }

    /// Returns the text of a line, behind what loggers put in front, that the pattern begins.
    fn of<'a>(&self, line: &'a str) -> Option<&'a str> {
        let pattern = self.compiled.get_or_init(|| finder(&self.pattern).ok()).as_ref()?;
        texts(line, true).find(|text| pattern.is_match(Input::new(text).anchored(Anchored::Yes)))
    }
}
