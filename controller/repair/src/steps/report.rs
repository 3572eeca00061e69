//! SUCCESS, FAILURE and ABORTED: the result document, the report for people, the diff; then nothing of
//! the run is left in the repository but the branch of a success.

use std::fmt::Write as _;
use std::fs;

use jig_model::{chain, exit};
use serde::Serialize;

use crate::git::GitError;
use crate::journal::{StepResult, Usage};
use crate::localise::RankedSuspect;
use crate::machine::{RepairEvent, RepairState};
use crate::proof::{Confidence, ProofFacts, proven};
use crate::recovery::ErrorClass;
use crate::run::Run;
use crate::setup::RepairSetup;

/// The result of a run, as `result.json` has it.
#[derive(Debug, Serialize)]
pub struct RepairDocument {
    /// `jig-repair`.
    pub format: &'static str,
    /// Version of the document: 1.
    pub version: u32,
    /// The run.
    pub run: String,
    /// The final state.
    pub state: RepairState,
    /// Why it is final.
    pub why: String,
    /// Exit code of `jig repair`.
    pub exit_code: u8,
    /// What was to be reached.
    pub goal: String,
    /// Commit without a patch.
    pub base: String,
    /// Commit and branch of the repair, where there is one.
    pub commit: Option<String>,
    /// The diff, as a path.
    pub diff: Option<String>,
    /// The agent that proposed it.
    pub agent: Option<String>,
    /// Iterations that were begun.
    pub iterations: u64,
    /// Runs of the plan with a candidate.
    pub tests: usize,
    /// What the agents have used.
    pub usage: Usage,
    /// What the proof rests on.
    pub proof: Option<ProofFacts>,
    /// How much the proof says: `held-out`, `plausible`, or what it lacks.
    pub confidence: Option<String>,
    /// Time in milliseconds.
    pub duration_ms: u64,
    /// Time of it in which a build, the rig or an agent was at work.
    pub busy_ms: u64,
}

/// Returns the exit code of a run that has come to a final state.
pub fn exit_code(run: &Run) -> u8 {
    let class = run.error.map(|error| error.class);
    match run.ended.unwrap_or(run.state) {
        // A required test may still fail: accepted by the mode, and no pass.
        RepairState::Success => {
            let is_proven = run.proof.as_ref().is_some_and(|facts| proven(facts).is_ok());
            if is_proven { exit::PASS } else { exit::INCONCLUSIVE }
        }
        RepairState::Aborted if run.stop.is_some() => exit::CANCELLED,
        _ if class == Some(ErrorClass::TestEnvFailure) => exit::LAB,
        RepairState::Aborted => exit::INCONCLUSIVE,
        // There is no failure that could be repaired, or none any more.
        RepairState::Failure if run.baseline.is_none() || base_passes(run) => exit::INCONCLUSIVE,
        RepairState::Failure => exit::FAIL,
        _ => exit::INCONCLUSIVE,
    }
}

/// Tells whether the base passed when the proof ran it again.
fn base_passes(run: &Run) -> bool {
    let reverted = run.proof.as_ref().and_then(|facts| facts.reverted.as_ref());
    reverted.is_some_and(|reverted| reverted.passed)
}

pub(super) async fn run(setup: &RepairSetup, run: &Run) -> StepResult {
    // A run that was stopped stays a run that was stopped, whatever goes wrong here.
    let done = |reason| StepResult::of(RepairEvent::Reported, reason);
    let mut troubles = Vec::new();
    let is_proven = run.proof.as_ref().is_some_and(|facts| proven(facts).is_ok());
    let repaired = run.state == RepairState::Success && is_proven;
    let branch = format!("jig/repair/{}", setup.name);
    // What is no repair is kept as a patch, and is no branch of the user.
    if let Some(commit) = run.applied.as_ref().filter(|_| repaired) {
        let made = setup.git.set_branch(&branch, commit).await;
        troubles.extend(made.err().map(|error| chain(&error)));
    }
    if let Err(error) = remove_trees(setup).await {
        troubles.push(chain(&error));
    }
    let document = document(setup, run, repaired);
    let suspects = setup.folder.read_json(&setup.folder.suspects(run.iteration));
    let suspects: Vec<RankedSuspect> = suspects.unwrap_or_default();
    let text = markdown(run, &document) + &suspects_text(&suspects);
    let written = setup
        .folder
        .write_json(&setup.folder.document(), &document)
        .and_then(|()| setup.folder.write(&setup.folder.report(), text.as_bytes()));
    troubles.extend(written.err().map(|error| error.to_string()));
    if troubles.is_empty() {
        return done(format!("the report is {}", setup.folder.report().display()));
    }
    done(format!("the end is not complete: {}", troubles.join("; ")))
}

async fn remove_trees(setup: &RepairSetup) -> Result<(), GitError> {
    let path = setup.folder.tree();
    if path.exists() || setup.git.knows_tree(&path).await? {
        setup.git.work_tree_remove(&path).await?;
    }
    let _ = fs::remove_dir_all(setup.folder.scratch());
    Ok(())
}

fn document(setup: &RepairSetup, run: &Run, repaired: bool) -> RepairDocument {
    // What only shows a failure is no repair, and no beginning of one.
    let proposed = run.proposed.as_ref().filter(|proposed| !proposed.diagnostic);
    let diff = proposed.map(|proposed| setup.folder.patch(&proposed.patch));
    let diff = diff.filter(|path| path.is_file()).map(|path| path.display().to_string());
    let confidence = run.proof.as_ref().map(|facts| match proven(facts) {
        Ok(Confidence::HeldOut) => "held-out".to_owned(),
        Ok(Confidence::Plausible) => "plausible".to_owned(),
        Err(lacks) => lacks.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
    });
    RepairDocument {
        format: "jig-repair",
        version: 1,
        run: setup.name.clone(),
        state: run.state,
        why: run.why.clone(),
        exit_code: exit_code(run),
        goal: run.contract.goal.clone(),
        base: run.contract.base.clone(),
        commit: run.applied.clone().filter(|_| repaired),
        diff,
        agent: proposed.map(|proposed| proposed.agent.clone()),
        // What ends a run may be found out at the beginning of one more.
        iterations: run.iteration.min(run.contract.limits.iterations),
        tests: run.attempts.len(),
        usage: run.usage,
        proof: run.proof.clone(),
        confidence,
        duration_ms: crate::journal::now_ms().saturating_sub(run.begun_ms),
        busy_ms: run.busy_ms,
    }
}

/// Writes the report for people.
fn markdown(run: &Run, document: &RepairDocument) -> String {
    let mut text =
        format!("# Repair run {}: {}\n\n{}\n\n", document.run, document.state, document.why);
    // Writing to a text cannot fail.
    let mut row = |name: &str, value: String| {
        let _ = writeln!(text, "| {name} | {} |", value.replace('|', "\\|").replace('\n', " "));
    };
    row("goal", document.goal.clone());
    row("---", "---".to_owned());
    row("base", document.base.clone());
    if let Some(baseline) = &run.baseline {
        let counts = baseline.counts;
        row(
            "before",
            format!("{} of {} tests pass: {}", counts.passed, counts.total, baseline.signature),
        );
    }
    if let Some(last) = run.attempts.last() {
        let signature = last.signature.as_deref().unwrap_or("all pass");
        row(
            "after",
            format!("{} of {} tests pass: {signature}", last.counts.passed, last.counts.total),
        );
    }
    if let Some(commit) = &document.commit {
        row("repair", format!("{commit}, branch jig/repair/{}", document.run));
    }
    if let Some(diff) = &document.diff {
        row("last patch", diff.clone());
    }
    if let Some(agent) = &document.agent {
        row("proposed by", agent.clone());
    }
    if let Some(confidence) = &document.confidence {
        row("proof", confidence.clone());
    }
    row("iterations", document.iterations.to_string());
    row("tokens", document.usage.tokens.to_string());
    row("cost in USD", format!("{:.2}", document.usage.micro_usd as f64 / 1e6));
    row("exit code", document.exit_code.to_string());
    let _ = writeln!(text, "\nEvery transition with its reason: `jig repair log {}`", document.run);
    if document.confidence.as_deref() == Some("plausible") {
        text += "\nNo held-out plan was given: the repair makes the tests pass and is not proven \
                 beyond them. A person should read the diff.\n";
    }
    text
}

/// Suspect lines that the report shows.
const SHOWN_SUSPECTS: usize = 5;

/// Shows the first suspect lines of the last iteration, with what their rank comes from.
fn suspects_text(suspects: &[RankedSuspect]) -> String {
    if suspects.is_empty() {
        return String::new();
    }
    let mut text = "\n| rank | suspect line | score | measure | failed tests | passed tests |\n\
                    | --- | --- | --- | --- | --- | --- |\n"
        .to_owned();
    for one in suspects.iter().take(SHOWN_SUSPECTS) {
        let RankedSuspect { rank, file, line, score, failed_count, passed_count, .. } = one;
        let measure = one.measure.as_str();
        let file = file.replace('|', "\\|").replace('\n', " ");
        // Writing to a text cannot fail.
        let _ = writeln!(
            text,
            "| {rank} | {file}:{line} | {score} | {measure} | {failed_count} | {passed_count} |"
        );
    }
    text += "\n`ochiai`: the tests executed the line, as the emulator told; `call_graph`: they can \
             reach it, by the names in the sources.\n";
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convergence::TestCounts;
    use crate::journal::FailedBaseline;
    use crate::proof::{PASSES, PlanRun};
    use crate::run::StepError;
    use crate::runs_for_tests::begun;

    fn plan_run(passed: bool) -> PlanRun {
        PlanRun {
            run: String::new(),
            passed,
            planned: None,
            executed: 0,
            skipped: 0,
            passes: Vec::new(),
            image_seen: true,
        }
    }

    fn facts(reverted: bool) -> ProofFacts {
        ProofFacts {
            baseline: plan_run(false),
            runs: vec![plan_run(true); PASSES],
            clean_build: true,
            changed_protected: Vec::new(),
            reverted: Some(plan_run(reverted)),
            held_out: None,
            tests_not_run: None,
        }
    }

    fn ended(state: RepairState, change: impl FnOnce(&mut Run)) -> u8 {
        let mut run = begun(0);
        let (signature, id, image) = (String::new(), String::new(), String::new());
        let counts = TestCounts { passed: 0, total: 1 };
        run.baseline = Some(FailedBaseline { counts, signature, run: id, image, silent: false });
        run.ended = Some(state);
        change(&mut run);
        exit_code(&run)
    }

    #[test]
    fn each_end_has_its_exit_code() {
        use RepairState::{Aborted, Failure, Success};
        let failed = |class| StepError { class, state: RepairState::TestRun, retries: 3 };
        let rig = failed(ErrorClass::TestEnvFailure);
        assert_eq!(ended(Success, |run| run.proof = Some(facts(false))), exit::PASS);
        // Accepted with a warning: a required test fails.
        assert_eq!(ended(Success, |_| ()), exit::INCONCLUSIVE);
        assert_eq!(ended(Failure, |_| ()), exit::FAIL);
        assert_eq!(ended(Failure, |run| run.baseline = None), exit::INCONCLUSIVE);
        assert_eq!(ended(Failure, |run| run.proof = Some(facts(true))), exit::INCONCLUSIVE);
        assert_eq!(ended(Failure, |run| run.error = Some(rig)), exit::LAB);
        assert_eq!(ended(Aborted, |_| ()), exit::INCONCLUSIVE);
        assert_eq!(ended(Aborted, |run| run.error = Some(rig)), exit::LAB);
        // A run that is stopped while its rig fails was stopped.
        let stopped = |run: &mut Run| {
            (run.stop, run.error) = (Some("enough".to_owned()), Some(rig));
        };
        assert_eq!(ended(Aborted, stopped), exit::CANCELLED);
        let model = failed(ErrorClass::ModelFailure);
        assert_eq!(ended(Failure, |run| run.error = Some(model)), exit::FAIL);
    }
}
