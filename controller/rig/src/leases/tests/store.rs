//! The store between processes, and the fence beside the lock of a place.

use std::sync::atomic::{AtomicU64, Ordering};

use jig_model::lease::{LeaseAnswer, LeaseNamed, LeaseOrder, LeaseState, LeaseView};

use super::super::{Admission, LeasablePlace, LeaseError, LeaseStore, RigLeases, new_lease_id};
use super::*;
use crate::store::Places;

struct Folder {
    state: tempfile::TempDir,
    policy: LeasePolicy,
    places: Vec<LeasablePlace>,
}

impl Folder {
    fn new() -> Self {
        let state = tempfile::tempdir().unwrap();
        Self { state, policy: policy(), places: vec![place("a")] }
    }

    /// Does something as a process of its own would, with its own connection.
    fn with<T>(&self, work: impl FnOnce(&RigLeases<'_>) -> T) -> T {
        let store = LeaseStore::open(&LeaseStore::path_in(self.state.path())).unwrap();
        let locks = Places::new(self.state.path());
        let (policy, places) = (&self.policy, &self.places[..]);
        work(&RigLeases {
            store: &store,
            locks: &locks,
            policy,
            places,
            access: &AccessRules::default(),
        })
    }

    fn order(&self, who: &str, order: LeaseOrder) -> Result<LeaseView, LeaseError> {
        match self.with(|leases| leases.answer(&user(who), &order))? {
            LeaseAnswer::Lease { lease } => Ok(lease),
            LeaseAnswer::List { .. } => panic!("no lease"),
        }
    }

    fn ask(&self, who: &str, lease: &str) -> LeaseView {
        self.order(who, LeaseOrder::Ask(ask(lease, "a"))).unwrap()
    }
}

fn token(lease: &LeaseView) -> Option<u64> {
    match lease.state {
        LeaseState::Active { token, .. } => Some(token),
        _ => None,
    }
}

fn release(lease: &str) -> LeaseOrder {
    LeaseOrder::Release(LeaseNamed::Lease(id(lease)))
}

#[test]
fn leases_outlive_the_process_that_asked() {
    let folder = Folder::new();
    assert_eq!(token(&folder.ask("anna", "l1")), Some(1));
    assert_eq!(token(&folder.ask("anna", "l1")), Some(1));
    assert_eq!(token(&folder.ask("ben", "l2")), None);
    let ended = folder.order("anna", release("l1")).unwrap();
    assert!(matches!(ended.state, LeaseState::Ended { .. }));
    // Who gives back passes on.
    let list = folder.with(|leases| leases.answer(&user("dora"), &LeaseOrder::List)).unwrap();
    let LeaseAnswer::List { places, queue, .. } = list else { panic!("{list:?}") };
    assert_eq!(places[0].lease.as_ref().and_then(token), Some(2));
    assert!(queue.is_empty());
    // A lease that has ended is still known.
    let again = folder.order("anna", release("l1")).unwrap();
    assert_eq!(again, ended);
    assert!(matches!(folder.order("anna", release("l9")), Err(LeaseError::Unknown(_))));
}

#[test]
fn no_lease_begins_while_a_process_has_the_lock() {
    let folder = Folder::new();
    let locks = Places::new(folder.state.path());
    let lock = locks.try_lock(&name("a")).unwrap();
    assert_eq!(token(&folder.ask("anna", "l1")), None);
    let refused = folder.with(|leases| leases.admit(&user("ben"), &name("a"), None));
    assert!(matches!(refused, Err(LeaseError::QueuedAhead { .. })));
    drop(lock);
    let poll = LeaseOrder::Poll(LeaseNamed::Lease(id("l1")));
    assert_eq!(token(&folder.order("anna", poll).unwrap()), Some(1));
}

#[test]
fn a_store_from_a_copy_lets_no_old_lease_in() {
    let folder = Folder::new();
    let path = LeaseStore::path_in(folder.state.path());
    folder.ask("anna", "l1");
    let copy = |from: &std::path::Path, to: &std::path::Path| {
        for ending in ["", "-wal", "-shm"] {
            let of = |path: &std::path::Path| format!("{}{ending}", path.display());
            match std::fs::copy(of(from), of(to)) {
                Ok(_) => {}
                Err(_) => drop(std::fs::remove_file(of(to))),
            }
        }
    };
    let saved = folder.state.path().join("saved.db");
    copy(&path, &saved);
    folder.order("anna", release("l1")).unwrap();
    folder.ask("ben", "l2");
    let locks = Places::new(folder.state.path());
    let lock = locks.try_lock(&name("a")).unwrap();
    let admit = |who: &str| folder.with(|leases| leases.admit(&user(who), &name("a"), Some(&lock)));
    assert_eq!(admit("ben").unwrap(), Admission::Own { id: id("l2"), token: 2 });
    copy(&saved, &path);
    let refused = admit("anna");
    assert!(matches!(refused, Err(LeaseError::Fenced { token: 1, seen: 2, .. })), "{refused:?}");
    drop(lock);
    folder.order("anna", release("l1")).unwrap();
    assert_eq!(token(&folder.ask("cleo", "l3")), Some(3));
}

#[test]
fn processes_that_want_a_place_at_once_have_it_one_after_the_other() {
    let folder = Folder::new();
    let (inside, most, given) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    std::thread::scope(|threads| {
        for number in 0..4 {
            let (folder, inside, most, given) = (&folder, &inside, &most, &given);
            threads.spawn(move || {
                let who = format!("user-{number}");
                for _ in 0..5 {
                    let lease = new_lease_id();
                    let mut view = folder.order(&who, LeaseOrder::Ask(ask(lease.as_str(), "a")));
                    while token(view.as_ref().unwrap()).is_none() {
                        assert!(std::time::Instant::now() < deadline, "no lease within a minute");
                        std::thread::yield_now();
                        let poll = LeaseOrder::Poll(LeaseNamed::Lease(lease.clone()));
                        view = folder.order(&who, poll);
                    }
                    most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    given.fetch_max(token(&view.unwrap()).unwrap(), Ordering::SeqCst);
                    inside.fetch_sub(1, Ordering::SeqCst);
                    folder.order(&who, release(lease.as_str())).unwrap();
                }
            });
        }
    });
    assert_eq!(most.into_inner(), 1);
    assert_eq!(given.into_inner(), 20);
}

#[test]
fn the_journal_of_a_store_that_is_opened_for_each_order_stays_small() {
    let folder = Folder::new();
    let mut journal = LeaseStore::path_in(folder.state.path()).into_os_string();
    journal.push("-wal");
    let mut most = 0;
    for number in 0..120 {
        let lease = format!("l{number}");
        folder.ask("anna", &lease);
        folder.order("anna", release(&lease)).unwrap();
        most = most.max(std::fs::metadata(&journal).unwrap().len());
    }
    // One that has just grown enough, and the changes of the process that copies it.
    assert!(most < 320 << 10, "{most} bytes");
    assert!(folder.ask("ben", "last").id == id("last"));
}

#[test]
fn callers_of_one_open_store_have_a_place_one_after_the_other() {
    let folder = Folder::new();
    let (inside, most, given) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    folder.with(|leases| {
        let order = |who: &str, order: &LeaseOrder| match leases.answer(&user(who), order).unwrap()
        {
            LeaseAnswer::Lease { lease } => lease,
            LeaseAnswer::List { .. } => panic!("no lease"),
        };
        std::thread::scope(|threads| {
            for number in 0..4 {
                let (inside, most, given, order) = (&inside, &most, &given, &order);
                threads.spawn(move || {
                    let who = format!("user-{number}");
                    for _ in 0..20 {
                        let lease = new_lease_id();
                        let mut view = order(&who, &LeaseOrder::Ask(ask(lease.as_str(), "a")));
                        while token(&view).is_none() {
                            assert!(std::time::Instant::now() < deadline, "no lease in time");
                            std::thread::yield_now();
                            let named = LeaseNamed::Lease(lease.clone());
                            view = order(&who, &LeaseOrder::Poll(named));
                        }
                        most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        // Each token is higher than all before.
                        let before = given.swap(token(&view).unwrap(), Ordering::SeqCst);
                        assert!(before < token(&view).unwrap(), "{before}");
                        inside.fetch_sub(1, Ordering::SeqCst);
                        order(&who, &release(lease.as_str()));
                    }
                });
            }
        });
    });
    assert_eq!((most.into_inner(), given.into_inner()), (1, 80));
}

#[test]
fn a_store_of_something_else_is_refused() {
    let folder = Folder::new();
    let path = LeaseStore::path_in(folder.state.path());
    std::fs::write(&path, "no database, and long enough to be taken for one by its first bytes")
        .unwrap();
    let error = LeaseStore::open(&path).unwrap_err();
    assert!(error.to_string().starts_with("the lease store"), "{error}");
}
