//! `jig access`: what an identity may do at places, and by which rule.

use std::collections::BTreeSet;

use jig_lab::Catalogue;
use jig_model::access::{AccessDecision, AccessRight};
use jig_model::exit;
use jig_rig::identity::groups_of;
use serde_json::json;

use crate::args::{AccessCheckArgs, AccessCommand, Common};
use crate::failure::Failure;
use crate::render::{Screen, Style, TextTable, one_line};

/// Tells what an identity may do. Ends with 2, as a refused command does, if it is none of what was asked.
///
/// JSON: `{"identity","groups","decisions":[{"place","right","allowed","why"}]}`.
pub(crate) fn access(
    common: &Common,
    screen: &Screen,
    command: AccessCommand,
) -> Result<u8, Failure> {
    let AccessCommand::Check(AccessCheckArgs { identity, board, right }) = command;
    let catalogue = Catalogue::load(&common.lab()?)?;
    let name = identity.unwrap_or_else(|| catalogue.user().identity.name.clone());
    let groups: BTreeSet<String> = groups_of(&name);
    let places = match &board {
        Some(board) => vec![catalogue.place(board)?.0],
        None => catalogue.visible_places().cloned().collect(),
    };
    let rights = right.map_or_else(|| AccessRight::ALL.to_vec(), |right| vec![right]);
    let (mut table, mut list) = (TextTable::new(&["PLACE", "RIGHT", "MAY", "WHY"]), Vec::new());
    for (place, right) in places.iter().flat_map(|at| rights.iter().map(move |right| (at, *right)))
    {
        let (may, why) = match catalogue.decide_for(&name, &groups, Some(right), place) {
            AccessDecision::Allowed(basis) => (true, basis.to_string()),
            AccessDecision::Denied(denial) => (false, denial.to_string()),
        };
        let (word, style) = if may { ("yes", Style::Good) } else { ("no", Style::Bad) };
        table.row([
            (place.name.to_string(), None),
            (right.to_string(), None),
            (word.to_owned(), Some(style)),
            (one_line(catalogue.near(&why)), None),
        ]);
        let place = &place.name;
        list.push(json!({ "place": place, "right": right, "allowed": may, "why": why }));
    }
    let none = !list.is_empty() && list.iter().all(|row| row["allowed"] == false);
    if screen.json() {
        screen.out_json(&json!({ "identity": name, "groups": groups, "decisions": list }));
    } else {
        screen.out(&table.text(screen.out_paint()));
    }
    Ok(if none { exit::USAGE } else { exit::PASS })
}
