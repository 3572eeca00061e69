//! Measures leases for `cargo xtask bench`, in a process of its own.
//!
//! Users give one place to each other: each asks, waits in the queue, has the lease, and releases it. Once as
//! processes do that live for one order, each of which opens the store, and once as callers of a service do,
//! which has the store open. The floor beside it is an SQLite table with the same settings in which one row is
//! changed twice for each hand-over.

#![allow(clippy::print_stdout, reason = "it talks to the bench over its standard output")]

use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jig_model::access::AccessRules;
use jig_model::lease::{
    LeaseAnswer, LeaseAsk, LeaseNamed, LeaseOrder, LeasePolicy, LeaseState, PlaceTraits, RigUser,
};
use jig_model::profile::Arch;
use jig_model::{Identity, LeaseId};
use jig_rig::leases::{Fitness, LeasablePlace, LeaseError, LeaseStore, RigLeases, new_lease_id};
use jig_rig::store::Places;
use rusqlite::Connection;
use serde_json::json;

/// How many want the place at once.
const USERS: usize = 4;

/// A rig with one place.
struct OnePlace {
    state: PathBuf,
    /// The store of the service; opened for each order where there is none.
    open: Option<LeaseStore>,
    policy: LeasePolicy,
    places: Vec<LeasablePlace>,
}

impl OnePlace {
    fn new(state: &Path, served: bool) -> Result<Self, Box<dyn Error>> {
        std::fs::create_dir_all(state)?;
        let traits = PlaceTraits {
            place: "bench-1".parse()?,
            board: "board".parse()?,
            arch: Arch::Arm,
            chip: None,
            tags: BTreeSet::new(),
            parts: BTreeSet::new(),
            emulated: false,
        };
        let places = vec![LeasablePlace { traits, fitness: Fitness::Healthy }];
        let open = served.then(|| LeaseStore::open(&LeaseStore::path_in(state))).transpose()?;
        Ok(Self { state: state.to_owned(), open, policy: LeasePolicy::default(), places })
    }

    /// Gives an order. Returns the token of a lease that is active.
    fn order(&self, user: &RigUser, order: &LeaseOrder) -> Result<Option<u64>, LeaseError> {
        let own = match self.open {
            Some(_) => None,
            None => Some(LeaseStore::open(&LeaseStore::path_in(&self.state))?),
        };
        let Some(store) = self.open.as_ref().or(own.as_ref()) else { return Ok(None) };
        let (locks, policy, places) = (&Places::new(&self.state), &self.policy, &self.places[..]);
        let access = &AccessRules::default();
        match (RigLeases { store, locks, policy, places, access }).answer(user, order)? {
            LeaseAnswer::Lease { lease } => Ok(match lease.state {
                LeaseState::Active { token, .. } => Some(token),
                _ => None,
            }),
            LeaseAnswer::List { .. } => Ok(None),
        }
    }

    fn ask(&self, lease: &LeaseId) -> Result<LeaseOrder, Box<dyn Error + Send + Sync>> {
        Ok(LeaseOrder::Ask(LeaseAsk {
            lease: lease.clone(),
            need: "bench-1".parse()?,
            ttl_ms: Some(60_000),
            class: None,
            comment: None,
            by_id: false,
            kept: false,
        }))
    }
}

/// What the users see together.
#[derive(Default)]
struct SeenTogether {
    inside: AtomicU64,
    most: AtomicU64,
    handed: AtomicU64,
}

/// Has and gives back the place until the time is over.
fn use_place(
    place: &OnePlace,
    number: usize,
    until: Instant,
    seen: &SeenTogether,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let identity = Identity { name: format!("user-{number}").parse()?, ..Identity::default() };
    let user = RigUser { identity, ..RigUser::default() };
    while Instant::now() < until {
        let lease = new_lease_id();
        let mut token = place.order(&user, &place.ask(&lease)?)?;
        while token.is_none() {
            std::thread::sleep(Duration::from_millis(1));
            token = place.order(&user, &LeaseOrder::Poll(LeaseNamed::Lease(lease.clone())))?;
        }
        let inside = seen.inside.fetch_add(1, Ordering::SeqCst) + 1;
        seen.most.fetch_max(inside, Ordering::SeqCst);
        seen.handed.fetch_add(1, Ordering::SeqCst);
        seen.inside.fetch_sub(1, Ordering::SeqCst);
        place.order(&user, &LeaseOrder::Release(LeaseNamed::Lease(lease)))?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let folder = PathBuf::from(args.next().ok_or("name a folder")?);
    let rounds: u64 = args.next().ok_or("name the number of rounds")?.parse()?;
    let time = Duration::from_millis(args.next().ok_or("name the time of a round")?.parse()?);
    let (mut bare, mut served, mut handed, mut most) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for round in 0..rounds {
        let state = folder.join(format!("state-{round}"));
        std::fs::create_dir_all(&state)?;
        bare.push(changed_rows(&state.join("bare.db"), time)?);
        for (ours, is_served) in [(&mut served, true), (&mut handed, false)] {
            let state = state.join(if is_served { "served" } else { "handed" });
            let (figure, holders) = hand_over(&OnePlace::new(&state, is_served)?, time)?;
            ours.push(figure);
            most = most.max(holders);
        }
    }
    let told = json!({ "bare": bare, "served": served, "handed": handed, "most_holders": most });
    println!("{told}");
    Ok(())
}

/// Has all users use a place; returns hand-overs a second, and how many had it at once.
fn hand_over(place: &OnePlace, time: Duration) -> Result<(f64, u64), Box<dyn Error>> {
    let (seen, began) = (SeenTogether::default(), Instant::now());
    let until = began + time;
    let ended = std::thread::scope(|threads| {
        let user = |number| {
            let seen = &seen;
            threads.spawn(move || use_place(place, number, until, seen))
        };
        let users: Vec<_> = (0..USERS).map(user).collect();
        users.into_iter().map(|user| user.join()).collect::<Vec<_>>()
    });
    for user in ended {
        user.map_err(|_| "a user has panicked")?.map_err(|error| error.to_string())?;
    }
    let figure = seen.handed.into_inner() as f64 / began.elapsed().as_secs_f64();
    Ok((figure, seen.most.into_inner()))
}

/// Changes a row twice for each hand-over; returns hand-overs a second.
fn changed_rows(path: &Path, time: Duration) -> Result<f64, Box<dyn Error>> {
    let db = Connection::open(path)?;
    db.pragma_update(None, "journal_mode", "wal")?;
    db.pragma_update(None, "synchronous", "full")?;
    db.execute_batch("CREATE TABLE bare (n INTEGER NOT NULL) STRICT; INSERT INTO bare VALUES (0)")?;
    let (began, mut handed) = (Instant::now(), 0);
    while began.elapsed() < time {
        for _ in 0..2 {
            db.execute("UPDATE bare SET n = n + 1", [])?;
        }
        handed += 1;
    }
    Ok(f64::from(handed) / began.elapsed().as_secs_f64())
}
