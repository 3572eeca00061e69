//! A plan as a planner writes it: JSON that a person or a model can write, too.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::types::{SessionPlan, VerificationPolicy};
use crate::error::{OperatorCode, OperatorError};

/// Most bytes of a draft.
pub const MAX_DRAFT: usize = 256 << 10;

/// A plan as it is written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanDraft {
    /// What the plan does, in a sentence.
    pub plan_summary: String,
    /// Its steps.
    pub steps: Vec<PlanDraftStep>,
    /// How it is verified; by the verdicts of its runs if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<VerificationPolicy>,
}

/// A step as it is written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanDraftStep {
    /// Its number; each number occurs once.
    pub step_id: u32,
    /// What is done, in a few words.
    pub name: String,
    /// The tool.
    pub skill_name: String,
    /// Its arguments. A text that is all `${steps.N.PATH}` stands for a part of the result of step N.
    #[serde(default)]
    pub params: Map<String, Value>,
    /// What is expected of it, in words.
    #[serde(default)]
    pub expected_output: String,
    /// The steps whose results it needs.
    #[serde(default)]
    pub dependencies: Vec<u32>,
    /// The plan goes on where this step fails: it only adds to the answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

impl SessionPlan {
    /// Returns the plan in the form that a planner writes.
    pub fn drafted(&self) -> PlanDraft {
        let steps = self.steps.iter().filter_map(|step| {
            let call = step.tool_calls.first()?;
            let params = match &call.args {
                Value::Object(params) => params.clone(),
                _ => Map::new(),
            };
            Some(PlanDraftStep {
                step_id: step.step_id.parse().ok()?,
                name: step.title.clone(),
                skill_name: call.tool.clone(),
                params,
                expected_output: step.intent.clone(),
                dependencies: call.after.iter().filter_map(|id| id.parse().ok()).collect(),
                optional: call.optional,
            })
        });
        PlanDraft {
            plan_summary: self.goal.clone(),
            steps: steps.collect(),
            verification: Some(self.verification.clone()),
        }
    }
}

/// Reads a draft.
///
/// # Errors
/// It is too long, is not JSON, or has other fields than a draft.
pub fn read_draft(text: &str) -> Result<PlanDraft, OperatorError> {
    let bad = |message: String| {
        OperatorError::new(OperatorCode::Model, message)
            .next("jig ask --plan-only \"REQUEST\" --json shows a plan of the right form")
            .untouched()
    };
    if text.len() > MAX_DRAFT {
        return Err(bad(format!(
            "a plan has at most {MAX_DRAFT} bytes, and this one {}",
            text.len()
        )));
    }
    serde_json::from_str(text).map_err(|error| bad(format!("this is no plan: {error}")))
}
