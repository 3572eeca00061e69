//! A boot that begins again behind the end: its first line is printed once more. Reads the log of a
//! console and decides nothing. A log that cannot be read is an error.
//!
//! # Design
//! A reset line or an emulator tells of a reset; nothing tells of one that a board on a serial port
//! makes by itself, or of a jump to the reset handler. A profile can name what begins a boot. Without
//! that name, a first line that came once in front of the end and comes again behind it has begun a
//! boot, unless the firmware prints in a cycle. Nothing prints a report in a cycle. A text that a plan
//! waits for may be part of one, so there the line has to hold a word or a version of a banner.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::LazyLock;

use regex_automata::meta::Regex;

use super::failed_results::{FoundLine, find_in_blocks, quotable, read_some};
use crate::console::{PatternSet, readable};

/// The first line is looked for in so many bytes of the boot.
const HEAD: usize = 4096;

/// Fewest letters and digits of a first line: a prompt and a rule have fewer.
const LETTERS: usize = 4;

/// A word or a version of a banner.
static BANNER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let words = r"(?i)\b(?:re)?boot|\breset\b|version|\bv?\d+\.\d+|\bbuild\b|welcome|copyright|firmware|\bfw\b|power.?on|(?:cold|warm) start|start(?:ing|ed)? up";
    Regex::new(words).ok()
});

/// Finds the first line of a boot where it comes again behind the end of what was wanted. `boot` and
/// `end` are offsets of the log. `cyclic` says that the firmware may print in a cycle.
pub(super) fn begins_again(
    log: &File,
    (boot, end): (u64, u64),
    cyclic: bool,
    (allowed, excused): (&PatternSet, &[Range<u64>]),
) -> io::Result<Option<FoundLine>> {
    let mut head = vec![0; HEAD.min(end.saturating_sub(boot) as usize)];
    let len = read_some(log, &mut head, boot)?;
    let Some((first, behind)) = first_line(&head[..len]) else { return Ok(None) };
    let banner = || BANNER.as_ref().is_some_and(|banner| banner.is_match(&first));
    if cyclic && !banner() || allowed.matches(first.as_bytes()) {
        return Ok(None);
    }
    let find = |range| {
        find_in_blocks(log, range, |block, at| {
            let spans =
                lines(block).map(|span| (at + span.start as u64..at + span.end as u64, span));
            let mut same = spans.filter(|(_, span)| text_of(&block[span.clone()]) == first);
            same.find(|(at, _)| !excused.iter().any(|known| known.contains(&at.start)))
        })
    };
    if find(boot + behind as u64..end)?.is_some() {
        return Ok(None);
    }
    Ok(find(end..u64::MAX)?.map(|(span, _)| (span, quotable(&first).to_owned())))
}

/// Returns the first whole line with some letters or digits, and where the next one begins.
fn first_line(head: &[u8]) -> Option<(String, usize)> {
    let mut whole = lines(head).filter(|span| span.end < head.len());
    whole.find_map(|span| {
        let text = text_of(&head[span.clone()]);
        let letters = text.bytes().filter(u8::is_ascii_alphanumeric).count();
        (letters >= LETTERS).then_some((text, span.end))
    })
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
mod tests {
    use std::io::Write as _;

    use super::*;

    fn found(front: &str, behind: &str, cyclic: bool, allowed: &str) -> Option<Range<u64>> {
        let allowed = match allowed {
            "" => PatternSet::new(&[]),
            pattern => PatternSet::new(&[pattern.parse().unwrap()]),
        };
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(front.as_bytes()).unwrap();
        file.write_all(behind.as_bytes()).unwrap();
        let end = front.len() as u64;
        let found = begins_again(&file, (0, end), cyclic, (&allowed.unwrap(), &[])).unwrap();
        found.map(|(span, _)| span.start - end..span.end - end)
    }

    #[test]
    fn a_first_line_that_comes_again_is_found() {
        let report =
            "*** app 1.2\r\nuart up\r\na.c:1:t:PASS\r\n1 Tests 0 Failures 0 Ignored\r\nOK\r\n";
        assert_eq!(found(report, "*** app 1.2\r\nuart up\r\n", false, ""), Some(0..11));
        assert_eq!(found(report, "bye\n\x1b[0m*** app 1.2\n", false, ""), Some(4..19));
        assert_eq!(found(report, "uart up\r\n", false, ""), None);
        assert_eq!(found(report, "*** app 1.2\r\n", false, "^.*app"), None);
        assert_eq!(found(report, "*** app 1.2", false, ""), Some(0..11));
        assert_eq!(found(report, "", false, ""), None);
    }

    #[test]
    fn a_prompt_and_a_rule_begin_no_boot() {
        assert_eq!(found("> \n-----\nring self test\nok\n", "> \n-----\n", false, ""), None);
        let behind = "ring self test\n";
        assert_eq!(found("> \n-----\nring self test\nok\n", behind, false, ""), Some(0..14));
    }

    #[test]
    fn a_cycle_begins_no_boot() {
        assert_eq!(found("LED on\nLED off\n", "LED on\nLED off\n", true, ""), None);
        let twice = "app v1.2\nsample\napp v1.2\nsample\n";
        assert_eq!(found(twice, "app v1.2\n", true, ""), None);
        assert_eq!(found("app v1.2\nready\n", "app v1.2\nready\n", true, ""), Some(0..8));
    }
}
