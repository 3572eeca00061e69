//! Client of the capture service.

use std::io;
use std::path::Path;

use jig_model::capture_service::{
    CaptureAnswer, CaptureCall, CaptureRequest, CaptureStatus, MOST_LINE, VERSION, WriterEvent,
    WriterOrder,
};
use jig_model::protocol::LineControl;
use jig_model::rig_file::CaptureClient;
use jig_model::{ConsoleName, PlaceName};
use tokio::net::UnixStream;

use super::CaptureServiceError;
use super::channel::{Channel, LineSender, short};

/// Sends a request and waits for the answer; none if no capture service runs, or it ends meanwhile.
pub(super) async fn ask(
    client: &CaptureClient,
    wanted: CaptureRequest,
) -> Result<Option<(Channel, CaptureAnswer)>, CaptureServiceError> {
    let request = CaptureCall { version: VERSION, by: client.by.clone(), ask: wanted };
    let Some(mut channel) = connect(&client.socket, MOST_LINE).await? else { return Ok(None) };
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

async fn connect(socket: &Path, most_line: usize) -> Result<Option<Channel>, CaptureServiceError> {
    let failed = |source| CaptureServiceError::Socket { path: socket.to_owned(), source };
    let near = match short(socket) {
        Ok(near) => near,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let connected = UnixStream::connect(&near.path).await;
    match connected.and_then(|stream| Channel::of(stream, most_line)) {
        Ok(channel) => Ok(Some(channel)),
        // No service listens, or it was killed and left its socket.
        Err(error) if error.kind() == io::ErrorKind::NotFound || ended(&error) => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

fn ended(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), BrokenPipe | ConnectionRefused | ConnectionReset)
}

/// A connection to a [`Door`](super::Door) at which lines are exchanged.
#[derive(Debug)]
pub struct LineClient(Channel);

impl LineClient {
    /// Connects; none if no process listens there. Longer lines than `most_line` bytes are refused.
    ///
    /// # Errors
    /// The socket cannot be used, or is another user's.
    pub async fn connect(
        socket: &Path,
        most_line: usize,
    ) -> Result<Option<Self>, CaptureServiceError> {
        Ok(connect(socket, most_line).await?.map(Self))
    }

    /// Returns what sends lines while others are received.
    pub fn sender(&self) -> LineSender {
        self.0.sender()
    }

    /// Receives a line without its end; none if the peer has closed. Cancel-safe.
    ///
    /// # Errors
    /// The connection has failed.
    pub async fn line(&mut self) -> Result<Option<Vec<u8>>, CaptureServiceError> {
        match self.0.receive_line().await {
            Err(error) if ended(&error) => Ok(None),
            line => line.map_err(CaptureServiceError::Talk),
        }
    }
}

/// Converts an unexpected answer to an error.
pub(super) fn failed(client: &CaptureClient, answer: CaptureAnswer) -> CaptureServiceError {
    match answer {
        CaptureAnswer::Refused(why) => CaptureServiceError::Refused(why),
        CaptureAnswer::NotCaptured => CaptureServiceError::Refused(format!(
            "it captures no such console of place {}",
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

/// Has the service close a serial port, so that another program can open it; none if the service
/// does not capture it.
///
/// # Errors
/// The capture service refuses, or cannot be talked to.
pub async fn release_port(
    client: &CaptureClient,
    tty: &str,
) -> Result<Option<HeldBack>, CaptureServiceError> {
    let wanted = CaptureRequest::Release { tty: tty.to_owned() };
    match ask(client, wanted).await? {
        None | Some((_, CaptureAnswer::NotCaptured)) => Ok(None),
        Some((channel, CaptureAnswer::Done)) => Ok(Some(HeldBack(channel))),
        Some((_, other)) => Err(failed(client, other)),
    }
}

/// Tells the capture service that a run waits for a place; returns whether the service gives way.
/// Returns false if no service runs.
pub async fn give_way(client: &CaptureClient, place: &PlaceName) -> bool {
    match ask(client, CaptureRequest::GiveWay { place: place.clone() }).await {
        Ok(answer) => matches!(answer, Some((_, CaptureAnswer::Done))),
        Err(error) => {
            tracing::debug!(%error, "the capture service was not asked to give way");
            false
        }
    }
}

/// Sets a modem line of a captured console, also where another user has the right to send; returns whether the
/// service captures it.
///
/// # Errors
/// The line was not set, or the capture service cannot be talked to.
pub async fn set_line(
    client: &CaptureClient,
    console: &ConsoleName,
    what: LineControl,
) -> Result<bool, CaptureServiceError> {
    let (place, console) = (client.place.clone(), console.clone());
    match ask(client, CaptureRequest::Line { place, console, what }).await? {
        None | Some((_, CaptureAnswer::NotCaptured)) => Ok(false),
        Some((_, CaptureAnswer::Done)) => Ok(true),
        Some((_, other)) => Err(failed(client, other)),
    }
}

/// Lists the captured consoles; none if no capture service runs.
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

/// The right to send on a captured console; dropping it releases the right.
#[derive(Debug)]
pub struct WriterClient(Channel);

/// Requests the right to send; none if the service does not capture the console.
///
/// # Errors
/// Another user has it, the transport is away, or the capture service cannot be talked to.
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
    /// Sends an order; [`event`](Self::event) then returns its result.
    ///
    /// # Errors
    /// The capture service has gone.
    pub async fn order(&mut self, order: &WriterOrder) -> Result<(), CaptureServiceError> {
        self.0.send(order, None).await.map_err(CaptureServiceError::Talk)
    }

    /// Waits for the next event; none if the capture service has ended. Cancel-safe.
    ///
    /// # Errors
    /// The message cannot be parsed.
    pub async fn event(&mut self) -> Result<Option<WriterEvent>, CaptureServiceError> {
        match self.0.receive().await {
            Err(error) if ended(&error) => Ok(None),
            event => event.map_err(CaptureServiceError::Talk),
        }
    }
}
