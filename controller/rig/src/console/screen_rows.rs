//! What a terminal has shown of a line that writes over its own text. Pure.
//!
//! # Design
//! `flash: FAIL`, four columns back, `PASS`: a reader who looks later sees a pass, and the failure was
//! printed all the same. So each state of a row is evidence: it is copied before a character of it is
//! lost. What stands on the screen then is one state more, in which letters that were printed apart
//! stand together: `failed: 0`, one column back, `1`.
//!
//! Each state knows which bytes have printed it, so that a text in it is found in the log.
//!
//! Columns are counted from the start of the line. Rows are known by their number, and for the length
//! of a line of the log: a dashboard that is drawn again has no line ends.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use super::lines::{control_sequence, in_seven_bits, sequence_len};

/// Characters around the cursor that are copied: more than a row of a terminal, and few enough that a
/// row of some megabytes with an indicator of progress stays cheap.
const AROUND: usize = 160;

/// Farthest column; what is farther right is no terminal.
const COLUMNS: usize = 1 << 20;

/// Farthest column to which a movement leads over columns without text.
const LEAP: usize = 512;

/// Longest row whose characters are shifted.
const SHIFTED: usize = 4 << 10;

/// Most rows that are remembered.
const ROWS: usize = 64;

/// States that are compared with a new one: an indicator of progress has some four.
const RECENT: usize = 8;

/// A column without text.
const EMPTY: char = '\0';

/// Returns all states of the rows that a line has shown, each in a row of its own; nothing if no text
/// was lost.
pub(super) fn overprinted(bytes: &[u8]) -> Option<String> {
    let spelled = in_seven_bits(bytes);
    let bytes = spelled.as_deref().unwrap_or(bytes);
    memchr::memchr2(0x1b, 0x08, bytes)?;
    let screen = ScreenRows::of(bytes);
    let rows = screen.shown.iter().flat_map(|row| [row.text.as_str(), "\n"]);
    screen.lost.then(|| rows.collect())
}

/// Returns all states of the rows that a line has shown.
pub(super) fn rows_of(bytes: &[u8]) -> Vec<RowState> {
    ScreenRows::of(bytes).shown
}

/// What stood in a row, or the part of it around the cursor.
#[derive(Debug, Default)]
pub(super) struct RowState {
    pub(super) text: String,
    /// Which byte of the line each byte of the text was printed by.
    pub(super) printed_by: Vec<usize>,
    /// Whether the text begins and ends with the row.
    pub(super) begins: bool,
    pub(super) ends: bool,
}

/// A column of a row.
#[derive(Debug, Clone, Copy)]
struct Cell {
    c: char,
    /// Index of its byte in the line.
    at: usize,
}

#[derive(Debug, Default)]
struct ScreenRows {
    cells: Vec<Cell>,
    cursor: usize,
    /// Up to where the row is copied, since the cursor was moved.
    copied_to: usize,
    /// The columns of the row that were changed since it was shown.
    changed: Range<usize>,
    /// The row, if it is known, and the others.
    row: Option<usize>,
    others: HashMap<usize, Vec<Cell>>,
    saved: Option<(Option<usize>, usize)>,
    recent: VecDeque<String>,
    /// Whether any text was lost.
    lost: bool,
    shown: Vec<RowState>,
}

impl ScreenRows {
    fn of(line: &[u8]) -> Self {
        let mut screen = Self::default();
        let mut from = 0;
        while let Some(len) = memchr::memchr2(0x1b, 0x08, &line[from..]) {
            let at = from + len;
            screen.print(&line[from..at], from);
            let control = &line[at..];
            let len = if control[0] == 0x1b { sequence_len(control).min(control.len()) } else { 1 };
            from = at + len.max(1);
            screen.obey(&line[at..from]);
        }
        screen.print(&line[from..], from);
        screen.show();
        screen
    }

    /// Prints text that begins at an index of the line.
    fn print(&mut self, text: &[u8], mut at: usize) {
        for chunk in text.utf8_chunks() {
            let valid = chunk.valid();
            valid.char_indices().for_each(|(index, c)| self.print_char(Cell { c, at: at + index }));
            at += valid.len();
            if !chunk.invalid().is_empty() {
                self.put(Cell { c: char::REPLACEMENT_CHARACTER, at });
                at += chunk.invalid().len();
            }
        }
    }

    fn print_char(&mut self, cell: Cell) {
        match cell.c {
            '\t' => self.go_to((self.cursor / 8 + 1) * 8),
            '\u{b}' | '\u{c}' => self.go_to_row(self.row.map(|row| row + 1), self.cursor),
            c if c.is_control() => {}
            _ => self.put(cell),
        }
    }

    fn put(&mut self, cell: Cell) {
        if self.cursor >= COLUMNS {
            return;
        }
        if let Some(&old) = self.cells.get(self.cursor) {
            if old.c != cell.c {
                self.keep(self.cursor..self.cursor + 1);
                self.cells[self.cursor] = cell;
                self.change(self.cursor);
            }
        } else {
            let end = self.cursor.min(self.cells.len() + LEAP);
            self.cells.resize(end, Cell { c: EMPTY, ..cell });
            self.cells.push(cell);
            self.cursor = end;
            self.change(end);
        }
        self.cursor += 1;
    }

    /// Copies the row, unless nothing that is seen stands in a range that is about to be lost, or it is
    /// copied.
    fn keep(&mut self, range: Range<usize>) {
        let ink = |cell: &Cell| !matches!(cell.c, ' ' | EMPTY | '_');
        let end = range.end.min(self.cells.len());
        let Some(lost) = self.cells.get(range.start..end) else { return };
        if !lost.iter().any(ink) || end <= self.copied_to {
            return;
        }
        self.lost = true;
        self.copied_to = (end + AROUND).min(self.cells.len());
        let state = self.state_around(range.start..end);
        if self.recent.contains(&state.text) {
            return;
        }
        self.recent.push_back(state.text.clone());
        self.shown.push(state);
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
    }

    fn state_around(&self, range: Range<usize>) -> RowState {
        let to = (range.end + AROUND).min(self.cells.len());
        let from = range.start.saturating_sub(AROUND).min(to);
        let ends = to == self.cells.len();
        RowState { begins: from == 0, ends, ..state_of(&self.cells[from..to]) }
    }

    /// Notes that a column has another character.
    fn change(&mut self, column: usize) {
        self.changed = match self.changed.is_empty() {
            true => column..column + 1,
            false => self.changed.start.min(column)..self.changed.end.max(column + 1),
        };
    }

    fn go_to(&mut self, column: usize) {
        (self.cursor, self.copied_to) = (column.min(COLUMNS), 0);
        let near = self.changed.start.saturating_sub(AROUND)..=self.changed.end + AROUND;
        if !near.contains(&self.cursor) {
            self.show();
        }
    }

    fn erase(&mut self, range: Range<usize>) {
        let end = range.end.min(self.cells.len());
        self.keep(range.start..end);
        if end == self.cells.len() {
            self.cells.truncate(range.start);
        } else if let Some(cells) = self.cells.get_mut(range.start..end) {
            cells.iter_mut().for_each(|cell| cell.c = EMPTY);
        }
        self.change(range.start);
    }

    /// Shows what is new in the row.
    fn show(&mut self) {
        let changed = std::mem::take(&mut self.changed);
        if changed.is_empty() {
            return;
        }
        let state = self.state_around(changed);
        if !(state.text.is_empty() || self.recent.contains(&state.text)) {
            self.shown.push(state);
        }
    }

    fn go_to_row(&mut self, row: Option<usize>, column: usize) {
        if row.is_none() || row != self.row {
            self.show();
            let cells = std::mem::take(&mut self.cells);
            if let Some(left) = self.row.filter(|_| self.others.len() < ROWS) {
                self.others.insert(left, cells);
            }
            self.row = row;
            self.cells = row.and_then(|row| self.others.remove(&row)).unwrap_or_default();
        }
        self.go_to(column);
    }

    /// Carries a control sequence out.
    fn obey(&mut self, sequence: &[u8]) {
        let below = self.row.map(|row| row + 1);
        let above = self.row.and_then(|row| row.checked_sub(1));
        let Some((parameters, last)) = control_sequence(sequence) else {
            match sequence {
                [0x08] => self.go_to(self.cursor.saturating_sub(1)),
                [0x1b, b'7'] => self.saved = Some((self.row, self.cursor)),
                [0x1b, b'8'] => self.restore(),
                [0x1b, b'D'] => self.go_to_row(below, self.cursor),
                [0x1b, b'E'] => self.go_to_row(below, 0),
                [0x1b, b'M'] => self.go_to_row(above, self.cursor),
                [0x1b, b'c'] => {
                    self.others.clear();
                    self.go_to_row(None, 0);
                }
                _ => {}
            }
            return;
        };
        let numbers: Vec<Option<usize>> = parameters
            .split(|&b| b == b';')
            .map(|digits| std::str::from_utf8(digits).ok().and_then(|n| n.parse().ok()))
            .collect();
        let number = |at: usize| numbers.get(at).copied().flatten();
        let count = number(0).unwrap_or(1).clamp(1, COLUMNS);
        let (row, end) = (self.row, self.cells.len());
        match last {
            b'C' | b'a' => self.go_to(self.cursor + count),
            b'D' => self.go_to(self.cursor.saturating_sub(count)),
            b'G' | b'`' => self.go_to(count - 1),
            b'I' => self.go_to((self.cursor / 8 + count) * 8),
            b'Z' => self.go_to((self.cursor.saturating_sub(1) / 8 + 1).saturating_sub(count) * 8),
            b'A' => self.go_to_row(row.and_then(|row| row.checked_sub(count)), self.cursor),
            b'F' => self.go_to_row(row.and_then(|row| row.checked_sub(count)), 0),
            b'B' | b'e' => self.go_to_row(row.map(|row| row + count), self.cursor),
            b'E' => self.go_to_row(row.map(|row| row + count), 0),
            b'L' | b'M' => self.go_to_row(None, 0),
            b'H' | b'f' => {
                self.go_to_row(Some(count), number(1).unwrap_or(1).clamp(1, COLUMNS) - 1);
            }
            b'd' => self.go_to_row(Some(count), self.cursor),
            b's' if parameters.is_empty() => self.saved = Some((self.row, self.cursor)),
            b'u' if parameters.is_empty() => self.restore(),
            b'K' | b'J' => match number(0).unwrap_or(0) {
                0 => self.erase(self.cursor.min(end)..end),
                1 => self.erase(0..(self.cursor + 1).min(end)),
                _ => self.erase(0..end),
            },
            b'X' => self.erase(self.cursor.min(end)..(self.cursor + count).min(end)),
            b'P' if self.cursor < end && end <= SHIFTED => {
                let gone = self.cursor..(self.cursor + count).min(end);
                self.keep(gone.clone());
                self.change(gone.start);
                self.cells.drain(gone);
            }
            b'@' if self.cursor < end && end <= SHIFTED => {
                let blank = Cell { c: ' ', ..self.cells[self.cursor] };
                let blanks = std::iter::repeat_n(blank, count.min(LEAP));
                self.cells.splice(self.cursor..self.cursor, blanks);
                self.change(self.cursor);
            }
            _ => {}
        }
    }

    fn restore(&mut self) {
        let (row, column) = self.saved.unwrap_or_default();
        // Of a row without a number it is unknown whether it is this one.
        if self.saved.is_some() && row == self.row {
            self.go_to(column);
        } else {
            self.go_to_row(row, column);
        }
    }
}

/// Returns the text of a row, with one blank where columns have none.
fn state_of(cells: &[Cell]) -> RowState {
    let mut text = String::with_capacity(cells.len());
    let mut printed_by = Vec::with_capacity(cells.len());
    for &Cell { c, at } in cells {
        let c = match c {
            EMPTY if text.is_empty() || text.ends_with(' ') => continue,
            EMPTY => ' ',
            c => c,
        };
        text.push(c);
        printed_by.extend(at..at + c.len_utf8());
    }
    text.truncate(text.trim_end().len());
    printed_by.truncate(text.len());
    RowState { text, printed_by, ..RowState::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_of_a_row_is_kept() {
        for (bytes, rows) in [
            ("flash: FAIL\x1b[4DPASS", "flash: FAIL\nflash: PASS\n"),
            ("flash: FAIL\x08\x08\x08\x08PASS", "flash: FAIL\nflash: PASS\n"),
            ("flash: FAIL\x1b[8GPASS", "flash: FAIL\nflash: PASS\n"),
            ("flash: \x1b7FAIL\x1b8PASS", "flash: FAIL\nflash: PASS\n"),
            ("flash: \x1b[sFAIL\x1b[uPASS", "flash: FAIL\nflash: PASS\n"),
            ("flash: FAIL\x1b[4D\x1b[4XPASS", "flash: FAIL\nflash: PASS\n"),
            ("flash: FAIL\x1b[4D\x1b[K", "flash: FAIL\nflash:\n"),
            ("flash: FAIL\x1b[4D\x1b[4P", "flash: FAIL\nflash:\n"),
            ("flash: FAIL\x1b[2K\x1b[Gok", "flash: FAIL\nok\n"),
            (
                "\x1b[3;1Hflash: FAIL\x1b[4;1Hram\x1b[3;8HPASS",
                "flash: FAIL\nram\nflash: FAIL\nflash: PASS\n",
            ),
            ("\x1b[3;1Hfailed: 0\x1b[9;1Hram\x1b[3;9H1", "failed: 0\nram\nfailed: 0\nfailed: 1\n"),
            ("failed: 0\x081", "failed: 0\nfailed: 1\n"),
            ("failed: 0\u{9b}1D1", "failed: 0\nfailed: 1\n"),
            ("wait |\x08/\x08-\x08|\x08/", "wait |\nwait /\nwait -\n"),
            ("a\tFAIL\x1b[9GPASS", "a FAIL\na PASS\n"),
        ] {
            let bytes: Vec<u8> = bytes.chars().map(|c| c as u8).collect();
            assert_eq!(overprinted(&bytes).as_deref(), Some(rows), "{bytes:?}");
        }
    }

    #[test]
    fn nothing_is_lost_where_only_blanks_or_equal_letters_are_written_over() {
        for bytes in [
            "\x1b[32mok\x1b[0m\x1b[K",
            "[    ] flash\x1b[11D ok ",
            "\x1b[5;1Hflash\x1b[5;40Hok",
            "P\x08PA\x08AS\x08SS\x08S",
            "_\x08F_\x08A_\x08I_\x08L",
            "\x1b[2J\x1b[Hok",
            "ok",
        ] {
            assert_eq!(overprinted(bytes.as_bytes()), None, "{bytes:?}");
        }
    }

    #[test]
    fn a_long_row_costs_a_bounded_part_of_itself_for_each_movement() {
        let line = ["x".repeat(100_000), "0\x081\x08".repeat(1000)].concat();
        assert!(overprinted(line.as_bytes()).unwrap().len() < 300_000);
        let line = "0\x1b[99999999C1".repeat(1000);
        assert_eq!(overprinted(line.as_bytes()), None);
        // One row that is left and entered again, with another character each time.
        let turns = (0..1000).map(|n| format!("\x1b[1;{}Hy\x1b[2;1H", n * 90 + 1));
        let line = ["\x1b[1;1H".to_owned(), "x".repeat(100_000)].into_iter().chain(turns);
        let line: String = line.collect();
        assert!(overprinted(line.as_bytes()).unwrap().len() < 1_000_000);
    }
}
