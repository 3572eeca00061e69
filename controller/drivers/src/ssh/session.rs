//! The thread that owns one SSH session, from the handshake to the last byte.

use std::io::Write as _;
use std::net::Shutdown;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use nix::poll::PollFlags;
use nix::sys::socket::{MsgFlags, recv, shutdown};
use ssh2::{Channel, DisconnectCode, ExtendedData};
use tokio::sync::{oneshot, watch};

use super::auth::{self, AuthError};
use super::end::{SshEnd, SshEnding};
use super::error::SshError;
use super::host_key;
use super::known_hosts::KnownHosts;
use super::link::{Link, StepError};
use super::options::Hop;
use super::pump::{ByteQueue, Pump, Pumped};

/// Name of the thread, before the port of its host, for `ps -L` and tests.
const THREAD: &str = "jig-ssh";

/// Stack of the thread: libssh2 and OpenSSL have their buffers on the heap.
const STACK: usize = 512 << 10;

/// How long a far side may take to open a channel and to start a program, once the user is known.
pub(super) const START: Duration = Duration::from_secs(10);

/// How long a connection that is not wanted any more may take to say goodbye.
const GOODBYE: Duration = Duration::from_millis(500);

/// Longest beginning of what a server says that is shown.
const FIRST: usize = 80;

/// What a session is for.
pub(super) enum Purpose {
    /// To run a command line of the far side's shell; the program's name is for messages.
    Exec { line: String, program: String, merged: bool },
    /// To reach another host.
    Forward { host: String, port: u16, at: String },
}

/// What the thread of a session is given.
pub(super) struct SessionTask {
    pub(super) hop: Hop,
    pub(super) purpose: Purpose,
    /// Connected to the server.
    pub(super) transport: OwnedFd,
    /// Its other end is the caller's.
    pub(super) local: UnixStream,
    /// Told once, when bytes can be sent.
    pub(super) opened: oneshot::Sender<Result<(), SshError>>,
    pub(super) end: watch::Sender<Option<SshEnd>>,
}

impl SessionTask {
    /// Starts the thread. It ends with the channel, or soon after the caller's end is closed.
    ///
    /// # Errors
    /// The system starts no thread.
    pub(super) fn start(self) -> Result<(), SshError> {
        let at = self.hop.at();
        let name = format!("{THREAD}:{}", self.hop.port);
        let thread = thread::Builder::new().name(name).stack_size(STACK);
        let started = thread.spawn(move || self.run());
        started.map(drop).map_err(|source| SshError::system(&at, "start a thread", source))
    }

    fn run(self) {
        let Self { hop, purpose, transport, local, opened, end } = self;
        let link = match Link::new(&hop.at(), transport, local) {
            Ok(link) => link,
            Err(error) => {
                let _ = opened.send(Err(error));
                return;
            }
        };
        let mut channel = match open(&link, &hop, &purpose) {
            Ok(channel) => channel,
            Err(error) => {
                // Without an error the caller is gone.
                let _ = error.map(|error| opened.send(Err(error)));
                link.hang_up();
                return;
            }
        };
        // As often as it is asked for: when is decided elsewhere. libssh2 rounds up to two seconds.
        link.session.set_keepalive(true, 1);
        if opened.send(Ok(())).is_ok() {
            let pumped = Pump::new(&link, &mut channel, hop.keepalive, &end).run();
            finish(&link, &mut channel, &purpose, pumped, &end);
        } else {
            link.close(&mut channel);
        }
        // Both are freed over a transport that is shut, so freeing waits for nothing.
        drop(channel);
    }
}

/// Connects, checks the host, authenticates the user and opens the channel. `None` says that the
/// caller is gone.
fn open(link: &Link, hop: &Hop, purpose: &Purpose) -> Result<Channel, Option<SshError>> {
    let known = KnownHosts::read(&hop.known_hosts)?;
    shake_hands(link, hop, &known)?;
    host_key::check(&link.session, &known, hop)?;
    auth::authenticate(link, hop).map_err(|error| match error {
        AuthError::Ssh(error) => Some(error),
        AuthError::Step(StepError::Late) => Some(link.late("authentication", auth::LIMIT)),
        AuthError::Step(error) => error.lost_unless_abandoned(link),
    })?;
    let until = Instant::now() + START;
    match purpose {
        Purpose::Forward { host, port, at } => {
            let step = || link.session.channel_direct_tcpip(host, *port, None);
            link.complete(until, step).map_err(|error| match error {
                StepError::Session(source) => Some(SshError::JumpRefused {
                    at: at.clone(),
                    via: link.at.clone(),
                    source: Arc::new(source),
                }),
                StepError::Late => Some(link.late("connection to the next host", START)),
                error => error.lost_unless_abandoned(link),
            })
        }
        Purpose::Exec { line, merged, .. } => {
            let refused = |error| match error {
                StepError::Session(source) => Some(SshError::ExecRefused {
                    at: link.at.clone(),
                    user: hop.user.clone(),
                    source: Arc::new(source),
                }),
                StepError::Late => Some(link.late("start of the command", START)),
                error => error.lost_unless_abandoned(link),
            };
            let opened = link.complete(until, || link.session.channel_session());
            let mut channel = opened.map_err(refused)?;
            if *merged {
                // Before the first byte of either.
                let merge = || channel.handle_extended_data(ExtendedData::Merge);
                link.complete(until, merge).map_err(refused)?;
            }
            link.complete(until, || channel.exec(line)).map_err(refused)?;
            Ok(channel)
        }
    }
}

fn shake_hands(link: &Link, hop: &Hop, known: &KnownHosts) -> Result<(), Option<SshError>> {
    let handshake = |source| {
        let source = Arc::new(source);
        Some(SshError::Handshake { at: link.at.clone(), source })
    };
    host_key::prefer_known(&link.session, known, hop).map_err(handshake)?;
    let until = Instant::now() + hop.connect_timeout;
    let mut first = Vec::new();
    let mut session = link.session.clone();
    let done = link.complete(until, || {
        link.look_ahead(&mut first);
        session.handshake()
    });
    let banner = link.session.banner().unwrap_or_default();
    let speaks_ssh = banner.starts_with("SSH-");
    // What came before the look is known to the session.
    if first.is_empty() {
        first.extend_from_slice(&banner.as_bytes()[..banner.len().min(FIRST)]);
    }
    match done {
        Ok(()) => Ok(()),
        Err(StepError::Session(source)) if speaks_ssh => Err(handshake(source)),
        Err(StepError::Late) if speaks_ssh => {
            Err(Some(link.late("end of the SSH handshake", hop.connect_timeout)))
        }
        Err(StepError::Late) if first.is_empty() => {
            Err(Some(link.late("greeting of an SSH server", hop.connect_timeout)))
        }
        Err(StepError::Session(_) | StepError::Late) => {
            let first = match first.is_empty() {
                true => "it closed the connection without a word".to_owned(),
                false => format!("it said `{}`", String::from_utf8_lossy(&first).trim()),
            };
            Err(Some(SshError::NotSsh { at: link.at.clone(), first }))
        }
        Err(error) => Err(error.lost_unless_abandoned(link)),
    }
}

/// Tells the caller the end, and gives it the output that it has not yet taken.
fn finish(
    link: &Link,
    channel: &mut Channel,
    purpose: &Purpose,
    pumped: Pumped,
    end: &watch::Sender<Option<SshEnd>>,
) {
    let Pumped { outcome, stderr, received, output } = pumped;
    let ending = match outcome {
        Ok(ending) => ending,
        Err(StepError::Abandoned) => return link.close(channel),
        Err(error) => SshEnding::Lost(error.lost(&link.at)),
    };
    let program = match purpose {
        Purpose::Exec { program, .. } => program.clone(),
        Purpose::Forward { at, .. } => format!("the way to {at}"),
    };
    let (at, stderr) = (link.at.clone(), stderr.text());
    // Said before the caller can see that nothing follows.
    end.send_replace(Some(SshEnd { ending, stderr, received, at, program }));
    link.close(channel);
    link.give(output);
    let _ = link.local.shutdown(Shutdown::Write);
}

impl Link {
    fn late(&self, what: &'static str, after: Duration) -> SshError {
        SshError::Timeout { at: self.at.clone(), what, after }
    }

    /// Looks at what a server says first, and leaves it to the session.
    fn look_ahead(&self, first: &mut Vec<u8>) {
        let mut some = [0; FIRST];
        if first.is_empty()
            && let Ok(count) = recv(
                self.transport.as_raw_fd(),
                &mut some,
                MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT,
            )
        {
            let line = some[..count].split(|&byte| byte == b'\n').next();
            first.extend_from_slice(line.unwrap_or_default());
        }
    }

    /// Closes the channel and the session, as far as the transport takes bytes at once.
    fn close(&self, channel: &mut Channel) {
        let until = Instant::now() + GOODBYE;
        // The far side's answer is not awaited: its program may live on for hours.
        while channel.close().is_err() && self.directions() == PollFlags::POLLOUT {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.wait(PollFlags::POLLOUT, None, Some(left)).is_err() {
                break;
            }
        }
        let _ = self.session.disconnect(Some(DisconnectCode::ByApplication), "", None);
        self.hang_up();
    }

    /// Ends the transport.
    fn hang_up(&self) {
        let _ = shutdown(self.transport.as_raw_fd(), nix::sys::socket::Shutdown::Both);
    }

    /// Gives the caller the last output. It ends when all is taken, or the caller is gone.
    fn give(&self, mut output: ByteQueue) {
        let mut local = &self.local;
        while !output.is_empty() {
            match local.write(output.bytes()) {
                Ok(count) => output.taken(count),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    // The transport is shut, so only the caller is asked.
                    let mut ends = [nix::poll::PollFd::new(
                        std::os::fd::AsFd::as_fd(&self.local),
                        PollFlags::POLLOUT,
                    )];
                    let _ = nix::poll::poll(&mut ends, nix::poll::PollTimeout::NONE);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }
}

impl StepError {
    fn lost_unless_abandoned(self, link: &Link) -> Option<SshError> {
        match self {
            Self::Abandoned => None,
            error => Some(error.lost(&link.at)),
        }
    }
}
