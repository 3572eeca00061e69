//! Which blocks of code a core executes, in spans of time. Pure.
//!
//! # Design
//! With `-d in_asm,exec,nochain` QEMU lists a block of instructions before it is entered for the first
//! time, and then writes a line for each time that it is entered. A new span begins where a block is
//! entered for the first time. A function that is called once per boot, such as a test, is a new block,
//! so its call begins a span, and its return begins another one or ends in the next test. What is kept
//! is a set of blocks for each span, however often each ran.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Most blocks that are kept, summed over all spans. An image of the fixtures has some hundred, a span
/// of a test some ten.
const MAX_BLOCKS: usize = 8 << 20;

/// How the line of a block that is entered begins.
const ENTERED: &[u8] = b"Trace ";

/// How the line in front of the instructions of a block begins.
const LISTED: &[u8] = b"IN:";

/// What was executed from where a block was entered for the first time to the next such block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceSpan {
    /// First instruction of the block that was new.
    pub first: u64,
    /// First instruction of the block that was executed in front of it.
    pub before: Option<u64>,
    /// Addresses of the blocks that were executed, in ascending order.
    pub blocks: Vec<Range<u64>>,
}

/// Collects the spans of the first boot of a launch.
#[derive(Debug, Default)]
pub(super) struct BlockTrace {
    /// The instructions that were listed last.
    listed: Option<Range<u32>>,
    /// Where each known block ends.
    ends: HashMap<u32, u32>,
    spans: Vec<OpenSpan>,
    last: Option<u32>,
    kept: usize,
    truncated: bool,
    ended: bool,
}

#[derive(Debug)]
struct OpenSpan {
    first: u32,
    before: Option<u32>,
    blocks: HashSet<u32>,
}

impl BlockTrace {
    /// Takes in an instruction that is listed.
    pub(super) fn listed(&mut self, at: u32, len: u8) {
        let end = at.saturating_add(u32::from(len));
        match &mut self.listed {
            Some(block) if block.end == at => block.end = end,
            block => *block = Some(at..end),
        }
    }

    /// Takes in a line; tells whether it says that a block is entered. `is_left_out` says that the block
    /// is not to count.
    pub(super) fn take(&mut self, line: &[u8], is_left_out: bool) -> bool {
        if line.starts_with(LISTED) {
            self.listed = None;
        }
        if !line.starts_with(ENTERED) {
            return false;
        }
        if let Some(at) = entered(line).filter(|_| !self.ended && !is_left_out) {
            self.enter(at);
        }
        true
    }

    fn enter(&mut self, at: u32) {
        let before = self.last.replace(at);
        let listed = self.listed.take().filter(|block| block.start == at);
        let is_new = listed.is_some_and(|block| self.ends.insert(at, block.end).is_none());
        // Most lines are those of a loop over one block.
        if before == Some(at) && !is_new {
            return;
        }
        self.truncated |= self.kept >= MAX_BLOCKS;
        if self.truncated {
            return;
        }
        if is_new {
            self.spans.push(OpenSpan { first: at, before, blocks: HashSet::new() });
        }
        if let Some(span) = self.spans.last_mut() {
            self.kept += usize::from(span.blocks.insert(at));
        }
    }

    /// Ends the trace where the core was reset: tests of the next boot would be taken for parts of the
    /// last test of this one.
    pub(super) fn reset(&mut self) {
        self.ended |= !self.spans.is_empty();
    }

    /// Returns the spans in their order, and whether something was left out.
    pub(super) fn spans(&self) -> (Vec<TraceSpan>, bool) {
        let span = |span: &OpenSpan| {
            let range = |at: &u32| Some(u64::from(*at)..u64::from(*self.ends.get(at)?));
            let mut blocks: Vec<_> = span.blocks.iter().filter_map(range).collect();
            blocks.sort_unstable_by_key(|block| block.start);
            let (first, before) = (span.first.into(), span.before.map(u64::from));
            TraceSpan { first, before, blocks }
        };
        (self.spans.iter().map(span).collect(), self.truncated)
    }
}

/// Reads the address of `Trace 0: 0x7f60a4000100 [00800400/00000334/00000110/ff000200] reset_handler`.
fn entered(line: &[u8]) -> Option<u32> {
    let open = line.iter().take(48).position(|&byte| byte == b'[')?;
    let fields = line[open + 1..].split(|&byte| byte == b'/').nth(1)?;
    let digits = str::from_utf8(fields).ok().filter(|text| (8..=16).contains(&text.len()))?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(digits, 16).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(at: u32) -> Vec<u8> {
        format!("Trace 0: 0x7f60a4000100 [00800400/{at:08x}/00000110/ff000200] name").into_bytes()
    }

    /// Enters blocks of four bytes; those that are new are listed in front.
    fn trace(entered: &[u32]) -> BlockTrace {
        let mut trace = BlockTrace::default();
        let mut known = HashSet::new();
        for &at in entered {
            if known.insert(at) {
                trace.listed(at, 2);
                trace.listed(at + 2, 2);
            }
            assert!(trace.take(&line(at), false));
        }
        trace
    }

    fn spans(entered: &[u32]) -> Vec<(u64, Option<u64>, Vec<u64>)> {
        let all = trace(entered).spans().0.into_iter();
        all.map(|one| (one.first, one.before, one.blocks.iter().map(|b| b.start).collect()))
            .collect()
    }

    #[test]
    fn a_span_begins_where_a_block_is_new() {
        // The runner at 0 calls the tests at 16 and 32, which both call 48.
        assert_eq!(
            spans(&[0, 16, 48, 48, 20, 4, 32, 48, 36, 4, 8]),
            [
                (0, None, vec![0]),
                (16, Some(0), vec![16]),
                (48, Some(16), vec![48]),
                (20, Some(48), vec![20]),
                (4, Some(20), vec![4]),
                (32, Some(4), vec![32, 48]),
                (36, Some(48), vec![4, 36]),
                (8, Some(4), vec![8]),
            ]
        );
        assert_eq!(trace(&[16]).spans().0[0].blocks[0], 16..20);
    }

    #[test]
    fn a_loop_over_one_block_that_ends_in_the_next_span_counts_in_both() {
        assert_eq!(
            spans(&[0, 4, 4, 8, 4, 4]),
            [(0, None, vec![0]), (4, Some(0), vec![4]), (8, Some(4), vec![4, 8])]
        );
    }

    #[test]
    fn the_trace_ends_with_the_first_boot() {
        let mut both = trace(&[0, 16]);
        both.reset();
        both.listed(32, 2);
        both.take(&line(32), false);
        both.take(&line(0), false);
        assert_eq!(both.spans(), trace(&[0, 16]).spans());
        let mut both = trace(&[0, 16]);
        both.listed(32, 2);
        assert!(both.take(&line(32), true), "it is executed by the handler of a fault");
        assert_eq!(both.spans(), trace(&[0, 16]).spans());
        let mut begun = BlockTrace::default();
        begun.reset();
        begun.listed(0, 2);
        begun.take(&line(0), false);
        assert_eq!(begun.spans().0.len(), 1);
    }

    #[test]
    fn lines_of_blocks_are_read_and_others_are_not() {
        for (line, read) in [
            ("Trace 0: 0x7f60a4000100 [00800400/00000334/00000110/ff000200] main", Some(0x334)),
            ("Trace 0: 0x7f [0000000000000000/0000000080000000/0/0] x", Some(0x8000_0000)),
            ("Trace 0: 0x7f [0/1000000080000000/0/0] x", None),
            ("Trace 0: 0x7f [0/+0000334/0/0] x", None),
            ("Trace 0: 0x7f", None),
            ("Trace ", None),
        ] {
            assert_eq!(entered(line.as_bytes()), read, "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(
            lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..8),
        ) {
            let mut trace = BlockTrace::default();
            for line in lines {
                trace.take(&line, false);
                trace.listed(u32::from(line.first().copied().unwrap_or(0)) << 24, 4);
                trace.take(&[ENTERED, &line].concat(), false);
            }
            trace.spans();
        }
    }
}
