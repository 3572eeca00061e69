//! The run store: every run is a directory.
//!
//! **Owns** the layout below a runs folder, the formats in it, the proof of life of a
//! run, and what happens to runs whose jig was killed. **Refuses** to decide where the
//! folder is, what a verdict is, and how console bytes are indexed.
//!
//! ```text
//! runs/20261121-221530-7f3a/
//!   record.json       what the run is and what came of it      format jig-run 1
//!   lock              held by flock while the run is alive; gone when it has ended
//!   events.jsonl      one stamped event per line, after a header  format jig-events 1
//!   children.jsonl    processes the run has started            format jig-children 1
//!   consoles/<attempt>/<console>.raw, .idx                     written by the capture
//!   artefacts/        output of host commands and the like
//!   reports/          junit.xml, verdict.json, result.tap, summary.md
//! ```
//!
//! # Design
//! *A run appears complete.* It is built under a hidden name, with its lock already held,
//! and renamed into place. So a process that sees `runs/<id>` sees a record and a lock, and a free
//! lock proves that the run's jig is dead: liveness is never guessed from a pid.
//!
//! *An id is a time.* UTC to the second, then the fraction of the second in units of
//! 1/65536, in hex. Names therefore sort by start even within a second, and a clash is
//! solved by counting up; the rename, which refuses to replace a run, is the arbiter.
//!
//! *Killing is always safe.* `record.json` is only ever replaced by rename. Logs get one
//! `write` per line; what a power cut, or a kill within a write that crosses a page, tears off is a
//! last line without its end, which readers skip and report and [`RunStore::sweep`] cuts away.
//! Nothing is made up for what is lost: a run without a readable record becomes an abandoned run of
//! nothing.
//!
//! *Newer files are refused*, by readers and writers, and never swept or pruned.

mod candidates;
mod children;
mod clock;
mod copied_run;
mod disk;
mod error;
mod events;
mod export;
mod flash_file;
mod id;
mod jsonl;
mod known_good;
mod live;
mod lost_run;
mod place_command;
mod place_lock;
mod process;
mod prune;
mod record;
mod run_dir;
mod runs;
mod sweep;
mod unaccounted_file;
mod whole_file;

pub use children::{Child, ChildLedger};
pub use clock::{Clock, ManualClock, SystemClock};
pub use copied_run::CopiedRun;
pub(crate) use error::lacks;
pub use error::{StoreError, is_the_hosts};
pub use events::{EventItem, EventLog, EventReader};
pub use flash_file::{FlashFile, FlashFileError};
pub use id::id_to_try;
pub use known_good::{KnownFormat, KnownGood, Passed};
pub use live::{LiveRun, NewRun};
pub use lost_run::lost_runs;
pub use place_command::PlaceCommand;
pub use place_lock::{CaptureLock, Holder, PlaceLock, PlaceLockError, Places, command_shown};
pub use process::host_name;
pub use prune::{Pruned, Retention};
pub use record::{
    AttemptRecord, BootRecord, ImageRecord, PlanRecord, RunRecord, RunState, SweepRecord,
};
pub use run_dir::{POST_MORTEM_FILE, RunDir};
pub use runs::{RunEntry, RunStore};
pub use sweep::{Swept, SweptOutcome};
pub use unaccounted_file::{UNACCOUNTED_FILE, UnaccountedKind, UnaccountedOutput, pattern_of_kind};
pub use whole_file::{open_regular, read_whole};

#[cfg(test)]
mod tests;
