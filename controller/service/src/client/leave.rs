//! A command that is begun, and left at the rig.

use std::sync::Arc;

use jig_model::command::{Command, CommandEvent, EventSink, WorkerLine};
use jig_rig::workflow::CancelToken;

use super::remote::{BegunJob, GoesOn, RemoteRig};
use super::{CallError, RemoteRigError};
use crate::jobs::JobId;
use crate::protocol::{CancelJob, FollowJob, JobLine};

impl RemoteRig {
    /// Has a command begun, and leaves it when it says what `until` knows; it goes on at the rig. If the
    /// caller cancels before, it is cancelled.
    ///
    /// # Errors
    /// The command was refused, has ended before, or the host cannot be reached.
    pub async fn leave(
        &self,
        command: Command,
        until: impl Fn(&CommandEvent) -> bool,
        events: Arc<dyn EventSink>,
        cancel: CancelToken,
    ) -> Result<JobId, RemoteRigError> {
        let BegunJob { job, link, .. } = self.begin(command, false).await?;
        let follow = FollowJob { job: job.clone(), offset: 0 };
        let mut stream = link.client.stream(&follow).await?;
        let mut asked = false;
        loop {
            let item = tokio::select! {
                item = stream.next() => item,
                () = cancel.cancelled(), if !asked => {
                    asked = true;
                    link.client.call(&CancelJob { job: job.clone() }).await?;
                    continue;
                }
            };
            let Some(item) = item else {
                let ended = stream.answer::<FollowJob>().await?;
                let (host, words) = (self.host(), ended.crashed.unwrap_or_default());
                return Err(RemoteRigError::Crashed { host, words });
            };
            let JobLine { line, .. } = serde_json::from_value(item)
                .map_err(|source| CallError::Stranger { method: "job.follow", source })?;
            match line {
                WorkerLine::Event(event) => {
                    let is_there = until(&event);
                    events.event(event);
                    if is_there && !asked {
                        return Ok(job);
                    }
                }
                WorkerLine::Refused(refusal) => return Err(RemoteRigError::Refused(refusal)),
                WorkerLine::Reply(_) => {
                    return Err(RemoteRigError::Ended { what: GoesOn::Job(job) });
                }
            }
        }
    }
}
