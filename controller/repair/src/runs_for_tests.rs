//! Runs as tests of several modules begin them.

use crate::convergence::TestCounts;
use crate::journal::{Contract, Digest, Entry, Row};
use crate::run::{Attempt, Run};

/// A run of a task that names nothing, behind its first row.
pub(crate) fn begun(time_ms: u64) -> Run {
    let entry = Entry::Begun(Contract::default());
    Run::of(&[Row { seq: 1, time_ms, entry, hash: Digest::default() }]).unwrap()
}

/// A tested candidate of the first iteration.
pub(crate) fn attempt(patch: &str, counts: TestCounts, signature: Option<&str>) -> Attempt {
    Attempt {
        iteration: 1,
        run: String::new(),
        strategy: 0,
        patch: patch.to_owned(),
        diagnostic: false,
        counts,
        signature: signature.map(str::to_owned),
    }
}
