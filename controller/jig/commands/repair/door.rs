//! The door of a repair run to the rig of this host.

use std::sync::{Arc, Mutex, PoisonError};

use jig_lab::{CatalogueError, Lab};
use jig_model::command::{Command, EventSink, Refusal, Reply};
use jig_model::protocol::BoxFuture;
use jig_model::{Fault, PlaceName, Problems};
use jig_repair::rig::RigDoor;
use jig_rig::workflow::CancelToken;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::failure::Failure;

/// The rig of this host. Commands that are not waited for any more are still brought to their end.
pub(super) struct LabDoor {
    lab: Lab,
    is_real: bool,
    measures_coverage: bool,
    events: Arc<dyn EventSink>,
    commands: Mutex<JoinSet<()>>,
}

/// Cancels a command that is not waited for any more.
struct CancelOnDrop(CancelToken);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl LabDoor {
    pub(super) fn new(
        lab: Lab,
        place: &PlaceName,
        events: Arc<dyn EventSink>,
    ) -> Result<Self, CatalogueError> {
        let is_real = !lab.catalogue().place(place)?.0.is_emulated();
        let measures_coverage = lab.measures_coverage(place)?;
        Ok(Self { lab, is_real, measures_coverage, events, commands: Mutex::default() })
    }

    /// Waits for the end of all commands.
    pub(super) async fn closed(&self) {
        let commands = std::mem::take(&mut *self.commands());
        commands.join_all().await;
    }

    fn commands(&self) -> std::sync::MutexGuard<'_, JoinSet<()>> {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RigDoor for LabDoor {
    fn execute(&self, command: Command) -> BoxFuture<'_, Result<Reply, Refusal>> {
        Box::pin(async move {
            let cancel = CancelToken::new();
            let (lab, events, token) = (self.lab.clone(), Arc::clone(&self.events), cancel.clone());
            let (ended, end) = oneshot::channel();
            self.commands().spawn(async move {
                let done = lab.execute(command, events, token).await;
                let run = match &done {
                    Ok(Reply::Run(ended)) => Some(ended.run.clone()),
                    _ => None,
                };
                // An error says that the caller has dropped its future.
                let _ = ended.send(done.map_err(|error| refusal(error.into())));
                if let Some(run) = run {
                    // Steps of recovery teach something in a repair run, too.
                    let desk = lab.catalogue().knowledge();
                    let _ = tokio::task::spawn_blocking(move || desk.capture(&run)).await;
                }
            });
            let _cancel = CancelOnDrop(cancel);
            end.await.unwrap_or_else(|_| {
                let failure = Failure::new(Fault::Bug, "the command was broken off");
                Err(refusal(failure))
            })
        })
    }

    fn is_real(&self) -> bool {
        self.is_real
    }

    fn measures_coverage(&self) -> bool {
        self.measures_coverage
    }
}

fn refusal(failure: Failure) -> Refusal {
    let Failure { fault, message, help, problems } = failure;
    let problems = problems.iter().flat_map(Problems::located).collect();
    Refusal { fault, message, help, problems }
}
