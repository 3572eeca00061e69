//! The outlet of a place in a run: it is switched together with the board.
//!
//! # Design
//! A board behind a probe has a power of its own kind: its core is halted, or let run. With
//! an outlet, off is that and then a power cut, so RAM is gone; on is the outlet and then the
//! board. A board without power cannot be flashed, so a deployment gives it power first, and
//! leaves it there: the power-on that follows finds it so, and a cycle cuts it all the same.
//!
//! A board with nothing but an outlet begins its boot with the outlet. The rig is told before the
//! device is: the answer of a device takes longer than the first line of a boot.
//!
//! The consoles' own sense of power is not asked here: in a run their ports are open, and the part
//! that has them open listens (`serial::part`).

use std::sync::Arc;
use std::time::Duration;

use jig_model::event::BoardEvent;
use jig_model::image::{DeployReport, Image};
use jig_model::power::{PlaceSense, PowerDevice};
use jig_model::protocol::{
    BindContext, BoxFuture, DriverError, Flasher, PartFactory, Power, PowerState, Protocols,
    SharedSink,
};
use jig_model::rig_file::ResetPart;
use tokio::sync::Mutex;

use super::open::find;
use super::{OutletPower, PowerContext, open_outlet, open_sensed};
use crate::reset::{ResetMeans, with_reset};

/// Adds what the rig's power devices switch of a place: its power, and its reset where an outlet
/// holds the board in reset.
pub struct OutletFactory<'a> {
    /// The devices of the rig.
    pub devices: &'a [PowerDevice],
    /// What the devices need of their surroundings.
    pub context: PowerContext,
}

impl PartFactory for OutletFactory<'_> {
    fn join(&self, context: &BindContext, mut built: Protocols) -> Result<Protocols, DriverError> {
        let mut around = self.context.clone();
        around.ledger = Arc::clone(&context.ledger);
        let mut switched = None;
        if let Some(outlet) = &context.place.power {
            let who = match context.place.second_sense(&find(&outlet.device, self.devices)?.driver)
            {
                PlaceSense::Console => PlaceSense::Absent,
                who => who,
            };
            let board = (context.profile.as_ref(), context.place.as_ref());
            let sense = built.sense.take();
            let power = open_sensed(outlet, self.devices, &around, board, (&who, sense))?;
            let timeout = power.off_timeout();
            let outlet = Arc::new(Mutex::new(power));
            built.power = Some(match built.power.take() {
                Some(board) => Box::new(BoardOnOutlet {
                    board,
                    outlet: Arc::clone(&outlet),
                    timeout,
                    has_power: false,
                }),
                None => Box::new(BareBoard {
                    outlet: Arc::clone(&outlet),
                    timeout,
                    sink: Arc::clone(&context.sink),
                    known: None,
                }),
            });
            built.flasher = built.flasher.map(|flasher| {
                let outlet = Arc::clone(&outlet);
                Box::new(PoweredFlasher { flasher, outlet }) as Box<dyn Flasher>
            });
            switched = Some(outlet);
        }
        let outlet = match (context.place.reset_part(), switched) {
            (Some(ResetPart::Power), Some(outlet)) => outlet,
            (Some(ResetPart::Outlet(outlet)), _) => {
                Arc::new(Mutex::new(open_outlet(&outlet, self.devices, &around)?))
            }
            _ => return Ok(built),
        };
        Ok(with_reset(Box::new(outlet), context, built))
    }
}

/// One outlet, which the power and the flasher of a board share.
type SharedOutletPower = Arc<Mutex<OutletPower>>;

/// What is off holds no boot: a power cut resets, and so does an outlet in the reset line.
impl ResetMeans for SharedOutletPower {
    fn hold(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async { self.lock().await.off().await })
    }

    fn release(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async { self.lock().await.on().await })
    }
}

/// A board that hangs on a probe and on an outlet.
struct BoardOnOutlet {
    board: Box<dyn Power>,
    outlet: SharedOutletPower,
    /// How long the outlet takes at most to be off.
    timeout: Duration,
    /// Whether the board got power to be quiesced, and was not switched on yet.
    has_power: bool,
}

impl Power for BoardOnOutlet {
    /// The core is halted, for which it needs power.
    fn quiesce(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async {
            self.outlet.lock().await.on().await?;
            self.has_power = true;
            self.board.quiesce().await
        })
    }

    fn on(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async {
            if !std::mem::take(&mut self.has_power) {
                self.outlet.lock().await.on().await?;
            }
            self.board.on().await
        })
    }

    fn off(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async {
            self.has_power = false;
            // Whatever became of the board, its power goes.
            let stopped = self.board.off().await;
            self.outlet.lock().await.off().await?;
            stopped
        })
    }

    fn status(&mut self) -> BoxFuture<'_, Result<PowerState, DriverError>> {
        Box::pin(async { self.outlet.lock().await.status().await })
    }

    fn off_timeout(&self) -> Duration {
        self.board.off_timeout() + self.timeout
    }

    fn cycle(&mut self, off_time: Option<Duration>) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async move {
            self.has_power = false;
            self.board.off().await?;
            self.outlet.lock().await.cycle(off_time).await?;
            self.board.on().await
        })
    }
}

/// A board with an outlet and nothing that stops its core.
struct BareBoard {
    outlet: SharedOutletPower,
    timeout: Duration,
    sink: SharedSink,
    /// The state to which it was last switched here.
    known: Option<PowerState>,
}

impl BareBoard {
    async fn switch_off(&mut self) -> Result<(), DriverError> {
        self.known = None;
        self.outlet.lock().await.off().await?;
        self.known = Some(PowerState::Off);
        Ok(())
    }

    async fn switch_on(&mut self) -> Result<(), DriverError> {
        if self.known == Some(PowerState::On) {
            return Ok(());
        }
        self.sink.event(BoardEvent::Power { state: PowerState::On });
        self.known = Some(PowerState::On);
        let switched = self.outlet.lock().await.on().await;
        if switched.is_err() {
            self.known = None;
            self.sink.event(BoardEvent::Power { state: PowerState::Off });
        }
        switched
    }
}

impl Power for BareBoard {
    fn quiesce(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async {
            match self.known {
                Some(PowerState::Off) => Ok(()),
                Some(PowerState::On) | None => self.switch_off().await,
            }
        })
    }

    fn on(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(self.switch_on())
    }

    fn off(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async {
            self.switch_off().await?;
            self.sink.event(BoardEvent::Power { state: PowerState::Off });
            Ok(())
        })
    }

    fn status(&mut self) -> BoxFuture<'_, Result<PowerState, DriverError>> {
        Box::pin(async { self.outlet.lock().await.status().await })
    }

    fn off_timeout(&self) -> Duration {
        self.timeout
    }
}

struct PoweredFlasher {
    flasher: Box<dyn Flasher>,
    outlet: SharedOutletPower,
}

impl Flasher for PoweredFlasher {
    fn deploy<'a>(
        &'a mut self,
        image: &'a Image,
    ) -> BoxFuture<'a, Result<DeployReport, DriverError>> {
        Box::pin(async {
            self.outlet.lock().await.on().await?;
            self.flasher.deploy(image).await
        })
    }
}
