//! The rows of the table. Times are milliseconds since 1970, of the clock of the database.

use jiff::Timestamp;
use jig_model::lease::{LeaseEnd, LeaseState, LeaseView, PlaceSelector};
use jig_model::{ClassName, LeaseId, PlaceName};

/// What is known of a place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PlaceRow {
    /// The token of its last lease; 0 before the first one.
    pub(super) token: u64,
    /// When its last lease ended.
    pub(super) used: i64,
}

/// A lease that is asked for, active, or has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LeaseRow {
    pub(super) id: LeaseId,
    pub(super) owner: String,
    pub(super) need: PlaceSelector,
    pub(super) class: ClassName,
    pub(super) priority: i32,
    pub(super) yields: bool,
    pub(super) comment: Option<String>,
    pub(super) by_id: bool,
    pub(super) ttl: i64,
    pub(super) longest: Option<i64>,
    pub(super) asked: i64,
    /// When it ends, or leaves the queue, if nothing is heard of it.
    pub(super) until: i64,
    /// A command runs under it until then, or until it says that it has ended.
    pub(super) busy: i64,
    pub(super) stage: LeaseStage,
}

/// Where a lease is in its life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LeaseStage {
    Queued,
    Active { place: PlaceName, token: u64, granted: i64 },
    Ended { place: Option<PlaceName>, at: i64, why: LeaseEnd },
}

/// Returns a time as others see it.
pub(super) fn time(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(ms).unwrap_or(if ms < 0 { Timestamp::MIN } else { Timestamp::MAX })
}

impl LeaseRow {
    pub(super) fn is_queued(&self) -> bool {
        self.stage == LeaseStage::Queued
    }

    pub(super) fn place(&self) -> Option<&PlaceName> {
        match &self.stage {
            LeaseStage::Active { place, .. } => Some(place),
            LeaseStage::Queued | LeaseStage::Ended { .. } => None,
        }
    }

    pub(super) fn is_in_use(&self, now: i64) -> bool {
        self.busy > now
    }

    pub(super) fn end(&mut self, at: i64, why: LeaseEnd) {
        let place = self.place().cloned();
        self.stage = LeaseStage::Ended { place, at, why };
    }

    /// Shows the lease; `position` and `expected` are those of a queued one.
    pub(super) fn view(&self, now: i64, (position, expected): (usize, Option<i64>)) -> LeaseView {
        let state = match &self.stage {
            LeaseStage::Queued => LeaseState::Queued { position, expected: expected.map(time) },
            LeaseStage::Active { place, token, granted } => LeaseState::Active {
                place: place.clone(),
                token: *token,
                granted: time(*granted),
                until: time(self.until),
                in_use: self.is_in_use(now),
            },
            LeaseStage::Ended { place, at, why } => {
                LeaseState::Ended { place: place.clone(), at: time(*at), why: why.clone() }
            }
        };
        LeaseView {
            id: self.id.clone(),
            owner: self.owner.clone(),
            need: self.need.clone(),
            class: self.class.clone(),
            comment: self.comment.clone(),
            by_id: self.by_id,
            asked: time(self.asked),
            state,
        }
    }
}
