//! When a change is asked for that shows a failure, before one that repairs it.

use crate::run::Run;

/// Tells whether a change is wanted that shows where the failure is, before any repair: in the
/// first iteration, where nothing else shows it and another iteration may follow.
pub(super) fn is_wanted(run: &Run) -> bool {
    let silent = run.baseline.as_ref().is_some_and(|baseline| baseline.silent);
    silent && run.iteration == 1 && run.contract.limits.iterations > 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convergence::TestCounts;
    use crate::journal::FailedBaseline;
    use crate::runs_for_tests::begun;

    #[test]
    fn a_diagnosis_is_wanted_in_the_first_iteration_of_a_silent_failure() {
        let wanted = |change: fn(&mut Run)| {
            let mut run = begun(0);
            let (signature, id, image) = (String::new(), String::new(), String::new());
            let counts = TestCounts { passed: 0, total: 1 };
            run.baseline = Some(FailedBaseline { counts, signature, run: id, image, silent: true });
            change(&mut run);
            is_wanted(&run)
        };
        assert!(wanted(|_| ()));
        assert!(!wanted(|run| run.baseline.as_mut().unwrap().silent = false));
        assert!(!wanted(|run| run.baseline = None));
        assert!(!wanted(|run| run.iteration = 2));
        // The only iteration is for a repair.
        assert!(!wanted(|run| run.contract.limits.iterations = 1));
    }
}
