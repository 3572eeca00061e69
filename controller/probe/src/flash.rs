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
    /// Address ranges that keep what they hold although their sector is erased.
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

/// How far a flash operation is. Told at the start, at steps of at most a few KiB, and at
/// the end of each phase.
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
    /// SHA-256 in lower-case hex of the payload's bytes as read back, in address order, if
    /// they were.
    pub read_back_sha256: Option<String>,
    /// How long each phase took, in order.
    pub phases: Vec<(FlashPhase, Duration)>,
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
