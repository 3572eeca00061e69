//! What must hold of a place beyond the types of its values.

use std::borrow::Cow;
use std::time::Duration;

use super::known_boards::KnownBoards;
use super::power::{Devices, RawPlacePower, SenseWord, check_outlet, sense_word};
use super::raw::{RawEmulator, RawPlace, RawProbe};
use super::{EmulatorDeploy, console_transports, flasher, reset, shell};
use crate::document::{Findings, Located};
use crate::profile::checks::emulator_args;
use crate::profile::{ArgPart, BoardProfile, Deploy, arg_parts};

/// From what the slowest adapters can do to beyond the fastest (SWD at 50 MHz).
const SPEED_RANGE: std::ops::RangeInclusive<u32> = 1..=100_000;

/// Runs every check of a place; returns its board, if there is one of the name.
pub(super) fn run<'b>(
    place: &Located<RawPlace>,
    devices: &Devices,
    boards: KnownBoards<'b>,
    findings: &Findings,
) -> Option<Cow<'b, BoardProfile>> {
    some_part(place, findings);
    let place = &place.value;
    if let Some(power) = &place.power {
        power_of_emulator(place, power, findings);
        check_outlet(power, devices, findings);
        absent_sense(place, &power.value, findings);
    }
    let board = place.board.as_ref().and_then(|board| boards.find(board, findings));
    let profile = board.as_deref();
    if let Some(emulator) = &place.emulator {
        args(&emulator.value, findings);
        if let Some(profile) = profile {
            emulable(place, profile, findings);
            emulator_deploy(&emulator.value, profile, findings);
        }
    }
    console_transports::check(place, profile, findings);
    reset::check(place, devices, findings);
    flasher::check(place, profile, findings);
    canary(place, profile, findings);
    network(place, findings);
    if let Some(table) = &place.shell {
        shell::check(&table.value, place.emulator.is_some(), profile, findings);
    }
    if let Some(probe) = &place.probe {
        selector(&probe.value, findings);
        words(&probe.value, findings);
        if let Some(profile) = profile {
            chip(place, probe, profile, findings);
        }
    }
    board
}

/// What a canary's time may be: on a busy host the smallest image takes seconds, and a proof of a
/// recovery has a minute and a half for all of it.
const CANARY_RANGE: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(5)..=Duration::from_secs(60);

fn canary(place: &RawPlace, profile: Option<&BoardProfile>, findings: &Findings) {
    let Some(canary) = &place.canary else { return };
    let image = canary.value.image.as_ref();
    if let Some(image) = image.filter(|i| i.value.is_empty() || i.value.contains('\0')) {
        let help = "name an ELF or Intel HEX file, relative to this one";
        findings.add("rig::canary", image.at(), "`image` is no file name", help);
    }
    let timeout = canary.value.timeout.as_ref();
    if let Some(timeout) = timeout.filter(|time| !CANARY_RANGE.contains(&time.value)) {
        let help = "use \"5s\" to \"1m\"";
        let message = "a canary cannot have so little or so much time";
        findings.add("rig::canary", timeout.at(), message, help);
    }
    let Some(profile) = profile else { return };
    if profile.memory.is_empty() {
        let help = "remove the canary: what the board boots by itself is known";
        findings.add("rig::canary", canary.at(), "the board takes no image", help);
    } else if place.emulator.is_none()
        && place.probe.is_none()
        && place.flasher.is_none()
        && !matches!(profile.deploy, Some(Deploy::Command(_) | Deploy::Volume(_)))
    {
        let help = "add `[place.probe]` or `flasher = { command = [...] }`, or remove the canary";
        let message = "nothing at this place puts an image on its board";
        findings.add("rig::canary", canary.at(), message, help);
    }
}

fn network(place: &RawPlace, findings: &Findings) {
    let Some(network) = &place.network else { return };
    if place.emulator.is_some() {
        let message = "an emulated board is on no network between its runs";
        findings.add("rig::network", network.at(), message, "remove `network`");
        return;
    }
    let ends = [&network.value.tcp, &network.value.ssh];
    for end in ends.into_iter().flatten().filter(|end| !console_transports::is_address(&end.value))
    {
        let help = "write \"HOST:PORT\", such as \"192.0.2.7:22\"";
        findings.add("rig::network", end.at(), "this is no address", help);
    }
    if ends.iter().all(|end| end.is_none()) {
        let help = "add `ssh = \"HOST:22\"` or `tcp = \"HOST:PORT\"`";
        findings.add("rig::network", network.at(), "nothing says where it is reached", help);
    }
}

fn some_part(place: &Located<RawPlace>, findings: &Findings) {
    let raw = &place.value;
    let real = raw.probe.is_some()
        || raw.power.is_some()
        || raw.reset.is_some()
        || raw.flasher.is_some()
        || raw.network.is_some()
        || raw.shell.is_some()
        || raw.console.as_ref().is_some_and(|list| !list.value.is_empty());
    match (&raw.emulator, &raw.probe) {
        (None, _) if !real => {
            let help = "add `[place.emulator]` for an emulated board; for a real one any of \
                        `[place.probe]`, `[[place.console]]`, `power`, `reset`, `flasher`, \
                        `[place.shell]` and `[place.network]`";
            findings.add("rig::parts", place.at(), "nothing makes this place real", help);
        }
        (Some(_), Some(probe)) => {
            let message = "this place has an emulator and a probe";
            let help = "keep `[place.emulator]` for an emulated board (`deploy = \"probe\"` puts \
                        a virtual probe before it), or `[place.probe]` for a real one";
            findings.add("rig::parts", probe.at(), message, help);
        }
        _ => {}
    }
}

fn power_of_emulator(place: &RawPlace, power: &Located<RawPlacePower>, findings: &Findings) {
    if place.emulator.is_some() {
        let message = "the power of an emulated board is its emulator";
        findings.add("rig::power-emulated", power.at(), message, "remove the table");
    }
}

fn absent_sense(place: &RawPlace, power: &RawPlacePower, findings: &Findings) {
    let transports = place.console.as_ref().is_some_and(|transports| !transports.value.is_empty());
    match sense_word(power) {
        Some((SenseWord::Console, at)) if !transports => {
            let message = "no console of this place has a transport to listen at";
            let help = "add `[[place.console]]`, or write sense = \"debug-port\"";
            findings.add("rig::power-sense", Some(at), message, help);
        }
        Some((SenseWord::DebugPort, at)) if place.probe.is_none() => {
            let message = "this place has no debug probe to ask";
            let help = "add `[place.probe]`, or write sense = \"console\"";
            findings.add("rig::power-sense", Some(at), message, help);
        }
        _ => {}
    }
}

fn emulable(place: &RawPlace, profile: &BoardProfile, findings: &Findings) {
    let Some(board) = place.board.as_ref().filter(|_| profile.emulation.is_none()) else { return };
    findings.add(
        "rig::not-emulable",
        board.at(),
        format!("board {:?} cannot be emulated", board.value.as_str()),
        match profile.id.chip() {
            Some(chip) => {
                format!("write a profile with `[emulation]`: jig profile new --chip {chip}")
            }
            None => format!("add `[emulation]` to {}, or bind another board", profile.origin),
        },
    );
}

fn args(emulator: &RawEmulator, findings: &Findings) {
    let Some(args) = &emulator.args else { return };
    emulator_args("rig::args", &args.value, findings);
    for arg in &args.value {
        let plain = |part: &ArgPart<'_>| matches!(part, ArgPart::Text(_));
        if !arg_parts(&arg.value).is_ok_and(|parts| parts.iter().all(plain)) {
            let help = "what needs a placeholder belongs into the board profile";
            findings.add(
                "rig::placeholder",
                arg.at(),
                "a place's arguments have no placeholders",
                help,
            );
        }
    }
}

fn emulator_deploy(emulator: &RawEmulator, profile: &BoardProfile, findings: &Findings) {
    let Some(deploy) = &emulator.deploy else { return };
    let boots_alone = profile.emulation.as_ref().is_some_and(|e| e.image_set.is_some());
    let has_debug_port = profile.emulation.as_ref().is_some_and(|e| e.debug.is_some());
    let (message, help) = match deploy.value {
        _ if boots_alone => (
            format!("board {} boots its own image set and takes no image", profile.id),
            "remove the line".to_owned(),
        ),
        // What it describes is all a virtual probe has to know; a chip's name is not needed.
        EmulatorDeploy::Probe if !has_debug_port => (
            format!("no debug port is described for the emulated board {}", profile.id),
            format!(
                "add `[emulation.debug]` to {}, or write `deploy = \"loader\"`",
                profile.origin
            ),
        ),
        EmulatorDeploy::Probe | EmulatorDeploy::Loader => return,
    };
    findings.add("rig::deploy", deploy.at(), message, help);
}

/// Tells whether a text is a USB id: one to four hex digits.
fn is_id(text: &str) -> bool {
    (1..=4).contains(&text.len()) && text.chars().all(|c| c.is_ascii_hexdigit())
}

fn selector(probe: &RawProbe, findings: &Findings) {
    let Some(selector) = &probe.selector else { return };
    let mut parts = selector.value.splitn(3, ':');
    let vendor = parts.next().is_some_and(is_id);
    let product = parts.next().is_some_and(|text| match text.split_once('-') {
        Some((id, interface)) => is_id(id) && interface.parse::<u8>().is_ok(),
        None => is_id(text),
    });
    // The serial number is whatever the maker wrote, but nothing that hides on a terminal.
    let serial = parts.next().is_none_or(|text| {
        text.len() <= 256 && !text.chars().any(|c| c.is_control() || c.is_whitespace())
    });
    if !(vendor && product && serial) {
        let message = "this selects no probe";
        let help = "write vendor and product in hex, and the serial number where there are \
                    several: \"2e8a:000c:E6616407\" (see: jig probes)";
        findings.add("rig::probe-selector", selector.at(), message, help);
    }
}

fn words(probe: &RawProbe, findings: &Findings) {
    if let Some(speed) = probe.speed_khz.as_ref().filter(|s| !SPEED_RANGE.contains(&s.value)) {
        let (start, end) = (SPEED_RANGE.start(), SPEED_RANGE.end());
        let message = format!("{} kHz is no speed of a debug wire", speed.value);
        findings.add("rig::probe-speed", speed.at(), message, format!("use {start} to {end}"));
    }
    if let Some(port) = &probe.port {
        flasher::names_a_port("rig::probe-port", port, findings);
    }
}

fn chip(place: &RawPlace, probe: &Located<RawProbe>, profile: &BoardProfile, findings: &Findings) {
    let by_program = matches!(profile.deploy, Some(Deploy::Command(_)))
        || place.flasher.as_ref().is_some_and(|flasher| {
            flasher.value.keys().names_program() || flasher.value.volume.is_some()
        });
    if let Some(chip) = &probe.value.chip {
        if chip.value.trim().is_empty() || chip.value.chars().any(char::is_control) {
            let message = "`chip` is empty or holds control characters";
            findings.add("rig::probe-chip", chip.at(), message, "name the chip or remove the line");
        }
    } else if profile.chip.is_none()
        && !by_program
        // A board that is described as it is emulated needs no name.
        && profile.emulation.as_ref().is_none_or(|emulation| emulation.debug.is_none())
    {
        let message = format!("a probe has to know the chip, and board {} names none", profile.id);
        let help = format!("add `chip` here or to {}", profile.origin);
        findings.add("rig::probe-chip", probe.at(), message, help);
    }
}
