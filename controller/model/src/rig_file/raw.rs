//! The tables of a rig file as they are written.

use std::time::Duration;

use crate::document::{ByteSize, Located};
use crate::toml_table;
use crate::{BoardId, PlaceName};

toml_table! {
    /// A rig file: the places of a rig, and where runs are kept.
    pub(super) struct RawRig {
        /// Version of this format: 1.
        version: u32 = required,
        /// The places.
        place: Vec<Located<RawPlace>> = optional,
        /// Where runs are kept, and for how long.
        runs: RawRuns = optional,
    }

    /// A place: one board of the rig.
    pub(super) struct RawPlace {
        /// Its name.
        name: PlaceName = required,
        /// The profile of its board.
        board: BoardId = required,
        /// Says that the board is emulated.
        emulator: RawEmulator = required,
    }

    /// An emulated board.
    pub(super) struct RawEmulator {
        /// Arguments after those of the profile, one by one.
        args: Vec<Located<String>> = optional,
    }

    /// Where runs are kept, and for how long. Nothing is removed if nothing is said.
    pub(super) struct RawRuns {
        /// The directory; relative to the rig file.
        dir: String = optional,
        /// Runs older than this are removed, such as "30d".
        keep: Duration = optional,
        /// The oldest runs are removed while all together take more, such as "2G".
        keep_size: ByteSize = optional,
    }
}
