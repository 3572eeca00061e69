//! Which lines and functions of a program were executed.
//!
//! Owns the document `coverage.json` of a run and its forms for other programs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

const FORMAT: &str = "jig-coverage";
const VERSION: u32 = 1;

/// Name of the document in the folder of a run.
pub const COVERAGE_FILE: &str = "coverage.json";

/// Name of the same in the format of lcov.
pub const LCOV_FILE: &str = "coverage.info";

/// What was executed of a program. Keys are stable: new ones may come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoverageReport {
    /// Always `jig-coverage`.
    pub format: String,
    /// Version of the format.
    pub version: u32,
    /// Whether everything that was executed is known. If not, a line that is not told as executed may
    /// have been.
    pub complete: bool,
    /// What is missing, in words.
    pub limits: Vec<String>,
    /// Source files that have code in the program, by their names.
    pub files: Vec<FileCoverage>,
    /// What each test executed, where that was measured: tests of the verdict that are known by the
    /// function of their name, in the order in which they ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<TestLines>,
}

/// The lines that a test executed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestLines {
    /// Its name in the verdict; `None` for what was executed behind the last of the tests.
    pub name: Option<String>,
    /// Numbers of lines by source file, each in ascending order.
    pub files: BTreeMap<String, Vec<u32>>,
}

/// What was executed of a source file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileCoverage {
    /// Its path as the compiler was given it, without `.` and `..` inside.
    pub file: String,
    /// Numbers of the lines that have code, in ascending order.
    pub lines: Vec<u32>,
    /// Those of them that were executed.
    pub executed: Vec<u32>,
    /// Functions with code, in the order of their lines.
    pub functions: Vec<FunctionCoverage>,
}

/// Whether a function was executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionCoverage {
    /// Its name.
    pub name: String,
    /// Its first line that has code.
    pub line: u32,
    /// Whether any of it was executed.
    pub executed: bool,
    /// Whether it has code of its own. The others are only part of functions that call them.
    pub own_code: bool,
    /// Whether it was executed only behind a fault of the core.
    pub after_fault: bool,
}

impl CoverageReport {
    /// Makes a report.
    pub fn new(files: Vec<FileCoverage>, limits: Vec<String>) -> Self {
        let complete = limits.is_empty();
        let tests = Vec::new();
        Self { format: FORMAT.to_owned(), version: VERSION, complete, limits, files, tests }
    }

    /// Joins what was executed of several programs.
    pub fn merge(&mut self, other: Self) {
        self.limits.extend(other.limits);
        self.complete &= other.complete;
        self.tests.extend(other.tests);
        let mut files: BTreeMap<_, _> = std::mem::take(&mut self.files)
            .into_iter()
            .map(|one| (one.file.clone(), one))
            .collect();
        for file in other.files {
            let empty = || FileCoverage { file: file.file.clone(), ..FileCoverage::default() };
            files.entry(file.file.clone()).or_insert_with(empty).merge(&file);
        }
        self.files = files.into_values().collect();
    }

    /// Counts the lines of all files: those that were executed, and all that have code.
    pub fn counts(&self) -> (usize, usize) {
        let each = self.files.iter().map(FileCoverage::counts);
        each.fold((0, 0), |sum, file| (sum.0 + file.0, sum.1 + file.1))
    }

    /// Writes the format of lcov, which other programs read. What was executed counts as once: how often
    /// is not known.
    pub fn lcov(&self) -> String {
        let mut text = String::new();
        for file in &self.files {
            // A line break in a name would begin another record.
            let plain = |name: &str| name.replace(['\n', '\r'], "?");
            let mut line = |line: std::fmt::Arguments<'_>| {
                // Writing to a text cannot fail.
                let _ = writeln!(text, "{line}");
            };
            line(format_args!("TN:\nSF:{}", plain(&file.file)));
            for function in &file.functions {
                line(format_args!("FN:{},{}", function.line, plain(&function.name)));
            }
            for function in &file.functions {
                let count = u32::from(function.executed);
                line(format_args!("FNDA:{count},{}", plain(&function.name)));
            }
            let ran = file.functions.iter().filter(|function| function.executed).count();
            line(format_args!("FNF:{}\nFNH:{ran}", file.functions.len()));
            let executed: BTreeSet<_> = file.executed.iter().collect();
            for number in &file.lines {
                line(format_args!("DA:{number},{}", u32::from(executed.contains(number))));
            }
            let (ran, all) = file.counts();
            line(format_args!("LF:{all}\nLH:{ran}\nend_of_record"));
        }
        text
    }
}

impl FileCoverage {
    /// Counts lines: those that were executed, and all that have code.
    pub fn counts(&self) -> (usize, usize) {
        (self.executed.len(), self.lines.len())
    }

    fn merge(&mut self, other: &Self) {
        let joined = |a: &[u32], b: &[u32]| {
            let all: BTreeSet<_> = a.iter().chain(b).copied().collect();
            all.into_iter().collect()
        };
        self.lines = joined(&self.lines, &other.lines);
        self.executed = joined(&self.executed, &other.executed);
        for function in &other.functions {
            match self.functions.iter_mut().find(|known| known.name == function.name) {
                Some(known) => {
                    known.after_fault = match (known.executed, function.executed) {
                        (true, true) => known.after_fault && function.after_fault,
                        (false, _) => function.after_fault,
                        (true, false) => known.after_fault,
                    };
                    known.executed |= function.executed;
                    known.own_code |= function.own_code;
                    known.line = known.line.min(function.line);
                }
                None => self.functions.push(function.clone()),
            }
        }
        self.functions.sort_by_key(|function| function.line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str, line: u32, executed: bool, after_fault: bool) -> FunctionCoverage {
        FunctionCoverage { name: name.to_owned(), line, executed, own_code: true, after_fault }
    }

    fn report(executed: &[u32], functions: Vec<FunctionCoverage>) -> CoverageReport {
        let file = FileCoverage {
            file: "src/a.c".to_owned(),
            lines: vec![1, 2, 3],
            executed: executed.to_vec(),
            functions,
        };
        CoverageReport::new(vec![file], Vec::new())
    }

    #[test]
    fn lcov_has_a_record_for_each_file() {
        let report =
            report(&[1, 3], vec![function("a", 1, true, false), function("b", 3, false, false)]);
        let expected = "TN:\nSF:src/a.c\nFN:1,a\nFN:3,b\nFNDA:1,a\nFNDA:0,b\nFNF:2\nFNH:1\nDA:1,1\n\
            DA:2,0\nDA:3,1\nLF:3\nLH:2\nend_of_record\n";
        assert_eq!(report.lcov(), expected);
        assert_eq!((report.counts(), report.complete), ((2, 3), true));
    }

    #[test]
    fn what_one_of_two_programs_executed_was_executed() {
        let mut joined =
            report(&[1], vec![function("a", 1, true, true), function("b", 3, false, false)]);
        joined
            .merge(report(&[3], vec![function("a", 1, true, false), function("b", 3, true, true)]));
        let file = &joined.files[0];
        assert_eq!((&file.executed[..], joined.files.len()), (&[1, 3][..], 1));
        assert_eq!(file.functions[0], function("a", 1, true, false));
        assert_eq!(file.functions[1], function("b", 3, true, true));
        joined.merge(CoverageReport::new(Vec::new(), vec!["too much".to_owned()]));
        assert!(!joined.complete);
    }
}
