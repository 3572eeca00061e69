//! One power device of a rig.

use std::time::Duration;

use serde::Serialize;

use super::PowerDriver;
use crate::DeviceName;

/// One device that switches the power of boards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PowerDevice {
    /// Its name; unique in the rig.
    pub name: DeviceName,
    /// What it is and how to reach it.
    pub driver: PowerDriver,
    /// Least time between the end of one command to it and the next. Cheap devices drop
    /// commands that come faster.
    pub min_interval: Duration,
    /// How long a board stays off in a power cycle.
    pub off_time: Duration,
    /// How long one command may take.
    pub timeout: Duration,
    /// How long after a command the device may take until it reports the new state.
    pub settle: Duration,
    /// The file it stands in.
    pub origin: String,
}
