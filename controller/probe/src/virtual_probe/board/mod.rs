//! A Cortex-M core as a debugger sees it, over the debug channels of an emulator.
//!
//! Owns the channels, and everything the emulator does not model: the debug registers, the
//! breakpoint unit, the ROM table, halting on `BKPT`, vector catch, lock-up and the way
//! back from it. Free of probe-rs: what is here speaks addresses and words.
//!
//! # Design
//! *Accesses go to the bus* through the qtest channel, whether the core runs or stands,
//! except for the few words of the system control space that are imitated here.
//!
//! *Registers are a cache.* One read fills it when the core has stopped; writes stay in it
//! until the core moves and then go out with the command that moves it, in one write.
//!
//! *Memory is read ahead* while the core stands, for the machine stands with it: a debugger
//! compares flash by blocks of 1 KiB, and looks at two places after each call of a function.
//!
//! *`BKPT` is no debug event in the emulator*, it escalates to HardFault. So the entry of
//! the HardFault handler is guarded by a breakpoint while a debugger is attached, and an
//! exception that a `BKPT` caused is undone there. The one `BKPT` a flash algorithm returns
//! to is found through the link register and trapped directly, which is cheaper.
//!
//! *A lock-up ends the emulator.* Its register dump answers for the core until a reset
//! launches a new one, with the memory that keeps its content without power put back.

mod breakpoint_unit;
mod breakpoints;
mod core_registers;
mod debug_registers;
mod dump;
mod map;
mod memory;
mod program;
mod program_memory;
mod read_ahead;
mod registers;
mod rom_table;
mod run;
mod system_space;

use std::collections::HashMap;
use std::time::Duration;

use jig_drivers::qemu::debug::{
    ChannelError, DebugChannels, DebugMonitor, Gdb, GdbStats, LogItem, Qtest, QtestStats,
};
use jig_drivers::qemu::{AtLaunch, Machine};
use jig_model::event::BoardEvent;
use jig_model::profile::{DebugCore, DebugSpec};

use super::adi::PortIdentity;
use super::bus::BusError;
use super::error::{VirtualBoardError, failed};
use super::stats::VirtualStats;
use breakpoint_unit::BreakpointUnit;
use core_registers::{Registers, StubNumbers};
use debug_registers::DebugRegisters;
use map::BusMap;
use program_memory::ProgramMemory;
use read_ahead::ReadAhead;

/// What the core does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CoreRunState {
    /// It stands in debug state.
    Halted,
    /// It executes, or waits for an interrupt.
    Running,
    /// It is locked up; `halted` once a debugger asked it to halt nevertheless and only a
    /// dump is left of it.
    LockedUp { halted: bool },
}

/// What the core does at each halt while a debugger is attached, besides what was asked for.
#[derive(Debug, Default)]
struct Guards {
    /// A `BKPT` the core is about to return to.
    trap: Option<u32>,
    /// Entry of the HardFault handler.
    hard_fault: Option<u32>,
}

/// Things read from memory that hold until the core has run freely.
#[derive(Debug, Default)]
struct Peeked {
    /// Instructions by address, 16 bits each.
    code: HashMap<u32, u16>,
    /// Where the HardFault vector is and what it says, if it was read.
    hard_fault: Option<(u32, u32)>,
}

pub(crate) struct EmulatedBoard {
    spec: DebugSpec,
    /// Whether the emulator takes `BKPT 0xab` for itself.
    semihosting: bool,
    machine: Machine,
    /// Nothing once the emulator has ended.
    channels: Option<DebugChannels>,
    /// Why the board is lost for good, if it is.
    lost: Option<String>,
    state: CoreRunState,
    in_reset: bool,
    map: BusMap,
    numbers: StubNumbers,
    registers: Registers,
    debug: DebugRegisters,
    breakpoints: BreakpointUnit,
    guards: Guards,
    peeked: Peeked,
    read_ahead: ReadAhead,
    /// Whether the stub leaves interrupts out of steps; unknown after a launch.
    steps_masked: Option<bool>,
    program: ProgramMemory,
    stats: VirtualStats,
    /// What the channels of earlier launches counted.
    past: (GdbStats, QtestStats),
}

impl EmulatedBoard {
    /// Launches a machine and leaves its core halted, before its first instruction.
    pub(crate) fn start(
        machine: Machine,
        spec: &DebugSpec,
        semihosting: bool,
    ) -> Result<Self, VirtualBoardError> {
        let mut board = Self {
            program: ProgramMemory::new(spec),
            breakpoints: BreakpointUnit::new(spec.core),
            spec: spec.clone(),
            semihosting,
            machine,
            channels: None,
            lost: None,
            state: CoreRunState::Halted,
            in_reset: false,
            map: BusMap::default(),
            numbers: StubNumbers::default(),
            registers: Registers::default(),
            debug: DebugRegisters::default(),
            guards: Guards::default(),
            peeked: Peeked::default(),
            read_ahead: ReadAhead::default(),
            steps_masked: None,
            stats: VirtualStats::default(),
            past: (GdbStats::default(), QtestStats::default()),
        };
        board.launch()?;
        Ok(board)
    }

    /// Launches the machine and puts back what it keeps without power.
    fn launch(&mut self) -> Result<(), VirtualBoardError> {
        self.count_past();
        self.channels = None;
        let mut channels =
            self.machine.launch_halted(AtLaunch::Blank).map_err(VirtualBoardError::Launch)?;
        self.stats.launches += 1;
        let described = describe(&mut channels).map_err(VirtualBoardError::Channel)?;
        (self.map, self.numbers) = described;
        if self.map.is_empty() {
            return Err(VirtualBoardError::NoMemoryMap);
        }
        // So that it is known in which exception a program ends the emulator.
        let logs = channels.monitor.log(&[LogItem::Exceptions]);
        logs.map_err(VirtualBoardError::Channel)?;
        self.channels = Some(channels);
        self.state = CoreRunState::Halted;
        self.breakpoints.forget_inserted();
        self.steps_masked = None;
        self.core_moved();
        self.peeked = Peeked::default();
        self.restore_program().map_err(failed)?;
        // The vectors have changed: a core takes them at reset.
        self.with_monitor(DebugMonitor::system_reset).map_err(failed)
    }

    /// Returns what the debug ports of the core say they are.
    pub(crate) fn port_identity(&self) -> PortIdentity {
        match self.spec.core {
            DebugCore::Armv6m => PortIdentity { debug_port: 0x0bb1_1477, access_port: 0x0477_0021 },
            DebugCore::Armv7m | DebugCore::Armv7em | DebugCore::Armv7emFpu => {
                PortIdentity { debug_port: 0x2ba0_1477, access_port: 0x2477_0011 }
            }
        }
    }

    /// Returns what was done so far.
    pub(crate) fn stats(&self) -> VirtualStats {
        let (gdb, qtest) = match &self.channels {
            Some(channels) => (channels.gdb.stats(), channels.qtest.stats()),
            None => Default::default(),
        };
        let (past_gdb, past_qtest) = self.past;
        VirtualStats {
            gdb_packets: past_gdb.packets + gdb.packets,
            gdb_trips: past_gdb.trips + gdb.trips,
            gdb_time: past_gdb.time + gdb.time,
            qtest_commands: past_qtest.commands + qtest.commands,
            qtest_trips: past_qtest.trips + qtest.trips,
            qtest_bytes: past_qtest.bytes + qtest.bytes,
            qtest_time: past_qtest.time + qtest.time,
            ..self.stats.clone()
        }
    }

    /// Takes the board's power. Everything fails from now on.
    pub(crate) fn power_off(&mut self) {
        // What the flash holds can still be asked for afterwards.
        let _ = self.keep_program();
        self.count_past();
        self.channels = None;
        self.lost.get_or_insert_with(|| "its power was taken".to_owned());
        self.machine.let_go();
    }

    fn count_past(&mut self) {
        if let Some(channels) = &self.channels {
            let (gdb, qtest) = (channels.gdb.stats(), channels.qtest.stats());
            let (past_gdb, past_qtest) = &mut self.past;
            past_gdb.packets += gdb.packets;
            past_gdb.trips += gdb.trips;
            past_gdb.time += gdb.time;
            past_qtest.commands += qtest.commands;
            past_qtest.trips += qtest.trips;
            past_qtest.bytes += qtest.bytes;
            past_qtest.time += qtest.time;
        }
    }

    fn is_v6m(&self) -> bool {
        self.spec.core == DebugCore::Armv6m
    }

    /// Fails if the board is lost for good.
    fn check_lost(&self) -> Result<(), BusError> {
        match &self.lost {
            Some(why) => Err(BusError::Lost(why.clone())),
            None => Ok(()),
        }
    }

    fn channels(&mut self) -> Result<&mut DebugChannels, BusError> {
        self.check_lost()?;
        // A core that took the emulator with it when it locked up: nothing answers.
        self.channels.as_mut().ok_or(BusError::Fault)
    }

    fn with_gdb<T>(
        &mut self,
        work: impl FnOnce(&mut Gdb) -> Result<T, ChannelError>,
    ) -> Result<T, BusError> {
        let result = work(&mut self.channels()?.gdb);
        self.judge(result)
    }

    fn with_qtest<T>(
        &mut self,
        work: impl FnOnce(&mut Qtest) -> Result<T, ChannelError>,
    ) -> Result<T, BusError> {
        let result = work(&mut self.channels()?.qtest);
        self.judge(result)
    }

    fn with_monitor<T>(
        &mut self,
        work: impl FnOnce(&mut DebugMonitor) -> Result<T, ChannelError>,
    ) -> Result<T, BusError> {
        let result = work(&mut self.channels()?.monitor);
        self.judge(result)
    }

    /// Turns a channel's failure into a bus's; finds out what an end of the emulator was.
    fn judge<T>(&mut self, result: Result<T, ChannelError>) -> Result<T, BusError> {
        match result {
            Ok(value) => Ok(value),
            Err(ChannelError::Refused { .. }) => Err(BusError::Fault),
            Err(error @ ChannelError::Closed { .. }) => {
                self.count_past();
                self.channels = None;
                match self.machine.how_it_ended() {
                    Ok(Some(BoardEvent::Lockup { detail })) => {
                        self.lock_up(&detail);
                        Err(BusError::Fault)
                    }
                    Ok(Some(BoardEvent::TargetExit { code })) => {
                        Err(self.lose(format!("the program ended the emulator with code {code}")))
                    }
                    Ok(Some(BoardEvent::Lost { detail, .. })) => Err(self.lose(detail)),
                    Ok(Some(_)) => Err(self.lose(error.to_string())),
                    Ok(None) => Err(self.lose("its power was taken".to_owned())),
                    Err(error) => Err(self.lose(error.to_string())),
                }
            }
            Err(
                error @ (ChannelError::TimedOut { .. }
                | ChannelError::Garbled { .. }
                | ChannelError::Io { .. }),
            ) => {
                self.count_past();
                self.channels = None;
                self.machine.let_go();
                Err(self.lose(error.to_string()))
            }
        }
    }

    fn lose(&mut self, why: String) -> BusError {
        tracing::debug!(why, "the virtual board is lost");
        self.lost = Some(why.clone());
        BusError::Lost(why)
    }

    /// The core locked up and the emulator has ended over it.
    fn lock_up(&mut self, dump: &str) {
        tracing::debug!("the core locked up");
        self.state = CoreRunState::LockedUp { halted: false };
        self.registers.set_from(dump::registers_of(dump));
        self.peeked = Peeked::default();
    }
}

impl Drop for EmulatedBoard {
    fn drop(&mut self) {
        // A lost board has let go of its machine, which may have been launched for another one since.
        if self.lost.is_none() {
            self.machine.let_go();
        }
    }
}

/// Asks a new machine what it is made of. Also makes the stub willing to read single
/// registers: it refuses until it was asked for its description.
fn describe(channels: &mut DebugChannels) -> Result<(BusMap, StubNumbers), ChannelError> {
    let map = BusMap::parse(&channels.monitor.ask("info mtree -f")?);
    let target = channels.gdb.description("target.xml")?;
    let mut documents = Vec::new();
    for include in core_registers::included(&target) {
        // A stub that lists what it does not have describes fewer registers.
        match channels.gdb.description(include) {
            Ok(document) => documents.push(document),
            Err(ChannelError::Refused { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok((map, StubNumbers::parse(&documents)))
}

/// How long a step may take. Only an instruction that waits for something takes longer than
/// microseconds, and a host that is busy with others.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);

/// How long an instruction that waits for an interrupt is stepped before it is given up: well
/// under the 100 ms a debugger grants a step.
const WAITING_STEP_TIMEOUT: Duration = Duration::from_millis(30);

/// How long a read of the run state waits for a running core to stop. Debuggers poll it in a
/// tight loop while a flash algorithm works; waiting here gives the emulator the processor.
const POLL_TIMEOUT: Duration = Duration::from_millis(1);
