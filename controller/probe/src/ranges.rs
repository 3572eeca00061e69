//! Ranges of addresses: joined, and compared with memory that was read.

use std::ops::Range;

use crate::CoreSnapshot;

/// Sorts ranges and joins those that touch.
pub(crate) fn merged(ranges: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = ranges.filter(|range| range.start < range.end).collect();
    ranges.sort_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// What a snapshot has of the memory that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotCoverage {
    /// How many of the bytes asked for it has.
    pub read: u64,
    /// The addresses asked for that it lacks, in ascending order.
    pub unreadable: Vec<Range<u64>>,
}

impl SnapshotCoverage {
    /// Compares a snapshot with what was asked for. An address that was asked for twice counts
    /// once.
    pub fn of(snapshot: &CoreSnapshot, wanted: &[Range<u64>]) -> Self {
        let wanted = merged(wanted.iter().cloned());
        let length = |ranges: &[Range<u64>]| -> u64 {
            ranges.iter().map(|range| range.end - range.start).sum()
        };
        let asked = length(&wanted);
        let unreadable = snapshot.memory.iter().fold(wanted, |left, have| {
            let (start, end) = (have.start, have.end());
            let beside = |range: Range<u64>| {
                [range.start..range.end.min(start), range.start.max(end)..range.end]
            };
            left.into_iter().flat_map(beside).filter(|range| range.start < range.end).collect()
        });
        Self { read: asked - length(&unreadable), unreadable }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CoreKind, MemoryRange};

    #[test]
    fn ranges_that_touch_become_one() {
        let ranges = [8..9, 0..4, 4..6, 2..3, 7..7];
        assert_eq!(merged(ranges.into_iter()), [0..6, 8..9]);
    }

    #[test]
    fn memory_that_was_read_is_told_from_memory_that_was_not() {
        let memory = [(0x10, 0x10), (0x30, 4), (0xe000_ed00, 0x40)];
        let memory = memory.map(|(start, len)| MemoryRange { start, bytes: vec![0; len] });
        let snapshot =
            CoreSnapshot { kind: CoreKind::Armv6m, registers: vec![], memory: memory.into() };
        let of = |wanted: &[Range<u64>]| {
            let SnapshotCoverage { read, unreadable } = SnapshotCoverage::of(&snapshot, wanted);
            (read, unreadable)
        };
        assert_eq!(of(&[0x10..0x20, 0x30..0x34, 0x30..0x34]), (0x14, vec![]));
        assert_eq!(of(&[0x18..0x32, 0x20..0x24, 0x33..0x35]), (11, vec![0x20..0x30, 0x34..0x35]));
        let holes = vec![0..0x10, 0x20..0x30, 0x34..0x40, 0x100..0x108];
        assert_eq!(of(&[0x100..0x108, 0..0x40]), (20, holes));
        assert_eq!(of(&[]), (0, vec![]));
    }
}
