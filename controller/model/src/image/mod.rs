//! What is put on a board, and proof of which one it was.
//!
//! An image is a file in one of three formats. ELF and Intel HEX say where their bytes
//! belong; a raw binary does not, so its name adds the address: `app.bin@0x8000`.
//! All three become a [`Payload`], segments of bytes with an address, which is what debug
//! probes and flashers take.
//!
//! Refuses to open files: bytes are handed in, and so is the answer to whether a path exists.

mod checked;
mod elf;
mod error;
mod format;
mod hints;
mod intel_hex;
mod kind;
mod payload;
mod piece;
mod raw_binary;
mod report;
mod write;

pub use checked::Image;
pub use elf::ANNOUNCE_SECTION;
pub use error::{HexProblem, ImageError};
pub use format::ImageFormat;
pub use hints::{ElfHints, LinkedSystem};
pub use kind::ImageKind;
pub use payload::{Payload, Segment};
pub use raw_binary::{BinAddress, ImageSource};
pub use report::DeployReport;
pub use write::{TooSparse, intel_hex_text, raw_binary, uf2_blocks};

/// Writes bytes as lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
