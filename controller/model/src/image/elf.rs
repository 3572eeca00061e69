//! ELF files.

use object::read::elf::{FileHeader, ProgramHeader as _};
use object::{Architecture, Object as _, ObjectSection as _};

use super::piece::{Origin, Piece};
use super::{ImageError, hex};

/// An ELF section of this name says: this firmware prints `jig-build-id: HEX` at every boot.
pub const ANNOUNCE_SECTION: &str = ".jig.announce";

/// The first bytes of every ELF file.
pub(super) const MAGIC: &[u8] = b"\x7fELF";

/// An ELF file whose headers could be read.
pub(super) struct Elf<'a> {
    file: object::File<'a>,
    bytes: &'a [u8],
}

/// One program header of type `PT_LOAD`.
struct Load<'a> {
    number: usize,
    physical: u64,
    virtual_: u64,
    memory_size: u64,
    /// The bytes in the file; nothing where they lie outside of it.
    bytes: Option<&'a [u8]>,
    file_size: u64,
}

fn broken(error: object::Error) -> ImageError {
    ImageError::Broken(error.to_string())
}

impl<'a> Elf<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, ImageError> {
        Ok(Self { file: object::File::parse(bytes).map_err(broken)?, bytes })
    }

    pub(super) fn file(&self) -> &object::File<'a> {
        &self.file
    }

    pub(super) fn architecture(&self) -> Architecture {
        self.file.architecture()
    }

    pub(super) fn build_id(&self) -> Result<Option<String>, ImageError> {
        Ok(self.file.build_id().map_err(broken)?.map(hex))
    }

    pub(super) fn announces(&self) -> bool {
        self.file.sections().any(|section| section.name() == Ok(ANNOUNCE_SECTION))
    }

    /// Lists the address ranges an image needs: where its bytes are loaded (physical) and
    /// where it runs and keeps its zeroed data (virtual).
    pub(super) fn spans(&self) -> Vec<(u64, u64)> {
        let mut spans = Vec::new();
        for load in self.loads() {
            spans.push((load.physical, load.physical.saturating_add(load.file_size)));
            spans.push((load.virtual_, load.virtual_.saturating_add(load.memory_size)));
        }
        spans.retain(|(start, end)| end > start);
        spans
    }

    /// Lists what is loaded: bytes of the file at their physical addresses.
    pub(super) fn pieces(&self) -> Result<Vec<Piece<'a>>, ImageError> {
        let pieces = self.loads().into_iter().filter(|load| load.file_size > 0).map(|load| {
            let outside = || format!("segment {} lies outside of the file", load.number);
            let bytes = load.bytes.ok_or_else(|| ImageError::Broken(outside()))?;
            let origin = Origin::Segment(load.number);
            Ok(Piece { origin, start: load.physical, bytes: bytes.into() })
        });
        pieces.collect()
    }

    fn loads(&self) -> Vec<Load<'a>> {
        fn of<'a, H: FileHeader>(
            endian: H::Endian,
            headers: &[H::ProgramHeader],
            bytes: &'a [u8],
        ) -> Vec<Load<'a>> {
            let headers = headers.iter().enumerate();
            let loads = headers.filter(|(_, h)| h.p_type(endian) == object::elf::PT_LOAD);
            let load = |(number, header): (usize, &H::ProgramHeader)| Load {
                number,
                physical: header.p_paddr(endian).into(),
                virtual_: header.p_vaddr(endian).into(),
                memory_size: header.p_memsz(endian).into(),
                bytes: header.data(endian, bytes).ok(),
                file_size: header.p_filesz(endian).into(),
            };
            loads.map(load).collect()
        }
        match &self.file {
            object::File::Elf32(elf) => of::<object::elf::FileHeader32<_>>(
                elf.endian(),
                elf.elf_program_headers(),
                self.bytes,
            ),
            object::File::Elf64(elf) => of::<object::elf::FileHeader64<_>>(
                elf.endian(),
                elf.elf_program_headers(),
                self.bytes,
            ),
            _ => Vec::new(),
        }
    }
}
