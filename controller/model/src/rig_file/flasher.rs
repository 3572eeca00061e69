//! The flasher of a place: as it is written, what must hold of it, and what it becomes.

use std::time::Duration;

use super::raw::{RawPlace, RawProbe};
use super::{FlasherPart, ProbePart};
use crate::document::{Findings, Located};
use crate::pattern::Pattern;
use crate::profile::checks::{
    arguments_are_sound, codes_are_sound, placeholders_are_known, progress_has_a_group,
};
use crate::profile::limits::WAIT_RANGE;
use crate::profile::placeholder::is_name;
use crate::profile::{BoardProfile, Deploy, DeployPart, FLASH_TIMEOUT, FlashCommand};
use crate::toml_table;

const CHECK: &str = "rig::flasher";

toml_table! {
    /// A program that flashes the board of a place; all but `port` as in `[deploy]` of a profile.
    pub(super) struct RawFlasher {
        /// The program and its arguments, one by one and never a shell line; the profile's if
        /// missing. `{image}` is the image's path, `{address}` its lowest address, `{serial}`
        /// the serial number of the place's probe, `{port}` its serial port; `{{` and `}}` are
        /// braces.
        command: Vec<Located<String>> = optional,
        /// Serial port that the program is told as `{port}`, by its path; the only tty of the
        /// place's consoles if missing.
        port: String = optional,
        /// How long the program may take; "4m" if missing.
        timeout: Duration = optional,
        /// Exit codes that mean success; [0] if missing.
        success_codes: Vec<Located<i32>> = optional,
        /// Output that means failure, whatever the exit code.
        failure_patterns: Vec<Located<Pattern>> = optional,
        /// Output that proves that the flash was read back and compared.
        verified_pattern: Pattern = optional,
        /// Output whose first group is a percentage of the work done, such as '(\\d+)%'.
        progress_pattern: Pattern = optional,
    }
}

/// Checks what a place says of its flasher, and that a program gets what only a place can say.
pub(super) fn check(place: &RawPlace, profile: Option<&BoardProfile>, findings: &Findings) {
    let Some(flasher) = &place.flasher else {
        if let Some(Deploy::Command(command)) = profile.and_then(|profile| profile.deploy.as_ref())
        {
            fills(place, &|placeholder| command.uses(placeholder), findings);
        }
        return;
    };
    if place.emulator.is_some() {
        let message = "no program reaches into an emulator";
        let help = "remove `flasher`: the emulator loads the image";
        findings.add("rig::flasher-emulated", flasher.at(), message, help);
        return;
    }
    let raw = &flasher.value;
    if let Some(port) = &raw.port {
        names_a_port(CHECK, port, findings);
    }
    let Some(argv) = &raw.command else {
        return without_program(flasher, profile, findings);
    };
    match argv.value.first() {
        None => {
            let help = "write `command = [\"PROGRAM\", \"{image}\"]`";
            findings.add(CHECK, argv.at(), "no program is named", help);
        }
        Some(program) if !is_name(&program.value) && !program.value.starts_with('/') => {
            let help = "the name of a program in PATH, or its whole path";
            findings.add(CHECK, program.at(), "the first of `command` names no program", help);
        }
        Some(_) => {}
    }
    arguments_are_sound(Some(argv), CHECK, findings);
    placeholders_are_known(Some(argv), CHECK, findings);
    codes_are_sound(raw.success_codes.as_ref(), CHECK, findings);
    progress_has_a_group(raw.progress_pattern.as_ref(), CHECK, findings);
    if let Some(timeout) = raw.timeout.as_ref().filter(|t| !WAIT_RANGE.contains(&t.value)) {
        let message = "a flasher cannot have so little or so much time";
        findings.add(CHECK, timeout.at(), message, "use \"1ms\" to \"1h\"");
    }
    if let Some(command) = lower_command(raw) {
        fills(place, &|placeholder| command.uses(placeholder), findings);
    }
}

/// Checks a flasher that names no program: the profile's gets its port from it.
fn without_program(
    flasher: &Located<RawFlasher>,
    profile: Option<&BoardProfile>,
    findings: &Findings,
) {
    let raw = &flasher.value;
    let given = [
        raw.timeout.as_ref().and_then(Located::at),
        raw.success_codes.as_ref().and_then(Located::at),
        raw.failure_patterns.as_ref().and_then(Located::at),
        raw.verified_pattern.as_ref().and_then(Located::at),
        raw.progress_pattern.as_ref().and_then(Located::at),
    ];
    for at in given.into_iter().flatten() {
        let help = "add `command = [\"PROGRAM\", \"{image}\"]`, or remove it";
        findings.add(CHECK, Some(at), "this belongs to a `command`, and none is given", help);
    }
    let by_program = |profile: &BoardProfile| matches!(profile.deploy, Some(Deploy::Command(_)));
    if let Some(profile) = profile.filter(|profile| !by_program(profile)) {
        let message = format!("nothing says which program flashes board {}", profile.id);
        let help = "add `command = [\"PROGRAM\", \"{image}\"]`";
        findings.add(CHECK, flasher.at(), message, help);
    }
}

/// Checks that a program gets what its placeholders stand for. A place without a probe need not
/// flash, so nothing is asked of it unless it names a flasher.
fn fills(place: &RawPlace, uses: &dyn Fn(&DeployPart<'_>) -> bool, findings: &Findings) {
    let board = place.board.as_ref().map_or("", |board| board.value.as_str());
    if let Some(Located { value: RawProbe { selector: Some(selector), .. }, .. }) = &place.probe
        && uses(&DeployPart::Serial)
    {
        let probe = ProbePart { selector: selector.value.clone(), ..Default::default() };
        if probe.serial().is_none() {
            let message = format!("the flasher of board {board} needs the serial number");
            let help = "write it behind the ids: \"VID:PID:SERIAL\"";
            findings.add("rig::probe-serial", selector.at(), message, help);
        }
    }
    let flasher = place.flasher.as_ref();
    if place.probe.is_none() && uses(&DeployPart::Serial) {
        if let Some(flasher) = flasher {
            let message = "`{serial}` is the serial number of a debug probe, and there is none";
            let help = "write the number itself, or add `[place.probe]`";
            findings.add(CHECK, flasher.at(), message, help);
        }
        return;
    }
    let named = flasher.is_some_and(|flasher| flasher.value.port.is_some())
        || place.probe.as_ref().is_some_and(|probe| probe.value.port.is_some());
    let consoles = place.console.as_ref().map_or(&[][..], |list| list.value.as_slice());
    let only = matches!(consoles, [console] if console.value.tty.is_some());
    if named || only || !uses(&DeployPart::Port) {
        return;
    }
    let at = match (flasher, &place.probe) {
        (Some(flasher), _) => flasher.at(),
        (None, Some(probe)) => probe.at(),
        (None, None) => return,
    };
    let message = format!("the flasher of board {board} needs a serial port");
    let help = "add `port = \"/dev/serial/by-id/...\"`";
    findings.add("rig::probe-port", at, message, help);
}

/// Checks that a text names a serial port.
pub(super) fn names_a_port(check: &'static str, port: &Located<String>, findings: &Findings) {
    if !port.value.starts_with('/') || port.value.contains('\0') {
        let help = "name the device by its whole path, best one of /dev/serial/by-id/";
        findings.add(check, port.at(), "this names no serial port", help);
    }
}

fn lower_command(raw: &RawFlasher) -> Option<FlashCommand> {
    let values = |list: &Option<Located<Vec<Located<Pattern>>>>| {
        list.iter().flat_map(|list| &list.value).map(|one| one.value.clone()).collect()
    };
    let codes =
        |codes: &Located<Vec<Located<i32>>>| codes.value.iter().map(|code| code.value).collect();
    Some(FlashCommand {
        argv: raw.command.as_ref()?.value.iter().map(|arg| arg.value.clone()).collect(),
        timeout: raw.timeout.as_ref().map_or(FLASH_TIMEOUT, |timeout| timeout.value),
        success_codes: raw.success_codes.as_ref().map_or(vec![0], codes),
        failure_patterns: values(&raw.failure_patterns),
        verified_pattern: raw.verified_pattern.as_ref().map(|pattern| pattern.value.clone()),
        progress_pattern: raw.progress_pattern.as_ref().map(|pattern| pattern.value.clone()),
    })
}

/// Lowers what the check has passed.
pub(super) fn lower(raw: &RawFlasher) -> FlasherPart {
    let port = raw.port.as_ref().map(|port| port.value.clone());
    FlasherPart { command: lower_command(raw), port }
}
