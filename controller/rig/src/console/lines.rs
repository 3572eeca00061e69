//! Cuts a byte stream into lines and cleans them.
//!
//! Owns offsets, line ends and control sequences. Knows no result format.

use std::borrow::Cow;

/// Longest line that can be a result. Real result lines stay under 1 KiB; what is longer
/// is a dump, and keeping it would let a target without line ends fill the memory.
pub(crate) const MAX_LINE: usize = 4096;

/// The bytes of software flow control.
const XON: u8 = 0x11;
const XOFF: u8 = 0x13;
/// What breaks a control sequence off.
const CAN: u8 = 0x18;
const SUB: u8 = 0x1a;
/// The control sequence introducer of 8 bits.
pub(super) const CSI: u8 = 0x9b;
/// What ends a frame of SLIP; no part of UTF-8.
const SLIP_END: u8 = 0xc0;

/// Where a line lies in the console's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    /// Offset of the first byte.
    pub(crate) start: u64,
    /// Offset one past the last byte, the line end not included.
    pub(crate) end: u64,
}

/// One line as the stream holds it, without its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawLine<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) span: Span,
    /// Whether the line was longer than [`MAX_LINE`], so that its tail is missing here.
    pub(crate) cut: bool,
}

/// One line, or what is left of it behind a log prefix, ready for a grammar.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReportLine<'a> {
    /// Columns of white space in front.
    pub(crate) indent: usize,
    /// The text between leading and trailing white space; never empty.
    pub(crate) text: &'a str,
    pub(crate) span: Span,
}

impl<'a> ReportLine<'a> {
    pub(crate) fn new(text: &'a str, span: Span) -> Option<Self> {
        let body = text.trim_ascii_start();
        let white = text.len() - body.len();
        // A tab is one level of a four-column sub-test; nothing here needs tab stops.
        let tabs = text.bytes().take(white).filter(|&b| b == b'\t').count();
        let text = body.trim_ascii_end();
        (!text.is_empty()).then_some(Self { indent: white + 3 * tabs, text, span })
    }
}

/// Cuts bytes into lines, whatever chunks they come in.
///
/// CR and LF both end a line; the empty line inside CR LF is not reported.
#[derive(Debug, Clone)]
pub(crate) struct LineSplitter {
    pending: Vec<u8>,
    line_start: u64,
    at: u64,
    cut: bool,
    skipping: bool,
}

impl LineSplitter {
    pub(crate) fn new(start: u64) -> Self {
        Self { pending: Vec::new(), line_start: start, at: start, cut: false, skipping: false }
    }

    /// Takes the next bytes and hands out every line they complete.
    pub(crate) fn feed(&mut self, bytes: &[u8], mut take: impl FnMut(RawLine<'_>)) {
        let mut rest = bytes;
        while let Some(i) = memchr::memchr2(b'\n', b'\r', rest) {
            let (part, tail) = rest.split_at(i);
            let span = Span { start: self.line_start, end: self.at + i as u64 };
            if self.skipping {
                self.skipping = false;
            } else if self.pending.is_empty() && part.len() <= MAX_LINE {
                if !part.is_empty() {
                    take(RawLine { bytes: part, span, cut: false });
                }
            } else {
                self.keep(part);
                take(RawLine { bytes: &self.pending, span, cut: self.cut });
            }
            self.pending.clear();
            self.cut = false;
            self.at += i as u64 + 1;
            self.line_start = self.at;
            rest = tail.get(1..).unwrap_or_default();
        }
        if !self.skipping {
            self.keep(rest);
        }
        self.at += rest.len() as u64;
    }

    fn keep(&mut self, part: &[u8]) {
        let room = MAX_LINE - self.pending.len();
        self.cut |= part.len() > room;
        self.pending.extend_from_slice(part.get(..room).unwrap_or(part));
    }

    /// Returns the offset of the next byte.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// Drops the unfinished line and its rest up to the next line end: after a gap or a fault
    /// banner it is unknown whether the next byte begins a line.
    pub(crate) fn interrupt(&mut self) {
        self.pending.clear();
        self.cut = false;
        self.skipping = true;
    }

    /// Returns the unfinished line, or its beginning if it is too long.
    pub(crate) fn begun(&self) -> Option<RawLine<'_>> {
        let span = Span { start: self.line_start, end: self.at };
        let raw = RawLine { bytes: &self.pending, span, cut: self.cut };
        (!self.pending.is_empty()).then_some(raw)
    }

    /// Returns the unfinished line, if there is one that can be a result.
    pub(crate) fn unfinished(&self) -> Option<RawLine<'_>> {
        self.begun().filter(|raw| !raw.cut)
    }
}

/// Removes terminal control sequences and the garbage an idle line leaves in front. A blank takes
/// the place of those that move the cursor, since the text behind them stands elsewhere.
pub(crate) fn plain(bytes: &[u8]) -> Cow<'_, [u8]> {
    without_sequences(bytes, b' ')
}

/// Does the same as [`plain`], with a line feed where the cursor moves to another row.
pub(super) fn plain_rows(bytes: &[u8]) -> Cow<'_, [u8]> {
    without_sequences(bytes, b'\n')
}

/// A transport's flow control, XON and XOFF, stands between any two bytes of a text.
fn without_sequences(bytes: &[u8], row_change: u8) -> Cow<'_, [u8]> {
    let seven_bit = frames_apart(bytes, row_change).or_else(|| in_seven_bits(bytes));
    if let Some(bytes) = seven_bit {
        let bytes = in_seven_bits(&bytes).unwrap_or(bytes);
        return Cow::Owned(without_controls(&bytes, row_change).into_owned());
    }
    without_controls(bytes, row_change)
}

/// Puts what stands between the ends of SLIP frames into rows of its own.
fn frames_apart(bytes: &[u8], row_change: u8) -> Option<Vec<u8>> {
    if row_change != b'\n' || memchr::memchr_iter(SLIP_END, bytes).count() < 2 {
        return None;
    }
    Some(bytes.iter().map(|&b| if b == SLIP_END { b'\n' } else { b }).collect())
}

/// Spells the control sequences out that begin with a CSI of 8 bits. That byte is also a part of
/// characters, and a character of its own in some code pages.
pub(super) fn in_seven_bits(bytes: &[u8]) -> Option<Vec<u8>> {
    memchr::memchr(CSI, bytes)?;
    let mut spelled = Vec::with_capacity(bytes.len() + 8);
    for chunk in bytes.utf8_chunks() {
        spelled.extend_from_slice(chunk.valid().as_bytes());
        spelled.extend_from_slice(chunk.invalid());
        let at = chunk.invalid().as_ptr() as usize - bytes.as_ptr() as usize;
        let behind = &bytes[at + chunk.invalid().len()..];
        let digits = behind.iter().take_while(|b| matches!(b, b'0'..=b'9' | b';' | b':')).count();
        let last = behind.get(digits).copied().unwrap_or_default();
        let ends = matches!(last, b'm' | b'K')
            || digits > 0 && matches!(last, b'A'..=b'H' | b'J' | b'd' | b'f');
        if chunk.invalid() == [CSI] && ends {
            spelled.pop();
            spelled.extend_from_slice(b"\x1b[");
        }
    }
    Some(spelled)
}

fn without_controls(bytes: &[u8], row_change: u8) -> Cow<'_, [u8]> {
    if memchr::memchr2(XON, XOFF, bytes).is_none() {
        return without_escapes(bytes, row_change);
    }
    let text: Vec<u8> = bytes.iter().copied().filter(|b| !matches!(*b, XON | XOFF)).collect();
    Cow::Owned(without_escapes(&text, row_change).into_owned())
}

fn without_escapes(bytes: &[u8], row_change: u8) -> Cow<'_, [u8]> {
    // Power-on and baud switches of a UART show up as NUL and 0xFF bytes.
    let dirt = bytes.iter().take_while(|&&b| b == 0 || b == 0xff).count();
    let bytes = bytes.get(dirt..).unwrap_or_default();
    if memchr::memchr(0x1b, bytes).is_none() {
        return Cow::Borrowed(bytes);
    }
    let mut clean: Vec<u8> = Vec::with_capacity(bytes.len());
    let (mut rest, mut row, mut moved) = (bytes, None, None);
    let mut badge = None;
    loop {
        let (text, escape) = rest.split_at(memchr::memchr(0x1b, rest).unwrap_or(rest.len()));
        if !text.is_empty() {
            // Nothing in front of the text, and no second blank.
            let blank = clean.last().is_none_or(|last| *last == b' ') && moved != Some(b'\n');
            clean.extend(moved.take().filter(|_| !blank && !clean.is_empty()));
            clean.extend_from_slice(text);
        }
        if escape.is_empty() {
            badge.into_iter().for_each(|start| bracket(&mut clean, start));
            return Cow::Owned(clean);
        }
        let (sequence, behind) = escape.split_at(sequence_len(escape).min(escape.len()));
        let rows = row_change == b'\n';
        match (background(sequence).filter(|_| rows), badge) {
            (Some(true), None) => badge = Some(clean.len()),
            (Some(false), Some(start)) => {
                bracket(&mut clean, start);
                badge = None;
            }
            _ => {}
        }
        match movement(sequence) {
            None => {}
            Some(CursorMovement::Column) => moved = moved.or(Some(b' ')),
            Some(CursorMovement::Row(to)) if to.is_some() && to == row => {
                moved = moved.or(Some(b' '));
            }
            Some(CursorMovement::Row(to)) => (row, moved) = (to, Some(row_change)),
        }
        rest = behind;
    }
}

/// Where a control sequence moves the cursor.
pub(super) enum CursorMovement {
    Column,
    /// To a row, if it is named.
    Row(Option<u64>),
}

/// Reads the movement of the cursor that a control sequence stands for. What erases the text in front
/// of the cursor moves it, too: the text behind belongs to another one.
pub(super) fn movement(sequence: &[u8]) -> Option<CursorMovement> {
    let Some((parameters, last)) = control_sequence(sequence) else {
        // Index, next line, reverse index, restored cursor, reset.
        let visible = sequence.iter().filter(|b| !is_inner_control(**b));
        let rows = matches!(
            visible.copied().collect::<Vec<_>>()[..],
            [0x1b, b'D' | b'E' | b'M' | b'8' | b'c']
        );
        return rows.then_some(CursorMovement::Row(None));
    };
    let first = parameters.split(|&b| b == b';').next().unwrap_or_default();
    let number = std::str::from_utf8(first).ok().and_then(|digits| digits.parse().ok());
    match last {
        b'C' | b'D' | b'G' | b'I' | b'Z' | b'`' | b'a' => Some(CursorMovement::Column),
        b'A' | b'B' | b'E' | b'F' | b'e' | b'L' | b'M' => Some(CursorMovement::Row(None)),
        b'J' | b'K' if matches!(number, Some(1..=3)) => Some(CursorMovement::Row(None)),
        b'u' if parameters.is_empty() => Some(CursorMovement::Row(None)),
        b'H' | b'd' | b'f' => {
            Some(CursorMovement::Row(if first.is_empty() { Some(1) } else { number }))
        }
        _ => None,
    }
}

/// Returns the parameters and the final byte of a control sequence that begins with a CSI. A terminal
/// carries control characters within it out and reads on.
pub(super) fn control_sequence(sequence: &[u8]) -> Option<(Cow<'_, [u8]>, u8)> {
    let sequence = match sequence.iter().any(|&b| is_inner_control(b)) {
        false => Cow::Borrowed(sequence),
        true => sequence.iter().copied().filter(|&b| !is_inner_control(b)).collect(),
    };
    let (&last, _) = sequence.split_last().filter(|(last, _)| matches!(last, 0x40..=0x7e))?;
    let end = sequence.len().checked_sub(1)?;
    let body = |bytes: &[u8]| bytes.starts_with(b"\x1b[") && bytes.len() > 2;
    match sequence {
        Cow::Borrowed(bytes) if body(bytes) => Some((Cow::Borrowed(&bytes[2..end]), last)),
        Cow::Owned(bytes) if body(&bytes) => Some((Cow::Owned(bytes[2..end].to_vec()), last)),
        _ => None,
    }
}

/// Tells whether a byte is a control character that a terminal carries out within a control sequence,
/// without an end of the sequence or of the line.
fn is_inner_control(byte: u8) -> bool {
    matches!(byte, 0..=0x1f | 0x7f) && !matches!(byte, 0x1b | CAN | SUB | b'\n' | b'\r')
}

/// Tells whether a control sequence sets a background or ends it; nothing if it does neither.
fn background(sequence: &[u8]) -> Option<bool> {
    let (parameters, b'm') = control_sequence(sequence)? else { return None };
    let (mut set, mut skipped) = (None, 0);
    let mut colours = false;
    for parameter in parameters.split(|b| matches!(b, b';' | b':')) {
        let number: Option<u32> = std::str::from_utf8(parameter).ok().and_then(|n| n.parse().ok());
        match number {
            _ if skipped > 0 => skipped -= 1,
            // Of a palette: one number. Red, green and blue: three.
            Some(kind @ (2 | 5)) if std::mem::take(&mut colours) => {
                skipped = if kind == 5 { 1 } else { 3 }
            }
            Some(38 | 58) => colours = true,
            Some(48) => (colours, set) = (true, Some(true)),
            Some(7 | 40..=47 | 100..=107) => set = Some(true),
            None | Some(0 | 27 | 49) => set = Some(false),
            _ => {}
        }
    }
    set
}

/// Puts the text from an index on in brackets, if it is one word in capitals: a badge.
fn bracket(text: &mut Vec<u8>, start: usize) {
    let word = text.get(start..).unwrap_or_default().trim_ascii();
    if (2..=12).contains(&word.len()) && word.iter().all(u8::is_ascii_uppercase) {
        let badge = [b"[", word, b"]"].concat();
        text.truncate(start);
        text.extend_from_slice(&badge);
    }
}

/// Measures the text in front of the control sequences that some output ends with.
pub(super) fn text_len(bytes: &[u8]) -> usize {
    let (mut at, mut len) = (0, 0);
    while let Some(&byte) = bytes.get(at) {
        at += match byte {
            0x1b => sequence_len(&bytes[at..]),
            0 | XON | XOFF => 1,
            _ => {
                len = at + 1;
                1
            }
        };
    }
    len
}

/// Tells whether a terminal would hide the rest of a line, in a control string without an end.
pub(crate) fn hides_text(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while let Some(at) = memchr::memchr(0x1b, rest) {
        rest = &rest[at..];
        let string = matches!(rest.get(1), Some(b']' | b'P' | b'^' | b'_' | b'X'));
        let body = rest.get(2..).unwrap_or_default();
        if string && !body.iter().any(|&b| ends_string(b)) {
            return true;
        }
        rest = rest.get(sequence_len(rest)..).unwrap_or_default();
    }
    false
}

/// Lists what stands in the control strings of a line: no terminal shows it.
pub(crate) fn control_strings(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        loop {
            let at = memchr::memchr(0x1b, rest)?;
            let (sequence, behind) = rest[at..].split_at(sequence_len(&rest[at..]));
            rest = behind;
            if let [_, b']' | b'P' | b'^' | b'_' | b'X', body @ ..] = sequence {
                return Some(body.split(|&b| ends_string(b)).next().unwrap_or_default());
            }
        }
    })
}

/// Tells whether a byte ends a control string, or breaks it off.
fn ends_string(byte: u8) -> bool {
    matches!(byte, 0x07 | 0x1b | CAN | SUB)
}

/// Measures the control sequence that starts with the ESC at the front.
pub(super) fn sequence_len(bytes: &[u8]) -> usize {
    let inner = |bytes: &[u8]| bytes.iter().take_while(|b| is_inner_control(**b)).count();
    let second = 1 + inner(bytes.get(1..).unwrap_or_default());
    let body = bytes.get(second + 1..).unwrap_or_default();
    match bytes.get(second) {
        // CSI: parameters and intermediates, then one final byte.
        Some(b'[') => {
            let part = |b: &&u8| matches!(**b, 0x20..=0x3f) || is_inner_control(**b);
            let n = body.iter().take_while(part).count();
            let last = body.get(n).is_some_and(|b| matches!(*b, 0x40..=0x7e | CAN | SUB));
            second + 1 + n + usize::from(last)
        }
        // OSC, DCS, PM, APC, SOS: up to BEL or ESC backslash, at most the line.
        Some(b']' | b'P' | b'^' | b'_' | b'X') => match body.iter().position(|&b| ends_string(b)) {
            Some(n) if body.get(n) != Some(&0x1b) => second + 1 + n + 1,
            Some(n) if body.get(n + 1) == Some(&b'\\') => second + 1 + n + 2,
            Some(n) => second + 1 + n,
            None => bytes.len(),
        },
        // Two-byte sequences, with intermediates in front of the final byte.
        Some(0x20..=0x7e) => {
            let tail = bytes.get(second..).unwrap_or_default();
            let n = tail.iter().take_while(|b| matches!(b, 0x20..=0x2f)).count();
            (second + n + 1).min(bytes.len())
        }
        Some(&(CAN | SUB)) => second + 1,
        _ => 1,
    }
}

/// Reads bytes as text; what is no UTF-8 becomes a character that no grammar knows.
pub(crate) fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    // The strict check is several times faster than the lossy one, and nearly always enough.
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_go_and_text_stays() {
        for (from, to) in [
            (&b"\x1b[1;32mPASS\x1b[0m"[..], &b"PASS"[..]),
            (b"\x1b]0;title\x07a\x1b]8;;x\x1b\\b", b"ab"),
            (b"\x00\xff\x00ok", b"ok"),
            (b"\x1b(Ba\x1b7b\x1b", b"ab"),
            (b"\x1b[12", b""),
            (b"a\x1b[\xffb", b"a\xffb"),
            (b"\x13\x11t.c:1:a:PASS", b"t.c:1:a:PASS"),
            (b"\x11\x00t.c:1:a:\x13\x11PASS\x1b[\x130m", b"t.c:1:a:PASS"),
            (b"\x12\x14ok", b"\x12\x14ok"),
            // A terminal carries controls within a sequence out, and two of them break it off.
            (b"\x1b[3\x001mFA\x1b\x00[0\x7fmIL", b"FAIL"),
            (b"\x1b[3\x18FAIL\x1b]0;x\x18 y", b"FAIL y"),
            (b"PASS\x1b8FAIL\x1b[uPASS\x1b[>1u", b"PASS FAIL PASS"),
            (b"PASS\x1b[2KFAIL\x1b[K\x1b[1;2Jok", b"PASS FAIL ok"),
            (b"flash: \x9b31mF\x9b1mAIL\x9b0m", b"flash: FAIL"),
            (b"\x9bmok\x9bK", b"ok"),
            // Parts of characters, and a quotation mark of Windows.
            (b"\xe2\x9b\x84 31m", b"\xe2\x9b\x84 31m"),
            (b"\xe2\x9b31m", b"\xe2\x9b31m"),
            (b"\x9bFAIL", b"\x9bFAIL"),
            (b"\x9b3 tests failed", b"\x9b3 tests failed"),
        ] {
            assert_eq!(&*plain(from), to, "{from:?}");
        }
    }

    #[test]
    fn output_ends_in_front_of_the_last_control_sequences() {
        for (bytes, text) in [
            (&b"\x1b[32m> \x1b[0m"[..], &b"\x1b[32m> "[..]),
            (b"> \x1b[0m\x1b[K\x1b]133;B\x07\x00\x11", b"> "),
            (b"> \x1b[0", b"> "),
            (b"> \x1b[0m\r\n", b"> \x1b[0m\r\n"),
            (b"> \x1b[0mx", b"> \x1b[0mx"),
            (b"> ", b"> "),
            (b"\x1b[0m", b""),
            (b"", b""),
        ] {
            assert_eq!(&bytes[..text_len(bytes)], text, "{bytes:?}");
        }
    }

    #[test]
    fn text_behind_a_movement_of_the_cursor_stands_apart() {
        for (from, to, rows) in [
            ("flash\x1b[20CFAIL", "flash FAIL", "flash FAIL"),
            ("flash\x1b[40GFAIL", "flash FAIL", "flash FAIL"),
            ("flash \x1b[4D\x1b[JFAIL", "flash FAIL", "flash FAIL"),
            ("\x1b[5;1Hflash\x1b[5;40HFAIL", "flash FAIL", "flash FAIL"),
            ("\x1b[Hram\x1b[2;1Hflash\x1b[BFAIL", "ram flash FAIL", "ram\nflash\nFAIL"),
            ("ram \x1b[2;1Hflash\x1bEFAIL", "ram flash FAIL", "ram \nflash\nFAIL"),
            ("flash: PASS\x1b8FAIL", "flash: PASS FAIL", "flash: PASS\nFAIL"),
            // A badge is a word on a background.
            ("\x1b[41m FAIL \x1b[0m ring.js", " FAIL  ring.js", "[FAIL] ring.js"),
            ("\x1b[1;48;5;1mFAIL\x1b[49m x", "FAIL x", "[FAIL] x"),
            ("\x1b[38;5;41m FAIL \x1b[0m x", " FAIL  x", " FAIL  x"),
            ("\x1b[7m no FAIL \x1b[27m x", " no FAIL  x", " no FAIL  x"),
            // Nothing in front of a text, and nothing behind it.
            ("\x1b[2J\x1b[1;1Hok 1\x1b[1G\x1b[A", "ok 1", "ok 1"),
            ("\x1b[32mPA\x1b[0mSS", "PASS", "PASS"),
        ] {
            assert_eq!(lossy(&plain(from.as_bytes())), to, "{from:?}");
            assert_eq!(lossy(&plain_rows(from.as_bytes())), rows, "{from:?}");
        }
    }

    #[test]
    fn control_strings_are_listed_wherever_they_stand() {
        for (bytes, strings) in [
            (&b"a\x1bPnot ok 2\x1b\\b\x1b]0;t\x07"[..], &[&b"not ok 2"[..], b"0;t"][..]),
            (b"\x1bXx\x1b[31my\x1b_z", &[b"x", b"z"]),
            (b"\x1b[31mok\x1b", &[]),
            (b"", &[]),
        ] {
            assert_eq!(control_strings(bytes).collect::<Vec<_>>(), strings, "{bytes:?}");
        }
    }

    #[test]
    fn only_control_strings_without_an_end_hide_text() {
        for (bytes, hides) in [
            (&b"\x1b]0;title ok 1"[..], true),
            (b"\x1b[32mok\x1b[0m \x1bPq", true),
            (b"\x1b]0;title\x07ok 1", false),
            (b"\x1b]8;;x\x1b\\ok", false),
            (b"\x1b[32mok\x1b[0m", false),
            (b"ok", false),
        ] {
            assert_eq!(hides_text(bytes), hides, "{bytes:?}");
        }
    }

    #[test]
    fn an_endless_line_takes_bounded_memory() {
        let mut splitter = LineSplitter::new(7);
        for _ in 0..1000 {
            splitter.feed(&[b'x'; 10_000], |_| unreachable!());
        }
        assert!(splitter.pending.capacity() <= 4 * MAX_LINE);
        let mut seen = Vec::new();
        splitter.feed(b"\nab\n", |l| seen.push((l.bytes.len(), l.span, l.cut)));
        let first = Span { start: 7, end: 10_000_007 };
        let second = Span { start: 10_000_008, end: 10_000_010 };
        assert_eq!(seen, [(MAX_LINE, first, true), (2, second, false)]);
    }
}
