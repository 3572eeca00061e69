//! Runs the health checks of a place and records their results.

use std::time::Duration;

use jig_model::command::{CheckCommand, CheckReply, EventSink};
use jig_model::rig_file::Place;
use jig_model::{Fault, chain};
use jig_rig::database::DatabaseError;
use jig_rig::health::{HealthEvent, HealthPolicy, HealthStore, HealthSubject, Proof, examine};
use jig_rig::store::PlaceLockError;
use jig_rig::workflow::CancelToken;

use crate::hold::hold;
use crate::{CatalogueError, ChecksError, Lab};

/// How long one check may take. The slowest is the start of an emulator on a busy host, which
/// gives itself 20 s.
const EACH: Duration = Duration::from_secs(30);

/// Says why a place was not asked.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The place is not known.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// Another process uses it.
    #[error(transparent)]
    Held(#[from] PlaceLockError),
    /// Its checks cannot be made.
    #[error(transparent)]
    Checks(#[from] ChecksError),
    /// What was seen cannot be noted.
    #[error(transparent)]
    Health(#[from] DatabaseError),
    /// The caller cancelled it.
    #[error("the checks were stopped")]
    Cancelled,
}

impl CheckError {
    /// Says who is to blame.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Catalogue(error) => error.fault(),
            Self::Held(error) => error.fault(),
            Self::Checks(error) => error.fault(),
            Self::Health(error) => error.fault(),
            Self::Cancelled => Fault::Cancelled,
        }
    }
}

/// Returns whose health that of a place is, and how much it takes to change it.
pub fn health_subject(place: &Place) -> HealthSubject {
    let proof = if place.canary.is_some() { Proof::Canary } else { Proof::Checks };
    let policy = HealthPolicy { proof, ..HealthPolicy::default() };
    HealthSubject { policy, device: device_of(place) }
}

/// Says which board and devices are a place: its board, its probe, and where its consoles end. What
/// switches its power is left out: another outlet clears no board.
fn device_of(place: &Place) -> String {
    let mut words = vec![format!("board {}", place.board)];
    match &place.probe {
        Some(probe) => words.push(format!("probe {}", probe.selector.to_ascii_lowercase())),
        None if place.is_emulated() => words.push("emulated".to_owned()),
        None => {}
    }
    let mut consoles: Vec<String> = place
        .consoles
        .iter()
        .map(|console| format!("console {} at {}", console.console, console.end))
        .collect();
    // Their order means nothing.
    consoles.sort_unstable();
    words.extend(consoles);
    words.join(", ")
}

impl Lab {
    /// Opens the notes of health.
    ///
    /// # Errors
    /// They cannot be read or written.
    pub fn health_store(&self) -> Result<HealthStore, DatabaseError> {
        HealthStore::open(&self.catalogue.health_store())
    }

    /// Runs the checks of a place and notes what they show.
    pub(crate) async fn check(
        &self,
        command: CheckCommand,
        events: &dyn EventSink,
        cancel: &CancelToken,
    ) -> Result<CheckReply, CheckError> {
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(CheckError::Cancelled),
            checked = self.check_place(command, events) => checked,
        }
    }

    async fn check_place(
        &self,
        CheckCommand { place, wait_ms }: CheckCommand,
        events: &dyn EventSink,
    ) -> Result<CheckReply, CheckError> {
        let (place, profile) = self.catalogue.place(&place)?;
        let store = self.health_store()?;
        // There is only one of a real board; an emulated one is a new one for each command.
        let _held = match wait_ms.map(Duration::from_millis) {
            _ if place.is_emulated() => None,
            None => {
                let lock = match self.catalogue.places().lock_now(&place.name).await {
                    // A look at all places goes on with the next one.
                    Err(error @ PlaceLockError::Held { .. }) => {
                        let health = store.of_by(&health_subject(&place), &place.name)?;
                        let (state, usable) = (health.state.to_string(), health.state.usable());
                        let (checks, in_use) = (Vec::new(), Some(chain(&error)));
                        return Ok(CheckReply { place: place.name, checks, state, usable, in_use });
                    }
                    lock => lock?,
                };
                let admitted = self.catalogue.admission(&place.name, Some(&lock));
                admitted.map_err(|error| PlaceLockError::Leased(Box::new(error)))?;
                Some(lock)
            }
            Some(wait) => Some(hold(&self.catalogue, &place.name, wait, events).await?),
        };
        let mut checks = self.checks_of(&place, &profile)?;
        let checks = examine(&mut checks.list, EACH).await;
        let event = HealthEvent::Checked(checks.clone());
        let now = jiff::Timestamp::now();
        let health = store.note_by(&health_subject(&place), &place.name, now, &event)?;
        let (state, usable) = (health.state.to_string(), health.state.usable());
        Ok(CheckReply { place: place.name, checks, state, usable, in_use: None })
    }
}
