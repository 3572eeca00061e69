//! What to type next when a lease was refused.

use jig_model::chain;
use jig_rig::console::escape;
use jig_rig::leases::LeaseError;

use super::Failure;

impl From<LeaseError> for Failure {
    fn from(error: LeaseError) -> Self {
        let failure = Self::new(error.fault(), escape(chain(&error).as_bytes()).to_string());
        match error {
            LeaseError::Leased { place, .. } | LeaseError::QueuedAhead { place, .. } => failure
                .help(format!(
                    "stand in the queue: `jig lease acquire -b {place} --wait 30m`; `jig lease ls` \
                     shows it"
                )),
            LeaseError::NotInTime { .. } => {
                failure.help(
                    "wait for longer: jig lease acquire -b PLACE --wait 30m; who has what: jig lease ls",
                )
            }
            LeaseError::NoPlace(_) => failure.help("`jig lease ls` lists the places"),
            LeaseError::OutOfService(places) => match &places[..] {
                [place] => failure.help(format!("see why: jig health -b {place}")),
                _ => failure.help("see why: jig health"),
            },
            LeaseError::NoClass(_) | LeaseError::AboveOwn { .. } => {
                failure.help("classes and their members stand in [leases] of the rig file")
            }
            LeaseError::Ended { .. } | LeaseError::Unknown(_) => failure
                .help("leave --lease and JIG_LEASE out, or get one: jig lease acquire -b PLACE"),
            LeaseError::Elsewhere { place, .. } => {
                failure.help(format!("use -b {place}, or leave --lease and JIG_LEASE out"))
            }
            LeaseError::NotYours { .. }
            | LeaseError::NoneHere(_)
            | LeaseError::NoneThere(_)
            | LeaseError::NotLeased(_) => {
                failure.help("`jig lease ls` shows whose it is")
            }
            LeaseError::QueueFull => failure.help("release leases that nothing waits for"),
            LeaseError::Fenced { place, .. } => failure.help(format!(
                "the lease store is older than the place: release the lease and get a new one: jig \
                 lease release {place}"
            )),
            LeaseError::Database(error) => error.into(),
            LeaseError::Store(error) => error.into(),
            LeaseError::TooLong { .. }
            | LeaseError::NoTime
            | LeaseError::Queued(_)
            | LeaseError::Cancelled => failure,
        }
    }
}
