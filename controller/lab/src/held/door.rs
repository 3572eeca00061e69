//! The holder's end of its socket: carries out the commands of other processes on the held board.

use std::convert::Infallible;
use std::sync::Arc;

use jig_drivers::serial::capture_service::Caller;
use jig_model::command::{
    Command, CommandEvent, EventSink, HolderOrder, Refusal, Reply, WorkerLine, to_line,
};
use jig_model::{Fault, PlaceName, chain};
use jig_rig::workflow::CancelToken;
use tokio::sync::mpsc;

use super::consoles::EmulatedConsoles;
use crate::Lab;

/// Lines that may wait for a client. One that reads none of so many has its command cancelled, for
/// what a board says never ends.
const WAITING: usize = 1024;

/// Pieces of input that may wait for a command.
const WAITING_INPUT: usize = 16;

/// What the commands of clients are carried out with.
#[derive(Clone)]
pub(super) struct ClientContext {
    pub(super) lab: Lab,
    /// Cancelled when the board is released.
    pub(super) released: CancelToken,
    /// What is known of an emulated board.
    pub(super) board: EmulatedConsoles,
}

/// Carries out the command of a client; ends with it or with its connection.
pub(super) async fn serve(context: ClientContext, place: PlaceName, mut client: Caller) {
    let first = order(&mut client).await;
    if matches!(first, Ok(Some(HolderOrder::Describe))) {
        if let Ok(line) = to_line(&context.board.facts()) {
            // The client may have gone.
            let _ = client.sender().send(&line).await;
        }
        return;
    }
    let (lines, mut to_send) = mpsc::channel::<WorkerLine>(WAITING);
    let sender = client.sender();
    let sending = async move {
        while let Some(line) = to_send.recv().await {
            let line = to_line(&line).or_else(|error| to_line(&refused(&chain(&error))));
            let Ok(line) = line else { continue };
            if sender.send(&line).await.is_err() {
                return;
            }
        }
    };
    let carried_out = async move {
        let last = match carry_out(&context, &place, (first, &mut client), &lines).await {
            Ok(reply) => WorkerLine::Reply(reply),
            Err(refusal) => WorkerLine::Refused(refusal),
        };
        // The connection is kept until the answer has left.
        let _ = lines.send(last).await;
        drop(lines);
        client
    };
    tokio::join!(sending, carried_out);
}

/// Says that a client is not understood.
fn refused(words: &str) -> WorkerLine {
    WorkerLine::Refused(misunderstood(words))
}

fn misunderstood(words: &str) -> Refusal {
    Refusal {
        fault: Fault::Usage,
        message: format!("the holder of the place: {words}"),
        help: Some("use the same version of jig in both terminals".to_owned()),
        problems: Vec::new(),
    }
}

async fn carry_out(
    context: &ClientContext,
    place: &PlaceName,
    (first, client): (Result<Option<HolderOrder>, Refusal>, &mut Caller),
    lines: &mpsc::Sender<WorkerLine>,
) -> Result<Reply, Refusal> {
    let command = match first? {
        Some(HolderOrder::Command(command)) if command.place() == place => *command,
        Some(_) => return Err(misunderstood("no command for its board")),
        None => return Err(misunderstood("the connection has ended")),
    };
    let command = at_held_probe(context, place, command)?;
    let cancel = CancelToken::new();
    let events = Arc::new(ClientEvents { lines: lines.clone(), cancel: cancel.clone() });
    let (input, received) = mpsc::channel(WAITING_INPUT);
    let mut input = Some(input);
    let listening = async {
        loop {
            match order(client).await {
                Ok(Some(HolderOrder::Input { bytes })) => {
                    if let Some(input) = &input {
                        // A command that takes no input any more has ended, or will.
                        let _ = input.send(bytes).await;
                    }
                }
                Ok(Some(HolderOrder::InputEnd)) => input = None,
                Ok(
                    Some(HolderOrder::Cancel | HolderOrder::Command(_) | HolderOrder::Describe)
                    | None,
                )
                | Err(_) => {
                    cancel.cancel();
                    return std::future::pending::<Infallible>().await;
                }
            }
        }
    };
    let released = async {
        context.released.cancelled().await;
        cancel.cancel();
        std::future::pending::<Infallible>().await
    };
    let done = tokio::select! {
        biased;
        done = context.lab.board_command(command, received, events, cancel.clone()) => done,
        never = listening => match never {},
        never = released => match never {},
    };
    done.map_err(|error| (context.lab.refusal)(error))
}

/// Takes the probe out of a command about a chip that is a place by itself: it is the one that is held,
/// or the command is about another board.
fn at_held_probe(
    context: &ClientContext,
    place: &PlaceName,
    mut command: Command,
) -> Result<Command, Refusal> {
    let access = match &mut command {
        Command::Flash(flash) => &mut flash.probe,
        Command::Erase(erase) => &mut erase.probe,
        Command::Reset(reset) => &mut reset.probe,
        Command::Debug(debug) => &mut debug.probe,
        _ => return Ok(command),
    };
    let Some(named) = access.selector.take_if(|_| place.chip().is_some()) else {
        return Ok(command);
    };
    let (held, _) = context.lab.catalogue.place(place).map_err(|e| misunderstood(&chain(&e)))?;
    match &held.probe {
        Some(probe) if probe.may_mean(&named) => Ok(command),
        probe => {
            let probe = probe.as_ref().map_or("no probe", |probe| &probe.selector);
            Err(Refusal {
                fault: Fault::Lab,
                message: format!("{place} is held at probe {probe}, and not at {named}"),
                help: Some(
                    "end `jig hold` in its terminal first: one place of this name is used at a time"
                        .to_owned(),
                ),
                problems: Vec::new(),
            })
        }
    }
}

/// Receives an order; none once the client has gone.
async fn order(client: &mut Caller) -> Result<Option<HolderOrder>, Refusal> {
    let line = client.line().await.map_err(|error| misunderstood(&chain(&error)))?;
    let order = line.map(|line| HolderOrder::from_line(&line));
    order.transpose().map_err(|error| misunderstood(&chain(&error)))
}

/// Passes events on to a client.
struct ClientEvents {
    lines: mpsc::Sender<WorkerLine>,
    cancel: CancelToken,
}

impl EventSink for ClientEvents {
    fn event(&self, event: CommandEvent) {
        if self.lines.try_send(WorkerLine::Event(event)).is_err() {
            self.cancel.cancel();
        }
    }
}
