//! What a run uses of a board that another process holds: the way to its shell.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use jig_drivers::shell::ShellFactory;
use jig_model::ConsoleName;
use jig_model::event::BoardEvent;
use jig_model::protocol::{BindContext, DriverError, PartFactory as _, Protocols, Transport};
use tokio::io::{AsyncRead as _, AsyncWrite as _, DuplexStream, ReadBuf};

/// How long the SSH server of an emulated board is waited for, which its user may have reset just now:
/// many times what the slowest of our images takes on a busy host until its server answers.
const BOOTING: Duration = Duration::from_secs(180);

/// What a run uses of a board that another process holds, in place of all its parts.
pub(crate) struct HeldParts {
    /// Where the ports are reached that the emulator forwards.
    pub(super) ports: BTreeMap<String, String>,
    /// The console at which commands are typed, if they are.
    pub(super) console: Option<HeldConsole>,
}

impl HeldParts {
    /// Binds the shell of the board.
    pub(crate) fn bind(
        &self,
        context: &BindContext,
        shell: &ShellFactory,
    ) -> Result<Protocols, DriverError> {
        for (port, address) in &self.ports {
            let (port, address) = (port.clone(), address.clone());
            context.sink.event(BoardEvent::Forwarded { port, address });
        }
        if let Some(console) = &self.console {
            context.sink.attach(&console.name, Box::new(console.clone()));
        }
        let mut built = shell.join(context, Protocols::default())?;
        if let Some(shell) = built.shell.as_mut().filter(|_| !self.ports.is_empty()) {
            shell.ready_within(BOOTING);
        }
        Ok(built)
    }
}

/// The console of a held board, as a run captures it. Each binding of the run has the same one.
#[derive(Clone)]
pub(super) struct HeldConsole {
    pub(super) name: ConsoleName,
    /// This process's end.
    pub(super) stream: Arc<Mutex<DuplexStream>>,
}

impl Transport for HeldConsole {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        let mut room = ReadBuf::new(buf);
        ready!(Pin::new(&mut *stream).poll_read(cx, &mut room))?;
        Poll::Ready(Ok(room.filled().len()))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        Pin::new(&mut *stream).poll_write(cx, bytes)
    }
}
