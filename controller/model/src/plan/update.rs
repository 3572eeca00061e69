//! Changes of a plan that is under way, as a planner proposes them.
//!
//! Owns what of a plan may still change: only what has not begun. A proposal is written in
//! the plan language, as JSON, and is checked by the same rules.

use serde_json::Value;

use super::check::Names;
use super::lower::{Lowering, VERSION};
use super::raw::{RawStagesUpdate, RawStepsUpdate};
use super::types::Plan;
use crate::Problems;
use crate::document::{Findings, FromToml, open};

impl Plan {
    /// Returns the plan with other stages after the current one: `{"stage": [...]}`. An
    /// empty list ends the plan with the current stage.
    ///
    /// # Errors
    /// All problems of the proposal, which is shown as TOML.
    pub fn with_stages(&self, current: usize, update: &Value) -> Result<Self, Problems> {
        let mut plan = self.clone();
        plan.stages.truncate(current.saturating_add(1));
        let names = Names::of(plan.stages.iter().map(|stage| &stage.name));
        let stages = lowered::<RawStagesUpdate, _>(self, update, |raw, lowering| {
            Some(lowering.stages(raw.stage?.value, names))
        })?;
        plan.stages.extend(stages);
        Ok(plan)
    }

    /// Returns the plan with other steps after the current one of the current stage:
    /// `{"step": [...]}`. An empty list ends the stage with the current step.
    ///
    /// # Errors
    /// All problems of the proposal, which is shown as TOML.
    pub fn with_steps(
        &self,
        stage: usize,
        current: usize,
        update: &Value,
    ) -> Result<Self, Problems> {
        let mut plan = self.clone();
        let Some(stage) = plan.stages.get_mut(stage) else { return Ok(plan) };
        stage.steps.truncate(current.saturating_add(1));
        let names = Names::of(stage.steps.iter().map(|step| &step.name));
        let steps = lowered::<RawStepsUpdate, _>(self, update, |raw, lowering| {
            Some(lowering.steps(raw.step?.value, names))
        })?;
        stage.steps.extend(steps);
        Ok(plan)
    }
}

fn lowered<R: FromToml, T>(
    plan: &Plan,
    update: &Value,
    lower: impl FnOnce(R, &mut Lowering<'_>) -> Option<T>,
) -> Result<T, Problems> {
    const KIND: &str = "proposed change";
    const ORIGIN: &str = "planner";
    let findings = Findings::new();
    let text = match as_toml(update) {
        Ok(text) => text,
        Err(error) => {
            let help = "write an object in the plan language, without null";
            findings.add("plan::bad-update", None, format!("no plan: {error}"), help);
            return findings.finish(KIND, ORIGIN, "", None);
        }
    };
    let value = open::<R>(KIND, VERSION, &text, &findings).and_then(|raw| {
        lower(raw.value, &mut Lowering::new(plan.timeout, &findings).already_running())
    });
    findings.finish(KIND, ORIGIN, &text, value)
}

/// Writes a proposal as a document, so that the one reader of plans can read it.
fn as_toml(update: &Value) -> Result<String, toml::ser::Error> {
    let mut table = toml::Table::try_from(update)?;
    table.entry("version").or_insert(toml::Value::Integer(i64::from(VERSION)));
    toml::to_string(&table)
}
