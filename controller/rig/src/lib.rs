//! The rig: leases, health, recovery, plans, results, runs.

pub mod workflow;
