//! Tests of the presets, and of profiles that use them.

use std::path::Path;

use super::{ExampleOrigin, FlasherPresets};
use crate::profile::{BoardProfile, Deploy, DeployPart, FaultSets, FlashCommand, deploy_parts};

const TEXT: &str = include_str!("../../../../board-profiles/flashers/presets.toml");

fn shipped() -> FlasherPresets {
    FlasherPresets::parse("presets.toml", TEXT).unwrap_or_else(|problems| panic!("{problems}"))
}

fn profile(deploy: &str) -> Result<BoardProfile, crate::Problems> {
    let text = format!(
        "version = 1\nid = \"b\"\ntitle = \"B\"\narch = \"arm\"\nchip = \"X1\"\n\
         console = [{{ name = \"u\", kind = \"uart\" }}]\n[deploy]\nmethod = \"command\"\n{deploy}\n"
    );
    BoardProfile::parse("b.toml", &text, &FaultSets::default())
}

fn command(deploy: &str) -> FlashCommand {
    let profile = profile(deploy).unwrap_or_else(|problems| panic!("{problems}"));
    let Some(Deploy::Command(command)) = profile.deploy else { panic!("{deploy}") };
    command
}

#[test]
fn the_presets_of_the_project_are_shipped() {
    let presets = shipped();
    let names: Vec<&str> = presets.names().collect();
    for name in [
        "esptool",
        "espflash",
        "dfu-util",
        "avrdude",
        "bossac",
        "picotool",
        "openocd",
        "pyocd",
        "jlink",
        "stm32programmer",
        "nrfjprog",
        "nrfutil",
        "teensy",
        "fastboot",
        "arduino-32u4",
        "arduino-samd",
        "west",
        "st-flash",
    ] {
        assert!(names.contains(&name), "{name}");
    }
    assert_eq!(FlasherPresets::shipped().names().collect::<Vec<_>>(), names);
    for preset in presets.iter() {
        assert!(preset.install.command().is_some(), "{}", preset.name);
        assert!(!preset.success_example.is_empty() && preset.failures.len() >= 3);
        // What was run names the version that was.
        let was_run = preset.failures.iter().any(|failure| failure.origin == ExampleOrigin::Run);
        let names_version = preset.source.contains("run (");
        assert_eq!(was_run, names_version, "{}: {}", preset.name, preset.source);
        for failure in &preset.failures {
            let words = [&failure.why, &failure.help];
            assert!(
                words.iter().all(|text| !text.is_empty() && !text.ends_with('.')),
                "{failure:?}"
            );
            assert!(
                failure.why.starts_with(|c: char| !c.is_ascii_uppercase() || c == 'S' || c == 'O')
            );
        }
        // With every option given, what is left are placeholders of every flasher.
        let options: Vec<String> =
            preset.options.iter().map(|option| format!("{} = \"v{{\"", option.name)).collect();
        let given = format!("preset = \"{}\"\noptions = {{ {} }}", preset.name, options.join(", "));
        let command = command(&given);
        let mut names_image = false;
        for arg in command.argv.iter().chain(&command.script) {
            let parts = deploy_parts(arg).unwrap_or_else(|error| panic!("{arg}: {error}"));
            use DeployPart::{Bin, Elf, Hex, Image};
            names_image |= parts.iter().any(|part| matches!(part, Image | Elf | Bin | Hex));
        }
        assert!(names_image, "{}", preset.name);
        assert_eq!(command.uses(&DeployPart::Script), !command.script.is_empty());
    }
}

#[test]
fn a_preset_becomes_a_command() {
    let command = command(
        "preset = \"avrdude\"\noptions = { part = \"m328p\", baud = 115200, args = [] }\n\
         timeout = \"9s\"\nverified_pattern = 'mine'",
    );
    let wanted = [
        "avrdude",
        "-p",
        "m328p",
        "-c",
        "arduino",
        "-P",
        "{port?}",
        "-b",
        "115200",
        "-U",
        "flash:w:{hex}:i",
    ];
    assert_eq!(command.argv, wanted);
    assert_eq!(command.timeout.as_secs(), 9);
    // What has no value takes nothing else with it.
    let bossac = self::command("preset = \"bossac\"").argv;
    let wanted = ["--verify", "--reset", "--offset={address}", "{bin}"];
    assert_eq!(bossac[bossac.len() - 4..], wanted);
    assert_eq!(command.verified_pattern.unwrap().as_str(), "mine");
    assert!(command.success_pattern.unwrap().as_str().contains("verified"));
    // Where a boot loader is started by a touch, the preset says so, and a place may say how long.
    let touch = |deploy: &str| self::command(deploy).touch.map(|touch| touch.as_secs());
    assert_eq!((command.touch, touch("preset = \"arduino-samd\"")), (None, Some(10)));
    assert_eq!(touch("preset = \"arduino-samd\"\ntouch = \"3s\""), Some(3));
    assert!(command.known_failures.len() >= 3 && command.install.is_some());
    assert_eq!(command.preset.as_deref(), Some("avrdude"));
}

#[test]
fn slips_with_presets_are_told_with_what_to_do() {
    for (deploy, words) in [
        ("preset = \"esptol\"", "no flasher preset \"esptol\" (did you mean `esptool`?)"),
        ("preset = \"avrdude\"", "preset avrdude needs the option part (add `options = { part"),
        (
            "preset = \"esptool\"\noptions = { bauds = 1 }",
            "preset esptool has no option \"bauds\" (did you mean `baud`?)",
        ),
        (
            "preset = \"esptool\"\nargv = [\"f\", \"{image}\"]",
            "preset esptool has arguments of its own",
        ),
        (
            "preset = \"esptool\"\noptions = { baud = \"1\\u0000\" }",
            "an argument holds no zero byte",
        ),
        ("preset = \"esptool\"\noptions = { baud = 1.5 }", "`baud` must be a text, a number"),
        ("argv = [\"f\", \"{image}\"]\noptions = { a = 1 }", "`options` belong to a preset"),
        ("argv = [\"f\", \"{script}\"]", "`{script}` is named, and there is none"),
        ("argv = [\"f\", \"{image}\"]\nscript = [\"x\"]", "no argument holds `{script}`"),
        ("argv = [\"f\", \"{script}\"]\nscript = [\"x\"]", "no argument holds `{image}`"),
        ("argv = [\"f\", \"{imag}\"]", "did you mean `{image}`?"),
        ("preset = \"esptool\"\nidle_timeout = \"0s\"", "\"0s\" is too much or too little"),
        ("preset = \"bossac\"\ntouch = \"0s\"", "\"0s\" is too much or too little"),
        (
            "argv = [\"f\", \"{image}\"]\ntouch = \"9s\"",
            "`touch` starts a boot loader whose port no argument holds (put `{port}`",
        ),
    ] {
        let problems = profile(deploy).unwrap_err().to_string();
        assert!(problems.contains(words), "{deploy}: {problems}");
    }
    assert!(profile("argv = [\"f\", \"{script}\"]\nscript = [\"load {hex}\"]").is_ok());
}

#[test]
fn slips_in_presets_are_found() {
    let one = "version = 1\n[[flasher]]\nname = 'a'\ntitle = 'A'\nsource = 's'\n\
               argv = ['f', '{bin}']\nsuccess_pattern = 'ok'\nsuccess_origin = 'run'\nsuccess_example = 'ok'\n\
               install = { debian = 'f' }\n";
    let failure =
        "[[flasher.failure]]\npattern = 'x'\nwhy = 'w'\nhelp = 'h'\norigin = 'log'\nexample = 'x'\n".repeat(3);
    let good = format!("{one}{failure}");
    assert!(FlasherPresets::parse("p.toml", &good).is_ok());
    for (from, to, words) in [
        ("'f', '{bin}'", "'/f', '{bin}'", "no plain name of a program"),
        ("'f', '{bin}'", "'f', '{spede}'", "declare it by an `[[flasher.option]]`"),
        ("name = 'a'", "name = 'a b'", "this cannot name a flasher"),
        ("version = 1", "version = 2", "version 2"),
        ("title = 'A'", "option = [{ name = 'port', about = 'x' }]\ntitle = 'A'", "another name"),
        ("origin = 'log'", "origin = 'hearsay'", "no origin of output"),
        ("why = 'w'", "cause = 'test_failed'\nwhy = 'w'", "is no cause of a rig"),
        ("title = 'A'", "timeout = '9d'\ntitle = 'A'", "no time for a flasher"),
        ("title = 'A'", "touch = '9d'\ntitle = 'A'", "no time for a flasher"),
    ] {
        let problems = FlasherPresets::parse("p.toml", &good.replacen(from, to, 1)).unwrap_err();
        assert!(problems.to_string().contains(words), "{to}: {problems}");
    }
    let few = FlasherPresets::parse("p.toml", &format!("{one}{}", &failure[..failure.len() / 3]));
    assert!(few.unwrap_err().to_string().contains("fewer than three failures"));
}

#[test]
fn schemas_of_presets_are_as_committed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../board-profiles/flashers");
    let (path, schema) = (folder.join("presets.schema.json"), FlasherPresets::json_schema());
    if std::env::var_os("JIG_WRITE_SCHEMAS").is_some() {
        std::fs::write(&path, &schema).unwrap();
    }
    assert!(
        std::fs::read_to_string(path).is_ok_and(|committed| committed == schema),
        "board-profiles/flashers/presets.schema.json is out of date: run \
         `JIG_WRITE_SCHEMAS=1 cargo test -p jig-model schemas` and commit it"
    );
}
