//! What a model takes for the cause, where the task names one. Part of CODE_ANALYSIS.
//!
//! # Design
//! *Evidence, and nothing else.* The answer becomes a file of the bundle, beside the log and the suspect lines.
//! The state machine follows what builds and boards show, whatever the answer says is to come next.
//!
//! *Once an iteration.* The answer is asked for again only where a candidate was tested meanwhile. A model that
//! cannot be asked is no failure of the run: its agents are given what else there is.

use std::fs;
use std::path::Path;

use jig_agents::budget::PromptPart;
use jig_agents::roles::{AnalysisAnswer, RoleState};
use jig_model::result::CaseStatus;
use serde_json::{Map, Value, json};

use crate::agents::AgentBudget;
use crate::agents::analyst::AnalysisRequest;
use crate::bundle::{Bundle, BundleContent, BundlePart};
use crate::excerpt::beginning;
use crate::journal::{Fact, Usage};
use crate::run::Run;
use crate::setup::{PatchSource, PlanResult, RepairSetup};

/// Results of tests that the analyst is told.
const MAX_RESULTS: usize = 40;

/// What came of it: a remark for the log, and what it cost.
#[derive(Default)]
pub(super) struct Explained {
    pub(super) remark: String,
    pub(super) facts: Vec<Fact>,
}

/// Tells whether the analyst is to be asked: there is one, the agent whose turn it is reads evidence, and nothing
/// was said in this iteration.
pub(super) fn is_wanted(setup: &RepairSetup, run: &Run) -> bool {
    let reads = match &setup.agent(run).source {
        PatchSource::Agent(agent) => !agent.is_deterministic(),
        PatchSource::Clients => true,
    };
    setup.analyst.is_some() && reads && kept(&setup.folder.analysis(run.iteration)).is_none()
}

/// Asks for an explanation of a failure, and keeps it for the bundle.
pub(super) async fn explained(
    setup: &RepairSetup,
    run: &Run,
    shown: &PlanResult,
    evidence: Bundle,
) -> Explained {
    let (Some(analyst), Some(named)) = (&setup.analyst, &setup.task.analyst) else {
        return Explained::default();
    };
    let name = &named.name;
    let failed = |why: String, usage: Usage| Explained {
        remark: format!("; http:{name} explains nothing: {}", beginning(&why)),
        facts: vec![Fact::Used(usage)],
    };
    let scratch = setup.folder.iteration(run.iteration).join("analyst");
    if let Err(error) = fs::create_dir_all(&scratch) {
        return failed(format!("{}: {error}", scratch.display()), Usage::default());
    }
    let limits = run.contract.limits;
    let left = Usage {
        tokens: limits.tokens.saturating_sub(run.usage.tokens),
        micro_usd: limits.micro_usd.saturating_sub(run.usage.micro_usd),
    };
    let budget = AgentBudget { left, time: setup.time_left(run).min(analyst.time()) };
    // How a proposal is to be written is of no use for an explanation.
    let is_told = |part: BundlePart| !matches!(part, BundlePart::Task | BundlePart::Files);
    let told = evidence.files.into_iter().filter(|file| is_told(file.part));
    let parts = told.map(|file| PromptPart { name: file.part.file_name(), text: file.text });
    let mut state = state_of(setup, run, shown);
    let request = AnalysisRequest {
        goal: setup.task.goal.clone(),
        state: state.clone(),
        parts: parts.collect(),
        scratch,
        budget,
    };
    let explanation = match setup.clock.during(analyst.explain(&request)).await {
        Ok(explanation) => explanation,
        Err(error) => return failed(error.why, error.usage),
    };
    let answer = explanation.answer;
    state.read_analysis(&answer);
    let path = setup.folder.analysis(run.iteration);
    if let Err(error) = setup.folder.write_json(&path, &answer) {
        return failed(format!("{}: {error}", path.display()), explanation.usage);
    }
    let claims = state.errors.last().map_or_else(String::new, |error| format!(" ({error})"));
    let cause = match answer.root_cause.trim() {
        "" => &answer.summary,
        cause => cause,
    };
    let cause = setup.redactor.text(beginning(cause).as_str());
    Explained {
        remark: format!("; http:{name} takes for the cause: {cause}{claims}"),
        facts: vec![Fact::Used(explanation.usage)],
    }
}

/// Returns what was said of the failure in this iteration, as a file of the bundle.
pub(super) fn part(setup: &RepairSetup, run: &Run) -> Option<(BundlePart, BundleContent)> {
    setup.analyst.as_ref()?;
    let AnalysisAnswer { summary, root_cause, .. } = kept(&setup.folder.analysis(run.iteration))?;
    let claim =
        json!({ "summary": summary, "root_cause": root_cause, "standing": "a claim of a model" });
    let text = serde_json::to_string_pretty(&claim).unwrap_or_default() + "\n";
    Some((BundlePart::Analysis, BundleContent::Text(text)))
}

fn kept(path: &Path) -> Option<AnalysisAnswer> {
    serde_json::from_str(&fs::read_to_string(path).ok()?).ok()
}

/// Returns the state that roles share, as far as an explanation needs it. Results are those of the rig.
fn state_of(setup: &RepairSetup, run: &Run, shown: &PlanResult) -> RoleState {
    let text = |text: &str| Value::from(setup.redactor.text(text));
    let failed_first = |passed: bool| {
        let of =
            move |case: &&jig_model::result::TestCase| (case.status == CaseStatus::Pass) == passed;
        shown.verdict.tests.cases.iter().filter(of)
    };
    let results = failed_first(false).chain(failed_first(true)).take(MAX_RESULTS).map(|case| {
        let status = match case.status {
            CaseStatus::Pass => "passed",
            _ => "failed",
        };
        Map::from_iter([
            ("test".to_owned(), text(&case.name)),
            ("status".to_owned(), status.into()),
        ])
    });
    let mut results: Vec<_> = results.collect();
    if results.is_empty() {
        // A firmware that reports no test has failed as a whole.
        let cause = shown.verdict.cause.as_str();
        results.push(Map::from_iter([
            ("cause".to_owned(), cause.into()),
            ("status".to_owned(), "failed".into()),
        ]));
    }
    RoleState {
        task_id: setup.name.clone(),
        iteration: u32::try_from(run.iteration).unwrap_or(u32::MAX),
        current_commit: run.contract.base.clone(),
        test_results: results,
        ..RoleState::default()
    }
}
