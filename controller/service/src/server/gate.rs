//! The gate in front of all calls: whether the caller has the right to what it asks for.
//!
//! # Design
//! *Each call is known here or refused.* A call that the gate does not know is carried out only for
//! callers whom no rule limits. So one that is added later gives nothing away until it is given a rule.
//!
//! *What a job does is checked twice*: here, so that a refused job never begins, and by its worker, which
//! is the door to the board.

use std::sync::{Arc, Mutex, PoisonError};

use jig_lab::{AccessError, Catalogue, LabConfig, RigQuery, RigView};
use jig_model::access::{AccessDenial, AccessRight};
use jig_model::lease::RigUser;
use jig_model::{Fault, Identity, PlaceName, RunId};
use jig_rig::store::{RunStore, lost_runs};
use serde::Deserialize;
use serde_json::Value;

use super::RigHost;
use super::cancels::Cancellation;
use super::refusal::refused;
use crate::jobs::{JobId, JobSpec};
use crate::protocol::{
    AskKnowledge, CancelJob, DescribeBoard, DescribePlace, DescribeRig, DescribeRun, EndCall,
    FollowFile, FollowJob, Hello, JobInput, ListJobs, OfferFile, OrderLease, PruneRuns, PutFile,
    ReadJobOutput, ReadRunFile, RequestError, RpcCall, RpcRequest, StartJob, ViewRig, WatchRun,
};

/// The gate of a connection.
pub(super) struct AccessGate {
    host: Arc<RigHost>,
    identity: Identity,
    /// The catalogue that the caller's was made of, and the caller's.
    read: Mutex<Option<(Arc<Catalogue>, Arc<Catalogue>)>>,
}

/// The part of parameters that says which job is meant.
#[derive(Deserialize)]
struct OfJob {
    job: JobId,
}

/// The part of parameters that says which run is meant.
#[derive(Deserialize)]
struct OfRun {
    run: RunId,
}

impl AccessGate {
    pub(super) fn new(host: Arc<RigHost>, identity: Identity) -> Self {
        Self { host, identity, read: Mutex::new(None) }
    }

    /// Returns where the rig is described, for the caller.
    pub(super) fn config(&self) -> LabConfig {
        let user = RigUser { identity: self.identity.clone(), ..RigUser::default() };
        LabConfig { user, ..self.host.catalogue.config().clone() }
    }

    /// Leaves out of a view what the caller may not see. Places are left out where they are listed.
    pub(super) fn filtered(&self, view: RigView) -> Result<RigView, RequestError> {
        let catalogue = match self.catalogue() {
            Ok(catalogue) if catalogue.is_unlimited() => return Ok(view),
            Err(_) if self.identity.name.is_local() => return Ok(view),
            read => read?,
        };
        let admission = self.admission(Arc::clone(&catalogue));
        match view {
            // Asked for with the right to it, or filtered where it was looked at.
            RigView::Boards(_)
            | RigView::Health(_)
            | RigView::Places(_)
            | RigView::Tail(_)
            | RigView::Profile(_)
            | RigView::Access(_)
            | RigView::Audit(_)
            | RigView::AuditChain(_) => Ok(view),
            RigView::Run(found) => admission.may_see_run(&found.run).map(|()| RigView::Run(found)),
            RigView::Runs(mut page) => {
                page.runs.retain(|run| {
                    run.place.as_ref().is_some_and(|place| catalogue.may(AccessRight::See, place))
                });
                Ok(RigView::Runs(page))
            }
            RigView::Probes(_) => admission.unknown("probes").map(|()| view),
            RigView::Attached(_) => admission.unknown("discover").map(|()| view),
        }
    }

    fn admission(&self, catalogue: Arc<Catalogue>) -> CallAdmission {
        let (host, identity) = (Arc::clone(&self.host), self.identity.clone());
        CallAdmission { host, identity, catalogue }
    }

    /// Returns the boards and places as the caller sees them.
    pub(super) fn catalogue(&self) -> Result<Arc<Catalogue>, RequestError> {
        let read = self.host.catalogue.read().map_err(|error| refused(&error, error.fault()))?;
        let mut known = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, catalogue)) = &*known
            && Arc::ptr_eq(of, &read)
        {
            return Ok(Arc::clone(catalogue));
        }
        let catalogue = Arc::new(read.seen_by(&self.config().user));
        *known = Some((read, Arc::clone(&catalogue)));
        Ok(catalogue)
    }

    /// Lets a call in.
    ///
    /// # Errors
    /// The caller has not the right to it.
    pub(super) async fn admit(&self, request: &RpcRequest) -> Result<(), RequestError> {
        let catalogue = match self.catalogue() {
            Ok(catalogue) => catalogue,
            // Without its rules a rig is closed to callers from elsewhere.
            Err(_) if self.identity.name.is_local() => return Ok(()),
            Err(error) => return Err(error),
        };
        let admission = self.admission(catalogue);
        let (method, params) = (request.method.clone(), request.params.clone());
        let work = move || admission.decide(&method, params);
        tokio::task::spawn_blocking(work).await.map_err(|error| refused(&error, Fault::Bug))?
    }

    /// Tells whether the caller may see a job.
    pub(super) fn sees_job(&self, spec: &JobSpec) -> bool {
        let own = spec.by.name == self.identity.name;
        own || self.catalogue().is_ok_and(|catalogue| {
            catalogue.is_unlimited() || catalogue.may(AccessRight::See, spec.command.place())
        })
    }
}

/// One call at the gate.
struct CallAdmission {
    host: Arc<RigHost>,
    identity: Identity,
    catalogue: Arc<Catalogue>,
}

impl CallAdmission {
    fn decide(&self, method: &str, params: Value) -> Result<(), RequestError> {
        match method {
            // These tell nothing of a place, filter what they tell, or ask for the right themselves.
            Hello::METHOD
            | EndCall::METHOD
            | ListJobs::METHOD
            | OrderLease::METHOD
            | AskKnowledge::METHOD
            | PruneRuns::METHOD
            | DescribePlace::METHOD
            | DescribeBoard::METHOD => Ok(()),
            DescribeRig::METHOD => self.describe(),
            ViewRig::METHOD => self.view(params),
            StartJob::METHOD => self.start(params),
            FollowJob::METHOD | ReadJobOutput::METHOD => self.job(method, params, AccessRight::See),
            JobInput::METHOD | CancelJob::METHOD => {
                self.job(method, params, AccessRight::Administer)
            }
            OfferFile::METHOD | PutFile::METHOD => self.upload(method),
            DescribeRun::METHOD | ReadRunFile::METHOD | FollowFile::METHOD | WatchRun::METHOD => {
                self.run(params)
            }
            _ => self.unknown(method),
        }
    }

    fn start(&self, params: Value) -> Result<(), RequestError> {
        // What cannot be read is refused behind the gate, with words of its own.
        let Ok(StartJob { command, .. }) = serde_json::from_value(params) else { return Ok(()) };
        match self.catalogue.authorise(&command) {
            // The worker says so, in the words for a place that is not there, and notes it.
            Ok(_) | Err(AccessError::Hidden(_)) => Ok(()),
            Err(error) => {
                self.catalogue.note_refused(&command, error.to_string());
                Err(denied(&error))
            }
        }
    }

    /// Lets in users of this host: the answer has paths of its files, which mean nothing elsewhere.
    fn describe(&self) -> Result<(), RequestError> {
        match self.identity.name.is_local() {
            true => Ok(()),
            false => self.refuse(DescribeRig::METHOD, AccessDenial::NotNamed),
        }
    }

    /// Lets in who may look at it. Places and runs are filtered where they are looked at.
    fn view(&self, params: Value) -> Result<(), RequestError> {
        let Ok(ViewRig { query }) = serde_json::from_value(params) else { return Ok(()) };
        let call = match query {
            RigQuery::Audit { .. } | RigQuery::AuditChain { .. } => "audit",
            RigQuery::Access { identity: Some(other), .. } if other != self.identity.name => {
                "access-check"
            }
            RigQuery::Boards
            | RigQuery::Health { .. }
            | RigQuery::Probes
            | RigQuery::Attached
            | RigQuery::Runs { .. }
            | RigQuery::Run { .. }
            | RigQuery::Places
            | RigQuery::Tail { .. }
            | RigQuery::Profile { .. }
            | RigQuery::Access { .. } => return Ok(()),
        };
        let right = AccessRight::Administer;
        let let_in = self.catalogue.authorise_everywhere(right, call);
        let_in.map(drop).map_err(|error| denied(&error))
    }

    /// Lets the owner of a job in, and those who have a right at its place.
    fn job(&self, method: &str, params: Value, right: AccessRight) -> Result<(), RequestError> {
        let Ok(OfJob { job }) = serde_json::from_value(params) else { return Ok(()) };
        // One that is not there, or cannot be read, is told of behind the gate.
        let Ok(job) = self.host.jobs.open(&job) else { return Ok(()) };
        let Ok(spec) = job.spec() else { return Ok(()) };
        if spec.by.name == self.identity.name {
            return Ok(());
        }
        let let_in = self.at(right, spec.command.place());
        if let (CancelJob::METHOD, Err(error)) = (method, &let_in) {
            let (host, identity) = (&*self.host, &self.identity);
            Cancellation { host, identity, job: &job, spec: &spec }.refused(&error.message);
        }
        let_in
    }

    /// Lets the owner of a run in, and those who see its place.
    fn run(&self, params: Value) -> Result<(), RequestError> {
        let Ok(OfRun { run }) = serde_json::from_value(params) else { return Ok(()) };
        self.may_see_run(&run)
    }

    fn may_see_run(&self, run: &RunId) -> Result<(), RequestError> {
        if self.catalogue.is_unlimited() {
            return Ok(());
        }
        let found = RunStore::new(&self.host.runs).open(run.as_str());
        let found = found.or_else(|_| RunStore::new(lost_runs()).open(run.as_str()));
        // One that is not there is told of behind the gate.
        let Ok(entry) = found else { return Ok(()) };
        let record = entry.record.ok();
        let own = record.as_ref().and_then(|record| record.identity.as_ref());
        if own.is_some_and(|own| own.name == self.identity.name) {
            return Ok(());
        }
        let place = record.and_then(|record| record.place);
        match place.is_some_and(|place| self.catalogue.may(AccessRight::See, &place)) {
            true => Ok(()),
            false => {
                let words = format!("there is no run {run} that you may see");
                Err(RequestError::refused(Fault::Usage, words, None))
            }
        }
    }

    /// Lets in who may put an image on some board.
    fn upload(&self, method: &str) -> Result<(), RequestError> {
        let rights = [AccessRight::Use, AccessRight::Flash];
        let mut places = self.catalogue.rig.places.iter().map(|place| &place.name);
        let may = |place| rights.iter().any(|right| self.catalogue.may(*right, place));
        match self.catalogue.is_unlimited() || places.any(may) {
            true => Ok(()),
            false => self.refuse(method, AccessDenial::NotNamed),
        }
    }

    fn unknown(&self, method: &str) -> Result<(), RequestError> {
        match self.catalogue.is_unlimited() {
            true => Ok(()),
            false => self.refuse(method, AccessDenial::UnknownVerb),
        }
    }

    fn at(&self, right: AccessRight, place: &PlaceName) -> Result<(), RequestError> {
        self.catalogue.authorise_at(right, place).map(drop).map_err(|error| denied(&error))
    }

    fn refuse(&self, method: &str, why: AccessDenial) -> Result<(), RequestError> {
        let call = method.chars().take(100).collect();
        let name = self.identity.name.clone();
        Err(denied(&AccessError::DeniedCall { name, call, why }))
    }
}

fn denied(error: &AccessError) -> RequestError {
    let help = match error {
        AccessError::Hidden(unknown) => unknown.help.clone(),
        AccessError::Denied { .. }
        | AccessError::DeniedAll { .. }
        | AccessError::DeniedEverywhere { .. }
        | AccessError::DeniedCall { .. } => {
            "ask who administers the rig for an access rule".to_owned()
        }
    };
    RequestError::refused(error.fault(), error.to_string(), Some(help))
}
