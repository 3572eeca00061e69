//! Explains decisions about given figures: lines of JSON in, the same lines with the answer out.
//!
//! A line that already has an answer gets a new one.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::analysis::{IterationResult, Preset, analyse};
use crate::convergence::{ConvergenceCriteria, IterationCounts, TestCounts, decide};

/// Name of the member that holds the answer.
const ANSWER: &str = "expect";

/// Most iterations in one line. A run has ten by default.
const MAX_ITERATIONS: usize = 10_000;

/// Says why a line cannot be answered.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// The line is not the JSON object that is expected.
    #[error("not an object of the expected form")]
    Form(#[source] serde_json::Error),
    /// The two lists of counts have different lengths.
    #[error("pass_counts has {passed} values and total_counts {total}: each iteration needs both")]
    Lengths {
        /// Length of `pass_counts`.
        passed: usize,
        /// Length of `total_counts`.
        total: usize,
    },
    /// There is no iteration to decide about.
    #[error("{0} is empty: give at least one iteration")]
    Empty(&'static str),
    /// There are too many iterations.
    #[error("{0} iterations are more than the {MAX_ITERATIONS} that one line may have")]
    TooMany(usize),
    /// An iteration passed more tests than it has.
    #[error("iteration {iteration} passes {passed} of {total} tests")]
    MorePassed {
        /// Counts from 1.
        iteration: usize,
        /// Tests that passed.
        passed: u64,
        /// All tests.
        total: u64,
    },
}

#[derive(Deserialize)]
struct ConvergenceQuestion {
    pass_counts: Vec<u64>,
    total_counts: Vec<u64>,
    current_iteration: u64,
    max_iterations: u64,
    #[serde(default)]
    criteria: ConvergenceCriteria,
}

#[derive(Deserialize)]
struct AnalysisQuestion {
    preset: Preset,
    history: Vec<IterationResult>,
}

/// Answers one line about convergence.
///
/// # Errors
/// The line is not an object with `pass_counts`, `total_counts`, `current_iteration`,
/// `max_iterations` and, if wanted, `criteria`; or its counts contradict each other.
pub fn convergence(line: &str) -> Result<String, ExplainError> {
    let (object, question) = read::<ConvergenceQuestion>(line)?;
    let (passed, total) = (question.pass_counts.len(), question.total_counts.len());
    if passed != total {
        return Err(ExplainError::Lengths { passed, total });
    }
    bounded("pass_counts", passed)?;
    let pairs = question.pass_counts.iter().zip(&question.total_counts);
    let history: Vec<_> = pairs.map(|(&passed, &total)| TestCounts { passed, total }).collect();
    if let Some(at) = history.iter().position(|counts| counts.passed > counts.total) {
        let TestCounts { passed, total } = history[at];
        return Err(ExplainError::MorePassed { iteration: at + 1, passed, total });
    }
    let iterations =
        IterationCounts { current: question.current_iteration, max: question.max_iterations };
    answered(object, &decide(&history, iterations, &question.criteria))
}

/// Answers one line about the trend of a run.
///
/// # Errors
/// The line is not an object with `preset` and `history`.
pub fn analysis(line: &str) -> Result<String, ExplainError> {
    let (object, question) = read::<AnalysisQuestion>(line)?;
    bounded("history", question.history.len())?;
    answered(object, &analyse(&question.history, question.preset))
}

fn bounded(list: &'static str, len: usize) -> Result<(), ExplainError> {
    match len {
        0 => Err(ExplainError::Empty(list)),
        1..=MAX_ITERATIONS => Ok(()),
        _ => Err(ExplainError::TooMany(len)),
    }
}

fn read<T: for<'a> Deserialize<'a>>(line: &str) -> Result<(Map<String, Value>, T), ExplainError> {
    let object = serde_json::from_str(line).map_err(ExplainError::Form)?;
    let question = serde_json::from_str(line).map_err(ExplainError::Form)?;
    Ok((object, question))
}

fn answered(
    mut object: Map<String, Value>,
    answer: &impl serde::Serialize,
) -> Result<String, ExplainError> {
    let answer = serde_json::to_value(answer).map_err(ExplainError::Form)?;
    object.insert(ANSWER.to_owned(), answer);
    serde_json::to_string(&object).map_err(ExplainError::Form)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares numbers within 1e-9 and everything else exactly.
    fn same(found: &Value, wanted: &Value) -> bool {
        match (found, wanted) {
            (Value::Number(a), Value::Number(b)) => {
                (a.as_f64().unwrap() - b.as_f64().unwrap()).abs() <= 1e-9
            }
            (Value::Object(a), Value::Object(b)) => {
                a.len() == b.len()
                    && b.iter().all(|(key, b)| a.get(key).is_some_and(|a| same(a, b)))
            }
            _ => found == wanted,
        }
    }

    fn check(name: &str, lines: usize, answer: fn(&str) -> Result<String, ExplainError>) {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/conformance/");
        let text = std::fs::read_to_string(format!("{folder}{name}")).unwrap();
        assert_eq!(text.lines().count(), lines);
        for line in text.lines() {
            let mut asked: Map<String, Value> = serde_json::from_str(line).unwrap();
            let wanted = asked.remove(ANSWER).unwrap();
            let asked = serde_json::to_string(&asked).unwrap();
            let found: Value = serde_json::from_str(&answer(&asked).unwrap()).unwrap();
            assert!(same(&found[ANSWER], &wanted), "{asked}\n{}\n{wanted}", found[ANSWER]);
        }
    }

    #[test]
    fn decisions_equal_the_conformance_file() {
        check("convergence-decisions.jsonl", 604, convergence);
    }

    #[test]
    fn analyses_equal_the_conformance_file() {
        check("convergence-analysis.jsonl", 300, analysis);
    }

    #[test]
    fn lines_that_contradict_themselves_are_refused() {
        let ask = |passed: &str, total: &str| {
            convergence(&format!(
                "{{\"pass_counts\": {passed}, \"total_counts\": {total}, \
                 \"current_iteration\": 1, \"max_iterations\": 9}}"
            ))
        };
        assert!(ask("[1]", "[2]").is_ok());
        for (passed, total, message) in [
            ("[1, 2]", "[2]", "pass_counts has 2 values and total_counts 1"),
            ("[]", "[]", "pass_counts is empty"),
            ("[0, 3]", "[2, 2]", "iteration 2 passes 3 of 2 tests"),
            ("[-1]", "[2]", "not an object of the expected form"),
            ("[1.5]", "[2]", "not an object of the expected form"),
        ] {
            let error = ask(passed, total).unwrap_err().to_string();
            assert!(error.contains(message), "{passed} {total}: {error}");
        }
        assert!(analysis("{\"preset\": \"strict\", \"history\": []}").is_err());
        assert!(analysis("[]").is_err());
    }
}
