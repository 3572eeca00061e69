//! Tests of reading profiles, and of the profiles that are shipped.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::document::Choice as _;
use crate::recovery::{Recovery, RecoveryStep};
use crate::rig_file::{EmulatorPart, Place, ProbePart};
use crate::{Cause, Problems};

/// Returns the folder of the shipped profiles.
pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../board-profiles")
}

/// Returns stem and text of every TOML file of a folder.
fn texts(folder: PathBuf) -> BTreeMap<String, String> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let toml = files.filter(|path| path.extension().is_some_and(|ext| ext == "toml"));
    toml.map(|path| {
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (stem, std::fs::read_to_string(path).unwrap())
    })
    .collect()
}

fn shipped_sets() -> FaultSets {
    let texts = texts(folder().join("faults"));
    let sets = texts.iter().map(|(name, text)| FaultSetText { name, origin: name, text });
    FaultSets::parse(sets).unwrap_or_else(|problems| panic!("{}", problems[0]))
}

/// Returns the shipped profiles of boards that can be emulated.
pub(crate) fn shipped() -> Vec<BoardProfile> {
    all_shipped().into_iter().filter(|profile| profile.emulation.is_some()).collect()
}

/// Returns every shipped profile.
fn all_shipped() -> Vec<BoardProfile> {
    let sets = shipped_sets();
    let parse = |(stem, text): (&String, &String)| {
        BoardProfile::parse(&format!("built-in {stem}"), text, &sets)
            .unwrap_or_else(|problems| panic!("{problems}"))
    };
    texts(folder()).iter().map(parse).collect()
}

/// A profile in which every kind of value occurs.
const GOOD: &str = r#"
version = 1
id = "demo"
title = "Demo"
arch = "arm"
chip = "X1"
features = ["lockup", "fpu"]
faults = ["set"]
boot_banner = '^boot'
memory = [
    { name = "flash", kind = "flash", start = 0, size = "1K" },
    { name = "ram", kind = "ram", start = 0x400, size = 1024 },
]
console = [{ name = "uart0", kind = "uart", baud = 9600 }, { name = "sh", kind = "semihosting" }, { name = "log", kind = "rtt", channel = 2 }]
fault = [{ name = "own", pattern = 'OWN!', cause = "hang" }]
recovery = { ladder = ["reset", "power-cycle"], max_recoveries = 1, timeout = "9s", long_off = "4s" }
[emulation]
program = "qemu-system-arm"
machine = "virt,gic-version=3"
args = ["-x", "{port:cmd}", "{port:ssh}", "{artifact:kernel}"]
image_args = ["-kernel", "{image}"]
image_set = "demo"
semihosting = true
quirks = { drops_when_unread = true }
debug = { core = "armv7m", scratch = 0x7e0, jep106_bank = 4, jep106_code = 0x3b, part = 0x4c3, flash = "plain", program = "flash", overlay = [{ address = 0x10, value = 1 }] }
known_good = { start = 0x0, send = 0x4000_0000, ready = { status = 0x4000_0008, mask = 0x20, value = 0x20 }, setup = [{ address = 0x4000_0004, value = 3 }] }
[[stage]]
name = "kernel"
console = 'Linux'
timeout = "3s"
[[stage]]
name = "ssh"
banner = { port = "ssh", pattern = '^SSH' }
timeout = "1m"
[limits]
flood = "1M"
boot_loop = 5
settle = "20ms"
silence = "2s"
[health]
checks = ["disk", "board", "console"]
interval = "2m"
free_disk = "2G"
free_handles = 7
clock_skew = "1s"
[deploy]
method = "command"
argv = ["openocd", "-c", "program {{{image}}} verify", "{address}"]
timeout = "30s"
success_codes = [0, 3]
failure_patterns = ['^Error: ']
verified_pattern = 'Verified OK'
progress_pattern = '(\d+)%'
[shell]
user = "root"
prompt = '^# '
forwarded = "cmd"
"#;

fn sets() -> FaultSets {
    let text = "version = 1\n[[fault]]\nname = 'shared'\npattern = 'BAD'\ncause = 'fault_banner'";
    FaultSets::parse([FaultSetText { name: "set", origin: "set.toml", text }]).unwrap()
}

fn parse(text: &str) -> Result<BoardProfile, Problems> {
    BoardProfile::parse("dir/demo.toml", text, &sets())
}

#[test]
fn a_good_profile_is_lowered() {
    let profile = parse(GOOD).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(profile.memory_text(), "flash 0x0..0x400, ram 0x400..0x800");
    assert_eq!(profile.consoles[0].baud, 9600);
    assert_eq!(
        profile.faults.iter().map(|f| f.name.as_str()).collect::<Vec<_>>(),
        ["shared", "own"]
    );
    assert!(matches!(&profile.stages[1].probe, StageProbe::Banner { port, .. } if port == "ssh"));
    assert_eq!((profile.limits.flood_bytes, profile.limits.boot_loop), (1 << 20, 5));
    let steps = vec![RecoveryStep::Reset, RecoveryStep::PowerCycle];
    let (timeout, long_off) = (Duration::from_secs(9), Duration::from_secs(4));
    assert_eq!(profile.recovery, Recovery { ladder: steps, max_recoveries: 1, timeout, long_off });
    let health = profile.health;
    assert_eq!((health.interval.as_secs(), health.free_disk), (120, 2 << 30));
    assert_eq!((health.clock_skew.as_secs(), health.free_handles), (1, 7));
    assert_eq!(health.free_memory, HealthSpec::default().free_memory);
    let Some(Deploy::Command(command)) = profile.deploy else { panic!() };
    assert_eq!((command.timeout.as_secs(), command.success_codes), (30, vec![0, 3]));
    assert_eq!(command.verified_pattern.unwrap().as_str(), "Verified OK");
    let emulation = profile.emulation.unwrap();
    assert!(emulation.quirks.drops_when_unread);
    let debug = emulation.debug.unwrap();
    assert_eq!((debug.core, debug.flash), (DebugCore::Armv7m, FlashModel::Plain));
    assert_eq!((debug.program[0].name.as_str(), debug.overlay), ("flash", vec![(0x10, 1)]));
    let least =
        "version = 1\nid = 'demo'\ntitle = 'D'\narch = 'arm'\nconsole = [{name='c', kind='uart'}]";
    let profile = parse(least).unwrap();
    assert_eq!((profile.limits, profile.consoles[0].baud), (Limits::default(), 115_200));
    assert_eq!(profile.health, HealthSpec::default());
}

#[test]
fn a_place_has_the_checks_that_fit_it() {
    use CheckKind::{Board, Clock, Console, Disk, Handles, Memory, Network, Power};
    let place = Place::new("p".parse().unwrap(), "b".parse().unwrap());
    let emulator = place.clone().with_emulator(EmulatorPart::default());
    let probe = place.clone().with_probe(ProbePart::default());
    let all = HealthSpec::default();
    assert_eq!(all.checks_at(&emulator), [Clock, Disk, Memory, Handles, Board]);
    assert_eq!(
        all.checks_at(&probe),
        [Clock, Disk, Memory, Handles, Power, Console, Network, Board]
    );
    // Nothing asks a board how it is that has neither.
    assert!(!all.checks_at(&place).contains(&Board));
    let some = parse(GOOD).unwrap().health;
    assert_eq!(some.checks_at(&emulator), [Disk, Board]);
    assert_eq!(some.checks_at(&probe), [Disk, Console, Board]);
    for kind in CheckKind::ALL {
        assert!(all.checks_at(&probe).contains(kind));
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        assert!(CheckKind::CHOICES.contains(&(kind.as_str(), *kind)));
    }
}

/// One slip in the good profile, the check that finds it, and where the caret stands.
const SLIPS: &[(&str, &str, &str, &str)] = &[
    ("id = \"demo\"", "id = \"other\"", "profile::id", "\"other\""),
    ("forwarded = \"cmd\"", "forwarded = \"web\"", "profile::shell", "\"web\""),
    ("user = \"root\"", "user = \"a b\"", "profile::shell", "\"a b\""),
    ("user = \"root\"", "host = \"pi\"", "profile::shell", "\"pi\""),
    ("title = \"Demo\"", "title = \" \"", "profile::title", "\" \""),
    ("chip = \"X1\"", "chip = \"\"", "profile::title", "\"\""),
    ("\"fpu\"]", "\"lockup\"]", "profile::features", "\"lockup\""),
    ("\"fpu\"]", "\"fpv\"]", "document::unknown-word", "\"fpv\""),
    ("arch = \"arm\"", "arch = \"arn\"", "document::unknown-word", "\"arn\""),
    ("[\"set\"]", "[\"sett\"]", "profile::fault-set", "\"sett\""),
    ("[\"set\"]", "[\"set\", \"set\"]", "profile::fault-set", "\"set\""),
    ("\"own\"", "\"shared\"", "profile::fault-name", "\"shared\""),
    ("\"own\"", "\"\"", "profile::fault-name", "\"\""),
    ("'OWN!'", "'O(WN'", "document::bad-pattern", "("),
    ("pattern = 'OWN!'", "line = 'A', pattern = 'B'", "profile::fault-text", "'A'"),
    ("pattern = 'OWN!', cause", "cause", "profile::fault-text", "{"),
    ("\"hang\"", "\"hung\"", "profile::fault-cause", "\"hung\""),
    ("\"hang\"", "\"passed\"", "profile::fault-cause", "\"passed\""),
    ("name = \"ram\"", "name = \"flash\"", "profile::memory-name", "\"flash\""),
    ("size = 1024", "size = 0", "profile::memory-size", "0"),
    ("size = \"1K\"", "size = \"1025\"", "profile::memory-overlap", "0x400"),
    ("kind = \"ram\"", "kind = \"flash\"", "profile::no-ram", "["),
    ("start = 0x400", "start = -1", "document::bad-value", "-1"),
    ("\"sh\"", "\"uart0\"", "profile::console-name", "\"uart0\""),
    ("baud = 9600", "baud = 1", "profile::baud", "1"),
    ("\"semihosting\" }", "\"semihosting\", baud = 9600 }", "profile::baud", "9600"),
    ("channel = 2", "baud = 9600", "profile::baud", "9600"),
    ("channel = 2", "channel = 64", "profile::channel", "64"),
    ("\"rtt\", channel = 2", "\"uart\", channel = 2", "profile::channel", "2"),
    (
        "channel = 2 }",
        "channel = 2 }, { name = \"m\", kind = \"rtt\", channel = 2 }",
        "profile::channel",
        "2",
    ),
    ("semihosting = true", "semihosting = false", "profile::semihosting", "\"semihosting\""),
    ("semihosting = true", "semihosting = 1", "document::wrong-type", "1"),
    ("\"qemu-system-arm\"", "\"/bin/qemu\"", "profile::program", "\"/bin/qemu\""),
    ("\"qemu-system-arm\"", "\"qemu -x\"", "profile::program", "\"qemu -x\""),
    ("virt,gic-version=3", "virt -m 5", "profile::machine", "\"virt -m 5\""),
    ("\"-x\"", "\"-serial\"", "profile::args", "\"-serial\""),
    ("\"-x\"", "\"--display\"", "profile::args", "\"--display\""),
    ("\"-x\"", "\"-m 16\"", "profile::args", "\"-m 16\""),
    ("\"-x\"", "\"\"", "profile::args", "\"\""),
    ("\"-x\"", "\"{prt:x}\"", "profile::placeholder", "\"{prt:x}\""),
    ("\"-x\"", "\"{image}\"", "profile::placeholder", "\"{image}\""),
    ("image_set = \"demo\"", "", "profile::placeholder", "\"{artifact:kernel}\""),
    ("\"{artifact:kernel}\"", "\"x\"", "profile::boots", "\"demo\""),
    ("image_set = \"demo\"", "image_set = \"../x\"", "profile::image-set", "\"../x\""),
    ("{port:ssh}", "{port:sss}", "profile::stage-port", "\"ssh\""),
    ("name = \"ssh\"", "name = \"kernel\"", "profile::stage-name", "\"kernel\""),
    ("console = 'Linux'", "", "profile::stage-probe", "[[stage]]"),
    ("console = 'Linux'", "console = 'Linux*('", "document::bad-pattern", "("),
    ("timeout = \"3s\"", "timeout = \"0s\"", "profile::stage-timeout", "\"0s\""),
    ("timeout = \"3s\"", "timeout = \"3\"", "document::bad-value", "\"3\""),
    ("timeout = \"3s\"", "timeout = 3", "document::wrong-type", "3"),
    ("scratch = 0x7e0", "scratch = 0x7e4", "profile::debug-scratch", "0x7e4"),
    ("jep106_code = 0x3b", "jep106_code = 0xbb", "profile::debug-identity", "0xbb"),
    ("part = 0x4c3", "part = 0x14c3", "profile::debug-identity", "0x14c3"),
    ("program = \"flash\"", "program = \"flush\"", "profile::debug-program", "\"flush\""),
    ("address = 0x10", "address = 0x11", "profile::debug-overlay", "0x11"),
    ("start = 0x0,", "start = 0x40,", "profile::known-good", "0x40"),
    ("send = 0x4000_0000", "send = 0x4000_0001", "profile::known-good-word", "0x4000_0001"),
    ("value = 0x20", "value = 0x21", "profile::known-good-status", "0x21"),
    ("core = \"armv7m\"", "core = \"armv9\"", "document::unknown-word", "\"armv9\""),
    ("boot_loop = 5", "boot_loop = 0", "profile::limits", "0"),
    ("\"20ms\"", "\"1h\"", "profile::limits", "\"1h\""),
    ("\"2m\"", "\"1s\"", "profile::health", "\"1s\""),
    ("\"1s\"", "\"2d\"", "profile::health", "\"2d\""),
    ("[\"disk\", \"board\", \"console\"]", "[]", "profile::health", "[]"),
    ("[\"disk\", \"board\"", "[\"disk\", \"disk\"", "profile::health", "\"disk\""),
    ("[\"disk\", \"board\"", "[\"disc\", \"board\"", "document::unknown-word", "\"disc\""),
    ("boot_loop = 5", "boot_lop = 5", "document::unknown-key", "boot_lop"),
    ("\"power-cycle\"", "\"reset\"", "profile::recovery-step", "\"reset\""),
    ("\"power-cycle\"", "\"cycle\"", "document::unknown-word", "\"cycle\""),
    ("max_recoveries = 1", "max_recoveries = 21", "profile::recovery", "21"),
    ("\"4s\"", "\"4ms\"", "profile::recovery", "\"4ms\""),
    ("method = \"command\"", "method = \"comand\"", "document::unknown-word", "\"comand\""),
    ("\"openocd\"", "\"bin/openocd\"", "profile::deploy-program", "\"bin/openocd\""),
    ("\"{address}\"", "\"{adress}\"", "profile::deploy-placeholder", "\"{adress}\""),
    ("\"{address}\"", "\"{\"", "profile::deploy-placeholder", "\"{\""),
    ("{{{image}}}", "x", "profile::deploy-placeholder", "["),
    ("[0, 3]", "[]", "profile::deploy-codes", "[]"),
    ("[0, 3]", "[0, 256]", "profile::deploy-codes", "256"),
    ("'^Error: '", "'Error)'", "document::bad-pattern", ")"),
    ("'(\\d+)%'", "'\\d+%'", "profile::deploy-progress", "'\\d+%'"),
    ("\"30s\"", "\"0s\"", "profile::deploy-timeout", "\"0s\""),
    ("version = 1", "version = 2", "document::version", "2"),
];

/// A deploy table of the good profile as a whole, the check that finds it, and the caret.
const DEPLOYS: &[(&str, &str, &str)] = &[
    ("method = \"command\"", "profile::deploy-keys", "\"command\""),
    ("method = \"command\"\nargv = []", "profile::deploy-keys", "[]"),
    ("method = \"command\"\npreset = \"none\"", "profile::deploy-preset", "\"none\""),
    ("method = \"probe\"\ntimeout = \"1s\"", "profile::deploy-keys", "\"1s\""),
    ("method = \"volume\"", "profile::deploy-keys", "\"volume\""),
    ("method = \"volume\"\nfamily = 7", "profile::deploy-keys", "7"),
    ("method = \"volume\"\nvolume = \"a/b\"", "profile::deploy-keys", "\"a/b\""),
    ("method = \"volume\"\nvolume = \"V\"\nsuccess_codes = [0]", "profile::deploy-keys", "[0]"),
    ("method = \"volume\"\nvolume = \"V\"\ntimeout = \"0s\"", "profile::deploy-timeout", "\"0s\""),
    ("method = \"command\"\npreset = \"bossac\"\nvolume = \"V\"", "profile::deploy-keys", "\"V\""),
    ("method = \"image-set\"", "profile::deploy-method", "\"image-set\""),
    ("method = \"emulator-loader\"", "profile::deploy-method", "\"emulator-loader\""),
    ("method = \"probe\"", "profile::deploy-method", "\"probe\""),
];

#[test]
fn a_way_to_deploy_must_fit_the_board() {
    let (rest, _) = GOOD.split_once("[deploy]").unwrap();
    for (table, check, caret) in DEPLOYS {
        let text = format!("{rest}[deploy]\n{table}\n");
        if *check == "profile::deploy-method" {
            // With an emulation, an image set and a chip everything fits.
            assert!(parse(&text).is_ok(), "{table}");
        }
        let emulation = text.find("[emulation]").unwrap()..text.find("[limits]").unwrap();
        let mut bare = text
            .replace("chip = \"X1\"\n", "")
            .replace(", { name = \"sh\", kind = \"semihosting\" }", "");
        if *check == "profile::deploy-method" {
            bare = bare.replace(&text[emulation], "");
        } else {
            bare = text;
        }
        let problems = parse(&bare).unwrap_err();
        assert_eq!(problems.list.len(), 1, "{table}: {problems}");
        assert_eq!(problems.list[0].check, *check, "{table}: {problems}");
        assert_eq!(&bare[problems.list[0].span.clone().unwrap()], *caret, "{table}");
    }
}

#[test]
fn every_slip_is_found_alone_and_in_its_place() {
    for (good, bad, check, caret) in SLIPS {
        assert!(GOOD.contains(good), "{good}");
        let text = GOOD.replacen(good, bad, 1);
        let Err(problems) = parse(&text) else { panic!("{bad} was accepted") };
        assert_eq!(problems.list.len(), 1, "{bad}: {problems}");
        let problem = &problems.list[0];
        assert_eq!(problem.check, *check, "{bad}: {problems}");
        let at = &text[problem.span.clone().unwrap()];
        assert!(at == *caret || (caret.len() == 1 && at.starts_with(caret)), "{bad}: {at}");
        assert!(!problem.help.is_empty());
    }
}

#[test]
fn every_check_can_fail() {
    let no_console = GOOD.replacen("console = [{ name = \"uart0\", kind = \"uart\", baud = 9600 }, { name = \"sh\", kind = \"semihosting\" }, { name = \"log\", kind = \"rtt\", channel = 2 }]", "console = []", 1);
    let problems = parse(&no_console).unwrap_err();
    assert_eq!(problems.list[0].check, "profile::no-console", "{problems}");
    let nothing_boots = GOOD
        .replacen("\"{image}\"", "\"x\"", 1)
        .replacen(", \"{artifact:kernel}\"", "", 1)
        .replacen("image_set = \"demo\"", "", 1);
    let problems = parse(&nothing_boots).unwrap_err();
    assert_eq!(problems.list[0].check, "profile::boots", "{problems}");
    let arch = "arch = \"arm\"\n";
    assert!(GOOD.contains(arch));
    let odd = GOOD.replacen(arch, &format!("{arch}usb = [{{ id = \"x\", probe = true }}]\n"), 1);
    assert_eq!(parse(&odd).unwrap_err().list[0].check, "profile::usb");
    let named = GOOD.replacen("id = \"demo\"", "id = \"chip:X1\"", 1);
    assert_eq!(parse(&named).unwrap_err().list[0].check, "profile::id");
    let found: BTreeSet<&str> = SLIPS
        .iter()
        .map(|slip| slip.2)
        .chain(["profile::no-console", "profile::usb"])
        .chain(DEPLOYS.iter().map(|slip| slip.1))
        .collect();
    for (name, _) in checks::CHECKS {
        assert!(found.contains(name), "no slip shows {name}");
    }
}

#[test]
fn all_slips_are_reported_at_once() {
    let mut text = GOOD.to_owned();
    for (good, bad, check, _) in SLIPS {
        if !check.starts_with("document::version") {
            text = text.replacen(good, bad, 1);
        }
    }
    let problems = parse(&text).unwrap_err();
    assert!(problems.list.len() > 20, "{problems}");
    assert_sound(&problems);
}

#[test]
fn a_profile_may_name_the_volume_of_its_board() {
    let (rest, _) = GOOD.split_once("[deploy]").unwrap();
    let of = |keys: &str| {
        let text = format!("{rest}[deploy]\nmethod = \"volume\"\nvolume = \"V\"\n{keys}\n");
        let profile = parse(&text).unwrap_or_else(|problems| panic!("{problems}"));
        let Some(Deploy::Volume(copy)) = profile.deploy else { panic!("{keys}") };
        (copy.volume, copy.format.file_name(), copy.family, copy.timeout.as_secs())
    };
    let volume = || "V".to_owned();
    assert_eq!(of(""), (volume(), "JIG.HEX", None, 60));
    assert_eq!(of("family = 7\ntimeout = \"9s\""), (volume(), "JIG.UF2", Some(7), 9));
    assert_eq!(of("format = \"bin\""), (volume(), "JIG.BIN", None, 60));
}

#[test]
fn a_message_says_where_what_and_how() {
    let text = GOOD.replacen("\"qemu-system-arm\"", "\"/bin/qemu\"", 1).replacen("arch", "arck", 1);
    let expected = "board profile dir/demo.toml has 3 problems\
        \n  dir/demo.toml: `arch` is missing (add `arch = ...`)\
        \n  dir/demo.toml:5:1: unknown key `arck` (did you mean `arch`?)\
        \n  dir/demo.toml:18:11: `program` must be the plain name of a program (no path and no \
        arguments: it is looked up in PATH, and arguments go into `args`)";
    assert_eq!(parse(&text).unwrap_err().to_string(), expected);
}

#[test]
fn a_profile_from_a_pipe_has_no_file_name() {
    assert!(BoardProfile::parse("standard input", GOOD, &sets()).is_ok());
    assert!(BoardProfile::parse("built-in demo", GOOD, &sets()).is_ok());
    assert!(BoardProfile::parse("built-in other", GOOD, &sets()).is_err());
}

#[test]
fn the_boards_of_the_project_are_shipped() {
    let profiles = all_shipped();
    let ids: BTreeSet<&str> = profiles.iter().map(|profile| profile.id.as_str()).collect();
    for id in [
        "arm64-uboot",
        "arm64-virt",
        "lm3s6965evb",
        "microbit",
        "microbit-v2",
        "mps2-an385",
        "mps2-an386",
        "mps2-an505",
        "netduinoplus2",
        "riscv32-virt",
        "sifive-e",
        "stm32vldiscovery",
    ] {
        assert!(ids.contains(id), "{id}");
    }
    for profile in &profiles {
        let names: BTreeSet<&str> = profile.faults.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names.len(), profile.faults.len(), "{}: two faults of one name", profile.id);
    }
}

#[test]
fn fault_sets_report_all_their_problems() {
    let text = "version = 1\nfault = [{ name = 'a', pattern = '(', cause = 'x' }, { name = 'a', pattern = 'b', cause = 'lockup' }]";
    let set = |name, text| FaultSetText { name, origin: name, text };
    let problems = FaultSets::parse([set("a.toml", text), set("b.toml", "")]).unwrap_err();
    let checks: Vec<Vec<_>> =
        problems.iter().map(|p| p.list.iter().map(|p| p.check).collect()).collect();
    assert_eq!(
        checks,
        [
            vec!["document::bad-pattern", "profile::fault-cause", "profile::fault-name"],
            vec!["document::version"]
        ]
    );
    let fine = FaultSets::parse([set("fine", "version = 1\nfault = []")]).unwrap();
    assert_eq!((fine.get("fine").map(<[_]>::len), fine.get("other").is_none()), (Some(0), true));
    assert!(sets().get("set").unwrap()[0].cause == Cause::FaultBanner);
}

#[test]
fn schemas_are_as_committed() {
    for (file, schema) in [
        ("schema.json", BoardProfile::json_schema()),
        ("faults.schema.json", FaultSets::json_schema()),
        ("rig.schema.json", crate::rig_file::Rig::json_schema()),
    ] {
        let path = folder().join(file);
        if std::env::var_os("JIG_WRITE_SCHEMAS").is_some() {
            std::fs::write(&path, &schema).unwrap();
        }
        assert!(
            std::fs::read_to_string(path).is_ok_and(|committed| committed == schema),
            "board-profiles/{file} is out of date: run \
             `JIG_WRITE_SCHEMAS=1 cargo test -p jig-model schemas` and commit it"
        );
    }
}

/// What must hold of any refusal, whatever the text.
pub(crate) fn assert_sound(problems: &Problems) {
    assert!((1..=100).contains(&problems.list.len()));
    let mut last = 0;
    for problem in &problems.list {
        if let Some(span) = &problem.span {
            assert!(problems.source.get(span.clone()).is_some(), "{problem:?}");
            assert!(problems.position(problem).is_some(), "{problem:?}");
            assert!(span.start >= last, "{problem:?}");
            last = span.start;
        }
        assert!(!problem.message.contains('\n') && !problem.help.is_empty(), "{problem:?}");
    }
    assert!(!problems.to_string().is_empty());
}

/// Makes texts that look like a profile.
fn tomlish() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        "[a-z_]{1,6}",
        Just("version = 1\n".to_owned()),
        Just("id".to_owned()),
        Just(" = ".to_owned()),
        Just("\n".to_owned()),
        Just("[[stage]]\n".to_owned()),
        Just("[emulation]\n".to_owned()),
        Just("args = [".to_owned()),
        Just("\"{image}\", ".to_owned()),
        Just("]".to_owned()),
        Just("'".to_owned()),
        Just("\"\"\"".to_owned()),
        Just("\\u00e9".to_owned()),
        Just("memory.size".to_owned()),
        Just("{".to_owned()),
        Just("}".to_owned()),
        Just("\r".to_owned()),
        "[0-9a-fx_.-]{1,8}",
        "\\PC{0,4}",
    ];
    proptest::collection::vec(word, 0..40).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in tomlish()) {
        for text in [text.clone(), format!("version = 1\n{text}")] {
            if let Err(problems) = parse(&text) {
                assert_sound(&problems);
            }
        }
    }

    #[test]
    fn no_mutation_makes_the_reader_panic(
        cuts in proptest::collection::vec((0usize..2000, 0usize..30, "\\PC{0,3}|[\"'\\\\{}=\\[\\]\n]"), 1..4)
    ) {
        let mut text = GOOD.to_owned();
        for (at, length, insert) in cuts {
            let floor = |n: usize, text: &str| (0..=n.min(text.len())).rev().find(|n| text.is_char_boundary(*n)).unwrap();
            let start = floor(at % (text.len() + 1), &text);
            let end = floor(start + length, &text).max(start);
            text.replace_range(start..end, &insert);
        }
        if let Err(problems) = parse(&text) {
            assert_sound(&problems);
        }
    }
}
