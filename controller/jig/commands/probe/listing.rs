//! `jig probes`.

use jig_lab::{Catalogue, ServedPlace, served_places};
use jig_model::exit;
use jig_probe::list_probes;
use serde_json::json;

use crate::args::Common;
use crate::commands::runtime::runtime;
use crate::failure::Failure;
use crate::render::{Screen, Style, TextTable, one_line};

/// Lists probes: those on this machine's bus, and those that serve an emulated board.
///
/// JSON: `{"probes":[{"name","selector","kind","port","holder","accessible","place","chip"}]}`.
pub(crate) fn probes(common: &Common, screen: &Screen) -> Result<u8, Failure> {
    let catalogue = Catalogue::load(&common.lab()?)?;
    let runtime = runtime()?;
    let real = runtime.block_on(list_probes());
    let real = real.map_err(|error| Failure::of(error.fault(), &error))?;
    let mut rows = Vec::new();
    for probe in real {
        let place = catalogue.place_of_probe(&probe.selector);
        rows.push(json!({
            "name": probe.name,
            "selector": probe.selector,
            "kind": probe.kind,
            "port": probe.port,
            "holder": probe.holder,
            "accessible": probe.accessible,
            "place": place.as_ref().map(|(place, _)| place),
            "chip": place.and_then(|(_, chip)| chip),
        }));
    }
    for ServedPlace { place, selector, pid } in served_places(&catalogue)? {
        let chip = catalogue.place(&place).ok().and_then(|(_, profile)| profile.chip.clone());
        rows.push(json!({
            "name": "emulated board",
            "selector": selector,
            "kind": "virtual",
            "port": null,
            "holder": format!("pid {pid}"),
            "accessible": true,
            "place": place,
            "chip": chip,
        }));
    }
    if screen.json() {
        screen.out_json(&json!({ "probes": rows }));
        return Ok(exit::PASS);
    }
    if rows.is_empty() {
        screen.out("no probe is attached");
        screen.say("an emulated board offers one: jig probe serve -b BOARD");
        return Ok(exit::PASS);
    }
    let mut table = TextTable::new(&["SELECTOR", "KIND", "PLACE", "CHIP", "HELD BY", "NAME"]);
    for row in &rows {
        let text = |key: &str| one_line(row[key].as_str().unwrap_or("-"));
        table.row([
            (text("selector"), Some(Style::Bold)),
            (text("kind"), None),
            (text("place"), None),
            (text("chip"), None),
            (text("holder"), Some(Style::Warn)),
            (text("name"), Some(Style::Dim)),
        ]);
    }
    screen.out(&table.text(screen.out_paint()));
    Ok(exit::PASS)
}
