//! Finds garbage: console output that no firmware means. Pure.
//!
//! # Design
//! Firmware prints text, but not always in UTF-8: `T=25 °C` in Latin-1 is one byte that UTF-8 does
//! not know, and a line in KOI8-R or Shift-JIS has nothing else. So bytes that are not UTF-8 are no
//! garbage by themselves. A port at a wrong speed and a bad cable show in three ways:
//!
//! - **A mixture**: bytes that are not UTF-8 *and* control characters close together. Text in any
//!   encoding has spaces and line ends, and hardly another control character.
//! - **Pulses**: bytes that are a few ones behind zeros, in a row. A receiver that samples too fast
//!   reads such bytes.
//! - **No word ends**: hundreds of bytes without a space or line end, many of them no text.
//!
//! A receiver at half or a third of the speed may see none of these in a short text; then its
//! framing errors tell, which the port counts.
//!
//! Garbage makes missing results doubtful, but not observed ones: a hang, an unfinished report or a
//! missing build id proves nothing then, and the test is attempted again. If garbage returns after
//! a known-good image has passed, the target prints it, and the verdict stands.

use std::collections::VecDeque;

/// Bytes at the start of a boot in which garbage is ignored: a line that floats while a chip starts
/// gives one or two.
pub(super) const GLITCH: u64 = 4;

/// A mixture shows within so many bytes: half a line of text.
const WINDOW: u64 = 48;
/// So many bytes that are not UTF-8 belong to a mixture; one or two stand in a line of Latin-1.
const FOREIGN: usize = 3;
/// So many control characters belong to a mixture; a telegram is framed by two.
const CONTROLS: usize = 3;

/// So many pulses in a row, of more than two kinds, are garbage: no encoding has such a word.
const PULSES: u64 = 8;
/// So many equal pulses in a row are garbage.
const EQUAL_PULSES: u64 = 16;

/// So many bytes without a space or line end are garbage if a quarter is not UTF-8 or is a control
/// character. A line of
/// Japanese, which has no spaces, is shorter.
const ENDLESS: u64 = 256;

/// Longest beginning of a character that the end of a chunk can cut.
const CUT: usize = 3;

/// So many bytes of other than plain text, without text after them, are garbage that goes on.
const GOES_ON: u64 = 8;

/// So many characters of plain text in a row end the garbage: noise contains them by chance once
/// in some thousand bytes.
const TEXT: u64 = 8;

/// Searches the output of one boot, however it is cut into chunks.
#[derive(Debug, Clone)]
pub(super) struct GarbageScanner {
    /// Where the boot's output begins.
    start: u64,
    /// The beginning of a character whose end has not come.
    cut: Vec<u8>,
    /// What is no plain text among the last [`WINDOW`] bytes: the offset, and whether it is a
    /// control character.
    odd: VecDeque<(u64, bool)>,
    pulses: PulseRun,
    /// The bytes since the last space or line end: offset of the first, and how many are no text.
    word: (u64, u64),
    found: Option<(u64, u64)>,
    /// Bytes that are no plain text, from the garbage or the last text on.
    noise: u64,
    /// Characters of plain text in a row, at the end.
    text: u64,
}

/// Pulses in a row.
#[derive(Debug, Clone, Default)]
struct PulseRun {
    start: u64,
    len: u64,
    /// One bit for each kind of pulse that was seen.
    kinds: u8,
}

/// Returns a number for a pulse, and whether a row of it alone is garbage: a row of `0x80` is a
/// frame in KOI8-R, one of `0xfe` a progress bar in code page 437.
fn pulse(byte: u8) -> Option<(u8, bool)> {
    let kind = byte.leading_ones() as u8;
    let is_pulse = kind > 0 && byte.checked_shl(u32::from(kind)).unwrap_or_default() == 0;
    is_pulse.then(|| (kind - 1, !matches!(byte, 0x80 | 0xfe)))
}

impl GarbageScanner {
    /// Begins with a boot.
    pub(super) fn new(start: u64) -> Self {
        Self {
            start,
            cut: Vec::new(),
            odd: VecDeque::new(),
            pulses: PulseRun::default(),
            word: (start, 0),
            found: None,
            noise: 0,
            text: 0,
        }
    }

    /// Returns the first range of garbage: its first byte, and one past the byte that proves it.
    pub(super) fn found(&self) -> Option<(u64, u64)> {
        self.found
    }

    /// Tells whether the last output is garbage without text after it.
    pub(super) fn goes_on(&self) -> bool {
        self.noise >= GOES_ON
    }

    /// Searches the bytes from an offset of the log.
    pub(super) fn feed(&mut self, offset: u64, bytes: &[u8]) {
        if self.found.is_some() {
            return self.follow(bytes);
        }
        if self.cut.is_empty() && bytes.is_ascii() {
            return self.feed_ascii(offset, bytes);
        }
        let mut joined = std::mem::take(&mut self.cut);
        let mut at = offset.saturating_sub(joined.len() as u64);
        let end = offset + bytes.len() as u64;
        joined.extend_from_slice(bytes);
        for chunk in joined.utf8_chunks() {
            for (bytes, foreign) in [(chunk.valid().as_bytes(), false), (chunk.invalid(), true)] {
                let open = foreign && at + bytes.len() as u64 == end;
                if open && bytes.len() <= CUT && begins_a_character(bytes) {
                    self.cut = bytes.to_vec();
                    return;
                }
                for &byte in bytes {
                    self.step(at, byte, foreign);
                    at += 1;
                    if self.found.is_some() {
                        let behind = usize::try_from(end - at).unwrap_or(0);
                        return self.follow(&joined[joined.len() - behind..]);
                    }
                }
            }
        }
    }

    /// Searches bytes that hold nothing but ASCII, which is nearly all that is ever printed.
    fn feed_ascii(&mut self, offset: u64, bytes: &[u8]) {
        if bytes.iter().any(|&byte| is_odd_control(byte)) {
            for (at, (index, &byte)) in (offset..).zip(bytes.iter().enumerate()) {
                self.step(at, byte, false);
                if self.found.is_some() {
                    return self.follow(&bytes[index + 1..]);
                }
            }
            return;
        }
        // Text alone completes no garbage: it ends words and pulses.
        if let Some(end) = bytes.iter().rposition(|&byte| ends_word(byte)) {
            self.word = (offset + end as u64 + 1, 0);
        }
        let glitch = (self.start + GLITCH).min(offset + bytes.len() as u64);
        self.word.0 = self.word.0.max(glitch);
        if bytes.iter().any(|&byte| byte != 0) {
            self.pulses = PulseRun::default();
        }
    }

    /// Looks at one byte; `foreign` says that it is not UTF-8.
    fn step(&mut self, at: u64, byte: u8, foreign: bool) {
        if at < self.start + GLITCH {
            self.word = (at + 1, 0);
            return;
        }
        let control = is_odd_control(byte);
        if !control && !foreign {
            if ends_word(byte) {
                self.word = (at + 1, 0);
            }
            if byte != 0 {
                self.pulses = PulseRun::default();
            }
            return;
        }
        while self.odd.front().is_some_and(|&(odd, _)| odd + WINDOW <= at) {
            self.odd.pop_front();
        }
        self.odd.push_back((at, control));
        self.word.1 += 1;
        let start = self.mixture().or_else(|| self.pulses(at, byte)).or_else(|| self.endless(at));
        if let Some(start) = start {
            self.found = Some((start, at + 1));
            (self.noise, self.text) = (GOES_ON, 0);
        }
    }

    fn mixture(&self) -> Option<u64> {
        let controls = self.odd.iter().filter(|(_, control)| *control).count();
        let enough = controls >= CONTROLS && self.odd.len() - controls >= FOREIGN;
        self.odd.front().filter(|_| enough).map(|&(at, _)| at)
    }

    fn pulses(&mut self, at: u64, byte: u8) -> Option<u64> {
        let run = &mut self.pulses;
        let Some((kind, alone)) = pulse(byte) else {
            *run = PulseRun::default();
            return None;
        };
        if run.len == 0 {
            run.start = at;
        }
        run.len += 1;
        run.kinds |= 1 << kind;
        let kinds = run.kinds.count_ones();
        let mixed = kinds > 2 && run.len >= PULSES;
        (mixed || kinds == 1 && alone && run.len >= EQUAL_PULSES).then_some(run.start)
    }

    fn endless(&self, at: u64) -> Option<u64> {
        let (start, odd) = self.word;
        let len = at + 1 - start;
        (len >= ENDLESS && 4 * odd >= len).then_some(start)
    }

    /// Searches the output after the first garbage.
    fn follow(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if matches!(byte, b' '..=b'~' | b'\t' | b'\r' | b'\n') {
                self.text += 1;
            } else {
                (self.text, self.noise) = (0, self.noise + 1);
            }
            if self.text >= TEXT {
                self.noise = 0;
            }
        }
    }
}

/// Tells whether a byte is a control character that lines of text do not hold. A bell, a
/// backspace, a form feed and an escape sequence belong to text, and firmware pads with zeros.
fn is_odd_control(byte: u8) -> bool {
    matches!(byte, 1..=0x06 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f | 0x7f)
}

fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// Tells whether bytes may become a character when others follow.
fn begins_a_character(bytes: &[u8]) -> bool {
    // An error without a length is one that more bytes may complete.
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
#[path = "garbage_tests.rs"]
mod tests;
