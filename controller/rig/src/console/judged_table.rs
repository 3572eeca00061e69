//! Finds the failed row of a table by its head, which names what decides: limits of a measured value, a
//! column that says whether a row passed, or a column of verdicts. Pure.
//!
//! # Design
//! `+3V3  3.021 V  3.13 V  3.47 V` has no word of a failure, and neither has `icc_sleep,412,0,25,0`: what
//! the columns hold says the head alone. A value counts that has the unit of its limit, or where one of
//! them has none. Verdicts and flags count where another row has passed. A row that passes later under
//! the same name was tried again.

use super::log_prefix::texts;
use super::quantity::Quantity;
use super::table::{APART, Separator, holds_verdicts};
use super::words::listed;

/// Names of columns.
const MEASURED: &str = "meas measured measurement value actual reading";
const LOW: &str = "min minimum lo low lower lsl ll";
const HIGH: &str = "max maximum hi high upper usl ul";
const FLAGS: &str = "pass passed";
/// Names of columns that make a table one of counts.
const COUNTS: &str =
    "fail failed failures total tests run errors skip skipped ignored count rate pass% warn";

/// What the cells of such columns hold.
const SET: &str = "1 true yes y";
const CLEAR: &str = "0 false no n";
const PASSED: &str = "pass passed ok good";
const FAILED: &str = "no ng nok out high low bad over under reject rejected x";

/// Longest head.
const HEAD: usize = 160;

/// Text of which one stands in each head, unless a word of results does.
pub(super) const HINTS: &str = r"\b(?:meas(?:ured|urement)?|value|actual|reading)\b[^\r\n]*\b(?:min|max|lo|hi|low|high|lower|upper|[lu]sl|[lu]l|minimum|maximum)\b|\b(?:min|max|lo|hi|low|high|lower|upper|[lu]sl|[lu]l|minimum|maximum)\b[^\r\n]*\b(?:meas(?:ured|urement)?|value|actual|reading)\b|\b(?:verdict|outcome|judge?ment)\b";

/// The columns that decide.
#[derive(Debug, Clone, Copy)]
enum Judge {
    Limits { value: usize, low: Option<usize>, high: Option<usize> },
    Flag(usize),
    Verdict(usize),
}

/// The head of a table.
#[derive(Debug)]
pub(super) struct JudgedTable {
    separator: Separator,
    columns: usize,
    judge: Judge,
}

impl JudgedTable {
    /// Reads a line as a head.
    pub(super) fn of(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.len() > HEAD {
            return None;
        }
        let separator = Separator::of(text)?;
        let small = text.to_lowercase();
        let names: Vec<&str> = separator
            .cells(&small)
            .into_iter()
            .map(|cell| cell.split(['[', '(']).next().unwrap_or(cell).trim_end_matches(['.', ' ']))
            .collect();
        let lettered =
            |name: &&str| name.chars().any(char::is_alphabetic) || matches!(*name, "" | "#" | "%");
        if names.len() < 3 || !names.iter().all(lettered) {
            return None;
        }
        let sole = |is: &dyn Fn(&str) -> bool| {
            let mut found = (0..names.len()).filter(|&at| is(names[at]));
            found.next().filter(|_| found.next().is_none())
        };
        let only = |list: &str| sole(&|name| listed(list, name));
        let limits = || {
            let (low, high) = (only(LOW), only(HIGH));
            let value = only(MEASURED).filter(|_| low.is_some() || high.is_some())?;
            Some(Judge::Limits { value, low, high })
        };
        let counts = names.iter().any(|name| listed(COUNTS, name));
        let flag = || only(FLAGS).filter(|_| !counts).map(Judge::Flag);
        let judge = limits().or_else(|| sole(&holds_verdicts).map(Judge::Verdict)).or_else(flag)?;
        Some(Self { separator, columns: names.len(), judge })
    }

    /// Returns how many lines behind the head the first failed row stands.
    pub(super) fn failed_row(&self, behind: &[&str]) -> Option<usize> {
        let (mut rows, mut apart) = (Vec::new(), 0);
        for (at, line) in behind.iter().enumerate() {
            match texts(line, true).find_map(|text| self.row(text)) {
                Some((name, passed)) => {
                    rows.push((at + 1, name, passed));
                    apart = 0;
                }
                None => apart += 1,
            }
            if apart > APART {
                break;
            }
        }
        let alone = matches!(self.judge, Judge::Limits { .. });
        let passes_later = |row: usize, name: &[&str]| {
            rows.iter().any(|(at, other, passed)| *passed && *at > row && *other == name)
        };
        let proven = alone || rows.iter().any(|(_, _, passed)| *passed);
        let failed = rows.iter().find(|(at, name, passed)| !*passed && !passes_later(*at, name));
        failed.filter(|_| proven).map(|(at, ..)| *at)
    }

    /// Reads a row: its names, which are the cells in front of what decides that have letters, and
    /// whether it passed.
    fn row<'a>(&self, text: &'a str) -> Option<(Vec<&'a str>, bool)> {
        let cells = self.separator.cells(text);
        if cells.len() != self.columns {
            return None;
        }
        let passed = match self.judge {
            Judge::Limits { value, low, high } => {
                let value = Quantity::parse(cells[value])?;
                let limit = |at: Option<usize>| {
                    let limit = at.and_then(|at| Quantity::parse(cells[at]));
                    limit.filter(|limit| limit.is_comparable(&value))
                };
                let (low, high) = (limit(low), limit(high));
                if low.is_none() && high.is_none() {
                    return None;
                }
                low.is_none_or(|low| value.number >= low.number)
                    && high.is_none_or(|high| value.number <= high.number)
            }
            Judge::Flag(at) => flag(cells[at], SET, CLEAR)?,
            Judge::Verdict(at) => flag(cells[at], PASSED, FAILED)?,
        };
        let mut names = cells[..self.first_judged()].to_vec();
        names.retain(|cell| cell.chars().any(char::is_alphabetic));
        Some((names, passed))
    }

    /// Returns the first column that decides.
    fn first_judged(&self) -> usize {
        match self.judge {
            Judge::Limits { value, low, high } => {
                low.into_iter().chain(high).fold(value, usize::min)
            }
            Judge::Flag(at) | Judge::Verdict(at) => at,
        }
    }
}

fn flag(cell: &str, good: &str, bad: &str) -> Option<bool> {
    let small = cell.to_ascii_lowercase();
    let good = listed(good, &small);
    (good || listed(bad, &small)).then_some(good)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::candidate_lines::candidate;
    use super::super::result_lists::tests::failed as failed_row;
    use super::*;

    #[test]
    fn the_head_of_a_table_says_which_row_has_failed() {
        for (output, row) in [
            (
                "Rail      Meas      Min      Max / +1V2     1.203 V   1.14 V   1.26 V / +3V3     3.021 V   3.13 V   3.47 V / +5V0     5.012 V   4.75 V   5.25 V",
                "+3V3     3.021 V   3.13 V   3.47 V",
            ),
            (
                "step,name,value,unit,lo,hi,note / 1,vref,2.499,V,2.48,2.52, / 3,icc_sleep,412,uA,0,25,",
                "3,icc_sleep,412,uA,0,25,",
            ),
            (
                "| rail | measured [V] | max. [V] | / |---|---|---| / | 5v | 5,6 | 5,5 |",
                "| 5v | 5,6 | 5,5 |",
            ),
            ("step,name,pass / 1,vref,1 / 2,icc,0 / 3,temp,1", "2,icc,0"),
            (
                "no,value,unit,lo,hi / 1,2.499,V,2.48,2.52 / 2,3.02,V,3.13,3.47",
                "2,3.02,V,3.13,3.47",
            ),
            (
                "group,signal,value,min,max / ADC,ch0,3.1,3.0,3.4 / ADC,ch1,2.9,3.0,3.4",
                "ADC,ch1,2.9,3.0,3.4",
            ),
            (
                "| check | limit | verdict | / |---|---|---| / | boot | 800 ms | pass | / | irq | 10 us | **no** |",
                "| irq | 10 us | **no** |",
            ),
            (
                "│ rail │ min │ value │ / ├──────┼─────┼───────┤ / │ 3v3  │ 3.1 │ 2.9   │",
                "│ 3v3  │ 3.1 │ 2.9   │",
            ),
        ] {
            let output = output.replace(" / ", "\n");
            let head = output.lines().next().unwrap();
            assert!(candidate(head.as_bytes()).is_some(), "not searched: {head}");
            assert_eq!(failed_row(&output.replace('\n', " / ")), Some(row), "{output}");
        }
    }

    #[test]
    fn tables_of_statistics_and_of_counts_are_none() {
        for output in [
            "name  value  min  max / load  12 %  3 %  40 % / temp  25 C  20 C  31 C",
            "name  value  min  max / load  12 kB  3 MB  40 MB",
            "name  value  min  max / load  -  3  40",
            "suite,pass,fail / ring,0,0 / heap,1,0",
            "suite,pass,total / ring,0,0 / heap,1,1",
            "step,name,pass / 1,vref,0 / 2,icc,0",
            "step,name,pass / 1,vref,1 / 2,icc,0 / 2,icc,1",
            "a,value,max / retry,3,2 / retry,1,2",
            "name  value  max / heap  512  65,536",
            "min max value",
            "name  value  limit / vbat  3300  2800",
        ] {
            assert_eq!(failed_row(output), None, "{output}");
        }
    }

    proptest! {
        #[test]
        fn any_table_is_answered(head in "\\PC{0,60}", rows in prop::collection::vec("\\PC{0,40}", 0..6)) {
            let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
            if let Some(table) = JudgedTable::of(&head) {
                prop_assert!(table.failed_row(&rows).is_none_or(|row| row <= rows.len()));
            }
        }
    }
}
