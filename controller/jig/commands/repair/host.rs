//! How repair runs start programs on this host.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jig_drivers::program::HostPrograms;
use jig_model::program::Programs;
use jig_repair::git::Git;
use jig_repair::redact::Redactor;
use jig_repair::task::RepairTask;

/// Calls git in a folder.
pub(crate) fn git_in(folder: &Path, scratch: &Path) -> Git {
    Git::new(programs(), folder, scratch, &search_path())
}

pub(super) fn programs() -> Arc<dyn Programs> {
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("jig"));
    Arc::new(HostPrograms::new(program))
}

/// Removes the values of the variables that the agents of a task are given, beside all that has the shape
/// of a secret.
pub(super) fn redactor_of(task: &RepairTask) -> Redactor {
    Redactor::new(task.variables().filter_map(|name| {
        Some((name.to_owned(), std::env::var_os(name)?.to_string_lossy().into_owned()))
    }))
}

pub(super) fn search_path() -> OsString {
    std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into())
}
