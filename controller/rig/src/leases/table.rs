//! The table of leases: one pure step for each thing that is asked, and one for the time.

use std::cmp::Reverse;
use std::collections::BTreeMap;
#[cfg(test)]
use std::collections::BTreeSet;
use std::time::Duration;

use jig_model::lease::{
    LeaseAsk, LeaseEnd, LeaseNamed, LeasePolicy, LeaseView, PlaceSelector, PlaceTraits, RigUser,
};
use jig_model::{LeaseId, PlaceName};

use super::error::{MOST_QUEUED, MOST_QUEUED_IN_ALL};
use super::row::{LeaseRow, LeaseStage, PlaceRow};
use super::{LeasablePlace, LeaseError};

/// Tells whether the owner of a lease may use a place.
pub(super) type MayUse<'m> = &'m dyn Fn(&str, &PlaceTraits) -> bool;

/// How long a queued lease stays in the queue without being asked for: many times the pause of a
/// waiting process, and less than a person waits before asking why nothing moves.
const QUEUE_GRACE: i64 = 30_000;
/// How much of that time has passed before a sign of life is written down: the others cost a reader no
/// flush of the disk.
const NOTED_AFTER: i64 = QUEUE_GRACE / 4;

/// Shortest and longest time that can be asked for, in milliseconds.
const TIMES: std::ops::RangeInclusive<u64> = 1_000..=365 * 86_400_000;

/// How much text of a user is kept, in characters.
const MOST_COMMENT: usize = 200;

/// Whether a user may use a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// No lease is for the place.
    Free,
    /// This one is, and it is the user's.
    Own {
        /// The lease.
        id: LeaseId,
        /// Its token.
        token: u64,
    },
}

/// All live leases, and what is known of places.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LeaseTable {
    pub(super) places: BTreeMap<PlaceName, PlaceRow>,
    pub(super) leases: Vec<LeaseRow>,
}

impl LeaseTable {
    /// Ends what is over at `now`: leases whose time has come, queued ones that are not asked for,
    /// and those of places that the rig does not have any more.
    pub(super) fn expire(&mut self, now: i64, places: &[LeasablePlace]) {
        for row in &mut self.leases {
            let over = match &row.stage {
                LeaseStage::Ended { .. } => continue,
                LeaseStage::Active { place, .. } if !places.iter().any(|at| at.name() == place) => {
                    Some(LeaseEnd::PlaceGone)
                }
                LeaseStage::Active { .. } | LeaseStage::Queued => {
                    (row.until <= now).then_some(LeaseEnd::Expired)
                }
            };
            if let Some(why) = over {
                // The time at which it was over, whenever that is noticed.
                end(&mut self.places, row, now.min(row.until), why);
            }
        }
    }

    /// Puts a lease into the queue. The same question asked twice is one lease.
    pub(super) fn ask(
        &mut self,
        now: i64,
        user: &RigUser,
        ask: &LeaseAsk,
        policy: &LeasePolicy,
        places: &[LeasablePlace],
    ) -> Result<(), LeaseError> {
        if let Some(row) = self.leases.iter().find(|row| row.id == ask.lease) {
            return row.must_be_of(user);
        }
        let fitting: Vec<_> = places.iter().filter(|at| ask.need.fits(&at.traits)).collect();
        if fitting.is_empty() {
            let traits: Vec<_> = places.iter().map(|at| at.traits.clone()).collect();
            return Err(LeaseError::NoPlace(ask.need.why_none(&traits)));
        }
        if !fitting.iter().any(|at| at.is_usable()) {
            let names = fitting.iter().map(|at| at.name().clone());
            return Err(LeaseError::OutOfService(names.collect()));
        }
        let own = policy.class_of(user);
        let class = match &ask.class {
            None => own,
            Some(name) => Some(policy.class(name).ok_or(LeaseError::NoClass(name.clone()))?),
        };
        // A rig file without classes is refused when it is read.
        let (Some(class), Some(own)) = (class, own) else { return Err(LeaseError::QueueFull) };
        if class.priority > own.priority {
            let (asked, own) = (class.name.clone(), own.name.clone());
            return Err(LeaseError::AboveOwn { asked, own, identity: user.owner() });
        }
        let ttl_ms = ask.ttl_ms.unwrap_or_else(|| {
            let usual = class.longest.map_or(policy.ttl, |longest| longest.min(policy.ttl));
            millis(usual).unsigned_abs()
        });
        if !TIMES.contains(&ttl_ms) {
            return Err(LeaseError::NoTime);
        }
        let ttl = i64::try_from(ttl_ms).unwrap_or(i64::MAX);
        let longest = class.longest.filter(|_| !ask.kept).map(millis);
        if let Some(limit) = class.longest.filter(|limit| !ask.kept && millis(*limit) < ttl) {
            return Err(LeaseError::TooLong { class: class.name.clone(), longest: limit });
        }
        let queued = self.leases.iter().filter(|row| row.is_queued());
        let of_user = queued.clone().filter(|row| row.owner == user.owner()).count();
        if of_user >= MOST_QUEUED || queued.count() >= MOST_QUEUED_IN_ALL {
            return Err(LeaseError::QueueFull);
        }
        let short = |text: &String| text.chars().take(MOST_COMMENT).collect();
        self.leases.push(LeaseRow {
            id: ask.lease.clone(),
            owner: user.owner(),
            need: ask.need.clone(),
            class: class.name.clone(),
            priority: class.priority,
            yields: class.yields,
            comment: ask.comment.as_ref().map(short),
            by_id: ask.by_id,
            ttl,
            longest,
            asked: now,
            until: now.saturating_add(QUEUE_GRACE),
            busy: 0,
            stage: LeaseStage::Queued,
        });
        Ok(())
    }

    /// Notes that a queued lease is still asked for.
    pub(super) fn poll(
        &mut self,
        now: i64,
        user: &RigUser,
        id: &LeaseId,
    ) -> Result<(), LeaseError> {
        let row = self.row_mut(id)?;
        row.must_be_of(user)?;
        if row.is_queued() && row.until < now.saturating_add(QUEUE_GRACE - NOTED_AFTER) {
            row.until = now.saturating_add(QUEUE_GRACE);
        }
        Ok(())
    }

    /// Notes that the owner of a lease has seen that it is active: from now on it has its whole time.
    pub(super) fn confirm(&mut self, id: &LeaseId) {
        let Some(row) = self.leases.iter_mut().find(|row| row.id == *id) else { return };
        if let LeaseStage::Active { granted, .. } = row.stage {
            row.until = row.until.max(granted.saturating_add(row.ttl));
        }
    }

    /// Gives places to those who wait, in their order, where they may use them. `idle` tells whether no process uses a place,
    /// and then the highest token that the place has seen; it is asked for a place at most once.
    pub(super) fn grant(
        &mut self,
        now: i64,
        policy: &LeasePolicy,
        places: &[LeasablePlace],
        may: MayUse<'_>,
        mut idle: impl FnMut(&PlaceName) -> Option<u64>,
    ) {
        let mut answers: BTreeMap<PlaceName, Option<u64>> = BTreeMap::new();
        let mut idle =
            |place: &PlaceName| *answers.entry(place.clone()).or_insert_with(|| idle(place));
        for number in self.order(now, policy) {
            let row = &self.leases[number];
            let fits = |at: &&LeasablePlace| {
                at.is_usable() && row.need.fits(&at.traits) && may(&row.owner, &at.traits)
            };
            let mut fitting: Vec<&LeasablePlace> = places.iter().filter(fits).collect();
            // The healthiest first, then the one that has rested longest.
            fitting.sort_by_key(|at| {
                let used = self.places.get(at.name()).map_or(0, |row| row.used);
                (at.fitness, used, at.name().clone())
            });
            let free = fitting.iter().map(|at| at.name()).find_map(|place| {
                let leased = self.holder(place).is_some();
                let seen = if leased { None } else { idle(place) };
                seen.map(|seen| (place.clone(), seen))
            });
            let got = free.or_else(|| {
                let priority = self.leases[number].priority;
                let (place, seen, holder) =
                    fitting.iter().map(|at| at.name()).find_map(|place| {
                        let holder = self.holder(place)?;
                        let row = &self.leases[holder];
                        let gives_way =
                            row.yields && row.priority < priority && !row.is_in_use(now);
                        let seen = if gives_way { idle(place) } else { None };
                        seen.map(|seen| (place.clone(), seen, holder))
                    })?;
                let by = self.leases[number].id.clone();
                let row = &mut self.leases[holder];
                end(&mut self.places, row, now, LeaseEnd::Preempted { by });
                Some((place, seen))
            });
            let Some((place, seen)) = got else { continue };
            let known = self.places.entry(place.clone()).or_default();
            known.token = known.token.max(seen).saturating_add(1);
            let row = &mut self.leases[number];
            // Until its owner, who may have died while waiting, has seen it.
            row.until = now.saturating_add(row.ttl.min(QUEUE_GRACE));
            row.stage = LeaseStage::Active { place, token: known.token, granted: now };
        }
    }

    /// Keeps an active lease for at least `for_ms` from now on. `in_use` tells whether a command runs
    /// under it, where the caller knows.
    pub(super) fn renew(
        &mut self,
        now: i64,
        user: &RigUser,
        id: &LeaseId,
        for_ms: u64,
        in_use: Option<bool>,
    ) -> Result<(), LeaseError> {
        if !TIMES.contains(&for_ms) {
            return Err(LeaseError::NoTime);
        }
        let row = self.row_mut(id)?;
        row.must_be_of(user)?;
        row.must_be_active()?;
        let later = now.saturating_add(i64::try_from(for_ms).unwrap_or(i64::MAX));
        match in_use {
            Some(false) => row.busy = 0,
            Some(true) => {
                row.busy = later;
                row.until = row.until.max(later);
            }
            None => row.until = row.until.max(later),
        }
        Ok(())
    }

    /// Moves the end of an active lease.
    pub(super) fn extend(
        &mut self,
        user: &RigUser,
        of: &LeaseNamed,
        by_ms: u64,
    ) -> Result<LeaseId, LeaseError> {
        if !TIMES.contains(&by_ms) {
            return Err(LeaseError::NoTime);
        }
        let id = self.named(user, of)?;
        let row = self.row_mut(&id)?;
        let granted = row.must_be_active()?;
        let until = row.until.saturating_add(i64::try_from(by_ms).unwrap_or(i64::MAX));
        if let Some(longest) =
            row.longest.filter(|longest| until.saturating_sub(granted) > *longest)
        {
            let longest = Duration::from_millis(longest.unsigned_abs());
            return Err(LeaseError::TooLong { class: row.class.clone(), longest });
        }
        row.until = until;
        Ok(id)
    }

    /// Ends a lease of the user, queued or active; one that has ended stays as it is.
    pub(super) fn release(
        &mut self,
        now: i64,
        user: &RigUser,
        of: &LeaseNamed,
    ) -> Result<LeaseId, LeaseError> {
        let id = self.named(user, of)?;
        if let Some(row) = self.leases.iter_mut().find(|row| row.id == id) {
            end(&mut self.places, row, now, LeaseEnd::Released);
        }
        Ok(id)
    }

    /// Ends the lease of a place, also that of another user.
    pub(super) fn steal(
        &mut self,
        now: i64,
        user: &RigUser,
        place: &PlaceName,
        why: &str,
    ) -> Result<LeaseId, LeaseError> {
        let holder = self.holder(place).ok_or_else(|| LeaseError::NotLeased(place.clone()))?;
        let row = &mut self.leases[holder];
        let why: String = why.chars().take(MOST_COMMENT).collect();
        let by = user.owner();
        end(&mut self.places, row, now, LeaseEnd::Stolen { by, why });
        Ok(row.id.clone())
    }

    /// Tells whether a user may use a place now, as far as leases are concerned.
    pub(super) fn admission(
        &self,
        now: i64,
        user: &RigUser,
        place: &LeasablePlace,
        may: MayUse<'_>,
    ) -> Result<Admission, LeaseError> {
        let held = self.holder(place.name()).map(|number| &self.leases[number]);
        if let Some(id) = &user.lease
            && held.is_none_or(|row| row.id != *id)
        {
            // A command that names a lease runs under that one or not at all.
            let row = self.row(id)?;
            row.must_be_of(user)?;
            row.must_be_active()?;
            let elsewhere = row.place().unwrap_or(place.name()).clone();
            return Err(LeaseError::Elsewhere { id: id.clone(), place: elsewhere });
        }
        match held {
            Some(row) => {
                let named = user.lease.is_some() || !row.by_id;
                match &row.stage {
                    LeaseStage::Active { token, .. } if row.owner == user.owner() && named => {
                        Ok(Admission::Own { id: row.id.clone(), token: *token })
                    }
                    _ => Err(LeaseError::Leased {
                        place: place.name().clone(),
                        lease: Box::new(row.view(now, (0, None))),
                    }),
                }
            }
            None => {
                let waits = |row: &&LeaseRow| {
                    row.is_queued()
                        && row.need.fits(&place.traits)
                        && may(&row.owner, &place.traits)
                };
                match self.leases.iter().filter(waits).count() {
                    0 => Ok(Admission::Free),
                    waiting => {
                        Err(LeaseError::QueuedAhead { place: place.name().clone(), waiting })
                    }
                }
            }
        }
    }

    /// Shows a lease.
    pub(super) fn view(
        &self,
        now: i64,
        id: &LeaseId,
        policy: &LeasePolicy,
        places: &[LeasablePlace],
    ) -> Result<LeaseView, LeaseError> {
        let row = self.row(id)?;
        let order = self.order(now, policy);
        let ahead = order.iter().position(|number| self.leases[*number].id == *id).unwrap_or(0);
        Ok(row.view(now, (ahead + 1, self.expected(row, &order[..ahead], places))))
    }

    /// Shows the lease of a place.
    pub(super) fn view_of_place(&self, now: i64, place: &PlaceName) -> Option<LeaseView> {
        self.holder(place).map(|number| self.leases[number].view(now, (0, None)))
    }

    /// Shows the queue in its order.
    pub(super) fn queue(
        &self,
        now: i64,
        policy: &LeasePolicy,
        places: &[LeasablePlace],
    ) -> Vec<LeaseView> {
        let order = self.order(now, policy);
        let view = |(ahead, number): (usize, &usize)| {
            let row = &self.leases[*number];
            row.view(now, (ahead + 1, self.expected(row, &order[..ahead], places)))
        };
        order.iter().enumerate().map(view).collect()
    }

    /// Lists who waits: by priority, to which each step of ageing adds one, then by time.
    fn order(&self, now: i64, policy: &LeasePolicy) -> Vec<usize> {
        let queued = (0..self.leases.len()).filter(|number| self.leases[*number].is_queued());
        let mut order: Vec<usize> = queued.collect();
        let step = millis(policy.ageing).max(1);
        order.sort_by_key(|number| {
            let row = &self.leases[*number];
            let aged = now.saturating_sub(row.asked) / step;
            (Reverse(i64::from(row.priority).saturating_add(aged)), row.asked, row.id.clone())
        });
        order
    }

    /// Tells when a place would be free for a queued lease if no lease is extended, and each one
    /// before it lasts as long as it asks for.
    fn expected(&self, row: &LeaseRow, ahead: &[usize], places: &[LeasablePlace]) -> Option<i64> {
        let fits = |row: &LeaseRow, at: &LeasablePlace| at.is_usable() && row.need.fits(&at.traits);
        let mut ends: BTreeMap<&PlaceName, i64> = BTreeMap::new();
        for at in places.iter().filter(|at| at.is_usable()) {
            if let Some(number) = self.holder(at.name()) {
                ends.insert(at.name(), self.leases[number].until);
            }
        }
        let ahead = ahead.iter().map(|number| &self.leases[*number]);
        for before in ahead {
            let fitting = places.iter().filter(|at| fits(before, at)).map(LeasablePlace::name);
            let next = fitting.filter_map(|name| Some((*ends.get(name)?, name))).min();
            if let Some((end, name)) = next {
                ends.insert(name, end.saturating_add(before.ttl));
            }
        }
        let fitting = places.iter().filter(|at| fits(row, at)).map(LeasablePlace::name);
        fitting.filter_map(|name| ends.get(name).copied()).min()
    }

    /// Finds the active lease of a place.
    fn holder(&self, place: &PlaceName) -> Option<usize> {
        self.leases.iter().position(|row| row.place() == Some(place))
    }

    fn row(&self, id: &LeaseId) -> Result<&LeaseRow, LeaseError> {
        let found = self.leases.iter().find(|row| row.id == *id);
        found.ok_or_else(|| LeaseError::Unknown(id.clone()))
    }

    fn row_mut(&mut self, id: &LeaseId) -> Result<&mut LeaseRow, LeaseError> {
        let found = self.leases.iter_mut().find(|row| row.id == *id);
        found.ok_or_else(|| LeaseError::Unknown(id.clone()))
    }

    /// Finds the lease that is named; it has to be the user's.
    pub(super) fn named(&self, user: &RigUser, of: &LeaseNamed) -> Result<LeaseId, LeaseError> {
        match of {
            LeaseNamed::Lease(id) => self.row(id)?.must_be_of(user).map(|()| id.clone()),
            LeaseNamed::Place(place) => {
                let row = self.holder(place).map(|number| &self.leases[number]);
                let row = row.filter(|row| row.owner == user.owner());
                row.map(|row| row.id.clone()).ok_or_else(|| LeaseError::NoneHere(place.clone()))
            }
        }
    }

    /// Finds an active lease of a user for a place that would do: the one that is named, or one that
    /// all commands of the user may use.
    pub(super) fn own(
        &self,
        user: &RigUser,
        need: &PlaceSelector,
        named: Option<&LeaseId>,
        places: &[LeasablePlace],
    ) -> Result<LeaseId, LeaseError> {
        if let Some(id) = named {
            let row = self.row(id)?;
            row.must_be_of(user)?;
            row.must_be_active()?;
        }
        let usable = |row: &&LeaseRow| match named {
            Some(id) => row.id == *id,
            None => row.owner == user.owner() && !row.by_id,
        };
        let fits = |row: &&LeaseRow| {
            let at = row.place().and_then(|place| places.iter().find(|at| at.name() == place));
            at.is_some_and(|at| need.fits(&at.traits))
        };
        let own = self.leases.iter().filter(usable).find(fits).map(|row| row.id.clone());
        own.ok_or_else(|| LeaseError::NoneThere(need.clone()))
    }

    /// Lists places that two active leases are for, which must never be.
    #[cfg(test)]
    pub(super) fn held_twice(&self) -> BTreeSet<PlaceName> {
        let mut seen = BTreeSet::new();
        let active = self.leases.iter().filter_map(LeaseRow::place);
        active.filter(|place| !seen.insert((*place).clone())).cloned().collect()
    }
}

/// Ends a lease that lives; its place has been used until then.
fn end(places: &mut BTreeMap<PlaceName, PlaceRow>, row: &mut LeaseRow, at: i64, why: LeaseEnd) {
    match &row.stage {
        LeaseStage::Ended { .. } => return,
        LeaseStage::Active { place, .. } => places.entry(place.clone()).or_default().used = at,
        LeaseStage::Queued => {}
    }
    row.end(at, why);
}

impl LeaseRow {
    fn must_be_of(&self, user: &RigUser) -> Result<(), LeaseError> {
        match self.owner == user.owner() {
            true => Ok(()),
            false => Err(LeaseError::NotYours { id: self.id.clone(), owner: self.owner.clone() }),
        }
    }

    /// Returns since when it is active.
    fn must_be_active(&self) -> Result<i64, LeaseError> {
        match &self.stage {
            LeaseStage::Active { granted, .. } => Ok(*granted),
            LeaseStage::Queued => Err(LeaseError::Queued(self.id.clone())),
            LeaseStage::Ended { why, .. } => {
                Err(LeaseError::Ended { id: self.id.clone(), why: why.clone() })
            }
        }
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
