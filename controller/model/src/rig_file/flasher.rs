//! The flasher of a place: as it is written, what must hold of it, and what it becomes.

use std::time::Duration;

use super::raw::{RawPlace, RawProbe};
use super::raw_parts::RawFlasher;
use super::{FlasherPart, ProbePart};
use crate::document::{Findings, Located};
use crate::profile::limits::WAIT_RANGE;
use crate::profile::placeholder::is_name;
use crate::profile::{BoardProfile, Deploy, DeployPart, FlashCommand};

const CHECK: &str = "rig::flasher";

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
    let keys = raw.keys();
    if raw.volume_keys().any() {
        return by_copy(place, raw, findings);
    }
    keys.check_preset(CHECK, findings);
    let Some(argv) = keys.argv else {
        if keys.preset.is_none() {
            return without_program(flasher, profile, findings);
        }
        return by_program(place, raw, profile, findings);
    };
    match argv.value.first() {
        None => {
            let help = "write `command = [\"PROGRAM\", \"{image}\"]`, or `preset = \"NAME\"` \
                        (see: jig flashers)";
            findings.add(CHECK, argv.at(), "no program is named", help);
        }
        Some(program) if !is_name(&program.value) && !program.value.starts_with('/') => {
            let help = "the name of a program in PATH, or its whole path";
            findings.add(CHECK, program.at(), "the first of `command` names no program", help);
        }
        Some(_) => {}
    }
    keys.check_arguments(CHECK, findings);
    keys.check_placeholders(CHECK, findings);
    by_program(place, raw, profile, findings);
}

/// Checks a volume that the image is copied to.
fn by_copy(place: &RawPlace, raw: &RawFlasher, findings: &Findings) {
    let of_copy = [&raw.timeout, &raw.touch].map(|time| time.as_ref().and_then(Located::at));
    for at in raw.keys().places().filter(|at| !of_copy.contains(&Some(at.clone()))) {
        let message = "this belongs to a program, and the image is copied to a volume";
        findings.add(CHECK, Some(at), message, "remove it, or remove `volume`");
    }
    raw.volume_keys().check(CHECK, findings);
    if let Some(touch) = &raw.touch
        && !has_port(place)
    {
        let message = "`touch` opens a serial port, and the place names none";
        findings.add(CHECK, touch.at(), message, "add `port = \"/dev/serial/by-id/...\"`");
    }
    for timeout in [&raw.timeout, &raw.touch].into_iter().flatten() {
        is_sane(timeout, findings);
    }
}

/// Checks how a program is judged, and that it gets what only a place can say.
fn by_program(
    place: &RawPlace,
    raw: &RawFlasher,
    profile: Option<&BoardProfile>,
    findings: &Findings,
) {
    let keys = raw.keys();
    keys.check_codes(CHECK, findings);
    keys.check_progress(CHECK, findings);
    keys.check_touch(CHECK, findings);
    for timeout in [keys.timeout, keys.idle_timeout, keys.touch].into_iter().flatten() {
        is_sane(timeout, findings);
    }
    if let Some(command) = keys.lower() {
        fills(place, &|placeholder| command.uses(placeholder), findings);
        chip_is_known(place, &command, profile, findings);
    }
}

/// Checks that `{chip}` stands for something.
fn chip_is_known(
    place: &RawPlace,
    command: &FlashCommand,
    profile: Option<&BoardProfile>,
    findings: &Findings,
) {
    let of_probe = place.probe.as_ref().is_some_and(|probe| probe.value.chip.is_some());
    let Some(profile) = profile.filter(|profile| profile.chip.is_none() && !of_probe) else {
        return;
    };
    if command.uses(&DeployPart::Chip) {
        let message = format!("the flasher needs the chip, and board {} names none", profile.id);
        let help =
            format!("add `chip = \"...\"` to {}, or the option of the preset", profile.origin);
        findings.add(CHECK, place.flasher.as_ref().and_then(Located::at), message, help);
    }
}

/// Checks a flasher that names no program: the profile's gets its port from it.
fn without_program(
    flasher: &Located<RawFlasher>,
    profile: Option<&BoardProfile>,
    findings: &Findings,
) {
    for at in flasher.value.keys().places() {
        let help = "add `preset = \"NAME\"` (see: jig flashers) or `command = [\"PROGRAM\", \
                    \"{image}\"]`, or remove it";
        findings.add(CHECK, Some(at), "this belongs to a `command`, and none is given", help);
    }
    let by_program = |profile: &BoardProfile| matches!(profile.deploy, Some(Deploy::Command(_)));
    if let Some(profile) = profile.filter(|profile| !by_program(profile)) {
        let message = format!("nothing says which program flashes board {}", profile.id);
        let help = "add `preset = \"NAME\"` (see: jig flashers) or `command = [\"PROGRAM\", \
                    \"{image}\"]`";
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
    if has_port(place) || !uses(&DeployPart::Port) {
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

/// Tells whether a place names a serial port for its flasher.
fn has_port(place: &RawPlace) -> bool {
    let named = place.flasher.as_ref().is_some_and(|flasher| flasher.value.port.is_some())
        || place.probe.as_ref().is_some_and(|probe| probe.value.port.is_some());
    let consoles = place.console.as_ref().map_or(&[][..], |list| list.value.as_slice());
    named || matches!(consoles, [console] if console.value.tty.is_some())
}

/// Checks a time that a flasher has.
fn is_sane(time: &Located<Duration>, findings: &Findings) {
    if !WAIT_RANGE.contains(&time.value) {
        let message = "a flasher cannot have so little or so much time";
        findings.add(CHECK, time.at(), message, "use \"1ms\" to \"1h\"");
    }
}

/// Checks that a text names a serial port.
pub(super) fn names_a_port(check: &'static str, port: &Located<String>, findings: &Findings) {
    if !port.value.starts_with('/') || port.value.contains('\0') {
        let help = "name the device by its whole path, best one of /dev/serial/by-id/";
        findings.add(check, port.at(), "this names no serial port", help);
    }
}

/// Lowers what the check has passed.
pub(super) fn lower(raw: &RawFlasher) -> FlasherPart {
    let port = raw.port.as_ref().map(|port| port.value.clone());
    let volume = raw.volume_keys().lower();
    let command = if volume.is_some() { None } else { raw.keys().lower() };
    FlasherPart { command, volume, port }
}
