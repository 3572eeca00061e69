//! `jig machine`.

use jig_model::exit;
use jig_model::machine::RenderFormat;
use jig_rig::{health, workflow};

use crate::args::{MachineCommand, MachineFormat};
use crate::failure::Failure;
use crate::render::Screen;

/// Prints a state machine; `--json` is short for `--format json`.
pub(crate) fn machine(screen: &Screen, command: MachineCommand) -> Result<u8, Failure> {
    let (format, render): (_, fn(RenderFormat) -> String) = match command {
        MachineCommand::Workflow { format } => (format, workflow::render),
        MachineCommand::Health { format } => (format, health::render),
        MachineCommand::Repair { format } => (format, jig_repair::render::render),
        MachineCommand::Operator { format } => (format, jig_operator::machine::render_operator),
        MachineCommand::Planner { format } => (format, jig_operator::machine::render_planner),
    };
    let format = match format {
        _ if screen.json() => RenderFormat::Json,
        MachineFormat::Mermaid => RenderFormat::Mermaid,
        MachineFormat::Csv => RenderFormat::Csv,
        MachineFormat::Json => RenderFormat::Json,
    };
    screen.out(render(format).trim_end());
    Ok(exit::PASS)
}
