//! Stopping a board where it stands, and the time it has lost.

use std::time::Duration;

use super::{BoxFuture, DriverError};

/// Stops a board without a reset, and tells how long it could not run.
///
/// Offered only for boards whose core and time stop together: what a halted board measures by its
/// own clock stays right.
pub trait RunControl: Send {
    /// Stops the board where it stands. When this returns, everything that the board has printed
    /// is captured, and everything that has happened to it is reported. Returns whether it stands;
    /// a board that has ended does not.
    fn halt(&mut self) -> BoxFuture<'_, Result<bool, DriverError>>;
    /// Lets a halted board run on; does nothing to one that runs.
    fn resume(&mut self) -> BoxFuture<'_, Result<(), DriverError>>;
    /// Returns for how long the board could not run since it got power: it was stopped, or what
    /// runs it waited for a processor. Nothing if it has no power. Exact once the board is halted;
    /// before, a wait that still lasts is missing.
    fn lost_time(&mut self) -> BoxFuture<'_, Result<Option<Duration>, DriverError>>;
}
