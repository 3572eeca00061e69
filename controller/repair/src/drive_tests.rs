//! Tests of the driver by a scripted run, cut off behind each of its rows.

use std::path::Path;

use super::*;
use crate::convergence::TestCounts;
use crate::journal::{Contract, FailedBaseline, Proposed, Request, Row, Usage};
use crate::machine::RepairState as S;
use crate::recovery::{RecoveryAction, recovery_of};
use crate::redact::Redactor;
use crate::tests::in_memory;

const LIMIT: Duration = Duration::from_secs(60);

/// A run that reaches its goal in the third iteration: its second candidate does not build at
/// first, and the rig fails below it, which costs none. What a step
/// answers depends on the state of the run alone.
#[derive(Default)]
struct Script {
    /// A state that never answers.
    hangs: Option<S>,
    /// A state that asks for an approval.
    asks: Option<S>,
}

fn result(event: RepairEvent, facts: Vec<Fact>) -> StepResult {
    StepResult { facts, ..StepResult::of(event, "as written") }
}

fn answer(state: S, part: Option<RepairSubState>, run: &Run) -> StepResult {
    use RepairEvent as E;
    let failed = |event, class| result(event, vec![Fact::Failed { class }]);
    if part != state.sub_states().last().copied() {
        return StepResult { event: None, ..StepResult::of(E::Abort, "a part is done") };
    }
    let counts = |passed| TestCounts { passed, total: 3 };
    match state {
        S::Init => {
            let signature = "assert at ring.c:12".to_owned();
            let (run, image) = ("run-0".to_owned(), "base".to_owned());
            let baseline = Fact::Baseline(FailedBaseline {
                counts: counts(1),
                signature,
                run,
                image,
                silent: false,
            });
            result(E::ContextReady, vec![baseline])
        }
        S::CodeAnalysis => result(E::PatchPlanned, Vec::new()),
        S::PatchGeneration => {
            let usage = Usage { tokens: 100, micro_usd: 7 };
            let patch = format!("patch-{}", run.iteration);
            let agent = "script".to_owned();
            let hypothesis = "it wraps".to_owned();
            let diff = String::new();
            let proposed = Proposed { patch, diff, agent, hypothesis, usage, diagnostic: false };
            result(E::PatchValid, vec![Fact::Proposed(proposed)])
        }
        S::PatchApply => {
            let commit = format!("commit-{}", run.iteration);
            result(E::WorkspaceUpdated, vec![Fact::Applied { commit, risk: 0 }])
        }
        S::BuildSetup => result(E::BuildReady, Vec::new()),
        S::BuildRun if run.iteration == 2 && run.image.is_none() => {
            failed(E::BuildFailed, ErrorClass::BuildFailure)
        }
        S::BuildRun => result(E::BuildPassed, Vec::new()),
        S::TestSetup => result(E::EnvironmentReady, vec![Fact::Flashed]),
        S::TestRun if run.flash_cycles == 2 => failed(E::RunnerFailed, ErrorClass::TestEnvFailure),
        S::TestRun => {
            let passed = if run.iteration < 3 { 2 } else { 3 };
            let signature = (passed < 3).then(|| "assert at ring.c:14".to_owned());
            let run = format!("run-{}", run.iteration);
            result(E::TestFinished, vec![Fact::Tested { run, counts: counts(passed), signature }])
        }
        S::ResultCollection => result(E::ResultNormalized, Vec::new()),
        S::ResultAnalysis => result(E::DecisionProduced, Vec::new()),
        S::ConvergenceCheck => {
            let all = run.attempts.last().is_some_and(|attempt| attempt.signature.is_none());
            result(if all { E::Converged } else { E::Continue }, Vec::new())
        }
        S::ErrorRecovery => {
            let Some(error) = run.error else { return result(E::Unrecoverable, Vec::new()) };
            let recovery = recovery_of(error.class, error.state, error.retries, true, false);
            let action = recovery.action;
            let uses_iteration = recovery.uses_iteration;
            let mut facts = vec![Fact::Recovered { action, uses_iteration }];
            if action == RecoveryAction::CleanBuild {
                facts.push(Fact::Built { image: "clean".to_owned() });
            }
            result(recovery.event, facts)
        }
        S::Success | S::Failure | S::Aborted => result(E::Reported, Vec::new()),
        S::Idle => result(E::TaskRequested, Vec::new()),
    }
}

struct Scripted {
    state: S,
    part: Option<RepairSubState>,
    hangs: bool,
    asks: bool,
}

impl RepairSteps for Script {
    fn step(&self, state: S, part: Option<RepairSubState>) -> Box<dyn RepairStep + '_> {
        let (hangs, asks) = (self.hangs == Some(state), self.asks == Some(state));
        Box::new(Scripted { state, part, hangs, asks })
    }
}

impl RepairStep for Scripted {
    fn effect(&self) -> Effect {
        match self.state {
            S::TestSetup | S::TestRun => Effect::Device,
            S::CodeAnalysis | S::ConvergenceCheck => Effect::Pure,
            _ => Effect::Idempotent,
        }
    }

    fn flashes(&self) -> u8 {
        0
    }

    fn limit(&self) -> Duration {
        LIMIT
    }

    fn run<'a>(&'a self, run: &'a Run) -> StepFuture<'a> {
        Box::pin(async move {
            if self.hangs {
                std::future::pending::<()>().await;
            }
            if self.asks && !run.approved.contains("digest") && run.rejected.is_none() {
                let waits = Fact::Waits { digest: "digest".to_owned() };
                return StepResult { event: None, ..result(RepairEvent::Abort, vec![waits]) };
            }
            answer(self.state, self.part, run)
        })
    }
}

fn begun(folder: &Path) -> Journal {
    let contract = Contract {
        goal: "the ring test passes".to_owned(),
        task: "00".to_owned(),
        base: "base".to_owned(),
        ..Contract::default()
    };
    Journal::begin(folder, contract, Redactor::default()).unwrap()
}

/// Drives a run until it ends, or for ever where it waits.
async fn drive(journal: &mut Journal, steps: &dyn RepairSteps) -> Result<Run, DriveError> {
    let folder = in_memory();
    let lock = DriverLock::take(folder.path()).unwrap();
    super::drive(journal, &lock, steps, Waiting::Await).await
}

/// What must be the same however often a run was cut off.
fn end(run: &Run) -> impl PartialEq + std::fmt::Debug {
    let attempts: Vec<_> = run.attempts.iter().map(|a| (a.iteration, a.counts)).collect();
    let changes = (run.patches.clone(), run.applied.clone(), run.image.clone());
    (run.ended, run.iteration, attempts, changes, run.usage)
}

#[tokio::test(start_paused = true)]
async fn a_run_goes_through_errors_to_its_goal() {
    let folder = in_memory();
    let mut journal = begun(folder.path());
    let run = drive(&mut journal, &Script::default()).await.unwrap();
    assert_eq!((run.ended, run.iteration), (Some(S::Success), 3));
    let tested: Vec<_> = run.attempts.iter().map(|a| (a.iteration, a.counts.passed)).collect();
    assert_eq!(tested, [(1, 2), (2, 2), (3, 3)]);
    assert_eq!(run.usage, Usage { tokens: 300, micro_usd: 21 });
    // What was driven to its end is not driven on.
    let rows = journal.rows().unwrap();
    assert_eq!(drive(&mut journal, &Script::default()).await.unwrap(), run);
    assert_eq!(journal.rows().unwrap(), rows);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_cut_off_behind_any_row_reaches_the_same_end() {
    let folder = in_memory();
    let mut journal = begun(folder.path());
    let undisturbed = drive(&mut journal, &Script::default()).await.unwrap();
    let rows = journal.rows().unwrap();
    for cut in 1..=rows.len() as u64 {
        let other = in_memory();
        let mut fork = journal.fork(cut, other.path()).unwrap();
        let run = drive(&mut fork, &Script::default()).await.unwrap();
        assert_eq!(
            end(&run),
            end(&undisturbed),
            "cut off behind row {cut}: {:?}",
            rows.get(cut as usize - 1)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_that_was_cut_off_beside_a_board_is_followed_by_the_recovery_of_the_rig() {
    let folder = in_memory();
    let mut journal = begun(folder.path());
    drive(&mut journal, &Script::default()).await.unwrap();
    let rows = journal.rows().unwrap();
    for state in [S::TestSetup, S::TestRun] {
        let begins =
            |row: &&Row| matches!(&row.entry, Entry::Intent(intent) if intent.state == state);
        let cut = rows.iter().find(begins).unwrap().seq;
        let other = in_memory();
        let mut fork = journal.fork(cut, other.path()).unwrap();
        drive(&mut fork, &Script::default()).await.unwrap();
        let behind = &fork.rows().unwrap()[cut as usize..];
        let Entry::Outcome(outcome) = &behind[0].entry else { panic!("{:?}", behind[0]) };
        assert_eq!(outcome.result.facts, [Fact::Failed { class: ErrorClass::TestEnvFailure }]);
        let Entry::Intent(next) = &behind[1].entry else { panic!("{:?}", behind[1]) };
        assert_eq!(next.state, S::ErrorRecovery);
    }
}

#[test]
fn a_step_that_was_cut_off_has_flashed_the_board_as_often_as_it_may() {
    let folder = in_memory();
    let mut journal = begun(folder.path());
    let (part, effect, flashes) = (None, Effect::Device, 3);
    let intent = |state| Intent { state, part, effect, input: String::new(), flashes };
    for _ in 0..3 {
        journal.append(&Entry::Intent(intent(S::Init))).unwrap();
    }
    let mut run = Run::of(&journal.rows().unwrap()).unwrap();
    assert_eq!(run.flash_cycles, 6, "the third one is under way");
    (run.state, run.begun_step) = (S::TestRun, Some(intent(S::TestRun)));
    let facts = without_step(&run).unwrap().facts;
    assert_eq!(facts.iter().filter(|fact| **fact == Fact::Flashed).count(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_takes_too_long_is_recovered_until_no_recovery_is_left() {
    for (hangs, iterations) in [(S::TestRun, 1), (S::BuildRun, 4)] {
        let folder = in_memory();
        let mut journal = begun(folder.path());
        let script = Script { hangs: Some(hangs), ..Script::default() };
        let run = drive(&mut journal, &script).await.unwrap();
        assert_eq!((run.ended, run.iteration), (Some(S::Failure), iterations), "{hangs}");
        let timed_out = |row: &&Row| matches!(&row.entry, Entry::Outcome(o) if o.result.event == Some(RepairEvent::TimedOut));
        assert_eq!(journal.rows().unwrap().iter().filter(timed_out).count(), 4, "{hangs}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_to_stop_ends_a_step_that_is_under_way() {
    let folder = in_memory();
    let mut journal = begun(folder.path());
    let path = folder.path().to_owned();
    let other = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut journal = Journal::open(&path, Redactor::default()).unwrap();
        let why = "enough".to_owned();
        journal.append(&Entry::Request(Request::Stop { why })).unwrap();
    };
    let script = Script { hangs: Some(S::Init), ..Script::default() };
    let (run, ()) = tokio::join!(drive(&mut journal, &script), other);
    assert_eq!(run.unwrap().ended, Some(S::Aborted));
    let reasons: Vec<_> = journal
        .rows()
        .unwrap()
        .into_iter()
        .filter_map(|row| match row.entry {
            Entry::Outcome(outcome) => Some(outcome.result.reason),
            _ => None,
        })
        .collect();
    assert_eq!(reasons, ["enough", "as written"]);
}

#[tokio::test(start_paused = true)]
async fn an_approval_is_waited_for_and_survives_a_cut() {
    let script = || Script { asks: Some(S::PatchApply), ..Script::default() };
    let folder = in_memory();
    let mut journal = begun(folder.path());
    let waiting = tokio::time::timeout(LIMIT * 3, drive(&mut journal, &script())).await;
    assert!(waiting.is_err(), "nothing was approved");
    let waits = Run::of(&journal.rows().unwrap()).unwrap();
    assert_eq!((waits.state, waits.waits.as_deref()), (S::PatchApply, Some("digest")));
    let approve = |digest: &str| Entry::Request(Request::Approve { digest: digest.to_owned() });
    journal.append(&approve("another")).unwrap();
    let waiting = tokio::time::timeout(LIMIT, drive(&mut journal, &script())).await;
    assert!(waiting.is_err(), "something else was approved");
    journal.append(&approve("digest")).unwrap();
    let run = drive(&mut journal, &script()).await.unwrap();
    assert_eq!(run.ended, Some(S::Success));
}

#[test]
fn rows_that_the_machine_cannot_have_written_are_refused() {
    let folder = in_memory();
    let mut journal = begun(folder.path());
    let outcome = |state, event| {
        Entry::Outcome(Outcome { state, part: None, result: StepResult::of(event, "made up") })
    };
    let fold = |journal: &Journal| Run::of(&journal.rows().unwrap()).map_err(|e| e.to_string());
    journal.append(&outcome(S::Init, RepairEvent::Converged)).unwrap();
    assert_eq!(fold(&journal).unwrap_err(), "row 2");
    let folder = in_memory();
    let mut journal = begun(folder.path());
    journal.append(&outcome(S::TestRun, RepairEvent::TestFinished)).unwrap();
    let error = fold(&journal).unwrap_err();
    assert_eq!(error, "row 2: TEST_RUN has an outcome, and the run is in INIT");
    assert_eq!(
        Run::of(&[]).unwrap_err().to_string(),
        "row 1: a run is begun by its first row and by no other"
    );
}
