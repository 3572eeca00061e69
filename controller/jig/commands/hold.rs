//! `jig hold`: a board that stays powered for the verbs of other terminals.

use std::sync::Arc;

use jig_model::command::{Command, CommandEvent, EventSink, HoldCommand, Reply};
use jig_model::{ConsoleName, PlaceName, exit};
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
    let command = Command::Hold(HoldCommand { place: target.board, image, wait_ms: ms(wait) });
    let view = Arc::new(HoldEvents { screen: screen.clone(), flash: FlashView::new(screen) });
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
                tell(screen, &place, &consoles, debug);
            }
            CommandEvent::HeldBoardEnded { place, why } if screen.json() => {
                screen.out_json(&json!({ "event": "ended", "place": place, "why": why }));
            }
            CommandEvent::HeldBoardEnded { place, why } => {
                screen.out(&one_line(&format!("{place} has no power any more: {why}")));
                screen.say(&format!("start it again: jig reset -b {place}"));
            }
            other => screen.event(other),
        }
    }
}

fn tell(screen: &Screen, place: &PlaceName, consoles: &[ConsoleName], debug: bool) {
    screen.out(&format!("holding {place}; in other terminals:"));
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
