//! What can go wrong with leases.

use std::time::Duration;

use jig_model::lease::{LeaseEnd, LeaseView, PlaceSelector};
use jig_model::{ClassName, Fault, LeaseId, PlaceName};

use crate::database::DatabaseError;
use crate::store::StoreError;

/// Most leases that wait, of one user and of all.
pub(super) const MOST_QUEUED: usize = 64;
pub(super) const MOST_QUEUED_IN_ALL: usize = 1024;

/// Says why a lease was not given, changed or used.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// The selector fits no place.
    #[error("no place can be leased: {0}")]
    NoPlace(String),
    /// All places that fit are out of service.
    #[error("each place that would do is out of service: {}", names(.0))]
    OutOfService(Vec<PlaceName>),
    /// There is no such class.
    #[error("there is no class {0:?} in the rig file")]
    NoClass(ClassName),
    /// The user may not have that priority.
    #[error("class {asked} goes before class {own}, which is that of {identity:?}")]
    AboveOwn {
        /// The class that was asked for.
        asked: ClassName,
        /// The class of the user.
        own: ClassName,
        /// The user.
        identity: String,
    },
    /// A lease cannot last that long.
    #[error("a lease of class {class} lasts {longest:?} at most")]
    TooLong {
        /// The class.
        class: ClassName,
        /// The limit.
        longest: Duration,
    },
    /// A time is out of range.
    #[error("a lease lasts from a second to a year")]
    NoTime,
    /// Too many leases wait.
    #[error(
        "the queue is full: {MOST_QUEUED} leases of one user or {MOST_QUEUED_IN_ALL} of all may wait"
    )]
    QueueFull,
    /// There is no such lease.
    #[error("there is no lease {0}")]
    Unknown(LeaseId),
    /// The user has none for the place.
    #[error("you have no lease for place {0}")]
    NoneHere(PlaceName),
    /// The user has none for a place that would do.
    #[error("you have no lease for a place that is {0}")]
    NoneThere(PlaceSelector),
    /// No user has one for the place.
    #[error("place {0} is not leased")]
    NotLeased(PlaceName),
    /// It is another user's.
    #[error("lease {id} belongs to {owner:?}")]
    NotYours {
        /// The lease.
        id: LeaseId,
        /// Its owner.
        owner: String,
    },
    /// It has ended.
    #[error("lease {id} has ended: {why}")]
    Ended {
        /// The lease.
        id: LeaseId,
        /// Why.
        why: LeaseEnd,
    },
    /// It has no place yet.
    #[error("lease {0} has no place yet")]
    Queued(LeaseId),
    /// It is for another place.
    #[error("lease {id} is for place {place}")]
    Elsewhere {
        /// The lease.
        id: LeaseId,
        /// Its place.
        place: PlaceName,
    },
    /// Another user has the place.
    #[error("place {place} is leased by {}", holder(.lease))]
    Leased {
        /// The place.
        place: PlaceName,
        /// That user's lease.
        lease: Box<LeaseView>,
    },
    /// Others wait for the place.
    #[error("{waiting} others wait for place {place}")]
    QueuedAhead {
        /// The place.
        place: PlaceName,
        /// How many.
        waiting: usize,
    },
    /// The token of the lease is older than one that the place has seen.
    #[error("place {place} has seen token {seen}, and lease {id} has token {token}")]
    Fenced {
        /// The place.
        place: PlaceName,
        /// The lease.
        id: LeaseId,
        /// Its token.
        token: u64,
        /// The highest token that the place has seen.
        seen: u64,
    },
    /// The lease was not given in time.
    #[error("{}; position {position} in the queue", not_free(*waited))]
    NotInTime {
        /// How long it was waited for.
        waited: Duration,
        /// Its position, from 1.
        position: usize,
    },
    /// The caller cancelled it.
    #[error("the waiting for a place was stopped")]
    Cancelled,
    /// The database cannot be used.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// A file of a place cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn not_free(waited: Duration) -> String {
    match waited.is_zero() {
        true => "no place that would do is free now".to_owned(),
        false => format!("no place that would do was free within {waited:?}"),
    }
}

fn names(places: &[PlaceName]) -> String {
    places.iter().map(PlaceName::as_str).collect::<Vec<_>>().join(", ")
}

/// Names the holder of a lease.
fn holder(lease: &LeaseView) -> String {
    let LeaseView { id, owner, comment, .. } = lease;
    let comment = comment.as_ref().map_or_else(String::new, |comment| format!(", {comment:?}"));
    let until = match &lease.state {
        jig_model::lease::LeaseState::Active { until, .. } => {
            format!(", until {}", until.strftime("%Y-%m-%d %H:%M:%SZ"))
        }
        _ => String::new(),
    };
    format!("{owner:?} (lease {id}{until}{comment})")
}

impl LeaseError {
    /// Names those who have the place, or go first.
    pub fn others(&self) -> String {
        match self {
            Self::Leased { lease, .. } => holder(lease),
            Self::QueuedAhead { waiting, .. } => format!("{waiting} others, who wait for it"),
            _ => self.to_string(),
        }
    }

    /// Says who is to blame.
    pub fn fault(&self) -> Fault {
        match self {
            Self::NoPlace(_)
            | Self::NoClass(_)
            | Self::AboveOwn { .. }
            | Self::TooLong { .. }
            | Self::NoTime
            | Self::Unknown(_)
            | Self::NoneHere(_)
            | Self::NoneThere(_)
            | Self::NotLeased(_)
            | Self::NotYours { .. }
            | Self::Queued(_)
            | Self::Elsewhere { .. } => Fault::Usage,
            Self::OutOfService(_)
            | Self::QueueFull
            | Self::Ended { .. }
            | Self::Leased { .. }
            | Self::QueuedAhead { .. }
            | Self::Fenced { .. }
            | Self::NotInTime { .. } => Fault::Lab,
            Self::Cancelled => Fault::Cancelled,
            Self::Database(error) => error.fault(),
            Self::Store(error) => error.fault(),
        }
    }
}
