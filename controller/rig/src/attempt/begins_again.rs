//! A boot that begins again behind the end. Reads the log of a console and decides nothing. A log that
//! cannot be read is an error.
//!
//! # Design
//! A reset line or an emulator tells of a reset; nothing tells of one that a board on a serial port
//! makes by itself, or of a jump to the reset handler. What shows such a boot is its text:
//!
//! - **A banner of a known boot loader or system.** Behind a report each one counts, but for the first
//!   greeting of a shell, such as MicroPython's behind what `main.py` has printed. Behind a text that
//!   a plan waits for, and on another console, the boot may go on: there a banner counts if its stage
//!   or a later one came in front, or if it is the first of a boot. Where no banner came in front, it
//!   counts behind an awaited text, unless the line of that text hands over to another program.
//! - **The first line of the boot.** It has to come once in front of the end. A first line with a word
//!   or a version of a banner is enough. Any other one may simply be printed again (`tick`), so the
//!   second line has to follow it, unless nothing else would tell of a reset of this board. Nothing
//!   prints a report in a cycle. A text that a plan waits for may be part of one, and so may any line on
//!   another console, so there the first line has to be a banner.
//!
//! Numbers are equal to each other, because time stamps and counters differ. A first line that differs in
//! numbers is enough only if it is a banner.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::LazyLock;

use regex_automata::meta::Regex;

use super::failed_results::{FoundLine, find_in_blocks, quotable, read_some};
use crate::console::{BannerStage, FoundBanner, PatternSet, boot_banner, find_banner, readable};

/// The first lines are looked for in so many bytes of the boot.
const HEAD: usize = 4096;

/// Fewest letters and digits of a first line: a prompt and a rule have fewer.
const LETTERS: usize = 4;

/// The line of an awaited text is looked for in so many bytes in front of its end.
const LINE: u64 = 512;

/// A word or a version of a banner.
static BANNER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let words = r"(?i)\b(?:re)?boot|\breset\b|version|\bv?\d+\.\d+|\bbuild\b|welcome|copyright|firmware|\bfw\b|power.?on|(?:cold|warm) start|start(?:ing|ed)? up";
    Regex::new(words).ok()
});

/// A word of a line that hands over to another program.
static HANDS_OVER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let words = r"(?i)\b(?:jump|boot|launch|start(?:ing)? (?:kernel|app|image|slot)|kernel|hand(?:ing)? ?over|chain|load(?:ing|ed)?\b)";
    Regex::new(words).ok()
});

/// What ends in front of the output that is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndOf {
    /// A report.
    Report,
    /// A text that the plan waits for: the firmware may print in a cycle, and the boot may go on.
    AwaitedText,
    /// Either of them, on another console.
    Elsewhere,
}

/// The output of a boot on one console.
#[derive(Debug, Clone, Copy)]
pub(super) struct BootOutput<'a> {
    pub(super) log: &'a File,
    /// Where it begins.
    pub(super) from: u64,
    /// Where what was wanted ends.
    pub(super) end: u64,
    pub(super) end_of: EndOf,
    /// The board tells of each of its resets.
    pub(super) resets_told: bool,
    pub(super) allowed: &'a PatternSet,
    /// Where known lines stand.
    pub(super) known: &'a [Range<u64>],
}

impl BootOutput<'_> {
    /// Finds the banner of a boot that begins behind the end.
    pub(super) fn banner_behind(&self) -> io::Result<Option<FoundLine>> {
        // Few runs print a banner behind their end, so what stands in front is read only then.
        let mut front = None;
        let mut failed = None;
        let found = find_in_blocks(self.log, self.end..u64::MAX, |block, at| {
            let counts = |banner: FoundBanner, span: Range<usize>| {
                let text = text_of(&block[span.clone()]);
                if self.is_known(at + span.start as u64) || self.allowed.matches(text.as_bytes()) {
                    return false;
                }
                self.is_new_boot(banner, &mut front).unwrap_or_else(|error| {
                    failed = Some(error);
                    true
                })
            };
            let (_, span) = find_banner(block, counts)?;
            let text = text_of(&block[span.clone()]);
            Some((at + span.start as u64..at + span.end as u64, quotable(&text).to_owned()))
        })?;
        failed.map_or(Ok(found), Err)
    }

    /// Tells whether a banner behind the end begins another boot; `front` keeps the banners in front.
    fn is_new_boot(
        &self,
        banner: FoundBanner,
        front: &mut Option<Vec<FoundBanner>>,
    ) -> io::Result<bool> {
        let greets = banner.stage == BannerStage::Shell;
        if self.end_of == EndOf::Report && !greets || banner.stage == BannerStage::First {
            return Ok(true);
        }
        let front = match front {
            Some(front) => front,
            None => front.insert(self.banners_in_front()?),
        };
        if front.is_empty() {
            return Ok(self.end_of == EndOf::AwaitedText && !greets && !self.hands_over()?);
        }
        Ok(front.iter().any(|other| other.name == banner.name || other.stage > banner.stage))
    }

    /// Lists the banners in front of the end, each once.
    fn banners_in_front(&self) -> io::Result<Vec<FoundBanner>> {
        let mut banners = Vec::new();
        find_in_blocks(self.log, self.from..self.end, |block, _| {
            find_banner(block, |banner, _| {
                if !banners.contains(&banner) {
                    banners.push(banner);
                }
                false
            })
        })?;
        Ok(banners)
    }

    /// Tells whether the line at the end says that another program is started.
    fn hands_over(&self) -> io::Result<bool> {
        let from = self.end.saturating_sub(LINE).max(self.from);
        let mut bytes = vec![0; self.end.saturating_sub(from) as usize];
        let len = read_some(self.log, &mut bytes, from)?;
        bytes.truncate(len);
        let line = lines(&bytes).last().map(|span| text_of(&bytes[span]));
        let words = HANDS_OVER.as_ref();
        Ok(line.is_some_and(|line| words.is_some_and(|words| words.is_match(&line))))
    }

    /// Finds the first line of the boot where it comes again behind the end.
    pub(super) fn first_line_again(&self) -> io::Result<Option<FoundLine>> {
        // What another console printed in one moment with the end may be said to stand behind it, so
        // there the first line is found wherever the end is.
        let room = match self.end_of {
            EndOf::Elsewhere => HEAD,
            _ => HEAD.min(self.end.saturating_sub(self.from) as usize),
        };
        let mut head = vec![0; room];
        let len = read_some(self.log, &mut head, self.from)?;
        let Some(first) = FirstLines::of(&head[..len]) else { return Ok(None) };
        let banner = is_banner(&first.text);
        if self.end_of != EndOf::Report && !banner || self.allowed.matches(first.text.as_bytes()) {
            return Ok(None);
        }
        let end = self.end.max(self.from + first.len as u64);
        let enough = |line: &str, next: Option<&str>| {
            let two = next.is_some_and(|next| first.second.as_deref() == Some(next));
            first.is_alike(line) && (banner || two || !self.resets_told && first.text == line)
        };
        let find = |range, enough: &dyn Fn(&str, Option<&str>) -> bool| {
            find_in_blocks(self.log, range, |block, at| {
                let mut spans = lines(block).peekable();
                while let Some(span) = spans.next() {
                    let line = text_of(&block[span.clone()]);
                    // Nearly no line is alike.
                    let mut next =
                        || spans.peek().map(|next| masked(&text_of(&block[next.clone()])));
                    if first.is_alike(&line)
                        && !self.is_known(at + span.start as u64)
                        && enough(&line, next().as_deref())
                    {
                        return Some(at + span.start as u64..at + span.end as u64);
                    }
                }
                None
            })
        };
        if find(self.from + first.len as u64..end, &|_, _| true)?.is_some() {
            return Ok(None);
        }
        let Some(span) = find(end..u64::MAX, &enough)? else { return Ok(None) };
        // Nothing stands in front that would show a cycle.
        let unknown = self.end_of == EndOf::Elsewhere && end > self.end;
        if unknown && find(span.end..u64::MAX, &|_, _| true)?.is_some() {
            return Ok(None);
        }
        Ok(Some((span, quotable(&first.text).to_owned())))
    }

    fn is_known(&self, at: u64) -> bool {
        self.known.iter().any(|known| known.contains(&at))
    }
}

/// The first whole line with some letters or digits, and the one behind it.
struct FirstLines {
    text: String,
    masked: String,
    second: Option<String>,
    /// Where the first line ends.
    len: usize,
}

impl FirstLines {
    fn of(head: &[u8]) -> Option<Self> {
        let mut whole = lines(head).filter(|span| span.end < head.len());
        let (text, len) = whole.find_map(|span| {
            let text = text_of(&head[span.clone()]);
            let letters = text.bytes().filter(u8::is_ascii_alphanumeric).count();
            (letters >= LETTERS).then_some((text, span.end))
        })?;
        let second = whole.next().map(|span| masked(&text_of(&head[span])));
        Some(Self { masked: masked(&text), text, second, len })
    }

    /// Tells whether a line is the first one, apart from numbers. Numbers alone are nothing to compare.
    fn is_alike(&self, line: &str) -> bool {
        let lettered = self.masked.bytes().filter(u8::is_ascii_alphabetic).count() >= LETTERS;
        line == self.text || lettered && masked(line) == self.masked
    }
}

fn is_banner(line: &str) -> bool {
    BANNER.as_ref().is_some_and(|banner| banner.is_match(line)) || boot_banner(line).is_some()
}

/// Replaces each number and each gap by one character: `[    0.012] x` and `[   11.300] x` are equal.
fn masked(line: &str) -> String {
    let mut masked = String::with_capacity(line.len());
    for c in line.chars() {
        let c = if c.is_ascii_digit() { '0' } else { c };
        if !(matches!(c, '0' | ' ') && masked.ends_with(c)) {
            masked.push(c);
        }
    }
    masked
}

fn text_of(line: &[u8]) -> String {
    readable(line).trim_ascii().to_owned()
}

/// Lists the lines of a block that are not empty.
fn lines(block: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let ends = memchr::memchr2_iter(b'\n', b'\r', block).chain([block.len()]);
    let mut from = 0;
    let spans = ends.map(move |end| std::mem::replace(&mut from, end + 1)..end);
    spans.filter(|span| span.start < span.end)
}

#[cfg(test)]
#[path = "begins_again_tests.rs"]
mod tests;
