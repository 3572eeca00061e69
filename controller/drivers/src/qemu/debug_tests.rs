//! Machines with debug channels: what a debugger can do, and that a run without one does
//! not notice them.

use std::sync::Arc;
use std::time::Duration;

use jig_model::event::BoardEvent;
use jig_model::image::Image;
use jig_model::protocol::{PowerState, Protocols};

use super::debug::{Access, Stop};
use super::tests::{Seen, bind_with_machine};
use super::{AtLaunch, Machine};

/// A Cortex-M3 with RAM at 0, whose program is given by a loader.
const PROFILE: &str = r#"
version = 1
id = "empty"
title = "A machine with a processor"
arch = "arm"
console = [{ name = "uart0", kind = "uart", baud = 9600 }]
memory = [{ name = "code", kind = "ram", start = 0, size = "4M" }]
[emulation]
program = "qemu-system-arm"
machine = "mps2-an385"
args = ["-nic", "user,restrict=on,model=lan9118"]
image_args = ["-device", "loader,file={image},addr=0,force-raw=on"]
semihosting = true
"#;

/// Vectors, and code at 0x10.
fn program(code: &[u16]) -> Vec<u8> {
    let vectors = [0x2000_1000_u32, 0x11, 0x11, 0x11];
    let mut bytes: Vec<u8> = vectors.iter().flat_map(|vector| vector.to_le_bytes()).collect();
    bytes.extend(code.iter().flat_map(|half| half.to_le_bytes()));
    bytes
}

/// `b .`
const SPIN: &[u16] = &[0xe7fe];
/// `ldr r0, [pc, #4]; ldr r1, [pc, #8]; bkpt 0xab`: semihosting's exit with a code of 7.
const EXIT: &[u16] = &[
    0x4801, 0x4902, 0xbeab, 0xe7fe, 0x0020, 0x0000, 0x0020, 0x0000, 0x0026, 0x0002, 0x0007, 0x0000,
];
/// `ldr r0, [pc, #0]; ldr r0, [r0]` from nowhere; the fault handler is the same code.
const LOCK_UP: &[u16] = &[0x4800, 0x6800, 0x0000, 0x6000];

/// `ldr r0, [pc, #4]; add r1, pc, #8; bkpt 0xab; b .`: semihosting's SYS_SYSTEM with `true`.
const SYSTEM: &[u16] = &[
    0x4801, 0xa102, 0xbeab, 0xe7fe, 0x0012, 0x0000, 0x0024, 0x0000, 0x0004, 0x0000, 0x7274, 0x6575,
    0x0000, 0x0000,
];

struct DebugRig {
    protocols: Protocols,
    machine: Machine,
    seen: Arc<Seen>,
    dir: tempfile::TempDir,
}

impl DebugRig {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (protocols, machine, seen) = bind_with_machine(dir.path(), PROFILE);
        Self { protocols, machine, seen, dir }
    }

    async fn deploy(&mut self, code: &[u16]) {
        let path = self.dir.path().join("program.bin");
        std::fs::write(&path, program(code)).unwrap();
        let image = Image {
            name: "program.bin".to_owned(),
            path,
            sha256: String::new(),
            build_id: None,
            announces: false,
            format: jig_model::image::ImageFormat::Elf,
            payload_bytes: 0,
            payload_spans: Vec::new(),
            payload_sha256: String::new(),
        };
        self.protocols.flasher.as_mut().unwrap().deploy(&image).await.unwrap();
    }

    /// Lets the deployed program run, shown to a watcher that lets it go at once.
    async fn watched(&mut self) -> super::debug::DebugChannels {
        let (launches, mut launched) = tokio::sync::mpsc::unbounded_channel();
        let show = move |launch: super::Launched| drop(launches.send(launch));
        self.machine.watch(Box::new(show)).await.unwrap();
        let taken = async {
            let super::Launched { channels, ready, .. } = launched.recv().await.unwrap();
            ready.start();
            channels
        };
        let (channels, on) = tokio::join!(taken, self.protocols.power.as_mut().unwrap().on());
        on.unwrap();
        channels
    }

    /// Does something that blocks.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(Machine) -> T + Send + 'static,
    ) -> T {
        let machine = self.machine.clone();
        tokio::task::spawn_blocking(move || work(machine)).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_halted_machine_is_in_the_debuggers_hands() {
    let mut rig = DebugRig::new();
    rig.deploy(SPIN).await;
    rig.blocking(|machine| {
        for _ in 0..2 {
            let mut channels = machine.launch_halted(AtLaunch::Deployed).unwrap();
            let map = channels.monitor.ask("info mtree -f").unwrap();
            assert!(map.contains("cpu-memory-0"), "{map}");
            assert!(channels.gdb.description("target.xml").unwrap().contains("include"));
            assert_eq!(channels.gdb.registers::<17>().unwrap()[15], 0x10);
            let qtest = &mut channels.qtest;
            qtest.write_bytes(0x2000_0000, &[1, 2, 3, 4, 5, 6]).unwrap();
            qtest.write(0x2000_0001, Access::Byte, 0xaa).unwrap();
            assert_eq!(qtest.read(0x2000_0000, Access::Word).unwrap(), 0x0403_aa01);
            let mut values = [0; 3];
            let places = [(0x2000_0004, Access::Half), (0x10, Access::Half), (0, Access::Word)];
            qtest.read_each(&places, &mut values).unwrap();
            assert_eq!(values, [0x0605, 0xe7fe, 0x2000_1000]);
            // Nothing runs before it is let go.
            assert_eq!(channels.gdb.wait(Duration::from_millis(20)).unwrap(), None);
            channels.gdb.resume(super::debug::Packets::default()).unwrap();
            assert_eq!(channels.gdb.interrupt().unwrap(), Stop::Interrupted);
            let mut packets = super::debug::Packets::default();
            packets.write_register(15, 0x10);
            packets.write_register(3, 0x55);
            packets.insert_breakpoint(0x10);
            let step = channels.gdb.step(packets, Duration::from_secs(60)).unwrap();
            assert_eq!(step, Stop::Trapped);
            channels.gdb.resume(super::debug::Packets::default()).unwrap();
            assert_eq!(channels.gdb.wait(Duration::from_secs(60)).unwrap(), Some(Stop::Trapped));
            assert_eq!(channels.gdb.registers::<17>().unwrap()[3], 0x55);
            channels.gdb.write_memory(0x2000_0100, &[7; 10_000]).unwrap();
            let mut read = [0; 10_000];
            channels.qtest.read_bytes(0x2000_0100, &mut read).unwrap();
            assert_eq!(read, [7; 10_000]);
            channels.monitor.system_reset().unwrap();
            assert_eq!(channels.gdb.registers::<17>().unwrap()[3], 0);
            machine.power_off().unwrap();
            channels.gdb.registers::<17>().unwrap_err();
            channels.qtest.read(0, Access::Word).unwrap_err();
            assert_eq!(machine.how_it_ended().unwrap(), None);
        }
    })
    .await;
    assert_eq!(*rig.seen.running.lock().unwrap(), 0);
}

/// The monitor let the machine run, so the stub stops it at the first byte, which is lost.
#[tokio::test(flavor = "multi_thread")]
async fn packets_to_a_machine_that_the_monitor_lets_run_are_all_answered() {
    let mut rig = DebugRig::new();
    rig.deploy(SPIN).await;
    let mut channels = rig.watched().await;
    rig.blocking(move |_| {
        let gdb = &mut channels.gdb;
        let mut packets = super::debug::Packets::default();
        // Places that the program does not come by.
        for place in [0x20, 0x30, 0x40] {
            packets.insert_breakpoint(place);
        }
        gdb.resume(packets).unwrap();
        assert_eq!(gdb.wait(Duration::from_millis(50)).unwrap(), None);
        gdb.stand().unwrap();
        let mut packets = super::debug::Packets::default();
        for place in [0x20, 0x30, 0x40] {
            packets.remove_breakpoint(place);
        }
        gdb.perform(&packets).unwrap();
        assert_eq!(gdb.registers::<17>().unwrap()[15], 0x10);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blank_machine_holds_nothing() {
    let mut rig = DebugRig::new();
    rig.deploy(SPIN).await;
    let words = rig
        .blocking(|machine| {
            let mut channels = machine.launch_halted(AtLaunch::Blank).unwrap();
            [0, 0x10].map(|at| channels.qtest.read(at, Access::Word).unwrap())
        })
        .await;
    assert_eq!(words, [0, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_debugger_keeps_others_from_resetting_the_board() {
    let mut rig = DebugRig::new();
    let channels = rig.blocking(|machine| machine.launch_halted(AtLaunch::Blank).unwrap()).await;
    let refused = rig.protocols.reset.as_mut().unwrap().reset().await.unwrap_err();
    assert!(refused.to_string().contains("debugger"), "{refused}");
    assert!(rig.protocols.health[0].check().await.ok);
    drop(channels);
}

/// Runs a program beside channels that are silent or let go; returns how it ended.
async fn end_of_a_run(code: &[u16], take: bool) -> Vec<BoardEvent> {
    let mut rig = DebugRig::new();
    rig.deploy(code).await;
    let channels = rig.watched().await;
    let channels = take.then_some(channels);
    let told = rig.seen.end().await;
    drop(channels);
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_channels_do_not_disturb_how_a_run_ends() {
    for take in [false, true] {
        let told = end_of_a_run(EXIT, take).await;
        assert_eq!(told, [BoardEvent::TargetExit { code: 7 }]);
        let told = end_of_a_run(LOCK_UP, take).await;
        let locked = |event: &BoardEvent| matches!(event, BoardEvent::Lockup { detail } if detail.contains("R15="));
        assert!(told.len() == 1 && locked(&told[0]), "{told:?}");
    }
}

/// It looks like a hidden exit code: both end the emulator by SIGSYS.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_for_a_program_of_the_host_ends_the_emulator() {
    let told = end_of_a_run(SYSTEM, false).await;
    assert_eq!(told, [BoardEvent::TargetExit { code: jig_model::protocol::HIDDEN_EXIT_CODE }]);
}

#[tokio::test(flavor = "multi_thread")]
async fn resets_never_fill_channels_that_are_drained() {
    let mut rig = DebugRig::new();
    rig.deploy(SPIN).await;
    let mut channels = rig.watched().await;
    for _ in 0..400 {
        rig.protocols.reset.as_mut().unwrap().reset().await.unwrap();
        channels.gdb.drain().unwrap();
    }
    assert_eq!(rig.protocols.power.as_mut().unwrap().status().await.unwrap(), PowerState::On);
    rig.protocols.power.as_mut().unwrap().off().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_can_look_into_a_run_that_hangs() {
    let mut rig = DebugRig::new();
    rig.deploy(SPIN).await;
    let mut channels = rig.watched().await;
    rig.protocols.reset.as_mut().unwrap().reset().await.unwrap();
    let pc = rig
        .blocking(move |_| {
            channels.gdb.drain().unwrap();
            assert_eq!(channels.gdb.interrupt().unwrap(), Stop::Interrupted);
            channels.gdb.registers::<17>().unwrap()[15]
        })
        .await;
    assert_eq!(pc, 0x10);
}

#[tokio::test(flavor = "multi_thread")]
async fn how_a_debugged_machine_ended_is_told_to_who_asks() {
    for code in [LOCK_UP, EXIT] {
        let mut rig = DebugRig::new();
        rig.deploy(code).await;
        let told = rig
            .blocking(|machine| {
                let mut channels = machine.launch_halted(AtLaunch::Deployed).unwrap();
                channels.gdb.resume(super::debug::Packets::default()).unwrap();
                let closed = channels.gdb.wait(Duration::from_secs(60)).unwrap_err();
                assert!(matches!(closed, super::debug::ChannelError::Closed { .. }), "{closed}");
                machine.how_it_ended().unwrap()
            })
            .await;
        let expected = match told {
            Some(BoardEvent::Lockup { .. }) => code == LOCK_UP,
            Some(BoardEvent::TargetExit { code: 7 }) => code == EXIT,
            _ => false,
        };
        assert!(expected, "{told:?}");
    }
}
