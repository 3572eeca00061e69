//! `jig boards`.

use std::collections::BTreeSet;

use jig_model::profile::BoardProfile;
use jig_model::rig_file::Resource;
use jig_model::{BoardId, exit};
use serde_json::{Value, json};

use crate::args::Common;
use crate::catalogue::Catalogue;
use crate::failure::Failure;
use crate::render::{Screen, Style, Table, one_line};

/// Lists places and profiles.
///
/// JSON: `{"places":[{"name","board","title","how","features","origin"}],
/// "profiles":[{"id","title","arch","how","features","origin"}]}`.
pub(crate) fn boards(common: &Common, screen: &Screen) -> Result<u8, Failure> {
    let catalogue = Catalogue::load(common)?;
    if screen.json() {
        screen.out_json(&as_json(&catalogue));
    } else {
        screen.out(&as_table(&catalogue).text(screen.out_paint()));
    }
    Ok(exit::PASS)
}

/// Says how a board without anything of its own is made real.
fn how(profile: &BoardProfile) -> String {
    match &profile.emulation {
        Some(emulation) => format!("{} {}", emulation.program, emulation.machine),
        None => "hardware".to_owned(),
    }
}

fn as_table(catalogue: &Catalogue) -> Table {
    let mut table = Table::new(&["PLACE", "BOARD", "HOW", "FROM", "TITLE", "FEATURES"]);
    let mut row = |place: Option<&str>, profile: &BoardProfile, how: String, origin: &str| {
        let features = profile.features.iter().map(String::as_str).collect::<Vec<_>>().join(",");
        table.row([
            (place.unwrap_or("-").to_owned(), place.map(|_| Style::Bold)),
            (profile.id.to_string(), None),
            (one_line(&how), None),
            (one_line(catalogue.near(origin)), Some(Style::Dim)),
            (one_line(&profile.title), None),
            (features, Some(Style::Dim)),
        ]);
    };
    let mut used: BTreeSet<&BoardId> = BTreeSet::new();
    for place in &catalogue.rig.places {
        let Some(profile) = catalogue.profiles.get(&place.board) else { continue };
        used.insert(&place.board);
        let Resource::Emulator(extra) = &place.resource;
        let how = match extra.args.len() {
            0 => how(profile),
            n => format!("{} +{n} args", how(profile)),
        };
        row(Some(place.name.as_str()), profile, how, &place.origin);
    }
    for profile in catalogue.profiles.values().filter(|profile| !used.contains(&profile.id)) {
        row(None, profile, how(profile), &profile.origin);
    }
    table
}

fn as_json(catalogue: &Catalogue) -> Value {
    let places = catalogue.rig.places.iter().filter_map(|place| {
        let profile = catalogue.profiles.get(&place.board)?;
        Some(json!({
            "name": place.name,
            "board": place.board,
            "title": profile.title,
            "how": place.resource,
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
