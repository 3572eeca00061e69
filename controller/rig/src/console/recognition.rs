//! What is recognised in the output of a console. Pure.

use jig_model::Cause;

/// Something that was recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recognition {
    /// The cause it stands for.
    pub cause: Cause,
    /// What recognised it: a signature's name, `boot-banner`, `flood` or `silence`.
    pub by: String,
    /// Offset of the first byte of the range.
    pub start: u64,
    /// Offset one past its last byte.
    pub end: u64,
    /// The range from the start of its line on, lossy, at most 200 bytes; hostile text.
    pub text: String,
}
