//! The rig behind the tools: that of this host, as its own verbs use it, or one behind a connection.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jig_lab::{
    CheckError, CommandError, KnowledgeDoor, PowerCommandError, ProbeCommandError, RunError,
    SwitchError, state_folder,
};
use jig_model::command::{Command, EventSink, PlanText, Reply};
use jig_model::protocol::BoxFuture;
use jig_model::{Fault, Identity};
use jig_operator::error::{OperatorCode, OperatorError};
use jig_operator::tools::{RigCalls, RigQuestion};
use jig_rig::workflow::CancelToken;
use jig_service::client::RemoteRig;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinSet, spawn_blocking};

use super::answers;
use super::files::WorkingFolder;
use crate::args::Common;
use crate::commands::open_lab;
use crate::commands::rig::{elsewhere, named_elsewhere, spoken_to_here};
use crate::failure::Failure;

/// Carries out what calls of tools come down to. Commands that are not waited for any more are still
/// brought to their end.
pub(crate) struct LabCalls {
    common: Common,
    /// The rig, where it is spoken to.
    rig: Option<Arc<RemoteRig>>,
    files: WorkingFolder,
    /// What the lab has learnt, where the rig is that of this host; kept open from one question to the next.
    knowledge: Arc<KnowledgeDoor>,
    commands: Mutex<JoinSet<()>>,
}

/// Cancels a command that is not waited for any more.
struct CancelUnawaited(CancelToken);

impl Drop for CancelUnawaited {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl LabCalls {
    /// Binds the rig that the arguments name. Calls of another identity than this user are judged by the
    /// rig as calls from elsewhere are.
    pub(crate) fn open(
        common: &Common,
        identity: Option<Identity>,
        root: Option<&Path>,
    ) -> Result<Self, Failure> {
        let root = root.unwrap_or(Path::new("."));
        let files = WorkingFolder::new(root).map_err(|error| {
            Failure::new(Fault::Usage, format!("cannot use folder {}: {error}", root.display()))
                .help("name a folder with --root")
        })?;
        // Another identity than this user has no rig that is found by itself.
        let elsewhere = match &identity {
            Some(_) => named_elsewhere(common)?,
            None => elsewhere(common)?,
        };
        let rig = match (elsewhere, identity) {
            (Some(_), Some(_)) => {
                let words = "--as names a caller of the rig of this host, and the rig is elsewhere";
                return Err(Failure::new(Fault::Usage, words)
                    .help("leave --as out: the rig's host knows who you are"));
            }
            (Some(rig), None) => Some(rig),
            (None, Some(identity)) => Some(spoken_to_here(common, identity)?),
            // What is wrong with the rig file is told here, and not by the first call.
            (None, None) => {
                common.reader.read(&common.own_lab())?;
                None
            }
        };
        // Opened by the first question.
        let state = state_folder(&common.own_lab());
        let knowledge = Arc::new(KnowledgeDoor::new(&state, None));
        let (common, rig) = (common.clone(), rig.map(Arc::new));
        Ok(Self { common, rig, files, knowledge, commands: Mutex::default() })
    }

    /// Waits for the end of all commands.
    pub(crate) async fn closed(&self) {
        loop {
            let commands = std::mem::take(&mut *self.commands());
            if commands.is_empty() {
                return;
            }
            commands.join_all().await;
        }
    }

    fn commands(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RigCalls for LabCalls {
    fn execute(
        &self,
        command: Command,
        input: Vec<u8>,
        events: Arc<dyn EventSink>,
    ) -> BoxFuture<'_, Result<Reply, OperatorError>> {
        Box::pin(async move {
            let cancel = CancelToken::new();
            let token = cancel.clone();
            let (common, rig) = (self.common.clone(), self.rig.clone());
            let (ended, end) = oneshot::channel();
            {
                let mut commands = self.commands();
                while commands.try_join_next().is_some() {}
                commands.spawn(async move {
                    let done = carry_out(&common, rig.as_deref(), command, input, events, token);
                    // An error says that the caller has dropped its future.
                    let _ = ended.send(done.await);
                });
            }
            let _cancel = CancelUnawaited(cancel);
            end.await.unwrap_or_else(|_| {
                Err(OperatorError::new(OperatorCode::Io, "the command was broken off"))
            })
        })
    }

    fn ask(&self, question: RigQuestion) -> BoxFuture<'_, Result<Value, OperatorError>> {
        Box::pin(async move {
            let (common, rig) = (self.common.clone(), self.rig.clone());
            let door = Arc::clone(&self.knowledge);
            let runtime = Handle::current();
            // Most questions wait for the disk.
            let answering = spawn_blocking(move || {
                runtime.block_on(answers::answer(&common, rig.as_deref(), &door, question))
            });
            let answer =
                answering.await.unwrap_or_else(|error| Err(Failure::of(Fault::Bug, &error)));
            // Nothing was touched, whatever went wrong.
            answer.map_err(|failure| refused(None, failure).untouched())
        })
    }

    fn image(&self, named: &str) -> Result<PathBuf, OperatorError> {
        self.files.image(named)
    }

    fn plan(&self, named: &str) -> Result<PlanText, OperatorError> {
        self.files.plan(named)
    }
}

async fn carry_out(
    common: &Common,
    rig: Option<&RemoteRig>,
    command: Command,
    input: Vec<u8>,
    events: Arc<dyn EventSink>,
    cancel: CancelToken,
) -> Result<Reply, OperatorError> {
    let (sender, receiver) = mpsc::channel(1);
    if !input.is_empty() {
        // There is room for one.
        let _ = sender.try_send(input);
    }
    drop(sender);
    match rig {
        Some(rig) => {
            let done = rig.execute(command, receiver, events, cancel).await;
            done.map_err(|error| refused(None, error.into()))
        }
        None => {
            let lab = open_lab(common).map_err(|failure| refused(None, failure).untouched())?;
            let done = lab.execute_with_input(command, receiver, events, cancel).await;
            done.map_err(|error| refused(class_of(&error), error.into()))
        }
    }
}

/// Returns the class of an error that says more than who is to blame.
fn class_of(error: &CommandError) -> Option<OperatorCode> {
    match error {
        CommandError::Access(_) => Some(OperatorCode::PolicyDenied),
        CommandError::Lease(_)
        | CommandError::Run(RunError::Held(_))
        | CommandError::Check(CheckError::Held(_))
        | CommandError::Probe(ProbeCommandError::Held(_))
        | CommandError::Power(
            PowerCommandError::Switch(SwitchError::Held(_))
            | PowerCommandError::EmulatorInUse { .. },
        ) => Some(OperatorCode::Conflict),
        _ => None,
    }
}

/// Makes the error of a call out of why it was not carried out.
fn refused(class: Option<OperatorCode>, failure: Failure) -> OperatorError {
    let Failure { fault, message, help, problems } = failure;
    let code = class.unwrap_or(OperatorCode::of_fault(fault));
    let problems = problems.iter().flat_map(jig_model::Problems::located).map(|problem| {
        let line = problem.line.map_or_else(String::new, |line| format!(":{line}"));
        format!("; {}{line}: {}; {}", problem.file, problem.message, problem.help)
    });
    let message = std::iter::once(message).chain(problems).collect::<String>();
    let error = OperatorError::new(code, message);
    // What is wrong with a request, or with whom uses the place, is told before anything is touched.
    let untouched = class.is_some() || matches!(fault, Fault::Usage | Fault::Profile);
    let error = if untouched { error.untouched() } else { error };
    match help {
        Some(help) => error.next(help),
        None if code == OperatorCode::InvalidArgs => error.next("jig mcp tools"),
        None => error,
    }
}
