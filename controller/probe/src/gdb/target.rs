//! Implements the traits of the protocol library for a [`Debuggee`].

use std::collections::BTreeSet;
use std::ops::Range;

use gdbstub::common::Signal;
use gdbstub::target::ext::base::BaseOps;
use gdbstub::target::ext::base::single_register_access::{
    SingleRegisterAccess, SingleRegisterAccessOps,
};
use gdbstub::target::ext::base::singlethread::{
    SingleThreadBase, SingleThreadResume, SingleThreadResumeOps, SingleThreadSingleStep,
    SingleThreadSingleStepOps,
};
use gdbstub::target::ext::breakpoints::{
    Breakpoints, BreakpointsOps, HwBreakpoint, HwBreakpointOps, SwBreakpoint, SwBreakpointOps,
};
use gdbstub::target::ext::memory_map::{MemoryMap, MemoryMapOps};
use gdbstub::target::ext::monitor_cmd::MonitorCmdOps;
use gdbstub::target::ext::target_description_xml_override::{
    TargetDescriptionXmlOverride, TargetDescriptionXmlOverrideOps,
};
use gdbstub::target::{Target, TargetError, TargetResult};

use super::arch::{AnyKind, Core, Number, RegisterFile};
use super::debuggee::Debuggee;
use crate::target_description::{DescribedRegister, TargetDescription, describe, find};
use crate::{CoreState, HaltReason, ProbeError, RegisterValue};

/// A debuggee during one session.
pub(super) struct GdbTarget<'a> {
    pub(super) debuggee: &'a mut dyn Debuggee,
    description: TargetDescription,
    memory_map: String,
    breakpoints: BTreeSet<u64>,
    /// Registers since the core last stopped.
    pub(super) registers: Option<Vec<RegisterValue>>,
    /// A stop that is to be told without looking at the core.
    stopped: Option<Signal>,
}

impl<'a> GdbTarget<'a> {
    /// Looks at a halted core.
    pub(super) fn new(debuggee: &'a mut dyn Debuggee) -> Result<Self, ProbeError> {
        // A core that locked up or sleeps may not tell its registers; it is described as the
        // smallest of its kind, so that its memory can be read.
        let registers = debuggee.registers().ok();
        let known = registers.as_deref().unwrap_or(&[]);
        let description =
            describe(debuggee.kind(), |name| known.iter().any(|register| register.name == name));
        let memory_map = memory_map_xml(debuggee.flash());
        Ok(Self {
            debuggee,
            description,
            memory_map,
            breakpoints: BTreeSet::new(),
            registers,
            stopped: None,
        })
    }

    /// Tells whether there is a stop to be told at once.
    pub(super) fn has_stopped(&self) -> bool {
        self.stopped.is_some()
    }

    /// Tells why the core stopped, if it has.
    pub(super) fn stopped(&mut self) -> Result<Option<Signal>, ProbeError> {
        if let Some(signal) = self.stopped.take() {
            return Ok(Some(signal));
        }
        let state = match self.debuggee.state() {
            Ok(state) => state,
            // What passes is no reason to end a session; the core is looked at again.
            Err(error) => match told(error) {
                TargetError::Fatal(error) => return Err(error),
                _ => return Ok(None),
            },
        };
        Ok(match state {
            CoreState::Running | CoreState::Sleeping => None,
            CoreState::LockedUp => Some(Signal::SIGABRT),
            CoreState::Halted { reason, .. } => Some(match reason {
                HaltReason::VectorCatch => Signal::SIGSEGV,
                HaltReason::Requested => Signal::SIGINT,
                HaltReason::Breakpoint
                | HaltReason::Step
                | HaltReason::Watchpoint
                | HaltReason::Unknown => Signal::SIGTRAP,
            }),
        })
    }

    /// Halts a core that a client interrupts.
    pub(super) fn interrupt(&mut self) -> Result<(), ProbeError> {
        self.registers = None;
        self.stopped = None;
        self.debuggee.halt()
    }

    /// Takes all breakpoints back, then makes the core run or stand. Tries all of it.
    pub(super) fn leave(mut self, run: bool) -> Result<(), ProbeError> {
        let mut first = Ok(());
        for address in std::mem::take(&mut self.breakpoints) {
            let cleared = self.debuggee.clear_breakpoint(address);
            first = first.and(cleared);
        }
        let running = match self.debuggee.state() {
            Ok(state) => matches!(state, CoreState::Running | CoreState::Sleeping),
            Err(error) => return first.and(Err(error)),
        };
        let moved = match (run, running) {
            (true, false) => self.debuggee.resume(),
            (false, true) => self.debuggee.halt(),
            (true, true) | (false, false) => Ok(()),
        };
        first.and(moved)
    }

    fn registers(&mut self) -> Result<&[RegisterValue], ProbeError> {
        let known = match self.registers.take() {
            Some(known) => known,
            None => self.debuggee.registers()?,
        };
        Ok(self.registers.insert(known))
    }

    fn value(&mut self, described: &DescribedRegister) -> Result<Option<u128>, ProbeError> {
        let registers = self.registers()?;
        let get = |name: &str| find(registers, name).map(|register| register.value);
        Ok(get(&described.name).or_else(|| {
            let (low, high) = halves(&described.name)?;
            Some(get(&low)? & u128::from(u32::MAX) | get(&high)? << 32)
        }))
    }

    fn set(&mut self, described: &DescribedRegister, bytes: &[u8]) -> TargetResult<(), Self> {
        if bytes.len() != usize::from(described.bits / 8) {
            return Err(TargetError::NonFatal);
        }
        let value = bytes.iter().rev().fold(0, |value, &byte| value << 8 | u128::from(byte));
        if self.value(described).map_err(told)? == Some(value) {
            return Ok(());
        }
        let known = self.registers.take();
        let known = known.as_deref().and_then(|known| find(known, &described.name));
        match halves(&described.name) {
            None => {
                let name = known.map_or(&described.name, |register| &register.name);
                self.debuggee.write_register(name, value).map_err(told)
            }
            Some((low, high)) => {
                let word = u128::from(u32::MAX);
                self.debuggee.write_register(&low, value & word).map_err(told)?;
                self.debuggee.write_register(&high, value >> 32 & word).map_err(told)
            }
        }
    }

    /// Goes on after an attempt to move the core: what a client can live with is told as a
    /// stop where it stands, anything else ends the session.
    fn moved(
        &mut self,
        result: Result<(), ProbeError>,
        then: Option<Signal>,
    ) -> Result<(), ProbeError> {
        self.registers = None;
        self.stopped = then;
        match result.map_err(told) {
            Err(TargetError::Fatal(error)) => Err(error),
            Err(_) => {
                self.stopped = Some(Signal::SIGTRAP);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }
}

/// Returns the single registers that a double one consists of.
fn halves(name: &str) -> Option<(String, String)> {
    let number: u8 = name.strip_prefix('d')?.parse().ok()?;
    Some((format!("s{}", 2 * number), format!("s{}", 2 * number + 1)))
}

/// Tells an error as a number, or ends the session where no further one could work.
pub(super) fn told(error: ProbeError) -> TargetError<ProbeError> {
    // Numbers of errno.h, which clients know by name.
    const EIO: u8 = 5;
    const ENXIO: u8 = 6;
    const EFAULT: u8 = 14;
    const EBUSY: u8 = 16;
    const EINVAL: u8 = 22;
    const ENOSPC: u8 = 28;
    const ETIMEDOUT: u8 = 110;
    match error {
        ProbeError::BusFault { .. } => TargetError::Errno(EFAULT),
        ProbeError::NotHalted => TargetError::Errno(EBUSY),
        ProbeError::NoBreakpointLeft { .. } => TargetError::Errno(ENOSPC),
        ProbeError::UnknownRegister { .. } => TargetError::Errno(EINVAL),
        ProbeError::CoreTimeout { .. } => TargetError::Errno(ETIMEDOUT),
        ProbeError::NoTarget { .. } => TargetError::Errno(ENXIO),
        ProbeError::ProbeLost { .. }
        | ProbeError::Hung { .. }
        | ProbeError::Gone
        | ProbeError::Cancelled { .. } => TargetError::Fatal(error),
        other => {
            tracing::debug!(error = %other, "told to gdb as an input/output error");
            TargetError::Errno(EIO)
        }
    }
}

/// Writes the memory map. With one, gdb refuses to touch what it does not list, so all that
/// is not flash is listed as RAM: peripherals are there.
fn memory_map_xml(mut flash: Vec<Range<u64>>) -> String {
    flash.retain(|range| !range.is_empty());
    flash.sort_by_key(|range| range.start);
    let mut text = "<?xml version=\"1.0\"?><memory-map>".to_owned();
    let mut add = |kind: &str, start: u64, end: u64| {
        if start < end {
            let len = end - start;
            text.push_str(&format!(
                "<memory type=\"{kind}\" start=\"{start:#x}\" length=\"{len:#x}\"/>"
            ));
        }
    };
    let mut at = 0;
    for range in flash {
        let end = range.end.min(1 << 32);
        add("ram", at, range.start.max(at));
        add("rom", range.start.max(at), end);
        at = at.max(end);
    }
    add("ram", at, 1 << 32);
    text.push_str("</memory-map>");
    text
}

/// Copies the part of a text that was asked for.
fn part(text: &str, offset: u64, length: usize, buffer: &mut [u8]) -> usize {
    let rest = usize::try_from(offset).ok().and_then(|o| text.as_bytes().get(o..)).unwrap_or(&[]);
    let len = rest.len().min(length).min(buffer.len());
    buffer[..len].copy_from_slice(&rest[..len]);
    len
}

impl Target for GdbTarget<'_> {
    type Arch = Core;
    type Error = ProbeError;

    fn base_ops(&mut self) -> BaseOps<'_, Core, ProbeError> {
        BaseOps::SingleThread(self)
    }

    fn support_breakpoints(&mut self) -> Option<BreakpointsOps<'_, Self>> {
        Some(self)
    }

    fn support_monitor_cmd(&mut self) -> Option<MonitorCmdOps<'_, Self>> {
        Some(self)
    }

    fn support_memory_map(&mut self) -> Option<MemoryMapOps<'_, Self>> {
        Some(self)
    }

    fn support_target_description_xml_override(
        &mut self,
    ) -> Option<TargetDescriptionXmlOverrideOps<'_, Self>> {
        Some(self)
    }
}

impl SingleThreadBase for GdbTarget<'_> {
    fn read_registers(&mut self, file: &mut RegisterFile) -> TargetResult<(), Self> {
        file.bytes.clear();
        for described in self.description.registers.clone() {
            let value = self.value(&described).map_err(told)?;
            for index in 0..usize::from(described.bits / 8) {
                file.bytes.push(value.map(|value| (value >> (8 * index)) as u8));
            }
        }
        Ok(())
    }

    fn write_registers(&mut self, file: &RegisterFile) -> TargetResult<(), Self> {
        let mut at = 0;
        for described in self.description.registers.clone() {
            let end = at + usize::from(described.bits / 8);
            let bytes = file.bytes.get(at..end).ok_or(TargetError::NonFatal)?;
            at = end;
            if let Some(bytes) = bytes.iter().copied().collect::<Option<Vec<u8>>>() {
                self.set(&described, &bytes)?;
            }
        }
        Ok(())
    }

    fn support_single_register_access(&mut self) -> Option<SingleRegisterAccessOps<'_, (), Self>> {
        Some(self)
    }

    fn read_addrs(&mut self, start: u32, data: &mut [u8]) -> TargetResult<usize, Self> {
        let start = u64::from(start);
        match self.debuggee.read(start, data) {
            Ok(()) => Ok(data.len()),
            // A client wants the bytes up to where the memory ends.
            Err(ProbeError::BusFault { address, .. })
                if (start + 1..start + data.len() as u64).contains(&address) =>
            {
                let known = (address - start) as usize;
                self.debuggee.read(start, &mut data[..known]).map_err(told)?;
                Ok(known)
            }
            Err(error) => Err(told(error)),
        }
    }

    fn write_addrs(&mut self, start: u32, data: &[u8]) -> TargetResult<(), Self> {
        self.debuggee.write(u64::from(start), data).map_err(told)
    }

    fn support_resume(&mut self) -> Option<SingleThreadResumeOps<'_, Self>> {
        Some(self)
    }
}

impl SingleRegisterAccess<()> for GdbTarget<'_> {
    fn read_register(
        &mut self,
        _thread: (),
        number: Number,
        buffer: &mut [u8],
    ) -> TargetResult<usize, Self> {
        let described = self.described(number)?;
        let len = usize::from(described.bits / 8);
        let value = self.value(&described).map_err(told)?.ok_or(TargetError::NonFatal)?;
        let bytes = buffer.get_mut(..len).ok_or(TargetError::NonFatal)?;
        bytes.copy_from_slice(&value.to_le_bytes()[..len]);
        Ok(len)
    }

    fn write_register(
        &mut self,
        _thread: (),
        number: Number,
        bytes: &[u8],
    ) -> TargetResult<(), Self> {
        let described = self.described(number)?;
        self.set(&described, bytes)
    }
}

impl GdbTarget<'_> {
    fn described(&self, number: Number) -> TargetResult<DescribedRegister, Self> {
        let found = self.description.registers.iter().find(|r| r.number == number.0);
        found.cloned().ok_or(TargetError::NonFatal)
    }
}

impl SingleThreadResume for GdbTarget<'_> {
    fn resume(&mut self, _signal: Option<Signal>) -> Result<(), ProbeError> {
        let resumed = self.debuggee.resume();
        self.moved(resumed, None)
    }

    fn support_single_step(&mut self) -> Option<SingleThreadSingleStepOps<'_, Self>> {
        Some(self)
    }
}

impl SingleThreadSingleStep for GdbTarget<'_> {
    fn step(&mut self, _signal: Option<Signal>) -> Result<(), ProbeError> {
        let stepped = self.debuggee.step();
        self.moved(stepped, Some(Signal::SIGTRAP))
    }
}

impl Breakpoints for GdbTarget<'_> {
    fn support_sw_breakpoint(&mut self) -> Option<SwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_breakpoint(&mut self) -> Option<HwBreakpointOps<'_, Self>> {
        Some(self)
    }
}

/// Breakpoints that a client wants as instructions are hardware ones too: nothing of the
/// program is changed, and nothing is left behind if the client vanishes.
impl SwBreakpoint for GdbTarget<'_> {
    fn add_sw_breakpoint(&mut self, address: u32, kind: AnyKind) -> TargetResult<bool, Self> {
        self.add_hw_breakpoint(address, kind)
    }

    fn remove_sw_breakpoint(&mut self, address: u32, kind: AnyKind) -> TargetResult<bool, Self> {
        self.remove_hw_breakpoint(address, kind)
    }
}

impl HwBreakpoint for GdbTarget<'_> {
    fn add_hw_breakpoint(&mut self, address: u32, _kind: AnyKind) -> TargetResult<bool, Self> {
        let address = u64::from(address);
        if !self.breakpoints.contains(&address) {
            self.debuggee.set_breakpoint(address).map_err(told)?;
            self.breakpoints.insert(address);
        }
        Ok(true)
    }

    fn remove_hw_breakpoint(&mut self, address: u32, _kind: AnyKind) -> TargetResult<bool, Self> {
        let address = u64::from(address);
        if self.breakpoints.contains(&address) {
            self.debuggee.clear_breakpoint(address).map_err(told)?;
            self.breakpoints.remove(&address);
        }
        Ok(true)
    }
}

impl MemoryMap for GdbTarget<'_> {
    fn memory_map_xml(
        &self,
        offset: u64,
        length: usize,
        buffer: &mut [u8],
    ) -> TargetResult<usize, Self> {
        Ok(part(&self.memory_map, offset, length, buffer))
    }
}

impl TargetDescriptionXmlOverride for GdbTarget<'_> {
    fn target_description_xml(
        &self,
        annex: &[u8],
        offset: u64,
        length: usize,
        buffer: &mut [u8],
    ) -> TargetResult<usize, Self> {
        match annex {
            b"target.xml" => Ok(part(&self.description.xml, offset, length, buffer)),
            _ => Err(TargetError::NonFatal),
        }
    }
}
