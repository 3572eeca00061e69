//! `jig runs attach`: the output of a run that goes on.

use std::sync::OnceLock;
use std::time::Duration;

use jig_lab::{FoundRun, RigQuery, RigView};
use jig_model::{Fault, RunId, exit};
use jig_rig::report::{RunReport, json};
use jig_service::client::{RemoteRig, RunPart};
use jig_service::jobs::JobId;
use jig_service::protocol::ListJobs;
use tokio::time::sleep;

use super::source::{OpenedRun, fetched};
use crate::args::Common;
use crate::commands::execute::unexpected;
use crate::commands::rig::spoken_to;
use crate::commands::runtime::until_signalled;
use crate::failure::Failure;
use crate::render::{AttachView, Screen, show_verdict};

/// Pause between two looks at a job that has no run yet: it waits for its place.
const PAUSE: Duration = Duration::from_millis(200);

/// Shows what a run prints until it has ended, and ends with its exit code. A signal detaches.
///
/// JSON: the report of the run, as `jig run` prints it.
pub(super) fn attach(
    common: &Common,
    screen: &Screen,
    wanted: &str,
    tail: bool,
) -> Result<u8, Failure> {
    let rig = spoken_to(common)?;
    let known = OnceLock::new();
    let ended = until_signalled(async |cancel| {
        tokio::select! {
            ended = follow(&rig, screen, wanted, tail, &known) => ended.map(Some),
            () = cancel.cancelled() => Ok(None),
        }
    })?;
    let Some(run) = ended else {
        let name = known.get().map_or(wanted, |run: &RunId| run.as_str());
        screen.say(&format!(
            "detached; {name} goes on: jig runs attach {name}; to cancel it: jig runs cancel {name}"
        ));
        return Ok(exit::CANCELLED);
    };
    let record = run.entry.record.map_err(Failure::from)?;
    let Some(code) = record.exit_code else {
        let words =
            format!("run {} has no verdict: the process that made it was killed", record.id);
        let help = format!("what it left: jig runs log {}", record.id);
        return Err(Failure::new(Fault::Lab, words).help(help));
    };
    if screen.json() {
        let text =
            json(&RunReport::of(&record)).map_err(|error| Failure::of(Fault::Bug, &error))?;
        screen.out(text.trim_end());
    }
    show_verdict(screen, &record);
    Ok(code)
}

async fn follow(
    rig: &RemoteRig,
    screen: &Screen,
    wanted: &str,
    tail: bool,
    known: &OnceLock<RunId>,
) -> Result<OpenedRun, Failure> {
    let found = find(rig, screen, wanted).await?;
    let run = known.get_or_init(|| found.run.clone());
    if !found.live {
        return fetched(rig, found, RunPart::Record).await;
    }
    let mut view = AttachView::new(screen);
    let watched = rig.watch(run, tail, |piece| view.show(&piece.path, &piece.bytes)).await;
    view.finish();
    watched?;
    fetched(rig, look_up(rig, run.as_str()).await?, RunPart::Record).await
}

async fn look_up(rig: &RemoteRig, wanted: &str) -> Result<FoundRun, Failure> {
    match rig.view(RigQuery::Run { wanted: wanted.to_owned() }).await? {
        RigView::Run(found) => Ok(found),
        _ => Err(unexpected()),
    }
}

/// Finds a run by its name, or by the job that makes it, which may not have begun it yet.
pub(super) async fn find(
    rig: &RemoteRig,
    screen: &Screen,
    wanted: &str,
) -> Result<FoundRun, Failure> {
    let unknown = match (look_up(rig, wanted).await, wanted.parse::<JobId>()) {
        (Err(unknown), Ok(job)) => (unknown, job),
        (found, _) => return found,
    };
    let (unknown, id) = unknown;
    let mut told = false;
    loop {
        let mut jobs = rig.call_again(&ListJobs {}).await?.into_iter();
        let Some(job) = jobs.find(|job| job.job == id) else { return Err(unknown) };
        match job.run {
            Some(run) => return look_up(rig, run.as_str()).await,
            None if !job.alive => {
                let words = format!("job {id} has ended, and made no run");
                return Err(Failure::new(Fault::Usage, words).help("jig runs list"));
            }
            None => {}
        }
        if !std::mem::replace(&mut told, true) {
            screen.say(&format!("job {id} has not begun its run yet"));
        }
        sleep(PAUSE).await;
    }
}
