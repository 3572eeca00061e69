//! What debug ports, health checks and read-backs add to an attempt, and what they may not.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jig_model::VerdictKind::{EnvError, Fail, Inconclusive, Pass};
use jig_model::event::BoardEvent;
use jig_model::image::{DeployReport, Image};
use jig_model::post_mortem::{FaultProof, FaultSighting, PostMortem, StackFrame};
use jig_model::protocol::{
    BindContext, BoxFuture, CheckReport, DebugPort, DriverError, DriverFactory, Flasher,
    HealthCheck, PostMortemRequest, Protocols,
};
use jig_model::{Cause, RunEvent, VerdictKind};

use super::fake::*;
use crate::attempt::AttemptEnd;
use crate::store::{LiveRun, NewRun, RunStore, SystemClock};

/// What the debug port does when it is asked.
#[derive(Clone)]
enum Answer {
    Tells(Box<PostMortem>),
    KnowsNothing,
    Fails,
    Hangs,
    /// The run is cancelled, and the firmware hangs.
    Cancelled,
}

/// A look behind the end that the handler of a fault made: proof, whatever else the looks show.
const ENDED: &str = "HardFault, from whose handler the target has ended";
/// A look that finds a target that has ended behind a fault, in its handler or not.
const ENDED_BEHIND: &str = "illegal instruction at 0x80000100, behind which the target has ended";

/// A look that fails.
const UNREADABLE: &str = "unreadable";

/// The scripted board with what it lacks by itself.
#[derive(Clone)]
struct Rich {
    bench: Bench,
    answer: Answer,
    asked: Arc<Mutex<Vec<PostMortemRequest>>>,
    /// What the core is in at each look, the last for all that follow.
    looks: Vec<Option<&'static str>>,
    looked: Arc<AtomicUsize>,
    /// Whether the looks show only what the last fault was.
    last_fault_only: bool,
    /// How many faults the core has taken, where that is known.
    taken: Option<u32>,
    /// The cause of a health check that fails; the default one for `Cause::RigUnhealthy`.
    health: Option<Cause>,
    read_back: Option<String>,
}

impl Rich {
    fn new(bench: Bench, answer: Answer) -> Self {
        Self {
            bench,
            answer,
            asked: Arc::default(),
            looks: vec![None],
            looked: Arc::default(),
            last_fault_only: false,
            taken: None,
            health: None,
            read_back: None,
        }
    }

    /// Makes the attempt in a run whose folder stays for a while.
    async fn perform(&self, plan: &str) -> (AttemptEnd, LiveRun, tempfile::TempDir) {
        let root = tempfile::tempdir().unwrap();
        let store = RunStore::new(root.path());
        let live = store.begin(NewRun::default(), Arc::new(SystemClock::new())).unwrap();
        let end = self.bench.perform_on(&live, plan, self).await.unwrap();
        assert_eq!(self.bench.calls().last(), Some(&"off"), "{:?}", self.bench.calls());
        (end, live, root)
    }

    async fn verdict(&self, plan: &str) -> (VerdictKind, Cause) {
        let (end, ..) = self.perform(plan).await;
        (end.verdict.kind, end.verdict.cause)
    }

    fn asked(&self) -> Vec<Cause> {
        self.asked.lock().unwrap().iter().map(|request| request.why).collect()
    }

    fn notes(&self) -> Vec<String> {
        let events = self.bench.seen.events.lock().unwrap();
        let notes = events.iter().filter_map(|event| match event {
            RunEvent::Note { text } => Some(text.clone()),
            _ => None,
        });
        notes.collect()
    }
}

impl DriverFactory for Rich {
    fn bind(&self, context: BindContext) -> Result<Protocols, DriverError> {
        let mut protocols = self.bench.bind(context)?;
        protocols.debug = Some(Box::new(self.clone()));
        if let Some(cause) = self.health {
            protocols.health.push(match cause {
                Cause::RigUnhealthy => Box::new(Sick),
                cause => Box::new(SickWith(cause)),
            });
        }
        if let Some(found) = self.read_back.clone() {
            let inner = protocols.flasher.take().unwrap();
            protocols.flasher = Some(Box::new(Reading { inner, found }));
        }
        Ok(protocols)
    }
}

impl DebugPort for Rich {
    fn post_mortem<'a>(
        &'a mut self,
        request: &'a PostMortemRequest,
    ) -> BoxFuture<'a, Result<Option<PostMortem>, DriverError>> {
        Box::pin(async move {
            self.bench.seen.calls.lock().unwrap().push("post-mortem");
            self.asked.lock().unwrap().push(request.clone());
            match &self.answer {
                Answer::Tells(told) => {
                    std::fs::write(&request.core, "core").unwrap();
                    Ok(Some(PostMortem { core: Some(request.core.clone()), ..*told.clone() }))
                }
                Answer::KnowsNothing => Ok(None),
                Answer::Fails => Err(DriverError::new(Cause::DeployFailed, "the probe is gone")),
                Answer::Hangs => std::future::pending().await,
                Answer::Cancelled => {
                    self.bench.cancel.cancel();
                    std::future::pending().await
                }
            }
        })
    }

    fn current_fault(&mut self) -> BoxFuture<'_, Result<Option<FaultSighting>, DriverError>> {
        let count = self.looked.fetch_add(1, Ordering::Relaxed);
        let look = self.looks.get(count).or(self.looks.last()).copied().unwrap_or_default();
        let proof = match look {
            Some(ENDED) => FaultProof::InHandler,
            Some(ENDED_BEHIND) => FaultProof::Ended,
            _ if self.last_fault_only => FaultProof::Suspected,
            _ => FaultProof::InHandler,
        };
        let taken = self.taken;
        let sighting = move |name: &str| match name {
            UNREADABLE => Err(DriverError::new(Cause::EmulatorStuck, "the core is not told")),
            name => Ok(FaultSighting { name: name.to_owned(), proof, taken }),
        };
        Box::pin(async move { look.map(sighting).transpose() })
    }
}

struct Sick;

impl HealthCheck for Sick {
    fn check(&mut self) -> BoxFuture<'_, CheckReport> {
        let check = "hub-answers".to_owned();
        Box::pin(async { CheckReport { check, ok: false, detail: "no".to_owned() } })
    }
}

struct SickWith(Cause);

impl HealthCheck for SickWith {
    fn cause(&self) -> Cause {
        self.0
    }

    fn check(&mut self) -> BoxFuture<'_, CheckReport> {
        let check = "transport-answers".to_owned();
        Box::pin(async { CheckReport { check, ok: false, detail: "no".to_owned() } })
    }
}

/// A flasher that reads back.
struct Reading {
    inner: Box<dyn Flasher>,
    found: String,
}

impl Flasher for Reading {
    fn deploy<'a>(
        &'a mut self,
        image: &'a Image,
    ) -> BoxFuture<'a, Result<DeployReport, DriverError>> {
        Box::pin(async {
            let report = self.inner.deploy(image).await?;
            let read_back_sha256 = Some(self.found.clone());
            Ok(DeployReport { read_back_sha256, verified: true, ..report })
        })
    }
}

fn told() -> PostMortem {
    let frame = |function: &str, line| StackFrame {
        pc: 0x4e,
        function: Some(function.to_owned()),
        file: Some("src/uart.c".to_owned()),
        line: Some(line),
        inlined: false,
        exception: false,
    };
    PostMortem {
        summary: "HardFault: bus fault writing 0x4 in uart_tx (uart.c:41) <- main".to_owned(),
        kind: "HardFault".to_owned(),
        status: vec!["bus fault".to_owned()],
        frames: vec![frame("uart_tx", 41), frame("main", 7)],
        limits: Vec::new(),
        threads: Vec::new(),
        registers: vec![("pc".to_owned(), 0x4e)],
        core: None,
        proves: None,
    }
}

fn tells() -> Answer {
    Answer::Tells(Box::new(told()))
}

const BOOT_AND_WAIT: &str = "{ power = 'cycle' }, { wait_for_results = true }";

#[tokio::test]
async fn a_fault_is_explained_before_the_power_is_taken() {
    let rich = Rich::new(Bench::new(vec![vec![print("fake boot\n"), print(FAULT)]]), tells());
    let (end, live, _root) =
        rich.perform(&plan(&format!("{{ deploy = true }}, {BOOT_AND_WAIT}"))).await;
    assert_eq!(rich.bench.calls(), ["deploy", "off", "on", "post-mortem", "off"]);
    let verdict = end.verdict;
    assert_eq!((verdict.kind, verdict.cause), (Fail, Cause::FaultBanner));
    assert_eq!(verdict.summary, format!("fault: {}; {}", FAULT.trim(), told().summary));
    // What decided is still the first evidence.
    assert_eq!(verdict.evidence[0].file, "consoles/1/uart0.raw");
    let file = &verdict.evidence[1].file;
    assert_eq!(file, "consoles/1/post-mortem.json");
    assert_eq!(verdict.evidence[1].note, told().summary);
    let text = std::fs::read(live.dir().path().join(file)).unwrap();
    assert_eq!(verdict.evidence[1].end, text.len() as u64);
    let kept: PostMortem = serde_json::from_slice(&text).unwrap();
    let core = kept.core.clone().unwrap();
    assert_eq!(std::fs::read(live.dir().path().join(&core)).unwrap(), b"core");
    assert_eq!(PostMortem { core: None, ..kept.clone() }, told());
    let request = rich.asked.lock().unwrap()[0].clone();
    assert_eq!(request.image.as_deref(), Some("app.elf".as_ref()));
    let events = rich.bench.seen.events.lock().unwrap();
    let told = events.iter().find_map(|event| match event {
        RunEvent::PostMortem { artefact, report } => Some((artefact, report)),
        _ => None,
    });
    assert_eq!(told, Some((file, &kept)));
}

#[tokio::test]
async fn every_end_that_leaves_a_question_is_asked_about() {
    let lockup = || Beat::End(BoardEvent::Lockup { detail: "regs".to_owned() });
    let watchdog = Beat::Event(BoardEvent::Watchdog { action: "reset".to_owned() });
    let panic = Beat::Event(BoardEvent::GuestPanic { detail: "oops".to_owned() });
    let hangs = "{ power = 'cycle' }, { wait_for_results = true, timeout = '50ms' }";
    let begun = "TAP version 13\n1..2\nok 1 - a\n";
    let misses = "{ power = 'cycle' }, { expect = ['never'], timeout = '50ms' }";
    for (beats, actions, why) in [
        (vec![print("x\n"), lockup()], BOOT_AND_WAIT, Cause::Lockup),
        (vec![print(FAULT), Beat::Drain, lockup()], BOOT_AND_WAIT, Cause::FaultBanner),
        (vec![print("x\n"), watchdog], BOOT_AND_WAIT, Cause::WatchdogReset),
        (vec![print("x\n"), panic], BOOT_AND_WAIT, Cause::GuestPanic),
        (vec![print("x\n"), reset_by_target()], BOOT_AND_WAIT, Cause::UnexpectedReset),
        (vec![print(begun)], hangs, Cause::Hang),
        (vec![print("x\n")], misses, Cause::ExpectMissed),
    ] {
        let plain = Bench::new(vec![beats.clone()]).verdict(&plan(actions)).await;
        let rich = Rich::new(Bench::new(vec![beats]), tells());
        let (end, ..) = rich.perform(&plan(actions)).await;
        assert_eq!((end.verdict.kind, end.verdict.cause), plain, "{why}");
        // The watcher may or may not have seen the banner before the processor locked up.
        let banner = why == Cause::FaultBanner && rich.asked() == [Cause::Lockup];
        assert!(banner || rich.asked() == [why], "{why}: {:?}", rich.asked());
        assert!(end.verdict.summary.ends_with(&told().summary), "{}", end.verdict.summary);
    }
}

#[tokio::test]
async fn a_fault_that_no_console_tells_of_is_the_targets() {
    let proves = |proves| Answer::Tells(Box::new(PostMortem { proves, ..told() }));
    let misses = "{ power = 'cycle' }, { expect = ['never'], timeout = '50ms' }";
    let waits = "{ power = 'cycle' }, { wait_for_results = true, timeout = '50ms' }";
    let fault = Some(Cause::CoreFault);
    let reset = vec![reset_by_target(), reset_by_target(), reset_by_target()];
    for (beats, actions, proven, verdict) in [
        (vec![], misses, fault, (Fail, Cause::CoreFault)),
        (vec![], waits, fault, (Fail, Cause::CoreFault)),
        (vec![print("x\n")], waits, fault, (Fail, Cause::CoreFault)),
        (vec![Beat::Gap], misses, fault, (Fail, Cause::CoreFault)),
        (vec![], waits, Some(Cause::Lockup), (Fail, Cause::Lockup)),
        // What a core merely stands at proves nothing, and no driver makes a pass.
        (vec![], waits, None, (Inconclusive, Cause::NoOutput)),
        (vec![], waits, Some(Cause::Passed), (Inconclusive, Cause::NoOutput)),
        (vec![], waits, Some(Cause::ProbeLost), (Inconclusive, Cause::NoOutput)),
        // What is told elsewhere names it more closely.
        (vec![print(FAULT)], waits, fault, (Fail, Cause::FaultBanner)),
        (reset, waits, fault, (Fail, Cause::BootLoop)),
    ] {
        let rich = Rich::new(Bench::new(vec![beats]), proves(proven));
        let (end, ..) = rich.perform(&plan(actions)).await;
        let found = (end.verdict.kind, end.verdict.cause);
        assert_eq!(found, verdict, "{actions} {proven:?}");
        let pointers = end.verdict.evidence.iter();
        let pointers = pointers.filter(|one| one.file == "consoles/1/post-mortem.json");
        assert_eq!(pointers.count(), 1, "{:?}", end.verdict);
        assert_eq!(end.verdict.summary.matches(&told().summary).count(), 1);
    }
}

/// A core at a breakpoint of the fault watch has no time, however much the host gives its emulator.
#[tokio::test(start_paused = true)]
async fn a_board_without_time_is_no_failure_of_the_rig_while_its_core_stands_in_a_fault() {
    let proves = |proves| Answer::Tells(Box::new(PostMortem { proves, ..told() }));
    for (looks, answer, cause) in [
        (vec![Some("HardFault")], proves(Some(Cause::CoreFault)), Cause::CoreFault),
        (vec![Some("HardFault"), None], proves(Some(Cause::CoreFault)), Cause::RigUnhealthy),
        (vec![Some("HardFault")], proves(Some(Cause::Unconfirmed)), Cause::RigUnhealthy),
        (vec![None], Answer::KnowsNothing, Cause::RigUnhealthy),
    ] {
        for actions in [BOOT_AND_WAIT, "{ power = 'cycle' }, { expect = ['fake boot'] }"] {
            let lost = vec![Duration::ZERO, Duration::from_secs(20)];
            let bench = Bench::new(vec![vec![print("fake boot\n"), print(GREEN)]]);
            let bench = Bench { controls: true, lost, ..bench };
            let rich = Rich { looks: looks.clone(), ..Rich::new(bench, answer.clone()) };
            let (end, ..) = rich.perform(&plan(actions)).await;
            assert_eq!(end.verdict.cause, cause, "{actions} {looks:?}: {}", end.verdict.summary);
        }
    }
    // What the look in front of the last power cut has found counts, and the core is not asked again.
    let lost = vec![Duration::ZERO, Duration::from_secs(20)];
    let bench = Bench { controls: true, lost, ..Bench::new(vec![vec![print("up\n")]]) };
    let looks = vec![Some("HardFault"), Some("HardFault"), None];
    let rich = Rich { looks, ..Rich::new(bench, proves(Some(Cause::CoreFault))) };
    let actions = "{ power = 'cycle' }, { expect = ['up'] }, { power = 'off' }";
    assert_eq!(rich.verdict(&plan(actions)).await, (Fail, Cause::CoreFault));
    assert_eq!(rich.asked().len(), 1);
}

#[tokio::test]
async fn a_green_end_is_none_while_the_core_stands_in_a_fault() {
    let proves = |proves| Answer::Tells(Box::new(PostMortem { proves, ..told() }));
    let fault = || proves(Some(Cause::CoreFault));
    let expects = "{ power = 'cycle' }, { expect = ['fake boot'] }";
    let (standing, over) = (vec![Some("HardFault")], vec![Some("HardFault"), None]);
    for (actions, looks, answer, verdict) in [
        (BOOT_AND_WAIT, &standing, fault(), (Fail, Cause::CoreFault)),
        (expects, &standing, fault(), (Fail, Cause::CoreFault)),
        // What cannot be explained is a fault all the same.
        (BOOT_AND_WAIT, &standing, Answer::KnowsNothing, (Fail, Cause::CoreFault)),
        (BOOT_AND_WAIT, &standing, Answer::Fails, (Fail, Cause::CoreFault)),
        // The firmware got over it.
        (BOOT_AND_WAIT, &standing, proves(None), (Pass, Cause::Passed)),
        (BOOT_AND_WAIT, &over, fault(), (Pass, Cause::Passed)),
        (expects, &vec![None], fault(), (Pass, Cause::ExpectationsMet)),
    ] {
        let bench = Bench::new(vec![vec![print("fake boot\n"), print(GREEN)]]);
        let rich = Rich { looks: looks.clone(), ..Rich::new(bench, answer) };
        let (end, ..) = rich.perform(&plan(actions)).await;
        assert_eq!((end.verdict.kind, end.verdict.cause), verdict, "{actions} {looks:?}");
        if verdict.0 == Fail {
            let summary = &end.verdict.summary;
            assert!(summary.contains("stands in a fault: HardFault"), "{summary}");
            // Its handler may have printed what the plan expects.
            assert_eq!(summary.contains("`[[fault]]` of the board profile"), actions == expects);
        }
    }
    // Where the looks show only the last fault, the post-mortem decides alone.
    for (answer, tries, verdict) in [
        (fault(), 1, (Fail, Cause::CoreFault)),
        (Answer::KnowsNothing, 1, (Pass, Cause::Passed)),
        // It is tried again; without an answer nothing passes.
        (Answer::Fails, 3, (VerdictKind::Inconclusive, Cause::Unconfirmed)),
        (Answer::Hangs, 1, (VerdictKind::Inconclusive, Cause::Unconfirmed)),
        (proves(None), 1, (Pass, Cause::Passed)),
    ] {
        let bench = Bench::new(vec![vec![print("fake boot\n"), print(GREEN)]]);
        let looks = standing.clone();
        let rich = Rich { looks, last_fault_only: true, ..Rich::new(bench, answer) };
        assert_eq!(rich.verdict(&plan(BOOT_AND_WAIT)).await, verdict);
        assert_eq!(rich.asked(), vec![Cause::CoreFault; tries]);
    }
    // A handler that ends the target while the post-mortem looks leaves it nothing.
    for (ended, verdict) in
        [(ENDED, (Fail, Cause::CoreFault)), (ENDED_BEHIND, (Inconclusive, Cause::Unconfirmed))]
    {
        let bench = Bench::new(vec![vec![print("fake boot\n"), print(GREEN)]]);
        let looks = vec![Some("HardFault"), Some("HardFault"), Some(ended)];
        let rich = Rich { looks, last_fault_only: true, ..Rich::new(bench, Answer::KnowsNothing) };
        assert_eq!(rich.verdict(&plan(BOOT_AND_WAIT)).await, verdict, "{ended}");
    }
    // A state that cannot be read is tried again; one that stays unknown is no pass.
    let (late, never) = (vec![Some(UNREADABLE), Some(UNREADABLE), None], vec![Some(UNREADABLE)]);
    let half = vec![Some("HardFault"), Some(UNREADABLE)];
    for (looks, looked, verdict) in [
        (late, 3, (Pass, Cause::Passed)),
        (never, 3, (Inconclusive, Cause::Unconfirmed)),
        (half, 4, (Inconclusive, Cause::Unconfirmed)),
    ] {
        let bench = Bench::new(vec![vec![print("fake boot\n"), print(GREEN)]]);
        let rich = Rich { looks, ..Rich::new(bench, fault()) };
        assert_eq!(rich.verdict(&plan(BOOT_AND_WAIT)).await, verdict);
        assert_eq!(rich.looked.load(Ordering::Relaxed), looked);
        assert_eq!(rich.asked(), []);
    }
    // A target may end from the handler of a fault, and a red report needs no look to fail.
    let ends = |code| vec![print(GREEN), Beat::Drain, Beat::End(BoardEvent::TargetExit { code })];
    for (beats, looks, verdict) in [
        (ends(0), &standing, (Fail, Cause::CoreFault)),
        (ends(0), &vec![Some(ENDED_BEHIND)], (Inconclusive, Cause::Unconfirmed)),
        (ends(0), &vec![None], (Pass, Cause::Passed)),
        (ends(3), &standing, (Fail, Cause::GuestExit)),
        (vec![print(RED)], &standing, (Fail, Cause::TestFailed)),
    ] {
        let bench = Bench::new(vec![beats]);
        let rich = Rich { looks: looks.clone(), ..Rich::new(bench, Answer::KnowsNothing) };
        assert_eq!(rich.verdict(&plan(BOOT_AND_WAIT)).await, verdict);
    }
}

/// What the core stood in is gone behind a reset and behind a power cut, so the look comes before.
#[tokio::test]
async fn a_core_is_looked_at_before_the_plan_ends_its_boot() {
    let proves = |proves| Answer::Tells(Box::new(PostMortem { proves, ..told() }));
    // Two looks each, and none of the next boot.
    let (fault, none) = (vec![Some("HardFault"), Some("HardFault"), None], vec![None]);
    for switch in [
        "{ power = 'off' }",
        "{ sleep = '1ms' }, { power = 'off' }, { sleep = '1ms' }",
        "{ power = 'cycle' }, { expect = ['up'] }",
        "{ reset = true }, { expect = ['up'] }",
    ] {
        for (looks, answer, cause) in [
            (&fault, proves(Some(Cause::CoreFault)), Cause::CoreFault),
            (&fault, proves(Some(Cause::Lockup)), Cause::Lockup),
            (&fault, Answer::KnowsNothing, Cause::CoreFault),
            // It merely stands somewhere.
            (&fault, proves(None), Cause::ExpectationsMet),
            (&none, proves(Some(Cause::CoreFault)), Cause::ExpectationsMet),
        ] {
            let bench = Bench::new(vec![vec![print("up\n")], vec![print("up\n")]]);
            let rich = Rich { looks: looks.clone(), ..Rich::new(bench, answer) };
            let waits = format!("{{ power = 'cycle' }}, {{ expect = ['up'] }}, {switch}");
            let (end, ..) = rich.perform(&plan(&waits)).await;
            assert_eq!(end.verdict.cause, cause, "{switch} {looks:?}");
            if cause != Cause::ExpectationsMet {
                let summary = &end.verdict.summary;
                assert!(summary.contains("before the plan ends this boot"), "{summary}");
                assert_eq!(rich.bench.calls(), ["off", "on", "post-mortem", "off"]);
            }
        }
    }
}

#[tokio::test]
async fn a_boot_that_is_over_for_the_plan_is_not_looked_at() {
    // The crash is the test; the one look is that at the end.
    let actions = "{ power = 'cycle' }, { expect = ['HardFault'] }, { reset = true }, \
                   { expect = ['up'] }";
    let bench = Bench::new(vec![vec![print(FAULT)], vec![print("up\n")]]);
    let rich = Rich::new(bench, tells());
    assert_eq!(rich.verdict(&plan(actions)).await, (Pass, Cause::ExpectationsMet));
    assert_eq!(rich.looked.load(Ordering::Relaxed), 1);
    // A behaviour that is started again ends a boot that has failed already.
    let actions = "{ power = 'cycle' }, { expect = ['up'], timeout = '50ms' }";
    let bench = Bench::new(vec![vec![print("x\n")], vec![print("up\n")]]);
    let rich = Rich::new(bench, tells());
    assert_eq!(rich.verdict(&plan_of(2, actions)).await.1, Cause::Flaky);
    assert_eq!(rich.looked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn an_expected_crash_excuses_no_later_fault() {
    let wait = ", { wait_for_results = true }";
    let text = ", { expect = ['halted'] }";
    let crash = FAULT;
    for (output, then, taken, cause) in [
        (vec![crash], "", None, Cause::ExpectationsMet),
        (vec![crash, "r0 1\n"], "", Some(2), Cause::ExpectationsMet),
        // The report ends in front of the crash, or behind it.
        (vec![GREEN, crash], wait, None, Cause::Passed),
        (vec![crash, GREEN], wait, None, Cause::CoreFault),
        (vec![crash, GREEN], wait, Some(1), Cause::CoreFault),
        (vec![crash, GREEN], "", Some(2), Cause::CoreFault),
        // The handler may have printed the text, or not.
        (vec![crash, "halted\n"], text, Some(1), Cause::ExpectationsMet),
        (vec![crash, "halted\n"], text, Some(2), Cause::CoreFault),
        (vec![crash, "halted\n"], text, None, Cause::Unconfirmed),
    ] {
        for switch in ["", ", { power = 'off' }"] {
            let proven = PostMortem { proves: Some(Cause::CoreFault), ..told() };
            let bench = Bench::new(vec![vec![print(&output.concat())]]);
            let looks = vec![Some("HardFault")];
            let rich = Rich::new(bench, Answer::Tells(Box::new(proven)));
            let rich = Rich { looks, taken, ..rich };
            let waits =
                format!("{{ power = 'cycle' }}, {{ expect = ['HardFault'] }}{then}{switch}");
            let (end, ..) = rich.perform(&plan(&waits)).await;
            assert_eq!(end.verdict.cause, cause, "{output:?} {waits} {taken:?}");
        }
    }
}

#[tokio::test]
async fn attaching_twice_is_noted_and_changes_nothing() {
    let attached = |attempts| {
        let failures = vec!["attach to the running target: no answer".to_owned()];
        let method = "attach under reset".to_owned();
        Beat::Event(BoardEvent::Attached { attempts, method, failures })
    };
    for (report, verdict) in [(GREEN, (Pass, Cause::Passed)), (RED, (Fail, Cause::TestFailed))] {
        let bench = Bench::new(vec![vec![attached(2), print(report)]]);
        let end = bench.perform(&plan(BOOT_AND_WAIT)).await.unwrap();
        assert_eq!((end.verdict.kind, end.verdict.cause), verdict);
        let note = "the probe answered at the 2nd attach (attach under reset)";
        assert_eq!(end.verdict.notes, [note]);
        let events = bench.seen.events.lock().unwrap();
        let told = events.iter().filter(|event| {
            matches!(event, RunEvent::Board(BoardEvent::Attached { attempts: 2, .. }))
        });
        assert_eq!(told.count(), 1);
    }
}

#[tokio::test]
async fn nobody_asks_where_there_is_no_question() {
    let cancel = vec![print("x\n"), Beat::Cancel];
    let deploy_fails = Bench { deploy: Call::Fails(Cause::DeployFailed), ..Bench::new(vec![]) };
    let dead = Bench { on: Call::Fails(Cause::PowerFailed), ..Bench::new(vec![]) };
    for (bench, actions, verdict) in [
        (Bench::new(vec![vec![print(GREEN)]]), BOOT_AND_WAIT, (Pass, Cause::Passed)),
        (Bench::new(vec![vec![print(RED)]]), BOOT_AND_WAIT, (Fail, Cause::TestFailed)),
        (
            Bench::new(vec![vec![Beat::End(lost())]]),
            BOOT_AND_WAIT,
            (EnvError, Cause::EmulatorKilled),
        ),
        (Bench::new(vec![cancel]), BOOT_AND_WAIT, (VerdictKind::Cancelled, Cause::Cancelled)),
        (deploy_fails, "{ deploy = true }", (EnvError, Cause::DeployFailed)),
        (dead, BOOT_AND_WAIT, (EnvError, Cause::PowerFailed)),
    ] {
        let rich = Rich::new(bench, tells());
        assert_eq!(rich.verdict(&plan(actions)).await, verdict);
        assert_eq!(rich.asked(), [], "{verdict:?}");
    }
}

#[tokio::test]
async fn a_debug_port_that_does_not_help_changes_nothing() {
    let beats = || vec![print(FAULT)];
    let (plain, ..) = {
        let rich = Rich::new(Bench::new(vec![beats()]), Answer::KnowsNothing);
        let made = rich.perform(&plan(BOOT_AND_WAIT)).await;
        assert_eq!(rich.notes(), [""; 0]);
        made
    };
    for (answer, words) in [
        (Answer::Fails, "the probe is gone"),
        (Answer::Hangs, "took longer than"),
        (Answer::Cancelled, "a stop was requested"),
    ] {
        let rich = Rich::new(Bench::new(vec![beats()]), answer);
        let (end, live, _root) = rich.perform(&plan(BOOT_AND_WAIT)).await;
        assert_eq!(end.verdict, plain.verdict, "{words}");
        let notes = rich.notes();
        assert!(notes.len() == 1 && notes[0].contains(words), "{notes:?}");
        assert!(!live.dir().post_mortem_path(1).exists());
    }
}

#[tokio::test]
async fn what_an_image_names_itself_stays_bounded() {
    let mut huge = told();
    huge.summary = "\u{1b}[2J".repeat(100_000);
    huge.frames[0].function = Some("f".repeat(1 << 20));
    huge.frames = vec![huge.frames[0].clone(); 2000];
    huge.registers = vec![("r".repeat(1000), 1); 5000];
    huge.status = vec!["s".repeat(100_000); 1000];
    let rich = Rich::new(Bench::new(vec![vec![print(FAULT)]]), Answer::Tells(Box::new(huge)));
    let (end, live, _root) = rich.perform(&plan(BOOT_AND_WAIT)).await;
    assert_eq!(end.verdict.cause, Cause::FaultBanner);
    assert!(end.verdict.summary.len() < 1000);
    let len = std::fs::metadata(live.dir().post_mortem_path(1)).unwrap().len();
    assert!((1000..300_000).contains(&len), "{len}");
}

#[tokio::test]
async fn a_core_dump_outside_of_the_run_is_not_pointed_at() {
    /// Leaves its core dump where it likes.
    struct Stray(Rich);
    impl DriverFactory for Stray {
        fn bind(&self, context: BindContext) -> Result<Protocols, DriverError> {
            let mut protocols = self.0.bench.bind(context)?;
            protocols.debug = Some(Box::new(Stray(self.0.clone())));
            Ok(protocols)
        }
    }
    impl DebugPort for Stray {
        fn post_mortem<'a>(
            &'a mut self,
            _request: &'a PostMortemRequest,
        ) -> BoxFuture<'a, Result<Option<PostMortem>, DriverError>> {
            let core = Some("/proc/self/exe".into());
            Box::pin(async { Ok(Some(PostMortem { core, ..told() })) })
        }
    }
    let stray = Stray(Rich::new(Bench::new(vec![vec![print(FAULT)]]), Answer::KnowsNothing));
    let root = tempfile::tempdir().unwrap();
    let store = RunStore::new(root.path());
    let live = store.begin(NewRun::default(), Arc::new(SystemClock::new())).unwrap();
    stray.0.bench.perform_on(&live, &plan(BOOT_AND_WAIT), &stray).await.unwrap();
    let text = std::fs::read(live.dir().post_mortem_path(1)).unwrap();
    let kept: PostMortem = serde_json::from_slice(&text).unwrap();
    assert_eq!(kept.core, None);
}

#[tokio::test]
async fn a_failed_health_check_names_its_own_cause() {
    let misses = plan("{ power = 'cycle' }, { expect = ['never'], timeout = '50ms' }");
    for cause in [Cause::RigUnhealthy, Cause::ConsoleLost] {
        let mut rich = Rich::new(Bench::new(vec![vec![print("x\n")]]), tells());
        rich.health = Some(cause);
        assert_eq!(rich.verdict(&misses).await, (EnvError, cause));
        // The rig is to blame, so there is nothing to ask the target.
        assert_eq!(rich.asked(), []);
    }
    // A core that cannot be read behind a green report may be that of an emulator that stands still.
    for (looks, verdict) in [
        (Some(UNREADABLE), (EnvError, Cause::EmulatorStuck)),
        (Some("HardFault"), (Fail, Cause::CoreFault)),
        (None, (Pass, Cause::Passed)),
    ] {
        let bench = Bench::new(vec![vec![print("fake boot\n"), print(GREEN)]]);
        let mut rich = Rich { looks: vec![looks], ..Rich::new(bench, Answer::KnowsNothing) };
        rich.health = Some(Cause::EmulatorStuck);
        assert_eq!(rich.verdict(&plan(BOOT_AND_WAIT)).await, verdict, "{looks:?}");
    }
}

#[tokio::test]
async fn what_is_read_back_must_be_what_was_deployed() {
    let text = plan(&format!("{{ deploy = true }}, {BOOT_AND_WAIT}"));
    for (found, verdict) in [("11", (Pass, Cause::Passed)), ("12", (EnvError, Cause::WrongImage))] {
        for report in [GREEN, RED] {
            let mut rich = Rich::new(Bench::new(vec![vec![print(report)]]), tells());
            rich.read_back = Some(found.repeat(32));
            let wanted = match (verdict, report) {
                ((Pass, _), RED) => (Fail, Cause::TestFailed),
                (verdict, _) => verdict,
            };
            assert_eq!(rich.verdict(&text).await, wanted, "{found}");
        }
    }
    let silent = Rich::new(Bench::new(vec![vec![]]), tells());
    let waits = plan("{ power = 'cycle' }, { expect = ['never'], timeout = '50ms' }");
    assert_eq!(silent.verdict(&waits).await, (Inconclusive, Cause::NoOutput));
}
