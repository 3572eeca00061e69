//! The runner with actors, planners and clocks that are played.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jig_model::protocol::BoxFuture;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::workflow::{
    ActionDone, ContextUpdate, Decision, PlanGenerator, PlanPlanner, PlannerError,
    PlannerObservation, PlanningResponse, Proposal, RejectUpdates, TransitionAdvice,
};

/// What a scripted action does.
#[derive(Debug, Clone, Copy)]
enum Act {
    Well,
    Fail(Cause),
    Take(Duration),
    Never,
}

/// Does what the script says for a path, in order; what is not scripted goes well.
#[derive(Default)]
struct Script {
    acts: HashMap<String, VecDeque<Act>>,
    done: Vec<String>,
    dropped: Arc<AtomicBool>,
}

struct SetOnDrop(Arc<AtomicBool>);
impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl ActionExecutor for Script {
    fn execute<'a>(
        &'a mut self,
        path: &'a str,
        _: &'a Action,
    ) -> BoxFuture<'a, Result<ActionDone, ActionFailure>> {
        self.done.push(path.to_owned());
        let act = self.acts.get_mut(path).and_then(VecDeque::pop_front).unwrap_or(Act::Well);
        let guard = SetOnDrop(Arc::clone(&self.dropped));
        Box::pin(async move {
            match act {
                Act::Well => {}
                Act::Fail(cause) => return Err(ActionFailure::new(cause, "scripted")),
                Act::Take(time) => tokio::time::sleep(time).await,
                Act::Never => {
                    let _guard = guard;
                    std::future::pending::<()>().await;
                }
            }
            Ok(ActionDone::default())
        })
    }
}

type Answer = Result<PlanningResponse, PlannerError>;

/// A planner that is a function of the state it is asked in and of how often it was asked.
struct Ask<F>(F, u32);

impl<F: FnMut(&PlannerObservation<'_>, u32) -> Answer + Send> Planner for Ask<F> {
    fn check_goal<'a>(
        &'a mut self,
        observation: &'a PlannerObservation<'a>,
    ) -> BoxFuture<'a, Answer> {
        self.1 += 1;
        let answer = (self.0)(observation, self.1);
        Box::pin(std::future::ready(answer))
    }
}

fn ask<F: FnMut(&PlannerObservation<'_>, u32) -> Answer + Send>(f: F) -> Ask<F> {
    Ask(f, 0)
}

/// What the built-in planner answers.
fn by_plan(observation: &PlannerObservation<'_>) -> PlanningResponse {
    let more = observation.position.has_next_behavior(observation.plan);
    match observation.state() {
        State::ActionCompleted | State::BehaviorRunning => PlanningResponse::new(!more, more),
        State::StepCompleted | State::StageCompleted => PlanningResponse::new(true, false),
        _ => PlanningResponse::new(false, false),
    }
}

/// A planner that follows the plan but proposes a change when a state is first met.
fn proposing(
    at: State,
    update: ContextUpdate,
) -> Ask<impl FnMut(&PlannerObservation<'_>, u32) -> Answer> {
    let mut update = Some(update);
    ask(move |observation, _| {
        let mut response = by_plan(observation);
        if observation.state() == at {
            response.context_update = update.take().unwrap_or_default();
        }
        Ok(response)
    })
}

struct Decide(Option<Decision>);
impl UpdateDecider for Decide {
    fn decide<'a>(&'a mut self, _: &'a Proposal, _: &'a Plan) -> BoxFuture<'a, Decision> {
        match self.0 {
            Some(decision) => Box::pin(std::future::ready(decision)),
            None => Box::pin(std::future::pending()),
        }
    }
}

struct Stage<'a> {
    plan: Plan,
    script: Script,
    planner: Box<dyn Planner + 'a>,
    generator: Box<dyn Generator + 'a>,
    decision: Option<Decision>,
    /// Cancels when the machine comes into this state.
    cancel_at: Option<State>,
    cancel: CancelToken,
}

struct Seen {
    outcome: WorkflowOutcome,
    done: Vec<String>,
    events: Vec<RunEvent>,
    dropped: bool,
    took: Duration,
}

impl Seen {
    fn moves(&self) -> String {
        let moves = self.outcome.record.fsm.history.iter().map(|m| m.event.as_str());
        moves.collect::<Vec<_>>().join(" ")
    }

    fn cause(&self) -> Option<Cause> {
        self.outcome.failure.as_ref().map(|f| f.cause)
    }

    fn notes(&self) -> Vec<&str> {
        let note = |event: &'_ RunEvent| matches!(event, RunEvent::Note { .. });
        let notes = self.events.iter().filter(|e| note(e));
        notes.map(|e| if let RunEvent::Note { text } = e { text.as_str() } else { "" }).collect()
    }
}

impl<'a> Stage<'a> {
    fn new(plan: &str) -> Self {
        Self {
            plan: Plan::parse("test", plan).unwrap_or_else(|e| panic!("{e}")),
            script: Script::default(),
            planner: Box::new(PlanPlanner),
            generator: Box::new(PlanGenerator),
            decision: Some(Decision::Reject),
            cancel_at: None,
            cancel: CancelToken::new(),
        }
    }

    fn act(mut self, path: &str, acts: &[Act]) -> Self {
        self.script.acts.insert(path.to_owned(), acts.iter().copied().collect());
        self
    }

    fn planner(mut self, planner: impl Planner + 'a) -> Self {
        self.planner = Box::new(planner);
        self
    }

    async fn run(mut self) -> Seen {
        let mut events = Vec::new();
        let token = self.cancel.clone();
        let cancel_at = self.cancel_at;
        let mut observer = |event: RunEvent| {
            if let RunEvent::Workflow { to, .. } = &event
                && cancel_at.is_some_and(|state| state.as_str() == to)
            {
                token.cancel();
            }
            events.push(event);
        };
        let begun = Instant::now();
        let mut decider = Decide(self.decision);
        let cast = Cast {
            planner: &mut *self.planner,
            generator: &mut *self.generator,
            executor: &mut self.script,
            decider: &mut decider,
            observer: &mut observer,
            clock: &|| Timestamp::UNIX_EPOCH,
            cancel: self.cancel.clone(),
            retry: StageRetry::default(),
        };
        let outcome = run(&self.plan, cast).await;
        let took = begun.elapsed();
        // What holds for every run, however it ends.
        assert_eq!(outcome.record.refused, [], "the runner never tries what is not allowed");
        assert_eq!(outcome.record.fsm.replay(), Ok(outcome.state));
        assert_eq!(outcome.record.fsm.state, outcome.state);
        assert_eq!(outcome.failure.is_none(), outcome.state == State::WorkflowCompleted);
        let dropped = self.script.dropped.load(Ordering::SeqCst);
        Seen { outcome, done: self.script.done, events, dropped, took }
    }
}

const TWO_STAGES: &str = r#"
version = 1
name = "p"
goal = "all"
timeout = "20s"
[[stage]]
name = "s1"
goal = "up"
[[stage.step]]
name = "t1"
actions = [{ power = "on" }, { expect = "ready" }]
[[stage.step]]
name = "t2"
goal = "both"
[[stage.step.behavior]]
name = "b1"
actions = [{ reset = true }]
[[stage.step.behavior]]
name = "b2"
actions = [{ expect = "x" }]
[[stage]]
name = "s2"
[[stage.step]]
name = "t3"
actions = [{ expect = "y" }]
"#;

fn one_step(attempts: u32) -> String {
    format!(
        "version = 1\nname = 'p'\ntimeout = '20s'\n[[stage]]\nname = 's'\n[[stage.step]]\n\
         name = 't'\nattempts = {attempts}\nactions = [{{ power = 'on' }}, {{ expect = 'x' }}]\n"
    )
}

const POWER: &str = "s/t/t/power-1";
const EXPECT: &str = "s/t/t/expect-1";
const MISSED: Act = Act::Fail(Cause::ExpectMissed);

#[tokio::test(start_paused = true)]
async fn a_failure_without_blame_proves_nothing() {
    let seen = Stage::new(&one_step(1)).act(EXPECT, &[Act::Fail(Cause::Passed)]).run().await;
    assert_eq!((seen.outcome.state, seen.cause()), (State::Error, Some(Cause::GoalMissed)));
}

#[test]
fn a_run_can_move_between_threads() {
    fn is_send<T: Send>(_: fn(&'static Plan, Cast<'static>) -> T) {}
    is_send(run);
}

#[tokio::test(start_paused = true)]
async fn a_good_run_visits_exactly_the_agreed_sequence() {
    let seen = Stage::new(TWO_STAGES).run().await;
    assert_eq!(
        seen.moves(),
        "START_WORKFLOW START_STEP START_BEHAVIOR START_ACTION COMPLETE_ACTION NEXT_ACTION \
         COMPLETE_ACTION COMPLETE_BEHAVIOR COMPLETE_STEP NEXT_STEP START_BEHAVIOR START_ACTION \
         COMPLETE_ACTION COMPLETE_BEHAVIOR NEXT_BEHAVIOR START_ACTION COMPLETE_ACTION \
         COMPLETE_BEHAVIOR COMPLETE_STEP COMPLETE_STAGE NEXT_STAGE START_STEP START_BEHAVIOR \
         START_ACTION COMPLETE_ACTION COMPLETE_BEHAVIOR COMPLETE_STEP COMPLETE_STAGE \
         COMPLETE_WORKFLOW"
    );
    assert_eq!(
        seen.done,
        [
            "s1/t1/t1/power-1",
            "s1/t1/t1/expect-1",
            "s1/t2/b1/reset-1",
            "s1/t2/b2/expect-1",
            "s2/t3/t3/expect-1"
        ]
    );
    assert_eq!((seen.outcome.state, seen.outcome.restarts), (State::WorkflowCompleted, 0));
    let stages = &seen.outcome.record.location.progress.stages;
    assert_eq!((stages.completed.len(), stages.remaining.len()), (2, 0));
    let started = seen.events.iter().filter(|e| matches!(e, RunEvent::ActionStarted { .. }));
    let ended =
        seen.events.iter().filter(|e| matches!(e, RunEvent::ActionEnded { failed: None, .. }));
    assert_eq!((started.count(), ended.count()), (5, 5));
}

#[tokio::test(start_paused = true)]
async fn a_failed_behaviour_is_started_again_while_attempts_are_left() {
    let seen = Stage::new(&one_step(3)).act(EXPECT, &[MISSED, MISSED]).run().await;
    assert_eq!(seen.done, [POWER, EXPECT, POWER, EXPECT, POWER, EXPECT]);
    assert_eq!((seen.outcome.state, seen.outcome.restarts), (State::WorkflowCompleted, 2));
    let again = "NEXT_ACTION FAIL START_BEHAVIOR START_ACTION COMPLETE_ACTION ";
    assert!(seen.moves().contains(&again.repeat(2)), "{}", seen.moves());
}

#[tokio::test(start_paused = true)]
async fn without_attempts_left_the_workflow_stays_in_error() {
    for attempts in 1..4 {
        let seen = Stage::new(&one_step(attempts)).act(EXPECT, &[MISSED; 9]).run().await;
        assert_eq!(seen.outcome.state, State::Error);
        assert_eq!(seen.cause(), Some(Cause::ExpectMissed));
        assert_eq!(seen.outcome.restarts, attempts - 1);
        assert_eq!(seen.done.len(), 2 * attempts as usize);
        let current = &seen.outcome.record.location.current;
        assert_eq!(current.behavior_id.as_deref(), Some("t"));
        assert_eq!(current.behavior_iteration, attempts);
    }
}

#[tokio::test(start_paused = true)]
async fn only_causes_that_blame_the_target_use_up_attempts() {
    for &cause in Cause::ALL {
        let seen = Stage::new(&one_step(2)).act(EXPECT, &[Act::Fail(cause)]).run().await;
        match cause.fault() {
            Some(Fault::Target) => {
                assert_eq!(seen.outcome.state, State::WorkflowCompleted, "{cause}");
                assert_eq!(seen.outcome.restarts, 1, "{cause}");
            }
            Some(Fault::Cancelled) => assert_eq!(seen.outcome.state, State::Cancelled, "{cause}"),
            None => {
                assert_eq!(seen.outcome.state, State::WorkflowCompleted, "{cause}");
                assert_eq!(seen.outcome.restarts, 1, "a failure is never a pass");
            }
            Some(Fault::Lab | Fault::Unknown | Fault::Profile | Fault::Usage | Fault::Bug) => {
                assert_eq!(seen.outcome.state, State::Error, "{cause}");
                assert_eq!((seen.cause(), seen.outcome.restarts), (Some(cause), 0));
                assert!(seen.moves().ends_with(" FAIL"), "{}", seen.moves());
            }
        }
    }
}

fn steps_update() -> ContextUpdate {
    let update = json!({"step": [{"name": "new", "actions": [{"sleep": "1s"}]}]});
    ContextUpdate { stage_steps_update: Some(update), ..Default::default() }
}

fn workflow_update() -> ContextUpdate {
    let steps = json!([{"name": "t", "actions": [{"expect": "z"}]}]);
    let update = json!({"stage": [{"name": "new", "step": steps}]});
    ContextUpdate { workflow_update: Some(update), ..Default::default() }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_run_is_cancelled_from_every_state_that_allows_it() {
    for &state in State::ALL {
        let update = match state {
            State::StepUpdatePending => steps_update(),
            _ => workflow_update(),
        };
        let mut stage = Stage::new(TWO_STAGES)
            .act("s2/t3/t3/expect-1", &[Act::Never])
            .planner(proposing(State::StepRunning, update));
        stage.plan.stages[0].steps[1].attempts = 2;
        stage.decision = None;
        stage.cancel_at = Some(state);
        match state {
            State::Idle => stage.cancel.cancel(),
            State::Error => stage = stage.act("s1/t1/t1/power-1", &[MISSED]),
            State::WorkflowCompleted | State::Cancelled => continue,
            State::WorkflowUpdatePending | State::StepUpdatePending => {}
            _ => stage = stage.planner(PlanPlanner),
        }
        if state == State::Error {
            stage.plan.stages[0].steps[0].attempts = 2;
        }
        let seen = stage.run().await;
        assert_eq!(seen.cause(), Some(Cause::Cancelled), "{state}");
        let expected = match state {
            // The table has no CANCEL here, so none is tried.
            State::Idle | State::Error => state,
            _ => State::Cancelled,
        };
        assert_eq!(seen.outcome.state, expected, "{state}");
        if expected == State::Cancelled {
            let last = seen.outcome.record.fsm.history.last().unwrap();
            assert_eq!((last.from, last.event), (state, Event::Cancel));
        }
        assert!(seen.took < Duration::from_secs(1), "{state}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_after_the_end_changes_nothing() {
    let mut stage = Stage::new(TWO_STAGES);
    stage.cancel_at = Some(State::WorkflowCompleted);
    assert_eq!(stage.run().await.outcome.state, State::WorkflowCompleted);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_drops_the_action_under_way() {
    let stage = Stage::new(&one_step(1)).act(EXPECT, &[Act::Never]);
    let cancel = stage.cancel.clone();
    let (seen, ()) = tokio::join!(stage.run(), async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        cancel.cancel();
    });
    assert_eq!((seen.outcome.state, seen.dropped), (State::Cancelled, true));
    assert_eq!(seen.took, Duration::from_secs(3));
    let ended = seen.events.iter().any(|e| {
        matches!(e, RunEvent::ActionEnded { failed: Some(Cause::Cancelled), duration_ms: 3000, .. })
    });
    assert!(ended, "{:?}", seen.events);
}

#[tokio::test(start_paused = true)]
async fn a_confirmed_workflow_update_replaces_the_stages_ahead() {
    let mut stage =
        Stage::new(TWO_STAGES).planner(proposing(State::StageRunning, workflow_update()));
    stage.decision = Some(Decision::Confirm);
    let seen = stage.run().await;
    assert_eq!(seen.outcome.state, State::WorkflowCompleted);
    assert_eq!(seen.done.last().map(String::as_str), Some("new/t/t/expect-1"));
    assert!(!seen.done.iter().any(|path| path.starts_with("s2/")), "{:?}", seen.done);
    assert!(seen.moves().contains(
        "START_ACTION UPDATE_WORKFLOW COMPLETE_ACTION UPDATE_WORKFLOW_CONFIRMED NEXT_ACTION"
    ));
}

#[tokio::test(start_paused = true)]
async fn a_rejected_workflow_update_changes_nothing() {
    let seen = Stage::new(TWO_STAGES)
        .planner(proposing(State::StageRunning, workflow_update()))
        .run()
        .await;
    let plain = Stage::new(TWO_STAGES).run().await;
    assert_eq!((seen.outcome.state, &seen.done), (State::WorkflowCompleted, &plain.done));
    assert!(seen.moves().contains("UPDATE_WORKFLOW_REJECTED NEXT_ACTION"), "{}", seen.moves());
}

#[tokio::test(start_paused = true)]
async fn a_confirmed_step_update_replaces_the_steps_ahead() {
    let mut stage = Stage::new(TWO_STAGES).planner(proposing(State::StepRunning, steps_update()));
    stage.decision = Some(Decision::Confirm);
    let seen = stage.run().await;
    assert_eq!(seen.outcome.state, State::WorkflowCompleted);
    assert_eq!(
        seen.done,
        ["s1/t1/t1/power-1", "s1/t1/t1/expect-1", "s1/new/new/sleep-1", "s2/t3/t3/expect-1"]
    );
    assert!(seen.moves().contains("START_ACTION UPDATE_STEP UPDATE_STEP_CONFIRMED NEXT_ACTION"));
}

#[tokio::test(start_paused = true)]
async fn a_rejected_step_update_ends_in_error() {
    let mut stage = Stage::new(TWO_STAGES).planner(proposing(State::StepRunning, steps_update()));
    stage.plan.stages[0].steps[0].attempts = 5;
    let seen = stage.run().await;
    assert_eq!((seen.outcome.state, seen.cause()), (State::Error, Some(Cause::Cancelled)));
    assert!(seen.moves().ends_with("UPDATE_STEP UPDATE_STEP_REJECTED"), "{}", seen.moves());
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_proposal_is_rejected_when_the_time_is_over() {
    for (update, end) in [
        (workflow_update(), "COMPLETE_ACTION UPDATE_WORKFLOW_REJECTED FAIL"),
        (steps_update(), "UPDATE_STEP UPDATE_STEP_REJECTED"),
    ] {
        let mut stage = Stage::new(TWO_STAGES).planner(proposing(State::StepRunning, update));
        stage.decision = None;
        let seen = stage.run().await;
        assert_eq!((seen.outcome.state, seen.cause()), (State::Error, Some(Cause::PlannerFailed)));
        assert!(seen.moves().ends_with(end), "{}", seen.moves());
        assert_eq!(seen.took, Duration::from_secs(20));
    }
}

#[tokio::test(start_paused = true)]
async fn proposals_that_are_no_plan_or_too_late_are_told_and_dropped() {
    let bad = json!({"stage": [{"name": "s1", "step": 3}]});
    let bad = ContextUpdate { workflow_update: Some(bad), ..Default::default() };
    let seen = Stage::new(TWO_STAGES).planner(proposing(State::StepRunning, bad)).run().await;
    assert_eq!(seen.outcome.state, State::WorkflowCompleted);
    assert!(!seen.moves().contains("UPDATE"));
    let notes = seen.notes();
    assert!(notes[0].starts_with("ignored a proposal: proposed change planner has"), "{notes:?}");
    let planner = proposing(State::StageCompleted, workflow_update());
    let seen = Stage::new(&one_step(1)).planner(planner).run().await;
    assert_eq!(seen.notes(), ["1 proposed changes were never raised: no action followed"]);
    assert_eq!(seen.outcome.state, State::WorkflowCompleted);
}

#[tokio::test(start_paused = true)]
async fn proposals_without_end_come_to_an_end() {
    let mut count = 0;
    let planner = ask(move |observation: &PlannerObservation<'_>, _| {
        count += 1;
        let mut response = by_plan(observation);
        let steps = json!([{"name": "t", "actions": [{"reset": true}]}]);
        let update = json!({"stage": [{"name": format!("n{count}"), "step": steps}]});
        response.context_update.workflow_update = Some(update);
        Ok(response)
    });
    let mut stage = Stage::new(&one_step(1)).planner(planner);
    stage.decision = Some(Decision::Confirm);
    let seen = stage.run().await;
    assert_eq!(seen.outcome.state, State::WorkflowCompleted);
    assert!(seen.done.len() < 200, "{}", seen.done.len());
    assert!(seen.notes().iter().any(|n| n.contains("there were 100 before it")));
}

#[tokio::test(start_paused = true)]
async fn a_planner_that_never_has_enough_is_stopped() {
    let planner = ask(|observation: &PlannerObservation<'_>, _| {
        let feedback = observation.state() == State::ActionCompleted;
        Ok(PlanningResponse::new(false, feedback))
    });
    let seen = Stage::new(&one_step(1)).planner(planner).run().await;
    assert_eq!((seen.outcome.state, seen.cause()), (State::Error, Some(Cause::GoalMissed)));
    assert_eq!(seen.done.len(), 2 * (1 + MAX_EXTRA_BEHAVIORS as usize));
    assert_eq!(seen.outcome.restarts, 0);
}

#[tokio::test(start_paused = true)]
async fn goals_that_the_planner_finds_unmet_end_the_workflow() {
    // No FAIL leads out of `stage_completed`, so that is where it stays.
    for (unmet, end) in [
        (State::ActionCompleted, State::Error),
        (State::StepCompleted, State::Error),
        (State::StageCompleted, State::StageCompleted),
    ] {
        let planner = ask(move |observation: &PlannerObservation<'_>, _| {
            let unmet = observation.state() == unmet;
            Ok(if unmet { PlanningResponse::default() } else { by_plan(observation) })
        });
        let seen = Stage::new(&one_step(3)).planner(planner).run().await;
        assert_eq!((seen.outcome.state, seen.cause()), (end, Some(Cause::GoalMissed)), "{unmet}");
    }
}

#[tokio::test(start_paused = true)]
async fn goals_that_are_reached_already_are_not_worked_for() {
    let planner = ask(|observation: &PlannerObservation<'_>, _| {
        let done = match observation.state() {
            State::StepRunning => observation.position.step == 0,
            State::StageRunning => observation.position.stage == 1,
            _ => return Ok(by_plan(observation)),
        };
        Ok(PlanningResponse::new(done, false))
    });
    let seen = Stage::new(TWO_STAGES).planner(planner).run().await;
    assert_eq!(seen.done, ["s1/t2/b1/reset-1", "s1/t2/b2/expect-1"]);
    assert_eq!(seen.outcome.state, State::WorkflowCompleted);
    assert!(seen.moves().starts_with("START_WORKFLOW START_STEP COMPLETE_STEP NEXT_STEP"));
    assert!(seen.moves().ends_with("NEXT_STAGE COMPLETE_STAGE COMPLETE_WORKFLOW"));
}

fn no_answer() -> Answer {
    Err(PlannerError { message: "no route".to_owned() })
}

#[tokio::test(start_paused = true)]
async fn a_planner_that_comes_back_is_waited_for() {
    let planner = ask(
        |observation: &PlannerObservation<'_>, asked| {
            if asked < 3 { no_answer() } else { Ok(by_plan(observation)) }
        },
    );
    let seen = Stage::new(&one_step(1)).planner(planner).run().await;
    assert_eq!(seen.outcome.state, State::WorkflowCompleted);
    assert_eq!(seen.took, Duration::from_secs(1 + 2));
    assert_eq!(seen.notes()[1], "the planner failed, asked again in 2000 ms: no route");
}

#[tokio::test(start_paused = true)]
async fn a_planner_that_stays_away_means_one_try_and_no_verdict() {
    let planner = ask(|_: &PlannerObservation<'_>, _| no_answer());
    let seen = Stage::new(&one_step(3)).planner(planner).run().await;
    assert_eq!(seen.done, [POWER, EXPECT], "the fallback tries the step once");
    assert_eq!((seen.outcome.state, seen.cause()), (State::Error, Some(Cause::PlannerFailed)));
    // Asked for workflow, stage, step and feedback, with 3 s of pauses each.
    assert_eq!(seen.took, Duration::from_secs(12));
    assert_eq!(
        seen.outcome.failure.unwrap().to_string(),
        "the planner could not judge the goal of the step: no route"
    );
}

struct NoActions(bool);
impl Generator for NoActions {
    fn actions<'a>(
        &'a mut self,
        _: &'a PlannerObservation<'a>,
    ) -> BoxFuture<'a, Result<Vec<Action>, PlannerError>> {
        let answer = if self.0 { no_answer().map(|_| Vec::new()) } else { Ok(Vec::new()) };
        Box::pin(std::future::ready(answer))
    }
}

#[tokio::test(start_paused = true)]
async fn a_generator_may_yield_nothing_but_not_stay_away() {
    let mut stage = Stage::new(&one_step(3));
    stage.generator = Box::new(NoActions(false));
    let seen = stage.run().await;
    assert_eq!((seen.outcome.state, seen.done.len()), (State::WorkflowCompleted, 0));
    assert!(seen.moves().contains("START_BEHAVIOR COMPLETE_BEHAVIOR COMPLETE_STEP"));
    let mut stage = Stage::new(&one_step(3));
    stage.generator = Box::new(NoActions(true));
    let seen = stage.run().await;
    assert_eq!((seen.outcome.state, seen.cause()), (State::Error, Some(Cause::PlannerFailed)));
}

#[tokio::test(start_paused = true)]
async fn the_time_of_the_plan_ends_whatever_is_under_way() {
    for (path, cause) in [(POWER, Cause::PowerFailed), (EXPECT, Cause::Hang)] {
        let seen = Stage::new(&one_step(5)).act(path, &[Act::Never]).run().await;
        assert_eq!((seen.outcome.state, seen.cause()), (State::Error, Some(cause)));
        assert_eq!((seen.took, seen.outcome.restarts), (Duration::from_secs(20), 0));
        assert!(seen.dropped);
    }
    // Attempts share the plan's time: 3 x 8 s do not fit.
    let slow = [Act::Take(Duration::from_secs(8)); 3];
    let seen = Stage::new(&one_step(3)).act(POWER, &slow).act(EXPECT, &[MISSED; 3]).run().await;
    assert_eq!((seen.cause(), seen.outcome.restarts), (Some(Cause::PowerFailed), 2));
    assert_eq!(seen.took, Duration::from_secs(20));
}

struct Silent;
impl Planner for Silent {
    fn check_goal<'a>(&'a mut self, _: &'a PlannerObservation<'a>) -> BoxFuture<'a, Answer> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_planner_has_the_time_of_the_plan() {
    let seen = Stage::new(&one_step(1)).planner(Silent).run().await;
    assert_eq!((seen.outcome.state, seen.cause()), (State::Idle, Some(Cause::PlannerFailed)));
    assert_eq!(seen.took, Duration::from_secs(20));
}

#[test]
fn answers_have_the_agreed_shape() {
    let text = r#"{"targetAchieved": true,
        "transition": {"continue_behaviors": false, "target_achieved": true},
        "context_update": {"variables": {}, "workflow_update": {"stage": []}}}"#;
    let response: PlanningResponse = serde_json::from_str(text).unwrap();
    assert!(response.target_achieved);
    assert_eq!(
        response.transition,
        TransitionAdvice { continue_behaviors: false, target_achieved: true }
    );
    assert_eq!(response.context_update.workflow_update, Some(json!({"stage": []})));
    assert_eq!(
        serde_json::to_value(PlanningResponse::fallback()).unwrap(),
        json!({"targetAchieved": false,
               "transition": {"continue_behaviors": false, "target_achieved": false},
               "context_update": {}})
    );
}

#[tokio::test(start_paused = true)]
async fn observations_say_where_the_workflow_is() {
    let told = std::sync::Mutex::new(HashMap::<&str, Value>::new());
    let planner = ask(|observation: &PlannerObservation<'_>, _| {
        let value = serde_json::to_value(observation).unwrap();
        told.lock().unwrap().entry(observation.state().as_str()).or_insert(value);
        Ok(by_plan(observation))
    });
    Stage::new(TWO_STAGES).act("s1/t1/t1/power-1", &[]).planner(planner).run().await;
    let told = told.into_inner().unwrap();
    let after = &told["action_completed"];
    assert_eq!(
        after["location"],
        json!({
            "current": {"stage_id": "s1", "step_id": "t1", "behavior_id": "t1",
                        "behavior_iteration": 1},
            "progress": {
                "stages": {"completed": [], "current": "s1", "remaining": ["s2"]},
                "steps": {"completed": [], "current": "t1", "remaining": ["t2"]},
                "behaviors": {"completed": [], "current": "t1", "remaining": []},
            },
            "goals": {"workflow": "all", "stage": "up", "step": ""},
        })
    );
    assert_eq!(after["context"]["FSM"]["last_transition"], "COMPLETE_ACTION -> action_completed");
    assert_eq!(after["context"]["effects"][1]["path"], "s1/t1/t1/expect-1");
    assert_eq!(after["workflow_template"]["name"], "p");
    let nowhere = json!({"stage_id": null, "step_id": null, "behavior_id": null,
                         "behavior_iteration": 0});
    assert_eq!(told["idle"]["location"]["current"], nowhere);
    assert_eq!(told["idle"]["location"]["progress"]["stages"]["remaining"], json!(["s1", "s2"]));
    let step = &told["step_completed"]["location"]["progress"]["steps"];
    assert_eq!(step["completed"], json!(["t1", "t2"]));
    assert_eq!(
        RejectUpdates
            .decide(&Proposal::Steps(json!(0)), &Plan::parse("x", TWO_STAGES).unwrap())
            .await,
        Decision::Reject
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_planner_or_board_makes_the_runner_leave_the_table(
        answers in prop::collection::vec((0..8_u8, any::<bool>(), any::<bool>()), 1..40),
        acts in prop::collection::vec(0..8_u8, 0..40),
        attempts in 1..4_u32,
        confirm in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time().start_paused(true).build().unwrap();
        let planner = ask(move |_: &PlannerObservation<'_>, asked| {
            let (what, achieved, again) = answers[asked as usize % answers.len()];
            let mut response = PlanningResponse::new(achieved, again);
            match what {
                0 => return no_answer(),
                1 => response.context_update = workflow_update(),
                2 => response.context_update = steps_update(),
                _ => {}
            }
            Ok(response)
        });
        let acts: Vec<_> = acts.into_iter().map(|act| match act {
            0 => MISSED,
            1 => Act::Fail(Cause::PowerFailed),
            2 => Act::Take(Duration::from_secs(2)),
            3 => Act::Never,
            _ => Act::Well,
        }).collect();
        let mut stage = Stage::new(TWO_STAGES).planner(planner);
        for path in ["s1/t1/t1/power-1", "s1/t2/b1/reset-1", "s1/t2/b2/expect-1", "s2/t3/t3/expect-1"] {
            stage = stage.act(path, &acts);
        }
        for step in stage.plan.stages.iter_mut().flat_map(|s| &mut s.steps) {
            step.attempts = attempts;
        }
        stage.decision = Some(if confirm { Decision::Confirm } else { Decision::Reject });
        // `run` checks what must hold in the end; that it returns at all is the rest.
        let seen = runtime.block_on(stage.run());
        prop_assert!(seen.took <= Duration::from_secs(20));
    }
}
