//! What a debugger may ask of a core.

use std::ops::Range;

use crate::{CoreKind, CoreState, ProbeError, RegisterValue, ResetInto};

/// One core, as a debugger uses it. Calls block until they are done or have failed, and each
/// has a bound of its own.
pub trait Debuggee: Send {
    /// Returns what kind of core it is. Never changes.
    fn kind(&self) -> CoreKind;

    /// Returns where the chip's flash is, which is written by erasing and programming only.
    /// Breakpoints may be put anywhere else as instructions.
    fn flash(&self) -> Vec<Range<u64>>;

    /// Tells what the core is doing.
    ///
    /// # Errors
    /// The probe or the target does not answer.
    fn state(&mut self) -> Result<CoreState, ProbeError>;

    /// Reads all registers, by the names of [`RegisterValue`].
    ///
    /// # Errors
    /// [`ProbeError::NotHalted`], or the probe or the target does not answer.
    fn registers(&mut self) -> Result<Vec<RegisterValue>, ProbeError>;

    /// Writes one register.
    ///
    /// # Errors
    /// There is no such register, the core is running, or the probe does not answer.
    fn write_register(&mut self, name: &str, value: u128) -> Result<(), ProbeError>;

    /// Reads memory; all of it or none.
    ///
    /// # Errors
    /// [`ProbeError::BusFault`], or the probe or the target does not answer.
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), ProbeError>;

    /// Writes memory that can be written.
    ///
    /// # Errors
    /// [`ProbeError::BusFault`], or the probe or the target does not answer.
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), ProbeError>;

    /// Makes the core stand still, with [`crate::HaltReason::Requested`].
    ///
    /// # Errors
    /// It does not, or the probe does not answer.
    fn halt(&mut self) -> Result<(), ProbeError>;

    /// Lets the core run; returns at once. From a breakpoint it runs on.
    ///
    /// # Errors
    /// The probe or the target does not answer.
    fn resume(&mut self) -> Result<(), ProbeError>;

    /// Executes one instruction; returns when that is done.
    ///
    /// # Errors
    /// The core is running, or the probe or the target does not answer.
    fn step(&mut self) -> Result<(), ProbeError>;

    /// Sets a hardware breakpoint.
    ///
    /// # Errors
    /// [`ProbeError::NoBreakpointLeft`], or the probe does not answer.
    fn set_breakpoint(&mut self, address: u64) -> Result<(), ProbeError>;

    /// Clears a hardware breakpoint.
    ///
    /// # Errors
    /// The probe does not answer.
    fn clear_breakpoint(&mut self, address: u64) -> Result<(), ProbeError>;

    /// Resets the chip. Breakpoints stay.
    ///
    /// # Errors
    /// The probe or the target does not answer.
    fn reset(&mut self, into: ResetInto) -> Result<(), ProbeError>;
}
