//! What a reset does with a core.

/// What a reset leads into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetInto {
    /// The program runs.
    Run,
    /// The core stands still before its first instruction.
    Halt,
}
