//! What a core is asked to do.

/// What a reset leads into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetInto {
    /// The program runs.
    Run,
    /// The core stands still before its first instruction.
    Halt,
}
