//! From a draft to a plan that can be carried out.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use super::danger::{BoardNature, call_danger};
use super::draft::PlanDraft;
use super::references::{StepOutcomes, referred, resolve};
use super::types::{
    Artifact, ArtifactKind, Plan, RiskLevel, Step, StepStatus, ToolCallTemplate, VerificationMode,
    VerificationPolicy,
};
use crate::error::{OperatorCode, OperatorError};
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
) -> Result<Plan, OperatorError> {
    let mut wrong = Vec::new();
    if draft.steps.is_empty() || draft.steps.len() > MAX_STEPS {
        wrong
            .push(format!("a plan has 1 to {MAX_STEPS} steps, and this one {}", draft.steps.len()));
        return Err(refused(&wrong));
    }
    let ids: BTreeSet<u32> = draft.steps.iter().map(|step| step.step_id).collect();
    if ids.len() != draft.steps.len() || ids.contains(&0) {
        wrong.push("each step has a number of its own, from 1".to_owned());
    }
    let mut risk_level = RiskLevel::Low;
    let mut steps = Vec::new();
    for step in &draft.steps {
        let mut complain = |why: String| wrong.push(format!("step {}: {why}", step.step_id));
        let args = Value::Object(step.params.clone());
        let refers = match referred(&args) {
            Ok(refers) => refers,
            Err(error) => {
                complain(error.message);
                continue;
            }
        };
        if [&step.name, &step.expected_output, &step.skill_name]
            .iter()
            .any(|text| text.len() > MAX_TEXT)
        {
            complain(format!("a text is longer than {MAX_TEXT} bytes"));
            continue;
        }
        let needs: BTreeSet<u32> =
            step.dependencies.iter().copied().chain(refers.iter().copied()).collect();
        for unknown in needs.iter().filter(|id| !ids.contains(id)) {
            complain(format!("it depends on step {unknown}, which is not there"));
        }
        let call = ToolCall::new(&step.skill_name, args.clone());
        // Where a value comes from an earlier step, the schema is checked before the call.
        let tool = match tools.find(&step.skill_name) {
            Some(tool) if !refers.is_empty() => Ok(tool),
            _ => tools.checked(&call),
        };
        let tool = match tool {
            Ok(tool) => tool,
            Err(error) => {
                complain(error.message);
                continue;
            }
        };
        let place = args.get("place").and_then(Value::as_str);
        let nature = place.and_then(|place| boards.get(place)).copied().unwrap_or_default();
        // References hide arguments: then the greatest risk of the tool counts.
        let risk = if refers.is_empty() { tool.risk(&args) } else { tool.risk };
        let danger = call_danger(&tool.name, risk, nature);
        if step.optional && !risk.read_only {
            complain("only a step that reads may be optional".to_owned());
        }
        if danger.confirm && !refers.is_empty() {
            // What is confirmed has to be shown, and a result is not known yet.
            complain(
                "a call that waits for a confirmation takes no argument from a result".to_owned(),
            );
        }
        risk_level = risk_level.max(danger.level);
        let (expected_artifacts, rollback_hint) = leaves(&tool.name, &args, place);
        steps.push((
            step.step_id,
            needs.clone(),
            Step {
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
    Ok(Plan { plan_id, goal, constraints, steps, verification, risk_level, created_at })
}

fn refused(wrong: &[String]) -> OperatorError {
    let shown: Vec<_> = wrong.iter().take(8).cloned().collect();
    OperatorError::new(OperatorCode::Model, format!("the plan is refused: {}", shown.join("; ")))
        .untouched()
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
pub(crate) fn verification_call(command: &str) -> Result<ToolCall, String> {
    let (name, args) = command.split_once(char::is_whitespace).unwrap_or((command, "{}"));
    let args: Value = serde_json::from_str(args)
        .map_err(|error| format!("the arguments of verification command {name:?}: {error}"))?;
    Ok(ToolCall::new(name, args))
}

fn check_verification(policy: &VerificationPolicy, tools: &ToolList, wrong: &mut Vec<String>) {
    if policy.mode == VerificationMode::Build {
        wrong.push(
            "this rig takes images and builds none: verification cannot be `build`".to_owned(),
        );
    }
    if policy.commands.len() > MAX_STEPS {
        wrong.push(format!("a verification has at most {MAX_STEPS} commands"));
        return;
    }
    for command in &policy.commands {
        let call = match verification_call(command) {
            Ok(call) => call,
            Err(why) => {
                wrong.push(why);
                continue;
            }
        };
        match tools.checked(&call) {
            Err(error) => wrong.push(format!("verification: {}", error.message)),
            Ok(tool) if !tool.risk(&call.arguments).read_only => {
                wrong.push(format!("verification: {} does not only read", tool.name));
            }
            Ok(_) => {}
        }
    }
}

/// Puts steps behind those that they depend on, keeping the order that they were written in otherwise.
fn in_order(steps: Vec<(u32, BTreeSet<u32>, Step)>, wrong: &mut Vec<String>) -> Vec<Step> {
    let mut left = steps;
    let (mut placed, mut ordered) = (BTreeSet::new(), Vec::new());
    while !left.is_empty() {
        let Some(at) = left.iter().position(|(_, needs, _)| needs.is_subset(&placed)) else {
            let names: Vec<_> = left.iter().map(|(id, ..)| id.to_string()).collect();
            wrong.push(format!("steps {} depend on each other", names.join(", ")));
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
