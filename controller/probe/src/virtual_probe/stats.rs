//! What a virtual board counts.

use std::time::Duration;

/// Counts what a virtual board did, to say where time goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VirtualStats {
    /// Emulators launched: one, and one more after each lock-up.
    pub launches: u64,
    /// Accesses of the memory access port, blocks counted once.
    pub accesses: u64,
    /// Core registers transferred.
    pub registers: u64,
    /// Times the core was let run.
    pub resumes: u64,
    /// Instructions stepped.
    pub steps: u64,
    /// Times a stop was waited for.
    pub waits: u64,
    /// Time spent waiting for stops: the core works then.
    pub wait_time: Duration,
    /// HardFaults that were seen and not caused by a breakpoint instruction.
    pub hard_faults: u64,
    /// Packets sent to the gdb stub.
    pub gdb_packets: u64,
    /// Times its answer was waited for.
    pub gdb_trips: u64,
    /// How long.
    pub gdb_time: Duration,
    /// Bus commands sent.
    pub qtest_commands: u64,
    /// Times their answers were waited for.
    pub qtest_trips: u64,
    /// Bytes of memory they moved.
    pub qtest_bytes: u64,
    /// How long they took.
    pub qtest_time: Duration,
}
