//! `jig boards`.

use std::collections::BTreeSet;

use jig_lab::{Catalogue, health_policy};
use jig_model::profile::{BoardProfile, Deploy, DeployMethod};
use jig_model::rig_file::{Place, Resource};
use jig_model::{BoardId, exit};
use jig_rig::health::{HealthState, HealthStore};
use serde_json::{Value, json};

use super::health::style;
use crate::args::Common;
use crate::failure::{Failure, chain};
use crate::render::{Screen, Style, Table, one_line};

/// Lists places and profiles.
///
/// JSON: `{"places":[{"name","board","title","how","deploy","canary","health","features",
/// "origin"}],"profiles":[{"id","title","arch","how","features","origin"}]}`; a place without a
/// canary of its own has null there, and health that cannot be read is null.
pub(crate) fn boards(common: &Common, screen: &Screen) -> Result<u8, Failure> {
    let catalogue = Catalogue::load(&common.lab())?;
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
    /// Nobody has noted anything yet.
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

/// Says how a place makes its board real, and how an image gets onto it where that is not
/// what everybody expects.
fn at_place(profile: &BoardProfile, resource: &Resource, canary: bool) -> String {
    let (mut text, usual) = match resource {
        Resource::Emulator(extra) => {
            let text = match extra.args.len() {
                0 => how(profile),
                n => format!("{} +{n} args", how(profile)),
            };
            (text, [DeployMethod::EmulatorLoader, DeployMethod::ImageSet].as_slice())
        }
        Resource::Probe(probe) => {
            (format!("probe {}", probe.selector), [DeployMethod::Probe].as_slice())
        }
    };
    let deploy = profile.deploy_on(resource);
    if !usual.contains(&deploy.method()) {
        let by = match &deploy {
            Deploy::Command(command) => command.argv.first().map_or("command", String::as_str),
            Deploy::Probe | Deploy::EmulatorLoader | Deploy::ImageSet => deploy.method().as_str(),
        };
        text = format!("{text}, deploy by {by}");
    }
    if canary {
        text += ", canary";
    }
    text
}

fn as_table(catalogue: &Catalogue, health: &Health) -> Table {
    let mut table = Table::new(&["PLACE", "BOARD", "HOW", "FROM", "TITLE", "FEATURES"]);
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
        let how = at_place(profile, &place.resource, place.canary.is_some());
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
            "how": place.resource,
            "deploy": profile.deploy_on(&place.resource).method(),
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
    use jig_model::profile::FaultSets;
    use jig_model::rig_file::{EmulatorDeploy, EmulatorResource, ProbeResource};

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
        let emulator = |deploy, args: &[&str]| {
            let args = args.iter().map(|&arg| arg.to_owned()).collect();
            Resource::Emulator(EmulatorResource { args, deploy })
        };
        let probe =
            Resource::Probe(ProbeResource { selector: "1:2:3".to_owned(), ..Default::default() });
        let command = "deploy = { method = \"command\", argv = [\"dfu-util\", \"{image}\"] }";
        for (deploy, resource, wanted) in [
            ("", emulator(None, &["-x"]), "qemu m +1 args"),
            ("", emulator(Some(EmulatorDeploy::Probe), &[]), "qemu m, deploy by probe"),
            ("", probe.clone(), "probe 1:2:3"),
            (command, probe, "probe 1:2:3, deploy by dfu-util"),
            (command, emulator(None, &[]), "qemu m"),
        ] {
            let sets = FaultSets::parse(std::iter::empty()).unwrap_or_else(|p| panic!("{}", p[0]));
            let profile = BoardProfile::parse("b.toml", &text(deploy), &sets)
                .unwrap_or_else(|problems| panic!("{problems}"));
            assert_eq!(at_place(&profile, &resource, false), wanted);
            assert_eq!(at_place(&profile, &resource, true), format!("{wanted}, canary"));
        }
    }
}
