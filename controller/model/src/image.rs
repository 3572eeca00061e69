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
    #[error("it is not an ELF file (it starts with {head:02x?})")]
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
                found: format!("{:?}", file.architecture()),
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
