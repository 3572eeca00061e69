//! The power of an emulated board: it has some while a command runs its emulator.

use jig_lab::Catalogue;
use jig_model::{Fault, PlaceName, exit};
use serde_json::json;

use crate::args::PowerAction;
use crate::failure::Failure;
use crate::render::{Screen, one_line};

/// Says what is so, and does what needs no doing.
///
/// JSON: `{"place","driver":"emulator","action","state","in_use_by"}`.
pub(super) fn power(
    catalogue: &Catalogue,
    screen: &Screen,
    place: &PlaceName,
    action: Option<PowerAction>,
) -> Result<u8, Failure> {
    let holder = catalogue
        .places()
        .holder(place)
        .map_err(|error| Failure::of(error.fault(), &error))?
        .map(|holder| holder.map_or_else(|| "another process".to_owned(), |h| h.to_string()));
    let keep = format!("jig probe serve -b {place}");
    let (on, words) = match (&holder, action) {
        (holder, None) => {
            let now = holder.as_ref().map_or("off".to_owned(), |who| format!("on, by {who}"));
            let words = format!(
                "emulated: it has power while a command runs its emulator, and begins from \
                 power-on each time; now {now}. To keep it on: {keep}. A run boots an emulator \
                 of its own beside that"
            );
            (holder.is_some(), words)
        }
        (Some(who), Some(PowerAction::On | PowerAction::Status | PowerAction::Verify)) => {
            (true, format!("on: {who} runs its emulator"))
        }
        (None, Some(PowerAction::Off | PowerAction::Status | PowerAction::Verify)) => {
            (false, format!("off: no command runs its emulator (to keep it on: {keep})"))
        }
        (None, Some(PowerAction::Cycle)) => {
            let words = "off: no command runs its emulator; the next one begins from power-on";
            (false, words.to_owned())
        }
        (None, Some(PowerAction::On)) => {
            let words =
                format!("{place} is emulated: it has power only while a command runs its emulator");
            return Err(Failure::new(Fault::Usage, words).help(format!("keep it on: {keep}")));
        }
        (Some(who), Some(PowerAction::Off | PowerAction::Cycle)) => {
            let words = format!("{place} is emulated, and {who} runs its emulator");
            let help = "end that command: its board loses the power with it";
            return Err(Failure::new(Fault::Lab, words).help(help));
        }
    };
    if screen.json() {
        screen.out_json(&json!({
            "place": place,
            "driver": "emulator",
            "action": action.map(PowerAction::as_str),
            "state": if on { "on" } else { "off" },
            "in_use_by": holder,
        }));
    } else {
        screen.out(&one_line(&format!("{place}: {words}")));
    }
    Ok(exit::PASS)
}
