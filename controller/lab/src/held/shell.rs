//! Commands of a shell on a board that another process holds.
//!
//! Owns the two ways to that board: the ports that its emulator forwards, which the holder tells, and a
//! console that the holder or `jig serve` captures, at which the commands are typed. Refuses to touch
//! power, probe and locks of the place: they are the holder's.
//!
//! # Design
//! *The command is a run of this process*, with its folder and its verdict, like one on a board that
//! no process holds. Only its parts differ, so a status, an output and a lost connection mean the same.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use jig_drivers::serial::capture_service::CaptureServiceError;
use jig_model::command::{
    AttachCommand, AttachFollow, AttachInput, CommandEvent, ConsoleLogEvent, ConsoleLogItem,
    ConsoleLogSource, EventSink, HeldBoardFacts, Reply, RunOptions, ShellCommand,
};
use jig_model::shell::ShellWay;
use jig_model::{ConsoleName, PlaceName, chain};
use jig_rig::workflow::CancelToken;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex, split};
use tokio::sync::{mpsc, oneshot};

use super::parts::{HeldConsole, HeldParts};
use super::{HoldError, HolderClient};
use crate::execute::shell_plan;
use crate::{AttachError, CommandError, Lab, ProbeCommandError};

/// Bytes of a console that wait within this process, each way: as in a pipe.
const BUFFER: usize = 64 << 10;

/// Pieces of output that may wait for the run. A run reads at the speed of its disk.
const WAITING: usize = 1024;

/// Pieces of input that may wait for the console.
const WAITING_INPUT: usize = 16;

impl Lab {
    /// Carries out a command of a shell on a board that another process holds.
    pub(crate) async fn shell_of_held(
        &self,
        holder: HolderClient,
        shell: ShellCommand,
        events: Arc<dyn EventSink>,
        cancel: CancelToken,
    ) -> Result<Reply, CommandError> {
        let place = shell.place.clone();
        let HeldBoardFacts { ports, off } = holder.describe().await?;
        if let Some(why) = off {
            return Err(ProbeCommandError::BoardOff { place, why }.into());
        }
        let mut here = self.bind(&place)?;
        here.outlet = None;
        let known = here.profile.shell_at(&here.place);
        let serial = known
            .filter(|shell_at| shell_at.way(shell.via) == Some(ShellWay::Serial))
            .and_then(|shell_at| shell_at.serial);
        let plan = shell_plan(&here, shell, false);
        let options = RunOptions { recoveries: Some(0), ..RunOptions::default() };
        let Some(serial) = serial else {
            here.parts.held = Some(HeldParts { ports, console: None });
            return self.run_with(here, plan, None, options, events, cancel).await;
        };
        let console = serial.console;
        let (near, far) = duplex(BUFFER);
        let (attached, is_attached) = oneshot::channel();
        let done = CancelToken::new();
        let mut passing = pin!(self.pass(&place, &console, (far, attached), &done));
        tokio::select! {
            biased;
            ended = &mut passing => {
                return Err(match ended {
                    Err(AttachError::Input(CaptureServiceError::Refused(by))) => {
                        let (place, console) = (place.clone(), console.clone());
                        HoldError::ConsoleTaken { place, console, by }.into()
                    }
                    Err(error) => error.into(),
                    Ok(()) => HoldError::Gone(place.clone()).into(),
                });
            }
            _ = is_attached => {}
        }
        let stream = Arc::new(Mutex::new(near));
        let console = Some(HeldConsole { name: console.clone(), stream });
        here.parts.held = Some(HeldParts { ports, console });
        let mut running = pin!(self.run_with(here, plan, None, options, events, cancel));
        let ended = tokio::select! {
            ended = &mut running => return ended,
            ended = &mut passing => ended,
        };
        // The run sees that its console has ended.
        match ended {
            Ok(()) => tracing::warn!(%place, "the console of the held board has ended"),
            Err(error) => tracing::warn!(%place, error = chain(&error), "the console was lost"),
        }
        running.await
    }

    /// Passes the bytes of a captured console on, both ways, until it ends or `done` is cancelled.
    async fn pass(
        &self,
        place: &PlaceName,
        console: &ConsoleName,
        (far, attached): (DuplexStream, oneshot::Sender<()>),
        done: &CancelToken,
    ) -> Result<(), AttachError> {
        let (told, mut output) = mpsc::channel(WAITING);
        let (input, received) = mpsc::channel(WAITING_INPUT);
        let sink =
            PassedOutput { told, attached: Mutex::new(Some(attached)), cancel: done.clone() };
        let attach = AttachCommand {
            place: place.clone(),
            console: Some(console.clone()),
            since_ms: 0,
            follow: AttachFollow::Captured,
            input: AttachInput::Send,
            quiet_ms: 0,
            boot: None,
        };
        let mut received = Some(received);
        let (mut from, mut to) = split(far);
        let outward = async {
            while let Some(bytes) = output.recv().await {
                if to.write_all(&bytes).await.is_err() {
                    break;
                }
            }
            std::future::pending::<()>().await
        };
        let inward = async {
            let mut buf = [0; 4 << 10];
            while let Ok(count) = from.read(&mut buf).await
                && count > 0
                && input.send(buf[..count].to_vec()).await.is_ok()
            {}
            std::future::pending::<()>().await
        };
        tokio::select! {
            ended = self.attach(attach, &mut received, &sink, done) => ended.map(drop),
            () = outward => Ok(()),
            () = inward => Ok(()),
        }
    }
}

/// Takes what a console that is attached to tells.
struct PassedOutput {
    told: mpsc::Sender<Vec<u8>>,
    attached: Mutex<Option<oneshot::Sender<()>>>,
    /// Cancelled where the run does not read, and where nothing can be sent.
    cancel: CancelToken,
}

impl EventSink for PassedOutput {
    fn event(&self, event: CommandEvent) {
        let ends = match event {
            CommandEvent::ConsoleAttached { sends: true, .. } => {
                let attached = self.attached.lock().unwrap_or_else(PoisonError::into_inner).take();
                let _ = attached.map(|attached| attached.send(()));
                false
            }
            // The logs of runs, among them that of this one, repeat what was captured.
            CommandEvent::ConsoleLog(ConsoleLogEvent {
                source: ConsoleLogSource::Captured { .. },
                item: ConsoleLogItem::Output { bytes },
                ..
            }) => self.told.try_send(bytes).is_err(),
            CommandEvent::ConsoleAttached { sends: false, .. }
            | CommandEvent::InputLost { .. }
            | CommandEvent::InputFailed { .. } => true,
            _ => false,
        };
        if ends {
            self.cancel.cancel();
        }
    }
}
