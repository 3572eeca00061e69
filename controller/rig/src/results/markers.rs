//! The plan's own markers, for firmwares that speak no known format.
//!
//! Each expression is tried on each line by itself, colours removed. Where none matches the whole line,
//! they are tried behind its log prefixes.
//! Where one line matches several outcomes, the worst counts.

use std::borrow::Cow;

use jig_model::pattern::Pattern;
use jig_model::plan::Markers;
use jig_model::result::CaseStatus;
use regex::bytes::{Captures, Regex, RegexBuilder};

use super::marked_counts::{counts_any, own_words};
use super::record::{CaseOutcome, ReportBuilder};
use crate::console::lines::{Span, lossy};
use crate::console::log_prefix::{behind_bracketed_tag, without_context, without_prefix};
use crate::console::{awaited_doubt, counts_failure, readable};

/// Says why a plan's markers cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MarkerError {
    /// The plan waits for markers that it does not declare.
    #[error("the plan asks for format `markers` but declares none: add a [markers] table")]
    Missing,
    /// An expression does not compile within its size limit.
    #[error("marker `{which}` cannot be compiled: simplify it")]
    Expression {
        /// Which marker.
        which: &'static str,
        /// What the compiler says.
        #[source]
        source: regex::Error,
    },
}

/// Most log prefixes taken off one line: time stamp, level, tag, source.
const MAX_PREFIXES: usize = 6;

/// Largest compiled expression in bytes: a plan must not take the memory of the host.
const MAX_COMPILED: usize = 1 << 20;

/// Compiled markers of a plan, and what they have seen.
#[derive(Debug)]
pub(super) struct MarkerReader {
    start: Option<Regex>,
    pass: Regex,
    fail: Regex,
    skip: Option<Regex>,
    planned: Option<Regex>,
    end: Regex,
    /// No further byte can change what the end marker matched.
    end_is_closed: bool,
    running: Option<String>,
    unnamed: u64,
    /// Words of the fail marker that no other outcome has.
    fail_words: Vec<String>,
}

/// What a line is to the markers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MarkedLine {
    Unknown,
    /// A result, or what announces results.
    Result,
    /// The end marker and nothing else: what it says beside is not known.
    End,
}

/// Words, in capitals, that stand in a row of results where the plan's markers expect others.
const OTHER_VERDICTS: [&str; 14] = [
    "ERROR", "ERR", "TIMEOUT", "CRASH", "CRASHED", "ABORT", "ABORTED", "HANG", "HUNG", "NG", "BAD",
    "BROKEN", "E", "X",
];

/// Words that make a verdict of a pass none.
const DENIALS: [&str; 4] = ["NOT", "NO", "NEVER", "ISN'T"];

/// Words that logs have in such a place, too, unless they are in capitals.
const OF_LOGS: [&str; 3] = ["ERROR", "ERR", "TIMEOUT"];

/// Words of a pass, one of which makes such a row match the pass marker.
const PASSES: [&str; 10] =
    ["PASS", "PASSED", "OK", "pass", "passed", "ok", "Pass", "Passed", "Ok", "P"];

fn compile(which: &'static str, pattern: &Pattern) -> Result<Regex, MarkerError> {
    RegexBuilder::new(pattern.as_str())
        .unicode(false)
        .multi_line(true)
        .crlf(true)
        .size_limit(MAX_COMPILED)
        .build()
        .map_err(|source| MarkerError::Expression { which, source })
}

impl MarkerReader {
    pub(super) fn new(markers: &Markers) -> Result<Self, MarkerError> {
        let maybe = |which, pattern: &Option<Pattern>| {
            pattern.as_ref().map(|pattern| compile(which, pattern)).transpose()
        };
        Ok(Self {
            start: maybe("start", &markers.start)?,
            pass: compile("pass", &markers.pass)?,
            fail: compile("fail", &markers.fail)?,
            skip: maybe("skip", &markers.skip)?,
            planned: maybe("planned", &markers.planned)?,
            end: compile("end", &markers.end)?,
            end_is_closed: !markers.end.is_open_ended(),
            running: None,
            unnamed: 0,
            fail_words: own_words(&markers.fail, [Some(&markers.pass), markers.skip.as_ref()]),
        })
    }

    /// Tells whether an expression matches a line, or what stands behind its log prefixes.
    pub(super) fn knows(&self, line: &[u8]) -> bool {
        self.matches(&self.message(line))
    }

    pub(super) fn matches(&self, line: &[u8]) -> bool {
        let optional = [&self.start, &self.skip, &self.planned];
        [&self.pass, &self.fail, &self.end]
            .into_iter()
            .chain(optional.into_iter().flatten())
            .any(|regex| regex.is_match(line))
    }

    /// Returns what of a line the expressions read: all of it, or else what stands behind log
    /// prefixes, if they match that. A failure may stand behind more than a result may.
    fn message<'l>(&self, line: &'l [u8]) -> Cow<'l, [u8]> {
        if self.matches(line) {
            return Cow::Borrowed(line);
        }
        let whole = lossy(line);
        let behind = |strip: &dyn Fn(&str) -> Option<&str>, found: &dyn Fn(&[u8]) -> bool| {
            let texts = std::iter::successors(Some(&*whole), |text| strip(text));
            let texts: Vec<&str> = texts.take(1 + MAX_PREFIXES).collect();
            // Of `I (12) spi: bad` the tag may be the name.
            let tagged = |pair: &[&'_ str]| {
                let tag = pair[0].len() - pair[1].len();
                let prefix = pair[0].get(..tag).unwrap_or_default();
                let from = prefix.trim_ascii_end().rfind(' ').map_or(0, |at| at + 1);
                [pair[0][from..].to_owned(), pair[1].trim_ascii_start().to_owned()]
            };
            let mut texts = texts.windows(2).flat_map(tagged);
            texts.find(|text| found(text.as_bytes())).map(String::into_bytes)
        };
        let fails = |text: &[u8]| self.fail.is_match(text);
        let failure = || behind(&behind_context, &fails);
        let result = behind(&|text| without_prefix(text), &|text| self.matches(text));
        result.or_else(failure).map_or(Cow::Borrowed(line), Cow::Owned)
    }

    pub(super) fn line(
        &mut self,
        line: &[u8],
        span: Span,
        record: &mut ReportBuilder,
    ) -> MarkedLine {
        let line = &*self.message(line);
        let mut known = false;
        if let Some(found) = self.planned.as_ref().and_then(|regex| regex.captures(line)) {
            known = true;
            match group(&found, "count").and_then(|count| super::scan::number(&count)) {
                Some(count) => record.plan(count),
                None => record.remark("the planned marker matched without a count".to_owned()),
            }
        }
        if let Some(found) = self.start.as_ref().and_then(|regex| regex.captures(line)) {
            known = true;
            let name = self.name(group(&found, "name"));
            record.begin(&name, &name, span);
            self.running = Some(name);
        }
        let outcomes = [
            (CaseStatus::Fail, Some(&self.fail)),
            (CaseStatus::Skip, self.skip.as_ref()),
            (CaseStatus::Pass, Some(&self.pass)),
        ];
        let found =
            outcomes.into_iter().find_map(|(status, regex)| Some((status, regex?.captures(line)?)));
        if let Some((status, found)) = found {
            known = true;
            let running = self.running.take();
            let name = match group(&found, "name").or(running) {
                Some(name) => name,
                None => self.name(None),
            };
            let message = group(&found, "message");
            let outcome = CaseOutcome { message: message.as_deref(), ..CaseOutcome::of(status) };
            if status == CaseStatus::Pass && is_doubtful_pass(line, &found) {
                let row = readable(line).trim_ascii().to_owned();
                record.remark(format!("the line `{row}` of a pass says something else, too"));
            }
            record.decide(&name, &name, outcome, span);
        }
        if let Some(end) = self.end.find(line) {
            // `TCE 1 failed` counts behind the end, of which the end itself is no part.
            let behind = readable(&line[end.end()..]);
            if counts_failure(behind.trim_ascii()) || counts_any(&behind, &self.fail_words) {
                record.claim_any();
            }
            record.end();
            return if known { MarkedLine::Result } else { MarkedLine::End };
        }
        if known {
            return MarkedLine::Result;
        }
        if !record.ended()
            && let Some(name) = self.row_without_result(line).filter(|name| !record.knows(name))
        {
            record.begin(&name, &name, span);
        }
        MarkedLine::Unknown
    }

    /// Returns the name in a row that would be a pass if its last word, `ERROR` or the like, were
    /// that of a pass, or if no `NOT` stood in front of it.
    fn row_without_result(&self, line: &[u8]) -> Option<String> {
        let line = line.trim_ascii();
        let behind =
            line.len() - line.iter().rev().take_while(|b| !b.is_ascii_alphanumeric()).count();
        let (row, tail) = line.split_at(behind);
        let verdict = row.rsplit(|b| !b.is_ascii_alphanumeric()).next()?;
        let front = &row[..row.len() - verdict.len()];
        let capital = verdict.iter().all(u8::is_ascii_uppercase);
        let is_pass = |word: &&str| word.as_bytes().eq_ignore_ascii_case(verdict);
        let front = match denied(front).filter(|_| PASSES.iter().any(&is_pass)) {
            Some(front) => front,
            None => {
                let word = OTHER_VERDICTS.iter().find(|word| is_pass(word))?;
                if !capital && (OF_LOGS.contains(word) || word.len() == 1) {
                    return None;
                }
                front
            }
        };
        // What a log says in small letters is no verdict beside those in capitals.
        let alike = |word: &&&str| capital || !word.bytes().all(|b| b.is_ascii_uppercase());
        PASSES.iter().filter(alike).find_map(|word| {
            let row = [front, word.as_bytes(), tail].concat();
            let found = self.pass.captures(&row)?;
            (found.get(0)?.range() == (0..row.len())).then(|| group(&found, "name")).flatten()
        })
    }

    /// Reads the unfinished last line: only the end marker can count, and what looks like a
    /// failure is one.
    pub(super) fn last(&self, line: &[u8], record: &mut ReportBuilder) {
        let line = &*self.message(line);
        if self.fail.is_match(line) {
            record.claim_any();
        }
        if self.end_is_closed && self.end.is_match(line) {
            record.end();
        }
    }

    fn name(&mut self, found: Option<String>) -> String {
        found.unwrap_or_else(|| {
            self.unnamed += 1;
            format!("case {}", self.unnamed)
        })
    }
}

/// Returns what stands behind the prefix of a log, or behind blanks, a bullet, a prompt or any tag:
/// `<post>    [!] eeprom`, `msh >[!] eeprom`, `post: [!] eeprom`.
fn behind_context(text: &str) -> Option<&str> {
    without_context(text, true).or_else(|| behind_tag(text))
}

/// Longest prompt and tag in characters.
const TAG: usize = 24;

fn behind_tag(text: &str) -> Option<&str> {
    let body = text.trim_ascii_start();
    if body.len() < text.len() {
        return Some(body);
    }
    let bullet = || body.strip_prefix(['-', '*', '+', '#', '|'])?.strip_prefix(' ');
    let named = || {
        let tag = body.find(['>', ':']).filter(|&end| end <= TAG)?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || " _-./#@~".contains(c);
        body[..tag].chars().all(is_name).then(|| body[tag + 1..].trim_ascii_start())
    };
    behind_bracketed_tag(body).or_else(bullet).or_else(named)
}

/// Returns a row without the `NOT` at its end, and without the gap in front of that.
fn denied(row: &[u8]) -> Option<&[u8]> {
    let spoken = row.trim_ascii_end();
    let word = spoken.rsplit(|b| !b.is_ascii_alphabetic() && *b != b'\'').next()?;
    let front = &spoken[..spoken.len() - word.len()];
    let is_denial = DENIALS.iter().any(|denial| denial.as_bytes().eq_ignore_ascii_case(word));
    // Columns are filled with spaces.
    let gap = front.iter().rev().take_while(|b| **b == b' ').count();
    is_denial.then(|| &front[..front.len() - gap.saturating_sub(1)])
}

/// Tells whether the line of a pass takes it back beside what the pattern matched: `[b] ok (errors: 2)`,
/// `b ok but slow`; or whether the name in it is a denial: `not ok`.
fn is_doubtful_pass(line: &[u8], found: &Captures<'_>) -> bool {
    let Some(whole) = found.get(0) else { return false };
    let [front, text, behind] = [&line[..whole.start()], whole.as_bytes(), &line[whole.end()..]]
        .map(|part| readable(part).into_owned());
    let is_denial = |name: String| DENIALS.iter().any(|denial| denial.eq_ignore_ascii_case(&name));
    group(found, "name").is_some_and(is_denial)
        || awaited_doubt(&front, &text, &behind, (true, true)).is_some()
}

fn group(found: &Captures<'_>, name: &str) -> Option<String> {
    let text = String::from_utf8_lossy(found.name(name)?.as_bytes()).trim().to_owned();
    (!text.is_empty()).then_some(text)
}
