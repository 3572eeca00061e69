//! `jig repair`: begins, drives and shows repair runs.

mod answer;
mod door;
mod drive;
mod folders;
pub(crate) mod host;
mod learn;
mod mcp;
mod show;
mod start;

pub(crate) use folders::rig_runs;
pub(crate) use learn::capture_repair;

use crate::args::{Common, RepairArgs, RepairCommand, RepairRun};
use crate::failure::Failure;
use crate::render::Screen;

/// Does what was asked. What drives a run ends with the run's exit code.
pub(crate) fn repair(common: &Common, screen: &Screen, args: RepairArgs) -> Result<u8, Failure> {
    match args.command {
        None => start::start(common, screen, args.start),
        Some(RepairCommand::Status { run: None }) => show::list(common, screen),
        Some(RepairCommand::Status { run: Some(run) }) => show::status(common, screen, &run),
        Some(RepairCommand::Watch(RepairRun { run })) => show::watch(common, screen, &run),
        Some(RepairCommand::Log(RepairRun { run })) => show::log(common, screen, &run),
        Some(RepairCommand::Export { run, format }) => {
            show::export(common, screen, &run.run, format)
        }
        Some(RepairCommand::Resume(RepairRun { run })) => start::resume(common, screen, &run),
        Some(RepairCommand::Fork { from }) => start::fork(common, screen, &from),
        Some(RepairCommand::Stop { run, why }) => answer::stop(common, screen, &run.run, why),
        Some(RepairCommand::Approve { run, digest }) => {
            answer::approve(common, screen, &run.run, &digest)
        }
        Some(RepairCommand::Submit { run, patch, why }) => {
            answer::submit(common, screen, &run.run, &patch, &why)
        }
        Some(RepairCommand::Mcp(RepairRun { run })) => mcp::serve(common, &run),
        Some(RepairCommand::Reject { run, why }) => answer::reject(common, screen, &run.run, why),
    }
}
