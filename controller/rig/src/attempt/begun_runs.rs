//! Finds a run of tests that began and did not end, in a format that no grammar reads.
//!
//! # Design
//! Jig reads no results of these systems, and beside a report of another format their output is a log. But
//! each frames its tests with a first and a last line, so that one without the other is a run that broke
//! off: the report beside it says nothing of what was left.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::LazyLock;

use regex_automata::meta::Regex;
use regex_automata::util::syntax;

use super::failed_results::{FoundLine, KnownLines, find_in_blocks, lines_in, quotable};
use crate::console::readable;

/// The first and the last lines of runs, of ASCII.
const FRAMES: &[(&str, &str)] = &[
    (r"^\*\*\* BEGIN OF TEST .* \*\*\*", r"^\*\*\* END OF TEST "),
    (r"^\*\*\* ChibiOS/\w+ [Tt]est [Ss]uite", r"^Final result: "),
    (r"^Starting test suite ", r"^Test suite (?:passed|failed)|^All is well in the universe"),
    (
        r"^\S+ is a Catch2? v[0-9.]+(?:-\w+)? host application\.",
        r"^All tests passed|^test cases: |^No tests ran",
    ),
];

static LINES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let ascii = syntax::Config::new().unicode(false).utf8(false);
    let both: Vec<&str> = FRAMES.iter().flat_map(|(first, last)| [*first, *last]).collect();
    Regex::builder().syntax(ascii).build_many(&both).ok()
});

/// Text of which one stands in each such line.
static HINTS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let ascii = syntax::Config::new().unicode(false).utf8(false);
    let hints = "OF TEST |test suite|Test Suite|Test suite|Final result: |in the universe|host application|All tests passed|test cases: |No tests ran";
    Regex::builder().syntax(ascii).build(hints).ok()
});

/// Compiles ahead of a search what finds nothing in most logs.
pub(super) fn prepare() {
    LazyLock::force(&HINTS);
}

/// Returns the first line of the last run within a range of a log that did not end.
pub(super) fn begun_run(
    log: &File,
    range: Range<u64>,
    known: &KnownLines<'_>,
) -> io::Result<Option<FoundLine>> {
    let (Some(frames), Some(hints)) = (&*LINES, &*HINTS) else { return Ok(None) };
    let mut begun: Vec<Option<FoundLine>> = FRAMES.iter().map(|_| None).collect();
    find_in_blocks(log, range, |block, at| {
        // Most blocks have none.
        let lines = if hints.is_match(block) { block } else { &[] };
        for (span, line) in lines_in(lines, at) {
            let text = readable(line);
            let text = text.trim_ascii();
            let Some(found) = frames.find(text) else { continue };
            let (frame, is_last) = (found.pattern().as_usize() / 2, found.pattern().as_usize() % 2);
            let Some(run) = begun.get_mut(frame) else { continue };
            if is_last == 1 {
                *run = None;
            } else if !expected(&span, text, known) {
                *run = Some((span, quotable(text).to_owned()));
            }
        }
        None::<()>
    })?;
    Ok(begun.into_iter().flatten().next())
}

/// Tells whether a line belongs to a report, or the plan knows it.
fn expected(span: &Range<u64>, text: &str, known: &KnownLines<'_>) -> bool {
    let within = |part: &Range<u64>| part.start < span.end && span.start < part.end;
    known.read.contains(span.start)
        || known.spelled.iter().any(within)
        || known.excused.iter().any(within)
        || known.allowed.matches(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::console::PatternSet;
    use crate::results::ReadLines;

    fn found(log: &str, allowed: &str) -> Option<String> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(log.as_bytes()).unwrap();
        let read = ReadLines::default();
        let allowed = PatternSet::new(&[allowed.parse().unwrap()]).unwrap();
        let known = KnownLines {
            read: &read,
            spelled: &[],
            excused: &[],
            allowed: &allowed,
            crash_from: None,
        };
        begun_run(&file, 0..log.len() as u64, &known).unwrap().map(|(_, text)| text)
    }

    #[test]
    fn a_run_that_began_has_to_end() {
        let rtems = "*** BEGIN OF TEST SP 01 ***\nTA1 - 09:00:00\n";
        let ended = "*** END OF TEST SP 01 ***\n";
        assert_eq!(found(rtems, "x{9}").as_deref(), Some("*** BEGIN OF TEST SP 01 ***"));
        assert_eq!(found(rtems, "^[*]{3} BEGIN"), None);
        assert_eq!(found(&format!("{rtems}{ended}"), "x{9}"), None);
        // The second of two runs.
        assert!(found(&format!("{rtems}{ended}\r\n{rtems}"), "x{9}").is_some());
        for (first, last) in [
            ("*** ChibiOS/RT Test Suite", "Final result: SUCCESS"),
            ("Starting test suite sel4test", "Test suite passed. 12 tests passed."),
            ("ring is a Catch2 v3.4.0 host application.", "All tests passed (3 assertions)"),
        ] {
            assert_eq!(found(&format!("{first}\nx\n"), "x{9}").as_deref(), Some(first));
            assert_eq!(found(&format!("{first}\nx\n{last}\n"), "x{9}"), None);
        }
        assert_eq!(found("Test Suite ring\nok\n", "x{9}"), None);
        // A last line that the plan knows is one nevertheless.
        assert_eq!(found(&format!("{rtems}{ended}"), "^[*]{3} END"), None);
    }
}
