//! An image that was checked against the board it is for.

use std::path::PathBuf;

use sha2::{Digest, Sha256};

use super::elf::Elf;
use super::{ImageError, ImageFormat, ImageSource, Payload, hex};
use crate::profile::BoardProfile;

/// An image that has been read and found to fit its board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The file, as the user named it.
    pub name: String,
    /// The file that is deployed; it is only ever read.
    pub path: PathBuf,
    /// How the file is to be read.
    pub format: ImageFormat,
    /// SHA-256 of the whole file, in lower-case hex.
    pub sha256: String,
    /// SHA-256 in lower-case hex of the bytes it loads, in address order: what a board that
    /// holds it reads back. Of nothing where it loads no byte.
    pub payload_sha256: String,
    /// How many bytes it loads.
    pub payload_bytes: u64,
    /// Where they belong, in address order: the first address of each piece, and one past its
    /// last.
    pub payload_spans: Vec<(u64, u64)>,
    /// GNU build id in lower-case hex, if the image carries one; only ELF can.
    pub build_id: Option<String>,
    /// Whether the image promises to print its build id (see [`ANNOUNCE_SECTION`](super::ANNOUNCE_SECTION)).
    pub announces: bool,
}

impl Image {
    /// Reads an image that carries its own addresses and checks that it fits a board.
    ///
    /// # Errors
    /// As [`Image::parse_from`].
    pub fn parse(path: PathBuf, bytes: &[u8], board: &BoardProfile) -> Result<Self, ImageError> {
        let name = path.display().to_string();
        Self::parse_from(&ImageSource { name, path, address: None }, bytes, board)
    }

    /// Reads an image of any format and checks that it fits a board.
    ///
    /// # Errors
    /// Says which of format, architecture, structure or memory does not fit.
    pub fn parse_from(
        source: &ImageSource,
        bytes: &[u8],
        board: &BoardProfile,
    ) -> Result<Self, ImageError> {
        let file = source.path.display().to_string();
        let format = ImageFormat::detect(&file, bytes, source.address)?;
        let mut image = Self {
            name: source.name.clone(),
            path: source.path.clone(),
            format,
            sha256: hex(&Sha256::digest(bytes)),
            payload_sha256: hex(&Sha256::digest([])),
            payload_bytes: 0,
            payload_spans: Vec::new(),
            build_id: None,
            announces: false,
        };
        if format == ImageFormat::Elf {
            let elf = Elf::parse(bytes)?;
            if !board.arch.runs(elf.architecture()) {
                return Err(ImageError::WrongArch {
                    found: format!("{:?}", elf.architecture()).to_ascii_lowercase(),
                    wanted: board.arch,
                    board: board.id.to_string(),
                });
            }
            let spans = elf.spans();
            if spans.is_empty() {
                return Err(ImageError::Empty);
            }
            fits(spans, board)?;
            image.build_id = elf.build_id()?;
            image.announces = elf.announces();
        }
        match Payload::read(format, bytes) {
            Ok(payload) => {
                fits(payload.spans(), board)?;
                image.payload_sha256 = payload.sha256();
                image.payload_bytes = payload.len();
                image.payload_spans = payload.spans().collect();
            }
            // It only asks for memory; there is nothing to load.
            Err(ImageError::Empty) if format == ImageFormat::Elf => {}
            Err(error) => return Err(error),
        }
        Ok(image)
    }
}

fn fits(
    spans: impl IntoIterator<Item = (u64, u64)>,
    board: &BoardProfile,
) -> Result<(), ImageError> {
    let outside = spans.into_iter().find(|&(start, end)| !board.holds(start, end));
    let Some((start, end)) = outside else { return Ok(()) };
    let name = board.id.to_string();
    Err(match board.memory.is_empty() {
        true => ImageError::NoMemory { start, end, board: name },
        false => {
            let memory = board.memory_text();
            ImageError::OutsideMemory { start, end, board: name, memory }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

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
        assert!(matches!(parse(b"# text"), Err(ImageError::UnknownFormat { .. })));
        assert!(matches!(parse(b""), Err(ImageError::UnknownFormat { .. })));
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

    fn parse_as(name: &str, bytes: &[u8]) -> Result<Image, ImageError> {
        Image::parse_from(&ImageSource::of(Path::new(name), |_| false)?, bytes, &board())
    }

    /// The same four bytes at 0x1800.
    const HEX: &[u8] = b":0418000001020304DA\n:00000001FF\n";

    #[test]
    fn all_formats_of_one_program_load_the_same() {
        let mut file = elf(ARM, 0x1800, 0x1800, 4, 4);
        file.truncate(84);
        file.extend([1, 2, 3, 4]);
        let images = [
            parse_as("x.elf", &file).unwrap(),
            parse_as("x.hex", HEX).unwrap(),
            parse_as("x.bin@0x1800", &[1, 2, 3, 4]).unwrap(),
        ];
        assert!(images.iter().all(|i| i.payload_sha256 == images[0].payload_sha256));
        assert_ne!(images[0].sha256, images[1].sha256);
        assert_eq!(images.map(|image| image.format.extension()), ["elf", "hex", "bin"]);
    }

    #[test]
    fn each_format_is_refused_in_its_own_words() {
        let says = |name: &str, bytes: &[u8], words: &str| {
            let error = parse_as(name, bytes).unwrap_err().to_string();
            assert!(error.contains(words), "{name}: {error}");
        };
        says("d/x.bin", &[1, 2, 3], "a raw binary needs its address: x.bin@0x8000");
        says("x.hex", b"hello", "line 1: a record begins with `:`");
        says("x.hex@0x1000", HEX, "it is Intel HEX and says itself");
        says("x@0x1000", &elf(ARM, 0x1000, 0x1000, 4, 4), "it is an ELF file and says itself");
        says("x.bin@0x1ffe", &[1, 2, 3], "its segment at 0x1ffe..0x2001 does not fit board b");
        says("x.hex", b":0100000001FE\n:00000001FF\n", "its segment at 0x0..0x1 does not fit");
        says("x.bin@0x1000", &[], "no loadable segment");
        says("x.hex", b":00000001FF", "no loadable segment");
        says("x.hex", b"", "it is empty");
        let mut cut = elf(ARM, 0x1000, 0x1000, 16, 16);
        cut.truncate(90);
        says("x.elf", &cut, "segment 0 lies outside of the file");
    }

    #[test]
    fn a_profile_without_memory_is_told_what_to_add() {
        let bare = BoardProfile { memory: Vec::new(), ..board() };
        let error = Image::parse("x.elf".into(), &elf(ARM, 0x1000, 0x1000, 16, 16), &bare);
        let text = error.unwrap_err().to_string();
        for words in
            ["board b declares no memory", "0x1000..0x1010", "[[memory]]", "profile show b"]
        {
            assert!(text.contains(words), "{words}: {text}");
        }
    }

    #[test]
    fn memory_that_is_only_asked_for_is_nothing_to_load() {
        let image = parse(&elf(ARM, 0x1000, 0x1000, 0, 64)).unwrap();
        assert_eq!(image.payload_sha256, hex(&Sha256::digest([])));
        let payload = Payload::read(image.format, &elf(ARM, 0x1000, 0x1000, 0, 64));
        assert_eq!(payload, Err(ImageError::Empty));
    }
}
