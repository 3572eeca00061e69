//! What a run is told of a probe that does not answer at once: with a fake at probe-rs' seam.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jig_model::event::BoardEvent;
use jig_model::image::{BinAddress, DeployReport, Image, ImageFormat, Payload};
use jig_model::profile::{BoardProfile, FaultSets};
use jig_model::protocol::{
    BoardSink, BoxFuture, DriverError, Flasher, HealthCheck as _, PowerState, SharedSink, Transport,
};
use jig_model::{Cause, ConsoleName};
use tokio::sync::mpsc;

use super::backing::{Backing, RealBacking};
use super::board::{BoardOwner, clear};
use super::consoles::ProbeConsoles;
use super::factory::AfterLettingGo;
use super::handle::{BoardHandle, BoardOrder};
use super::open_fault::OpenFault;
use crate::worker::fake::{Fake, Script};
use crate::{AttachOptions, ProbeHandle};

const PROFILE: &str = r#"
version = 1
id = "fake"
title = "A board behind a fake probe"
arch = "arm"
chip = "nRF51822_xxAA"
console = [{ name = "log", kind = "rtt" }]
"#;

#[derive(Default)]
struct Heard(Mutex<Vec<BoardEvent>>);

impl BoardSink for Heard {
    fn attach(&self, _console: &ConsoleName, _transport: Box<dyn Transport>) {}
    fn drained(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
    fn event(&self, event: BoardEvent) {
        self.0.lock().unwrap().push(event);
    }
}

fn profile() -> BoardProfile {
    let sets = FaultSets::parse(std::iter::empty()).unwrap_or_else(|bad| panic!("{}", bad[0]));
    BoardProfile::parse("fake.toml", PROFILE, &sets).unwrap_or_else(|bad| panic!("{bad}"))
}

/// Starts the owner of a board behind a fake probe.
fn board(fake: &Arc<Fake>, sink: SharedSink) -> (BoardHandle, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let source = Arc::clone(fake);
    let backing = RealBacking {
        selector: "fake".to_owned(),
        source: Box::new(move || source.source()),
        options: AttachOptions::default(),
        ram: None,
        lets_go: true,
        is_served: false,
    };
    let evidence = folder.path().to_owned();
    let consoles = ProbeConsoles::new(&profile(), false, evidence, Duration::ZERO);
    let (orders, inbox) = mpsc::channel(4);
    let open_fault = Arc::<OpenFault>::default();
    let backing = Backing::Real(backing);
    let owner = BoardOwner::new(backing, sink, consoles, Arc::clone(&open_fault));
    tokio::spawn(owner.run(inbox));
    (BoardHandle { orders, silent: Cause::ProbeLost, open_fault }, folder)
}

#[tokio::test]
async fn a_run_is_told_that_the_first_attach_failed() {
    for (deaf, attempts) in [(0, None), (1, Some(2))] {
        let fake = Fake::new(Script { deaf, ..Script::default() });
        let heard = Arc::new(Heard::default());
        let (board, _folder) = board(&fake, Arc::clone(&heard) as _);
        board.ask(BoardOrder::On).await.unwrap();
        board.ask(BoardOrder::Off).await.unwrap();
        let events = heard.0.lock().unwrap().clone();
        let told: Vec<_> = events
            .iter()
            .filter_map(|event| match event {
                BoardEvent::Attached { attempts, method, failures } => {
                    Some((*attempts, method.as_str(), failures.len(), failures[0].clone()))
                }
                _ => None,
            })
            .collect();
        match attempts {
            None => assert_eq!(told, []),
            Some(attempts) => {
                let [(times, method, failures, why)] = told.as_slice() else {
                    panic!("{events:?}")
                };
                assert_eq!(
                    (*times, *method, *failures),
                    (attempts, "attach to the running target", 1)
                );
                assert!(why.contains("did not respond"), "{why}");
            }
        }
        let power = |state| BoardEvent::Power { state };
        let ends = events.iter().filter(|event| matches!(event, BoardEvent::Power { .. }));
        let ends: Vec<_> = ends.cloned().collect();
        assert_eq!(ends, [power(PowerState::On), power(PowerState::Off)], "{events:?}");
    }
}

#[tokio::test]
async fn memory_is_cleared_where_there_is_some() {
    let fake = Fake::new(Script::default());
    let (probe, _) = ProbeHandle::attach(fake.source(), AttachOptions::default()).await.unwrap();
    probe.write(0x2000_0000, vec![7; 64]).await.unwrap();
    // The bus refuses the second range.
    let ranges = [0x2000_0010..0x2000_0020, 0x6000_0000..0x6000_0010, 0x2000_0030..0x2000_0034];
    clear(&probe, ranges.into()).await.unwrap();
    let left = probe.read(0x2000_0000, 64).await.unwrap();
    let cleared = |at: usize| (0x10..0x20).contains(&at) || (0x30..0x34).contains(&at);
    let wanted: Vec<u8> = (0..64).map(|at| if cleared(at) { 0 } else { 7 }).collect();
    assert_eq!(left, wanted);
}

#[tokio::test]
async fn a_board_that_is_off_says_what_its_core_is_and_is_let_go() {
    let fake = Fake::new(Script::default());
    let (mut board, _folder) = board(&fake, Arc::new(Heard::default()) as _);
    for opened in 1..=2 {
        let report = board.check().await;
        assert!(report.ok && report.detail.starts_with("off; the core"), "{report:?}");
        // Each look opens the probe anew: it was not kept.
        assert_eq!(fake.opened.load(Ordering::SeqCst), opened);
    }
    assert_eq!(board.ask(BoardOrder::Status).await.unwrap(), PowerState::Off);
    // One that is on is asked by the session it has.
    board.ask(BoardOrder::On).await.unwrap();
    let opened = fake.opened.load(Ordering::SeqCst);
    let report = board.check().await;
    assert!(report.ok && report.detail.starts_with("the core"), "{report:?}");
    assert_eq!(fake.opened.load(Ordering::SeqCst), opened);
    board.ask(BoardOrder::Off).await.unwrap();
}

#[tokio::test]
async fn a_probe_or_a_chip_that_has_gone_is_told() {
    let fake = Fake::new(Script::default());
    fake.pulled_out.store(true, Ordering::SeqCst);
    let (mut board_without, _folder) = board(&fake, Arc::new(Heard::default()) as _);
    let report = board_without.check().await;
    assert!(!report.ok && report.detail.starts_with("attach to the board"), "{report:?}");
    let fake = Fake::new(Script { deaf: usize::MAX, ..Script::default() });
    let (mut board, _folder) = board(&fake, Arc::new(Heard::default()) as _);
    let report = board.check().await;
    assert!(!report.ok && report.detail.contains("did not respond"), "{report:?}");
}

/// A program that says that it has flashed, whatever it has done.
struct Program;

impl Flasher for Program {
    fn deploy<'a>(
        &'a mut self,
        _image: &'a Image,
    ) -> BoxFuture<'a, Result<DeployReport, DriverError>> {
        let report = DeployReport { method: "program".to_owned(), ..DeployReport::default() };
        Box::pin(std::future::ready(Ok(report)))
    }
}

#[tokio::test]
async fn what_a_program_has_flashed_is_read_back() {
    let fake = Fake::new(Script::default());
    let (handle, folder) = board(&fake, Arc::new(Heard::default()) as _);
    let flashed = async |bytes: &[u8], flash: std::ops::Range<u64>| {
        let path = folder.path().join("image.bin");
        std::fs::write(&path, bytes).unwrap();
        let format = ImageFormat::Binary { address: BinAddress(0x1000) };
        let payload = Payload::read(format, bytes).unwrap();
        let image = Image {
            name: "image.bin".to_owned(),
            path,
            format,
            sha256: String::new(),
            payload_sha256: payload.sha256(),
            payload_bytes: payload.len(),
            payload_spans: payload.spans().collect(),
            build_id: None,
            announces: false,
        };
        let (program, flash) = (Box::new(Program), vec![flash]);
        let mut flasher = AfterLettingGo { program, handle: handle.clone(), flash };
        (flasher.deploy(&image).await, payload.sha256())
    };
    // The flash behind the fake is erased: an image of such bytes is there, any other is not.
    let (report, sha256) = flashed(&[0xff; 8], 0..0x4_0000).await;
    let report = report.unwrap();
    assert_eq!((report.verified, report.read_back_sha256), (true, Some(sha256)));
    let (error, _) = flashed(b"firmware", 0..0x4_0000).await;
    let error = error.unwrap_err();
    assert_eq!(error.cause, Cause::DeployFailed);
    assert!(error.to_string().starts_with("program says that it has flashed, but"), "{error}");
    // Of an image that lies elsewhere, too, nothing is claimed.
    let (report, _) = flashed(b"firmware", 0..0x1004).await;
    let report = report.unwrap();
    assert_eq!((report.verified, report.read_back_sha256), (false, None));
}
