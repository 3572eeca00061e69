//! Tests of power devices in rig files.

use std::time::Duration;

use super::*;
use crate::Problems;
use crate::profile::tests::{assert_sound, shipped};
use crate::rig_file::{Rig, RigText};

fn parse(files: &[(&str, &str)]) -> Result<Rig, Vec<Problems>> {
    let texts = files.iter().map(|&(origin, text)| RigText { origin, text });
    Rig::parse(texts, &shipped())
}

/// Returns check and caret of each problem of one file.
fn problems(text: &str) -> Vec<(&'static str, String)> {
    let list = parse(&[("rig.toml", text)]).err().unwrap_or_default();
    let caret = |problems: &Problems, span: &Option<std::ops::Range<usize>>| {
        span.clone().map_or(String::new(), |span| problems.source[span].to_owned())
    };
    let all = list.iter().flat_map(|problems| {
        assert_sound(problems);
        problems.list.iter().map(|p| (p.check, caret(problems, &p.span)))
    });
    all.collect()
}

fn place(name: &str, power: &str) -> String {
    format!(
        "[[place]]\nname = \"{name}\"\nboard = \"microbit\"\nprobe = {{ selector = \
         \"0d28:0204:{name}\" }}\npower = {power}\n"
    )
}

/// A rig with one device of each kind, and a place on each.
fn every_kind() -> String {
    let devices = [
        (
            "cmd",
            "plug-1",
            "command = { set = [\"pdu\", \"{outlet}\", \"{state}\"], status = [\"pdu\"] }",
        ),
        (
            "tasmota",
            "1",
            "http = { url = \"http://plug.lab\", preset = \"tasmota\", password = { env = \"P\" } }",
        ),
        ("shelly", "0", "http = { url = \"http://plug.lab:8080/\", preset = \"shelly\" }"),
        (
            "web",
            "a",
            "http = { url = \"https://[fd00::1]/x\", set = \"/{outlet}/{state}\", insecure = true }",
        ),
        ("daemon", "3", "pdudaemon = { url = \"http://localhost:16421\", hostname = \"pdu1\" }"),
        ("lcus", "1", "relay = { port = \"/dev/ttyUSB0\", protocol = \"lcus\" }"),
        ("numato", "A", "relay = { port = \"/dev/ttyACM0\", protocol = \"numato\", baud = 19200 }"),
        ("modbus", "7", "modbus = { address = \"10.0.0.1\" }"),
        ("rtu", "007", "modbus = { port = \"/dev/ttyS1\", parity = \"even\", unit = 3 }"),
        ("apc", "3", "snmp = { address = \"pdu.lab\", preset = \"apc\" }"),
        (
            "v3",
            "1.3",
            "snmp = { address = \"pdu.lab:1161\", preset = \"raritan\", user = \"u\", auth_password = { file = \"~/a\" }, privacy_password = { file = \"/b\" } }",
        ),
        (
            "bmc",
            "1",
            "redfish = { url = \"https://bmc.lab\", user = \"u\", password = { env = \"P\" } }",
        ),
        ("ipmi", "", "ipmi = { address = \"bmc.lab\", user = \"u\", password = { env = \"P\" } }"),
        ("gpio", "17", "gpio = { chip = \"/dev/gpiochip0\", active_low = true }"),
        ("hub", "2", "usb_hub = { hub = \"1-1.4\" }"),
        ("me", "bench-3", "manual = { hint = \"under the desk\" }"),
    ];
    let mut text = "version = 1\n".to_owned();
    for (name, outlet, driver) in devices {
        text += &format!("[[power]]\nname = \"{name}\"\n{driver}\n");
        let outlet =
            if outlet.is_empty() { String::new() } else { format!(", outlet = \"{outlet}\"") };
        text += &place(name, &format!("{{ device = \"{name}\"{outlet} }}"));
    }
    text
}

fn driver(rig: &Rig, name: &str) -> PowerDriver {
    rig.power.iter().find(|device| device.name.as_str() == name).unwrap().driver.clone()
}

#[test]
fn every_kind_of_device_is_read() {
    let rig = parse(&[("rig.toml", &every_kind())]).unwrap_or_else(|p| panic!("{}", p[0]));
    assert_eq!((rig.power.len(), rig.places.len()), (16, 16));
    let kinds: std::collections::BTreeSet<_> = rig.power.iter().map(|d| d.driver.kind()).collect();
    assert_eq!(kinds, PowerDriver::KINDS.iter().copied().collect());
    for device in &rig.power {
        assert_eq!(device.off_time, Duration::from_secs(2));
        // What kind() says is the key in the file.
        assert!(every_kind().contains(&format!("\n{} = ", device.driver.kind())));
        let json = serde_json::to_value(&device.driver).unwrap();
        assert!(json.get(device.driver.kind()).is_some(), "{json}");
    }
    let PowerDriver::Http(tasmota) = driver(&rig, "tasmota") else { panic!() };
    assert_eq!(
        tasmota.set.path,
        "/cm?user={user}&password={password}&cmnd=Power{outlet}%20{state}"
    );
    assert_eq!(tasmota.user.as_deref(), Some("admin"));
    let PowerDriver::Http(web) = driver(&rig, "web") else { panic!() };
    assert_eq!(web.url.to_string(), "https://[fd00::1]:443/x");
    assert_eq!((web.status, web.tls), (None, TlsTrust::Anything));
    let PowerDriver::Snmp(v3) = driver(&rig, "v3") else { panic!() };
    assert_eq!((v3.set_values, v3.read_values), ((1, 0), (7, 8)));
    assert!(matches!(v3.security, SnmpSecurity::User { auth: Some((SnmpAuth::Sha256, _)), .. }));
    let PowerDriver::Modbus(tcp) = driver(&rig, "modbus") else { panic!() };
    assert_eq!(tcp.link, ModbusLink::Tcp("10.0.0.1:502".to_owned()));
    assert_eq!(rig.place("rtu").unwrap().power.as_ref().unwrap().outlet, "7");
}

#[test]
fn other_keys_change_what_a_preset_knows() {
    let rig = every_kind().replace(
        "preset = \"shelly\" }",
        "preset = \"shelly\", method = \"POST\", body = '{\"id\":{outlet},\"on\":{state}}' }",
    );
    let rig =
        rig.replace(r#"'{"id":{outlet},"on":{state}}'"#, r#"'{{"id":{outlet},"on":{state}}}'"#);
    let rig = parse(&[("rig.toml", &rig)]).unwrap_or_else(|p| panic!("{}", p[0]));
    let known = parse(&[("rig.toml", &every_kind())]).unwrap_or_else(|p| panic!("{}", p[0]));
    let set = |rig: &Rig| match driver(rig, "shelly") {
        PowerDriver::Http(http) => http.set.clone(),
        other => panic!("{other:?}"),
    };
    let (changed, preset) = (set(&rig), set(&known));
    assert_eq!(changed.path, preset.path);
    assert_eq!(changed.method, HttpMethod::Post);
    let body = r#"{{"id":{outlet},"on":{state}}}"#;
    assert_eq!((changed.body.as_deref(), preset.body), (Some(body), None));
}

#[test]
fn the_guide_has_a_row_for_every_kind() {
    let guide = include_str!("../../../guide/power.md");
    for kind in PowerDriver::KINDS {
        assert!(guide.contains(&format!("\n| `{kind}` ")), "guide/power.md lacks {kind}");
    }
}

#[test]
fn slips_are_found_in_their_place() {
    for (good, bad, check, caret) in [
        ("[\"pdu\", \"{outlet}\", \"{state}\"]", "[\"pdu\"]", "rig::power-command", "[\"pdu\"]"),
        (
            "\"{outlet}\", \"{state}\"]",
            "\"{outled}\", \"{state}\"]",
            "rig::power-template",
            "\"{outled}\"",
        ),
        ("\"{state}\"]", "\"{state}{password}\"]", "rig::power-command", "\"{state}{password}\""),
        ("preset = \"tasmota\"", "preset = \"tasmoto\"", "document::unknown-word", "\"tasmoto\""),
        ("\"http://plug.lab\"", "\"plug.lab\"", "rig::power-address", "\"plug.lab\""),
        ("\"/{outlet}/{state}\"", "\"/{outlet}\"", "rig::power-http", "\"/{outlet}\""),
        (
            "set = \"/{outlet}/{state}\", ",
            "",
            "rig::power-http",
            "{ url = \"https://[fd00::1]/x\", insecure = true }",
        ),
        ("insecure = true", "insecure = true, ca = \"/a\"", "rig::power-trust", "\"/a\""),
        ("\"/dev/ttyUSB0\"", "\"ttyUSB0\"", "rig::power-port", "\"ttyUSB0\""),
        ("\"lcus\" }", "\"lcsu\" }", "document::unknown-word", "\"lcsu\""),
        ("19200", "1", "rig::power-baud", "1"),
        ("address = \"10.0.0.1\"", "unit = 2", "rig::power-modbus", "{ unit = 2 }"),
        (
            "address = \"10.0.0.1\"",
            "address = \"10.0.0.1:x\"",
            "rig::power-address",
            "\"10.0.0.1:x\"",
        ),
        ("preset = \"apc\"", "set = \"1.3.6.1\"", "rig::power-snmp", "\"1.3.6.1\""),
        ("preset = \"apc\"", "set = \"1.3.x.{outlet}\"", "rig::power-snmp", "\"1.3.x.{outlet}\""),
        (
            "preset = \"apc\"",
            "preset = \"apc\", user = \"x\", version = \"1\"",
            "rig::power-snmp",
            "\"x\"",
        ),
        ("auth_password = { file = \"~/a\" }, ", "", "rig::power-snmp", "{ file = \"/b\" }"),
        (
            "user = \"u\", password = { env = \"P\" } }\n[[place]]\nname = \"bmc\"",
            "password = { env = \"P\" } }\n[[place]]\nname = \"bmc\"",
            "rig::power-user",
            "{ env = \"P\" }",
        ),
        ("\"/dev/gpiochip0\"", "\"gpiochip0\"", "rig::power-chip", "\"gpiochip0\""),
        ("\"1-1.4\"", "\"../x\"", "rig::power-hub", "\"../x\""),
        (
            "hub = \"1-1.4\" }",
            "hub = \"1-1.4\" }\nmin_interval = \"2m\"",
            "rig::power-time",
            "\"2m\"",
        ),
        ("usb_hub = { hub = \"1-1.4\" }", "", "rig::power-kind", "[[power]]"),
        ("usb_hub = { hub", "manual = {}\nusb_hub = { hub", "rig::power-kind", "[[power]]"),
        ("name = \"hub\"\nusb", "name = \"gpio\"\nusb", "rig::power-twice", "\"gpio\""),
        // The place.
        ("device = \"apc\"", "device = \"apx\"", "rig::power-device", "\"apx\""),
        ("\"hub\", outlet = \"2\"", "\"hub\", outlet = \"32\"", "rig::power-outlet", "\"32\""),
        (
            "\"cmd\", outlet = \"plug-1\"",
            "\"cmd\", outlet = \"-rf\"",
            "rig::power-outlet",
            "\"-rf\"",
        ),
        ("\"hub\", outlet = \"2\"", "\"hub\"", "rig::power-outlet", "{ device = \"hub\" }"),
        ("device = \"ipmi\"", "device = \"ipmi\", outlet = \"1\"", "rig::power-outlet", "\"1\""),
        (
            "device = \"ipmi\"",
            "device = \"ipmi\", sense = { device = \"hub\" }",
            "rig::power-outlet",
            "{ device = \"hub\" }",
        ),
        (
            "device = \"ipmi\"",
            "device = \"ipmi\", sense = { device = \"ipmi\" }",
            "rig::power-sense",
            "\"ipmi\"",
        ),
        (
            "device = \"ipmi\"",
            "device = \"ipmi\", sense = \"consol\"",
            "document::unknown-word",
            "\"consol\"",
        ),
        (
            "device = \"ipmi\"",
            "device = \"ipmi\", sense = \"console\"",
            "rig::power-sense",
            "\"console\"",
        ),
        ("device = \"ipmi\"", "device = \"ipmi\", off_time = \"0s\"", "rig::power-time", "\"0s\""),
    ] {
        let text = every_kind();
        assert!(text.contains(good), "{good}");
        let found = problems(&text.replacen(good, bad, 1));
        assert!(found.contains(&(check, caret.to_owned())), "{bad}: {found:?}");
    }
    let device = problems(&format!("version = 1\n{}", place("a", "{ device = \"x\" }")));
    assert_eq!(device, [("rig::power-device", "\"x\"".to_owned())]);
    let emulated = "version = 1\n[[place]]\nname = 'a'\nboard = 'microbit'\nemulator = {}\n\
                    power = { device = 'x' }\n[[power]]\nname = 'x'\nmanual = {}\n";
    assert_eq!(problems(emulated)[0].0, "rig::power-emulated");
}

#[test]
fn a_secret_in_the_file_is_refused_and_never_shown() {
    for (good, bad) in [
        (
            "password = { env = \"P\" } }\n[[place]]\nname = \"ipmi\"",
            "password = \"hunter2!\" }\n[[place]]\nname = \"ipmi\"",
        ),
        ("preset = \"apc\"", "preset = \"apc\", community = \"hunter2!\""),
        (
            "password = { env = \"P\" } }\n[[place]]\nname = \"ipmi\"",
            "password = { env = \"hunter2!\" } }\n[[place]]\nname = \"ipmi\"",
        ),
        ("http://plug.lab\"", "http://me:hunter2!@plug.lab\""),
    ] {
        let text = every_kind();
        assert!(text.contains(good), "{good}");
        let problems = parse(&[("rig.toml", &text.replacen(good, bad, 1))]).unwrap_err();
        let problem = problems[0].list.iter().find(|p| p.check == "rig::secret").unwrap();
        assert!(problem.help.contains("env = "), "{problem:?}");
        let shown = format!("{problems:?} {}", problems[0]);
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn a_place_may_stand_before_its_device_and_in_another_file() {
    let first = format!("version = 1\n{}", place("a", "{ device = \"x\", outlet = \"1\" }"));
    let second = "version = 1\n[[power]]\nname = \"x\"\nusb_hub = { hub = \"usb1\" }\n";
    assert!(parse(&[("a", &first), ("b", second)]).is_ok());
    let twice = parse(&[("a", second), ("b", second)]).unwrap_err();
    assert!(twice[0].to_string().contains("b is also declared in a "), "{}", twice[0]);
}

#[test]
fn places_on_one_outlet_know_of_each_other() {
    let mut text = "version = 1\n[[power]]\nname = \"p\"\nusb_hub = { hub = \"1-1\" }\n\
                    [[power]]\nname = \"q\"\nusb_hub = { hub = \"1-2\" }\n"
        .to_owned();
    for (name, device, outlet) in
        [("a", "p", "1"), ("b", "p", "2"), ("c", "p", "01"), ("d", "q", "1"), ("e", "p", "1")]
    {
        text += &place(name, &format!("{{ device = \"{device}\", outlet = \"{outlet}\" }}"));
        text += &format!("hub = \"h-{device}\"\n");
    }
    text += "[[place]]\nname = \"f\"\nboard = \"microbit\"\nprobe = { selector = \"1:2\" }\n";
    let rig = parse(&[("rig.toml", &text)]).unwrap_or_else(|p| panic!("{}", p[0]));
    let names = |list: Vec<crate::PlaceName>| {
        list.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    for (name, also, neighbours) in
        [("a", "c e", "b c e"), ("b", "", "a c e"), ("c", "a e", "a b e"), ("d", "", "")]
    {
        let place = rig.place(name).unwrap();
        assert_eq!(names(rig.blast_radius(place).unwrap().also), also, "{name}");
        assert_eq!(names(rig.hub_neighbours(place)), neighbours, "{name}");
    }
    let bare = rig.place("f").unwrap();
    assert_eq!((rig.blast_radius(bare), rig.hub_neighbours(bare)), (None, vec![]));
}

#[test]
fn addresses_are_taken_apart() {
    let parts = |text: &str| {
        let address: WebAddress = text.parse().unwrap();
        (address.tls, address.host, address.port, address.base)
    };
    assert_eq!(parts("http://a"), (false, "a".into(), 80, String::new()));
    assert_eq!(parts("https://a.b:8443/x/y/"), (true, "a.b".into(), 8443, "/x/y".into()));
    for (text, error) in [
        ("ftp://a", WebAddressError::Scheme),
        ("http://u@a", WebAddressError::Credentials),
        ("http://", WebAddressError::Host),
        ("http://a:0", WebAddressError::Host),
        ("http://a:99999", WebAddressError::Host),
        ("http://::1", WebAddressError::Host),
        ("http://-a", WebAddressError::Host),
        ("http://a/x?y", WebAddressError::More),
        ("http://a/x y", WebAddressError::More),
    ] {
        assert_eq!(text.parse::<WebAddress>(), Err(error), "{text}");
    }
}

#[test]
fn outlets_hide_nothing() {
    for bad in ["", "-1", "a b", "a\n", "a;b", "\u{202e}", "$(x)", &"x".repeat(129)] {
        assert!(!OutletRule::Word.fits(bad), "{bad:?}");
    }
    assert!(OutletRule::Word.fits("/redfish/v1/Systems/437XR1138R2"));
    for (rule, good, bad) in [
        (OutletRule::Numbers(1..=8), "8", "9"),
        (OutletRule::Numbers(1..=8), "1", "+1"),
        (OutletRule::Dotted, "1.3", "1..3"),
        (OutletRule::Dotted, "0", "4294967296"),
        (OutletRule::Channel, "V", "W"),
        (OutletRule::Channel, "31", "A1"),
        (OutletRule::One, "", "1"),
    ] {
        assert!(rule.fits(good) && !rule.fits(bad), "{rule:?}");
    }
}
