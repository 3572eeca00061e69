//! The byte pipe to a program on another host, as a tokio stream.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use jig_model::protocol::ProcessLedger;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::sync::{oneshot, watch};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::auth;
use super::command::{self, CommandProcess};
use super::connect::connect;
use super::end::{SshEnd, SshEnding};
use super::error::SshError;
use super::options::{Hop, SshOptions};
use super::session::{Purpose, START, SessionTask};
use super::target::SshTarget;
use super::words::shell_line;

/// A line for the shell of the far side, in its own language.
#[derive(Debug, Clone)]
pub struct RemoteLine {
    /// The line.
    pub line: String,
    /// The program's name, for messages.
    pub program: String,
    /// Whether standard error comes as output; else its end is kept for messages.
    pub merged: bool,
}

/// Tells how the program behind a pipe ends.
#[derive(Clone)]
pub struct SshEndHandle(watch::Receiver<Option<SshEnd>>);

impl SshEndHandle {
    /// Waits for the end; nothing if the pipe is dropped before. Cancel-safe.
    pub async fn ended(&mut self) -> Option<SshEnd> {
        self.0.wait_for(Option::is_some).await.ok().and_then(|end| end.clone())
    }
}

/// Standard input and output of a program on another host.
///
/// Reading ends where the program's output ends; if the connection is lost before, reading fails.
/// Shutting down the writing half ends the program's input. Dropping the pipe closes the connection
/// and ends the thread behind it within a second.
pub struct SshPipe {
    stream: UnixStream,
    end: watch::Receiver<Option<SshEnd>>,
    received: u64,
    /// Kills the child process when it is dropped; `None` with the built-in client.
    _child: Option<CommandProcess>,
}

impl SshPipe {
    /// Connects with the built-in client and starts the command on the far side.
    ///
    /// Dropping the future ends what it has begun.
    ///
    /// # Errors
    /// The options make no sense, or there is no connection.
    pub async fn open(options: SshOptions) -> Result<Self, SshError> {
        let line = shell_line(&options.command).map_err(SshError::Command)?;
        let program = options.command.first().cloned().unwrap_or_default();
        Self::open_line(options, RemoteLine { line, program, merged: false }).await
    }

    /// Connects with the built-in client and gives a line to the shell of the far side. The command of
    /// the options is not used.
    ///
    /// # Errors
    /// As [`SshPipe::open`].
    pub async fn open_line(options: SshOptions, line: RemoteLine) -> Result<Self, SshError> {
        let RemoteLine { line, program, merged } = line;
        let at = options.target.to_string();
        let route = spawn_blocking(move || options.route()).await;
        let route =
            route.map_err(|error| SshError::system(&at, "read the configuration", error))??;
        let mut hops = route.into_iter().peekable();
        let mut transport: Option<OwnedFd> = None;
        while let Some(hop) = hops.next() {
            let through = match transport.take() {
                Some(through) => through,
                None => connect(&hop).await?,
            };
            let Some(next) = hops.peek() else {
                return Self::through(through, hop, Purpose::Exec { line, program, merged }).await;
            };
            let (host, port, next) = (next.host.clone(), next.port, next.at());
            let forward = Purpose::Forward { host, port, at: next };
            let pipe = Self::through(through, hop, forward).await?;
            let std = pipe.stream.into_std();
            let std = std.map_err(|source| SshError::system(&at, "connect the hosts", source))?;
            transport = Some(std.into());
        }
        // A route has the target at least.
        Err(SshError::JumpLoop { host: at })
    }

    /// Runs a session over a transport.
    async fn through(transport: OwnedFd, hop: Hop, purpose: Purpose) -> Result<Self, SshError> {
        let at = hop.at();
        let refused = |source| SshError::system(&at, "make a pipe", source);
        let (near, far) = StdStream::pair().map_err(refused)?;
        near.set_nonblocking(true).map_err(refused)?;
        let stream = UnixStream::from_std(near).map_err(refused)?;
        let (opened, is_open) = oneshot::channel();
        let (end_sender, end) = watch::channel(None);
        // The thread has a limit for each of its steps, except while it waits for a signature.
        let limit = hop.connect_timeout + auth::LIMIT + START * 2;
        let agent = hop.agent.clone().unwrap_or_default();
        let task = SessionTask { hop, purpose, transport, local: far, opened, end: end_sender };
        task.start()?;
        match timeout(limit, is_open).await {
            Ok(Ok(Ok(()))) => Ok(Self { stream, end, received: 0, _child: None }),
            Ok(Ok(Err(error))) => Err(error),
            Ok(Err(_)) => Err(refused(io::Error::other("its thread ended"))),
            Err(_) => Err(SshError::Agent { at, agent }),
        }
    }

    /// Connects with a client that takes OpenSSH's options, such as `["ssh", "-F", "file"]`, and
    /// starts the command on the far side.
    ///
    /// The pipe is open at once: what the client cannot do is told by its end, and so is the loss
    /// of a connection. It asks for no passwords, because it has no terminal.
    ///
    /// # Errors
    /// The command makes no command line, or the client cannot be started.
    pub async fn open_with_client(
        client: &[String],
        target: &SshTarget,
        command: &[String],
        ledger: Arc<dyn ProcessLedger>,
    ) -> Result<Self, SshError> {
        let (stream, end, child) = command::start(client, target, command, ledger).await?;
        Ok(Self { stream, end, received: 0, _child: Some(child) })
    }

    /// Returns what tells how the program ends, also once the pipe is split in two.
    pub fn end_handle(&self) -> SshEndHandle {
        SshEndHandle(self.end.clone())
    }

    /// Waits until the program on the far side has ended or the connection is lost. Cancel-safe.
    ///
    /// The program does not end while its output is not read.
    pub async fn ended(&mut self) -> SshEnd {
        match self.end.wait_for(Option::is_some).await.map(|end| end.clone()) {
            Ok(Some(end)) => SshEnd { received: end.received.max(self.received), ..end },
            // The end is said before the thread ends, so this arm needs a thread that panicked.
            Ok(None) | Err(_) => {
                let source = io::Error::other("its thread ended");
                let error = SshError::system("ssh", "carry bytes", source);
                let (at, program) = (String::new(), String::new());
                let ending = SshEnding::Lost(error);
                SshEnd { ending, stderr: String::new(), received: 0, at, program }
            }
        }
    }

    /// Returns the error of a connection that was lost.
    fn lost(&self) -> Option<io::Error> {
        match &self.end.borrow().as_ref()?.ending {
            SshEnding::Lost(error) => {
                Some(io::Error::new(io::ErrorKind::ConnectionReset, error.clone()))
            }
            SshEnding::Exited(_) | SshEnding::Signalled(_) => None,
        }
    }
}

impl AsyncRead for SshPipe {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let could_read = buf.remaining() > 0;
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        let count = buf.filled().len() - before;
        self.received += u64::try_from(count).unwrap_or_default();
        match self.lost() {
            // An end that is none.
            Some(error) if could_read && count == 0 => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(())),
        }
    }
}

impl AsyncWrite for SshPipe {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
