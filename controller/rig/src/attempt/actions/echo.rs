//! The echo of what a plan has sent: many consoles repeat their input, which proves nothing.
//!
//! # Design
//! A text is in an echo if it lies within the first repetition of the sent text behind the sending. Line
//! ends may differ, and control sequences may stand between, as may the ends of rows, since a line editor
//! wraps a long line; a tabulator may be echoed as blanks. A match that reaches beyond the echo, or
//! that begins in front of it (in the prompt), is none. What the target prints later counts, also where
//! it repeats the same text: only one echo is skipped.

use jig_model::ConsoleName;
use tokio::time::timeout;

use super::Actions;
use crate::console::{ExpectError, Matched, PAUSE};

/// Most texts that are remembered: an echo comes before the next few are sent.
const MOST: usize = 16;

/// Longest control sequences in an echo, as a multiple of it, and in any case.
const CONTROLS: (u64, u64) = (4, 1 << 10);

/// Most output behind a sending in which the first repetition is looked for; behind more of it, any
/// repetition near a match counts.
const SEARCHED: u64 = 64 << 10;

/// Fewest bytes of an echo in a row before the row is wrapped: a terminal of 40 columns, less a prompt.
const WRAPPED: usize = 16;

/// Most blanks of a tabulator.
const TABULATOR: usize = 8;

/// A text that was sent.
#[derive(Debug)]
pub(in crate::attempt) struct SentText {
    console: ConsoleName,
    /// Length of the console's log in front of the sending.
    at: u64,
    bytes: Vec<u8>,
    /// Where its echo begins, once a match was found in it.
    echo: Option<u64>,
}

/// How output goes on as a sent text does.
#[derive(Debug, PartialEq, Eq)]
enum Repetition {
    /// It is one, and ends at this index.
    Whole(usize),
    /// The output ends first.
    Begun,
    /// It differs.
    None,
}

impl Actions<'_> {
    /// Remembers what is about to be sent.
    pub(super) fn remember_sent(&mut self, console: &ConsoleName, bytes: &[u8]) {
        let at = self.board.lines.get(console).map_or(0, |line| line.handle.state().borrow().len);
        self.sent_from.entry(console.clone()).or_insert(at);
        if self.sent.len() == MOST {
            self.sent.remove(0);
        }
        let (console, bytes) = (console.clone(), bytes.to_vec());
        self.sent.push(SentText { console, at, bytes, echo: None });
    }

    /// Forgets what was sent: its echo is what the plan waits for.
    pub(super) fn forget_sent(&mut self, console: Option<&ConsoleName>) {
        let console = self.console(console);
        self.sent.retain(|sent| sent.console != console);
    }

    /// Returns where the echo of what was sent last begins, if a match was found in it.
    pub(super) fn last_echo(&self, console: &ConsoleName) -> Option<u64> {
        self.sent.iter().rev().find(|sent| sent.console == *console)?.echo
    }

    /// Tells whether what a wait has found lies within the echo of a text that was sent. A rejected text
    /// there is passed over: a wait that it ends has consumed nothing.
    pub(super) async fn echoed(
        &mut self,
        console: &ConsoleName,
        outcome: &Result<Matched, ExpectError>,
    ) -> bool {
        let (matched, rejected) = match outcome {
            Ok(matched) => (matched, false),
            Err(ExpectError::Rejected { matched, .. }) => (matched, true),
            Err(_) => return false,
        };
        let echoed = self.is_echo(console, matched).await;
        if echoed
            && rejected
            && let Ok(follower) = self.cursor(console)
        {
            let next = follower.cursor() + 1;
            follower.seek(matched.end.max(next));
        }
        echoed
    }

    /// Tells whether a match lies within the echo of a text that was sent. While only the beginning of
    /// that has arrived, waits for more until nothing follows.
    pub(super) async fn is_echo(&mut self, console: &ConsoleName, matched: &Matched) -> bool {
        let mine = |sent: &SentText| sent.console == *console && sent.at <= matched.start;
        let Some(line) = self.board.lines.get(console).filter(|_| self.sent.iter().any(mine))
        else {
            return false;
        };
        let mut state = line.handle.state();
        loop {
            let len = state.borrow_and_update().len;
            let Ok(follower) = self.cursor(console) else { return false };
            let follower = follower.clone();
            let mut open = None;
            for (index, sent) in self.sent.iter().enumerate().filter(|(_, sent)| mine(sent)) {
                let size = sent.bytes.len() as u64;
                let reach = size.saturating_mul(CONTROLS.0).saturating_add(CONTROLS.1);
                let near = matched.start.saturating_sub(reach);
                let from = match sent.echo {
                    Some(echo) => echo.max(near),
                    None if matched.start - sent.at <= SEARCHED => sent.at,
                    None => near,
                };
                let to = len.min(matched.end.saturating_add(reach));
                let mut output = vec![0; to.saturating_sub(from) as usize];
                let Ok(read) = follower.read_at(from, &mut output) else { return false };
                output.truncate(read);
                let part = (matched.start - from) as usize..(matched.end.max(from) - from) as usize;
                let first = sent.echo.is_some();
                match echo_around(&output, &sent.bytes, part, first) {
                    (start, Repetition::Whole(_)) => {
                        let start = from + start as u64;
                        self.sent[index].echo = Some(start);
                        return true;
                    }
                    (start, Repetition::Begun) => {
                        open = open.or(Some((index, from + start as u64)))
                    }
                    (_, Repetition::None) => {}
                }
            }
            let Some((index, start)) = open else { return false };
            if !matches!(timeout(PAUSE, state.changed()).await, Ok(Ok(()))) {
                // The output ends within the echo.
                self.sent[index].echo = Some(start);
                return true;
            }
        }
    }
}

/// Finds the repetition of a sent text in which a part of the output lies, and where it begins; only
/// at the first byte if it is known to begin there.
fn echo_around(
    output: &[u8],
    sent: &[u8],
    part: std::ops::Range<usize>,
    known: bool,
) -> (usize, Repetition) {
    let last = if known { 0 } else { part.start.min(output.len()) };
    for start in 0..=last {
        match repetition(&output[start..], sent) {
            Repetition::Whole(len) if start <= part.start && part.end <= start + len => {
                return (start, Repetition::Whole(start + len));
            }
            Repetition::Begun if start <= part.start => return (start, Repetition::Begun),
            // The first repetition is the echo.
            Repetition::Whole(_) if !known => return (start, Repetition::None),
            _ => {}
        }
    }
    (0, Repetition::None)
}

/// Tells whether output begins with a sent text; its line end and one behind it belong to it.
fn repetition(output: &[u8], sent: &[u8]) -> Repetition {
    let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let ends = |bytes: &[u8]| bytes.iter().take_while(|byte| is_end(byte)).count();
    let body = sent.len() - sent.iter().rev().take_while(|byte| is_end(byte)).count();
    if body == 0 {
        return Repetition::None;
    }
    let (mut at, mut done) = (0, 0);
    // Bytes of the echo in this row.
    let mut row = 0;
    while done < body {
        let controls = control_len(&output[at..]).filter(|_| at > 0);
        if let Some(len) = controls {
            at += len;
            continue;
        }
        let line_end = ends(&sent[done..]);
        if line_end > 0 {
            (at, done, row) = (at + ends(&output[at..]), done + line_end, 0);
            continue;
        }
        let wrap = wrap_len(&output[at..]);
        let blanks = output[at..].iter().take(TABULATOR).take_while(|byte| **byte == b' ').count();
        match output.get(at) {
            None => return if at == 0 { Repetition::None } else { Repetition::Begun },
            Some(b' ') if row >= WRAPPED && wrap > 0 => {
                // The blank is that of the sent text, unless the next row begins with that.
                let blank = sent[done] == b' ' && output.get(at + wrap) != Some(&b' ');
                (at, done, row) = (at + wrap, done + usize::from(blank), 0);
            }
            Some(byte) if *byte == sent[done] => (at, done, row) = (at + 1, done + 1, row + 1),
            Some(b' ') if sent[done] == b'\t' => (at, done, row) = (at + blanks, done + 1, row + 1),
            Some(_) if row >= WRAPPED && wrap > 0 => (at, row) = (at + wrap, 0),
            Some(_) => return Repetition::None,
        }
    }
    Repetition::Whole(at + ends(&output[at..]))
}

/// Returns the length of the end of a row that output begins with, as line editors print it: a line end or a
/// return, with or without a blank in front.
fn wrap_len(output: &[u8]) -> usize {
    let blank = usize::from(output.first() == Some(&b' '));
    let ends = output[blank..].iter().take(2).take_while(|byte| matches!(byte, b'\r' | b'\n'));
    match ends.count() {
        0 => 0,
        len => blank + len,
    }
}

/// Returns the length of the control sequence that output begins with (`ESC [ ... letter`).
fn control_len(output: &[u8]) -> Option<usize> {
    let rest = output.strip_prefix(b"\x1b[")?;
    let end = rest.iter().position(|byte| (0x40..=0x7e).contains(byte))?;
    Some(2 + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_within_the_first_repetition_is_an_echo() {
        for (output, sent, text, echo) in [
            ("run all tests passed\r\n", "run all tests passed\n", "all tests passed", true),
            ("run all tests passed\r\nall tests passed\r\n", "run all tests passed\n", "run", true),
            ("$ run\r\nran: run ok\r\n", "run\n", "run\r\n", true),
            ("$ run\r\nran: run ok\r\n", "run\n", "$ run", false),
            ("$ run\r\nran: run ok\r\n", "run\n", "run\r\nran", false),
            ("$ run\r\nran: run ok\r\n", "run\n", "run ok", false),
            ("$ r\x1b[32mu\x1b[0mn\r\n", "run\n", "n", true),
            ("$ ver\r\nversion 1\r\n", "ver\n", "version", false),
            ("a\r\nb\r\n", "a\nb\n", "b", true),
            (
                "set motd a long text \r\nall good\r\n",
                "set motd a long text all good\n",
                "all good",
                true,
            ),
            (
                "set motd a long text\r\n all good\r\n",
                "set motd a long text all good\n",
                "all good",
                true,
            ),
            (
                "set motd a long te \rxt all good\r\n",
                "set motd a long text all good\n",
                "all good",
                true,
            ),
            (
                "set motd a long te\r\nxt all good\r\n",
                "set motd a long text all good\n",
                "all good",
                true,
            ),
            (
                "run self test of flash\r\nall good\r\n",
                "run self test of flash\n",
                "all good",
                false,
            ),
            // Too short for a row.
            ("run\r\nall good\r\n", "run all good\n", "all good", false),
            ("say      all good\r\n", "say\tall good\n", "all good", true),
            ("say\tall good\r\n", "say\tall good\n", "all good", true),
            ("ok\r\n", "\n", "ok", false),
            ("ok\r\n", "run\n", "ok", false),
        ] {
            let start = output.rfind(text).unwrap();
            let start = if text == "run" { output.find(text).unwrap() } else { start };
            let part = start..start + text.len();
            let found = echo_around(output.as_bytes(), sent.as_bytes(), part, false).1;
            assert_eq!(matches!(found, Repetition::Whole(_)), echo, "{output:?} {text}: {found:?}");
        }
    }

    #[test]
    fn a_repetition_that_has_begun_is_open() {
        assert_eq!(repetition(b"all tests pa", b"all tests passed\n"), Repetition::Begun);
        assert_eq!(repetition(b"all tests ha", b"all tests passed\n"), Repetition::None);
        assert_eq!(repetition(b"", b"all\n"), Repetition::None);
        // The second repetition is an answer.
        let (output, sent) = (b"ping\r\nping\r\n", b"ping\n");
        assert_eq!(echo_around(output, sent, 6..10, false).1, Repetition::None);
        assert_eq!(echo_around(output, sent, 6..10, true).1, Repetition::None);
        assert_eq!(echo_around(output, sent, 0..4, true).1, Repetition::Whole(6));
    }
}
