//! Puts the wrappers round a board.

use std::sync::Arc;

use jig_model::ConsoleName;
use jig_model::event::BoardEvent;
use jig_model::profile::BoardProfile;
use jig_model::protocol::{
    BindContext, BoardSink, BoxFuture, DriverError, DriverFactory, Flasher, Power, PowerState,
    Protocols, SharedSink, Transport,
};
use jig_model::rig_file::{Endpoint, Place};

use super::flasher::InjectedFlasher;
use super::injector::Injector;
use super::ledger::WatchedLedger;
use super::line::FaultyLine;
use super::power::InjectedPower;
use super::transport::FaultyTransport;

/// Offers the boards of another driver, which fail when they are asked to.
pub struct InjectedFactory<'a> {
    /// The driver of the board itself, with whatever switches its power.
    pub board: &'a dyn DriverFactory,
    /// What is to fail.
    pub injector: Injector,
    /// Its power fails at the device that switches it ([`Injector::between_devices`]), not here.
    pub by_device: bool,
}

impl DriverFactory for InjectedFactory<'_> {
    fn bind(&self, context: BindContext) -> Result<Protocols, DriverError> {
        let injector = &self.injector;
        let (profile, place) = (Arc::clone(&context.profile), Arc::clone(&context.place));
        let line = injector.begin_attempt(Arc::clone(&context.sink));
        injector.console_is(match primary_end(&profile, &place) {
            Some(Endpoint::Tty(path)) => Some(path.clone()),
            _ => None,
        });
        let sink = Arc::new(FaultySink {
            rig: context.sink,
            injector: injector.clone(),
            console: profile.primary_console().clone(),
            line,
        });
        let ledger = Arc::new(WatchedLedger {
            ledger: context.ledger,
            injector: injector.clone(),
            program: profile.emulation.as_ref().map(|emulation| emulation.program.clone()),
        });
        let board = self.board.bind(BindContext { sink, ledger, ..context })?;
        let power = board.power.map(|power| {
            if self.by_device {
                return power;
            }
            let injector = injector.clone();
            Box::new(InjectedPower { power, injector, elsewhere: None }) as Box<dyn Power>
        });
        let flasher = board.flasher.map(|flasher| {
            let injector = injector.clone();
            Box::new(InjectedFlasher { flasher, injector, profile, place }) as Box<dyn Flasher>
        });
        Ok(Protocols { power, flasher, ..board })
    }
}

/// Returns where the transport of a board's primary console ends at a place, if it has one of its
/// own there.
pub fn primary_end<'a>(profile: &BoardProfile, place: &'a Place) -> Option<&'a Endpoint> {
    place.console(profile.primary_console()).map(|transport| &transport.end)
}

/// Stands between a board's driver and the rig.
struct FaultySink {
    rig: SharedSink,
    injector: Injector,
    console: ConsoleName,
    line: Arc<FaultyLine>,
}

impl BoardSink for FaultySink {
    fn attach(&self, console: &ConsoleName, transport: Box<dyn Transport>) {
        let transport = if *console == self.console {
            Box::new(FaultyTransport::new(transport, Arc::clone(&self.line), self.injector.clone()))
        } else {
            transport
        };
        self.rig.attach(console, transport);
    }

    fn drained(&self) -> BoxFuture<'_, ()> {
        self.rig.drained()
    }

    fn event(&self, event: BoardEvent) {
        let (powered, deployed) = match event {
            BoardEvent::Power { state: PowerState::On } => (true, None),
            // Behind the deployment is when the driver says so, not at its last step.
            BoardEvent::Deploying { percent } => (false, Some(percent.min(99))),
            _ => (false, None),
        };
        self.rig.event(event);
        if powered {
            self.injector.powered();
        }
        if let Some(percent) = deployed {
            self.injector.deployed(percent);
        }
    }
}
