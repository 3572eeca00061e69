//! PATCH_GENERATION: the agent whose turn it is proposes patches, and the policy reviews them. Of
//! several on an emulated board, the first that makes the tests pass is taken; for a real board they are
//! tried at an emulated place where the task names one.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use jig_model::chain;

use crate::agents::{AgentBudget, AgentError, Answer, PatchProposal, ProposalRequest};
use crate::git::GitError;
use crate::journal::{Digest, Fact, Proposed, StepResult, SubmittedPatch, Usage, now_ms};
use crate::limits::limit_reached;
use crate::machine::RepairEvent;
use crate::patch::Patch;
use crate::policy::{review, shadowed};
use crate::recovery::ErrorClass;
use crate::run::Run;
use crate::setup::{BaseSources, PatchSource, RepairSetup, ScreenError};
use crate::steps::{digest_of, failed, if_changed, part_done};

/// Longest time for one answer.
const MAX_TIME: Duration = Duration::from_secs(30 * 60);

/// Longest text of a hypothesis in the journal, in bytes.
const MAX_HYPOTHESIS: usize = 2000;

/// A proposal that may be applied.
struct Usable {
    id: String,
    /// The diff in the form that git is given: what was reviewed, and nothing else.
    diff: String,
    hypothesis: String,
}

pub(super) async fn run(setup: &RepairSetup, run: &Run) -> StepResult {
    let invalid = |class, why| failed(RepairEvent::PatchInvalid, class, why);
    // Before anything is paid for.
    if let Some(limit) = limit_reached(run, now_ms()) {
        return invalid(ErrorClass::ModelFailure, limit.to_string());
    }
    let named = setup.agent(run);
    let folder = setup.folder.iteration(run.iteration);
    let scratch = folder.join("agent");
    if let Err(error) = emptied(&scratch) {
        let why = format!("{}: {error}", scratch.display());
        return invalid(ErrorClass::UnhandledException, why);
    }
    let limits = run.contract.limits;
    let left = Usage {
        tokens: limits.tokens.saturating_sub(run.usage.tokens),
        micro_usd: limits.micro_usd.saturating_sub(run.usage.micro_usd),
    };
    let time = setup.time_left(run).min(MAX_TIME);
    let sources = match setup.base_sources(run).await {
        Ok(sources) => sources,
        Err(error) => return invalid(ErrorClass::UnhandledException, chain(&error)),
    };
    let request = ProposalRequest {
        bundle: folder.join("bundle"),
        suspects: setup.folder.suspects(run.iteration),
        scratch,
        base: run.contract.base.clone(),
        sources,
        budget: AgentBudget { left, time },
    };
    let is_program = matches!(&named.source, PatchSource::Agent(agent) if agent.runs_program());
    let before = if is_program { Some(setup.git.state().await) } else { None };
    let answer = match &named.source {
        PatchSource::Agent(agent) => setup.clock.during(agent.propose(&request)).await,
        PatchSource::Clients => match client_answer(setup, run) {
            Some(answer) => answer,
            None => {
                // Clients read the sources there.
                if let Err(error) = setup.hold(&request.base).await {
                    return invalid(ErrorClass::UnhandledException, chain(&error));
                }
                let iteration = run.iteration.to_string();
                let wanted = ["propose", &iteration, &request.base, setup.place.as_str()];
                let why = "a patch of a client is waited for";
                return part_done(why).with(Fact::Waits { digest: digest_of(&wanted) });
            }
        },
    };
    // Whatever it answers. A program has the rights to write to the work tree.
    setup.held.forget();
    if let Some(ended) = if_changed(setup, run) {
        return ended;
    }
    let changed = match before {
        // Beside it, the work tree is made ready for the patch.
        Some(before) => {
            let (after, _) = tokio::join!(setup.git.state(), setup.hold(&request.base));
            same_checkout(before, after).err()
        }
        None => None,
    };
    if let Some(why) = changed {
        let why = format!("{}: {why}", named.name);
        let used = answer.map_or_else(|error| error.usage, |answer| answer.usage);
        let refused = Fact::Refused { patch: String::new(), why: why.clone() };
        let result = invalid(ErrorClass::PolicyViolation, why);
        return result.with(refused).with(Fact::Used(used));
    }
    let Answer { proposals, usage, notes } = match answer {
        Ok(answer) => answer,
        Err(error) => {
            let why = format!("{}: {}", named.name, error.why);
            let refused = Fact::Refused { patch: String::new(), why: why.clone() };
            let used = Fact::Used(error.usage);
            return invalid(ErrorClass::ModelFailure, why).with(refused).with(used);
        }
    };
    let mut refusals = Vec::new();
    let mut usable = Vec::new();
    let repeats = matches!(&named.source, PatchSource::Agent(agent) if agent.is_deterministic());
    for proposal in proposals {
        match reviewed(setup, run, proposal, &request.sources) {
            Ok(Usable { id, .. }) if run.screened.contains(&id) => {}
            Ok(one) if usable.iter().all(|other: &Usable| other.id != one.id) => usable.push(one),
            Ok(_) => {}
            // It has no other answer: what was tried is no mistake of its own.
            Err((_, id, _)) if repeats && run.patches.contains(&id) => {}
            Err(refusal) => refusals.push(refusal),
        }
    }
    let mut screened = Vec::new();
    let diagnostic = setup.asks_for_diagnosis(run);
    // Before a real board is flashed a single candidate has to pass as well.
    let least = if setup.screen_place.is_some() { 1 } else { 2 };
    let screens = usable.len() >= least && setup.trial_place().is_some();
    let chosen = if screens && !diagnostic {
        match setup.screen(run, usable.iter().map(|one| one.diff.as_str())).await {
            Ok(trials) => {
                screened = usable.drain(..trials.failed).map(|one| one.id).collect();
                usable.into_iter().next().filter(|_| trials.passed)
            }
            Err(failure @ ScreenError::Host(_)) => {
                // As for the build of a candidate: no recovery of the rig brings the tools back.
                let class = ErrorClass::TestEnvFailure;
                return failed(RepairEvent::Abort, class, chain(&failure)).with(Fact::Used(usage));
            }
            Err(ScreenError::Rig(failure)) if failure.changed_file => {
                let class = ErrorClass::PolicyViolation;
                return failed(RepairEvent::Abort, class, failure.why).with(Fact::Used(usage));
            }
            Err(failure) => {
                // The answer is lost and paid for.
                let class = match failure {
                    ScreenError::Rig(_) => ErrorClass::TestEnvFailure,
                    _ => ErrorClass::UnhandledException,
                };
                return invalid(class, chain(&failure)).with(Fact::Used(usage));
            }
        }
    } else {
        usable.into_iter().next()
    };
    let screened = (!screened.is_empty()).then_some(Fact::Screened { patches: screened });
    let Some(Usable { id, diff, mut hypothesis }) = chosen else {
        let (class, why) = match refusals.first() {
            Some((class, _, why)) => (*class, format!("{}: {why}", named.name)),
            None => {
                let why = format!("{}: no further proposal makes the tests pass", named.name);
                (ErrorClass::ModelFailure, why)
            }
        };
        let refused = refusals.into_iter().map(|(_, patch, why)| Fact::Refused { patch, why });
        let mut result = invalid(class, why).with(Fact::Used(usage));
        result.facts.extend(refused.take(20));
        result.facts.extend(screened);
        return result;
    };
    let path = setup.folder.patch(&id);
    if let Err(error) = setup.folder.write(&path, diff.as_bytes()) {
        return invalid(ErrorClass::UnhandledException, format!("{}: {error}", path.display()));
    }
    hypothesis.truncate(hypothesis.floor_char_boundary(MAX_HYPOTHESIS));
    let first = hypothesis.lines().next().unwrap_or("no reason given");
    let notes: String = notes.iter().map(|note| format!("; {note}")).collect();
    let what = if diagnostic { " to diagnose" } else { "" };
    let reason = format!("{} proposes{what}: {first}{notes}", named.name);
    let agent = named.name.clone();
    let diff = Digest::of(diff.as_bytes()).to_string();
    let fact = Fact::Proposed(Proposed { patch: id, diff, agent, hypothesis, usage, diagnostic });
    let mut result = StepResult::of(RepairEvent::PatchValid, reason).with(fact);
    result.facts.extend(screened);
    result
}

/// Most entries of a checkout that a message shows.
const MAX_ENTRIES: usize = 5;

/// Says what has become of the user's checkout while a program was asked, if anything.
fn same_checkout(
    before: Result<BTreeSet<String>, GitError>,
    after: Result<BTreeSet<String>, GitError>,
) -> Result<(), String> {
    let (before, after) = before.and_then(|before| Ok((before, after?))).map_err(|e| chain(&e))?;
    let changed: Vec<_> = before.symmetric_difference(&after).map(|entry| shown(entry)).collect();
    if changed.is_empty() {
        return Ok(());
    }
    let shown = changed[..changed.len().min(MAX_ENTRIES)].join(", ");
    Err(format!("the checkout of the user was changed while it ran: {shown}"))
}

/// Returns the path of an entry of git's status, or what else it tells.
fn shown(entry: &str) -> &str {
    let fields = match entry.as_bytes().first() {
        Some(b'1') => 9,
        Some(b'u') => 11,
        _ => 2,
    };
    entry.splitn(fields, ' ').last().unwrap_or(entry)
}

/// Returns what clients answered to the run's wish for a patch; nothing if they have not yet.
fn client_answer(setup: &RepairSetup, run: &Run) -> Option<Result<Answer, AgentError>> {
    let failed = |why| Err(AgentError { why, usage: Usage::default() });
    if let Some(why) = &run.rejected {
        return Some(failed(format!("nobody proposes a patch: {why}")));
    }
    let SubmittedPatch { diff, hypothesis, .. } = run.submitted.clone()?;
    let path = setup.folder.submitted(&diff);
    Some(match fs::read_to_string(&path) {
        Ok(text) if Digest::of(text.as_bytes()).to_string() == diff => {
            let proposals = vec![PatchProposal { diff: text, hypothesis }];
            Ok(Answer { proposals, ..Answer::default() })
        }
        Ok(_) => failed(format!("{} is not what was submitted", path.display())),
        Err(error) => failed(format!("{}: {error}", path.display())),
    })
}

/// Reviews a proposal by the policy; returns what may be applied, or why it is refused.
fn reviewed(
    setup: &RepairSetup,
    run: &Run,
    proposal: PatchProposal,
    sources: &BaseSources,
) -> Result<Usable, (ErrorClass, String, String)> {
    let patch = Patch::read(&proposal.diff)
        .map_err(|error| (ErrorClass::ModelFailure, String::new(), error.to_string()))?;
    let id = patch.id();
    if run.patches.contains(&id) {
        let why = "the same change was proposed before".to_owned();
        return Err((ErrorClass::ModelFailure, id, why));
    }
    let policy = setup.policy.for_run(run);
    let mut refusals = review(&patch, &policy).refusals;
    refusals.extend(shadowed(&patch, &policy, sources));
    if refusals.is_empty() {
        return Ok(Usable { id, diff: patch.to_string(), hypothesis: proposal.hypothesis });
    }
    Err((ErrorClass::PolicyViolation, id, refusals.join("; ")))
}

fn emptied(folder: &std::path::Path) -> std::io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::create_dir_all(folder)
}

#[cfg(test)]
#[path = "propose_tests.rs"]
mod tests;
