//! CHANGE_IMPACT_ESTIMATE: which files a repair would likely touch, and which passing tests execute
//! them. Pure.

use std::collections::BTreeSet;
use std::fmt;

use crate::localise::RankedSuspect;

/// Suspect lines that a repair is assumed to change one of.
const LIKELY: usize = 10;

/// Names of tests that are shown.
const SHOWN: usize = 20;

/// What a change of the first suspect lines would touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Impact<'s> {
    lines: usize,
    files: BTreeSet<&'s str>,
    passing: BTreeSet<&'s str>,
    /// Rows name the first of their tests only.
    more: bool,
}

impl<'s> Impact<'s> {
    /// Estimates from suspect lines, the most suspect first; none without a suspect.
    pub(super) fn of(suspects: &'s [RankedSuspect]) -> Option<Self> {
        let likely = &suspects[..suspects.len().min(LIKELY)];
        let impact = Self {
            lines: likely.len(),
            files: likely.iter().map(|one| one.file.as_str()).collect(),
            passing: likely.iter().flat_map(|one| &one.passed).map(String::as_str).collect(),
            more: likely.iter().any(|one| one.passed.len() < one.passed_count as usize),
        };
        (impact.lines > 0).then_some(impact)
    }

    /// Returns the first names of tests that pass and may break.
    pub(super) fn shown(&self) -> Vec<&'s str> {
        self.passing.iter().take(SHOWN).copied().collect()
    }
}

impl fmt::Display for Impact<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count| if count == 1 { "" } else { "s" };
        let (lines, files, tests) = (self.lines, self.files.len(), self.passing.len());
        write!(f, "the first {lines} suspect line{} ", plural(lines))?;
        write!(f, "{} in {files} file{}", if lines == 1 { "lies" } else { "lie" }, plural(files))?;
        let least = if self.more { "at least " } else { "" };
        match tests {
            0 => write!(f, ", and no passing test is known to execute them"),
            1 => write!(f, ", and {least}1 passing test executes them"),
            _ => write!(f, ", and {least}{tests} passing tests execute them"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::localise::SuspectMeasure;

    fn suspect(file: &str, passed: &[&str]) -> RankedSuspect {
        RankedSuspect {
            rank: 1,
            file: file.to_owned(),
            line: 1,
            score: 1.0,
            measure: SuspectMeasure::Ochiai,
            failed: vec!["test_red".to_owned()],
            failed_count: 1,
            passed: passed.iter().map(|&name| name.to_owned()).collect(),
            passed_count: passed.len().try_into().unwrap(),
        }
    }

    #[test]
    fn files_and_passing_tests_of_the_first_suspects_count_once() {
        assert_eq!(Impact::of(&[]), None);
        let mut suspects = vec![suspect("a.c", &["test_b"]), suspect("a.c", &["test_b", "test_a"])];
        suspects.extend((0..8).map(|_| suspect("b.c", &[])));
        // Behind the lines that a repair is assumed to change.
        suspects.push(suspect("c.c", &["test_c"]));
        let impact = Impact::of(&suspects).unwrap();
        assert_eq!(impact.shown(), ["test_a", "test_b"]);
        let words = "the first 10 suspect lines lie in 2 files, and 2 passing tests execute them";
        assert_eq!(impact.to_string(), words);
        suspects[0].passed_count = 9;
        assert!(Impact::of(&suspects).unwrap().to_string().contains("at least 2 passing tests"));
        let one = [suspect("a.c", &[])];
        let words =
            "the first 1 suspect line lies in 1 file, and no passing test is known to execute them";
        assert_eq!(Impact::of(&one).unwrap().to_string(), words);
    }
}
