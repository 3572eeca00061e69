//! BUILD_SETUP: the work tree holds the candidate and nothing else, and the program of the build
//! exists.

use std::path::Path;

use jig_model::chain;

use crate::journal::StepResult;
use crate::machine::RepairEvent;
use crate::recovery::ErrorClass;
use crate::run::Run;
use crate::setup::RepairSetup;
use crate::steps::failed;
use crate::toolchain::MissingProgram;

pub(super) async fn run(setup: &RepairSetup, run: &Run) -> StepResult {
    let commit = run.applied.as_ref().unwrap_or(&run.contract.base);
    if let Err(error) = setup.hold(commit).await {
        let why = format!("the work tree cannot be reset: {}", chain(&error));
        // A git that was killed has left its lock, most likely: a clean build folder has none.
        return failed(RepairEvent::ToolchainMissing, ErrorClass::BuildFailure, why);
    }
    let program = setup.task.build.command.first().map_or("", String::as_str);
    if !program.contains('/') && !in_search_path(setup, program) {
        let fix = MissingProgram { name: program.to_owned() }.fix();
        let why = format!("{program} is not installed any more: the base was built with it{fix}");
        // It was there at the baseline, and no patch can remove it.
        return failed(RepairEvent::ToolchainMissing, ErrorClass::TestEnvFailure, why);
    }
    StepResult::of(
        RepairEvent::BuildReady,
        format!("the work tree holds {}", &commit[..12.min(commit.len())]),
    )
}

fn in_search_path(setup: &RepairSetup, program: &str) -> bool {
    std::env::split_paths(&setup.search_path)
        .any(|folder: std::path::PathBuf| Path::new(&folder).join(program).is_file())
}
