//! Three inherited channels through which a debugger works on an emulated machine.
//!
//! Owns the sockets and their protocols. Refuses to know any processor: what registers
//! and addresses mean is the debugger's business.
//!
//! # Design
//! *Three, because none of them can do it all.* Only the gdb stub reaches registers, steps and
//! breakpoints, but any byte sent to it stops a running machine, and its writes to devices are
//! lost. The qtest channel makes true bus accesses without stopping anything. Only the monitor can
//! reset the machine and tell that it was reset.
//!
//! *Blocking, bounded.* A debugger lives on a thread of its own and asks one thing after
//! the other, so these are plain sockets. Every wait has a limit; an emulator that has
//! died or hangs is an error, never a hang.
//!
//! *Hardly any acknowledgements of ours.* The stub takes the next command for one; leaving them out
//! saves a wake-up for each answer. Only a request to stop needs one before it.

mod gdb;
mod monitor;
mod qtest;
mod stream;
#[cfg(test)]
mod tests;

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

pub use gdb::{Gdb, GdbStats, Packets, Stop};
pub use monitor::{DebugMonitor, LogItem, ResetSeen};
pub use qtest::{Access, Qtest, QtestStats};
pub use stream::ChannelError;

/// How long a channel may take to answer. It takes some microseconds; beyond this the
/// emulator is frozen, and its owner is about to give it up too.
const ANSWER: Duration = Duration::from_secs(10);

/// The near ends of a machine's debug channels. The machine goes on when they are dropped.
pub struct DebugChannels {
    /// Run control and registers.
    pub gdb: Gdb,
    /// The bus.
    pub qtest: Qtest,
    /// Reset, and what the machine tells about itself.
    pub monitor: DebugMonitor,
}

/// Near ends before the emulator has greeted, and the far ends it inherits.
pub(super) struct ChannelPairs {
    near: [UnixStream; 3],
    far: [OwnedFd; 3],
}

impl ChannelPairs {
    pub(super) fn make() -> std::io::Result<Self> {
        let (gdb, far_gdb) = UnixStream::pair()?;
        let (qtest, far_qtest) = UnixStream::pair()?;
        let (monitor, far_monitor) = UnixStream::pair()?;
        let far = [far_gdb.into(), far_qtest.into(), far_monitor.into()];
        Ok(Self { near: [gdb, qtest, monitor], far })
    }

    /// Takes the ends apart: near ones, and far ones in the order gdb, qtest, monitor.
    pub(super) fn split(self) -> (NearEnds, [OwnedFd; 3]) {
        (NearEnds(self.near), self.far)
    }
}

/// Near ends of an emulator that may not have greeted yet.
pub(super) struct NearEnds([UnixStream; 3]);

impl NearEnds {
    /// Makes clients of the sockets of the emulator `pid`. Says nothing to it yet.
    pub(super) fn into_channels(self, pid: i32) -> Result<DebugChannels, ChannelError> {
        let [gdb, qtest, monitor] = self.0;
        Ok(DebugChannels {
            gdb: Gdb::new(gdb)?.of_process(pid),
            qtest: Qtest::new(qtest)?,
            monitor: DebugMonitor::new(monitor)?,
        })
    }
}
