//! How a call is carried out: the protocols between tools and rig.

use std::path::PathBuf;
use std::sync::Arc;

use jig_model::PlaceName;
use jig_model::command::{Command, EventSink, PlanText, Reply};
use jig_model::protocol::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ToolCall, ToolList, ToolResult};
use crate::error::OperatorError;

/// Has tools and carries out their calls.
pub trait ToolDoor: Send + Sync {
    /// Returns the tools that there are now.
    fn list(&self) -> ToolList;

    /// Checks a call and carries it out. A run that failed is a result; an error says that the call was
    /// not carried out. Dropping the future asks for the end of the call, which is still brought about
    /// in order.
    fn call(
        &self,
        call: ToolCall,
        events: Arc<dyn EventSink>,
    ) -> BoxFuture<'_, Result<ToolResult, OperatorError>>;
}

/// What a call of a rig's tool comes down to.
#[derive(Debug, Clone, PartialEq)]
pub enum RigRequest {
    /// A command, and the input for the console that it is about.
    Command {
        /// The command.
        command: Box<Command>,
        /// The input.
        input: Vec<u8>,
    },
    /// A question, which changes nothing.
    Question(RigQuestion),
}

/// What is asked of a rig without touching it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "snake_case", deny_unknown_fields)]
pub enum RigQuestion {
    /// Boards and places.
    Boards,
    /// All places at this moment.
    Places,
    /// The health of places.
    Health {
        /// The place; all of them if not named.
        place: Option<PlaceName>,
        /// How many entries of the history.
        history: Option<u32>,
    },
    /// Leases, held and queued.
    Leases,
    /// Runs, the newest first.
    Runs {
        /// Only those of this place.
        place: Option<PlaceName>,
        /// Only those older than this one.
        before: Option<String>,
        /// How many.
        limit: usize,
    },
    /// The record of a run.
    Run {
        /// Its id, a beginning of it, or `last`.
        run: String,
    },
    /// The time line of a run: lines of events and consoles.
    RunLog {
        /// The run.
        run: String,
        /// The first line, from 0; nothing for the last lines.
        from: Option<u64>,
        /// How many lines.
        lines: usize,
    },
    /// The files of a run, with their sizes.
    RunFiles {
        /// The run.
        run: String,
    },
    /// A byte range of a file of a run.
    RunFile {
        /// The run.
        run: String,
        /// The file, relative to the run.
        file: String,
        /// The first byte.
        from: u64,
        /// How many bytes at most.
        length: u64,
    },
    /// The tests of two runs compared.
    Compare {
        /// The earlier run.
        before: String,
        /// The later one.
        after: String,
    },
    /// How a run failed, whether it did before, and which run of the place passed last.
    Explain {
        /// The run.
        run: String,
    },
    /// What the lab has learnt.
    Knowledge {
        /// The question, in words.
        question: String,
        /// The kind of board that it is about.
        board: Option<String>,
        /// How many answers at most.
        limit: usize,
    },
    /// Runs whose records or consoles have the words of a question, the best first.
    RunsText {
        /// The question, in words; a line of a log will do.
        question: String,
        /// How many answers at most.
        limit: usize,
    },
    /// Lines of the audit log, the newest last.
    Audit {
        /// Leaves out what is older, in seconds.
        since_s: Option<u64>,
        /// How many of the last lines.
        limit: usize,
    },
}

/// Carries out what calls of tools come down to, at a rig. The program binds it.
pub trait RigCalls: Send + Sync {
    /// Carries out a command. Dropping the future asks for its end, which is still brought about in
    /// order.
    fn execute(
        &self,
        command: Command,
        input: Vec<u8>,
        events: Arc<dyn EventSink>,
    ) -> BoxFuture<'_, Result<Reply, OperatorError>>;

    /// Answers a question, as the command line answers with `--json`.
    fn ask(&self, question: RigQuestion) -> BoxFuture<'_, Result<Value, OperatorError>>;

    /// Finds an image that a call names, as `FILE` or `FILE.bin@ADDRESS`.
    ///
    /// # Errors
    /// There is none, or it lies where calls may not reach.
    fn image(&self, named: &str) -> Result<PathBuf, OperatorError>;

    /// Reads a plan that a call names.
    ///
    /// # Errors
    /// There is none, or it lies where calls may not reach.
    fn plan(&self, named: &str) -> Result<PlanText, OperatorError>;
}
