//! What is said of a target that has ended by itself. Pure.

use jig_model::protocol::HIDDEN_EXIT_CODE;

use super::observation::{IncidentKind, Observation};

/// Says with which code a target has ended.
pub(super) fn ended_with(code: i32) -> String {
    match code {
        HIDDEN_EXIT_CODE => "the firmware ended with an exit code that is a multiple of 256, or called its \
            host for a program (semihosting SYS_SYSTEM), which ends the emulator"
            .to_owned(),
        // An emulator answers both so.
        1 => "the firmware ended with exit code 1, or by semihosting (SYS_EXIT) with another reason than \
            0x20026"
            .to_owned(),
        code => format!("the firmware ended with exit code {code}"),
    }
}

/// Adds to what is missing that the target has ended by itself, if it has.
pub(super) fn but_ended(seen: &Observation) -> String {
    let exit = seen.incidents.iter().find_map(|incident| match incident.kind {
        IncidentKind::Exit(code) => Some(code),
        _ => None,
    });
    exit.map_or_else(String::new, |code| format!("; {}", ended_with(code)))
}
