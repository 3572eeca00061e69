//! The formats of image files, and how they are told apart.

use std::path::Path;

use super::elf::MAGIC;
use super::kind::ImageKind;
use super::{BinAddress, ImageError};

/// How an image's file is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ImageFormat {
    /// ELF: its program headers say where its bytes belong.
    Elf,
    /// Intel HEX: each line says where its bytes belong.
    IntelHex,
    /// Bytes and nothing else.
    Binary {
        /// Where the first one belongs.
        address: BinAddress,
    },
}

impl ImageFormat {
    /// Tells the format of a file: ELF by its first bytes, Intel HEX by its first character
    /// or its name, and a raw binary by the address that was given.
    ///
    /// # Errors
    /// None of them, or an address for a file that has its own.
    pub fn detect(
        name: &str,
        bytes: &[u8],
        address: Option<BinAddress>,
    ) -> Result<Self, ImageError> {
        let extension = Path::new(name).extension().unwrap_or_default().to_ascii_lowercase();
        let called_hex = ["hex", "ihex", "ihx"].iter().any(|&hex| extension == hex);
        let taken = |format| ImageError::AddressNotTaken { format };
        match address {
            Some(_) if bytes.starts_with(MAGIC) => Err(taken("an ELF file")),
            Some(_) if called_hex => Err(taken("Intel HEX")),
            Some(address) => Ok(Self::Binary { address }),
            None if bytes.starts_with(MAGIC) => Ok(Self::Elf),
            None if bytes.trim_ascii_start().starts_with(b":") => Ok(Self::IntelHex),
            None if called_hex && !bytes.is_empty() => Ok(Self::IntelHex),
            None => {
                let file = Path::new(name).file_name().unwrap_or_default().to_string_lossy();
                let head = bytes.iter().copied().take(4).collect();
                Err(ImageError::UnknownFormat { name: file.into_owned(), head })
            }
        }
    }

    /// Returns the format without what belongs to it.
    pub fn kind(self) -> ImageKind {
        match self {
            Self::Elf => ImageKind::Elf,
            Self::IntelHex => ImageKind::Hex,
            Self::Binary { .. } => ImageKind::Bin,
        }
    }

    /// Returns the ending that programs know the format by.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Elf => "elf",
            Self::IntelHex => "hex",
            Self::Binary { .. } => "bin",
        }
    }
}
