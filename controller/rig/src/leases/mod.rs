//! Leases: who may use a place, for how long, and who is next.
//!
//! **Owns** the table of leases with its rules, its SQLite store, and the waiting for a place.
//! **Refuses** to know where selectors and rules come from, and what a command does with a place.
//!
//! # Design
//! *A decision is a pure function of the table.* Each change loads the live rows in one transaction
//! that no other process can interleave, applies one step of [`LeaseTable`], and writes the rows that
//! differ. So the table can be tested without a database, and the database holds no rule. Another
//! engine needs the same four statements.
//!
//! *The lock of a place is the gate.* A process that uses a place has its lock
//! ([`crate::store::PlaceLock`]), and asks for the lease while it has it; a lease is granted only
//! while no process has the lock. So no command of another user runs when a lease begins, and none
//! begins under a lease that has ended.
//!
//! *A token fences.* Each lease of a place has a higher token than the one before. The place itself
//! remembers the highest one, beside its lock and outside of the database, so that a database
//! which is restored from a copy lets no old lease in.
//!
//! *No process has to live for leases to be given.* Each waiting process, and each one that gives a place
//! back, grants what can be granted, also to others.

mod desk;
mod error;
mod place;
mod row;
mod store;
mod table;
#[cfg(test)]
mod tests;

pub use desk::{RigLeases, has_leases};
pub use error::LeaseError;
pub use place::{Fitness, LeasablePlace};
pub use store::{LeaseStore, new_lease_id};
pub use table::Admission;
use table::LeaseTable;
