//! The result document, the exit code, and what a person should look at.

use jig_model::exit;
use serde::Serialize;

use crate::convergence::TestCounts;
use crate::journal::{Entry, EvidenceRef, Outcome, Row, Usage};
use crate::localise::RankedSuspect;
use crate::machine::{RepairEvent, RepairState, next};
use crate::policy::Policy;
use crate::proof::{Confidence, ProofFacts, lack_of_proof, proven};
use crate::recovery::ErrorClass;
use crate::run::{Run, StepError};
use crate::setup::RepairSetup;

/// The result of a run, as `result.json` has it.
#[derive(Debug, Serialize)]
pub struct RepairDocument {
    /// `jig-repair`.
    pub format: &'static str,
    /// Version of the document: 1.
    pub version: u32,
    /// The run.
    pub run: String,
    /// The final state.
    pub state: RepairState,
    /// Why it is final.
    pub why: String,
    /// Why a success is none that is proven, where that is so.
    pub warning: Option<String>,
    /// What a person should look at, a sentence each.
    pub look_at: Vec<String>,
    /// Exit code of `jig repair`.
    pub exit_code: u8,
    /// What was to be reached.
    pub goal: String,
    /// Signature of the failure without a patch.
    pub failure: Option<String>,
    /// Commit without a patch.
    pub base: String,
    /// Commit and branch of the repair, where there is one.
    pub commit: Option<String>,
    /// The diff, as a path.
    pub diff: Option<String>,
    /// The agent that proposed it.
    pub agent: Option<String>,
    /// Iterations that were begun.
    pub iterations: u64,
    /// Runs of the plan with a candidate.
    pub tests: usize,
    /// Tests that passed without a patch, and with the candidate that was tested last.
    pub before: Option<TestCounts>,
    /// See `before`.
    pub after: Option<TestCounts>,
    /// The first suspect lines of the last iteration.
    pub suspects: Vec<RankedSuspect>,
    /// What moved the run from state to state.
    pub transitions: Vec<RepairTransition>,
    /// What the agents have used.
    pub usage: Usage,
    /// What the proof rests on.
    pub proof: Option<ProofFacts>,
    /// How much the proof says: `held-out`, `plausible`, or what it lacks.
    pub confidence: Option<String>,
    /// Time in milliseconds.
    pub duration_ms: u64,
    /// Time of it in which a build, the rig or an agent was at work.
    pub busy_ms: u64,
}

/// Returns the exit code of a run that has come to a final state.
pub fn exit_code(run: &Run) -> u8 {
    let class = run.error.map(|error| error.class);
    match run.ended.unwrap_or(run.state) {
        // A required test may still fail: accepted by the mode, and no pass.
        RepairState::Success if warning(run).is_some() => exit::INCONCLUSIVE,
        RepairState::Success => exit::PASS,
        RepairState::Aborted if run.stop.is_some() => exit::CANCELLED,
        _ if class == Some(ErrorClass::TestEnvFailure) => exit::LAB,
        RepairState::Aborted => exit::INCONCLUSIVE,
        // There is no failure that could be repaired, or none any more.
        RepairState::Failure if run.baseline.is_none() || base_passes(run) => exit::INCONCLUSIVE,
        RepairState::Failure => exit::FAIL,
        _ => exit::INCONCLUSIVE,
    }
}

/// Tells whether the base passed when the proof ran it again.
fn base_passes(run: &Run) -> bool {
    let reverted = run.proof.as_ref().and_then(|facts| facts.reverted.as_ref());
    reverted.is_some_and(|reverted| reverted.passed)
}

/// Says what is missing of a success that is accepted and not proven.
pub fn warning(run: &Run) -> Option<String> {
    if run.ended.unwrap_or(run.state) != RepairState::Success {
        return None;
    }
    let Some(facts) = run.proof.as_ref() else {
        let counts = run.attempts.last().map(|last| last.counts);
        let some = counts.map(|TestCounts { passed, total }| format!("{passed} of {total}"));
        return Some(format!("only {} tests pass", some.unwrap_or_else(|| "some".to_owned())));
    };
    lack_of_proof(facts)
}

/// Says what a person should look at behind the end of a run with this policy.
pub fn look_at(name: &str, run: &Run, policy: &Policy) -> Vec<String> {
    let mut all = Vec::new();
    let branch = format!("{name}: jig repair log {name}, then jig repair fork {name}@SEQ");
    match (run.ended.unwrap_or(run.state), exit_code(run)) {
        (RepairState::Success, exit::PASS) => {
            let facts = run.proof.as_ref().map(proven);
            if let Some(Ok(Confidence::Plausible)) = facts {
                all.push(
                    "the diff: no held-out plan was given, so the repair makes the tests pass and \
                     is not proven beyond them"
                        .to_owned(),
                );
            }
        }
        (RepairState::Success, _) => {
            all.push(
                "the tests that still fail: no branch was made, and the last patch is kept".into(),
            );
        }
        (_, exit::LAB) => {
            all.push("the rig, before anything else: jig health, jig doctor".to_owned());
        }
        (RepairState::Aborted, exit::CANCELLED) => all.push(format!("how to go on from {branch}")),
        (RepairState::Aborted, _) => {
            all.push(format!(
                "the last patch, and whether the run should go on from a row of {branch}"
            ));
        }
        (RepairState::Failure, exit::INCONCLUSIVE) => {
            all.push(match run.error {
                // The tests passed or were flaky, or the base passes meanwhile.
                None => {
                    "the task: there is no failure of the base that a patch could repair".to_owned()
                }
                Some(_) if base_passes(run) => {
                    "the place: the base passes now, so what failed was not the code".to_owned()
                }
                Some(StepError { class: ErrorClass::Timeout, .. }) => {
                    "the limit of time: it ended the run before it was known whether the tests fail \
                     without a patch"
                        .to_owned()
                }
                Some(_) => format!(
                    "what ended the run before it was known whether the tests fail without a \
                     patch: {}",
                    run.why
                ),
            });
        }
        (RepairState::Failure, _) => {
            all.push(
                "the suspect lines below, and why each patch was refused or failed".to_owned(),
            );
        }
        _ => {}
    }
    let refused = run.refused.len();
    if refused > 0 {
        all.push(format!(
            "the proposals that were refused ({refused}): the log of the run says why"
        ));
    }
    if !policy.sandbox {
        all.push(
            "what was built: the policy has `sandbox = false`, so each build of a patch could write \
             and send what you can"
                .to_owned(),
        );
    }
    all
}

/// A change of the state of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RepairTransition {
    /// Row of the journal.
    pub seq: u64,
    /// When, in the form of RFC 3339, in UTC.
    pub time: String,
    /// The state that the run left.
    pub from: RepairState,
    /// What moved it.
    pub event: RepairEvent,
    /// The state that it came to.
    pub to: RepairState,
    /// Why.
    pub reason: String,
    /// What it rests on.
    pub evidence: Vec<EvidenceRef>,
}

/// Lists what moved a run from state to state.
pub(super) fn transitions(rows: &[Row]) -> Vec<RepairTransition> {
    let moved = rows.iter().filter_map(|row| {
        let Entry::Outcome(Outcome { state, result, .. }) = &row.entry else { return None };
        let event = result.event?;
        Some(RepairTransition {
            seq: row.seq,
            time: crate::export::rfc3339(row.time_ms),
            from: *state,
            event,
            // The fold has refused a journal with a row that is none.
            to: next(*state, event).unwrap_or(*state),
            reason: result.reason.clone(),
            evidence: result.evidence.clone(),
        })
    });
    moved.collect()
}

/// Suspect lines of a result document.
const SUSPECTS: usize = 5;

pub(super) fn document(
    setup: &RepairSetup,
    run: &Run,
    repaired: bool,
    (suspects, rows): (&[RankedSuspect], &[Row]),
) -> RepairDocument {
    // What only shows a failure is no repair, and no beginning of one.
    let proposed = run.proposed.as_ref().filter(|proposed| !proposed.diagnostic);
    let diff = proposed.map(|proposed| setup.folder.patch(&proposed.patch));
    let diff = diff.filter(|path| path.is_file()).map(|path| path.display().to_string());
    let confidence = run.proof.as_ref().map(|facts| match proven(facts) {
        Ok(Confidence::HeldOut) => "held-out".to_owned(),
        Ok(Confidence::Plausible) => "plausible".to_owned(),
        Err(lacks) => lacks.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
    });
    RepairDocument {
        format: "jig-repair",
        version: 1,
        run: setup.name.clone(),
        state: run.state,
        why: run.why.clone(),
        warning: warning(run),
        look_at: look_at(&setup.name, run, &setup.policy),
        exit_code: exit_code(run),
        goal: run.contract.goal.clone(),
        failure: run.baseline.as_ref().map(|baseline| baseline.signature.clone()),
        base: run.contract.base.clone(),
        commit: run.applied.clone().filter(|_| repaired),
        diff,
        agent: proposed.map(|proposed| proposed.agent.clone()),
        // What ends a run may be found out at the beginning of one more.
        iterations: run.iteration.min(run.contract.limits.iterations),
        tests: run.attempts.len(),
        before: run.baseline.as_ref().map(|baseline| baseline.counts),
        after: run.attempts.last().map(|last| last.counts),
        suspects: suspects.iter().take(SUSPECTS).cloned().collect(),
        transitions: transitions(rows),
        usage: run.usage,
        proof: run.proof.clone(),
        confidence,
        duration_ms: crate::journal::now_ms().saturating_sub(run.begun_ms),
        busy_ms: run.busy_ms,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{FailedBaseline, StepResult};
    use crate::runs_for_tests::{attempt, begun, plan_run, proof_facts};

    /// Facts of a proof behind which the base passed or failed again.
    fn facts(reverted: bool) -> ProofFacts {
        ProofFacts { reverted: Some(plan_run(reverted)), ..proof_facts() }
    }

    fn ended(state: RepairState, change: impl FnOnce(&mut Run)) -> u8 {
        exit_code(&run_that_ended(state, change))
    }

    fn run_that_ended(state: RepairState, change: impl FnOnce(&mut Run)) -> Run {
        let mut run = begun(0);
        let (signature, id, image) = (String::new(), String::new(), String::new());
        let counts = TestCounts { passed: 0, total: 1 };
        run.baseline = Some(FailedBaseline { counts, signature, run: id, image, silent: false });
        run.ended = Some(state);
        change(&mut run);
        run
    }

    fn seen(run: &Run) -> Vec<String> {
        look_at("r", run, &Policy::default())
    }

    #[test]
    fn an_end_before_the_baseline_says_what_caused_it() {
        let why = "the repository does not build without a patch: no rule";
        let ended = |class: Option<ErrorClass>| {
            let run = run_that_ended(RepairState::Failure, |run| {
                run.baseline = None;
                run.why = why.to_owned();
                run.error =
                    class.map(|class| StepError { class, state: RepairState::Init, retries: 0 });
            });
            assert_eq!(exit_code(&run), exit::INCONCLUSIVE);
            seen(&run).remove(0)
        };
        assert!(ended(Some(ErrorClass::UnhandledException)).ends_with(why));
        assert!(ended(Some(ErrorClass::Timeout)).starts_with("the limit of time"));
        assert!(ended(None).contains("no failure of the base"));
    }

    #[test]
    fn builds_without_a_sandbox_are_named() {
        let open = Policy::parse("policy.toml", "version = 1\nsandbox = false\n").unwrap();
        let run = run_that_ended(RepairState::Failure, |_| ());
        let named = |policy| look_at("r", &run, policy).iter().any(|one| one.contains("sandbox"));
        assert!(named(&open) && !named(&Policy::default()));
    }

    #[test]
    fn a_transition_tells_where_it_leads() {
        let result = StepResult::of(RepairEvent::BuildFailed, "no");
        let outcome = Outcome { state: RepairState::BuildRun, part: None, result };
        let row = Row {
            seq: 7,
            time_ms: 1000,
            entry: Entry::Outcome(outcome),
            hash: crate::journal::Digest::default(),
        };
        let found = transitions(&[row]).remove(0);
        assert_eq!(
            (found.seq, found.from, found.to),
            (7, RepairState::BuildRun, RepairState::ErrorRecovery)
        );
        assert_eq!((found.time.as_str(), found.reason.as_str()), ("1970-01-01T00:00:01Z", "no"));
    }

    #[test]
    fn a_success_that_is_not_proven_has_a_warning_and_each_end_says_what_to_look_at() {
        use RepairState::{Aborted, Failure, Success};
        let proven = run_that_ended(Success, |run| run.proof = Some(facts(false)));
        assert_eq!(warning(&proven), None);
        assert!(seen(&proven)[0].contains("held-out"), "{:?}", seen(&proven));
        let accepted = run_that_ended(Success, |run| {
            run.attempts.push(attempt("p", TestCounts { passed: 3, total: 4 }, Some("t:fail")));
        });
        assert_eq!(warning(&accepted).as_deref(), Some("only 3 of 4 tests pass"));
        let lacking = run_that_ended(Success, |run| run.proof = Some(facts(true)));
        assert!(warning(&lacking).is_some_and(|text| text.starts_with("not proven: ")));
        for (state, said) in [
            (Success, "still fail"),
            (Aborted, "jig repair fork r@SEQ"),
            (Failure, "suspect lines"),
        ] {
            let found = seen(&run_that_ended(state, |_| ()));
            assert!(found.len() == 1 && found[0].contains(said), "{state}: {found:?}");
        }
    }

    #[test]
    fn each_end_has_its_exit_code() {
        use RepairState::{Aborted, Failure, Success};
        let failed = |class| StepError { class, state: RepairState::TestRun, retries: 3 };
        let rig = failed(ErrorClass::TestEnvFailure);
        assert_eq!(ended(Success, |run| run.proof = Some(facts(false))), exit::PASS);
        // Accepted with a warning: a required test fails.
        assert_eq!(ended(Success, |_| ()), exit::INCONCLUSIVE);
        assert_eq!(ended(Failure, |_| ()), exit::FAIL);
        assert_eq!(ended(Failure, |run| run.baseline = None), exit::INCONCLUSIVE);
        assert_eq!(ended(Failure, |run| run.proof = Some(facts(true))), exit::INCONCLUSIVE);
        assert_eq!(ended(Failure, |run| run.error = Some(rig)), exit::LAB);
        assert_eq!(ended(Aborted, |_| ()), exit::INCONCLUSIVE);
        assert_eq!(ended(Aborted, |run| run.error = Some(rig)), exit::LAB);
        // A run that is stopped while its rig fails was stopped.
        let stopped = |run: &mut Run| {
            (run.stop, run.error) = (Some("enough".to_owned()), Some(rig));
        };
        assert_eq!(ended(Aborted, stopped), exit::CANCELLED);
        let model = failed(ErrorClass::ModelFailure);
        assert_eq!(ended(Failure, |run| run.error = Some(model)), exit::FAIL);
    }
}
