//! `jig boards`.

use std::collections::BTreeSet;

use jig_lab::{Catalogue, health_policy};
use jig_model::profile::{BoardProfile, Deploy, DeployMethod};
use jig_model::rig_file::Place;
use jig_model::{BoardId, exit};
use jig_rig::health::{HealthState, HealthStore};
use serde_json::{Value, json};

use super::health::style;
use crate::args::Common;
use crate::failure::{Failure, chain};
use crate::render::{Screen, Style, TextTable, one_line};

/// Lists places and profiles.
///
/// JSON: `{"places":[{"name","board","title","how","deploy","canary","health","features",
/// "origin"}],"profiles":[{"id","title","arch","how","features","origin"}]}`; `how` has the parts
/// of the place, by their names in a rig file. A place without a canary of its own has null there;
/// so has `deploy` where nothing puts an image on the board, and health that cannot be read.
pub(crate) fn boards(common: &Common, screen: &Screen) -> Result<u8, Failure> {
    let catalogue = Catalogue::load(&common.lab()?)?;
    let health = Health::read(&catalogue);
    if screen.json() {
        screen.out_json(&as_json(&catalogue, &health));
    } else {
        screen.out(&as_table(&catalogue, &health).text(screen.out_paint()));
    }
    Ok(exit::PASS)
}

/// What is known of the health of places.
enum Health {
    /// No health has been recorded yet.
    Blank,
    Store(HealthStore),
    Unreadable,
}

impl Health {
    /// Opens the store, if there is one: a list of boards begins none.
    fn read(catalogue: &Catalogue) -> Self {
        let path = catalogue.health_store();
        if !path.exists() {
            return Self::Blank;
        }
        HealthStore::open(&path).map_or_else(
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
                store.of_by(&health_policy(place), &place.name).ok().map(|health| health.state)
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
            Deploy::Probe | Deploy::EmulatorLoader | Deploy::ImageSet => deploy.method().as_str(),
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

fn as_table(catalogue: &Catalogue, health: &Health) -> TextTable {
    let mut table = TextTable::new(&["PLACE", "BOARD", "HOW", "FROM", "TITLE", "FEATURES"]);
    let mut row = |place: Option<&Place>, profile: &BoardProfile, how: String, origin: &str| {
        let features = profile.features.iter().map(String::as_str).collect::<Vec<_>>().join(",");
        // A place that is well is not worth a word.
        let ill = place.and_then(|place| health.of(place)).filter(|s| *s != HealthState::Healthy);
        let how = ill.map_or_else(|| how.clone(), |state| format!("{how}, {state}"));
        table.row([
            (place.map_or("-", |p| p.name.as_str()).to_owned(), place.map(|_| Style::Bold)),
            (profile.id.to_string(), None),
            (one_line(&how), ill.map(style)),
            (one_line(catalogue.near(origin)), Some(Style::Dim)),
            (one_line(&profile.title), None),
            (features, Some(Style::Dim)),
        ]);
    };
    let mut used: BTreeSet<&BoardId> = BTreeSet::new();
    for place in &catalogue.rig.places {
        let Some(profile) = catalogue.profiles.get(&place.board) else { continue };
        used.insert(&place.board);
        let how = at_place(profile, place);
        row(Some(place), profile, how, &place.origin);
    }
    for profile in catalogue.profiles.values().filter(|profile| !used.contains(&profile.id)) {
        row(None, profile, how(profile), &profile.origin);
    }
    table
}

fn as_json(catalogue: &Catalogue, health: &Health) -> Value {
    let places = catalogue.rig.places.iter().filter_map(|place| {
        let profile = catalogue.profiles.get(&place.board)?;
        Some(json!({
            "name": place.name,
            "board": place.board,
            "title": profile.title,
            "how": parts(place),
            "deploy": profile.deploy_at(place).map(|deploy| deploy.method()),
            "canary": catalogue.canary(place).map(|canary| canary.image),
            "health": health.of(place),
            "features": profile.features,
            "origin": place.origin,
        }))
    });
    let profiles = catalogue.profiles.values().map(|profile| {
        json!({
            "id": profile.id,
            "title": profile.title,
            "arch": profile.arch,
            "how": how(profile),
            "features": profile.features,
            "origin": profile.origin,
        })
    });
    json!({
        "places": places.collect::<Vec<Value>>(),
        "profiles": profiles.collect::<Vec<Value>>(),
    })
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
