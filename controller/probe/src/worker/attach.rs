//! Opens a session at a probe: attempts, each by the next method of the ladder.

use std::sync::LazyLock;
use std::time::Duration;

use jig_model::chain;
use jig_model::debug::{AttachMethod, WireProtocol};
use probe_rs::config::{MemoryRegion as Region, Registry, TargetSelector};
use probe_rs::probe::{DebugProbeError, Probe, WireProtocol as ProbeRsProtocol};
use probe_rs::{Error, Permissions, Session, Target};

use super::core::{RESET, kind_of};
use super::leash::Leash;
use super::open_session::{OpenSession, WorkerPulse};
use super::options::{AttachOptions, Attached, ChipMemoryKind, ChipRegion, ladder};
use super::source::Resolved;
use super::translate;
use crate::ProbeError;

/// Between two attempts: what a regulator and a power-on reset need. Longer would be paid by
/// every target that is simply not there.
const PAUSE: Duration = Duration::from_millis(50);

/// The built-in chips. Reading them takes a tenth of a second, and they never change.
static BUILT_IN: LazyLock<Registry> = LazyLock::new(Registry::from_builtin_families);

/// Returns the built-in chips.
pub(crate) fn built_in() -> &'static Registry {
    &BUILT_IN
}

/// Finds a chip by its name.
pub(crate) fn target_named(registry: &Registry, name: &str) -> Result<Target, ProbeError> {
    registry.get_target_by_name(name).map_err(|error| {
        let error = Error::ChipNotFound(error);
        match translate::attach(&error, registry, Some(name)) {
            Some(known) => known,
            None => translate::failed("reading the chip description", error),
        }
    })
}

/// Attaches. Runs on the worker's thread.
pub(crate) fn attach(
    source: &mut Resolved,
    options: &AttachOptions,
    leash: &Leash,
    pulse: &WorkerPulse,
) -> Result<(OpenSession, Attached), ProbeError> {
    let described;
    let registry = match &options.chip_description {
        None => &*BUILT_IN,
        Some(text) => {
            described = with_description(text)?;
            &described
        }
    };
    let target = match &options.chip {
        Some(name) => TargetSelector::Unspecified(name.clone()),
        None => source.target(),
    };
    // A name that is not known is no reason to touch the probe.
    let target = match target {
        TargetSelector::Unspecified(name) => {
            TargetSelector::Specified(patient(target_named(registry, &name)?))
        }
        other => other,
    };

    let mut failures = Vec::new();
    let mut last: Option<Box<dyn std::error::Error + Send + Sync>> = None;
    let mut attempts = 0;
    for method in ladder(options.mode, options.attempts) {
        if attempts > 0 {
            std::thread::sleep(PAUSE);
            pulse.beat();
        }
        if leash.is_cut() {
            return Err(ProbeError::Gone);
        }
        attempts += 1;
        let probe = open(source, options, leash)?;
        pulse.beat();
        match by(method, probe, target.clone(), options, registry) {
            Ok(session) => {
                let attached = Attached {
                    probe: source.name(),
                    chip: session.target().name.clone(),
                    core: session.target().cores.first().and_then(|core| kind_of(core.core_type)),
                    attempts,
                    method,
                    failures,
                    memory: session.target().memory_map.iter().map(region).collect(),
                };
                return Ok((OpenSession::new(session), attached));
            }
            Err(error) => {
                if let Some(known) = translate::attach(&error, registry, options.chip.as_deref()) {
                    return Err(known);
                }
                failures.push(format!("{}: {}", method.words(), chain(&error)));
                last = Some(Box::new(error));
            }
        }
    }
    Err(match last {
        Some(source) => ProbeError::NoTarget { attempts, source },
        None => ProbeError::Gone,
    })
}

/// Grants calls of flash algorithms some time. The limits of descriptions are those of silicon;
/// an emulated core on a busy host is slower, and a chip that is broken is found out a little
/// later.
fn patient(mut target: Target) -> Target {
    /// In milliseconds.
    const LEAST: u32 = 10_000;
    for algorithm in &mut target.flash_algorithms {
        let properties = &mut algorithm.flash_properties;
        properties.erase_sector_timeout = properties.erase_sector_timeout.max(LEAST);
        properties.program_page_timeout = properties.program_page_timeout.max(LEAST);
    }
    target
}

fn with_description(text: &str) -> Result<Registry, ProbeError> {
    let mut registry = Registry::from_builtin_families();
    registry.add_target_family_from_yaml(text).map_err(|error| ProbeError::Failed {
        what: "the chip description could not be read".to_owned(),
        source: Box::new(error),
    })?;
    Ok(registry)
}

fn open(
    source: &mut Resolved,
    options: &AttachOptions,
    leash: &Leash,
) -> Result<Probe, ProbeError> {
    let mut probe = source.open(leash)?;
    if let Some(protocol) = options.protocol {
        let protocol = match protocol {
            WireProtocol::Swd => ProbeRsProtocol::Swd,
            WireProtocol::Jtag => ProbeRsProtocol::Jtag,
        };
        probe.select_protocol(protocol).map_err(|error| match error {
            DebugProbeError::UnsupportedProtocol(protocol) => ProbeError::BadOption {
                name: "the protocol".to_owned(),
                value: protocol.to_string(),
                wanted: "one that the probe speaks",
            },
            error => translate::failed("selecting the protocol", error),
        })?;
    }
    if let Some(speed) = options.speed_khz {
        probe.set_speed(speed).map_err(|error| translate::failed("setting the speed", error))?;
    }
    Ok(probe)
}

fn by(
    method: AttachMethod,
    probe: Probe,
    target: TargetSelector,
    options: &AttachOptions,
    registry: &Registry,
) -> Result<Session, Error> {
    let mut permissions = Permissions::new();
    if options.allow_unlock {
        permissions = permissions.allow_erase_all();
    }
    match method {
        AttachMethod::Running => probe.attach_with_registry(target, permissions, registry),
        AttachMethod::UnderReset => {
            probe.attach_under_reset_with_registry(target, permissions, registry)
        }
        AttachMethod::ResetAfter => {
            let mut session = probe.attach_with_registry(target, permissions, registry)?;
            session.core(0)?.reset_and_halt(RESET)?;
            Ok(session)
        }
    }
}

fn region(region: &Region) -> ChipRegion {
    let (name, range, kind) = match region {
        Region::Nvm(nvm) => (&nvm.name, &nvm.range, ChipMemoryKind::Flash),
        Region::Ram(ram) => (&ram.name, &ram.range, ChipMemoryKind::Ram),
        Region::Generic(other) => (&other.name, &other.range, ChipMemoryKind::Other),
    };
    ChipRegion { name: name.clone(), start: range.start, end: range.end, kind }
}
