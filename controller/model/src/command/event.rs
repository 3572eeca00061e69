//! What a caller is told while its command is carried out.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{ConsoleLogEvent, InputLoss};
use crate::debug::{AttachMethod, FlashProgress};
use crate::protocol::LineControl;
use crate::{ConsoleName, LeaseId, PlaceName, RunEvent, RunId};

/// What happens while a command is carried out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CommandEvent {
    /// A run has a directory now.
    RunBegan {
        /// The run.
        run: RunId,
        /// Its directory.
        dir: PathBuf,
    },
    /// Something happened in the run, and is in its record.
    Run {
        /// What.
        event: RunEvent,
    },
    /// A console is being captured; its log can be followed as a file.
    Console {
        /// The console.
        console: ConsoleName,
        /// The file of its bytes.
        log: PathBuf,
    },
    /// The command is attached to a console: what its logs hold follows.
    ConsoleAttached {
        /// The console.
        console: ConsoleName,
        /// Whether input is sent.
        sends: bool,
    },
    /// The next entry of the console's logs.
    ConsoleLog(ConsoleLogEvent),
    /// Not all of a piece of input was sent.
    InputFailed {
        /// Why; may hold any text.
        why: String,
    },
    /// Input is not sent any more. Output follows all the same.
    InputLost {
        /// Why.
        loss: InputLoss,
    },
    /// The serial line of a console was controlled.
    LineControlled {
        /// The place.
        place: PlaceName,
        /// The console.
        console: ConsoleName,
        /// What was done.
        done: LineControl,
    },
    /// The command waits for a place.
    Waiting {
        /// The place.
        place: PlaceName,
        /// Its holder; may hold any text.
        holder: String,
    },
    /// The lease that the command runs under has ended; the command is cancelled.
    LeaseLost {
        /// The lease.
        lease: LeaseId,
        /// Why; may hold any text.
        why: String,
    },
    /// A place that is in use is disturbed, as the command asks for.
    Disturbing {
        /// The place.
        place: PlaceName,
        /// Its holder; may hold any text.
        holder: String,
    },
    /// A run whose process was killed has been cleaned up, or could not be.
    Swept(SweptRun),
    /// A debug probe is attached to the board.
    Attached {
        /// The chip.
        chip: String,
        /// How often it was tried, the last time included.
        attempts: u32,
        /// The way that worked.
        method: AttachMethod,
        /// What each attempt that failed said, in order; may hold any text.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        failures: Vec<String>,
    },
    /// No process kept the emulated board running, so it was booted for this command and ends with
    /// it.
    BootedForCommand {
        /// The place.
        place: PlaceName,
    },
    /// A flash operation has come this far.
    Flashing {
        /// How far.
        progress: FlashProgress,
    },
    /// A program flashes the board.
    Deploying {
        /// The program; may hold any text.
        program: String,
        /// How much of it is done, in percent; nothing before the program says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        percent: Option<u8>,
    },
    /// The target has these RTT channels.
    RttChannels {
        /// From the target.
        up: Vec<RttChannelInfo>,
        /// To the target.
        down: Vec<RttChannelInfo>,
    },
    /// The target wrote these bytes to the RTT channel.
    RttBytes {
        /// The bytes.
        #[serde(with = "super::hex_bytes")]
        bytes: Vec<u8>,
    },
    /// The target wrote a defmt frame to the RTT channel.
    RttLine {
        /// The frame as text; may hold any text.
        line: String,
    },
    /// The target wrote bytes to the RTT channel that are no defmt frame.
    RttBroken {
        /// How many.
        bytes: u64,
    },
    /// A server for GDB listens.
    GdbServed {
        /// The place.
        place: PlaceName,
        /// Where.
        address: String,
    },
    /// The debug port of an emulated board is served.
    ProbeServed {
        /// The place.
        place: PlaceName,
        /// What names its probe to a probe-rs tool.
        selector: String,
        /// The name of its chip, if its profile has one.
        chip: Option<String>,
        /// A target description for probe-rs, where the chip is not built in.
        description: Option<String>,
    },
    /// A board is held: other processes may use it.
    Held {
        /// The place.
        place: PlaceName,
        /// The consoles that can be attached to.
        consoles: Vec<ConsoleName>,
        /// Whether it has a debug port.
        debug: bool,
    },
    /// The board that is held has no power any more, until a command starts it again.
    HeldBoardEnded {
        /// The place.
        place: PlaceName,
        /// What ended it; may hold any text.
        why: String,
    },
    /// A served board printed these bytes.
    ConsoleBytes {
        /// The console.
        console: ConsoleName,
        /// The bytes.
        #[serde(with = "super::hex_bytes")]
        bytes: Vec<u8>,
    },
}

/// One direction of an RTT channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RttChannelInfo {
    /// Its number.
    pub number: usize,
    /// Its name; may hold any text.
    pub name: String,
    /// Bytes of its ring.
    pub size: u32,
}

/// What became of a run whose process was killed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweptRun {
    /// The run.
    pub run: RunId,
    /// How many of its processes were still there and have been ended.
    pub killed: usize,
    /// Why it could not be cleaned up, if so; the next command tries again. May hold any text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Is told what happens, as it happens. Must not block.
pub trait EventSink: Send + Sync {
    /// Takes an event.
    fn event(&self, event: CommandEvent);
}
