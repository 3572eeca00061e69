//! The machine against its table, exhaustively.

use std::collections::HashMap;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::workflow::table::{TRANSITIONS, next};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// The truth: what was agreed on, not what the code says.
fn conformance() -> HashMap<(State, Event), (State, Owner)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/conformance/workflow-transitions.csv");
    let text = std::fs::read_to_string(path).unwrap();
    let mut truth = HashMap::new();
    for line in text.lines().skip(1) {
        let fields: Vec<_> = line.split(',').collect();
        let [from, event, to, owner] = fields[..] else { panic!("{line}") };
        let pair = (from.parse().unwrap(), event.parse().unwrap());
        assert!(
            truth.insert(pair, (to.parse().unwrap(), owner.parse().unwrap())).is_none(),
            "{line} occurs twice"
        );
    }
    truth
}

/// Puts a machine into a state by a shortest legal way.
fn machine_in(goal: State) -> WorkflowMachine {
    let mut ways = vec![(State::Idle, Vec::new())];
    let mut seen = vec![State::Idle];
    let mut head = 0;
    while head < ways.len() {
        let (state, way) = ways[head].clone();
        if state == goal {
            let mut machine = WorkflowMachine::new(at(0));
            for t in way {
                let t: &crate::workflow::Transition = t;
                machine.apply(t.event, t.owner, at(1)).unwrap();
            }
            return machine;
        }
        for t in TRANSITIONS.iter().filter(|t| t.from == state) {
            if !seen.contains(&t.to) {
                seen.push(t.to);
                let mut longer = way.clone();
                longer.push(t);
                ways.push((t.to, longer));
            }
        }
        head += 1;
    }
    panic!("{goal} cannot be reached");
}

#[test]
fn every_state_event_and_owner_agrees_with_the_conformance_table() {
    let truth = conformance();
    assert_eq!(State::ALL.len(), 14);
    assert_eq!(Event::ALL.len(), 22);
    let mut moved = 0;
    for &state in State::ALL {
        let before = machine_in(state);
        for &event in Event::ALL {
            let expected = truth.get(&(state, event));
            assert_eq!(next(state, event).ok(), expected.map(|e| e.0), "{state} {event}");
            for &by in Owner::ALL {
                let mut machine = before.clone();
                let answer = machine.apply(event, by, at(9));
                assert_eq!(before.allows(event, by), answer.is_ok());
                match expected {
                    Some(&(to, owner)) if owner == by => {
                        moved += 1;
                        assert_eq!(answer, Ok(to));
                        assert_eq!(machine.state(), to);
                        assert_eq!(machine.refused(), []);
                        assert_eq!(
                            machine.fsm().history.last(),
                            Some(&WorkflowMove { from: state, event, to, timestamp: at(9) })
                        );
                    }
                    other => {
                        let reason = match other {
                            None => RefusedReason::NoSuchMove,
                            Some(&(_, owner)) => RefusedReason::NotTheOwner { owner },
                        };
                        assert_eq!(answer, Err(Refused { from: state, event, by, reason }));
                        assert_eq!(machine.fsm(), before.fsm(), "a refusal moves nothing");
                        assert_eq!(
                            machine.refused(),
                            [RefusedMove { from: state, event, by, reason, timestamp: at(9) }]
                        );
                    }
                }
            }
        }
    }
    assert_eq!(moved, truth.len(), "each pair has exactly one owner");
    assert_eq!(truth.len(), TRANSITIONS.len());
}

#[test]
fn refusals_say_what_and_why() {
    let mut machine = WorkflowMachine::new(at(0));
    let error = machine.apply(Event::Fail, Owner::Client, at(1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "workflow refused FAIL by client in state idle: the table holds no such move"
    );
    let error = machine.apply(Event::StartWorkflow, Owner::Client, at(1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "workflow refused START_WORKFLOW by client in state idle: the move belongs to planning"
    );
}

#[test]
fn the_record_has_the_agreed_shape() {
    let mut machine = WorkflowMachine::new(at(0));
    machine.apply(Event::StartWorkflow, Owner::Planning, at(1)).unwrap();
    machine.apply(Event::StartStep, Owner::Planning, at(2)).unwrap();
    let (fsm, refused) = machine.into_parts();
    let record = crate::workflow::WorkflowRecord { fsm, refused, location: Default::default() };
    let value = serde_json::to_value(&record).unwrap();
    assert_eq!(
        value["FSM"],
        serde_json::json!({
            "state": "step_running",
            "last_transition": "START_STEP -> step_running",
            "timestamp": "1970-01-01T00:00:02Z",
            "history": [
                {"from": "idle", "event": "START_WORKFLOW", "to": "stage_running",
                 "timestamp": "1970-01-01T00:00:01Z"},
                {"from": "stage_running", "event": "START_STEP", "to": "step_running",
                 "timestamp": "1970-01-01T00:00:02Z"},
            ]
        })
    );
    assert_eq!(
        value["location"]["current"],
        serde_json::json!({"stage_id": null, "step_id": null, "behavior_id": null,
                           "behavior_iteration": 0})
    );
    let back: crate::workflow::WorkflowRecord = serde_json::from_value(value).unwrap();
    assert_eq!(back, record);
}

proptest! {
    #[test]
    fn no_sequence_of_events_leaves_the_table(
        tries in prop::collection::vec((0..Event::ALL.len(), 0..Owner::ALL.len(), 0..4_u8), 0..400)
    ) {
        let truth = conformance();
        let mut machine = WorkflowMachine::new(at(0));
        for (second, &(event, owner, lead)) in tries.iter().enumerate() {
            let (mut event, mut by) = (Event::ALL[event], Owner::ALL[owner]);
            // Three in four tries follow the table, or the walk would hardly leave `idle`.
            if lead > 0 {
                let here = TRANSITIONS.iter().filter(|t| t.from == machine.state());
                let t = here.clone().nth(tries[second].0 % here.count()).unwrap();
                (event, by) = (t.event, t.owner);
            }
            let before = machine.state();
            let history = machine.fsm().history.len();
            let refused = machine.refused().len();
            match machine.apply(event, by, at(second as i64)) {
                Ok(to) => {
                    prop_assert_eq!(truth.get(&(before, event)), Some(&(to, by)));
                    prop_assert_eq!(machine.fsm().history.len(), history + 1);
                    prop_assert_eq!(machine.refused().len(), refused);
                }
                Err(_) => {
                    prop_assert_eq!(machine.state(), before);
                    prop_assert_eq!(machine.fsm().history.len(), history);
                    prop_assert_eq!(machine.refused().len(), refused + 1);
                }
            }
        }
        prop_assert_eq!(machine.fsm().replay(), Ok(machine.state()));
        let chained = machine.fsm().history.windows(2).all(|w| w[0].to == w[1].from);
        prop_assert!(chained);
    }
}
