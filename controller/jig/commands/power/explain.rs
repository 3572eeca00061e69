//! `jig power --explain`: what would be switched, how, and which places share it.

use std::time::Duration;

use jig_lab::Catalogue;
use jig_model::command::PowerExplained;
use jig_model::power::PlaceSense;
use jig_model::rig_file::Place;

use super::outlet;
use crate::failure::{Failure, names};
use crate::render::{Screen, one_line};

/// Explains how a place's power is switched.
///
/// JSON: `{"place","device","driver","outlet","about","declared_in","min_interval_ms","timeout_ms",
/// "settle_ms","off_ms","shared_with":[{"place","in_use_by"}],"sense","hub","hub_neighbours",
/// "lock"}`; `sense` is `"none"`, `"debug-port"`, `"console"` or
/// `{"outlet":{"device","outlet"}}`;
/// `about` is the device as it is understood, and names secrets only by where they are kept.
pub(super) fn show(
    catalogue: Option<&Catalogue>,
    screen: &Screen,
    reply: &PowerExplained,
) -> Result<(), Failure> {
    if screen.json() {
        screen.out_json(reply);
        return Ok(());
    }
    let place = catalogue.map(|catalogue| catalogue.place(&reply.place)).transpose()?;
    let place = place.map(|(place, _)| place);
    let line = |what: &str, words: String| screen.out(&format!("{what:<11} {}", one_line(&words)));
    let ms = Duration::from_millis;
    let device = &reply.device;
    line("place", reply.place.to_string());
    let declared = &reply.declared_in;
    let declared = catalogue.map_or(declared.as_str(), |catalogue| catalogue.near(declared));
    let switched = outlet(device, &reply.outlet);
    line("switched by", format!("{switched}, a {} device of {declared}", reply.driver));
    if reply.shared_with.is_empty() {
        line("shared with", "no other place".to_owned());
    }
    for other in &reply.shared_with {
        let who = other.in_use_by.as_ref();
        let state = who.map_or("free now".to_owned(), |who| format!("in use by {who}"));
        line("shared with", format!("{}: {state}", other.place));
    }
    line("sense", sense_words(reply, place.as_ref()));
    if let Some(hub) = &reply.hub {
        let others = match reply.hub_neighbours.as_slice() {
            [] => "no other place".to_owned(),
            others => names(others),
        };
        line("hub", format!("{hub}, with {others}"));
    }
    line("off time", format!("{:?} in a cycle", ms(reply.off_ms)));
    line("min interval", format!("{:?} between commands to {device}", ms(reply.min_interval_ms)));
    let (timeout, settle) = (ms(reply.timeout_ms), ms(reply.settle_ms));
    line("timeout", format!("{timeout:?} for an answer, {settle:?} until it reads back"));
    Ok(())
}

/// Names the power sense, and why it was chosen if the rig file names none.
/// Says what senses the power; `place` is known where the rig is that of this host.
fn sense_words(reply: &PowerExplained, place: Option<&Place>) -> String {
    let device = &reply.device;
    let power = place.and_then(|place| place.power.as_ref());
    let named = power.is_some_and(|power| power.sense.is_some());
    match &reply.sense {
        PlaceSense::Outlet(sense) => outlet(&sense.device, &sense.outlet),
        PlaceSense::Console => {
            let consoles = place.into_iter().flat_map(|place| &place.consoles);
            let names: Vec<&str> = consoles.map(|c| c.console.as_str()).collect();
            format!("console {}: what prints has power", names.join(", "))
        }
        PlaceSense::DebugPort if named => "the debug port: what answers has power".to_owned(),
        PlaceSense::DebugPort => {
            format!("the debug port, because {device} cannot be read back: what answers has power")
        }
        PlaceSense::Absent if named => "none".to_owned(),
        PlaceSense::Absent => format!("none; {device} is read back"),
    }
}
