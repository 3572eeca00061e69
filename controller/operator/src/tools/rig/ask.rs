//! Arguments of the tools that only look.

use jig_model::command::{
    AttachCommand, AttachFollow, AttachInput, Command, PowerAction, PowerCommand,
    RecoverySteps as RecoveryStepsCommand,
};
use jig_model::{ConsoleName, PlaceName};
use schemars::JsonSchema;
use serde::Deserialize;

use super::run::command;
use super::{Named, RigArguments};
use crate::error::OperatorError;
use crate::tools::{RigCalls, RigQuestion, RigRequest};

/// Implements the arguments of tools that become a question or a command without any look at files.
macro_rules! asks {
    ($($arguments:ident => |$this:ident| $request:expr;)+) => {$(
        impl RigArguments for $arguments {
            fn request(self, _: &dyn RigCalls) -> Result<RigRequest, OperatorError> {
                let $this = self;
                Ok($request)
            }
        }
    )+};
}

/// Asks a question.
fn question(question: RigQuestion) -> RigRequest {
    RigRequest::Question(question)
}

/// No arguments.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Boards {}

/// No arguments.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Places {}

/// No arguments.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Leases {}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Health {
    /// The place; all of them if left out.
    #[schemars(with = "Option<Named>")]
    place: Option<PlaceName>,
    /// How many entries of the history to tell.
    #[schemars(range(min = 0, max = 100))]
    history: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RunsList {
    /// Only runs of this place.
    #[schemars(with = "Option<Named>")]
    place: Option<PlaceName>,
    /// Only runs older than this one: its id.
    #[schemars(length(min = 1, max = 64))]
    before: Option<String>,
    /// How many; 20 if left out.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
}

/// Names a run.
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
struct RunName(#[schemars(length(min = 1, max = 64))] String);

fn last() -> RunName {
    RunName("last".to_owned())
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RunsShow {
    /// The run: its id, a beginning of that, or `last`.
    #[serde(default = "last")]
    #[schemars(default = "last_text")]
    run: RunName,
}

fn last_text() -> String {
    "last".to_owned()
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RunsLog {
    /// The run: its id, a beginning of that, or `last`.
    #[serde(default = "last")]
    #[schemars(default = "last_text")]
    run: RunName,
    /// The first line, from 0; the last lines if left out.
    from: Option<u64>,
    /// How many lines; 100 if left out.
    #[schemars(range(min = 1, max = 1000))]
    lines: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RunsFiles {
    /// The run: its id, a beginning of that, or `last`.
    #[serde(default = "last")]
    #[schemars(default = "last_text")]
    run: RunName,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RunsRead {
    /// The run: its id, a beginning of that, or `last`.
    #[serde(default = "last")]
    #[schemars(default = "last_text")]
    run: RunName,
    /// The file, relative to the run, as runs_files and evidence name it.
    #[schemars(length(min = 1, max = 256))]
    file: String,
    /// The first byte; 0 if left out.
    from: Option<u64>,
    /// How many bytes; 16384 if left out.
    #[schemars(range(min = 1, max = 32768))]
    length: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RunsCompare {
    /// The earlier run.
    before: RunName,
    /// The later run.
    #[serde(default = "last")]
    #[schemars(default = "last_text")]
    after: RunName,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Explain {
    /// The run: its id, a beginning of that, or `last`.
    #[serde(default = "last")]
    #[schemars(default = "last_text")]
    run: RunName,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Knowledge {
    /// The question, in words; a line of a log will do.
    #[schemars(length(min = 1, max = 4096))]
    question: String,
    /// The kind of board that it is about.
    #[schemars(length(min = 1, max = 64))]
    board: Option<String>,
    /// How many answers at most; 5 if left out.
    #[schemars(range(min = 1, max = 20))]
    limit: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RunsSearch {
    /// The words; a line of a log will do.
    #[schemars(length(min = 1, max = 4096))]
    question: String,
    /// How many answers at most; 5 if left out.
    #[schemars(range(min = 1, max = 20))]
    limit: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Audit {
    /// Leaves out what is older than this, in seconds.
    #[schemars(range(min = 1, max = 31_536_000))]
    since_s: Option<u64>,
    /// How many of the last lines; 50 if left out.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RecoverySteps {
    /// The place.
    #[schemars(with = "Named")]
    place: PlaceName,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PowerStatus {
    /// The place.
    #[schemars(with = "Named")]
    place: PlaceName,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Console {
    /// The place.
    #[schemars(with = "Named")]
    place: PlaceName,
    /// The console; the primary one if left out.
    #[schemars(with = "Option<Named>")]
    console: Option<ConsoleName>,
    /// How long ago the output begins, in seconds; 300 if left out.
    #[schemars(range(min = 1, max = 86400))]
    since_s: Option<u64>,
}

const RUNS: u32 = 20;
const LOG_LINES: u32 = 100;
const FILE_BYTES: u32 = 16 << 10;
const ANSWERS: u32 = 5;
const AUDIT_LINES: u32 = 50;
const CONSOLE_S: u64 = 300;

fn count(wanted: Option<u32>, usual: u32) -> usize {
    usize::try_from(wanted.unwrap_or(usual)).unwrap_or(usize::MAX)
}

asks! {
    Boards => |_none| question(RigQuestion::Boards);
    Places => |_none| question(RigQuestion::Places);
    Leases => |_none| question(RigQuestion::Leases);
    Health => |of| question(RigQuestion::Health { place: of.place, history: of.history });
    RunsList => |of| question(RigQuestion::Runs {
        place: of.place,
        before: of.before,
        limit: count(of.limit, RUNS),
    });
    RunsShow => |of| question(RigQuestion::Run { run: of.run.0 });
    RunsLog => |of| question(RigQuestion::RunLog {
        run: of.run.0,
        from: of.from,
        lines: count(of.lines, LOG_LINES),
    });
    RunsFiles => |of| question(RigQuestion::RunFiles { run: of.run.0 });
    RunsRead => |of| question(RigQuestion::RunFile {
        run: of.run.0,
        file: of.file,
        from: of.from.unwrap_or_default(),
        length: of.length.unwrap_or(FILE_BYTES).into(),
    });
    RunsCompare => |of| question(RigQuestion::Compare { before: of.before.0, after: of.after.0 });
    Explain => |of| question(RigQuestion::Explain { run: of.run.0 });
    Knowledge => |of| question(RigQuestion::Knowledge {
        question: of.question,
        board: of.board,
        limit: count(of.limit, ANSWERS),
    });
    RunsSearch => |of| question(RigQuestion::RunsText {
        question: of.question,
        limit: count(of.limit, ANSWERS),
    });
    Audit => |of| question(RigQuestion::Audit {
        since_s: of.since_s,
        limit: count(of.limit, AUDIT_LINES),
    });
    RecoverySteps => |of| {
        command(Command::RecoverySteps(RecoveryStepsCommand { place: of.place, from: None }))
    };
    PowerStatus => |of| command(Command::Power(PowerCommand {
        place: of.place,
        action: PowerAction::Status,
        off_ms: None,
        force: false,
        wait_ms: 0,
    }));
    Console => |of| command(Command::Attach(AttachCommand {
        place: of.place,
        console: of.console,
        since_ms: of.since_s.unwrap_or(CONSOLE_S).saturating_mul(1000),
        follow: AttachFollow::Logged,
        input: AttachInput::None,
        quiet_ms: 0,
        boot: None,
    }));
}
