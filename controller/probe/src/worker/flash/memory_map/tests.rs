//! Areas and their sectors.

use super::*;

/// Two flashes: small sectors in front of large ones, and pages of four sectors each; RAM;
/// and flash that no algorithm serves.
pub(crate) fn chip() -> FlashMap {
    let flash = |base, page, sectors| Flash {
        base,
        page,
        sectors,
        checks_itself: false,
        erases_chip: true,
        slowest: Duration::ZERO,
    };
    let area = |range, kind| Area { range, core: 0, kind, is_alias: false };
    let first = flash(0, 0x80, vec![(0, 0x100), (0x400, 0x400)]);
    let second = flash(0x1000, 0x400, vec![(0, 0x100)]);
    FlashMap {
        chip: "a chip".to_owned(),
        areas: vec![
            area(0..0x1000, AreaKind::Flash(first)),
            area(0x1000..0x3000, AreaKind::Flash(second)),
            area(0x8000..0x9000, AreaKind::Ram),
            area(0xa000..0xb000, AreaKind::NoAlgorithm),
        ],
    }
}

#[test]
fn sectors_that_touch_a_range_are_found_in_their_area() {
    let chip = chip();
    let found = |nth: usize, range| {
        let sectors = chip.areas[nth].sectors_in(&range);
        sectors.iter().map(|sector| (sector.start, sector.end)).collect::<Vec<_>>()
    };
    assert_eq!(found(0, 0x3ff..0x401), [(0x300, 0x400), (0x400, 0x800)]);
    assert_eq!(found(0, 0x801..0x802), [(0x800, 0xc00)]);
    assert_eq!(found(0, 0xfff..0x2000), [(0xc00, 0x1000)]);
    assert_eq!(found(1, 0..0x1001), [(0x1000, 0x1100)]);
    for nothing in [0x10..0x10, 0x3000..0x4000] {
        assert_eq!(found(0, nothing), []);
    }
    assert_eq!(found(2, 0..0x9000), []);
}

#[test]
fn sectors_of_a_description_without_sense_are_not_found() {
    for sectors in [vec![], vec![(0, 0)], vec![(0x100, 0x100)], vec![(0, u64::MAX)]] {
        let mut chip = chip();
        let AreaKind::Flash(flash) = &mut chip.areas[0].kind else { unreachable!() };
        flash.sectors = sectors;
        assert_eq!(chip.areas[0].sectors_in(&(0..0x80)), []);
    }
}
