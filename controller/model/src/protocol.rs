//! The protocols of a board, independent of the drivers that implement them.
//!
//! A driver turns a resource into some of these; a place binds them into one board. An
//! emulator implements all of them, so an emulated board is a board. All are dyn-safe
//! and name no async runtime.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::image::{DeployReport, Image};
use crate::post_mortem::{FaultSighting, PostMortem};
use crate::power::SecretSource;
use crate::profile::BoardProfile;
use crate::rig_file::Place;
use crate::{Cause, ConsoleName};

mod board_event;
mod run_control;
mod target_port;

pub use board_event::{BoardEvent, HIDDEN_EXIT_CODE, PowerState};
pub use run_control::RunControl;
pub use target_port::{CopiedFile, ShellPort, TargetCommandEnd};

/// A boxed future that can move between threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Says that a driver could not do as asked, and which cause that makes.
///
/// It prints as the driver's own error does, and has the same sources.
#[derive(Debug)]
pub struct DriverError {
    /// The cause a run ends with if no recovery helps.
    pub cause: Cause,
    /// The driver's own error, which holds the facts.
    pub error: Box<dyn Error + Send + Sync>,
}

/// What was tried, and why it failed: the error of a driver without a type of its own for it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct Failed {
    message: String,
    #[source]
    source: Box<dyn Error + Send + Sync>,
}

impl DriverError {
    /// Gives a driver's own error the cause that it makes.
    pub fn of(cause: Cause, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { cause, error: error.into() }
    }

    /// Builds an error of words: lower case, what was awaited and how long.
    pub fn new(cause: Cause, message: impl Into<String>) -> Self {
        Self::of(cause, message.into())
    }

    /// Adds what lies below.
    pub fn with_source(self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let failed = Failed { message: self.error.to_string(), source: source.into() };
        Self::of(self.cause, failed)
    }
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl Error for DriverError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

/// Switches a board's power.
///
/// `on` returns when the board runs and its consoles are captured; `off` when nothing of
/// it runs any more. Both are idempotent.
pub trait Power: Send {
    /// Brings the board to where no earlier boot prints any more, so that what the consoles show
    /// from now on belongs to the boot that the next `on` begins: a core that is halted, a power
    /// that is cut. May give the board power. Does nothing where that is not in its hands.
    fn quiesce(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(std::future::ready(Ok(())))
    }
    /// Powers the board.
    fn on(&mut self) -> BoxFuture<'_, Result<(), DriverError>>;
    /// Takes the power away.
    fn off(&mut self) -> BoxFuture<'_, Result<(), DriverError>>;
    /// Asks whether the board has power.
    fn status(&mut self) -> BoxFuture<'_, Result<PowerState, DriverError>>;
    /// Returns how long `off` may take before the caller gives it up: not less than its own
    /// timeout, because its own error says more. An emulator is killed within milliseconds and a
    /// probe gives up within seconds; a driver of slower devices overrides this.
    fn off_timeout(&self) -> Duration {
        Duration::from_secs(30)
    }
    /// Takes the power away, waits, and gives it back. What waits for nothing else waits
    /// `off_time`, or as long as the place says; an emulated board forgets at once.
    fn cycle(&mut self, off_time: Option<Duration>) -> BoxFuture<'_, Result<(), DriverError>> {
        let _ = off_time;
        Box::pin(async move {
            self.off().await?;
            self.on().await
        })
    }
}

/// Tells by another way than the switch whether a board has power: a second outlet that only
/// reads, a console's silence, a debug port that answers.
pub trait PowerSense: Send {
    /// Returns its name for messages: `hub port 1-1.4/2`.
    fn name(&self) -> String;
    /// Looks once; nothing if it cannot tell now. What a look opens may stay open for the next.
    fn look(&mut self) -> BoxFuture<'_, Result<Option<PowerState>, DriverError>>;
    /// Tells whether it contradicts a switch when it sees this. What answers or prints has power;
    /// what is silent may have other reasons.
    fn is_sure_of(&self, seen: PowerState) -> bool {
        let _ = seen;
        true
    }
    /// Lets go of what its looks have opened.
    fn rest(&mut self) {}
    /// Returns how long a look takes at most.
    fn look_timeout(&self) -> Duration {
        Duration::from_secs(30)
    }
}

/// Resets a running board without taking its power: RAM survives.
pub trait Reset: Send {
    /// Resets; returns when the first byte that follows belongs to the new boot.
    fn reset(&mut self) -> BoxFuture<'_, Result<(), DriverError>>;
}

/// Puts an image on a board.
pub trait Flasher: Send {
    /// Deploys the image; it runs from the next power-on.
    fn deploy<'a>(
        &'a mut self,
        image: &'a Image,
    ) -> BoxFuture<'a, Result<DeployReport, DriverError>>;
}

/// Asks a debug port about a target that has gone wrong.
#[derive(Debug, Clone)]
pub struct PostMortemRequest {
    /// The image that should be running: its symbols and lines.
    pub image: Option<PathBuf>,
    /// Where to leave a core dump; the folder exists.
    pub core: PathBuf,
    /// The cause that led to the request, such as `fault_banner` or `hang`.
    pub why: Cause,
}

/// Looks into a board through its debug port.
pub trait DebugPort: Send {
    /// Explains where the target stands, or stood when a fault was caught; nothing if
    /// nothing is known. Called before anything resets the board; leaves the core halted.
    fn post_mortem<'a>(
        &'a mut self,
        request: &'a PostMortemRequest,
    ) -> BoxFuture<'a, Result<Option<PostMortem>, DriverError>>;

    /// Tells of the fault in which the core is at this moment, or was when the target ended by itself.
    /// Reads within milliseconds and stops nothing; nothing if the core is in no fault, or is one whose
    /// state is never read so.
    ///
    /// # Errors
    /// The state of this core is read, and could not be just now.
    fn current_fault(&mut self) -> BoxFuture<'_, Result<Option<FaultSighting>, DriverError>> {
        Box::pin(async { Ok(None) })
    }

    /// Begins to read what [`Self::fatal_halt`] will want of an image, and returns at once.
    fn read_ahead(&mut self, image: &Path) {
        let _ = image;
    }

    /// Begins to ask what [`Self::current_fault`] and [`Self::fatal_halt`] will want of a board that was halted,
    /// and returns at once.
    fn look_ahead(&mut self) {}

    /// Notes that a halted board runs on: what was asked ahead says nothing any more.
    fn runs_on(&mut self) {}

    /// Tells of a core that may stand in a function by which its system halts after a fatal error; a
    /// post-mortem has to find that it does. `image` is what it runs. Reads within milliseconds and
    /// stops nothing; nothing if it stands in none, or is one whose code is not looked at. Asked directly
    /// behind [`Self::current_fault`], of a halted core, it may use what that has read.
    fn fatal_halt<'a>(
        &'a mut self,
        image: &'a Path,
    ) -> BoxFuture<'a, Result<Option<FaultSighting>, DriverError>> {
        let _ = image;
        Box::pin(async { Ok(None) })
    }

    /// Returns the name of the first fault in whose handler the core was reset since this was asked
    /// last, where that is known.
    fn reset_in_fault(&mut self) -> Option<String> {
        None
    }

    /// Returns how many bytes all consoles have printed since the last fault of this boot behind which
    /// they printed any, whatever became of its handler; nothing if there is no such fault, or where
    /// faults are not reported. May be asked of a board that has lost its power.
    fn output_since_fault(&mut self) -> Option<u64> {
        None
    }

    /// Lets a core that a post-mortem has left halted run on, and watches it as before. Called only
    /// before a reset or a power-off, so a core that either of them starts needs nothing.
    fn watch_on(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

/// The result of one health check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckReport {
    /// Name of the check, such as `monitor-answers`.
    pub check: String,
    /// Whether it passed.
    pub ok: bool,
    /// What was seen.
    pub detail: String,
}

/// Tells whether one part of the rig works.
pub trait HealthCheck: Send {
    /// Returns the name of the check, such as `monitor-answers`.
    fn name(&self) -> String {
        self.cause().to_string()
    }
    /// Returns the cause a run ends with if this check fails while a plan fails, too.
    fn cause(&self) -> Cause {
        Cause::RigUnhealthy
    }
    /// Runs the check.
    fn check(&mut self) -> BoxFuture<'_, CheckReport>;
}

/// One end of a transport that carries bytes: the other end is the target.
///
/// Has exactly one owner. Poll-based so that it stays dyn-safe and allocation-free.
pub trait Transport: Send {
    /// Reads what has arrived; `Ok(0)` means that the transport has ended.
    ///
    /// Asks the system itself: `Pending` means that there was nothing at this very moment,
    /// not that there was nothing when some event loop last looked.
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>>;
    /// Writes some of the bytes; returns how many.
    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>>;
    /// Tells that it is read again after a pause: nothing that arrives before needs to wake the reader.
    fn rest(&mut self) {}
    /// Tells what has happened to the transport itself, each thing once. Asked for whenever a read
    /// was `Pending`: it lies behind all bytes read so far and before those still to come.
    fn event(&mut self) -> Option<TransportEvent> {
        None
    }
    /// Tells how another process can go on with the transport while this one leaves it alone.
    ///
    /// # Errors
    /// The descriptor cannot be copied.
    fn handing(&self) -> io::Result<Handing> {
        Ok(Handing::Through)
    }
    /// Begins to do something to the line itself; done when the future is, which may be driven
    /// while the transport is read on.
    fn control(&mut self, what: LineControl) -> BoxFuture<'static, io::Result<()>> {
        let _ = what;
        let words = "this transport has no line to control";
        Box::pin(std::future::ready(Err(io::Error::new(io::ErrorKind::Unsupported, words))))
    }
}

/// How another process can go on with a transport.
#[derive(Debug)]
pub enum Handing {
    /// By a copy of its descriptor: all there is to know of the transport is in the kernel.
    Descriptor(OwnedFd),
    /// Only through its owner, which passes the bytes on.
    Through,
    /// Not now: its other end is away, or something is still to be told of it.
    Away,
}

/// What can be done to a serial line beside sending bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineControl {
    /// Hold it at zero for longer than any character lasts, some 0.3 s.
    Break,
    /// Set "data terminal ready".
    Dtr(bool),
    /// Set "request to send".
    Rts(bool),
}

/// What has happened to a transport that goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransportEvent {
    /// The other end has gone, in these words, and is waited for: bytes may be missing here.
    Lost(String),
    /// The other end is back.
    Back,
    /// A receiver on the way had no room: this many bytes are missing here, if known.
    Overrun(Option<u64>),
    /// This many characters came here with a wrong stop or parity bit, so they may be others.
    Garbled(u64),
    /// Another program, in these words, has opened the same port: it may have read bytes that
    /// are missing here.
    Shared(String),
}

/// Takes over transports and events of a board while its driver runs it.
///
/// A driver calls it before the target can print its first byte.
pub trait BoardSink: Send + Sync {
    /// Hands a console's new transport to its capture; an earlier transport of that console has ended.
    fn attach(&self, console: &ConsoleName, transport: Box<dyn Transport>);
    /// Waits until everything that is in a console's transport now has been captured.
    fn drained(&self) -> BoxFuture<'_, ()>;
    /// Reports what happened to the board.
    fn event(&self, event: BoardEvent);
}

/// A sink that hears nothing, for boards that are only asked how they are.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSink;

impl BoardSink for NoSink {
    fn attach(&self, _console: &ConsoleName, _transport: Box<dyn Transport>) {}

    fn drained(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn event(&self, _event: BoardEvent) {}
}

/// Keeps account of child processes, so that a later start can sweep what a killed Jig
/// could not.
pub trait ProcessLedger: Send + Sync {
    /// A child runs now. Called before anything relies on it.
    fn started(&self, pid: i32, what: &str);
    /// A child was reaped.
    fn ended(&self, pid: i32);
}

/// Variable that each child process has in its environment, and passes on: it tells processes that
/// a killed Jig left behind from other processes.
pub const CHILD_MARK: &str = "JIG_CHILD";

/// A ledger that keeps nothing, for children that need no sweeping.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoLedger;

impl ProcessLedger for NoLedger {
    fn started(&self, _pid: i32, _what: &str) {}
    fn ended(&self, _pid: i32) {}
}

/// The protocols that the parts of a place offer together.
#[derive(Default)]
pub struct Protocols {
    /// Power, if a part switches it.
    pub power: Option<Box<dyn Power>>,
    /// Reset, if a part can.
    pub reset: Option<Box<dyn Reset>>,
    /// Deployment, if a part can.
    pub flasher: Option<Box<dyn Flasher>>,
    /// A debug port, if a part has one.
    pub debug: Option<Box<dyn DebugPort>>,
    /// The shell of the target over a network, if a part reaches it.
    pub shell: Option<Box<dyn ShellPort>>,
    /// Stops the board where it stands, if a part can.
    pub control: Option<Box<dyn RunControl>>,
    /// A power sense, which sees the board's power but does not switch it. Asked only while `power`
    /// is off, or was not told otherwise.
    pub sense: Option<Box<dyn PowerSense>>,
    /// Health checks of the parts.
    pub health: Vec<Box<dyn HealthCheck>>,
}

/// A shared sink.
pub type SharedSink = Arc<dyn BoardSink>;

/// How a host command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandEnd {
    /// By itself, with this code.
    Exited(i32),
    /// By a signal that Jig did not send.
    Signalled(i32),
    /// Jig stopped it when its time was over.
    TimedOut,
}

/// What a plan may use of the machine Jig runs on.
pub trait Host: Send + Sync {
    /// Runs a program to its end, its output going to a file. Never by a shell; the whole
    /// process group is gone when this returns or is dropped.
    ///
    /// # Errors
    /// The program cannot be started, or its output cannot be written.
    fn command<'a>(
        &'a self,
        argv: &'a [String],
        timeout: Duration,
        output: &'a Path,
    ) -> BoxFuture<'a, Result<CommandEnd, DriverError>>;

    /// Reads a secret from where it is kept.
    ///
    /// # Errors
    /// It is not there, or could be read by others.
    fn secret(&self, source: &SecretSource) -> Result<String, DriverError>;

    /// Connects to a TCP address and returns the first line it says, trying again until a server
    /// answers or the future is dropped. A connect alone proves nothing: an emulator accepts on
    /// behalf of a guest that does not listen yet.
    fn banner<'a>(&'a self, address: &'a str) -> BoxFuture<'a, Vec<u8>>;
}

/// What a driver gets to know about the board it drives.
#[derive(Clone)]
pub struct BindContext {
    /// What kind of board it is.
    pub profile: Arc<BoardProfile>,
    /// The place, with the parts that make it real.
    pub place: Arc<Place>,
    /// Where transports and events go.
    pub sink: SharedSink,
    /// Folder for what the driver leaves as evidence; it exists.
    pub evidence: PathBuf,
    /// Folder that holds the built image sets, one folder each.
    pub images: PathBuf,
    /// Where child processes are accounted for.
    pub ledger: Arc<dyn ProcessLedger>,
}

/// Adds what one kind of part brings to the protocols of a place.
///
/// A binding is a fold: each factory takes the protocols that those before it have built.
pub trait PartFactory: Sync {
    /// Adds the protocols of this part, or puts it before those of others; returns them as they
    /// are where the place has no such part. Touches nothing yet: the first protocol call does.
    /// Call within an async runtime.
    ///
    /// # Errors
    /// The profile lacks what the driver needs.
    fn join(&self, context: &BindContext, built: Protocols) -> Result<Protocols, DriverError>;
}

/// Converts a place into protocols.
pub trait DriverFactory: Sync {
    /// Binds a place. Touches nothing yet: the first protocol call does.
    ///
    /// # Errors
    /// The profile lacks what a driver needs.
    fn bind(&self, context: BindContext) -> Result<Protocols, DriverError>;
}
