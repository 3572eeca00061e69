//! What cancellations of jobs leave in the audit log.
//!
//! # Design
//! *A cancellation that cannot be noted is carried out.* It gives nothing to who asks for it, and a board
//! that stays busy because the disk is full would be worse than a missing line.

use jiff::Timestamp;
use jig_model::access::AccessRight;
use jig_model::{Identity, chain};
use jig_rig::audit::{AuditDecision, AuditEntry};

use super::RigHost;
use crate::jobs::{Job, JobSpec};

/// Name of a cancellation in the log.
const COMMAND: &str = "cancel";

/// Who is asked to end what.
pub(super) struct Cancellation<'a> {
    pub(super) host: &'a RigHost,
    /// Who asks.
    pub(super) identity: &'a Identity,
    pub(super) job: &'a Job,
    pub(super) spec: &'a JobSpec,
}

impl Cancellation<'_> {
    /// Notes that it is carried out, because its caller asks or has gone. Waits for the disk.
    pub(super) fn accepted(self, why: &str) {
        let own = self.spec.by.name == self.identity.name;
        let right = (!own).then_some(AccessRight::Administer);
        self.note(right, AuditDecision::Accepted, why);
    }

    /// Notes that it is refused. Waits for the disk.
    pub(super) fn refused(self, why: &str) {
        self.note(Some(AccessRight::Administer), AuditDecision::Refused, why);
    }

    fn note(self, right: Option<AccessRight>, decision: AuditDecision, why: &str) {
        let Self { host, identity, job, spec } = self;
        let entry = AuditEntry {
            at: Timestamp::now(),
            identity: identity.clone(),
            command: COMMAND.to_owned(),
            place: Some(spec.command.place().clone()),
            right,
            decision,
            why: format!("{why}; {} of {}, job {}", spec.command.name(), spec.by.name, job.id()),
            lease: None,
            of: None,
            run: job.run(),
        };
        if let Err(error) = host.audit.append(entry) {
            tracing::warn!(error = chain(&error), "the audit log lacks a line");
        }
    }
}
