//! What a place is, as far as a repair run has to know.

use jig_model::{BoardId, PlaceName};
use jig_probe::WatchedEmulator;
use serde::{Deserialize, Serialize};

use crate::{Catalogue, CatalogueError};

/// What the board of a place is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoardFacts {
    /// The kind of board.
    pub board: BoardId,
    /// Its chip, if its profile names one.
    pub chip: Option<String>,
    /// Whether it is emulated; a real one wears out and costs to flash.
    pub emulated: bool,
    /// Whether the coverage of a run can be measured there.
    pub measures_coverage: bool,
}

impl Catalogue {
    /// Tells what the board of a place is.
    ///
    /// # Errors
    /// The place is not known.
    pub fn board_facts(&self, place: &PlaceName) -> Result<BoardFacts, CatalogueError> {
        let (place, profile) = self.place(place)?;
        Ok(BoardFacts {
            board: profile.id.clone(),
            chip: profile.chip.clone(),
            emulated: place.is_emulated(),
            measures_coverage: WatchedEmulator::collects_code(&profile, &place),
        })
    }
}
