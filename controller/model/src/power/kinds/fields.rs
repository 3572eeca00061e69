//! Keys that several kinds of power devices have: what must hold of them, and what they become.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use serde::Serialize;

use crate::document::{Findings, Located};
use crate::pattern::Pattern;
use crate::power::{
    PowerPart, SECRET, SecretSource, WebAddress, WebAddressError, host_and_port, power_parts,
};

/// What a program or a web interface may say, where no preset and no key says it.
pub(super) const SAYS_ON: &str = r"(?i)\b(on|1|true)\b";
pub(super) const SAYS_OFF: &str = r"(?i)\b(off|0|false)\b";

/// Speed of the relay boards and Modbus devices as they are delivered.
const BAUD: u32 = 9600;

/// From the slowest serial line in use to the fastest.
const BAUD_RANGE: RangeInclusive<u32> = 300..=4_000_000;

/// Which certificates are believed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TlsTrust {
    /// Those that this host believes.
    #[default]
    System,
    /// Those of this PEM file, and those that one of them has signed.
    File(PathBuf),
    /// Any: an attacker between here and the device learns the password.
    Anything,
}

/// A serial line to a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SerialLine {
    /// The port's path.
    pub port: PathBuf,
    /// Bits per second.
    pub baud: u32,
    /// The parity bit.
    pub parity: Parity,
}

/// Parity of a serial line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Parity {
    /// None.
    None,
    /// Even.
    Even,
    /// Odd.
    Odd,
}

choices!(Parity, "parity": "none" = None, "even" = Even, "odd" = Odd);

pub(super) fn unclean(text: &str) -> bool {
    text.chars().any(|c| c.is_control() || c.is_whitespace()) || text.len() > 256
}

pub(super) fn check_absolute(
    check: &'static str,
    path: &Located<String>,
    example: &str,
    findings: &Findings,
) {
    if !path.value.starts_with('/') || path.value.contains('\0') {
        let help = format!("write the whole path: {example}");
        findings.add(check, path.at(), "this is no path of a device", help);
    }
}

pub(super) fn check_port(port: Option<&Located<String>>, findings: &Findings) {
    if let Some(port) = port {
        check_absolute("rig::power-port", port, "\"/dev/serial/by-id/...\"", findings);
    }
}

pub(super) fn check_baud(baud: Option<&Located<u32>>, findings: &Findings) {
    if let Some(baud) = baud.filter(|baud| !BAUD_RANGE.contains(&baud.value)) {
        let help = "write bits per second, such as 9600";
        findings.add("rig::power-baud", baud.at(), "no serial port is that slow or fast", help);
    }
}

pub(super) fn check_address(address: Option<&Located<String>>, findings: &Findings) {
    if let Some(address) = address.filter(|a| host_and_port(&a.value, 1).is_none()) {
        let help = "write \"HOST\" or \"HOST:PORT\", an IPv6 address in brackets";
        findings.add("rig::power-address", address.at(), "this is no address", help);
    }
}

pub(super) fn check_url(url: Option<&Located<String>>, findings: &Findings) {
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

pub(super) fn check_trust(
    ca: Option<&Located<String>>,
    insecure: Option<&Located<bool>>,
    findings: &Findings,
) {
    let Some(ca) = ca else { return };
    if insecure.is_some_and(|insecure| insecure.value) {
        let message = "any certificate is believed, so this file decides nothing";
        findings.add("rig::power-trust", ca.at(), message, "keep one of `ca` and `insecure`");
    }
    check_absolute("rig::power-trust", ca, "\"/etc/jig/lab-ca.pem\"", findings);
}

/// Checks the placeholders of a template. `set` says that it switches, so it must say to what.
pub(super) fn check_template(text: &Located<String>, set: bool, findings: &Findings) {
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
pub(super) fn have<'t>(part: &PowerPart<'_>, texts: impl IntoIterator<Item = &'t str>) -> bool {
    let parts = texts.into_iter().filter_map(|text| power_parts(text).ok()).flatten();
    parts.into_iter().any(|found| found == *part)
}

pub(super) fn text(value: &Option<Located<String>>) -> Option<String> {
    value.as_ref().map(|value| value.value.clone())
}

pub(super) fn secret(value: &Option<Located<SecretSource>>) -> Option<SecretSource> {
    value.as_ref().map(|secret| secret.value.clone())
}

pub(super) fn pattern(said: &Option<Located<Pattern>>, otherwise: &str) -> Option<Pattern> {
    match said {
        Some(said) => Some(said.value.clone()),
        None => Pattern::new(otherwise).ok(),
    }
}

pub(super) fn trust(ca: &Option<Located<String>>, insecure: &Option<Located<bool>>) -> TlsTrust {
    match (ca, insecure.as_ref().is_some_and(|insecure| insecure.value)) {
        (_, true) => TlsTrust::Anything,
        (Some(ca), false) => TlsTrust::File(PathBuf::from(&ca.value)),
        (None, false) => TlsTrust::System,
    }
}

pub(super) fn line(
    port: &Option<Located<String>>,
    baud: &Option<Located<u32>>,
    parity: Parity,
) -> Option<SerialLine> {
    let port = PathBuf::from(&port.as_ref()?.value);
    Some(SerialLine { port, baud: baud.as_ref().map_or(BAUD, |baud| baud.value), parity })
}

pub(super) fn words(
    on: &Option<Located<String>>,
    off: &Option<Located<String>>,
    otherwise: (&str, &str),
) -> (String, String) {
    let said = |word: &Option<Located<String>>, other: &str| {
        text(word).unwrap_or_else(|| other.to_owned())
    };
    (said(on, otherwise.0), said(off, otherwise.1))
}

pub(super) fn joined(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}
