//! What to type next when access was refused, or could not be noted.

use jig_lab::{AccessError, LeaseOrderError};
use jig_model::chain;
use jig_rig::audit::AuditError;
use jig_rig::console::escape;

use super::Failure;
use super::of_lab::with_list;

impl From<AccessError> for Failure {
    fn from(error: AccessError) -> Self {
        let failure = Self::new(error.fault(), escape(chain(&error).as_bytes()).to_string());
        match error {
            AccessError::Denied { name, right, place, .. } => failure.help(format!(
                "ask who administers the rig; at its host, `jig access check --as {name} -b {place} \
                 {right}` explains it"
            )),
            AccessError::DeniedAll { name, right, .. } => failure.help(format!(
                "ask who administers the rig; at its host, `jig access check --as {name} {right}` \
                 explains it"
            )),
            AccessError::DeniedEverywhere { name, right, .. } => failure.help(format!(
                "ask who administers the rig; `jig access check --as {name} {right}` at its host explains it"
            )),
            AccessError::DeniedCall { .. } => failure.help("ask who administers the rig"),
            AccessError::Hidden(unknown) => failure.help(with_list(&unknown.help)),
        }
    }
}

impl From<AuditError> for Failure {
    fn from(error: AuditError) -> Self {
        let failure = Self::of(error.fault(), &error);
        match error {
            AuditError::File { .. } => {
                failure.help("make room for the audit log at the rig's host, and let it be written")
            }
            AuditError::Busy(_) => failure.help("end the process at the rig's host that holds it"),
            AuditError::Damaged(path) => failure.help(format!(
                "`jig audit verify` names the line; to begin a new file, keep {} elsewhere",
                escape(path.display().to_string().as_bytes())
            )),
            AuditError::Encoding(_) => failure,
        }
    }
}

impl From<LeaseOrderError> for Failure {
    fn from(error: LeaseOrderError) -> Self {
        match error {
            LeaseOrderError::Lease(error) => error.into(),
            LeaseOrderError::Access(error) => error.into(),
            LeaseOrderError::Audit(error) => error.into(),
        }
    }
}
