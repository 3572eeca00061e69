//! A run: attempts of one plan on one place, recorded from before the hardware is touched.
//!
//! Owns the order: check, record, attempt, judge, report. Refuses to show anything: an
//! [`Observer`] is told what happens.

mod bedside;
mod first_look;
mod images;
mod lab;
mod ledger;
mod making;
mod recorder;
mod recover;
mod run;
mod storage_retry;
#[cfg(test)]
mod tests;
mod turns;

pub use images::{ImagesError, UnreadableImage};
pub use lab::{Lab, NoLab, Seat, StartChecks};
pub use recover::{Extent, RecoverRequest, recover, repair_rungs};
pub use run::{Bench, Observer, SessionError, SessionRequest, run};
