//! A session of the worker as what the gdb server drives.

use std::ops::Range;

use tokio::runtime::Handle;

use super::debuggee::Debuggee;
use crate::worker::{Attached, ChipMemoryKind, ProbeHandle};
use crate::{CoreKind, CoreState, ProbeError, RegisterValue, ResetInto};

/// Drives a board through its probe's worker, from the server's thread.
pub struct ProbeDebuggee {
    handle: ProbeHandle,
    runtime: Handle,
    kind: CoreKind,
    flash: Vec<Range<u64>>,
}

impl ProbeDebuggee {
    /// Shares a session; to be made within the runtime that the session belongs to.
    pub fn new(handle: ProbeHandle, attached: &Attached) -> Self {
        let flash = attached.memory.iter().filter(|region| region.kind == ChipMemoryKind::Flash);
        Self {
            handle,
            runtime: Handle::current(),
            // Where the chip's description does not say, the common registers are right.
            kind: attached.core.unwrap_or(CoreKind::Armv7m),
            flash: flash.map(|region| region.start..region.end).collect(),
        }
    }
}

impl Debuggee for ProbeDebuggee {
    fn kind(&self) -> CoreKind {
        self.kind
    }

    fn flash(&self) -> Vec<Range<u64>> {
        self.flash.clone()
    }

    fn state(&mut self) -> Result<CoreState, ProbeError> {
        self.runtime.block_on(self.handle.state())
    }

    fn registers(&mut self) -> Result<Vec<RegisterValue>, ProbeError> {
        self.runtime.block_on(self.handle.registers())
    }

    fn write_register(&mut self, name: &str, value: u128) -> Result<(), ProbeError> {
        self.runtime.block_on(self.handle.write_register(name, value))
    }

    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), ProbeError> {
        bytes.copy_from_slice(&self.runtime.block_on(self.handle.read(address, bytes.len()))?);
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), ProbeError> {
        self.runtime.block_on(self.handle.write(address, bytes.to_vec()))
    }

    fn halt(&mut self) -> Result<(), ProbeError> {
        self.runtime.block_on(self.handle.halt()).map(drop)
    }

    fn resume(&mut self) -> Result<(), ProbeError> {
        self.runtime.block_on(self.handle.run())
    }

    fn step(&mut self) -> Result<(), ProbeError> {
        self.runtime.block_on(self.handle.step()).map(drop)
    }

    fn set_breakpoint(&mut self, address: u64) -> Result<(), ProbeError> {
        self.runtime.block_on(self.handle.set_breakpoint(address))
    }

    fn clear_breakpoint(&mut self, address: u64) -> Result<(), ProbeError> {
        self.runtime.block_on(self.handle.clear_breakpoint(address))
    }

    fn reset(&mut self, into: ResetInto) -> Result<(), ProbeError> {
        self.runtime.block_on(self.handle.reset(into))
    }
}
