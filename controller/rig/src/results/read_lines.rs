//! The lines of a log that a report consists of.

use crate::console::lines::Span;

/// Most ranges kept, 1 MiB of them. A log in which more report lines alternate with other lines is
/// no report: its further lines count as not read.
const MOST: usize = 1 << 16;

/// Bytes of a line end.
const LINE_END: u64 = 2;

/// Which lines of a log were read as part of a report; neighbouring lines share a range.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadLines(Vec<(u64, u64)>);

impl ReadLines {
    /// Adds a line behind those that were added before.
    pub(super) fn add(&mut self, span: Span) {
        let full = self.0.len() >= MOST;
        match self.0.last_mut() {
            Some((_, end)) if span.start <= *end + LINE_END => *end = span.end.max(*end),
            _ if full => {}
            _ => self.0.push((span.start, span.end)),
        }
    }

    /// Adds the lines of a later boot.
    pub fn append(&mut self, later: Self) {
        let room = MOST.saturating_sub(self.0.len());
        self.0.extend(later.0.into_iter().take(room));
    }

    /// Returns where the first line that was read begins.
    pub fn begin(&self) -> Option<u64> {
        self.0.first().map(|&(first, _)| first)
    }

    /// Tells whether the line that begins at an offset was read.
    pub fn contains(&self, start: u64) -> bool {
        let behind = self.0.partition_point(|&(first, _)| first <= start);
        behind.checked_sub(1).is_some_and(|index| start < self.0[index].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_lines_share_a_range_and_others_stay_unread() {
        let mut lines = ReadLines::default();
        // Two lines with LF, one with CR LF, one that was not read, and one that was.
        for (start, end) in [(10, 14), (15, 20), (22, 30), (40, 44)] {
            lines.add(Span { start, end });
        }
        assert_eq!(lines.0, [(10, 30), (40, 44)]);
        for (start, read) in
            [(0, false), (10, true), (15, true), (22, true), (31, false), (40, true), (44, false)]
        {
            assert_eq!(lines.contains(start), read, "{start}");
        }
        assert_eq!((lines.begin(), ReadLines::default().begin()), (Some(10), None));
    }

    #[test]
    fn memory_is_bounded() {
        let mut lines = ReadLines::default();
        for start in (0..10 * MOST as u64).step_by(8) {
            lines.add(Span { start, end: start + 1 });
        }
        let mut later = lines.clone();
        later.append(lines);
        assert_eq!(later.0.len(), MOST);
    }
}
