//! The memory of an open session, as RTT and semihosting use it.

use super::open_session::{OpenSession, WorkerPulse};
use crate::{MemoryWidth, ProbeError, TargetMemory};

/// The target's memory, as a session reaches it.
pub(super) struct SessionMemory<'b> {
    pub(super) open_session: &'b mut OpenSession,
    pub(super) pulse: &'b WorkerPulse,
}

impl TargetMemory for SessionMemory<'_> {
    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), ProbeError> {
        let bytes = self.open_session.read(MemoryWidth::Any, address, into.len(), self.pulse)?;
        into.copy_from_slice(&bytes);
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), ProbeError> {
        self.open_session.write(MemoryWidth::Any, address, bytes, self.pulse)
    }
}
