//! `jig access`: what an identity may do at places, and by which rule.

use jig_lab::{AccessList, ListedAccess, RigQuery, RigView};
use jig_model::exit;
use serde_json::json;

use super::execute::unexpected;
use super::rig::view;
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
    let AccessCommand::Check(AccessCheckArgs { identity, board: place, right }) = command;
    let RigView::Access(AccessList { identity, groups, decisions }) =
        view(common, RigQuery::Access { identity, place, right })?
    else {
        return Err(unexpected());
    };
    if screen.json() {
        let row = |at: &ListedAccess| {
            let ListedAccess { place, right, allowed, why, .. } = at;
            json!({ "place": place, "right": right, "allowed": allowed, "why": why })
        };
        let rows: Vec<_> = decisions.iter().map(row).collect();
        screen.out_json(&json!({ "identity": identity, "groups": groups, "decisions": rows }));
    } else {
        let mut table = TextTable::new(&["PLACE", "RIGHT", "MAY", "WHY"]);
        for ListedAccess { place, right, allowed, near, .. } in &decisions {
            let (word, style) = if *allowed { ("yes", Style::Good) } else { ("no", Style::Bad) };
            table.row([
                (place.to_string(), None),
                (right.to_string(), None),
                (word.to_owned(), Some(style)),
                (one_line(near), None),
            ]);
        }
        screen.out(&table.text(screen.out_paint()));
    }
    let none = !decisions.is_empty() && decisions.iter().all(|at| !at.allowed);
    Ok(if none { exit::USAGE } else { exit::PASS })
}
