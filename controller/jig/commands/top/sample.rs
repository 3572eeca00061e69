//! A view to test with.

use jig_lab::{CurrentRun, HeldLease, PlaceView, RigSnapshot};
use jig_rig::health::HealthState;

use super::model::TopModel;

/// Three places: one in use, one leased, one out of service.
pub(super) fn sample_model() -> TopModel {
    let at = |second: i64| jiff::Timestamp::from_second(1_700_000_000 + second).unwrap();
    let place = |name: &str, health| PlaceView {
        place: name.parse().unwrap(),
        board: "some-board".to_owned(),
        health: Some(health),
        why: String::new(),
        lease: None,
        waiting: 0,
        in_use_by: None,
        run: None,
        console: None,
    };
    let mut places = vec![
        place("bench-1", HealthState::Healthy),
        place("bench-2", HealthState::Suspect),
        place("radio", HealthState::Quarantined),
    ];
    places[0].run = Some(CurrentRun {
        id: "20231114-221320-aaaa".parse().unwrap(),
        plan: Some("unit".to_owned()),
        started: Some(at(-65)),
    });
    places[0].console = Some("3 Tests 0 Failures \\x1b[31m".to_owned());
    let (owner, until) = ("anna".to_owned(), Some(at(3600)));
    places[1].lease = Some(HeldLease { owner, comment: Some("antenna".to_owned()), until });
    places[1].waiting = 2;
    places[2].why = "three proofs failed".to_owned();
    let snapshot = RigSnapshot { at: at(0), places, queue: 2, missing: Vec::new() };
    TopModel::new(snapshot, String::new())
}
