//! Finds output that nothing accounts for: all of it where a run is strict, else what stands behind
//! the end of a report.
//!
//! # Design
//! The rules for failed results recognise words, and a firmware may use others. A strict run needs no
//! words: a line is accounted for if it is part of a report or of a crash that the firmware expected, if
//! the plan spells it out, if it is allowed, or if it is one that a framework prints about itself. Text
//! beside a spelled part counts, unless it has neither letters nor digits.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::LazyLock;

use regex_automata::meta::Regex;
use regex_automata::util::syntax;

use super::after_end::is_doubtful;
use super::failed_results::{KnownLines, find_in_blocks, lines_in, quotable, quoted};
use crate::console::{output_of_open_test, parity_lines, readable, writes_over};
use crate::judge::ByteRange;
use crate::store::{UnaccountedKind, UnaccountedOutput, pattern_of_kind};

/// Whole lines that frameworks print about themselves, beside their reports: GoogleTest, cmocka, Catch2,
/// pytest, Zephyr, AUnit.
const ABOUT_ITSELF: &[&str] = &[
    r"^Running main\(\) from \S+$",
    r"^[\w./-]+\.(?:cc|cpp|cxx|h|hpp):\d+: Skipped$",
    r"^\d+ SKIPPED TEST\(S\)$",
    r"^\S+ is a Catch2? v[0-9.]+ host application\.$",
    r"^Run with -\? for options$",
    r"^platform \w+ -- Python [0-9.]+, pytest-[0-9.]+, pluggy-[0-9.]+(?: -- \S+)?$",
    r"^(?:rootdir|configfile|plugins|cachedir): \S.*$",
    r"^collected \d+ items?$",
    r"^\*\*\* Booting (?:Zephyr OS|MCUboot) [\w ().+-]+ \*\*\*$",
    r"^-+ TESTSUITE SUMMARY (?:START|END) -+$",
    r"^RunID: [0-9a-f]{6,32}$",
    r"^YOU HAVE \d+ DISABLED TESTS?$",
    r"^coverage: [0-9.]+% of statements$",
    r"^TestRunner duration: [0-9.]+ seconds\.$",
];

static HARMLESS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let ascii = syntax::Config::new().unicode(false).utf8(false);
    Regex::builder().syntax(ascii).build_many(ABOUT_ITSELF).ok()
});

/// Most kinds of lines that are listed; the lines behind the last are only counted.
const MAX_KINDS: usize = 200;

/// What nothing accounts for on the consoles of an attempt.
#[derive(Debug, Default)]
pub(super) struct UnaccountedSearch {
    kinds: BTreeMap<String, usize>,
    output: UnaccountedOutput,
}

impl UnaccountedSearch {
    /// Searches a range of a log. Prompts count only with `prompts`.
    pub(super) fn search(
        &mut self,
        (log, file): (&File, &str),
        range: Range<u64>,
        known: &KnownLines<'_>,
        prompts: bool,
    ) -> io::Result<()> {
        // A line at the end of a block may be seen twice: once cut, and once whole.
        let mut read_to = range.start;
        find_in_blocks(log, range, |block, at| -> Option<()> {
            for (span, line) in lines_in(block, at) {
                if span.end <= read_to {
                    continue;
                }
                let text = unaccounted(line, &span, known);
                if let Some(text) = text.filter(|text| prompts || !is_prompt(text)) {
                    read_to = span.end;
                    self.add(file, span, text);
                }
            }
            None
        })?;
        Ok(())
    }

    fn add(&mut self, file: &str, span: Range<u64>, text: String) {
        let UnaccountedOutput { kinds, lines, .. } = &mut self.output;
        *lines += 1;
        if kinds.len() >= MAX_KINDS {
            return;
        }
        let pattern = pattern_of_kind(&text);
        if let Some(kind) = self.kinds.get(&pattern).and_then(|&kind| kinds.get_mut(kind)) {
            kind.lines += 1;
            return;
        }
        self.kinds.insert(pattern.clone(), kinds.len());
        let doubtful = is_doubtful(&text);
        let ByteRange { file, start, end, text } = quoted(file, (span, quotable(&text).to_owned()));
        kinds.push(UnaccountedKind { pattern, doubtful, lines: 1, file, start, end, text });
    }

    /// Returns what was found, if anything was.
    pub(super) fn found(self) -> Option<UnaccountedOutput> {
        (self.output.lines > 0).then_some(self.output)
    }
}

/// Tells whether a line is the prompt of a shell: `uart:~$`, `msh />`.
fn is_prompt(text: &str) -> bool {
    text.ends_with(['$', '>', '#', '%']) && text.split_ascii_whitespace().count() <= 2
}

fn unaccounted(line: &[u8], span: &Range<u64>, known: &KnownLines<'_>) -> Option<String> {
    // A reader of the terminal sees something else than the report has read.
    let read = known.read.contains(span.start) && !writes_over(line);
    let open = readable(line);
    let open = output_of_open_test(&open).filter(|_| read);
    let excused = |part: &Range<u64>| part.start <= span.start && span.end <= part.end;
    if read && open.is_none() || known.excused.iter().any(excused) {
        return None;
    }
    let mut rest = line.to_vec();
    for part in known.spelled {
        let cut = |at: u64| (at.clamp(span.start, span.end) - span.start) as usize;
        rest[cut(part.start)..cut(part.end).max(cut(part.start))].fill(b' ');
    }
    if parity_lines(&rest).is_empty() && readable(&rest).chars().all(says_nothing) {
        return None;
    }
    let text = readable(line);
    let text = open.unwrap_or(text.trim_ascii());
    let harmless = HARMLESS.as_ref().is_some_and(|lines| lines.is_match(text));
    (!harmless && !known.allowed.matches(text.as_bytes())).then(|| text.to_owned())
}

fn says_nothing(c: char) -> bool {
    c.is_ascii_punctuation() || c.is_ascii_whitespace()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::console::PatternSet;
    use crate::results::ReadLines;

    fn found(log: &[u8], spelled: &[Range<u64>], allowed: &str) -> Option<String> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(log).unwrap();
        let (read, excused) = (ReadLines::default(), Range { start: 3, end: 8 });
        let allowed = PatternSet::new(&[allowed.parse().unwrap()]).unwrap();
        let excused = std::slice::from_ref(&excused);
        let known =
            KnownLines { read: &read, spelled, excused, allowed: &allowed, crash_from: None };
        let mut search = UnaccountedSearch::default();
        search.search((&file, "uart0.raw"), 0..log.len() as u64, &known, true).unwrap();
        search.found().map(|output| output.kinds[0].text.clone())
    }

    #[test]
    fn lines_that_nothing_accounts_for_are_counted_without_prompts() {
        let mut file = tempfile::tempfile().unwrap();
        let long = "x".repeat(3 << 20);
        let log = format!(
            "done\r\nspi 1\r\nuart:~$ \nmsh />\nspi 20\ndma error\n{long}\nharmless 1\n# end"
        );
        file.write_all(log.as_bytes()).unwrap();
        let allowed = PatternSet::new(&["^harmless".parse().unwrap()]).unwrap();
        let (read, spelled) = (ReadLines::default(), Range { start: 0, end: 4 });
        let known = KnownLines {
            read: &read,
            spelled: std::slice::from_ref(&spelled),
            excused: &[],
            allowed: &allowed,
            crash_from: None,
        };
        let counted = |prompts| {
            let mut search = UnaccountedSearch::default();
            let range = 0..log.len() as u64;
            search.search((&file, "uart0.raw"), range, &known, prompts).unwrap();
            search.found().unwrap()
        };
        let UnaccountedOutput { lines, kinds } = counted(false);
        let spans: Vec<_> =
            kinds.iter().map(|kind| (kind.start, kind.lines, kind.doubtful)).collect();
        assert_eq!(spans[..2], [(6, 2, false), (36, 1, true)], "{kinds:?}");
        assert_eq!(kinds[0].pattern, "^spi [0-9]+$");
        // One line is as long as several blocks.
        assert!((5..=20).contains(&lines), "{lines}");
        assert_eq!(counted(true).lines, lines + 2);
    }

    #[test]
    fn a_line_is_accounted_for_by_all_of_its_text() {
        let spelled = 0..4;
        for (log, allowed, line) in [
            (&b""[..], "x", None),
            (b"done\r\n", "x", None),
            (b"done.\r\n---\n\n", "x", None),
            (b"done 1", "x", Some("done 1")),
            (b"done, but late\n", "x", Some("done, but late")),
            (b"done, but late\n", "^done", None),
            (b"===\nspi: no\n", "^spi: yes$", Some("spi: no")),
            (b"Running main() from ./src/gtest_main.cc\n 1 SKIPPED TEST(S)\n", "x", None),
            (b"*** Booting Zephyr OS build v3.7.0 ***\n", "x", None),
            (b"*** Booting failed ***\n", "x", Some("*** Booting failed ***")),
            (b"===\nspi: yes\nspi: no\n", "^spi: yes$", Some("spi: no")),
            (b"===\nspi: yes\nspi: yes", "^spi: yes$", None),
            (b"===\n\x1b[31mspi: no\x1b[0m", "^spi: no$", None),
            // The expected crash, and a longer line in it.
            (b"\n\n\ncrash\n", "x", None),
            (b"\n\n\ncrashed\n", "x", Some("crashed")),
        ] {
            let spelled = log.starts_with(b"done").then(|| spelled.clone());
            let text = found(log, spelled.as_slice(), allowed);
            assert_eq!(text.as_deref(), line, "{:?}", String::from_utf8_lossy(log));
        }
        // Bytes that are no text, and text with a bit of parity.
        assert!(found(b"========\n\xff\xfe\n", &[], "^x$").is_some());
        let even: Vec<u8> = b"========\nspi: WRONG\n"
            .iter()
            .map(|b| b | u8::from(b.count_ones() % 2 == 1) << 7)
            .collect();
        assert!(found(&even, &[], "^x$").is_some());
    }
}
