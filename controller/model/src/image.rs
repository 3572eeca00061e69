//! What is put on a board, and proof of which one it was.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::profile::{Arch, BoardProfile};

/// An image that has been read and found to fit its board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The file, as the user named it.
    pub name: String,
    /// The file that is deployed; it is only ever read.
    pub path: PathBuf,
    /// SHA-256 of the whole file, in lower-case hex.
    pub sha256: String,
    /// GNU build id in lower-case hex, if the image carries one.
    pub build_id: Option<String>,
    /// Whether the image promises to print its build id (see [`ANNOUNCE_SECTION`]).
    pub announces: bool,
}

/// Says what a deployment did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeployReport {
    /// How: `emulator-loader`, `probe`, a command's name.
    pub method: String,
    /// The file, as the user named it.
    pub image: String,
    /// SHA-256 of the file that was deployed.
    pub sha256: String,
    /// Its build id, if it carries one.
    pub build_id: Option<String>,
}

/// An ELF section of this name says: this firmware prints `jig-build-id: HEX` at every boot.
pub const ANNOUNCE_SECTION: &str = ".jig.announce";

/// Says why an image cannot run on a board.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// Not an ELF file.
    #[error("it is not an ELF file ({})", beginning(head))]
    NotElf {
        /// The first bytes, at most four.
        head: Vec<u8>,
    },
    /// An ELF file that cannot be read.
    #[error("its ELF structure is broken: {0}")]
    Broken(String),
    /// Built for another processor.
    #[error("it is built for {found}, but board {board} is {wanted}")]
    WrongArch {
        /// What the file says.
        found: String,
        /// What the board is.
        wanted: Arch,
        /// The board.
        board: String,
    },
    /// Nothing to load.
    #[error("it has no loadable segment")]
    Empty,
    /// Lies outside the board's memory.
    #[error(
        "its segment at {start:#x}..{end:#x} does not fit board {board}, whose memory is {memory}"
    )]
    OutsideMemory {
        /// First address of the segment.
        start: u64,
        /// One past its last address.
        end: u64,
        /// The board.
        board: String,
        /// The regions, for people.
        memory: String,
    },
}

fn beginning(head: &[u8]) -> String {
    if head.is_empty() {
        "it is empty".to_owned()
    } else {
        format!("it starts with \"{}\"", head.escape_ascii())
    }
}

impl Image {
    /// Reads an ELF image and checks that it fits a board.
    ///
    /// # Errors
    /// Says which of architecture, structure or memory does not fit.
    pub fn parse(path: PathBuf, bytes: &[u8], board: &BoardProfile) -> Result<Self, ImageError> {
        use object::{Object, ObjectSection};
        if !bytes.starts_with(b"\x7fELF") {
            return Err(ImageError::NotElf { head: bytes.iter().copied().take(4).collect() });
        }
        let broken = |error: object::Error| ImageError::Broken(error.to_string());
        let file = object::File::parse(bytes).map_err(broken)?;
        if !board.arch.runs(file.architecture()) {
            return Err(ImageError::WrongArch {
                found: format!("{:?}", file.architecture()).to_ascii_lowercase(),
                wanted: board.arch,
                board: board.id.to_string(),
            });
        }
        let spans = loaded_spans(&file);
        if spans.is_empty() {
            return Err(ImageError::Empty);
        }
        for (start, end) in spans {
            if !board.holds(start, end) {
                return Err(ImageError::OutsideMemory {
                    start,
                    end,
                    board: board.id.to_string(),
                    memory: board.memory_text(),
                });
            }
        }
        let build_id = file.build_id().map_err(broken)?.map(hex);
        let announces = file.sections().any(|s| s.name() == Ok(ANNOUNCE_SECTION));
        let name = path.display().to_string();
        Ok(Self { name, path, sha256: hex(&Sha256::digest(bytes)), build_id, announces })
    }
}

/// Lists the address ranges an image needs: where its bytes are loaded (physical) and
/// where it runs and keeps its zeroed data (virtual).
fn loaded_spans(file: &object::File<'_>) -> Vec<(u64, u64)> {
    use object::read::elf::ProgramHeader as _;
    fn of<H: object::read::elf::FileHeader>(
        endian: H::Endian,
        headers: &[H::ProgramHeader],
    ) -> Vec<(u64, u64)> {
        let mut spans = Vec::new();
        for header in headers.iter().filter(|h| h.p_type(endian) == object::elf::PT_LOAD) {
            let load: u64 = header.p_paddr(endian).into();
            let run: u64 = header.p_vaddr(endian).into();
            let file_size: u64 = header.p_filesz(endian).into();
            let memory_size: u64 = header.p_memsz(endian).into();
            spans.push((load, load.saturating_add(file_size)));
            spans.push((run, run.saturating_add(memory_size)));
        }
        spans.retain(|(start, end)| end > start);
        spans
    }
    match file {
        object::File::Elf32(elf) => {
            of::<object::elf::FileHeader32<_>>(elf.endian(), elf.elf_program_headers())
        }
        object::File::Elf64(elf) => {
            of::<object::elf::FileHeader64<_>>(elf.endian(), elf.elf_program_headers())
        }
        _ => Vec::new(),
    }
}

/// Writes bytes as lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::FaultSets;

    fn board() -> BoardProfile {
        let text = r#"
            version = 1
            id = "b"
            title = "B"
            arch = "arm"
            [[memory]]
            name = "ram"
            kind = "ram"
            start = 0x1000
            size = "4K"
            [[console]]
            name = "uart0"
            kind = "uart"
            baud = 9600
        "#;
        BoardProfile::parse("b.toml", text, &FaultSets::default()).unwrap()
    }

    /// Builds a 32-bit little-endian ELF with one segment.
    fn elf(machine: u16, load: u32, run: u32, file_size: u32, memory_size: u32) -> Vec<u8> {
        let mut bytes = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        for half in [2, machine] {
            bytes.extend(half.to_le_bytes());
        }
        for word in [1_u32, 0, 52, 0, 0] {
            bytes.extend(word.to_le_bytes());
        }
        for half in [52_u16, 32, 1, 40, 0, 0] {
            bytes.extend(half.to_le_bytes());
        }
        for word in [1, 84, run, load, file_size, memory_size, 5, 4] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.resize(84 + file_size as usize, 0);
        bytes
    }

    const ARM: u16 = 40;
    const RISCV: u16 = 243;

    fn parse(bytes: &[u8]) -> Result<Image, ImageError> {
        Image::parse("x.elf".into(), bytes, &board())
    }

    #[test]
    fn an_image_that_fits_is_taken_and_hashed() {
        let image = parse(&elf(ARM, 0x1000, 0x1800, 16, 16)).unwrap();
        assert_eq!(image.sha256.len(), 64);
        assert_eq!((image.build_id, image.announces), (None, false));
    }

    #[test]
    fn what_does_not_fit_is_refused_by_name() {
        assert!(matches!(parse(b"# text"), Err(ImageError::NotElf { .. })));
        assert!(matches!(parse(b""), Err(ImageError::NotElf { .. })));
        assert!(matches!(parse(b"\x7fELF\x01"), Err(ImageError::Broken(_))));
        let other = parse(&elf(RISCV, 0x1000, 0x1000, 4, 4));
        assert!(matches!(other, Err(ImageError::WrongArch { .. })));
        assert_eq!(parse(&elf(ARM, 0x1000, 0x1000, 0, 0)), Err(ImageError::Empty));
        // Loaded outside, running outside, and zeroed data that reaches outside.
        for bytes in [
            elf(ARM, 0x0ff8, 0x1000, 16, 16),
            elf(ARM, 0x1000, 0x3000, 16, 16),
            elf(ARM, 0x1000, 0x1000, 16, 0x1001),
            elf(ARM, 0x1000, 0xffff_fff8, 16, 16),
        ] {
            assert!(matches!(parse(&bytes), Err(ImageError::OutsideMemory { .. })));
        }
    }

    #[test]
    fn no_cut_of_an_image_panics() {
        let whole = elf(ARM, 0x1000, 0x1000, 16, 16);
        for len in 0..whole.len() {
            let _ = parse(&whole[..len]);
        }
    }
}
