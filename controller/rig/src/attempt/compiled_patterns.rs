//! The search patterns of a run, compiled once for all its attempts.
//!
//! Ten fault signatures take some 20 ms to compile, as long as an emulator takes to start. So the
//! first watcher that needs them has them compiled on a thread of its own while the board boots. No
//! output is lost meanwhile, because watchers read the log.

use std::sync::Arc;

use jig_model::profile::BoardProfile;
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;

use super::error::AttemptError;
use super::identity::IdentityScanner;
use crate::console::{PatternSetError, Recogniser};

/// The search patterns of a board profile. Attempts of one run share them.
#[derive(Debug)]
pub struct RunPatterns {
    profile: Arc<BoardProfile>,
    compiled: OnceCell<CompiledPatterns>,
}

/// The compiled forms; each watcher clones its own, which is cheap.
#[derive(Debug)]
pub(super) struct CompiledPatterns {
    pub(super) recogniser: Recogniser,
    pub(super) identity: IdentityScanner,
}

impl RunPatterns {
    /// Remembers the profile; compiles nothing yet.
    pub fn new(profile: Arc<BoardProfile>) -> Self {
        Self { profile, compiled: OnceCell::new() }
    }

    /// Returns the compiled forms; the first caller has them made.
    pub(super) async fn compiled(&self) -> Result<&CompiledPatterns, AttemptError> {
        let compiled = self.compiled.get_or_try_init(|| async {
            let profile = Arc::clone(&self.profile);
            let made = spawn_blocking(move || compile(&profile));
            made.await.map_err(AttemptError::Broken)?.map_err(AttemptError::Patterns)
        });
        compiled.await
    }
}

fn compile(profile: &BoardProfile) -> Result<CompiledPatterns, PatternSetError> {
    let banner = profile.boot_banner.as_ref();
    let recogniser = Recogniser::new(&profile.faults, banner, &profile.limits)?;
    Ok(CompiledPatterns { recogniser, identity: IdentityScanner::new()? })
}
