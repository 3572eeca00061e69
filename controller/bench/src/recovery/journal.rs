//! File of the trials made so far, with which an interrupted bench can be resumed.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use super::table::{BrokenFirmware, FaultTally, TrialTable};
use crate::dice::TrialDice;
use xtask::failure::TaskFailure;

/// What all that is in one journal has in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Beginning {
    seed: u64,
    rounds: usize,
    /// Size and time of the program that is tried.
    program: (u64, u64),
}

impl Beginning {
    /// Identifies the program, and chooses a seed if none is given.
    pub(super) fn of(jig: &Path, rounds: usize, seed: Option<u64>) -> Result<Self, TaskFailure> {
        let meta = fs::metadata(jig).map_err(TaskFailure::io("find", jig))?;
        let made = meta.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let program = (meta.len(), made.unwrap_or_default().as_secs());
        Ok(Self { seed: seed.unwrap_or_else(TrialDice::any), rounds, program })
    }
}

/// One line of the file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum JournalEntry {
    Began(Beginning),
    Fault(FaultTally),
    Firmware(BrokenFirmware),
}

/// The file, and what is in it; lanes share it.
pub(super) struct Journal {
    seed: u64,
    state: Mutex<JournalState>,
}

struct JournalState {
    file: File,
    path: PathBuf,
    table: TrialTable,
}

impl Journal {
    /// Begins a new one.
    pub(super) fn begin(path: PathBuf, beginning: Beginning) -> Result<Self, TaskFailure> {
        Self::with(path, beginning, TrialTable::default())
    }

    /// Continues an existing journal, with its seed unless one is given.
    pub(super) fn resume(
        path: PathBuf,
        beginning: Beginning,
        seed: Option<u64>,
    ) -> Result<Self, TaskFailure> {
        let text = fs::read_to_string(&path).map_err(TaskFailure::io("read", &path))?;
        // The last line may be in pieces.
        let entries = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        let (mut began, mut table) = (None, TrialTable::default());
        for entry in entries {
            match entry {
                JournalEntry::Began(beginning) => began = Some(beginning),
                JournalEntry::Fault(line) => table.lines.push(line),
                JournalEntry::Firmware(broken) => table.firmware.push(broken),
            }
        }
        let wanted =
            |began: &Beginning| Beginning { seed: seed.unwrap_or(began.seed), ..beginning.clone() };
        match began {
            Some(began) if wanted(&began) == began => Self::with(path, began, table),
            _ => {
                let path = path.display();
                let why = format!("{path} is of another program, seed or number of rounds");
                Err(TaskFailure::Because(format!("{why} (begin anew: leave --resume out)")))
            }
        }
    }

    fn with(path: PathBuf, beginning: Beginning, table: TrialTable) -> Result<Self, TaskFailure> {
        let file = File::create(&path).map_err(TaskFailure::io("write", &path))?;
        let seed = beginning.seed;
        let mut state = JournalState { file, path, table: TrialTable::default() };
        state.write(&JournalEntry::Began(beginning))?;
        let TrialTable { lines, firmware, .. } = table;
        let journal = Self { seed, state: Mutex::new(state) };
        lines.into_iter().try_for_each(|line| journal.add_line(line))?;
        firmware.into_iter().try_for_each(|broken| journal.add_firmware(broken))?;
        Ok(journal)
    }

    fn state(&self) -> MutexGuard<'_, JournalState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns where the random moments come from.
    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns all that was tried.
    pub(super) fn table(&self) -> TrialTable {
        self.state().table.clone()
    }

    /// Tells whether a fault was tried at a place.
    pub(super) fn knows_fault(&self, fault: &str, place: &str) -> bool {
        let state = self.state();
        state.table.lines.iter().any(|line| line.fault == fault && line.place == place)
    }

    /// Tells whether a broken firmware was tried on a board.
    pub(super) fn knows_firmware(&self, fixture: &str, board: &str) -> bool {
        let state = self.state();
        state.table.firmware.iter().any(|known| known.fixture == fixture && known.board == board)
    }

    /// Takes in what became of a fault at a place.
    pub(super) fn add_line(&self, line: FaultTally) -> Result<(), TaskFailure> {
        let mut state = self.state();
        state.write(&JournalEntry::Fault(line.clone()))?;
        state.table.lines.push(line);
        state.show()
    }

    /// Takes in what a broken firmware was judged as.
    pub(super) fn add_firmware(&self, broken: BrokenFirmware) -> Result<(), TaskFailure> {
        let mut state = self.state();
        state.write(&JournalEntry::Firmware(broken.clone()))?;
        state.table.firmware.push(broken);
        state.show()
    }
}

impl JournalState {
    fn write(&mut self, entry: &JournalEntry) -> Result<(), TaskFailure> {
        let mut line = serde_json::to_string(entry)
            .map_err(|e| TaskFailure::Because(format!("an entry cannot be written: {e}")))?;
        line.push('\n');
        self.file.write_all(line.as_bytes()).map_err(TaskFailure::io("write", &self.path))
    }

    /// Writes the table beside the journal, as far as it has come.
    fn show(&self) -> Result<(), TaskFailure> {
        let path = self.path.with_extension("md");
        fs::write(&path, self.table.markdown()).map_err(TaskFailure::io("write", &path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beginning(seed: u64) -> Beginning {
        Beginning { seed, rounds: 3, program: (1, 2) }
    }

    #[test]
    fn what_was_written_is_known_again_and_a_torn_line_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("recovery.jsonl");
        let journal = Journal::begin(path.clone(), beginning(7)).unwrap();
        journal.add_line(FaultTally::new("x", "desk", true)).unwrap();
        drop(journal);
        let mut text = fs::read_to_string(&path).unwrap();
        text.push_str("{\"fault\":{\"fau");
        fs::write(&path, text).unwrap();
        let journal = Journal::resume(path.clone(), beginning(9), None).unwrap();
        assert!(journal.knows_fault("x", "desk") && !journal.knows_fault("x", "bench"));
        assert_eq!((journal.seed(), journal.table().len()), (7, 1));
        assert!(path.with_extension("md").exists());
        drop(journal);
        let other = Beginning { rounds: 4, ..beginning(7) };
        assert!(Journal::resume(path.clone(), other, None).is_err());
        assert!(Journal::resume(path, beginning(9), Some(9)).is_err());
    }
}
