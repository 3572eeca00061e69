//! `jig machine`.

use jig_model::exit;
use jig_rig::workflow::{RenderFormat, render};

use crate::args::{MachineCommand, MachineFormat};
use crate::failure::Failure;
use crate::render::Screen;

/// Prints a state machine; `--json` is short for `--format json`.
pub(crate) fn machine(screen: &Screen, command: MachineCommand) -> Result<u8, Failure> {
    let MachineCommand::Workflow { format } = command;
    let format = match format {
        _ if screen.json() => RenderFormat::Json,
        MachineFormat::Mermaid => RenderFormat::Mermaid,
        MachineFormat::Csv => RenderFormat::Csv,
        MachineFormat::Json => RenderFormat::Json,
    };
    screen.out(render(format).trim_end());
    Ok(exit::PASS)
}
