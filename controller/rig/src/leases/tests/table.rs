//! The rules, one by one.

use jig_model::lease::{LeaseEnd, LeaseNamed, LeaseState};

use super::super::table::{Admission, LeaseTable};
use super::super::{Fitness, LeasablePlace, LeaseError};
use super::*;

/// A rig with the table, at a moment.
struct Rig {
    table: LeaseTable,
    places: Vec<LeasablePlace>,
    policy: LeasePolicy,
    now: i64,
    /// Places whose lock another process has.
    busy: Vec<PlaceName>,
    /// Who may use which place.
    may: fn(&str, &PlaceTraits) -> bool,
}

impl Rig {
    fn of(names: &[&str]) -> Self {
        let places = names.iter().map(|name| place(name)).collect();
        let (table, policy, busy) = (LeaseTable::default(), policy(), Vec::new());
        Self { table, places, policy, now: 0, busy, may: |_, _| true }
    }

    fn ask(&mut self, who: &str, lease: &str, need: &str) -> Result<(), LeaseError> {
        self.table.ask(self.now, &user(who), &ask(lease, need), &self.policy, &self.places)?;
        self.grant();
        self.table.confirm(&id(lease));
        Ok(())
    }

    fn grant(&mut self) {
        self.table.expire(self.now, &self.places);
        let busy = &self.busy;
        self.table.grant(self.now, &self.policy, &self.places, &self.may, |place| {
            (!busy.contains(place)).then_some(0)
        });
    }

    fn at(&mut self, second: i64) {
        self.now = second * 1000;
        self.grant();
    }

    fn state(&self, lease: &str) -> LeaseState {
        self.table.view(self.now, &id(lease), &self.policy, &self.places).unwrap().state
    }

    /// Returns the place of a lease, its position in the queue, or why it has ended.
    fn stands(&self, lease: &str) -> String {
        match self.state(lease) {
            LeaseState::Active { place, token, .. } => format!("{place} {token}"),
            LeaseState::Queued { position, .. } => format!("#{position}"),
            LeaseState::Ended { why, .. } => why.to_string(),
        }
    }

    fn admits(&self, who: &str, lease: Option<&str>, place: &str) -> Result<Admission, LeaseError> {
        let user = RigUser { lease: lease.map(id), ..user(who) };
        let place = self.places.iter().find(|at| at.name().as_str() == place).unwrap();
        self.table.admission(self.now, &user, place, &self.may)
    }
}

#[test]
fn places_are_given_in_order_and_passed_on() {
    let mut rig = Rig::of(&["a", "b"]);
    for (who, lease) in [("anna", "l1"), ("ben", "l2"), ("cleo", "l3"), ("dora", "l4")] {
        rig.ask(who, lease, "board").unwrap();
    }
    assert_eq!(["l1", "l2", "l3", "l4"].map(|l| rig.stands(l)), ["a 1", "b 1", "#1", "#2"]);
    let released = LeaseNamed::Place(name("b"));
    rig.table.release(1000, &user("ben"), &released).unwrap();
    rig.at(1);
    assert_eq!(["l2", "l3", "l4"].map(|l| rig.stands(l)), ["it was released", "b 2", "#1"]);
    // The time of the others is over; a lease that is not asked for has left the queue by then.
    rig.at(61);
    assert_eq!(["l1", "l4"].map(|l| rig.stands(l)), ["its time was over"; 2]);
}

#[test]
fn the_healthiest_place_that_has_rested_longest_is_given_first() {
    let mut rig = Rig::of(&["a", "b", "c", "d"]);
    rig.places[0].fitness = Fitness::Suspect;
    rig.places[3].fitness = Fitness::OutOfService;
    for (second, place) in [(1, "b 1"), (2, "c 1"), (3, "b 2")] {
        rig.at(second);
        let lease = format!("l{second}");
        rig.ask("anna", &lease, "board").unwrap();
        assert_eq!(rig.stands(&lease), place);
        rig.table.release(rig.now, &user("anna"), &LeaseNamed::Lease(id(&lease))).unwrap();
    }
    rig.busy = vec![name("b"), name("c")];
    rig.ask("anna", "suspect", "board").unwrap();
    assert_eq!(rig.stands("suspect"), "a 1");
    let refused = rig.ask("anna", "out", "d").unwrap_err();
    assert!(matches!(refused, LeaseError::OutOfService(places) if places == [name("d")]));
    let refused = rig.ask("anna", "none", "e").unwrap_err();
    assert!(matches!(refused, LeaseError::NoPlace(_)));
}

#[test]
fn classes_go_first_and_waiting_counts() {
    let mut rig = Rig::of(&["a"]);
    rig.ask("anna", "l0", "a").unwrap();
    rig.ask("ci", "slow", "a").unwrap();
    rig.at(1);
    rig.ask("ben", "fast", "a").unwrap();
    assert_eq!(["slow", "fast"].map(|l| rig.stands(l)), ["#2", "#1"]);
    // Eleven minutes are worth eleven steps; those that wait are asked for all the time.
    for second in (2..=660).step_by(10) {
        rig.now = second * 1000;
        for (who, lease) in [("ci", "slow"), ("ben", "fast")] {
            rig.table.poll(rig.now, &user(who), &id(lease)).unwrap();
        }
        rig.table.renew(rig.now, &user("anna"), &id("l0"), 60_000, None).unwrap();
        rig.grant();
    }
    rig.ask("cleo", "late", "a").unwrap();
    assert_eq!(["slow", "fast", "late"].map(|l| rig.stands(l)), ["#2", "#1", "#3"]);
    let above = ask("above", "a");
    let above = jig_model::lease::LeaseAsk { class: Some("engineer".parse().unwrap()), ..above };
    let refused = rig.table.ask(rig.now, &user("ci"), &above, &rig.policy, &rig.places);
    assert!(matches!(refused, Err(LeaseError::AboveOwn { .. })));
}

#[test]
fn a_class_that_yields_does_so_between_commands_only() {
    let mut rig = Rig::of(&["a"]);
    rig.ask("ci", "job", "a").unwrap();
    rig.table.renew(0, &user("ci"), &id("job"), 60_000, Some(true)).unwrap();
    rig.ask("anna", "mine", "a").unwrap();
    assert_eq!(["job", "mine"].map(|l| rig.stands(l)), ["a 1", "#1"]);
    rig.ask("ci-2", "other", "a").unwrap();
    rig.table.renew(0, &user("ci"), &id("job"), 1_000, Some(false)).unwrap();
    rig.grant();
    assert_eq!(rig.stands("mine"), "a 2");
    assert_eq!(rig.stands("other"), "#1");
    assert!(matches!(
        rig.state("job"),
        LeaseState::Ended { why: LeaseEnd::Preempted { by }, .. } if by == id("mine")
    ));
}

#[test]
fn only_the_owner_uses_and_changes_a_lease() {
    let mut rig = Rig::of(&["a", "b"]);
    assert_eq!(rig.admits("anna", None, "a").unwrap(), Admission::Free);
    rig.ask("anna", "l1", "a").unwrap();
    let own = Admission::Own { id: id("l1"), token: 1 };
    assert_eq!(rig.admits("anna", None, "a").unwrap(), own);
    assert_eq!(rig.admits("anna", Some("l1"), "a").unwrap(), own);
    assert!(matches!(rig.admits("ben", None, "a"), Err(LeaseError::Leased { .. })));
    assert!(matches!(rig.admits("ben", Some("l1"), "a"), Err(LeaseError::Leased { .. })));
    assert!(matches!(rig.admits("anna", Some("l1"), "b"), Err(LeaseError::Elsewhere { .. })));
    assert!(matches!(rig.admits("anna", Some("l2"), "b"), Err(LeaseError::Unknown(_))));
    let of = LeaseNamed::Lease(id("l1"));
    assert!(matches!(rig.table.extend(&user("ben"), &of, 1000), Err(LeaseError::NotYours { .. })));
    assert!(matches!(
        rig.table.release(0, &user("ben"), &LeaseNamed::Place(name("a"))),
        Err(LeaseError::NoneHere(_))
    ));
    assert!(matches!(rig.ask("ben", "l1", "a"), Err(LeaseError::NotYours { .. })));
    rig.table.steal(5, &user("ben"), &name("a"), "the lab burns").unwrap();
    assert_eq!(rig.stands("l1"), "ben ended it: the lab burns");
    assert!(matches!(rig.admits("anna", Some("l1"), "a"), Err(LeaseError::Ended { .. })));
    assert!(matches!(
        rig.table.renew(5, &user("anna"), &id("l1"), 1_000, Some(true)),
        Err(LeaseError::Ended { .. })
    ));
}

#[test]
fn a_lease_by_id_is_used_by_those_who_name_it() {
    let mut rig = Rig::of(&["a"]);
    let by_id = jig_model::lease::LeaseAsk { by_id: true, ..ask("l1", "a") };
    rig.table.ask(0, &user("ci"), &by_id, &rig.policy, &rig.places).unwrap();
    rig.grant();
    assert!(matches!(rig.admits("ci", None, "a"), Err(LeaseError::Leased { .. })));
    assert!(rig.admits("ci", Some("l1"), "a").is_ok());
}

#[test]
fn who_uses_a_place_without_a_lease_goes_behind_those_who_wait() {
    let mut rig = Rig::of(&["a", "b"]);
    rig.busy = vec![name("a")];
    rig.ask("anna", "l1", "a").unwrap();
    assert_eq!(rig.stands("l1"), "#1");
    assert!(matches!(
        rig.admits("ben", None, "a"),
        Err(LeaseError::QueuedAhead { waiting: 1, .. })
    ));
    assert_eq!(rig.admits("ben", None, "b").unwrap(), Admission::Free);
    rig.busy.clear();
    rig.grant();
    assert_eq!(rig.stands("l1"), "a 1");
}

#[test]
fn a_lease_lasts_as_long_as_its_class_allows() {
    let mut rig = Rig::of(&["a"]);
    rig.ask("anna", "l1", "a").unwrap();
    let of = LeaseNamed::Lease(id("l1"));
    rig.table.extend(&user("anna"), &of, 3_540_000).unwrap();
    let refused = rig.table.extend(&user("anna"), &of, 1_000);
    assert!(matches!(refused, Err(LeaseError::TooLong { .. })), "{refused:?}");
    let long = jig_model::lease::LeaseAsk { ttl_ms: Some(3_600_001), ..ask("l2", "a") };
    let refused = rig.table.ask(0, &user("anna"), &long, &rig.policy, &rig.places);
    assert!(matches!(refused, Err(LeaseError::TooLong { .. })));
    let kept = jig_model::lease::LeaseAsk { kept: true, ..long };
    rig.table.ask(0, &user("anna"), &kept, &rig.policy, &rig.places).unwrap();
    for ttl in [0, 999, u64::MAX] {
        let ask = jig_model::lease::LeaseAsk { ttl_ms: Some(ttl), ..ask("l3", "a") };
        let refused = rig.table.ask(0, &user("ben"), &ask, &rig.policy, &rig.places);
        assert!(matches!(refused, Err(LeaseError::NoTime)), "{ttl}");
    }
}

#[test]
fn a_lease_whose_owner_died_in_the_queue_ends_soon() {
    let mut rig = Rig::of(&["a"]);
    rig.ask("anna", "l1", "a").unwrap();
    rig.ask("ben", "dead", "a").unwrap();
    rig.at(20);
    rig.ask("cleo", "alive", "a").unwrap();
    rig.table.release(rig.now, &user("anna"), &LeaseNamed::Lease(id("l1"))).unwrap();
    rig.grant();
    assert_eq!(["dead", "alive"].map(|l| rig.stands(l)), ["a 2", "#1"]);
    rig.at(45);
    rig.table.poll(rig.now, &user("cleo"), &id("alive")).unwrap();
    rig.at(51);
    rig.table.confirm(&id("alive"));
    assert_eq!(["dead", "alive"].map(|l| rig.stands(l)), ["its time was over", "a 3"]);
    rig.at(105);
    assert_eq!(rig.stands("alive"), "a 3");
}

#[test]
fn the_queue_is_bounded_and_a_place_that_goes_ends_its_lease() {
    let mut rig = Rig::of(&["a", "b"]);
    rig.ask("anna", "l0", "a").unwrap();
    for number in 0..64 {
        rig.ask("ben", &format!("q{number}"), "a").unwrap();
    }
    assert!(matches!(rig.ask("ben", "more", "a"), Err(LeaseError::QueueFull)));
    assert!(rig.ask("cleo", "more", "a").is_ok());
    rig.places.remove(0);
    rig.grant();
    assert!(matches!(rig.state("l0"), LeaseState::Ended { why: LeaseEnd::PlaceGone, .. }));
}

#[test]
fn the_wait_is_told_from_the_leases_before() {
    let mut rig = Rig::of(&["a", "b"]);
    rig.ask("anna", "l1", "a").unwrap();
    rig.at(10);
    rig.ask("ben", "l2", "b").unwrap();
    for lease in ["q1", "q2", "q3"] {
        rig.ask("cleo", lease, "board").unwrap();
    }
    let expected = ["q1", "q2", "q3"].map(|lease| match rig.state(lease) {
        LeaseState::Queued { expected, .. } => expected.unwrap().as_second(),
        other => panic!("{other:?}"),
    });
    // The leases end after 60 and 70 seconds, and each lasts for 60.
    assert_eq!(expected, [60, 70, 120]);
}

#[test]
fn a_lease_is_given_only_where_its_owner_may_use_the_place() {
    let mut rig = Rig::of(&["a", "b"]);
    rig.may = |owner, at| owner == "anna" || at.place.as_str() == "b";
    rig.ask("anna", "l1", "b").unwrap();
    rig.ask("ci", "l2", "board").unwrap();
    // Place `a` is free, and not for this user, so others do not wait for it.
    assert_eq!(rig.stands("l2"), "#1");
    assert_eq!(rig.admits("anna", None, "a").unwrap(), Admission::Free);
    rig.table.release(rig.now, &user("anna"), &LeaseNamed::Lease(id("l1"))).unwrap();
    rig.grant();
    assert_eq!(rig.stands("l2"), "b 2");
}
