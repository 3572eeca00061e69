//! Faults at each seam, with a board in memory and real processes.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use jig_model::event::BoardEvent;
use jig_model::image::{DeployReport, Image, ImageFormat};
use jig_model::profile::{BoardProfile, FaultSets};
use jig_model::protocol::{
    BindContext, BoardSink, BoxFuture, DriverError, DriverFactory, Flasher, NoLedger, Power,
    PowerState, ProcessLedger, Protocols, SharedSink, Transport, TransportEvent,
};
use jig_model::rig_file::{EmulatorPart, Place};
use jig_model::{Cause, ConsoleName};
use nix::sys::signal::Signal;
use tokio::time::Instant;

use super::{InjectedFactory, Injector, Staller};
use crate::process::{Ending, ManagedProcess, SpawnRequest};

/// Only a failing test waits this long.
const DEADLINE: Duration = Duration::from_secs(120);

const PROFILE: &str = r#"
version = 1
id = "board"
title = "board"
arch = "arm"
[[memory]]
name = "flash"
kind = "flash"
start = 0
size = "64K"
[[memory]]
name = "ram"
kind = "ram"
start = 0x2000_0000
size = "16K"
[[console]]
name = "uart0"
kind = "uart"
baud = 115200
[emulation]
program = "sleep"
machine = "board"
image_args = ["-kernel", "{image}"]
"#;

fn profile() -> BoardProfile {
    let sets = FaultSets::parse(std::iter::empty()).unwrap_or_else(|p| panic!("{}", p[0]));
    BoardProfile::parse("board.toml", PROFILE, &sets)
        .unwrap_or_else(|problems| panic!("{problems}"))
}

fn image(name: &str) -> Image {
    Image {
        name: name.to_owned(),
        path: name.into(),
        format: ImageFormat::Elf,
        sha256: format!("hash of {name}"),
        build_id: None,
        announces: false,
        payload_bytes: 4,
        payload_spans: Vec::new(),
        payload_sha256: format!("payload of {name}"),
    }
}

/// What reached the rig.
#[derive(Default)]
struct Rig {
    events: Mutex<Vec<BoardEvent>>,
    transports: Mutex<Vec<Box<dyn Transport>>>,
}

impl Rig {
    /// Returns what the injector told, as `fault: detail`.
    fn told(&self) -> Vec<String> {
        let events = self.events.lock().unwrap();
        let told = events.iter().filter_map(|event| match event {
            BoardEvent::Injected { fault, detail } => Some(format!("{fault}: {detail}")),
            _ => None,
        });
        told.collect()
    }

    fn transport(&self) -> Box<dyn Transport> {
        self.transports.lock().unwrap().remove(0)
    }
}

impl BoardSink for Rig {
    fn attach(&self, _console: &ConsoleName, transport: Box<dyn Transport>) {
        self.transports.lock().unwrap().push(transport);
    }
    fn drained(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
    fn event(&self, event: BoardEvent) {
        self.events.lock().unwrap().push(event);
    }
}

/// A board in memory: its power, what it holds, and the far end of its console.
#[derive(Clone, Default)]
struct Board(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    on: bool,
    calls: Vec<&'static str>,
    holds: Option<String>,
    context: Option<BindContext>,
    output: VecDeque<u8>,
    input: Vec<u8>,
    ended: bool,
    reader: Option<Waker>,
}

impl Board {
    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }

    fn sink(&self) -> SharedSink {
        Arc::clone(&self.inner().context.as_ref().unwrap().sink)
    }

    fn ledger(&self) -> Arc<dyn ProcessLedger> {
        Arc::clone(&self.inner().context.as_ref().unwrap().ledger)
    }

    fn print(&self, text: &[u8]) {
        let mut inner = self.inner();
        inner.output.extend(text);
        if let Some(reader) = inner.reader.take() {
            reader.wake();
        }
    }
}

impl DriverFactory for Board {
    fn bind(&self, context: BindContext) -> Result<Protocols, DriverError> {
        self.inner().context = Some(context);
        Ok(Protocols {
            power: Some(Box::new(self.clone())),
            flasher: Some(Box::new(self.clone())),
            ..Protocols::default()
        })
    }
}

impl Power for Board {
    fn on(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async {
            self.inner().calls.push("on");
            if !std::mem::replace(&mut self.inner().on, true) {
                let sink = self.sink();
                sink.attach(&"uart0".parse().unwrap(), Box::new(self.clone()));
                sink.event(BoardEvent::Power { state: PowerState::On });
            }
            Ok(())
        })
    }
    fn off(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async {
            let mut inner = self.inner();
            inner.calls.push("off");
            inner.on = false;
            Ok(())
        })
    }
    fn status(&mut self) -> BoxFuture<'_, Result<PowerState, DriverError>> {
        let on = self.inner().on;
        Box::pin(async move { Ok(if on { PowerState::On } else { PowerState::Off }) })
    }
}

impl Flasher for Board {
    fn deploy<'a>(
        &'a mut self,
        image: &'a Image,
    ) -> BoxFuture<'a, Result<DeployReport, DriverError>> {
        Box::pin(async move {
            for percent in [0, 25, 50, 75, 100] {
                self.sink().event(BoardEvent::Deploying { percent });
                tokio::task::yield_now().await;
            }
            self.inner().holds = Some(image.name.clone());
            Ok(DeployReport {
                method: "memory".to_owned(),
                read_back_sha256: Some(image.payload_sha256.clone()),
                ..DeployReport::default()
            })
        })
    }
}

impl Transport for Board {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut inner = self.inner();
        if inner.output.is_empty() && !inner.ended {
            inner.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let count = buf.len().min(inner.output.len());
        for (to, from) in buf.iter_mut().zip(inner.output.drain(..count)) {
            *to = from;
        }
        Poll::Ready(Ok(count))
    }
    fn poll_write(&mut self, _cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.inner().input.extend(bytes);
        Poll::Ready(Ok(bytes.len()))
    }
}

/// A rig with faults, whose board is bound.
struct Bench {
    injector: Injector,
    board: Board,
    rig: Arc<Rig>,
    protocols: Protocols,
}

impl Bench {
    fn new(faults: &[&str]) -> Self {
        let injections = faults.iter().map(|fault| fault.parse().unwrap()).collect();
        let staller = Staller { program: "false".into(), args: Vec::new() };
        let injector = Injector::new(injections, staller);
        let (board, rig) = (Board::default(), Arc::new(Rig::default()));
        let protocols = bind(&injector, &board, &rig);
        Self { injector, board, rig, protocols }
    }

    fn again(&mut self) {
        *self.board.inner() = Inner::default();
        self.protocols = bind(&self.injector, &self.board, &self.rig);
    }

    async fn on(&mut self) {
        self.power().on().await.unwrap();
    }

    fn power(&mut self) -> &mut Box<dyn Power> {
        self.protocols.power.as_mut().unwrap()
    }

    async fn deploy(&mut self) -> Result<DeployReport, DriverError> {
        self.protocols.flasher.as_mut().unwrap().deploy(&image("new")).await
    }

    /// Does something while the injector strikes.
    async fn while_struck<T>(&self, work: impl Future<Output = T>) -> T {
        tokio::select! {
            biased;
            never = self.injector.run() => match never {},
            done = tokio::time::timeout(DEADLINE * 10, work) => done.expect("it takes for ever"),
        }
    }
}

fn bind(injector: &Injector, board: &Board, rig: &Arc<Rig>) -> Protocols {
    let factory = InjectedFactory { board, injector: injector.clone(), by_device: false };
    let place = Place::new("p".parse().unwrap(), "b".parse().unwrap());
    let context = BindContext {
        profile: Arc::new(profile()),
        place: Arc::new(place.with_emulator(EmulatorPart::default())),
        sink: Arc::clone(rig) as _,
        evidence: "/".into(),
        images: "/".into(),
        ledger: Arc::new(NoLedger),
    };
    factory.bind(context).unwrap()
}

/// What a capture makes of a transport.
#[derive(Debug, PartialEq)]
enum Heard {
    Text(String),
    News(TransportEvent),
    Ended,
    Broken(io::ErrorKind),
}

/// Reads as a capture does: event is asked for whenever there is nothing to read.
async fn hear(transport: &mut Box<dyn Transport>) -> Heard {
    poll_fn(|cx| {
        let mut buf = [0; 64];
        match transport.poll_read(cx, &mut buf) {
            Poll::Ready(Ok(0)) => Poll::Ready(Heard::Ended),
            Poll::Ready(Ok(len)) => {
                Poll::Ready(Heard::Text(String::from_utf8_lossy(&buf[..len]).into_owned()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Heard::Broken(error.kind())),
            Poll::Pending => match transport.event() {
                Some(event) => Poll::Ready(Heard::News(event)),
                None => Poll::Pending,
            },
        }
    })
    .await
}

fn text(text: &str) -> Heard {
    Heard::Text(text.to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_console_that_is_hung_up_loses_what_is_printed_meanwhile() {
    let mut bench = Bench::new(&["hang-up-console=5s@2s"]);
    bench.on().await;
    let mut transport = bench.rig.transport();
    let board = bench.board.clone();
    let began = Instant::now();
    bench
        .while_struck(async {
            board.print(b"before");
            assert_eq!(hear(&mut transport).await, text("before"));
            let lost = hear(&mut transport).await;
            assert!(matches!(lost, Heard::News(TransportEvent::Lost(_))), "{lost:?}");
            assert_eq!(began.elapsed(), Duration::from_secs(2));
            board.print(b"meanwhile");
            let written = poll_fn(|cx| transport.poll_write(cx, b"x"));
            let written = tokio::time::timeout(Duration::from_secs(1), written).await;
            assert!(written.is_err(), "nobody is there who takes it");
            assert_eq!(hear(&mut transport).await, Heard::News(TransportEvent::Back));
            assert_eq!(began.elapsed(), Duration::from_secs(7));
            board.print(b"after");
            assert_eq!(hear(&mut transport).await, text("after"));
        })
        .await;
    assert_eq!(bench.rig.told().len(), 1, "{:?}", bench.rig.told());
}

#[tokio::test(start_paused = true)]
async fn a_console_that_is_cut_stays_so_until_the_place_is_bound_anew() {
    let mut bench = Bench::new(&["cut-console@0s"]);
    bench.on().await;
    let mut transport = bench.rig.transport();
    let broken = Heard::Broken(io::ErrorKind::BrokenPipe);
    bench.while_struck(async { assert_eq!(hear(&mut transport).await, broken) }).await;
    bench.again();
    bench.on().await;
    let mut transport = bench.rig.transport();
    bench.board.print(b"well");
    bench.while_struck(async { assert_eq!(hear(&mut transport).await, text("well")) }).await;
}

#[tokio::test(start_paused = true)]
async fn bytes_are_lost_where_the_port_says_or_says_nothing() {
    let mut bench = Bench::new(&["overrun-console=3@0s"]);
    bench.on().await;
    let mut transport = bench.rig.transport();
    bench.board.print(b"hello");
    bench
        .while_struck(async {
            let overrun = Heard::News(TransportEvent::Overrun(Some(3)));
            assert_eq!(hear(&mut transport).await, overrun);
            assert_eq!(hear(&mut transport).await, text("lo"));
        })
        .await;
    let mut bench = Bench::new(&["drop-bytes=3@0s"]);
    bench.on().await;
    let mut transport = bench.rig.transport();
    bench.board.print(b"hello");
    bench.while_struck(async { assert_eq!(hear(&mut transport).await, text("lo")) }).await;
    assert_eq!(bench.rig.told().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn late_bytes_come_in_order_and_before_the_end() {
    let mut bench = Bench::new(&["delay-console=3s@1s"]);
    bench.on().await;
    let mut transport = bench.rig.transport();
    let board = bench.board.clone();
    let began = Instant::now();
    bench
        .while_struck(async {
            board.print(b"soon");
            assert_eq!(
                (hear(&mut transport).await, began.elapsed()),
                (text("soon"), Duration::ZERO)
            );
            tokio::time::sleep_until(began + Duration::from_secs(2)).await;
            board.print(b"one");
            let first = hear(&mut transport).await;
            assert_eq!((first, began.elapsed()), (text("one"), Duration::from_secs(5)));
            board.print(b"two");
            board.inner().ended = true;
            assert_eq!(
                (hear(&mut transport).await, hear(&mut transport).await),
                (text("two"), Heard::Ended)
            );
            assert_eq!(began.elapsed(), Duration::from_secs(8));
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn only_the_build_id_is_hidden_and_nothing_is_kept_back_at_the_end() {
    let mut bench = Bench::new(&["hide-build-id@0s"]);
    bench.on().await;
    let mut transport = bench.rig.transport();
    bench.board.print(b"boot\njig-build-id: 0123abcd\nrest\njig");
    bench.board.inner().ended = true;
    bench
        .while_struck(async {
            assert_eq!(hear(&mut transport).await, text("boot\nrest\n"));
            assert_eq!(hear(&mut transport).await, text("jig"));
            assert_eq!(hear(&mut transport).await, Heard::Ended);
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn power_lies_once_and_only_where_there_is_something_to_lie_about() {
    let mut bench = Bench::new(&["power-mismatch"]);
    let (injector, rig) = (bench.injector.clone(), Arc::clone(&bench.rig));
    let strikes = tokio::spawn(async move { injector.run().await });
    bench.power().off().await.unwrap();
    assert_eq!(rig.told(), [""; 0]);
    bench.on().await;
    bench.power().off().await.unwrap();
    assert!(bench.board.inner().on, "it said that it was off");
    assert_eq!(rig.told().len(), 1);
    bench.power().off().await.unwrap();
    assert!(!bench.board.inner().on);
    strikes.abort();
}

#[tokio::test(start_paused = true)]
async fn a_swapped_outlet_obeys_and_is_another_boards() {
    let mut bench = Bench::new(&["outlet-swapped@1s"]);
    let injector = bench.injector.clone();
    let strikes = tokio::spawn(async move { injector.run().await });
    bench.on().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    bench.power().off().await.unwrap();
    assert_eq!(bench.power().status().await.unwrap(), PowerState::Off);
    bench.power().cycle(None).await.unwrap();
    assert_eq!(bench.power().status().await.unwrap(), PowerState::On);
    assert_eq!(bench.board.inner().calls, ["on"]);
    // When the place is bound again, the outlet works.
    bench.again();
    bench.power().off().await.unwrap();
    assert_eq!(bench.board.inner().calls, ["off"]);
    strikes.abort();
}

#[tokio::test(start_paused = true)]
async fn a_silent_power_device_is_waited_for_and_then_named() {
    let mut bench = Bench::new(&["power-silent=7s"]);
    let injector = bench.injector.clone();
    let strikes = tokio::spawn(async move { injector.run().await });
    tokio::task::yield_now().await;
    let began = Instant::now();
    let error = bench.power().on().await.unwrap_err();
    let seen = (error.cause, began.elapsed());
    assert_eq!(seen, (Cause::PowerUnreachable, Duration::from_secs(7)));
    bench.power().on().await.unwrap();
    strikes.abort();
}

#[tokio::test(start_paused = true)]
async fn a_probe_is_lost_before_within_and_behind_a_deployment() {
    for (fault, holds) in
        [("lose-probe@0%", None), ("lose-probe@50%", None), ("lose-probe@100%", Some("new"))]
    {
        let mut bench = Bench::new(&[fault]);
        let injector = bench.injector.clone();
        let strikes = tokio::spawn(async move { injector.run().await });
        tokio::task::yield_now().await;
        let error = bench.deploy().await.unwrap_err();
        assert_eq!(error.cause, Cause::ProbeLost, "{fault}");
        assert_eq!(bench.board.inner().holds.as_deref(), holds, "{fault}");
        assert_eq!(bench.rig.told().len(), 1, "{fault}");
        let again = bench.deploy().await.unwrap();
        assert!(again.read_back_sha256.is_some(), "{fault} strikes once");
        strikes.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn what_strikes_in_each_attempt_strikes_again() {
    let mut bench = Bench::new(&["silence-chip@0%,every"]);
    let injector = bench.injector.clone();
    let strikes = tokio::spawn(async move { injector.run().await });
    tokio::task::yield_now().await;
    assert_eq!(bench.injector.left(), ["silence-chip@0%,every"]);
    for _ in 0..2 {
        assert_eq!(bench.deploy().await.unwrap_err().cause, Cause::TargetUnresponsive);
        assert!(bench.deploy().await.is_ok());
        bench.again();
    }
    assert_eq!((bench.rig.told().len(), bench.injector.left().len()), (2, 0));
    strikes.abort();
}

#[tokio::test(start_paused = true)]
async fn a_stale_image_is_reported_as_the_new_one_and_no_read_back_is_claimed() {
    let mut bench = Bench::new(&["stale-image"]);
    let injector = bench.injector.clone();
    let strikes = tokio::spawn(async move { injector.run().await });
    tokio::task::yield_now().await;
    let report = bench.deploy().await.unwrap();
    assert_eq!((report.sha256.as_str(), report.read_back_sha256), ("hash of new", None));
    assert_eq!(bench.board.inner().holds, None);
    strikes.abort();
}

async fn sleeper(ledger: Arc<dyn ProcessLedger>) -> ManagedProcess {
    let request = SpawnRequest {
        program: "sleep".into(),
        args: vec!["600".into()],
        cwd: None,
        stdin: None,
        stdout: None,
        stderr: None,
        inherit: Vec::new(),
        exits_for_target: false,
        env: None,
        ends_itself: false,
        what: "sleep".to_owned(),
    };
    ManagedProcess::spawn(request, ledger).await.unwrap()
}

#[tokio::test]
async fn an_emulator_is_killed_once_it_is_its_time() {
    let mut bench = Bench::new(&["kill-emulator@0s"]);
    let mut process = sleeper(bench.board.ledger()).await;
    let injector = bench.injector.clone();
    let strikes = tokio::spawn(async move { injector.run().await });
    // It counts from the first power.
    assert_eq!(process.ending(), None);
    while bench.rig.told().is_empty() {
        bench.on().await;
        tokio::task::yield_now().await;
    }
    let ending = tokio::time::timeout(DEADLINE, process.ended()).await.unwrap();
    assert_eq!(ending, Ending::Signalled(Signal::SIGKILL));
    // It strikes once: the next emulator lives, and its power-on triggers no fault.
    bench.again();
    let mut next = sleeper(bench.board.ledger()).await;
    bench.on().await;
    assert_eq!(next.ending(), None);
    assert_eq!(bench.rig.told().len(), 1);
    next.kill().await;
    strikes.abort();
}

#[tokio::test]
async fn a_paused_emulator_goes_on() {
    let mut bench = Bench::new(&["pause-emulator=50ms@0s"]);
    let mut process = sleeper(bench.board.ledger()).await;
    let injector = bench.injector.clone();
    let strikes = tokio::spawn(async move { injector.run().await });
    tokio::task::yield_now().await;
    bench.on().await;
    assert_eq!(bench.rig.told().len(), 1);
    let goes_on = async {
        while process.is_stopped() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, goes_on).await.expect("it stands still");
    assert_eq!(process.ending(), None);
    process.kill().await;
    strikes.abort();
}

#[tokio::test(start_paused = true)]
async fn a_fault_that_had_no_chance_is_left() {
    let mut bench = Bench::new(&["kill-emulator@1h", "clock-jump=-5s@1s"]);
    bench.on().await;
    bench.while_struck(tokio::time::sleep(Duration::from_secs(2))).await;
    assert_eq!(bench.injector.left(), ["kill-emulator@3600s"]);
    assert_eq!(bench.injector.clock_jump(), -5000);
}
