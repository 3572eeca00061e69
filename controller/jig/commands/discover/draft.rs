//! A rig file out of what is attached. Pure.
//!
//! # Design
//! A place whose board is known by the USB id of its probe or serial bridge is ready for use. Of any
//! other one only the user knows which board it is, so it is commented out: `# ` stands before prose,
//! `#` alone before what is to be used. With these taken away and the boards named the file is a rig;
//! as it is, it is one, too.

use std::fmt::Write as _;

use jig_drivers::discover::{HubFound, TtyFound, hub_of};
use jig_lab::{AttachedDevices, CandidateBoard, ServedPlace};
use jig_model::BoardId;
use jig_model::rig_file::ResetLine;
use jig_probe::ProbeInfo;

use crate::render::one_line;

/// Width of a line of names.
const WIDTH: usize = 92;

/// Writes the rig file.
pub(super) fn draft(found: &AttachedDevices) -> String {
    let mut text = String::from(
        "# What is attached to this machine. A place whose board is certain is ready for use. Others\n\
         # are commented out: take the # away from the lines of a place, say which board it is and\n\
         # which console the transport belongs to. A board without a profile is named by its chip:\n\
         # board = \"chip:NAME\" (see: jig chips). `jig doctor -b PLACE` looks for what keeps a place\n\
         # from being used, `jig health --check` whether it works.\n",
    );
    boards(&mut text, &found.boards);
    text.push_str("version = 1\n");
    if found.ttys.is_empty() && found.probes.is_empty() && found.hubs.is_empty() {
        text.push_str("\n# No serial port, debug probe or USB hub was found.\n");
    }
    for hub in &found.hubs {
        hub_entry(&mut text, hub);
    }
    let mut used = Vec::new();
    for (number, probe) in (1..).zip(&found.probes) {
        place(&mut text, found, number, probe, &mut used);
    }
    let without_probe = found.ttys.iter().filter(|tty| !used.contains(&tty.node.as_str()));
    let mut selectors = Vec::new();
    for (number, tty) in (found.probes.len() + 1..).zip(without_probe) {
        place_without_probe(&mut text, found, number, tty, &mut selectors);
    }
    for ServedPlace { place, selector, .. } in &found.served {
        let selector = one_line(selector);
        let _ = writeln!(text, "\n# Emulated board {place}, served by a process: {selector}");
    }
    text
}

fn boards(text: &mut String, boards: &[BoardId]) {
    if !boards.is_empty() {
        wrapped(text, "# Boards:", boards.iter().map(BoardId::as_str));
    }
}

/// Writes names as comments of more than one line, if need be.
fn wrapped<'n>(text: &mut String, head: &str, names: impl Iterator<Item = &'n str>) {
    let mut line = head.to_owned();
    for name in names {
        if line.len() + name.len() + 1 > WIDTH {
            let _ = writeln!(text, "{line}");
            line = String::from("#  ");
        }
        let _ = write!(line, " {name}");
    }
    let _ = writeln!(text, "{line}");
}

fn hub_entry(text: &mut String, hub: &HubFound) {
    let switching: Vec<String> = hub
        .ports
        .iter()
        .filter(|port| port.switches)
        .map(|port| match &port.device {
            Some(device) => format!("{} ({})", port.number, one_line(device)),
            None => port.number.to_string(),
        })
        .collect();
    let name = one_line(&hub.name);
    let title =
        if hub.title.is_empty() { String::new() } else { format!(" ({})", one_line(&hub.title)) };
    if switching.is_empty() {
        let _ =
            writeln!(text, "\n# USB hub {name}{title}: the kernel can switch none of its ports.");
        return;
    }
    let _ = writeln!(
        text,
        "\n# USB hub {name}{title}: the kernel can switch ports {}.",
        switching.join(", ")
    );
    text.push_str(
        "# Whether that cuts the supply is for you to try: many hubs only stop the data.\n",
    );
    let _ = writeln!(text, "#[[power]]\n#name = {}", quoted(&device_name(hub)));
    let _ = writeln!(text, "#[power.usb_hub]\n#hub = {}", quoted(&hub.name));
}

fn device_name(hub: &HubFound) -> String {
    format!("hub-{}", hub.name)
}

/// What a device of a place may be, and how sure that is.
struct Guess<'f> {
    candidates: &'f [CandidateBoard],
    /// Whether another device of this host has the same selector, so that a place with it may mean
    /// either.
    twin: bool,
}

impl<'f> Guess<'f> {
    fn of(found: &'f AttachedDevices, device: &str) -> Self {
        let same = found.probes.iter().filter(|probe| probe.selector == device);
        Self {
            candidates: found.candidates.get(device).map_or(&[], Vec::as_slice),
            twin: same.count() > 1,
        }
    }

    /// Returns the board if the device decides which one it is.
    fn certain(&self) -> Option<&'f CandidateBoard> {
        match self.candidates {
            [one] if !one.shared && !self.twin => Some(one),
            _ => None,
        }
    }

    /// Returns what stands before a line that is to be used: nothing if the board is certain.
    fn mark(&self) -> &'static str {
        if self.certain().is_some() { "" } else { "#" }
    }

    /// Returns the console that the first port carries; none if the board has it elsewhere.
    fn console(&self) -> Option<&str> {
        match self.candidates {
            [one] => one.console.as_ref().map(|console| console.as_str()),
            [] | [_, ..] => Some("uart0"),
        }
    }

    /// Returns the line of the port that resets the board, if it is the same one whichever board of
    /// these it is.
    fn reset(&self) -> Option<&'static str> {
        let line = self.candidates.first()?.reset?;
        let same = self.candidates.iter().all(|candidate| candidate.reset == Some(line));
        same.then_some(match line {
            ResetLine::Rts => "rts",
            ResetLine::Dtr => "dtr",
        })
    }

    /// Writes which board it is, or may be.
    fn board(&self, text: &mut String) {
        if let Some(one) = self.certain() {
            let _ = writeln!(text, "board = \"{}\"  # {}", one.board, one_line(&one.title));
            return;
        }
        if !self.candidates.is_empty() {
            let names = self.candidates.iter().map(|candidate| candidate.board.as_str());
            wrapped(text, "# May be:", names);
            if self.candidates.iter().any(|candidate| candidate.shared) {
                text.push_str("# Boards that no profile describes have such a device, too.\n");
            }
        }
        text.push_str("#board = \"\"  # which one is it?\n");
    }
}

fn place<'f>(
    text: &mut String,
    found: &'f AttachedDevices,
    number: usize,
    probe: &ProbeInfo,
    used: &mut Vec<&'f str>,
) {
    let port = probe.port.as_deref();
    let at = port.map_or_else(String::new, |port| format!(", at USB port {}", one_line(port)));
    let _ = writeln!(text, "\n# {} ({}){at}", one_line(&probe.name), one_line(&probe.kind));
    if !probe.accessible {
        text.push_str("# This user may not open it; `jig doctor -b PLACE` says what helps.\n");
    }
    let guess = Guess::of(found, &probe.selector);
    let mark = guess.mark();
    if guess.twin {
        text.push_str(
            "# Another probe has the same selector: two of one kind that tell no serial numbers of\n\
             # their own cannot be told apart. Attach one of them at a time, or use them on two hosts.\n",
        );
    }
    place_head(text, found, number, port, &guess);
    let _ = writeln!(text, "{mark}[place.probe]\n{mark}selector = {}", quoted(&probe.selector));
    let beside =
        |tty: &&TtyFound| port.is_some() && tty.usb.as_ref().map(|u| u.port.as_str()) == port;
    let mut carried = guess.console();
    for tty in found.ttys.iter().filter(beside) {
        used.push(&tty.node);
        if let Some(name) = carried.take() {
            console(text, tty, name, mark);
            continue;
        }
        let _ = writeln!(text, "# Its next port: {}", about(tty));
        let _ = writeln!(text, "# As a transport of a place: tty = {}", quoted(path(tty)));
        warn_of_name(text, tty);
    }
}

/// Drafts a place for a serial port that belongs to no debug probe.
fn place_without_probe(
    text: &mut String,
    found: &AttachedDevices,
    number: usize,
    tty: &TtyFound,
    selectors: &mut Vec<String>,
) {
    let _ = writeln!(text, "\n# Serial port without a debug probe: {}", about(tty));
    let mut guess = Guess::of(found, &tty.node);
    let selector = probe_of(found, tty, &guess);
    if let Some(selector) = &selector {
        guess.twin = selectors.contains(selector);
        selectors.push(selector.clone());
    }
    if guess.twin {
        text.push_str(
            "# The debug probe of this device has the selector of a place above: the same device, or\n\
             # one of the same kind that tells no serial number of its own.\n",
        );
    }
    place_head(text, found, number, tty.usb.as_ref().map(|usb| usb.port.as_str()), &guess);
    let name = guess.console().unwrap_or("uart0");
    if let Some(selector) = selector {
        let mark = guess.mark();
        text.push_str(
            "# The device is a debug probe, too, which `jig probes` does not show here.\n",
        );
        let _ = writeln!(text, "{mark}probe = {{ selector = {} }}", quoted(&selector));
    } else if let Some(line) = guess.reset() {
        let mark = guess.mark();
        let _ = writeln!(text, "{mark}reset = {{ console = \"{name}\", lines = \"{line}\" }}");
    } else {
        text.push_str(
            "# What boots the board goes here: power = { device = \"...\", outlet = \"...\" },\n\
             # or reset = { console = \"uart0\", lines = \"rts\" } where the adapter's RTS does.\n",
        );
    }
    console(text, tty, name, guess.mark());
}

/// Returns the selector of the debug probe that a serial port belongs to, where its USB id says that it
/// does: a probe that this user may not open is not always listed.
fn probe_of(found: &AttachedDevices, tty: &TtyFound, guess: &Guess<'_>) -> Option<String> {
    let usb = tty.usb.as_ref().filter(|_| guess.certain().is_some_and(|one| one.probe))?;
    let id = format!("{}:{}", usb.vendor, usb.product);
    let listed = found.probes.iter().any(|probe| probe.selector.starts_with(&id));
    let selector = match usb.serial.as_deref() {
        Some(serial) if !serial.chars().any(char::is_control) => format!("{id}:{serial}"),
        _ => id,
    };
    (!listed).then_some(selector)
}

/// Begins a place; its power is the hub's port, if the kernel can switch that.
fn place_head(
    text: &mut String,
    found: &AttachedDevices,
    number: usize,
    port: Option<&str>,
    guess: &Guess<'_>,
) {
    let mark = guess.mark();
    let _ = writeln!(text, "{mark}[[place]]\n{mark}name = \"bench-{number}\"");
    guess.board(text);
    let hub = port.and_then(hub_of).and_then(|(name, port)| {
        let hub = found.hubs.iter().find(|hub| hub.name == name)?;
        hub.ports.iter().any(|p| p.number == port && p.switches).then_some((hub, port))
    });
    // Whether it cuts the supply is not certain: it is the user's to say, together with the hub.
    if let Some((hub, port)) = hub {
        let device = quoted(&device_name(hub));
        let _ = writeln!(text, "#power = {{ device = {device}, outlet = \"{port}\" }}");
    }
}

fn console(text: &mut String, tty: &TtyFound, name: &str, mark: &str) {
    let _ = writeln!(text, "{mark}[[place.console]]\n{mark}name = \"{name}\"  # {}", about(tty));
    let _ = writeln!(text, "{mark}tty = {}", quoted(path(tty)));
    warn_of_name(text, tty);
}

fn warn_of_name(text: &mut String, tty: &TtyFound) {
    if tty.lasting().is_none() {
        text.push_str("# This name may be another port's after the next start.\n");
    }
}

/// Returns the name by which a rig file should know a port.
fn path(tty: &TtyFound) -> &str {
    tty.lasting().unwrap_or(&tty.node)
}

fn about(tty: &TtyFound) -> String {
    let mut words = vec![tty.node.clone()];
    if let Some(usb) = &tty.usb {
        words.push(format!("USB {}:{}", usb.vendor, usb.product));
        words.extend(usb.serial.as_ref().map(|serial| format!("serial {serial}")));
        words.push(usb.title.clone());
    }
    words.extend(tty.interface.as_ref().map(|number| format!("interface {number}")));
    words.extend(tty.driver.clone());
    words.retain(|word| !word.is_empty());
    one_line(&words.join(", "))
}

/// Writes a text as a TOML string in plain ASCII, so that it is harmless on a terminal, too.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            ' '..='~' => quoted.push(c),
            _ => quoted.push_str(&format!("\\U{:08X}", u32::from(c))),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use jig_drivers::discover::{HubPort, UsbIdentity};
    use jig_model::profile::{BoardProfile, FaultSets};
    use jig_model::rig_file::{Endpoint, ResetPart, Rig, RigText};

    use super::*;

    fn tty(node: &str, port: &str, by_id: Option<&str>) -> TtyFound {
        TtyFound {
            node: node.to_owned(),
            by_id: by_id.map(str::to_owned),
            by_path: None,
            driver: Some("cdc_acm".to_owned()),
            interface: Some("01".to_owned()),
            usb: Some(UsbIdentity {
                vendor: "0d28".to_owned(),
                product: "0204".to_owned(),
                serial: Some("99\"00\\\u{7f}".to_owned()),
                title: "Arm\u{202e} DAPLink".to_owned(),
                port: port.to_owned(),
            }),
        }
    }

    fn probe(selector: &str, port: Option<&str>) -> ProbeInfo {
        ProbeInfo {
            name: "DAPLink\n[[place]]".to_owned(),
            selector: selector.to_owned(),
            kind: "CMSIS-DAP".to_owned(),
            port: port.map(str::to_owned),
            holder: None,
            accessible: false,
        }
    }

    fn lab() -> AttachedDevices {
        let port = |number, device: Option<&str>| HubPort {
            number,
            switches: number < 3,
            device: device.map(str::to_owned),
        };
        let hub =
            |name: &str, ports| HubFound { name: name.to_owned(), title: "Hub".to_owned(), ports };
        AttachedDevices {
            ttys: vec![
                tty("/dev/ttyACM0", "1-1.2", Some("/dev/serial/by-id/usb-\"x\"\u{e9}")),
                tty("/dev/ttyACM1", "1-1.2", None),
                tty("/dev/ttyUSB0", "1-3", None),
            ],
            probes: vec![probe("0d28:0204:9900", Some("1-1.2")), probe("1366:0101:77", None)],
            hubs: vec![
                hub("1-1", vec![port(2, Some("1-1.2")), port(3, None)]),
                hub("usb1", vec![port(3, None)]),
            ],
            served: vec![ServedPlace {
                place: "demo".parse().unwrap(),
                selector: "20b7:9db1:unix:/x".to_owned(),
                pid: 1,
            }],
            boards: (0..40).map(|n| format!("board-number-{n}").parse().unwrap()).collect(),
            ..AttachedDevices::default()
        }
    }

    fn rig(text: &str) -> Result<Rig, String> {
        let board = "version = 1\nid = \"b\"\ntitle = \"B\"\narch = \"arm\"\nchip = \"C\"\n\
                     console = [{ name = \"uart0\", kind = \"uart\" }]\n";
        let sets = FaultSets::parse(std::iter::empty()).unwrap_or_else(|p| panic!("{}", p[0]));
        let board = BoardProfile::parse("b.toml", board, &sets).unwrap_or_else(|p| panic!("{p}"));
        Rig::parse([RigText { origin: "rig.toml", text }], &[board])
            .map_err(|bad| bad.iter().map(ToString::to_string).collect())
    }

    /// Takes the marks away, as a user does with an editor.
    fn edited(text: &str) -> String {
        let lines = text.lines().filter(|line| !line.starts_with("# "));
        let lines = lines.map(|line| line.strip_prefix('#').unwrap_or(line));
        lines.collect::<Vec<_>>().join("\n").replace("board = \"\"", "board = \"b\"")
    }

    #[test]
    fn a_draft_is_a_rig_file_and_so_is_what_one_makes_of_it() {
        let text = draft(&lab());
        assert_eq!(rig(&text).unwrap().places, []);
        assert!(text.lines().all(|line| line.len() < 160), "{text}");
        let rig = rig(&edited(&text)).unwrap_or_else(|bad| panic!("{bad}\n{text}"));
        assert_eq!(rig.power.iter().map(|d| d.name.as_str()).collect::<Vec<_>>(), ["hub-1-1"]);
        assert_eq!(rig.places.len(), 3);
        let power = rig.places[0].power.as_ref().unwrap();
        assert_eq!((power.device.as_str(), power.outlet.as_str()), ("hub-1-1", "2"));
        let first = &rig.places[0];
        assert_eq!(first.probe.as_ref().unwrap().selector, "0d28:0204:9900");
        assert_eq!(first.consoles.len(), 1);
        assert_eq!(
            first.consoles[0].end,
            Endpoint::Tty("/dev/serial/by-id/usb-\"x\"\u{e9}".to_owned())
        );
        assert_eq!(rig.places[1].power, None);
        // A serial port alone makes a place, too.
        let bare = &rig.places[2];
        assert_eq!((bare.name.as_str(), &bare.probe), ("bench-3", &None));
        assert_eq!(bare.consoles[0].end, Endpoint::Tty("/dev/ttyUSB0".to_owned()));
    }

    #[test]
    fn a_board_that_is_certain_is_a_place_at_once() {
        let candidate = |board: &str, console: Option<&str>| CandidateBoard {
            board: board.parse().unwrap(),
            title: "A board\n[[place]]".to_owned(),
            console: console.map(|console| console.parse().unwrap()),
            probe: false,
            reset: None,
            shared: false,
        };
        let mut found = lab();
        found.candidates.insert("0d28:0204:9900".to_owned(), vec![candidate("b", Some("uart0"))]);
        let several = vec![candidate("b", None), candidate("other", None)];
        found.candidates.insert("1366:0101:77".to_owned(), several);
        found.candidates.insert("/dev/ttyUSB0".to_owned(), vec![candidate("b", Some("uart0"))]);
        let text = draft(&found);
        let rig = rig(&text).unwrap_or_else(|bad| panic!("{bad}\n{text}"));
        let names: Vec<&str> = rig.places.iter().map(|place| place.name.as_str()).collect();
        assert_eq!(names, ["bench-1", "bench-3"], "{text}");
        let first = &rig.places[0];
        assert_eq!(first.probe.as_ref().unwrap().selector, "0d28:0204:9900");
        assert_eq!(first.consoles[0].console.as_str(), "uart0");
        assert!(text.contains("# May be: b other\n#board = \"\""), "{text}");
        // A port of a probe that is not listed, which has the id of no probe that is.
        let of_probe = CandidateBoard { probe: true, ..candidate("b", Some("uart0")) };
        found.candidates.insert("/dev/ttyUSB0".to_owned(), vec![of_probe]);
        assert!(!draft(&found).contains("is a debug probe, too"));
        let listed = std::mem::take(&mut found.probes);
        let text = draft(&found);
        let rig = self::rig(&text).unwrap_or_else(|bad| panic!("{bad}\n{text}"));
        let bound = rig.places[0].probe.as_ref().map(|probe| probe.selector.as_str());
        assert!(bound.is_some_and(|selector| selector.starts_with("0d28:0204")), "{text}");
        found.probes = listed;
        // A port with a line that resets the board, whichever of these it is.
        let line = |board| CandidateBoard {
            reset: Some(ResetLine::Dtr),
            ..candidate(board, Some("uart0"))
        };
        found.candidates.insert("/dev/ttyUSB0".to_owned(), vec![line("b")]);
        let resets = self::rig(&draft(&found)).unwrap().places[1].reset.clone();
        let wanted = ResetPart::Line { console: "uart0".parse().unwrap(), line: ResetLine::Dtr };
        assert_eq!(resets, Some(wanted));
        let either = "#reset = { console = \"uart0\", lines = \"dtr\" }";
        found.candidates.insert("/dev/ttyUSB0".to_owned(), vec![line("b"), line("other")]);
        assert!(draft(&found).contains(either));
        let unlike = vec![line("b"), candidate("other", Some("uart0"))];
        found.candidates.insert("/dev/ttyUSB0".to_owned(), unlike);
        assert!(!draft(&found).contains(either));
        // A board whose probe has a serial port that is not connected to its chip.
        found.candidates.insert("0d28:0204:9900".to_owned(), vec![candidate("b", None)]);
        let text = draft(&found);
        let rig = self::rig(&text).unwrap_or_else(|bad| panic!("{bad}\n{text}"));
        assert!(rig.places[0].consoles.is_empty(), "{text}");
        // The only profile with such a device, which boards without a profile have, too.
        let shared = CandidateBoard { shared: true, ..candidate("b", Some("uart0")) };
        found.candidates.insert("0d28:0204:9900".to_owned(), vec![shared]);
        let text = draft(&found);
        let rig = self::rig(&text).unwrap_or_else(|bad| panic!("{bad}\n{text}"));
        assert_eq!(rig.places, [], "{text}");
        let told = "# May be: b\n# Boards that no profile describes have such a device, too.\n";
        assert!(text.contains(told), "{text}");
    }

    #[test]
    fn what_cannot_be_used_as_it_is_stands_in_prose() {
        let text = draft(&lab());
        for words in [
            "# USB hub usb1 (Hub): the kernel can switch none of its ports.\n",
            "can switch ports 2 (1-1.2).\n",
            "# Serial port without a debug probe: /dev/ttyUSB0, USB 0d28:0204,",
            "# What boots the board goes here: power = {",
            "# Its next port: /dev/ttyACM1",
            "# This user may not open it",
            "# Emulated board demo, served by a process: 20b7:9db1:unix:/x\n",
        ] {
            assert!(text.contains(words), "{words:?} is not in\n{text}");
        }
        assert!(!text.contains('\u{202e}'), "{text}");
    }

    #[test]
    fn an_empty_machine_makes_an_empty_rig() {
        let text = draft(&AttachedDevices::default());
        assert!(text.contains("# No serial port, debug probe or USB hub was found."), "{text}");
        assert_eq!(rig(&text).unwrap().places, []);
    }

    #[test]
    fn of_two_probes_with_one_selector_neither_place_is_ready() {
        let (first, second) = (probe("0d28:0204", Some("1-1")), probe("0d28:0204", Some("1-2")));
        let candidate = CandidateBoard {
            board: "b".parse().unwrap(),
            title: "B".to_owned(),
            console: None,
            probe: true,
            reset: None,
            shared: false,
        };
        let mut found = AttachedDevices {
            probes: vec![first, second],
            candidates: [("0d28:0204".to_owned(), vec![candidate])].into(),
            ..AttachedDevices::default()
        };
        let text = draft(&found);
        assert_eq!(rig(&text).unwrap().places, [], "{text}");
        assert_eq!(text.matches("cannot be told apart").count(), 2, "{text}");
        // With both in use the rig file is refused, and says where the other one stands.
        let refused = rig(&edited(&text)).unwrap_err();
        assert!(refused.contains("belongs to place \"bench-1\" at rig.toml:"), "{refused}");
        found.probes.pop();
        assert_eq!(rig(&draft(&found)).unwrap().places.len(), 1);
    }

    #[test]
    fn a_second_port_of_an_unlisted_probe_makes_no_second_place_of_it() {
        let candidate = CandidateBoard {
            board: "b".parse().unwrap(),
            title: "B".to_owned(),
            console: Some("uart0".parse().unwrap()),
            probe: true,
            reset: None,
            shared: false,
        };
        let mut ttys = vec![tty("/dev/ttyACM0", "1-1", None), tty("/dev/ttyACM1", "1-1", None)];
        for usb in ttys.iter_mut().filter_map(|tty| tty.usb.as_mut()) {
            usb.serial = Some("99".to_owned());
        }
        let candidates = ttys.iter().map(|tty| (tty.node.clone(), vec![candidate.clone()]));
        let candidates = candidates.collect();
        let found = AttachedDevices { ttys, candidates, ..AttachedDevices::default() };
        let text = draft(&found);
        assert_eq!(rig(&text).unwrap().places.len(), 1, "{text}");
        assert!(text.contains("has the selector of a place above"), "{text}");
    }
}
