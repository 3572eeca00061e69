//! Checks of what a place stands on: the host, its transports, its switch.
//!
//! Owns looking, and saying what was seen. Refuses to know what a limit should be, and leaves
//! everything as it found it: no port is opened where another process or the board could notice, no
//! outlet switched.
//!
//! # Design
//! A check that asks the system for a file may hang with a broken disk. It is asked on a thread
//! of its own, so that a caller that waits for the report can stop waiting.

mod clock;
mod console;
mod error;
mod host;
mod network;
mod power;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use jig_model::protocol::{BoxFuture, CheckReport, HealthCheck};
use jig_model::{Cause, chain};

use self::error::HostCheckError;
pub use clock::{ClockSources, clock};
pub use console::{console, untaken};
pub use host::{free_disk, free_handles, free_memory};
pub use network::network;
pub use power::{excused, outlet, while_powered};

/// What a check finds: what was seen, or what is wrong.
type Found = Result<String, HostCheckError>;

/// A check that asks the system, which may block.
struct SystemCheck {
    name: String,
    cause: Cause,
    look: Arc<dyn Fn() -> Found + Send + Sync>,
}

impl SystemCheck {
    fn boxed(
        name: impl Into<String>,
        cause: Cause,
        look: impl Fn() -> Found + Send + Sync + 'static,
    ) -> Box<dyn HealthCheck> {
        Box::new(Self { name: name.into(), cause, look: Arc::new(look) })
    }
}

impl HealthCheck for SystemCheck {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn cause(&self) -> Cause {
        self.cause
    }

    fn check(&mut self) -> BoxFuture<'_, CheckReport> {
        let (name, look) = (self.name.clone(), Arc::clone(&self.look));
        Box::pin(async move {
            let seen = tokio::task::spawn_blocking(move || look()).await;
            report(name, seen.unwrap_or_else(|error| Err(error.into())))
        })
    }
}

fn report(check: String, found: Found) -> CheckReport {
    let ok = found.is_ok();
    CheckReport { check, ok, detail: found.unwrap_or_else(|error| chain(&error)) }
}

/// Where the kernel's files about processes are, in production.
fn proc() -> PathBuf {
    PathBuf::from("/proc")
}
