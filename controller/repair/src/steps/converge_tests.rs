//! Tests of the decision that ends a run.

use super::*;
use crate::analysis::Preset;
use crate::convergence::ExecutionMode;
use crate::journal::Usage;
use crate::proof::ProofFacts;
use crate::runs_for_tests::{attempt, begun, plan_run, proof_facts};
use crate::task::RepairLimits;

const CI: PlateauStrategy =
    PlateauStrategy { mode: ExecutionMode::Ci, ci_accepts: true, max_strategy_switches: 2 };

/// A run behind candidates with these passed tests, of four, in each of their runs.
fn behind(candidates: &[&[u64]]) -> Run {
    behind_of(4, candidates)
}

/// A run behind candidates with these passed tests, of `total`, in each of their runs.
fn behind_of(total: u64, candidates: &[&[u64]]) -> Run {
    let mut run = begun(0);
    run.iteration = candidates.len().max(1) as u64;
    for (index, runs) in candidates.iter().enumerate() {
        for &passed in *runs {
            // Never two in turns, which ends a run by itself.
            let signature = (passed < total).then(|| format!("failure {index}"));
            let counts = TestCounts { passed, total };
            let one = attempt(&format!("patch-{index}"), counts, signature.as_deref());
            run.attempts.push(Attempt { iteration: index as u64 + 1, ..one });
        }
    }
    run
}

fn changed(mut run: Run, change: impl FnOnce(&mut Run)) -> Run {
    change(&mut run);
    run
}

/// A run behind candidates of which the last one passed, with what its proof has found.
fn proved(candidates: &[&[u64]], facts: ProofFacts) -> Run {
    changed(behind(candidates), |run| run.proof = Some(facts))
}

const PASSED: &[u64] = &[4, 4, 4];

fn rules(plateau: PlateauStrategy) -> ConvergenceRules {
    ConvergenceRules { criteria: ConvergenceCriteria::of(Preset::Balanced), plateau }
}

#[track_caller]
fn decides(run: &Run, rungs: u64, event: RepairEvent, words: &str) {
    let (found, reason) = next_event(run, rungs, &rules(CI), 0);
    assert_eq!(found, event, "{reason}");
    assert!(reason.contains(words), "{reason:?} has no {words:?}");
}

#[test]
fn a_proven_candidate_is_a_success_in_any_iteration() {
    decides(&proved(&[PASSED], proof_facts()), 1, RepairEvent::Converged, "stable over 3");
    decides(&proved(&[&[1], &[2], PASSED], proof_facts()), 1, RepairEvent::Converged, "100.00 %");
    let mut last = proved(&[PASSED], proof_facts());
    last.iteration = last.contract.limits.iterations;
    decides(&last, 1, RepairEvent::Converged, "100.00 %");
    // What was spent on the way takes no repair away.
    last.usage = Usage { tokens: u64::MAX, micro_usd: u64::MAX };
    decides(&last, 1, RepairEvent::Converged, "100.00 %");
}

#[test]
fn nothing_else_is_a_success() {
    decides(&behind(&[PASSED]), 1, RepairEvent::Continue, "100.00 %");
    type Change = fn(&mut ProofFacts);
    let lacking: [(Change, &str); 6] = [
        (|facts| facts.clean_build = false, "not proven: a clean build"),
        (|facts| facts.reverted = None, "not proven: the base was not run again"),
        (|facts| facts.held_out = Some(plan_run(false)), "not proven: the held-out plan fails"),
        (|facts| facts.runs[1] = plan_run(false), "not proven: the required tests passed 1 times"),
        (|facts| facts.runs.clear(), "not proven: the required tests passed 0 times"),
        (|facts| facts.changed_protected.push("a.ld".to_owned()), "not proven: a.ld is protected"),
    ];
    for (change, words) in lacking {
        let mut facts = proof_facts();
        change(&mut facts);
        decides(&proved(&[PASSED], facts), 1, RepairEvent::Continue, words);
    }
    // A proof of an earlier candidate says nothing of one that fails.
    decides(&proved(&[PASSED, &[3]], proof_facts()), 1, RepairEvent::Continue, "next iteration");
    // An iteration beyond the limit is none, whatever it shows.
    let mut late = proved(&[PASSED], proof_facts());
    late.iteration = late.contract.limits.iterations + 1;
    decides(&late, 1, RepairEvent::NoProgress, "all 10 iterations are done");
}

#[test]
fn a_base_that_passes_again_ends_the_run_and_blames_no_code() {
    let healed = ProofFacts { reverted: Some(plan_run(true)), ..proof_facts() };
    decides(&proved(&[PASSED], healed), 2, RepairEvent::NoProgress, "the base passes without");
}

#[test]
fn limits_end_a_run_that_is_not_proven() {
    let unproven = || proved(&[PASSED], ProofFacts { clean_build: false, ..proof_facts() });
    let last = changed(unproven(), |run| run.iteration = 10);
    decides(&last, 2, RepairEvent::NoProgress, "all 10 iterations are done");
    let spent = changed(unproven(), |run| run.usage.tokens = 200_000);
    decides(&spent, 2, RepairEvent::NoProgress, "200000 tokens of 200000");
    let now = RepairLimits::default().wall_s * 1000;
    assert_eq!(next_event(&behind(&[&[1]]), 1, &rules(CI), now - 1).0, RepairEvent::Continue);
    assert_eq!(next_event(&behind(&[&[1]]), 1, &rules(CI), now).0, RepairEvent::NoProgress);
}

#[test]
fn a_candidate_that_fails_once_is_one_result_that_failed() {
    // By its single runs, the figures of this one candidate would be a failure that repeats.
    decides(&behind(&[&[4, 4, 0]]), 2, RepairEvent::Continue, "next iteration");
    assert_eq!(history(&behind(&[&[4, 4, 0]])), [TestCounts { passed: 0, total: 4 }]);
    assert_eq!(history(&behind(&[&[2], PASSED])).len(), 4);
}

#[test]
fn an_agent_that_does_not_get_on_is_followed_by_the_next_one() {
    let stuck: &[&[u64]] = &[&[0], &[0], &[0]];
    decides(&behind(stuck), 2, RepairEvent::StrategySwitched, "failure rate 100.00 %");
    decides(&behind(stuck), 1, RepairEvent::NoProgress, "failure rate 100.00 %");
    // The next agent begins with no history.
    let mut switched = behind(stuck);
    switched.strategy = 1;
    decides(&switched, 2, RepairEvent::Continue, "next iteration");
}

#[test]
fn a_plateau_is_decided_by_the_mode_once_no_agent_is_left() {
    let plateau = changed(behind(&[&[3], &[3], &[3], &[3]]), |run| run.iteration = 7);
    let event = |mode, strategy| {
        let mut run = plateau.clone();
        run.strategy = strategy;
        run.attempts.iter_mut().for_each(|one| one.strategy = strategy);
        next_event(&run, 2, &rules(PlateauStrategy::of(mode)), 0).0
    };
    use ExecutionMode::{Auto, Ci, Interactive};
    for mode in [Auto, Ci, Interactive] {
        assert_eq!(event(mode, 0), RepairEvent::StrategySwitched, "{mode}");
    }
    assert_eq!(event(Ci, 1), RepairEvent::AcceptedWithWarning);
    assert_eq!(event(Interactive, 1), RepairEvent::HumanReview);
    assert_eq!(event(Auto, 1), RepairEvent::StrategySwitched);
    assert_eq!(event(Auto, 2), RepairEvent::NoProgress);
}

#[test]
fn two_failures_in_turns_end_a_run() {
    let mut run = behind(&[&[1], &[2], &[1], &[2]]);
    for (index, one) in run.attempts.iter_mut().enumerate() {
        one.signature = Some(format!("failure {}", index % 2));
    }
    decides(&run, 2, RepairEvent::NoProgress, "alternate");
}

#[test]
fn the_preset_decides_how_slow_progress_ends_a_run() {
    let slow: &[&[u64]] = &[&[60], &[70], &[80], &[80], &[80]];
    let end = |preset| {
        let mut run = behind_of(100, slow);
        run.contract.limits = RepairLimits::of(preset);
        let rules = ConvergenceRules { criteria: ConvergenceCriteria::of(preset), plateau: CI };
        next_event(&run, 1, &rules, 0)
    };
    // The improvement over the last iterations is 3.33 %: enough for 3 %, too little for 5 %.
    assert_eq!(end(Preset::Strict), (RepairEvent::Continue, "next iteration".to_owned()));
    assert_eq!(end(Preset::Balanced).0, RepairEvent::AcceptedWithWarning);
    let (event, reason) = end(Preset::Aggressive);
    assert_eq!((event, reason.as_str()), (RepairEvent::NoProgress, "all 5 iterations are done"));
}

#[test]
fn the_preset_decides_how_often_a_repair_must_pass() {
    let end = |preset, passes: usize| {
        let facts = ProofFacts { runs: vec![plan_run(true); passes], ..proof_facts() };
        let run = proved(&[&[1], &vec![4; passes]], facts);
        let rules = ConvergenceRules { criteria: ConvergenceCriteria::of(preset), plateau: CI };
        next_event(&run, 1, &rules, 0).0
    };
    assert_eq!(end(Preset::Strict, 3), RepairEvent::Continue);
    assert_eq!(end(Preset::Strict, 5), RepairEvent::Converged);
    assert_eq!(end(Preset::Balanced, 3), RepairEvent::Converged);
    assert_eq!(end(Preset::Aggressive, 3), RepairEvent::Converged);
}

#[test]
fn a_diagnostic_change_is_followed_by_a_repair_whatever_it_shows() {
    for passed in [0, 4] {
        let mut run = behind(&[&[passed]]);
        run.attempts[0].diagnostic = true;
        decides(&run, 1, RepairEvent::Continue, "the diagnostic change is taken back");
        assert_eq!(history(&run), []);
    }
}
