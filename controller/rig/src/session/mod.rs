//! A run: attempts of one plan on one place, recorded from before the hardware is touched.
//!
//! Owns the order: check, record, attempt, judge, report. Refuses to show anything: an
//! [`Observer`] is told what happens.
//!
//! # Design
//! *Known-good images and recoveries have attempt numbers of their own*, so that every byte a board
//! prints meanwhile is kept. Only attempts of the test count.
//!
//! *Console logs are synced one attempt behind*, and all of them before the record says that the
//! run has ended. A killed process loses nothing; a power cut may lose the run.

mod dut_recovery;
mod images;
mod lab;
mod ledger;
mod preflight;
mod recorder;
mod recover;
mod retry_policy;
mod run;
mod run_driver;
mod storage_retry;
#[cfg(test)]
mod tests;

pub use images::{ImagesError, UnreadableImage};
pub use lab::{DutSpec, LabServices, NoLabServices, StartChecks};
pub use recover::{Extent, RecoverRequest, recover, recovery_rungs};
pub use run::{Observer, RunEnvironment, SessionError, SessionRequest, run};
