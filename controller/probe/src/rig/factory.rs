//! The drivers: a board behind a probe of this lab, and an emulated one behind a virtual probe.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use jig_drivers::qemu::QemuFactory;
use jig_drivers::serial::UNDER_WAY;
use jig_model::Cause;
use jig_model::image::{DeployReport, Image};
use jig_model::profile::{BoardProfile, Deploy, MemoryKind};
use jig_model::protocol::{
    BindContext, BoxFuture, DriverError, Flasher, HealthCheck, PartFactory, Protocols,
};
use jig_model::rig_file::ProbePart;
use tokio::sync::mpsc;

use super::backing::{Backing, EmulatedBacking, RealBacking, data_memory};
use super::board::BoardOwner;
use super::consoles::ProbeConsoles;
use super::handle::{BoardHandle, BoardOrder};
use super::open_fault::OpenFault;
use super::sink::EmulatorSink;
use crate::{AttachMode, AttachOptions, ChipDescription, ProbeSource};

/// Adds the debug probe of a real board: power, reset, flasher, debug port.
///
/// Its consoles are RTT channels, semihosting and the serial ports that the place names.
/// What power means for them is said in this module's parent.
pub struct ProbeFactory;

/// Adds an emulated board behind a virtual probe: the same board, driven by the same code.
///
/// Its consoles are the emulator's own and RTT channels. An image is flashed and then kept
/// in memory while the board has no power, for as long as the binding lives.
pub struct EmulatedProbeFactory;

impl PartFactory for ProbeFactory {
    fn join(&self, context: &BindContext, mut built: Protocols) -> Result<Protocols, DriverError> {
        let Some(probe) = &context.place.probe else { return Ok(built) };
        let described = ChipDescription::at_place(&context.profile, probe);
        // A program flashes the board, and needs the probe for that.
        let program = built.flasher.take();
        let backing = RealBacking {
            selector: probe.selector.clone(),
            source: {
                let selector = probe.selector.clone();
                Box::new(move || ProbeSource::Selector(selector.clone()))
            },
            ram: described.is_some().then(|| data_memory(&context.profile)),
            options: options(probe, &context.profile, described),
            lets_go: program.is_some(),
            is_served: probe.is_served(),
        };
        let handle = start(Backing::Real(backing), context, Cause::ProbeLost);
        let mut protocols = protocols(&handle);
        if let Some(program) = program {
            let flash = read_back_in(context);
            protocols.flasher = Some(Box::new(AfterLettingGo { program, handle, flash }));
        }
        built.health.append(&mut protocols.health);
        Ok(Protocols { health: built.health, ..protocols })
    }
}

impl PartFactory for EmulatedProbeFactory {
    fn join(&self, context: &BindContext, built: Protocols) -> Result<Protocols, DriverError> {
        let by_probe = context.profile.deploy_at(&context.place) == Some(Deploy::Probe);
        if !context.place.is_emulated() || !by_probe {
            return Ok(built);
        }
        let seen = Arc::new(EmulatorSink::new(Arc::clone(&context.sink)));
        let below = BindContext { sink: Arc::clone(&seen) as _, ..context.clone() };
        let (emulator, machine) = QemuFactory.bind_with_machine(below)?;
        let Some(power) = emulator.power else {
            let message = "the emulator has no power";
            return Err(DriverError::new(Cause::InternalError, message));
        };
        let backing = EmulatedBacking {
            machine,
            power,
            profile: Arc::clone(&context.profile),
            seen,
            kept: None,
            board: None,
        };
        let backing = Backing::Emulated(Box::new(backing));
        let mut protocols = protocols(&start(backing, context, Cause::EmulatorStuck));
        // It is switched by its own process, and has no debug port while that is gone.
        protocols.sense = None;
        // A stopped emulator is seen at once; a probe waits for it, until it may go on again.
        let behind = std::mem::replace(&mut protocols.health, emulator.health);
        protocols.health.extend(behind);
        Ok(protocols)
    }
}

/// Starts a board's owner; it ends with its last handle.
fn start(backing: Backing, context: &BindContext, silent: Cause) -> BoardHandle {
    let under_way = if context.place.consoles.is_empty() { Duration::ZERO } else { UNDER_WAY };
    let (real, evidence) = (context.place.has_probe(), context.evidence.clone());
    let consoles = ProbeConsoles::new(&context.profile, real, evidence, under_way);
    let (orders, inbox) = mpsc::channel(4);
    let (sink, open_fault) = (Arc::clone(&context.sink), Arc::<OpenFault>::default());
    let owner = BoardOwner::new(backing, sink, consoles, Arc::clone(&open_fault));
    tokio::spawn(owner.run(inbox));
    BoardHandle { orders, silent, open_fault }
}

fn protocols(handle: &BoardHandle) -> Protocols {
    let health: Box<dyn HealthCheck> = Box::new(handle.clone());
    Protocols {
        power: Some(Box::new(handle.clone())),
        reset: Some(Box::new(handle.clone())),
        flasher: Some(Box::new(handle.clone())),
        debug: Some(Box::new(handle.clone())),
        shell: None,
        control: None,
        sense: Some(Box::new(handle.clone())),
        health: vec![health],
    }
}

fn options(
    probe: &ProbePart,
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
        protocol: probe.protocol,
        mode: if probe.under_reset { AttachMode::UnderReset } else { AttachMode::Auto },
        ..AttachOptions::default()
    }
}

/// Returns the flash in which an image is read back after a program has written it.
fn read_back_in(context: &BindContext) -> Vec<Range<u64>> {
    let reads_back = match context.profile.deploy_at(&context.place) {
        Some(Deploy::Command(command)) => command.read_back,
        Some(Deploy::Volume(_)) => true,
        _ => false,
    };
    match reads_back {
        true => {
            let all = context.profile.memory.iter();
            let flash = all.filter(|region| region.kind == MemoryKind::Flash);
            flash.map(|region| region.start..region.start.saturating_add(region.size)).collect()
        }
        false => Vec::new(),
    }
}

/// A flasher of the profile that needs the probe for itself. No program is believed: where all of the
/// image lies in flash, the probe reads it back.
pub(super) struct AfterLettingGo {
    pub(super) program: Box<dyn Flasher>,
    pub(super) handle: BoardHandle,
    /// The flash that is read back; none if the probe does not find the image there.
    pub(super) flash: Vec<Range<u64>>,
}

impl AfterLettingGo {
    fn holds_all_of(&self, image: &Image) -> bool {
        let inside = |(start, end): &(u64, u64)| {
            self.flash.iter().any(|flash| flash.start <= *start && *end <= flash.end)
        };
        !image.payload_spans.is_empty() && image.payload_spans.iter().all(inside)
    }
}

impl Flasher for AfterLettingGo {
    fn deploy<'a>(
        &'a mut self,
        image: &'a Image,
    ) -> BoxFuture<'a, Result<DeployReport, DriverError>> {
        Box::pin(async {
            self.handle.ask(BoardOrder::Off).await?;
            let mut report = self.program.deploy(image).await?;
            let deployed = image.clone();
            self.handle.ask(|reply| BoardOrder::Deployed(deployed, reply)).await?;
            if !self.holds_all_of(image) {
                return Ok(report);
            }
            if let Some(found) = self.handle.ask(BoardOrder::ReadBack).await? {
                if found != image.payload_sha256 {
                    let message = format!(
                        "{} says that it has flashed, but the debug probe reads other bytes where \
                         the image belongs (if the program changes them on purpose: `read_back = \
                         false` beside it)",
                        report.method
                    );
                    return Err(DriverError::new(Cause::DeployFailed, message));
                }
                report.verified = true;
                report.read_back_sha256 = Some(found);
            }
            Ok(report)
        })
    }
}
