//! The listening socket and its thread.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::connection::GdbConnection;
use super::debuggee::Debuggee;
use super::session;
use super::socket::{GdbEndpoint, GdbListener};

/// Says why no server could be started.
#[derive(Debug, thiserror::Error)]
pub enum GdbServerError {
    /// The address is taken, or not ours.
    #[error("listen for gdb on {endpoint}")]
    Listen {
        /// The address.
        endpoint: GdbEndpoint,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The system has no thread left.
    #[error("start the gdb server's thread")]
    Thread(#[source] io::Error),
}

/// A running server. Dropping it turns its client away and ends its thread.
#[derive(Debug)]
pub struct GdbServer {
    endpoint: GdbEndpoint,
    /// Closing it is what ends the thread.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<Box<dyn Debuggee>>>,
}

impl GdbServer {
    /// Starts to listen, and serves clients one after the other on a thread of its own.
    ///
    /// # Errors
    /// The address cannot be listened on, or the system is out of threads.
    pub fn start(
        endpoint: &GdbEndpoint,
        debuggee: Box<dyn Debuggee>,
    ) -> Result<Self, GdbServerError> {
        let refused = |source| GdbServerError::Listen { endpoint: endpoint.clone(), source };
        let listener = GdbListener::bind(endpoint).map_err(refused)?;
        let endpoint = listener.endpoint().map_err(refused)?;
        let (stop, stopped) = UnixStream::pair().map_err(GdbServerError::Thread)?;
        let thread = std::thread::Builder::new()
            .name("jig-gdb".to_owned())
            .spawn(move || serve(&listener, &stopped, debuggee))
            .map_err(GdbServerError::Thread)?;
        Ok(Self { endpoint, stop: Some(stop), thread: Some(thread) })
    }

    /// Returns where clients connect to, with the port that was found.
    pub fn address(&self) -> &GdbEndpoint {
        &self.endpoint
    }

    /// Turns the client away, if there is one, restores the core as for one that leaves, and
    /// gives the debuggee back; nothing if its thread panicked. Waits for the operation that
    /// is under way.
    pub fn stop(mut self) -> Option<Box<dyn Debuggee>> {
        self.end()
    }

    fn end(&mut self) -> Option<Box<dyn Debuggee>> {
        self.stop.take();
        self.thread.take()?.join().ok()
    }
}

impl Drop for GdbServer {
    fn drop(&mut self) {
        self.end();
    }
}

fn serve(
    listener: &GdbListener,
    stop: &UnixStream,
    mut debuggee: Box<dyn Debuggee>,
) -> Box<dyn Debuggee> {
    loop {
        let stopped = {
            let mut polled = [
                PollFd::new(listener.as_fd(), PollFlags::POLLIN),
                PollFd::new(stop.as_fd(), PollFlags::POLLIN),
            ];
            match poll(&mut polled, PollTimeout::NONE) {
                Ok(_) => polled[1].any().unwrap_or(true),
                Err(nix::errno::Errno::EINTR) => continue,
                Err(_) => true,
            }
        };
        if stopped {
            return debuggee;
        }
        let Ok(stream) = listener.accept() else { continue };
        match GdbConnection::new(stream, listener, stop) {
            Ok(connection) => {
                if session::serve(connection, debuggee.as_mut()) == session::GdbSessionEnd::Stop {
                    return debuggee;
                }
            }
            Err(error) => tracing::debug!(%error, "a gdb client left before it was served"),
        }
    }
}
