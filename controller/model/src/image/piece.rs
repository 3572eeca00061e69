//! A run of bytes of an image file, with its address and its place in the file.

use std::borrow::Cow;
use std::fmt;

use super::ImageError;

/// Where a piece stands in its file.
#[derive(Debug, Clone, Copy)]
pub(super) enum Origin {
    /// A program header, counted from 0 as `readelf` does.
    Segment(usize),
    /// Lines of a text.
    Lines(u64, u64),
    /// All of it.
    File,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Segment(number) => write!(f, "segment {number}"),
            Self::Lines(first, last) if first == last => write!(f, "line {first}"),
            Self::Lines(first, last) => write!(f, "lines {first} to {last}"),
            Self::File => f.write_str("the file"),
        }
    }
}

/// Bytes of a file that belong somewhere, in any order and perhaps on top of each other.
pub(super) struct Piece<'a> {
    pub(super) origin: Origin,
    pub(super) start: u64,
    pub(super) bytes: Cow<'a, [u8]>,
}

impl Piece<'_> {
    pub(super) fn end(&self) -> Result<u64, ImageError> {
        let end = self.start.checked_add(self.bytes.len() as u64);
        end.ok_or(ImageError::BeyondEnd { start: self.start })
    }

    pub(super) fn shown(&self) -> String {
        let end = self.start.saturating_add(self.bytes.len() as u64);
        format!("{} ({:#x}..{end:#x})", self.origin, self.start)
    }
}
