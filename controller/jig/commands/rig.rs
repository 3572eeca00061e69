//! The rig that a verb works on: that of this host, or one behind a connection.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jig_lab::{Catalogue, Lab, RigQuery, RigView, look_again};
use jig_model::command::{Command, EventSink, Refusal, Reply};
use jig_model::lease::{LeaseAnswer, LeaseOrder};
use jig_model::{ConsoleName, Fault, Identity, PlaceName, RunId};
use jig_rig::identity::own_identity;
use jig_rig::workflow::CancelToken;
use jig_service::client::{CallError, Connect, GoesOn, RemoteRig, RemoteRigError};
use jig_service::protocol::{DescribePlace, OrderLease, PlaceAnswer};
use tokio::sync::mpsc;

use super::connects::{OwnConnect, SocketConnect, caller};
use super::open_lab;
use super::own_service::{self, ServiceConnect};
use super::rpc::rig_host;
use super::runtime::until_signalled;
use super::ssh_rig::SshConnect;
use crate::args::{Common, FoundService, RigName};
use crate::failure::Failure;

/// The rig that a verb works on.
pub(crate) enum OpenRig {
    /// That of this host.
    Here(Lab),
    /// That of this host, whose service carries out what has to come to its end without its caller.
    Served(ServedLab),
    /// One of another host, or of another user.
    There(RemoteRig),
}

/// The rig of this host, and its service, which has the same folders.
pub(crate) struct ServedLab {
    lab: Lab,
    service: Box<RemoteRig>,
    /// Whether the service carries commands out, and so learns from their runs.
    learns: AtomicBool,
}

impl ServedLab {
    async fn execute(
        &self,
        command: Command,
        input: mpsc::Receiver<Vec<u8>>,
        events: Arc<dyn EventSink>,
        cancel: CancelToken,
    ) -> Result<Reply, Failure> {
        if !own_service::takes(self.lab.catalogue(), &command) {
            return Ok(self.lab.execute_with_input(command, input, events, cancel).await?);
        }
        self.learns.store(true, Ordering::Relaxed);
        Ok(self.service.execute(command, input, events, cancel).await?)
    }
}

impl OpenRig {
    /// Opens the rig that the arguments name.
    pub(crate) fn open(common: &Common) -> Result<Self, Failure> {
        if let Some(rig) = elsewhere(common)? {
            return Ok(Self::There(rig));
        }
        let lab = open_lab(common)?;
        let (Some(FoundService::SameFolders { socket, runs }), Some(own)) =
            (own_service::found(common), own_service::own_caller())
        else {
            return Ok(Self::Here(lab));
        };
        // One that is not there yet could not be told to be the same.
        if std::fs::create_dir_all(&runs).is_err() {
            return Ok(Self::Here(lab));
        }
        let connect = Arc::new(ServiceConnect::new(common, socket));
        let service = RemoteRig::new(connect, runs, caller(), env!("CARGO_PKG_VERSION"));
        let service = Box::new(service.under(common.lease.clone()).as_own(own));
        Ok(Self::Served(ServedLab { lab, service, learns: AtomicBool::new(false) }))
    }

    /// Returns the boards and places, where they are those of this host.
    pub(crate) fn catalogue(&self) -> Option<&Catalogue> {
        match self {
            Self::Here(lab) | Self::Served(ServedLab { lab, .. }) => Some(lab.catalogue()),
            Self::There(_) => None,
        }
    }

    /// Returns the folder in which the runs are found.
    pub(crate) fn runs_dir(&self) -> PathBuf {
        match self {
            Self::Here(lab) | Self::Served(ServedLab { lab, .. }) => lab.catalogue().runs_dir(),
            Self::There(rig) => rig.runs_dir().to_owned(),
        }
    }

    /// Learns from a run that has ended, behind its verdict. A rig elsewhere does so by itself.
    pub(crate) fn learn_from(&self, run: &RunId) {
        match self {
            Self::Here(lab) => lab.catalogue().knowledge().capture(run),
            Self::Served(ServedLab { lab, learns, .. }) => {
                if !learns.load(Ordering::Relaxed) {
                    lab.catalogue().knowledge().capture(run);
                }
            }
            Self::There(_) => {}
        }
    }

    /// Finds the console of a place that is meant where none is named.
    pub(crate) async fn primary_console(&self, place: &PlaceName) -> Result<ConsoleName, Failure> {
        match self {
            Self::Here(lab) | Self::Served(ServedLab { lab, .. }) => {
                let (_, profile) = lab.catalogue().place(place)?;
                Ok(profile.primary_console().clone())
            }
            Self::There(rig) => {
                let place = DescribePlace { place: place.clone() };
                let told: PlaceAnswer = rig.call_again(&place).await?;
                Ok(told.primary)
            }
        }
    }

    /// Looks at the rig.
    pub(crate) async fn view(&self, common: &Common, query: RigQuery) -> Result<RigView, Failure> {
        let rig = match self {
            Self::Here(_) | Self::Served(_) => None,
            Self::There(rig) => Some(rig),
        };
        seen(rig, common, query).await
    }

    /// Asks something of the leases of the rig.
    pub(crate) async fn lease(&self, order: LeaseOrder) -> Result<LeaseAnswer, Failure> {
        match self {
            Self::Here(lab) | Self::Served(ServedLab { lab, .. }) => {
                Ok(lab.catalogue().order_lease(&order)?)
            }
            Self::There(rig) => Ok(rig.call(&OrderLease { order }).await?),
        }
    }

    /// Carries out a command; `input` goes to the console or channel that it is about.
    pub(crate) async fn execute(
        &self,
        command: Command,
        input: mpsc::Receiver<Vec<u8>>,
        events: Arc<dyn EventSink>,
        cancel: CancelToken,
    ) -> Result<Reply, Failure> {
        match self {
            Self::Here(lab) => Ok(lab.execute_with_input(command, input, events, cancel).await?),
            Self::Served(served) => served.execute(command, input, events, cancel).await,
            Self::There(rig) => Ok(rig.execute(command, input, events, cancel).await?),
        }
    }
}

/// Returns the rig of another host, or of another user, if the arguments name one, or if a service of
/// this host serves the rig that they mean and keeps it in folders of its own.
pub(crate) fn elsewhere(common: &Common) -> Result<Option<RemoteRig>, Failure> {
    match own_service::found(common) {
        Some(FoundService::OtherFolders { socket }) => {
            let runs = common.reader.read(&common.own_lab())?.runs_dir();
            let connect = Arc::new(SocketConnect(socket));
            let rig = RemoteRig::new(connect, runs, caller(), env!("CARGO_PKG_VERSION"));
            Ok(Some(rig.under(common.lease.clone())))
        }
        Some(FoundService::SameFolders { .. }) | None => named_elsewhere(common),
    }
}

/// Returns the rig of another host, or of another user, if the arguments name one. For what works on the
/// runs that this user has.
pub(crate) fn named_elsewhere(common: &Common) -> Result<Option<RemoteRig>, Failure> {
    let connect: Arc<dyn Connect> = match &common.rig {
        None | Some(RigName::File(_) | RigName::Local) => return Ok(None),
        Some(RigName::Socket(path)) => Arc::new(SocketConnect(path.clone())),
        Some(RigName::Ssh(target)) => Arc::new(SshConnect::new(common, target.clone())?),
    };
    if let Some(at_probe) = &common.chip {
        let words =
            format!("{} is a chip on a probe of this host, and the rig is not", at_probe.place());
        let help = format!(
            "name a place of that rig; its rig file may say board = \"{}\"",
            at_probe.place()
        );
        return Err(Failure::new(Fault::Usage, words).help(help));
    }
    // Only the folder of the runs is asked of this host's own files.
    let runs = match &common.runs {
        Some(folder) => std::path::absolute(folder).unwrap_or_else(|_| folder.clone()),
        None => common.reader.read(&common.own_lab())?.runs_dir(),
    };
    let rig = RemoteRig::new(connect, runs, caller(), env!("CARGO_PKG_VERSION"));
    Ok(Some(rig.under(common.lease.clone())))
}

/// Returns the rig that the arguments name as one that is spoken to: also that of this host, which is
/// then served by this process.
pub(crate) fn spoken_to(common: &Common) -> Result<RemoteRig, Failure> {
    match elsewhere(common)? {
        Some(rig) => Ok(rig),
        None => spoken_to_here(common, own_identity()),
    }
}

/// Returns the rig of this host as one that is spoken to, by a caller with an identity: each call is
/// judged by the access rules as one that comes from elsewhere.
pub(crate) fn spoken_to_here(common: &Common, identity: Identity) -> Result<RemoteRig, Failure> {
    let host = Arc::new(rig_host(common)?);
    let runs = host.runs.clone();
    let connect = Arc::new(OwnConnect { host, identity });
    let rig = RemoteRig::new(connect, runs, caller(), env!("CARGO_PKG_VERSION"));
    Ok(rig.under(common.lease.clone()))
}

/// Looks at the rig that the arguments name.
pub(crate) fn view(common: &Common, query: RigQuery) -> Result<RigView, Failure> {
    let rig = elsewhere(common)?;
    until_signalled(async |cancel| {
        tokio::select! {
            seen = seen(rig.as_ref(), common, query) => seen,
            () = cancel.cancelled() => Err(stopped()),
        }
    })
}

/// Looks at a rig elsewhere, or at that of this host.
pub(crate) async fn seen(
    rig: Option<&RemoteRig>,
    common: &Common,
    query: RigQuery,
) -> Result<RigView, Failure> {
    match rig {
        None => Ok(look_again(&common.reader, &common.own_lab(), &query).await?),
        Some(rig) => Ok(rig.view(query).await?),
    }
}

/// A signal has come before there was an answer.
pub(crate) fn stopped() -> Failure {
    Failure::new(Fault::Cancelled, "stopped by a signal")
}

impl From<RemoteRigError> for Failure {
    fn from(error: RemoteRigError) -> Self {
        match error.refusal() {
            Some(refusal) => refusal.clone().into(),
            None => {
                let failure = Self::of(error.fault(), &error);
                match error {
                    RemoteRigError::Gone { what: GoesOn::Job(job), .. } => failure.help(format!(
                        "the command goes on at the rig; its output: jig runs attach {job}"
                    )),
                    RemoteRigError::Gone { what: GoesOn::Run(run), .. } => failure.help(format!(
                        "the run goes on at the rig; its output: jig runs attach {run}"
                    )),
                    RemoteRigError::Gone { what: GoesOn::Nothing, .. } => failure,
                    RemoteRigError::Call(CallError::Lost(_)) => failure.help(
                        "try again; the log of the rig's host says why it hangs up: journalctl -u jig",
                    ),
                    RemoteRigError::Unknown { host, .. } => failure.help(format!(
                        "install jig {} at {host}; verbs that work on a board, such as run and test, \
                         work as it is",
                        env!("CARGO_PKG_VERSION")
                    )),
                    _ => failure,
                }
            }
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let Refusal { fault, message, help, problems } = refusal;
        // The documents are the caller's own, so their lines say more than carets.
        let lines = problems.iter().map(|problem| {
            let line = problem.line.map_or_else(String::new, |line| format!(":{line}"));
            format!("\n  {}{line}: {}; {}", problem.file, problem.message, problem.help)
        });
        let message = std::iter::once(message).chain(lines).collect::<String>();
        Self { help, ..Self::new(fault, message) }
    }
}
