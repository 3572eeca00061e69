//! What the owner of an emulator is asked for, by the handles that speak for it.

use std::time::Duration;

use jig_model::Cause;
use jig_model::event::BoardEvent;
use jig_model::image::Image;
use jig_model::protocol::{CheckReport, DriverError, PowerState};
use tokio::sync::{mpsc, oneshot};

use super::control_lock::ControlLock;
use super::debug::DebugChannels;
use super::exceptions::{ExceptionLog, Exceptions};

/// What a machine holds when it is launched for a debugger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtLaunch {
    /// Nothing. A board to be flashed needs this: what the emulator's loader brought is
    /// loaded again at each reset and would undo the flashing.
    Blank,
    /// The deployed image, if there is one.
    Deployed,
}

/// A machine with its image that was launched and stands halted until its watcher is ready.
pub struct Launched {
    /// Its debug channels.
    pub channels: DebugChannels,
    /// What is reported of its exceptions once the monitor was told to log them.
    pub exceptions: ExceptionLog,
    /// To be held while the watcher stops the machine and lets it run on.
    pub control: ControlLock,
    /// Lets it run.
    pub ready: Ready,
}

/// Takes in a launch.
pub type Watcher = Box<dyn FnMut(Launched) + Send>;

/// Lets a machine run, when it is dropped at the latest.
pub struct Ready(pub(super) oneshot::Sender<()>);

impl Ready {
    /// Lets the machine run; tells whether it has stood until now.
    pub fn start(self) -> bool {
        // The owner waits for it; if it does not any more the machine runs already.
        self.0.send(()).is_ok()
    }
}

/// What the owner is asked for.
pub(super) enum EmulatorOrder {
    On(EmulatorReply<()>),
    Off(EmulatorReply<()>),
    Status(EmulatorReply<PowerState>),
    Reset(EmulatorReply<()>),
    Deploy(Image, EmulatorReply<()>),
    Check(oneshot::Sender<CheckReport>),
    /// Launches anew, halted, with debug channels.
    LaunchHalted(AtLaunch, EmulatorReply<DebugChannels>),
    /// Shows each launch that runs at once to a watcher before it runs.
    Watch(Watcher, EmulatorReply<()>),
    /// What the emulator prints of its core; nothing if it does not run.
    Show(Shown, EmulatorReply<Option<String>>),
    /// Stops the machine where it stands; tells whether it does.
    Halt(EmulatorReply<bool>),
    /// Lets a halted machine run on.
    Resume(EmulatorReply<()>),
    /// For how long the machine could not run since its launch; nothing without power.
    LostTime(EmulatorReply<Option<Duration>>),
    /// How the last launch ended by itself; asked by a caller that saw a channel close.
    HowEnded(EmulatorReply<Option<BoardEvent>>),
    /// What the last launch reported of its core before it ended by itself.
    LastExceptions(EmulatorReply<Option<Exceptions>>),
}

/// What the emulator prints of the first core, without stopping it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shown {
    Registers,
    /// Words of memory from an address on.
    Words(u32, usize),
}

impl Shown {
    /// Returns the command of the emulator's monitor for people.
    pub(super) fn command(self) -> String {
        match self {
            Self::Registers => "info registers".to_owned(),
            Self::Words(address, count) => format!("x /{count}xw {address:#x}"),
        }
    }
}

pub(super) type EmulatorReply<T> = oneshot::Sender<Result<T, DriverError>>;

/// Says that an emulator's owner takes no orders any more.
#[derive(Debug, thiserror::Error)]
#[error("the emulator's owner has ended")]
struct OwnerGone;

pub(super) fn owner_gone() -> DriverError {
    DriverError::of(Cause::EmulatorExited, OwnerGone)
}

/// Gives the owner an order and waits for its answer.
pub(super) async fn ask_owner<T>(
    orders: &mpsc::Sender<EmulatorOrder>,
    order: impl FnOnce(EmulatorReply<T>) -> EmulatorOrder,
) -> Result<T, DriverError> {
    let (reply, answer) = oneshot::channel();
    orders.send(order(reply)).await.map_err(|_| owner_gone())?;
    answer.await.map_err(|_| owner_gone())?
}
