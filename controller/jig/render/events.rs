//! What happens while a command is carried out, as lines on standard error.

use jig_model::command::{CommandEvent, EventSink, SweptRun};
use jig_rig::console::escape;

use super::{Screen, one_line};

impl EventSink for Screen {
    fn event(&self, event: CommandEvent) {
        match event {
            CommandEvent::Waiting { place, holder } => {
                let holder = escape(holder.as_bytes());
                self.say(&format!("waiting for place {place}, in use by {holder}"));
            }
            CommandEvent::LeaseLost { lease, why } => {
                let why = escape(why.as_bytes());
                self.insist(&format!("lease {lease} has ended, so the command is stopped: {why}"));
            }
            CommandEvent::Disturbing { place, holder } => {
                let holder = escape(holder.as_bytes());
                self.insist(&format!(
                    "disturbing place {place}: place {place} is in use by {holder}"
                ));
            }
            CommandEvent::Swept(run) => self.say(&swept(&run)),
            CommandEvent::RunBegan { run, dir } => {
                tracing::info!(%run, dir = %dir.display(), "run");
            }
            // A view of runs shows them.
            CommandEvent::Run { .. } | CommandEvent::Console { .. } => {}
            CommandEvent::Attached { attempts, method, failures, .. } => {
                for failure in failures {
                    self.say(&format!("attach failed: {}", one_line(&failure)));
                }
                if attempts > 1 {
                    let words = method.words();
                    self.say(&format!("the probe answered at attempt {attempts} ({words})"));
                }
            }
            CommandEvent::BootedForCommand { place } => self.say(&format!(
                "no process kept {place} running: it was booted from its flash for this command \
                 and ends with it (keep it running: jig hold -b {place})"
            )),
            // The verbs that have these show them.
            CommandEvent::Flashing { .. }
            | CommandEvent::Deploying { .. }
            | CommandEvent::RttChannels { .. }
            | CommandEvent::RttBytes { .. }
            | CommandEvent::RttLine { .. }
            | CommandEvent::RttBroken { .. }
            | CommandEvent::GdbServed { .. }
            | CommandEvent::ProbeServed { .. }
            | CommandEvent::Held { .. }
            | CommandEvent::HeldBoardEnded { .. }
            | CommandEvent::ConsoleBytes { .. }
            | CommandEvent::ConsoleAttached { .. }
            | CommandEvent::ConsoleLog(_)
            | CommandEvent::InputFailed { .. }
            | CommandEvent::InputLost { .. }
            | CommandEvent::LineControlled { .. } => {}
        }
    }
}

fn swept(SweptRun { run, killed, error }: &SweptRun) -> String {
    match (error, killed) {
        (Some(error), _) => {
            format!("run {run} could not be swept: {}", escape(error.as_bytes()))
        }
        (None, 0) => format!("run {run} was killed before it ended; marked abandoned"),
        (None, n) => format!(
            "run {run} was killed before it ended; marked abandoned, {n} left-over processes ended"
        ),
    }
}
