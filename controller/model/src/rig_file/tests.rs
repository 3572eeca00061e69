//! Tests of reading rig files.

use std::time::Duration;

use super::*;
use crate::debug::WireProtocol;
use crate::flasher::{VolumeChoice, VolumeFormat};
use crate::profile::tests::{assert_sound, shipped};
use crate::profile::{Deploy, FlashCommand};

fn parse(files: &[(&str, &str)]) -> Result<Rig, Vec<crate::Problems>> {
    let texts = files.iter().map(|&(origin, text)| RigText { origin, text });
    Rig::parse(texts, &shipped())
}

/// Returns check and caret of each problem of one file.
fn problems(text: &str) -> Vec<(&'static str, String)> {
    let problems = parse(&[("rig.toml", text)]).unwrap_err().remove(0);
    assert_sound(&problems);
    let caret = |span: &Option<std::ops::Range<usize>>| {
        span.clone().map_or(String::new(), |span| problems.source[span].to_owned())
    };
    problems.list.iter().map(|p| (p.check, caret(&p.span))).collect()
}

const MAIN: &str = r#"
version = 1
[runs]
dir = "runs"
keep = "30d"
keep_size = "2G"
[[place]]
name = "bench-1"
board = "microbit"
[place.emulator]
args = ["-icount", "shift=6"]
"#;

const DROP_IN: &str =
    "version = 1\n[[place]]\nname = 'bench-2'\nboard = 'microbit'\nemulator = {}\n";

#[test]
fn drop_ins_add_places() {
    let rig = parse(&[("rig.toml", MAIN), ("rig.toml.d/a.toml", DROP_IN)]).unwrap();
    assert_eq!(rig.runs.keep, Some(Duration::from_secs(30 * 86_400)));
    assert_eq!(rig.runs.origin.as_deref(), Some("rig.toml"));
    assert_eq!(rig.place("bench-2").unwrap().origin, "rig.toml.d/a.toml");
    let emulator = rig.place("bench-1").unwrap().emulator.as_ref().unwrap();
    assert_eq!(emulator.args, ["-icount", "shift=6"]);
    assert_eq!(rig.place("bench-3").unwrap_err().help, "did you mean `bench-2`?");
}

#[test]
fn what_is_kept_between_runs_has_limits_that_fit_one_another() {
    let usual = parse(&[("rig.toml", MAIN)]).unwrap().capture;
    assert_eq!(usual, CaptureLimits::default());
    let text = "version = 1\n[capture]\nfile_size = \"100M\"\nkeep = \"1d\"\n";
    let limits = parse(&[("rig.toml", text)]).unwrap().capture;
    let wanted = CaptureLimits {
        file_size: 100 << 20,
        keep_size: 400 << 20,
        keep: Duration::from_secs(86_400),
        origin: Some("rig.toml".to_owned()),
        ..CaptureLimits::default()
    };
    assert_eq!(limits, wanted);
    let bad = "version = 1\n[capture]\nfile_size = \"1K\"\nfile_age = \"1s\"\n\
               keep_size = \"512\"\nkeep = \"9999d\"\n";
    let wanted = [
        ("rig::capture-age", "\"1s\""),
        ("rig::capture-age", "\"9999d\""),
        ("rig::capture-size", "\"1K\""),
        ("rig::capture-keep-size", "\"512\""),
    ];
    let mut seen = problems(bad);
    seen.sort();
    let mut wanted = wanted.map(|(check, caret)| (check, caret.to_owned()));
    wanted.sort();
    assert_eq!(seen, wanted);
    let twice = "version = 1\n[capture]\n";
    let text = parse(&[("a", twice), ("b", twice)]).unwrap_err()[0].to_string();
    assert!(text.contains("b says how much is kept between runs, but a does so"), "{text}");
}

#[test]
fn a_place_declared_twice_names_both_files() {
    let files = [("rig.toml", DROP_IN), ("rig.toml.d/b.toml", DROP_IN)];
    let problems = parse(&files).unwrap_err();
    assert_eq!(problems.len(), 1);
    let text = problems[0].to_string();
    assert!(text.contains("rig.toml.d/b.toml is also declared in rig.toml "), "{text}");
    let runs = "version = 1\n[runs]\n";
    let text = parse(&[("a", runs), ("b", runs)]).unwrap_err()[0].to_string();
    assert!(text.contains("b says where runs are kept, but a does so already"), "{text}");
}

#[test]
fn what_is_learnt_has_usual_values_and_bounds() {
    let of = |text: &str| parse(&[("a", &format!("version = 1\n{text}"))]);
    let usual = of("").unwrap().knowledge;
    assert!(usual.enabled);
    let said = of("[knowledge]\nenabled = false\nrepeats = 5\n").unwrap().knowledge;
    assert_eq!((said.enabled, said.repeats, said.threshold), (false, 5, usual.threshold));
    for bad in ["repeats = 1", "threshold = 0", "most_units = 5"] {
        let text = of(&format!("[knowledge]\n{bad}\n")).unwrap_err()[0].to_string();
        assert!(text.contains("cannot be"), "{bad}: {text}");
    }
    let twice = "version = 1\n[knowledge]\n";
    let text = parse(&[("a", twice), ("b", twice)]).unwrap_err()[0].to_string();
    assert!(text.contains("b says what is learnt, but a does so"), "{text}");
}

#[test]
fn every_file_is_reported() {
    let files = [("a", "version = 2"), ("b", DROP_IN), ("c", "x"), ("d", "version = 1\ny = 1")];
    let problems = parse(&files).unwrap_err();
    assert_eq!(problems.iter().map(|p| p.origin.as_str()).collect::<Vec<_>>(), ["a", "c", "d"]);
}

#[test]
fn slips_are_found_in_their_place() {
    for (good, bad, check, caret) in [
        ("name = \"bench-1\"", "name = \"a/b\"", "document::bad-name", "\"a/b\""),
        ("\"microbit\"", "\"microbat\"", "rig::unknown-board", "\"microbat\""),
        ("\"-icount\"", "\"-qmp\"", "rig::args", "\"-qmp\""),
        ("\"shift=6\"", "\"{port:x}\"", "rig::placeholder", "\"{port:x}\""),
        ("[place.emulator]", "[place.emulater]", "document::unknown-key", "emulater"),
        ("keep = \"30d\"", "keep = \"0s\"", "rig::runs-keep", "\"0s\""),
        ("keep_size = \"2G\"", "keep_size = 5", "rig::runs-keep-size", "5"),
        ("dir = \"runs\"", "dir = \"\"", "rig::runs-dir", "\"\""),
    ] {
        let found = problems(&MAIN.replacen(good, bad, 1));
        assert!(found.contains(&(check, caret.to_owned())), "{bad}: {found:?}");
    }
    // A kind of resource that this version does not know.
    let robot = problems(&DROP_IN.replace("emulator = {}", "robot = {}"));
    assert_eq!(robot[0], ("rig::parts", "[[place]]".to_owned()));
    assert_eq!(robot[1], ("document::unknown-key", "robot".to_owned()));
}

const REAL: &str = r#"
version = 1
[[place]]
name = "bench-3"
board = "microbit"
[place.probe]
selector = "0d28:0204:9900"
chip = "nRF51822_xxAB"
speed_khz = 4000
protocol = "swd"
under_reset = true
port = "/dev/ttyACM0"
"#;

#[test]
fn a_real_board_hangs_on_a_probe() {
    let rig = parse(&[("rig.toml", REAL)]).unwrap_or_else(|p| panic!("{}", p[0]));
    let probe = rig.places[0].probe.as_ref().unwrap();
    assert_eq!(probe.serial(), Some("9900"));
    assert_eq!((probe.speed_khz, probe.protocol), (Some(4000), Some(WireProtocol::Swd)));
    assert!(probe.under_reset);
    for good in ["1366:0101", "1366:0101:", "1366:1:000 ".trim(), "303a:1001-2:7C:DF:A1"] {
        let text = REAL.replace("0d28:0204:9900", good);
        assert!(parse(&[("rig.toml", &text)]).is_ok(), "{good}");
    }
}

#[test]
fn slips_of_a_real_place_are_found_in_their_place() {
    for (good, bad, check, caret) in [
        ("\"0d28:0204:9900\"", "\"0d28\"", "rig::probe-selector", "\"0d28\""),
        ("\"0d28:0204:9900\"", "\"0d28:xyz\"", "rig::probe-selector", "\"0d28:xyz\""),
        ("\"0d28:0204:9900\"", "\"0d28:0204:a b\"", "rig::probe-selector", "\"0d28:0204:a b\""),
        ("\"0d28:0204:9900\"", "\"0d28:0204-x\"", "rig::probe-selector", "\"0d28:0204-x\""),
        ("selector = \"0d28:0204:9900\"", "", "document::missing-key", "[place.probe]"),
        ("\"nRF51822_xxAB\"", "\"\"", "rig::probe-chip", "\"\""),
        ("4000", "0", "rig::probe-speed", "0"),
        ("\"swd\"", "\"swdd\"", "document::unknown-word", "\"swdd\""),
        ("\"/dev/ttyACM0\"", "\"ttyACM0\"", "rig::probe-port", "\"ttyACM0\""),
        ("[place.probe]", "emulator = {}\n[place.probe]", "rig::parts", "[place.probe]"),
        ("\"microbit\"", "\"microbat\"", "rig::unknown-board", "\"microbat\""),
    ] {
        assert!(REAL.contains(good), "{good}");
        let found = problems(&REAL.replacen(good, bad, 1));
        assert_eq!(found, [(check, caret.to_owned())], "{bad}");
    }
    // A board whose chip is named nowhere.
    let text = REAL.replace("chip = \"nRF51822_xxAB\"", "").replace("microbit", "riscv32-virt");
    assert_eq!(problems(&text), [("rig::probe-chip", "[place.probe]".to_owned())]);
}

#[test]
fn a_flasher_gets_from_the_place_what_it_needs() {
    let mut profiles = shipped();
    let profile = profiles.iter_mut().find(|p| p.id.as_str() == "microbit").unwrap();
    let argv = ["f", "{image}", "--id={serial}", "{port}"].map(str::to_owned).to_vec();
    profile.deploy = Some(Deploy::Command(FlashCommand::new(argv)));
    let parse = |text: &str| Rig::parse([RigText { origin: "rig.toml", text }], &profiles);
    assert!(parse(REAL).is_ok());
    let text = REAL.replace(":9900", "").replace("port = \"/dev/ttyACM0\"", "");
    let problems = parse(&text).unwrap_err();
    let checks: Vec<_> = problems[0].list.iter().map(|p| p.check).collect();
    assert_eq!(checks, ["rig::probe-port", "rig::probe-serial"]);
}

/// Returns a rig of one place without a probe, with a line for it.
fn bare(line: &str) -> String {
    format!(
        "version = 1\n[[power]]\nname = \"pdu\"\n[power.command]\n\
         set = [\"pdu\", \"{{outlet}}\", \"{{state}}\"]\n\
         [[place]]\nname = \"esp\"\nboard = \"microbit\"\n{line}\n\
         [[place.console]]\nname = \"uart0\"\ntty = \"/dev/ttyUSB0\"\n"
    )
}

/// Each line is `key = value`; the caret is part of it, or the whole value where it is empty.
fn slips_of_a_bare_place(slips: &[(&str, &'static str, &str)]) {
    let mut wrong = Vec::new();
    for &(line, check, caret) in slips {
        let (_, value) = line.split_once(" = ").unwrap();
        let caret = if caret.is_empty() { value } else { caret };
        let found = problems(&bare(line));
        if found != [(check, caret.to_owned())] {
            wrong.push(format!("{line}: {found:?}, expected {check} at {caret}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_board_without_a_probe_is_reset_by_one_of_four_parts() {
    let power = "power = { device = \"pdu\", outlet = \"1\" }\nreset = \"power\"";
    for (line, wanted) in [
        (power, "Power"),
        ("reset = { console = \"uart0\", lines = \"dtr\" }", "Dtr"),
        ("reset = { device = \"pdu\", outlet = \"2\", off_time = \"50ms\" }", "50ms"),
        ("reset = { command = [\"press\", \"reset\"], timeout = \"1s\" }", "timeout: 1s"),
    ] {
        let rig = parse(&[("rig.toml", &bare(line))]).unwrap_or_else(|p| panic!("{}", p[0]));
        let reset = format!("{:?}", rig.places[0].reset);
        assert!(reset.contains(wanted), "{line}: {reset}");
    }
}

#[test]
fn slips_of_a_reset_are_found_in_their_place() {
    slips_of_a_bare_place(&[
        ("reset = \"probe\"", "rig::reset", ""),
        ("reset = \"power\"", "rig::reset", ""),
        ("reset = \"button\"", "document::unknown-word", ""),
        ("reset = {}", "rig::reset", ""),
        ("reset = { console = \"uart0\" }", "rig::reset", ""),
        ("reset = { lines = \"rts\" }", "rig::reset", ""),
        ("reset = { console = \"uart1\", lines = \"rts\" }", "rig::reset-console", "\"uart1\""),
        ("reset = { console = \"uart0\", command = [\"x\"] }", "rig::reset", ""),
        ("reset = { device = \"pdo\", outlet = \"1\" }", "rig::power-device", "\"pdo\""),
        ("reset = { command = [] }", "rig::reset-command", "[]"),
        ("reset = { command = [\"./x\"] }", "rig::reset-command", "\"./x\""),
        ("reset = { command = [\"x\", \"a\\u0000\"] }", "rig::reset-command", "\"a\\u0000\""),
        ("reset = { command = [\"x\"], timeout = \"1h\" }", "rig::reset-timeout", "\"1h\""),
        ("reset = { timeout = \"1s\" }", "rig::reset-command", ""),
    ]);
    let found = problems(&bare("reset = { console = \"uart0\", lines = \"cts\" }"));
    assert!(found.contains(&("document::unknown-word", "\"cts\"".to_owned())), "{found:?}");
    let socket = bare("reset = { console = \"uart0\", lines = \"rts\" }")
        .replace("tty = \"/dev/ttyUSB0\"", "unix = \"/run/uart\"");
    assert_eq!(problems(&socket), [("rig::reset-console", "\"uart0\"".to_owned())]);
    let probed = REAL.replace("[place.probe]", "reset = \"power\"\n[place.probe]");
    assert_eq!(problems(&probed), [("rig::reset", "\"power\"".to_owned())]);
    let emulated = DROP_IN.replace("emulator = {}", "emulator = {}\nreset = \"probe\"");
    assert_eq!(problems(&emulated), [("rig::reset-emulated", "\"probe\"".to_owned())]);
}

#[test]
fn slips_of_a_flasher_are_found_in_their_place() {
    slips_of_a_bare_place(&[
        ("flasher = {}", "rig::flasher", ""),
        ("flasher = { command = [] }", "rig::flasher", "[]"),
        ("flasher = { command = [\"./f\", \"{image}\"] }", "rig::flasher", "\"./f\""),
        (
            "flasher = { command = [\"f\", \"{image}\", \"{imagine}\"] }",
            "rig::flasher",
            "\"{imagine}\"",
        ),
        ("flasher = { command = [\"f\", \"{image}\", \"{serial}\"] }", "rig::flasher", ""),
        (
            "flasher = { command = [\"f\", \"{image}\"], port = \"ttyUSB0\" }",
            "rig::flasher",
            "\"ttyUSB0\"",
        ),
        (
            "flasher = { command = [\"f\", \"{image}\"], timeout = \"0s\" }",
            "rig::flasher",
            "\"0s\"",
        ),
        ("flasher = { command = [\"f\", \"{image}\"], success_codes = [] }", "rig::flasher", "[]"),
        (
            "flasher = { command = [\"f\", \"{image}\"], progress_pattern = 'x' }",
            "rig::flasher",
            "'x'",
        ),
        ("flasher = { preset = \"avrdud\" }", "rig::flasher", "\"avrdud\""),
        ("flasher = { volume = \"a/b\" }", "rig::flasher", "\"a/b\""),
        ("flasher = { format = \"hex\" }", "rig::flasher", "\"hex\""),
        ("flasher = { volume = \"V\", format = \"bin\", family = 7 }", "rig::flasher", "7"),
        ("flasher = { volume = \"V\", success_codes = [0] }", "rig::flasher", "[0]"),
        ("flasher = { volume = \"V\", timeout = \"0s\" }", "rig::flasher", "\"0s\""),
        ("flasher = { volume = \"V\", port = \"/p\", touch = \"0s\" }", "rig::flasher", "\"0s\""),
        ("flasher = { command = [\"f\", \"{image}\"], touch = \"3s\" }", "rig::flasher", "\"3s\""),
        (
            "flasher = { command = [\"f\", \"{image}\"], verified_pattern = '(' }",
            "document::bad-pattern",
            "(",
        ),
    ]);
    // What belongs to a program is told so, and that there is none.
    let found = problems(&bare("flasher = { timeout = \"1s\" }"));
    assert!(found.contains(&("rig::flasher", "\"1s\"".to_owned())), "{found:?}");
    let emulated =
        DROP_IN.replace("emulator = {}", "emulator = {}\nflasher = { command = [\"f\"] }");
    let wanted = ("rig::flasher-emulated", "{ command = [\"f\"] }".to_owned());
    assert_eq!(problems(&emulated), [wanted]);
}

#[test]
fn an_emulated_place_may_choose_its_way_to_deploy() {
    let with = |deploy: &str| MAIN.replace("args = [\"-icount\", \"shift=6\"]", deploy);
    for (text, wanted) in [
        (with("deploy = \"probe\""), Some(EmulatorDeploy::Probe)),
        (with("deploy = \"loader\""), Some(EmulatorDeploy::Loader)),
        (with(""), None),
    ] {
        let rig = parse(&[("rig.toml", &text)]).unwrap();
        let emulator = rig.places[0].emulator.as_ref().unwrap();
        assert_eq!(emulator.deploy, wanted);
    }
    let found = problems(&with("deploy = \"prob\""));
    assert_eq!(found, [("document::unknown-word", "\"prob\"".to_owned())]);
    let no_chip = with("deploy = \"probe\"").replace("microbit", "riscv32-virt");
    assert_eq!(problems(&no_chip), [("rig::deploy", "\"probe\"".to_owned())]);
    let linux = with("deploy = \"loader\"").replace("microbit", "arm64-virt");
    assert_eq!(problems(&linux), [("rig::deploy", "\"loader\"".to_owned())]);
}

#[test]
fn without_a_rig_file_each_emulable_board_is_a_place() {
    let mut profiles = shipped();
    profiles[0].emulation = None;
    let rig = Rig::of_profiles(&profiles);
    assert_eq!(rig.places.len(), profiles.len() - 1);
    assert!(rig.place("microbit").is_ok());
    let text = DROP_IN.replace("microbit", profiles[0].id.as_str());
    let file = RigText { origin: "rig.toml", text: &text };
    let problems = Rig::parse([file], &profiles).unwrap_err();
    assert_eq!(problems[0].list[0].check, "rig::not-emulable");
}

const WIRED: &str = r#"
version = 1
[[place]]
name = "desk"
board = "microbit"
[place.probe]
selector = "0d28:0204"
[[place.console]]
name = "uart0"
tty = "/dev/ttyACM0"
"#;

#[test]
fn a_console_of_a_real_board_has_a_transport() {
    let rig = parse(&[("rig.toml", WIRED)]).unwrap();
    let place = &rig.places[0];
    let transport = place.console(&"uart0".parse().unwrap()).unwrap();
    assert_eq!(transport.end, Endpoint::Tty("/dev/ttyACM0".to_owned()));
    assert_eq!((transport.baud, transport.timeout), (None, None));
    assert_eq!(place.console(&"uart1".parse().unwrap()), None);
}

#[test]
fn slips_of_transports_are_found_in_their_place() {
    let text = |old: &str, new: &str| problems(&WIRED.replace(old, new));
    let found = |check, caret: &str| vec![(check, caret.to_owned())];
    assert_eq!(text("\"uart0\"", "\"uart7\""), found("rig::unknown-console", "\"uart7\""));
    let hosted = text("\"uart0\"", "\"semihosting\"");
    assert_eq!(hosted, found("rig::console-kind", "\"semihosting\""));
    let relative = text("\"/dev/ttyACM0\"", "\"ttyACM0\"");
    assert_eq!(relative, found("rig::console-tty", "\"ttyACM0\""));
    let nowhere = text("tty = \"/dev/ttyACM0\"", "");
    assert_eq!(nowhere, found("rig::console-transport", "\"uart0\""));
    let again = format!("{WIRED}[[place.console]]\nname = \"uart0\"\ntty = \"/dev/ttyACM0\"\n");
    let checks: Vec<_> = problems(&again).into_iter().map(|(check, _)| check).collect();
    assert_eq!(checks, ["rig::console-twice", "rig::console-tty"]);
    let emulated = text("[place.probe]\nselector = \"0d28:0204\"", "[place.emulator]");
    assert_eq!(emulated.iter().map(|(check, _)| *check).collect::<Vec<_>>(), ["rig::console"]);
}

#[test]
fn a_transport_ends_at_one_of_five_kinds_of_things() {
    let end = |line: &str| {
        let text = WIRED.replace("tty = \"/dev/ttyACM0\"", line);
        let rig = parse(&[("rig.toml", &text)]).unwrap();
        rig.places[0].consoles[0].clone()
    };
    let transport = end("rfc2217 = 'lab-1.example:3001'\nbaud = 74880\ntimeout = '1m'");
    assert_eq!(transport.end, Endpoint::Rfc2217("lab-1.example:3001".to_owned()));
    assert_eq!((transport.baud, transport.timeout), (Some(74_880), Some(Duration::from_secs(60))));
    assert_eq!(end("tcp = '[::1]:20'").end, Endpoint::Tcp("[::1]:20".to_owned()));
    assert_eq!(end("unix = '/run/x'").end, Endpoint::Unix("/run/x".to_owned()));
    let transport = end("command = ['ssh', '-T', 'lab 1']\nready = 'is open'");
    let argv = ["ssh", "-T", "lab 1"].map(str::to_owned).to_vec();
    assert_eq!(
        (transport.end, transport.ready.as_deref()),
        (Endpoint::Command(argv), Some("is open"))
    );

    let found = |line: &str| problems(&WIRED.replace("tty = \"/dev/ttyACM0\"", line));
    for (line, check, caret) in [
        ("tcp = 'host'", "rig::console-address", "'host'"),
        ("tcp = ':1'", "rig::console-address", "':1'"),
        ("tcp = 'host:0'", "rig::console-address", "'host:0'"),
        ("tcp = 'host:65536'", "rig::console-address", "'host:65536'"),
        ("tcp = 'host:+1'", "rig::console-address", "'host:+1'"),
        ("tcp = '::1:20'", "rig::console-address", "'::1:20'"),
        ("rfc2217 = 'ho st:1'", "rig::console-address", "'ho st:1'"),
        ("unix = 'x'", "rig::console-unix", "'x'"),
        ("command = []", "rig::console-command", "[]"),
        ("command = ['ssh lab-1']", "rig::console-command", "['ssh lab-1']"),
        ("command = ['./ssh']", "rig::console-command", "['./ssh']"),
        ("command = ['ssh', \"\\u0000\"]", "rig::console-command", "['ssh', \"\\u0000\"]"),
        ("command = ['ssh']\nbaud = 9600", "rig::console-baud", "9600"),
        ("command = ['ssh']\nready = ''", "rig::console-ready", "''"),
        ("tty = '/dev/x'\nready = 'x'", "rig::console-ready", "'x'"),
        ("tty = '/dev/x'\ntcp = 'h:1'", "rig::console-transport", "'h:1'"),
        ("tcp = 'h:1'\nbaud = 9600", "rig::console-baud", "9600"),
        ("tty = '/dev/x'\nbaud = 0", "rig::console-baud", "0"),
        ("tty = '/dev/x'\ntimeout = '11m'", "rig::console-timeout", "'11m'"),
    ] {
        assert_eq!(found(line), [(check, caret.to_owned())], "{line}");
    }
}

#[test]
fn a_place_is_reached_at_addresses() {
    let with = |line: &str| WIRED.replace("[place.probe]", &format!("{line}\n[place.probe]"));
    let rig = parse(&[("rig.toml", &with("network = { ssh = 'lab-1:22' }"))]).unwrap();
    let wanted = Network { ssh: Some("lab-1:22".to_owned()), tcp: None };
    assert_eq!(rig.places[0].network, wanted);
    for (line, caret) in [
        ("network = { tcp = 'lab-1' }", "'lab-1'"),
        ("network = { ssh = 'lab-1:22', tcp = ':1' }", "':1'"),
        ("network = {}", "{}"),
    ] {
        assert_eq!(problems(&with(line)), [("rig::network", caret.to_owned())], "{line}");
    }
    let emulated = "version = 1\n[[place]]\nname = 'a'\nboard = 'microbit'\nemulator = {}\n\
                    network = { tcp = 'h:1' }\n";
    assert_eq!(problems(emulated), [("rig::network", "{ tcp = 'h:1' }".to_owned())]);
}

#[test]
fn two_places_that_claim_one_transport_are_both_named() {
    let other = WIRED.replace("\"desk\"", "\"bench\"").replace("0d28:0204", "0d28:0204:9");
    let problems = parse(&[("rig.toml", WIRED), ("rig.toml.d/b.toml", &other)]).unwrap_err();
    let problem = &problems[0].list[0];
    assert_eq!(problem.check, "rig::transport-twice");
    let words = "serial port /dev/ttyACM0 belongs to place \"desk\" at rig.toml:10";
    assert_eq!(
        (problem.message.as_str(), problems[0].origin.as_str()),
        (words, "rig.toml.d/b.toml")
    );
    assert_eq!(&other[problem.span.clone().unwrap()], "\"/dev/ttyACM0\"");
    // The same within one file, and with the port of another place's flasher.
    let both = format!("{WIRED}{}", other.replace("version = 1\n", ""));
    assert_eq!(self::problems(&both), [("rig::transport-twice", "\"/dev/ttyACM0\"".to_owned())]);
    let flasher = other.replace("[[place.console]]\nname = \"uart0\"\ntty", "port");
    let problems = parse(&[("a", WIRED), ("b", &flasher)]).unwrap_err();
    assert_eq!(problems[0].list[0].check, "rig::transport-twice");
    // A program is started for each place by itself.
    let program = |rig: &str| rig.replace("tty = \"/dev/ttyACM0\"", "command = [\"ssh\", \"lab\"]");
    assert!(parse(&[("a", &program(WIRED)), ("b", &program(&other))]).is_ok());
    // A flasher may share the port of its own board.
    let own = WIRED.replace("selector", "port = \"/dev/ttyACM0\"\nselector");
    assert!(parse(&[("rig.toml", &own)]).is_ok());
}

/// A rig of two places, each with these lines.
fn two_places(first: &str, second: &str) -> String {
    format!(
        "version = 1\n[[place]]\nname = \"a\"\nboard = \"microbit\"\n{first}\n\
         [[place]]\nname = \"b\"\nboard = \"microbit\"\n{second}\n"
    )
}

#[test]
fn two_places_that_claim_one_probe_or_volume_are_both_named() {
    let probe = |selector: &str| format!("probe = {{ selector = \"{selector}\" }}");
    for (first, second) in [
        ("0d28:0204", "0d28:0204"),
        ("d28:204", "0D28:0204:"),
        ("0d28:0204:99ab", "0d28:0204:99AB"),
        ("20b7:9db1:unix:/run/a", "20b7:9db1:unix:/run/a"),
    ] {
        let text = two_places(&probe(first), &probe(second));
        let found = parse(&[("rig.toml", &text)]).unwrap_err();
        let problem = &found[0].list[0];
        assert_eq!(problem.check, "rig::probe-twice", "{first} {second}");
        assert!(problem.message.contains("belongs to place \"a\" at rig.toml:5"), "{problem:?}");
        let alike = second.trim_end_matches(':').matches(':').count() == 1;
        assert_eq!(problem.help.contains("of two alike"), alike, "{problem:?}");
        assert_eq!(&text[problem.span.clone().unwrap()], format!("\"{second}\""));
    }
    for (first, second) in [
        ("0d28:0204:1", "0d28:0204:2"),
        ("0403:6010-0:A", "0403:6010-1:A"),
        ("20b7:9db1:unix:/run/a", "20b7:9db1:unix:/run/A"),
    ] {
        assert!(parse(&[("rig.toml", &two_places(&probe(first), &probe(second)))]).is_ok());
    }
    let volume = |name: &str| format!("flasher = {{ volume = \"{name}\" }}");
    let found = problems(&two_places(&volume("MICROBIT"), &volume("MICROBIT")));
    assert_eq!(found, [("rig::volume-twice", "\"MICROBIT\"".to_owned())]);
    let paths = two_places(&volume("/media/a"), &volume("/media/b"));
    assert!(parse(&[("rig.toml", &paths)]).is_ok());
    // A volume that the profile names is that of each of its places.
    let mut board = shipped().into_iter().find(|p| p.id.as_str() == "microbit").unwrap();
    let volume = "BOOT".to_owned();
    let volume = VolumeChoice { volume, format: None, family: None, timeout: None, touch: None };
    board.deploy = Some(Deploy::Volume(volume.over(None)));
    let tty = |port: &str| format!("console = [{{ name = \"uart0\", tty = \"{port}\" }}]");
    let own = two_places(&tty("/dev/a"), &tty("/dev/b")).replace("microbit", board.id.as_str());
    let text = |text: &str| Rig::parse([RigText { origin: "r", text }], &[board.clone()]);
    let found = text(&own).unwrap_err();
    assert_eq!(found[0].list[0].check, "rig::volume-twice", "{}", found[0]);
    let other = own.replacen("console", "flasher = { preset = \"picotool\" }\nconsole", 1);
    assert!(text(&other).is_ok(), "{}", text(&other).unwrap_err()[0]);
}

#[test]
fn a_board_that_is_described_as_it_is_emulated_needs_no_chip_behind_a_probe() {
    let text = WIRED.replace("\"microbit\"", "\"mps2-an385\"");
    let rig = parse(&[("rig.toml", &text)]).unwrap();
    let probe = rig.places[0].probe.as_ref().unwrap();
    assert!(probe.chip.is_none() && !probe.is_served());
    let text = text.replace("0d28:0204", "20b7:9db1:unix:/run/board");
    let rig = parse(&[("rig.toml", &text)]).unwrap();
    let probe = rig.places[0].probe.as_ref().unwrap();
    assert!(probe.is_served());
}

const HUBBED: &str = r#"
version = 1
[[power]]
name = "pdu"
[power.command]
set = ["pdu", "{outlet}", "{state}"]
[[hub]]
name = "shelf"
power = { device = "pdu", outlet = "7", off_time = "4s" }
[[place]]
name = "left"
board = "microbit"
hub = "shelf"
probe = { selector = "0d28:0204:1" }
[[place]]
name = "right"
board = "microbit"
hub = "shelf"
probe = { selector = "0d28:0204:2" }
[[place]]
name = "far"
board = "microbit"
hub = "drawer"
probe = { selector = "0d28:0204:3" }
"#;

#[test]
fn places_on_one_hub_are_neighbours() {
    let rig = parse(&[("rig.toml", HUBBED)]).unwrap();
    let place = |name: &str| rig.place(name).unwrap();
    let hub = rig.hub_of(place("left")).unwrap();
    assert_eq!((hub.name.as_str(), hub.power.outlet.as_str()), ("shelf", "7"));
    assert_eq!(hub.power.off_time, Some(Duration::from_secs(4)));
    let neighbours = rig.hub_neighbours(place("left"));
    assert_eq!(neighbours.iter().map(|place| place.as_str()).collect::<Vec<_>>(), ["right"]);
    // A hub that no file declares is shared all the same, and nothing switches it.
    assert!(rig.hub_of(place("far")).is_none() && rig.hub_neighbours(place("far")).is_empty());
    // A hub, its device and its places may each stand in a file of their own.
    let at = |mark: &str| HUBBED.find(mark).unwrap();
    let (power, hub, places) = (at("[[power]]"), at("[[hub]]"), at("[[place]]"));
    let file = |text: &str| format!("version = 1\n{text}");
    let files = [file(&HUBBED[places..]), file(&HUBBED[hub..places]), file(&HUBBED[power..hub])];
    let split = parse(&[("a", &files[0]), ("b", &files[1]), ("c", &files[2])]).unwrap();
    assert_eq!((&split.hubs, split.places.len()), (&rig.hubs, rig.places.len()));
}

#[test]
fn slips_of_hubs_are_found_in_their_place() {
    for (good, bad, check, caret) in [
        ("name = \"shelf\"", "name = \"a/b\"", "document::bad-name", "\"a/b\""),
        ("name = \"shelf\"\n", "", "document::missing-key", "[[hub]]"),
        ("hub = \"shelf\"", "hub = \"\"", "document::bad-name", "\"\""),
        ("device = \"pdu\"", "device = \"pdo\"", "rig::power-device", "\"pdo\""),
        ("outlet = \"7\"", "outlet = \"\"", "rig::power-outlet", "\"\""),
        ("\"4s\"", "\"2h\"", "rig::power-time", "\"2h\""),
        ("off_time", "of_time", "document::unknown-key", "of_time"),
    ] {
        assert!(HUBBED.contains(good), "{good}");
        let found = problems(&HUBBED.replacen(good, bad, 1));
        assert_eq!(found, [(check, caret.to_owned())], "{bad}");
    }
    let hub = "[[hub]]\nname = \"shelf\"\npower = { device = \"pdu\", outlet = \"8\" }\n";
    let again = problems(&format!("{HUBBED}{hub}"));
    assert_eq!(again, [("rig::hub-twice", "\"shelf\"".to_owned())]);
    let other = format!("version = 1\n{hub}");
    let problems = parse(&[("rig.toml", HUBBED), ("rig.toml.d/b.toml", &other)]).unwrap_err();
    let words = "hub \"shelf\" of rig.toml.d/b.toml is also declared in rig.toml";
    assert_eq!((problems.len(), problems[0].list[0].message.as_str()), (1, words));
}

const KNOWN_GOOD: &str = r#"
version = 1
[[place]]
name = "desk"
board = "microbit"
emulator = {}
[place.canary]
image = "good.elf"
until = '^ready'
timeout = "20s"
"#;

#[test]
fn a_place_may_name_an_image_that_is_known_to_work() {
    let canary = |text: &str| {
        let rig = parse(&[("rig.toml", text)]).unwrap();
        rig.places[0].canary.clone()
    };
    let full = canary(KNOWN_GOOD).unwrap();
    assert_eq!(full.image, std::path::Path::new("good.elf"));
    assert_eq!(full.until.unwrap().as_str(), "^ready");
    assert_eq!(full.timeout, Duration::from_secs(20));
    let (short, _) = KNOWN_GOOD.split_once("until").unwrap();
    let short = canary(short).unwrap();
    assert_eq!((short.until, short.timeout), (None, Duration::from_secs(30)));
    let (none, _) = KNOWN_GOOD.split_once("[place.canary]").unwrap();
    assert_eq!(canary(none), None);
}

#[test]
fn slips_of_a_canary_are_found_in_their_place() {
    for (good, bad, check, caret) in [
        ("image = \"good.elf\"\n", "", "document::missing-key", "[place.canary]"),
        ("\"good.elf\"", "\"\"", "rig::canary", "\"\""),
        ("'^ready'", "'('", "document::bad-pattern", "("),
        ("'^ready'", "'x*'", "document::bad-pattern", "'x*'"),
        ("\"20s\"", "\"4s\"", "rig::canary", "\"4s\""),
        ("\"20s\"", "\"61s\"", "rig::canary", "\"61s\""),
        ("until", "untill", "document::unknown-key", "untill"),
        ("\"microbit\"", "\"arm64-virt\"", "rig::canary", "[place.canary]"),
    ] {
        assert!(KNOWN_GOOD.contains(good), "{good}");
        let found = problems(&KNOWN_GOOD.replacen(good, bad, 1));
        assert_eq!(found, [(check, caret.to_owned())], "{bad}");
    }
}

/// Knows one chip.
struct OneChip;

impl crate::chip::ChipSource for OneChip {
    fn chip(
        &self,
        name: &crate::ChipName,
    ) -> Result<crate::chip::ChipFacts, crate::chip::UnknownChip> {
        if name.as_str() == "STM32F411CEUx" {
            return Ok(crate::chip::ChipFacts {
                name: name.to_string(),
                family: "STM32F4 Series".to_owned(),
                arch: crate::profile::Arch::Arm,
                packages: Vec::new(),
                cores: Vec::new(),
                memory: Vec::new(),
            });
        }
        let nearest = vec!["STM32F411CEUx".to_owned()];
        Err(crate::chip::UnknownChip { name: name.to_string(), nearest, several: false })
    }
}

const ON_A_CHIP: &str = r#"
version = 1
[[place]]
name = "bench"
board = "chip:STM32F411CEUx"
console = [{ name = "shell", tty = "/dev/ttyACM0" }]
probe = { selector = "0483:3748" }
"#;

#[test]
fn a_chip_is_a_board_without_a_profile() {
    let none: &[crate::profile::BoardProfile] = &[];
    let parse =
        |text: &str| Rig::parse_with([RigText { origin: "rig.toml", text }], &none, &OneChip);
    let rig = parse(ON_A_CHIP).unwrap();
    assert_eq!(rig.places[0].board.chip(), Some("STM32F411CEUx"));
    for (good, bad, check, help) in [
        ("STM32F411CEUx", "STM32F411CEUy", "rig::unknown-chip", "did you mean STM32F411CEUx?"),
        ("\"bench\"", "\"chip:bench\"", "rig::place-name", "name of its own"),
        ("chip:STM32F411CEUx", "chip:a/b", "document::bad-name", "file names"),
        ("probe = {", "emulator = {}\n#", "rig::not-emulable", "jig profile new --chip"),
    ] {
        assert!(ON_A_CHIP.contains(good), "{good}");
        let problems = parse(&ON_A_CHIP.replacen(good, bad, 1)).unwrap_err();
        let found = problems[0].list.iter().find(|problem| problem.check == check);
        let found = found.unwrap_or_else(|| panic!("{bad}: {}", problems[0]));
        assert!(found.help.contains(help), "{bad}: {}", found.help);
    }
    // Where nothing knows chips, none is known.
    let text = RigText { origin: "rig.toml", text: ON_A_CHIP };
    assert_eq!(Rig::parse([text], &[]).unwrap_err()[0].list[0].check, "rig::unknown-chip");
}

#[test]
fn a_volume_is_a_way_to_flash() {
    let parse = |line: &str| {
        let rig = parse(&[("rig.toml", &bare(line))]).unwrap_or_else(|bad| panic!("{}", bad[0]));
        let profile = shipped().into_iter().find(|p| p.id == rig.places[0].board).unwrap();
        profile.deploy_at(&rig.places[0])
    };
    let Some(Deploy::Volume(copy)) = parse("flasher = { volume = \"MICROBIT\" }") else { panic!() };
    assert_eq!(
        (copy.volume.as_str(), copy.format, copy.family),
        ("MICROBIT", VolumeFormat::Hex, None)
    );
    assert_eq!(copy.timeout.as_secs(), 60);
    let line = "flasher = { volume = \"/mnt/p\", family = 0xe48bff56, timeout = \"9s\" }";
    let Some(Deploy::Volume(copy)) = parse(line) else { panic!() };
    assert_eq!((copy.format, copy.family), (VolumeFormat::Uf2, Some(0xe48b_ff56)));
    assert_eq!(copy.timeout.as_secs(), 9);
}
