//! Boards without a profile: any chip that has a description, by `--chip` and in a rig file. A virtual
//! probe that another process serves stands for the real one.

use serde_json::json;

use crate::health::tree;
use crate::manifest::elf;
use crate::served::Served;
use crate::workshop::{Slot, Workshop};

const CHIP: &str = "nRF51822_xxAA";

#[test]
fn a_chip_on_a_probe_is_flashed_run_and_debugged_without_a_profile() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let served = Served::start(&workshop, "microbit", &[]);
    let by_chip = ["--chip", CHIP, "--probe", &served.selector];
    let run = |args: &[&str]| workshop.run(args.iter().chain(&by_chip).copied());
    let echo = elf("microbit", "rtt-echo");
    let flashed = run(&["--json", "flash", &echo]);
    flashed.says(0, &[]);
    let report = flashed.json().unwrap();
    assert_eq!(report["place"], json!("chip:nRF51822_xxAA"), "{flashed}");
    assert_eq!((&report["chip"], &report["report"]["verified"]), (&json!(CHIP), &json!(true)));
    run(&["reset"]).says(0, &[]);
    // The control block is found by itself: no image is named.
    let rtt = run(&["rtt", "--timeout", "1s"]);
    rtt.says(0, &["up 0: echo"]);
    assert!(rtt.out().contains("rtt-echo ready"), "{rtt}");
    let named = format!("chip:{CHIP}");
    let traced = workshop.run(["bt", "-b", &named, "--probe", &served.selector, "--elf", &echo]);
    traced.says(0, &[]);
    assert!(traced.out().contains("fixture_main"), "{traced}");
    let judged = run(&["--json", "run", &elf("microbit", "rtt-report")]);
    judged.says(0, &[]);
    assert_eq!(judged.json().unwrap()["place"], json!("chip:nRF51822_xxAA"), "{judged}");
    run(&["run", &elf("microbit", "fault-silent")]).says(1, &["HardFault"]);
    served.stop().says(0, &[]);
}

#[test]
fn a_place_of_a_rig_file_may_have_a_chip_as_its_board() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let served = Served::start(&workshop, "microbit", &[]);
    let rig = |board: &str| {
        format!(
            "version = 1\n[[place]]\nname = \"bench\"\nboard = \"{board}\"\n\
             probe = {{ selector = \"{}\" }}\n",
            served.selector
        )
    };
    workshop.write("rig.toml", rig("chip:nrf51822_xxaa"));
    workshop.run(["profile", "check", "rig.toml"]).says(0, &[]);
    let image = elf("microbit", "rtt-report");
    workshop.run(["run", "-b", "bench", &image]).says(0, &["PASS bench 3 tests passed"]);
    let listed = workshop.run(["--json", "boards"]).json().unwrap();
    assert_eq!(listed["places"][0]["board"], "chip:nrf51822_xxaa", "{listed}");
    // The probe of a place is not to be had past the place.
    let past = workshop.run(["flash", "--chip", CHIP, "--probe", &served.selector, &image]);
    past.says(2, &["belongs to place bench", "-b bench"]);
    workshop.write("rig.toml", rig("chip:nRF51822_xxAZ"));
    let unknown = ["there is no chip \"nRF51822_xxAZ\"", "did you mean nRF51822_xxA"];
    workshop.run(["run", "-b", "bench", &image]).says(3, &unknown);
    workshop.run(["profile", "check", "rig.toml"]).says(3, &unknown);
    served.stop().says(0, &[]);
}

#[test]
fn what_a_chip_cannot_is_told_before_hardware_is_touched() {
    let workshop = Workshop::new();
    let image = elf("microbit", "unity-pass");
    // No such probe is attached: it would be the first thing that fails.
    let run = |verb: &str, chip: &str| {
        workshop.run([verb, "--chip", chip, "--probe", "1366:0101:none", &image])
    };
    for verb in ["flash", "run"] {
        run(verb, "nRF51822_xxAZ").says(2, &["there is no chip", "did you mean nRF51822_xxA"]);
        run(verb, "STM32F411").says(2, &["more than one chip", "write one of: STM32F411C"]);
        run(verb, "MSP432P4111").says(3, &["MSP432P4111 has no flash algorithm for 0x0.."]);
    }
    workshop.run(["flash", "--chip", "a/b", &image]).says(2, &["is no chip's name"]);
    assert!(workshop.run_dirs().is_empty());
}

#[test]
fn chips_are_found_by_parts_of_their_names() {
    let workshop = Workshop::new();
    let found = workshop.run(["--json", "chips", "nrf", "52840"]);
    found.says(0, &[]);
    let found = found.json().unwrap();
    assert_eq!(found[0]["name"], "nRF52840_xxAA", "{found}");
    assert_eq!(found[0]["cores"][0]["architecture"], "Armv7E-M", "{found}");
    let flash = &found[0]["memory"][0];
    assert_eq!((&flash["size"], &flash["writable"]), (&json!(1 << 20), &json!(true)));
    let text = workshop.run(["chips", "cortex-m4"]);
    text.says(0, &["board = \"chip:NAME\""]);
    assert!(text.out().starts_with("CHIP"), "{text}");
    workshop.run(["chips", "nothing-like-it"]).says(2, &["no chip fits"]);
    assert_eq!(workshop.run(["--json", "chips", "nothing-like-it"]).json().unwrap(), json!([]));
}

#[test]
fn a_new_profile_passes_the_checks_unchanged() {
    let workshop = Workshop::new();
    std::fs::create_dir(workshop.path("board-profiles")).unwrap();
    let path = "board-profiles/my-board.toml";
    let image = elf("microbit", "rtt-report");
    let args = ["profile", "new", "--chip", CHIP, "--from-elf", &image, "--output", path];
    workshop.run(args).says(0, &["wrote board-profiles/my-board.toml"]);
    workshop.run(["profile", "check", path]).says(0, &[]);
    let shown = workshop.run(["--json", "profile", "show", "my-board"]).json().unwrap();
    assert_eq!((&shown["chip"], &shown["status"]), (&json!(CHIP), &json!("data-sheet")));
    let text = std::fs::read_to_string(workshop.path(path)).unwrap();
    assert!(text.contains("# - Its RTT control block is at 0x2000"), "{text}");
    workshop.run(args).says(2, &["is there already"]);
    let bad = ["profile", "new", "--chip", "nRF51822_xxAZ"];
    workshop.run(bad).says(2, &["did you mean nRF51822_xxA"]);
    let none = ["profile", "new", "--chip", CHIP, "--from-elf", path];
    workshop.run(none).says(2, &["is no ELF file"]);
    let odd = ["profile", "new", "--chip", CHIP, "--output", "x.txt"];
    workshop.run(odd).says(2, &["is no file name of a board profile"]);
}

#[test]
fn an_attached_board_is_proposed_as_a_place_and_its_obstacles_are_named() {
    let workshop = Workshop::new();
    let root = workshop.path("machine");
    let usb = "sys/devices/usb1/1-3";
    tree(
        &root,
        &[
            (&format!("{usb}/idVendor"), "2341\n"),
            (&format!("{usb}/idProduct"), "0043\n"),
            (&format!("{usb}/serial"), "7573\n"),
            (&format!("{usb}/1-3:1.0/bInterfaceNumber"), "00\n"),
            (&format!("{usb}/1-3:1.0/ttyACM0/dev"), "166:0\n"),
        ],
        &[
            ("sys/class/tty/ttyACM0/device", "../../../devices/usb1/1-3/1-3:1.0/ttyACM0"),
            ("dev/serial/by-id/usb-Arduino-if00", "../../ttyACM0"),
        ],
    );
    let (sys, dev) = (root.join("sys"), root.join("dev"));
    let roots = ["--sysfs", sys.to_str().unwrap(), "--dev", dev.to_str().unwrap()];
    let args = [&["discover", "-o", "rig.toml"][..], &roots].concat();
    workshop.run(args).says(0, &["wrote rig.toml"]);
    workshop.run(["profile", "check", "rig.toml"]).says(0, &[]);
    let listed = workshop.run(["--json", "boards"]).json().unwrap();
    let place = &listed["places"][0];
    assert_eq!((&place["name"], &place["board"]), (&json!("bench-1"), &json!("arduino-uno")));
    assert_eq!(place["deploy"], "command", "{listed}");
    // The link leads nowhere until the port is there.
    let doctor = || workshop.run(["doctor", "-b", "bench-1"]);
    let absent = doctor();
    absent.says(75, &[]);
    assert!(
        absent.out().contains("there is no ") && absent.out().contains("fix: plug"),
        "{absent}"
    );
    std::fs::write(dev.join("ttyACM0"), "").unwrap();
    let there = doctor();
    there.says(0, &[]);
    assert!(there.out().contains("console uart0"), "{there}");
    workshop.run(["doctor", "-b", "nowhere"]).says(2, &["no place \"nowhere\""]);
}

/// Returns the rig file that is proposed where one serial port is attached.
fn proposed(vendor: &str, product: &str, serial: &str) -> String {
    let workshop = Workshop::new();
    let root = workshop.path("machine");
    let usb = "sys/devices/usb1/1-3";
    tree(
        &root,
        &[
            (&format!("{usb}/idVendor"), vendor),
            (&format!("{usb}/idProduct"), product),
            (&format!("{usb}/serial"), serial),
            (&format!("{usb}/product"), "A \u{1b}[31mprobe\u{202e}\n[[place]]\nname = \"x\"\n"),
            (&format!("{usb}/1-3:1.0/bInterfaceNumber"), "00\n"),
            (&format!("{usb}/1-3:1.0/ttyACM0/dev"), "166:0\n"),
        ],
        &[("sys/class/tty/ttyACM0/device", "../../../devices/usb1/1-3/1-3:1.0/ttyACM0")],
    );
    let (sys, dev) = (root.join("sys"), root.join("dev"));
    let roots = ["--sysfs", sys.to_str().unwrap(), "--dev", dev.to_str().unwrap()];
    let found = workshop.run([&["discover"][..], &roots].concat());
    found.says(0, &[]);
    let text = found.out();
    // Whatever a device calls itself, what is proposed is a rig file.
    workshop.write("rig.toml", &text);
    workshop.run(["profile", "check", "rig.toml"]).says(0, &[]);
    assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
    text
}

#[test]
fn a_board_is_certain_only_where_its_device_is_its_own() {
    let certain = |text: &str, board: &str| text.contains(&format!("\nboard = \"{board}\"  # "));
    for (vendor, product, serial, board) in [
        ("1366\n", "1015\n", "000683234364\n", "nrf52840dk"),
        ("1366\n", "1051\n", "000960115021\n", "nrf5340dk"),
        ("1366\n", "1015\n", "000960012345\n", "nrf9160dk"),
        ("0d28\n", "0204\n", "0229000012345\n", "mimxrt1060-evk"),
        ("0d28\n", "0204\n", "9904360258824e45\n", "microbit-v2"),
        ("03eb\n", "2157\n", "ATML1\n", "arduino-zero"),
    ] {
        let text = proposed(vendor, product, serial);
        assert!(certain(&text, board), "{board}: {text}");
        // The port is that of a probe, which no list shows.
        assert!(text.contains("\nprobe = { selector = \""), "{board}: {text}");
    }
    // A J-Link of later kits or sold alone, the probe of every Xplained Pro, a DAPLink of a board
    // without a profile, and a serial port of any Teensy.
    for (vendor, product, serial, candidate) in [
        ("1366\n", "1051\n", "001050234191\n", "nrf5340dk"),
        ("03eb\n", "2111\n", "ATML2130\n", "samd21-xpro"),
        ("1fc9\n", "0090\n", "ABC\n", "lpc55s69-evk"),
        ("16c0\n", "0483\n", "123\n", "teensy41"),
        ("0d28\n", "0204\n", "0415\n", ""),
    ] {
        let text = proposed(vendor, product, serial);
        assert!(text.contains("\n#board = \"\""), "{text}");
        assert_eq!(text.contains("\n# May be: "), !candidate.is_empty(), "{text}");
        assert!(text.contains(candidate) && !text.contains("\n[[place]]"), "{text}");
    }
}
