//! `jig probes`.

use jig_lab::{RigQuery, RigView};
use jig_model::exit;
use serde_json::json;

use crate::args::Common;
use crate::commands::execute::unexpected;
use crate::commands::rig::view;
use crate::failure::Failure;
use crate::render::{Screen, Style, TextTable, one_line};

/// Lists probes: those on the bus of the rig's host, and those that serve an emulated board.
///
/// JSON: `{"probes":[{"name","selector","kind","port","holder","accessible","place","chip"}]}`.
pub(crate) fn probes(common: &Common, screen: &Screen) -> Result<u8, Failure> {
    let RigView::Probes(probes) = view(common, RigQuery::Probes)? else {
        return Err(unexpected());
    };
    if screen.json() {
        screen.out_json(&json!({ "probes": probes }));
        return Ok(exit::PASS);
    }
    if probes.is_empty() {
        screen.out("no probe is attached");
        screen.say("an emulated board offers one: jig probe serve -b BOARD");
        return Ok(exit::PASS);
    }
    let mut table = TextTable::new(&["SELECTOR", "KIND", "PLACE", "CHIP", "HELD BY", "NAME"]);
    for probe in &probes {
        let text = |text: Option<&str>| one_line(text.unwrap_or("-"));
        table.row([
            (text(Some(&probe.selector)), Some(Style::Bold)),
            (text(Some(&probe.kind)), None),
            (text(probe.place.as_ref().map(|place| place.as_str())), None),
            (text(probe.chip.as_deref()), None),
            (text(probe.holder.as_deref()), Some(Style::Warn)),
            (text(Some(&probe.name)), Some(Style::Dim)),
        ]);
    }
    screen.out(&table.text(screen.out_paint()));
    Ok(exit::PASS)
}
