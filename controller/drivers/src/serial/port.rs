//! A serial port, wherever it is.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jig_model::ConsoleName;
use jig_model::capture_service::LoanPosition;
use jig_model::protocol::{NoLedger, ProcessLedger, Transport};
use jig_model::rig_file::{CaptureClient, ConsoleTransport, Endpoint};
use tokio::task::spawn_blocking;

use super::capture_service::borrow;
use super::command::CommandTransport;
use super::error::SerialError;
use super::open_tty::TtyError;
use super::rfc2217::Rfc2217Transport;
use super::socket::SocketTransport;
use super::tty::TtyTransport;

/// A serial port that can be opened, and opened again.
#[derive(Clone)]
pub struct SerialPort {
    end: Endpoint,
    address: String,
    baud: u32,
    ready: Option<String>,
    /// Where programs are entered that are started for it.
    ledger: Arc<dyn ProcessLedger>,
    kept: Option<Lender>,
}

/// Where it may be borrowed.
#[derive(Clone)]
struct Lender {
    client: CaptureClient,
    console: ConsoleName,
    told: TakenOver,
}

/// Is told where the capture service's log stood, each time a transport was borrowed.
pub type TakenOver = Arc<dyn Fn(LoanPosition) + Send + Sync>;

impl fmt::Debug for SerialPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SerialPort").field("end", &self.end).field("baud", &self.baud).finish()
    }
}

impl SerialPort {
    /// Names a port; `baud` is its speed in bits per second, where this host can set it.
    pub fn new(end: Endpoint, baud: u32) -> Self {
        let (address, ledger) = (end.address().into_owned(), Arc::new(NoLedger));
        Self { end, address, baud, ready: None, ledger, kept: None }
    }

    /// Says by which text a program tells that it is connected.
    pub fn ready_by(mut self, text: Option<String>) -> Self {
        self.ready = text;
        self
    }

    /// Enters the programs that are started for the port in a ledger.
    pub fn entered_in(mut self, ledger: Arc<dyn ProcessLedger>) -> Self {
        self.ledger = ledger;
        self
    }

    /// Names the port of a place's transport, to be borrowed from the capture service; `baud` is
    /// the speed of its console.
    pub fn of_transport(transport: &ConsoleTransport, baud: u32, told: TakenOver) -> Self {
        let kept = transport.capture.clone().map(|client| {
            let console = transport.console.clone();
            Lender { client, console, told }
        });
        let port = Self::new(transport.end.clone(), transport.baud.unwrap_or(baud));
        Self { kept, ..port.ready_by(transport.ready.clone()) }
    }

    /// Returns the path or address, or the program with its arguments.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Tells whether what comes back under this name is the same port: a link by id or by path
    /// is, and so are an address and a program. Ask while it is there.
    pub(super) fn keeps_its_name(&self) -> bool {
        match &self.end {
            Endpoint::Tty(path) => Path::new(path).is_symlink(),
            Endpoint::Tcp(_) | Endpoint::Rfc2217(_) | Endpoint::Unix(_) | Endpoint::Command(_) => {
                true
            }
        }
    }

    /// Opens it once. Takes as long as a server takes to answer: the caller sets an end.
    ///
    /// # Errors
    /// The port is not there, not free, or not as it should be.
    pub async fn open(&self) -> Result<Box<dyn Transport>, SerialError> {
        if let Some(Lender { client, console, told }) = &self.kept {
            let borrowed = borrow(client, console).await;
            let address = || self.address().to_owned();
            let borrowed = borrowed
                .map_err(|source| SerialError::CaptureService { address: address(), source })?;
            if let Some((transport, lent)) = borrowed {
                told(lent);
                return Ok(Box::new(transport));
            }
        }
        let connect = |source| SerialError::Connect { address: self.address().to_owned(), source };
        Ok(match &self.end {
            Endpoint::Tty(path) => Box::new(open_tty(PathBuf::from(path), self.baud).await?),
            Endpoint::Tcp(address) => {
                Box::new(SocketTransport::tcp(address).await.map_err(connect)?)
            }
            Endpoint::Unix(path) => {
                Box::new(SocketTransport::unix(&PathBuf::from(path)).await.map_err(connect)?)
            }
            Endpoint::Command(argv) => {
                let (ready, ledger) = (self.ready.as_deref(), Arc::clone(&self.ledger));
                Box::new(CommandTransport::open(argv, ready, ledger).await?)
            }
            Endpoint::Rfc2217(address) => {
                Box::new(Rfc2217Transport::open(address, self.baud).await?)
            }
        })
    }
}

/// Opens a tty on a thread of its own: an adapter that does not answer holds up no other task.
async fn open_tty(path: PathBuf, baud: u32) -> Result<TtyTransport, SerialError> {
    let device = path.clone();
    match spawn_blocking(move || TtyTransport::open(&device, baud)).await {
        Ok(opened) => Ok(opened?),
        Err(error) => Err(TtyError::Open { path, source: io::Error::other(error) }.into()),
    }
}
