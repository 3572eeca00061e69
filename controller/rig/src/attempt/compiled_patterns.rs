//! The search patterns of a run, compiled once for all its attempts.
//!
//! Ten fault signatures of a user take some 20 ms to compile, as long as an emulator takes to start.
//! So the first watcher that needs them has them compiled on a thread of its own while the board
//! boots. No output is lost meanwhile, because watchers read the log. Shipped signatures are compiled
//! when they are needed, see `console/signatures.rs`.

use std::sync::Arc;

use jig_model::Cause;
use jig_model::pattern::Pattern;
use jig_model::profile::{BoardProfile, FaultSignature, FaultText};
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;

use super::error::AttemptError;
use super::identity::IdentityScanner;
use crate::console::{FaultReasons, PatternSetError, Recogniser};

/// The search patterns of a board profile and a plan. Attempts of one run share them.
#[derive(Debug)]
pub struct RunPatterns {
    profile: Arc<BoardProfile>,
    /// Output that the plan rejects.
    reject: Vec<Pattern>,
    compiled: OnceCell<CompiledPatterns>,
}

/// The compiled forms; each watcher clones its own, which is cheap.
#[derive(Debug)]
pub(super) struct CompiledPatterns {
    pub(super) recogniser: Recogniser,
    pub(super) reasons: Arc<FaultReasons>,
    pub(super) identity: IdentityScanner,
}

impl RunPatterns {
    /// Remembers the profile; compiles nothing yet.
    pub fn new(profile: Arc<BoardProfile>, reject: Vec<Pattern>) -> Self {
        Self { profile, reject, compiled: OnceCell::new() }
    }

    /// Returns the compiled forms; the first caller has them made.
    pub(super) async fn compiled(&self) -> Result<&CompiledPatterns, AttemptError> {
        let compiled = self.compiled.get_or_try_init(|| async {
            let (profile, reject) = (Arc::clone(&self.profile), self.reject.clone());
            let made = spawn_blocking(move || compile(&profile, reject));
            made.await.map_err(AttemptError::Broken)?.map_err(AttemptError::Patterns)
        });
        compiled.await
    }
}

fn compile(
    profile: &BoardProfile,
    reject: Vec<Pattern>,
) -> Result<CompiledPatterns, PatternSetError> {
    let banner = profile.boot_banner.as_ref();
    let rejected = reject.into_iter().map(|pattern| FaultSignature {
        name: "rejected".to_owned(),
        text: FaultText::Pattern(pattern),
        cause: Cause::AssertFailed,
        reason: None,
        excuse: None,
        continues: Vec::new(),
    });
    let signatures: Vec<_> = profile.faults.iter().cloned().chain(rejected).collect();
    let recogniser = Recogniser::new(&signatures, banner, &profile.limits)?;
    let reasons = Arc::new(FaultReasons::new(&profile.faults)?);
    Ok(CompiledPatterns { recogniser, reasons, identity: IdentityScanner::new() })
}
