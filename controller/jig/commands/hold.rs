//! `jig hold`: a board that stays powered for the verbs of other terminals.

use std::sync::Arc;

use jig_model::command::{Command, CommandEvent, EventSink, HoldCommand, Reply};
use jig_model::{ConsoleName, exit};
use serde_json::json;

use super::execute::{execute, unexpected};
use super::rig::OpenRig;
use crate::args::{Common, HoldArgs, ms};
use crate::failure::Failure;
use crate::render::{FlashView, Screen, one_line};

/// Holds a board until interrupted. Standard output has a line for each event; with `--json` an
/// object: `{"event":"held","place","consoles","debug"}` once other verbs reach the board, and
/// `{"event":"ended","place","why"}` each time its power is gone.
pub(crate) fn hold(common: &Common, screen: &Screen, args: HoldArgs) -> Result<u8, Failure> {
    let HoldArgs { target, image, wait } = args;
    let named = target.chip.as_ref().and_then(|chip| chip.selector.as_deref());
    let probe = named.map_or_else(String::new, |probe| format!(" --probe {}", typed(probe)));
    let command = Command::Hold(HoldCommand {
        place: target.board,
        image,
        wait_ms: ms(wait),
        ends_with_lease: false,
    });
    let view =
        Arc::new(HoldEvents { screen: screen.clone(), flash: FlashView::new(screen), probe });
    let events = Arc::clone(&view);
    let reply = execute(&OpenRig::open(common)?, command, events);
    view.flash.clear();
    match reply? {
        Reply::Ended(_) => Ok(exit::PASS),
        _ => Err(unexpected()),
    }
}

/// Says what is offered, and when the board has ended.
struct HoldEvents {
    screen: Screen,
    flash: FlashView,
    /// What names the probe of the board in the commands that are told, where it has to be named.
    probe: String,
}

impl EventSink for HoldEvents {
    fn event(&self, event: CommandEvent) {
        let screen = &self.screen;
        match event {
            CommandEvent::Flashing { progress } => self.flash.show(progress),
            CommandEvent::Deploying { program, percent } => self.flash.deploying(&program, percent),
            CommandEvent::Held { place, consoles, debug } if screen.json() => {
                screen.out_json(&json!({
                    "event": "held", "place": place, "consoles": consoles, "debug": debug,
                }));
            }
            CommandEvent::Held { place, consoles, debug } => {
                self.flash.clear();
                tell(screen, &format!("{place}{}", self.probe), &consoles, debug);
            }
            CommandEvent::HeldBoardEnded { place, why } if screen.json() => {
                screen.out_json(&json!({ "event": "ended", "place": place, "why": why }));
            }
            CommandEvent::HeldBoardEnded { place, why } => {
                screen.out(&one_line(&format!("{place} has no power any more: {why}")));
                screen.say(&format!("start it again: jig reset -b {place}{}", self.probe));
            }
            other => screen.event(other),
        }
    }
}

/// Returns a selector as it is typed in a shell.
fn typed(selector: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || ":_./-@+".contains(c);
    match selector.chars().all(plain) {
        true => selector.to_owned(),
        false => format!("'{}'", one_line(&selector.replace('\'', "'\\''"))),
    }
}

fn tell(screen: &Screen, place: &str, consoles: &[ConsoleName], debug: bool) {
    let name = place.split(' ').next().unwrap_or_default();
    screen.out(&format!("holding {name}; in other terminals:"));
    for (number, console) in consoles.iter().enumerate() {
        let option = if number == 0 { String::new() } else { format!(" --console {console}") };
        screen.out(&format!("  jig console -b {place}{option}"));
    }
    screen.out(&format!("  jig reset -b {place}"));
    screen.out(&format!("  jig flash -b {place} APP.elf"));
    if debug {
        screen.out(&format!("  jig bt -b {place} --elf APP.elf"));
        screen.out(&format!("  jig rtt, jig gdb, jig probe serve -b {place}, ..."));
    }
    screen.say("Ctrl-C releases the board");
}
