//! The verbs that last or that ask for more than a probe, at a chip without a profile. A virtual probe
//! that another process serves stands for the real one.

use std::process::Stdio;

use nix::sys::signal::Signal;

use crate::hold::{Held, Session};
use crate::manifest::elf;
use crate::served::{Served, first_line};
use crate::workshop::{Slot, Started, Workshop, ran, tied};

const CHIP: &str = "nRF51822_xxAA";
const PLACE: &str = "chip:nRF51822_xxAA";

const PLAN: &str = r#"version = 1
name = "p"
timeout = "20s"

[[stage]]
name = "s"

[[stage.step]]
name = "report"
actions = [{ deploy = true }, { power = "cycle" }, { wait_for_results = true }]
"#;

#[test]
fn a_chip_on_a_probe_is_tested_talked_to_and_recovered() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let served = Served::start(&workshop, "microbit", &[]);
    let by_chip = ["--chip", CHIP, "--probe", &served.selector];
    let run = |args: &[&str]| workshop.run(args.iter().chain(&by_chip).copied());
    let plan = workshop.write("p.toml", PLAN);
    let image = elf("microbit", "rtt-report");
    let tested = run(&["test", plan.to_str().unwrap(), "--image", &image]);
    tested.says(0, &[]);
    assert!(tested.to_string().contains("PASS chip:nRF51822_xxAA 3 tests passed"), "{tested}");
    let echo = elf("microbit", "rtt-echo");
    let mut console =
        Session::begin(workshop.jig(["console", "--raw", "--image", &echo]).args(by_chip));
    console.expect("rtt-echo ready");
    console.send(b"there\n");
    console.expect("there");
    console.hang_up().says(0, &[]);
    run(&["recover", "--dry-run"]).says(0, &[]);
    // A slip in the name of the probe puts nothing out of service: the place is made by the command.
    let slip = ["run", "--chip", CHIP, "--probe", "1366:0101:none", &image];
    workshop.run(slip).says(75, &["there is no probe 1366:0101:none"]);
    run(&["run", &image]).says(0, &[]);
    let recovered = run(&["recover"]);
    recovered.says(0, &[]);
    assert!(recovered.to_string().contains("PASS chip:nRF51822_xxAA: works"), "{recovered}");
    // A chip alone has no operating system that a command could run on.
    let shell = workshop.run(["exec"].iter().chain(&by_chip).chain(&["--", "ls"]).copied());
    shell.says(3, &["chip:nRF51822_xxAA", "shell"]);
    served.stop().says(0, &[]);
}

#[test]
fn gdb_reaches_a_chip_on_a_probe() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let image = elf("microbit", "unity-pass");
    let served = Served::start(&workshop, "microbit", &["--image", &image]);
    served.prints("\nOK\n");
    let mut command = workshop.jig(["gdb", "--chip", CHIP, "--probe", &served.selector]);
    let mut server = Started::of(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let (address, _) = first_line(&mut server);
    if address.is_empty() {
        panic!("nothing listens: {}", server.finish());
    }
    let mut gdb = tied("gdb-multiarch");
    gdb.args(["-batch", "-nx", "-ex", "set confirm off", "-ex", "set remotetimeout 60"]);
    gdb.args(["-ex", &format!("target remote {address}"), "-ex", "set $r4=0x12345678"]);
    gdb.args(["-ex", "info registers r4", "-ex", "detach", &image]);
    let told = ran(gdb.stdin(Stdio::null())).unwrap();
    told.says(0, &[]);
    assert!(told.out().contains("0x12345678"), "{told}");
    server.signal(Signal::SIGINT);
    server.finish().says(130, &[]);
    served.stop().says(0, &[]);
}

#[test]
fn a_chip_is_held_for_other_terminals() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let served = Served::start(&workshop, "microbit", &[]);
    let probe = ["--probe", &served.selector];
    let echo = elf("microbit", "rtt-echo");
    let held = Held::with(&workshop, PLACE, &[&probe[..], &["--image", &echo]].concat());
    assert_eq!((&held.held["place"], &held.held["debug"]), (&PLACE.into(), &true.into()));
    // Each of the commands that `jig hold` tells, as it tells it.
    held.verb(&["reset"], &probe).says(0, &[]);
    let traced = held.verb(&["bt", "--elf", &echo], &probe);
    traced.says(0, &[]);
    assert!(traced.out().contains("fixture_main"), "{traced}");
    let report = elf("microbit", "rtt-report");
    held.verb(&["flash"], &[&probe[..], &[&report]].concat()).says(0, &[]);
    let rtt = held.verb(&["rtt", "--timeout", "2s"], &probe);
    assert!(rtt.out().contains("ok 3 - rings hold a report"), "{rtt}");
    // The same chip by its own switch is the same place.
    let by_chip = [&["regs", "--chip", CHIP][..], &probe].concat();
    workshop.run(&by_chip).says(0, &[]);
    // Another probe with the same chip is another board, which nothing here is done to.
    let other = held.verb(&["erase"], &["--probe", "1366:0101:none"]);
    other.says(75, &["is held at probe", "1366:0101:none", "jig hold"]);
    held.verb(&["bt", "--elf", &report], &probe).says(0, &[]);
    held.holder.signal(Signal::SIGINT);
    held.holder.finish().says(0, &[]);
    served.stop().says(0, &[]);
}

#[test]
fn a_chip_is_no_board_of_another_host_and_no_place_of_other_verbs() {
    let workshop = Workshop::new();
    for verb in [&["flash", "x.elf"][..], &["rtt"], &["hold"], &["gdb"], &["exec", "--", "ls"]] {
        let (head, rest) = verb.split_at(1);
        let args = [&["--rig", "ssh://lab@rig7"], head, &["--chip", CHIP], rest].concat();
        workshop.run(&args).says(2, &["is a chip on a probe of this host", "rig"]);
    }
    let told = ["no place \"chip:nRF51822_xxAA\"", "board = \"chip:NAME\"", "jig discover"];
    workshop.run(["health", "-b", PLACE]).says(2, &told);
    workshop.run(["power", "-b", PLACE, "status"]).says(2, &told);
    workshop.run(["doctor", "-b", PLACE]).says(2, &told);
}
