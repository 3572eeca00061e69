//! The search patterns of a run, compiled once for all its attempts.
//!
//! Ten fault signatures of a user take some 20 ms to compile, as long as an emulator takes to start.
//! So the first watcher that needs them has them compiled on a thread of its own while the board
//! boots. No output is lost meanwhile, because watchers read the log. Shipped signatures are compiled
//! when they are needed, see `console/signatures.rs`.

use std::collections::BTreeSet;
use std::sync::Arc;

use jig_model::ConsoleName;
use jig_model::pattern::Pattern;
use jig_model::profile::{BoardProfile, ConsoleKind};
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
    /// The same for a console with the output of commands, which may print what a boot prints.
    pub(super) of_commands: (BTreeSet<ConsoleName>, Recogniser),
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
            let made = spawn_blocking(move || compile(&profile, &reject));
            made.await.map_err(AttemptError::Broken)?.map_err(AttemptError::Patterns)
        });
        compiled.await
    }
}

fn compile(
    profile: &BoardProfile,
    reject: &[Pattern],
) -> Result<CompiledPatterns, PatternSetError> {
    let banner = profile.boot_banner.as_ref();
    let recogniser = Recogniser::new(&profile.faults, reject, banner, &profile.limits)?;
    let reasons = Arc::new(FaultReasons::new(&profile.faults)?);
    let commands = profile.consoles.iter().filter(|console| console.kind == ConsoleKind::Shell);
    let commands: BTreeSet<_> = commands.map(|console| console.name.clone()).collect();
    let of_commands = match commands.is_empty() {
        true => recogniser.clone(),
        false => Recogniser::new(&profile.faults, reject, None, &profile.limits)?,
    };
    let of_commands = (commands, of_commands);
    Ok(CompiledPatterns { recogniser, of_commands, reasons, identity: IdentityScanner::new() })
}
