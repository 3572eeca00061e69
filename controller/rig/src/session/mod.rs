//! A run: attempts of one plan on one place, recorded from before the hardware is touched, and
//! the recovery of a rig that fails meanwhile.
//!
//! Owns the order: check, record, attempt, judge, recover, report. Refuses to show anything: an
//! [`Observer`] is told what happens. The run driver, preflight and the steps of the ladder act on
//! one `dut::Dut`; `retry_policy`, `ladder` and `accusation` are pure.
//!
//! # Design
//! *Known-good images and recoveries have attempt numbers of their own*, so that every byte a board
//! prints meanwhile is kept. Only attempts of the test count.
//!
//! *Console logs are synced one attempt behind*, and all of them before the record says that the
//! run has ended. A killed process loses nothing; a power cut may lose the run.
//!
//! *There is no list of faults and their remedies.* Every rig failure takes the ladder from its
//! gentlest step, and after each step the rig must prove that it works: its checks answer, and
//! the known-good image, where there is one, passes on the same place in the same way. A step
//! without a proof is no recovery. An unforeseen fault therefore takes the same steps, and a wrong
//! guess costs only time.
//!
//! `wait` asks for its proof again, with growing pauses: what killed an emulator or kept a device
//! away may do so during the recovery, too, and be over a moment later.

mod accusation;
mod dut;
mod environment;
mod events;
mod images;
mod known_good;
mod ladder;
mod preflight;
mod recorder;
mod recover;
mod retry_policy;
mod run_driver;
mod run_ladder;
mod step_outcome;
mod steps;
mod storage_retry;
#[cfg(test)]
mod tests;

pub use environment::{
    ClaimError, DutSpec, HubError, LabServices, NoLabServices, Observer, RunEnvironment,
    StartChecks,
};
pub use images::{ImagesError, UnreadableImage};
#[cfg(test)]
pub(crate) use known_good::canary_plan;
pub use recover::{Extent, recover, recovery_rungs};
pub use run_driver::{SessionError, SessionRequest, run};
