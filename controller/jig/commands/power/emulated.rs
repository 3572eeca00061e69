//! The power of an emulated board: it has some while a command runs its emulator.

use jig_model::command::{EmulatedPowerReply, PowerAction};
use serde_json::json;

use crate::render::{Screen, one_line};

/// Says what is so.
///
/// JSON: `{"place","driver":"emulator","action","state","in_use_by"}`; the action is null where
/// it was only explained.
pub(super) fn show(screen: &Screen, reply: &EmulatedPowerReply) {
    let EmulatedPowerReply { place, action, state, in_use_by } = reply;
    let explains = *action == PowerAction::Explain;
    if screen.json() {
        return screen.out_json(&json!({
            "place": place,
            "driver": "emulator",
            "action": (!explains).then(|| action.as_str()),
            "state": state,
            "in_use_by": in_use_by,
        }));
    }
    let keep = format!("jig hold -b {place}");
    let words = match (in_use_by, action) {
        (holder, PowerAction::Explain) => {
            let now = holder.as_ref().map_or("off".to_owned(), |who| format!("on, by {who}"));
            format!(
                "emulated: it has power while a command runs its emulator, and begins from \
                 power-on each time; now {now}. To keep it on: {keep}. A run boots an emulator \
                 of its own beside that"
            )
        }
        (Some(who), _) => format!("on: {who} runs its emulator"),
        (None, PowerAction::Cycle) => {
            "off: no command runs its emulator; the next one begins from power-on".to_owned()
        }
        (None, _) => format!("off: no command runs its emulator (to keep it on: {keep})"),
    };
    screen.out(&one_line(&format!("{place}: {words}")));
}
