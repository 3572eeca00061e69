//! The parts of a place: each optional, each bound by a factory of its own.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::debug::WireProtocol;
use crate::document::Choice;
use crate::flasher::VolumeChoice;
use crate::power::PlacePower;
use crate::profile::FlashCommand;
use crate::{ConsoleName, PlaceName};

/// How a place's emulator differs from the profile's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct EmulatorPart {
    /// Arguments after those of the profile. Without placeholders.
    pub args: Vec<String>,
    /// How an image gets onto the board, if the place says so.
    pub deploy: Option<EmulatorDeploy>,
}

/// How an image gets onto an emulated board.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EmulatorDeploy {
    /// By a virtual debug probe, with the same code as onto a real board.
    Probe,
    /// By the emulator itself when it starts.
    Loader,
}

impl Choice for EmulatorDeploy {
    const WHAT: &'static str = "way to deploy to an emulated board";
    const CHOICES: &'static [(&'static str, Self)] =
        &[("probe", Self::Probe), ("loader", Self::Loader)];
}

/// A debug probe with a real board on it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ProbePart {
    /// Which probe: `VID:PID`, `VID:PID:SERIAL` or `VID:PID-INTERFACE:SERIAL`, in hex.
    pub selector: String,
    /// The chip, by the name probe-rs knows it by, where it differs from the profile's.
    pub chip: Option<String>,
    /// Speed of the debug wire in kHz, if not the probe's own default.
    pub speed_khz: Option<u32>,
    /// Protocol of the debug wire, if not the chip's preferred one.
    pub protocol: Option<WireProtocol>,
    /// Whether the chip is held in reset while the probe attaches.
    pub under_reset: bool,
    /// Path of the serial port that a flasher is told.
    pub port: Option<String>,
}

/// A transport to a console of a real board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConsoleTransport {
    /// The console, as the board's profile names it.
    pub console: ConsoleName,
    /// What it is connected to.
    pub end: Endpoint,
    /// Speed in bits per second, where it is not the profile's.
    pub baud: Option<u32>,
    /// How long the other end may take to be there and to come back, if the place says so.
    pub timeout: Option<Duration>,
    /// What a line holds by which a program says that it is connected; nothing where it says
    /// nothing, and at all other ends.
    pub ready: Option<String>,
    /// The capture service that holds the transport between runs and lends it; set by the code that
    /// binds the place, never by a file.
    #[serde(skip)]
    pub capture: Option<CaptureClient>,
}

/// Where to ask for a transport that another program may keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureClient {
    /// The capture service's socket; no process may listen there.
    pub socket: PathBuf,
    /// The place that the transport belongs to.
    pub place: PlaceName,
    /// Name of the asking command, for people.
    pub by: String,
}

/// Where a console's transport ends at this host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Endpoint {
    /// At a serial port, by the path of its device.
    Tty(String),
    /// At a server that passes bytes on as they are: `HOST:PORT`.
    Tcp(String),
    /// At a server that speaks RFC 2217: `HOST:PORT`.
    Rfc2217(String),
    /// At a socket of this host, by its path.
    Unix(String),
    /// At the standard input and output of a program: it and its arguments, one by one.
    Command(Vec<String>),
}

impl Endpoint {
    /// Tells whether it is a serial port, which has modem lines and breaks.
    pub fn has_lines(&self) -> bool {
        match self {
            Self::Tty(_) | Self::Rfc2217(_) => true,
            Self::Tcp(_) | Self::Unix(_) | Self::Command(_) => false,
        }
    }

    /// Returns the kind, as rig files name it.
    pub fn key(&self) -> &'static str {
        match self {
            Self::Tty(_) => "tty",
            Self::Tcp(_) => "tcp",
            Self::Rfc2217(_) => "rfc2217",
            Self::Unix(_) => "unix",
            Self::Command(_) => "command",
        }
    }

    /// Returns the path, the address, or the program with its arguments.
    pub fn address(&self) -> Cow<'_, str> {
        match self {
            Self::Tty(at) | Self::Tcp(at) | Self::Rfc2217(at) | Self::Unix(at) => at.into(),
            Self::Command(argv) => argv.join(" ").into(),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.address())
    }
}

impl ProbePart {
    /// Returns the probe's serial number, if the selector names one.
    pub fn serial(&self) -> Option<&str> {
        self.selector.splitn(3, ':').nth(2).filter(|serial| !serial.is_empty())
    }

    /// Tells whether a selector may mean this probe: the same kind, and no other serial number.
    pub fn may_mean(&self, selector: &str) -> bool {
        let (own, other) = (selector_parts(&self.selector), selector_parts(selector));
        let same_kind = own.0.is_some() && own.0 == other.0;
        let serials = own.1.zip(other.1);
        same_kind && serials.is_none_or(|(one, other)| one.eq_ignore_ascii_case(other))
    }

    /// Tells whether the probe is one that a program offers by a socket, not by USB.
    pub fn is_served(&self) -> bool {
        self.serial().is_some_and(|at| at.starts_with("unix:") || at.starts_with("tcp:"))
    }
}

/// Splits a selector into vendor and product, and the serial number if there is one.
fn selector_parts(selector: &str) -> (Option<(u16, u16)>, Option<&str>) {
    let mut parts = selector.splitn(3, ':');
    let vendor = parts.next().and_then(|text| u16::from_str_radix(text, 16).ok());
    let product = parts.next().and_then(|text| {
        let id = text.split_once('-').map_or(text, |(id, _)| id);
        u16::from_str_radix(id, 16).ok()
    });
    (vendor.zip(product), parts.next().filter(|serial| !serial.is_empty()))
}

/// What resets the board of a place, where the place says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResetPart {
    /// The debug probe.
    Probe,
    /// The power: it is cut and given back.
    Power,
    /// A control line of a console's serial port.
    Line {
        /// The console.
        console: ConsoleName,
        /// The line that holds the board in reset while it is asserted.
        line: ResetLine,
    },
    /// An outlet of a power device that holds the board in reset while it is off: a GPIO, a
    /// relay contact.
    Outlet(PlacePower),
    /// A program that resets the board and ends.
    Command(ResetCommand),
}

/// A control line of a serial port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResetLine {
    /// "Request to send".
    Rts,
    /// "Data terminal ready".
    Dtr,
}

/// A program that resets a board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ResetCommand {
    /// Program and arguments, one each and never a shell line.
    pub argv: Vec<String>,
    /// How long it may take.
    pub timeout: Duration,
}

/// How an image gets onto the board of a place, where the place says so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FlasherPart {
    /// The program that flashes the board; the profile's if missing.
    pub command: Option<FlashCommand>,
    /// The volume that the image is copied to, instead of a program.
    pub volume: Option<VolumeChoice>,
    /// Path of the serial port that it is told as `{port}`.
    pub port: Option<String>,
}
