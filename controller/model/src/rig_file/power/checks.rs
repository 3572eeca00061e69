//! What must hold of power devices and outlets beyond the types of their values.

use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use super::raw::{RawHttp, RawModbus, RawPlacePower, RawPower, RawSense, RawSnmp, SenseWord};
use super::{Devices, SECRET};
use crate::DeviceName;
use crate::document::{Findings, Located, did_you_mean};
use crate::power::{
    OutletRule, PowerPart, SnmpVersion, WebAddress, WebAddressError, host_and_port, power_parts,
};

/// A board that stays off for less keeps its RAM by its capacitors; nobody waits an hour.
const OFF_TIME: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(3600);
const MIN_INTERVAL: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(60);
/// A person may be far from the switch, everything else answers sooner.
const TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(50)..=Duration::from_secs(3600);
const SETTLE: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(600);

/// From the slowest serial line in use to the fastest.
const BAUD: RangeInclusive<u32> = 300..=4_000_000;

/// The tables that say what a device is.
const KINDS: &[&str] = &[
    "command",
    "http",
    "pdudaemon",
    "relay",
    "modbus",
    "snmp",
    "redfish",
    "ipmi",
    "gpio",
    "usb_hub",
    "manual",
];

/// Runs every check of a power device.
pub(in super::super) fn check_device(power: &Located<RawPower>, findings: &Findings) {
    one_kind(power, findings);
    let raw = &power.value;
    in_range(&raw.min_interval, &MIN_INTERVAL, "at most \"60s\"", findings);
    in_range(&raw.off_time, &OFF_TIME, "\"1ms\" to \"1h\"", findings);
    in_range(&raw.timeout, &TIMEOUT, "\"50ms\" to \"1h\"", findings);
    in_range(&raw.settle, &SETTLE, "at most \"10m\"", findings);
    if let Some(command) = &raw.command {
        let (set, status) = (&command.value.set, &command.value.status);
        argv(set.as_ref(), true, findings);
        argv(status.as_ref(), false, findings);
    }
    if let Some(http) = &raw.http {
        check_http(http, findings);
    }
    if let Some(daemon) = &raw.pdudaemon {
        let raw = &daemon.value;
        url(raw.url.as_ref(), findings);
        trust(raw.ca.as_ref(), raw.insecure.as_ref(), findings);
        let plain = |h: &&Located<String>| !OutletRule::Word.fits(&h.value);
        if let Some(name) = raw.hostname.as_ref().filter(plain) {
            let help = "write the key of the daemon's `pdus`: a host name or an address";
            findings.add("rig::power-hostname", name.at(), "this names no device", help);
        }
    }
    if let Some(relay) = &raw.relay {
        port(relay.value.port.as_ref(), findings);
        baud(relay.value.baud.as_ref(), findings);
    }
    if let Some(modbus) = &raw.modbus {
        check_modbus(modbus, findings);
    }
    if let Some(snmp) = &raw.snmp {
        check_snmp(snmp, findings);
    }
    if let Some(redfish) = &raw.redfish {
        let raw = &redfish.value;
        url(raw.url.as_ref(), findings);
        trust(raw.ca.as_ref(), raw.insecure.as_ref(), findings);
        if let (Some(password), None) = (&raw.password, &raw.user) {
            let help = "add `user = \"...\"`";
            findings.add("rig::power-user", password.at(), "whose password is this?", help);
        }
    }
    if let Some(ipmi) = &raw.ipmi {
        address(ipmi.value.address.as_ref(), findings);
        let bad = |user: &&Located<String>| {
            user.value.is_empty() || user.value.starts_with('-') || unclean(&user.value)
        };
        if let Some(user) = ipmi.value.user.as_ref().filter(bad) {
            findings.add("rig::power-user", user.at(), "this is no user's name", "write one");
        }
    }
    if let Some(chip) = raw.gpio.as_ref().and_then(|gpio| gpio.value.chip.as_ref()) {
        absolute("rig::power-chip", chip, "\"/dev/gpiochip0\" (see: gpiodetect)", findings);
    }
    if let Some(hub) = raw.usb_hub.as_ref().and_then(|hub| hub.value.hub.as_ref()) {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-.".contains(&b);
        if hub.value.is_empty() || !hub.value.bytes().all(plain) || hub.value.contains("..") {
            let help = "write it as below /sys/bus/usb/devices: \"1-1.4\", or \"usb1\"";
            findings.add("rig::power-hub", hub.at(), "this names no USB hub", help);
        }
    }
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
    let raw = &power.value;
    let found = [
        raw.command.is_some(),
        raw.http.is_some(),
        raw.pdudaemon.is_some(),
        raw.relay.is_some(),
        raw.modbus.is_some(),
        raw.snmp.is_some(),
        raw.redfish.is_some(),
        raw.ipmi.is_some(),
        raw.gpio.is_some(),
        raw.usb_hub.is_some(),
        raw.manual.is_some(),
    ];
    let said: Vec<&str> =
        KINDS.iter().zip(found).filter(|(_, is)| *is).map(|(kind, _)| *kind).collect();
    let message = match said.as_slice() {
        [_] => return,
        [] => "nothing says what this power device is".to_owned(),
        many => format!("this power device is several things: {}", many.join(", ")),
    };
    let help = format!("give it exactly one of `[power.X]`, where X is {}", KINDS.join(", "));
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

fn unclean(text: &str) -> bool {
    text.chars().any(|c| c.is_control() || c.is_whitespace()) || text.len() > 256
}

fn absolute(check: &'static str, path: &Located<String>, example: &str, findings: &Findings) {
    if !path.value.starts_with('/') || path.value.contains('\0') {
        let help = format!("write the whole path: {example}");
        findings.add(check, path.at(), "this is no path of a device", help);
    }
}

fn port(port: Option<&Located<String>>, findings: &Findings) {
    if let Some(port) = port {
        absolute("rig::power-port", port, "\"/dev/serial/by-id/...\"", findings);
    }
}

fn baud(baud: Option<&Located<u32>>, findings: &Findings) {
    if let Some(baud) = baud.filter(|baud| !BAUD.contains(&baud.value)) {
        let help = "write bits per second, such as 9600";
        findings.add("rig::power-baud", baud.at(), "no serial port is that slow or fast", help);
    }
}

fn address(address: Option<&Located<String>>, findings: &Findings) {
    if let Some(address) = address.filter(|a| host_and_port(&a.value, 1).is_none()) {
        let help = "write \"HOST\" or \"HOST:PORT\", an IPv6 address in brackets";
        findings.add("rig::power-address", address.at(), "this is no address", help);
    }
}

fn url(url: Option<&Located<String>>, findings: &Findings) {
    let Some(url) = url else { return };
    let Err(error) = url.value.parse::<WebAddress>() else { return };
    let (check, help) = match error {
        WebAddressError::Credentials => {
            (SECRET, "write `user = \"...\"` and `password = { env = \"PDU_PASSWORD\" }`")
        }
        WebAddressError::Scheme | WebAddressError::Host | WebAddressError::More => {
            ("rig::power-address", "write \"http://HOST\" or \"https://HOST:PORT\"")
        }
    };
    findings.add(check, url.at(), error.to_string(), help);
}

fn trust(ca: Option<&Located<String>>, insecure: Option<&Located<bool>>, findings: &Findings) {
    let Some(ca) = ca else { return };
    if insecure.is_some_and(|insecure| insecure.value) {
        let message = "any certificate is believed, so this file decides nothing";
        findings.add("rig::power-trust", ca.at(), message, "keep one of `ca` and `insecure`");
    }
    absolute("rig::power-trust", ca, "\"/etc/jig/lab-ca.pem\"", findings);
}

/// Checks the placeholders of a template. `set` says that it switches, so it must say to what.
fn template(text: &Located<String>, set: bool, findings: &Findings) {
    let parts = match power_parts(&text.value) {
        Ok(parts) => parts,
        Err(error) => {
            let help = "use {outlet}, {state}, {user} or {password}; {{ and }} are braces";
            return findings.add("rig::power-template", text.at(), error.to_string(), help);
        }
    };
    if !set && parts.contains(&PowerPart::State) {
        let message = "a question for the state does not know it";
        findings.add("rig::power-template", text.at(), message, "remove {state}");
    }
}

/// Tells whether templates have a placeholder.
fn have<'t>(part: &PowerPart<'_>, texts: impl IntoIterator<Item = &'t str>) -> bool {
    let parts = texts.into_iter().filter_map(|text| power_parts(text).ok()).flatten();
    parts.into_iter().any(|found| found == *part)
}

fn argv(argv: Option<&Located<Vec<Located<String>>>>, set: bool, findings: &Findings) {
    const CHECK: &str = "rig::power-command";
    let Some(argv) = argv else { return };
    for arg in &argv.value {
        template(arg, set, findings);
        for part in [PowerPart::User, PowerPart::Password] {
            if have(&part, [arg.value.as_str()]) {
                let help = "arguments can be seen by every user; let the program read it from \
                            its environment or from a file";
                findings.add(CHECK, arg.at(), "a program's arguments hold no secret", help);
            }
        }
    }
    let plain = |program: &&Located<String>| {
        !program.value.is_empty() && !program.value.contains(['{', '}', '\0', ' '])
    };
    if argv.value.first().filter(plain).is_none() {
        let help = "write the program and each argument as a text of its own";
        findings.add(CHECK, argv.at(), "this begins with no program", help);
    }
    if set && !have(&PowerPart::State, argv.value.iter().map(|arg| arg.value.as_str())) {
        let help = "put {state} where the program expects on or off";
        findings.add(CHECK, argv.at(), "this does the same for on and off", help);
    }
}

fn check_http(http: &Located<RawHttp>, findings: &Findings) {
    const CHECK: &str = "rig::power-http";
    let raw = &http.value;
    url(raw.url.as_ref(), findings);
    trust(raw.ca.as_ref(), raw.insecure.as_ref(), findings);
    for (text, set) in [(&raw.set, true), (&raw.body, true), (&raw.status, false)] {
        if let Some(text) = text {
            template(text, set, findings);
        }
    }
    for path in [&raw.set, &raw.status].into_iter().flatten() {
        let fits = path.value.starts_with('/') && path.value.bytes().all(|b| b.is_ascii_graphic());
        if !fits {
            let help = "begin it with `/`, and write a space as %20";
            findings.add(CHECK, path.at(), "this is no path of a web interface", help);
        }
    }
    if let Some(password) = raw.password.as_ref().filter(|_| raw.user.is_none())
        && raw.preset.is_none()
    {
        let help = "add `user = \"...\"`";
        findings.add("rig::power-user", password.at(), "whose password is this?", help);
    }
    match (&raw.set, raw.preset.is_some()) {
        (None, false) => {
            let help = "add `set = \"/path?outlet={outlet}&state={state}\"` or `preset = \"...\"`";
            findings.add(CHECK, http.at(), "nothing says how an outlet is switched", help);
        }
        (Some(set), _) => {
            let texts = [&raw.set, &raw.body].into_iter().flatten();
            if !have(&PowerPart::State, texts.map(|text| text.value.as_str())) {
                let help = "put {state} where the device expects on or off";
                findings.add(CHECK, set.at(), "this does the same for on and off", help);
            }
        }
        (None, true) => {}
    }
}

fn check_modbus(modbus: &Located<RawModbus>, findings: &Findings) {
    let raw = &modbus.value;
    address(raw.address.as_ref(), findings);
    port(raw.port.as_ref(), findings);
    baud(raw.baud.as_ref(), findings);
    let message = match (&raw.address, &raw.port) {
        (None, None) => "nothing says where this device is",
        (Some(_), Some(_)) => "this device is in two places",
        (Some(_), None) | (None, Some(_)) => return,
    };
    let help = "give one of `address = \"HOST:502\"` and `port = \"/dev/serial/by-id/...\"`";
    findings.add("rig::power-modbus", modbus.at(), message, help);
}

fn check_snmp(snmp: &Located<RawSnmp>, findings: &Findings) {
    const CHECK: &str = "rig::power-snmp";
    let raw = &snmp.value;
    address(raw.address.as_ref(), findings);
    for object in [&raw.set, &raw.read].into_iter().flatten() {
        let bare = object.value.replace("{outlet}", "1");
        let bare = bare.strip_prefix('.').unwrap_or(&bare);
        // One object's name has at most 128 numbers (RFC 3416, 4.1).
        let numbers = bare.split('.').map(str::parse::<u32>);
        let fits = bare.starts_with("1.") && bare.split('.').count() <= 128;
        if !fits || numbers.into_iter().any(|number| number.is_err()) {
            let help = "write its numbers: \"1.3.6.1.4.1.318.1.1.12.3.3.1.1.4.{outlet}\"";
            findings.add(CHECK, object.at(), "this names no object", help);
        } else if !object.value.contains("{outlet}") {
            let help = "put {outlet} where the number of the outlet stands";
            findings.add(CHECK, object.at(), "this is the same for every outlet", help);
        }
    }
    if raw.set.is_none() && raw.preset.is_none() {
        let help = "add `preset = \"apc\"`, or `set = \"1.3.6...{outlet}\"` of its MIB";
        findings.add(CHECK, snmp.at(), "nothing says how an outlet is switched", help);
    }
    let third = match &raw.version {
        Some(version) => version.value == SnmpVersion::V3,
        None => raw.user.is_some(),
    };
    let wrong = |key: &str, wants: &str| {
        (format!("`{key}` belongs to version {wants}"), "remove it, or change `version`")
    };
    if let Some(community) = raw.community.as_ref().filter(|_| third) {
        let (message, help) = wrong("community", "1 and 2c");
        findings.add(CHECK, community.at(), message, help);
    }
    if let Some(user) = raw.user.as_ref().filter(|_| !third) {
        let (message, help) = wrong("user", "3");
        findings.add(CHECK, user.at(), message, help);
    }
    if third && raw.user.is_none() {
        findings.add(CHECK, snmp.at(), "version 3 knows users", "add `user = \"...\"`");
    }
    if let Some(privacy) = raw.privacy_password.as_ref().filter(|_| raw.auth_password.is_none()) {
        let message = "messages are encrypted only if they are signed, too";
        let help = "add `auth_password`";
        findings.add(CHECK, privacy.at(), message, help);
    }
}
