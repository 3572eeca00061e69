//! What is asked of a flash, and what was done to it.

use std::ops::Range;
use std::time::Duration;

use jig_model::image::Payload;
use serde::{Deserialize, Serialize};

/// Asks for a flash to hold a payload.
#[derive(Debug, Clone)]
pub struct FlashRequest {
    /// What it shall hold.
    pub payload: Payload,
    /// Whether all of it is read back and compared afterwards.
    pub verify: bool,
    /// Address ranges that keep what they hold although their sector is erased. Where flash is
    /// read by its algorithm only, such a sector keeps all that the payload leaves free.
    pub preserve: Vec<Range<u64>>,
    /// Whether sectors that hold the right bytes already are left alone.
    pub skip_equal: bool,
}

/// What a flash operation is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlashPhase {
    /// Reads what the flash holds, to find the sectors that need nothing.
    Compare,
    /// Erases sectors.
    Erase,
    /// Programs pages.
    Program,
    /// Writes into RAM.
    Load,
    /// Reads back and compares.
    Verify,
}

/// How far a flash operation is. Told at the start of each phase and at steps of a sector, a page,
/// or a few KiB. Flash is written in batches, so erasing and programming take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FlashProgress {
    /// The phase.
    pub phase: FlashPhase,
    /// Bytes done in this phase.
    pub done: u64,
    /// Bytes to do in this phase.
    pub total: u64,
}

/// Says what a flash operation did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlashReport {
    /// Bytes of the payload.
    pub bytes: u64,
    /// Bytes that were programmed or loaded, page fill included.
    pub written: u64,
    /// Sectors that were erased.
    pub sectors_erased: u32,
    /// Sectors that were left alone because they held the right bytes.
    pub sectors_equal: u32,
    /// Whether all of the payload was read back and found equal.
    pub verified: bool,
    /// SHA-256 in lower-case hex of the payload's bytes as the chip holds them, in address
    /// order, if they were compared: read back, or compared by the flash algorithm.
    pub read_back_sha256: Option<String>,
    /// How long each phase took, in order.
    pub phases: Vec<(FlashPhase, Duration)>,
}

/// What a board's memory is left with by an operation that was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlashLeft {
    /// What it held before.
    Untouched,
    /// Parts of the image, of what was there before, and erased sectors.
    Partial,
    /// The image, not read back to its end.
    Unverified,
}

impl FlashLeft {
    /// Returns the words for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Untouched => "nothing was written",
            Self::Partial => "the board holds a partial image",
            Self::Unverified => "the board holds the image, but it is not verified",
        }
    }
}

/// Which part of a flash to erase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EraseScope {
    /// All flash that the chip description lists.
    All,
    /// Every sector that touches the range.
    Range(Range<u64>),
}

/// Says what was erased.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EraseReport {
    /// Bytes that are blank now.
    pub bytes: u64,
    /// How long it took.
    pub took: Duration,
}
