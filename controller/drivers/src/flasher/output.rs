//! What a flasher says: kept in a bounded file, and looked at line by line as it comes.
//!
//! A line ends with a line feed or a carriage return, because progress bars redraw
//! themselves. Patterns are held against whole lines, and against what is left at the end.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write as _};

use jig_model::pattern::Pattern;
use jig_model::profile::FlashCommand;
use regex::bytes::{Regex, RegexBuilder};

/// Longest line that is looked at: a progress bar drawn without line ends is one line.
const MAX_LINE: usize = 4096;

/// Most bytes of the log file. What follows is counted, and its last lines are kept.
const MAX_LOG: u64 = 1 << 20;

/// How many lines, and how long a line, an error quotes.
const LAST_LINES: usize = 3;
const MAX_QUOTE: usize = 200;

/// Says that a pattern of the profile cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the flasher's pattern `{pattern}` cannot be used")]
pub struct BadPattern {
    pattern: String,
    #[source]
    source: regex::Error,
}

/// The patterns of a flasher.
pub(super) struct OutputJudge {
    failures: Vec<Regex>,
    known: Vec<Regex>,
    success: Option<Regex>,
    verified: Option<Regex>,
    progress: Option<Regex>,
}

impl OutputJudge {
    pub(super) fn of(command: &FlashCommand) -> Result<Self, BadPattern> {
        let one = |pattern: &Option<Pattern>| pattern.as_ref().map(compile).transpose();
        Ok(Self {
            failures: command.failure_patterns.iter().map(compile).collect::<Result<_, _>>()?,
            known: command
                .known_failures
                .iter()
                .map(|known| compile(&known.pattern))
                .collect::<Result<_, _>>()?,
            success: one(&command.success_pattern)?,
            verified: one(&command.verified_pattern)?,
            progress: one(&command.progress_pattern)?,
        })
    }
}

fn compile(pattern: &Pattern) -> Result<Regex, BadPattern> {
    // The dialect of all patterns; see `jig_model::pattern`.
    let mut builder = RegexBuilder::new(pattern.as_str());
    let built = builder.unicode(false).multi_line(true).crlf(true).build();
    built.map_err(|source| BadPattern { pattern: pattern.to_string(), source })
}

/// Takes in what a flasher says.
pub(super) struct FlasherOutput {
    judge: OutputJudge,
    log: File,
    logged: u64,
    /// Bytes that did not go into the log.
    left_out: u64,
    line: Vec<u8>,
    last: VecDeque<String>,
    /// The first line that means failure, and the pattern that says so.
    pub(super) failure: Option<(String, String)>,
    /// The most specific of the known failures that a line matched, by its place in the list, and
    /// the line.
    pub(super) known: Option<(usize, String)>,
    /// Whether a line says that the work is done, where one has to.
    pub(super) succeeded: bool,
    /// Whether a line proved that the flash was read back.
    pub(super) verified: bool,
    /// The percentage told last.
    percent: Option<u8>,
}

impl FlasherOutput {
    pub(super) fn new(judge: OutputJudge, log: File) -> Self {
        Self {
            succeeded: judge.success.is_none(),
            judge,
            log,
            logged: 0,
            left_out: 0,
            line: Vec::new(),
            last: VecDeque::new(),
            failure: None,
            known: None,
            verified: false,
            percent: None,
        }
    }

    /// Takes in bytes; `progress` is told of each new percentage.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(super) fn take(&mut self, bytes: &[u8], mut progress: impl FnMut(u8)) -> io::Result<()> {
        let room = usize::try_from(MAX_LOG - self.logged).unwrap_or(usize::MAX);
        let kept = &bytes[..bytes.len().min(room)];
        self.log.write_all(kept)?;
        self.logged += kept.len() as u64;
        self.left_out += (bytes.len() - kept.len()) as u64;
        for part in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            let (text, ends) = match part.split_last() {
                Some((b'\n' | b'\r', text)) => (text, true),
                _ => (part, false),
            };
            let room = MAX_LINE.saturating_sub(self.line.len());
            self.line.extend_from_slice(&text[..text.len().min(room)]);
            if ends {
                self.end_line(&mut progress);
            }
        }
        Ok(())
    }

    /// Takes in the end: what was said without a line end counts, too.
    ///
    /// # Errors
    /// The log cannot be written.
    pub(super) fn end(&mut self, mut progress: impl FnMut(u8)) -> io::Result<()> {
        self.end_line(&mut progress);
        if self.left_out > 0 {
            let last = Vec::from_iter(self.last.iter().map(String::as_str)).join("\n");
            writeln!(
                self.log,
                "\n[jig: {} bytes left out; the last lines:]\n{last}",
                self.left_out
            )?;
        }
        Ok(())
    }

    fn end_line(&mut self, progress: &mut impl FnMut(u8)) {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            return;
        }
        let text = || String::from_utf8_lossy(&line).trim().chars().take(MAX_QUOTE).collect();
        if self.failure.is_none()
            && let Some(pattern) = self.judge.failures.iter().find(|p| p.is_match(&line))
        {
            self.failure = Some((text(), pattern.as_str().to_owned()));
        }
        let matched = self.judge.known.iter().position(|pattern| pattern.is_match(&line));
        if let Some(index) = matched
            && self.known.as_ref().is_none_or(|(known, _)| index < *known)
        {
            self.known = Some((index, text()));
        }
        self.succeeded |= self.judge.success.as_ref().is_some_and(|p| p.is_match(&line));
        self.verified |= self.judge.verified.as_ref().is_some_and(|p| p.is_match(&line));
        let percent = self.judge.progress.as_ref().and_then(|pattern| percent(pattern, &line));
        if percent.is_some() && percent != self.percent {
            self.percent = percent;
            percent.into_iter().for_each(progress);
        }
        let text: String = text();
        if !text.is_empty() {
            self.last.push_back(text);
        }
        if self.last.len() > LAST_LINES {
            self.last.pop_front();
        }
    }

    /// Returns what stands at the end without a line end, if it looks like a question.
    pub(super) fn question(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.line);
        let text = text.trim_end();
        let asks = text.ends_with(['?', ':', '>', ']', ')']) && !text.contains('%');
        asks.then(|| text.trim_start().chars().take(MAX_QUOTE).collect())
    }

    /// Returns the last lines, for an error; hostile text.
    pub(super) fn last_words(&self) -> String {
        if self.last.is_empty() {
            return "it said nothing".to_owned();
        }
        let lines = Vec::from_iter(self.last.iter().map(String::as_str));
        format!("its last words: {}", lines.join(" | "))
    }
}

/// Reads the last percentage of a line; `12.5` counts as 12, and nothing over 100.
fn percent(pattern: &Regex, line: &[u8]) -> Option<u8> {
    let captures = pattern.captures_iter(line).last()?;
    let digits = captures.get(1)?.as_bytes();
    let whole = digits.split(|byte| *byte == b'.').next()?;
    let number: u8 = std::str::from_utf8(whole).ok()?.trim().parse().ok()?;
    (number <= 100).then_some(number)
}
