//! Bytes with an address each: what every image amounts to.

use sha2::{Digest, Sha256};

use super::piece::{Origin, Piece};
use super::{BinAddress, ImageError, ImageFormat, elf, hex, intel_hex};

/// Bytes and where they belong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Address of the first byte.
    pub start: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// What is to be put on a board: segments in ascending order, without overlap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    /// The segments; at least one, none of them empty, no two of them adjacent.
    pub segments: Vec<Segment>,
}

/// Most bytes of a payload: the largest memory of a shipped board is 512 MiB. A small ELF
/// file may name the same bytes thousands of times, so its own size bounds nothing.
const MAX_BYTES: u64 = 1 << 30;

impl Payload {
    /// Reads an image of any format; `name` is its file's name and `address` is where a raw
    /// binary belongs.
    ///
    /// # Errors
    /// Says what is broken or missing, and in an Intel HEX file on which line.
    pub fn parse(
        name: &str,
        bytes: &[u8],
        address: Option<BinAddress>,
    ) -> Result<Self, ImageError> {
        Self::read(ImageFormat::detect(name, bytes, address)?, bytes)
    }

    /// Reads an image whose format is known, such as [`Image::format`](super::Image).
    ///
    /// # Errors
    /// Says what is broken, and in an Intel HEX file on which line.
    pub fn read(format: ImageFormat, bytes: &[u8]) -> Result<Self, ImageError> {
        assemble(match format {
            ImageFormat::Elf => elf::Elf::parse(bytes)?.pieces()?,
            ImageFormat::IntelHex => intel_hex::pieces(bytes)?,
            ImageFormat::Binary { address } => {
                vec![Piece { origin: Origin::File, start: address.0, bytes: bytes.into() }]
            }
        })
    }

    /// Returns how many bytes there are.
    pub fn len(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes.len() as u64).sum()
    }

    /// Tells whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the lowest address.
    pub fn start(&self) -> Option<u64> {
        self.segments.first().map(|segment| segment.start)
    }

    /// Lists the addresses in use, each as the first and one past the last.
    pub fn spans(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.segments.iter().map(|s| (s.start, s.start.saturating_add(s.bytes.len() as u64)))
    }

    /// Returns the SHA-256 in lower-case hex of all bytes in address order, without what
    /// lies between them: what reading them back yields, too.
    pub fn sha256(&self) -> String {
        let mut digest = Sha256::new();
        for segment in &self.segments {
            digest.update(&segment.bytes);
        }
        hex(&digest.finalize())
    }
}

/// Puts pieces in order and together; nothing is copied before all is known to be sound.
pub(super) fn assemble(mut pieces: Vec<Piece<'_>>) -> Result<Payload, ImageError> {
    pieces.retain(|piece| !piece.bytes.is_empty());
    pieces.sort_by_key(|piece| piece.start);
    for pair in pieces.windows(2) {
        if pair[0].end()? > pair[1].start {
            let (first, second) = (pair[0].shown(), pair[1].shown());
            return Err(ImageError::Overlap { first, second });
        }
    }
    if let Some(last) = pieces.last() {
        last.end()?;
    }
    let bytes = pieces.iter().map(|piece| piece.bytes.len() as u64).sum();
    if bytes > MAX_BYTES {
        return Err(ImageError::TooLarge { bytes });
    }
    let mut segments: Vec<Segment> = Vec::new();
    for piece in pieces {
        match segments.last_mut() {
            Some(last) if last.start + last.bytes.len() as u64 == piece.start => {
                last.bytes.extend_from_slice(&piece.bytes);
            }
            _ => segments.push(Segment { start: piece.start, bytes: piece.bytes.into_owned() }),
        }
    }
    if segments.is_empty() { Err(ImageError::Empty) } else { Ok(Payload { segments }) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn piece(number: usize, start: u64, bytes: &[u8]) -> Piece<'_> {
        Piece { origin: Origin::Segment(number), start, bytes: bytes.into() }
    }

    #[test]
    fn adjacent_pieces_become_one_segment() {
        let payload =
            assemble(vec![piece(0, 8, b"cd"), piece(1, 0, b""), piece(2, 6, b"ab")]).unwrap();
        assert_eq!(payload.segments, [Segment { start: 6, bytes: b"abcd".to_vec() }]);
        let payload = assemble(vec![piece(0, 9, b"cd"), piece(1, 6, b"ab")]).unwrap();
        assert_eq!(payload.spans().collect::<Vec<_>>(), [(6, 8), (9, 11)]);
        assert_eq!((payload.len(), payload.start()), (4, Some(6)));
        assert_eq!(payload.sha256(), hex(&Sha256::digest(b"abcd")));
    }

    #[test]
    fn overlapping_pieces_are_both_named() {
        let error = assemble(vec![piece(4, 8, b"cd"), piece(1, 6, b"abc")]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "two of its parts overlap: segment 1 (0x6..0x9) and segment 4 (0x8..0xa)"
        );
        let twice = assemble(vec![piece(0, 6, b"ab"), piece(1, 6, b"ab")]);
        assert!(matches!(twice, Err(ImageError::Overlap { .. })));
    }

    #[test]
    fn the_ends_of_the_world_are_respected() {
        assert!(assemble(vec![piece(0, u64::MAX - 2, b"ab")]).is_ok());
        let beyond = assemble(vec![piece(0, u64::MAX, b"ab")]).unwrap_err();
        assert_eq!(beyond, ImageError::BeyondEnd { start: u64::MAX });
        assert_eq!(assemble(vec![piece(0, 5, b"")]), Err(ImageError::Empty));
        let block = vec![0; 1 << 20];
        let many = (0..1025).map(|n| piece(n, (n as u64) << 21, &block)).collect();
        assert_eq!(assemble(many), Err(ImageError::TooLarge { bytes: 1025 << 20 }));
    }

    proptest! {
        /// Holds the payload against memory that is simply written to.
        #[test]
        fn a_payload_is_what_memory_would_hold(
            pieces in proptest::collection::vec((0u64..64, proptest::collection::vec(any::<u8>(), 0..12)), 0..8)
        ) {
            let mut memory = [None; 80];
            let mut clash = false;
            for (start, bytes) in &pieces {
                for (offset, byte) in bytes.iter().enumerate() {
                    clash |= memory[*start as usize + offset].replace(*byte).is_some();
                }
            }
            let made = pieces.iter().enumerate().map(|(n, (start, b))| piece(n, *start, b)).collect();
            match assemble(made) {
                Ok(payload) => {
                    prop_assert!(!clash);
                    let mut held = [None; 80];
                    for segment in &payload.segments {
                        prop_assert!(!segment.bytes.is_empty());
                        for (offset, byte) in segment.bytes.iter().enumerate() {
                            held[segment.start as usize + offset] = Some(*byte);
                        }
                    }
                    prop_assert_eq!(held, memory);
                    prop_assert!(payload.spans().zip(payload.spans().skip(1)).all(|(a, b)| a.1 < b.0));
                }
                Err(ImageError::Overlap { .. }) => prop_assert!(clash),
                Err(error) => {
                    prop_assert_eq!(error, ImageError::Empty);
                    prop_assert!(memory.iter().all(Option::is_none));
                }
            }
        }
    }
}
