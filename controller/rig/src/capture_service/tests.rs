//! Kept consoles over transports in memory.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jig_model::capture_service::{CaptureState, CaptureStatus};
use jig_model::chain;
use jig_model::protocol::{BoxFuture, Transport, TransportEvent};
use jig_model::rig_file::{CaptureLimits, ConsoleTransport, Endpoint};

use super::{
    CaptureError, CaptureHandle, CaptureObserver, CaptureService, CaptureSpec, LogFolder,
    OpenTransport, OpenTransportError,
};
use crate::console::test_transport::FakeTarget;
use crate::console::{GapReason, LogReader, RecordKind, Stamp};
use crate::store::Places;

/// How long anything may take; only a failing test waits so long.
const DEADLINE: Duration = Duration::from_secs(300);

/// Opens what it was given, in this order; more is not there.
#[derive(Default)]
struct Shelf(Mutex<VecDeque<FakeTarget>>);

impl Shelf {
    fn put(&self, target: &FakeTarget) {
        self.0.lock().unwrap().push_back(target.clone());
    }
}

impl OpenTransport for Shelf {
    fn open(
        &self,
        _spec: &CaptureSpec,
    ) -> BoxFuture<'static, Result<Box<dyn Transport>, OpenTransportError>> {
        let next = self.0.lock().unwrap().pop_front();
        Box::pin(async {
            next.map(|transport| Box::new(transport) as _)
                .ok_or_else(|| OpenTransportError("no such port".into()))
        })
    }
}

struct Bench {
    _state: tempfile::TempDir,
    places: Places,
    shelf: Arc<Shelf>,
    service: CaptureService,
    told: Arc<Mutex<Vec<CaptureStatus>>>,
}

fn spec(console: &str, file_size: u64) -> CaptureSpec {
    CaptureSpec {
        place: "bench".parse().unwrap(),
        transport: ConsoleTransport {
            console: console.parse().unwrap(),
            end: Endpoint::Tty(format!("/dev/{console}")),
            ready: None,
            baud: None,
            timeout: None,
            capture: None,
        },
        baud: 115_200,
        limits: CaptureLimits { file_size, keep_size: 4 * file_size, ..Default::default() },
    }
}

fn service(places: &Places, shelf: &Arc<Shelf>, tell: CaptureObserver) -> CaptureService {
    let clock = Arc::new(Stamp::default);
    CaptureService::new(places.clone(), Arc::clone(shelf) as _, clock, tell)
}

impl Bench {
    /// Keeps one console, whose transport is a target.
    async fn new(target: &FakeTarget, file_size: u64) -> Self {
        let state = tempfile::tempdir().unwrap();
        let places = Places::new(state.path());
        let (shelf, told) = (Arc::<Shelf>::default(), Arc::<Mutex<Vec<_>>>::default());
        shelf.put(target);
        let seen = Arc::clone(&told);
        let tell =
            Arc::new(move |status: &CaptureStatus| seen.lock().unwrap().push(status.clone()));
        let mut service = service(&places, &shelf, tell);
        service.apply(vec![spec("uart0", file_size)]).await;
        Self { _state: state, places, shelf, service, told }
    }

    fn uart(&self) -> CaptureHandle {
        self.service.find(&"bench".parse().unwrap(), &"uart0".parse().unwrap()).unwrap().clone()
    }

    fn folder(&self) -> LogFolder {
        LogFolder::new(&self.places, &"bench".parse().unwrap(), &"uart0".parse().unwrap())
    }

    /// Returns all that was kept, and its gaps.
    fn kept(&self) -> (Vec<u8>, Vec<(Option<u64>, GapReason)>) {
        let (mut bytes, mut gaps) = (Vec::new(), Vec::new());
        for file in self.folder().files().unwrap() {
            let log = LogReader::open(&file.paths).unwrap();
            let mut part = vec![0; usize::try_from(log.committed()).unwrap()];
            assert_eq!(log.read_at(0, &mut part).unwrap(), part.len());
            bytes.extend(part);
            gaps.extend(log.records().filter_map(|record| match record.kind {
                RecordKind::Gap { lost, reason } => Some((lost, reason)),
                _ => None,
            }));
        }
        (bytes, gaps)
    }

    async fn until(&self, what: &str, state: impl Fn(&CaptureState) -> bool) {
        let mut status = self.uart().status();
        let wait = status.wait_for(|status| state(&status.state));
        let seen = tokio::time::timeout(DEADLINE, wait).await;
        assert!(matches!(seen, Ok(Ok(_))), "{what}: {:?}", self.uart().status().borrow());
    }

    async fn until_kept(&self, wanted: &[u8]) {
        let wait = async {
            while self.kept().0 != wanted {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let seen = tokio::time::timeout(DEADLINE, wait).await;
        assert!(seen.is_ok(), "{:?} instead of {wanted:?}", self.kept());
    }
}

/// Reads so many bytes from a lent end.
async fn read(end: &UnixStream, count: usize) -> Vec<u8> {
    let mut end = end.try_clone().unwrap();
    let read = tokio::task::spawn_blocking(move || {
        end.set_nonblocking(false).unwrap();
        let mut bytes = vec![0; count];
        end.read_exact(&mut bytes).unwrap();
        bytes
    });
    read.await.unwrap()
}

const TRANSPORT_GAP: (Option<u64>, GapReason) = (None, GapReason::Transport);

#[tokio::test]
async fn files_follow_one_another_without_a_byte_lost_and_the_oldest_go() {
    let target = FakeTarget::default();
    let bench = Bench::new(&target, 1000).await;
    let mut printed = Vec::new();
    for round in 0..8_u8 {
        let part = vec![b'a' + round; 600];
        target.print(&part);
        printed.extend(part);
        let all = printed.clone();
        // Removed are at most whole files; what is left is an end of what was printed.
        let wait = async {
            while !bench.kept().0.ends_with(&[b'a' + round; 600]) || !all.ends_with(&bench.kept().0)
            {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(DEADLINE, wait).await.unwrap();
    }
    let folder = bench.folder();
    bench.service.close().await;
    let files = folder.files().unwrap();
    assert!(files.len() > 1 && files[0].number > 1, "{files:?}");
    let size = |file: &super::LogFile| std::fs::metadata(&file.paths.raw).unwrap().len();
    assert!(files.iter().map(size).sum::<u64>() <= 4000 + 1200, "{files:?}");
}

#[tokio::test]
async fn a_borrower_gets_what_comes_next_and_what_it_leaves_comes_back() {
    let target = FakeTarget::default();
    let bench = Bench::new(&target, 1 << 20).await;
    target.print(b"before ");
    let lent = bench.uart().lend("a run".to_owned()).await.unwrap();
    assert_eq!((lent.file, lent.offset), (1, 7));
    assert_eq!(bench.kept().0, b"before ");
    bench.until("lent", |state| *state == CaptureState::Lent { by: "a run".to_owned() }).await;
    let mut end = UnixStream::from(lent.end);
    target.print(b"during left");
    assert_eq!(read(&end, 7).await, b"during ");
    end.write_all(b"input").unwrap();
    // All of it was passed on, and four bytes of it were not read.
    while target.left() > 0 {
        tokio::task::yield_now().await;
    }
    drop(end);
    lent.back.send(7).unwrap();
    bench.until_kept(b"before left").await;
    target.print(b" after");
    bench.until_kept(b"before left after").await;
    target.input(5).await;
    assert_eq!(target.taken(), b"input");
    assert_eq!(bench.kept().1, []);
    let told: Vec<_> = bench.told.lock().unwrap().iter().map(|s| s.state.clone()).collect();
    let lent = CaptureState::Lent { by: "a run".to_owned() };
    assert_eq!(told, [CaptureState::Captured, lent, CaptureState::Captured]);
}

#[tokio::test]
async fn a_borrower_that_died_leaves_a_gap_and_one_that_gave_up_nothing() {
    let target = FakeTarget::default();
    let bench = Bench::new(&target, 1 << 20).await;
    let lent = bench.uart().lend("a run".to_owned()).await.unwrap();
    // A second borrower waits, and may give up.
    let second = bench.uart();
    let mut second = Box::pin(second.lend("another".to_owned()));
    let early = tokio::time::timeout(Duration::from_millis(1), &mut second).await;
    assert!(early.is_err());
    drop(second);
    drop(lent);
    target.print(b"on");
    bench.until_kept(b"on").await;
    assert_eq!(bench.kept().1, [TRANSPORT_GAP]);
    bench.until("kept", |state| *state == CaptureState::Captured).await;
}

#[tokio::test]
async fn a_transport_that_is_away_is_lent_when_it_is_back() {
    let target = FakeTarget::default();
    let bench = Bench::new(&target, 1 << 20).await;
    target.change(|line| line.event.push_back(TransportEvent::Lost("unplugged".to_owned())));
    let away = CaptureState::Away { why: "unplugged".to_owned() };
    bench.until("away", |state| *state == away).await;
    let handle = bench.uart();
    let lend = tokio::spawn(async move { handle.lend("a run".to_owned()).await });
    let refused = bench.uart().writer("a person".to_owned(), true).await.unwrap_err();
    assert!(matches!(refused, CaptureError::Away(why) if why == "unplugged"));
    target.change(|line| line.event.push_back(TransportEvent::Back));
    let lent = lend.await.unwrap().unwrap();
    // A loss while it is lent ends the borrower's transport; the capture service hears of it.
    target.change(|line| line.event.push_back(TransportEvent::Lost("unplugged".to_owned())));
    let mut end = UnixStream::from(lent.end);
    let ended = tokio::task::spawn_blocking(move || {
        end.set_nonblocking(false).unwrap();
        end.read(&mut [0; 8]).unwrap()
    });
    assert_eq!(ended.await.unwrap(), 0);
    lent.back.send(0).unwrap();
    bench.until("away again", |state| *state == away).await;
    assert_eq!(bench.kept().1, [TRANSPORT_GAP, TRANSPORT_GAP]);
}

#[tokio::test]
async fn what_did_not_change_notices_nothing_and_what_is_lent_changes_when_it_is_back() {
    let (first, other) = (FakeTarget::default(), FakeTarget::default());
    let mut bench = Bench::new(&first, 1 << 20).await;
    bench.until("kept", |state| *state == CaptureState::Captured).await;
    let applied = bench.service.apply(vec![spec("uart0", 1 << 20)]).await;
    assert_eq!(applied, super::Applied::default());
    let lent = bench.uart().lend("a run".to_owned()).await.unwrap();
    let mut changed = spec("uart0", 1 << 20);
    changed.transport.baud = Some(9600);
    bench.shelf.put(&other);
    let applied = bench.service.apply(vec![changed.clone()]).await;
    assert_eq!(applied.changed.len(), 1);
    first.print(b"x");
    let end = UnixStream::from(lent.end);
    assert_eq!(read(&end, 1).await, b"x");
    drop(end);
    lent.back.send(1).unwrap();
    other.print(b"other");
    bench.until_kept(b"other").await;
    assert_eq!(bench.kept().1, [TRANSPORT_GAP]);
    // Other limits need no other transport.
    changed.limits.file_size = 1 << 18;
    bench.service.apply(vec![changed]).await;
    other.print(b" goes on");
    bench.until_kept(b"other goes on").await;
    assert_eq!(bench.kept().1.len(), 1);
    let ended = bench.service.apply(Vec::new()).await.ended;
    assert_eq!(ended.len(), 1);
}

#[tokio::test]
async fn there_is_one_pen_and_whoever_loses_it_is_told() {
    let target = FakeTarget::default();
    let bench = Bench::new(&target, 1 << 20).await;
    let kept = bench.uart();
    bench.until("kept", |state| *state == CaptureState::Captured).await;
    let mut writer = kept.writer("anna".to_owned(), false).await.unwrap();
    writer.send(b"one ".to_vec()).await.unwrap();
    let refused = kept.writer("ben".to_owned(), false).await.unwrap_err();
    assert_eq!(refused.to_string(), "input is in use by anna");
    let other = kept.writer("ben".to_owned(), true).await.unwrap();
    assert_eq!(writer.taken().await.as_deref(), Some("ben"));
    assert!(writer.send(b"late".to_vec()).await.is_err());
    other.send(b"two ".to_vec()).await.unwrap();
    let refused = other.control(jig_model::protocol::LineControl::Break).await.unwrap_err();
    assert!(chain(&refused).contains("no line to control"), "{refused}");
    drop(other);
    let mut third = kept.writer("carl".to_owned(), false).await.unwrap();
    third.send(b"three".to_vec()).await.unwrap();
    assert_eq!(target.taken(), b"one two three");
    // A run that borrows the transport has the writer as well.
    let lent = kept.lend("a run".to_owned()).await.unwrap();
    assert_eq!(third.taken().await.as_deref(), Some("a run"));
    let refused = kept.writer("anna".to_owned(), true).await.unwrap_err();
    assert_eq!(refused.to_string(), "the transport is in use by a run");
    lent.back.send(0).unwrap();
}

#[tokio::test]
async fn a_port_that_another_program_needs_is_closed_for_it() {
    let (target, again) = (FakeTarget::default(), FakeTarget::default());
    let bench = Bench::new(&target, 1 << 20).await;
    target.print(b"before");
    bench.until_kept(b"before").await;
    let held = bench.uart().release_port("a flasher".to_owned()).await.unwrap();
    let closed = CaptureState::Released { by: "a flasher".to_owned() };
    bench.until("let go", |state| *state == closed).await;
    bench.shelf.put(&again);
    again.print(b" after");
    drop(held);
    bench.until_kept(b"before after").await;
    assert_eq!(bench.kept().1, [TRANSPORT_GAP]);
}

#[tokio::test]
async fn the_next_capture_service_goes_on_behind_a_gap_and_a_port_that_comes_late_is_waited_for() {
    let target = FakeTarget::default();
    let bench = Bench::new(&target, 1 << 20).await;
    target.print(b"first");
    bench.until_kept(b"first").await;
    let Bench { _state, places, shelf, service: old, told } = bench;
    old.close().await;
    let mut next = service(&places, &shelf, Arc::new(|_| ()));
    next.apply(vec![spec("uart0", 1 << 20)]).await;
    let bench = Bench { _state, places, shelf, service: next, told };
    let late = CaptureState::Waiting { why: "no such port".to_owned() };
    bench.until("waiting", |state| *state == late).await;
    bench.shelf.put(&target);
    target.print(b" second");
    bench.until_kept(b"first second").await;
    assert_eq!(bench.kept().1, [TRANSPORT_GAP]);
}

#[tokio::test]
async fn a_log_that_cannot_be_written_is_said_and_begun_when_it_can() {
    let target = FakeTarget::default();
    let state = tempfile::tempdir().unwrap();
    let places = Places::new(state.path());
    // A file where the folder belongs.
    std::fs::create_dir_all(places.root()).unwrap();
    let folder = places.consoles(&"bench".parse().unwrap());
    std::fs::write(&folder, "").unwrap();
    let shelf = Arc::<Shelf>::default();
    shelf.put(&target);
    let mut service = service(&places, &shelf, Arc::new(|_| ()));
    service.apply(vec![spec("uart0", 1 << 20)]).await;
    let bench = Bench { _state: state, places, shelf, service, told: Arc::default() };
    bench.until("unwritten", |state| matches!(state, CaptureState::Unwritten { .. })).await;
    target.print(b"waits");
    std::fs::remove_file(&folder).unwrap();
    bench.until_kept(b"waits").await;
    assert_eq!(bench.kept().1, [TRANSPORT_GAP]);
}
