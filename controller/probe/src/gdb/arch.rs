//! Cores as the protocol library wants them typed: 32-bit addresses, registers by number, and
//! a register file whose shape the target description gives at run time.

use std::num::NonZeroUsize;

use gdbstub::arch::{Arch, BreakpointKind, RegId, Registers};

/// A small core of any kind.
pub(super) enum Core {}

impl Arch for Core {
    type Usize = u32;
    type Registers = RegisterFile;
    type BreakpointKind = AnyKind;
    type RegId = Number;
}

/// A register's number in the target description.
#[derive(Debug, Clone, Copy)]
pub(super) struct Number(pub(super) usize);

impl RegId for Number {
    fn from_raw_id(id: usize) -> Option<(Self, Option<NonZeroUsize>)> {
        // How wide it is, the register itself says.
        Some((Self(id), None))
    }
}

/// What instruction a breakpoint replaces: of no interest to hardware breakpoints.
#[derive(Debug)]
pub(super) struct AnyKind;

impl BreakpointKind for AnyKind {
    fn from_usize(_kind: usize) -> Option<Self> {
        Some(Self)
    }
}

/// All registers of a description, one after the other. A byte that is not known is nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct RegisterFile {
    pub(super) bytes: Vec<Option<u8>>,
}

impl Registers for RegisterFile {
    type ProgramCounter = u32;

    fn pc(&self) -> u32 {
        // Used by guards of the library that are not on for this kind of target.
        0
    }

    fn gdb_serialize(&self, mut write_byte: impl FnMut(Option<u8>)) {
        self.bytes.iter().for_each(|&byte| write_byte(byte));
    }

    fn gdb_deserialize(&mut self, bytes: &[u8]) -> Result<(), ()> {
        self.bytes = bytes.iter().copied().map(Some).collect();
        Ok(())
    }
}
