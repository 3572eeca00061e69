//! `jig boards`.

use std::collections::BTreeSet;

use jig_lab::{BoardList, ListedPlace, ListedProfile, RigQuery, RigView};
use jig_model::{BoardId, exit};
use jig_rig::health::HealthState;
use serde_json::{Value, json};

use super::execute::unexpected;
use super::health::style;
use super::rig::view;
use crate::args::Common;
use crate::failure::Failure;
use crate::render::{Screen, Style, TextTable, one_line};

/// Lists places and profiles.
///
/// JSON: `{"places":[{"name","board","title","how","shell","deploy","canary","health",
/// "features","origin"}],"profiles":[{"id","title","arch","how","features","origin"}]}`; `how` has the parts
/// of the place, by their names in a rig file, and `shell` says in words how commands reach its
/// board. A place without a canary of its own has null there;
/// so has `deploy` where nothing puts an image on the board, and health that cannot be read.
pub(crate) fn boards(common: &Common, screen: &Screen) -> Result<u8, Failure> {
    let RigView::Boards(list) = view(common, RigQuery::Boards)? else { return Err(unexpected()) };
    if screen.json() {
        screen.out_json(&as_json(&list));
    } else {
        screen.out(&as_table(&list).text(screen.out_paint()));
    }
    Ok(exit::PASS)
}

fn as_table(list: &BoardList) -> TextTable {
    let mut table = TextTable::new(&["PLACE", "BOARD", "HOW", "FROM", "TITLE", "FEATURES"]);
    let mut used: BTreeSet<&BoardId> = BTreeSet::new();
    for place in &list.places {
        used.insert(&place.board);
        let ListedPlace { name, board, title, made_of, shell, health, features, near, .. } = place;
        let shell = shell.iter().map(|shell| format!(", shell by {shell}"));
        let made_of = format!("{made_of}{}", shell.collect::<String>());
        // A place that is well is not worth a word.
        let ill = health.filter(|state| *state != HealthState::Healthy);
        let how = ill.map_or_else(|| made_of.clone(), |state| format!("{made_of}, {state}"));
        table.row([
            (name.to_string(), Some(Style::Bold)),
            (board.to_string(), None),
            (one_line(&how), ill.map(style)),
            (one_line(near), Some(Style::Dim)),
            (one_line(title), None),
            (one_line(&features.join(",")), Some(Style::Dim)),
        ]);
    }
    for profile in list.profiles.iter().filter(|profile| !used.contains(&profile.id)) {
        let ListedProfile { id, title, made_of, features, near, .. } = profile;
        table.row([
            ("-".to_owned(), None),
            (id.to_string(), None),
            (one_line(made_of), None),
            (one_line(near), Some(Style::Dim)),
            (one_line(title), None),
            (one_line(&features.join(",")), Some(Style::Dim)),
        ]);
    }
    table
}

pub(super) fn as_json(list: &BoardList) -> Value {
    let places = list.places.iter().map(|place| {
        json!({
            "name": place.name,
            "board": place.board,
            "title": place.title,
            "how": place.parts,
            "shell": place.shell,
            "deploy": place.deploy,
            "canary": place.canary,
            "health": place.health,
            "features": place.features,
            "origin": place.origin,
        })
    });
    let profiles = list.profiles.iter().map(|profile| {
        json!({
            "id": profile.id,
            "title": profile.title,
            "arch": profile.arch,
            "how": profile.made_of,
            "features": profile.features,
            "origin": profile.origin,
        })
    });
    json!({
        "places": places.collect::<Vec<Value>>(),
        "profiles": profiles.collect::<Vec<Value>>(),
    })
}
