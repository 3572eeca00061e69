//! Fault localisation: ranks source lines by how much their execution goes with failed tests. Pure.
//!
//! # Design
//! The score is Ochiai's: `failed(line) / sqrt(failed * executed(line))`. It needs no weights, and on
//! an emulated board its input is free: the emulator lists what an unmodified image executes.

use std::collections::{BTreeMap, BTreeSet};

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
    /// Whether the test failed.
    pub failed: bool,
    /// Lines that it executed.
    pub lines: BTreeSet<SourceLine>,
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
        TestCoverage { failed, lines: lines.iter().map(line).collect() }
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
