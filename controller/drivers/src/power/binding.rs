//! The outlet of a place in a run: it is switched together with the board.
//!
//! # Design
//! A board behind a probe has a power of its own kind: its core is halted, or let run. With
//! an outlet, off is that and then a power cut, so RAM is gone; on is the outlet and then the
//! board. A board without power cannot be flashed, so a deployment gives it power first, and
//! leaves it there: the power-on that follows finds it so, and a cycle cuts it all the same.

use std::sync::Arc;
use std::time::Duration;

use jig_model::image::{DeployReport, Image};
use jig_model::power::{PlacePower, PowerDevice};
use jig_model::protocol::{
    BindContext, BoxFuture, DriverError, DriverFactory, Flasher, Power, PowerState, Protocols,
};
use tokio::sync::Mutex;

use super::{OutletPower, PowerContext, open_sensed};

/// Offers the boards of another driver, with an outlet as their power.
pub struct OutletFactory<'a> {
    /// The driver of the board itself.
    pub board: &'a dyn DriverFactory,
    /// The devices of the rig.
    pub devices: &'a [PowerDevice],
    /// The outlet, and the power sense beside it.
    pub outlet: PlacePower,
    /// What the device needs of its surroundings.
    pub context: PowerContext,
}

impl DriverFactory for OutletFactory<'_> {
    fn bind(&self, context: BindContext) -> Result<Protocols, DriverError> {
        let mut around = self.context.clone();
        around.ledger = Arc::clone(&context.ledger);
        let (profile, place) = (Arc::clone(&context.profile), Arc::clone(&context.place));
        let mut board = self.board.bind(context)?;
        let outlet = open_sensed(
            &self.outlet,
            self.devices,
            &around,
            (&profile, &place),
            board.sense.take(),
        )?;
        let outlet_within = outlet.off_within();
        let outlet = Arc::new(Mutex::new(outlet));
        let power =
            BoardOnOutlet { board: board.power, outlet: Arc::clone(&outlet), outlet_within };
        let flasher = board
            .flasher
            .map(|flasher| Box::new(PoweredFlasher { flasher, outlet }) as Box<dyn Flasher>);
        Ok(Protocols { power: Some(Box::new(power)), flasher, ..board })
    }
}

/// One outlet, which the power and the flasher of a board share.
type Shared = Arc<Mutex<OutletPower>>;

struct BoardOnOutlet {
    board: Option<Box<dyn Power>>,
    outlet: Shared,
    /// How long the outlet takes at most to be off.
    outlet_within: Duration,
}

impl Power for BoardOnOutlet {
    fn on(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async {
            self.outlet.lock().await.on().await?;
            match &mut self.board {
                Some(board) => board.on().await,
                None => Ok(()),
            }
        })
    }

    fn off(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async {
            // Whatever became of the board, its power goes.
            let stopped = match &mut self.board {
                Some(board) => board.off().await,
                None => Ok(()),
            };
            self.outlet.lock().await.off().await?;
            stopped
        })
    }

    fn status(&mut self) -> BoxFuture<'_, Result<PowerState, DriverError>> {
        Box::pin(async { self.outlet.lock().await.status().await })
    }

    fn off_within(&self) -> Duration {
        let board = self.board.as_ref().map(|board| board.off_within());
        board.unwrap_or_default() + self.outlet_within
    }

    fn cycle(&mut self, off_time: Option<Duration>) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async move {
            if let Some(board) = &mut self.board {
                board.off().await?;
            }
            self.outlet.lock().await.cycle(off_time).await?;
            match &mut self.board {
                Some(board) => board.on().await,
                None => Ok(()),
            }
        })
    }
}

struct PoweredFlasher {
    flasher: Box<dyn Flasher>,
    outlet: Shared,
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
