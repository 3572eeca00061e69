//! What a caller is told while its command is carried out.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{ConsoleName, PlaceName, RunEvent, RunId};

/// What happens while a command is carried out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CommandEvent {
    /// A run has a directory now.
    RunBegan {
        /// The run.
        run: RunId,
        /// Its directory.
        dir: PathBuf,
    },
    /// Something happened in the run, and is in its record.
    Run {
        /// What.
        event: RunEvent,
    },
    /// A console is being captured; its log can be followed as a file.
    Console {
        /// The console.
        console: ConsoleName,
        /// The file of its bytes.
        log: PathBuf,
    },
    /// The command waits for a place.
    Waiting {
        /// The place.
        place: PlaceName,
        /// Who has it; may hold any text.
        holder: String,
    },
    /// A place that is in use is disturbed, as the command asks for.
    Disturbing {
        /// The place.
        place: PlaceName,
        /// Who has it; may hold any text.
        holder: String,
    },
    /// A run whose process was killed has been cleaned up, or could not be.
    Swept(SweptRun),
}

/// What became of a run whose process was killed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweptRun {
    /// The run.
    pub run: RunId,
    /// How many of its processes were still there and have been ended.
    pub killed: usize,
    /// Why it could not be cleaned up, if so; the next command tries again. May hold any text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Is told what happens, as it happens. Must not block.
pub trait EventSink: Send + Sync {
    /// Takes an event.
    fn event(&self, event: CommandEvent);
}
