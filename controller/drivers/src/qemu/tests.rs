//! The driver with a real emulator that has no processor: what happens to the process.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use jig_model::event::BoardEvent;
use jig_model::profile::{BoardProfile, FaultSets};
use jig_model::protocol::{
    BindContext, BoardSink, BoxFuture, PowerState, ProcessLedger, Protocols, Transport,
};
use jig_model::rig_file::{EmulatorPart, Place};
use jig_model::{Cause, ConsoleName};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::sync::watch;

use super::{Machine, QemuFactory};

const PROFILE: &str = r#"
version = 1
id = "empty"
title = "A machine without a processor"
arch = "arm"
console = [{ name = "uart0", kind = "uart", baud = 9600 }]
[emulation]
program = "qemu-system-arm"
machine = "none"
image_set = "set"
args = ["-D", "{artifact:log}"]
"#;

#[derive(Default)]
pub(super) struct Seen {
    events: watch::Sender<Vec<BoardEvent>>,
    transports: Mutex<Vec<Box<dyn Transport>>>,
    pids: Mutex<Vec<i32>>,
    pub(super) running: Mutex<i32>,
}

impl BoardSink for Seen {
    fn attach(&self, _console: &ConsoleName, transport: Box<dyn Transport>) {
        self.transports.lock().unwrap().push(transport);
    }
    fn drained(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
    fn event(&self, event: BoardEvent) {
        self.events.send_modify(|events| events.push(event));
    }
}

impl ProcessLedger for Seen {
    fn started(&self, pid: i32, _what: &str) {
        self.pids.lock().unwrap().push(pid);
        *self.running.lock().unwrap() += 1;
    }
    fn ended(&self, _pid: i32) {
        *self.running.lock().unwrap() -= 1;
    }
}

impl Seen {
    fn signal(&self, signal: Signal) {
        let pid = *self.pids.lock().unwrap().last().unwrap();
        kill(Pid::from_raw(pid), signal).unwrap();
    }

    /// Waits until the board is off; returns the events since it was on.
    pub(super) async fn end(&self) -> Vec<BoardEvent> {
        let off = BoardEvent::Power { state: PowerState::Off };
        let mut events = self.events.subscribe();
        let ended = events.wait_for(|events| events.last() == Some(&off));
        let events = tokio::time::timeout(Duration::from_secs(60), ended).await;
        let events = events.expect("the board stays on").unwrap().clone();
        // A busy host is no news.
        let news = |event: &&BoardEvent| !matches!(event, BoardEvent::Stood { stopped: false, .. });
        events[1..events.len() - 1].iter().filter(news).cloned().collect()
    }
}

fn bind(dir: &Path, profile: &str) -> (Protocols, Arc<Seen>) {
    let (protocols, _machine, seen) = bind_with_machine(dir, profile);
    (protocols, seen)
}

pub(super) fn bind_with_machine(dir: &Path, profile: &str) -> (Protocols, Machine, Arc<Seen>) {
    bind_profile(dir, parsed(profile))
}

fn parsed(profile: &str) -> BoardProfile {
    let sets = FaultSets::parse(std::iter::empty()).unwrap_or_else(|p| panic!("{}", p[0]));
    let profile = BoardProfile::parse("empty.toml", profile, &sets);
    profile.unwrap_or_else(|problems| panic!("{problems}"))
}

fn bind_profile(dir: &Path, profile: BoardProfile) -> (Protocols, Machine, Arc<Seen>) {
    let profile = Arc::new(profile);
    let seen = Arc::new(Seen::default());
    std::fs::create_dir_all(dir.join("set")).unwrap();
    std::fs::create_dir_all(dir.join("evidence")).unwrap();
    let place = Place::new("p".parse().unwrap(), profile.id.clone());
    let context = BindContext {
        profile,
        place: Arc::new(place.with_emulator(EmulatorPart::default())),
        sink: Arc::clone(&seen) as _,
        evidence: dir.join("evidence"),
        images: dir.to_owned(),
        ledger: Arc::clone(&seen) as _,
    };
    let (protocols, machine) = QemuFactory.bind_with_machine(context).unwrap();
    (protocols, machine, seen)
}

/// Lists what the driver has left beside the emulator's own words.
fn left(dir: &Path) -> Vec<String> {
    let files = std::fs::read_dir(dir.join("evidence")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    names.filter(|name| !name.ends_with(".stderr")).collect()
}

#[tokio::test]
async fn power_comes_and_goes_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (protocols, seen) = bind(dir.path(), PROFILE);
    let mut power = protocols.power.unwrap();
    for _ in 0..2 {
        power.on().await.unwrap();
        power.on().await.unwrap();
        assert_eq!(power.status().await.unwrap(), PowerState::On);
        power.off().await.unwrap();
        power.off().await.unwrap();
        assert_eq!(*seen.running.lock().unwrap(), 0);
    }
    assert_eq!(seen.pids.lock().unwrap().len(), 2);
    assert_eq!(left(dir.path()), [""; 0]);
}

#[tokio::test]
async fn time_in_which_a_machine_is_halted_is_lost_time() {
    let dir = tempfile::tempdir().unwrap();
    let (protocols, seen) = bind(dir.path(), PROFILE);
    let (mut power, mut control) = (protocols.power.unwrap(), protocols.control.unwrap());
    assert_eq!(control.lost_time().await.unwrap(), None);
    assert!(!control.halt().await.unwrap(), "a machine without power stands");
    let began = std::time::Instant::now();
    power.on().await.unwrap();
    let before = control.lost_time().await.unwrap().unwrap();
    assert!(control.halt().await.unwrap());
    let halted = std::time::Instant::now();
    tokio::time::sleep(Duration::from_millis(30)).await;
    let stood = halted.elapsed();
    control.resume().await.unwrap();
    control.resume().await.unwrap();
    let lost = control.lost_time().await.unwrap().unwrap();
    assert!(lost - before >= stood, "{lost:?} - {before:?} of {stood:?}");
    // What threads waited counts too, but each moment only once.
    assert!(lost <= began.elapsed(), "{lost:?}");
    // Its own health is not in doubt meanwhile.
    assert!(control.halt().await.unwrap());
    let report = protocols.health.into_iter().next().unwrap().check().await;
    assert!(report.ok, "{report:?}");
    power.off().await.unwrap();
    assert!(!control.halt().await.unwrap());
    assert_eq!(*seen.running.lock().unwrap(), 0);
}

#[tokio::test]
async fn an_emulator_of_another_machine_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut profile = parsed(PROFILE);
    // As a script in place of the emulator does: of two options, the last counts.
    let other = ["-machine", "mps2-an385"].map(str::to_owned);
    profile.emulation.as_mut().unwrap().args.extend(other);
    let (protocols, _machine, seen) = bind_profile(dir.path(), profile);
    let error = protocols.power.unwrap().on().await.unwrap_err();
    assert_eq!(error.cause, Cause::EmulatorRefused);
    let words = error.to_string();
    assert!(words.contains("runs the machine mps2-an385"), "{words}");
    assert!(words.contains("the profile asks for none"), "{words}");
    assert_eq!(*seen.running.lock().unwrap(), 0);
}

#[tokio::test]
async fn a_killed_emulator_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let (protocols, seen) = bind(dir.path(), PROFILE);
    protocols.power.unwrap().on().await.unwrap();
    seen.signal(Signal::SIGKILL);
    let told = seen.end().await;
    let lost = |e: &BoardEvent| matches!(e, BoardEvent::Lost { cause: Cause::EmulatorKilled, .. });
    assert!(told.len() == 1 && lost(&told[0]), "{told:?}");
}

#[tokio::test]
async fn a_stopped_emulator_is_stuck_and_can_still_be_killed() {
    let dir = tempfile::tempdir().unwrap();
    let (protocols, seen) = bind(dir.path(), PROFILE);
    let mut power = protocols.power.unwrap();
    power.on().await.unwrap();
    seen.signal(Signal::SIGSTOP);
    let told = seen.end().await;
    let lost = |e: &BoardEvent| matches!(e, BoardEvent::Lost { cause: Cause::EmulatorStuck, .. });
    let (last, before) = told.split_last().unwrap();
    assert!(lost(last), "{told:?}");
    // That it stood was told all the while.
    let stood = |e: &BoardEvent| matches!(e, BoardEvent::Stood { .. });
    let stopped = |e: &BoardEvent| matches!(e, BoardEvent::Stood { stopped: true, .. });
    assert!(before.iter().all(stood) && before.iter().any(stopped), "{told:?}");
    power.on().await.unwrap();
    seen.signal(Signal::SIGSTOP);
    power.off().await.unwrap();
    assert_eq!(*seen.running.lock().unwrap(), 0);
}

#[tokio::test]
async fn a_reset_of_an_emulator_that_just_ended_tells_its_end_first() {
    let dir = tempfile::tempdir().unwrap();
    let (protocols, seen) = bind(dir.path(), PROFILE);
    protocols.power.unwrap().on().await.unwrap();
    seen.signal(Signal::SIGKILL);
    protocols.reset.unwrap().reset().await.unwrap_err();
    let told = seen.events.borrow().iter().any(|e| matches!(e, BoardEvent::Lost { .. }));
    assert!(told, "{:?}", seen.events.borrow());
}

#[tokio::test]
async fn launches_that_fail_say_why_and_leave_nothing() {
    let cases = [
        (
            "machine = \"none\"",
            "machine = \"nonesuch\"",
            Cause::EmulatorRefused,
            "unsupported machine",
        ),
        ("qemu-system-arm", "no-such-emulator", Cause::EmulatorMissing, "no-such-emulator"),
        ("\"set\"", "\"other\"", Cause::DeployFailed, "image set other"),
        // It ends before it greets, without a word.
        ("qemu-system-arm", "true", Cause::EmulatorRefused, "it said nothing"),
    ];
    for (good, bad, cause, words) in cases {
        let dir = tempfile::tempdir().unwrap();
        let (protocols, seen) = bind(dir.path(), &PROFILE.replace(good, bad));
        let mut power = protocols.power.unwrap();
        let error = power.on().await.unwrap_err();
        assert_eq!(error.cause, cause, "{error}");
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(power.status().await.unwrap(), PowerState::Off);
        assert_eq!(*seen.running.lock().unwrap(), 0, "{bad}");
        assert_eq!(left(dir.path()), [""; 0], "{bad}");
        assert!(seen.events.borrow().is_empty(), "{bad}");
        // The near ends know that the far ends are closed.
        for transport in seen.transports.lock().unwrap().iter_mut() {
            let mut cx = Context::from_waker(Waker::noop());
            let read = transport.poll_read(&mut cx, &mut [0; 8]);
            assert!(matches!(read, Poll::Ready(Ok(0)) | Poll::Pending), "{bad}");
        }
    }
}

#[tokio::test]
async fn a_board_that_is_off_is_tried_out_without_a_sound() {
    let dir = tempfile::tempdir().unwrap();
    let (mut protocols, seen) = bind(dir.path(), PROFILE);
    for _ in 0..2 {
        let report = protocols.health[0].check().await;
        assert!(
            report.ok && report.detail.starts_with("off; a trial start answered"),
            "{report:?}"
        );
        assert_eq!(report.check, protocols.health[0].name());
    }
    assert_eq!(seen.pids.lock().unwrap().len(), 2);
    assert_eq!(*seen.running.lock().unwrap(), 0);
    assert!(seen.events.borrow().is_empty() && seen.transports.lock().unwrap().is_empty());
    assert_eq!(left(dir.path()), [""; 0]);
    // One that is on is asked, not started again.
    let mut power = protocols.power.take().unwrap();
    power.on().await.unwrap();
    let report = protocols.health[0].check().await;
    assert_eq!((report.ok, report.detail.as_str()), (true, "machine is running"));
    assert_eq!(seen.pids.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn a_trial_says_why_a_board_could_not_be_switched_on() {
    for (good, bad, words) in [
        ("qemu-system-arm", "no-such-emulator", "there is no such program"),
        ("machine = \"none\"", "machine = \"nonesuch\"", "unsupported machine"),
        ("\"set\"", "\"other\"", "image set other"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let (mut protocols, seen) = bind(dir.path(), &PROFILE.replace(good, bad));
        let report = protocols.health[0].check().await;
        assert!(!report.ok && report.detail.contains(words), "{report:?}");
        assert_eq!(*seen.running.lock().unwrap(), 0);
    }
}

#[tokio::test]
async fn a_trial_that_nobody_waits_for_any_more_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (mut protocols, seen) = bind(dir.path(), PROFILE);
    {
        let mut check = std::pin::pin!(protocols.health[0].check());
        // Begun, and dropped wherever it stands.
        assert!(check.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    // The owner is done with it when it answers the next question.
    let mut power = protocols.power.take().unwrap();
    assert_eq!(power.status().await.unwrap(), PowerState::Off);
    assert_eq!(*seen.running.lock().unwrap(), 0);
}
