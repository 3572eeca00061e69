//! What to type next when a probe could not do as asked.

use jig_model::PlaceName;
use jig_probe::{FlashLeft, ProbeError};

use crate::failure::Failure;

/// Makes a failure of a probe's error, with the next command to type.
pub(super) fn failed(error: &ProbeError, place: &PlaceName) -> Failure {
    let failure = Failure::of(error.fault(), error);
    match help(error, place) {
        Some(help) => failure.help(help),
        None => failure,
    }
}

fn help(error: &ProbeError, place: &PlaceName) -> Option<String> {
    Some(match error {
        ProbeError::NotFound { .. } | ProbeError::Ambiguous { .. } => {
            "list them with `jig probes`, then name one with --probe VID:PID:SERIAL".to_owned()
        }
        ProbeError::Held { .. } => "stop that program, or wait for it with --wait 30s".to_owned(),
        ProbeError::UnknownChip { .. } => {
            "correct `chip` in the board's profile, or name one with --chip".to_owned()
        }
        ProbeError::WrongChip { .. } => {
            format!(
                "check that the probe is wired to {place}; `jig boards` shows what belongs where"
            )
        }
        ProbeError::Protected { .. } => {
            "if that may be lost, say so with --allow-unlock".to_owned()
        }
        ProbeError::NoTarget { .. } => {
            "check the target's power and its debug wires; a target that sleeps answers with \
             --under-reset"
                .to_owned()
        }
        ProbeError::ProbeLost { .. } | ProbeError::Hung { .. } => {
            "plug the probe in again, then look with `jig probes`".to_owned()
        }
        ProbeError::NotHalted => format!("stop it first: jig halt -b {place}"),
        ProbeError::UnknownRegister { .. } => format!("see all of them: jig regs -b {place}"),
        ProbeError::VerifyFailed { .. } | ProbeError::FlashFailed { .. } => {
            format!("erase it all and try again: jig erase -b {place}")
        }
        ProbeError::NoFlashAlgorithm { .. } => {
            "name the exact chip with --chip, or in the board's profile a program that flashes it"
                .to_owned()
        }
        ProbeError::Cancelled { left: FlashLeft::Partial | FlashLeft::Unverified } => {
            format!("before it is used, flash it again: jig flash -b {place} IMAGE")
        }
        _ => return None,
    })
}
