//! USB devices on a board: what must hold of them, and what they become.

use super::OnboardUsb;
use super::checks::Subject;
use super::raw::RawUsb;
use crate::document::{Located, did_you_mean};
use crate::profile::ConsoleKind;

/// Splits `VVVV:PPPP` or `VVVV:*` into its numbers.
fn numbers(id: &str) -> Option<(u16, Option<u16>)> {
    let (vendor, product) = id.split_once(':')?;
    let number = |text: &str| {
        let digits = text.len() == 4 && text.chars().all(|c| c.is_ascii_hexdigit());
        u16::from_str_radix(text, 16).ok().filter(|_| digits)
    };
    match product {
        "*" => Some((number(vendor)?, None)),
        product => Some((number(vendor)?, Some(number(product)?))),
    }
}

pub(super) fn devices_are_sound(subject: &Subject<'_>, check: &'static str) {
    let devices = subject.raw.usb.iter().flat_map(|list| &list.value);
    for device in devices {
        let RawUsb { id, serials, probe, console, reset, .. } = &device.value;
        if let Some(id) = id.as_ref().filter(|id| numbers(&id.value).is_none()) {
            let help =
                "write vendor and product with four hex digits each, \"0d28:0204\", or \"1366:*\"";
            subject.findings.add(check, id.at(), "this is no USB id", help);
        }
        let empty = |text: &&Located<String>| {
            text.value.is_empty() || text.value.chars().any(char::is_control)
        };
        let texts = serials.iter().flat_map(|list| &list.value);
        for text in texts.filter(empty) {
            let help = "write what the serial numbers begin with, or remove the line";
            subject.findings.add(check, text.at(), "no serial number begins with this", help);
        }
        if console.is_none() && probe.as_ref().is_none_or(|probe| !probe.value) {
            let message = "nothing says what the device is for";
            let help = "add `probe = true`, or `console = \"NAME\"`";
            subject.findings.add(check, device.at(), message, help);
        }
        let Some(console) = console else {
            if let Some(reset) = reset {
                let help = "add `console = \"NAME\"`, or remove it";
                let message = "a line belongs to a serial port, and the device carries no console";
                subject.findings.add(check, reset.at(), message, help);
            }
            continue;
        };
        let consoles = || subject.raw.console.iter().flat_map(|list| &list.value);
        let uarts = consoles().filter_map(|at| {
            let uart = at.value.kind.as_ref()?.value == ConsoleKind::Uart;
            at.value.name.as_ref().filter(|_| uart).map(|name| name.value.as_str())
        });
        let uarts: Vec<&str> = uarts.collect();
        if !uarts.contains(&console.value.as_str()) {
            let message = format!("the board has no serial console {}", console.value);
            let help = did_you_mean(console.value.as_str(), uarts.iter().copied());
            subject.findings.add(check, console.at(), message, help);
        }
    }
}

/// Lowers what the checks have passed; `None` only where something was reported.
pub(super) fn lower(raw: RawUsb) -> Option<OnboardUsb> {
    let (vendor, product) = numbers(&raw.id?.value)?;
    let serials = raw.serials.map(|list| list.value).unwrap_or_default();
    Some(OnboardUsb {
        vendor,
        product,
        serials: serials.into_iter().map(|text| text.value).collect(),
        probe: raw.probe.is_some_and(|probe| probe.value),
        console: raw.console.map(|console| console.value),
        reset: raw.reset.map(|reset| reset.value),
        shared: raw.shared.is_some_and(|shared| shared.value),
    })
}

#[cfg(test)]
mod tests {
    use crate::profile::{BoardProfile, FaultSets};

    const BOARD: &str = "version = 1\nid = \"b\"\ntitle = \"B\"\narch = \"arm\"\n\
        status = \"data-sheet\"\nsources = [\"DS1\"]\n\
        usb = [{ id = \"0d28:0204\", serials = [\"9900\"], probe = true, console = \"uart0\" }]\n\
        console = [{ name = \"uart0\", kind = \"uart\" }]\n";

    fn parse(text: &str) -> Result<BoardProfile, Vec<&'static str>> {
        BoardProfile::parse("b.toml", text, &FaultSets::default())
            .map_err(|problems| problems.list.iter().map(|problem| problem.check).collect())
    }

    #[test]
    fn a_device_is_recognised_by_its_id_and_serial_number() {
        let board = parse(BOARD).unwrap();
        let device = &board.usb[0];
        assert!(device.is(0x0d28, 0x0204, Some("9900000031864e45")));
        for (vendor, product, serial) in [
            (0x0d28, 0x0204, Some("9904")),
            (0x0d28, 0x0204, Some("99")),
            (0x0d28, 0x0204, None),
            (0x0d28, 0x0205, Some("9900")),
        ] {
            assert!(!device.is(vendor, product, serial), "{serial:?}");
        }
        assert_eq!((device.probe, board.sources.len()), (true, 1));
        assert!(!device.shared);
        let shared = parse(&BOARD.replace("probe = true", "shared = true, probe = true")).unwrap();
        assert!(shared.usb[0].shared);
        let any = parse(&BOARD.replace("0d28:0204", "1366:*")).unwrap();
        assert!(any.usb[0].is(0x1366, 0x1015, Some("9900")) && !any.usb[0].is(0x0d28, 1, None));
    }

    #[test]
    fn slips_of_a_device_are_found() {
        for (good, bad) in [
            ("0d28:0204", "d28:204"),
            ("0d28:0204", "0d280204"),
            ("0d28:0204", "*:0204"),
            ("\"9900\"", "\"\""),
            ("probe = true, console = \"uart0\"", "probe = false"),
            ("console = \"uart0\" }]", "console = \"uart1\" }]"),
            ("probe = true, console = \"uart0\"", "probe = true, reset = \"dtr\""),
        ] {
            assert!(BOARD.contains(good), "{good}");
            assert_eq!(parse(&BOARD.replacen(good, bad, 1)), Err(vec!["profile::usb"]), "{bad}");
        }
    }
}
