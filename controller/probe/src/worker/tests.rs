//! What the worker does when things go wrong that no board does on demand.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use jig_model::{Cause, Fault};

use super::fake::{Fake, Script};
use crate::{
    AttachMethod, AttachMode, AttachOptions, Cancel, CoreState, FlashPhase, FlashProgress,
    FlashRequest, Leave, Payload, ProbeError, ProbeHandle, ProbeSource, Segment,
};

/// Long enough for every step of a sound attach on a busy machine; the tests in which
/// something hangs take as long.
const DEADLINE: Duration = Duration::from_secs(2);

fn options() -> AttachOptions {
    AttachOptions { deadline: DEADLINE, ..AttachOptions::default() }
}

fn request() -> FlashRequest {
    FlashRequest {
        payload: Payload { segments: vec![Segment { start: 0x1000, bytes: vec![0x12; 0x800] }] },
        verify: true,
        preserve: Vec::new(),
        skip_equal: true,
    }
}

async fn flash(probe: &ProbeHandle) -> ProbeError {
    probe.flash(request(), |_| {}, Cancel::default()).await.unwrap_err()
}

/// Waits until only the test holds the fake: its probe is dropped, its thread has ended.
async fn released(fake: &Arc<Fake>) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while Arc::strong_count(fake) > 1 {
        assert!(Instant::now() < deadline, "the probe is still held");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_sound_probe_is_attached_at_once() {
    let fake = Fake::new(Script::default());
    let (probe, attached) = ProbeHandle::attach(fake.source(), options()).await.unwrap();
    assert_eq!((attached.attempts, attached.method), (1, AttachMethod::Running));
    assert_eq!((&*attached.chip, &*attached.probe), ("nRF51822_xxAA", "fake"));
    assert!(attached.failures.is_empty());
    let json = serde_json::to_string(&attached).unwrap();
    assert_eq!(serde_json::from_str::<crate::Attached>(&json).unwrap(), attached);
    assert_eq!(probe.state().await.unwrap(), CoreState::Running);
    probe.halt().await.unwrap();
    assert!(matches!(probe.state().await.unwrap(), CoreState::Halted { .. }));
    probe.close(Leave::Running).await.unwrap();
    assert!(!fake.was_cut());
}

#[tokio::test]
async fn the_first_attach_may_fail_and_that_is_shown() {
    let fake = Fake::new(Script { deaf: 1, ..Script::default() });
    let (probe, attached) = ProbeHandle::attach(fake.source(), options()).await.unwrap();
    assert_eq!((attached.attempts, attached.method), (2, AttachMethod::Running));
    let [said] = attached.failures.as_slice() else { panic!("{attached:?}") };
    assert!(said.starts_with("attach to the running target: "), "{said}");
    assert!(said.contains("did not respond"), "{said}");
    assert_eq!(fake.opened.load(Ordering::SeqCst), 2);
    probe.close(Leave::Running).await.unwrap();
}

#[tokio::test]
async fn a_target_that_sleeps_is_attached_under_reset() {
    let fake = Fake::new(Script { asleep: true, ..Script::default() });
    let (probe, attached) = ProbeHandle::attach(fake.source(), options()).await.unwrap();
    assert_eq!((attached.attempts, attached.method), (3, AttachMethod::UnderReset));
    assert_eq!(attached.failures.len(), 2);
    assert!(matches!(probe.state().await.unwrap(), CoreState::Halted { .. }));
    probe.close(Leave::Running).await.unwrap();

    let running = AttachOptions { mode: AttachMode::Running, attempts: 2, ..options() };
    let error = ProbeHandle::attach(fake.source(), running).await.unwrap_err();
    assert!(matches!(error, ProbeError::NoTarget { attempts: 2, .. }), "{error}");
    assert_eq!(error.to_string(), "the target does not answer after 2 attempts");
}

#[tokio::test]
async fn a_protected_chip_is_not_erased_unasked() {
    let fake = Fake::new(Script::default());
    let options = AttachOptions { chip: Some("nRF52832_xxAA".to_owned()), ..options() };
    let error = ProbeHandle::attach(fake.source(), options).await.unwrap_err();
    let expected = "the chip is protected: unlocking erases all flash of nRF52832_xxAA";
    assert_eq!(error.to_string(), expected);
    assert_eq!(fake.opened.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn an_unknown_chip_is_named_beside_the_nearest_without_touching_the_probe() {
    let fake = Fake::new(Script::default());
    let options = AttachOptions { chip: Some("nRF52823_xxAA".to_owned()), ..options() };
    let error = ProbeHandle::attach(fake.source(), options).await.unwrap_err();
    let ProbeError::UnknownChip { name, nearest } = &error else { panic!("{error}") };
    assert_eq!(name, "nRF52823_xxAA");
    assert!(nearest.iter().any(|name| name == "nRF52833_xxAA"), "{nearest:?}");
    assert_eq!(fake.opened.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_chip_description_that_cannot_be_read_is_said() {
    let fake = Fake::new(Script::default());
    let options = AttachOptions { chip_description: Some(": no".to_owned()), ..options() };
    let error = ProbeHandle::attach(fake.source(), options).await.unwrap_err();
    assert_eq!(error.to_string(), "the chip description could not be read");
}

#[tokio::test]
async fn a_probe_pulled_out_is_lost_wherever_that_happens() {
    let sound = Fake::new(Script::default());
    let (probe, _) = ProbeHandle::attach(sound.source(), options()).await.unwrap();
    let before = sound.transfers.load(Ordering::SeqCst);
    drop(flash(&probe).await);
    let after = sound.transfers.load(Ordering::SeqCst);
    probe.close(Leave::Running).await.unwrap();

    for tenth in 1..10 {
        let pulled_out_after = Some(before + (after - before) * tenth / 10);
        let fake = Fake::new(Script { pulled_out_after, ..Script::default() });
        let (probe, _) = ProbeHandle::attach(fake.source(), options()).await.unwrap();
        let error = flash(&probe).await;
        assert!(matches!(error, ProbeError::ProbeLost { .. }), "{tenth}: {error:?}");
        assert!(matches!(probe.halt().await, Err(ProbeError::ProbeLost { .. })));
        assert!(probe.close(Leave::Running).await.is_err());
        let again = ProbeHandle::attach(fake.source(), options()).await.unwrap_err();
        assert!(matches!(again, ProbeError::NotFound { .. }), "{again}");
    }
}

#[tokio::test]
async fn a_probe_pulled_out_while_it_programs_is_the_labs_fault_and_works_when_it_is_back() {
    let fake = Fake::new(Script::default());
    let (probe, _) = ProbeHandle::attach(fake.source(), options()).await.unwrap();
    let (handle, mut phases) = (Arc::clone(&fake), Vec::new());
    let (told, seen) = std::sync::mpsc::channel();
    let pull = move |progress: FlashProgress| {
        phases.push(progress.phase);
        let half = progress.phase == FlashPhase::Program && progress.done * 2 >= progress.total;
        if half && !handle.pulled_out.swap(true, Ordering::SeqCst) {
            let _ = told.send(std::mem::take(&mut phases));
        }
    };
    let began = Instant::now();
    let error = probe.flash(request(), pull, Cancel::default()).await.unwrap_err();
    assert!(matches!(error, ProbeError::ProbeLost { .. }), "{error:?}");
    assert_eq!((error.fault(), error.cause()), (Fault::Lab, Cause::ProbeLost));
    // Nothing hung: an error that comes at once needs no deadline.
    assert!(began.elapsed() < DEADLINE * 5, "{:?}", began.elapsed());
    let phases = seen.recv().unwrap();
    assert!(phases.contains(&FlashPhase::Erase) && !phases.contains(&FlashPhase::Verify));
    assert!(probe.close(Leave::Running).await.is_err());
    let out = ProbeHandle::attach(fake.source(), options()).await.unwrap_err();
    assert!(matches!(out, ProbeError::NotFound { .. }), "{out}");

    // Back in its socket it goes through all phases; only the fake's flash takes nothing.
    fake.pulled_out.store(false, Ordering::SeqCst);
    let (probe, attached) = ProbeHandle::attach(fake.source(), options()).await.unwrap();
    assert_eq!(attached.attempts, 1);
    assert!(matches!(flash(&probe).await, ProbeError::VerifyFailed { address: 0x1000, .. }));
    probe.close(Leave::Running).await.unwrap();
}

#[tokio::test]
async fn a_flash_that_takes_nothing_is_found_out() {
    let fake = Fake::new(Script::default());
    let (probe, _) = ProbeHandle::attach(fake.source(), options()).await.unwrap();
    let error = flash(&probe).await;
    let expected = ProbeError::VerifyFailed { address: 0x1000, expected: 0x12, found: 0xff };
    assert_eq!(error.to_string(), expected.to_string());
    probe.close(Leave::Running).await.unwrap();
}

#[tokio::test]
async fn an_algorithm_that_fails_names_the_sector_and_the_session_goes_on() {
    let fake = Fake::new(Script { result: 3, ..Script::default() });
    let (probe, _) = ProbeHandle::attach(fake.source(), options()).await.unwrap();
    let error = flash(&probe).await;
    assert!(matches!(error, ProbeError::FlashFailed { .. }), "{error:?}");
    assert!(probe.read(0x2000_0000, 4).await.is_ok());
    assert!(matches!(
        probe.read(0x7000_0000, 4).await,
        Err(ProbeError::BusFault { access: "read", address: 0x7000_0000 })
    ));
    probe.close(Leave::Running).await.unwrap();
}

#[tokio::test]
async fn a_driver_that_hangs_is_given_up_and_cut_off() {
    let sound = Fake::new(Script::default());
    let (probe, _) = ProbeHandle::attach(sound.source(), options()).await.unwrap();
    let attached = sound.transfers.load(Ordering::SeqCst);
    probe.close(Leave::Running).await.unwrap();

    let fake = Fake::new(Script { hangs_after: Some(attached), ..Script::default() });
    let (probe, _) = ProbeHandle::attach(fake.source(), options()).await.unwrap();
    let other = probe.clone();
    let queued = tokio::spawn(async move { other.state().await });
    let error = probe.halt().await.unwrap_err();
    let queued = queued.await.unwrap().unwrap_err();
    // Whichever of the two was asked first waits for the deadline.
    for error in [&error, &queued] {
        assert!(
            matches!(
                error,
                ProbeError::Hung { .. } | ProbeError::Gone | ProbeError::ProbeLost { .. }
            ),
            "{error:?}"
        );
    }
    assert!([&error, &queued].iter().any(|error| matches!(error, ProbeError::Hung { .. })));
    assert!(fake.was_cut());
    released(&fake).await;
    assert!(matches!(probe.halt().await, Err(ProbeError::Gone)));
    assert!(matches!(probe.clone().close(Leave::Running).await, Err(ProbeError::Gone)));
}

#[tokio::test]
async fn a_driver_that_hangs_while_attaching_is_given_up_too() {
    let fake = Fake::new(Script { hangs_after: Some(5), ..Script::default() });
    let error = ProbeHandle::attach(fake.source(), options()).await.unwrap_err();
    assert_eq!(error.to_string(), "the probe did not answer to attach within 2 s");
    assert!(fake.was_cut());
    released(&fake).await;
}

#[tokio::test]
async fn the_last_handle_that_is_dropped_ends_the_session() {
    let fake = Fake::new(Script::default());
    let (probe, _) = ProbeHandle::attach(fake.source(), options()).await.unwrap();
    let other = probe.clone();
    drop(probe);
    assert_eq!(other.state().await.unwrap(), CoreState::Running);
    drop(other);
    released(&fake).await;
    assert!(!fake.was_cut());
}

#[tokio::test]
async fn a_driver_that_panics_is_an_answer() {
    let fake = Fake::new(Script { panics: true, ..Script::default() });
    let error = ProbeHandle::attach(fake.source(), options()).await.unwrap_err();
    let ProbeError::ProbeLost { during, source } = error else { panic!("{error:?}") };
    assert_eq!(during, "attach");
    assert_eq!(source.to_string(), "the driver met a case that cannot be");
}

#[tokio::test]
async fn a_closed_session_is_gone_for_every_handle() {
    let fake = Fake::new(Script::default());
    let (probe, _) = ProbeHandle::attach(fake.source(), options()).await.unwrap();
    let other = probe.clone();
    probe.close(Leave::Halted).await.unwrap();
    // To leave the core halted its probe is cut off before it can say good-bye.
    assert!(fake.was_cut());
    assert!(matches!(other.read(0, 4).await, Err(ProbeError::Gone)));
}

/// A server of a remote probe that identifies itself and then says something, or nothing.
struct Server {
    folder: tempfile::TempDir,
    served: std::thread::JoinHandle<usize>,
}

/// What a server does after it has identified itself.
#[derive(Clone, Copy, PartialEq)]
enum Then {
    Silence,
    HangUp,
    Nonsense,
}

/// Frames a short packet without zeros in it.
fn framed(endpoint: u8, bytes: &[u8]) -> Vec<u8> {
    assert!(endpoint == 0 && !bytes.contains(&0) && bytes.len() < 250);
    let mut frame = vec![1, bytes.len() as u8 + 1];
    frame.extend_from_slice(bytes);
    frame.push(0);
    frame
}

impl Server {
    /// Serves one client. The thread ends when that client has hung up, and says how many
    /// bytes it sent after the greeting.
    fn start(greets: bool, then: Then) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("probe")).unwrap();
        let served = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            drop(listener);
            let mut buffer = [0; 4096];
            if greets {
                // The requests for its identity and for its clock.
                assert!(client.read(&mut buffer).unwrap() > 0);
                client.write_all(&framed(0, b"probe-rs,v01")).unwrap();
                assert!(client.read(&mut buffer).unwrap() > 0);
                client.write_all(&framed(0, &[0x10, 0x11, 0x12, 0x13])).unwrap();
            }
            let mut sent = 0;
            loop {
                match then {
                    Then::HangUp => return 0,
                    Then::Nonsense => drop(client.write_all(&[7, 7, 7, 0])),
                    Then::Silence => {}
                }
                match client.read(&mut buffer) {
                    Ok(0) | Err(_) => return sent,
                    Ok(count) => sent += count,
                }
            }
        });
        Self { folder, served }
    }

    fn source(&self) -> ProbeSource {
        let path = self.folder.path().join("probe");
        ProbeSource::Selector(format!("20b7:9db1:unix:{}", path.display()))
    }
}

fn remote_options() -> AttachOptions {
    AttachOptions { chip: Some("nRF51822_xxAA".to_owned()), attempts: 1, ..options() }
}

/// Counts this process's threads that carry bytes for a remote probe named so.
async fn threads_end(name: &str) {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
        if !names.map(|comm| comm.trim().to_owned()).any(|comm| comm == name) {
            return;
        }
        assert!(Instant::now() < deadline, "a thread named {name} goes on");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn remote_probes_that_misbehave_end_in_time_and_leave_no_thread() {
    for (greets, then) in [
        (false, Then::Silence),
        (true, Then::Silence),
        (false, Then::HangUp),
        (true, Then::HangUp),
        (false, Then::Nonsense),
        (true, Then::Nonsense),
    ] {
        let server = Server::start(greets, then);
        let started = Instant::now();
        let error = ProbeHandle::attach(server.source(), remote_options()).await.unwrap_err();
        let hung = matches!(error, ProbeError::Hung { .. });
        assert_eq!(hung, then == Then::Silence, "{error:?}");
        assert!(started.elapsed() < DEADLINE * 5, "{:?}", started.elapsed());
        // The driver has hung up: the server sees it, and then its own thread ends.
        tokio::task::spawn_blocking(|| server.served.join().unwrap()).await.unwrap();
        threads_end("probe 20b7:9db").await;
    }
}

#[tokio::test]
async fn a_remote_probe_that_is_not_there_is_not_found() {
    for selector in ["20b7:9db1:unix:/nowhere/probe", "20b7:9db1:tcp:127.0.0.1:1"] {
        let source = ProbeSource::Selector(selector.to_owned());
        let error = ProbeHandle::attach(source, remote_options()).await.unwrap_err();
        let expected = format!("there is no probe {selector}; none is attached");
        assert_eq!(error.to_string(), expected);
    }
    let source = ProbeSource::Selector("1366:fffe:NONE".to_owned());
    let error = ProbeHandle::attach(source, remote_options()).await.unwrap_err();
    assert!(matches!(error, ProbeError::NotFound { .. }), "{error}");
}
