//! The lowered rig: every place has a board that exists and a resource that fits.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::{
    ConsoleTransport, EmulatorPart, FlasherPart, KnowledgeSettings, ProbePart, ResetPart,
    ServeSettings,
};
use crate::access::AccessRules;
use crate::document::did_you_mean;
use crate::lease::LeasePolicy;
use crate::pattern::Pattern;
use crate::power::{PlacePower, PowerDevice};
use crate::profile::BoardProfile;
use crate::shell::ShellTable;
use crate::{BoardId, DeviceName, PlaceName, Strictness, TagName};

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
    /// Who goes first where several users want a place.
    pub leases: LeasePolicy,
    /// How the service runs.
    pub serve: ServeSettings,
    /// What is learnt by itself.
    pub knowledge: KnowledgeSettings,
    /// Who may do what at which places.
    pub access: AccessRules,
}

/// A hub whose own power can be switched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hub {
    /// Its name, as places name it.
    pub name: DeviceName,
    /// What switches its power.
    pub power: PlacePower,
}

/// One station of a rig: a board profile and the parts that make it real.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Its name.
    pub name: PlaceName,
    /// The profile of its board.
    pub board: BoardId,
    /// What it has in common with other places.
    pub tags: BTreeSet<TagName>,
    /// The emulator that is its board. It brings power, reset, consoles and a loader, so a
    /// place with one has no other part.
    pub emulator: Option<EmulatorPart>,
    /// The debug probe on its board.
    pub probe: Option<ProbePart>,
    /// What carries the consoles of its board, each console once.
    pub consoles: Vec<ConsoleTransport>,
    /// What switches its power.
    pub power: Option<PlacePower>,
    /// What resets it, where the place says so (see [`Place::reset_part`]).
    pub reset: Option<ResetPart>,
    /// How an image gets onto its board, where the place says so (see
    /// [`BoardProfile::deploy_at`]).
    pub flasher: Option<FlasherPart>,
    /// The hub that it hangs on with others.
    pub hub: Option<DeviceName>,
    /// The image that is known to work on its board.
    pub canary: Option<Canary>,
    /// The shell of its board, as far as the place says (see [`BoardProfile::shell_at`]).
    pub shell: Option<ShellTable>,
    /// Where it is reached over a network.
    pub network: Network,
    /// Which output has to be accounted for in each run and test on it.
    pub strict: Strictness,
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
    pub timeout: Duration,
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
                origin: profile.origin.clone(),
                emulator: Some(EmulatorPart::default()),
                ..Place::new(name, profile.id.clone())
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
