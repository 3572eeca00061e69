//! `jig power --explain`: what would be switched, how, and who shares it.

use jig_lab::{Lab, Switch};
use jig_model::exit;
use jig_model::power::PlaceSense;
use jig_model::rig_file::Place;
use serde_json::json;

use super::lock_of;
use crate::failure::{Failure, names};
use crate::render::{Screen, one_line};

/// Explains how a place's power is switched. Touches no device.
///
/// JSON: `{"place","device","driver","outlet","about","declared_in","min_interval_ms","timeout_ms",
/// "settle_ms","off_ms","shared_with":[{"place","in_use_by"}],"sense","hub","hub_neighbours",
/// "lock"}`; `sense` is `"nobody"`, `"debug-port"`, `"console"` or
/// `{"outlet":{"device","outlet"}}`;
/// `about` is the device as it is understood, and names secrets only by where they are kept.
pub(super) fn explain(lab: &Lab, screen: &Screen, switch: &Switch) -> Result<u8, Failure> {
    let (catalogue, device) = (lab.catalogue(), &switch.device);
    let places = catalogue.places();
    let others = lab.holders(&switch.shared_with)?;
    let (place, _) = catalogue.place(&switch.place)?;
    let neighbours = catalogue.rig.hub_neighbours(&place);
    let ms = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let lock = lock_of(&places, &device.name);
    if screen.json() {
        let shared: Vec<_> =
            others.iter().map(|(place, who)| json!({ "place": place, "in_use_by": who })).collect();
        screen.out_json(&json!({
            "place": switch.place,
            "device": device.name,
            "driver": device.driver.kind(),
            "outlet": switch.power.outlet,
            "about": device.driver,
            "declared_in": device.origin,
            "min_interval_ms": ms(device.min_interval),
            "timeout_ms": ms(device.timeout),
            "settle_ms": ms(device.settle),
            "off_ms": ms(switch.off_time()),
            "shared_with": shared,
            "sense": place.second_sense(&device.driver),
            "hub": place.hub,
            "hub_neighbours": neighbours,
            "lock": lock,
        }));
        return Ok(exit::PASS);
    }
    let line = |what: &str, words: String| screen.out(&format!("{what:<11} {}", one_line(&words)));
    line("place", switch.place.to_string());
    line(
        "switched by",
        format!(
            "{}, a {} device of {}",
            switch.outlet(),
            device.driver.kind(),
            catalogue.near(&device.origin)
        ),
    );
    if others.is_empty() {
        line("shared with", "nobody".to_owned());
    }
    for (other, who) in &others {
        let state = who.as_ref().map_or("free now".to_owned(), |who| format!("in use by {who}"));
        line("shared with", format!("{other}: {state}"));
    }
    line("sense", sense_words(switch, &place));
    if let Some(hub) = &place.hub {
        let others = if neighbours.is_empty() { "nobody".into() } else { names(&neighbours) };
        line("hub", format!("{hub}, with {others}"));
    }
    line("off time", format!("{:?} in a cycle", switch.off_time()));
    line("min interval", format!("{:?} between commands to {}", device.min_interval, device.name));
    line(
        "patience",
        format!("{:?} for an answer, {:?} until it reads back", device.timeout, device.settle),
    );
    Ok(exit::PASS)
}

/// Says who is asked beside the device, and why, if nobody has named one.
fn sense_words(switch: &Switch, place: &Place) -> String {
    let device = &switch.device.name;
    let named = switch.power.sense.is_some();
    match place.second_sense(&switch.device.driver) {
        PlaceSense::Outlet(sense) if sense.outlet.is_empty() => sense.device.to_string(),
        PlaceSense::Outlet(sense) => format!("outlet {} of {}", sense.outlet, sense.device),
        PlaceSense::Console => {
            let names: Vec<&str> = place.consoles.iter().map(|c| c.console.as_str()).collect();
            format!("console {}: what prints has power", names.join(", "))
        }
        PlaceSense::DebugPort if named => "the debug port: what answers has power".to_owned(),
        PlaceSense::DebugPort => {
            format!("the debug port, because {device} cannot be read back: what answers has power")
        }
        PlaceSense::Nobody if named => "nobody".to_owned(),
        PlaceSense::Nobody => format!("nobody but {device}, which is read back"),
    }
}
