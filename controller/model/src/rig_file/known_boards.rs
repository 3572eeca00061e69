//! The boards that places may name: profiles, and chips that need none.

use std::borrow::Cow;

use crate::BoardId;
use crate::chip::{ChipName, ChipSource};
use crate::document::{Findings, Located, did_you_mean};
use crate::profile::{BoardProfile, FaultSets, ProfileSource};

/// The boards that places may name.
#[derive(Clone, Copy)]
pub(super) struct KnownBoards<'a> {
    pub(super) profiles: &'a dyn ProfileSource,
    pub(super) chips: &'a dyn ChipSource,
}

impl<'a> KnownBoards<'a> {
    /// Finds the board that a place names, or reports that there is none.
    pub(super) fn find(
        &self,
        board: &Located<BoardId>,
        findings: &Findings,
    ) -> Option<Cow<'a, BoardProfile>> {
        if let Some(found) = self.profiles.profile(&board.value) {
            return Some(Cow::Borrowed(found));
        }
        let Some(chip) = board.value.chip() else {
            let known = self.profiles.names().into_iter();
            let (message, help) = (
                format!("there is no board profile {:?}", board.value.as_str()),
                did_you_mean(board.value.as_str(), known),
            );
            findings.add("rig::unknown-board", board.at(), message, help);
            return None;
        };
        // The name of such a board is one.
        let name: ChipName = chip.parse().ok()?;
        let facts = match self.chips.chip(&name) {
            Ok(facts) => facts,
            Err(unknown) => {
                let (message, help) = (unknown.to_string(), unknown.help());
                findings.add("rig::unknown-chip", board.at(), message, help);
                return None;
            }
        };
        // Signatures of faults do not matter for what is checked here.
        Some(Cow::Owned(BoardProfile::of_chip(&name, &facts, &FaultSets::default())))
    }
}
