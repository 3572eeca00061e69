//! The rig: leases, health, recovery, plans, results, runs.
//!
//! **Invariant: no hardware and no terminal.** Everything real is behind the protocols of
//! `jig_model`; this crate imports no driver and prints nothing.

pub mod attempt;
pub mod audit;
pub mod capture_service;
pub mod console;
pub mod database;
pub mod health;
pub mod identity;
pub mod judge;
pub mod leases;
pub mod report;
pub mod results;
pub mod session;
pub mod store;
pub mod workflow;
