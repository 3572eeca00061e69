//! What is said at the door of the program that keeps consoles between runs.
//!
//! # Format
//! A connection to its socket carries one request, and after it what the request is about. A
//! message is one line of JSON of at most [`MOST_LINE`] bytes. Both ends are of one user and,
//! within [`VERSION`], of any two builds: unknown fields are passed over, an unknown request
//! is answered as refused.
//!
//! A lent descriptor travels with the first byte of [`CaptureAnswer::Transport`]. The loan lasts as
//! long as its connection; whoever gives the transport back in order says [`Returned`] first, so
//! that an end without it means that bytes may have died with a process.

use serde::{Deserialize, Serialize};

use crate::protocol::LineControl;
use crate::{ConsoleName, PlaceName};

/// Version of what is said; part of each request.
pub const VERSION: u32 = 1;

/// Longest message in bytes, its line end included: a kilobyte of input is four of JSON.
pub const MOST_LINE: usize = 64 << 10;

/// Most bytes of input in one message.
pub const MOST_INPUT: usize = 4 << 10;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureCall {
    /// [`VERSION`] of whoever asks.
    pub version: u32,
    /// Who asks, for people: `jig run -b bench-1`. Hostile text.
    pub by: String,
    /// What is asked for.
    pub ask: CaptureRequest,
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaptureRequest {
    /// A transport, until the connection ends. Answered when the transport is there.
    Transport {
        /// The place.
        place: PlaceName,
        /// The console.
        console: ConsoleName,
    },
    /// To close every transport to a serial port, until the connection ends: another program has to
    /// open it.
    LetGo {
        /// The path of its device, as the rig file has it.
        tty: String,
    },
    /// The right to send on a console, until the connection ends. Then follow [`WriterOrder`]s.
    InputWriter {
        /// The place.
        place: PlaceName,
        /// The console.
        console: ConsoleName,
        /// Take it from whoever has it.
        take: bool,
    },
    /// To end whatever the capture service does with an idle place: somebody waits for it. Answered
    /// by [`CaptureAnswer::NotCaptured`] if it does nothing with it.
    GiveWay {
        /// The place.
        place: PlaceName,
    },
    /// What is kept.
    Status,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaptureAnswer {
    /// The transport; its descriptor comes along.
    Transport(LoanPosition),
    /// It is so.
    Done,
    /// What is kept.
    Status(Vec<CaptureStatus>),
    /// The capture service has nothing to do with it: open it yourself.
    NotCaptured,
    /// No, for this reason.
    Refused(String),
}

/// What there is to know of a lent transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoanPosition {
    /// The file of the capture service's log that was being written, by its number.
    pub file: u64,
    /// The length of that file: what the transport carries from now on is not in it.
    pub offset: u64,
}

/// Said before a transport is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Returned {
    /// How many bytes were read of it.
    pub read: u64,
}

/// What whoever has the writer wants. Each is answered by a [`WriterEvent`] before the next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriterOrder {
    /// Send bytes, at most [`MOST_INPUT`].
    Send(Vec<u8>),
    /// Do something to the line.
    Line(LineControl),
}

/// What whoever has the writer is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriterEvent {
    /// The order was carried out.
    Done,
    /// The order was not, or not wholly, carried out.
    Failed(String),
    /// Somebody else has the writer now; nothing follows.
    Taken(String),
}

/// Where a kept console stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureStatus {
    /// The place.
    pub place: PlaceName,
    /// The console.
    pub console: ConsoleName,
    /// The path or address that its transport ends at.
    pub end: String,
    /// What is done with the transport.
    #[serde(flatten)]
    pub state: CaptureState,
    /// The newest file of the log, by its number; 0 before the first.
    pub file: u64,
    /// Who may send on it, if anybody has asked to.
    pub writer: Option<String>,
}

/// What is done with a transport.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum CaptureState {
    /// It is not there yet.
    Waiting {
        /// Why, in the system's words.
        why: String,
    },
    /// It is read, and what it carries is kept.
    Captured,
    /// Its other end has gone, and is waited for.
    Away {
        /// What was seen.
        why: String,
    },
    /// A run has it.
    Lent {
        /// Who.
        by: String,
    },
    /// It is closed for another program.
    LetGo {
        /// For whom.
        by: String,
    },
    /// It has gone for good.
    Gone {
        /// What was seen.
        why: String,
    },
    /// It is there, but nothing can be written.
    Unwritten {
        /// Why, in the system's words.
        why: String,
    },
}
