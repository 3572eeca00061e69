//! A Cortex-M behind a probe that is followed through the handlers of its faults.
//!
//! # Design
//! *A breakpoint stays until the instruction at it is executed.* The debugger library takes an
//! instruction that branches to itself, and at which it knows of no breakpoint, for a `BKPT`, and goes
//! on behind it.

use std::ops::Range;

use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use super::SOON;
use super::look::{active_interrupt, fault_handlers};
use crate::debug_info::ExcReturn;
use crate::fault_watch::{FaultMachine, FaultStand, PC, Registers, WATCHED, XPSR, fault_shape};
use crate::{
    CoreKind, CoreSnapshot, CoreState, HaltReason, ProbeError, ProbeHandle, RegisterValue, Symbols,
};

const SP: usize = 13;
const LR: usize = 14;

/// The number of the exception that is executed.
const EXCEPTION: u32 = 0x1ff;

/// Where an exception pushes the return address and the status.
const STACKED_PC: u32 = 0x18;

/// Registers in the order of [`Registers`].
const NAMES: [&str; 17] = [
    "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "sp", "lr",
    "pc", "xpsr",
];

/// A core that stands. Used by a thread that may block, while a runtime serves the probe.
pub(super) struct ProbedCore {
    handle: ProbeHandle,
    runtime: Handle,
    kind: CoreKind,
    ram: Vec<Range<u64>>,
    /// Calls of the host are answered.
    hosts: bool,
    /// The program has ended, or has come to a breakpoint of its own: it is not run on.
    stands: bool,
    /// Breakpoints that are set.
    set: Vec<u32>,
    /// It stands at one of them, whose instruction is not executed yet.
    at_breakpoint: bool,
    /// What the program has printed by such calls.
    pub(super) printed: Vec<u8>,
}

impl ProbedCore {
    /// Takes a core, which stands from now on.
    pub(super) async fn stop(
        handle: &ProbeHandle,
        kind: CoreKind,
        ram: Vec<Range<u64>>,
        hosts: bool,
    ) -> Result<Self, ProbeError> {
        let mut printed = Vec::new();
        let mut stands = false;
        if hosts {
            let hosted = handle.semihost().await?;
            printed.extend(hosted.text);
            stands = hosted.exit.is_some();
        }
        let state = handle.state().await?;
        stands |= matches!(state, CoreState::Halted { reason: HaltReason::Breakpoint, .. });
        handle.halt().await?;
        let (handle, runtime, set) = (handle.clone(), Handle::current(), Vec::new());
        Ok(Self { handle, runtime, kind, ram, hosts, stands, set, at_breakpoint: false, printed })
    }

    /// Lists where the handlers of faults begin.
    pub(super) async fn handlers(&self) -> Result<Vec<u32>, ProbeError> {
        fault_handlers(&self.handle, self.kind).await
    }

    async fn registers(&self) -> Result<Registers, ProbeError> {
        let all = self.handle.registers().await?;
        Ok(NAMES.map(|name| value_of(&all, name).unwrap_or_default()))
    }

    /// Removes all breakpoints.
    pub(super) async fn release(&mut self) -> Result<(), ProbeError> {
        for place in std::mem::take(&mut self.set) {
            self.handle.clear_breakpoint(place.into()).await?;
        }
        Ok(())
    }

    async fn step_once(&mut self) -> Result<Registers, ProbeError> {
        self.handle.step().await?;
        self.at_breakpoint = false;
        self.registers().await
    }

    /// Sets as many breakpoints as there are.
    async fn set_breakpoints(
        &mut self,
        places: impl Iterator<Item = u32>,
    ) -> Result<(), ProbeError> {
        self.release().await?;
        for place in places {
            match self.handle.set_breakpoint(place.into()).await {
                Ok(()) => self.set.push(place),
                Err(ProbeError::NoBreakpointAt { .. }) => {}
                Err(ProbeError::NoBreakpointLeft { .. }) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Runs the core until it stands at one of its breakpoints.
    async fn run_for_a_while(&mut self) -> Result<bool, ProbeError> {
        self.handle.run().await?;
        let until = Instant::now() + WATCHED;
        loop {
            match self.handle.state().await? {
                CoreState::Halted { pc, .. } => {
                    let ours = self.set.iter().any(|&place| u64::from(place) == pc);
                    if ours || !self.hosts {
                        return Ok(ours);
                    }
                    let hosted = self.handle.semihost().await?;
                    self.printed.extend(hosted.text);
                    if hosted.calls == 0 || hosted.exit.is_some() {
                        return Ok(false);
                    }
                }
                CoreState::LockedUp => return Ok(false),
                _ if Instant::now() >= until => {
                    // It may come to a breakpoint at the last moment.
                    let pc = self.handle.halt().await?;
                    return Ok(self.set.iter().any(|&place| u64::from(place) == pc));
                }
                _ => sleep(SOON).await,
            }
        }
    }
}

impl FaultMachine for ProbedCore {
    type Error = ProbeError;

    fn run_to(
        &mut self,
        places: &mut dyn Iterator<Item = u32>,
    ) -> Result<Option<Registers>, ProbeError> {
        if self.stands {
            return Ok(None);
        }
        self.runtime.clone().block_on(async {
            let places: Vec<u32> = places.collect();
            if self.at_breakpoint {
                let registers = self.step_once().await?;
                if places.contains(&registers[PC]) {
                    return Ok(Some(registers));
                }
            }
            self.set_breakpoints(places.into_iter()).await?;
            self.at_breakpoint = self.run_for_a_while().await?;
            if self.at_breakpoint { self.registers().await.map(Some) } else { Ok(None) }
        })
    }

    fn step(&mut self) -> Result<Registers, ProbeError> {
        self.runtime.clone().block_on(self.step_once())
    }

    fn frame(&mut self, registers: &Registers) -> Result<Option<u32>, ProbeError> {
        if !ExcReturn::of(registers[LR]).is_some_and(ExcReturn::uses_psp) {
            return Ok(Some(registers[SP]));
        }
        let all = self.runtime.block_on(self.handle.registers())?;
        Ok(value_of(&all, "psp"))
    }

    fn stacked(&mut self, frame: u32) -> Result<Option<(u32, u32)>, ProbeError> {
        let place = u64::from(frame) + u64::from(STACKED_PC);
        let words = match self.runtime.block_on(self.handle.read(place, 8)) {
            Err(ProbeError::BusFault { .. }) => return Ok(None),
            words => words?,
        };
        let mut words = words.as_chunks().0.iter().map(|&word| u32::from_le_bytes(word));
        let (pc, status) = (words.next(), words.next());
        Ok(pc.zip(status).map(|(pc, status)| (pc & !1, status & EXCEPTION)))
    }

    fn capture(&mut self) -> Result<CoreSnapshot, ProbeError> {
        self.runtime.block_on(self.handle.snapshot_of_stacks(&self.ram))
    }

    fn look(&mut self, symbols: Option<&Symbols>) -> Result<Option<FaultStand>, ProbeError> {
        let registers = self.runtime.clone().block_on(self.registers())?;
        if registers[XPSR] & EXCEPTION == 0 {
            return Ok(None);
        }
        let snapshot = self.capture()?;
        let irq = self.runtime.block_on(active_interrupt(&self.handle, self.kind))?;
        let shape = fault_shape(&snapshot, irq, symbols);
        Ok(shape.map(|shape| FaultStand { shape, snapshot }))
    }
}

fn value_of(registers: &[RegisterValue], name: &str) -> Option<u32> {
    let register = registers.iter().find(|register| register.name == name)?;
    u32::try_from(register.value).ok()
}
