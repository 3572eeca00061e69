//! Chips that are boards without a profile, and a chip on a probe that is a place without a rig
//! file.

use jig_model::chip::{ChipName, ChipSource as _, UnknownChip};
use jig_model::profile::{BoardProfile, FaultSets};
use jig_model::rig_file::{Place, ProbePart, Rig};
use jig_model::{BoardId, PlaceName};
use jig_probe::{DescribedChips, ProbeInfo, list_probes_now};

use super::CatalogueError;

/// A chip on a debug probe that is used as a place although no rig file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChipAtProbe {
    /// The chip.
    pub chip: ChipName,
    /// The probe, as `VID:PID[:SERIAL]`; the only one that is attached if not named.
    pub selector: Option<String>,
}

impl ChipAtProbe {
    /// Returns the name of the place.
    pub fn place(&self) -> PlaceName {
        PlaceName::of_chip(&self.chip)
    }

    /// Makes the place. No probe is opened.
    pub(super) fn in_rig(&self, rig: &Rig) -> Result<Place, CatalogueError> {
        let selector = match &self.selector {
            Some(selector) => selector.clone(),
            None => only(list_probes_now()?)?,
        };
        // The place has power, consoles and rules, and others use it by its name.
        let owns = |place: &&Place| place.probe.as_ref().is_some_and(|p| p.may_mean(&selector));
        if let Some(owner) = rig.places.iter().find(owns) {
            let place = owner.name.clone();
            return Err(CatalogueError::ProbeOfPlace { selector, place });
        }
        let place = Place::new(self.place(), BoardId::of_chip(&self.chip));
        let probe = ProbePart { selector, ..ProbePart::default() };
        Ok(Place { origin: "command line".to_owned(), ..place.with_probe(probe) })
    }
}

/// Returns the selector of the only probe.
fn only(probes: Vec<ProbeInfo>) -> Result<String, CatalogueError> {
    let mut selectors: Vec<String> = probes.into_iter().map(|probe| probe.selector).collect();
    match selectors.len() {
        1 => Ok(selectors.remove(0)),
        0 => Err(CatalogueError::NoProbe),
        _ => Err(CatalogueError::Probes(selectors)),
    }
}

/// Makes the board of a chip; nothing for a board that is not one.
pub(super) fn chip_board<'f>(
    board: &BoardId,
    faults: impl FnOnce() -> &'f FaultSets,
) -> Option<Result<BoardProfile, UnknownChip>> {
    // What follows the prefix is a chip's name.
    let name: ChipName = board.chip()?.parse().ok()?;
    let facts = DescribedChips.chip(&name);
    Some(facts.map(|facts| BoardProfile::of_chip(&name, &facts, faults())))
}

/// Makes the boards of a rig's places that are chips, each once.
pub(super) fn chip_boards<'f>(
    places: &[Place],
    faults: impl Fn() -> &'f FaultSets,
) -> Result<Vec<BoardProfile>, UnknownChip> {
    let names: std::collections::BTreeSet<&BoardId> =
        places.iter().map(|place| &place.board).collect();
    names.into_iter().filter_map(|board| chip_board(board, &faults)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(selector: &str) -> ProbeInfo {
        ProbeInfo {
            name: "a probe".to_owned(),
            selector: selector.to_owned(),
            kind: "CMSIS-DAP".to_owned(),
            port: None,
            holder: None,
            accessible: true,
        }
    }

    #[test]
    fn a_probe_is_chosen_only_where_there_is_no_choice() {
        assert_eq!(only(vec![probe("0d28:0204:1")]).unwrap(), "0d28:0204:1");
        assert!(matches!(only(Vec::new()), Err(CatalogueError::NoProbe)));
        let several = only(vec![probe("0d28:0204:1"), probe("1366:0101:2")]);
        let Err(CatalogueError::Probes(named)) = several else { panic!("{several:?}") };
        assert_eq!(named, ["0d28:0204:1", "1366:0101:2"]);
    }

    #[test]
    fn the_probe_of_a_place_belongs_to_it() {
        let own = Place::new("bench".parse().unwrap(), "microbit".parse().unwrap());
        let probe = ProbePart { selector: "0d28:0204:AA".to_owned(), ..ProbePart::default() };
        let rig = Rig { places: vec![own.with_probe(probe)], ..Rig::default() };
        let at = |selector: &str| {
            let chip = "nRF51822_xxAA".parse().unwrap();
            ChipAtProbe { chip, selector: Some(selector.to_owned()) }.in_rig(&rig)
        };
        for same in ["0d28:0204", "0D28:0204:aa", "d28:204-1:AA"] {
            assert!(matches!(at(same), Err(CatalogueError::ProbeOfPlace { .. })), "{same}");
        }
        for other in ["0d28:0204:AB", "1366:0101", "20b7:9db1:unix:/tmp/x"] {
            let place = at(other).unwrap();
            assert_eq!(place.name.as_str(), "chip:nRF51822_xxAA");
            assert_eq!(place.probe.unwrap().selector, other);
        }
    }
}
