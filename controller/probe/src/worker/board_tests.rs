//! What the worker does with a board, end to end.
//!
//! The board is an emulated one behind the virtual probe: an nRF51822 with 256 KiB of flash and 16
//! KiB of RAM.

use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jig_model::Cause;
use nix::sys::signal::{Signal, kill};
use sha2::{Digest, Sha256};

use crate::virtual_probe::Rig;
use crate::{
    AttachMode, AttachOptions, Attached, Cancel, CoreKind, CoreState, EraseScope, FlashLeft,
    FlashPhase, FlashProgress, FlashReport, FlashRequest, HaltReason, Leave, MemoryWidth, Payload,
    ProbeError, ProbeHandle, ProbeSource, ResetInto, Segment, ServeAt, VirtualBoard,
};

std::thread_local! {
    /// The board of a test, which has a thread of its own.
    static BOARD: OnceCell<(VirtualBoard, Rig)> = const { OnceCell::new() };
}

/// Returns the probe that the tests use: a virtual one. A test that asks twice means the same
/// board; two tests mean two.
fn board() -> ProbeSource {
    // What starts a board blocks, which a test within its runtime must not.
    let start = || {
        let rig = Rig::new("microbit");
        (rig.board(), rig)
    };
    let start = || std::thread::spawn(start).join().unwrap();
    BOARD.with(|board| board.get_or_init(start).0.source().unwrap())
}

fn options() -> AttachOptions {
    AttachOptions { chip: Some("nRF51822_xxAA".to_owned()), ..AttachOptions::default() }
}

async fn attached() -> (ProbeHandle, Attached) {
    ProbeHandle::attach(board(), options()).await.unwrap()
}

/// How long a loss may take to be noticed, on a busy machine: the deadline of a session is
/// 20 s without a sign of life.
const NOTICED: Duration = Duration::from_secs(60);

const FLASH: u64 = 0x4_0000;
const SECTOR: usize = 0x400;
const RAM: u64 = 0x2000_0000;

/// Bytes that differ from seed to seed and from place to place.
fn noise(seed: u32, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 11) as u8
    };
    (0..len).map(|_| next()).collect()
}

fn request(segments: &[(u64, Vec<u8>)]) -> FlashRequest {
    let segment = |(start, bytes): &(u64, Vec<u8>)| Segment { start: *start, bytes: bytes.clone() };
    FlashRequest {
        payload: Payload { segments: segments.iter().map(segment).collect() },
        verify: true,
        preserve: Vec::new(),
        skip_equal: true,
    }
}

async fn flash(probe: &ProbeHandle, request: &FlashRequest) -> Result<FlashReport, ProbeError> {
    probe.flash(request.clone(), |_| {}, Cancel::default()).await
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A program in an endless loop: its vectors and two instructions.
fn looping() -> Vec<u8> {
    let mut image = vec![0; 0xc4];
    image[0..4].copy_from_slice(&0x2000_2000u32.to_le_bytes());
    for vector in image[4..0xc0].chunks_exact_mut(4) {
        vector.copy_from_slice(&0xc1u32.to_le_bytes());
    }
    // `nop`, then `b .-2`.
    image[0xc0..].copy_from_slice(&[0x00, 0xbf, 0xfd, 0xe7]);
    image
}

#[tokio::test]
async fn attaching_says_what_is_there() {
    let (probe, _) = attached().await;
    flash(&probe, &request(&[(0, looping())])).await.unwrap();
    probe.reset(ResetInto::Run).await.unwrap();
    probe.close(Leave::Running).await.unwrap();
    let (probe, attached) = attached().await;
    assert_eq!(attached.chip, "nRF51822_xxAA");
    assert_eq!((attached.core, attached.attempts), (Some(CoreKind::Armv6m), 1), "{attached:?}");
    assert!(attached.memory.iter().any(|region| region.start == RAM));
    probe.close(Leave::Running).await.unwrap();
}

#[tokio::test]
async fn one_byte_one_sector_and_the_whole_flash() {
    let (probe, _) = attached().await;
    for (seed, start, len) in [(1, 0x1001, 1), (2, 0x2000, SECTOR), (3, 0, FLASH as usize)] {
        let bytes = noise(seed, len);
        let report = flash(&probe, &request(&[(start, bytes.clone())])).await.unwrap();
        assert_eq!(report.bytes, len as u64);
        assert!(report.verified);
        assert_eq!(report.read_back_sha256.as_deref(), Some(&*sha256(&bytes)));
        assert_eq!(report.sectors_erased + report.sectors_equal, len.div_ceil(SECTOR) as u32);
        assert_eq!(probe.read(start, len).await.unwrap(), bytes);
    }
    probe.close(Leave::Running).await.unwrap();
}

#[tokio::test]
async fn holes_stay_what_they_are_or_become_blank() {
    let (probe, _) = attached().await;
    let base = 0x8000;
    flash(&probe, &request(&[(base, vec![0x55; 4 * SECTOR])])).await.unwrap();
    let holes = request(&[
        (base, noise(7, 3)),
        (base + 0x3fe, noise(8, 4)),
        (base + 3 * SECTOR as u64, noise(9, 0x10)),
    ]);
    let report = flash(&probe, &holes).await.unwrap();
    assert_eq!((report.sectors_erased, report.sectors_equal), (3, 0));
    let held = probe.read(base, 4 * SECTOR).await.unwrap();
    assert_eq!(held[..3], noise(7, 3));
    assert!(held[3..0x3fe].iter().all(|byte| *byte == 0xff));
    assert_eq!(held[0x3fe..0x402], noise(8, 4));
    assert!(held[2 * SECTOR..3 * SECTOR].iter().all(|byte| *byte == 0x55));
    assert_eq!(held[3 * SECTOR..3 * SECTOR + 0x10], noise(9, 0x10));
    probe.close(Leave::Running).await.unwrap();
}

#[tokio::test]
async fn what_does_not_fit_leaves_the_flash_alone() {
    let (probe, _) = attached().await;
    flash(&probe, &request(&[(FLASH - 16, vec![1; 16])])).await.unwrap();
    let error = flash(&probe, &request(&[(FLASH - 16, vec![2; 17])])).await.unwrap_err();
    assert!(matches!(error, ProbeError::DoesNotFit { .. }), "{error}");
    assert_eq!(probe.read(FLASH - 16, 16).await.unwrap(), [1; 16]);
    probe.close(Leave::Running).await.unwrap();
}

#[tokio::test]
async fn equal_sectors_are_left_alone() {
    let (probe, _) = attached().await;
    let mut bytes = noise(20, 64 * SECTOR);
    flash(&probe, &request(&[(0x1_0000, bytes.clone())])).await.unwrap();
    let again = flash(&probe, &request(&[(0x1_0000, bytes.clone())])).await.unwrap();
    assert_eq!((again.sectors_erased, again.sectors_equal, again.written), (0, 64, 0));
    assert_eq!(again.read_back_sha256, Some(sha256(&bytes)));

    bytes[5 * SECTOR + 9] ^= 1;
    let one = flash(&probe, &request(&[(0x1_0000, bytes.clone())])).await.unwrap();
    assert_eq!((one.sectors_erased, one.sectors_equal, one.written), (1, 63, SECTOR as u64));

    let mut all = request(&[(0x1_0000, bytes)]);
    all.skip_equal = false;
    assert_eq!(flash(&probe, &all).await.unwrap().sectors_erased, 64);
    probe.close(Leave::Running).await.unwrap();
}

#[tokio::test]
async fn preserved_bytes_survive_the_erasure_of_their_sector() {
    let (probe, _) = attached().await;
    let old = noise(30, 2 * SECTOR);
    flash(&probe, &request(&[(0x3_0000, old.clone())])).await.unwrap();
    let mut new = request(&[(0x3_0010, vec![0xaa; 0x20])]);
    new.preserve.push(0x3_0200..0x3_0600);
    flash(&probe, &new).await.unwrap();
    let held = probe.read(0x3_0000, 2 * SECTOR).await.unwrap();
    assert_eq!(held[0x10..0x30], [0xaa; 0x20]);
    assert_eq!(held[0x200..], old[0x200..]);
    assert!(held[0x30..0x200].iter().all(|byte| *byte == 0xff));
    probe.close(Leave::Running).await.unwrap();
}

#[tokio::test]
async fn progress_goes_up_in_small_steps_to_the_end() {
    let (probe, _) = attached().await;
    let seen: Arc<std::sync::Mutex<Vec<FlashProgress>>> = Arc::default();
    let (sink, bytes) = (Arc::clone(&seen), noise(40, 40 * SECTOR));
    let told = move |progress| sink.lock().unwrap().push(progress);
    let job = request(&[(0x2_0000, bytes)]);
    let report = probe.flash(job, told, Cancel::default()).await.unwrap();
    let seen = seen.lock().unwrap().clone();
    let mut order: Vec<FlashPhase> = seen.iter().map(|progress| progress.phase).collect();
    order.dedup();
    use FlashPhase::{Compare, Erase, Program, Verify};
    assert_eq!(order, [Compare, Erase, Program, Verify]);
    assert_eq!(report.phases.iter().map(|(phase, _)| *phase).collect::<Vec<_>>(), order);
    for phase in order {
        let steps: Vec<_> = seen.iter().filter(|progress| progress.phase == phase).collect();
        assert_eq!(steps[0].done, 0);
        assert_eq!(steps.last().unwrap().done, steps[0].total, "{phase:?}");
        for two in steps.windows(2) {
            // A sector is erased and a page programmed at a time, and 4 KiB are read.
            assert!((1..=4 * 1024).contains(&(two[1].done - two[0].done)), "{two:?}");
        }
    }
    probe.close(Leave::Running).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_flash_can_be_repeated() {
    let (probe, _) = attached().await;
    let mut cancelled = 0;
    for round in 0..50u32 {
        let bytes = noise(100 + round, 24 * SECTOR);
        let cancel = Cancel::default();
        // Stops after as many reports of progress as the round says: anywhere in any phase.
        let stop_after = u64::from(round.wrapping_mul(7919) % 20);
        let (told, canceller) = (AtomicU64::new(0), cancel.clone());
        let sink = move |_| {
            if told.fetch_add(1, Ordering::Relaxed) == stop_after {
                canceller.cancel();
            }
        };
        match probe.flash(request(&[(0x4000, bytes.clone())]), sink, cancel).await {
            Err(ProbeError::Cancelled { .. }) => cancelled += 1,
            other => drop(other.unwrap()),
        }
        let report = flash(&probe, &request(&[(0x4000, bytes.clone())])).await.unwrap();
        assert_eq!(report.read_back_sha256, Some(sha256(&bytes)));
    }
    assert!(cancelled > 25, "{cancelled}");
    probe.close(Leave::Running).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abandoned_flash_stops_and_the_next_one_works() {
    let (probe, _) = attached().await;
    let (started, waiting) = std::sync::mpsc::channel();
    let job = request(&[(0, noise(60, FLASH as usize))]);
    let sink = move |_| {
        let _ = started.send(());
    };
    let other = probe.clone();
    let task = tokio::spawn(async move { other.flash(job, sink, Cancel::default()).await });
    tokio::task::spawn_blocking(move || waiting.recv()).await.unwrap().unwrap();
    task.abort();
    let report = flash(&probe, &request(&[(0, noise(61, SECTOR))])).await.unwrap();
    assert!(report.verified);
    probe.close(Leave::Running).await.unwrap();
}

/// Calls something once, when half of the flash is programmed.
fn halfway(hit: impl FnOnce() + Send + 'static) -> impl FnMut(FlashProgress) + Send + 'static {
    let mut hit = Some(hit);
    move |progress| {
        let half = progress.phase == FlashPhase::Program && progress.done * 2 >= progress.total;
        if half && let Some(hit) = hit.take() {
            hit();
        }
    }
}

/// Starts a board of its own, which a test can take away.
async fn mortal() -> (VirtualBoard, Rig) {
    let start = || {
        let rig = Rig::new("microbit");
        (rig.board(), rig)
    };
    tokio::task::spawn_blocking(start).await.unwrap()
}

/// Ends a board and its rig, which a test within its runtime must not.
async fn bury(mortal: (VirtualBoard, Rig)) {
    tokio::task::spawn_blocking(move || drop(mortal)).await.unwrap();
}

#[tokio::test]
async fn an_emulator_that_dies_while_it_is_programmed_is_a_lost_probe() {
    for served in [false, true] {
        let (board, rig) = mortal().await;
        let server = served.then(|| board.serve(ServeAt::Unix(rig.path("probe"))).unwrap());
        let source = || match &server {
            Some(server) => ProbeSource::Selector(server.selector().to_owned()),
            None => board.source().unwrap(),
        };
        let (probe, _) = ProbeHandle::attach(source(), options()).await.unwrap();
        let emulator = rig.emulator();
        let hit = halfway(move || kill(emulator, Signal::SIGKILL).unwrap());
        let job = request(&[(0, noise(200, 64 * SECTOR))]);
        let began = Instant::now();
        let error = probe.flash(job, hit, Cancel::default()).await.unwrap_err();
        assert!(matches!(error, ProbeError::ProbeLost { .. }), "served: {served}: {error:?}");
        assert!(began.elapsed() < NOTICED, "{:?}", began.elapsed());
        assert_eq!(error.cause(), Cause::ProbeLost);
        assert!(probe.read(RAM, 4).await.is_err());
        let _ = probe.close(Leave::Running).await;
        drop(server);

        // The same machine, started again: its flash is what a new chip's is.
        let (board, rig) = tokio::task::spawn_blocking(move || {
            drop(board);
            rig.wait_until_off();
            (rig.board(), rig)
        })
        .await
        .unwrap();
        let again = ProbeHandle::attach(board.source().unwrap(), options()).await;
        let (probe, _) = again.unwrap();
        let report = flash(&probe, &request(&[(0, noise(201, 8 * SECTOR))])).await.unwrap();
        assert_eq!(report.read_back_sha256, Some(sha256(&noise(201, 8 * SECTOR))));
        probe.close(Leave::Running).await.unwrap();
        bury((board, rig)).await;
    }
}

#[tokio::test]
async fn a_server_that_goes_while_it_is_used_to_program_is_a_lost_probe() {
    let (board, rig) = mortal().await;
    let server = board.serve(ServeAt::Unix(rig.path("probe"))).unwrap();
    let source = ProbeSource::Selector(server.selector().to_owned());
    let (probe, _) = ProbeHandle::attach(source, options()).await.unwrap();
    // Ends with its handle, and cuts the connection.
    let hit = halfway(move || drop(server));
    let job = request(&[(0, noise(202, 64 * SECTOR))]);
    let began = Instant::now();
    let error = probe.flash(job, hit, Cancel::default()).await.unwrap_err();
    assert!(matches!(error, ProbeError::ProbeLost { .. }), "{error:?}");
    assert!(began.elapsed() < NOTICED, "{:?}", began.elapsed());
    let _ = probe.close(Leave::Running).await;

    // The chip was left in the middle of it, and is flashed through the next server.
    let server = board.serve(ServeAt::Unix(rig.path("again"))).unwrap();
    let source = ProbeSource::Selector(server.selector().to_owned());
    let (probe, _) = ProbeHandle::attach(source, options()).await.unwrap();
    let report = flash(&probe, &request(&[(0, noise(203, 64 * SECTOR))])).await.unwrap();
    assert_eq!(report.read_back_sha256, Some(sha256(&noise(203, 64 * SECTOR))));
    probe.close(Leave::Running).await.unwrap();
    drop(server);
    bury((board, rig)).await;
}

#[tokio::test]
async fn erased_flash_is_blank() {
    let (probe, _) = attached().await;
    flash(&probe, &request(&[(0, vec![0; 8 * SECTOR])])).await.unwrap();
    let range = EraseScope::Range(0x401..0x801);
    assert_eq!(probe.erase(range, Cancel::default()).await.unwrap().bytes, 2 * SECTOR as u64);
    let held = probe.read(0, 4 * SECTOR).await.unwrap();
    assert!(held[..SECTOR].iter().all(|byte| *byte == 0));
    assert!(held[SECTOR..3 * SECTOR].iter().all(|byte| *byte == 0xff));
    assert!(held[3 * SECTOR..].iter().all(|byte| *byte == 0));
    let report = probe.erase(EraseScope::All, Cancel::default()).await.unwrap();
    assert!(report.bytes >= FLASH);
    assert!(probe.read(0, FLASH as usize).await.unwrap().iter().all(|byte| *byte == 0xff));
    let nothing = probe.erase(EraseScope::Range(RAM..RAM + 4), Cancel::default()).await;
    assert!(matches!(nothing, Err(ProbeError::DoesNotFit { .. })));
    probe.close(Leave::Running).await.unwrap();
}

#[tokio::test]
async fn a_core_is_run_halted_stepped_and_caught() {
    let (probe, _) = attached().await;
    flash(&probe, &request(&[(0, looping())])).await.unwrap();
    probe.reset(ResetInto::Halt).await.unwrap();
    let CoreState::Halted { pc, .. } = probe.state().await.unwrap() else { panic!("it runs") };
    assert_eq!(pc, 0xc0);
    assert_eq!(probe.step().await.unwrap(), 0xc2);
    assert_eq!(probe.step().await.unwrap(), 0xc0);
    probe.set_breakpoint(0xc2).await.unwrap();
    probe.run().await.unwrap();
    let caught = async {
        loop {
            let state = probe.state().await.unwrap();
            if state != CoreState::Running {
                return state;
            }
        }
    };
    let caught = tokio::time::timeout(Duration::from_secs(10), caught).await.unwrap();
    assert_eq!(caught, CoreState::Halted { reason: HaltReason::Breakpoint, pc: 0xc2 });
    probe.clear_breakpoint(0xc2).await.unwrap();
    probe.clear_breakpoint(0xc2).await.unwrap();
    probe.reset(ResetInto::Run).await.unwrap();
    assert_eq!(probe.state().await.unwrap(), CoreState::Running);
    assert!(matches!(probe.registers().await, Err(ProbeError::NotHalted)));
    assert!(matches!(probe.step().await, Err(ProbeError::NotHalted)));
    let pc = probe.halt().await.unwrap();
    assert!([0xc0, 0xc2].contains(&pc), "{pc:#x}");
    probe.close(Leave::Running).await.unwrap();
}

#[tokio::test]
async fn breakpoints_run_out() {
    let (probe, _) = attached().await;
    let mut set = 0;
    let error = loop {
        match probe.set_breakpoint(0x100 + 4 * set).await {
            Ok(()) => set += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, ProbeError::NoBreakpointLeft { count } if u64::from(count) == set));
    probe.set_breakpoint(0x100).await.unwrap();
    probe.close(Leave::Running).await.unwrap();
}

#[tokio::test]
async fn registers_and_memory_hold_what_is_written() {
    let (probe, _) = attached().await;
    flash(&probe, &request(&[(0, looping())])).await.unwrap();
    probe.reset(ResetInto::Halt).await.unwrap();
    for (name, value) in
        [("r5", 0x1234_5678), ("PSP", 0x2000_1000), ("primask", 1), ("r13", 0x2000_1f00)]
    {
        probe.write_register(name, value).await.unwrap();
    }
    let unknown = probe.write_register("r99", 0).await.unwrap_err();
    assert!(matches!(unknown, ProbeError::UnknownRegister { .. }), "{unknown}");
    assert!(probe.write_register("r1", 1 << 40).await.is_err());

    let end = RAM + 0x4000;
    let wanted = vec![RAM..RAM + 16, 0..8, 0x6000_0000..0x6000_0004, end - 16..end + 16];
    let snapshot = probe.snapshot(wanted).await.unwrap();
    let names: Vec<&str> = snapshot.registers.iter().map(|one| &*one.name).collect();
    assert_eq!(
        names[..17],
        [
            "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "sp",
            "lr", "pc", "xpsr"
        ]
    );
    for name in ["msp", "psp", "control", "primask"] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert_eq!(snapshot.register("r5"), Some(0x1234_5678));
    assert_eq!(snapshot.register("psp"), Some(0x2000_1000));
    assert_eq!(snapshot.register("primask"), Some(1));
    assert_eq!(snapshot.register("sp"), Some(0x2000_1f00));
    assert_eq!(snapshot.read(0, 8).unwrap()[4..], 0xc1u32.to_le_bytes());
    assert!(snapshot.read(0xe000_ed00, 0x40).is_some());
    assert!(snapshot.read(0x6000_0000, 4).is_none());
    assert!(snapshot.read(end - 16, 16).is_some() && snapshot.read(end, 1).is_none());

    let bytes = noise(70, 5001);
    probe.write(RAM + 0x101, bytes.clone()).await.unwrap();
    assert_eq!(probe.read(RAM + 0x101, bytes.len()).await.unwrap(), bytes);
    for (width, len) in [(MemoryWidth::Byte, 3), (MemoryWidth::Half, 6), (MemoryWidth::Word, 8)] {
        let bytes = noise(71 + len, len as usize);
        probe.write_as(width, RAM + 0x40, bytes.clone()).await.unwrap();
        assert_eq!(probe.read_as(width, RAM + 0x40, bytes.len()).await.unwrap(), bytes);
    }
    // The RAM's end is found in the middle of a block, and the session goes on.
    let error = probe.read(RAM + 0x3ff0, 0x100).await.unwrap_err();
    assert!(matches!(error, ProbeError::BusFault { address: 0x2000_4000, .. }), "{error}");
    assert_eq!(probe.read(RAM + 0x40, 4).await.unwrap().len(), 4);
    probe.close(Leave::Running).await.unwrap();
}

#[tokio::test]
async fn a_payload_reaches_flash_and_ram() {
    let (probe, _) = attached().await;
    let (rom, ram) = (noise(80, 100), noise(81, 5000));
    let report = flash(&probe, &request(&[(0x7000, rom.clone()), (RAM + 0x100, ram.clone())]))
        .await
        .unwrap();
    assert!(report.phases.iter().any(|(phase, _)| *phase == FlashPhase::Load));
    assert_eq!(probe.read(0x7000, 100).await.unwrap(), rom);
    assert_eq!(probe.read(RAM + 0x100, 5000).await.unwrap(), ram);
    assert_eq!(report.read_back_sha256, Some(sha256(&[rom, ram].concat())));
    probe.close(Leave::Running).await.unwrap();
}

#[tokio::test]
async fn attaching_under_reset_finds_the_core_before_its_first_instruction() {
    let (probe, _) = attached().await;
    flash(&probe, &request(&[(0, looping())])).await.unwrap();
    probe.reset(ResetInto::Run).await.unwrap();
    probe.close(Leave::Running).await.unwrap();
    let options = AttachOptions { mode: AttachMode::UnderReset, ..options() };
    let (probe, _) = ProbeHandle::attach(board(), options).await.unwrap();
    let CoreState::Halted { pc, .. } = probe.state().await.unwrap() else { panic!("it runs") };
    assert_eq!(pc, 0xc0);
    probe.close(Leave::Running).await.unwrap();
}

#[tokio::test]
async fn closing_leaves_the_core_as_asked() {
    let (probe, _) = attached().await;
    flash(&probe, &request(&[(0, looping())])).await.unwrap();
    probe.reset(ResetInto::Halt).await.unwrap();
    probe.write_register("r7", 0x77).await.unwrap();
    let other = probe.clone();
    probe.close(Leave::Halted).await.unwrap();
    assert!(matches!(other.state().await, Err(ProbeError::Gone)));
    let (probe, _) = attached().await;
    let CoreState::Halted { .. } = probe.state().await.unwrap() else { panic!("it runs") };
    let registers = probe.registers().await.unwrap();
    assert_eq!(registers.iter().find(|one| one.name == "r7").unwrap().value, 0x77);
    probe.close(Leave::Running).await.unwrap();
    let (probe, _) = attached().await;
    assert_eq!(probe.state().await.unwrap(), CoreState::Running);
    probe.close(Leave::Running).await.unwrap();
}

/// Cancels at the first report of a phase.
fn at_phase(
    phase: FlashPhase,
    cancel: &Cancel,
) -> impl FnMut(FlashProgress) + Send + 'static + use<> {
    let cancel = cancel.clone();
    move |progress| {
        if progress.phase == phase {
            cancel.cancel();
        }
    }
}

#[tokio::test]
async fn cancelled_flash_says_what_it_left() {
    let (probe, _) = attached().await;
    const BATCH: usize = 64 * SECTOR;
    let old = noise(300, 2 * BATCH);
    flash(&probe, &request(&[(0, old.clone())])).await.unwrap();
    let new = noise(301, 2 * BATCH);
    let mixed = [&new[..BATCH], &old[BATCH..]].concat();
    let ram = (RAM + 0x100, noise(302, 0x100));
    for (phase, left, held) in [
        (FlashPhase::Compare, FlashLeft::Untouched, &old),
        // What is under way is finished: no sector is half an old one and half a new one.
        (FlashPhase::Program, FlashLeft::Partial, &mixed),
        (FlashPhase::Verify, FlashLeft::Unverified, &new),
    ] {
        let cancel = Cancel::default();
        let job = request(&[(0, new.clone()), ram.clone()]);
        let error = probe.flash(job, at_phase(phase, &cancel), cancel).await.unwrap_err();
        let ProbeError::Cancelled { left: said } = error else { panic!("{error:?}") };
        assert_eq!(said, left, "{phase:?}");
        assert!(probe.read(0, 2 * BATCH).await.unwrap() == *held, "{phase:?}");
    }
    let report = flash(&probe, &request(&[(0, new.clone())])).await.unwrap();
    assert_eq!((report.sectors_erased, report.read_back_sha256), (0, Some(sha256(&new))));

    // Nothing had to be written, so nothing is left in between.
    let cancel = Cancel::default();
    let told = at_phase(FlashPhase::Verify, &cancel);
    let error = probe.flash(request(&[(0, new)]), told, cancel).await.unwrap_err();
    assert_eq!(error.to_string(), "cancelled: nothing was written");
    let cancel = Cancel::default();
    cancel.cancel();
    let error = probe.erase(EraseScope::All, cancel).await.unwrap_err();
    assert_eq!(error.to_string(), "cancelled: nothing was written");
    probe.close(Leave::Running).await.unwrap();
}

#[tokio::test]
async fn image_starts_in_mid_sector_and_ends_in_another() {
    let (probe, _) = attached().await;
    flash(&probe, &request(&[(0x6000, vec![0x55; 4 * SECTOR])])).await.unwrap();
    let bytes = noise(310, 2 * SECTOR);
    let report = flash(&probe, &request(&[(0x6000 + 0x3f1, bytes.clone())])).await.unwrap();
    assert_eq!((report.sectors_erased, report.read_back_sha256), (3, Some(sha256(&bytes))));
    let held = probe.read(0x6000, 4 * SECTOR).await.unwrap();
    assert!(held[..0x3f1].iter().all(|byte| *byte == 0xff));
    assert_eq!(held[0x3f1..0x3f1 + bytes.len()], bytes);
    assert!(held[0x3f1 + bytes.len()..3 * SECTOR].iter().all(|byte| *byte == 0xff));
    assert!(held[3 * SECTOR..].iter().all(|byte| *byte == 0x55));
    probe.close(Leave::Running).await.unwrap();
}

#[tokio::test]
async fn payload_without_flash_leaves_the_flash_alone() {
    let (probe, _) = attached().await;
    flash(&probe, &request(&[(0, looping())])).await.unwrap();
    probe.reset(ResetInto::Run).await.unwrap();
    // More than one run of the loader writes, and into the RAM of a core that runs.
    let bytes = noise(320, 0x3f00);
    let report = flash(&probe, &request(&[(RAM + 0x40, bytes.clone())])).await.unwrap();
    assert_eq!((report.sectors_erased, report.sectors_equal), (0, 0));
    assert_eq!((report.written, report.read_back_sha256), (0x3f00, Some(sha256(&bytes))));
    assert_eq!(
        report.phases.iter().map(|(phase, _)| *phase).collect::<Vec<_>>(),
        [FlashPhase::Load, FlashPhase::Verify]
    );
    assert!(matches!(probe.state().await.unwrap(), CoreState::Halted { .. }));
    assert_eq!(probe.read(0, 0xc4).await.unwrap(), looping());
    probe.close(Leave::Running).await.unwrap();
}

#[tokio::test]
async fn preserved_ranges_may_overlap_and_lie_anywhere() {
    let (probe, _) = attached().await;
    let old = noise(330, 3 * SECTOR);
    flash(&probe, &request(&[(0x3_0000, old.clone())])).await.unwrap();
    let mut new = request(&[(0x3_0000, noise(331, SECTOR + 0x10))]);
    new.preserve = vec![
        0x3_0600..0x3_0700,
        0x3_0410..0x3_0610,
        0x3_0680..0x3_0c00,
        0..0x10,
        RAM..RAM + 4,
        0xf000_0000..0xf000_0010,
    ];
    let report = flash(&probe, &new).await.unwrap();
    assert_eq!((report.sectors_erased, report.verified), (2, true));
    let held = probe.read(0x3_0000, 3 * SECTOR).await.unwrap();
    assert_eq!(held[..SECTOR + 0x10], noise(331, SECTOR + 0x10));
    assert_eq!(held[SECTOR + 0x10..], old[SECTOR + 0x10..]);
    probe.close(Leave::Running).await.unwrap();
}

#[tokio::test]
async fn two_hundred_cycles_leave_nothing_behind() {
    let (probe, _) = attached().await;
    probe.close(Leave::Running).await.unwrap();
    let before = open_now();
    for round in 0..200 {
        let (probe, _) = attached().await;
        flash(&probe, &request(&[(0x1000, noise(round, 2 * SECTOR))])).await.unwrap();
        probe.close(Leave::Running).await.unwrap();
    }
    let after = open_now();
    // Other tests of this process open some and close them; a leak would be one a cycle.
    assert!(after.0 < before.0 + 100 && after.1 < before.1 + 100, "{before:?} {after:?}");
}

/// Counts this process's threads and open files.
fn open_now() -> (usize, usize) {
    let count = |folder| std::fs::read_dir(folder).unwrap().count();
    (count("/proc/self/task"), count("/proc/self/fd"))
}
