//! What an image says of addresses without its debug information. Pure.

use crate::code_map::CodeMap;
use crate::exit_code::ExitFunctions;
use crate::masked_loop::MaskedLoops;
use crate::stack_overrun::Variables;

/// Ranges of addresses by what they hold.
#[derive(Debug, Default)]
pub(crate) struct ImageRanges {
    /// Where it has code and where data.
    pub(crate) code: CodeMap,
    /// The loops in which a program stands that has masked its interrupts.
    pub(crate) masked_loops: MaskedLoops,
    /// The functions by which a program ends.
    pub(crate) exits: ExitFunctions,
    pub(crate) variables: Variables,
}

impl ImageRanges {
    /// Reads an image; `len` is the length of its file.
    pub(crate) fn of(file: &object::File<'_>, len: usize) -> Self {
        Self {
            code: CodeMap::of(file, len),
            masked_loops: MaskedLoops::of(file, len),
            exits: ExitFunctions::of(file),
            variables: Variables::of(file),
        }
    }
}
