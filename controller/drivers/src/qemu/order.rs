//! What the owner of an emulator is asked for, by the handles that speak for it.

use jig_model::event::BoardEvent;
use jig_model::image::Image;
use jig_model::protocol::{CheckReport, DriverError, PowerState};
use tokio::sync::oneshot;

use super::debug::DebugChannels;

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
    /// Lets it run.
    pub ready: Ready,
}

/// Takes in a launch.
pub type Watcher = Box<dyn FnMut(Launched) + Send>;

/// Lets a machine run, when it is dropped at the latest.
pub struct Ready(pub(super) oneshot::Sender<()>);

impl Ready {
    /// Lets the machine run.
    pub fn start(self) {
        // The owner waits for it; if it does not any more the machine runs already.
        let _ = self.0.send(());
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
    /// Shows each launch that runs at once to somebody before it runs.
    Watch(Watcher, EmulatorReply<()>),
    /// The registers of its core, as the emulator prints them; nothing if it does not run.
    Registers(EmulatorReply<Option<String>>),
    /// How the last launch ended by itself; asked by somebody who saw a channel close.
    HowEnded(EmulatorReply<Option<BoardEvent>>),
}

pub(super) type EmulatorReply<T> = oneshot::Sender<Result<T, DriverError>>;
