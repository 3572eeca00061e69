//! The known-good image that Jig brings along for an emulated board: a program of some thirty
//! instructions that sends one line by the board's first UART and then sleeps.
//!
//! # Design
//! The image shows that the emulator starts, takes an image, runs its processor and that its
//! console arrives. It needs no compiler: the machine code is fixed for each processor family, and
//! which registers send a byte is data of the profile ([`KnownGoodSpec`]). An image that a user's
//! tests have passed with may fail now and then; this one does the same in every start.

mod code;
mod elf;
mod layout;

pub use code::program;

use crate::profile::{BoardProfile, KnownGoodSpec, MemoryKind, MemoryRegion};

/// The line that the image sends.
pub const LINE: &str = "jig: the known-good image runs";

/// Returns the image of a board as an ELF file; none if the profile does not say how its board
/// sends a byte.
pub fn image(board: &BoardProfile) -> Option<Vec<u8>> {
    let spec = board.emulation.as_ref()?.known_good.as_ref()?;
    let body = layout::body(board.arch, spec, stack_top(board, spec));
    Some(elf::file(board.arch, spec.start, layout::entry(board.arch, spec.start), &body))
}

/// Returns the end of the memory that may hold a stack. The program uses none; a Cortex-M stacks
/// registers when it faults.
fn stack_top(board: &BoardProfile, spec: &KnownGoodSpec) -> u32 {
    let rams = || board.memory.iter().filter(|region| region.kind == MemoryKind::Ram);
    let start = u64::from(spec.start);
    let end = |region: &MemoryRegion| region.start.saturating_add(region.size);
    let apart = rams().find(|region| !(region.start..end(region)).contains(&start));
    let top = apart.or_else(|| rams().next()).map_or(0, end);
    u32::try_from(top).unwrap_or(u32::MAX) & !7
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::{Image, ImageSource};
    use crate::profile::Arch;
    use crate::profile::tests::shipped;

    #[test]
    fn every_shipped_board_that_takes_an_image_has_one_that_fits_it() {
        for board in shipped().iter().filter(|board| !board.memory.is_empty()) {
            let bytes = image(board).unwrap_or_else(|| panic!("{} has none", board.id));
            assert!(bytes.len() < 1024, "{}: {} bytes", board.id, bytes.len());
            let source = ImageSource::of("known-good.elf".as_ref(), |_| false).unwrap();
            let read = Image::parse_from(&source, &bytes, board);
            assert!(read.is_ok(), "{}: {:?}", board.id, read.err());
        }
    }

    #[test]
    fn the_words_behind_the_program_say_how_to_send_the_line() {
        let board = shipped().into_iter().find(|board| board.arch == Arch::Arm).unwrap();
        let spec = board.emulation.as_ref().unwrap().known_good.clone().unwrap();
        let body = layout::body(Arch::Arm, &spec, 0x2000_1000);
        let word = |at: usize| u32::from_le_bytes(body[at..at + 4].try_into().unwrap());
        assert_eq!(word(0), 0x2000_1000);
        assert_eq!(word(4), layout::entry(Arch::Arm, spec.start));
        let words = 64 + program(Arch::Arm).len() * 4;
        assert_eq!(word(words), spec.send);
        assert_eq!(word(words + 20) as usize, spec.setup.len());
        let text = &body[words + 24 + spec.setup.len() * 8..];
        assert!(text.starts_with(format!("{LINE}\n\0").as_bytes()));
    }
}
