//! What the names in an ELF file tell about the board and the system that it was built for.
//!
//! Only names that nothing else defines count: what is not certain is left out.

use object::{Object as _, ObjectSymbol as _};

use super::ImageError;
use super::elf::Elf;
use crate::profile::Arch;

/// What an ELF file tells about its board and its system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElfHints {
    /// The processor family that it was built for, if it is one of those that boards have.
    pub arch: Option<Arch>,
    /// The address of its first instruction.
    pub entry: u64,
    /// The top of its first stack, where a symbol names it.
    pub stack_top: Option<u64>,
    /// The address of its RTT control block.
    pub rtt: Option<u64>,
    /// The real-time system that is linked into it.
    pub system: Option<LinkedSystem>,
    /// Where its bytes and its variables lie, as ranges `(start, end)` in ascending order; adjacent
    /// ones are one.
    pub spans: Vec<(u64, u64)>,
}

/// A real-time system that a program is linked with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkedSystem {
    /// FreeRTOS.
    FreeRtos,
    /// RIOT.
    Riot,
    /// Zephyr.
    Zephyr,
}

impl LinkedSystem {
    /// Returns its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FreeRtos => "FreeRTOS",
            Self::Riot => "RIOT",
            Self::Zephyr => "Zephyr",
        }
    }
}

/// Symbols of linker scripts that stand for the top of the first stack: of CMSIS and its vendors'
/// scripts, of cortex-m-rt, and of riscv-rt.
const STACK_TOPS: &[&str] = &["__StackTop", "_estack", "_stack_start", "__stack_top"];

/// A variable that each system has and no other one.
const SYSTEMS: &[(&str, LinkedSystem)] = &[
    ("pxCurrentTCB", LinkedSystem::FreeRtos),
    ("pxCurrentTCBs", LinkedSystem::FreeRtos),
    ("sched_active_thread", LinkedSystem::Riot),
    ("z_main_thread", LinkedSystem::Zephyr),
];

/// The control block of SEGGER's and of Rust's implementations of RTT.
const RTT: &str = "_SEGGER_RTT";

impl ElfHints {
    /// Reads an ELF file.
    ///
    /// # Errors
    /// It is none, or its headers are broken.
    pub fn read(bytes: &[u8]) -> Result<Self, ImageError> {
        let elf = Elf::parse(bytes)?;
        let file = elf.file();
        let defined = || file.symbols().filter(|symbol| symbol.is_definition());
        let address = |name: &str| {
            defined().find(|symbol| symbol.name() == Ok(name)).map(|symbol| symbol.address())
        };
        let has = |name: &str| defined().any(|symbol| symbol.name() == Ok(name));
        let mut systems: Vec<LinkedSystem> = Vec::new();
        for (_, system) in SYSTEMS.iter().filter(|(name, _)| has(name)) {
            if !systems.contains(system) {
                systems.push(*system);
            }
        }
        Ok(Self {
            arch: Arch::of(file.architecture()),
            entry: file.entry(),
            stack_top: STACK_TOPS.iter().find_map(|name| address(name)),
            rtt: address(RTT),
            // Names of two systems prove neither.
            system: <[LinkedSystem; 1]>::try_from(systems).ok().map(|[system]| system),
            spans: merged(elf.spans()),
        })
    }
}

/// Sorts ranges, leaves out empty ones and joins those that touch.
fn merged(mut spans: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    spans.retain(|(start, end)| start < end);
    spans.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (start, end) in spans {
        match joined.last_mut() {
            Some((_, reach)) if start <= *reach => *reach = end.max(*reach),
            _ => joined.push((start, end)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_are_one() {
        let spans = vec![(8, 12), (0, 4), (4, 6), (5, 5), (9, 10)];
        assert_eq!(merged(spans), [(0, 6), (8, 12)]);
    }

    #[test]
    fn what_is_no_elf_file_is_refused() {
        for bytes in [&b""[..], b":00000001FF", b"\x7fELF", b"\x7fELF\x01\x01\x01"] {
            assert!(ElfHints::read(bytes).is_err(), "{bytes:?}");
        }
    }
}
