//! A board that plays a script at each boot, and everything else an attempt needs.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jig_model::event::BoardEvent;
use jig_model::image::{DeployReport, Image, ImageFormat};
use jig_model::plan::Plan;
use jig_model::power::SecretSource;
use jig_model::profile::{BoardProfile, FaultSets};
use jig_model::protocol::{
    BindContext, BoxFuture, CommandEnd, DriverError, DriverFactory, Flasher, Host, NoLedger, Power,
    PowerState, Protocols, Reset, RunControl, SharedSink, TransportEvent,
};
use jig_model::rig_file::{EmulatorPart, Place};
use jig_model::{Cause, ConsoleName, RunEvent, VerdictKind};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::attempt::{
    AttemptEnd, AttemptError, AttemptRequest, RunEventSink, RunPatterns, perform,
};
use crate::console::test_transport::FakeTarget;
use crate::console::{ConsoleClock, ConsoleHandle, GapReason, Stamp, UnderWay};
use crate::store::{LiveRun, NewRun, RunStore, SystemClock};
use crate::workflow::CancelToken;

pub(crate) const PROFILE: &str = r#"
version = 1
id = "fake"
title = "Fake"
arch = "arm"
boot_banner = '^fake boot'
memory = [{ name = "ram", kind = "ram", start = 0, size = "1M" }]
console = [{ name = "uart0", kind = "uart", baud = 9600 }, { name = "uart1", kind = "uart", baud = 9600 }]
[[fault]]
name = "hard"
pattern = 'HardFault at 0x[0-9a-f]{4}'
cause = "fault_banner"
[limits]
settle = "50ms"
[emulation]
program = "none"
machine = "none"
image_args = ["{image}"]
"#;

/// Just within the time for which the target is watched behind a report, and just beyond.
pub(crate) const SOON: Beat = Beat::Pause(Duration::from_millis(49));
pub(crate) const LATE: Beat = Beat::Pause(Duration::from_millis(51));

/// A complete, green report.
pub(crate) const GREEN: &str = "TAP version 13\n1..2\nok 1 - a\nok 2 - b\n";
/// A complete report with a failure.
pub(crate) const RED: &str = "TAP version 13\n1..2\nok 1 - a\nnot ok 2 - b\n";
/// A banner of the profile's fault signature.
pub(crate) const FAULT: &str = "HardFault at 0x12ab\n";

/// One thing that the board does.
#[derive(Clone, Debug)]
pub(crate) enum Beat {
    /// Prints on the n-th console.
    Print(usize, Vec<u8>),
    /// Waits until all that was printed is in the logs.
    Drain,
    /// Does nothing for a while.
    Pause(Duration),
    Event(BoardEvent),
    /// The transport ends, without a word of the driver.
    EndTransport(usize),
    /// Reading the transport fails.
    BreakTransport(usize),
    /// The target ends: its transports end, the driver tells of it, and the power is off.
    End(BoardEvent),
    /// Waits for this many bytes of input on the first console.
    Input(usize),
    /// The driver knows of lost bytes.
    Gap,
    /// Something happens to the first console's transport, and is captured.
    News(TransportEvent),
    /// The run is cancelled.
    Cancel,
}

pub(crate) fn print(text: &str) -> Beat {
    Beat::Print(0, text.into())
}

pub(crate) fn exit(code: i32) -> Beat {
    Beat::End(BoardEvent::TargetExit { code })
}

pub(crate) fn lost() -> BoardEvent {
    BoardEvent::Lost { cause: Cause::EmulatorKilled, detail: "killed".to_owned() }
}

pub(crate) fn reset_by_target() -> Beat {
    Beat::Event(BoardEvent::Reset { by_target: true, reason: "guest-reset".to_owned() })
}

/// Keeps a paused clock from leaping while bytes are on their way to the disk: there is
/// always something to do until then.
///
/// So all that a script does at once happens at one moment, however long a busy machine
/// takes over it, and a time-out runs out only where nothing is left to happen. Other
/// threads need no such care: those of tokio hold the clock by themselves.
struct Patient;

impl ConsoleClock for Patient {
    /// What is captured later has a later time.
    fn stamp(&self) -> Stamp {
        static CALLS: AtomicU64 = AtomicU64::new(0);
        Stamp { mono_ns: CALLS.fetch_add(1, Ordering::Relaxed), wall_ns: 0 }
    }

    fn under_way(&self) -> Option<UnderWay> {
        let held = Arc::new(());
        let watched = Arc::downgrade(&held);
        tokio::spawn(async move {
            while watched.strong_count() > 0 {
                // The disk thread needs the processor more.
                std::thread::yield_now();
                tokio::task::yield_now().await;
            }
        });
        Some(Box::new(held))
    }
}

/// How a protocol call goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Works,
    Fails(Cause),
    Takes(Duration),
    Hangs,
}

impl Call {
    async fn make(self) -> Result<(), DriverError> {
        match self {
            Self::Works => Ok(()),
            Self::Fails(cause) => Err(DriverError::new(cause, "as scripted")),
            Self::Takes(time) => {
                tokio::time::sleep(time).await;
                Ok(())
            }
            Self::Hangs => std::future::pending().await,
        }
    }
}

/// The bench of one test: how the board behaves, and what was seen.
#[derive(Clone)]
pub(crate) struct Bench {
    pub(crate) profile: String,
    /// The fault signatures that the profile does not have of its own.
    pub(crate) faults: Arc<FaultSets>,
    /// What happens at each boot that is asked for; nothing beyond the last.
    pub(crate) boots: Vec<Vec<Beat>>,
    /// Whether a boot is played to its end before the driver says that the power is on.
    pub(crate) at_once: bool,
    pub(crate) deaf: bool,
    pub(crate) bind: Call,
    pub(crate) on: Call,
    pub(crate) off: Call,
    /// How long switching off may take.
    pub(crate) off_timeout: Duration,
    pub(crate) reset: Call,
    pub(crate) deploy: Call,
    pub(crate) build_id: Option<&'static str>,
    pub(crate) command: Result<CommandEnd, Cause>,
    pub(crate) cancel: CancelToken,
    /// The place of the board.
    pub(crate) place: Place,
    /// Whether an attempt that garbage spoils is made again.
    pub(crate) again: bool,
    /// Whether the logs cannot be opened for reading once they have begun.
    pub(crate) unreadable: bool,
    /// Whether the board can be halted.
    pub(crate) controls: bool,
    /// What it prints last, on the n-th console: while it is halted for the last time, or else
    /// while it loses its power.
    pub(crate) last_words: Vec<(usize, String)>,
    /// For how long it turns out to have lost time, at each question.
    pub(crate) lost: Vec<Duration>,
    /// How it is asked for that.
    pub(crate) lost_time: Call,
    pub(crate) seen: Arc<Seen>,
}

#[derive(Default)]
pub(crate) struct Seen {
    /// The driver's calls, in order.
    pub(crate) calls: Mutex<Vec<&'static str>>,
    pub(crate) events: Mutex<Vec<RunEvent>>,
    handles: Mutex<Vec<ConsoleHandle>>,
}

impl RunEventSink for Seen {
    fn emit(&self, event: RunEvent) {
        self.events.lock().unwrap().push(event);
    }
}

impl Bench {
    pub(crate) fn new(boots: Vec<Vec<Beat>>) -> Self {
        Self {
            profile: PROFILE.to_owned(),
            faults: Arc::new(no_faults()),
            boots,
            at_once: false,
            deaf: false,
            bind: Call::Works,
            on: Call::Works,
            off: Call::Works,
            off_timeout: Duration::from_secs(30),
            reset: Call::Works,
            deploy: Call::Works,
            build_id: None,
            command: Ok(CommandEnd::Exited(0)),
            cancel: CancelToken::new(),
            place: emulated(),
            again: false,
            unreadable: false,
            controls: false,
            last_words: Vec::new(),
            lost: Vec::new(),
            lost_time: Call::Works,
            seen: Arc::default(),
        }
    }

    pub(crate) fn calls(&self) -> Vec<&'static str> {
        self.seen.calls.lock().unwrap().clone()
    }

    pub(crate) fn profile(&self) -> Arc<BoardProfile> {
        let parsed = BoardProfile::parse("fake.toml", &self.profile, &self.faults);
        Arc::new(parsed.unwrap_or_else(|problems| panic!("{problems}")))
    }

    /// Makes the attempt in a run of its own.
    pub(crate) async fn perform(&self, plan: &str) -> Result<AttemptEnd, AttemptError> {
        let root = tempfile::tempdir().unwrap();
        let live = RunStore::new(root.path())
            .begin(NewRun::default(), Arc::new(SystemClock::new()))
            .unwrap();
        self.perform_in(&live, plan).await
    }

    pub(crate) async fn perform_in(
        &self,
        live: &LiveRun,
        plan: &str,
    ) -> Result<AttemptEnd, AttemptError> {
        self.perform_on(live, plan, self).await
    }

    /// Makes the attempt on a board that another factory binds.
    pub(crate) async fn perform_on(
        &self,
        live: &LiveRun,
        plan: &str,
        factory: &dyn DriverFactory,
    ) -> Result<AttemptEnd, AttemptError> {
        self.perform_parsed(live, &parse(plan), factory).await
    }

    pub(crate) async fn perform_parsed(
        &self,
        live: &LiveRun,
        plan: &Plan,
        factory: &dyn DriverFactory,
    ) -> Result<AttemptEnd, AttemptError> {
        let image = Image {
            name: "app.elf".to_owned(),
            path: "app.elf".into(),
            format: ImageFormat::Elf,
            sha256: "00".repeat(32),
            payload_sha256: "11".repeat(32),
            payload_bytes: 4,
            payload_spans: vec![(0, 1)],
            build_id: Some("0123456789abcdef".to_owned()),
            announces: self.build_id.is_some(),
        };
        perform(AttemptRequest {
            attempt: 1,
            profile: self.profile(),
            place: &Arc::new(self.place.clone()),
            plan,
            images: &BTreeMap::from([(None, image)]),
            factory,
            host: self,
            dir: live.dir(),
            evidence: live.dir().path(),
            clock: Arc::new(Patient),
            events: Arc::clone(&self.seen) as _,
            image_sets: Path::new("/"),
            ledger: Arc::new(NoLedger),
            cancel: self.cancel.clone(),
            again: self.again,
            patterns: Arc::new(RunPatterns::new(self.profile(), plan.reject.clone())),
            opened: &|console, handle| {
                self.seen.handles.lock().unwrap().push(handle.clone());
                if self.unreadable {
                    std::fs::remove_file(live.dir().console_path(1, console)).unwrap();
                }
            },
        })
        .await
    }

    /// Makes the attempt and returns its verdict; checks that the board was off at its end.
    pub(crate) async fn verdict(&self, plan: &str) -> (VerdictKind, Cause) {
        let end = self.perform(plan).await.unwrap();
        assert_eq!(self.calls().last(), Some(&"off"), "{:?}", self.calls());
        (end.verdict.kind, end.verdict.cause)
    }

    pub(crate) async fn cause(&self, plan: &str) -> Cause {
        self.verdict(plan).await.1
    }
}

fn no_faults() -> FaultSets {
    FaultSets::parse(std::iter::empty()).unwrap_or_else(|problems| panic!("{}", problems[0]))
}

/// Returns an emulated place.
pub(crate) fn emulated() -> Place {
    Place::new("fake".parse().unwrap(), "fake".parse().unwrap())
        .with_emulator(EmulatorPart::default())
}

/// Returns a place whose consoles are ports.
pub(crate) fn wired() -> Place {
    Place::new("fake".parse().unwrap(), "fake".parse().unwrap())
}

/// Builds a plan of one behaviour with these actions.
pub(crate) fn plan(actions: &str) -> String {
    plan_of(1, actions)
}

pub(crate) fn plan_of(attempts: u32, actions: &str) -> String {
    format!(
        "version = 1\nname = \"p\"\ntimeout = \"30s\"\n[[stage]]\nname = \"s\"\n\
         [[stage.step]]\nname = \"t\"\nattempts = {attempts}\nactions = [{actions}]\n"
    )
}

pub(crate) fn parse(text: &str) -> Plan {
    Plan::parse("plan.toml", text).unwrap_or_else(|problems| panic!("{problems}"))
}

impl DriverFactory for Bench {
    fn bind(&self, context: BindContext) -> Result<Protocols, DriverError> {
        if let Call::Fails(cause) = self.bind {
            return Err(DriverError::new(cause, "as scripted"));
        }
        let board = || FakeBoard { bench: self.clone(), shared: Arc::default() };
        let first = FakeBoard {
            shared: Arc::new(tokio::sync::Mutex::new(Some(Fake {
                sink: context.sink.clone(),
                consoles: context.profile.consoles.iter().map(|c| c.name.clone()).collect(),
                boots: self.boots.clone().into(),
                targets: Vec::new(),
                lost: self.lost.clone().into(),
                asked: None,
                last_words: self.last_words.clone(),
                on: Arc::default(),
                playing: JoinSet::new(),
            }))),
            ..board()
        };
        let twin = || FakeBoard { shared: Arc::clone(&first.shared), ..board() };
        Ok(Protocols {
            reset: Some(Box::new(twin())),
            flasher: Some(Box::new(twin())),
            debug: None,
            shell: None,
            control: self.controls.then(|| Box::new(twin()) as Box<dyn RunControl>),
            sense: None,
            power: Some(Box::new(first)),
            health: Vec::new(),
        })
    }
}

struct Fake {
    sink: SharedSink,
    consoles: Vec<ConsoleName>,
    boots: VecDeque<Vec<Beat>>,
    targets: Vec<FakeTarget>,
    lost: VecDeque<Duration>,
    /// When that was last asked for, and the answer.
    asked: Option<(Instant, Duration)>,
    last_words: Vec<(usize, String)>,
    on: Arc<Mutex<bool>>,
    playing: JoinSet<()>,
}

struct FakeBoard {
    bench: Bench,
    shared: Arc<tokio::sync::Mutex<Option<Fake>>>,
}

impl FakeBoard {
    fn called(&self, what: &'static str) {
        self.bench.seen.calls.lock().unwrap().push(what);
    }
}

impl Fake {
    fn say_last(&mut self) {
        for (console, text) in self.last_words.drain(..) {
            self.targets[console].change(|line| line.output.extend(text.as_bytes()));
        }
    }

    async fn boot(&mut self, bench: &Bench) {
        let Some(beats) = self.boots.pop_front() else { return };
        let play = Play {
            beats,
            sink: self.sink.clone(),
            targets: self.targets.clone(),
            on: Arc::clone(&self.on),
            bench: bench.clone(),
        };
        if bench.at_once {
            play.run().await;
        } else {
            self.playing.spawn(play.run());
        }
    }
}

struct Play {
    beats: Vec<Beat>,
    sink: SharedSink,
    targets: Vec<FakeTarget>,
    on: Arc<Mutex<bool>>,
    bench: Bench,
}

impl Play {
    async fn run(self) {
        for beat in self.beats {
            match beat {
                Beat::Print(console, bytes) => {
                    self.targets[console].change(|line| line.output.extend(bytes));
                }
                Beat::Drain => self.sink.drained().await,
                Beat::Pause(time) => tokio::time::sleep(time).await,
                Beat::Event(event) => self.sink.event(event),
                Beat::EndTransport(console) => {
                    self.targets[console].change(|line| line.ended = true)
                }
                Beat::BreakTransport(console) => {
                    self.targets[console].change(|line| line.broken = true);
                }
                Beat::End(event) => {
                    for target in &self.targets {
                        target.change(|line| line.ended = true);
                    }
                    self.sink.drained().await;
                    *self.on.lock().unwrap() = false;
                    self.sink.event(event);
                    self.sink.event(BoardEvent::Power { state: PowerState::Off });
                    return;
                }
                Beat::Input(count) => self.targets[0].input(count).await,
                Beat::Gap => {
                    let handles = self.bench.seen.handles.lock().unwrap();
                    handles[0].gap(Some(3), GapReason::Overrun).unwrap();
                }
                Beat::News(event) => {
                    self.targets[0].change(|line| line.event.push_back(event));
                    self.sink.drained().await;
                }
                Beat::Cancel => self.bench.cancel.cancel(),
            }
        }
    }
}

impl Power for FakeBoard {
    fn on(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async {
            self.called("on");
            self.bench.on.make().await?;
            let mut fake = self.shared.lock().await;
            let Some(fake) = fake.as_mut() else { return Ok(()) };
            if std::mem::replace(&mut *fake.on.lock().unwrap(), true) {
                return Ok(());
            }
            let deaf = self.bench.deaf;
            fake.targets = fake.consoles.iter().map(|_| FakeTarget::default()).collect();
            for (name, target) in fake.consoles.iter().zip(&fake.targets) {
                if deaf {
                    target.change(|line| line.appetite = 0);
                }
                fake.sink.attach(name, Box::new(target.clone()));
            }
            fake.sink.event(BoardEvent::Power { state: PowerState::On });
            fake.boot(&self.bench).await;
            Ok(())
        })
    }

    fn off(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async {
            self.called("off");
            self.bench.off.make().await?;
            let mut fake = self.shared.lock().await;
            let Some(fake) = fake.as_mut() else { return Ok(()) };
            fake.playing.shutdown().await;
            if !std::mem::replace(&mut *fake.on.lock().unwrap(), false) {
                return Ok(());
            }
            fake.say_last();
            for target in &fake.targets {
                target.change(|line| line.ended = true);
            }
            fake.sink.drained().await;
            fake.sink.event(BoardEvent::Power { state: PowerState::Off });
            Ok(())
        })
    }

    fn off_timeout(&self) -> Duration {
        self.bench.off_timeout
    }

    fn status(&mut self) -> BoxFuture<'_, Result<PowerState, DriverError>> {
        Box::pin(async { Ok(PowerState::Off) })
    }
}

impl RunControl for FakeBoard {
    fn halt(&mut self) -> BoxFuture<'_, Result<bool, DriverError>> {
        Box::pin(async {
            self.called("halt");
            let mut fake = self.shared.lock().await;
            let Some(fake) = fake.as_mut() else { return Ok(false) };
            if fake.lost.len() < 2 {
                fake.say_last();
            }
            fake.sink.drained().await;
            Ok(true)
        })
    }

    fn resume(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        self.called("resume");
        Box::pin(std::future::ready(Ok(())))
    }

    fn lost_time(&mut self) -> BoxFuture<'_, Result<Option<Duration>, DriverError>> {
        Box::pin(async {
            self.bench.lost_time.make().await?;
            let mut fake = self.shared.lock().await;
            let Some(Fake { lost, asked, on, .. }) = fake.as_mut() else { return Ok(None) };
            if !*on.lock().unwrap() {
                return Ok(None);
            }
            let now = if lost.len() > 1 { lost.pop_front() } else { lost.front().copied() };
            let Some(now) = now else { return Ok(None) };
            // No more is lost than passes.
            if let Some((at, before)) = *asked {
                sleep_until(at + now.saturating_sub(before)).await;
            }
            *asked = Some((Instant::now(), now));
            Ok(Some(now))
        })
    }
}

impl Reset for FakeBoard {
    fn reset(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async {
            self.called("reset");
            self.bench.reset.make().await?;
            let mut fake = self.shared.lock().await;
            let Some(fake) = fake.as_mut() else { return Ok(()) };
            if !*fake.on.lock().unwrap() {
                return Err(DriverError::new(Cause::PowerFailed, "the board has no power"));
            }
            fake.playing.shutdown().await;
            fake.sink.drained().await;
            fake.sink.event(BoardEvent::Reset { by_target: false, reason: "asked".to_owned() });
            fake.boot(&self.bench).await;
            Ok(())
        })
    }
}

impl Flasher for FakeBoard {
    fn deploy<'a>(
        &'a mut self,
        image: &'a Image,
    ) -> BoxFuture<'a, Result<DeployReport, DriverError>> {
        Box::pin(async {
            self.called("deploy");
            self.bench.deploy.make().await?;
            Ok(DeployReport {
                method: "fake".to_owned(),
                image: image.path.display().to_string(),
                sha256: image.sha256.clone(),
                build_id: image.build_id.clone(),
                ..DeployReport::default()
            })
        })
    }
}

impl Host for Bench {
    fn command<'a>(
        &'a self,
        _argv: &'a [String],
        _within: Duration,
        output: &'a Path,
    ) -> BoxFuture<'a, Result<CommandEnd, DriverError>> {
        Box::pin(async move {
            std::fs::write(output, "said").unwrap();
            self.command.map_err(|cause| DriverError::new(cause, "as scripted"))
        })
    }

    fn secret(&self, _source: &SecretSource) -> Result<String, DriverError> {
        Ok("secret".to_owned())
    }

    fn banner<'a>(&'a self, _address: &'a str) -> BoxFuture<'a, Vec<u8>> {
        Box::pin(async { b"hello\n".to_vec() })
    }
}
