//! What is asked of leases, and what is answered.
//!
//! Times are those of the clock of the rig's host.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::PlaceSelector;
use crate::{ClassName, Identity, LeaseId, PlaceName};

/// As whom a command uses the rig.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RigUser {
    /// Who uses it.
    pub identity: Identity,
    /// The groups of a user of the rig's host, where a rule needs them; none for others.
    pub groups: BTreeSet<String>,
    /// The lease that the command names; any lease of this identity if none.
    pub lease: Option<LeaseId>,
}

impl RigUser {
    /// Returns by what name leases belong to the user.
    pub fn owner(&self) -> String {
        self.identity.name.to_string()
    }
}

/// Something that is asked of the leases of a rig.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub enum LeaseOrder {
    /// Asks for a place. Answered by [`LeaseAnswer::Lease`]; a lease that is still queued is asked
    /// for again by [`LeaseOrder::Poll`].
    Ask(LeaseAsk),
    /// Asks how a lease stands. A queued one that is not asked for leaves the queue after half a
    /// minute.
    Poll(LeaseNamed),
    /// Keeps an active lease for at least this time from now on.
    Renew {
        /// The lease.
        lease: LeaseId,
        /// How long, in milliseconds.
        for_ms: u64,
    },
    /// Moves the end of an active lease.
    Extend {
        /// The lease, or the place that it is for.
        of: LeaseNamed,
        /// By how long, in milliseconds.
        by_ms: u64,
    },
    /// Gives a place back, or leaves the queue.
    Release(LeaseNamed),
    /// Ends the lease of another user.
    Steal {
        /// Its place.
        place: PlaceName,
        /// Why, for the record.
        why: String,
    },
    /// Asks for an active lease of this user, for a place that would do: the one that is named, or one
    /// that all commands of the user may use.
    Own {
        /// Which places would do.
        need: PlaceSelector,
        /// The lease.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        named: Option<LeaseId>,
    },
    /// Lists places and queue. Answered by [`LeaseAnswer::List`].
    List,
}

/// Names a lease by its id, or by its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeaseNamed {
    /// By its id.
    Lease(LeaseId),
    /// The lease of this user for a place.
    Place(PlaceName),
}

/// Asks for a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeaseAsk {
    /// The id, chosen by the caller: the same question asked twice is one lease.
    pub lease: LeaseId,
    /// Which places would do.
    pub need: PlaceSelector,
    /// How long it lasts from when the place is got, in milliseconds; as the rig file says if
    /// nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// The class whose priority it has; that of the user if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ClassName>,
    /// For people. May hold any text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Whether only commands that name the lease may use it. For users who share an identity.
    #[serde(default)]
    pub by_id: bool,
    /// Whether a process of the user keeps it by [`LeaseOrder::Renew`] as long as it lives. Such a
    /// lease is not limited by the `longest` of the rig file while it is kept.
    #[serde(default)]
    pub kept: bool,
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum LeaseAnswer {
    /// A lease as it is now.
    Lease {
        /// The lease.
        lease: LeaseView,
    },
    /// All places, then the queue in its order.
    List {
        /// The time at the rig.
        now: Timestamp,
        /// The places.
        places: Vec<LeasedPlace>,
        /// Leases that wait for a place.
        queue: Vec<LeaseView>,
    },
}

/// A lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeaseView {
    /// Its id.
    pub id: LeaseId,
    /// Whose it is: the name of an identity. One of an older program may hold any text.
    pub owner: String,
    /// Which places would do.
    pub need: PlaceSelector,
    /// The class whose priority it has.
    pub class: ClassName,
    /// For people. May hold any text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Whether only commands that name it may use it.
    pub by_id: bool,
    /// Since when it is asked for.
    pub asked: Timestamp,
    /// How it stands.
    pub state: LeaseState,
}

/// How a lease stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum LeaseState {
    /// It waits for a place.
    Queued {
        /// Its position; 1 is next.
        position: usize,
        /// When the leases before it end at the latest if none is extended; nothing if a command
        /// without a lease uses the place.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expected: Option<Timestamp>,
    },
    /// It has a place.
    Active {
        /// The place.
        place: PlaceName,
        /// The fencing token: a later lease of the place has a higher one.
        token: u64,
        /// Since when.
        granted: Timestamp,
        /// When it ends unless it is extended.
        until: Timestamp,
        /// Whether a command runs under it now.
        in_use: bool,
    },
    /// It has ended.
    Ended {
        /// The place that it had.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<PlaceName>,
        /// When.
        at: Timestamp,
        /// Why.
        why: LeaseEnd,
    },
}

/// Why a lease has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum LeaseEnd {
    /// Its owner released it.
    #[error("it was released")]
    Released,
    /// Its time was over, or its owner was not heard of any more.
    #[error("its time was over")]
    Expired,
    /// Another user took the place.
    #[error("{by} ended it: {why}")]
    Stolen {
        /// Who; may hold any text.
        by: String,
        /// Why; may hold any text.
        why: String,
    },
    /// A lease of a higher class got the place.
    #[error("lease {by} of a higher class got the place")]
    Preempted {
        /// That lease.
        by: LeaseId,
    },
    /// The place is not in the rig file any more.
    #[error("the rig has no such place any more")]
    PlaceGone,
}

/// A place, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeasedPlace {
    /// The place.
    pub place: PlaceName,
    /// Its board.
    pub board: crate::BoardId,
    /// Whether it is in service.
    pub usable: bool,
    /// Its active lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<LeaseView>,
    /// The process that uses it now. May hold any text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_use_by: Option<String>,
}
