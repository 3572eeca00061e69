//! Which steps are carried out side by side.
//!
//! # Design
//! *Waves, not threads of steps.* All steps of a wave begin together, and the next wave begins when the
//! last of them has ended. So the state of a session between two rows of its journal is a set of finished
//! steps, and the planner's machine needs no second state per board.

use std::collections::BTreeSet;

use super::types::{Step, StepStatus};

/// Most steps at a time: each may hold an emulator.
const MAX_WAVE: usize = 8;

/// Lists the steps, by their places in the plan, that are next: all they depend on is done, and no two of
/// them are about one board. Steps that only read are about none.
pub fn next_wave(steps: &[Step], board_of: impl Fn(&Step) -> Option<String>) -> Vec<usize> {
    let done: BTreeSet<&str> = steps
        .iter()
        .filter(|step| matches!(step.status, StepStatus::Done | StepStatus::Skipped))
        .map(|step| step.step_id.as_str())
        .collect();
    let (mut wave, mut boards) = (Vec::new(), BTreeSet::new());
    for (at, step) in steps.iter().enumerate() {
        let open = matches!(step.status, StepStatus::Pending | StepStatus::InProgress);
        let mut needs = step.tool_calls.iter().flat_map(|call| &call.after);
        if wave.len() == MAX_WAVE || !open {
            continue;
        }
        let board = board_of(step);
        let ready = needs.all(|id| done.contains(id.as_str()));
        // A step that waits keeps later ones off its board: they were planned behind it.
        let free = board.is_none_or(|board| boards.insert(board));
        if ready && free {
            wave.push(at);
        }
    }
    wave
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plan::ToolCallTemplate;

    fn step(id: &str, board: &str, after: &[&str], status: StepStatus) -> Step {
        let call = ToolCallTemplate {
            tool: "run".to_owned(),
            args: json!({ "place": board }),
            after: after.iter().map(|&id| id.to_owned()).collect(),
            optional: false,
        };
        Step {
            step_id: id.to_owned(),
            title: String::new(),
            intent: String::new(),
            tool_calls: vec![call],
            expected_artifacts: Vec::new(),
            status,
            rollback_hint: String::new(),
        }
    }

    fn wave(steps: &[Step]) -> Vec<usize> {
        next_wave(steps, |step| {
            let board = step.tool_calls[0].args["place"].as_str().unwrap_or_default();
            (!board.is_empty()).then(|| board.to_owned())
        })
    }

    #[test]
    fn steps_of_different_boards_run_side_by_side_and_those_of_one_in_their_order() {
        use StepStatus::{Done, Pending};
        let mut steps = vec![
            step("1", "a", &[], Pending),
            step("2", "a", &[], Pending),
            step("3", "b", &[], Pending),
            step("4", "b", &["3"], Pending),
            step("5", "", &[], Pending),
            step("6", "", &["1"], Pending),
        ];
        assert_eq!(wave(&steps), [0, 2, 4]);
        for at in [0, 2, 4] {
            steps[at].status = Done;
        }
        assert_eq!(wave(&steps), [1, 3, 5]);
        for step in &mut steps {
            step.status = Done;
        }
        assert_eq!(wave(&steps), [0; 0]);
    }

    #[test]
    fn a_step_that_waits_keeps_its_board_and_a_wave_is_bounded() {
        use StepStatus::Pending;
        let waiting = [
            step("1", "", &[], Pending),
            step("2", "a", &["1"], Pending),
            step("3", "a", &[], Pending),
        ];
        assert_eq!(wave(&waiting), [0]);
        let many: Vec<_> = (0..20).map(|n| step(&n.to_string(), "", &[], Pending)).collect();
        assert_eq!(wave(&many).len(), MAX_WAVE);
    }
}
