//! Boards and places.

use std::path::PathBuf;
use std::sync::Arc;

use jig_model::profile::{Arch, BoardProfile, Deploy, DeployMethod};
use jig_model::rig_file::Place;
use jig_model::{BoardId, PlaceName, chain};
use jig_rig::health::{HealthState, HealthStore};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::shell_answer::ways;
use crate::{Catalogue, health_subject};

/// Boards and places of a rig.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoardList {
    /// The places, in the order of the rig file.
    pub places: Vec<ListedPlace>,
    /// The profiles of boards, by their names.
    pub profiles: Vec<ListedProfile>,
}

/// A place of a listing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedPlace {
    /// Its name.
    pub name: PlaceName,
    /// The kind of its board.
    pub board: BoardId,
    /// What its board is called.
    pub title: String,
    /// Its parts, by their names in a rig file.
    pub parts: Value,
    /// Its parts in a few words.
    pub made_of: String,
    /// How the shell of its board is reached, if it has one.
    #[serde(default)]
    pub shell: Option<String>,
    /// What puts an image on its board, if something does.
    pub deploy: Option<DeployMethod>,
    /// The image that proves the place, if the rig file names one.
    pub canary: Option<PathBuf>,
    /// Its health; nothing where that cannot be read.
    pub health: Option<HealthState>,
    /// What its board has.
    pub features: Vec<String>,
    /// The file that says so.
    pub origin: String,
    /// The same file, shortened where it lies below the folder of the process that looked.
    pub near: String,
}

/// A profile of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedProfile {
    /// The kind of board.
    pub id: BoardId,
    /// What it is called.
    pub title: String,
    /// Its architecture.
    pub arch: Arch,
    /// What makes such a board real, in a few words.
    pub made_of: String,
    /// What it has.
    pub features: Vec<String>,
    /// The file that says so.
    pub origin: String,
    /// The same file, shortened where it lies below the folder of the process that looked.
    pub near: String,
}

impl BoardList {
    /// Lists the boards and places of a catalogue.
    pub(super) fn of(catalogue: &Catalogue) -> Self {
        let health = KnownHealth::read(catalogue);
        let features = |profile: &BoardProfile| profile.features.iter().cloned().collect();
        let near = |origin: &str| catalogue.near(origin).to_owned();
        let places = catalogue.visible_places().filter_map(|place| {
            let profile = catalogue.profiles.get(&place.board)?;
            Some(ListedPlace {
                name: place.name.clone(),
                board: place.board.clone(),
                title: profile.title.clone(),
                parts: parts(place),
                made_of: at_place(profile, place),
                shell: profile.shell_at(place).map(|shell| ways(&shell)),
                deploy: profile.deploy_at(place).map(|deploy| deploy.method()),
                canary: catalogue.canary(place).map(|canary| canary.image),
                health: health.of(place),
                features: features(profile),
                near: near(&place.origin),
                origin: place.origin.clone(),
            })
        });
        let profiles = catalogue.profiles.values().map(|profile| ListedProfile {
            id: profile.id.clone(),
            title: profile.title.clone(),
            arch: profile.arch,
            made_of: how(profile),
            features: features(profile),
            near: near(&profile.origin),
            origin: profile.origin.clone(),
        });
        Self { places: places.collect(), profiles: profiles.collect() }
    }
}

/// What is known of the health of places.
enum KnownHealth {
    /// No health has been recorded yet.
    Blank,
    Store(Arc<HealthStore>),
    Unreadable,
}

impl KnownHealth {
    /// Opens the store, if there is one: a list of boards begins none.
    fn read(catalogue: &Catalogue) -> Self {
        let path = catalogue.health_store();
        if !path.exists() {
            return Self::Blank;
        }
        catalogue.stores().health(&path).map_or_else(
            |error| {
                tracing::warn!(error = chain(&error), "the health of places is not shown");
                Self::Unreadable
            },
            Self::Store,
        )
    }

    fn of(&self, place: &Place) -> Option<HealthState> {
        match self {
            Self::Blank => Some(HealthState::Healthy),
            Self::Store(store) => {
                store.of_by(&health_subject(place), &place.name).ok().map(|health| health.state)
            }
            Self::Unreadable => None,
        }
    }
}

/// Says how a board without anything of its own is made real.
fn how(profile: &BoardProfile) -> String {
    match &profile.emulation {
        Some(emulation) => format!("{} {}", emulation.program, emulation.machine),
        None => "hardware".to_owned(),
    }
}

/// Says what a place is made of, and how an image gets onto its board where that is not the usual
/// way.
fn at_place(profile: &BoardProfile, place: &Place) -> String {
    let mut parts = Vec::new();
    let usual = match &place.emulator {
        Some(extra) => {
            parts.push(match extra.args.len() {
                0 => how(profile),
                n => format!("{} +{n} args", how(profile)),
            });
            [DeployMethod::EmulatorLoader, DeployMethod::ImageSet].as_slice()
        }
        None => [DeployMethod::Probe].as_slice(),
    };
    parts.extend(place.probe.as_ref().map(|probe| format!("probe {}", probe.selector)));
    if !place.is_emulated() && !place.has_probe() {
        parts.extend(place.consoles.iter().map(|c| format!("{} {}", c.console, c.end.key())));
        parts.extend(place.power.as_ref().map(|power| format!("power {}", power.device)));
        parts.extend(place.network.ssh.as_ref().map(|at| format!("ssh {at}")));
    }
    let deploy = profile.deploy_at(place).filter(|deploy| !usual.contains(&deploy.method()));
    parts.extend(deploy.map(|deploy| {
        let by = match &deploy {
            Deploy::Command(command) => command.argv.first().map_or("command", String::as_str),
            Deploy::Volume(_) | Deploy::Probe | Deploy::EmulatorLoader | Deploy::ImageSet => {
                deploy.method().as_str()
            }
        };
        format!("deploy by {by}")
    }));
    parts.extend(place.canary.as_ref().map(|_| "canary".to_owned()));
    parts.join(", ")
}

/// Returns the parts that a place has.
fn parts(place: &Place) -> Value {
    let mut parts = serde_json::Map::new();
    let mut add = |name: &str, part: Option<Value>| {
        parts.extend(part.map(|part| (name.to_owned(), part)));
    };
    add("emulator", place.emulator.as_ref().map(|part| json!(part)));
    add("probe", place.probe.as_ref().map(|part| json!(part)));
    add("consoles", Some(json!(place.consoles)).filter(|_| !place.consoles.is_empty()));
    add("power", place.power.as_ref().map(|part| json!(part)));
    add("reset", place.reset_part().map(|part| json!(part)));
    add("flasher", place.flasher.as_ref().map(|part| json!(part)));
    let reached = place.network.tcp.is_some() || place.network.ssh.is_some();
    add("network", Some(json!(place.network)).filter(|_| reached));
    Value::Object(parts)
}

#[cfg(test)]
mod tests {
    use jig_model::power::PlacePower;
    use jig_model::profile::FaultSets;
    use jig_model::rig_file::{
        Canary, ConsoleTransport, EmulatorDeploy, EmulatorPart, Endpoint, ProbePart,
    };

    use super::*;

    #[test]
    fn a_place_says_how_its_board_is_made_real_and_flashed() {
        let text = |deploy: &str| {
            format!(
                "version = 1\nid = \"b\"\ntitle = \"B\"\narch = \"arm\"\nchip = \"C\"\n\
                 console = [{{ name = \"u\", kind = \"uart\" }}]\n{deploy}\n[emulation]\n\
                 program = \"qemu\"\nmachine = \"m\"\nimage_args = [\"{{image}}\"]\n"
            )
        };
        let place = || Place::new("p".parse().unwrap(), "b".parse().unwrap());
        let emulator = |deploy, args: &[&str]| {
            let args = args.iter().map(|&arg| arg.to_owned()).collect();
            place().with_emulator(EmulatorPart { args, deploy })
        };
        let selector = "1:2:3".to_owned();
        let probe = place().with_probe(ProbePart { selector, ..Default::default() });
        let console = ConsoleTransport {
            console: "u".parse().unwrap(),
            end: Endpoint::Tty("/dev/ttyUSB0".to_owned()),
            baud: None,
            timeout: None,
            ready: None,
            capture: None,
        };
        let power = PlacePower {
            device: "pdu".parse().unwrap(),
            outlet: "3".to_owned(),
            off_time: None,
            sense: None,
        };
        let bare = Place { consoles: vec![console], power: Some(power), ..place() };
        let canary =
            Canary { image: "ok.elf".into(), until: None, timeout: std::time::Duration::ZERO };
        let command = "deploy = { method = \"command\", argv = [\"dfu-util\", \"{image}\"] }";
        for (deploy, place, wanted) in [
            ("", emulator(None, &["-x"]), "qemu m +1 args"),
            ("", emulator(Some(EmulatorDeploy::Probe), &[]), "qemu m, deploy by probe"),
            ("", probe.clone(), "probe 1:2:3"),
            (command, probe, "probe 1:2:3, deploy by dfu-util"),
            (command, emulator(None, &[]), "qemu m"),
            ("", bare.clone(), "u tty, power pdu"),
            (command, bare, "u tty, power pdu, deploy by dfu-util"),
        ] {
            let sets = FaultSets::parse(std::iter::empty()).unwrap_or_else(|p| panic!("{}", p[0]));
            let profile = BoardProfile::parse("b.toml", &text(deploy), &sets)
                .unwrap_or_else(|problems| panic!("{problems}"));
            assert_eq!(at_place(&profile, &place), wanted);
            let place = Place { canary: Some(canary.clone()), ..place };
            assert_eq!(at_place(&profile, &place), format!("{wanted}, canary"));
        }
    }
}
