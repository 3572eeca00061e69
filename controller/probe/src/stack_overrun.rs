//! Stacks that have grown into a variable. Pure.
//!
//! # Design
//! A stack that needs more than its room writes over the variables below it, which raises no fault. Then
//! the stack pointer lies in a variable, and that of a function that has called the running one behind the
//! end of it: in another variable, as the stacks of threads are, or where the linker script has put the
//! stack.
//!
//! A section with the name `.heap`, and without variables in it, counts as one.
//!
//! *Calls have to be known*: in front of each return address stands a call. Below the first function of a
//! thread there is none, only what its registers hold by chance.
//!
//! *A program may change its stack for a call.* Then the frame in front of the change begins at the end of
//! the new stack. Where the caller's stack is no variable, the frame has to be in one piece: the function
//! that changes the stack reaches from one to the other, and its code allocates less than that.

use std::collections::HashSet;
use std::ops::Range;

use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SectionKind, SymbolKind};

/// Where the stack stood in one frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StackPlace {
    pub(crate) pointer: u32,
    /// Whether the code of the frame calls the function of the frame above it, or one whose address it has
    /// computed.
    pub(crate) calls: bool,
    /// Whether the code of the frame above has allocated all that lies between its stack pointer and this
    /// one.
    pub(crate) adjoins: bool,
}

/// The variables of an image, by where they begin.
#[derive(Debug, Default)]
pub(crate) struct Variables(Vec<Range<u64>>);

impl Variables {
    /// Reads them.
    pub(crate) fn of(file: &object::File<'_>) -> Self {
        // GCC gives local variables of code that is not optimised no type.
        let lies_in_data = |symbol: &object::Symbol<'_, '_>| {
            let section = symbol.section_index().and_then(|at| file.section_by_index(at).ok());
            section.is_some_and(|section| {
                matches!(section.kind(), SectionKind::Data | SectionKind::UninitializedData)
            })
        };
        let is_variable = |symbol: &object::Symbol<'_, '_>| match symbol.kind() {
            _ if symbol.size() == 0 || !symbol.is_definition() => false,
            SymbolKind::Data => true,
            SymbolKind::Unknown => lies_in_data(symbol),
            _ => false,
        };
        let range = |symbol: object::Symbol<'_, '_>| {
            symbol.address()..symbol.address().saturating_add(symbol.size())
        };
        // A heap has no symbol with a size, unless other things are put there, too.
        let sized = file.symbols().filter(|symbol| symbol.size() > 0);
        let used: HashSet<_> = sized.filter_map(|symbol| symbol.section_index()).collect();
        let is_heap = |section: &object::Section<'_, '_>| {
            section.name() == Ok(".heap") && !used.contains(&section.index())
        };
        let heap = file
            .sections()
            .filter(is_heap)
            .map(|section| section.address()..section.address().saturating_add(section.size()));
        Self::new(file.symbols().filter(is_variable).map(range).chain(heap).collect())
    }

    /// Sorts them, without those that lie within another one.
    pub(crate) fn new(mut all: Vec<Range<u64>>) -> Self {
        all.sort_unstable_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
        let mut outer: Vec<Range<u64>> = Vec::new();
        for range in all {
            if outer.last().is_none_or(|last| range.end > last.end) {
                outer.push(range);
            }
        }
        Self(outer)
    }

    /// Returns the variable whose last bytes a stack with this pointer would fill: an empty stack points
    /// behind its variable.
    pub(crate) fn of_stack(&self, pointer: u64) -> Option<&Range<u64>> {
        let after = self.0.partition_point(|range| range.start < pointer);
        self.0[..after].last().filter(|range| pointer <= range.end)
    }

    /// Tells whether a stack pointer lies in a variable.
    pub(crate) fn hold_stack(&self, pointer: u32) -> bool {
        self.of_stack(pointer.into()).is_some()
    }

    /// Returns the stack pointer of a thread that has grown out of its variable, by its frames, innermost
    /// first.
    pub(crate) fn overrun(&self, frames: &[StackPlace]) -> Option<u32> {
        let first = frames.first()?;
        let variable = self.of_stack(first.pointer.into())?;
        let called = frames.iter().skip(1).take_while(|frame| frame.calls);
        let mut inside = u64::from(first.pointer);
        for frame in called {
            let pointer = frame.pointer.into();
            if pointer > variable.end {
                let reaches_over = match frame.adjoins {
                    true => u64::from(first.pointer) != variable.end,
                    false => inside != variable.end && self.of_stack(pointer).is_some(),
                };
                return reaches_over.then_some(first.pointer);
            }
            inside = pointer;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_that_has_left_its_variable_is_told() {
        // A control block below the stack of its thread, with a member that has a name, too.
        let variables = Variables::new(vec![0x288..0x388, 0x008..0x288, 0x010..0x018]);
        let frames = |places: &[(u32, bool)]| -> Vec<StackPlace> {
            let place = |&(pointer, calls)| StackPlace { pointer, calls, adjoins: false };
            places.iter().map(place).collect()
        };
        for (places, overrun) in [
            (&[(0x0c0, false), (0x380, true)][..], true),
            (&[(0x0c0, false), (0x200, true), (0x388, true)], true),
            (&[(0x0c0, false), (0x200, false), (0x388, true)], false),
            // A call on another stack.
            (&[(0x0c0, false), (0x288, true), (0x388, true)], false),
            (&[(0x300, false), (0x380, true)], false),
            // An empty stack, at the end of its variable.
            (&[(0x388, false)], false),
            (&[(0x300, false), (0x388, true)], false),
            // A full one: nothing was written below it.
            (&[(0x288, false), (0x380, true)], false),
            // What a thread returns to.
            (&[(0x300, false), (0x390, false)], false),
            (&[(0x300, false), (0x390, false), (0x400, true)], false),
            // A caller on a stack that the linker script has placed.
            (&[(0x300, false), (0x400, true)], false),
            // A stack without a variable.
            (&[(0x400, false), (0x480, true)], false),
            (&[(0x008, false), (0x480, true)], false),
            (&[], false),
        ] {
            let frames = frames(places);
            let expected = overrun.then(|| places[0].0);
            assert_eq!(variables.overrun(&frames), expected, "{places:x?}");
        }
        // A stack that the linker script has placed is told where it adjoins.
        for (places, overrun) in [
            (&[(0x300, false), (0x400, true)][..], true),
            (&[(0x300, false), (0x380, true), (0x400, true)], true),
            (&[(0x300, false), (0x388, true), (0x400, true)], true),
            (&[(0x300, false), (0x400, false)], false),
            (&[(0x388, false), (0x400, true)], false),
            (&[(0x400, false), (0x480, true)], false),
        ] {
            let mut frames = frames(places);
            frames.iter_mut().for_each(|frame| frame.adjoins = true);
            let expected = overrun.then(|| places[0].0);
            assert_eq!(variables.overrun(&frames), expected, "{places:x?}");
        }
        assert!(variables.hold_stack(0x12) && !variables.hold_stack(0x389));
    }
}
