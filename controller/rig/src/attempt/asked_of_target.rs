//! What a plan asks of its target before it passes. Pure.

use jig_model::plan::{ActionKind, Assertion, Plan};

use crate::judge::AskedOfTarget;

/// Tells what a plan asks of its target.
///
/// A program of the host asks in its own way: its exit code is the plan's proof.
pub(super) fn asked_of_target(plan: &Plan) -> AskedOfTarget {
    let steps = plan.stages.iter().flat_map(|stage| &stage.steps);
    let actions = steps.flat_map(|step| &step.behaviors).flat_map(|behavior| &behavior.actions);
    let (mut presence, mut absence) = (false, !plan.reject.is_empty());
    for action in actions {
        match &action.kind {
            ActionKind::Assert { assertion: Assertion::Absent, .. } => absence = true,
            ActionKind::Expect { .. }
            | ActionKind::ExpectReset { .. }
            | ActionKind::Boot { .. }
            | ActionKind::WaitForResults { .. }
            | ActionKind::Exec { .. }
            | ActionKind::Upload { .. }
            | ActionKind::Download { .. }
            | ActionKind::Reboot { .. }
            | ActionKind::HostCommand { .. }
            | ActionKind::Assert { .. } => presence = true,
            ActionKind::Power { .. }
            | ActionKind::Reset
            | ActionKind::Deploy { .. }
            | ActionKind::Send { .. }
            | ActionKind::Sleep { .. } => {}
        }
    }
    match (presence, absence) {
        (true, _) => AskedOfTarget::Presence,
        (false, true) => AskedOfTarget::Absence,
        (false, false) => AskedOfTarget::Nothing,
    }
}
