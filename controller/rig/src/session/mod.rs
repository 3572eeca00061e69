//! A run: attempts of one plan on one place, recorded from before the hardware is touched.
//!
//! Owns the order: check, record, attempt, judge, report. Refuses to show anything: an
//! [`Observer`] is told what happens.

mod images;
mod ledger;
mod run;
#[cfg(test)]
mod tests;

pub use images::{ImagesError, UnreadableImage};
pub use run::{Bench, Observer, SessionError, SessionRequest, run};
