//! What a client is told while a command is carried out: the last thing that happened, in a line.

use jig_model::RunEvent;
use jig_model::command::{CommandEvent, EventSink};
use jig_model::result::CaseStatus;
use tokio::sync::watch;

use crate::tools::escaped;

/// Longest line in bytes.
const MOST_LINE: usize = 240;

/// What has happened so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SoFar {
    /// How many events were worth a line.
    pub(super) count: u64,
    /// The last of them.
    pub(super) line: String,
}

/// Takes the events of a command. A slow client skips lines and delays nothing.
pub(super) struct ProgressSink(watch::Sender<SoFar>);

impl ProgressSink {
    pub(super) fn new() -> (Self, watch::Receiver<SoFar>) {
        let (sender, receiver) = watch::channel(SoFar::default());
        (Self(sender), receiver)
    }
}

impl EventSink for ProgressSink {
    fn event(&self, event: CommandEvent) {
        let Some(line) = words(&event) else { return };
        let mut line = escaped(line.as_bytes()).replace(['\n', '\t'], " ");
        line.truncate(line.floor_char_boundary(MOST_LINE));
        self.0.send_modify(|so_far| {
            so_far.count += 1;
            so_far.line = line;
        });
    }
}

/// Says an event in a line; nothing where it is not worth one.
fn words(event: &CommandEvent) -> Option<String> {
    Some(match event {
        CommandEvent::RunBegan { run, .. } => format!("run {run} began"),
        CommandEvent::Waiting { place, holder } => format!("waits for {place}, used by {holder}"),
        CommandEvent::LeaseLost { lease, why } => format!("lease {lease} was lost: {why}"),
        CommandEvent::Attached { chip, .. } => format!("attached to {chip}"),
        CommandEvent::BootedForCommand { place } => format!("{place} was booted for this call"),
        CommandEvent::Deploying { program, percent: Some(percent) } => {
            format!("{program} flashes: {percent} %")
        }
        CommandEvent::Deploying { program, percent: None } => format!("{program} flashes"),
        CommandEvent::Run { event } => run_words(event)?,
        _ => return None,
    })
}

fn run_words(event: &RunEvent) -> Option<String> {
    Some(match event {
        RunEvent::AttemptStarted { attempt, .. } => format!("attempt {attempt}"),
        RunEvent::Deployed(_) => "the image is on the board".to_owned(),
        RunEvent::Boot { boot, .. } => format!("boot {boot}"),
        RunEvent::ActionStarted { path, what } => format!("{path}: {what}"),
        RunEvent::ActionEnded { path, failed: Some(cause), .. } => format!("{path}: {cause}"),
        RunEvent::Case { name, status } => match status {
            CaseStatus::Pass => format!("{name}: passed"),
            _ => format!("{name}: {status:?}"),
        },
        RunEvent::Recognised { cause, text, .. } => format!("{cause}: {text}"),
        RunEvent::AttemptEnded { attempt, verdict } => {
            format!("attempt {attempt} ended: {}", verdict.summary)
        }
        RunEvent::Recovery(_) => "the rig is being recovered".to_owned(),
        _ => return None,
    })
}
