//! What hangs on a power device, and how its outlets are called.

use std::ops::RangeInclusive;
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
    /// Who else sees the power, if the rig file says so.
    pub sense: Option<PlaceSense>,
}

/// How long a power sense may take: five seconds to see it, and as long for a look.
const SENSE_TIMEOUT: Duration = Duration::from_secs(10);

impl PlacePower {
    /// Returns how long a power cycle may take at most, by the device's own times. Others who
    /// use the device at the same time are not counted.
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

    /// Returns who is asked after the device itself, which `driver` is.
    ///
    /// Where nobody is named, a device that can be read back is its own power sense. Of one that
    /// cannot, nothing is known but by the board's debug port.
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

/// How a kind of device calls its outlets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutletRule {
    /// It has one, which has no name.
    One,
    /// By number.
    Numbers(RangeInclusive<u32>),
    /// By the last numbers of an SNMP object's name, such as `3` or `1.3`.
    Dotted,
    /// By one character, `0` to `9` and then `A` to `V`, or two digits.
    Channel,
    /// By any word, such as `plug-3` or `/redfish/v1/Systems/1`.
    Word,
}

/// Longest name of an outlet: a Redfish path fits.
const MAX_OUTLET: usize = 128;

impl OutletRule {
    /// Tells whether a text names an outlet of such a device.
    ///
    /// A text that passes starts with no `-`, so it cannot become an option of a program, and
    /// holds nothing that hides on a terminal.
    pub fn fits(&self, outlet: &str) -> bool {
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            digits.then(|| text.parse::<u32>().ok()).flatten()
        };
        match self {
            Self::One => outlet.is_empty(),
            Self::Numbers(range) => number(outlet).is_some_and(|n| range.contains(&n)),
            Self::Dotted => {
                outlet.len() <= MAX_OUTLET && outlet.split('.').all(|part| number(part).is_some())
            }
            Self::Channel => match outlet.as_bytes() {
                [one] => one.is_ascii_digit() || (b'A'..=b'V').contains(one),
                [tens, ones] => tens.is_ascii_digit() && ones.is_ascii_digit(),
                _ => false,
            },
            Self::Word => {
                let inside = |b: u8| b.is_ascii_alphanumeric() || b"._:/-+@".contains(&b);
                let head = |b: &u8| b.is_ascii_alphanumeric() || *b == b'/';
                outlet.len() <= MAX_OUTLET
                    && outlet.as_bytes().first().is_some_and(head)
                    && outlet.bytes().all(inside)
            }
        }
    }

    /// Says what to write.
    pub fn help(&self) -> String {
        match self {
            Self::One => "such a device has one outlet: remove the line".to_owned(),
            Self::Numbers(range) => {
                format!("write a number from {} to {}: \"{0}\"", range.start(), range.end())
            }
            Self::Dotted => "write the last numbers of the object's name: \"3\" or \"1.3\"".into(),
            Self::Channel => "write \"0\" to \"9\", \"A\" to \"V\", or two digits".to_owned(),
            Self::Word => {
                "use letters, digits and `.`, `_`, `:`, `/`, `-`, a letter, digit or `/` first"
                    .to_owned()
            }
        }
    }
}
