//! The health of places.

use std::time::Duration;

use jiff::Timestamp;
use jig_model::rig_file::Place;
use jig_model::{BoardId, PlaceName};
use jig_rig::database::DatabaseError;
use jig_rig::health::{Figures, HealthStore, HistoryEntry, PlaceHealth};
use serde::{Deserialize, Serialize};

use super::RigViewError;
use crate::{Catalogue, health_subject};

/// How far back figures go.
const WINDOW: Duration = Duration::from_secs(30 * 86_400);

/// The health of places.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HealthList {
    /// When it was looked at.
    pub now: Timestamp,
    /// The places, in the order of the rig file.
    pub places: Vec<ListedHealth>,
}

/// The health of one place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedHealth {
    /// The place.
    pub place: PlaceName,
    /// The kind of its board.
    pub board: BoardId,
    /// Its health.
    pub health: PlaceHealth,
    /// What happened there, if that was asked for.
    pub past: Option<PlacePast>,
}

/// What happened at a place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlacePast {
    /// What the last 30 days amount to.
    pub figures: Figures,
    /// The latest events, newest first.
    pub history: Vec<HistoryEntry>,
}

impl HealthList {
    /// Reads the health of a place, or of all of them.
    pub(super) fn of(
        catalogue: &Catalogue,
        place: Option<&PlaceName>,
        history: Option<u32>,
    ) -> Result<Self, RigViewError> {
        let places = match place {
            Some(name) => vec![catalogue.place(name)?.0],
            None => catalogue.visible_places().cloned().collect(),
        };
        let store = catalogue.stores().health(&catalogue.health_store())?;
        let now = Timestamp::now();
        let listed = places.iter().map(|place| of_place(&store, place, history, now));
        Ok(Self { now, places: listed.collect::<Result<_, _>>()? })
    }
}

fn of_place(
    store: &HealthStore,
    place: &Place,
    history: Option<u32>,
    now: Timestamp,
) -> Result<ListedHealth, DatabaseError> {
    let since = now.checked_sub(WINDOW).unwrap_or(Timestamp::MIN);
    let subject = health_subject(place);
    let past = history.map(|limit| {
        let figures = store.figures_by(&subject, &place.name, since)?;
        Ok(PlacePast { figures, history: store.history_by(&subject, &place.name, limit)? })
    });
    Ok(ListedHealth {
        place: place.name.clone(),
        board: place.board.clone(),
        health: store.of_by(&subject, &place.name)?,
        past: past.transpose()?,
    })
}
