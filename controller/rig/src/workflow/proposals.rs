//! Changes that were proposed and wait for their moment.
//!
//! The table raises a proposal only out of `action_running`, but a planner makes it in any
//! answer; so it is held here until an action has ended. Owns validity and the limit.

use jig_model::plan::Plan;

use super::location::Position;
use super::planning::{ContextUpdate, Proposal};

/// Most proposals of one workflow that are looked at. Each can make the plan longer, so
/// without a limit a planner could keep it from ending; people confirm a handful.
const MAX_PROPOSALS: u32 = 100;

/// Proposals that are held.
#[derive(Debug, Default)]
pub(super) struct Proposals {
    workflow: Option<Proposal>,
    /// With the stage it is about.
    steps: Option<(usize, Proposal)>,
    seen: u32,
}

impl Proposals {
    /// Holds what an answer proposes; a later proposal replaces an earlier one. Returns
    /// what people should know.
    pub(super) fn hold(
        &mut self,
        update: ContextUpdate,
        plan: &Plan,
        position: &Position,
    ) -> Vec<String> {
        let workflow = update.workflow_update.map(Proposal::Workflow);
        let steps = update.stage_steps_update.map(Proposal::Steps);
        let mut notes = Vec::new();
        for proposal in [workflow, steps].into_iter().flatten() {
            self.seen = self.seen.saturating_add(1);
            if self.seen > MAX_PROPOSALS {
                notes.push(format!("ignored a proposal: there were {MAX_PROPOSALS} before it"));
                continue;
            }
            if let Err(problems) = changed(&proposal, plan, position) {
                notes.push(format!("ignored a proposal: {problems}"));
                continue;
            }
            let replaced = match &proposal {
                Proposal::Workflow(_) => self.workflow.replace(proposal).is_some(),
                Proposal::Steps(_) => self.steps.replace((position.stage, proposal)).is_some(),
            };
            if replaced {
                notes.push("a proposal was replaced by a later one".to_owned());
            }
        }
        notes
    }

    /// Takes the next proposal that still fits, with the plan as it would be. One about
    /// steps of a stage that is over no longer fits.
    pub(super) fn take(&mut self, plan: &Plan, position: &Position) -> Option<(Proposal, Plan)> {
        let workflow = self.workflow.take();
        if let Some(found) = workflow.and_then(|p| with_change(p, plan, position)) {
            return Some(found);
        }
        let (stage, steps) = self.steps.take()?;
        (stage == position.stage).then(|| with_change(steps, plan, position)).flatten()
    }

    /// Tells how many were never raised.
    pub(super) fn left(&self) -> usize {
        usize::from(self.workflow.is_some()) + usize::from(self.steps.is_some())
    }
}

fn with_change(proposal: Proposal, plan: &Plan, position: &Position) -> Option<(Proposal, Plan)> {
    // It was valid when it was made; a confirmed change since then may have taken its names.
    let plan = changed(&proposal, plan, position).ok()?;
    Some((proposal, plan))
}

fn changed(
    proposal: &Proposal,
    plan: &Plan,
    position: &Position,
) -> Result<Plan, jig_model::Problems> {
    match proposal {
        Proposal::Workflow(update) => plan.with_stages(position.stage, update),
        Proposal::Steps(update) => plan.with_steps(position.stage, position.step, update),
    }
}
