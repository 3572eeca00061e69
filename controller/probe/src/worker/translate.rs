//! Translates errors of probe-rs into [`ProbeError`].
//!
//! Its errors nest by layer, so what matters is found by walking the sources.

use std::error::Error as StdError;
use std::time::Duration;

use probe_rs::Error;
use probe_rs::architecture::arm::{ArmError, DapError};
use probe_rs::config::{Registry, RegistryError};
use probe_rs::flashing::FlashError;
use probe_rs::probe::DebugProbeError;

use crate::ProbeError;

/// How many names are offered for one that is not known.
const NEAREST: usize = 3;

/// Finds the topmost error of a type in a chain.
pub(crate) fn find<'a, T: StdError + 'static>(
    error: &'a (dyn StdError + 'static),
    wanted: impl Fn(&T) -> bool,
) -> Option<&'a T> {
    let mut here = Some(error);
    while let Some(error) = here {
        if let Some(found) = error.downcast_ref::<T>()
            && wanted(found)
        {
            return Some(found);
        }
        here = error.source();
    }
    None
}

/// Tells whether the probe, and not the target behind it, has stopped answering.
fn probe_is_lost(error: &(dyn StdError + 'static)) -> bool {
    find::<DebugProbeError>(error, |error| {
        matches!(
            error,
            DebugProbeError::Usb(_)
                | DebugProbeError::ProbeSpecific(_)
                | DebugProbeError::Other(_)
                | DebugProbeError::Timeout
        )
    })
    .is_some()
}

fn timed_out(error: &(dyn StdError + 'static)) -> bool {
    find::<Error>(error, |error| matches!(error, Error::Timeout)).is_some()
        || find::<ArmError>(error, |error| matches!(error, ArmError::Timeout)).is_some()
}

/// Tells whether the target's bus said no to an access.
fn refused(error: &(dyn StdError + 'static)) -> bool {
    find::<DapError>(error, |error| matches!(error, DapError::FaultResponse)).is_some()
}

/// Translates the failure of an operation that is neither an access nor a wait.
pub(crate) fn failed(during: &str, error: impl StdError + Send + Sync + 'static) -> ProbeError {
    if probe_is_lost(&error) {
        return ProbeError::ProbeLost { during: during.to_owned(), source: Box::new(error) };
    }
    if find::<ArmError>(&error, |error| matches!(error, ArmError::CoreNotHalted)).is_some() {
        return ProbeError::NotHalted;
    }
    ProbeError::Failed { what: format!("{during} failed"), source: Box::new(error) }
}

/// Translates the failure to set a breakpoint.
pub(crate) fn breakpoint(address: u64, error: Error) -> ProbeError {
    let unsupported = |error: &ArmError| matches!(error, ArmError::UnsupportedBreakpointAddress(_));
    match find::<ArmError>(&error, unsupported) {
        Some(_) => ProbeError::NoBreakpointAt { address },
        None => failed("setting a breakpoint", error),
    }
}

/// Translates the failure of something the core was told to do within a time.
pub(crate) fn core(what: &'static str, timeout: Duration, error: Error) -> ProbeError {
    if timed_out(&error) { ProbeError::CoreTimeout { what, timeout } } else { failed(what, error) }
}

/// Translates the failure of a memory access.
pub(crate) fn access(access: &'static str, address: u64, error: Error) -> ProbeError {
    if refused(&error) {
        ProbeError::BusFault { access, address }
    } else {
        failed(&format!("to {access} {address:#x}"), error)
    }
}

/// Translates the failure of a flash algorithm: `what` fits "could not be ...".
pub(crate) fn flash(what: String, error: FlashError) -> ProbeError {
    if probe_is_lost(&error) {
        return ProbeError::ProbeLost { during: "flash".to_owned(), source: Box::new(error) };
    }
    ProbeError::FlashFailed { what, source: Box::new(error) }
}

/// Translates why a probe could not attach to its target. `None` is nothing that would be
/// different in another attempt.
pub(crate) fn attach(error: &Error, registry: &Registry, chip: Option<&str>) -> Option<ProbeError> {
    if let Error::ChipNotFound(error) = error {
        return match error {
            RegistryError::ChipNotFound(name) => Some(ProbeError::UnknownChip {
                name: name.clone(),
                nearest: nearest(registry, name),
            }),
            RegistryError::ChipNotUnique(name, among) => Some(ProbeError::UnknownChip {
                name: name.clone(),
                nearest: among.split(", ").take(NEAREST).map(str::to_owned).collect(),
            }),
            _ => None,
        };
    }
    let protected = matches!(error, Error::MissingPermissions(_))
        || find::<ArmError>(error, |error| matches!(error, ArmError::MissingPermissions(_)))
            .is_some();
    protected.then(|| ProbeError::Protected {
        erases: format!("all flash of {}", chip.unwrap_or("the chip")),
    })
}

/// Finds the chips whose names are most like one that is not known.
pub(crate) fn nearest(registry: &Registry, name: &str) -> Vec<String> {
    let wanted = name.to_ascii_lowercase();
    let variants = registry.families().iter().flat_map(|family| &family.variants);
    let mut close: Vec<(f64, &str)> = variants
        .map(|chip| (strsim::jaro_winkler(&wanted, &chip.name.to_ascii_lowercase()), &*chip.name))
        // Below this two part numbers have no more in common than any two have.
        .filter(|(likeness, _)| *likeness > 0.8)
        .collect();
    close.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(other.1)));
    close.into_iter().take(NEAREST).map(|(_, name)| name.to_owned()).collect()
}
