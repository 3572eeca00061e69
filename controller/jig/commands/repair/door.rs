//! The door of a repair run to its rig.

use std::sync::{Arc, Mutex, PoisonError};

use jig_lab::{BoardFacts, Lab};
use jig_model::command::{Command, EventSink, Refusal, Reply};
use jig_model::protocol::BoxFuture;
use jig_model::{Fault, Problems};
use jig_repair::rig::RigDoor;
use jig_rig::workflow::CancelToken;
use jig_service::client::RemoteRig;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::failure::Failure;

/// The rig of a repair run. Commands that are not waited for any more are still brought to their end.
pub(super) struct RepairDoor {
    rig: CommandedRig,
    is_real: bool,
    measures_coverage: bool,
    events: Arc<dyn EventSink>,
    commands: Mutex<JoinSet<()>>,
}

/// What carries out commands. Cheap to clone.
#[derive(Clone)]
enum CommandedRig {
    Here(Lab),
    /// Images are sent by their content, and runs are copied into the folder of runs of this host.
    There(Arc<RemoteRig>),
}

/// Cancels a command that is not waited for any more.
struct CancelOnDrop(CancelToken);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl CommandedRig {
    async fn execute(
        &self,
        command: Command,
        events: Arc<dyn EventSink>,
        cancel: CancelToken,
    ) -> Result<Reply, Failure> {
        match self {
            Self::Here(lab) => Ok(lab.execute(command, events, cancel).await?),
            Self::There(rig) => {
                let (_, none) = mpsc::channel(1);
                Ok(rig.execute(command, none, events, cancel).await?)
            }
        }
    }

    /// Has the rig of this host learn from a run; one elsewhere does so by itself.
    async fn learn(&self, reply: &Reply) {
        let (Self::Here(lab), Reply::Run(ended)) = (self, reply) else { return };
        let (desk, run) = (lab.catalogue().knowledge(), ended.run.clone());
        let _ = tokio::task::spawn_blocking(move || desk.capture(&run)).await;
    }
}

impl RepairDoor {
    /// Opens the door to the rig of this host.
    pub(super) fn here(lab: Lab, board: &BoardFacts, events: Arc<dyn EventSink>) -> Self {
        Self::of(CommandedRig::Here(lab), board, events)
    }

    /// Opens the door to a rig elsewhere.
    pub(super) fn there(rig: RemoteRig, board: &BoardFacts, events: Arc<dyn EventSink>) -> Self {
        Self::of(CommandedRig::There(Arc::new(rig)), board, events)
    }

    fn of(rig: CommandedRig, board: &BoardFacts, events: Arc<dyn EventSink>) -> Self {
        let (is_real, measures_coverage) = (!board.emulated, board.measures_coverage);
        Self { rig, is_real, measures_coverage, events, commands: Mutex::default() }
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

impl RigDoor for RepairDoor {
    fn execute(&self, command: Command) -> BoxFuture<'_, Result<Reply, Refusal>> {
        Box::pin(async move {
            let cancel = CancelToken::new();
            let (rig, events, token) = (self.rig.clone(), Arc::clone(&self.events), cancel.clone());
            let (ended, end) = oneshot::channel();
            self.commands().spawn(async move {
                let done = rig.execute(command, events, token).await;
                // Steps of recovery teach something in a repair run, too.
                let learnt = done.as_ref().ok().cloned();
                // An error says that the caller has dropped its future.
                let _ = ended.send(done.map_err(refusal));
                if let Some(reply) = learnt {
                    rig.learn(&reply).await;
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
