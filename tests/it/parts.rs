//! Places that are made of parts: a board with a serial console and something that boots it, and
//! no debug probe.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::board::{Board, KIND, ResetBy, device, outlets};
use crate::capture_service::CaptureService;
use crate::fixtures::set_in_profile;
use crate::manifest::{elf, entries};
use crate::power_lab::{Simulator, Web, free_address, until_listens};
use crate::power_transport::serial;
use crate::serial::tty;
use crate::workshop::{Ran, Slot, Started, Workshop, until};

/// Writes a rig file of places of that kind, each with what is said of it.
fn rig(workshop: &Workshop, more: &str, places: &[(&str, &str)]) {
    let place = |(name, parts): &(&str, &str)| {
        format!("[[place]]\nname = \"{name}\"\nboard = \"{KIND}\"\n{parts}\n")
    };
    let places: String = places.iter().map(place).collect();
    workshop.write("rig.toml", format!("version = 1\n{more}{places}"));
}

/// Describes a console behind a socket, and an outlet.
fn console_and_outlet(workshop: &Workshop, board: &Board, number: usize) -> String {
    let socket = workshop.path(&format!("console-{number}"));
    board.on_a_socket(&socket);
    format!(
        "power = {{ device = \"pdu\", outlet = \"{number}\" }}\n[[place.console]]\n\
         name = \"uart0\"\nunix = \"{}\"\n",
        socket.display()
    )
}

/// A board at place `bare`: a console behind a socket, an outlet, and no debug probe.
struct Bare {
    workshop: Workshop,
    board: Board,
    web: Web,
    parts: String,
    _slot: Slot,
}

impl Bare {
    fn new() -> Self {
        let slot = Slot::take();
        let workshop = Workshop::new();
        let board = Board::new(&workshop, "one");
        let web = outlets(&[&board]);
        let parts = console_and_outlet(&workshop, &board, 0);
        let bare = Self { workshop, board, web, parts, _slot: slot };
        bare.describe(&bare.parts);
        bare
    }

    /// Writes the rig file with other parts.
    fn describe(&self, parts: &str) {
        rig(&self.workshop, &device(&self.web), &[("bare", parts)]);
    }

    /// Returns the parts without the outlet that is its power.
    fn console(&self) -> &str {
        &self.parts[self.parts.find("[[place.console]]").unwrap()..]
    }

    /// Writes a program `switch STATE...` that sets the outlet to one state after the other.
    fn switch(&self) -> String {
        let port = self.web.url().rsplit_once(':').unwrap().1.to_owned();
        let program = format!(
            "#!/bin/bash\nset -e\nfor state in \"$@\"; do exec 3<>/dev/tcp/127.0.0.1/{port}\n\
             printf 'GET /set/0/%s HTTP/1.1\\r\\n\\r\\n' \"$state\" >&3\n\
             read -r <&3\ndone\n"
        );
        let path = self.workshop.write("switch", program);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.display().to_string()
    }

    /// Runs while other firmware is running; the log has only what the board prints after its
    /// boot.
    #[track_caller]
    fn boots_instead_of(&self, other: &str) {
        self.board.flash(&elf(KIND, other));
        self.board.on();
        self.board.flash(&elf(KIND, "unity-pass"));
        let ran = self.workshop.run(["run", "-b", "bare"]);
        ran.says(0, &[]);
        let log = log(&self.workshop).unwrap();
        assert!(log.starts_with("jig-fixture unity-pass"), "{log}: {ran}");
    }
}

fn verdict(ran: &Ran) -> Value {
    ran.json().unwrap_or_else(|why| panic!("{why}"))["verdict"].clone()
}

/// Returns what the console has shown in the last run's first attempt so far.
fn log(workshop: &Workshop) -> Option<String> {
    let log = workshop.run_dirs().pop()?.join("consoles/1/uart0.raw");
    fs::read(log).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

#[test]
fn a_console_and_an_outlet_are_enough_for_a_verdict() {
    let Bare { workshop, board, .. } = &Bare::new();
    for fixture in ["unity-pass", "unity-fail", "fault-banner", "silent"] {
        let wanted = entries();
        let wanted = wanted.iter().find(|e| e.board == KIND && e.fixture == fixture).unwrap();
        board.flash(&elf(KIND, fixture));
        // The board was not switched off, so some firmware runs already.
        board.on();
        let timeout = format!("{}s", wanted.timeout_s);
        let ran = workshop.run(["--json", "run", "-b", "bare", "--timeout", &timeout]);
        let got = verdict(&ran);
        assert_eq!(
            (&got["kind"], &got["cause"]),
            (&wanted.verdict.as_str().into(), &wanted.cause.as_str().into()),
            "{fixture}: {ran}"
        );
        if fixture != "silent" {
            let log = log(workshop).unwrap();
            assert!(log.starts_with("jig-fixture "), "{fixture}: {log}");
        }
    }
}

#[test]
fn an_outlet_that_switches_another_board_is_found_out_by_the_console() {
    let Bare { workshop, board, .. } = &Bare::new();
    // It prints for ever.
    board.flash(&elf(KIND, "boot-loop"));
    board.on();
    board.lies();
    let args = ["--json", "run", "-b", "bare", "--timeout", "5s", "--max-recoveries", "0"];
    let ran = workshop.run(args);
    ran.says(75, &[]);
    assert_eq!(verdict(&ran)["cause"], "power_mismatch", "{ran}");
    let words = "outlet 0 of pdu was switched off, but console uart0 sees the contrary after 5s";
    assert!(ran.out().contains(words), "{ran}");
    board.off();
}

#[test]
fn a_console_that_goes_and_comes_back_costs_a_healthy_firmware_nothing() {
    let Bare { workshop, board, .. } = &Bare::new();
    // It says hello, and is silent for a while.
    board.flash(&elf(KIND, "slow-start"));
    let mut command = workshop.jig(["--json", "run", "-b", "bare", "--timeout", "20s"]);
    let run = Started::of(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    until("a first line", || log(workshop)?.starts_with("jig-fixture").then_some(()));
    board.replug();
    let ran = run.finish();
    ran.says(0, &[]);
    let events = workshop.run_dirs().pop().unwrap().join("events.jsonl");
    assert!(fs::read_to_string(events).unwrap().contains("gap"), "{ran}");
}

#[test]
fn a_run_goes_on_at_the_equal_place() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let (gone, good) = (Board::new(&workshop, "gone"), Board::new(&workshop, "good"));
    let web = outlets(&[&gone, &good]);
    let second = console_and_outlet(&workshop, &good, 1);
    // The console of the first is not there.
    let first = second.replace("outlet = \"1\"", "outlet = \"0\"").replace("console-1", "nowhere");
    let first = format!("{first}timeout = \"100ms\"\n");
    rig(&workshop, &device(&web), &[("one", &first), ("two", &second)]);
    good.flash(&elf(KIND, "unity-pass"));
    // The steps before it would wait for the console.
    set_in_profile(&workshop, KIND, "[recovery]", "ladder = [\"fail-over\"]");
    let ran = workshop.run(["--json", "run", "-b", "one"]);
    ran.says(0, &[]);
    assert_eq!(ran.json().unwrap()["place"], "two", "{ran}");
    assert!(
        verdict(&ran)["notes"].to_string().contains("by fail-over after console_lost"),
        "{ran}"
    );
}

#[test]
fn a_program_flashes_a_board_that_has_no_probe() {
    let bare = Bare::new();
    let Bare { workshop, board, parts: place, .. } = &bare;
    let program = workshop.write("flash", "#!/bin/sh\necho \"$1\" > \"$2\" || exit 3\n");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let flash = workshop.path("one.flash");
    let flasher = |to: &str| {
        let program = program.display();
        format!("flasher = {{ command = [\"{program}\", \"{{image}}\", \"{to}\"] }}\n{place}")
    };
    bare.describe(&flasher(flash.to_str().unwrap()));
    board.flash(&elf(KIND, "unity-fail"));
    let image = elf(KIND, "unity-pass");
    workshop.run(["run", "-b", "bare", &image]).says(0, &[]);
    assert!(!fs::read_to_string(&flash).unwrap().contains("unity-fail"));
    // It says nothing of a comparison, so one that was asked for is missing.
    workshop.run(["flash", "-b", "bare", &image]).says(0, &[]);
    let verify = workshop.run(["flash", "-b", "bare", &image, "--verify"]);
    verify.says(4, &["not verified", "--verify asks for that"]);
    // One that fails is the rig's.
    bare.describe(&flasher("/nowhere/x"));
    let ran = workshop.run(["--json", "run", "-b", "bare", &image]);
    assert_eq!(verdict(&ran)["cause"], "deploy_failed", "{ran}");
    // Without a flasher the place says what it lacks.
    bare.describe(place);
    let words = "place bare has no way to put an image on its board: plan run needs one";
    workshop.run(["run", "-b", "bare", &image]).says(3, &[words, "flasher = {"]);
}

#[test]
fn a_board_without_probe_is_flashed_and_reset_by_its_other_parts() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let board = Board::new(&workshop, "one");
    let web = outlets(&[&board]);
    let place = console_and_outlet(&workshop, &board, 0);
    let program = workshop.write("flash", "#!/bin/sh\necho \"$1\" > \"$2\" || exit 3\n");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let flash = workshop.path("one.flash");
    let flasher = |to: &str| {
        let program = program.display();
        format!("flasher = {{ command = [\"{program}\", \"{{image}}\", \"{to}\"] }}\n{place}")
    };
    rig(&workshop, &device(&web), &[("bare", &flasher(flash.to_str().unwrap()))]);
    let image = elf(KIND, "unity-pass");
    let flashed = workshop.run(["--json", "flash", "-b", "bare", &image]);
    flashed.says(0, &[]);
    assert!(fs::read_to_string(&flash).unwrap().contains("unity-pass"));
    let told = flashed.json().unwrap();
    assert_eq!((&told["place"], &told["chip"]), (&"bare".into(), &Value::Null), "{flashed}");
    assert!(told["method"].as_str().unwrap().ends_with("flash"), "{flashed}");
    let words = format!("flashing by {}", program.display());
    workshop.run(["flash", "-b", "bare", &image]).says(0, &[&words]);
    let words = "place bare has no debug probe: `flash` with an option of a probe needs one";
    for option in ["--no-reset", "--no-verify", "--all", "--under-reset"] {
        workshop.run(["flash", "-b", "bare", &image, option]).says(3, &[words]);
    }
    // A probe of the environment is that of another board.
    let mut flash = workshop.jig(["flash", "-b", "bare", &image]);
    let flashed = flash.env("PROBE_RS_PROBE", "0d28:0204").output().unwrap();
    assert!(flashed.status.success(), "{flashed:?}");
    let reset = workshop.run(["--json", "reset", "-b", "bare"]);
    reset.says(0, &[]);
    assert_eq!(reset.json().unwrap()["method"], "power");
    let words = "place bare has no debug probe: `reset --halt` needs one";
    workshop.run(["reset", "-b", "bare", "--halt"]).says(3, &[words, "add `[place.probe]`"]);
    // A program that fails leaves its output.
    rig(&workshop, &device(&web), &[("bare", &flasher("/nowhere/x"))]);
    let failed = workshop.run(["flash", "-b", "bare", &image]);
    failed.says(75, &["ended with code 3", "its output is in "]);
    let told = failed.err();
    let told = told.split_once("its output is in ").unwrap().1.lines().next().unwrap();
    let evidence = std::path::PathBuf::from(told.trim());
    let said = fs::read_to_string(evidence.join("flasher-1.log")).unwrap();
    assert!(said.contains("/nowhere/x"), "{said}");
    assert_eq!(fs::read_dir(&evidence).unwrap().count(), 1, "the log alone");
    rig(
        &workshop,
        &device(&web),
        &[("bare", &flasher(workshop.path("one.flash").to_str().unwrap()))],
    );
    workshop.run(["flash", "-b", "bare", &image]).says(0, &[]);
    assert!(!evidence.exists(), "it goes with the next command at the place");
    let reset = format!("reset = {{ command = [\"true\"] }}\n{place}");
    rig(&workshop, &device(&web), &[("bare", &reset)]);
    let reset = workshop.run(["reset", "-b", "bare"]);
    reset.says(0, &[]);
    assert!(reset.out().contains("bare: reset by a program"), "{reset}");
    // What is missing is said, and where to add it.
    let words = "place bare has no way to put an image on its board: `flash` needs one";
    workshop.run(["flash", "-b", "bare", &image]).says(3, &[words, "flasher = {"]);
    let console = "[[place.console]]\nname = \"uart0\"\ntty = \"/dev/ttyUSB7\"\n";
    rig(&workshop, "", &[("mute", console)]);
    let words = "place mute has no reset: `reset` needs one";
    workshop.run(["reset", "-b", "mute"]).says(3, &[words, "reset = {"]);
}

#[test]
fn what_a_killed_flash_left_running_ends_with_the_next_command_at_the_place() {
    let bare = Bare::new();
    let Bare { workshop, parts: place, .. } = &bare;
    let text = "#!/bin/sh\nsleep 600 >/dev/null 2>&1 &\necho $! > new; mv new \"$1\"; wait\n";
    let program = workshop.write("flash", text);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let pid = workshop.path("pid");
    let (program, pid_file) = (program.display(), pid.display());
    let flasher =
        format!("flasher = {{ command = [\"{program}\", \"{pid_file}\", \"{{image}}\"] }}");
    bare.describe(&format!("{flasher}\n{place}"));
    let image = elf(KIND, "unity-pass");
    let mut jig = workshop.jig(["flash", "-b", "bare", &image]);
    let mut flash = Started::of(jig.stdout(Stdio::null()).stderr(Stdio::null()));
    let child = until("a child of the flasher", || fs::read_to_string(&pid).ok());
    let lives = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.trim())).unwrap_or_default();
        !matches!(stat.rsplit(") ").next().and_then(|rest| rest.chars().next()), None | Some('Z'))
    };
    flash.child().kill().unwrap();
    flash.child().wait().unwrap();
    assert!(lives(), "the kernel ends the flasher, and not what it has started");
    bare.describe(&format!("flasher = {{ command = [\"true\", \"{{image}}\"] }}\n{place}"));
    workshop.run(["flash", "-b", "bare", &image]).says(0, &[]);
    until("the end of that child", || (!lives()).then_some(()));
    // Nothing is left in the folder for temporary files either.
    assert_eq!(fs::read_dir(workshop.path("../tmp")).unwrap().count(), 0);
}

#[test]
fn a_line_of_the_console_boots_a_board_whose_power_nobody_switches() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let board = Board::new(&workshop, "one");
    let address = board.on_rfc2217(ResetBy::Rts);
    let console = format!("[[place.console]]\nname = \"uart0\"\nrfc2217 = \"{address}\"\n");
    let place = format!("reset = {{ console = \"uart0\", lines = \"rts\" }}\n{console}");
    rig(&workshop, "", &[("esp", &place)]);
    board.flash(&elf(KIND, "boot-loop"));
    board.on();
    board.flash(&elf(KIND, "unity-pass"));
    workshop.run(["run", "-b", "esp"]).says(0, &[]);
    let log = log(&workshop).unwrap();
    assert!(log.starts_with("jig-fixture unity-pass"), "{log}");
    let reset = workshop.run(["--json", "reset", "-b", "esp"]);
    reset.says(0, &[]);
    assert_eq!(reset.json().unwrap()["method"], "line");
    board.off();
    // Without it nothing can start a boot, and nothing is claimed of one.
    rig(&workshop, "", &[("mute", &console)]);
    let words = "place mute has neither power control nor a reset: plan run needs one";
    workshop.run(["run", "-b", "mute"]).says(3, &[words, "manual", "[place.probe]"]);
    workshop.run(["power", "-b", "mute", "off"]).says(3, &["nothing says what switches"]);
}

#[test]
fn the_other_line_of_the_console_resets_where_the_place_says_so() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let board = Board::new(&workshop, "one");
    let address = board.on_rfc2217(ResetBy::Dtr);
    let parts = format!(
        "reset = {{ console = \"uart0\", lines = \"dtr\" }}\n\
         [[place.console]]\nname = \"uart0\"\nrfc2217 = \"{address}\"\n"
    );
    rig(&workshop, "", &[("bare", &parts)]);
    board.flash(&elf(KIND, "boot-loop"));
    board.on();
    board.flash(&elf(KIND, "unity-pass"));
    workshop.run(["run", "-b", "bare"]).says(0, &[]);
    let log = log(&workshop).unwrap();
    assert!(log.starts_with("jig-fixture unity-pass"), "{log}");
    board.off();
}

#[test]
fn an_outlet_at_the_reset_pin_boots_a_board() {
    let bare = Bare::new();
    let reset = "reset = { device = \"pdu\", outlet = \"0\", off_time = \"1ms\" }";
    bare.describe(&format!("{reset}\n{}", bare.console()));
    bare.boots_instead_of("boot-loop");
}

#[test]
fn a_relay_on_a_serial_port_powers_a_board_for_a_run() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let board = Board::new(&workshop, "one");
    let parts = console_and_outlet(&workshop, &board, 2);
    let (mut bytes, heard) = (Vec::new(), Arc::new(Mutex::new(Vec::new())));
    let (relay, frames) = (board.clone(), Arc::clone(&heard));
    let (port, _held) = serial(move |some| {
        bytes.extend_from_slice(some);
        while let Some((&frame, rest)) = bytes.split_first_chunk::<4>() {
            bytes = rest.to_vec();
            match frame[2] {
                0 => relay.off(),
                _ => relay.on(),
            }
            frames.lock().unwrap().push(frame);
        }
        Vec::new()
    });
    let device = format!(
        "[[power]]\nname = \"pdu\"\nmin_interval = \"0ms\"\noff_time = \"1ms\"\n\
         [power.relay]\nport = \"{}\"\nprotocol = \"lcus\"\n",
        port.display()
    );
    rig(&workshop, &device, &[("bare", &parts)]);
    board.flash(&elf(KIND, "boot-loop"));
    board.on();
    board.flash(&elf(KIND, "unity-pass"));
    workshop.run(["run", "-b", "bare"]).says(0, &[]);
    let log = log(&workshop).unwrap();
    assert!(log.starts_with("jig-fixture unity-pass"), "{log}");
    let (off, on) = ([0xa0, 2, 0, 0xa2], [0xa0, 2, 1, 0xa3]);
    // A relay hears the last command a moment after it was sent.
    let frames = until("the last frame", || {
        let heard = heard.lock().unwrap();
        (heard.last() == Some(&off)).then(|| heard.clone())
    });
    assert_eq!(frames, [off, on, off], "cut, boot, and off behind the run");
}

#[test]
fn a_program_resets_a_board() {
    let bare = Bare::new();
    let switch = bare.switch();
    let reset = format!("reset = {{ command = [\"{switch}\", \"off\", \"on\"] }}");
    bare.describe(&format!("{reset}\n{}", bare.console()));
    // A program holds nothing in reset: what other firmware prints until then is in the log.
    bare.boots_instead_of("silent");
    let why = "reset the board";
    bare.describe(&format!("reset = {{ command = [\"/bin/false\"] }}\n{}", bare.console()));
    let ran = bare.workshop.run(["--json", "run", "-b", "bare", "--max-recoveries", "0"]);
    ran.says(75, &[]);
    assert_eq!(verdict(&ran)["cause"], "power_failed", "{ran}");
    assert!(ran.out().contains(why), "{ran}");
}

#[test]
fn pdudaemon_is_an_outlet_of_a_board_without_a_probe() {
    let bare = Bare::new();
    let switch = bare.switch();
    let address = free_address();
    let config = serde_json::json!({
        "daemon": {
            "hostname": address.ip().to_string(), "port": address.port(), "listener": "http",
            "logging_level": "DEBUG",
        },
        "pdus": { "bench": {
            "driver": "localcmdline", "retries": 1,
            "cmd_on": format!("{switch} on # %s"), "cmd_off": format!("{switch} off # %s"),
        } },
    });
    bare.workshop.write("pdudaemon.conf", config.to_string());
    let folder = bare.workshop.path("");
    let args = ["--conf", "pdudaemon.conf"];
    let _daemon = Simulator::start("/usr/sbin/pdudaemon", &args, &folder);
    until_listens(address);
    let device = format!(
        "[[power]]\nname = \"pdu\"\nmin_interval = \"0ms\"\noff_time = \"1s\"\n\
         [power.pdudaemon]\nurl = \"http://{address}\"\nhostname = \"bench\"\n"
    );
    rig(&bare.workshop, &device, &[("bare", &bare.parts)]);
    bare.boots_instead_of("boot-loop");
}

#[test]
fn a_fault_of_the_console_is_injected_at_a_place_without_a_probe() {
    let Bare { workshop, board, .. } = &Bare::new();
    board.flash(&elf(KIND, "unity-pass"));
    let run = |fault: &str, recoveries: &str| {
        let more = ["--inject", fault, "--max-recoveries", recoveries, "--timeout", "10s"];
        workshop.run(["--json", "run", "-b", "bare"].iter().chain(&more))
    };
    let ran = run("cut-console@0s", "0");
    ran.says(75, &[]);
    assert_eq!(verdict(&ran)["cause"], "console_lost", "{ran}");
    assert!(ran.out().contains("injected cut-console@0s"), "{ran}");
    run("cut-console@0s", "3").says(0, &[]);
}

#[test]
fn a_capture_service_lends_the_console_of_a_board_without_a_probe() {
    let bare = Bare::new();
    let service = CaptureService::with(&bare.workshop, |_| ());
    service.state("bare", "captured");
    bare.boots_instead_of("boot-loop");
    assert!(service.told().iter().any(|told| told["state"] == "lent"), "{:?}", service.told());
    service.stop().says(0, &[]);
}

#[test]
fn a_verb_says_what_a_place_lacks() {
    let workshop = Workshop::new();
    let console = "[[place.console]]\nname = \"uart0\"\ntty = \"/dev/ttyUSB7\"\n";
    rig(&workshop, "", &[("esp", console), ("net", "network = { ssh = \"192.0.2.7:22\" }\n")]);
    for (verb, args) in [("regs", &[][..]), ("bt", &[]), ("halt", &[]), ("rtt", &[])] {
        let words = format!("place esp has no debug probe: `{verb}` needs one");
        let ran = workshop.run([&[verb, "-b", "esp"][..], args].concat());
        ran.says(3, &[&words, "add `[place.probe]`"]);
    }
    let words = "place net has no console that can be reached: plan run needs one";
    workshop.run(["run", "-b", "net"]).says(3, &[words]);
    let boards = workshop.run(["boards"]);
    assert!(
        boards.out().contains("uart0 tty") && boards.out().contains("ssh 192.0.2.7:22"),
        "{boards}"
    );
    let ladder = workshop.run(["recover", "-b", "esp", "--dry-run"]);
    assert!(ladder.out().contains("the place has no debug probe"), "{ladder}");
}

#[test]
fn an_expected_reset_is_known_by_the_output_of_a_serial_port() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let board = Board::new(&workshop, "one");
    let web = outlets(&[&board]);
    let parts = format!(
        "power = {{ device = \"pdu\", outlet = \"0\" }}\n[[place.console]]\nname = \"uart0\"\n{}\n",
        tty(&board.on_a_tty())
    );
    rig(&workshop, &device(&web), &[("bare", &parts)]);
    let unseen = "no reset of the target was seen on console uart0 within 2s (this board does not \
                  tell of resets";
    for (fixture, begins, timeout, code, words) in [
        // What begins a boot has to be named where the board does not tell of resets.
        ("self-reset", "true", "2s", 1, unseen),
        ("self-reset", "'^jig-fixture self-reset'", "60s", 0, "3 tests passed"),
        ("red-before-own-reset", "'^jig-fixture red'", "60s", 1, "first test_keeps_order"),
        ("unity-pass", "true", "2s", 1, unseen),
    ] {
        let plan = format!(
            "version = 1\nname = \"reset\"\ngoal = \"g\"\ntimeout = \"2m\"\n[[stage]]\nname = \"s\"\n\
             [[stage.step]]\nname = \"t\"\ngoal = \"g\"\nactions = [{{ power = \"cycle\" }}, \
             {{ expect_reset = {begins}, timeout = \"{timeout}\" }}, {{ wait_for_results = true }}]\n"
        );
        let plan = workshop.write("plan.toml", plan).display().to_string();
        board.flash(&elf(KIND, fixture));
        let ran = workshop.run(["test", "-b", "bare", &plan, "--max-recoveries", "0"]);
        ran.says(code, &[words]);
    }
}
