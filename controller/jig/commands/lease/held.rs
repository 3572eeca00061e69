//! The board of a lease, kept powered as `jig hold` keeps one.

use std::path::PathBuf;
use std::sync::Arc;

use jig_model::PlaceName;
use jig_model::command::{Command, CommandEvent, EventSink, HoldCommand, Reply};
use jig_model::lease::LeaseView;
use jig_rig::workflow::CancelToken;
use tokio::sync::{Notify, mpsc};

use super::active;
use crate::args::Common;
use crate::commands::execute::unexpected;
use crate::commands::rig::{OpenRig, spoken_to};
use crate::failure::Failure;
use crate::render::{FlashView, Screen, one_line};

/// How long a board that another process uses is waited for, in milliseconds: the lease has just begun,
/// so no other user has it.
const WAIT_MS: u64 = 10_000;

fn command(place: &PlaceName, image: PathBuf) -> Command {
    Command::Hold(HoldCommand {
        place: place.clone(),
        image: Some(image),
        wait_ms: WAIT_MS,
        ends_with_lease: true,
    })
}

/// Has a process of the rig's host keep the board of a lease powered until the lease ends.
pub(super) async fn hold_until_end(
    common: &Common,
    screen: &Screen,
    lease: &LeaseView,
    image: PathBuf,
    cancel: &CancelToken,
) -> Result<(), Failure> {
    let (place, _) = active(lease)?;
    let rig = spoken_to(&Common { lease: Some(lease.id.clone()), ..common.clone() })?;
    let events = Arc::new(HoldProgress::new(screen));
    let held = |event: &CommandEvent| matches!(event, CommandEvent::Held { .. });
    let view = Arc::clone(&events);
    let left = rig.leave(command(place, image), held, events, cancel.clone()).await;
    view.flash.clear();
    left.map(drop).map_err(Failure::from)
}

/// A board that is held as long as a shell runs.
pub(super) struct ShellBoard {
    rig: OpenRig,
    command: Command,
    events: Arc<HoldProgress>,
}

impl ShellBoard {
    /// Names the board of a lease, and its image. Nothing is done yet.
    pub(super) fn new(
        common: &Common,
        screen: &Screen,
        lease: &LeaseView,
        image: PathBuf,
    ) -> Result<Self, Failure> {
        let (place, _) = active(lease)?;
        let rig = OpenRig::open(&Common { lease: Some(lease.id.clone()), ..common.clone() })?;
        let events = Arc::new(HoldProgress::new(screen));
        Ok(Self { rig, command: command(place, image), events })
    }

    /// Holds the board until the caller cancels; then it is released.
    pub(super) async fn hold(&self, release: CancelToken) -> Result<(), Failure> {
        let (_, none) = mpsc::channel(1);
        let events = Arc::<HoldProgress>::clone(&self.events);
        let reply = self.rig.execute(self.command.clone(), none, events, release).await;
        self.events.flash.clear();
        match reply? {
            Reply::Ended(_) => Ok(()),
            _ => Err(unexpected()),
        }
    }

    /// Waits until verbs of others reach the board. Cancel-safe.
    pub(super) async fn is_held(&self) {
        self.events.held.notified().await;
    }
}

/// Shows how the image is put on the board, and notes when verbs reach it.
struct HoldProgress {
    screen: Screen,
    flash: FlashView,
    held: Notify,
}

impl HoldProgress {
    fn new(screen: &Screen) -> Self {
        Self { screen: screen.clone(), flash: FlashView::new(screen), held: Notify::new() }
    }
}

impl EventSink for HoldProgress {
    fn event(&self, event: CommandEvent) {
        match event {
            CommandEvent::Flashing { progress } => self.flash.show(progress),
            CommandEvent::Deploying { program, percent } => self.flash.deploying(&program, percent),
            CommandEvent::Held { .. } => {
                self.flash.clear();
                self.held.notify_one();
            }
            CommandEvent::HeldBoardEnded { place, why } => {
                let words = format!("{place} has no power any more: {why}");
                self.screen.insist(&one_line(&words));
                self.screen.say(&format!("start it again: jig reset -b {place}"));
            }
            other => self.screen.event(other),
        }
    }
}
