//! Finds the failed row of a table by its head, which names columns of counts. Pure.
//!
//! # Design
//! By itself `spi 3 1 1` says nothing; below `suite pass fail skip` it has a failure. Columns are counted
//! from the right, because a name may consist of several words. Where all columns are known, the counts
//! have to amount to the column that counts all.

use super::log_prefix::texts;
use super::table::{APART, Separator};
use super::words::{listed, parsed_count};

/// Names of columns: what counts failures, what counts passes, and what the rows are.
const FAILURES: &str = "fail fails failed failures failing ko nok error errors";
const PASSES: &str = "pass passes passed passing";
const GOOD: &str = "ok good succeeded success";
pub(super) const ROWS: &str = "test tests testcase case suite module group check name unit";

/// Names of other columns of a table without names: `total pass fail`. What counts all counts the tests
/// that were skipped or does not.
const OTHERS: &str = "\
    total totals all run ran executed tests test cases skip skipped skips ignored ignore disabled \
    warn warnings";
const WHOLE: &str = "total totals all run ran executed tests test cases";
const SKIPPED: &str = "skip skipped skips ignored ignore disabled";
const WARNINGS: &str = "warn warnings";

/// Longest head.
const HEAD: usize = 144;

/// The head of a table with counts.
#[derive(Debug)]
pub(super) struct CountTable {
    separator: Separator,
    /// Columns, counted from the right, that hold counts, and those of them that count failures.
    counts: Vec<usize>,
    failures: Vec<usize>,
    /// Whether each row begins with its name.
    named: bool,
    /// How many columns there are, if each is a count.
    only_counts: Option<usize>,
    /// The column that counts all, if there is one and each column but that of the names is a count.
    whole: Option<usize>,
    skipped: Vec<usize>,
}

impl CountTable {
    /// Reads a line as a head: `suite pass fail skip`.
    pub(super) fn of(text: &str) -> Option<Self> {
        let text = text.trim_ascii();
        if text.bytes().any(|b| b.is_ascii_digit()) || text.len() > HEAD {
            return None;
        }
        let separator = match Separator::of(text) {
            None | Some(Separator::Blanks) => Separator::Words,
            Some(separator) => separator,
        };
        let small = text.to_ascii_lowercase();
        let columns = columns(separator, &small);
        let of = |list: &str| -> Vec<usize> {
            (0..columns.len()).filter(|&at| listed(list, columns[columns.len() - 1 - at])).collect()
        };
        let (failures, passes, good) = (of(FAILURES), of(PASSES), of(GOOD));
        let rows = columns.first().is_some_and(|first| listed(ROWS, first));
        let totals = rows && columns.iter().any(|column| listed("tests total run cases", column));
        let counted = !passes.is_empty() || rows && !good.is_empty() || totals;
        let counts: Vec<usize> = [failures.clone(), passes, good].concat();
        let named = counts.iter().all(|&at| at + 1 < columns.len());
        let is_count = |column: &&str| {
            [FAILURES, PASSES, GOOD, OTHERS].iter().any(|list| listed(list, column))
        };
        let all_count = columns.iter().all(is_count);
        let only_counts = all_count.then_some(columns.len());
        let passed = !of(PASSES).is_empty() || !of(GOOD).is_empty();
        let known = columns.iter().skip(usize::from(named)).all(is_count);
        let (wholes, skipped) = (of(WHOLE), of(SKIPPED));
        let summed = passed && known && of(WARNINGS).is_empty();
        // `run pass fail`: it is the number of the run.
        let numbered = columns.first().is_some_and(|first| listed("run test", first));
        let whole = wholes.first().copied().filter(|_| summed && wholes.len() == 1 && !numbered);
        let head = Self { separator, counts, failures, named, only_counts, whole, skipped };
        (counted && (named || all_count) && !head.failures.is_empty()).then_some(head)
    }

    /// Returns how many lines behind the head the first row with a count of failures above zero stands.
    pub(super) fn failed_row(&self, rows: &[&str]) -> Option<usize> {
        let mut others = 0;
        for (at, line) in rows.iter().enumerate() {
            match texts(line, true).find_map(|text| self.failures_of(text)) {
                Some(0) => others = 0,
                Some(_) => return Some(at + 1),
                None if others == APART => return None,
                None => others += 1,
            }
        }
        None
    }

    /// Counts the failures of a row.
    fn failures_of(&self, text: &str) -> Option<u64> {
        let columns = columns(self.separator, text);
        let count = |from_right: &usize| {
            let column = columns.len().checked_sub(from_right + 1)?;
            parsed_count(columns.get(column)?)
        };
        let first = columns.first()?;
        let lettered = first.bytes().any(|b| b.is_ascii_alphabetic());
        let named = self.named && lettered && self.counts.iter().all(|at| count(at).is_some());
        let counts = self.only_counts == Some(columns.len())
            && columns.iter().all(|column| parsed_count(column).is_some());
        let sum = |columns: &[usize]| columns.iter().filter_map(count).sum::<u64>();
        let missing = || {
            let (whole, sum, skipped) =
                (self.whole.and_then(|at| count(&at))?, sum(&self.counts), sum(&self.skipped));
            Some(whole.abs_diff(sum).min(whole.abs_diff(sum + skipped)))
        };
        (named || counts).then(|| sum(&self.failures) + missing().unwrap_or_default())
    }
}

/// Cuts a row into its cells. A character that frames the row leaves empty ones at its ends.
fn columns(separator: Separator, text: &str) -> Vec<&str> {
    let mut cells = separator.cells(text);
    if !matches!(separator, Separator::Char(_)) {
        return cells;
    }
    while cells.pop_if(|cell| cell.is_empty()).is_some() {}
    let empty = cells.iter().take_while(|cell| cell.is_empty()).count();
    cells.split_off(empty)
}
