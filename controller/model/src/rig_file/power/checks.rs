//! What must hold of power devices and outlets beyond the types of their values.

use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use super::Devices;
use super::raw::{RawPlacePower, RawSense, SenseWord};
use crate::DeviceName;
use crate::document::{Findings, Located, did_you_mean};
use crate::power::{OutletRule, PowerDriver, RawPower};

/// A board that stays off for less keeps its RAM by its capacitors; no board needs an hour.
const OFF_TIME: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(3600);
const MIN_INTERVAL: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(60);
/// A person may be far from the switch, everything else answers sooner.
const TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(50)..=Duration::from_secs(3600);
const SETTLE: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(600);

/// Runs every check of a power device.
pub(in super::super) fn check_device(power: &Located<RawPower>, findings: &Findings) {
    one_kind(power, findings);
    let raw = &power.value;
    in_range(&raw.min_interval, &MIN_INTERVAL, "at most \"60s\"", findings);
    in_range(&raw.off_time, &OFF_TIME, "\"1ms\" to \"1h\"", findings);
    in_range(&raw.timeout, &TIMEOUT, "\"50ms\" to \"1h\"", findings);
    in_range(&raw.settle, &SETTLE, "at most \"10m\"", findings);
    raw.check_kinds(findings);
}

/// Checks what a place says of its power.
pub(in super::super) fn check_outlet(
    power: &Located<RawPlacePower>,
    devices: &Devices,
    findings: &Findings,
) {
    let raw = &power.value;
    in_range(&raw.off_time, &OFF_TIME, "\"1ms\" to \"1h\"", findings);
    named(&raw.device, &raw.outlet, power.at(), devices, findings);
    let Some(sense) = &raw.sense else { return };
    let RawSense::Outlet(other) = &sense.value else { return };
    named(&other.device, &other.outlet, sense.at(), devices, findings);
    if let (Some(device), Some(same)) = (&raw.device, &other.device)
        && device.value == same.value
    {
        let message = "what switches the power cannot be its own sense";
        let help = "name another device, or remove the sense: the outlet is read back anyway";
        findings.add("rig::power-sense", same.at(), message, help);
    }
}

/// Checks the outlet that resets a place: device, outlet and how long it stays off.
pub(in super::super) fn check_reset_outlet(
    device: &Option<Located<DeviceName>>,
    outlet: &Option<Located<String>>,
    off_time: &Option<Located<Duration>>,
    at: Option<Range<usize>>,
    devices: &Devices,
    findings: &Findings,
) {
    in_range(off_time, &OFF_TIME, "\"1ms\" to \"1h\"", findings);
    if device.is_none() {
        let help = "add `device = \"...\"`, the name of a [[power]]";
        findings.add("rig::reset", at, "which device switches this outlet?", help);
        return;
    }
    named(device, outlet, at, devices, findings);
}

/// Checks what a hub says of its power.
pub(in super::super) fn check_hub_outlet(
    power: &Located<RawPlacePower>,
    devices: &Devices,
    findings: &Findings,
) {
    check_outlet(power, devices, findings);
    if let Some(Located { value: RawSense::Word(word), .. }) = &power.value.sense
        && *word != SenseWord::Absent
    {
        let at = power.value.sense.as_ref().and_then(Located::at);
        let help = "name an outlet that is only read, or remove the sense";
        findings.add("rig::power-sense", at, "a hub has neither of these", help);
    }
}

/// Returns the word by which a place names the power sense of its power, and where, if it does.
pub(in super::super) fn sense_word(power: &RawPlacePower) -> Option<(SenseWord, Range<usize>)> {
    let sense = power.sense.as_ref()?;
    match sense.value {
        RawSense::Word(word) => Some((word, sense.span.clone())),
        RawSense::Outlet(_) => None,
    }
}

/// Checks that a device is there, and has such an outlet.
fn named(
    device: &Option<Located<DeviceName>>,
    outlet: &Option<Located<String>>,
    at: Option<Range<usize>>,
    devices: &Devices,
    findings: &Findings,
) {
    let Some(device) = device else { return };
    let Some(rule) = devices.get(&device.value) else {
        let message = format!("there is no power device {:?}", device.value.as_str());
        let help = match devices.is_empty() {
            true => "declare it: `[[power]]` with a `name` and, say, `[power.http]`".to_owned(),
            false => did_you_mean(device.value.as_str(), devices.keys().map(|d| d.as_str())),
        };
        return findings.add("rig::power-device", device.at(), message, help);
    };
    // What is wrong with the device itself was reported there.
    let Some(rule) = rule else { return };
    match outlet {
        Some(outlet) if !rule.fits(&outlet.value) => {
            let message = format!("this is no outlet of {}", device.value);
            findings.add("rig::power-outlet", outlet.at(), message, rule.help());
        }
        None if *rule != OutletRule::One => {
            let message = format!("which outlet of {}?", device.value);
            let help = format!("add `outlet = \"...\"`; {}", rule.help());
            findings.add("rig::power-outlet", at, message, help);
        }
        Some(_) | None => {}
    }
}

fn one_kind(power: &Located<RawPower>, findings: &Findings) {
    let said = power.value.kinds();
    let message = match said.as_slice() {
        [_] => return,
        [] => "nothing says what this power device is".to_owned(),
        many => format!("this power device is several things: {}", many.join(", ")),
    };
    let help =
        format!("give it exactly one of `[power.X]`, where X is {}", PowerDriver::KINDS.join(", "));
    findings.add("rig::power-kind", power.at(), message, help);
}

fn in_range(
    time: &Option<Located<Duration>>,
    range: &RangeInclusive<Duration>,
    help: &str,
    findings: &Findings,
) {
    if let Some(time) = time.as_ref().filter(|time| !range.contains(&time.value)) {
        let message = "this time is out of range";
        findings.add("rig::power-time", time.at(), message, format!("use {help}"));
    }
}
