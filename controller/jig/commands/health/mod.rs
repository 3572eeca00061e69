//! `jig health`: the health of places, its reasons, and the command that helps.

mod show;

use std::sync::Arc;
use std::time::Duration;

use jig_lab::{HealthList, ListedHealth, RigQuery, RigView};
use jig_model::command::{CheckCommand, Command, Reply};
use jig_model::protocol::CheckReport;
use jig_model::{PlaceName, exit};
use jig_rig::workflow::CancelToken;
use tokio::sync::mpsc;

pub(crate) use self::show::style;
use super::execute::unexpected;
use super::rig::{OpenRig, stopped};
use super::runtime::until_signalled;
use crate::args::{Common, HealthArgs, ms};
use crate::failure::Failure;
use crate::render::Screen;

/// How long a place that was asked for by name is waited for.
const WAIT: Duration = Duration::from_secs(30);

/// What is known of one place, and what was just seen.
struct HealthRow {
    place: ListedHealth,
    looked: Looked,
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

impl Looked {
    /// Tells whether no check has failed. Of a place in use, its record is what is known.
    fn well(&self) -> bool {
        match self {
            Self::No | Self::InUse(_) => true,
            Self::At(seen) => seen.iter().all(|report| report.ok),
        }
    }
}

/// Shows the health of places, after a look at them if that is asked for.
pub(crate) fn health(common: &Common, screen: &Screen, args: HealthArgs) -> Result<u8, Failure> {
    let rig = OpenRig::open(common)?;
    let named = args.board.is_some();
    let (list, looks) = until_signalled(async |cancel| {
        let looks = match args.check {
            true => look_at_all(&rig, common, screen, args.board.as_ref(), &cancel).await?,
            false => Vec::new(),
        };
        let list = listed(&rig, common, args.board, args.history);
        let list = tokio::select! {
            list = list => list?,
            () = cancel.cancelled() => return Err(stopped()),
        };
        Ok((list, looks))
    })?;
    let HealthList { now, places } = list;
    let mut looks = looks.into_iter();
    let rows = places.into_iter().map(|place| {
        let looked = looks.next().unwrap_or(Looked::No);
        HealthRow { place, looked }
    });
    let rows: Vec<_> = rows.collect();
    show::show(screen, &rows, named, now);
    let well = rows.iter().all(|row| row.place.health.state.usable() && row.looked.well());
    Ok(if well { exit::PASS } else { exit::LAB })
}

async fn listed(
    rig: &OpenRig,
    common: &Common,
    place: Option<PlaceName>,
    history: Option<u32>,
) -> Result<HealthList, Failure> {
    match rig.view(common, RigQuery::Health { place, history }).await? {
        RigView::Health(list) => Ok(list),
        _ => Err(unexpected()),
    }
}

/// Has a place checked, or all of them.
async fn look_at_all(
    rig: &OpenRig,
    common: &Common,
    screen: &Screen,
    named: Option<&PlaceName>,
    cancel: &CancelToken,
) -> Result<Vec<Looked>, Failure> {
    let places = match named {
        Some(name) => vec![name.clone()],
        None => {
            let all = listed(rig, common, None, None).await?.places.into_iter();
            all.map(|place| place.place).collect()
        }
    };
    let (wait_ms, events) = (named.map(|_| ms(WAIT)), Arc::new(screen.clone()));
    let mut looks = Vec::new();
    for place in places {
        let command = Command::Check(CheckCommand { place, wait_ms });
        let (_, none) = mpsc::channel(1);
        looks.push(match rig.execute(command, none, events.clone(), cancel.clone()).await? {
            Reply::Checked(seen) => seen.in_use.map_or(Looked::At(seen.checks), Looked::InUse),
            _ => return Err(unexpected()),
        });
    }
    Ok(looks)
}
