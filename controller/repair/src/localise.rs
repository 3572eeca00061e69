//! Fault localisation: ranks source lines by how much their execution goes with failed tests. Pure.
//!
//! # Design
//! The score is Ochiai's: `failed(line) / sqrt(failed * executed(line))`. It needs no weights, and on
//! an emulated board its input is free: the emulator lists what an unmodified image executes.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// A line of a source file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceLine {
    /// Path relative to the repository.
    pub file: String,
    /// Number, from 1.
    pub line: u32,
}

/// What one test executed.
#[derive(Debug, Clone, Default)]
pub struct TestCoverage {
    /// Its name.
    pub name: String,
    /// Whether the test failed.
    pub failed: bool,
    /// Lines that it executed.
    pub lines: BTreeSet<SourceLine>,
}

/// What the tests of a run executed, as far as it was measured.
#[derive(Debug, Clone, Default)]
pub struct MeasuredCoverage {
    /// The tests.
    pub tests: Vec<TestCoverage>,
    /// Lines that have code. Others cannot be executed.
    pub code: BTreeSet<SourceLine>,
}

/// A line that may hold the fault.
#[derive(Debug, Clone, PartialEq)]
pub struct SuspectLine {
    /// The line.
    pub line: SourceLine,
    /// From 0, exclusive, to 1: executed by each failed test and by no other.
    pub score: f64,
    /// Failed tests that execute it.
    pub failed: u32,
    /// Passed tests that execute it.
    pub passed: u32,
}

/// What a rank comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SuspectMeasure {
    /// Which tests executed the line, as the emulator told.
    Ochiai,
    /// Which tests can reach the line, by the names in the sources.
    CallGraph,
}

impl SuspectMeasure {
    /// Returns its name in documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ochiai => "ochiai",
            Self::CallGraph => "call_graph",
        }
    }
}

/// A suspect line with its rank, and why it has it. A row of the bundle's list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankedSuspect {
    /// From 1.
    pub rank: usize,
    /// Path relative to the repository.
    pub file: String,
    /// Number of the line, from 1.
    pub line: u32,
    /// From 0 to 1; to be compared with scores of the same measure only.
    pub score: f64,
    /// What the rank comes from.
    pub measure: SuspectMeasure,
    /// Failed tests that execute it, or can reach it; the first of them.
    pub failed: Vec<String>,
    /// How many there are.
    pub failed_count: u32,
    /// Passed tests that do; the first of them.
    pub passed: Vec<String>,
    /// How many there are.
    pub passed_count: u32,
}

/// Most names of tests in a row.
const MAX_NAMES: usize = 8;

impl RankedSuspect {
    /// Makes the row of a line. `tests` are those that it was ranked by.
    pub fn new(
        rank: usize,
        suspect: &SuspectLine,
        measure: SuspectMeasure,
        tests: &[TestCoverage],
    ) -> Self {
        let SuspectLine { line, score, failed, passed } = suspect;
        let names = |of_failed: bool| {
            let by = tests.iter().filter(|test| test.failed == of_failed);
            let by = by.filter(|test| test.lines.contains(line)).take(MAX_NAMES);
            by.map(|test| test.name.clone()).collect()
        };
        Self {
            rank,
            file: line.file.clone(),
            line: line.line,
            score: (score * 1000.0).round() / 1000.0,
            measure,
            failed: names(true),
            failed_count: *failed,
            passed: names(false),
            passed_count: *passed,
        }
    }
}

/// Ranks the lines that a failed test executed, most suspicious first; equal ones by file and line.
///
/// Without a passed test every line has the score 1, which ranks nothing: [`tells_apart`] says so.
pub fn rank(tests: &[TestCoverage]) -> Vec<SuspectLine> {
    let mut counts: BTreeMap<&SourceLine, (u32, u32)> = BTreeMap::new();
    for test in tests {
        for line in &test.lines {
            let (failed, passed) = counts.entry(line).or_default();
            *if test.failed { failed } else { passed } += 1;
        }
    }
    let all_failed = tests.iter().filter(|test| test.failed).count() as f64;
    let mut suspects: Vec<_> = counts
        .into_iter()
        .filter(|(_, (failed, _))| *failed > 0)
        .map(|(line, (failed, passed))| SuspectLine {
            line: line.clone(),
            score: f64::from(failed) / (all_failed * f64::from(failed + passed)).sqrt(),
            failed,
            passed,
        })
        .collect();
    // The sort is stable, and the map was in order of file and line.
    suspects.sort_by(|a, b| b.score.total_cmp(&a.score));
    suspects
}

/// Tells whether a ranking says anything: not all of its lines are equally suspicious.
pub fn tells_apart(suspects: &[SuspectLine]) -> bool {
    suspects.first().zip(suspects.last()).is_some_and(|(first, last)| first.score > last.score)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(failed: bool, lines: &[u32]) -> TestCoverage {
        let line = |&line| SourceLine { file: "mid.c".to_owned(), line };
        let lines = lines.iter().map(line).collect();
        TestCoverage { name: String::new(), failed, lines }
    }

    /// The function `mid` of the literature: of six tests one fails; line 7 holds the fault.
    #[test]
    fn the_faulty_line_of_mid_comes_first() {
        let tests = [
            test(false, &[1, 2, 3, 4, 6, 7, 13]),
            test(false, &[1, 2, 3, 4, 5, 13]),
            test(false, &[1, 2, 3, 8, 9, 10, 13]),
            test(false, &[1, 2, 3, 8, 9, 11, 13]),
            test(false, &[1, 2, 3, 4, 6, 13]),
            test(true, &[1, 2, 3, 4, 6, 7, 13]),
        ];
        let suspects = rank(&tests);
        assert_eq!(suspects[0].line.line, 7);
        assert!((suspects[0].score - 0.5f64.sqrt()).abs() < 1e-12);
        assert_eq!((suspects[0].failed, suspects[0].passed), (1, 1));
        assert!(
            suspects.iter().all(|suspect| suspect.line.line != 5),
            "no failed test executes it"
        );
        assert!(tells_apart(&suspects));
    }

    #[test]
    fn without_a_passed_test_nothing_is_told_apart() {
        let suspects = rank(&[test(true, &[1, 2]), test(true, &[1, 2])]);
        assert!(suspects.iter().all(|suspect| suspect.score == 1.0) && suspects.len() == 2);
        assert!(!tells_apart(&suspects));
        assert!(rank(&[test(false, &[1])]).is_empty() && !tells_apart(&[]));
    }
}
