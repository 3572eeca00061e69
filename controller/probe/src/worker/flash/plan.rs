//! Which sectors a payload touches, and in which runs of the loader they are written. Pure.
//!
//! Refuses a payload that does not fit before the chip is touched.

use std::collections::BTreeMap;
use std::ops::Range;

use jig_model::image::Segment;

use super::memory_map::{Area, AreaKind, Flash, FlashMap};
use crate::ranges::merged;
use crate::{Payload, ProbeError};

/// How much flash one run of the loader erases and programs; more where a block is larger.
///
/// A run cannot be stopped, so its length is how long a request to stop may have to wait: one
/// to four seconds of common chips. Each run resets the core and loads the algorithm again, up
/// to 200 ms by a slow probe, which is some ten percent of a run of this size.
pub(crate) const BATCH: u64 = 64 * 1024;

/// How much RAM one run of the loader writes; a slow probe needs a second for it.
const RAM_BATCH: u64 = 16 * 1024;

/// What is erased and programmed together: a sector, or several where pages are larger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) range: Range<u64>,
    pub(crate) sectors: u32,
    /// The core that reaches it.
    pub(crate) core: usize,
    /// The algorithm reads or compares by itself.
    pub(crate) checks_itself: bool,
    /// The bytes it shall hold, ascending.
    pub(crate) pieces: Vec<Segment>,
    /// Addresses that keep what they hold.
    pub(crate) kept: Vec<Range<u64>>,
}

impl Block {
    pub(crate) fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Returns how many bytes of the payload it holds.
    pub(crate) fn payload(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.bytes.len() as u64).sum()
    }

    /// Tells whether the loader keeps all bytes that the payload leaves free. It has to where
    /// something is kept in flash that only the algorithm can read.
    pub(crate) fn keeps_rest(&self) -> bool {
        self.checks_itself && !self.kept.is_empty()
    }

    /// Tells whether one run of the loader can write both blocks.
    fn goes_with(&self, other: &Self) -> bool {
        self.core == other.core
            && self.checks_itself == other.checks_itself
            && self.keeps_rest() == other.keeps_rest()
    }
}

/// What has to be done for a payload.
#[derive(Debug)]
pub(crate) struct FlashPlan {
    /// The blocks of flash, ascending.
    pub(crate) flash: Vec<Block>,
    /// What is loaded into RAM, in pieces for one run of the loader each.
    pub(crate) ram: Vec<Segment>,
}

/// Divides a payload among a chip's memory.
///
/// # Errors
/// [`ProbeError::DoesNotFit`] names the segment, `NoFlashAlgorithm` the flash, and
/// `PreserveOverlaps` the bytes.
pub(crate) fn plan(
    payload: &Payload,
    preserve: &[Range<u64>],
    memory: &FlashMap,
) -> Result<FlashPlan, ProbeError> {
    let mut flash: BTreeMap<u64, Block> = BTreeMap::new();
    let mut ram = Vec::new();
    for segment in &payload.segments {
        let len = segment.bytes.len() as u64;
        let whole = segment.start..segment.start.saturating_add(len);
        let does_not_fit = || memory.does_not_fit(whole.clone());
        segment.start.checked_add(len).ok_or_else(does_not_fit)?;
        let (mut here, mut rest) = (segment.start, segment.bytes.as_slice());
        while !rest.is_empty() {
            let area = memory.area_at(here).ok_or_else(does_not_fit)?;
            let block = match &area.kind {
                AreaKind::Ram => None,
                AreaKind::Flash(flash) => {
                    Some(block_at(area, flash, here).ok_or_else(does_not_fit)?)
                }
                AreaKind::NoAlgorithm => return Err(memory.no_algorithm(area)),
            };
            let end = match &block {
                Some(block) => block.range.end,
                None => area.range.end.min(here + RAM_BATCH),
            };
            let count = usize::try_from(end - here).unwrap_or(usize::MAX).min(rest.len());
            let (bytes, behind) = rest.split_at(count);
            let piece = Segment { start: here, bytes: bytes.to_vec() };
            here += count as u64;
            rest = behind;
            let Some(block) = block else {
                ram.push(piece);
                continue;
            };
            // The loader leaves out a page that reaches over the end of its region.
            if let AreaKind::Flash(flash) = &area.kind
                && flash.page_end(here).is_none_or(|end| end > area.range.end)
            {
                return Err(does_not_fit());
            }
            flash.entry(block.range.start).or_insert(block).pieces.push(piece);
        }
    }
    let mut flash: Vec<Block> = flash.into_values().collect();
    let preserve = merged(preserve.iter().cloned());
    for block in &mut flash {
        block.mark_kept(&preserve)?;
    }
    Ok(FlashPlan { flash, ram })
}

/// Finds the sector at an address, and its neighbours up to borders of pages.
fn block_at(area: &Area, flash: &Flash, address: u64) -> Option<Block> {
    let mut range = flash.sector_at(address)?;
    let mut sectors = 1;
    while range.start > area.range.start && !flash.is_page_border(range.start) {
        range.start = flash.sector_at(range.start - 1)?.start;
        sectors += 1;
    }
    while range.end < area.range.end && !flash.is_page_border(range.end) {
        range.end = flash.sector_at(range.end)?.end;
        sectors += 1;
    }
    (area.range.start <= range.start && range.end <= area.range.end).then_some(Block {
        range,
        sectors,
        core: area.core,
        checks_itself: flash.checks_itself,
        pieces: Vec::new(),
        kept: Vec::new(),
    })
}

impl Block {
    fn mark_kept(&mut self, preserve: &[Range<u64>]) -> Result<(), ProbeError> {
        for range in preserve {
            let kept = range.start.max(self.range.start)..range.end.min(self.range.end);
            if kept.is_empty() {
                continue;
            }
            for piece in &self.pieces {
                let end = piece.start + piece.bytes.len() as u64;
                let both = kept.start.max(piece.start)..kept.end.min(end);
                if !both.is_empty() {
                    let (start, end) = (both.start, both.end);
                    return Err(ProbeError::PreserveOverlaps { start, end });
                }
            }
            self.kept.push(kept);
        }
        Ok(())
    }
}

/// Divides blocks into runs of the loader.
pub(crate) fn batches(blocks: &[Block]) -> Vec<&[Block]> {
    let same = blocks.chunk_by(|one, other| one.goes_with(other));
    same.flat_map(|mut rest| {
        let mut batches = Vec::new();
        while !rest.is_empty() {
            let mut size = 0;
            let fits = |block: &&Block| {
                let fits = size == 0 || size + block.len() <= BATCH;
                size += block.len();
                fits
            };
            let (batch, behind) = rest.split_at(rest.iter().take_while(fits).count());
            batches.push(batch);
            rest = behind;
        }
        batches
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::memory_map::tests::chip;
    use super::*;

    fn payload(segments: &[(u64, &[u8])]) -> Payload {
        let segment =
            |(start, bytes): &(u64, &[u8])| Segment { start: *start, bytes: bytes.to_vec() };
        Payload { segments: segments.iter().map(segment).collect() }
    }

    fn planned(
        segments: &[(u64, &[u8])],
        preserve: &[Range<u64>],
    ) -> Result<FlashPlan, ProbeError> {
        plan(&payload(segments), preserve, &chip())
    }

    #[test]
    fn one_byte_in_mid_sector_takes_that_sector() {
        let plan = planned(&[(0x181, &[7])], &[]).unwrap();
        let [block] = plan.flash.as_slice() else { panic!("{plan:?}") };
        assert_eq!((block.range.clone(), block.sectors), (0x100..0x200, 1));
        assert_eq!(block.pieces, payload(&[(0x181, &[7])]).segments);
    }

    #[test]
    fn page_of_several_sectors_takes_them_all() {
        let plan = planned(&[(0x1500, &[1; 4])], &[]).unwrap();
        let [block] = plan.flash.as_slice() else { panic!("{plan:?}") };
        assert_eq!((block.range.clone(), block.sectors), (0x1400..0x1800, 4));
    }

    #[test]
    fn page_that_is_no_multiple_of_a_sector_takes_sectors_up_to_a_common_border() {
        let mut chip = chip();
        let AreaKind::Flash(flash) = &mut chip.areas[1].kind else { unreachable!() };
        (flash.page, flash.sectors) = (0x300, vec![(0, 0x200)]);
        let plan_of = |start| plan(&payload(&[(start, &[1])]), &[], &chip);
        assert_eq!(plan_of(0x1250).unwrap().flash[0].range, 0x1000..0x1600);
        assert_eq!(plan_of(0x2dff).unwrap().flash[0].range, 0x2800..0x2e00);
        // The last page would reach over the end of the flash, and be left out.
        assert!(matches!(plan_of(0x2fff), Err(ProbeError::DoesNotFit { .. })));
    }

    #[test]
    fn segment_goes_on_where_sectors_and_flashes_meet() {
        let plan = planned(&[(0xff0, &[9; 0x20]), (0x8ffe, &[1, 2])], &[]).unwrap();
        let pieces: Vec<_> = plan.flash.iter().map(|block| block.pieces.as_slice()).collect();
        assert_eq!(pieces[0], payload(&[(0xff0, &[9; 0x10])]).segments);
        assert_eq!(pieces[1], payload(&[(0x1000, &[9; 0x10])]).segments);
        assert_eq!(plan.ram, payload(&[(0x8ffe, &[1, 2])]).segments);
    }

    #[test]
    fn two_segments_of_one_sector_share_it() {
        let plan = planned(&[(0x400, &[1; 4]), (0x500, &[2; 4])], &[]).unwrap();
        let [block] = plan.flash.as_slice() else { panic!("{plan:?}") };
        assert_eq!(
            (block.range.clone(), block.pieces.len(), block.payload()),
            (0x400..0x800, 2, 8)
        );
    }

    #[test]
    fn segment_without_bytes_asks_for_nothing_wherever_it_is() {
        let plan = planned(&[(0x100, &[]), (0x7000, &[]), (0x8000, &[])], &[]).unwrap();
        assert!(plan.flash.is_empty() && plan.ram.is_empty(), "{plan:?}");
    }

    #[test]
    fn ram_is_loaded_in_pieces() {
        let mut chip = chip();
        chip.areas[2].range.end = 0x8000 + 3 * RAM_BATCH;
        let bytes = vec![5; 2 * RAM_BATCH as usize + 1];
        let plan = plan(&payload(&[(0x8000, &bytes)]), &[], &chip).unwrap();
        let lengths: Vec<_> = plan.ram.iter().map(|piece| piece.bytes.len() as u64).collect();
        assert_eq!(lengths, [RAM_BATCH, RAM_BATCH, 1]);
    }

    #[test]
    fn what_does_not_fit_is_named_with_the_memory_there_is() {
        for (start, len) in [(0x2ff0, 0x20), (0x8ffe, 3), (0x7000, 1), (u64::MAX, 2)] {
            let error = planned(&[(start, &vec![0; len])], &[]).unwrap_err();
            let ProbeError::DoesNotFit { start: named, memory, .. } = error else {
                panic!("{error}")
            };
            assert_eq!(named, start);
            let words = "flash 0x0..0x1000, flash 0x1000..0x3000, RAM 0x8000..0x9000, \
                         flash 0xa000..0xb000";
            assert_eq!(memory, words);
        }
    }

    #[test]
    fn flash_without_an_algorithm_is_named() {
        let error = planned(&[(0, &[1]), (0xa010, &[1])], &[]).unwrap_err();
        assert_eq!(error.to_string(), "a chip has no flash algorithm for 0xa000..0xb000");
    }

    #[test]
    fn preserved_ranges_are_cut_at_sectors_and_joined() {
        let keep = [0x1e0..0x300, 0x180..0x1c0, 0x1a0..0x1d0, 0x1f0..0x1f0, 0x40..0x80];
        let plan = planned(&[(0x100, &[1])], &keep).unwrap();
        assert_eq!(plan.flash[0].kept, [0x180..0x1d0, 0x1e0..0x200]);
    }

    #[test]
    fn nothing_can_be_both_written_and_kept() {
        let error = planned(&[(0x100, &[1; 16])], &[0..0x10, 0x10f..0x200]).unwrap_err();
        assert!(matches!(error, ProbeError::PreserveOverlaps { start: 0x10f, end: 0x110 }));
    }

    #[test]
    fn description_that_makes_no_sense_is_not_believed() {
        let mut chip = chip();
        for sectors in [vec![(0, 0)], Vec::new()] {
            let AreaKind::Flash(flash) = &mut chip.areas[0].kind else { unreachable!() };
            flash.sectors = sectors;
            assert!(plan(&payload(&[(0, &[1])]), &[], &chip).is_err());
        }
    }

    #[test]
    fn batch_is_of_one_kind_and_ends_with_a_whole_block() {
        let block = |start: u64, len: u64| Block {
            range: start..start + len,
            sectors: 1,
            core: 0,
            checks_itself: false,
            pieces: Vec::new(),
            kept: Vec::new(),
        };
        let sizes =
            |blocks: &[Block]| batches(blocks).iter().map(|batch| batch.len()).collect::<Vec<_>>();
        let mut small: Vec<Block> = (0..130).map(|nth| block(nth * 0x400, 0x400)).collect();
        assert_eq!(sizes(&small), [64, 64, 2]);
        small[10].kept.push(0..1);
        assert_eq!(sizes(&small), [64, 64, 2]);
        small[10].checks_itself = true;
        small[11].checks_itself = true;
        assert_eq!(sizes(&small), [10, 1, 1, 64, 54]);
        small[3].core = 1;
        assert_eq!(sizes(&small[..6]), [3, 1, 2]);
        let large = [block(0, 2 * BATCH), block(2 * BATCH, 0x400), block(3 * BATCH, BATCH)];
        assert_eq!(sizes(&large), [1, 1, 1]);
        assert!(sizes(&[]).is_empty());
    }

    proptest! {
        /// Whatever the payload: blocks are disjoint and ascending, hold all of it, and each is
        /// one sector or one page.
        #[test]
        fn blocks_hold_the_payload_and_no_more(
            pieces in prop::collection::vec((0u64..0x2fff, 1usize..0x500), 1..5),
        ) {
            let mut pieces = pieces;
            pieces.sort();
            let mut segments: Vec<Segment> = Vec::new();
            for (nth, (start, len)) in pieces.into_iter().enumerate() {
                let behind = segments.last().map_or(0, |last| last.start + last.bytes.len() as u64);
                let start = start.max(behind);
                let len = len.min(0x3000usize.saturating_sub(start as usize));
                if len > 0 {
                    segments.push(Segment { start, bytes: vec![nth as u8 + 1; len] });
                }
            }
            let payload = Payload { segments };
            let plan = plan(&payload, &[], &chip()).unwrap();
            let mut memory = vec![0; 0x3000];
            let mut end = 0;
            for block in &plan.flash {
                prop_assert!(end <= block.range.start);
                end = block.range.end;
                prop_assert_eq!(block.sectors as usize, sectors(&block.range));
                for piece in &block.pieces {
                    let from = piece.start as usize;
                    let to = from + piece.bytes.len();
                    prop_assert!(block.range.start <= piece.start && to as u64 <= block.range.end);
                    memory[from..to].copy_from_slice(&piece.bytes);
                }
                let size = if block.range.start < 0x400 { 0x100 } else { 0x400 };
                prop_assert_eq!(block.len(), size);
                prop_assert!(!block.pieces.is_empty());
            }
            let mut wanted = vec![0; 0x3000];
            for segment in &payload.segments {
                let from = segment.start as usize;
                wanted[from..from + segment.bytes.len()].copy_from_slice(&segment.bytes);
            }
            prop_assert_eq!(memory, wanted);
        }
    }

    /// Counts the sectors of a range of the two flashes.
    fn sectors(range: &Range<u64>) -> usize {
        chip().areas[..2].iter().map(|area| area.sectors_in(range).len()).sum()
    }
}
