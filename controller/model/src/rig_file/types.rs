//! The lowered rig: every place has a board that exists and a resource that fits.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::document::did_you_mean;
use crate::pattern::Pattern;
use crate::power::{PlacePower, PowerDevice};
use crate::profile::BoardProfile;
use crate::{BoardId, ConsoleName, DeviceName, PlaceName};

/// A rig: what there is to run on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Rig {
    /// The places, in the order of the files. Names are unique.
    pub places: Vec<Place>,
    /// The devices that switch the power of places. Names are unique.
    pub power: Vec<PowerDevice>,
    /// Hubs whose own power can be switched. Names are unique.
    pub hubs: Vec<Hub>,
    /// Where runs are kept.
    pub runs: RunStorage,
    /// How much is kept of what consoles print between runs.
    pub capture: CaptureLimits,
}

/// A hub whose own power can be switched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hub {
    /// Its name, as places name it.
    pub name: DeviceName,
    /// What switches its power.
    pub power: PlacePower,
}

/// One station of a rig: a board profile bound to what makes it real.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Its name.
    pub name: PlaceName,
    /// The profile of its board.
    pub board: BoardId,
    /// What makes it real.
    pub resource: Resource,
    /// What switches its power, if anything does. An emulated board has its emulator.
    pub power: Option<PlacePower>,
    /// The hub that it hangs on with others.
    pub hub: Option<DeviceName>,
    /// The image that is known to work on its board.
    pub canary: Option<Canary>,
    /// Where it is reached over a network.
    pub network: Network,
    /// Where it was declared: a path, or the profile's origin.
    pub origin: String,
}

/// Where a place is reached over a network while it has power, each as `HOST:PORT`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Network {
    /// A server that accepts connections.
    pub tcp: Option<String>,
    /// A server that says which SSH it speaks.
    pub ssh: Option<String>,
}

/// An image that is known to work on a place's board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Canary {
    /// The file; as written in the rig file, and relative to it.
    pub image: PathBuf,
    /// The text it prints when it works; its test report otherwise.
    pub until: Option<Pattern>,
    /// How long it may take.
    pub within: Duration,
}

/// Something of the rig that a place is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    /// An emulator, started as the profile says.
    Emulator(EmulatorResource),
    /// A debug probe with a real board on it.
    Probe(ProbeResource),
}

/// How a place's emulator differs from the profile's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct EmulatorResource {
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

/// A debug probe with a real board on it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ProbeResource {
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
    /// Wires to consoles of the board, each console once.
    pub wires: Vec<ConsoleWire>,
}

/// A wire to a console of a real board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConsoleWire {
    /// The console, as the board's profile names it.
    pub console: ConsoleName,
    /// What it is connected to.
    pub end: WireEnd,
    /// Speed in bits per second, where it is not the profile's.
    pub baud: Option<u32>,
    /// How long the other end may take to be there and to come back, if the place says so.
    pub timeout: Option<Duration>,
    /// What a line holds by which a program says that it is connected; nothing where it says
    /// nothing, and at all other ends.
    pub ready: Option<String>,
    /// Who keeps the wire between runs and is asked for it; said by whoever binds the place,
    /// never by a file.
    #[serde(skip)]
    pub keeper: Option<KeeperSeat>,
}

/// Where to ask for a wire that another program may keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeeperSeat {
    /// The keeper's socket; nobody may listen there.
    pub socket: PathBuf,
    /// The place that the wire belongs to.
    pub place: PlaceName,
    /// Who asks, for people.
    pub by: String,
}

/// Where a console's wire ends at this host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WireEnd {
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

impl WireEnd {
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

impl fmt::Display for WireEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.address())
    }
}

impl ProbeResource {
    /// Returns the probe's serial number, if the selector names one.
    pub fn serial(&self) -> Option<&str> {
        self.selector.splitn(3, ':').nth(2).filter(|serial| !serial.is_empty())
    }

    /// Tells whether the probe is one that a program offers by a socket, not by USB.
    pub fn is_served(&self) -> bool {
        self.serial().is_some_and(|at| at.starts_with("unix:") || at.starts_with("tcp:"))
    }

    /// Returns a console's wire, if it has one here.
    pub fn wire(&self, console: &ConsoleName) -> Option<&ConsoleWire> {
        self.wires.iter().find(|wire| wire.console == *console)
    }
}

/// Protocol of a debug wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WireProtocol {
    /// Two wires, Arm's own.
    Swd,
    /// Four wires, IEEE 1149.1.
    Jtag,
}

/// Where runs are kept, and for how long.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RunStorage {
    /// The directory, as written; relative to the file in `origin`.
    pub dir: Option<PathBuf>,
    /// Runs older than this are removed.
    pub keep: Option<Duration>,
    /// The oldest runs are removed while all together take more bytes.
    pub keep_size: Option<u64>,
    /// The file that says so, if one does.
    pub origin: Option<String>,
}

/// How much is kept of what a console prints between runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CaptureLimits {
    /// A file of the log is followed by the next one at this size, in bytes.
    pub file_size: u64,
    /// And at this age, if anything stands in it.
    pub file_age: Duration,
    /// The oldest files are removed while those of one console together take more bytes.
    pub keep_size: u64,
    /// Files whose last byte is older are removed.
    pub keep: Duration,
    /// The file that says so, if one does.
    pub origin: Option<String>,
}

impl Default for CaptureLimits {
    /// A day and a half of a console at 115200 baud that never rests takes 1 GiB; most are
    /// silent most of the time, and 256 MiB are then weeks.
    fn default() -> Self {
        Self {
            file_size: 16 << 20,
            file_age: Duration::from_secs(86_400),
            keep_size: 256 << 20,
            keep: Duration::from_secs(14 * 86_400),
            origin: None,
        }
    }
}

/// Says that no place has a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no place {name:?}")]
pub struct UnknownPlace {
    /// The name.
    pub name: String,
    /// What to do next.
    pub help: String,
}

impl Rig {
    /// Returns the rig of a machine without a rig file: every board that can be emulated is
    /// a place of its own name.
    pub fn of_profiles<'p>(profiles: impl IntoIterator<Item = &'p BoardProfile>) -> Self {
        let place = |profile: &BoardProfile| {
            // Both names follow the same rule, so this drops none.
            let name = profile.id.as_str().parse().ok()?;
            profile.emulation.is_some().then(|| Place {
                name,
                board: profile.id.clone(),
                resource: Resource::Emulator(EmulatorResource::default()),
                power: None,
                hub: None,
                canary: None,
                network: Network::default(),
                origin: profile.origin.clone(),
            })
        };
        let places = profiles.into_iter().filter_map(place).collect();
        Self { places, ..Self::default() }
    }

    /// Finds a place by its name.
    ///
    /// # Errors
    /// Names the nearest place, or all.
    pub fn place(&self, name: &str) -> Result<&Place, UnknownPlace> {
        self.places.iter().find(|place| place.name.as_str() == name).ok_or_else(|| {
            let known = self.places.iter().map(|place| place.name.as_str());
            UnknownPlace { name: name.chars().take(64).collect(), help: did_you_mean(name, known) }
        })
    }
}
