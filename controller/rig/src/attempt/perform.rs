//! Runs a plan once and judges what was observed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jig_model::image::{DeployReport, Image};
use jig_model::plan::{Action, ActionKind, Plan, PowerOp};
use jig_model::profile::{BoardProfile, ConsoleKind, DeployMethod};
use jig_model::protocol::{
    BindContext, BoardSink as _, BoxFuture, DriverError, DriverFactory, Host, ProcessLedger,
    Protocols,
};
use jig_model::result::TestReport;
use jig_model::rig_file::Place;
use jig_model::{Cause, ConsoleName, Fault, RunEvent, Verdict, VerdictKind, chain};
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use super::abort_condition::QUIET;
use super::actions::{Actions, LostSince, last_off, lied};
use super::after_end::{self, AwaitedEnd, WaitedTo};
use super::asked_of_target::asked_of_target;
use super::board::{AttemptBoard, RunEventSink, WatcherProgress};
use super::board_timeout::{PlanTime, pulse};
use super::compiled_patterns::RunPatterns;
use super::consoles::{CapturedConsoles, Closed};
use super::drain;
use super::error::AttemptError;
use super::facts::{BoardFacts, Observed};
use super::garbage::GLITCH;
use super::log_search::{
    EarlierEnd, LogSearch, SearchedConsole, complete_lines, most_like_a_result, prepare,
};
use super::post_mortem::{Examination, image_of};
use super::watcher::{ResultsReader, WatcherResult};
use super::watching::{Sights, Watching};
use crate::console::{ConsoleHandle, Syncing};
use crate::judge::{
    ByteRange, ConsoleReport, CoreFinding, EarlierReport, ExpectedCrash, ImageIdentity,
    Observation, ReadBack, judge, shown_despite_rig,
};
use crate::store::RunDir;
use crate::workflow::{
    self, ActionDone, ActionExecutor, ActionFailure, CancelToken, Cast, PlanGenerator, PlanPlanner,
    RejectUpdates, StageRetry, State, WorkflowRecord,
};

/// How long a target has to be silent before nothing more is expected of it: as long as it takes to
/// give up a console after lost bytes.
const PRINTED_OUT: Duration = QUIET;

/// Everything an attempt needs.
pub struct AttemptRequest<'a> {
    /// Counts from 1.
    pub attempt: u32,
    /// The board.
    pub profile: Arc<BoardProfile>,
    /// What to look for in its output; attempts of one run share it.
    pub patterns: Arc<RunPatterns>,
    /// The place.
    pub place: &'a Arc<Place>,
    /// What to do.
    pub plan: &'a Plan,
    /// Images by the name the plan gives them; `None` is the command line's.
    pub images: &'a BTreeMap<Option<PathBuf>, Image>,
    /// Binds the place.
    pub factory: &'a dyn DriverFactory,
    /// The machine Jig runs on.
    pub host: &'a dyn Host,
    /// Where logs and artefacts go.
    pub dir: &'a RunDir,
    /// Folder for what drivers leave as evidence; it exists.
    pub evidence: &'a Path,
    /// Stamps the console logs.
    pub clock: Arc<dyn crate::console::ConsoleClock>,
    /// Takes the events.
    pub events: Arc<dyn RunEventSink>,
    /// Folder of the built image sets.
    pub image_sets: &'a Path,
    /// Accounts for child processes.
    pub ledger: Arc<dyn ProcessLedger>,
    /// Asks to stop.
    pub cancel: CancelToken,
    /// Whether the test is attempted again if garbage on a console spoils this attempt; its waits
    /// then end at the garbage.
    pub again: bool,
    /// Called with each console when its capture begins, before the board has power.
    pub opened: &'a (dyn Fn(&ConsoleName, &ConsoleHandle) + Sync),
}

/// How an attempt ended.
#[derive(Debug)]
pub struct AttemptEnd {
    /// The verdict.
    pub verdict: Verdict,
    /// The verdict if the transport is trusted, where `verdict` says that it is not.
    pub believed: Option<Believed>,
    /// The failure of the target that the attempt showed, where `verdict` blames the rig.
    pub shown: Option<Verdict>,
    /// Whether the target printed, in no known format, and was silent long before its wait ended.
    pub printed_out: bool,
    /// The workflow's record, if it got that far.
    pub workflow: Option<WorkflowRecord>,
    /// Where each boot's output begins on the primary console.
    pub boots: Vec<u64>,
    /// Length of each console's log.
    pub consoles: BTreeMap<ConsoleName, u64>,
    /// The logs, which are complete but not yet durable.
    pub syncing: Vec<Syncing>,
}

/// The verdict on an attempt with garbage on a transport, if the transport is trusted. It counts if
/// the garbage returns on a recovered rig.
#[derive(Debug, Clone, PartialEq)]
pub struct Believed {
    /// The verdict.
    pub verdict: Verdict,
    /// Whether the transport itself reported characters with errors: then what is missing may be lost,
    /// and else the firmware may have printed the garbage.
    pub reported: bool,
    /// Whether garbage came last: what is missing may be lost in it.
    pub garbage_last: bool,
    /// A readable line that looks like a failed test or a crash, though no format and no signature
    /// knows it.
    pub failure: Option<ByteRange>,
}

/// Runs a plan once.
///
/// The board is off when this returns, whatever happened.
///
/// The future is large, and many functions await it, one within the other: each holds a pointer to it.
///
/// # Errors
/// The attempt could not be set up or read. A failure of the board or target is in the verdict.
pub fn perform(request: AttemptRequest<'_>) -> BoxFuture<'_, Result<AttemptEnd, AttemptError>> {
    Box::pin(performed(request))
}

async fn performed(request: AttemptRequest<'_>) -> Result<AttemptEnd, AttemptError> {
    let consoles =
        CapturedConsoles::start(&request.profile, request.dir, request.attempt, &request.clock)
            .map_err(AttemptError::Log)?;
    let reading = reading(request.plan);
    let results_console = reading.console.clone().unwrap_or_else(|| consoles.primary.clone());
    if !consoles.running.contains_key(&results_console) {
        return Err(AttemptError::NoConsole(results_console));
    }
    // While the board is switched on. A search that comes earlier waits for what it needs.
    drop(spawn_blocking(prepare));
    let lines = consoles.lines(request.dir, request.attempt);
    let named = (consoles.primary.clone(), results_console);
    let garbage = (request.again, request.place.is_emulated());
    let board = Arc::new(AttemptBoard::new(lines, named, garbage, Arc::clone(&request.events)));
    for (name, console) in &consoles.running {
        (request.opened)(name, console.handle());
    }
    let protocols = bind(&request, &board).map_err(AttemptError::Bind)?;
    let (watching, watched) =
        Watching::start(&board, &request.patterns, &reading.how, &request.plan.ignore_reports_on);
    let (made, workflow) = make(&request, &board, protocols, watched).await;
    // No byte is captured that the watchers do not see: they read to the end of closed logs.
    let mut closed = consoles.close(request.dir, request.attempt).await;
    let mut sights = watching.end(&board.results).await?;
    let boots = {
        let facts = board.facts();
        facts.boots.iter().filter_map(|boot| boot.get(&board.primary).copied()).collect()
    };
    let garbage_last = sights.results.garbage_goes_on;
    let start = sights.results.output.0;
    let silent = sights.silent();
    let search = log_search(&request, reading.wanted, &board, &made, &mut sights);
    let reasons = Arc::clone(&request.patterns.compiled().await?.reasons);
    let observation = observe(&request, reading.wanted, &board, made, sights, &mut closed);
    let reported = closed.garbled_on(&board.results, start + GLITCH).is_some();
    let mut observation = complete_lines(search.run.clone(), observation, reasons).await?;
    if reading.wanted && observation.report.format.is_none() {
        observation = most_like_a_result(search.run.clone(), observation).await?;
    }
    let mut verdict = judge(&observation);
    let (mut believed, mut shown) = (None, None);
    if matches!(verdict.kind, VerdictKind::Pass | VerdictKind::Flaky) {
        observation = search.contradictions(observation).await?;
        // Garbage puts in doubt what is missing, and nothing is.
        verdict = judge(&observation);
    } else {
        let trusted = judge(&Observation { garbage: None, ..observation.clone() });
        if trusted.cause != verdict.cause {
            let failure = search.failure().await?;
            believed = Some(Believed { verdict: trusted, reported, garbage_last, failure });
        } else if verdict.cause.fault() == Some(Fault::Lab) {
            // Where the log is what failed, it shows nothing more.
            let searched = search.contradictions(observation.clone()).await;
            shown = shown_despite_rig(&searched.unwrap_or(observation), &verdict);
        }
    }
    Ok(AttemptEnd {
        printed_out: verdict.cause == Cause::NoResults && silent >= PRINTED_OUT,
        believed,
        shown,
        verdict,
        workflow: Some(workflow),
        boots,
        consoles: closed.lengths,
        syncing: closed.syncing,
    })
}

/// How the plan ended.
struct Made {
    /// The run was cancelled.
    cancelled: bool,
    /// What failed, switching off included.
    failure: Option<ActionFailure>,
    /// How often a behaviour was started again.
    restarts: u32,
    /// What the first of these followed.
    restarted_after: Option<ActionFailure>,
    /// The image that was put on the board.
    deployed: Option<DeployReport>,
    /// Where the waits of the plan have read to.
    waited_to: WaitedTo,
    /// Where each console's log ended when the plan first sent something.
    sent_from: BTreeMap<ConsoleName, u64>,
    /// The texts behind which the plan has ended a boot.
    awaited_ends: Vec<AwaitedEnd>,
    /// What the debug port found at the end.
    post_mortem: Option<CoreFinding>,
    /// How much all consoles printed behind the last fault that output followed.
    since_fault: Option<u64>,
}

/// Runs the plan, drains and examines the board after a failure, and switches it off.
async fn make(
    request: &AttemptRequest<'_>,
    board: &Arc<AttemptBoard>,
    protocols: Protocols,
    watched: BTreeMap<ConsoleName, watch::Receiver<WatcherProgress>>,
) -> (Made, WorkflowRecord) {
    let mut actions = Actions {
        board: Arc::clone(board),
        profile: Arc::clone(&request.profile),
        protocols,
        host: request.host,
        patterns: &request.patterns,
        images: request.images,
        dir: request.dir,
        attempt: request.attempt,
        evidence: request.evidence,
        cancel: &request.cancel,
        clock: &*request.clock,
        watched,
        deployed: None,
        cursors: BTreeMap::new(),
        heard: (0, 0),
        ends: Default::default(),
        commands: 0,
        shell: request.profile.shell_at(request.place),
        settled: false,
        awaited: None,
        awaited_ends: Vec::new(),
        sent: Vec::new(),
        sent_from: BTreeMap::new(),
        settle: request.plan.settle.unwrap_or(request.profile.limits.settle),
        halted: false,
        core: None,
    };
    // A board that runs already has lost time before.
    let lost = LostSince::new(actions.lost_time().await.unwrap_or_default());
    let mut performer = Performer {
        actions,
        failed: false,
        behavior: String::new(),
        heard: 0,
        last_off: last_off(request.plan),
        resets: expected_resets(request.plan),
        time: PlanTime::new(board),
        lost,
    };
    let outcome = tokio::select! {
        // Polled first, so that a wait that is over knows of the lost time.
        biased;
        never = pulse(board) => match never {},
        outcome = follow_plan(request, &mut performer) => outcome,
    };
    let Performer { mut actions, .. } = performer;
    let mut failure = outcome.failure;
    if outcome.state == State::WorkflowCompleted {
        let cancelled = || ActionFailure::new(Cause::Cancelled, "a stop was requested");
        let settled = tokio::select! {
            biased;
            never = pulse(board) => match never {},
            () = request.cancel.cancelled() => Err(cancelled()),
            settled = actions.settle() => settled,
        };
        // What it finds on the consoles are incidents, which the judge sees.
        failure = settled
            .err()
            .filter(|failed| matches!(failed.cause.fault(), Some(Fault::Lab | Fault::Cancelled)));
    }
    if failure.is_some() {
        drain::drain(board).await;
        drain::check_health(board, &mut actions.protocols.health).await;
    }
    if board.facts().may_be_looked_at() && !request.cancel.is_cancelled() {
        // Halted, because what the board does from here on would not be observed.
        failure = failure.or(actions.halt().await.err());
    }
    let examination = Examination {
        dir: request.dir,
        attempt: request.attempt,
        evidence: request.evidence,
        cancel: &request.cancel,
    };
    let image = image_of(request.images, actions.deployed.as_ref());
    let Protocols { debug, control, .. } = &mut actions.protocols;
    let ports = (debug.as_deref_mut(), control.as_deref_mut());
    let post_mortem = match actions.core.take() {
        None => examination.explain(board, ports, image, failure.as_ref()).await,
        found => found,
    };
    let unconfirmed =
        post_mortem.as_ref().and_then(|found| found.proves) == Some(Cause::Unconfirmed);
    if failure.is_none() && unconfirmed {
        // What runs the board may be what has not answered.
        drain::check_health(board, &mut actions.protocols.health).await;
    }
    // What was on before stays on.
    let off = match request.plan.only_commands() && !request.place.is_emulated() {
        true => Ok(()),
        false => power_off(&mut actions).await,
    };
    if let (Some(_), Err(error)) = (&failure, &off) {
        // The verdict has another cause, but the next user of the board has to know this, too.
        board.emit(RunEvent::Note { text: format!("the power was not taken: {}", chain(error)) });
    }
    if board.facts().on() {
        // The transports may still hold bytes.
        board.drained().await;
    }
    let debug = actions.protocols.debug.as_mut();
    let made = Made {
        since_fault: debug.and_then(|debug| debug.output_since_fault()),
        // Before its first stage a workflow cannot enter its cancelled state.
        cancelled: outcome.state == State::Cancelled
            || failure.as_ref().is_some_and(|f| f.cause == Cause::Cancelled),
        failure: failure.or(off.err()),
        restarts: outcome.restarts,
        restarted_after: outcome.restarted_after,
        waited_to: after_end::waited_to(&actions.cursors, board.boots()),
        awaited_ends: std::mem::take(&mut actions.awaited_ends),
        sent_from: std::mem::take(&mut actions.sent_from),
        deployed: actions.deployed.take(),
        post_mortem,
    };
    (made, outcome.record)
}

/// Returns where in the logs of an attempt a pass may be contradicted.
fn log_search(
    request: &AttemptRequest<'_>,
    results_wanted: bool,
    board: &AttemptBoard,
    made: &Made,
    sights: &mut Sights,
) -> LogSearch {
    let facts = board.facts();
    let waited = |console: &ConsoleName| made.waited_to.get(console).copied();
    let expected_crash = expected_crash(board, &sights.results);
    // Of a report behind the crash, the end counts.
    let crashed = matches!(expected_crash, ExpectedCrash::Last | ExpectedCrash::TextBehind);
    let end = if crashed {
        // What a crash prints behind its first line belongs to it.
        None
    } else if results_wanted {
        // What the plan expected behind the report is no incident.
        let end = sights.results.report_end;
        end.map(|end| (board.results.clone(), end.max(waited(&board.results).unwrap_or_default())))
    } else {
        let console = after_end::last_expected(request.plan, &board.primary);
        console.and_then(|console| Some((waited(&console)?, console))).map(|(at, name)| (name, at))
    };
    let file = |name: &ConsoleName| board.lines.get(name).map(|line| line.file.clone());
    let excused = excused_texts(board, sights);
    let earlier_ends = made.awaited_ends.iter().filter(|end| facts.boot_counts(end.boot));
    let earlier_ends = earlier_ends.filter_map(|end| {
        let next = facts.boots.get(end.boot).into_iter().flatten();
        let until = next.filter_map(|(name, &start)| Some((file(name)?, start)));
        Some(EarlierEnd { file: file(&end.console)?, at: end.at, until: until.collect() })
    });
    let earlier_ends = earlier_ends.collect();
    let results = [(&board.results, &mut sights.results)];
    let consoles = results.into_iter().chain(&mut sights.others).filter_map(|(name, seen)| {
        let boot = facts.first_boot().and_then(|boot| boot.get(name)).copied();
        let start = boot.unwrap_or(seen.output.0);
        let mut judged = start..seen.output.1;
        let file = file(name)?;
        if crashed {
            let expected = facts.expected().iter().filter(|text| text.file == file);
            judged.end = expected.map(|text| text.start).max().unwrap_or(judged.end);
        }
        let of_commands = is_of_commands(&request.profile, name);
        Some(SearchedConsole { file, judged, read: seen.read.take()?, of_commands })
    });
    let booted = end.as_ref().and_then(|(name, _)| facts.boots.last()?.get(name).copied());
    let sent = made.sent_from.iter().filter_map(|(name, &at)| Some((file(name)?, at))).collect();
    LogSearch {
        run: request.dir.path().to_owned(),
        consoles: consoles.collect(),
        allowed: [&request.profile.allow_output[..], &request.plan.allow_output].concat(),
        strict: request.plan.strict,
        expected: facts.expected().to_vec(),
        spelled: facts.spelled().to_vec(),
        matched: facts.matched().cloned(),
        sent,
        excused,
        end: end.and_then(|(name, at)| Some((file(&name)?, at))),
        earlier_ends,
        booted: booted.unwrap_or_default(),
        since_fault: made.since_fault,
        reported: results_wanted,
        resets_told: request.place.is_emulated(),
    }
}

/// Tells whether a console has the output of commands.
fn is_of_commands(profile: &BoardProfile, name: &ConsoleName) -> bool {
    let mut consoles = profile.consoles.iter();
    consoles.any(|console| console.kind == ConsoleKind::Shell && console.name == *name)
}

/// Lists the crashes that the firmware expected.
fn excused_texts(board: &AttemptBoard, sights: &Sights) -> Vec<ByteRange> {
    let consoles = [(&board.results, &sights.results)].into_iter().chain(&sights.others);
    let texts = consoles.flat_map(|(name, seen)| {
        let file = board.lines.get(name).map(|line| line.file.clone()).unwrap_or_default();
        seen.excused.iter().map(move |text| ByteRange {
            file: file.clone(),
            start: text.start,
            end: text.end,
            text: String::new(),
        })
    });
    texts.collect()
}

/// Returns what became of a crash of the last boot that the plan expected.
fn expected_crash(board: &AttemptBoard, results: &WatcherResult) -> ExpectedCrash {
    let file = board.lines.get(&board.results).map(|line| line.file.as_str());
    let end = results.report_end.filter(|_| results.report.ended);
    board.facts().expected_crash(file.zip(end))
}

/// Builds the observation for the judge.
fn observe(
    request: &AttemptRequest<'_>,
    results_wanted: bool,
    board: &AttemptBoard,
    made: Made,
    sights: Sights,
    closed: &mut Closed,
) -> Observation {
    let Made { cancelled, failure, restarts, restarted_after, deployed, post_mortem, .. } = made;
    let file_of = |name| board.lines.get(name).map(|line| line.file.clone()).unwrap_or_default();
    let Sights { results: mut seen, others } = sights;
    closed.events.drain(..).for_each(|event| board.emit(event));
    let (start, _) = seen.output;
    let garbled = closed.garbled_on(&board.results, start + GLITCH);
    // A pipe of an emulator alters no byte, so its firmware printed the garbage.
    let trusted = request.place.is_emulated() && garbled.is_none();
    let garbage = if trusted { None } else { seen.garbage.take().or(garbled) };
    let file = file_of(&board.results);
    let facts = board.facts().clone();
    let standstill = facts.standstill();
    let counts = |(boot, _, report): &(usize, (u64, u64), TestReport)| {
        board.facts().earlier_counts(*boot, report)
    };
    let expected_crash = expected_crash(board, &seen);
    let BoardFacts { mut incidents, mut resets, read_back, notes, listened, .. } = facts;
    incidents.extend(resets.take_unclaimed());
    incidents.append(&mut closed.incidents);
    let image = image_of(request.images, deployed.as_ref());
    let earlier = seen.earlier.into_iter().filter(counts);
    let earlier = earlier.map(|(_, (start, end), report)| EarlierReport {
        output: ByteRange { file: file.clone(), start, end, text: String::new() },
        report,
    });
    let elsewhere = others.iter().flat_map(|(console, other)| {
        let earlier = other.earlier.iter().filter(|earlier| counts(earlier));
        let earlier = earlier.map(|(_, output, report)| (output, report));
        earlier.chain([(&other.output, &other.report)]).map(|(&(start, end), report)| {
            let output = ByteRange { file: file_of(console), start, end, text: String::new() };
            ConsoleReport { console: console.clone(), output, report: report.clone() }
        })
    });
    Observation {
        elsewhere: elsewhere.collect(),
        earlier: earlier.collect(),
        cancelled,
        garbage,
        output: ByteRange { file, start: seen.output.0, end: seen.output.1, text: String::new() },
        doubtful_text: None,
        suspicious: None,
        alarm: None,
        fault_behind: None,
        begun_again: None,
        failed_result: None,
        output_behind: None,
        unaccounted: None,
        result_like: None,
        printed_elsewhere: others.values().any(|other| other.output.1 > other.output.0),
        report: seen.report,
        results_wanted,
        asked: asked_of_target(request.plan),
        incidents,
        gaps: std::mem::take(&mut closed.gaps),
        failure,
        restarts,
        restarted_after,
        identity: ImageIdentity {
            loaded: deployed
                .as_ref()
                .is_some_and(|report| report.method == DeployMethod::EmulatorLoader.as_str()),
            read_back: read_back
                .zip(image)
                .map(|(found, image)| ReadBack { found, deployed: image.payload_sha256.clone() }),
            deployed: deployed.and_then(|report| report.build_id),
            announces: image.is_some_and(|image| image.announces),
            // The firmware may print its build id on another console than its results.
            printed: seen.printed.or_else(|| others.into_values().find_map(|other| other.printed)),
        },
        post_mortem,
        standstill,
        listened,
        expected_crash,
        notes,
    }
}

fn bind(request: &AttemptRequest<'_>, board: &Arc<AttemptBoard>) -> Result<Protocols, DriverError> {
    request.factory.bind(BindContext {
        profile: Arc::clone(&request.profile),
        place: Arc::clone(request.place),
        sink: Arc::clone(board) as _,
        evidence: request.evidence.to_owned(),
        images: request.image_sets.to_owned(),
        ledger: Arc::clone(&request.ledger),
    })
}

async fn follow_plan(
    request: &AttemptRequest<'_>,
    performer: &mut Performer<'_>,
) -> workflow::WorkflowOutcome {
    let events = Arc::clone(&request.events);
    let mut observer = move |event: RunEvent| events.emit(event);
    let cast = Cast {
        planner: &mut PlanPlanner,
        generator: &mut PlanGenerator,
        executor: performer,
        decider: &mut RejectUpdates,
        observer: &mut observer,
        clock: &Timestamp::now,
        cancel: request.cancel.clone(),
        retry: StageRetry::default(),
    };
    workflow::run(request.plan, cast).await
}

async fn power_off(actions: &mut Actions<'_>) -> Result<(), ActionFailure> {
    let Some(power) = &mut actions.protocols.power else { return Ok(()) };
    actions.board.report(Observed::Switching(true));
    let before = actions.board.facts().powered();
    let timeout = power.off_timeout();
    match tokio::time::timeout(timeout, power.off()).await {
        Ok(Ok(())) if !actions.board.facts().obeyed(PowerOp::Off, before) => {
            Err(lied(PowerOp::Off))
        }
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(ActionFailure::new(error.cause, chain(&error))),
        Err(_) => {
            let detail = format!("the board's power could not be taken within {timeout:?}");
            Err(ActionFailure::new(Cause::PowerFailed, detail))
        }
    }
}

/// Carries out the actions of the plan, and notices when a behaviour is started again.
struct Performer<'a> {
    actions: Actions<'a>,
    failed: bool,
    /// Path of the current behaviour, and the number of complete reports before it.
    behavior: String,
    heard: usize,
    /// Path of the action by which the plan takes the power at its end, if it does.
    last_off: Option<String>,
    /// Paths of the behaviours, in order, with the number of resets by the target that each expects.
    resets: Vec<(String, usize)>,
    /// What the plan has taken, and what the board has lost of it.
    time: PlanTime,
    lost: LostSince,
}

impl Performer<'_> {
    /// Tells how many resets by the target the plan expects from a behaviour on.
    fn expect_resets(&self, behavior: &str) {
        let from_here = self.resets.iter().skip_while(|(path, _)| path != behavior);
        let count = from_here.map(|(_, count)| count).sum();
        self.actions.board.report(Observed::ResetsAhead(count));
    }
}

/// Tells whether an action waits for a reset by the target.
fn expects_reset(kind: &ActionKind) -> bool {
    matches!(kind, ActionKind::ExpectReset { .. } | ActionKind::Reboot { .. })
}

/// Lists the behaviours of a plan with the number of resets by the target that each expects.
fn expected_resets(plan: &Plan) -> Vec<(String, usize)> {
    let steps = plan.stages.iter().flat_map(|stage| stage.steps.iter().map(move |s| (stage, s)));
    let behaviors = steps.flat_map(|(stage, step)| {
        step.behaviors.iter().map(move |behavior| {
            let resets = behavior.actions.iter().filter(|action| expects_reset(&action.kind));
            (format!("{}/{}/{}", stage.name, step.name, behavior.name), resets.count())
        })
    });
    behaviors.collect()
}

impl ActionExecutor for Performer<'_> {
    fn execute<'a>(
        &'a mut self,
        path: &'a str,
        action: &'a Action,
    ) -> BoxFuture<'a, Result<ActionDone, ActionFailure>> {
        Box::pin(async move {
            let behavior = path.rsplit_once('/').map_or(path, |(behavior, _)| behavior);
            if std::mem::take(&mut self.failed) {
                // The runner goes on after a failure only to start a behaviour again.
                // The judge counts the restart.
                self.actions.board.report(Observed::Restarted { heard: self.heard });
                self.actions.core = None;
                self.expect_resets(behavior);
            } else if behavior != self.behavior {
                behavior.clone_into(&mut self.behavior);
                self.expect_resets(behavior);
                self.heard = self.actions.board.facts().heard.len();
            }
            let mut done = Ok(());
            if self.last_off.as_deref() == Some(path) {
                done = self.actions.settle_before_off().await;
            }
            let done = match done {
                Ok(()) => self.actions.perform(action).await,
                Err(failure) => Err(failure),
            };
            self.failed = done.is_err();
            done.map(|detail| ActionDone { detail, evidence: Vec::new() })
        })
    }

    fn overdue<'a>(
        &'a mut self,
        path: &'a str,
        action: &'a Action,
        after: Duration,
    ) -> BoxFuture<'a, ActionFailure> {
        Box::pin(async move {
            let over = workflow::overdue(path, &action.kind);
            let failure = match self.actions.cut_off(&action.kind, after).await {
                Some(missed) => {
                    let detail = format!("{}: {}", over.detail, missed.detail);
                    ActionFailure { detail, ..missed }
                }
                None => over,
            };
            let lost = self.actions.lost_time().await.unwrap_or_default();
            self.time.judged(&self.actions.board, self.lost.of(lost), failure)
        })
    }
}

/// Returns how results are read, according to the waits of the plan.
struct ResultsReading {
    wanted: bool,
    console: Option<ConsoleName>,
    how: ResultsReader,
}

fn reading(plan: &Plan) -> ResultsReading {
    let actions = plan.stages.iter().flat_map(|s| &s.steps).flat_map(|s| &s.behaviors);
    let mut waits = actions.flat_map(|b| &b.actions).filter_map(|action| match &action.kind {
        ActionKind::WaitForResults { console, format } => Some((console.clone(), *format)),
        _ => None,
    });
    let first = waits.next();
    // Waits for different formats: each is recognised by itself, none is preferred.
    let same = first.as_ref().is_some_and(|first| waits.all(|other| other.1 == first.1));
    let wanted = first.is_some();
    let (console, format) = first.unwrap_or_default();
    let only = format.filter(|_| same);
    let markers = plan.markers.clone();
    let how = ResultsReader { only, markers, awaited: true, decides: wanted };
    ResultsReading { wanted, console, how }
}
