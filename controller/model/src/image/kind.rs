//! The names of the formats of image files.

use std::fmt;

use serde::Serialize;

use crate::document::Choice;

/// Names the formats of image files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImageKind {
    /// ELF.
    Elf,
    /// Intel HEX.
    Hex,
    /// Bytes and nothing else.
    Bin,
}

impl ImageKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Elf, Self::Hex, Self::Bin];
}

impl Choice for ImageKind {
    const WHAT: &'static str = "format of images";
    const CHOICES: &'static [(&'static str, Self)] =
        &[("elf", Self::Elf), ("hex", Self::Hex), ("bin", Self::Bin)];
}

impl fmt::Display for ImageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Elf => "an ELF file",
            Self::Hex => "Intel HEX",
            Self::Bin => "a raw binary",
        })
    }
}
