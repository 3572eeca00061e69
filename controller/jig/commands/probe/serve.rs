//! `jig probe serve`: an emulated board that any probe-rs tool can use.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jig_model::command::{Command, CommandEvent, EventSink, Reply, ServeProbeCommand};
use jig_model::{ConsoleName, exit};
use jig_rig::console::Escaper;
use serde_json::json;

use crate::args::{Common, ProbeCommand, ms};
use crate::commands::execute::{execute, unexpected};
use crate::commands::rig::OpenRig;
use crate::failure::Failure;
use crate::render::Screen;

/// Runs an emulated board and serves its debug port until interrupted. Standard output shows
/// the selector, and after it what the board prints; with `--json` one line:
/// `{"place","selector","chip","description"}`.
pub(crate) fn probe(
    common: &Common,
    screen: &Screen,
    command: ProbeCommand,
) -> Result<u8, Failure> {
    let ProbeCommand::Serve { board, listen, image, wait } = command;
    let command =
        Command::ServeProbe(ServeProbeCommand { place: board, listen, image, wait_ms: ms(wait) });
    let events = Arc::new(ServeEvents { screen: screen.clone(), escapers: Mutex::default() });
    match execute(&OpenRig::open(common)?, command, events)? {
        Reply::Ended(_) => Ok(exit::PASS),
        _ => Err(unexpected()),
    }
}

/// Shows the selector, and what the board prints.
struct ServeEvents {
    screen: Screen,
    escapers: Mutex<HashMap<ConsoleName, Escaper>>,
}

impl EventSink for ServeEvents {
    fn event(&self, event: CommandEvent) {
        let screen = &self.screen;
        match event {
            CommandEvent::ProbeServed { place, selector, chip, description } if screen.json() => {
                screen.out_json(&json!({
                    "place": place,
                    "selector": selector,
                    "chip": chip,
                    "description": description,
                }));
            }
            CommandEvent::ProbeServed { selector, chip, description, .. } => {
                screen.out(&selector);
                // A chip that Jig describes itself has a name that probe-rs does not know.
                let chip = chip.filter(|_| description.is_none());
                let chip = chip.as_deref().unwrap_or("CHIP");
                screen.say(&format!("probe-rs info --probe {selector} --chip {chip}"));
                screen.say("Ctrl-C ends");
            }
            CommandEvent::ConsoleBytes { console, bytes } => {
                if screen.json() || screen.quiet() {
                    return;
                }
                let mut escapers = self.escapers.lock().unwrap_or_else(PoisonError::into_inner);
                let text = escapers.entry(console).or_default().escape(&bytes);
                // A reader that went away is no reason to stop the board.
                screen.out_bytes(text.as_bytes());
            }
            other => screen.event(other),
        }
    }
}
