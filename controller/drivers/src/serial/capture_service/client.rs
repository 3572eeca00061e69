//! Asking a capture service.

use std::io;
use std::path::Path;

use jig_model::capture_service::{
    CaptureAnswer, CaptureCall, CaptureRequest, CaptureStatus, VERSION, WriterEvent, WriterOrder,
};
use jig_model::rig_file::CaptureClient;
use jig_model::{ConsoleName, PlaceName};
use tokio::net::UnixStream;

use super::CaptureServiceError;
use super::channel::{Channel, short};

/// Asks, and waits for the answer; nothing where there is no capture service, or it ends meanwhile.
pub(super) async fn ask(
    client: &CaptureClient,
    wanted: CaptureRequest,
) -> Result<Option<(Channel, CaptureAnswer)>, CaptureServiceError> {
    let request = CaptureCall { version: VERSION, by: client.by.clone(), ask: wanted };
    let Some(mut channel) = connect(&client.socket).await? else { return Ok(None) };
    let answer = async {
        channel.send(&request, None).await?;
        channel.receive().await
    };
    match answer.await {
        Ok(answer) => Ok(answer.map(|answer| (channel, answer))),
        Err(error) if ended(&error) => Ok(None),
        Err(error) => Err(CaptureServiceError::Talk(error)),
    }
}

async fn connect(socket: &Path) -> Result<Option<Channel>, CaptureServiceError> {
    let failed = |source| CaptureServiceError::Socket { path: socket.to_owned(), source };
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
pub(super) fn failed(client: &CaptureClient, answer: CaptureAnswer) -> CaptureServiceError {
    match answer {
        CaptureAnswer::Refused(why) => CaptureServiceError::Refused(why),
        CaptureAnswer::NotCaptured => CaptureServiceError::Refused(format!(
            "it keeps no such console of place {}",
            client.place
        )),
        CaptureAnswer::Transport(_) | CaptureAnswer::Done | CaptureAnswer::Status(_) => {
            let why = "answers something else than it was asked".to_owned();
            CaptureServiceError::Stranger { path: client.socket.clone(), why }
        }
    }
}

/// A serial port that a capture service keeps closed for as long as this lives.
#[derive(Debug)]
pub struct HeldBack(#[expect(dead_code, reason = "its end is what counts")] Channel);

/// Has a serial port closed, for a program that opens it by itself; nothing where nobody
/// keeps it.
///
/// # Errors
/// The capture service refuses, or cannot be talked to.
pub async fn let_go(
    client: &CaptureClient,
    tty: &str,
) -> Result<Option<HeldBack>, CaptureServiceError> {
    let wanted = CaptureRequest::LetGo { tty: tty.to_owned() };
    match ask(client, wanted).await? {
        None | Some((_, CaptureAnswer::NotCaptured)) => Ok(None),
        Some((channel, CaptureAnswer::Done)) => Ok(Some(HeldBack(channel))),
        Some((_, other)) => Err(failed(client, other)),
    }
}

/// Tells a capture service that somebody waits for its place, and returns whether it gives way. It
/// need not be there, or care.
pub async fn give_way(client: &CaptureClient, place: &PlaceName) -> bool {
    match ask(client, CaptureRequest::GiveWay { place: place.clone() }).await {
        Ok(answer) => matches!(answer, Some((_, CaptureAnswer::Done))),
        Err(error) => {
            tracing::debug!(%error, "the capture service was not asked to give way");
            false
        }
    }
}

/// Asks what is kept; nothing where there is no capture service.
///
/// # Errors
/// The capture service refuses, or cannot be talked to.
pub async fn status(
    client: &CaptureClient,
) -> Result<Option<Vec<CaptureStatus>>, CaptureServiceError> {
    match ask(client, CaptureRequest::Status).await? {
        None => Ok(None),
        Some((_, CaptureAnswer::Status(all))) => Ok(Some(all)),
        Some((_, other)) => Err(failed(client, other)),
    }
}

/// The right to send on a kept console. Dropping it gives it up.
#[derive(Debug)]
pub struct WriterClient(Channel);

/// Asks for the right to send; nothing where nobody keeps the console.
///
/// # Errors
/// Somebody else has it, the transport is away, or the capture service cannot be talked to.
pub async fn writer(
    client: &CaptureClient,
    console: &ConsoleName,
    take: bool,
) -> Result<Option<WriterClient>, CaptureServiceError> {
    let wanted =
        CaptureRequest::InputWriter { place: client.place.clone(), console: console.clone(), take };
    match ask(client, wanted).await? {
        None | Some((_, CaptureAnswer::NotCaptured)) => Ok(None),
        Some((channel, CaptureAnswer::Done)) => Ok(Some(WriterClient(channel))),
        Some((_, other)) => Err(failed(client, other)),
    }
}

impl WriterClient {
    /// Gives an order; [`event`](Self::event) then says what became of it.
    ///
    /// # Errors
    /// The capture service has gone.
    pub async fn order(&mut self, order: &WriterOrder) -> Result<(), CaptureServiceError> {
        self.0.send(order, None).await.map_err(CaptureServiceError::Talk)
    }

    /// Waits for event; nothing where the capture service has gone. Cancel-safe.
    ///
    /// # Errors
    /// The capture service says nothing that can be understood.
    pub async fn event(&mut self) -> Result<Option<WriterEvent>, CaptureServiceError> {
        match self.0.receive().await {
            Err(error) if ended(&error) => Ok(None),
            event => event.map_err(CaptureServiceError::Talk),
        }
    }
}
