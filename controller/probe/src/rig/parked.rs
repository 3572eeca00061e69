//! Sessions of real boards that are off: open, the core halted.
//!
//! Closing a session lets the core run, and a probe that cannot be cut off stays taken by
//! this process, so a session outlives the board it was opened for and the next attempt of
//! the same process goes on with it. The end of the process does not let the core run.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{AttachOptions, Attached, ProbeHandle};

/// An open session and how it was asked for.
pub(super) struct Parked {
    pub(super) selector: String,
    pub(super) options: AttachOptions,
    pub(super) handle: ProbeHandle,
    pub(super) attached: Attached,
}

static PARKED: Mutex<Vec<Parked>> = Mutex::new(Vec::new());

fn all() -> MutexGuard<'static, Vec<Parked>> {
    PARKED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps a session.
pub(super) fn park(session: Parked) {
    all().push(session);
}

/// Takes a session back.
pub(super) fn take(selector: &str, options: &AttachOptions) -> Option<Parked> {
    let mut all = all();
    let found = all.iter().position(|one| one.selector == selector && one.options == *options)?;
    Some(all.swap_remove(found))
}
