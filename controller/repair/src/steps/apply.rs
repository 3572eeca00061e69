//! PATCH_APPLY: the patch becomes one commit on the base, in the run's own work tree, after an
//! approval where the policy wants one.

use std::fs;

use jig_model::chain;

use crate::agents::templates::TEMPLATES;
use crate::git::GitError;
use crate::journal::{Digest, Fact, StepResult};
use crate::machine::RepairEvent;
use crate::patch::Patch;
use crate::policy::{review, shadowed};
use crate::recovery::ErrorClass;
use crate::run::Run;
use crate::setup::{BaseSources, BaseTreeError, RepairSetup};
use crate::steps::{digest_of, failed, part_done};

pub(super) async fn run(setup: &RepairSetup, run: &Run) -> StepResult {
    let refused = |class, why| failed(RepairEvent::ApplyFailed, class, why);
    let Some(proposed) = &run.proposed else {
        return refused(ErrorClass::UnhandledException, "no patch was proposed".to_owned());
    };
    let path = setup.folder.patch(&proposed.patch);
    // Another patch of the same identity is another one: the same lines may stand elsewhere.
    let is_it = |text: &String| Digest::of(text.as_bytes()).to_string() == proposed.diff;
    let text = fs::read_to_string(&path).ok().filter(is_it);
    let Some(Ok(patch)) = text.map(|text| Patch::read(&text)) else {
        let why = format!("{} is not the patch that was proposed", path.display());
        return refused(ErrorClass::UnhandledException, why);
    };
    let policy = setup.policy.for_run(run);
    let mut reviewed = review(&patch, &policy);
    // git finds the place of a hunk whose numbers are wrong: those of its own diff are right.
    if !reviewed.asks && run.test_code.may_print(&patch) {
        match exact(setup, run, &proposed.patch).await {
            Ok(Some(exact)) => reviewed = review(&exact, &policy),
            // It does not apply, which is said below.
            Ok(None) => {}
            Err(why) => return refused(ErrorClass::UnhandledException, why),
        }
    }
    let digest = digest_of(&["apply", &proposed.diff, &run.contract.base, setup.place.as_str()]);
    if let Some(why) = run.rejected.clone() {
        let why = format!("a person rejected the patch: {why}");
        let fact = Fact::Refused { patch: proposed.patch.clone(), why: why.clone() };
        return refused(ErrorClass::PolicyViolation, why).with(fact);
    }
    let by_template = proposed.agent == TEMPLATES && setup.policy.approve_templates;
    if (reviewed.asks || by_template) && !run.approved.contains(&digest) {
        let risk = (reviewed.risk * 100.0).round();
        let risks: String = reviewed.risks.iter().map(|risk| format!("; {risk}")).collect();
        let maker = if by_template { " of a template" } else { "" };
        // A person may look at the work tree meanwhile.
        setup.held.forget();
        let why =
            format!("the patch{maker} waits for an approval; its risk is {risk} of 100{risks}");
        return part_done(why).with(Fact::Waits { digest });
    }
    let sources = match setup.base_sources(run).await {
        Ok(sources) => sources,
        Err(error) => return refused(ErrorClass::UnhandledException, chain(&error)),
    };
    match commit(setup, run, &proposed.patch, &patch).await {
        Ok(commit) => {
            if let Err(why) = as_reviewed(setup, run, &commit, &patch, &sources).await {
                let why = format!("what git has committed is refused: {why}");
                let fact = Fact::Refused { patch: proposed.patch.clone(), why: why.clone() };
                setup.held.forget();
                return refused(ErrorClass::PolicyViolation, why).with(fact);
            }
            let reason = format!("committed as {}", &commit[..commit.len().min(12)]);
            let percent = (reviewed.risk * 100.0).round() as u64;
            let risk = if run.approved.contains(&digest) { 0 } else { percent };
            StepResult::of(RepairEvent::WorkspaceUpdated, reason)
                .with(Fact::Applied { commit, risk })
        }
        Err(ApplyError::Git(GitError::Failed { said, .. })) => {
            let why = format!("the patch does not apply: {said}{}", near(setup, run, &patch).await);
            let fact = Fact::Refused { patch: proposed.patch.clone(), why: why.clone() };
            refused(ErrorClass::PatchApplyFailure, why).with(fact)
        }
        Err(ApplyError::Git(error)) => refused(ErrorClass::UnhandledException, chain(&error)),
        Err(error) => {
            let why = chain(&error);
            let class = match &error {
                ApplyError::Base(BaseTreeError::Other(_)) => ErrorClass::PolicyViolation,
                _ => ErrorClass::UnhandledException,
            };
            let fact = Fact::Refused { patch: proposed.patch.clone(), why: why.clone() };
            refused(class, why).with(fact)
        }
    }
}

/// Says why there is no commit.
#[derive(Debug, thiserror::Error)]
enum ApplyError {
    #[error(transparent)]
    Base(#[from] BaseTreeError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("the files of the patch cannot be read")]
    File(#[from] std::io::Error),
}

async fn commit(
    setup: &RepairSetup,
    run: &Run,
    id: &str,
    patch: &Patch,
) -> Result<String, ApplyError> {
    let tree = setup.tree();
    setup.hold_base(run).await?;
    setup.held.forget();
    tree.apply(&setup.folder.patch(id)).await?;
    let hypothesis = run.proposed.as_ref().map(|p| p.hypothesis.as_str()).unwrap_or_default();
    let message = format!(
        "{}\n\n{hypothesis}\n\nProposed in repair run {}, iteration {}.\n",
        run.contract.goal, setup.name, run.iteration
    );
    let commit = tree.commit(&message).await?;
    setup.keep_patched_files(&commit, patch)?;
    setup.held.learn(&commit);
    Ok(commit)
}

/// Reviews what git has made of a patch: its files and no others, and nothing that the policy refuses.
async fn as_reviewed(
    setup: &RepairSetup,
    run: &Run,
    commit: &str,
    patch: &Patch,
    sources: &BaseSources,
) -> Result<(), String> {
    let diff = setup.tree().diff_of(&run.contract.base, commit, MAX_DIFF).await;
    let diff = diff.map_err(|error| chain(&error))?;
    let made = Patch::read(&String::from_utf8_lossy(&diff)).map_err(|error| error.to_string())?;
    let policy = setup.policy.for_run(run);
    let mut refusals = review(&made, &policy).refusals;
    refusals.extend(shadowed(&made, &policy, sources));
    if !refusals.is_empty() {
        return Err(refusals.join("; "));
    }
    let other =
        made.files.iter().find(|one| !patch.files.iter().any(|file| file.path() == one.path()));
    other.map_or(Ok(()), |file| Err(format!("{} is no file of the patch", file.path())))
}

/// Most bytes of a diff; a policy allows far less.
const MAX_DIFF: u64 = 16 << 20;

/// Applies a patch, and returns it as git tells it; nothing where it does not apply.
async fn exact(setup: &RepairSetup, run: &Run, id: &str) -> Result<Option<Patch>, String> {
    let (tree, base) = (setup.tree(), &run.contract.base);
    setup.hold_base(run).await.map_err(|error| chain(&error))?;
    setup.held.forget();
    if tree.apply(&setup.folder.patch(id)).await.is_err() {
        return Ok(None);
    }
    let diff = tree.diff(base, MAX_DIFF).await.map_err(|error| chain(&error))?;
    let patch = Patch::read(&String::from_utf8_lossy(&diff));
    patch.map(Some).map_err(|error| error.to_string())
}

/// Names files that exist near the ones that do not.
async fn near(setup: &RepairSetup, run: &Run, patch: &Patch) -> String {
    let Ok(files) = setup.files(run).await else { return String::new() };
    patch.missing_files(files).iter().map(|missing| format!("; {missing}")).collect()
}

#[cfg(test)]
#[path = "apply_tests.rs"]
mod tests;
