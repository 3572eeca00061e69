//! Which sectors a payload touches, and what they shall hold. Pure.
//!
//! Owns the arithmetic of regions, sectors and pages. Refuses to touch a target.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::{Payload, ProbeError};

/// A part of the chip's memory that can be written.
#[derive(Debug, Clone)]
pub(crate) struct Area {
    pub(crate) range: Range<u64>,
    pub(crate) kind: AreaKind,
}

/// How a part of memory is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AreaKind {
    /// By the flash algorithm with this number.
    Flash(usize),
    /// Directly.
    Ram,
}

/// How a flash is divided.
#[derive(Debug, Clone)]
pub(crate) struct Geometry {
    /// Where the flash is.
    pub(crate) range: Range<u64>,
    /// How much is programmed at once.
    pub(crate) page: u64,
    /// What erased bytes read as.
    pub(crate) erased: u8,
    /// Groups of sectors: offset of the first one in the flash, size of each.
    pub(crate) sectors: Vec<(u64, u64)>,
}

/// What is erased and programmed together: a sector, or several where a page is larger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    /// Address of the first byte.
    pub(crate) start: u64,
    /// The sectors: address and size.
    pub(crate) sectors: Vec<Range<u64>>,
    /// What it shall hold: payload, what is kept (once that is read), and erased bytes.
    pub(crate) image: Vec<u8>,
    /// Which bytes of the image are payload, ascending.
    pub(crate) payload: Vec<Range<usize>>,
    /// Which bytes of the image are to be kept.
    pub(crate) kept: Vec<Range<usize>>,
}

impl Block {
    /// Returns one past the last address.
    pub(crate) fn end(&self) -> u64 {
        self.start + self.image.len() as u64
    }

    /// Returns the part that has to be read to know whether the block holds its payload
    /// and what is to be kept.
    pub(crate) fn span(&self) -> Range<usize> {
        let ranges = || self.payload.iter().chain(&self.kept);
        let start = ranges().map(|range| range.start).min().unwrap_or(0);
        start..ranges().map(|range| range.end).max().unwrap_or(start)
    }

    /// Tells whether what was read, from an offset on, holds the payload there.
    pub(crate) fn holds(&self, offset: usize, read: &[u8]) -> bool {
        let end = offset + read.len();
        self.payload.iter().all(|range| {
            let (from, to) = (range.start.max(offset), range.end.min(end));
            from >= to || self.image.get(from..to) == read.get(from - offset..to - offset)
        })
    }

    /// Takes over what is to be kept from what was read, from an offset on.
    pub(crate) fn keep(&mut self, offset: usize, read: &[u8]) {
        for range in &self.kept {
            let (from, to) = (range.start.max(offset), range.end.min(offset + read.len()));
            if from < to
                && let Some(image) = self.image.get_mut(from..to)
                && let Some(read) = read.get(from - offset..to - offset)
            {
                image.copy_from_slice(read);
            }
        }
    }

    /// Returns the pages that have to be programmed: those with payload, and those with kept
    /// bytes that are not blank. A page of neither is left erased.
    pub(crate) fn pages(&self, page: usize, erased: u8) -> impl Iterator<Item = (u64, &[u8])> {
        let touches = |ranges: &[Range<usize>], page: &Range<usize>| {
            ranges.iter().any(|range| range.start < page.end && page.start < range.end)
        };
        self.image.chunks(page.max(1)).enumerate().filter_map(move |(nth, bytes)| {
            let start = nth * page.max(1);
            let range = start..start + bytes.len();
            let kept = touches(&self.kept, &range) && bytes.iter().any(|byte| *byte != erased);
            (touches(&self.payload, &range) || kept).then_some((self.start + start as u64, bytes))
        })
    }
}

/// What has to be done for a payload.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Blocks by algorithm, each list in ascending order.
    pub(crate) flash: BTreeMap<usize, Vec<Block>>,
    /// What is loaded into RAM.
    pub(crate) ram: Vec<(u64, Vec<u8>)>,
}

/// Plans.
///
/// # Errors
/// [`ProbeError::DoesNotFit`] names the segment, `PreserveOverlaps` the bytes.
pub(crate) fn plan(
    payload: &Payload,
    preserve: &[Range<u64>],
    areas: &[Area],
    geometries: &[Geometry],
    chip: &str,
) -> Result<Plan, ProbeError> {
    let mut flash: BTreeMap<usize, BTreeMap<u64, Block>> = BTreeMap::new();
    let mut ram = Vec::new();
    for segment in &payload.segments {
        let does_not_fit = || ProbeError::DoesNotFit {
            start: segment.start,
            end: segment.start.saturating_add(segment.bytes.len() as u64),
            chip: chip.to_owned(),
            memory: in_words(areas),
        };
        let mut here = segment.start;
        let mut rest = segment.bytes.as_slice();
        here.checked_add(rest.len() as u64).ok_or_else(does_not_fit)?;
        while !rest.is_empty() {
            let area = areas.iter().find(|area| area.range.contains(&here));
            let area = area.ok_or_else(does_not_fit)?;
            let end = match area.kind {
                AreaKind::Ram => area.range.end,
                AreaKind::Flash(algorithm) => {
                    let geometry = geometries.get(algorithm).ok_or_else(does_not_fit)?;
                    let block = geometry.block_at(here).ok_or_else(does_not_fit)?;
                    if block.start < area.range.start || block.end() > area.range.end {
                        return Err(does_not_fit());
                    }
                    block.end()
                }
            };
            let count = usize::try_from(end - here).unwrap_or(usize::MAX).min(rest.len());
            let (bytes, behind) = rest.split_at(count);
            match area.kind {
                AreaKind::Ram => ram.push((here, bytes.to_vec())),
                AreaKind::Flash(algorithm) => {
                    let geometry = geometries.get(algorithm).ok_or_else(does_not_fit)?;
                    let layout = geometry.block_at(here).ok_or_else(does_not_fit)?;
                    let blocks = flash.entry(algorithm).or_default();
                    let block =
                        blocks.entry(layout.start).or_insert_with(|| layout.blank(geometry.erased));
                    block.overlay((here - layout.start) as usize, bytes);
                }
            }
            (here, rest) = (here + count as u64, behind);
        }
    }
    for block in flash.values_mut().flat_map(BTreeMap::values_mut) {
        block.mark_kept(preserve)?;
    }
    let flash =
        flash.into_iter().map(|(algorithm, blocks)| (algorithm, blocks.into_values().collect()));
    Ok(Plan { flash: flash.collect(), ram })
}

impl Block {
    fn overlay(&mut self, offset: usize, bytes: &[u8]) {
        let range = offset..offset + bytes.len();
        if let Some(image) = self.image.get_mut(range.clone()) {
            image.copy_from_slice(bytes);
        }
        match self.payload.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.payload.push(range),
        }
    }

    fn mark_kept(&mut self, preserve: &[Range<u64>]) -> Result<(), ProbeError> {
        for range in preserve {
            let (from, to) = (range.start.max(self.start), range.end.min(self.end()));
            if from >= to {
                continue;
            }
            let kept = (from - self.start) as usize..(to - self.start) as usize;
            for written in &self.payload {
                let (from, to) = (written.start.max(kept.start), written.end.min(kept.end));
                if from < to {
                    return Err(ProbeError::PreserveOverlaps {
                        start: self.start + from as u64,
                        end: self.start + to as u64,
                    });
                }
            }
            self.kept.push(kept);
        }
        Ok(())
    }
}

/// Where a block's sectors are.
struct Layout {
    start: u64,
    sectors: Vec<Range<u64>>,
}

impl Layout {
    fn end(&self) -> u64 {
        self.sectors.last().map_or(self.start, |sector| sector.end)
    }

    fn blank(&self, erased: u8) -> Block {
        Block {
            start: self.start,
            sectors: self.sectors.clone(),
            image: vec![erased; (self.end() - self.start) as usize],
            payload: Vec::new(),
            kept: Vec::new(),
        }
    }
}

impl Geometry {
    /// Finds the sector at an address.
    fn sector_at(&self, address: u64) -> Option<Range<u64>> {
        if !self.range.contains(&address) {
            return None;
        }
        let offset = address - self.range.start;
        let (first, size) = *self.sectors.iter().rfind(|(first, _)| *first <= offset)?;
        let nth = (offset - first).checked_div(size)?;
        let start = self.range.start + first + nth * size;
        let end = start.checked_add(size)?;
        (end <= self.range.end).then_some(start..end)
    }

    /// Finds the sector at an address, and its neighbours up to whole pages.
    fn block_at(&self, address: u64) -> Option<Layout> {
        let page = self.page.max(1);
        let mut sectors = vec![self.sector_at(address)?];
        while let Some(start) = sectors.first().map(|sector| sector.start)
            && start % page != 0
            && start > self.range.start
        {
            sectors.insert(0, self.sector_at(start - 1)?);
        }
        while let Some(end) = sectors.last().map(|sector| sector.end)
            && end % page != 0
            && end < self.range.end
        {
            sectors.push(self.sector_at(end)?);
        }
        Some(Layout { start: sectors.first()?.start, sectors })
    }

    /// Finds the sectors that touch a range.
    pub(crate) fn sectors_in(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let mut sectors = Vec::new();
        let mut here = range.start.max(self.range.start);
        while here < range.end
            && let Some(sector) = self.sector_at(here)
        {
            here = sector.end;
            sectors.push(sector);
        }
        sectors
    }
}

/// Says what memory a chip has.
pub(crate) fn in_words(areas: &[Area]) -> String {
    let words = areas.iter().map(|area| {
        let kind = match area.kind {
            AreaKind::Flash(_) => "flash",
            AreaKind::Ram => "RAM",
        };
        format!("{kind} {:#x}..{:#x}", area.range.start, area.range.end)
    });
    let words: Vec<String> = words.collect();
    if words.is_empty() { "not described".to_owned() } else { words.join(", ") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Segment;

    fn areas() -> Vec<Area> {
        vec![
            Area { range: 0..0x1000, kind: AreaKind::Flash(0) },
            Area { range: 0x1000..0x3000, kind: AreaKind::Flash(1) },
            Area { range: 0x8000..0x9000, kind: AreaKind::Ram },
        ]
    }

    /// One flash with small sectors in front of large ones, one whose pages hold four sectors.
    fn geometries() -> Vec<Geometry> {
        let sectors = vec![(0, 0x100), (0x400, 0x400)];
        vec![
            Geometry { range: 0..0x1000, page: 0x80, erased: 0xff, sectors },
            Geometry { range: 0x1000..0x3000, page: 0x400, erased: 0, sectors: vec![(0, 0x100)] },
        ]
    }

    fn payload(segments: &[(u64, &[u8])]) -> Payload {
        let segment =
            |(start, bytes): &(u64, &[u8])| Segment { start: *start, bytes: bytes.to_vec() };
        Payload { segments: segments.iter().map(segment).collect() }
    }

    fn planned(segments: &[(u64, &[u8])], preserve: &[Range<u64>]) -> Result<Plan, ProbeError> {
        plan(&payload(segments), preserve, &areas(), &geometries(), "a chip")
    }

    #[test]
    fn one_byte_touches_one_sector_and_programs_one_page() {
        let plan = planned(&[(0x181, &[7])], &[]).unwrap();
        let [block] = plan.flash[&0].as_slice() else { panic!("{plan:?}") };
        assert_eq!((block.start, block.sectors.len(), block.end()), (0x100, 1, 0x200));
        assert_eq!(block.span(), 0x81..0x82);
        let pages: Vec<_> = block.pages(0x80, 0xff).collect();
        assert_eq!(pages.len(), 1);
        assert_eq!((pages[0].0, pages[0].1[1], pages[0].1[0]), (0x180, 7, 0xff));
    }

    #[test]
    fn a_page_of_several_sectors_takes_them_all() {
        let plan = planned(&[(0x1500, &[1; 4])], &[]).unwrap();
        let [block] = plan.flash[&1].as_slice() else { panic!("{plan:?}") };
        assert_eq!((block.start, block.sectors.len()), (0x1400, 4));
    }

    #[test]
    fn a_segment_goes_on_where_sectors_and_flashes_meet() {
        let plan = planned(&[(0xff0, &[9; 0x20]), (0x8ffe, &[1, 2])], &[]).unwrap();
        assert_eq!(plan.flash[&0][0].payload, vec![0x3f0..0x400]);
        assert_eq!(plan.flash[&1][0].payload, vec![0..0x10]);
        assert_eq!(plan.ram, [(0x8ffe, vec![1, 2])]);
    }

    #[test]
    fn what_does_not_fit_is_named_with_the_memory_there_is() {
        for (start, len) in [(0x2ff0, 0x20), (0x8ffe, 3), (0x7000, 1), (u64::MAX, 2)] {
            let error = planned(&[(start, &vec![0; len])], &[]).unwrap_err();
            let ProbeError::DoesNotFit { start: named, memory, .. } = error else {
                panic!("{error}")
            };
            assert_eq!(named, start);
            assert_eq!(memory, "flash 0x0..0x1000, flash 0x1000..0x3000, RAM 0x8000..0x9000");
        }
    }

    #[test]
    fn what_is_kept_is_programmed_again_unless_it_is_blank() {
        let mut plan = planned(&[(0x100, &[1])], &[0x180..0x1c0, 0x1f0..0x300]).unwrap();
        let mut block = plan.flash.remove(&0).unwrap().remove(0);
        assert_eq!(block.kept, vec![0x80..0xc0, 0xf0..0x100]);
        assert_eq!(block.span(), 0..0x100);
        let mut held = vec![0xff; 0x100];
        block.keep(0, &held);
        assert_eq!(block.pages(0x80, 0xff).count(), 1);
        held[0x90] = 5;
        held[0xd0] = 6;
        block.keep(0, &held);
        let pages: Vec<_> = block.pages(0x80, 0xff).collect();
        assert_eq!((pages.len(), pages[1].1[0x10], pages[1].1[0x50]), (2, 5, 0xff));
    }

    #[test]
    fn nothing_can_be_both_written_and_kept() {
        let error = planned(&[(0x100, &[1; 16])], &[0..0x10, 0x10f..0x200]).unwrap_err();
        assert!(matches!(error, ProbeError::PreserveOverlaps { start: 0x10f, end: 0x110 }));
    }

    #[test]
    fn a_description_that_makes_no_sense_is_not_believed() {
        let mut geometries = geometries();
        geometries[0].sectors = vec![(0, 0)];
        assert!(plan(&payload(&[(0, &[1])]), &[], &areas(), &geometries, "x").is_err());
        geometries[0].sectors = Vec::new();
        assert!(plan(&payload(&[(0, &[1])]), &[], &areas(), &geometries, "x").is_err());
    }

    proptest! {
        /// Whatever the payload: programming the pages of its blocks on erased sectors gives
        /// a memory that holds it, and erased or kept bytes everywhere else in those sectors.
        #[test]
        fn the_plan_brings_about_the_payload(
            pieces in prop::collection::vec((0u64..0x2fff, 1usize..0x500), 1..5),
            keep in 0u64..0x2f00,
        ) {
            let mut segments: Vec<Segment> = Vec::new();
            let mut pieces = pieces;
            pieces.sort();
            for (nth, (start, len)) in pieces.into_iter().enumerate() {
                let start = start.max(segments.last().map_or(0, |last| last.start + last.bytes.len() as u64));
                let len = len.min(0x3000usize.saturating_sub(start as usize));
                if len > 0 {
                    segments.push(Segment { start, bytes: vec![nth as u8 + 1; len] });
                }
            }
            prop_assume!(!segments.is_empty());
            let payload = Payload { segments };
            let kept = keep..keep + 0x40;
            let Ok(mut plan) = plan(&payload, std::slice::from_ref(&kept), &areas(), &geometries(), "x") else {
                return Ok(()); // The two overlap.
            };
            let before: Vec<u8> = (0..0x3000).map(|at| 0x80 | (at % 97) as u8).collect();
            let mut memory = before.clone();
            for (algorithm, blocks) in &mut plan.flash {
                let geometry = &geometries()[*algorithm];
                for block in blocks {
                    let span = block.span();
                    let from = block.start as usize;
                    block.keep(span.start, &before[from + span.start..from + span.end]);
                    for sector in &block.sectors {
                        memory[sector.start as usize..sector.end as usize].fill(geometry.erased);
                    }
                    for (at, bytes) in block.pages(geometry.page as usize, geometry.erased) {
                        memory[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
                    }
                    prop_assert!(block.holds(0, &memory[from..from + block.image.len()]));
                }
            }
            for segment in &payload.segments {
                let from = segment.start as usize;
                prop_assert_eq!(&memory[from..from + segment.bytes.len()], &segment.bytes[..]);
            }
            prop_assert_eq!(&memory[keep as usize..keep as usize + 0x40], &before[keep as usize..keep as usize + 0x40]);
        }
    }
}
