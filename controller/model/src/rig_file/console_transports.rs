//! The transports to consoles of real boards: what must hold of them, and what they become.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::raw::{RawPlace, RawTransport};
use super::{ConsoleTransport, Endpoint};
use crate::ConsoleName;
use crate::document::{Findings, Located, did_you_mean};
use crate::profile::limits::BAUD_RANGE;
use crate::profile::{BoardProfile, ConsoleKind};

/// Less than this is less than a USB adapter takes to be found again; over ten minutes a run looks
/// hung.
const TIMEOUT_RANGE: RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(600);

/// How much a kernel takes as the path of a socket, without the zero behind it (unix(7)).
const MOST_SOCKET_PATH: usize = 107;

/// Most words of a command; one by hand has ten.
const MOST_ARGUMENTS: usize = 64;

/// Longest text by which a program says that it is connected: a line of a terminal.
const MOST_READY: usize = 200;

const WHOLE_PATH: &str = "name the device by its whole path, best one of /dev/serial/by-id/ or \
                          /dev/serial/by-path/";

/// Checks the transports of a place by themselves: a console of the board has at most one, and no
/// end carries two.
pub(super) fn check(place: &RawPlace, profile: Option<&BoardProfile>, findings: &Findings) {
    let Some(list) = &place.console else { return };
    if place.emulator.is_some() {
        let message = "an emulated board has its consoles without a transport";
        findings.add("rig::console", list.at(), message, "remove `[[place.console]]`");
        return;
    }
    for (index, transport) in list.value.iter().enumerate() {
        let earlier = &list.value[..index];
        let transport = &transport.value;
        if let Some(name) = &transport.name {
            if let Some(profile) = profile {
                on_the_board(name, profile, findings);
            }
            let same =
                |other: &&RawTransport| other.name.as_ref().is_some_and(|n| n.value == name.value);
            if earlier.iter().map(|other| &other.value).any(|other| same(&other)) {
                let message = format!("console {} has a transport already", name.value);
                findings.add("rig::console-twice", name.at(), message, "keep one of the two");
            }
        }
        for end in ends(transport) {
            sound(&end, findings);
            let taken = earlier.iter().flat_map(|other| ends(&other.value));
            if { taken }.any(|other| other.value == end.value) {
                let message = format!("{} carries another console already", what(&end.value));
                let help = "give each console its own";
                findings.add(check_name(&end.value), end.at(), message, help);
            }
        }
        one_end(transport, findings);
        settings(transport, findings);
    }
}

/// Tells whether a transport ends at a port whose control lines can be set.
pub(super) fn is_tty_or_rfc2217(transport: &RawTransport) -> bool {
    transport.tty.is_some() || transport.rfc2217.is_some()
}

/// Returns the ends that a transport names: one, if all is well.
pub(super) fn ends(transport: &RawTransport) -> Vec<Located<Endpoint>> {
    let of = |text: &Option<Located<String>>, end: fn(String) -> Endpoint| {
        text.clone().map(|text| text.map(end))
    };
    let all = [
        of(&transport.tty, Endpoint::Tty),
        of(&transport.tcp, Endpoint::Tcp),
        of(&transport.rfc2217, Endpoint::Rfc2217),
        of(&transport.unix, Endpoint::Unix),
    ];
    let words = |argv: &Vec<Located<String>>| argv.iter().map(|word| word.value.clone()).collect();
    let command = transport.command.clone().map(|argv| argv.map(|a| Endpoint::Command(words(&a))));
    all.into_iter().flatten().chain(command).collect()
}

fn one_end(transport: &RawTransport, findings: &Findings) {
    let named = ends(transport);
    match (&named[..], &transport.name) {
        ([_], _) => {}
        ([], Some(name)) => {
            let message = format!("nothing says where the transport of {} ends", name.value);
            let help = "add `tty = \"/dev/serial/by-id/...\"`, or one of `tcp`, `rfc2217`, \
                        `unix`, `command`";
            findings.add("rig::console-transport", name.at(), message, help);
        }
        ([], None) => {}
        ([_, second, ..], _) => {
            let keys: Vec<&str> = named.iter().map(|end| end.value.key()).collect();
            let message = format!("a transport has one end, but {} are given", keys.join(" and "));
            findings.add("rig::console-transport", second.at(), message, "keep one of them");
        }
    }
}

/// Names an end to a reader.
pub(super) fn what(end: &Endpoint) -> String {
    match end {
        Endpoint::Tty(path) => format!("serial port {path}"),
        Endpoint::Tcp(address) | Endpoint::Rfc2217(address) => format!("port {address}"),
        Endpoint::Unix(path) => format!("socket {path}"),
        Endpoint::Command(_) => format!("what `{end}` reaches"),
    }
}

fn check_name(end: &Endpoint) -> &'static str {
    match end {
        Endpoint::Tty(_) => "rig::console-tty",
        Endpoint::Tcp(_) | Endpoint::Rfc2217(_) => "rig::console-address",
        Endpoint::Unix(_) => "rig::console-unix",
        Endpoint::Command(_) => "rig::console-command",
    }
}

fn sound(end: &Located<Endpoint>, findings: &Findings) {
    let is_path = |path: &str| path.starts_with('/') && !path.contains('\0');
    let (message, help) = match &end.value {
        Endpoint::Tty(path) if !is_path(path) => ("this names no serial port", WHOLE_PATH),
        Endpoint::Tcp(address) | Endpoint::Rfc2217(address) if !is_address(address) => {
            ("this is no address", "write \"HOST:PORT\", such as \"192.0.2.7:3001\"")
        }
        Endpoint::Unix(path) if !is_path(path) || path.len() > MOST_SOCKET_PATH => {
            ("this names no socket", "name it by its whole path, of at most 107 bytes")
        }
        Endpoint::Command(argv) if !is_command(argv) => (
            "this names no program",
            "write the program and each argument by itself: [\"ssh\", \"-T\", \"lab-1\"]",
        ),
        _ => return,
    };
    findings.add(check_name(&end.value), end.at(), message, help);
}

/// Tells whether a list is a program, by its name or whole path, and arguments.
fn is_command(argv: &[String]) -> bool {
    let Some(program) = argv.first() else { return false };
    let named = !program.contains('/') || program.starts_with('/');
    let plain = !program.is_empty() && !program.contains(char::is_whitespace);
    // More is no call of a console's program, and a kernel takes no zero in any.
    plain && named && argv.len() <= MOST_ARGUMENTS && argv.iter().all(|arg| !arg.contains('\0'))
}

/// Tells whether a text is a host and a port.
pub(super) fn is_address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host = match bare {
        Some(v6) => v6.parse::<core::net::Ipv6Addr>().is_ok(),
        // The longest name there is (RFC 1035).
        None => {
            let fits = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
            (1..=253).contains(&host.len()) && host.chars().all(fits)
        }
    };
    host && port.chars().all(|c| c.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|p| p > 0)
}

fn settings(transport: &RawTransport, findings: &Findings) {
    if let Some(baud) = &transport.baud {
        if transport.tty.is_none() && transport.rfc2217.is_none() {
            let message = "the speed behind a raw connection cannot be set from here";
            let help = "remove the line, or use `rfc2217` if the server speaks it";
            findings.add("rig::console-baud", baud.at(), message, help);
        } else if !BAUD_RANGE.contains(&baud.value) {
            let message = format!("{} baud is no speed of a serial port", baud.value);
            let help = format!("use {} to {}", BAUD_RANGE.start(), BAUD_RANGE.end());
            findings.add("rig::console-baud", baud.at(), message, help);
        }
    }
    if let Some(ready) = &transport.ready {
        let text = &ready.value;
        if transport.command.is_none() {
            let message = "only a program says that it is connected";
            findings.add("rig::console-ready", ready.at(), message, "remove the line");
        } else if text.is_empty() || text.len() > MOST_READY || text.contains(char::is_control) {
            let message = "no line of a program can be found by this";
            let help = "write a part of the line, such as \"Terminal ready\"";
            findings.add("rig::console-ready", ready.at(), message, help);
        }
    }
    if let Some(timeout) = transport.timeout.as_ref().filter(|t| !TIMEOUT_RANGE.contains(&t.value))
    {
        let message = "a transport cannot be waited for that short or long";
        findings.add("rig::console-timeout", timeout.at(), message, "use \"100ms\" to \"10m\"");
    }
}

fn on_the_board(name: &Located<ConsoleName>, profile: &BoardProfile, findings: &Findings) {
    let uarts = profile.consoles.iter().filter(|console| console.kind == ConsoleKind::Uart);
    match profile.consoles.iter().find(|console| console.name == name.value) {
        Some(console) if console.kind == ConsoleKind::Uart => {}
        Some(_) => {
            let message =
                format!("console {} of board {} has no transport", name.value, profile.id);
            let help = "only consoles of kind \"uart\" have one: the probe carries the others";
            findings.add("rig::console-kind", name.at(), message, help);
        }
        // Nothing else says which consoles a chip without a profile has.
        None if profile.id.chip().is_some() => {}
        None => findings.add(
            "rig::unknown-console",
            name.at(),
            format!("board {} has no console {}", profile.id, name.value),
            did_you_mean(name.value.as_str(), uarts.map(|console| console.name.as_str())),
        ),
    }
}

/// Lowers what the checks have passed; `None` only where something was reported.
pub(super) fn lower(
    transports: Option<Located<Vec<Located<RawTransport>>>>,
) -> Option<Vec<ConsoleTransport>> {
    let transports = transports.map(|list| list.value).unwrap_or_default();
    let lowered = transports.into_iter().map(|transport| {
        let transport = transport.value;
        let end = ends(&transport).pop()?.value;
        Some(ConsoleTransport {
            console: transport.name?.value,
            end,
            baud: transport.baud.map(|baud| baud.value),
            timeout: transport.timeout.map(|timeout| timeout.value),
            ready: transport.ready.map(|ready| ready.value),
            capture: None,
        })
    });
    lowered.collect()
}
