//! What users of a rig may ask of its leases, with what the rig knows at that moment.

use std::collections::BTreeSet;
use std::path::Path;

use jig_model::access::{AccessQuestion, AccessRight, AccessRules};
use jig_model::lease::{
    LeaseAnswer, LeaseNamed, LeaseOrder, LeasePolicy, LeasedPlace, PlaceTraits, RigUser,
};
use jig_model::{IdentityName, PlaceName};

use super::row::time;
use super::{Admission, LeasablePlace, LeaseError, LeaseStore, LeaseTable};
use crate::identity::groups_of;
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
    /// Who may use which of them.
    pub access: &'r AccessRules,
}

impl RigLeases<'_> {
    /// Answers what a user asks. Whatever it is, places that are free are given to those who wait.
    ///
    /// # Errors
    /// It is refused, or the store cannot be used.
    pub fn answer(&self, user: &RigUser, order: &LeaseOrder) -> Result<LeaseAnswer, LeaseError> {
        let named = match order {
            LeaseOrder::Ask(ask) => Some(&ask.lease),
            LeaseOrder::Own { named, .. } => named.as_ref(),
            LeaseOrder::Renew { lease, .. } => Some(lease),
            LeaseOrder::Poll(named) | LeaseOrder::Release(named) => id_of(named),
            LeaseOrder::Extend { of, .. } => id_of(of),
            LeaseOrder::Steal { .. } | LeaseOrder::List => None,
        };
        let named: Vec<_> = named.into_iter().collect();
        let answer = |table: &mut LeaseTable, now| {
            table.expire(now, self.places);
            let id = match order {
                LeaseOrder::List => return Ok(self.list(table, now)),
                LeaseOrder::Ask(ask) => {
                    let own = self.usable_by(user);
                    table.ask(now, user, ask, self.policy, &own)?;
                    ask.lease.clone()
                }
                LeaseOrder::Own { need, named } => {
                    table.own(user, need, named.as_ref(), self.places)?
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
        };
        match order {
            LeaseOrder::List | LeaseOrder::Poll(_) | LeaseOrder::Own { .. } => {
                self.store.look(&named, answer)
            }
            _ => self.store.change(&named, answer),
        }
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
        let admission = self.store.look(&named, |table, now| {
            table.expire(now, self.places);
            table.admission(now, user, place, &|owner, at| self.may_use(owner, at))
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
        let may = |owner: &str, at: &PlaceTraits| self.may_use(owner, at);
        table.grant(now, self.policy, self.places, &may, |place| match self.locks.holder(place) {
            Ok(None) => Some(self.locks.fence(place)),
            Ok(Some(_)) | Err(_) => None,
        });
    }

    /// Tells whether the owner of a lease may use a place. Rules may have changed since it was asked for.
    fn may_use(&self, owner: &str, place: &PlaceTraits) -> bool {
        if self.access.rules.is_empty() {
            return true;
        }
        // One of an older program may have any text as its owner.
        let Ok(name) = owner.parse::<IdentityName>() else { return false };
        let groups = if self.access.name_groups() { groups_of(&name) } else { BTreeSet::new() };
        let right = Some(AccessRight::Use);
        self.access
            .decide(&AccessQuestion { name: &name, groups: &groups, right, place })
            .is_allowed()
    }

    /// Lists the places that a user may use.
    fn usable_by(&self, user: &RigUser) -> Vec<LeasablePlace> {
        let (name, groups, right) = (&user.identity.name, &user.groups, Some(AccessRight::Use));
        let usable = self.places.iter().filter(|at| {
            let place = &at.traits;
            self.access.decide(&AccessQuestion { name, groups, right, place }).is_allowed()
        });
        usable.cloned().collect()
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
