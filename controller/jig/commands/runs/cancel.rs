//! `jig runs cancel`: asks a run that goes on to end.

use jig_lab::{FoundRun, RigQuery, RigView};
use jig_model::{Fault, exit};
use jig_service::client::RemoteRig;
use jig_service::jobs::JobId;
use jig_service::protocol::{CancelJob, JobSummary, ListJobs};
use serde_json::json;

use crate::args::Common;
use crate::commands::execute::unexpected;
use crate::commands::rig::{spoken_to, stopped};
use crate::commands::runtime::until_signalled;
use crate::failure::Failure;
use crate::render::Screen;

/// What was asked to end, or has ended before.
struct CancelledRun {
    /// The run, or the job where there is no run yet.
    name: String,
    job: Option<JobId>,
}

/// Asks the job that makes a run to end in order.
///
/// JSON: `{"run","job"}`; `job` is null where the run had ended before.
pub(super) fn cancel(common: &Common, screen: &Screen, wanted: &str) -> Result<u8, Failure> {
    let rig = spoken_to(common)?;
    let CancelledRun { name, job } = until_signalled(async |cancel| {
        tokio::select! {
            asked = ask(&rig, wanted) => asked,
            () = cancel.cancelled() => Err(stopped()),
        }
    })?;
    if screen.json() {
        screen.out_json(&json!({ "run": name, "job": job }));
    } else if job.is_some() {
        screen.say(&format!("{name} is being cancelled; its end: jig runs attach {name}"));
    } else {
        screen.say(&format!("{name} has ended already; its verdict: jig runs show {name}"));
    }
    Ok(exit::PASS)
}

async fn ask(rig: &RemoteRig, wanted: &str) -> Result<CancelledRun, Failure> {
    let jobs = rig.call_again(&ListJobs {}).await?;
    let named = jobs.iter().find(|job| job.job.as_str() == wanted);
    let (name, job) = match named {
        Some(job) => (job.run.as_ref().map_or(wanted, |run| run.as_str()).to_owned(), Some(job)),
        None => {
            let RigView::Run(found) = rig.view(RigQuery::Run { wanted: wanted.to_owned() }).await?
            else {
                return Err(unexpected());
            };
            let FoundRun { run, live, .. } = found;
            let job = jobs.iter().find(|job| job.run.as_ref() == Some(&run));
            if live && job.is_none() {
                let words =
                    format!("run {run} belongs to a command of a terminal at the rig's host");
                return Err(Failure::new(Fault::Usage, words)
                    .help("end that command; `jig lease ls` names the user of each place"));
            }
            (run.to_string(), job)
        }
    };
    let job = match job {
        Some(JobSummary { job, alive: true, .. }) => {
            rig.call_again(&CancelJob { job: job.clone() }).await?;
            Some(job.clone())
        }
        Some(_) | None => None,
    };
    Ok(CancelledRun { name, job })
}
