//! What is asked of a flash, and what a cancelled operation leaves there.

use std::ops::Range;

use jig_model::image::Payload;

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
