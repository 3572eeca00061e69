//! Steps of a draft, numbered as they are added.

use serde_json::{Map, Value};

use crate::plan::{PlanDraft, PlanDraftStep};

/// Numbers steps as they are added.
#[derive(Debug, Default)]
pub(super) struct StepList(Vec<PlanDraftStep>);

impl StepList {
    /// Adds a step and returns its number.
    pub(super) fn add(
        &mut self,
        name: String,
        tool: &str,
        params: Value,
        expected: &str,
        dependencies: Vec<u32>,
    ) -> u32 {
        let step_id = u32::try_from(self.0.len()).unwrap_or(u32::MAX - 1) + 1;
        let params = match params {
            Value::Object(params) => params,
            _ => Map::new(),
        };
        self.0.push(PlanDraftStep {
            step_id,
            name,
            skill_name: tool.to_owned(),
            params,
            expected_output: expected.to_owned(),
            dependencies,
            optional: false,
        });
        step_id
    }

    /// Makes the last step one that only adds to the answer.
    pub(super) fn optional(&mut self) {
        if let Some(last) = self.0.last_mut() {
            last.optional = true;
        }
    }

    pub(super) fn drafted(self, summary: String) -> PlanDraft {
        PlanDraft { plan_summary: summary, steps: self.0, verification: None }
    }
}
