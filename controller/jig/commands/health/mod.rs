//! `jig health`: how places are, why, and what helps.

mod show;

use std::time::Duration;

use jig_lab::{Lab, health_policy, hold};
use jig_model::protocol::CheckReport;
use jig_model::rig_file::Place;
use jig_model::{Fault, exit};
use jig_rig::health::{Figures, HealthError, HealthStore, HistoryEntry, PlaceHealth};
use jig_rig::store::{PlaceLock, PlaceLockError};

pub(crate) use self::show::style;
use super::open_lab;
use super::probe::{runtime, stops};
use crate::args::{Common, HealthArgs};
use crate::failure::Failure;
use crate::render::Screen;

/// How long a place that was asked for by name is waited for.
const WAIT: Duration = Duration::from_secs(30);

/// How far back figures go.
const WINDOW: Duration = Duration::from_secs(30 * 86_400);

/// What is known of one place, and what was just seen.
struct Row {
    place: Place,
    health: PlaceHealth,
    looked: Looked,
    past: Option<(Figures, Vec<HistoryEntry>)>,
}

/// What came of looking at a place.
enum Looked {
    /// Nobody asked for it.
    No,
    /// Somebody else has the place, in these words.
    InUse(String),
    /// This was seen.
    At(Vec<CheckReport>),
}

/// Shows the health of places, after a look at them if that is asked for.
pub(crate) fn health(common: &Common, screen: &Screen, args: HealthArgs) -> Result<u8, Failure> {
    let lab = open_lab(common)?;
    let places = match &args.board {
        Some(name) => vec![lab.catalogue().place(name)?.0],
        None => lab.catalogue().rig.places.clone(),
    };
    let store = lab.health_store()?;
    let looks = if args.check {
        look_at_all(&lab, screen, &places, args.board.is_some(), &store)?
    } else {
        places.iter().map(|_| Looked::No).collect()
    };
    let now = jiff::Timestamp::now();
    let since = now.checked_sub(WINDOW).unwrap_or(jiff::Timestamp::MIN);
    let mut rows = Vec::new();
    for (place, looked) in places.into_iter().zip(looks) {
        let store = &store;
        let read = || -> Result<_, HealthError> {
            let health = store.of_by(&health_policy(&place), &place.name)?;
            let past = args.history.map(|limit| {
                Ok((store.figures(&place.name, since)?, store.history(&place.name, limit)?))
            });
            Ok((health, past.transpose()?))
        };
        let (health, past) = read()?;
        rows.push(Row { place, health, looked, past });
    }
    show::show(screen, &rows, args.board.is_some(), now);
    let well = rows.iter().all(|row| row.health.state.usable());
    Ok(if well { exit::PASS } else { exit::LAB })
}

fn look_at_all(
    lab: &Lab,
    screen: &Screen,
    places: &[Place],
    named: bool,
    store: &HealthStore,
) -> Result<Vec<Looked>, Failure> {
    let runtime = runtime()?;
    let looks = runtime.block_on(async {
        let mut stops = stops().map_err(|error| Failure::of(Fault::Bug, &error))?;
        let work = async {
            let mut looks = Vec::new();
            for place in places {
                looks.push(look_at(lab, screen, place, named, store).await?);
            }
            Ok(looks)
        };
        tokio::select! {
            done = work => done,
            _ = stops.wait_for(|stop| *stop) => {
                Err(Failure::new(Fault::Cancelled, "the checks were stopped"))
            }
        }
    });
    // A check that hangs on a broken disk cannot be ended, and is not waited for.
    runtime.shutdown_background();
    looks
}

/// Looks at a place, and notes what was seen.
async fn look_at(
    lab: &Lab,
    screen: &Screen,
    place: &Place,
    named: bool,
    store: &HealthStore,
) -> Result<Looked, Failure> {
    let (_, profile) = lab.catalogue().place(&place.name)?;
    let _held = match hold_for_look(lab, place, named, screen).await {
        Ok(held) => held,
        Err(error @ PlaceLockError::Held { .. }) if !named => {
            return Ok(Looked::InUse(jig_model::chain(&error)));
        }
        Err(error) => return Err(error.into()),
    };
    Ok(Looked::At(lab.examine(place, &profile, store).await?.checks))
}

/// Holds a place as a run does: there is only one of a real board.
async fn hold_for_look(
    lab: &Lab,
    place: &Place,
    named: bool,
    screen: &Screen,
) -> Result<Option<PlaceLock>, PlaceLockError> {
    let places = lab.catalogue().places();
    match place.is_emulated() {
        true => Ok(None),
        false if named => hold(&places, &place.name, WAIT, screen).await.map(Some),
        false => places.try_lock(&place.name).map(Some),
    }
}
