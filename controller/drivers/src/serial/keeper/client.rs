//! Asking a keeper.

use std::io;
use std::path::Path;

use jig_model::keeper::{
    KeeperAnswer, KeeperAsk, KeeperRequest, KeptStatus, PenNews, PenOrder, VERSION,
};
use jig_model::rig_file::KeeperSeat;
use jig_model::{ConsoleName, PlaceName};
use tokio::net::UnixStream;

use super::KeeperError;
use super::channel::{Channel, short};

/// Asks, and waits for the answer; nothing where there is no keeper, or it ends meanwhile.
pub(super) async fn ask(
    seat: &KeeperSeat,
    wanted: KeeperAsk,
) -> Result<Option<(Channel, KeeperAnswer)>, KeeperError> {
    let request = KeeperRequest { version: VERSION, by: seat.by.clone(), ask: wanted };
    let Some(mut channel) = connect(&seat.socket).await? else { return Ok(None) };
    let answer = async {
        channel.send(&request, None).await?;
        channel.receive().await
    };
    match answer.await {
        Ok(answer) => Ok(answer.map(|answer| (channel, answer))),
        Err(error) if ended(&error) => Ok(None),
        Err(error) => Err(KeeperError::Talk(error)),
    }
}

async fn connect(socket: &Path) -> Result<Option<Channel>, KeeperError> {
    let failed = |source| KeeperError::Socket { path: socket.to_owned(), source };
    let near = match short(socket) {
        Ok(near) => near,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let connected = UnixStream::connect(&near.path).await;
    match connected.and_then(Channel::of) {
        Ok(channel) => Ok(Some(channel)),
        // Nobody listens, or nobody any more.
        Err(error) if error.kind() == io::ErrorKind::NotFound || ended(&error) => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

fn ended(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), BrokenPipe | ConnectionRefused | ConnectionReset)
}

/// Says what an answer means that was not the one wanted.
pub(super) fn failed(seat: &KeeperSeat, answer: KeeperAnswer) -> KeeperError {
    match answer {
        KeeperAnswer::Refused(why) => KeeperError::Refused(why),
        KeeperAnswer::NotKept => {
            KeeperError::Refused(format!("it keeps no such console of place {}", seat.place))
        }
        KeeperAnswer::Transport(_) | KeeperAnswer::Done | KeeperAnswer::Status(_) => {
            let why = "answers something else than it was asked".to_owned();
            KeeperError::Stranger { path: seat.socket.clone(), why }
        }
    }
}

/// A serial port that a keeper keeps closed for as long as this lives.
#[derive(Debug)]
pub struct HeldBack(#[expect(dead_code, reason = "its end is what counts")] Channel);

/// Has a serial port closed, for a program that opens it by itself; nothing where nobody
/// keeps it.
///
/// # Errors
/// The keeper refuses, or cannot be talked to.
pub async fn let_go(seat: &KeeperSeat, tty: &str) -> Result<Option<HeldBack>, KeeperError> {
    let wanted = KeeperAsk::LetGo { tty: tty.to_owned() };
    match ask(seat, wanted).await? {
        None | Some((_, KeeperAnswer::NotKept)) => Ok(None),
        Some((channel, KeeperAnswer::Done)) => Ok(Some(HeldBack(channel))),
        Some((_, other)) => Err(failed(seat, other)),
    }
}

/// Tells a keeper that somebody waits for its place, and returns whether it gives way. It need
/// not be there, or care.
pub async fn give_way(seat: &KeeperSeat, place: &PlaceName) -> bool {
    match ask(seat, KeeperAsk::GiveWay { place: place.clone() }).await {
        Ok(answer) => matches!(answer, Some((_, KeeperAnswer::Done))),
        Err(error) => {
            tracing::debug!(%error, "the keeper was not asked to give way");
            false
        }
    }
}

/// Asks what is kept; nothing where there is no keeper.
///
/// # Errors
/// The keeper refuses, or cannot be talked to.
pub async fn status(seat: &KeeperSeat) -> Result<Option<Vec<KeptStatus>>, KeeperError> {
    match ask(seat, KeeperAsk::Status).await? {
        None => Ok(None),
        Some((_, KeeperAnswer::Status(all))) => Ok(Some(all)),
        Some((_, other)) => Err(failed(seat, other)),
    }
}

/// The right to send on a kept console. Dropping it gives it up.
#[derive(Debug)]
pub struct PenClient(Channel);

/// Asks for the right to send; nothing where nobody keeps the console.
///
/// # Errors
/// Somebody else has it, the transport is away, or the keeper cannot be talked to.
pub async fn pen(
    seat: &KeeperSeat,
    console: &ConsoleName,
    take: bool,
) -> Result<Option<PenClient>, KeeperError> {
    let wanted = KeeperAsk::Pen { place: seat.place.clone(), console: console.clone(), take };
    match ask(seat, wanted).await? {
        None | Some((_, KeeperAnswer::NotKept)) => Ok(None),
        Some((channel, KeeperAnswer::Done)) => Ok(Some(PenClient(channel))),
        Some((_, other)) => Err(failed(seat, other)),
    }
}

impl PenClient {
    /// Gives an order; [`event`](Self::event) then says what became of it.
    ///
    /// # Errors
    /// The keeper has gone.
    pub async fn order(&mut self, order: &PenOrder) -> Result<(), KeeperError> {
        self.0.send(order, None).await.map_err(KeeperError::Talk)
    }

    /// Waits for event; nothing where the keeper has gone. Cancel-safe.
    ///
    /// # Errors
    /// The keeper says nothing that can be understood.
    pub async fn event(&mut self) -> Result<Option<PenNews>, KeeperError> {
        match self.0.receive().await {
            Err(error) if ended(&error) => Ok(None),
            event => event.map_err(KeeperError::Talk),
        }
    }
}
