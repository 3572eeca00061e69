//! The verbs that flash and debug, on boards whose flash is emulated, is RAM, or is a ROM to
//! the emulator: once on a board that lives as long as a verb, once on one that is served.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::json;

use crate::manifest::elf;
use crate::served::{Served, bytes_of, first_line};
use crate::workshop::{Slot, Started, Workshop, until};

/// A board with a debug port: where its program and its RAM begin, and its chip.
struct Bench {
    board: &'static str,
    program: u64,
    chip: Option<&'static str>,
}

const BENCHES: [Bench; 3] = [
    Bench { board: "microbit", program: 0, chip: Some("nRF51822_xxAA") },
    Bench { board: "mps2-an385", program: 0, chip: None },
    Bench { board: "netduinoplus2", program: 0x0800_0000, chip: Some("STM32F405RGTx") },
];

/// RAM that no fixture uses: behind its data, below its noinit words.
const FREE: &str = "0x20003000";

fn elf_bytes(board: &str, fixture: &str) -> (u64, Vec<u8>) {
    let bytes = std::fs::read(elf(board, fixture)).unwrap();
    let payload = jig_model::image::Payload::read(jig_model::image::ImageFormat::Elf, &bytes);
    let first = payload.unwrap().segments[0].clone();
    (first.start, first.bytes)
}

#[test]
fn flash_outlives_the_verb() {
    let _slot = Slot::take();
    for Bench { board, program, .. } in BENCHES {
        let workshop = Workshop::new();
        let image = elf(board, "unity-pass");
        let (start, bytes) = elf_bytes(board, "unity-pass");
        assert_eq!(start, program, "{board}");
        let flashed = workshop.run(["--json", "flash", "-b", board, &image]);
        flashed.says(0, &[]);
        let report = flashed.json().unwrap();
        assert_eq!((&report["place"], &report["method"]), (&json!(board), &json!("probe")));
        assert_eq!(report["attempts"], 1);
        assert_eq!(report["report"]["verified"], true, "{flashed}");
        assert!(report["report"]["bytes"].as_u64() >= Some(bytes.len() as u64), "{flashed}");

        let (address, len) = (format!("{program:#x}"), bytes.len().to_string());
        let read = workshop.run(["--json", "mem", "read", "-b", board, &address, &len]);
        read.says(0, &[]);
        let read = read.json().unwrap();
        assert_eq!((&read["place"], &read["address"]), (&json!(board), &json!(program)));
        assert_eq!(bytes_of(&read), bytes, "{board}");
        let args = ["mem", "read", "-b", board, &address, &len, "-o", "-"];
        assert_eq!(workshop.run(args).stdout, bytes, "{board}");
        let mut args = ["--json", "mem", "read", "-b", board, &address, &len, "-o", "bytes.bin"];
        let kept = workshop.run(args);
        kept.says(0, &[]);
        let about = json!({"place": board, "address": program, "length": bytes.len(), "output": "bytes.bin"});
        assert_eq!(kept.json().unwrap(), about);
        assert_eq!(std::fs::read(workshop.path("bytes.bin")).unwrap(), bytes, "{board}");
        args[8] = "-";
        let both = workshop.run(args);
        assert_eq!(both.json().unwrap()["error"]["fault"], "usage", "{both}");
        let shown = workshop.run(["mem", "read", "-b", board, &address, "4"]).out();
        assert!(shown.starts_with(&format!("{program:08x}: ")), "{shown}");
        workshop.nothing_lives(Duration::ZERO).unwrap();
    }
}

#[test]
fn an_image_may_have_any_name() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let name = workshop.path("").join(OsStr::from_bytes(b"app-\xff.elf"));
    std::fs::copy(elf("microbit", "unity-pass"), &name).unwrap();
    let args = ["flash", "-b", "microbit"].map(OsString::from);
    workshop.run(args.into_iter().chain([name.into()])).says(0, &[]);
}

#[test]
fn a_verb_runs_to_a_breakpoint_by_itself() {
    let _slot = Slot::take();
    for Bench { board, .. } in BENCHES {
        let workshop = Workshop::new();
        let image = elf(board, "unity-pass");
        workshop.run(["flash", "-b", board, &image]).says(0, &[]);
        let args = ["--json", "bp", "-b", board, "uart_put", "--image", &image];
        let reached = workshop.run(args);
        reached.says(0, &[]);
        let state = reached.json().unwrap();
        assert_eq!(state["core"]["state"], "halted");
        assert_eq!(state["core"]["reason"], "breakpoint");
        let never = ["bp", "-b", board, "nmi_handler", "--image", &image];
        let never = never.into_iter().chain(["--timeout", "300ms"]);
        workshop.run(never).says(1, &["was not reached in 300ms", "jig bt -b"]);
        let absent = workshop.run(["bp", "-b", board, "no_such", "--image", &image]);
        absent.says(2, &["has no function \"no_such\""]);
        workshop.run(["bp", "-b", board, "main"]).says(2, &["--image APP.elf"]);
    }
}

#[test]
fn erased_is_blank() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    workshop.run(["flash", "-b", "microbit", &elf("microbit", "unity-pass")]).says(0, &[]);
    workshop.write("tail.bin", [1, 2, 3, 4]);
    workshop.run(["flash", "-b", "microbit", "tail.bin@0x400"]).says(0, &[]);
    let part = workshop.run(["--json", "erase", "-b", "microbit", "--range", "0+1K"]);
    part.says(0, &[]);
    assert_eq!(part.json().unwrap()["report"]["bytes"], 1024);
    let read = |address| {
        let ran = workshop.run(["--json", "mem", "read", "-b", "microbit", address, "4"]);
        bytes_of(&ran.json().unwrap())
    };
    assert_eq!((read("0"), read("0x400")), (vec![0xff; 4], vec![1, 2, 3, 4]));
    let all = workshop.run(["--json", "erase", "-b", "microbit"]);
    all.says(0, &[]);
    assert_eq!(all.json().unwrap()["report"]["bytes"], 256 << 10);
    assert_eq!(read("0x400"), [0xff; 4]);
    // A chip without a program locks up, which a person is told and a script can see.
    let served = Served::start(&workshop, "microbit", &[]);
    assert_eq!(served.json(&["reset"], &[])["core"]["state"], "locked_up");
}

#[test]
fn a_lock_up_before_a_breakpoint_is_explained() {
    let _slot = Slot::take();
    for Bench { board, .. } in BENCHES {
        let workshop = Workshop::new();
        let image = elf(board, "lockup");
        workshop.run(["flash", "-b", board, &image]).says(0, &[]);
        let bp = ["bp", "-b", board, "nmi_handler", "--image", &image, "--timeout", "60s"];
        let ran = workshop.run(["--json"].iter().chain(&bp));
        ran.says(1, &[]);
        let told = ran.json().unwrap();
        assert_eq!(told["outcome"], "locked_up", "{told}");
        assert_eq!(told["core"]["state"], "locked_up", "{told}");
        assert_eq!(told["found"]["kind"], "lock-up", "{told}");
        let ran = workshop.run(bp);
        ran.says(1, &["was not reached: the core locked up"]);
        assert!(
            ran.out().contains("lock-up: undefined instruction 0xde00 in on_fault (main.c:"),
            "{ran}"
        );
    }
}

#[test]
fn a_served_core_that_locked_up_is_explained() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let image = elf("microbit", "lockup");
    let served = Served::start(&workshop, "microbit", &["--image", &image]);
    until("the core locks up", || {
        (served.json(&["bt"], &["--elf", &image])["kind"] == "lock-up").then_some(())
    });
    let trace = served.json(&["bt"], &["--elf", &image]);
    let words = "lock-up: undefined instruction 0xde00 in on_fault (main.c:";
    assert!(trace["summary"].as_str().unwrap().starts_with(words), "{trace}");
    served.stop().says(0, &[]);
}

#[test]
fn a_served_board_is_debugged() {
    let _slot = Slot::take();
    for Bench { board, program, chip } in BENCHES {
        let workshop = Workshop::new();
        let image = elf(board, "unity-pass");
        let served = Served::start(&workshop, board, &["--image", &image]);
        served.prints("\nOK\n");

        let halted = served.json(&["halt"], &[]);
        assert_eq!((&halted["place"], &halted["core"]["state"]), (&json!(board), &json!("halted")));
        if let Some(chip) = chip {
            assert_eq!(halted["chip"], chip);
        }
        // It slept, and was woken by the request.
        let all = served.json(&["regs"], &[]);
        let names: Vec<_> = all["registers"].as_array().unwrap().iter().collect();
        let name = |nth: usize| names[nth]["name"].as_str().unwrap();
        assert_eq!(
            [name(0), name(12), name(13), name(15), name(16)],
            ["r0", "r12", "sp", "pc", "xpsr"]
        );
        assert_eq!(served.register("pc"), halted["core"]["pc"].as_u64().unwrap());
        assert_eq!(served.register("sp"), served.register("msp"), "{board} uses one stack");
        served.verb(&["regs"], &["r4=0xcafe", "r5=7"]).says(0, &[]);
        assert_eq!((served.register("r4"), served.register("r5")), (0xcafe, 7));
        served.verb(&["regs"], &["r99"]).says(2, &["has no register \"r99\"", "it has: r0"]);
        served.verb(&["regs"], &["pcc=1"]).says(2, &["no register \"pcc\"", "pc", "jig regs -b"]);

        served.verb(&["mem", "write"], &[FREE, "0x0201", "3", "--width", "16"]).says(0, &[]);
        let written = served.json(&["mem", "write"], &["0x20003004", "0xdeadbeef"]);
        assert_eq!(written["written"], 4);
        let read = served.json(&["mem", "read"], &[FREE, "8"]);
        assert_eq!(bytes_of(&read), [1, 2, 3, 0, 0xef, 0xbe, 0xad, 0xde]);
        if board == "microbit" {
            let flash = served.verb(&["mem", "write"], &["0x1000", "1"]);
            flash.says(2, &["0x00001000 is in the flash of microbit", "jig flash -b microbit"]);
        }
        let nowhere = served.verb(&["mem", "read"], &["0x60000000", "4"]);
        nowhere.says(2, &["refused to read 0x60000000", "jig profile show"]);
        let nowhere = served.verb(&["mem", "write"], &["0x60000000", "1"]);
        nowhere.says(2, &["refused to write 0x60000000", "jig profile show"]);
        for verb in [["mem", "read"], ["mem", "write"]] {
            served.verb(&verb, &["0x100000000", "4"]).says(2, &["32 bits"]);
        }
        for address in ["0x201", "0x100000000"] {
            let words = format!("no hardware breakpoint at {address}");
            served.verb(&["bp"], &[address]).says(2, &[&words]);
        }
        let wide = served.verb(&["mem", "write"], &[FREE, "256", "--width", "8"]);
        wide.says(2, &["0x100 has more than 8 bits", "--width"]);

        // Firmware idles in a loop of a few instructions around one that sleeps.
        let stepped = served.json(&["step"], &["5"]);
        assert_eq!(stepped["core"]["reason"], "step");
        let trace = served.json(&["bt"], &["--elf", &image]);
        let frames: Vec<_> = trace["frames"].as_array().unwrap().iter().collect();
        assert_eq!(frames[0]["function"], "idle", "{trace}");
        assert_eq!(frames[1]["function"], "runtime_start", "{trace}");

        let core = workshop.path("board.core").display().to_string();
        let dumped = served.json(&["dump"], &["-o", &core, "--memory", "0x20000000+4K"]);
        assert!(dumped["memory"].as_u64().unwrap() >= 4096, "{dumped}");
        let offline = workshop.run(["--json", "bt", "--core", &core, "--elf", &image]);
        offline.says(0, &[]);
        assert_eq!(offline.json().unwrap()["summary"], trace["summary"]);
        served.verb(&["bt"], &["--elf", &image]).says(0, &[]);
        let hole = ["-o", &core, "--memory", "0x20000000+1K", "--memory", "0x60000000+2K"];
        let dumped = workshop.run(["--json", "dump", "-b", board].iter().chain(&hole));
        dumped.says(4, &[]);
        let dumped = dumped.json().unwrap();
        assert_eq!(dumped["memory"], 1024, "{dumped}");
        let unreadable = json!([{ "start": 0x6000_0000, "end": 0x6000_0800 }]);
        assert_eq!(dumped["unreadable"], unreadable, "{dumped}");
        let words = "2048 B could not be read: 0x60000000..0x60000800";
        served.verb(&["dump"], &hole).says(4, &[words]);
        served.verb(&["dump"], &[&hole[..2], &hole[4..]].concat()).says(2, &["can be read"]);
        let no_core = workshop.run(["bt", "--core", &image]);
        assert_eq!(no_core.code(), 2, "{no_core}");

        let goes = served.json(&["go"], &[]);
        assert_eq!(goes["core"]["state"], "running");
        served.verb(&["step"], &[]).says(2, &["halt it first", "jig halt -b"]);

        let reset = served.json(&["reset"], &["--halt"]);
        assert_eq!(reset["core"]["state"], "halted");
        let vector = served.json(&["mem", "read"], &[&format!("{:#x}", program + 4), "4"]);
        let start = u32::from_le_bytes(bytes_of(&vector).try_into().unwrap()) & !1;
        assert_eq!(reset["core"]["pc"], start, "{board} stands before its first instruction");
        let before = served.printed().matches("jig-fixture").count();
        let here = served.json(&["bp"], &["runtime_start", "--image", &image]);
        assert_eq!(here["core"]["reason"], "breakpoint");
        served.verb(&["reset"], &[]).says(0, &[]);
        until("the banner after a reset", || {
            (served.printed().matches("jig-fixture").count() > before).then_some(())
        });
        served.stop().says(0, &[]);
    }
}

#[test]
fn a_served_board_is_listed_and_flashed() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let none = workshop.run(["probes"]);
    none.says(0, &["jig probe serve -b BOARD"]);
    let mut served = Served::start(&workshop, "microbit", &[]);
    assert!(served.selector.starts_with("20b7:9db1:unix:"), "{}", served.selector);
    let listed = workshop.run(["--json", "probes"]).json().unwrap();
    let rows = listed["probes"].as_array().unwrap();
    let row = rows.iter().find(|row| row["kind"] == "virtual").unwrap();
    assert_eq!((&row["place"], &row["selector"]), (&json!("microbit"), &json!(served.selector)));
    assert_eq!(row["holder"], format!("pid {}", served.pid()));
    assert_eq!(row["chip"], "nRF51822_xxAA");

    served.verb(&["flash"], &[&elf("microbit", "unity-pass")]).says(0, &[]);
    served.prints("\nOK\n");
    // A selector is enough, however the board was named; and the variable is honoured.
    let selector = served.selector.clone();
    let by_name = ["--json", "mem", "read", "-b", "microbit", "0", "4", "--probe", &selector];
    let read = workshop.run(by_name);
    read.says(0, &[]);
    let mut command = workshop.jig(["--json", "mem", "read", "-b", "microbit", "0", "4"]);
    let same = crate::workshop::ran(command.env("PROBE_RS_PROBE", &selector)).unwrap();
    assert_eq!(read.json(), same.json());
    served.stop().says(0, &[]);
    // What a server flashed stays when it is gone.
    let later = workshop.run(["--json", "mem", "read", "-b", "microbit", "0", "4"]);
    assert_eq!(read.json(), later.json());
}

#[test]
fn what_cannot_be_done_says_what_can() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let b = ["-b", "microbit"];
    let run = |args: &[&str]| workshop.run(args.iter().chain(&b));
    for verb in ["reset", "halt", "go", "step", "regs", "bt"] {
        run(&[verb]).says(2, &["no process keeps it running", "jig hold -b microbit"]);
    }
    // RAM of a board that is booted for the command tells nothing; its flash is kept.
    run(&["mem", "read", "0x20000000", "4"]).says(2, &["`mem` reaches nothing"]);
    let words = "was booted from its flash for this command";
    run(&["mem", "read", "0", "4"]).says(0, &[words, "jig hold -b microbit"]);
    assert!(!run(&["--quiet", "mem", "read", "0", "4"]).err().contains(words));
    run(&["dump", "-o", "x"]).says(2, &["jig hold -b microbit"]);
    run(&["mem", "write", "0x20000000", "1"]).says(2, &["jig hold -b microbit"]);
    let portless = workshop.run(["mem", "read", "-b", "riscv32-virt", "0", "4"]);
    portless.says(3, &["[emulation.debug]", "jig run"]);
    for verb in ["halt", "regs", "bt"] {
        let portless = workshop.run([verb, "-b", "riscv32-virt"]);
        portless.says(3, &["board riscv32-virt has no [emulation.debug]", "jig run"]);
        assert!(!portless.err().contains("probe serve"), "{portless}");
    }
    let image = elf("riscv32-virt", "silent");
    workshop.run(["flash", "-b", "riscv32-virt", &image]).says(3, &["[emulation.debug]"]);
    let chip = run(&["mem", "read", "0", "4", "--chip", "nrf51822_xxa"]);
    chip.says(3, &["\"nrf51822_xxa\" is not known", "nRF51822_xxAA", "--chip"]);
    let absent = run(&["mem", "read", "0", "4", "--probe", "1209:4853:none"]);
    absent.says(75, &["there is no probe 1209:4853:none", "jig probes"]);
    run(&["mem", "read", "0", "4", "--probe", "nonsense"]).says(2, &["VID:PID"]);
    let gone = run(&["mem", "read", "0", "4", "--probe", "20b7:9db1:unix:gone.socket"]);
    assert_eq!(gone.code(), 75, "{gone}");
    run(&["mem", "read", "zero", "4"]).says(2, &["no number such as 4096 or 0x1000"]);
    run(&["mem", "read", "0", "0"]).says(2, &["nothing to read"]);
    run(&["mem", "read", "0", "65M"]).says(2, &["more than 64 MiB"]);
    let words = "the protocol is \"JTAG\", not one that the probe speaks";
    run(&["mem", "read", "0", "4", "--protocol", "jtag"]).says(2, &[words]);
    for output in ["missing/x", "."] {
        run(&["mem", "read", "0", "4", "-o", output]).says(2, &["could not write"]);
    }
    run(&["bp", "0x20000000"]).says(2, &["no hardware breakpoint at 0x20000000"]);
    let exposed = run(&["gdb", "--listen", "0.0.0.0:0"]);
    exposed.says(2, &["would control the board", "no password", "--allow-remote", "ssh -L"]);
    run(&["gdb", "--listen", "192.0.2.1:0", "--allow-remote"]).says(2, &["192.0.2.1:0"]);
    for bad in ["board.probe", "localhost:3333", "3333"] {
        let ran = run(&["probe", "serve", "--listen", bad]);
        ran.says(2, &["neither `unix:PATH`, a path with a slash"]);
    }
    run(&["probe", "serve", "--listen", "0.0.0.0:0"]).says(2, &["only served to this machine"]);
    run(&["erase", "--range", "4..4"]).says(2, &["holds no address"]);
    let silent = ["rtt", "-b", "microbit", "--channel", "7", "--timeout", "30s"];
    run(&["flash", &elf("microbit", "rtt-echo")]).says(0, &[]);
    workshop.run(silent).says(2, &["no RTT channel 7"]);
    let board = workshop.run(["halt", "-b", "no-such"]);
    assert_eq!(board.code(), 2, "{board}");
}

#[test]
fn a_place_has_one_user_at_a_time() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let image = elf("microbit", "unity-pass");
    // A process that serves gdb holds the place and offers nothing to others.
    let mut command = workshop.jig(["gdb", "-b", "microbit"]);
    let mut holder = Started::of(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let (address, _) = first_line(&mut holder);
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    let pid = format!("pid {}", holder.child().id());
    let told = workshop.run(["flash", "-b", "microbit", &image]);
    told.says(75, &["microbit is in use by", "gdb -b microbit", &pid, "--wait 30s"]);
    let served = workshop.run(["probe", "serve", "-b", "microbit"]);
    served.says(75, &["microbit is in use by", &pid]);

    let mut command = workshop.jig(["flash", "-b", "microbit", &image, "--wait", "5m"]);
    let notes = workshop.path("waiting.txt");
    command.stdout(Stdio::piped()).stderr(std::fs::File::create(&notes).unwrap());
    let waiter = Started::of(&mut command);
    until("the second says for whom it waits", || {
        let said = std::fs::read_to_string(&notes).unwrap();
        (said.contains("waiting for place microbit") && said.contains(&pid)).then_some(())
    });
    holder.signal(Signal::SIGINT);
    holder.finish().says(130, &[]);
    let ran = waiter.finish();
    ran.says(0, &[]);
    assert!(ran.out().contains("flashed microbit"), "{ran}");
}
