//! From the spans of an emulator's trace to the lines that each test executed. Pure.
//!
//! # Design
//! A test is the function of its name, and nothing that is printed decides where it begins: output may
//! be late, or forged. A test begins with the span in which its function is entered for the first time.
//! It ends where the next test begins, or where its caller goes on with code that is new. A test that
//! the compiler has put into its caller begins no span, and is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use jig_drivers::qemu::TraceSpan;
use jig_model::coverage::TestLines;

use crate::Symbols;
use crate::debug_info::LineRow;

/// Finds out which lines tests executed. `rows` are those of the image's code, with the paths that are
/// to be told. The last entry is what was executed behind them, from the last
/// call of what has called the tests.
pub(crate) fn test_lines(
    symbols: &Symbols,
    rows: &[LineRow],
    spans: &[TraceSpan],
    tests: &[&str],
) -> Vec<TestLines> {
    if spans.is_empty() {
        return Vec::new();
    }
    let function = |address: u64| symbols.function_start(address);
    let mut starts = BTreeMap::new();
    for test in tests {
        let entries = symbols.entries_of(&names(test));
        // Two functions that it could be are none.
        let &[entry] = &*entries else { continue };
        let begin = spans.iter().position(|span| span.first == entry);
        starts.extend(begin.map(|begin| (begin, *test)));
    }
    let periods = periods(spans, &starts, function);
    let lines = |(name, period): (Option<&str>, Range<usize>)| TestLines {
        name: name.map(str::to_owned),
        files: executed(rows, &spans[period]),
    };
    periods.into_iter().map(lines).collect()
}

/// Lists which functions a test may be: that of its own name, or with its suite in front.
fn names(test: &str) -> Vec<String> {
    let last = test.rsplit("::").next().unwrap_or(test);
    let mut names = vec![test.to_owned(), last.to_owned(), test.replace("::", "_")];
    names.dedup();
    names
}

/// Says which spans belong to which test. `starts` has the number of the span that begins each.
fn periods<'t>(
    spans: &[TraceSpan],
    starts: &BTreeMap<usize, &'t str>,
    function: impl Fn(u64) -> Option<u64>,
) -> Vec<(Option<&'t str>, Range<usize>)> {
    let mut periods = Vec::new();
    let mut behind = 0;
    let mut callers = BTreeSet::new();
    for (&begin, &test) in starts {
        let next = starts.range(begin + 1..).next().map_or(spans.len(), |(&next, _)| next);
        let caller = spans[begin].before.and_then(&function);
        callers.extend(caller);
        let returns = |number: &usize| caller.is_some() && function(spans[*number].first) == caller;
        let end = (begin + 1..next).find(returns).unwrap_or(next);
        periods.push((Some(test), begin..end));
        behind = end;
    }
    // A test that has not come to its end has no result and no name: it is what the caller of the others
    // has called last.
    let is_call = |number: &usize| {
        let span = &spans[*number];
        let caller = span.before.and_then(&function);
        function(span.first) == Some(span.first)
            && caller.is_some_and(|caller| callers.contains(&caller))
    };
    let begin = (behind..spans.len()).rev().find(is_call).unwrap_or(behind);
    periods.push((None, begin..spans.len()));
    periods
}

/// Lists the lines of which spans have executed something, by file.
fn executed(rows: &[LineRow], spans: &[TraceSpan]) -> BTreeMap<String, Vec<u32>> {
    let all: BTreeSet<_> = spans
        .iter()
        .flat_map(|span| span.blocks.iter().map(|block| (block.start, block.end)))
        .collect();
    let mut blocks: Vec<Range<u64>> = Vec::new();
    for (start, end) in all {
        match blocks.last_mut() {
            Some(last) if last.end >= start => last.end = last.end.max(end),
            _ => blocks.push(start..end),
        }
    }
    let mut files: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for row in rows {
        let from = blocks.partition_point(|block| block.end <= row.start);
        if blocks.get(from).is_some_and(|block| block.start < row.end) {
            files.entry(&row.file).or_default().insert(row.line);
        }
    }
    let lines =
        |(file, lines): (&str, BTreeSet<u32>)| (file.to_owned(), lines.into_iter().collect());
    files.into_iter().map(lines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Functions of 16 bytes: a runner at 0, tests at 16 and 32, the library at 48.
    fn function(address: u64) -> Option<u64> {
        Some(address / 16 * 16)
    }

    fn span(first: u64, before: u64, blocks: &[u64]) -> TraceSpan {
        let blocks = blocks.iter().map(|&at| at..at + 4).collect();
        TraceSpan { first, before: Some(before), blocks }
    }

    #[test]
    fn a_test_lasts_from_its_entry_to_its_return_or_the_next_test() {
        let spans = [
            span(0, 64, &[0]),
            span(16, 0, &[16]),
            span(48, 16, &[48]),
            span(20, 48, &[20]),
            span(4, 20, &[4]),
            span(32, 4, &[32, 48]),
            span(36, 48, &[4, 36]),
            span(8, 4, &[8]),
        ];
        let starts = BTreeMap::from([(1, "a"), (5, "b")]);
        let found = periods(&spans, &starts, function);
        assert_eq!(found, [(Some("a"), 1..4), (Some("b"), 5..7), (None, 7..8)]);
        // The last test prints its result by 80, and 96 is called last.
        let unfinished = [span(80, 8, &[80]), span(12, 80, &[12]), span(96, 12, &[96, 48])];
        let longer = [&spans[..], &unfinished].concat();
        assert_eq!(periods(&longer, &starts, function)[2], (None, 10..11));
        // Without functions the next test ends a test.
        let found = periods(&spans, &starts, |_| None);
        assert_eq!(found, [(Some("a"), 1..5), (Some("b"), 5..8), (None, 8..8)]);
        assert_eq!(periods(&spans, &BTreeMap::new(), function), [(None, 0..8)]);
    }

    #[test]
    fn lines_are_executed_of_which_any_instruction_is() {
        let row = |start, line| LineRow { start, end: start + 4, file: "a.c".to_owned(), line };
        let rows = [row(0, 1), row(4, 2), row(8, 3), row(12, 2), row(16, 4)];
        let spans = [span(2, 0, &[2]), span(10, 2, &[10, 11])];
        assert_eq!(executed(&rows, &spans)["a.c"], [1, 2, 3]);
        assert!(executed(&rows, &spans[..0]).is_empty());
    }

    #[test]
    fn a_test_is_the_function_of_its_name_or_that_with_its_suite() {
        assert_eq!(names("test_a"), ["test_a"]);
        assert_eq!(names("ring::test_a"), ["ring::test_a", "test_a", "ring_test_a"]);
    }
}
