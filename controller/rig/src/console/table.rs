//! What tables have in common, whatever their head says: cells, and names of columns. Pure.

use super::words::listed;

/// Most other lines between the rows of a table.
pub(super) const APART: usize = 3;

/// Tells whether a column of this name holds verdicts, and no measured results.
pub(super) fn holds_verdicts(name: &str) -> bool {
    listed("verdict outcome judgement judgment", name)
}

/// What stands between the cells of a row.
#[derive(Debug, Clone, Copy)]
pub(super) enum Separator {
    /// A bar, also one of the characters that draw boxes.
    Bar,
    Char(char),
    /// Two blanks or more.
    Blanks,
    /// Any blanks: no cell holds two words.
    Words,
}

impl Separator {
    /// Returns the one that a head has; nothing if it may consist of single words.
    pub(super) fn of(head: &str) -> Option<Self> {
        if head.contains(is_bar) {
            return Some(Self::Bar);
        }
        let char = [';', '\t', ','].into_iter().find(|c| head.contains(*c)).map(Self::Char);
        char.or_else(|| head.contains("  ").then_some(Self::Blanks))
    }

    /// Cuts a row into its cells, without the marks of Markdown and without quotes.
    pub(super) fn cells(self, text: &str) -> Vec<&str> {
        let text = text.trim();
        let cells: Vec<&str> = match self {
            Self::Bar => text.trim_matches(is_bar).split(is_bar).collect(),
            Self::Char(c) => text.split(c).collect(),
            Self::Blanks => text.split("  ").filter(|cell| !cell.trim().is_empty()).collect(),
            Self::Words => text.split_whitespace().collect(),
        };
        cells.into_iter().map(|cell| cell.trim().trim_matches(['*', '_', '"'])).collect()
    }
}

fn is_bar(c: char) -> bool {
    matches!(c, '|' | '\u{2502}' | '\u{2503}' | '\u{2551}')
}
