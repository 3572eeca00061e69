//! The other end of the holder's socket: has a command carried out on a board that another process
//! holds.

use std::convert::Infallible;
use std::sync::Arc;

use jig_drivers::serial::capture_service::{CaptureServiceError, LineClient, LineSender};
use jig_model::PlaceName;
use jig_model::command::{
    Command, EventSink, HeldBoardFacts, HolderOrder, MOST_LINE, Reply, WorkerLine, to_line,
};
use jig_rig::store::Places;
use jig_rig::workflow::CancelToken;
use tokio::sync::mpsc;

use super::HoldError;

/// Most bytes of input in one order.
const PIECE: usize = 16 << 10;

/// A connection to the process that holds a place.
pub(crate) struct HolderClient {
    place: PlaceName,
    lines: LineClient,
}

impl HolderClient {
    /// Connects to the holder of a place; none if no process holds it for others.
    pub(crate) async fn connect(
        places: &Places,
        place: &PlaceName,
    ) -> Result<Option<Self>, HoldError> {
        let lines = LineClient::connect(&places.holder_socket(place), MOST_LINE).await?;
        Ok(lines.map(|lines| Self { place: place.clone(), lines }))
    }

    /// Asks about the board.
    pub(crate) async fn describe(mut self) -> Result<HeldBoardFacts, HoldError> {
        self.order(&self.lines.sender(), &HolderOrder::Describe).await?;
        let Some(line) = self.lines.line().await? else { return Err(HoldError::Gone(self.place)) };
        match (HeldBoardFacts::from_line(&line), WorkerLine::from_line(&line)) {
            (Ok(facts), _) => Ok(facts),
            (Err(_), Ok(WorkerLine::Refused(refusal))) => {
                Err(HoldError::Refused(Box::new(refusal)))
            }
            (Err(error), _) => Err(HoldError::Line { place: self.place, error }),
        }
    }

    /// Has a command carried out. Its files are those of this process.
    pub(crate) async fn carry_out(
        mut self,
        mut command: Command,
        mut input: mpsc::Receiver<Vec<u8>>,
        events: Arc<dyn EventSink>,
        cancel: CancelToken,
    ) -> Result<Reply, HoldError> {
        let files = command.files();
        for path in files.images.into_iter().chain(files.outputs) {
            // The holder has another working directory.
            if let Ok(absolute) = std::path::absolute(&*path) {
                *path = absolute;
            }
        }
        let sender = self.lines.sender();
        self.order(&sender, &HolderOrder::Command(Box::new(command))).await?;
        let place = self.place.clone();
        let orders = async {
            let mut open = true;
            loop {
                let order = tokio::select! {
                    bytes = input.recv(), if open => match bytes {
                        Some(bytes) => {
                            for piece in bytes.chunks(PIECE) {
                                let bytes = piece.to_vec();
                                send(&sender, &place, &HolderOrder::Input { bytes }).await?;
                            }
                            continue;
                        }
                        None => {
                            open = false;
                            HolderOrder::InputEnd
                        }
                    },
                    () = cancel.cancelled() => HolderOrder::Cancel,
                };
                send(&sender, &place, &order).await?;
                if order == HolderOrder::Cancel {
                    return std::future::pending::<Result<Infallible, HoldError>>().await;
                }
            }
        };
        let answers = async {
            loop {
                let Some(line) = self.lines.line().await? else {
                    return Err(HoldError::Gone(self.place.clone()));
                };
                match WorkerLine::from_line(&line) {
                    Ok(WorkerLine::Event(event)) => events.event(event),
                    Ok(WorkerLine::Reply(reply)) => return Ok(reply),
                    Ok(WorkerLine::Refused(refusal)) => {
                        return Err(HoldError::Refused(Box::new(refusal)));
                    }
                    Err(error) => {
                        return Err(HoldError::Line { place: self.place.clone(), error });
                    }
                }
            }
        };
        let orders = async {
            match orders.await {
                Ok(never) => match never {},
                // The answers tell how it ended.
                Err(error) => {
                    tracing::debug!(%error, "the holder takes no more orders");
                    std::future::pending::<Infallible>().await
                }
            }
        };
        tokio::select! {
            answer = answers => answer,
            never = orders => match never {},
        }
    }

    async fn order(&self, sender: &LineSender, order: &HolderOrder) -> Result<(), HoldError> {
        send(sender, &self.place, order).await
    }
}

async fn send(
    sender: &LineSender,
    place: &PlaceName,
    order: &HolderOrder,
) -> Result<(), HoldError> {
    let line = to_line(order);
    let line = line.map_err(|error| HoldError::Line { place: place.clone(), error })?;
    Ok(sender.send(&line).await.map_err(CaptureServiceError::Talk)?)
}
