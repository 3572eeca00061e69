//! Commands that flash and debug a board, and their answers.
//!
//! Addresses and lengths are bytes of the target's address space. Bytes travel as lower-case
//! hexadecimal digits, two for each.

use core::net::SocketAddr;
use std::num::NonZeroU64;
use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::PlaceName;
use crate::debug::{CoreState, EraseReport, FlashReport, MemoryWidth, RegisterValue, WireProtocol};
use crate::image::DeployReport;
use crate::post_mortem::PostMortem;

/// How to get at a chip. Each part wins over what the place and its profile say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProbeAccess {
    /// The probe, as `VID:PID[:SERIAL]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// The chip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chip: Option<String>,
    /// Speed of the debug wire in kHz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed_khz: Option<u32>,
    /// Protocol of the debug wire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<WireProtocol>,
    /// Attaches while the chip is held in reset.
    pub under_reset: bool,
    /// Unlocks a protected chip, which erases it.
    pub allow_unlock: bool,
    /// How long to wait for another process that uses the board, in milliseconds.
    pub wait_ms: u64,
}

/// Puts an image on a board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashImageCommand {
    /// The place.
    pub place: PlaceName,
    /// How to get at its chip.
    #[serde(default)]
    pub probe: ProbeAccess,
    /// The image, as `FILE` or `FILE.bin@ADDRESS`.
    pub image: PathBuf,
    /// What puts it there.
    #[serde(default)]
    pub by: FlashBy,
}

/// What puts an image on a board.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FlashBy {
    /// What the place or its profile has for it; if that is a debug probe, with the default
    /// [`ProbeFlash`].
    #[default]
    Usual,
    /// A debug probe.
    Probe(ProbeFlash),
}

/// How a debug probe flashes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProbeFlash {
    /// Whether all of the image is read back and compared.
    pub verify: bool,
    /// Whether the image is started by a reset; the core stands before its first instruction
    /// otherwise.
    pub start: bool,
    /// Addresses that keep what they hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub preserve: Vec<Range<u64>>,
    /// Whether sectors that hold the right bytes already are left alone.
    pub skip_equal: bool,
}

impl Default for ProbeFlash {
    fn default() -> Self {
        Self { verify: true, start: true, preserve: Vec::new(), skip_equal: true }
    }
}

/// Erases a board's flash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EraseCommand {
    /// The place.
    pub place: PlaceName,
    /// How to get at its chip.
    #[serde(default)]
    pub probe: ProbeAccess,
    /// Erases only the sectors that touch these addresses; all flash if none are given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<Range<u64>>,
}

/// Resets a board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoardResetCommand {
    /// The place.
    pub place: PlaceName,
    /// How to get at its chip.
    #[serde(default)]
    pub probe: ProbeAccess,
    /// What resets it.
    #[serde(default)]
    pub by: ResetBy,
}

/// What resets a board.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ResetBy {
    /// What the place has for it.
    #[default]
    Usual,
    /// A debug probe.
    Probe {
        /// Leaves the core before its first instruction.
        halt: bool,
    },
}

/// Debugs a board through its debug port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DebugCommand {
    /// The place.
    pub place: PlaceName,
    /// How to get at its chip.
    #[serde(default)]
    pub probe: ProbeAccess,
    /// What to do.
    pub action: DebugAction,
}

/// What to do through a debug port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum DebugAction {
    /// Stops the core. Answered by [`Reply::Core`](super::Reply::Core).
    Halt,
    /// Lets a halted core continue. Answered by [`Reply::Core`](super::Reply::Core).
    Resume,
    /// Executes single instructions of a halted core. Answered by
    /// [`Reply::Core`](super::Reply::Core).
    Step {
        /// How many.
        count: u32,
    },
    /// Sets registers, then reads some or all. A running core is stopped for that moment.
    /// Answered by [`Reply::Registers`](super::Reply::Registers).
    Registers {
        /// Registers to set, by name.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        set: Vec<(String, u64)>,
        /// Registers to read, by name; all if none is named.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        read: Vec<String>,
    },
    /// Reads memory. Answered by [`Reply::MemoryRead`](super::Reply::MemoryRead).
    ReadMemory {
        /// First address.
        address: u64,
        /// How many bytes, 64 MiB at most.
        length: NonZeroU64,
        /// Width of an access.
        #[serde(default)]
        width: MemoryWidth,
        /// File that gets the bytes instead of the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<PathBuf>,
    },
    /// Writes memory. Answered by [`Reply::MemoryWritten`](super::Reply::MemoryWritten).
    WriteMemory {
        /// First address.
        address: u64,
        /// The bytes.
        #[serde(with = "super::hex_bytes")]
        bytes: Vec<u8>,
        /// Width of an access.
        #[serde(default)]
        width: MemoryWidth,
    },
    /// Runs to a breakpoint. Answered by [`Reply::Breakpoint`](super::Reply::Breakpoint).
    Breakpoint {
        /// Where it is.
        at: CodeLocation,
        /// Resets first.
        #[serde(default)]
        reset: bool,
        /// How long it is waited for, in milliseconds.
        timeout_ms: u64,
    },
    /// Explains where the core stands. A running core is stopped for that moment. Answered by
    /// [`Reply::Backtrace`](super::Reply::Backtrace).
    Backtrace {
        /// ELF file with names and lines.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        image: Option<PathBuf>,
    },
    /// Saves registers and memory as a core dump. A running core is stopped for that moment.
    /// Answered by [`Reply::Dumped`](super::Reply::Dumped).
    Dump {
        /// The core dump.
        output: PathBuf,
        /// Memory to save; all RAM if none is named.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        memory: Vec<Range<u64>>,
    },
    /// Passes bytes between an RTT channel and the caller until the time is over or the command
    /// is cancelled. Input goes to the down channel of the same number. Answered by
    /// [`Reply::Ended`](super::Reply::Ended).
    Rtt {
        /// ELF file with the address of the control block and the defmt table.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        image: Option<PathBuf>,
        /// The channel.
        channel: usize,
        /// Resets first.
        #[serde(default)]
        reset: bool,
        /// How long it lasts, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
    },
    /// Serves the board to GDB until the command is cancelled. Answered by
    /// [`Reply::Ended`](super::Reply::Ended).
    Gdb {
        /// Where to listen; port 0 takes a free one.
        listen: SocketAddr,
        /// Allows an address that other machines reach. A client that connects controls the board:
        /// the protocol of GDB has no password.
        #[serde(default)]
        allow_remote: bool,
        /// Resets first and leaves the core before its first instruction.
        #[serde(default)]
        reset: bool,
    },
}

impl DebugAction {
    /// Returns the verb of the command line.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Halt => "halt",
            Self::Resume => "resume",
            Self::Step { .. } => "step",
            Self::Registers { .. } => "regs",
            Self::ReadMemory { .. } | Self::WriteMemory { .. } => "mem",
            Self::Breakpoint { .. } => "bp",
            Self::Backtrace { .. } => "bt",
            Self::Dump { .. } => "dump",
            Self::Rtt { .. } => "rtt",
            Self::Gdb { .. } => "gdb",
        }
    }
}

/// A place in a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CodeLocation {
    /// An address.
    Address(u64),
    /// The start of a function.
    Function {
        /// Its name.
        name: String,
        /// The ELF file that has it.
        image: PathBuf,
    },
}

/// Runs an emulated board and serves its debug port to any probe-rs tool until the command is
/// cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServeProbeCommand {
    /// The place.
    pub place: PlaceName,
    /// Where to listen; a Unix socket in the state folder if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<ListenAt>,
    /// The image to flash first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<PathBuf>,
    /// How long to wait for another process that uses the board, in milliseconds.
    #[serde(default)]
    pub wait_ms: u64,
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ListenAt {
    /// A socket in the file system.
    Unix(PathBuf),
    /// An address of this machine; port 0 takes a free one.
    Tcp(SocketAddr),
}

/// A text names no place to listen at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is neither `unix:PATH`, a path with a slash such as `./board.probe`, nor an address \
     such as `127.0.0.1:3333`"
)]
pub struct NotListenAt(String);

impl FromStr for ListenAt {
    type Err = NotListenAt;

    /// Reads `unix:PATH`, a path with a slash, or `IP:PORT`.
    fn from_str(text: &str) -> Result<Self, NotListenAt> {
        let path = text.strip_prefix("unix:").or_else(|| text.contains('/').then_some(text));
        match path {
            Some("") => Err(NotListenAt(text.to_owned())),
            Some(path) => Ok(Self::Unix(path.into())),
            None => text.parse().map(Self::Tcp).map_err(|_| NotListenAt(text.to_owned())),
        }
    }
}

/// What a debug probe has put on a board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashReply {
    /// The place.
    pub place: PlaceName,
    /// The chip.
    pub chip: String,
    /// How often attaching was tried, the last time included.
    pub attempts: u32,
    /// What was done.
    pub report: FlashReport,
}

/// What another part than a debug probe has put on a board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeployReply {
    /// The place.
    pub place: PlaceName,
    /// What was done.
    pub report: DeployReport,
}

/// What was erased.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EraseReply {
    /// The place.
    pub place: PlaceName,
    /// The chip.
    pub chip: String,
    /// What was done; nothing where the program was in RAM, which has lost its power.
    pub report: Option<EraseReport>,
}

/// A board was reset by another part than a debug probe: its core cannot be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResetReply {
    /// The place.
    pub place: PlaceName,
    /// What reset it.
    pub method: ResetMethod,
}

/// What resets a board, beside a debug probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResetMethod {
    /// The power was cut and given back.
    Power,
    /// A control line of a serial port.
    Line,
    /// An outlet that holds the board in reset.
    Outlet,
    /// A program.
    Command,
    /// The emulator of a board without a debug port.
    Emulator,
}

/// The state of a core.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoreReply {
    /// The place.
    pub place: PlaceName,
    /// The chip.
    pub chip: String,
    /// The state.
    pub core: CoreState,
}

/// Registers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegistersReply {
    /// The place.
    pub place: PlaceName,
    /// The registers, in the order asked for.
    pub registers: Vec<RegisterValue>,
}

/// Memory that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryReadReply {
    /// The place.
    pub place: PlaceName,
    /// First address.
    pub address: u64,
    /// How many bytes were read.
    pub length: u64,
    /// The bytes; none where they went to a file.
    #[serde(with = "super::hex_bytes", default, skip_serializing_if = "Vec::is_empty")]
    pub bytes: Vec<u8>,
}

/// Memory that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryWrittenReply {
    /// The place.
    pub place: PlaceName,
    /// First address.
    pub address: u64,
    /// How many bytes.
    pub written: u64,
}

/// What came of a breakpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BreakpointReply {
    /// The place.
    pub place: PlaceName,
    /// The chip.
    pub chip: String,
    /// Its address.
    pub address: u64,
    /// What ended the wait for it.
    pub outcome: BreakpointOutcome,
    /// The state of the core now.
    pub core: CoreState,
    /// Where the core stands instead and why, if it came to a stop elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<PostMortem>,
}

/// What ended the wait for a breakpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakpointOutcome {
    /// The core stands at it.
    Hit,
    /// The time is over, and the core runs.
    TimedOut,
    /// The core stopped elsewhere, such as at a breakpoint of its program.
    Stopped,
    /// The core locked up.
    LockedUp,
}

/// Where a core stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BacktraceReply {
    /// The place.
    pub place: PlaceName,
    /// Registers, frames and what they mean.
    pub found: PostMortem,
}

/// A core dump that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DumpReply {
    /// The place.
    pub place: PlaceName,
    /// The file.
    pub core: PathBuf,
    /// How many of the bytes asked for it has.
    pub memory: u64,
    /// The addresses asked for that could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Range<u64>>,
    /// How many registers it has.
    pub registers: usize,
}

/// A session that has ended as it should: by its time, its caller or its signal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndedReply {
    /// The place.
    pub place: PlaceName,
}
