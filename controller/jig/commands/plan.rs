//! `jig plan check`.

use jig_model::plan::Plan;

use super::check::{Checked, check_all};
use crate::args::PlanCommand;
use crate::failure::Failure;
use crate::render::Screen;

/// Reports every problem of plans at once.
pub(crate) fn plan(screen: &Screen, command: PlanCommand) -> Result<u8, Failure> {
    let PlanCommand::Check { files } = command;
    check_all(screen, &files, Vec::new(), |source| {
        let result = Plan::parse(&source.origin, &source.text);
        Checked { kind: "plan", result: result.map(|plan| summary(&plan)) }
    })
}

pub(super) fn summary(plan: &Plan) -> String {
    let steps: usize = plan.stages.iter().map(|stage| stage.steps.len()).sum();
    format!("{}, {} stages, {steps} steps", plan.name, plan.stages.len())
}
