//! All that may happen, in all orders up to a length: no place has two holders, tokens only rise, and
//! a holder that has lost its lease is not let in.

use std::collections::BTreeMap;

use jig_model::lease::{LeaseNamed, LeaseState};
use proptest::prelude::*;

use super::super::table::{Admission, LeaseTable};
use super::super::{LeasablePlace, LeaseError};
use super::*;

/// Something that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Ask(usize),
    Poll(usize),
    Renew(usize),
    Use(usize),
    StopUse(usize),
    Release(usize),
    Extend(usize),
    Steal,
    /// Another process takes the lock of the place, or gives it back.
    Lock,
    Wait(i64),
}

const USERS: [&str; 3] = ["anna", "ci", "ben"];

struct World {
    table: LeaseTable,
    places: Vec<LeasablePlace>,
    policy: LeasePolicy,
    now: i64,
    locked: bool,
    /// Number of leases that each user has asked for.
    asked: [usize; 3],
    /// The highest token that the place has seen.
    token: u64,
}

impl World {
    fn new() -> Self {
        let (table, places) = (LeaseTable::default(), vec![place("a")]);
        Self { table, places, policy: policy(), now: 0, locked: false, asked: [0; 3], token: 0 }
    }

    fn lease(&self, who: usize) -> LeaseId {
        id(&format!("{}-{}", USERS[who], self.asked[who]))
    }

    /// Applies a step as the store does: what is over first, then the step, then what can be given.
    fn step(&mut self, step: Step) {
        let before = self.holder();
        self.table.expire(self.now, &self.places);
        match step {
            Step::Ask(who) => {
                let ended = self.state(who).is_none_or(|s| matches!(s, LeaseState::Ended { .. }));
                self.asked[who] += usize::from(ended);
                let ask = ask(self.lease(who).as_str(), "a");
                let asked =
                    self.table.ask(self.now, &user(USERS[who]), &ask, &self.policy, &self.places);
                asked.unwrap();
            }
            Step::Poll(who) => {
                let _ = self.table.poll(self.now, &user(USERS[who]), &self.lease(who));
            }
            Step::Renew(who) | Step::Use(who) | Step::StopUse(who) => {
                let in_use = match step {
                    Step::Use(_) => Some(true),
                    Step::StopUse(_) => Some(false),
                    _ => None,
                };
                let (by, id) = (user(USERS[who]), self.lease(who));
                let was_active = matches!(self.state(who), Some(LeaseState::Active { .. }));
                let renewed = self.table.renew(self.now, &by, &id, 20_000, in_use);
                assert_eq!(renewed.is_ok(), was_active, "{step:?}");
            }
            Step::Release(who) => {
                let named = LeaseNamed::Lease(self.lease(who));
                let _ = self.table.release(self.now, &user(USERS[who]), &named);
            }
            Step::Extend(who) => {
                let named = LeaseNamed::Lease(self.lease(who));
                let _ = self.table.extend(&user(USERS[who]), &named, 20_000);
            }
            Step::Steal => drop(self.table.steal(self.now, &user("dora"), &name("a"), "why")),
            Step::Lock => self.locked = !self.locked,
            Step::Wait(ms) => self.now += ms,
        }
        self.table.expire(self.now, &self.places);
        let (locked, seen) = (self.locked, self.token);
        let grant = |_: &PlaceName| (!locked).then_some(seen);
        self.table.grant(self.now, &self.policy, &self.places, &|_, _| true, grant);
        self.check(before, step);
    }

    fn state(&self, who: usize) -> Option<LeaseState> {
        let view = self.table.view(self.now, &self.lease(who), &self.policy, &self.places);
        view.ok().map(|lease| lease.state)
    }

    fn holder(&self) -> Option<(LeaseId, u64)> {
        let view = self.table.view_of_place(self.now, &name("a"))?;
        let LeaseState::Active { token, .. } = view.state else { return None };
        Some((view.id, token))
    }

    fn check(&mut self, before: Option<(LeaseId, u64)>, step: Step) {
        assert!(self.table.held_twice().is_empty(), "{step:?}");
        let holder = self.holder();
        if let Some((id, token)) = &holder {
            if before.as_ref().is_some_and(|(old, _)| old == id) {
                assert_eq!(before.as_ref().map(|(_, token)| *token), Some(*token));
            } else {
                assert!(*token > self.token, "{step:?}: {token} after {}", self.token);
                assert!(!self.locked, "{step:?}: given while its lock is taken");
            }
            self.token = *token;
        }
        // The holder is let in; any user is where no user has or wants the place.
        let mut let_in = BTreeMap::new();
        for (who, name) in USERS.iter().enumerate() {
            let by = user(name);
            match self.table.admission(self.now, &by, &self.places[0], &|_, _| true) {
                Ok(Admission::Own { id, token }) => {
                    assert_eq!(holder, Some((id.clone(), token)), "{step:?}");
                    let_in.insert(who, id);
                }
                Ok(Admission::Free) => assert_eq!(holder, None, "{step:?}"),
                Err(LeaseError::Leased { .. }) => assert!(holder.is_some(), "{step:?}"),
                Err(LeaseError::QueuedAhead { .. }) => assert_eq!(holder, None, "{step:?}"),
                Err(other) => panic!("{step:?}: {other}"),
            }
            // A command that names a lease which has ended is refused.
            if let Some(LeaseState::Ended { .. }) = self.state(who) {
                let by = RigUser { lease: Some(self.lease(who)), ..user(name) };
                let admission = self.table.admission(self.now, &by, &self.places[0], &|_, _| true);
                assert!(admission.is_err(), "{step:?}: {admission:?}");
            }
        }
        assert!(let_in.len() <= 1, "{step:?}: {let_in:?}");
    }
}

/// All steps of two users, without times that only differ in length.
fn steps() -> Vec<Step> {
    let mut steps = vec![Step::Steal, Step::Lock, Step::Wait(21_000), Step::Wait(61_000)];
    for who in 0..2 {
        steps.extend([Step::Ask(who), Step::Use(who), Step::StopUse(who), Step::Release(who)]);
    }
    steps
}

/// Twelve steps, four deep, from an idle place and from one that two users want: 45,242 worlds.
#[test]
fn no_order_of_steps_gives_a_place_to_two_users() {
    fn go(path: &mut Vec<Step>, depth: usize, steps: &[Step], worlds: &mut u64) {
        let mut world = World::new();
        path.iter().for_each(|step| world.step(*step));
        *worlds += 1;
        if depth == 0 {
            return;
        }
        for step in steps {
            path.push(*step);
            go(path, depth - 1, steps, worlds);
            path.pop();
        }
    }
    let (steps, mut worlds) = (steps(), 0);
    go(&mut vec![], 4, &steps, &mut worlds);
    go(&mut vec![Step::Ask(0), Step::Ask(1)], 4, &steps, &mut worlds);
    assert_eq!(worlds, 2 * (1 + 12 + 144 + 1728 + 20_736));
}

fn step() -> impl Strategy<Value = Step> {
    let who = 0..USERS.len();
    prop_oneof![
        who.clone().prop_map(Step::Ask),
        who.clone().prop_map(Step::Poll),
        who.clone().prop_map(Step::Renew),
        who.clone().prop_map(Step::Use),
        who.clone().prop_map(Step::StopUse),
        who.clone().prop_map(Step::Release),
        who.prop_map(Step::Extend),
        Just(Step::Steal),
        Just(Step::Lock),
        (1i64..90_000).prop_map(Step::Wait),
    ]
}

proptest! {
    #[test]
    fn no_long_history_gives_a_place_to_two_users(steps in prop::collection::vec(step(), 1..80)) {
        let mut world = World::new();
        for step in steps {
            world.step(step);
        }
    }
}
