//! Erases flash, by probe-rs' own functions.

use std::ops::Range;
use std::time::{Duration, Instant};

use probe_rs::flashing;

use super::FlashStop;
use super::loader::failed;
use super::memory_map::{AreaKind, FlashMap};
use super::phases::Phases;
use super::plan::BATCH;
use crate::worker::open_session::{OpenSession, WorkerPulse};
use crate::{EraseReport, EraseScope, FlashLeft, ProbeError};

/// How long probe-rs waits for a chip that erases itself; it tells nothing meanwhile.
const CHIP: Duration = Duration::from_secs(40);

/// Erases.
pub(crate) fn erase(
    open_session: &mut OpenSession,
    scope: &EraseScope,
    stop: &FlashStop,
    pulse: &WorkerPulse,
) -> Result<EraseReport, ProbeError> {
    let began = Instant::now();
    let session = open_session.session();
    let memory = FlashMap::of(session.target());
    let sectors = sectors(scope, &memory)?;
    let bytes = sectors.iter().map(|sector| sector.end - sector.start).sum();
    let at_once =
        *scope == EraseScope::All && erases_chip(&memory, session.has_sequence_erase_all());
    let silence = if at_once { CHIP } else { memory.slowest() };
    let mut phases = Phases::new(Box::new(|_| {}), stop, pulse, silence);
    phases.beat();
    phases.check_stop()?;
    if at_once {
        flashing::erase_all(session, &mut alive(&phases), false).map_err(failed)?;
        return Ok(EraseReport { bytes, took: began.elapsed() });
    }
    for Range { start, end } in runs(&sectors) {
        phases.check_stop()?;
        phases.left = FlashLeft::Partial;
        flashing::erase(session, &mut alive(&phases), start, end, false).map_err(failed)?;
    }
    Ok(EraseReport { bytes, took: began.elapsed() })
}

/// Takes what the library tells for signs of life.
fn alive<'a>(phases: &'a Phases<'_>) -> flashing::FlashProgress<'a> {
    flashing::FlashProgress::new(|_| phases.beat())
}

/// Tells whether all flash can be erased with one call.
fn erases_chip(memory: &FlashMap, by_debug_port: bool) -> bool {
    let mut flashes = memory.areas.iter().filter(|area| !area.is_alias);
    flashes.all(|area| match &area.kind {
        AreaKind::Ram => true,
        AreaKind::Flash(flash) => flash.erases_chip || by_debug_port,
        AreaKind::NoAlgorithm => false,
    })
}

/// Finds the sectors to erase. Of all flash, what has no algorithm is left out: one-time
/// memory often is described as flash.
fn sectors(scope: &EraseScope, memory: &FlashMap) -> Result<Vec<Range<u64>>, ProbeError> {
    let (wanted, all) = match scope {
        EraseScope::All => (0..u64::MAX, true),
        EraseScope::Range(range) => (range.clone(), false),
    };
    let mut sectors = Vec::new();
    let mut left_out = None;
    for area in memory.areas.iter().filter(|area| !(all && area.is_alias)) {
        let touched = area.range.start.max(wanted.start) < area.range.end.min(wanted.end);
        match area.kind {
            AreaKind::NoAlgorithm if touched => left_out = Some(area),
            AreaKind::Flash(_) => sectors.append(&mut area.sectors_in(&wanted)),
            AreaKind::NoAlgorithm | AreaKind::Ram => {}
        }
    }
    match left_out {
        Some(area) if !all || sectors.is_empty() => Err(memory.no_algorithm(area)),
        _ if sectors.is_empty() => Err(memory.does_not_fit(wanted)),
        _ => Ok(sectors),
    }
}

/// Joins sectors into ranges that are erased with one load of the algorithm each.
fn runs(sectors: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    for sector in sectors {
        match runs.last_mut() {
            Some(run) if run.end == sector.start && sector.end - run.start <= BATCH => {
                run.end = sector.end;
            }
            _ => runs.push(sector.clone()),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::super::memory_map::tests::chip;
    use super::*;

    fn found(range: Range<u64>) -> Result<Vec<Range<u64>>, ProbeError> {
        sectors(&EraseScope::Range(range), &chip())
    }

    #[test]
    fn range_in_mid_sector_erases_every_sector_it_touches() {
        assert_eq!(found(0x3ff..0x401).unwrap(), [0x300..0x400, 0x400..0x800]);
        assert_eq!(found(0xfff..0x1001).unwrap(), [0xc00..0x1000, 0x1000..0x1100]);
    }

    #[test]
    fn range_without_flash_is_refused() {
        for range in [0x3000..0x3001, 0x8000..0x9000, 0x10..0x10] {
            let error = found(range).unwrap_err();
            assert!(matches!(error, ProbeError::DoesNotFit { .. }), "{error}");
        }
        for range in [0xa000..0xa001, 0..u64::MAX] {
            let error = found(range).unwrap_err();
            assert_eq!(error.to_string(), "a chip has no flash algorithm for 0xa000..0xb000");
        }
    }

    #[test]
    fn all_flash_is_what_has_an_algorithm_and_is_no_alias() {
        let mut chip = chip();
        let all = sectors(&EraseScope::All, &chip).unwrap();
        assert_eq!((all[0].clone(), all.last().unwrap().end), (0..0x100, 0x3000));
        chip.areas[1].is_alias = true;
        assert_eq!(sectors(&EraseScope::All, &chip).unwrap().last().unwrap().end, 0x1000);
        chip.areas.truncate(3);
        assert!(erases_chip(&chip, false));
        chip.areas[2].kind = AreaKind::NoAlgorithm;
        assert!(!erases_chip(&chip, true));
        chip.areas.drain(..2);
        let error = sectors(&EraseScope::All, &chip).unwrap_err();
        assert!(matches!(error, ProbeError::NoFlashAlgorithm { .. }), "{error}");
    }

    #[test]
    fn neighbours_are_erased_together_up_to_the_size_of_a_batch() {
        let sectors =
            |count: u64, size: u64| (0..count).map(move |nth| nth * size..(nth + 1) * size);
        let small: Vec<_> = sectors(65, 0x400).collect();
        assert_eq!(runs(&small), [0..BATCH, BATCH..BATCH + 0x400]);
        let large: Vec<_> = sectors(2, 0x2_0000).collect();
        assert_eq!(runs(&large), large);
        assert_eq!(runs(&[0..4, 8..12]), [0..4, 8..12]);
    }
}
