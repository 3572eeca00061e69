//! Measures leases for `cargo xtask bench`, in a process of its own.
//!
//! Threads with connections of their own, as processes have them, give one place to each other: each asks,
//! waits in the queue, has the lease, and releases it. The floor beside it is an SQLite table with the
//! same settings in which one row is changed twice for each hand-over.

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
    policy: LeasePolicy,
    places: Vec<LeasablePlace>,
}

impl OnePlace {
    fn new(state: &Path) -> Result<Self, Box<dyn Error>> {
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
        Ok(Self { state: state.to_owned(), policy: LeasePolicy::default(), places })
    }

    /// Gives an order as a process does that lives for this order alone. Returns the token of a lease
    /// that is active.
    fn order(&self, user: &RigUser, order: &LeaseOrder) -> Result<Option<u64>, LeaseError> {
        let store = LeaseStore::open(&LeaseStore::path_in(&self.state))?;
        let (locks, policy, places) = (&Places::new(&self.state), &self.policy, &self.places[..]);
        let access = &AccessRules::default();
        match (RigLeases { store: &store, locks, policy, places, access }).answer(user, order)? {
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
    let (mut floor, mut ours, mut most) = (Vec::new(), Vec::new(), 0);
    for round in 0..rounds {
        let state = folder.join(format!("state-{round}"));
        std::fs::create_dir_all(&state)?;
        floor.push(bare(&state.join("bare.db"), time)?);
        let (place, seen, began) =
            (OnePlace::new(&state)?, SeenTogether::default(), Instant::now());
        let until = began + time;
        let ended = std::thread::scope(|threads| {
            let user = |number| {
                let (place, seen) = (&place, &seen);
                threads.spawn(move || use_place(place, number, until, seen))
            };
            let users: Vec<_> = (0..USERS).map(user).collect();
            users.into_iter().map(|user| user.join()).collect::<Vec<_>>()
        });
        for user in ended {
            user.map_err(|_| "a user has panicked")?.map_err(|error| error.to_string())?;
        }
        ours.push(seen.handed.into_inner() as f64 / began.elapsed().as_secs_f64());
        most = most.max(seen.most.into_inner());
    }
    println!("{}", json!({ "bare": floor, "handed": ours, "most_holders": most }));
    Ok(())
}

/// Changes a row twice for each hand-over; returns hand-overs a second.
fn bare(path: &Path, time: Duration) -> Result<f64, Box<dyn Error>> {
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
