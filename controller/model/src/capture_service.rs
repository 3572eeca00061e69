//! Messages between the capture service, which captures consoles between runs, and its clients.
//!
//! # Format
//! A connection carries one request and the messages that belong to it. A message is one line of
//! JSON of at most [`MOST_LINE`] bytes. Both ends run as the same user. Builds with the same
//! [`VERSION`] understand one another: unknown fields are ignored, and an unknown request is
//! refused.
//!
//! A lent descriptor travels with the first byte of [`CaptureAnswer::Transport`]. The loan lasts as
//! long as its connection. A borrower that returns the transport in order sends [`Returned`] first;
//! a connection that ends without it means that the borrower died and bytes may be missing.

use serde::{Deserialize, Serialize};

use crate::protocol::LineControl;
use crate::{ConsoleName, PlaceName};

/// Version of the messages; part of each request.
pub const VERSION: u32 = 3;

/// Longest message in bytes, its line end included: a kilobyte of input is four of JSON.
pub const MOST_LINE: usize = 64 << 10;

/// Most bytes of input in one message.
pub const MOST_INPUT: usize = 4 << 10;

/// A request with its sender.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureCall {
    /// [`VERSION`] of the sender.
    pub version: u32,
    /// Name of the sender, for messages: `jig run -b bench-1`. Untrusted text.
    pub by: String,
    /// The request.
    pub ask: CaptureRequest,
}

/// A request to the capture service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaptureRequest {
    /// Borrow a transport until the connection ends. Answered once the transport is present.
    Transport {
        /// The place.
        place: PlaceName,
        /// The console.
        console: ConsoleName,
    },
    /// Close every transport to a serial port until the connection ends, so that another program
    /// can open it.
    Release {
        /// Path of the device, as in the rig file.
        tty: String,
    },
    /// Get the right to send on a console until the connection ends. [`WriterOrder`]s follow.
    InputWriter {
        /// The place.
        place: PlaceName,
        /// The console.
        console: ConsoleName,
        /// Whether to take it from its holder.
        take: bool,
    },
    /// Set a modem line without the right to send, while the service reads the transport. Answered
    /// when it is set.
    Line {
        /// The place.
        place: PlaceName,
        /// The console.
        console: ConsoleName,
        /// What to do.
        what: LineControl,
    },
    /// To end whatever the capture service does with an idle place: a command waits for it.
    /// Answered by [`CaptureAnswer::NotCaptured`] if it does nothing with it.
    GiveWay {
        /// The place.
        place: PlaceName,
    },
    /// List the captured consoles.
    Status,
}

/// Answer of the capture service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaptureAnswer {
    /// The transport is lent; the message carries its descriptor.
    Transport(LoanPosition),
    /// The request was carried out.
    Done,
    /// The captured consoles.
    Status(Vec<CaptureStatus>),
    /// The capture service has nothing to do with it: open it yourself.
    NotCaptured,
    /// The request is refused, for this reason.
    Refused(String),
}

/// Position of the service's log when a transport was lent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoanPosition {
    /// The file of the capture service's log that was being written, by its number.
    pub file: u64,
    /// Length of that file in bytes; later bytes of the transport are not in it.
    pub offset: u64,
}

/// Sent by a borrower before it returns a transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Returned {
    /// Number of bytes read from it.
    pub read: u64,
}

/// Order of the holder of the right to send. Each is answered by a [`WriterEvent`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriterOrder {
    /// Send bytes, at most [`MOST_INPUT`].
    Send(Vec<u8>),
    /// Send a break or set a modem line.
    Line(LineControl),
}

/// Message to the holder of the right to send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriterEvent {
    /// The order was carried out.
    Done,
    /// The order failed, or was carried out in part.
    Failed(String),
    /// The transport has no such line.
    Unsupported,
    /// The named user has taken over input; no message follows.
    Taken(String),
}

/// Status of a captured console.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureStatus {
    /// The place.
    pub place: PlaceName,
    /// The console.
    pub console: ConsoleName,
    /// Path or address of its endpoint.
    pub end: String,
    /// State of its transport.
    #[serde(flatten)]
    pub state: CaptureState,
    /// Number of the newest log file; 0 before the first.
    pub file: u64,
    /// Holder of the right to send, if any.
    pub writer: Option<String>,
}

/// State of a captured console's transport.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum CaptureState {
    /// It cannot be opened yet.
    Waiting {
        /// Why, in the system's words.
        why: String,
    },
    /// It is read, and its bytes are logged.
    Captured,
    /// Its other end is lost; the service waits for its return.
    Away {
        /// What was seen.
        why: String,
    },
    /// It is lent to a run.
    Lent {
        /// Name of the borrower.
        by: String,
    },
    /// It is closed for another program.
    Released {
        /// Name of that program.
        by: String,
    },
    /// It has ended for good.
    Gone {
        /// What was seen.
        why: String,
    },
    /// It is open, but its log cannot be written.
    Unwritten {
        /// Why, in the system's words.
        why: String,
    },
}
