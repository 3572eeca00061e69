//! The serial consoles of a place as a part of it.
//!
//! # Design
//! *They stand before the power*: the board is quiesced, the ports are opened and captured, and
//! only then does the boot begin; they close after the power is gone. So a run's log begins with
//! its own boot, and with the first byte of it. A board that nothing here can quiesce may print
//! on while its consoles are captured; that stands before the boot in the log.
//!
//! *The part that has the ports open listens*: a power that was switched off while text goes on is
//! not the board's. With a debug probe the core is what was stopped, so this is asked only where
//! the place says `sense = "console"`.

use std::sync::Arc;
use std::time::Duration;

use jig_model::image::{DeployReport, Image};
use jig_model::power::{PlacePower, PlaceSense};
use jig_model::protocol::{
    BindContext, BoxFuture, DriverError, Flasher, PartFactory, Power, PowerState, Protocols,
    SharedSink,
};
use jig_model::rig_file::{Place, ResetPart};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use super::ports::{ConsolePorts, UNDER_WAY};
use crate::power::PowerError;
use crate::reset::{ResetMeans, with_reset};

/// How long consoles must be silent for a board to be off: longer than an adapter or a server on
/// the network holds bytes back.
const SILENCE: Duration = Duration::from_millis(300);

/// How long a board may go on printing after its power was switched off: by its capacitors, less
/// than a second.
const GONE: Duration = Duration::from_secs(5);

/// What opening, draining and listening add to the time in which power is switched off.
const CLOSING: Duration = Duration::from_secs(7);

/// Adds the serial consoles of a place, and its reset where a line of theirs resets the board.
pub struct ConsolesFactory;

impl PartFactory for ConsolesFactory {
    fn join(&self, context: &BindContext, mut built: Protocols) -> Result<Protocols, DriverError> {
        if context.place.consoles.is_empty() {
            return Ok(built);
        }
        let ports = Arc::new(Mutex::new(ConsolePorts::of(context)));
        if matches!(context.place.reset_part(), Some(ResetPart::Line { .. })) {
            let means = LineReset(Arc::clone(&ports));
            built = with_reset(Box::new(means), context, built);
        }
        let Some(power) = built.power.take() else { return Ok(built) };
        let timeout = power.off_timeout() + CLOSING;
        let power = ConsolePower {
            power,
            ports,
            sink: Arc::clone(&context.sink),
            listens: listens(&context.place),
            cuts: !context.place.has_probe(),
        };
        let power = SharedPower { power: Arc::new(Mutex::new(power)), timeout };
        built.flasher = built.flasher.map(|flasher| {
            let power = power.clone();
            Box::new(ConsoleFlasher { flasher, power }) as Box<dyn Flasher>
        });
        built.power = Some(Box::new(power));
        Ok(built)
    }
}

/// Returns the outlet that the consoles contradict if it says that it is off.
fn listens(place: &Place) -> Option<PlacePower> {
    let power = place.power.clone()?;
    let asked = match &power.sense {
        Some(PlaceSense::Console) => true,
        Some(PlaceSense::Absent) => false,
        Some(PlaceSense::DebugPort | PlaceSense::Outlet(_)) | None => !place.has_probe(),
    };
    asked.then_some(power)
}

/// A line of a console's port that resets the board.
struct LineReset(Arc<Mutex<ConsolePorts>>);

impl ResetMeans for LineReset {
    fn hold(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async {
            let mut ports = self.0.lock().await;
            ports.open().await?;
            ports.set_line(true).await
        })
    }

    fn release(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async { self.0.lock().await.set_line(false).await })
    }
}

/// The power of a board whose consoles are captured while it has some.
struct ConsolePower {
    power: Box<dyn Power>,
    ports: Arc<Mutex<ConsolePorts>>,
    sink: SharedSink,
    listens: Option<PlacePower>,
    /// Whether a board that is quiesced has no power.
    cuts: bool,
}

impl ConsolePower {
    async fn on(&mut self) -> Result<(), DriverError> {
        if self.ports.lock().await.is_attached() {
            if self.power.status().await? == PowerState::On {
                return self.power.on().await;
            }
            self.off().await?;
        }
        let booted = self.boot().await;
        if booted.is_err() {
            self.ports.lock().await.end().await;
        }
        booted
    }

    async fn boot(&mut self) -> Result<(), DriverError> {
        self.power.quiesce().await?;
        // What it has sent before goes with the old bytes of its port, or to the capture service.
        sleep(UNDER_WAY).await;
        let mut ports = self.ports.lock().await;
        ports.open().await?;
        ports.attach().await;
        drop(ports);
        if let Some(outlet) = self.listens.as_ref().filter(|_| self.cuts) {
            falls_silent(&self.ports, outlet).await?;
        }
        self.sink.drained().await;
        self.power.on().await
    }

    async fn off(&mut self) -> Result<(), DriverError> {
        let was_attached = self.ports.lock().await.is_attached();
        let off = self.power.off().await;
        if was_attached {
            sleep(UNDER_WAY).await;
        }
        let silent = match &self.listens {
            Some(outlet) if was_attached && off.is_ok() => falls_silent(&self.ports, outlet).await,
            _ => Ok(()),
        };
        self.ports.lock().await.end().await;
        self.sink.drained().await;
        off.and(silent)
    }
}

/// Waits until the consoles are silent, or long enough to know that they do not fall so.
async fn falls_silent(ports: &Mutex<ConsolePorts>, outlet: &PlacePower) -> Result<(), DriverError> {
    let end = Instant::now() + GONE;
    loop {
        ports.lock().await.listen();
        sleep(SILENCE).await;
        let ports = ports.lock().await;
        if !ports.heard() {
            return Ok(());
        }
        if Instant::now() >= end {
            let error = PowerError::Contradicted {
                what: outlet.words(),
                claim: "was switched off".to_owned(),
                sense: format!("console {}", ports.names()),
                timeout: GONE,
            };
            return Err(error.into());
        }
    }
}

/// The power of a board, which its flasher takes too.
#[derive(Clone)]
struct SharedPower {
    power: Arc<Mutex<ConsolePower>>,
    timeout: Duration,
}

impl Power for SharedPower {
    fn quiesce(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async { self.power.lock().await.power.quiesce().await })
    }

    fn on(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async { self.power.lock().await.on().await })
    }

    fn off(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async { self.power.lock().await.off().await })
    }

    fn status(&mut self) -> BoxFuture<'_, Result<PowerState, DriverError>> {
        Box::pin(async { self.power.lock().await.power.status().await })
    }

    fn off_timeout(&self) -> Duration {
        self.timeout
    }

    fn cycle(&mut self, off_time: Option<Duration>) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async move {
            let mut power = self.power.lock().await;
            power.off().await?;
            sleep(off_time.unwrap_or_default()).await;
            power.on().await
        })
    }
}

/// A flasher that may need a port for itself.
struct ConsoleFlasher {
    flasher: Box<dyn Flasher>,
    power: SharedPower,
}

impl Flasher for ConsoleFlasher {
    fn deploy<'a>(
        &'a mut self,
        image: &'a Image,
    ) -> BoxFuture<'a, Result<DeployReport, DriverError>> {
        Box::pin(async {
            let mut power = self.power.power.lock().await;
            if power.ports.lock().await.is_attached() {
                power.off().await?;
            }
            drop(power);
            self.flasher.deploy(image).await
        })
    }
}
