//! What is known of a chip: its cores, its memory, and which flash can be written.
//!
//! Owns the nouns and how a chip becomes a board. Where the facts come from is the business of the
//! crate that has chip descriptions ([`ChipSource`]).

use serde::Serialize;

use crate::profile::{Arch, MemoryKind, MemoryRegion};

pub use crate::chip_name::{ChipName, ChipNameError};

/// What a chip description says of a chip.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChipFacts {
    /// The chip's name, as the description spells it.
    pub name: String,
    /// The family that it belongs to.
    pub family: String,
    /// What an image of its first core must be built for.
    pub arch: Arch,
    /// Names of its packages that are names of the chip, too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<String>,
    /// Its cores, the one that boots first.
    pub cores: Vec<ChipCore>,
    /// Its memory in ascending order, without overlaps and aliases of flash; adjacent regions of one
    /// kind are one.
    pub memory: Vec<ChipMemory>,
}

/// One core of a chip.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChipCore {
    /// Its name in the description.
    pub name: String,
    /// Its architecture, such as `Armv7E-M`.
    pub architecture: &'static str,
}

/// One region of a chip's memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChipMemory {
    /// Where it is. Names are unique in the chip.
    #[serde(flatten)]
    pub region: MemoryRegion,
    /// Whether a debug probe can write it: RAM directly, flash by an algorithm of the description.
    pub writable: bool,
    /// Whether it is memory of another region, seen at other addresses.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub alias: bool,
}

impl ChipFacts {
    /// Returns how much memory of a kind it has, in bytes.
    pub fn size_of(&self, kind: MemoryKind) -> u64 {
        let of_kind =
            self.memory.iter().filter(|memory| memory.region.kind == kind && !memory.alias);
        of_kind.map(|memory| memory.region.size).fold(0, u64::saturating_add)
    }

    /// Tells whether it has flash and a debug probe can write some of it.
    pub fn flashes(&self) -> bool {
        let flash = |memory: &&ChipMemory| memory.region.kind == MemoryKind::Flash;
        self.memory.iter().filter(flash).any(|memory| memory.writable)
    }
}

/// Says that no chip, or no single chip, has a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", said(.name, *.several))]
pub struct UnknownChip {
    /// The name.
    pub name: String,
    /// Names like it, best first; those that it could stand for, where it stands for several.
    pub nearest: Vec<String>,
    /// Whether it stands for several.
    pub several: bool,
}

fn said(name: &str, several: bool) -> String {
    match several {
        true => format!("chip {name:?} stands for more than one chip"),
        false => format!("there is no chip {name:?}"),
    }
}

impl UnknownChip {
    /// Returns what to do next.
    pub fn help(&self) -> String {
        match self.nearest.as_slice() {
            [] => "list the chips that are known: jig chips PATTERN".to_owned(),
            some if self.several => format!("write one of: {}, ...", some.join(", ")),
            some => format!("did you mean {}? (see: jig chips PATTERN)", some.join(", ")),
        }
    }
}

/// Knows chips.
pub trait ChipSource {
    /// Finds a chip by its name.
    ///
    /// # Errors
    /// No chip, or more than one, is meant.
    fn chip(&self, name: &ChipName) -> Result<ChipFacts, UnknownChip>;
}

/// Knows no chip.
#[derive(Debug, Clone, Copy)]
pub struct NoChips;

impl ChipSource for NoChips {
    fn chip(&self, name: &ChipName) -> Result<ChipFacts, UnknownChip> {
        Err(UnknownChip { name: name.to_string(), nearest: Vec::new(), several: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_chip_says_what_to_type() {
        let unknown = |nearest: &[&str], several| UnknownChip {
            name: "STM".to_owned(),
            nearest: nearest.iter().map(|name| (*name).to_owned()).collect(),
            several,
        };
        let words = |unknown: UnknownChip| format!("{unknown}; {}", unknown.help());
        assert_eq!(
            words(unknown(&[], false)),
            "there is no chip \"STM\"; list the chips that are known: jig chips PATTERN"
        );
        assert_eq!(
            words(unknown(&["A", "B"], true)),
            "chip \"STM\" stands for more than one chip; write one of: A, B, ..."
        );
        assert!(words(unknown(&["A"], false)).contains("did you mean A?"));
    }
}
