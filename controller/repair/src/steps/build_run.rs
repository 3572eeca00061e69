//! BUILD_RUN: the candidate is built in the sandbox. Before a patch is blamed for what no compiler says
//! of its files, the base is built as a control.

use std::fs;
use std::path::Path;

use jig_model::chain;

use crate::git::GitError;
use crate::journal::{Fact, StepResult};
use crate::machine::RepairEvent;
use crate::recovery::ErrorClass;
use crate::run::{RefusedProposal, Run};
use crate::setup::{BuildError, RepairSetup};
use crate::steps::failed;

pub(super) async fn run(setup: &RepairSetup, run: &Run) -> StepResult {
    let log = setup.folder.iteration(run.iteration).join("build.log");
    let error = match setup.build(&setup.folder.tree(), &log).await {
        Ok(built) => {
            let reason = format!("built image {}", &built.sha256[..12]);
            return StepResult::of(RepairEvent::BuildPassed, reason)
                .with(Fact::Built { image: built.sha256 });
        }
        Err(error) => error,
    };
    let why = chain(&error);
    let class = match control(setup, run, &error, &log).await {
        Ok(Some(base)) => {
            let why = format!("nor does the base build any more: {}; {why}", chain(&base));
            return failed(RepairEvent::BuildFailed, ErrorClass::TestEnvFailure, why);
        }
        Ok(None) if error.is_of_host() => ErrorClass::UnhandledException,
        Ok(None) => ErrorClass::BuildFailure,
        Err(error) => {
            let why = format!("the work tree cannot be reset: {}; {why}", chain(&error));
            return failed(RepairEvent::BuildFailed, ErrorClass::UnhandledException, why);
        }
    };
    let patch = run.proposed.as_ref().map(|p| p.patch.clone()).unwrap_or_default();
    let mut result = failed(RepairEvent::BuildFailed, class, why.clone());
    result.evidence = vec![setup.evidence_of_build(&log)];
    // The build behind a clean folder is the same candidate.
    if refused_here(run, &patch).next().is_none() {
        result.facts.push(Fact::Refused { patch, why });
    }
    result
}

/// Returns what was said of a candidate whose build failed before in this iteration.
fn refused_here<'r>(run: &'r Run, patch: &'r str) -> impl Iterator<Item = &'r RefusedProposal> {
    let here = run.refused.iter().filter(|one| one.iteration == run.iteration);
    here.filter(move |one| one.patch == patch)
}

/// Tells whether this candidate has failed in the same way before, when the host was not to blame.
fn failed_so_before(run: &Run, error: &BuildError) -> bool {
    let Some(proposed) = &run.proposed else { return false };
    let now = without_temporary(&chain(error));
    refused_here(run, &proposed.patch).any(|one| without_temporary(&one.why) == now)
}

/// Leaves out names of temporary files, which differ each time, such as those of a linker's input.
fn without_temporary(text: &str) -> String {
    let words = text.split_whitespace().filter(|word| !word.contains("/tmp/"));
    words.collect::<Vec<_>>().join(" ")
}

/// Returns why the base does not build, where that has to be known and it does not.
async fn control(
    setup: &RepairSetup,
    run: &Run,
    error: &BuildError,
    log: &Path,
) -> Result<Option<BuildError>, GitError> {
    let said = String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned();
    if !error.needs_control(&said, setup.files(run).await?) || failed_so_before(run, error) {
        return Ok(None);
    }
    setup.control(run, &log.with_file_name("control-build.log")).await
}
