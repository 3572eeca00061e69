//! What hangs on a power device.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{PowerDevice, PowerDriver};
use crate::DeviceName;

/// What switches the power of a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlacePower {
    /// The device.
    pub device: DeviceName,
    /// Its outlet, in the device's own words; empty where the device has only one.
    pub outlet: String,
    /// How long the board stays off in a power cycle, if not as the device says.
    pub off_time: Option<Duration>,
    /// The power sense, if the rig file names one.
    pub sense: Option<PlaceSense>,
}

/// How long a power sense may take: five seconds to see it, and as long for a look.
const SENSE_TIMEOUT: Duration = Duration::from_secs(10);

impl PlacePower {
    /// Returns how long a power cycle may take at most, by the device's own times. Commands of
    /// other processes to the device at the same time are not counted.
    pub fn cycle_timeout(&self, device: &PowerDevice) -> Duration {
        let sense = match self.second_sense(&device.driver) {
            PlaceSense::Absent => Duration::ZERO,
            PlaceSense::Outlet(_) | PlaceSense::DebugPort | PlaceSense::Console => SENSE_TIMEOUT,
        };
        // It is told, and asked until it has settled; the last question may be as slow as any.
        let switch = (device.min_interval + device.timeout) * 2 + device.settle + sense;
        switch * 2 + self.off_time.unwrap_or(device.off_time)
    }

    /// Names the outlet: `outlet 3 of bench-pdu`.
    pub fn words(&self) -> String {
        match self.outlet.as_str() {
            "" => self.device.to_string(),
            outlet => format!("outlet {outlet} of {}", self.device),
        }
    }

    /// Returns the power sense, which is asked after the device itself (`driver`).
    ///
    /// Where none is named, a device that can be read back is its own power sense. For one that
    /// cannot, the sense is the board's debug port.
    pub fn second_sense(&self, driver: &PowerDriver) -> PlaceSense {
        match &self.sense {
            Some(named) => named.clone(),
            None if driver.reads_back() => PlaceSense::Absent,
            None => PlaceSense::DebugPort,
        }
    }
}

/// Power sense of a place: what observes its power beside the device that switches it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlaceSense {
    /// An outlet of another device that sees the same power, and is only read.
    Outlet(SenseOutlet),
    /// The board's debug port: what answers has power.
    DebugPort,
    /// The board's console transports: what prints has power.
    Console,
    /// Nothing.
    #[serde(rename = "none")]
    Absent,
}

/// An outlet that is only read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenseOutlet {
    /// The device.
    pub device: DeviceName,
    /// Its outlet; empty where the device has only one.
    pub outlet: String,
}

/// How it is known that an outlet did as it was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confirmation {
    /// The device took the command, and has no way to tell more.
    Accepted,
    /// The device was read back.
    ReadBack,
    /// Something beside the device has seen it, too.
    Sensed,
}
