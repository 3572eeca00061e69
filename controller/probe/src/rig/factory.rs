//! The drivers: a board behind a probe of this lab, and an emulated one behind a virtual probe.

use std::sync::Arc;

use jig_drivers::flasher::with_flasher;
use jig_drivers::qemu::QemuFactory;
use jig_model::Cause;
use jig_model::image::{DeployReport, Image};
use jig_model::profile::{BoardProfile, Deploy};
use jig_model::protocol::{
    BindContext, BoxFuture, DriverError, DriverFactory, Flasher, HealthCheck, Protocols,
};
use jig_model::rig_file::{ProbeResource, Resource, WireProtocol};
use tokio::sync::mpsc;

use super::board::Owner;
use super::consoles::Consoles;
use super::handle::{BoardHandle, Order};
use super::seat::{EmulatedSeat, RealSeat, Seat, data_memory};
use super::sink::EmulatorSink;
use crate::{AttachMode, AttachOptions, ChipDescription, ProbeSource, Protocol};

/// Offers real boards behind debug probes.
///
/// Their consoles are RTT channels, semihosting and the serial ports that the place names.
/// What power means for them is said in this module's parent.
pub struct ProbeBoardFactory;

/// Offers emulated boards behind virtual probes: the same board, driven by the same code.
///
/// Their consoles are the emulator's own and RTT channels. An image is flashed and then kept
/// in memory while the board has no power, for as long as the binding lives.
pub struct EmulatedProbeFactory;

impl DriverFactory for ProbeBoardFactory {
    fn kind(&self) -> &'static str {
        "probe"
    }

    fn bind(&self, context: BindContext) -> Result<Protocols, DriverError> {
        let Resource::Probe(probe) = &context.resource else {
            let message = format!("board {} hangs on no probe at this place", context.profile.id);
            return Err(DriverError::new(Cause::ProbeMissing, message));
        };
        let deploy = context.profile.deploy_on(&context.resource);
        let described = ChipDescription::at_place(&context.profile, probe);
        let by_program = matches!(deploy, Deploy::Command(_));
        let seat = RealSeat {
            selector: probe.selector.clone(),
            source: {
                let selector = probe.selector.clone();
                Box::new(move || ProbeSource::Selector(selector.clone()))
            },
            ram: described.is_some().then(|| data_memory(&context.profile)),
            options: options(probe, &context.profile, described),
            lets_go: by_program,
            is_served: probe.is_served(),
        };
        let handle = start(Seat::Real(seat), &context, Cause::ProbeLost);
        let mut protocols = with_flasher(protocols(&handle), &context);
        if let Some(program) = protocols.flasher.take_if(|_| by_program) {
            protocols.flasher = Some(Box::new(AfterLettingGo { program, handle }));
        }
        Ok(protocols)
    }
}

impl DriverFactory for EmulatedProbeFactory {
    fn kind(&self) -> &'static str {
        "virtual-probe"
    }

    fn bind(&self, context: BindContext) -> Result<Protocols, DriverError> {
        let seen = Arc::new(EmulatorSink::new(Arc::clone(&context.sink)));
        let below = BindContext { sink: Arc::clone(&seen) as _, ..context.clone() };
        let (emulator, machine) = QemuFactory.bind_with_machine(below)?;
        let Some(power) = emulator.power else {
            let message = "the emulator has no power";
            return Err(DriverError::new(Cause::InternalError, message));
        };
        let seat = EmulatedSeat {
            machine,
            power,
            profile: Arc::clone(&context.profile),
            seen,
            kept: None,
            board: None,
        };
        let seat = Seat::Emulated(Box::new(seat));
        let mut protocols = protocols(&start(seat, &context, Cause::EmulatorStuck));
        // It is switched by its own process, and has no debug port while that is gone.
        protocols.sense = None;
        // A stopped emulator is seen at once; a probe waits for it, until it may go on again.
        let behind = std::mem::replace(&mut protocols.health, emulator.health);
        protocols.health.extend(behind);
        Ok(protocols)
    }
}

/// Starts a board's owner; it ends with its last handle.
fn start(seat: Seat, context: &BindContext, silent: Cause) -> BoardHandle {
    let real = match &context.resource {
        Resource::Probe(probe) => Some(probe),
        Resource::Emulator(_) => None,
    };
    let consoles = Consoles::new(&context.profile, real, context.evidence.clone(), &context.ledger);
    let (orders, inbox) = mpsc::channel(4);
    tokio::spawn(Owner::new(seat, Arc::clone(&context.sink), consoles).run(inbox));
    BoardHandle { orders, silent }
}

fn protocols(handle: &BoardHandle) -> Protocols {
    let health: Box<dyn HealthCheck> = Box::new(handle.clone());
    Protocols {
        power: Some(Box::new(handle.clone())),
        reset: Some(Box::new(handle.clone())),
        flasher: Some(Box::new(handle.clone())),
        debug: Some(Box::new(handle.clone())),
        sense: Some(Box::new(handle.clone())),
        health: vec![health],
    }
}

fn options(
    probe: &ProbeResource,
    profile: &BoardProfile,
    described: Option<ChipDescription>,
) -> AttachOptions {
    let (chip, chip_description) = match described {
        Some(described) => (Some(described.chip), Some(described.text)),
        None => (probe.chip.clone().or_else(|| profile.chip.clone()), None),
    };
    AttachOptions {
        chip,
        chip_description,
        speed_khz: probe.speed_khz,
        protocol: probe.protocol.map(|protocol| match protocol {
            WireProtocol::Swd => Protocol::Swd,
            WireProtocol::Jtag => Protocol::Jtag,
        }),
        mode: if probe.under_reset { AttachMode::UnderReset } else { AttachMode::Auto },
        ..AttachOptions::default()
    }
}

/// A flasher of the profile that needs the probe for itself.
struct AfterLettingGo {
    program: Box<dyn Flasher>,
    handle: BoardHandle,
}

impl Flasher for AfterLettingGo {
    fn deploy<'a>(
        &'a mut self,
        image: &'a Image,
    ) -> BoxFuture<'a, Result<DeployReport, DriverError>> {
        Box::pin(async {
            self.handle.ask(Order::Off).await?;
            let report = self.program.deploy(image).await?;
            let image = image.clone();
            self.handle.ask(|reply| Order::Deployed(image, reply)).await?;
            Ok(report)
        })
    }
}
