//! `jig hold`: keeps a board powered, so that the commands of other processes reach one board.
//!
//! Owns the two sockets of a held place: at one its consoles are served, as `jig serve` serves those
//! of idle places, and at the other the holder takes commands for the board and carries them out
//! itself. So each wire to the board has one owner, and a command does the same wherever it was typed.

mod client;
mod consoles;
mod door;
mod error;
mod parts;
mod shell;

use std::sync::Arc;
use std::time::Duration;

use jig_drivers::serial::capture_service::Door;
use jig_model::chain;
use jig_model::command::{
    Command, CommandEvent, EndedReply, EventSink, HoldCommand, MOST_LINE, ProbeAccess, Reply,
};
use jig_rig::workflow::CancelToken;
use tokio::task::JoinSet;
use tokio::time::timeout;

pub(crate) use self::client::HolderClient;
use self::consoles::{EmulatedConsoles, HeldConsoles, ServedConsoles};
use self::door::ClientContext;
pub use self::error::HoldError;
pub(crate) use self::parts::HeldParts;
use crate::Lab;
use crate::probe::HeldPlace;

/// Most commands at a time; each is a process of this user.
const MOST_CLIENTS: usize = 256;

/// How long commands under way may take to end when the board is released: the flash of a large chip
/// ends at its next batch of sectors.
const LAST_COMMANDS: Duration = Duration::from_secs(10);

impl Lab {
    /// Connects to the process that holds the board of a command, if one does and the command is about
    /// the board that it holds.
    pub(crate) async fn holder_of(
        &self,
        command: &Command,
    ) -> Result<Option<HolderClient>, HoldError> {
        match self.held.is_none() && is_about_held_board(command) {
            true => HolderClient::connect(&self.catalogue.places(), command.place()).await,
            false => Ok(None),
        }
    }

    /// Keeps a board powered for other processes until the caller cancels.
    pub(crate) async fn hold_board(
        &self,
        command: HoldCommand,
        events: Arc<dyn EventSink>,
        cancel: CancelToken,
    ) -> Result<Reply, HoldError> {
        let place = command.place.clone();
        let (about, profile) = self.catalogue.place(&place)?;
        let consoles = EmulatedConsoles::of(&profile);
        let (sink, emulated) = (Arc::new(consoles.clone()), consoles.clone());
        let held = self.take_place(&command, (sink, consoles.ended()), &*events, &cancel).await?;
        let held = Arc::new(held);
        let lab = Self { held: Some(Arc::clone(&held)), ..self.clone() };
        let mut switched_on = false;
        let outcome = async {
            let catalogue = &self.catalogue;
            let consoles = match about.is_emulated() {
                true => consoles.captured(catalogue, &about, &profile),
                false => HeldConsoles::of_real(catalogue, &about, &profile).await?,
            };
            let names = consoles.names.clone();
            let served = match consoles.any() {
                true => Some(ServedConsoles::open(catalogue, &place, consoles).await?),
                false => None,
            };
            if let Some(served) = &served {
                served.connected().await;
            }
            let door = Door::open_for(&catalogue.places().holder_socket(&place), MOST_LINE)?;
            // An emulated board has no outlet.
            switched_on = self.give_power(&about).await?;
            lab.boot_held(command, Arc::clone(&events), cancel.clone()).await?;
            events.event(CommandEvent::Held {
                place: place.clone(),
                consoles: names,
                debug: held.has_debug_port(),
            });
            let (mut clients, released) = (JoinSet::new(), CancelToken::new());
            let client =
                ClientContext { lab: lab.clone(), released: released.clone(), board: emulated };
            tokio::select! {
                biased;
                () = cancel.cancelled() => {}
                () = serve_commands(&client, &held, &door, &mut clients) => {}
                () = tell_ends(&held, &*events) => {}
            }
            // Commands under way end in order.
            drop((door, client));
            released.cancel();
            let all = async { while clients.join_next().await.is_some() {} };
            let _ = timeout(LAST_COMMANDS, all).await;
            clients.shutdown().await;
            if let Some(served) = served {
                served.close().await;
            }
            Ok::<_, HoldError>(())
        };
        let outcome = outcome.await;
        drop(lab);
        held.let_go_of_probe().await;
        // It is left as it was.
        if switched_on && let Err(error) = self.take_power(&about).await {
            tracing::warn!(error = chain(&error), "the board was not switched off");
        }
        match Arc::into_inner(held) {
            Some(held) => {
                if let Err(error) = held.release().await {
                    tracing::warn!(error = chain(&error), "what the flash holds now was not kept");
                }
            }
            None => tracing::error!("a command uses the board although it is released"),
        }
        outcome?;
        Ok(Reply::Ended(EndedReply { place }))
    }
}

/// Tells whether a command is about the board that a process holds, which carries it out, or tells how
/// its shell is reached. The others use no wire to the board that it has: consoles are attached to where
/// they are captured, and a run has a board of its own or waits.
///
/// A command that names a probe is about that one and not about the place. But a chip that is a place
/// by itself has no other name for its probe, so the holder compares it.
fn is_about_held_board(command: &Command) -> bool {
    let own = |probe: &ProbeAccess| probe.selector.is_none() || command.place().chip().is_some();
    match command {
        Command::Flash(flash) => own(&flash.probe),
        Command::Erase(erase) => own(&erase.probe),
        Command::Reset(reset) => own(&reset.probe),
        Command::Debug(debug) => own(&debug.probe),
        Command::ServeProbe(_) | Command::Shell(_) => true,
        Command::Run(_)
        | Command::Test(_)
        | Command::Console(_)
        | Command::Attach(_)
        | Command::LineControl(_)
        | Command::Recover(_)
        | Command::RecoverySteps(_)
        | Command::Power(_)
        | Command::Check(_)
        | Command::Hold(_) => false,
    }
}

/// Carries out the commands of other processes. Cancel-safe.
async fn serve_commands(
    context: &ClientContext,
    held: &HeldPlace,
    door: &Door,
    clients: &mut JoinSet<()>,
) {
    loop {
        tokio::select! {
            Some(_) = clients.join_next() => {}
            client = door.accept() => {
                if clients.len() < MOST_CLIENTS {
                    clients.spawn(door::serve(context.clone(), held.place().clone(), client));
                }
            }
        }
    }
}

/// Tells the caller each time the board has lost its power by itself.
async fn tell_ends(held: &HeldPlace, events: &dyn EventSink) {
    loop {
        let why = held.lost_power().await;
        events.event(CommandEvent::HeldBoardEnded { place: held.place().clone(), why });
        held.has_power().await;
    }
}
