//! The state machine: every pair, and what no sequence may do.

use std::collections::BTreeSet;

use jiff::Timestamp;
use jig_model::{Cause, Fault, VerdictKind};
use proptest::prelude::*;

use super::*;
use crate::health::{HealthPolicy, HealthState, MOVES, PlaceHealth, Proof, Signal, next, render};
use HealthState::{Healthy, Quarantined, Suspect, Unhealthy};
use jig_model::machine::RenderFormat;

const POLICY: HealthPolicy = HealthPolicy {
    failures_to_unhealthy: 2,
    passes_to_healthy: 2,
    passes_out_of_quarantine: 3,
    proof: Proof::Canary,
};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

/// Comes into a state by the shortest way.
fn into(state: HealthState) -> PlaceHealth {
    let healthy = PlaceHealth::unknown_to_anybody();
    let by = match state {
        Healthy => return healthy,
        Suspect => checked(false),
        Unhealthy => recovery(None),
        Quarantined => quarantined(),
    };
    let now = next(&healthy, at(0), &by, &POLICY);
    assert_eq!(now.state, state);
    now
}

fn play(from: PlaceHealth, policy: &HealthPolicy, events: &[HealthEvent]) -> PlaceHealth {
    (1..).zip(events).fold(from, |now, (second, event)| next(&now, at(second), event, policy))
}

#[test]
fn every_event_in_every_state_leads_where_it_should() {
    let lab = run(Cause::PowerFailed);
    // Once from each state, in the order of `HealthState::ALL`; then twice, then three times.
    type Four = [HealthState; 4];
    let table: &[(&str, HealthEvent, Four, Four, Four)] = &[
        (
            "checks pass",
            checked(true),
            [Healthy, Suspect, Unhealthy, Quarantined],
            [Healthy, Healthy, Healthy, Quarantined],
            [Healthy, Healthy, Healthy, Quarantined],
        ),
        (
            "no checks",
            HealthEvent::Checked(Vec::new()),
            HealthState::ALL.try_into().unwrap(),
            HealthState::ALL.try_into().unwrap(),
            HealthState::ALL.try_into().unwrap(),
        ),
        (
            "a check fails",
            checked(false),
            [Suspect, Unhealthy, Unhealthy, Quarantined],
            [Unhealthy, Unhealthy, Unhealthy, Quarantined],
            [Unhealthy, Unhealthy, Unhealthy, Quarantined],
        ),
        (
            "a run passes",
            run(Cause::Passed),
            [Healthy, Suspect, Unhealthy, Quarantined],
            [Healthy, Healthy, Healthy, Quarantined],
            [Healthy, Healthy, Healthy, Quarantined],
        ),
        (
            "the rig fails a run",
            lab,
            [Suspect, Unhealthy, Unhealthy, Quarantined],
            [Unhealthy, Unhealthy, Unhealthy, Quarantined],
            [Unhealthy, Unhealthy, Unhealthy, Quarantined],
        ),
        (
            "the rig loses output",
            run(Cause::OutputLost),
            [Suspect, Unhealthy, Unhealthy, Quarantined],
            [Unhealthy, Unhealthy, Unhealthy, Quarantined],
            [Unhealthy, Unhealthy, Unhealthy, Quarantined],
        ),
        (
            "a recovery",
            recovery(Some("power-cycle")),
            [Suspect, Suspect, Suspect, Quarantined],
            [Suspect, Suspect, Suspect, Quarantined],
            [Suspect, Suspect, Suspect, Quarantined],
        ),
        (
            "no recovery",
            recovery(None),
            [Unhealthy, Unhealthy, Unhealthy, Quarantined],
            [Unhealthy, Unhealthy, Unhealthy, Quarantined],
            [Unhealthy, Unhealthy, Unhealthy, Quarantined],
        ),
        (
            "a canary passes",
            canary(true),
            [Healthy, Suspect, Unhealthy, Quarantined],
            [Healthy, Healthy, Healthy, Quarantined],
            [Healthy, Healthy, Healthy, Healthy],
        ),
        (
            "a canary fails",
            canary(false),
            [Suspect, Unhealthy, Unhealthy, Quarantined],
            [Unhealthy, Unhealthy, Unhealthy, Quarantined],
            [Unhealthy, Unhealthy, Unhealthy, Quarantined],
        ),
        ("quarantine", quarantined(), [Quarantined; 4], [Quarantined; 4], [Quarantined; 4]),
        (
            "a person's word",
            cleared(),
            [Healthy, Healthy, Healthy, Quarantined],
            [Healthy, Healthy, Healthy, Quarantined],
            [Healthy, Healthy, Healthy, Quarantined],
        ),
    ];
    for (name, event, once, twice, thrice) in table {
        for (times, expected) in [(1, once), (2, twice), (3, thrice)] {
            let events = vec![event.clone(); times];
            let found = HealthState::ALL.iter().map(|&s| play(into(s), &POLICY, &events).state);
            assert_eq!(found.collect::<Vec<_>>(), expected, "{name}, {times} times");
        }
    }
}

#[test]
fn only_the_rig_is_held_against_a_place() {
    for &cause in Cause::ALL {
        let now = play(into(Healthy), &POLICY, &[run(cause)]);
        let plan = matches!(
            cause,
            Cause::EmulatorMissing
                | Cause::HostCommandMissing
                | Cause::HostCommandRefused
                | Cause::PlannerFailed
        );
        let blamed = cause.fault() == Some(Fault::Lab) && !plan;
        assert_eq!(now.state, if blamed { Suspect } else { Healthy }, "{cause}");
    }
    // The verdict over several attempts is what counts, not the cause of one of them.
    let flaky = ended(VerdictKind::Flaky, Cause::PowerFailed);
    assert_eq!(play(into(Healthy), &POLICY, &[flaky]).state, Healthy);
}

#[test]
fn a_quarantine_keeps_its_first_reason_and_adds_later_ones() {
    let quarantined = into(Quarantined);
    let first = quarantined.why.clone();
    let same = play(quarantined.clone(), &POLICY, &[super::quarantined()]);
    assert_eq!(same.why, first);
    let later = play(quarantined, &POLICY, &[run(Cause::PowerFailed), run(Cause::PowerFailed)]);
    assert_eq!(later.why, format!("{first}; later: {}", run(Cause::PowerFailed).words()));
    use Cause::{ConsoleLost, DeployFailed, PowerFailed, PowerMismatch, ProbeBusy, ProbeLost};
    let causes = [ConsoleLost, DeployFailed, PowerMismatch, ProbeBusy, ProbeLost, PowerFailed];
    let many: Vec<_> = causes.iter().cycle().take(13).map(|&cause| run(cause)).collect();
    let last = many.last().unwrap().words();
    let full = play(later, &POLICY, &many);
    assert!(full.why.starts_with(&first) && full.why.ends_with(&last), "{}", full.why);
    assert!(full.why.len() <= 400, "{}", full.why);
}

#[test]
fn a_pass_between_two_failures_keeps_a_place_in_doubt() {
    let events = [checked(false), checked(true), checked(false), checked(true), checked(true)];
    let states = (1..=events.len()).map(|n| play(into(Healthy), &POLICY, &events[..n]).state);
    assert_eq!(states.collect::<Vec<_>>(), [Suspect, Suspect, Suspect, Suspect, Healthy]);
}

#[test]
fn time_and_reason_are_those_of_the_change() {
    let now = play(into(Healthy), &POLICY, &[checked(false), checked(true)]);
    assert_eq!((now.since, now.passes_needed), (Some(at(1)), 1));
    assert_eq!(now.why, "disk: 3 bytes left");
    let now = play(into(Healthy), &POLICY, &[checked(false), run(Cause::PowerMismatch)]);
    assert_eq!((now.state, now.since), (Unhealthy, Some(at(2))));
    assert_eq!(now.why, "run 20261121-221530-7f3a ended with power_mismatch");
    let now = play(into(Unhealthy), &POLICY, &[canary(true), canary(true)]);
    assert_eq!((now.state, now.since, now.passes_needed), (Healthy, Some(at(2)), 0));
    assert_eq!(now.why, "2 passes in a row");
    let now = play(into(Suspect), &POLICY, &[cleared()]);
    assert_eq!(now.why, "cleared by anna");
    let now = play(into(Healthy), &POLICY, &[recovery(Some("reset"))]);
    assert_eq!(now.why, "emulator_killed recovered by reset");
    let hostile = HealthEvent::Quarantined { why: "a\nb ".repeat(10_000) };
    let now = play(into(Healthy), &POLICY, &[hostile]);
    assert!(!now.why.contains('\n') && now.why.len() <= 400, "{}", now.why.len());
}

#[test]
fn checks_lead_out_of_quarantine_where_there_is_no_canary() {
    let policy = HealthPolicy { proof: Proof::Checks, ..POLICY };
    let events = [checked(true), run(Cause::Passed), canary(true), checked(true)];
    let left = (0..=4).map(|n| play(into(Quarantined), &policy, &events[..n]).passes_needed);
    assert_eq!(left.collect::<Vec<_>>(), [3, 2, 2, 1, 0]);
}

#[test]
fn policies_of_nothing_count_as_one() {
    let none = HealthPolicy {
        failures_to_unhealthy: 0,
        passes_to_healthy: 0,
        passes_out_of_quarantine: 0,
        proof: Proof::Canary,
    };
    assert_eq!(play(into(Healthy), &none, &[checked(false)]).state, Unhealthy);
    assert_eq!(play(into(Unhealthy), &none, &[checked(true)]).state, Healthy);
    assert_eq!(play(into(Quarantined), &none, &[]).state, Quarantined);
    assert_eq!(play(into(Quarantined), &none, &[canary(true)]).state, Healthy);
}

#[test]
fn the_table_is_unambiguous_and_every_state_can_be_left_and_reached() {
    let pairs: BTreeSet<_> = MOVES.iter().map(|m| (m.from, m.signal)).collect();
    assert_eq!(pairs.len(), MOVES.len());
    for &state in HealthState::ALL {
        assert_eq!(HealthState::ALL.iter().filter(|s| s.as_str() == state.as_str()).count(), 1);
        assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        assert!(
            MOVES.iter().any(|m| m.from != state && (m.to == state || m.enough == Some(state)))
        );
        assert!(MOVES.iter().any(|m| m.from == state && (m.to != state || m.enough.is_some())));
    }
    for &signal in Signal::ALL {
        assert_eq!(serde_json::to_value(signal).unwrap(), signal.as_str());
    }
}

#[test]
fn the_diagram_says_what_the_table_says() {
    let text = render(RenderFormat::Mermaid);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[..2], ["stateDiagram-v2", "    [*] --> healthy"]);
    assert!(lines.contains(&"    quarantined --> healthy : proof (enough passes in a row)"));
    assert!(lines.contains(&"    unhealthy --> suspect : recovered"));
    let arrows = MOVES.len() + MOVES.iter().filter(|m| m.enough.is_some()).count();
    assert_eq!(lines.len(), 2 + arrows);
    assert_eq!(render(RenderFormat::Csv).lines().count(), 1 + arrows);
    let json: serde_json::Value = serde_json::from_str(&render(RenderFormat::Json)).unwrap();
    assert_eq!(json["transitions"].as_array().unwrap().len(), arrows);
}

fn any_event() -> impl Strategy<Value = HealthEvent> {
    prop_oneof![
        proptest::collection::vec(any::<bool>(), 0..4)
            .prop_map(|all| HealthEvent::Checked(all.into_iter().map(report).collect())),
        proptest::sample::select(Cause::ALL).prop_map(run),
        any::<bool>().prop_map(|recovered| recovery(recovered.then_some("reset"))),
        any::<bool>().prop_map(canary),
        Just(quarantined()),
        Just(cleared()),
    ]
}

fn firmware_verdict() -> impl Strategy<Value = HealthEvent> {
    let causes: Vec<_> =
        Cause::ALL.iter().copied().filter(|c| c.fault() == Some(Fault::Target)).collect();
    proptest::sample::select(causes).prop_map(run)
}

proptest! {
    #[test]
    fn firmware_alone_never_changes_a_state(
        from in proptest::sample::select(HealthState::ALL),
        events in proptest::collection::vec(firmware_verdict(), 0..50),
    ) {
        let before = into(from);
        prop_assert_eq!(play(before.clone(), &POLICY, &events), before);
    }

    /// Follows each history with a count of its own: the proofs since the last thing that
    /// spoke against the place.
    #[test]
    fn only_proofs_in_a_row_lead_out_of_quarantine(
        events in proptest::collection::vec(any_event(), 0..80),
        checks in any::<bool>(),
        wanted in 1_u32..5,
    ) {
        let proof = if checks { Proof::Checks } else { Proof::Canary };
        let policy = HealthPolicy { passes_out_of_quarantine: wanted, proof, ..POLICY };
        let mut now = into(Quarantined);
        let mut proofs = 0;
        for (second, event) in (1..).zip(&events) {
            let then = next(&now, at(second), event, &policy);
            let is_proof = match event {
                HealthEvent::Canary { passed, .. } => *passed,
                HealthEvent::Checked(all) => checks && !all.is_empty() && all.iter().all(|r| r.ok),
                _ => false,
            };
            let against = match event {
                HealthEvent::Checked(all) => all.iter().any(|r| !r.ok),
                HealthEvent::RunEnded { cause, .. } => {
                    cause.fault() == Some(Fault::Lab)
                        && !matches!(
            cause,
            Cause::EmulatorMissing
                | Cause::HostCommandMissing
                | Cause::HostCommandRefused
                | Cause::PlannerFailed
        )
                }
                HealthEvent::Canary { passed, .. } => !passed,
                HealthEvent::RecoveryEnded { .. } | HealthEvent::Quarantined { .. } => true,
                HealthEvent::Cleared { .. } => false,
            };
            if now.state == Quarantined {
                proofs = if against { 0 } else { proofs + u32::from(is_proof) };
                prop_assert_eq!(then.state == Quarantined, proofs < wanted);
                if then.state == Quarantined {
                    prop_assert_eq!(then.passes_needed, wanted - proofs);
                }
            }
            if then.state == Quarantined && now.state != Quarantined {
                prop_assert_eq!(event, &quarantined());
                proofs = 0;
            }
            prop_assert_eq!(then.state == Healthy, then.passes_needed == 0);
            now = then;
        }
    }
}
