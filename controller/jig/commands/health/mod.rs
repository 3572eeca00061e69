//! `jig health`: how places are, why, and what helps.

mod checks;
mod show;

use std::sync::Arc;
use std::time::Duration;

use jig_model::profile::BoardProfile;
use jig_model::protocol::CheckReport;
use jig_model::rig_file::{Place, Resource};
use jig_model::{Fault, exit};
use jig_rig::health::{
    Figures, HealthError, HealthEvent, HealthPolicy, HealthStore, HistoryEntry, PlaceHealth, Proof,
    examine,
};
use jig_rig::store::{PlaceLock, PlaceLockError, Places};

use self::checks::checks_of;
pub(crate) use self::checks::{at_start, stands_on};
pub(crate) use self::show::style;
use super::probe::{runtime, stops};
use super::turn;
use crate::args::{Common, HealthArgs};
use crate::catalogue::Catalogue;
use crate::failure::Failure;
use crate::render::Screen;

/// How long one check may take. The slowest is the start of an emulator on a busy host, which
/// gives itself 20 s.
const EACH: Duration = Duration::from_secs(30);

/// How long a place that was asked for by name is waited for.
const TURN: Duration = Duration::from_secs(30);

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
    let catalogue = Catalogue::load(common)?;
    let places = match &args.board {
        Some(name) => vec![catalogue.place(name)?.0],
        None => catalogue.rig.places.clone(),
    };
    let store = open(&catalogue)?;
    let looks = if args.check {
        look_at_all(common, &catalogue, screen, &places, args.board.is_some(), &store)?
    } else {
        places.iter().map(|_| Looked::No).collect()
    };
    let now = jiff::Timestamp::now();
    let since = now.checked_sub(WINDOW).unwrap_or(jiff::Timestamp::MIN);
    let mut rows = Vec::new();
    for (place, looked) in places.into_iter().zip(looks) {
        let store = &store;
        let read = || -> Result<_, HealthError> {
            let health = store.of_by(&policy(&place), &place.name)?;
            let past = args.history.map(|limit| {
                Ok((store.figures(&place.name, since)?, store.history(&place.name, limit)?))
            });
            Ok((health, past.transpose()?))
        };
        let (health, past) = read().map_err(|error| unreadable(&error))?;
        rows.push(Row { place, health, looked, past });
    }
    show::show(screen, &rows, args.board.is_some(), now);
    let well = rows.iter().all(|row| row.health.state.usable());
    Ok(if well { exit::PASS } else { exit::LAB })
}

/// Opens the health store.
pub(crate) fn open(catalogue: &Catalogue) -> Result<HealthStore, Failure> {
    HealthStore::open(&catalogue.health_store()).map_err(|error| unreadable(&error))
}

/// Returns how much it takes to change the state of a place.
pub(crate) fn policy(place: &Place) -> HealthPolicy {
    let proof = if place.canary.is_some() { Proof::Canary } else { Proof::Checks };
    HealthPolicy { proof, ..HealthPolicy::default() }
}

/// Says why the store cannot be used, and what to do.
fn unreadable(error: &HealthError) -> Failure {
    let failure = Failure::of(error.fault(), error);
    match error {
        HealthError::Damaged { path, .. } => {
            // With its journal: SQLite would bring the old pages back from a journal that stays.
            let (folder, path) = (path.with_extension("damaged"), path.display());
            let folder = folder.display();
            failure.help(format!(
                "runs go on without it; set it aside to begin a new one: mkdir {folder} && mv \
                 {path}* {folder}"
            ))
        }
        HealthError::Newer { .. } => failure.help("use the jig that wrote it, or a newer one"),
        HealthError::Full { .. } => failure.help("free some space: jig runs prune"),
        HealthError::Busy { path, .. } => {
            failure.help(format!("see who has it: fuser -v {}", path.display()))
        }
        HealthError::Folder { .. }
        | HealthError::Unwritable { .. }
        | HealthError::Sqlite { .. }
        | HealthError::Encode { .. } => failure,
    }
}

fn look_at_all(
    common: &Common,
    catalogue: &Catalogue,
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
                looks.push(look_at(common, catalogue, screen, place, named, store).await?);
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
    common: &Common,
    catalogue: &Catalogue,
    screen: &Screen,
    place: &Place,
    named: bool,
    store: &HealthStore,
) -> Result<Looked, Failure> {
    let (_, profile) = catalogue.place(&place.name)?;
    let _held = match hold(&catalogue.places(), place, named, screen).await {
        Ok(held) => held,
        Err(error @ PlaceLockError::Held { .. }) if !named => {
            return Ok(Looked::InUse(jig_model::chain(&error)));
        }
        Err(error) => return Err(turn::refused(&error)),
    };
    let (seen, _) = examine_place(common, catalogue, place, &profile, store).await?;
    Ok(Looked::At(seen))
}

/// Runs the checks of a place and notes what they show; returns that, and how the place is now.
/// The caller holds the place, if it is a real board.
pub(crate) async fn examine_place(
    common: &Common,
    catalogue: &Catalogue,
    place: &Place,
    profile: &Arc<BoardProfile>,
    store: &HealthStore,
) -> Result<(Vec<CheckReport>, PlaceHealth), Failure> {
    let mut checks = checks_of(catalogue, common, place, profile)?;
    let seen = examine(&mut checks.list, EACH).await;
    let event = HealthEvent::Checked(seen);
    let policy = policy(place);
    let noted = store.note_by(&policy, &place.name, jiff::Timestamp::now(), &event);
    let health = noted.map_err(|error| unreadable(&error))?;
    let HealthEvent::Checked(seen) = event else { return Ok((Vec::new(), health)) };
    Ok((seen, health))
}

/// Holds a place as a run does: there is only one of a real board.
async fn hold(
    places: &Places,
    place: &Place,
    named: bool,
    screen: &Screen,
) -> Result<Option<PlaceLock>, PlaceLockError> {
    match &place.resource {
        Resource::Emulator(_) => Ok(None),
        Resource::Probe(_) if named => {
            turn::take(places, &place.name, TURN, screen).await.map(Some)
        }
        Resource::Probe(_) => places.try_lock(&place.name).map(Some),
    }
}
