//! Commands and events of a session with a console: one that is there already, captured between runs or
//! used by a run, or that of a board booted for it.

use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::protocol::LineControl;
use crate::{ConsoleName, PlaceName, RunId};

/// Boots a board to talk to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsoleCommand {
    /// The place.
    pub place: PlaceName,
    /// The image to boot; none where the board boots by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<PathBuf>,
    /// The console that gets the input; the primary one if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub console: Option<ConsoleName>,
    /// How long the board must have been quiet after the end of the input before the command
    /// ends, in milliseconds.
    pub quiet_ms: u64,
}

/// Reads what a console prints, and sends input to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttachCommand {
    /// The place.
    pub place: PlaceName,
    /// The console; the primary one if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub console: Option<ConsoleName>,
    /// How long ago the output begins, in milliseconds.
    pub since_ms: u64,
    /// Whether later output is waited for.
    pub follow: AttachFollow,
    /// What becomes of the input.
    pub input: AttachInput,
    /// How long the console must have been quiet after the end of the input before the command
    /// ends, in milliseconds.
    pub quiet_ms: u64,
    /// What is done instead where neither is the case: a board is booted for the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<ConsoleCommand>,
}

/// Whether a command that attaches to a console waits for later output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttachFollow {
    /// The command ends after the output that is logged.
    Logged,
    /// Later output is waited for. Refused while no process captures the console and no run uses
    /// it, because there would be none.
    Captured,
    /// Later output is waited for, also that of a capture or run that begins later.
    Always,
}

/// What becomes of the input of a command that attaches to a console.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttachInput {
    /// There is none. The output may then be that of a console which no process captures.
    None,
    /// It is sent. Refused while another user has the right to send.
    Send,
    /// It is sent. The right to send is taken from another user; never from a run.
    Take,
}

/// Sets modem lines of a captured console, or sends a break.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LineControlCommand {
    /// The place.
    pub place: PlaceName,
    /// The console; the primary one if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub console: Option<ConsoleName>,
    /// What to do, in this order.
    pub controls: Vec<LineControl>,
    /// Whether the right to send is taken from another user; never from a run.
    #[serde(default)]
    pub take: bool,
}

/// Something in the logs of a console.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsoleLogEvent {
    /// When it was logged.
    pub at: Timestamp,
    /// The log.
    pub source: ConsoleLogSource,
    /// Where in the log, in bytes.
    pub offset: u64,
    /// What.
    pub item: ConsoleLogItem,
}

/// A log of a console.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ConsoleLogSource {
    /// A file of the capture service.
    Captured {
        /// Its number.
        file: u64,
    },
    /// The log of an attempt.
    Run {
        /// The run.
        run: RunId,
        /// The attempt.
        attempt: u32,
    },
}

/// An entry of a console's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ConsoleLogItem {
    /// The board printed.
    Output {
        /// The bytes.
        #[serde(with = "super::hex_bytes")]
        bytes: Vec<u8>,
    },
    /// Bytes may be missing here.
    Gap {
        /// How many, if known.
        lost: Option<u64>,
        /// Why: `storage`, `overrun`, `transport` or `shared`.
        reason: String,
    },
    /// Characters before this entry came with a wrong stop or parity bit.
    Garbled {
        /// How many.
        count: u64,
    },
}

/// Why input is not sent any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum InputLoss {
    /// A run has the transport.
    Lent {
        /// The run's command; may hold any text.
        by: String,
    },
    /// Another user took the right to send.
    Taken {
        /// That user's command; may hold any text.
        by: String,
    },
    /// The capture service has ended.
    ServiceEnded,
    /// The firmware ended before it took all of it.
    FirmwareEnded,
    /// The connection to the capture service has failed.
    Failed {
        /// How; may hold any text.
        why: String,
    },
}
