//! What users of a rig may ask of its leases, with what the rig knows at that moment.

use std::path::Path;

use jig_model::PlaceName;
use jig_model::lease::{LeaseAnswer, LeaseNamed, LeaseOrder, LeasePolicy, LeasedPlace, RigUser};

use super::row::time;
use super::{Admission, LeasablePlace, LeaseError, LeaseStore, LeaseTable};
use crate::store::{PlaceLock, Places};

/// The leases of a rig as its rig file describes it now.
#[derive(Debug)]
pub struct RigLeases<'r> {
    /// The store.
    pub store: &'r LeaseStore,
    /// The locks of places.
    pub locks: &'r Places,
    /// The rules.
    pub policy: &'r LeasePolicy,
    /// The places.
    pub places: &'r [LeasablePlace],
}

impl RigLeases<'_> {
    /// Answers what a user asks. Whatever it is, places that are free are given to those who wait.
    ///
    /// # Errors
    /// It is refused, or the store cannot be used.
    pub fn answer(&self, user: &RigUser, order: &LeaseOrder) -> Result<LeaseAnswer, LeaseError> {
        let named = match order {
            LeaseOrder::Ask(ask) => Some(&ask.lease),
            LeaseOrder::Renew { lease, .. } => Some(lease),
            LeaseOrder::Poll(named) | LeaseOrder::Release(named) => id_of(named),
            LeaseOrder::Extend { of, .. } => id_of(of),
            LeaseOrder::Steal { .. } | LeaseOrder::List => None,
        };
        let named: Vec<_> = named.into_iter().collect();
        self.store.change(&named, |table, now| {
            table.expire(now, self.places);
            let id = match order {
                LeaseOrder::List => return Ok(self.list(table, now)),
                LeaseOrder::Ask(ask) => {
                    table.ask(now, user, ask, self.policy, self.places)?;
                    ask.lease.clone()
                }
                LeaseOrder::Poll(named) => {
                    let id = table.named(user, named)?;
                    table.poll(now, user, &id)?;
                    id
                }
                LeaseOrder::Renew { lease, for_ms } => {
                    table.renew(now, user, lease, *for_ms, None)?;
                    lease.clone()
                }
                LeaseOrder::Extend { of, by_ms } => table.extend(user, of, *by_ms)?,
                LeaseOrder::Release(named) => table.release(now, user, named)?,
                LeaseOrder::Steal { place, why } => table.steal(now, user, place, why)?,
            };
            self.grant(table, now);
            if matches!(order, LeaseOrder::Ask(_) | LeaseOrder::Poll(_)) {
                table.confirm(&id);
            }
            let lease = table.view(now, &id, self.policy, self.places)?;
            Ok(LeaseAnswer::Lease { lease })
        })
    }

    /// Tells whether a user may use a place now; the lock of the place tells that no other process
    /// does. A lease is noted to be in use for `for_ms`.
    ///
    /// # Errors
    /// The place is leased by another user, others wait for it, or the store cannot be used.
    pub fn admit(
        &self,
        user: &RigUser,
        place: &PlaceName,
        lock: Option<&PlaceLock>,
    ) -> Result<Admission, LeaseError> {
        let Some(place) = self.places.iter().find(|at| at.name() == place) else {
            return Ok(Admission::Free);
        };
        let named: Vec<_> = user.lease.iter().collect();
        let admission = self.store.change(&named, |table, now| {
            table.expire(now, self.places);
            table.admission(now, user, place)
        })?;
        if let (Admission::Own { id, token }, Some(lock)) = (&admission, lock) {
            let seen = lock.pass_fence(*token)?;
            if seen > *token {
                let (place, id, token) = (place.name().clone(), id.clone(), *token);
                return Err(LeaseError::Fenced { place, id, token, seen });
            }
        }
        Ok(admission)
    }

    /// Notes for how long a command runs under a lease, in milliseconds; nothing once it has ended.
    ///
    /// # Errors
    /// The lease has ended, or the store cannot be used.
    pub fn use_lease(
        &self,
        user: &RigUser,
        lease: &jig_model::LeaseId,
        for_ms: Option<u64>,
    ) -> Result<(), LeaseError> {
        self.store.change(&[lease], |table, now| {
            table.expire(now, self.places);
            table.renew(now, user, lease, for_ms.unwrap_or(1_000), Some(for_ms.is_some()))
        })
    }

    fn grant(&self, table: &mut LeaseTable, now: i64) {
        table.grant(now, self.policy, self.places, |place| match self.locks.holder(place) {
            Ok(None) => Some(self.locks.fence(place)),
            Ok(Some(_)) | Err(_) => None,
        });
    }

    fn list(&self, table: &LeaseTable, now: i64) -> LeaseAnswer {
        let places = self.places.iter().map(|at| LeasedPlace {
            place: at.name().clone(),
            board: at.traits.board.clone(),
            usable: at.is_usable(),
            lease: table.view_of_place(now, at.name()),
            in_use_by: match self.locks.holder(at.name()) {
                Ok(Some(Some(holder))) => Some(holder.to_string()),
                Ok(Some(None)) => Some("another process".to_owned()),
                Ok(None) | Err(_) => None,
            },
        });
        let queue = table.queue(now, self.policy, self.places);
        LeaseAnswer::List { now: time(now), places: places.collect(), queue }
    }
}

fn id_of(named: &LeaseNamed) -> Option<&jig_model::LeaseId> {
    match named {
        LeaseNamed::Lease(id) => Some(id),
        LeaseNamed::Place(_) => None,
    }
}

/// Tells whether a rig has leases at all: without the file, no lease was ever asked for.
pub fn has_leases(store: &Path) -> bool {
    store.exists()
}
