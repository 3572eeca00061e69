//! From a draft to a plan that can be carried out.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use super::danger::{BoardNature, call_danger};
use super::draft::PlanDraft;
use super::problem::{PlanProblem, VerificationCommandError, refused};
use super::references::{StepOutcomes, referred, resolve};
use super::types::{
    Artifact, ArtifactKind, RiskLevel, SessionPlan, SessionStep, StepStatus, ToolCallTemplate,
    VerificationMode, VerificationPolicy,
};
use crate::error::OperatorError;
use crate::tools::{ToolCall, ToolList};

/// Most steps of a plan: one that goes on for ever has more.
const MAX_STEPS: usize = 64;

/// Longest text that a plan may use for a name or a sentence.
const MAX_TEXT: usize = 2000;

/// What a plan is made for.
#[derive(Debug, Clone)]
pub struct PlanOrigin {
    /// The name of the plan.
    pub plan_id: String,
    /// The goal, in the words of the request.
    pub goal: String,
    /// When it is made.
    pub created_at: Timestamp,
}

/// Checks a draft and lowers it. Steps keep their numbers and get an order that respects dependencies.
///
/// # Errors
/// The draft names a tool that there is not, a call does not fit its schema, dependencies are circular, or
/// a bound is passed. All of it is told at once.
pub fn lower(
    draft: &PlanDraft,
    origin: PlanOrigin,
    tools: &ToolList,
    boards: &BTreeMap<String, BoardNature>,
) -> Result<SessionPlan, OperatorError> {
    let mut wrong = Vec::new();
    if draft.steps.is_empty() || draft.steps.len() > MAX_STEPS {
        let found = draft.steps.len();
        return Err(refused(&[PlanProblem::StepCount { most: MAX_STEPS, found }]));
    }
    let ids: BTreeSet<u32> = draft.steps.iter().map(|step| step.step_id).collect();
    if ids.len() != draft.steps.len() || ids.contains(&0) {
        wrong.push(PlanProblem::Numbers);
    }
    let mut risk_level = RiskLevel::Low;
    let mut steps = Vec::new();
    for step in &draft.steps {
        let number = step.step_id;
        let args = Value::Object(step.params.clone());
        let refers = match referred(&args) {
            Ok(refers) => refers,
            Err(why) => {
                wrong.push(PlanProblem::Call { step: number, why });
                continue;
            }
        };
        if [&step.name, &step.expected_output, &step.skill_name]
            .iter()
            .any(|text| text.len() > MAX_TEXT)
        {
            wrong.push(PlanProblem::LongText { step: number, most: MAX_TEXT });
            continue;
        }
        let needs: BTreeSet<u32> =
            step.dependencies.iter().copied().chain(refers.iter().copied()).collect();
        let unknown = needs.iter().filter(|id| !ids.contains(id));
        wrong.extend(unknown.map(|&on| PlanProblem::NoSuchStep { step: number, on }));
        let call = ToolCall::new(&step.skill_name, args.clone());
        // Where a value comes from an earlier step, the schema is checked before the call.
        let tool = match tools.find(&step.skill_name) {
            Some(tool) if !refers.is_empty() => Ok(tool),
            _ => tools.checked(&call),
        };
        let tool = match tool {
            Ok(tool) => tool,
            Err(why) => {
                wrong.push(PlanProblem::Call { step: number, why });
                continue;
            }
        };
        let place = args.get("place").and_then(Value::as_str);
        let nature = place.and_then(|place| boards.get(place)).copied().unwrap_or_default();
        // References hide arguments: then the greatest risk of the tool counts.
        let risk = if refers.is_empty() { tool.risk(&args) } else { tool.risk };
        let danger = call_danger(&tool.name, risk, nature);
        if step.optional && !risk.read_only {
            wrong.push(PlanProblem::OptionalAct(number));
        }
        if danger.confirm && !refers.is_empty() {
            wrong.push(PlanProblem::HiddenArgument(number));
        }
        risk_level = risk_level.max(danger.level);
        let (expected_artifacts, rollback_hint) = leaves(&tool.name, &args, place);
        steps.push((
            step.step_id,
            needs.clone(),
            SessionStep {
                step_id: step.step_id.to_string(),
                title: step.name.clone(),
                intent: step.expected_output.clone(),
                tool_calls: vec![ToolCallTemplate {
                    tool: tool.name.clone(),
                    args,
                    after: needs.iter().map(u32::to_string).collect(),
                    optional: step.optional,
                }],
                expected_artifacts,
                status: StepStatus::Pending,
                rollback_hint,
            },
        ));
    }
    let verification = draft.verification.clone().unwrap_or_else(|| {
        let makes_runs =
            draft.steps.iter().any(|step| matches!(step.skill_name.as_str(), "run" | "test"));
        if makes_runs { VerificationPolicy::verdicts() } else { VerificationPolicy::none() }
    });
    check_verification(&verification, tools, &mut wrong);
    let steps = if wrong.is_empty() { in_order(steps, &mut wrong) } else { Vec::new() };
    if !wrong.is_empty() {
        return Err(refused(&wrong));
    }
    let PlanOrigin { plan_id, goal, created_at } = origin;
    let constraints = vec!["only the steps that are shown are carried out".to_owned()];
    Ok(SessionPlan { plan_id, goal, constraints, steps, verification, risk_level, created_at })
}

/// Says what a call leaves, and how it is undone by hand.
fn leaves(tool: &str, args: &Value, place: Option<&str>) -> (Vec<Artifact>, String) {
    let Some(place) = place else { return (Vec::new(), String::new()) };
    let artifact = |kind| vec![Artifact { kind, of: place.to_owned() }];
    let flash_again = format!("flash the image that was on it: jig flash -b {place} IMAGE");
    match tool {
        "run" | "test" => {
            let hint = if args.get("image").is_some() { flash_again } else { String::new() };
            (artifact(ArtifactKind::Run), hint)
        }
        "flash" | "erase" => (artifact(ArtifactKind::Flash), flash_again),
        "power" => {
            let hint = match args.get("action").and_then(Value::as_str) {
                Some("on") => format!("jig power -b {place} off"),
                Some("off") => format!("jig power -b {place} on"),
                _ => String::new(),
            };
            (artifact(ArtifactKind::State), hint)
        }
        "recover" | "reset" | "check" => (artifact(ArtifactKind::State), String::new()),
        _ => (artifact(ArtifactKind::Answer), String::new()),
    }
}

/// Reads a command of a verification: the name of a tool, and its arguments.
pub(crate) fn verification_call(command: &str) -> Result<ToolCall, VerificationCommandError> {
    let (name, args) = command.split_once(char::is_whitespace).unwrap_or((command, "{}"));
    let args: Value = serde_json::from_str(args).map_err(|error| VerificationCommandError {
        command: name.chars().take(64).collect(),
        why: error.to_string(),
    })?;
    Ok(ToolCall::new(name, args))
}

fn check_verification(policy: &VerificationPolicy, tools: &ToolList, wrong: &mut Vec<PlanProblem>) {
    if policy.mode == VerificationMode::Build {
        wrong.push(PlanProblem::BuildVerification);
    }
    if policy.commands.len() > MAX_STEPS {
        wrong.push(PlanProblem::CommandCount(MAX_STEPS));
        return;
    }
    for command in &policy.commands {
        let call = match verification_call(command) {
            Ok(call) => call,
            Err(error) => {
                wrong.push(error.into());
                continue;
            }
        };
        match tools.checked(&call) {
            Err(error) => wrong.push(PlanProblem::VerificationCall(error)),
            Ok(tool) if !tool.risk(&call.arguments).read_only => {
                wrong.push(PlanProblem::VerificationActs(tool.name.clone()));
            }
            Ok(_) => {}
        }
    }
}

/// Puts steps behind those that they depend on, keeping the order that they were written in otherwise.
fn in_order(
    steps: Vec<(u32, BTreeSet<u32>, SessionStep)>,
    wrong: &mut Vec<PlanProblem>,
) -> Vec<SessionStep> {
    let mut left = steps;
    let (mut placed, mut ordered) = (BTreeSet::new(), Vec::new());
    while !left.is_empty() {
        let Some(at) = left.iter().position(|(_, needs, _)| needs.is_subset(&placed)) else {
            wrong.push(PlanProblem::Circle(left.iter().map(|(id, ..)| *id).collect()));
            return Vec::new();
        };
        let (id, _, step) = left.remove(at);
        placed.insert(id);
        ordered.push(step);
    }
    ordered
}

/// Returns the arguments of a call, with references replaced, checked against the schema.
///
/// # Errors
/// A reference leads nowhere, or the arguments do not fit the tool.
pub(crate) fn bound_call(
    template: &ToolCallTemplate,
    outcomes: &StepOutcomes,
    tools: &ToolList,
) -> Result<ToolCall, OperatorError> {
    let call = ToolCall::new(&template.tool, resolve(&template.args, outcomes)?);
    tools.checked(&call)?;
    Ok(call)
}
