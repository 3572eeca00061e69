//! A run in the formats of others, as folds over its journal. The journal stays the truth. Pure.

mod atif;
mod otlp;

pub use atif::atif;
pub use otlp::otlp;

use jiff::Timestamp;

use crate::journal::{Fact, Outcome, Proposed};

/// Writes a time of the journal as RFC 3339.
pub(crate) fn rfc3339(time_ms: u64) -> String {
    let time = Timestamp::from_millisecond(i64::try_from(time_ms).unwrap_or(i64::MAX));
    time.unwrap_or_default().to_string()
}

/// Returns the patch that an outcome proposes.
fn proposed(outcome: &Outcome) -> Option<&Proposed> {
    outcome.result.facts.iter().find_map(|fact| match fact {
        Fact::Proposed(proposed) => Some(proposed),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
