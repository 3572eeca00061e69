//! Carrying out a command from the command line, and finding the run that it made.

use std::path::Path;
use std::sync::Arc;

use jig_model::Fault;
use jig_model::command::{Command, EventSink, Reply, RunReply};
use jig_rig::store::{RunDir, RunEntry, RunRecord, RunStore};
use tokio::sync::mpsc;

use super::rig::OpenRig;
use super::runtime::until_signalled;
use crate::failure::Failure;
use crate::render::Screen;

/// Carries out a command; a signal cancels it.
pub(crate) fn execute(
    rig: &OpenRig,
    command: Command,
    events: Arc<dyn EventSink>,
) -> Result<Reply, Failure> {
    let (_, none) = mpsc::channel(1);
    until_signalled(async |cancel| rig.execute(command, none, events, cancel).await)
}

/// Takes the answer to a command that makes a run, and opens the run.
pub(crate) fn ended_run(
    rig: &OpenRig,
    screen: &Screen,
    reply: Reply,
) -> Result<(RunDir, RunRecord), Failure> {
    let Reply::Run(RunReply { run, dir, not_struck, .. }) = reply else { return Err(unexpected()) };
    for fault in not_struck {
        screen.say(&format!("--inject {fault} has not struck: its moment did not come"));
    }
    // The folder of runs, or where a run is kept that lost its own.
    let runs = dir.parent().map_or_else(|| rig.runs_dir(), Path::to_owned);
    let RunEntry { dir, record, .. } = RunStore::new(runs).open(run.as_str())?;
    Ok((dir, record?))
}

/// An answer to another question.
pub(crate) fn unexpected() -> Failure {
    Failure::new(Fault::Bug, "the answer does not fit the command")
}
