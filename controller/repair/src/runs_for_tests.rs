//! Runs as tests of several modules begin them.

use crate::convergence::TestCounts;
use crate::journal::{Contract, Digest, Entry, Row};
use crate::proof::{PASSES, PlanRun, ProofFacts};
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

/// A run of a plan that reports no cases.
pub(crate) fn plan_run(passed: bool) -> PlanRun {
    PlanRun {
        run: "r".to_owned(),
        passed,
        planned: None,
        executed: 0,
        skipped: 0,
        passes: Vec::new(),
        image_seen: true,
    }
}

/// What a proof without a held-out plan has found of a right patch.
pub(crate) fn proof_facts() -> ProofFacts {
    ProofFacts {
        baseline: plan_run(false),
        runs: vec![plan_run(true); PASSES],
        clean_build: true,
        changed_protected: Vec::new(),
        reverted: Some(plan_run(false)),
        held_out: None,
        tests_not_run: None,
        rewritten_protected: Vec::new(),
        foreign_files: Vec::new(),
        not_measured: None,
    }
}
