//! A board that is booted to be talked to: input goes to its console until it ends.
//!
//! What the board prints is in the log that an event names; this module only sends.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jig_model::command::{CommandEvent, ConsoleCommand, EventSink, InputLoss, Reply};
use jig_model::event::BoardEvent;
use jig_model::plan::console_plan;
use jig_model::{ConsoleName, RunEvent, RunId, chain};
use jig_rig::console::ConsoleHandle;
use jig_rig::session::{Observer, SessionRequest};
use jig_rig::workflow::CancelToken;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use crate::beside::BoundPlace;
use crate::console_name::console_of;
use crate::execute::Forward;
use crate::{CommandError, Lab};

impl Lab {
    /// Boots a board and passes input to its console; cancels the run behind the end of it.
    pub(crate) async fn converse(
        &self,
        command: ConsoleCommand,
        input: mpsc::Receiver<Vec<u8>>,
        events: Arc<dyn EventSink>,
        cancel: CancelToken,
    ) -> Result<Reply, CommandError> {
        let ConsoleCommand { place, image, console, quiet_ms } = command;
        let plan = console_plan(image.is_some());
        // The user of a console sees when the board fails, so the rig is not recovered meanwhile.
        let request =
            SessionRequest { plan, image, repeat: 1, max_recoveries: Some(0), asked: None };
        let here = BoundPlace { canary: None, ..self.bind(&place)? };
        let wanted = console_of(&here.profile, console)?;
        let (handles, handle) = watch::channel(None);
        let (boots, booted) = watch::channel(false);
        let (forward, cancels) = (Forward(Arc::clone(&events)), cancel.clone());
        let firmware_ended = Arc::<AtomicBool>::default();
        let ends = Arc::clone(&firmware_ended);
        let observer = Arc::new(Bridge { forward, wanted, handles, boots, ends, cancel: cancels });
        let quiet = Duration::from_millis(quiet_ms);
        let (cancels, unsent) = (cancel.clone(), UnsentInput::default());
        let mut sender = Sender { handle, booted, quiet, cancel: cancels, input, unsent };
        let sent = async {
            sender.send().await;
            std::future::pending::<Infallible>().await
        };
        let ended = tokio::select! {
            biased;
            ended = self.run(here, request, Vec::new(), observer, &*events, cancel) => ended?,
            never = sent => match never {},
        };
        if let Some(event) = sender.lost(firmware_ended.load(Ordering::Acquire)) {
            events.event(event);
        }
        Ok(Reply::Run(ended))
    }
}

/// Tells the sender of the console, and ends the run when the firmware ends.
struct Bridge {
    forward: Forward,
    wanted: ConsoleName,
    handles: watch::Sender<Option<ConsoleHandle>>,
    boots: watch::Sender<bool>,
    /// Whether the firmware ended by itself.
    ends: Arc<AtomicBool>,
    cancel: CancelToken,
}

impl Observer for Bridge {
    fn began(&self, run: &RunId, dir: &Path) {
        self.forward.began(run, dir);
    }

    fn event(&self, event: &RunEvent) {
        match event {
            RunEvent::Boot { .. } => drop(self.boots.send_replace(true)),
            RunEvent::Board(BoardEvent::TargetExit { .. }) => {
                self.ends.store(true, Ordering::Release);
                self.cancel.cancel();
            }
            _ => {}
        }
        self.forward.event(event);
    }

    fn console(&self, console: &ConsoleName, handle: &ConsoleHandle) {
        if *console == self.wanted {
            self.handles.send_replace(Some(handle.clone()));
        }
        self.forward.console(console, handle);
    }
}

/// Passes input to a console.
struct Sender {
    handle: watch::Receiver<Option<ConsoleHandle>>,
    /// Whether the target runs.
    booted: watch::Receiver<bool>,
    /// How long the board must have been quiet behind the end of the input.
    quiet: Duration,
    cancel: CancelToken,
    input: mpsc::Receiver<Vec<u8>>,
    unsent: UnsentInput,
}

/// What of the input has not been sent.
#[derive(Default)]
enum UnsentInput {
    /// Nothing that was received.
    #[default]
    Nothing,
    /// A piece that is being sent.
    Piece,
    /// A piece that the console refused, for this reason.
    Refused(String),
}

impl Sender {
    /// Says that input was lost, if so; `firmware_ended` tells that the firmware ended by itself.
    fn lost(mut self, firmware_ended: bool) -> Option<CommandEvent> {
        match self.unsent {
            UnsentInput::Refused(why) if !firmware_ended => {
                return Some(CommandEvent::InputFailed { why });
            }
            UnsentInput::Refused(_) | UnsentInput::Piece => {}
            UnsentInput::Nothing => drop(self.input.try_recv().ok()?),
        }
        let loss = InputLoss::FirmwareEnded;
        firmware_ended.then_some(CommandEvent::InputLost { loss })
    }

    /// Sends until the input ends or the console is closed, and then cancels the run.
    async fn send(&mut self) {
        let handle = match self.handle.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(handle)) => handle.clone(),
            _ => return,
        };
        // What is sent before the board has a transport would go nowhere.
        let wired = handle.state().wait_for(|state| state.attached || state.closed).await.is_ok();
        while let Some(bytes) = self.input.recv().await.filter(|_| wired) {
            self.unsent = UnsentInput::Piece;
            if let Err(error) = handle.send(bytes).await {
                self.unsent = UnsentInput::Refused(chain(&error));
                return self.cancel.cancel();
            }
            self.unsent = UnsentInput::Nothing;
        }
        if !self.quiet.is_zero() {
            self.until_quiet(&handle).await;
        }
        self.cancel.cancel();
    }

    /// Waits until the target has run and printed nothing for a while.
    async fn until_quiet(&mut self, handle: &ConsoleHandle) {
        let (mut state, mut end) = (handle.state(), handle.state());
        // A board that only now gets its power is quiet for another reason.
        tokio::select! {
            _ = self.booted.wait_for(|booted| *booted) => {}
            _ = end.wait_for(|state| state.closed) => {}
        }
        while let Ok(Ok(())) = timeout(self.quiet, state.changed()).await {}
    }
}
