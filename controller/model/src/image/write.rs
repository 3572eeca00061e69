//! Images written in another format: what a flasher takes is not always what a compiler made.
//!
//! The counterpart of the readers beside it: what is written here reads back as the same payload.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Payload, Segment};

/// What erased flash holds, and what stands between two segments of a raw binary.
const ERASED: u8 = 0xff;

/// Largest raw binary. Two segments far apart, such as flash and RAM, would make one of gigabytes.
const MAX_BINARY: u64 = 64 << 20;

/// Data bytes of a record of Intel HEX, as most programs write it.
const HEX_LINE: usize = 16;

/// Says that segments lie too far apart for a raw binary.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "its segments reach from {start:#x} to {end:#x}: a raw binary of them would have {} MiB of \
     nothing between {hole_start:#x} and {hole_end:#x}",
    (hole_end - hole_start) >> 20
)]
pub struct TooSparse {
    start: u64,
    end: u64,
    hole_start: u64,
    hole_end: u64,
}

/// Returns the payload as one run of bytes from its lowest address. What lies between two segments
/// is 0xff, as in erased flash.
///
/// # Errors
/// The run would have more than 64 MiB.
pub fn raw_binary(payload: &Payload) -> Result<Vec<u8>, TooSparse> {
    let (start, end) = (payload.start().unwrap_or(0), payload.spans().last().map_or(0, |s| s.1));
    if end - start > MAX_BINARY {
        let spans: Vec<_> = payload.spans().collect();
        let holes = spans.windows(2).map(|pair| (pair[0].1, pair[1].0));
        let (hole_start, hole_end) = holes.max_by_key(|(a, b)| b - a).unwrap_or((start, end));
        return Err(TooSparse { start, end, hole_start, hole_end });
    }
    let mut bytes = Vec::new();
    for segment in &payload.segments {
        let at = usize::try_from(segment.start - start).unwrap_or(usize::MAX);
        bytes.resize(at, ERASED);
        bytes.extend_from_slice(&segment.bytes);
    }
    Ok(bytes)
}

/// Returns the payload as Intel HEX; nothing if an address has more than 32 bits.
pub fn intel_hex_text(payload: &Payload) -> Option<String> {
    let mut text = String::new();
    let mut high = 0;
    for Segment { start, bytes } in &payload.segments {
        let mut at = u32::try_from(*start).ok()?;
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            if at >> 16 != high {
                high = at >> 16;
                record(&mut text, 0, 4, &(high as u16).to_be_bytes());
            }
            // A record ends with the 64 KiB that its address counts.
            let room = 0x1_0000 - (at & 0xffff) as usize;
            let (data, behind) = rest.split_at(rest.len().min(HEX_LINE).min(room));
            record(&mut text, at as u16, 0, data);
            rest = behind;
            match at.checked_add(data.len() as u32) {
                Some(next) => at = next,
                None if rest.is_empty() => {}
                None => return None,
            }
        }
    }
    record(&mut text, 0, 1, &[]);
    Some(text)
}

/// Bytes of flash in a block of UF2: pages that every boot loader takes.
const UF2_PAGE: u64 = 256;

/// The words that a block of UF2 begins and ends with.
const UF2_MAGIC: [u32; 3] = [0x0a32_4655, 0x9e5d_5157, 0x0ab1_6f30];

/// A flag of a block of UF2: its family is that of a chip.
const UF2_HAS_FAMILY: u32 = 0x2000;

/// Returns the payload as UF2: blocks of 512 bytes with an aligned page of 256 each. What a page has
/// beside the image is 0xff. `family` is the chip's, where its boot loader wants one
/// (0xe48bff56 for the RP2040). Nothing if an address has more than 32 bits.
pub fn uf2_blocks(payload: &Payload, family: Option<u32>) -> Option<Vec<u8>> {
    let mut pages: BTreeMap<u32, [u8; UF2_PAGE as usize]> = BTreeMap::new();
    for Segment { start, bytes } in &payload.segments {
        for (at, byte) in (*start..).zip(bytes) {
            let page = u32::try_from(at - at % UF2_PAGE).ok()?;
            let held = pages.entry(page).or_insert([ERASED; UF2_PAGE as usize]);
            held[(at % UF2_PAGE) as usize] = *byte;
        }
    }
    let count = u32::try_from(pages.len()).ok()?;
    let mut blocks = Vec::with_capacity(pages.len() * 512);
    for (number, (address, page)) in (0_u32..).zip(&pages) {
        let [first, second, last] = UF2_MAGIC;
        let flags = if family.is_some() { UF2_HAS_FAMILY } else { 0 };
        let size = UF2_PAGE as u32;
        for word in [first, second, flags, *address, size, number, count, family.unwrap_or(0)] {
            blocks.extend(word.to_le_bytes());
        }
        blocks.extend(page);
        // 476 bytes of data in all.
        blocks.extend([0; 220]);
        blocks.extend(last.to_le_bytes());
    }
    Some(blocks)
}

fn record(text: &mut String, offset: u16, kind: u8, data: &[u8]) {
    let [high, low] = offset.to_be_bytes();
    // At most 16 bytes of data.
    let head = [data.len() as u8, high, low, kind];
    let bytes = head.iter().chain(data);
    let sum = bytes.clone().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    text.push(':');
    for byte in bytes.chain([&sum.wrapping_neg()]) {
        let _ = write!(text, "{byte:02X}");
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{BinAddress, ImageFormat};
    use super::*;

    fn payload(segments: &[(u64, &[u8])]) -> Payload {
        let segment =
            |(start, bytes): &(u64, &[u8])| Segment { start: *start, bytes: bytes.to_vec() };
        Payload { segments: segments.iter().map(segment).collect() }
    }

    #[test]
    fn a_raw_binary_is_filled_like_erased_flash() {
        let bytes = raw_binary(&payload(&[(0x100, &[1, 2]), (0x104, &[3])])).unwrap();
        assert_eq!(bytes, [1, 2, 0xff, 0xff, 3]);
        let error = raw_binary(&payload(&[(0, &[1]), (9, &[1]), (0x2000_0000, &[1])])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "its segments reach from 0x0 to 0x20000001: a raw binary of them would have 511 MiB of \
             nothing between 0xa and 0x20000000"
        );
    }

    #[test]
    fn intel_hex_is_as_others_write_it() {
        // As `arm-none-eabi-objcopy -O ihex` writes it.
        let text = intel_hex_text(&payload(&[(0x0800_fffe, &[1, 2, 3])])).unwrap();
        let wanted =
            ":020000040800F2\n:02FFFE000102FE\n:020000040801F1\n:0100000003FC\n:00000001FF\n";
        assert_eq!(text, wanted);
        assert_eq!(intel_hex_text(&payload(&[(0xffff_ffff, &[1, 2])])), None);
        assert!(intel_hex_text(&payload(&[(0xffff_fffe, &[1, 2])])).is_some());
        assert_eq!(intel_hex_text(&payload(&[(1 << 32, &[1])])), None);
    }

    /// Segments in ascending order that do not touch, as a payload has them.
    fn payloads() -> impl Strategy<Value = Payload> {
        let bytes = proptest::collection::vec(any::<u8>(), 1..70);
        let piece = (1_u64..200_000, bytes);
        (0_u64..0x9000_0000, proptest::collection::vec(piece, 1..6)).prop_map(|(base, pieces)| {
            let mut at = base;
            let segments = pieces.into_iter().map(|(gap, bytes)| {
                let start = at + gap;
                at = start + bytes.len() as u64;
                Segment { start, bytes }
            });
            Payload { segments: segments.collect() }
        })
    }

    /// Returns what a payload leaves in memory of erased flash, page by page.
    fn memory(payload: &Payload) -> BTreeMap<u32, u8> {
        let mut held = BTreeMap::new();
        for Segment { start, bytes } in &payload.segments {
            for (offset, byte) in (0_u32..).zip(bytes) {
                let at = *start as u32 + offset;
                for beside in at & !255..=at | 255 {
                    held.entry(beside).or_insert(0xff);
                }
                held.insert(at, *byte);
            }
        }
        held
    }

    /// Reads UF2 as the format's specification says, independently of the writer.
    fn read_uf2(bytes: &[u8], family: Option<u32>) -> BTreeMap<u32, u8> {
        let mut held = BTreeMap::new();
        assert_eq!(bytes.len() % 512, 0);
        for (number, block) in bytes.chunks(512).enumerate() {
            let word = |at: usize| u32::from_le_bytes(block[at..at + 4].try_into().unwrap());
            assert_eq!((word(0), word(4), word(508)), (0x0a32_4655, 0x9e5d_5157, 0x0ab1_6f30));
            assert_eq!((word(20) as usize, word(24) as usize), (number, bytes.len() / 512));
            assert_eq!((word(8) & 0x2000 != 0).then(|| word(28)), family);
            assert_eq!((word(12) % 256, word(16)), (0, 256));
            for (offset, byte) in (0_u32..).zip(&block[32..32 + word(16) as usize]) {
                assert_eq!(held.insert(word(12) + offset, *byte), None);
            }
        }
        held
    }

    #[test]
    fn uf2_has_a_page_a_block() {
        let two = payload(&[(0x1000_00fe, &[1, 2, 3])]);
        let blocks = uf2_blocks(&two, Some(0xe48b_ff56)).unwrap();
        assert_eq!(&blocks[..8], b"UF2\nWQ]\x9e");
        assert_eq!(read_uf2(&blocks, Some(0xe48b_ff56)), memory(&two));
        assert_eq!(read_uf2(&uf2_blocks(&two, None).unwrap(), None), memory(&two));
        assert_eq!(uf2_blocks(&payload(&[(0xffff_ffff, &[1, 2])]), None), None);
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(payload in payloads()) {
            let text = intel_hex_text(&payload).unwrap();
            let read = Payload::read(ImageFormat::IntelHex, text.as_bytes()).unwrap();
            prop_assert_eq!(&read, &payload);
            let start = payload.start().unwrap();
            let bytes = raw_binary(&payload).unwrap();
            let format = ImageFormat::Binary { address: BinAddress(start) };
            let read = Payload::read(format, &bytes).unwrap();
            let mut used = vec![false; bytes.len()];
            for segment in &payload.segments {
                let at = (segment.start - start) as usize..;
                let at = at.start..at.start + segment.bytes.len();
                prop_assert_eq!(&read.segments[0].bytes[at.clone()], segment.bytes.as_slice());
                used[at].fill(true);
            }
            prop_assert_eq!(read_uf2(&uf2_blocks(&payload, Some(7)).unwrap(), Some(7)), memory(&payload));
            let between = bytes.iter().zip(used).filter(|(_, used)| !used);
            prop_assert!(between.map(|(byte, _)| *byte).all(|byte| byte == 0xff));
        }
    }
}
