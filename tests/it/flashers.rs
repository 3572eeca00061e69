//! Known flashers at places without a debug probe: real programs without a board, scripted ones with
//! one.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use nix::fcntl::{FcntlArg, Flock, FlockArg, OFlag, fcntl};
use serde_json::Value;

use crate::board::{Board, KIND, device, outlets};
use crate::manifest::{elf, repository};
use crate::serial::terminal;
use crate::workshop::{Ran, Slot, Workshop, ran, until};

/// Writes a rig file of one place.
fn rig(workshop: &Workshop, more: &str, flasher: &str, parts: &str) {
    let place =
        format!("[[place]]\nname = \"bare\"\nboard = \"{KIND}\"\nflasher = {flasher}\n{parts}");
    workshop.write("rig.toml", format!("version = 1\n{more}{place}\n"));
}

/// Each program is asked to flash a board that is not there. What it says is known, and the user is
/// told what to type next.
#[test]
fn real_programs_without_a_board_fail_in_words_that_are_known() {
    let workshop = Workshop::new();
    let image = elf(KIND, "unity-pass");
    let port = "port = \"/dev/ttyJig9\"";
    for (flasher, words) in [
        (
            format!("{{ preset = \"avrdude\", options = {{ part = \"m328p\" }}, {port} }}"),
            ["avrdude: the serial port is not there", "jig discover"],
        ),
        (
            // It says the same of a port that is not there as of one where nothing answers.
            format!("{{ preset = \"bossac\", {port} }}"),
            ["bossac: the serial port is not there", "jig discover"],
        ),
        (
            format!(
                "{{ preset = \"bossac\", options = {{ args = [\"--arduino-erase\"] }}, {port} }}"
            ),
            ["bossac: the serial port is not there", "jig discover"],
        ),
        (
            "{ preset = \"dfu-util-stm32\" }".to_owned(),
            ["dfu-util: no board is in its DFU boot loader", "dfu-util --list"],
        ),
        (
            "{ preset = \"dfu-util\" }".to_owned(),
            ["dfu-util: no board is in its DFU boot loader", "dfu-util --list"],
        ),
        (
            "{ preset = \"st-flash\" }".to_owned(),
            ["st-flash: the ST-Link is not there", "jig probes"],
        ),
        (
            "{ preset = \"teensy\", options = { mcu = \"foo\" } }".to_owned(),
            ["teensy_loader_cli: the option `mcu` names no board", "--list-mcus"],
        ),
        (
            "{ preset = \"openocd\", options = { target = \"target/nrf51.cfg\" } }".to_owned(),
            ["openocd: the probe is not there", "jig probes"],
        ),
        (
            "{ preset = \"openocd\", options = { interface = \"interface/stlink.cfg\", \
             target = \"target/stm32f4x.cfg\" } }"
                .to_owned(),
            ["openocd: the probe is not there", "jig probes"],
        ),
        (
            "{ preset = \"openocd\", options = { target = \"target/none.cfg\" } }".to_owned(),
            ["openocd: OpenOCD has no such script", "ls /usr/share/openocd/scripts"],
        ),
        (
            "{ preset = \"fastboot\", options = { partition = \"boot\" }, idle_timeout = \"2s\" }"
                .to_owned(),
            ["fastboot: no board is in fastboot mode", "fastboot devices"],
        ),
        // It waits for a board without end.
        (
            "{ preset = \"teensy\", options = { mcu = \"TEENSY41\" }, idle_timeout = \"2s\" }"
                .to_owned(),
            ["teensy_loader_cli: the board is not in its boot loader", "press the button"],
        ),
    ] {
        rig(&workshop, "", &flasher, "");
        let failed = workshop.run(["flash", "-b", "bare", &image]);
        failed.says(75, &words);
        assert!(failed.err().contains("flasher-1.log"), "{failed}");
    }
}

/// Serial ports without a program at the other end, and one that a program holds.
#[test]
fn a_port_where_no_boot_loader_answers_and_one_that_others_hold_are_told_apart() {
    let workshop = Workshop::new();
    let image = elf(KIND, "unity-pass");
    let (far, near, path) = terminal();
    let port = format!("port = \"{}\"", path.display());
    let flash = |flasher: &str| {
        rig(&workshop, "", flasher, "");
        workshop.run(["flash", "-b", "bare", &image])
    };
    flash(&format!("{{ preset = \"bossac\", {port} }}"))
        .says(75, &["bossac: no boot loader answers on the port", "press RESET twice"]);
    // What no package of Debian has is tried where it is installed.
    if is_installed("espflash") {
        rig(&workshop, "", "{ preset = \"espflash\", port = \"/dev/ttyJig9\" }", "");
        let absent = workshop.run(["flash", "-b", "bare", &image]);
        absent.says(75, &["espflash: the serial port is not there", "jig discover"]);
    }
    if !is_installed("esptool") {
        return;
    }
    let binary = format!("{}@0x10000", workshop.write("app.bin", [0xe9; 300]).display());
    let flash = || {
        rig(&workshop, "", &format!("{{ preset = \"esptool\", {port} }}"), "");
        workshop.run(["flash", "-b", "bare", &binary])
    };
    flash().says(75, &["esptool: the chip does not answer", "hold BOOT"]);
    let held = Flock::lock(near, FlockArg::LockExclusive).unwrap();
    flash().says(75, &["esptool: another program has the serial port open", "fuser -v"]);
    drop((held, far));
    flash().says(75, &["esptool: the serial port is not there", "jig discover"]);
}

/// A program that asks on the terminal of the user would be stopped there, behind its question.
#[test]
fn a_program_that_asks_on_the_terminal_finds_none() {
    let workshop = Workshop::new();
    let asks =
        "#!/bin/sh\nprintf 'Erase the chip? [y/N] ' > /dev/tty || exit 3\nread -r yes < /dev/tty\n";
    let program = workshop.write("asks", asks);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let flasher = format!("{{ command = [\"{}\", \"{{image}}\"] }}", program.display());
    rig(&workshop, "", &flasher, "");
    let image = elf(KIND, "unity-pass");
    let jig = workshop.jig(["flash", "-b", "bare", &image]);
    let (far, near, _) = terminal();
    let mut on_terminal = Command::new("setsid");
    on_terminal.args(["--ctty", "--wait"]).arg(jig.get_program()).args(jig.get_args()).env_clear();
    on_terminal.envs(jig.get_envs().filter_map(|(name, value)| Some((name, value?))));
    on_terminal.current_dir(workshop.path(".")).stdin(near);
    let flashed = ran(&mut on_terminal).unwrap();
    flashed.says(75, &["asks ended with code 3", "/dev/tty: No such device or address"]);
    drop(on_terminal);
    // Nothing of it stands on the terminal.
    fcntl(&far, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    let mut shown = [0; 64];
    let count = (&far).read(&mut shown).unwrap_or_default();
    assert_eq!(String::from_utf8_lossy(&shown[..count]), "");
}

/// Tells whether a program is installed; says so if not.
pub(crate) fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap();
    let found = std::env::split_paths(&path).any(|folder| folder.join(program).exists());
    if !found {
        eprintln!("{program} was not tried: it is not installed");
    }
    found
}

#[test]
fn programs_that_pypi_has_fail_in_words_that_are_known() {
    let workshop = Workshop::new();
    let image = elf(KIND, "unity-pass");
    let build = workshop.path("build");
    for (program, options, words) in [
        (
            "pyocd",
            "{ device = \"nrf51822\" }".to_owned(),
            ["pyocd: the probe is not there", "pyocd list"],
        ),
        (
            "west",
            format!("{{ build = \"{}\" }}", build.display()),
            ["west: west does not find the build, or is not in a workspace", "by its whole path"],
        ),
    ] {
        if is_installed(program) {
            rig(&workshop, "", &format!("{{ preset = \"{program}\", options = {options} }}"), "");
            workshop.run(["flash", "-b", "bare", &image]).says(75, &words);
        }
    }
}

/// Puts a board's console on a socket; returns what a place says of that and of the outlet.
fn outlet_and_console(workshop: &Workshop, board: &Board) -> String {
    let socket = workshop.path("console");
    board.on_a_socket(&socket);
    format!(
        "power = {{ device = \"pdu\", outlet = \"0\" }}\n[[place.console]]\nname = \"uart0\"\n\
         unix = \"{}\"\n",
        socket.display()
    )
}

#[test]
fn a_known_flasher_is_believed_by_what_it_says_and_what_runs() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let board = Board::new(&workshop, "one");
    let web = outlets(&[&board]);
    let parts = outlet_and_console(&workshop, &board);
    let flash = workshop.path("one.flash");
    // Its last argument is the ELF file; what it does is in a file.
    let doing = workshop.path("doing");
    let program = format!(
        "#!/bin/sh\nfor image in \"$@\"; do :; done\necho \"$@\" > {}\n. {}\n",
        workshop.path("asked").display(),
        doing.display()
    );
    fs::create_dir(workshop.path("bin")).unwrap();
    let program = workshop.write("bin/espflash", program);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let does = |what: &str| {
        fs::write(&doing, what.replace("FLASH", &flash.display().to_string())).unwrap();
    };
    let more = device(&web);
    rig(&workshop, &more, "{ preset = \"espflash\", options = { family = \"esp32\" } }", &parts);
    let image = elf(KIND, "unity-pass");
    let run = |verb: &[&str]| -> Ran {
        let mut jig = workshop.jig(verb.iter().chain(&["-b", "bare", image.as_str()]));
        let path = std::env::var("PATH").unwrap();
        let folder = program.parent().unwrap().display();
        ran(jig.env("PATH", format!("{folder}:{path}"))).unwrap()
    };
    let done = "echo '[INFO ] Flashing has completed!'";
    does(&format!("echo \"$image\" > FLASH; echo 'Writing 50%'; {done}"));
    board.flash(&elf(KIND, "unity-fail"));
    run(&["run"]).says(0, &[]);
    let asked = fs::read_to_string(workshop.path("asked")).unwrap();
    assert!(asked.starts_with("flash --non-interactive --chip esp32 --baud 460800 "), "{asked}");
    run(&["flash"]).says(0, &["flashing by espflash"]);
    // It writes nothing, whatever it says: the other image runs, which is no pass.
    board.flash(&elf(KIND, "unity-fail"));
    does(done);
    let lied = run(&["--json", "run", "--max-recoveries", "0"]);
    assert_ne!(lied.code(), 0, "{lied}");
    // It says nothing, so nothing was flashed, although its exit code is that of a success.
    does("exit 0");
    let silent = run(&["--json", "run", "--max-recoveries", "0"]);
    silent.says(75, &[]);
    let told: Value = silent.json().unwrap();
    assert_eq!(told["verdict"]["cause"], "deploy_failed", "{silent}");
    run(&["flash"]).says(75, &["no line says that it has flashed", "it said nothing"]);
    // A known failure has a cause of its own.
    does("echo 'Error: espflash::connection_failed' >&2; exit 1");
    let silent = run(&["--json", "run", "--max-recoveries", "0"]);
    silent.says(75, &[]);
    assert_eq!(silent.json().unwrap()["verdict"]["cause"], "target_unresponsive", "{silent}");
    // What it does not take, and where it is not installed.
    let binary = workshop.write("app.bin", "firmware");
    let binary = format!("{}@0x0", binary.display());
    let flash = ["flash", "-b", "bare", &binary];
    let wrong = "espflash takes an ELF file, and this is a raw binary";
    workshop.run(flash).says(2, &[wrong, "preset esptool takes binaries"]);
    let runs = workshop.run_dirs().len();
    let run = ["run", "-b", "bare", &binary];
    workshop.run(run).says(2, &[wrong, "preset esptool takes binaries"]);
    assert_eq!(workshop.run_dirs().len(), runs, "no run began");
    let mut jig = workshop.jig(["flash", "-b", "bare", &image]);
    ran(jig.env("PATH", "/nonexistent"))
        .unwrap()
        .says(75, &["espflash: it is not installed", "cargo install --locked espflash"]);
}

/// The words of a preset are English, whatever the user's language is; a program of the user's own
/// speaks that. The word of a success, or a hundred megabytes, outweigh no exit code. It is given the
/// whole path of an image.
#[test]
fn a_flasher_is_understood_in_any_language_and_at_any_length() {
    let workshop = Workshop::new();
    fs::create_dir(workshop.path("bin")).unwrap();
    let program = workshop.path("bin/espflash");
    let does = |script: &str| {
        // Its last argument is the image, which it opens from the folder that it is started in.
        let opens = "for image in \"$@\"; do :; done\ncat \"$image\" > /dev/null || exit 9";
        fs::write(&program, format!("#!/bin/sh\n{opens}\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    };
    fs::copy(elf(KIND, "unity-pass"), workshop.path("app.elf")).unwrap();
    let flash = || -> Ran {
        let mut jig = workshop.jig(["flash", "-b", "bare", "app.elf"]);
        let path = format!("{}:{}", workshop.path("bin").display(), std::env::var("PATH").unwrap());
        let german = [("LANG", "de_DE.UTF-8"), ("LC_ALL", "de_DE.UTF-8"), ("LANGUAGE", "de")];
        ran(jig.env("PATH", path).envs(german)).unwrap()
    };
    rig(&workshop, "", "{ preset = \"espflash\" }", "");
    let speaks =
        "case $LC_ALL$LANGUAGE in de*) echo fertig;; *) echo 'Flashing has completed!';; esac";
    does(speaks);
    flash().says(0, &[]);
    let own = format!(
        "{{ command = [\"{}\", \"{{image}}\"], success_pattern = 'fertig' }}",
        program.display()
    );
    rig(&workshop, "", &own, "");
    flash().says(0, &[]);
    rig(&workshop, "", "{ preset = \"espflash\" }", "");
    does("echo 'Flashing has completed!'; exit 3");
    flash().says(75, &["espflash ended with code 3"]);
    does("yes 'Flashing has completed!' | head -c 104857600; echo the last line; exit 3");
    let long = flash();
    long.says(75, &["espflash ended with code 3", "the last line"]);
    let told = long.err();
    let kept = told.lines().find_map(|line| line.split("its output is in ").nth(1)).unwrap();
    let log = fs::metadata(std::path::Path::new(kept.trim()).join("flasher-1.log")).unwrap();
    assert!((1 << 20..(1 << 20) + 4096).contains(&log.len()), "{}", log.len());
}

/// A folder stands for the volume of a debug probe, and a thread for the probe behind it.
#[test]
fn an_image_is_copied_to_a_volume_and_runs() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let board = Board::new(&workshop, "one");
    let web = outlets(&[&board]);
    let parts = outlet_and_console(&workshop, &board);
    let volume = workshop.path("VOLUME");
    fs::create_dir(&volume).unwrap();
    let flasher = format!("{{ volume = \"{}\", format = \"bin\" }}", volume.display());
    rig(&workshop, &device(&web), &flasher, &parts);
    let (image, flashed) = (elf(KIND, "unity-pass"), workshop.path("flashed.bin"));
    let copied = volume.join("JIG.BIN");
    // Jig writes an image of this size at once.
    let taken = || until("the image", || fs::read(&copied).ok().filter(|bytes| !bytes.is_empty()));
    let ran = std::thread::scope(|scope| {
        scope.spawn(|| {
            fs::write(&flashed, taken()).unwrap();
            board.flash(flashed.to_str().unwrap());
            fs::remove_file(&copied).unwrap();
        });
        workshop.run(["run", "-b", "bare", &image])
    });
    ran.says(0, &[]);
    let refused = std::thread::scope(|scope| {
        scope.spawn(|| {
            taken();
            fs::write(volume.join("FAIL.TXT"), "error: The target is locked.\r\n").unwrap();
            fs::remove_file(&copied).unwrap();
        });
        workshop.run(["flash", "-b", "bare", &image])
    });
    refused.says(75, &["has refused the image: \"error: The target is locked.\""]);
}

#[test]
fn flashers_are_listed_with_what_installs_them() {
    let workshop = Workshop::new();
    let listed = workshop.run(["--json", "flashers"]);
    listed.says(0, &[]);
    let told = listed.json().unwrap();
    let one = |name: &str| {
        let all = told["flashers"].as_array().unwrap();
        all.iter().find(|flasher| flasher["name"] == name).unwrap().clone()
    };
    assert_eq!(one("avrdude")["install"], "sudo apt-get install avrdude");
    assert!(one("avrdude")["installed"].as_str().unwrap().ends_with("/avrdude"), "{listed}");
    assert_eq!(one("west")["install"], "pipx install west");
    let listed = workshop.run(["flashers"]);
    assert!(listed.says(0, &[]).out().contains("dfu-util"), "{listed}");
    let shown = workshop.run(["flashers", "avrdude"]);
    shown.says(0, &[]);
    for words in
        ["option     part: ", "(required)", "failure    ", "preset = \"avrdude\", options = { part"]
    {
        assert!(shown.out().contains(words), "{words}: {shown}");
    }
    let told = workshop.run(["--json", "flashers", "jlink"]).json().unwrap();
    assert_eq!(told["script"][2], "loadfile \"{hex}\"");
    assert!(told["failures"].as_array().unwrap().len() >= 3, "{told}");
    workshop
        .run(["flashers", "avrdud"])
        .says(2, &["no flasher \"avrdud\"", "did you mean `avrdude`?"]);
}

/// A boot loader with UF2 takes its volume away once it has each block.
fn leaves_when_it_has_all(root: &std::path::Path, gone: &std::path::Path) {
    until("the last block", || {
        let blocks = fs::read(root.join("JIG.UF2")).ok()?;
        let wanted = u32::from_le_bytes(blocks.get(24..28)?.try_into().ok()?);
        (blocks.len() == wanted as usize * 512).then_some(())
    });
    fs::rename(root, gone).unwrap();
}

#[test]
fn a_profile_names_the_volume_of_its_boards_and_a_place_another_one() {
    let workshop = Workshop::new();
    let (root, other) = (workshop.path("VOLUME"), workshop.path("OTHER"));
    fs::create_dir(workshop.path("board-profiles")).unwrap();
    let profile = format!(
        "version = 1\nid = \"own\"\ntitle = \"A board with UF2\"\narch = \"arm\"\nmemory = [\n\
         {{ name = \"flash\", kind = \"flash\", start = 0x0, size = \"256K\" }},\n\
         {{ name = \"ram\", kind = \"ram\", start = 0x2000_0000, size = \"16K\" }}]\n\
         console = [{{ name = \"uart0\", kind = \"uart\" }}]\n[deploy]\nmethod = \"volume\"\n\
         volume = \"{}\"\nfamily = 7\ntimeout = \"30s\"\n",
        root.display()
    );
    workshop.write("board-profiles/own.toml", profile);
    let place = |name: &str, more: &str| {
        format!(
            "[[place]]\nname = \"{name}\"\nboard = \"own\"\nreset = {{ command = [\"true\"] }}\n{more}"
        )
    };
    let flasher = format!("flasher = {{ volume = \"{}\" }}\n", other.display());
    let rig = format!("version = 1\n{}{}", place("one", ""), place("two", &flasher));
    workshop.write("rig.toml", rig);
    workshop.run(["profile", "check", "board-profiles/own.toml", "rig.toml"]).says(0, &[]);
    let image = elf(KIND, "unity-pass");
    for (name, volume) in [("one", &root), ("two", &other)] {
        fs::create_dir(volume).unwrap();
        let gone = workshop.path(&format!("gone-{name}"));
        let flashed = std::thread::scope(|scope| {
            scope.spawn(|| leaves_when_it_has_all(volume, &gone));
            workshop.run(["--json", "flash", "-b", name, &image])
        });
        flashed.says(0, &[]);
        assert_eq!(flashed.json().unwrap()["report"]["method"], "volume", "{flashed}");
        // The family that the profile says is in each block, whichever volume it is.
        let blocks = fs::read(gone.join("JIG.UF2")).unwrap();
        assert!(blocks.chunks(512).all(|block| block[28..32] == [7, 0, 0, 0]), "{name}");
    }
    // Neither volume is there any more, and no program has said anything.
    let text = fs::read_to_string(workshop.path("rig.toml")).unwrap();
    let soon = format!("{{ volume = \"{}\", timeout = \"100ms\" }}", other.display());
    let old = format!("{{ volume = \"{}\" }}", other.display());
    workshop.write("rig.toml", text.replace(&old, &soon));
    let absent = workshop.run(["flash", "-b", "two", &image]);
    absent.says(75, &["is not mounted after 100ms", "sudo mount DEVICE"]);
    assert!(!absent.err().contains("its output is in"), "{absent}");
}

/// What the guide shows of flashers is accepted as it stands, and its page names no other preset.
#[test]
fn flashers_of_the_guide_are_accepted_as_they_stand() {
    let workshop = Workshop::new();
    let guide = repository().join("controller/guide/flashers.md");
    let text = fs::read_to_string(guide).unwrap();
    let shown = text.split('`').filter(|code| code.starts_with("{ preset = "));
    let lines = text.lines().filter_map(|line| line.strip_prefix("flasher = "));
    let all: Vec<&str> = shown.chain(lines).collect();
    assert!(all.len() > 15, "{all:?}");
    for flasher in all {
        let port = "[[place.console]]\nname = \"uart0\"\ntty = \"/dev/serial/by-id/usb-1\"\n";
        rig(&workshop, "", flasher, port);
        // Some programs are told the chip.
        let text = fs::read_to_string(workshop.path("rig.toml")).unwrap();
        workshop.write("rig.toml", text.replace(KIND, "netduinoplus2"));
        let checked = workshop.run(["profile", "check", "rig.toml"]);
        assert_eq!(checked.code(), 0, "{flasher}: {checked}");
    }
    let listed = workshop.run(["--json", "flashers"]).json().unwrap();
    for flasher in listed["flashers"].as_array().unwrap() {
        let name = flasher["name"].as_str().unwrap();
        assert!(text.contains(name), "the guide does not name {name}");
    }
}

/// Makes an ELF file with a segment of 64 bytes at each address.
fn elf_at(machine: u16, addresses: &[u32]) -> Vec<u8> {
    let count = u16::try_from(addresses.len()).unwrap();
    let mut file = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    for half in [2, machine] {
        file.extend(half.to_le_bytes());
    }
    for word in [1, addresses[0], 52, 0, 0] {
        file.extend(word.to_le_bytes());
    }
    for half in [52, 32, count, 0, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    let data = 52 + 32 * u32::from(count);
    for (number, &address) in (0..).zip(addresses) {
        for word in [1, data + 64 * number, address, address, 64, 64, 5, 4] {
            file.extend(word.to_le_bytes());
        }
    }
    file.resize(file.len() + 64 * addresses.len(), 0x55);
    file
}

#[test]
fn programs_of_esp_boards_are_taken_by_the_flasher_that_takes_elf_files() {
    let workshop = Workshop::new();
    let (riscv, xtensa) = (243, 94);
    for (board, machine, addresses) in [
        ("esp32-c3-devkitm", riscv, &[0x4037_c000, 0x3c00_0020, 0x4200_0020, 0x3fc8_0000][..]),
        ("esp32-c6-devkitc", riscv, &[0x4080_0000, 0x4200_0020]),
        (
            "esp32-devkitc",
            xtensa,
            &[0x4008_0000, 0x3f40_0020, 0x400d_0020, 0x3ffb_0000, 0x400c_0000],
        ),
        ("esp32-s3-devkitc", xtensa, &[0x4037_4000, 0x3c00_0020, 0x4200_0020, 0x600f_e000]),
    ] {
        let image = workshop.write("app.elf", elf_at(machine, addresses));
        let flash = |flasher: &str| {
            let console = "console = [{ name = \"uart0\", tty = \"/dev/ttyJig9\" }]\n";
            let place =
                format!("[[place]]\nname = \"esp\"\nboard = \"{board}\"\n{flasher}{console}");
            workshop.write("rig.toml", format!("version = 1\n{place}"));
            let mut jig = workshop.jig(["flash", "-b", "esp", image.to_str().unwrap()]);
            ran(jig.env("PATH", "/nonexistent")).unwrap()
        };
        // The program is the next thing that is missing.
        let by_elf = flash("flasher = { preset = \"espflash\" }\n");
        by_elf.says(75, &["espflash: it is not installed", "cargo install --locked espflash"]);
        assert!(!by_elf.err().contains("its output is in"), "{by_elf}");
        let wrong = "esptool takes a raw binary, and this is an ELF file";
        flash("").says(2, &[wrong, "app.bin@0x10000", "preset espflash takes ELF files"]);
    }
}
