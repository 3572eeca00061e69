//! Asking a place whether it is well, and noting the answer.

use std::sync::Arc;
use std::time::Duration;

use jig_model::Fault;
use jig_model::profile::BoardProfile;
use jig_model::protocol::CheckReport;
use jig_model::rig_file::Place;
use jig_rig::health::{
    HealthError, HealthEvent, HealthPolicy, HealthStore, PlaceHealth, Proof, examine,
};

use crate::{ChecksError, Lab};

/// How long one check may take. The slowest is the start of an emulator on a busy host, which
/// gives itself 20 s.
const EACH: Duration = Duration::from_secs(30);

/// Says why a place was not asked.
#[derive(Debug, thiserror::Error)]
pub enum ExamineError {
    /// Its checks cannot be made.
    #[error(transparent)]
    Checks(#[from] ChecksError),
    /// What was seen cannot be noted.
    #[error(transparent)]
    Health(#[from] HealthError),
}

impl ExamineError {
    /// Says who is to blame.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Checks(error) => error.fault(),
            Self::Health(error) => error.fault(),
        }
    }
}

/// What a look at a place has shown.
#[derive(Debug)]
pub struct HealthLook {
    /// What each check said.
    pub checks: Vec<CheckReport>,
    /// How the place is now.
    pub health: PlaceHealth,
}

/// Returns how much it takes to change the state of a place.
pub fn health_policy(place: &Place) -> HealthPolicy {
    let proof = if place.canary.is_some() { Proof::Canary } else { Proof::Checks };
    HealthPolicy { proof, ..HealthPolicy::default() }
}

impl Lab {
    /// Opens the notes of health.
    ///
    /// # Errors
    /// They cannot be read or written.
    pub fn health_store(&self) -> Result<HealthStore, HealthError> {
        HealthStore::open(&self.catalogue.health_store())
    }

    /// Runs the checks of a place and notes what they show. The caller holds the place, if it is
    /// a real board.
    ///
    /// # Errors
    /// The checks cannot be made, or what was seen cannot be noted.
    pub async fn examine(
        &self,
        place: &Place,
        profile: &Arc<BoardProfile>,
        store: &HealthStore,
    ) -> Result<HealthLook, ExamineError> {
        let mut checks = self.checks_of(place, profile)?;
        let checks = examine(&mut checks.list, EACH).await;
        let event = HealthEvent::Checked(checks.clone());
        let now = jiff::Timestamp::now();
        let health = store.note_by(&health_policy(place), &place.name, now, &event)?;
        Ok(HealthLook { checks, health })
    }
}
