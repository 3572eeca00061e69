//! The tools of a rig: one table of names, arguments, risks and time-outs.
//!
//! A row has the type of its arguments, from which the schema is made, and how they become a request. So
//! a tool without arguments that are checked, or without a command behind it, cannot be written.

mod ask;
mod call;
mod debug;
mod run;
#[cfg(test)]
mod tests;

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use jig_model::access::AccessRight;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use self::call::{RigToolDoor, ToolPolicy};
use super::{Danger, RigCalls, RigRequest, Tool, ToolList, ToolResult, ToolRisk};
use crate::error::{OperatorCode, OperatorError};

/// Arguments of a tool of the rig.
trait RigArguments: DeserializeOwned + JsonSchema {
    /// Makes the request that they stand for. Paths are looked up at the door.
    fn request(self, at: &dyn RigCalls) -> Result<RigRequest, OperatorError>;
}

/// The schema of a name of a place or console, which its type leaves to its reader.
#[derive(JsonSchema)]
struct Named(
    #[schemars(regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9._:+-]{0,63}$"))]
    #[expect(dead_code, reason = "only its schema is used")]
    String,
);

/// Makes the request of a call whose arguments fit the schema.
type Lower = fn(Value, &dyn RigCalls) -> Result<RigRequest, OperatorError>;

struct RigTool {
    name: &'static str,
    about: &'static str,
    risk: ToolRisk,
    timeout: Duration,
    schema: fn() -> Value,
    lower: Lower,
}

fn lower<A: RigArguments>(
    arguments: Value,
    at: &dyn RigCalls,
) -> Result<RigRequest, OperatorError> {
    let arguments: A = serde_json::from_value(arguments).map_err(|error| {
        OperatorError::new(OperatorCode::InvalidArgs, format!("arguments: {error}"))
            .next("jig mcp tools")
            .untouched()
    })?;
    arguments.request(at)
}

/// Makes a schema without references: agents and clients read those best.
fn schema_of<T: JsonSchema>() -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = SchemaGenerator::new(settings).into_root_schema_for::<T>().to_value();
    if let Value::Object(schema) = &mut schema {
        // The name of a type of this program, and a version that readers take for granted.
        schema.remove("title");
        schema.remove("$schema");
    }
    schema
}

const fn row<A: RigArguments>(
    name: &'static str,
    risk: ToolRisk,
    timeout_s: u64,
    about: &'static str,
) -> RigTool {
    let timeout = Duration::from_secs(timeout_s);
    RigTool { name, about, risk, timeout, schema: schema_of::<A>, lower: lower::<A> }
}

const LOOK: ToolRisk = ToolRisk::READ;

/// Uses a board: boots it, resets it, sends input.
const USE: ToolRisk = ToolRisk {
    read_only: false,
    idempotent: false,
    destructive: false,
    danger: Danger::Board,
    right: AccessRight::Use,
};

/// Uses a board, and a second time gives nothing else.
const USE_AGAIN: ToolRisk = ToolRisk { idempotent: true, ..USE };

/// Uses a board and overwrites something of it.
const CHANGE: ToolRisk = ToolRisk { destructive: true, ..USE };

const POWER: ToolRisk = ToolRisk { destructive: true, right: AccessRight::Power, ..USE };

const FLASH: ToolRisk =
    ToolRisk { destructive: true, idempotent: true, right: AccessRight::Flash, ..USE };

/// Longest default of what reads files.
const READ_S: u64 = 30;

/// Default of what waits for a board: a recovery on the way included.
const BOARD_S: u64 = 600;

const RIG_TOOLS: &[RigTool] = &[
    row::<ask::Boards>(
        "boards",
        LOOK,
        READ_S,
        "Lists the places of the rig and the kinds of boards: name, board, parts, health. Begin here: \
         other tools name a place.",
    ),
    row::<ask::Places>(
        "places",
        LOOK,
        READ_S,
        "Tells of each place at this moment: health, lease, who uses it, run under way, last console line. \
         Use it to find a free board.",
    ),
    row::<ask::Health>(
        "health",
        LOOK,
        READ_S,
        "Tells the health of places, why, since when and what clears it; with history, what happened before.",
    ),
    row::<ask::Leases>(
        "leases",
        LOOK,
        READ_S,
        "Lists who has which place until when, and who waits.",
    ),
    row::<ask::RunsList>(
        "runs_list",
        LOOK,
        READ_S,
        "Lists runs, the newest first: id, place, plan, verdict, cause. `before` turns the page.",
    ),
    row::<ask::RunsShow>(
        "runs_show",
        LOOK,
        READ_S,
        "Shows the record of a run: verdict, cause, tests, evidence as byte ranges of its files, attempts.",
    ),
    row::<ask::RunsLog>(
        "runs_log",
        LOOK,
        READ_S,
        "Shows lines of the time line of a run: events and console output joined. Without `from`, the last \
         lines.",
    ),
    row::<ask::RunsFiles>(
        "runs_files",
        LOOK,
        READ_S,
        "Lists the files of a run with their sizes; runs_read reads them.",
    ),
    row::<ask::RunsRead>(
        "runs_read",
        LOOK,
        READ_S,
        "Reads a byte range of a file of a run, such as the evidence of a verdict.",
    ),
    row::<ask::RunsCompare>(
        "runs_compare",
        LOOK,
        READ_S,
        "Compares the tests of two runs: regressions, fixed, known failures, new and vanished tests.",
    ),
    row::<ask::Explain>(
        "explain",
        LOOK,
        READ_S,
        "Explains how a run failed: cause, who is to blame, first bad line, how often its place has seen \
         that, last pass.",
    ),
    row::<ask::Knowledge>(
        "knowledge_search",
        LOOK,
        READ_S,
        "Searches what the lab has learnt: causes and remedies of failures seen before.",
    ),
    row::<ask::RunsSearch>(
        "runs_search",
        LOOK,
        READ_S,
        "Searches records and consoles of the newest runs for words: run, place, verdict, line, byte range. \
         Use it where knowledge_search does not answer, or for words that no failure has.",
    ),
    row::<ask::Audit>(
        "audit",
        LOOK,
        READ_S,
        "Shows the last lines of the audit log: who asked for what at which place, and what was decided.",
    ),
    row::<ask::RecoverySteps>(
        "recovery_steps",
        LOOK,
        READ_S,
        "Tells the steps by which a place would be recovered, without taking them.",
    ),
    row::<ask::PowerStatus>(
        "power_status",
        LOOK,
        60,
        "Asks whether a place has power. Switches nothing.",
    ),
    row::<ask::Console>(
        "console",
        LOOK,
        READ_S,
        "Reads what a console of a place has printed lately. Sends nothing.",
    ),
    row::<run::Run>(
        "run",
        CHANGE,
        BOARD_S,
        "Puts an image on a board, boots it, captures its consoles and judges what it reports. The verdict \
         tells whether the firmware or the rig failed.",
    ),
    row::<run::Test>(
        "test",
        CHANGE,
        BOARD_S,
        "Runs a test plan on a board and judges each test. Give the plan as a file, or as text.",
    ),
    row::<run::ConsoleSend>(
        "console_send",
        USE,
        120,
        "Sends a text to a captured console and tells what is printed until it is quiet.",
    ),
    row::<run::Exec>(
        "exec",
        ToolRisk { destructive: true, ..USE },
        BOARD_S,
        "Runs a program on a board that runs an operating system. `argv` is a list, never a shell line.",
    ),
    row::<run::Check>(
        "check",
        USE_AGAIN,
        120,
        "Runs the health checks of a place and notes what they show.",
    ),
    row::<run::Reset>("reset", USE, 60, "Resets a board by what its place has for it."),
    row::<run::Power>(
        "power",
        POWER,
        120,
        "Switches the power of a place and reads it back. Refused while other places on the outlet are in use.",
    ),
    row::<run::Recover>(
        "recover",
        POWER,
        BOARD_S,
        "Proves that a place works, or takes recovery steps until it does, the gentlest first.",
    ),
    row::<run::Flash>(
        "flash",
        FLASH,
        300,
        "Puts an image on a board outside of a run, verifies it and starts it.",
    ),
    row::<run::Erase>(
        "erase",
        FLASH,
        300,
        "Erases all flash of a board, which then boots nothing.",
    ),
    row::<debug::Halt>(
        "halt",
        USE_AGAIN,
        60,
        "Stops the core of a board through its debug probe. The board has to be held or real.",
    ),
    row::<debug::Resume>(
        "resume",
        USE_AGAIN,
        60,
        "Lets the core of a board continue that was halted.",
    ),
    row::<debug::Registers>(
        "registers",
        USE_AGAIN,
        60,
        "Reads registers of a board's core, which is stopped for that moment.",
    ),
    row::<debug::MemoryRead>(
        "memory_read",
        USE_AGAIN,
        60,
        "Reads memory of a board, 4096 bytes at most, as hexadecimal digits.",
    ),
    row::<debug::MemoryWrite>(
        "memory_write",
        CHANGE,
        60,
        "Writes memory of a board through its debug probe.",
    ),
    row::<debug::Backtrace>(
        "backtrace",
        USE_AGAIN,
        60,
        "Explains where the core of a board stands: exception, fault, frames with source lines.",
    ),
    row::<debug::Breakpoint>(
        "breakpoint",
        USE,
        120,
        "Runs a board to an address or a function and tells where the core stands.",
    ),
];

/// Returns the tools of a rig.
pub fn rig_tools() -> ToolList {
    static TOOLS: LazyLock<ToolList> = LazyLock::new(|| {
        let output = Arc::new(schema_of::<ToolResult>());
        let tool = |row: &RigTool| Tool {
            name: row.name.to_owned(),
            description: row.about.to_owned(),
            input_schema: Arc::new((row.schema)()),
            output_schema: Some(Arc::clone(&output)),
            risk: row.risk,
            risk_of: (row.name == "test").then_some(run::test_risk),
            timeout: row.timeout,
            server: None,
        };
        RIG_TOOLS.iter().map(tool).collect()
    });
    TOOLS.clone()
}
