//! `jig health`: the health of places, its reasons, and the command that helps.

mod show;

use std::sync::Arc;
use std::time::Duration;

use jig_lab::{CheckError, CommandError, Lab, health_policy};
use jig_model::command::{CheckCommand, Command, Reply};
use jig_model::exit;
use jig_model::protocol::CheckReport;
use jig_model::rig_file::Place;
use jig_rig::database::DatabaseError;
use jig_rig::health::{Figures, HistoryEntry, PlaceHealth};
use jig_rig::store::PlaceLockError;

pub(crate) use self::show::style;
use super::execute::unexpected;
use super::open_lab;
use super::runtime::until_signalled;
use crate::args::{Common, HealthArgs, ms};
use crate::failure::Failure;
use crate::render::Screen;

/// How long a place that was asked for by name is waited for.
const WAIT: Duration = Duration::from_secs(30);

/// How far back figures go.
const WINDOW: Duration = Duration::from_secs(30 * 86_400);

/// What is known of one place, and what was just seen.
struct HealthRow {
    place: Place,
    health: PlaceHealth,
    looked: Looked,
    past: Option<(Figures, Vec<HistoryEntry>)>,
}

/// What came of looking at a place.
enum Looked {
    /// It was not requested.
    No,
    /// The place is in use; the message names the user.
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
    let looks = if args.check {
        look_at_all(&lab, screen, &places, args.board.is_some())?
    } else {
        places.iter().map(|_| Looked::No).collect()
    };
    let store = lab.health_store()?;
    let now = jiff::Timestamp::now();
    let since = now.checked_sub(WINDOW).unwrap_or(jiff::Timestamp::MIN);
    let mut rows = Vec::new();
    for (place, looked) in places.into_iter().zip(looks) {
        let store = &store;
        let read = || -> Result<_, DatabaseError> {
            let health = store.of_by(&health_policy(&place), &place.name)?;
            let past = args.history.map(|limit| {
                Ok((store.figures(&place.name, since)?, store.history(&place.name, limit)?))
            });
            Ok((health, past.transpose()?))
        };
        let (health, past) = read()?;
        rows.push(HealthRow { place, health, looked, past });
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
) -> Result<Vec<Looked>, Failure> {
    let wait = ms(WAIT);
    let events = Arc::new(screen.clone());
    until_signalled(async |cancel| {
        let mut looks = Vec::new();
        for place in places {
            let wait_ms = named.then_some(wait);
            let command = Command::Check(CheckCommand { place: place.name.clone(), wait_ms });
            looks.push(match lab.execute(command, events.clone(), cancel.clone()).await {
                Ok(Reply::Checked(seen)) => Looked::At(seen.checks),
                Ok(_) => return Err(unexpected()),
                Err(CommandError::Check(CheckError::Held(error @ PlaceLockError::Held { .. })))
                    if !named =>
                {
                    Looked::InUse(jig_model::chain(&error))
                }
                Err(error) => return Err(error.into()),
            });
        }
        Ok(looks)
    })
}
