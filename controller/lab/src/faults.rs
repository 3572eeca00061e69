//! The faults that a run is asked to be made to fail by.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use jig_drivers::inject::{
    Argument, InjectedFactory, Injection, Injector, PortReader, Staller, primary_end,
};
use jig_drivers::power::Between;
use jig_model::profile::BoardProfile;
use jig_model::protocol::DriverFactory;
use jig_model::rig_file::{Endpoint, Place};
use jig_model::{ConsoleName, PlaceName};
use jig_rig::store::{Clock, SystemClock, open_regular};

/// Says why a fault cannot strike in a run. Always the caller's mistake.
#[derive(Debug, thiserror::Error)]
pub enum InjectError {
    /// The file that it takes cannot be read.
    #[error("{fault}: cannot read {}", path.display())]
    Unreadable {
        /// The fault, as it was written.
        fault: String,
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The place lacks the transport that it strikes.
    #[error("{fault}: console {console} of place {place} is {}", transport(*found))]
    NoTransport {
        /// The fault, as it was written.
        fault: String,
        /// The console that it would strike.
        console: ConsoleName,
        /// The place.
        place: PlaceName,
        /// The key of the console's transport in the rig file, if it has one of its own.
        found: Option<&'static str>,
        /// The key of the transport that the fault strikes.
        wanted: &'static str,
    },
}

fn transport(found: Option<&str>) -> String {
    found.map_or_else(|| "no transport of its own".to_owned(), |key| format!("a `{key}`"))
}

/// The faults of one run.
pub(crate) struct Faults(Injector);

impl Faults {
    /// Prepares them, if there are any.
    ///
    /// # Errors
    /// A file that a fault takes cannot be read, or the place lacks the transport that it
    /// strikes.
    pub(crate) fn of(
        inject: Vec<Injection>,
        place: &Place,
        profile: &BoardProfile,
        program: &Path,
    ) -> Result<Option<Self>, InjectError> {
        for injection in &inject {
            has_transport(injection, place, profile)?;
            let Argument::File(path) = &injection.argument else { continue };
            // What else may be wrong with it is found when it is deployed.
            open_regular(path).map_err(|source| {
                let fault = injection.to_string();
                InjectError::Unreadable { fault, path: path.clone(), source }
            })?;
        }
        if inject.is_empty() {
            return Ok(None);
        }
        let staller = Staller {
            // Without a program this process cannot be stopped, and the fault says so then.
            program: program.as_os_str().to_owned(),
            args: ["inject", "--stall-parent"].map(Into::into).to_vec(),
        };
        let port_reader = PortReader {
            program: staller.program.clone(),
            args: ["inject", "--steal-tty"].map(Into::into).to_vec(),
        };
        Ok(Some(Self(Injector::new(inject, staller).with_port_reader(port_reader))))
    }

    /// Puts them round a board.
    /// `by_device` says that the power is switched by a device, which is faulty itself.
    pub(crate) fn round<'a>(
        &self,
        board: &'a dyn DriverFactory,
        by_device: bool,
    ) -> InjectedFactory<'a> {
        InjectedFactory { board, injector: self.0.clone(), by_device }
    }

    /// Returns what stands between the device that switches the place and its driver.
    pub(crate) fn between_devices(&self) -> Between {
        self.0.between_devices()
    }

    /// Returns a clock that jumps when it is told to.
    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(JumpingClock { clock: SystemClock::new(), injector: self.0.clone() })
    }

    /// Strikes while a run is under way.
    pub(crate) async fn beside<T>(&self, run: impl Future<Output = T>) -> T {
        let ended = tokio::select! {
            // First, so that the times count from before the run begins.
            biased;
            never = self.0.run() => match never {},
            ended = run => ended,
        };
        self.0.put_right();
        ended
    }

    /// Returns those that have not struck, as they were written.
    pub(crate) fn left(&self) -> Vec<String> {
        self.0.left()
    }
}

/// Checks that a fault which strikes only one kind of transport has it at a place.
fn has_transport(
    injection: &Injection,
    place: &Place,
    profile: &BoardProfile,
) -> Result<(), InjectError> {
    let end = primary_end(profile, place).map(Endpoint::key);
    match injection.fault.spec().transport().filter(|key| end != Some(key)) {
        None => Ok(()),
        Some(wanted) => Err(InjectError::NoTransport {
            fault: injection.to_string(),
            console: profile.primary_console().clone(),
            place: place.name.clone(),
            found: end,
            wanted,
        }),
    }
}

/// The machine's clock, until it jumps. Only the wall's time does: what a run measures are
/// spans, which no jump touches.
struct JumpingClock {
    clock: SystemClock,
    injector: Injector,
}

impl Clock for JumpingClock {
    fn mono(&self) -> Duration {
        self.clock.mono()
    }

    fn wall(&self) -> Timestamp {
        let jump = SignedDuration::from_millis(self.injector.clock_jump());
        self.clock.wall().saturating_add(jump).unwrap_or(Timestamp::MAX)
    }
}
