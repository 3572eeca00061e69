//! `jig rtt`: a channel of the target, on this terminal or pipe.

use std::io::BufRead as _;
use std::sync::{Arc, Mutex, PoisonError};

use jig_model::command::{CommandEvent, DebugAction, EventSink, Reply, RttChannelInfo};
use jig_model::exit;
use jig_rig::console::{Escaper, escape};
use jig_rig::workflow::CancelToken;
use tokio::sync::mpsc;

use super::access::ProbedBoard;
use crate::args::{Common, RttArgs, ms};
use crate::commands::execute::unexpected;
use crate::commands::runtime::until_signalled;
use crate::failure::Failure;
use crate::render::Screen;

/// Shows a channel, and sends what is typed to it.
///
/// JSON: a line for each event: `{"kind":"rtt_channels","up","down"}`, then
/// `{"kind":"rtt_bytes","bytes":HEX}`; of defmt `{"kind":"rtt_line","line"}`, and
/// `{"kind":"rtt_broken","bytes":COUNT}` for bytes that are no frame.
pub(crate) fn rtt(common: &Common, screen: &Screen, args: RttArgs) -> Result<u8, Failure> {
    let RttArgs { at, image, channel, reset, timeout } = args;
    let board = ProbedBoard::of(common, &at)?;
    let timeout_ms = timeout.map(ms);
    let command = board.command(DebugAction::Rtt { image, channel, reset, timeout_ms });
    let reply = until_signalled(async |cancel| {
        let (screen, escaper) = (screen.clone(), Mutex::default());
        let events = Arc::new(RttEvents { screen, escaper, cancel: cancel.clone() });
        board.rig.execute(command, lines(), events, cancel).await
    });
    match reply? {
        Reply::Ended(_) => Ok(exit::PASS),
        _ => Err(unexpected()),
    }
}

/// Shows what the target writes; ends the session when its reader has gone.
struct RttEvents {
    screen: Screen,
    escaper: Mutex<Escaper>,
    cancel: CancelToken,
}

impl EventSink for RttEvents {
    fn event(&self, event: CommandEvent) {
        let screen = &self.screen;
        match event {
            event @ (CommandEvent::RttChannels { .. }
            | CommandEvent::RttBytes { .. }
            | CommandEvent::RttLine { .. }
            | CommandEvent::RttBroken { .. })
                if screen.json() =>
            {
                screen.out_json(&event);
            }
            CommandEvent::RttChannels { up, down } => {
                tell_channels(screen, "up", &up);
                tell_channels(screen, "down", &down);
            }
            CommandEvent::RttBytes { bytes } => {
                let mut escaper = self.escaper.lock().unwrap_or_else(PoisonError::into_inner);
                screen.out_bytes(escaper.escape(&bytes).as_bytes());
            }
            CommandEvent::RttLine { line } => screen.out(&escape(line.as_bytes())),
            CommandEvent::RttBroken { bytes } => {
                screen.out(&format!("[{bytes} bytes are no frame]"));
            }
            other => screen.event(other),
        }
        if screen.closed() {
            self.cancel.cancel();
        }
    }
}

fn tell_channels(screen: &Screen, direction: &str, channels: &[RttChannelInfo]) {
    for RttChannelInfo { number, name, size } in channels {
        let name = escape(name.as_bytes());
        screen.say(&format!("{direction} {number}: {name} ({size} bytes)"));
    }
}

/// Reads lines of standard input on a thread of its own, which ends with the process.
fn lines() -> mpsc::Receiver<Vec<u8>> {
    let (lines, receiver) = mpsc::channel(64);
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        let mut line = Vec::new();
        while matches!(input.read_until(b'\n', &mut line), Ok(1..)) {
            if lines.blocking_send(std::mem::take(&mut line)).is_err() {
                return;
            }
        }
    });
    receiver
}
