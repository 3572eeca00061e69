//! The reset of a place: as it is written, what must hold of it, and what it becomes.

use std::time::Duration;

use super::console_transports::is_tty_or_rfc2217;
use super::power::{Devices, check_reset_outlet, lower_reset_outlet};
use super::raw::RawPlace;
use super::raw_parts::{RawReset, RawResetTable, ResetWord};
use super::{ResetCommand, ResetPart};
use crate::document::{Findings, Located, did_you_mean};
use crate::profile::placeholder::is_name;

/// How long a program may take to reset a board: a second is usual.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Less is too short to start a program; a reset that takes more than a minute is a mistake.
const TIMEOUT_RANGE: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(60);

/// Checks what a place says of its reset.
pub(super) fn check(place: &RawPlace, devices: &Devices, findings: &Findings) {
    let Some(reset) = &place.reset else { return };
    if place.emulator.is_some() {
        let message = "an emulated board is reset by its emulator";
        findings.add("rig::reset-emulated", reset.at(), message, "remove `reset`");
        return;
    }
    match &reset.value {
        RawReset::Word(ResetWord::Power) | RawReset::Table(_) if place.probe.is_some() => {
            let message = "a board with a debug probe is reset by the probe";
            let help = "remove `reset`: a reset that the probe does not make looks like a crash";
            findings.add("rig::reset", reset.at(), message, help);
        }
        RawReset::Word(ResetWord::Probe) if place.probe.is_none() => {
            let help = "add `[place.probe]`, or reset by something that the place has";
            findings.add("rig::reset", reset.at(), "this place has no debug probe", help);
        }
        RawReset::Word(ResetWord::Power) if place.power.is_none() => {
            let help = "add `power = { device = \"...\" }`, or reset by something else";
            findings.add("rig::reset", reset.at(), "this place has no power control", help);
        }
        RawReset::Word(_) => {}
        RawReset::Table(table) => check_table(place, reset, table, devices, findings),
    }
}

fn check_table(
    place: &RawPlace,
    reset: &Located<RawReset>,
    table: &RawResetTable,
    devices: &Devices,
    findings: &Findings,
) {
    let kinds = [
        ("console", table.console.is_some() || table.lines.is_some()),
        ("device", table.device.is_some() || table.outlet.is_some() || table.off_time.is_some()),
        ("command", table.command.is_some() || table.timeout.is_some()),
    ];
    let said: Vec<&str> = kinds.iter().filter(|(_, is)| *is).map(|(kind, _)| *kind).collect();
    match said.as_slice() {
        ["console"] => check_line(place, reset, table, findings),
        ["device"] => check_reset_outlet(
            &table.device,
            &table.outlet,
            &table.off_time,
            reset.at(),
            devices,
            findings,
        ),
        ["command"] => check_command(reset, table, findings),
        [] => {
            let help = "write \"probe\", \"power\", { console = \"uart0\", lines = \"rts\" }, \
                        { device = \"...\", outlet = \"...\" } or { command = [\"...\"] }";
            findings.add("rig::reset", reset.at(), "nothing says what resets the board", help);
        }
        several => {
            let message =
                format!("one thing resets the board, but {} are given", several.join(" and "));
            findings.add("rig::reset", reset.at(), message, "keep one of them");
        }
    }
}

fn check_line(
    place: &RawPlace,
    reset: &Located<RawReset>,
    table: &RawResetTable,
    findings: &Findings,
) {
    let (Some(console), Some(_)) = (&table.console, &table.lines) else {
        let help = "write both: `reset = { console = \"uart0\", lines = \"rts\" }`";
        findings.add("rig::reset", reset.at(), "which line of which console?", help);
        return;
    };
    let mut consoles =
        place.console.iter().flat_map(|list| &list.value).map(|transport| &transport.value);
    let named = consoles.clone().filter_map(|transport| transport.name.as_ref());
    let found = consoles
        .find(|transport| transport.name.as_ref().is_some_and(|name| name.value == console.value));
    match found {
        None => findings.add(
            "rig::reset-console",
            console.at(),
            format!("this place has no [[place.console]] {}", console.value),
            did_you_mean(console.value.as_str(), named.map(|name| name.value.as_str())),
        ),
        Some(transport) if !is_tty_or_rfc2217(transport) => {
            let help = "only a `tty` and an `rfc2217` server have control lines";
            let message = format!("console {} has no control lines", console.value);
            findings.add("rig::reset-console", console.at(), message, help);
        }
        Some(_) => {}
    }
}

fn check_command(reset: &Located<RawReset>, table: &RawResetTable, findings: &Findings) {
    let argv = table.command.as_ref().map_or(&[][..], |argv| argv.value.as_slice());
    match argv.first() {
        None => {
            let at = table.command.as_ref().map_or(reset.at(), Located::at);
            let help = "write `command = [\"PROGRAM\", \"ARGUMENT\"]`";
            findings.add("rig::reset-command", at, "no program is named", help);
        }
        Some(program) if !is_name(&program.value) && !program.value.starts_with('/') => {
            let help = "the name of a program in PATH, or its whole path";
            let message = "the first of `command` names no program";
            findings.add("rig::reset-command", program.at(), message, help);
        }
        Some(_) => {}
    }
    for arg in argv.iter().filter(|arg| arg.value.contains('\0')) {
        findings.add("rig::reset-command", arg.at(), "an argument holds a zero byte", "remove it");
    }
    if let Some(timeout) = table.timeout.as_ref().filter(|t| !TIMEOUT_RANGE.contains(&t.value)) {
        let message = "a reset cannot have so little or so much time";
        findings.add("rig::reset-timeout", timeout.at(), message, "use \"100ms\" to \"1m\"");
    }
}

/// Lowers what the check has passed; `None` only where something was reported.
pub(super) fn lower(raw: RawReset, devices: &Devices) -> Option<ResetPart> {
    let table = match raw {
        RawReset::Word(ResetWord::Probe) => return Some(ResetPart::Probe),
        RawReset::Word(ResetWord::Power) => return Some(ResetPart::Power),
        RawReset::Table(table) => *table,
    };
    if let Some(console) = table.console {
        return Some(ResetPart::Line { console: console.value, line: table.lines?.value });
    }
    if let Some(argv) = table.command {
        let argv = argv.value.into_iter().map(|arg| arg.value).collect();
        let timeout = table.timeout.map_or(TIMEOUT, |timeout| timeout.value);
        return Some(ResetPart::Command(ResetCommand { argv, timeout }));
    }
    let off_time = table.off_time.map(|time| time.value);
    lower_reset_outlet(table.device?, table.outlet, off_time, devices).map(ResetPart::Outlet)
}
