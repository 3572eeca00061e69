//! What observations teach: from facts to drafts, the same each time. Pure.
//!
//! Owns the triggers of capture and the words of what is captured by itself. No model writes here: what a
//! model has said is quoted as a summary, and marked.
//!
//! | trigger | priority | lesson |
//! |---|---|---|
//! | the same tests failed and then passed, with another image between | P0 | [`change`] |
//! | more than half of the failed cases are fixed, and none is new | P1 | [`change`], [`repair`] |
//! | the same failure as often as the rules say | P2 | [`repeat`] |
//! | a step of recovery was taken | - | [`recovery`] |
//! | the repair loop has ended | P0, P1, P2 | [`repair`] |
//! | as many fixes of a class as the rules say | P2 | [`pattern`] |

pub(crate) mod change;
mod marked;
pub(crate) mod pattern;
pub(crate) mod recovery;
pub(crate) mod repair;
pub(crate) mod repeat;
#[cfg(test)]
mod tests;

pub use marked::marked;

use crate::observed::ObservedFailure;
use crate::unit::Draft;

/// A draft, and the number of observations that it sums up.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lesson {
    /// What becomes or renews a unit of this name.
    pub(crate) draft: Draft,
    /// How often it was seen; nothing where each draft counts once more.
    pub(crate) count: Option<u64>,
}

/// What a failure looks like: summary, line and quotes of the target.
fn symptom(failure: &ObservedFailure) -> String {
    let mut parts = vec![failure.summary.clone()];
    let line = failure.line.as_ref().filter(|line| !failure.summary.contains(line.as_str()));
    parts.extend(line.map(|line| format!("line: {line}")));
    if !failure.failed.is_empty() {
        parts.push(format!("failed: {}", some_of(&failure.failed)));
    }
    for quote in failure.quotes.iter().filter(|quote| !quote.trim().is_empty()) {
        parts.push(format!("output:\n{}", quote.trim_end()));
    }
    parts.join("\n")
}

/// Most names in a text.
const NAMES: usize = 8;

fn some_of(names: &[String]) -> String {
    let more = names.len().saturating_sub(NAMES);
    let some = names.iter().take(NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
    if more == 0 { some } else { format!("{some} and {more} more") }
}

/// What failed, in a few words: the tests, or the class.
fn what_failed(failure: &ObservedFailure) -> String {
    match failure.failed.as_slice() {
        [] => format!("{}: {}", failure.class, failure.summary),
        [one] => format!("{one} fails"),
        [one, rest @ ..] => format!("{one} and {} more fail", rest.len()),
    }
}

fn short(hash: &str) -> &str {
    &hash[..hash.floor_char_boundary(12)]
}
