//! A board whose debug port is held for the time of one verb.

use std::future::Future;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use jig_lab::Lab;
use jig_model::exit::CANCELLED;
use jig_model::image::{Image, ImageSource, Payload};
use jig_model::profile::BoardProfile;
use jig_model::rig_file::Place;
use jig_model::{Fault, PlaceName};
use jig_probe::{
    AttachMode, AttachOptions, Attached, Cancel, CoreState, Leave, MemoryKind, ProbeError,
    ProbeHandle, Protocol, ResetInto, options_from_env,
};
use tokio::runtime::Runtime;
use tokio::sync::watch;

use super::super::open_lab;
use super::debug::symbols_of;
use super::help::failed;
use super::place::{Held, Wish, hold};
use crate::args::{Common, ProbeOptions, ProbeTarget, WireProtocol};
use crate::failure::{Failure, chain};
use crate::render::{Screen, one_line};

/// What must outlive the verb for it to make sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lasting {
    /// Nothing: what is in the flash goes.
    Nothing,
    /// What is in the flash.
    Flash,
    /// The board itself: its core stands or runs on afterwards.
    Board,
}

/// An attached board.
pub(super) struct Port {
    pub(super) handle: ProbeHandle,
    pub(super) attached: Attached,
    pub(super) place: PlaceName,
    pub(super) profile: Arc<BoardProfile>,
    held: Held,
    stops: watch::Receiver<bool>,
}

impl Port {
    /// Reads an image and checks that it fits the board.
    pub(super) fn payload(&self, name: &str) -> Result<Payload, Failure> {
        payload_of(name, &self.profile)
    }

    /// Tells whether the board got its power for this verb, and stands since.
    pub(super) fn is_fresh(&self) -> bool {
        self.held.is_fresh()
    }

    /// Says how to leave a core about which a verb failed: as it is.
    async fn as_it_is(&self) -> Leave {
        match self.handle.state().await {
            Ok(CoreState::Halted { .. }) => Leave::Halted,
            Ok(_) | Err(_) => Leave::Running,
        }
    }

    /// Keeps what an emulated board's flash holds.
    pub(super) async fn keep(&self) -> Result<(), Failure> {
        self.held.keep().await
    }

    /// Returns where a function of an image begins.
    pub(super) fn function(&self, name: &str, image: Option<&Path>) -> Result<u64, Failure> {
        let Some(image) = image else {
            return Err(Failure::new(Fault::Usage, format!("{name:?} is no address"))
                .help("to name a function, say whose it is: --image APP.elf"));
        };
        symbols_of(image)?.address_of(name).ok_or_else(|| {
            let words = format!("{} has no function {name:?}", image.display());
            Failure::new(Fault::Usage, words)
        })
    }

    /// Returns the chip's RAM.
    pub(super) fn ram(&self) -> Vec<Range<u64>> {
        let ram = self.attached.memory.iter().filter(|region| region.kind == MemoryKind::Ram);
        ram.map(|region| region.start..region.end).collect()
    }

    /// Returns what a GDB server drives.
    pub(super) fn debuggee(&self) -> jig_probe::ProbeDebuggee {
        jig_probe::ProbeDebuggee::new(self.handle.clone(), &self.attached)
    }

    /// Lets a signal cancel a flash operation.
    pub(super) fn cancel_on_stop(&self, cancel: Cancel) {
        let stopped = self.until_stopped();
        tokio::spawn(async move {
            stopped.await;
            cancel.cancel();
        });
    }

    /// Waits until somebody asks this command to end.
    pub(super) fn until_stopped(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut stops = self.stops.clone();
        async move {
            // The sender lives as long as the runtime.
            let _ = stops.wait_for(|stop| *stop).await;
        }
    }
}

/// Reads an image and checks that it fits a board.
pub(super) fn payload_of(name: &str, profile: &BoardProfile) -> Result<Payload, Failure> {
    let wrong = |error: &dyn std::error::Error| {
        Failure::new(Fault::Usage, format!("image {name} cannot be used: {}", chain(error)))
    };
    let source = ImageSource::of(Path::new(name), Path::exists).map_err(|e| wrong(&e))?;
    let bytes = std::fs::read(&source.path).map_err(|error| {
        let path = source.path.display();
        Failure::new(Fault::Usage, format!("could not read {path}: {error}"))
    })?;
    let image = Image::parse_from(&source, &bytes, profile).map_err(|error| wrong(&error))?;
    Payload::read(image.format, &bytes).map_err(|error| wrong(&error))
}

/// Makes the runtime of a verb.
pub(in crate::commands) fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::of(Fault::Bug, &error))
}

/// Opens a board's debug port for a verb, acts, and lets go as the act says.
pub(super) fn with_port(
    common: &Common,
    screen: &Screen,
    verb: &str,
    at: &ProbeTarget,
    lasting: Lasting,
    act: impl AsyncFnOnce(&Port) -> Result<(u8, Leave), Failure>,
) -> Result<u8, Failure> {
    let lab = open_lab(common)?;
    let catalogue = lab.catalogue();
    let (place, profile) = catalogue.place(&at.target.board)?;
    let runtime = runtime()?;
    let outcome = runtime.block_on(async {
        let stops = stops().map_err(|error| Failure::of(Fault::Bug, &error))?;
        let (selector, mut options) = wishes(&at.probe, &place)?;
        let verb = format!("`{verb}`");
        let wish = Wish { selector, wait: at.probe.wait, lasting, verb };
        let held = hold(catalogue, screen, &place, &profile, wish).await?;
        held.complete(&mut options, &profile);
        let attached = match held.source() {
            Ok(source) => ProbeHandle::attach(source, options).await,
            Err(failure) => {
                held.release().await;
                return Err(failure);
            }
        };
        let (handle, attached) = match attached {
            Ok(both) => both,
            Err(error) => {
                held.release().await;
                return Err(not_attached(&error, &lab, &place).await);
            }
        };
        for failure in &attached.failures {
            screen.say(&format!("attach failed: {}", one_line(failure)));
        }
        if attached.attempts > 1 {
            let words = attached.method.words();
            let attempts = attached.attempts;
            screen.say(&format!("the probe answered at attempt {attempts} ({words})"));
        }
        let port = Port { handle, attached, place: place.name.clone(), profile, held, stops };
        let outcome = async {
            // A board that was just made real takes its vectors from the flash at a reset.
            if port.is_fresh() {
                port.handle
                    .reset(ResetInto::Halt)
                    .await
                    .map_err(|error| failed(&error, &port.place))?;
            }
            act(&port).await
        };
        let outcome = outcome.await;
        let leave = match &outcome {
            Ok((_, leave)) => *leave,
            Err(_) => port.as_it_is().await,
        };
        // What the verb found out comes first; a board that cannot be let go comes after.
        let closed = port.handle.close(leave).await;
        port.held.release().await;
        let (code, _) = outcome?;
        closed.map_err(|error| failed(&error, &place.name))?;
        Ok(code)
    });
    // A thread that reads standard input may still wait for it.
    runtime.shutdown_background();
    outcome
}

/// Says why a board's debug port was not attached to. One without power is not the probe's
/// fault; only then is its outlet asked, for it may take seconds to answer.
async fn not_attached(error: &ProbeError, lab: &Lab, place: &Place) -> Failure {
    let failure = failed(error, &place.name);
    if error.fault() != Fault::Lab {
        return failure;
    }
    match lab.outlet_that_is_off(place).await {
        None => failure,
        Some(outlet) => {
            let Failure { fault, message, .. } = failure;
            let words = format!("{} has no power: {outlet} is off; {message}", place.name);
            Failure::new(fault, words).help(format!("jig power -b {} on", place.name))
        }
    }
}

/// Says what somebody wishes: by arguments, else by the environment. The environment means
/// the probe on the desk, never an emulated board.
fn wishes(said: &ProbeOptions, place: &Place) -> Result<(Option<String>, AttachOptions), Failure> {
    let real = !place.is_emulated();
    let lookup = |name: &str| std::env::var(name).ok().filter(|_| real);
    let (selector, mut options) =
        options_from_env(lookup).map_err(|error| Failure::of(error.fault(), &error))?;
    options.chip = said.chip.clone().or(options.chip);
    options.speed_khz = said.speed.or(options.speed_khz);
    options.protocol = said.protocol.map_or(options.protocol, |protocol| {
        Some(match protocol {
            WireProtocol::Swd => Protocol::Swd,
            WireProtocol::Jtag => Protocol::Jtag,
        })
    });
    if said.under_reset {
        options.mode = AttachMode::UnderReset;
    }
    options.allow_unlock |= said.allow_unlock;
    options.wait = said.wait;
    Ok((said.probe.clone().or(selector), options))
}

/// Listens for signals: the first asks the verb to end, the second ends this process.
pub(super) fn stops() -> std::io::Result<watch::Receiver<bool>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (sender, receiver) = watch::channel(false);
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        let (mut signal, sender) = (signal(kind)?, sender.clone());
        tokio::spawn(async move {
            while signal.recv().await.is_some() {
                if sender.send_replace(true) {
                    std::process::exit(i32::from(CANCELLED));
                }
            }
        });
    }
    Ok(receiver)
}
