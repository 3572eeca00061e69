//! What the capture owes its transports: every byte, in order, whatever the disk does.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;
use std::time::Duration;

use nix::errno::Errno;

use super::super::clock::Stamp;
use super::super::follow::{Follow, FollowError};
use super::super::log::{GapReason, LogSink, RecordKind};
use super::super::queue::LIMIT;
use super::super::read::LogReader;
use super::super::test_transport::FakeTarget;
use super::*;

fn clock() -> Arc<dyn ConsoleClock> {
    let ticks = AtomicU64::new(0);
    // Ten milliseconds a look, so that no two chunks merge.
    Arc::new(move || Stamp { mono_ns: ticks.fetch_add(10_000_000, Ordering::Relaxed), wall_ns: 0 })
}

struct Bench {
    console: Console,
    handle: ConsoleHandle,
    paths: LogPaths,
    _folder: tempfile::TempDir,
}

fn bench() -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let paths = LogPaths::new(folder.path(), &"uart0".parse().unwrap());
    let console = Console::start(&paths, clock()).unwrap();
    let handle = console.handle().clone();
    Bench { console, handle, paths, _folder: folder }
}

#[tokio::test]
async fn everything_is_on_disk_after_a_drain_and_after_the_end() {
    let Bench { console, handle, paths, _folder } = bench();
    let target = FakeTarget::picky();
    target.print(b"first");
    handle.attach(Box::new(target.clone())).unwrap();
    assert_eq!(handle.drained().await.unwrap(), 5);
    assert_eq!(std::fs::read(&paths.raw).unwrap(), b"first");
    target.print(b" tail");
    target.change(|line| line.ended = true);
    let mut state = handle.state();
    let ended = state.wait_for(|s| s.ended.is_some()).await.unwrap().clone();
    assert_eq!((ended.len, ended.attached, ended.ended), (10, false, Some(TransportEnd::Closed)));
    let last = console.close().await;
    assert!(last.closed && last.error.is_none());
    assert!(matches!(handle.drained().await, Err(ConsoleError::Closed)));
    assert!(matches!(handle.send(*b"x").await, Err(ConsoleError::Closed)));
}

#[tokio::test]
async fn the_log_goes_on_over_power_cycles_with_marks() {
    let Bench { console, handle, paths, _folder } = bench();
    let (one, two) = (FakeTarget::picky(), FakeTarget::picky());
    one.print(b"one");
    handle.attach(Box::new(one.clone())).unwrap();
    handle.drained().await.unwrap();
    one.print(b"+");
    two.print(b"two");
    handle.attach(Box::new(two.clone())).unwrap();
    handle.drained().await.unwrap();
    assert_eq!(handle.boundary().await.unwrap(), 7);
    handle.gap(Some(4), GapReason::Overrun).unwrap();
    two.print(b"boot");
    two.change(|line| line.broken = true);
    let state = console.close().await;
    assert_eq!(
        (state.len, state.transports, state.boots, state.gaps, state.lost),
        (11, 2, 1, 1, 4)
    );
    assert_eq!(state.ended, Some(TransportEnd::Broken("unplugged".into())));
    let log = LogReader::open(&paths).unwrap();
    let marks: Vec<_> = log
        .records()
        .filter(|r| !matches!(r.kind, RecordKind::Bytes(_)))
        .map(|r| (r.offset, r.kind))
        .collect();
    let gap = RecordKind::Gap { lost: Some(4), reason: GapReason::Overrun };
    assert_eq!(
        marks,
        [
            (0, RecordKind::Attached),
            (4, RecordKind::Detached),
            (4, RecordKind::Attached),
            (7, RecordKind::Boot),
            (7, gap),
            (11, RecordKind::Detached)
        ]
    );
    assert_eq!(std::fs::read(&paths.raw).unwrap(), b"one+twoboot");
}

fn noise(len: usize) -> Vec<u8> {
    let mut x = 1u32;
    let mut next = || {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        x as u8
    };
    (0..len).map(|_| next()).collect()
}

#[tokio::test]
async fn a_flood_arrives_complete_whatever_the_followers_do() {
    let Bench { console, handle, paths, _folder } = bench();
    let megabyte = noise(1 << 20);
    let target = FakeTarget::picky();
    handle.attach(Box::new(target.clone())).unwrap();
    // Never reads on: it must not hold anything up.
    let mut stuck = handle.follow(0, 0).unwrap();
    for _ in 0..64 {
        target.print(&megabyte);
        tokio::task::yield_now().await;
    }
    target.change(|line| line.ended = true);
    let mut state = handle.state();
    state.wait_for(|s| s.ended.is_some()).await.unwrap();
    let last = console.close().await;
    assert_eq!((last.len, last.lost), (64 << 20, 0));
    // Starts when all is over, and the stuck one goes on: both get every byte.
    let mut late = handle.follow(0, 0).unwrap();
    for follower in [&mut late, &mut stuck] {
        let (mut buf, mut seen) = (vec![0; 1 << 20], 0u64);
        while let Follow::Bytes { offset, len } = follower.next(&mut buf).await.unwrap() {
            assert_eq!(offset, seen);
            let at = (seen % (1 << 20)) as usize;
            let first = len.min((1 << 20) - at);
            assert!(buf[..first] == megabyte[at..at + first]);
            assert!(buf[first..len] == megabyte[..len - first]);
            seen += len as u64;
        }
        assert_eq!(seen, 64 << 20);
    }
    assert_eq!(LogReader::open(&paths).unwrap().committed(), 64 << 20);
}

#[tokio::test(start_paused = true)]
async fn a_send_is_whole_and_an_abandoned_one_holds_nobody_up() {
    let Bench { console, handle, paths: _, _folder } = bench();
    assert!(matches!(handle.send(*b"x").await, Err(ConsoleError::Detached)));
    let target = FakeTarget::picky();
    handle.attach(Box::new(target.clone())).unwrap();
    target.change(|line| line.appetite = 10);
    handle.send(*b"hello").await.unwrap();
    assert_eq!(target.taken(), b"hello");
    // Takes five of ten bytes and then no more.
    let stuck = handle.send(*b"0123456789");
    assert!(tokio::time::timeout(Duration::from_secs(1), stuck).await.is_err());
    target.change(|line| line.appetite = 100);
    handle.send(*b"next").await.unwrap();
    assert_eq!(target.taken(), b"hello01234next");
    // Output still flows while the target does not read.
    target.change(|line| line.appetite = 0);
    let stuck = tokio::spawn({
        let handle = handle.clone();
        async move { handle.send(*b"never").await }
    });
    tokio::task::yield_now().await;
    target.print(b"out");
    assert_eq!(handle.drained().await.unwrap(), 3);
    console.close().await;
    assert!(stuck.await.unwrap().is_err());
}

/// Breaks after some bytes, as a full disk does.
struct Full {
    room: usize,
    kept: Arc<Mutex<Vec<u8>>>,
}

impl io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = bytes.len().min(self.room);
        if n == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.room -= n;
        self.kept.lock().unwrap().extend(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl LogSink for Full {
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_full_disk_is_told_and_the_transport_still_drained() {
    let folder = tempfile::tempdir().unwrap();
    let raw_path = folder.path().join("raw");
    std::fs::write(&raw_path, b"kept").unwrap();
    let index = Arc::new(Mutex::new(Vec::new()));
    let raw = Full { room: 10, kept: Arc::default() };
    let index_sink = Full { room: 4096, kept: Arc::clone(&index) };
    let log = LogWriter::over(Box::new(raw), Box::new(index_sink)).unwrap();
    let console = Console::over(log, &raw_path, clock()).unwrap();
    let handle = console.handle().clone();
    let target = FakeTarget::picky();
    handle.attach(Box::new(target.clone())).unwrap();
    target.print(b"kept");
    assert_eq!(handle.drained().await.unwrap(), 4);
    for _ in 0..40 {
        target.print(&vec![b'x'; 1 << 20]);
        assert_eq!(handle.drained().await.unwrap(), 4);
    }
    let mut follower = handle.follow(0, 0).unwrap();
    let mut buf = [0; 64];
    assert_eq!(follower.next(&mut buf).await.unwrap(), Follow::Bytes { offset: 0, len: 4 });
    assert!(matches!(follower.next(&mut buf).await, Err(FollowError::Storage(_))));
    let state = console.close().await;
    assert_eq!((state.len, state.lost, state.gaps), (4, 40 << 20, 1));
    assert!(state.error.is_some() && state.closed);
    // The index could still take the last words.
    let paths = LogPaths { raw: raw_path, index: folder.path().join("idx") };
    std::fs::write(&paths.index, index.lock().unwrap().as_slice()).unwrap();
    let last = LogReader::open(&paths).unwrap().records().last().unwrap();
    let gap = RecordKind::Gap { lost: Some(40 << 20), reason: GapReason::Storage };
    assert_eq!((last.offset, last.kind), (4, gap));
}

/// A disk that hangs until it is let go.
struct Stalled(Arc<(Mutex<bool>, std::sync::Condvar)>);

impl io::Write for Stalled {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut open = self.0.0.lock().unwrap();
        while !*open {
            open = self.0.1.wait(open).unwrap();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl LogSink for Stalled {
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_stalled_disk_holds_the_transport_up_only_beyond_the_limit() {
    const ALL: usize = 40 << 20;
    let gate = Arc::new((Mutex::new(false), std::sync::Condvar::new()));
    let index = Full { room: usize::MAX, kept: Arc::default() };
    let log = LogWriter::over(Box::new(Stalled(Arc::clone(&gate))), Box::new(index)).unwrap();
    let console = Console::over(log, Path::new("/nowhere"), clock()).unwrap();
    let target = FakeTarget::picky();
    target.print(&vec![b'x'; ALL]);
    console.handle().attach(Box::new(target.clone())).unwrap();
    let taken = || ALL - target.left();
    // The transport is read although nothing can be written.
    while taken() < LIMIT - CHUNK {
        tokio::task::yield_now().await;
    }
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    // Once over in the queue, and once over in the hands of the disk thread.
    assert!(taken() <= 2 * (LIMIT + CHUNK), "{}", taken());
    *gate.0.lock().unwrap() = true;
    gate.1.notify_all();
    assert_eq!(console.handle().drained().await.unwrap(), ALL as u64);
    assert_eq!(console.close().await.lost, 0);
}

#[tokio::test]
async fn dropping_the_console_closes_the_log_in_order() {
    let Bench { console, handle, paths: _, _folder } = bench();
    let target = FakeTarget::picky();
    target.print(b"bytes");
    handle.attach(Box::new(target)).unwrap();
    drop(console);
    let mut state = handle.state();
    let last = state.wait_for(|s| s.closed).await.unwrap().clone();
    assert_eq!((last.len, last.attached, last.error), (5, false, None));
}

#[test]
fn a_runtime_that_goes_away_still_closes_the_log() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let Bench { console, handle, .. } = runtime.block_on(async { bench() });
    drop(runtime);
    let mut state = handle.state();
    let waiting = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert!(waiting.block_on(state.wait_for(|s| s.closed)).unwrap().closed);
    drop(console);
}

#[test]
fn single_bytes_are_merged_while_the_disk_is_busy_and_the_queue_is_bounded() {
    let queue = ChunkQueue::new(clock());
    for i in 0..10_000u64 {
        let stamp = Stamp { mono_ns: i, wall_ns: 0 };
        queue.push(QueueEntry::bytes(stamp, vec![b'x']));
    }
    let entries = queue.take().unwrap();
    assert_eq!(entries.len(), 1);
    let full = Stamp { mono_ns: 0, wall_ns: 0 };
    while has_room(&queue) {
        queue.push(QueueEntry::bytes(full, vec![0; CHUNK]));
    }
    assert!(queue.take().unwrap().len() <= LIMIT / CHUNK);
    assert!(has_room(&queue));
    queue.close();
    assert!(queue.take().is_none());
}

fn has_room(queue: &ChunkQueue) -> bool {
    let mut room = std::pin::pin!(queue.room());
    room.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[tokio::test]
async fn a_wait_right_behind_a_power_on_does_not_see_the_end_before() {
    let Bench { console, handle, paths: _, _folder } = bench();
    let (one, two) = (FakeTarget::picky(), FakeTarget::picky());
    one.change(|line| line.ended = true);
    handle.attach(Box::new(one)).unwrap();
    handle.state().wait_for(|s| s.ended.is_some()).await.unwrap();
    let mut follower = handle.follow(0, 0).unwrap();
    let mut buf = [0; 8];
    let ended = Follow::Ended { end: Some(TransportEnd::Closed) };
    assert_eq!(follower.next(&mut buf).await.unwrap(), ended);
    // On one thread, the actor cannot have run between these lines.
    handle.attach(Box::new(two.clone())).unwrap();
    two.print(b"up");
    assert_eq!(follower.next(&mut buf).await.unwrap(), Follow::Bytes { offset: 0, len: 2 });
    two.change(|line| line.ended = true);
    assert_eq!(follower.next(&mut buf).await.unwrap(), ended);
    let mut waiting = follower.clone();
    let revived = tokio::spawn(async move { waiting.revived().await });
    tokio::task::yield_now().await;
    handle.attach(Box::new(FakeTarget::picky())).unwrap();
    assert!(revived.await.unwrap());
    console.close().await;
    assert!(!follower.revived().await);
}

/// A transport as drivers build it: readiness comes from the runtime's event loop.
struct Socket(tokio::net::UnixStream);

impl Transport for Socket {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        // Small bites, so that one chunk exceeds the runtime's cooperative budget.
        let room = buf.len().min(100);
        loop {
            match nix::unistd::read(&self.0, &mut buf[..room]) {
                Err(Errno::EAGAIN) => {}
                read => return Poll::Ready(read.map_err(io::Error::from)),
            }
            std::task::ready!(self.0.poll_read_ready(cx))?;
            // Says that there is nothing, and makes the next look wait, or reads.
            match self.0.try_read(&mut buf[..room]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return Poll::Ready(read),
            }
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        tokio::io::AsyncWrite::poll_write(Pin::new(&mut self.0), cx, bytes)
    }
}

async fn drain_a_socket() {
    let Bench { console, handle, paths: _, _folder } = bench();
    let (near, mut far) = std::os::unix::net::UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    handle.attach(Box::new(Socket(tokio::net::UnixStream::from_std(near).unwrap()))).unwrap();
    let mut total = 0;
    for round in 0..300 {
        let len = if round % 50 == 0 { 150_000 } else { 1 + round % 7 };
        io::Write::write_all(&mut far, &vec![b'x'; len]).unwrap();
        total += len as u64;
        assert_eq!(handle.drained().await.unwrap(), total, "round {round}");
    }
    console.close().await;
}

#[tokio::test]
async fn a_drain_gets_all_that_a_socket_holds() {
    drain_a_socket().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_gets_all_that_a_socket_holds_on_many_threads() {
    drain_a_socket().await;
}

/// A disk whose sync waits for a sign and then fails.
struct Unsyncable(std::sync::mpsc::Receiver<()>);

impl io::Write for Unsyncable {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl LogSink for Unsyncable {
    fn sync(&mut self) -> io::Result<()> {
        let _ = self.0.recv();
        Err(io::Error::other("the disk is gone"))
    }
}

#[tokio::test]
async fn the_end_of_a_log_is_told_before_its_sync_and_the_syncs_failure_after() {
    let (sign, signs) = std::sync::mpsc::channel();
    let index = Full { room: usize::MAX, kept: Arc::default() };
    let log = LogWriter::over(Box::new(Unsyncable(signs)), Box::new(index)).unwrap();
    let console = Console::over(log, Path::new("/nowhere"), clock()).unwrap();
    let target = FakeTarget::picky();
    console.handle().attach(Box::new(target.clone())).unwrap();
    target.print(b"OK");
    let (state, syncing) = console.end().await;
    assert_eq!((state.len, state.closed, state.error), (2, true, None));
    sign.send(()).unwrap();
    let state = syncing.done().await;
    assert_eq!(state.error.as_deref(), Some("the disk is gone"));
}

#[tokio::test]
async fn what_happens_to_a_transport_stands_where_it_happened() {
    let Bench { console, handle, paths, _folder } = bench();
    let target = FakeTarget::picky();
    target.print(b"one");
    target.change(|line| line.event.push_back(TransportEvent::Lost("x has hung up".to_owned())));
    handle.attach(Box::new(target.clone())).unwrap();
    assert_eq!(handle.drained().await.unwrap(), 3);
    let away = handle.state().borrow().clone();
    assert_eq!(
        (away.away.as_deref(), away.attached, away.ended),
        (Some("x has hung up"), true, None)
    );
    target.change(|line| line.event.push_back(TransportEvent::Back));
    handle.drained().await.unwrap();
    target.print(b"two");
    target.change(|line| {
        line.event.push_back(TransportEvent::Overrun(Some(5)));
        line.event.push_back(TransportEvent::Garbled(2));
        line.event.push_back(TransportEvent::Shared("minicom (pid 7)".to_owned()));
    });
    handle.drained().await.unwrap();
    target.change(|line| line.ended = true);
    let state = console.close().await;
    assert_eq!((state.away, state.gaps, state.lost, state.transports), (None, 3, 5, 1));
    assert_eq!((state.garbled, state.shared.as_deref()), (2, Some("minicom (pid 7)")));
    let log = LogReader::open(&paths).unwrap();
    let records: Vec<_> = log.records().map(|r| (r.offset, r.kind)).collect();
    let wanted = [
        (0, RecordKind::Attached),
        (0, RecordKind::Bytes(3)),
        (3, RecordKind::Gap { lost: None, reason: GapReason::Transport }),
        (3, RecordKind::Attached),
        (3, RecordKind::Bytes(3)),
        (6, RecordKind::Gap { lost: Some(5), reason: GapReason::Overrun }),
        (6, RecordKind::Garbled(2)),
        (6, RecordKind::Gap { lost: None, reason: GapReason::Shared }),
        (6, RecordKind::Detached),
    ];
    assert_eq!(records, wanted);
}

#[tokio::test]
async fn nine_stuck_readers_of_ten_hold_up_neither_the_transport_nor_the_tenth() {
    let Bench { console, handle, paths: _, _folder } = bench();
    let target = FakeTarget::picky();
    handle.attach(Box::new(target.clone())).unwrap();
    // Each has begun to read and reads no more.
    let mut stuck: Vec<_> = (0..9).map(|_| handle.follow(0, 0).unwrap()).collect();
    target.print(b"x");
    for follower in &mut stuck {
        assert!(matches!(follower.next(&mut [0; 1]).await.unwrap(), Follow::Bytes { len: 1, .. }));
    }
    let mut tenth = handle.follow(1, 0).unwrap();
    let total = 2 * LIMIT;
    let (mut sent, mut seen, mut buf) = (0, 0, vec![0; CHUNK]);
    while seen < total {
        if sent < total && target.left() == 0 {
            target.print(&vec![b'y'; CHUNK]);
            sent += CHUNK;
        }
        match tenth.next(&mut buf).await.unwrap() {
            Follow::Bytes { len, .. } => seen += len,
            Follow::Ended { .. } => panic!("ended at {seen}"),
        }
    }
    // And the others have lost nothing.
    for follower in &mut stuck {
        assert_eq!(follower.cursor(), 1);
        assert!(matches!(follower.next(&mut buf).await.unwrap(), Follow::Bytes { offset: 1, .. }));
    }
    assert_eq!(console.close().await.len, total as u64 + 1);
}
