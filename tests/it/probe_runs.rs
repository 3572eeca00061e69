//! Runs on boards that a debug probe deploys, resets and looks into: emulated ones with a
//! virtual probe in the same process, and one behind a selector, as a real board is.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;
use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt};
use nix::sys::signal::Signal;
use nix::sys::termios::{SetArg, cfmakeraw, tcgetattr, tcsetattr};
use serde_json::Value;

use crate::manifest::{Entry, elf, entries, entry};
use crate::served::first_line;
use crate::workshop::{Ran, Slot, Started, Workshop, name_of, ran, until};

/// Far beyond what a loss takes to be noticed, also on a busy machine, and far below what an
/// unnoticed one would take.
const BOUND: Duration = Duration::from_secs(120);

/// Fixtures that are judged by what a probe must not spoil: reports, faults, lock-ups, hangs,
/// resets, exits, input.
const FIXTURES: &[&str] = &[
    "hang-in-test",
    "unity-pass",
    "unity-fail",
    "unity-exit",
    "tap13-pass",
    "tap-fail",
    "fault-bus",
    "fault-null-call",
    "fault-silent",
    "lockup",
    "self-reset",
    "exit-one",
    "silent",
    "shell-talk",
    "stale-report",
    "rtt-report",
];

/// A rig with an emulated board that is deployed by its virtual probe.
fn emulated(workshop: &Workshop, board: &str) {
    let rig = format!(
        "version = 1\n\n[[place]]\nname = \"desk\"\nboard = \"{board}\"\n\n\
         [place.emulator]\ndeploy = \"probe\"\n"
    );
    workshop.write("rig.toml", rig);
}

/// A board that another process serves, and a rig that has it as a real one.
pub(crate) struct Served {
    server: Started,
    _slot: Slot,
}

impl Served {
    pub(crate) fn start(workshop: &Workshop, board: &str) -> Self {
        let slot = Slot::take();
        let mut command = workshop.jig(["probe", "serve", "--json", "-b", board]);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = Started::of(&mut command);
        let mut lines = BufReader::new(server.child().stdout.take().unwrap()).lines();
        let told: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        let selector = told["selector"].as_str().unwrap();
        let rig = format!(
            "version = 1\n\n[[place]]\nname = \"bench\"\nboard = \"{board}\"\n\n\
             [place.probe]\nselector = \"{selector}\"\n"
        );
        workshop.write("rig.toml", rig);
        Self { server, _slot: slot }
    }
}

/// Reads the events of a run so far; the last line may be half written.
fn events(run: &Path) -> Vec<Value> {
    let text = fs::read_to_string(run.join("events.jsonl")).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Waits until the only run of a workshop has a board that runs.
fn boots(workshop: &Workshop) {
    until("a boot", || {
        let dirs = workshop.run_dirs();
        let run = dirs.first()?;
        events(run).into_iter().find(|event| event["event"] == "boot").map(drop)
    });
}

fn check(board: &str, fixture: &str) -> Result<(), String> {
    let Entry { verdict, cause, timeout_s, .. } = entry(board, fixture);
    let workshop = Workshop::new();
    emulated(&workshop, board);
    let mut command = workshop.jig(["--json"]);
    match entry(board, fixture).plan() {
        Some(plan) => command.arg("test").arg(plan).arg("--image").arg(elf(board, fixture)),
        None => command
            .arg("run")
            .arg(elf(board, fixture))
            .args(["--timeout", &format!("{timeout_s}s")]),
    };
    command.args(["-b", "desk"]);
    let slot = Slot::take();
    let ran = ran(&mut command)?;
    drop(slot);
    let document = ran.json()?;
    let found = (&document["verdict"]["kind"], &document["verdict"]["cause"]);
    if found != (&Value::from(verdict.as_str()), &Value::from(cause.as_str())) {
        return Err(format!("{found:?} instead of {verdict} ({cause}): {ran}"));
    }
    deployed_by_probe(&workshop).map_err(|why| format!("{why}: {ran}"))
}

fn deployed_by_probe(workshop: &Workshop) -> Result<(), String> {
    let run = workshop.run_dirs().pop().ok_or("no run")?;
    let events = events(&run);
    let report = events.iter().find(|e| e["event"] == "deployed").ok_or("nothing was deployed")?;
    let read_back = report["read_back_sha256"].as_str().is_some_and(|sha| sha.len() == 64);
    if report["method"] != "probe" || report["verified"] != true || !read_back {
        return Err(format!("the deployment was {report}"));
    }
    let mut done = events.iter().filter(|event| event["what"] == "deploying");
    if done.next_back().is_none_or(|event| event["percent"] != 100) {
        return Err("the deployment did not tell of its end".to_owned());
    }
    Ok(())
}

fn whole_board(board: &str) {
    let failures: Vec<String> = FIXTURES
        .iter()
        .filter_map(|fixture| check(board, fixture).err().map(|why| format!("{fixture}: {why}")))
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn a_modelled_flash_gets_the_verdicts_of_the_loader() {
    whole_board("microbit");
}

#[test]
fn a_plain_flash_gets_the_verdicts_of_the_loader() {
    whole_board("netduinoplus2");
}

#[test]
fn a_fault_below_another_exception_is_found_through_a_probe() {
    for (board, fixture) in [
        ("microbit", "fault-below-nmi"),
        ("mps2-an385", "fault-below-nmi"),
        ("mps2-an385", "fault-below-tick"),
    ] {
        check(board, fixture).unwrap_or_else(|why| panic!("{fixture} on {board}: {why}"));
    }
}

#[test]
fn a_program_that_ends_itself_in_the_handler_of_a_fault_fails_behind_a_probe() {
    for board in ["microbit", "mps2-an385"] {
        check(board, "fault-handler-exits").unwrap_or_else(|why| panic!("{board}: {why}"));
    }
}

/// A test that provokes faults and gets over them passes; a handler that returns to the fault fails,
/// however short it is.
#[test]
fn a_fault_whose_handler_returns_has_the_verdict_of_the_plain_emulator() {
    let fixtures = [
        "fault-stepped-over",
        "fault-loop-stepped-over",
        "fault-repeats",
        "fault-returns-before",
        "fault-slow-handler",
        "fault-repeats-below-tick",
        "fault-vectors-in-ram",
        "fault-before-own-reset",
        "wanted-fault-before-own-reset",
    ];
    let boards = ["microbit", "mps2-an385"];
    let all = entries()
        .into_iter()
        .filter(|entry| boards.contains(&&*entry.board) && fixtures.contains(&&*entry.fixture));
    let failures: Vec<String> = all
        .filter_map(|entry| {
            let why = check(&entry.board, &entry.fixture).err()?;
            Some(format!("{} on {}: {why}", entry.fixture, entry.board))
        })
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn a_board_without_a_chip_name_is_deployed_by_what_describes_it() {
    check("mps2-an385", "unity-pass").unwrap();
}

#[test]
fn faults_are_explained_where_they_happened() {
    for board in ["microbit", "netduinoplus2"] {
        let workshop = Workshop::new();
        emulated(&workshop, board);
        let _slot = Slot::take();
        let ran = workshop.run(["run", "-b", "desk", &elf(board, "fault-bus")]);
        ran.says(1, &["cause: fault_banner", "bus fault writing 0x60000000", "(main.c:14)"]);
        let core = workshop.run_dirs()[0].join("artefacts/attempt-1/target.core");
        assert!(fs::metadata(core).unwrap().len() > 0x4000, "{ran}");
    }
}

#[test]
fn a_log_in_frames_is_decoded_and_kept() {
    let workshop = Workshop::new();
    emulated(&workshop, "microbit");
    let _slot = Slot::take();
    let plan = workshop.write(
        "plan.toml",
        "version = 1\nname = \"log\"\ngoal = \"the log is read\"\n\
         timeout = \"5m\"\n[[stage]]\nname = \"s\"\n\
         [[stage.step]]\nname = \"s\"\ngoal = \"g\"\nactions = [{ deploy = true }, \
         { power = \"cycle\" }, { expect = 'cannot open config', console = \"rtt0\" }]\n",
    );
    let plan = plan.to_str().unwrap();
    let image = elf("microbit", "defmt-log");
    workshop.run(["test", "-b", "desk", plan, "--image", &image]).says(0, &[]);
    let run = workshop.run_dirs().pop().unwrap();
    let shown = fs::read_to_string(run.join("consoles/1/rtt0.raw")).unwrap();
    assert_eq!(
        shown.lines().collect::<Vec<_>>(),
        [
            "INFO  boot 7",
            "WARN  voltage is 3300 mV",
            "[2 bytes are no defmt frame]",
            "ERROR cannot open config.bin"
        ]
    );
    let frames = fs::read(run.join("artefacts/attempt-1/rtt0.defmt")).unwrap();
    assert_eq!(frames.iter().filter(|&&byte| byte == 0).count(), 4, "{frames:?}");
}

/// Talks to a program by RTT, resets it, and talks to the next boot.
const TALK: &str = r#"
version = 1
name = "talk"
goal = "the program echoes, before a reset and after"
timeout = "5m"
[[stage]]
name = "talk"
[[stage.step]]
name = "talk"
goal = "it echoes"
actions = [
  { deploy = true },
  { power = "cycle" },
  { expect = '^rtt-echo ready', console = "rtt0", timeout = "60s" },
  { send = "first\n", console = "rtt0" },
  { expect = '^first', echo = true, console = "rtt0", timeout = "60s" },
  { reset = true },
  { expect = '^rtt-echo ready', console = "rtt0", timeout = "60s" },
  { send = "second\n", console = "rtt0" },
  { expect = '^second', echo = true, reject = ['^first'], console = "rtt0", timeout = "60s" },
  { power = "off" },
  { power = "on" },
  { expect = '^rtt-echo ready', console = "rtt0", timeout = "60s" },
]
"#;

fn talks(workshop: &Workshop, place: &str) {
    let plan = workshop.write("talk.toml", TALK);
    let image = elf("microbit", "rtt-echo");
    let args = ["test", "-b", place, plan.to_str().unwrap(), "--image", &image];
    workshop.run(args).says(0, &[]);
    let run = workshop.run_dirs().pop().unwrap();
    let raw = fs::read_to_string(run.join("consoles/1/rtt0.raw")).unwrap();
    assert_eq!(raw, "rtt-echo ready\nfirst\nrtt-echo ready\nsecond\nrtt-echo ready\n");
    let boots = events(&run).into_iter().filter(|event| event["event"] == "boot");
    let offsets: Vec<_> = boots.map(|event| event["offset"].as_u64().unwrap()).collect();
    assert_eq!(offsets.len(), 3, "{offsets:?}");
    if place == "bench" {
        assert_eq!(offsets, [0, 21, 43]);
    }
}

#[test]
fn rtt_carries_both_ways_over_resets() {
    let workshop = Workshop::new();
    emulated(&workshop, "microbit");
    let slot = Slot::take();
    talks(&workshop, "desk");
    drop(slot);
    let workshop = Workshop::new();
    let _served = Served::start(&workshop, "microbit");
    talks(&workshop, "bench");
}

#[test]
fn a_board_behind_a_selector_is_flashed_and_reports_by_rtt() {
    let workshop = Workshop::new();
    let _served = Served::start(&workshop, "microbit");
    let image = elf("microbit", "rtt-report");
    let ran = workshop.run(["run", "-b", "bench", "--json", "--repeat", "3", &image]);
    let document = ran.says(0, &[]).json().unwrap();
    assert_eq!(document["verdict"]["cause"], "passed", "{ran}");
    assert_eq!(document["verdict"]["tests"]["cases"].as_array().unwrap().len(), 3, "{ran}");
    deployed_by_probe(&workshop).unwrap();
    let run = workshop.run_dirs().pop().unwrap();
    for attempt in 1..=3 {
        let consoles = fs::read_dir(run.join(format!("consoles/{attempt}"))).unwrap();
        let mut names: Vec<_> =
            consoles.map(|entry| name_of(&entry.unwrap().path()).to_owned()).collect();
        names.retain(|name| name.ends_with(".raw"));
        names.sort();
        assert_eq!(names, ["rtt0.raw", "semihosting.raw"]);
        let raw = fs::read_to_string(run.join(format!("consoles/{attempt}/rtt0.raw"))).unwrap();
        assert!(raw.starts_with("jig-fixture rtt-report by RTT\nTAP version 13\n"), "{raw}");
    }
    let skipped = events(&run).into_iter().filter(|event| event["event"] == "deployed");
    let skipped: Vec<_> = skipped.map(|event| event["skipped_sectors"].as_u64().unwrap()).collect();
    assert_eq!(skipped[0], 0);
    assert!(skipped[1] > 0 && skipped[2] > 0, "what is there already is left alone: {skipped:?}");
}

#[test]
fn what_goes_wrong_behind_a_selector_is_named() {
    let workshop = Workshop::new();
    let _served = Served::start(&workshop, "microbit");
    for (fixture, code, words) in [
        ("lockup", 1, ["cause: lockup", "lock-up after HardFault: undefined instruction 0xde00"]),
        ("self-reset", 1, ["cause: unexpected_reset", "the target reset itself"]),
        // Its console is a serial line that nothing is connected to here.
        (
            "fault-bus",
            1,
            ["cause: core_fault", "bus fault writing 0x60000000 in fixture_main (main.c:14)"],
        ),
        ("silent", 4, ["cause: no_output", "running in idle"]),
        ("rtt-report", 0, ["3 tests passed", "PASS bench"]),
    ] {
        let image = elf("microbit", fixture);
        workshop.run(["run", "-b", "bench", "--timeout", "5s", &image]).says(code, &words);
    }
}

/// The known-good image of a real board replaces what is in its flash; a test that is looked
/// into leaves the board as its user left it.
#[test]
fn a_boards_own_image_is_put_back_behind_the_known_good_one() {
    let workshop = Workshop::new();
    let _served = Served::start(&workshop, "microbit");
    let rig = fs::read_to_string(workshop.path("rig.toml")).unwrap();
    let good = elf("microbit", "rtt-report");
    workshop.write("rig.toml", format!("{rig}\n[place.canary]\nimage = \"{good}\"\n"));
    let image = elf("microbit", "silent");
    let ran = workshop.run(["run", "-b", "bench", "--timeout", "1s", &image]);
    ran.says(4, &["cause: no_output", "a retry did not pass either", "own image was put back"]);
    let run = workshop.run_dirs().pop().unwrap();
    let record = fs::read(run.join("record.json")).unwrap();
    let record: Value = serde_json::from_slice(&record).unwrap();
    let purposes = record["attempts"].as_array().unwrap().iter();
    let purposes: Vec<_> =
        purposes.map(|made| made["purpose"].as_str().unwrap_or("test")).collect();
    assert_eq!(purposes, ["test", "canary", "test", "canary", "restore"]);
    let flashed = workshop.run(["--json", "flash", "-b", "bench", &image]);
    let flashed = flashed.says(0, &[]).json().unwrap();
    assert_eq!(flashed["report"]["sectors_erased"], 0, "{flashed}");
}

/// The wait for a report ends a second behind the reset, and says why; that is no second reset.
/// The firmware counts its boots in RAM, so the second attempt shows the same only if RAM is clear.
#[test]
fn a_reset_behind_a_selector_is_counted_once_in_each_attempt() {
    let workshop = Workshop::new();
    let _served = Served::start(&workshop, "microbit");
    let image = elf("microbit", "self-reset");
    let ran = workshop.run(["run", "-b", "bench", "--timeout", "60s", &image]);
    ran.says(1, &["cause: unexpected_reset", "the target reset itself once, unasked"]);
    let events = events(&workshop.run_dirs().pop().unwrap());
    let mut resets = Vec::new();
    for event in &events {
        if event["event"] == "attempt_started" {
            resets.push(0);
        } else if event["what"] == "reset" && event["by_target"] == true {
            *resets.last_mut().unwrap() += 1;
        }
    }
    assert_eq!(resets, [1, 1], "{events:?}");
}

#[test]
fn boards_whose_chip_nobody_knows_are_described_behind_a_selector() {
    for board in ["mps2-an385", "netduinoplus2"] {
        let workshop = Workshop::new();
        let _served = Served::start(&workshop, board);
        let ran = workshop.run(["run", "-b", "bench", &elf(board, "rtt-report")]);
        ran.says(0, &["PASS bench 3 tests passed"]);
        deployed_by_probe(&workshop).unwrap_or_else(|why| panic!("{why}: {ran}"));
        let ran = workshop.run(["run", "-b", "bench", "--timeout", "5s", &elf(board, "fault-bus")]);
        ran.says(1, &["cause: core_fault", "bus fault writing 0x60000000 in fixture_main"]);
        // The verbs know it, too.
        workshop.run(["reset", "-b", "bench"]).says(0, &[]);
    }
}

const HOSTED: &str = r#"
version = 1
name = "hosted"
goal = "the program reports by semihosting"
timeout = "5m"
[[stage]]
name = "s"
[[stage.step]]
name = "s"
goal = "it passes"
actions = [{ deploy = true }, { power = "cycle" },
           { wait_for_results = true, console = "semihosting" }]
"#;

#[test]
fn semihosting_is_a_console_behind_a_probe() {
    for board in ["microbit", "mps2-an385"] {
        let workshop = Workshop::new();
        let _served = Served::start(&workshop, board);
        let plan = workshop.write("plan.toml", HOSTED);
        let image = elf(board, "semihosting-report");
        let args = ["test", "-b", "bench", plan.to_str().unwrap(), "--image", &image];
        let ran = workshop.run(args);
        ran.says(0, &["PASS bench 3 tests passed"]);
        let run = workshop.run_dirs().pop().unwrap();
        let shown = fs::read_to_string(run.join("consoles/1/semihosting.raw")).unwrap();
        assert_eq!(
            shown,
            "jig-fixture semihosting-report by semihosting\nTAP version 13\n1..3\n\
             ok 1 - whole texts\nok 2 - byte by byte\nok 3 - by a file\n"
        );
        let exits = events(&run).into_iter().filter(|event| event["what"] == "target_exit");
        let codes: Vec<_> = exits.map(|event| event["code"].as_i64().unwrap()).collect();
        // A pass needs no exit, which may come behind the moment of quiet.
        assert!(codes.is_empty() || codes == [0], "{codes:?}: {ran}");

        let image = elf(board, "exit-one");
        workshop.run(["run", "-b", "bench", &image]).says(1, &["cause: guest_exit", "code 1"]);
    }
}

/// A served board whose UART comes out of a pseudo-terminal, as of a USB adapter.
struct Wired {
    _server: Started,
    _slot: Slot,
    /// The far end; the adapter is pulled out when this is taken.
    far: Arc<Mutex<Option<File>>>,
    tty: PathBuf,
}

impl Wired {
    fn start(workshop: &Workshop) -> Self {
        let slot = Slot::take();
        // No child may inherit the far end: it would keep the transport alive.
        let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let master = posix_openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let tty = PathBuf::from(ptsname_r(&master).unwrap());
        let near = File::options().read(true).write(true).open(&tty).unwrap();
        let mut settings = tcgetattr(&near).unwrap();
        cfmakeraw(&mut settings);
        tcsetattr(&near, SetArg::TCSANOW, &settings).unwrap();
        let far = Arc::new(Mutex::new(Some(File::from(OwnedFd::from(master)))));
        let mut command = workshop.jig(["probe", "serve", "-b", "microbit"]);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = Started::of(&mut command);
        let (selector, mut out) = first_line(&mut server);
        let transport = Arc::clone(&far);
        // Ends with the server, which is killed at the latest when this is dropped.
        thread::spawn(move || {
            let mut some = [0; 256];
            while let Ok(count @ 1..) = out.read(&mut some) {
                if let Some(far) = transport.lock().unwrap().as_mut() {
                    far.write_all(&some[..count]).unwrap();
                }
            }
        });
        let rig = format!(
            "version = 1\n\n[[place]]\nname = \"bench\"\nboard = \"microbit\"\n\n\
             [place.probe]\nselector = \"{selector}\"\n\n\
             [[place.console]]\nname = \"uart0\"\ntty = \"{}\"\n",
            tty.display()
        );
        workshop.write("rig.toml", rig);
        Self { _server: server, _slot: slot, far, tty }
    }
}

#[test]
fn a_serial_port_is_a_console_beside_a_probe() {
    let workshop = Workshop::new();
    let _wired = Wired::start(&workshop);
    for (fixture, code, words) in
        [("unity-pass", 0, "PASS bench 3 tests passed"), ("fault-bus", 1, "cause: fault_banner")]
    {
        let image = elf("microbit", fixture);
        let ran = workshop.run(["run", "-b", "bench", "--timeout", "60s", &image]);
        ran.says(code, &[words]);
        let run = workshop.run_dirs().pop().unwrap();
        let raw = fs::read_to_string(run.join("consoles/1/uart0.raw")).unwrap();
        assert!(raw.starts_with(&format!("jig-fixture {fixture} on microbit\n")), "{raw}");
    }
}

#[test]
fn a_serial_port_that_vanishes_is_the_labs_fault() {
    let workshop = Workshop::new();
    let wired = Wired::start(&workshop);
    let run = endless(&workshop, "bench");
    boots(&workshop);
    let far = wired.far.lock().unwrap().take().unwrap();
    (&far).write_all(b"\nlast words\n").unwrap();
    let dir = workshop.run_dirs().pop().unwrap();
    let raw = dir.join("consoles/1/uart0.raw");
    until("the last words", || fs::read_to_string(&raw).ok()?.contains("last words").then_some(()));
    drop(far);
    let ran = run.finish();
    lost(&ran, &["console_lost"]);
    let document = ran.json().unwrap();
    let summary = document["verdict"]["summary"].as_str().unwrap();
    assert!(summary.contains(wired.tty.to_str().unwrap()), "{summary}");
    // The next run cannot even begin. Another test may have got the number by now.
    let rig = fs::read_to_string(workshop.path("rig.toml")).unwrap();
    let gone = workshop.path("gone");
    workshop.write("rig.toml", rig.replace(wired.tty.to_str().unwrap(), gone.to_str().unwrap()));
    let image = elf("microbit", "rtt-echo");
    lost(
        &workshop.run(["--json", "run", "-b", "bench", "--max-recoveries", "0", &image]),
        &["console_lost"],
    );
}

/// Starts a run that goes on until it is ended.
fn endless(workshop: &Workshop, place: &str) -> Started {
    let image = elf("microbit", "rtt-echo");
    let args = [
        "--json",
        "run",
        "-b",
        place,
        "--max-recoveries",
        "0",
        "--timeout",
        "1h",
        "--until",
        "never",
        &image,
    ];
    let mut command = workshop.jig(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    Started::of(&mut command)
}

fn lost(ran: &Ran, causes: &[&str]) {
    ran.says(75, &[]);
    let document = ran.json().unwrap();
    let cause = document["verdict"]["cause"].as_str().unwrap();
    assert_eq!(document["verdict"]["kind"], "env_error", "{ran}");
    assert!(causes.contains(&cause), "{cause}: {ran}");
}

#[test]
fn a_probe_that_vanishes_in_a_run_is_the_labs_fault() {
    let workshop = Workshop::new();
    let served = Served::start(&workshop, "microbit");
    let run = endless(&workshop, "bench");
    boots(&workshop);
    let began = Instant::now();
    served.server.signal(Signal::SIGKILL);
    let ran = run.finish();
    assert!(began.elapsed() < BOUND, "it took {:?}: {ran}", began.elapsed());
    lost(&ran, &["probe_lost"]);
    drop(served);
    // The next run cannot even begin.
    let image = elf("microbit", "rtt-echo");
    lost(
        &workshop.run(["--json", "run", "-b", "bench", "--max-recoveries", "0", &image]),
        &["probe_missing"],
    );
}

#[test]
fn an_emulated_board_that_vanishes_is_the_labs_fault() {
    let workshop = Workshop::new();
    emulated(&workshop, "microbit");
    let _slot = Slot::take();
    let run = endless(&workshop, "desk");
    boots(&workshop);
    let emulator = until("an emulator", || workshop.emulators().pop());
    nix::sys::signal::kill(emulator, Signal::SIGKILL).unwrap();
    lost(&run.finish(), &["emulator_killed"]);
    workshop.nothing_lives(BOUND).unwrap();
}

#[test]
fn two_runs_take_turns_at_a_probe() {
    let workshop = Workshop::new();
    let _served = Served::start(&workshop, "microbit");
    let first = endless(&workshop, "bench");
    boots(&workshop);
    let said = workshop.path("second.stderr");
    let mut command = workshop.jig(["run", "-b", "bench", &elf("microbit", "rtt-report")]);
    command.stdout(Stdio::null()).stderr(File::create(&said).unwrap());
    let second = Started::of(&mut command);
    let who = until("the second one's word", || {
        let text = fs::read_to_string(&said).unwrap();
        text.contains("waiting for place bench, in use by").then_some(text)
    });
    assert!(who.contains("run -b bench") && who.contains("pid "), "{who}");
    first.signal(Signal::SIGTERM);
    assert_eq!(first.finish().code(), 130);
    assert_eq!(second.finish().code(), 0, "{}", fs::read_to_string(&said).unwrap());
}

#[test]
fn it_is_a_runner_for_cargo() {
    let workshop = Workshop::new();
    emulated(&workshop, "microbit");
    let _slot = Slot::take();
    // As cargo lays it out and calls it: no ending, the path last, the package as folder.
    let folder = workshop.path("target/thumbv6m-none-eabi/debug");
    fs::create_dir_all(&folder).unwrap();
    for (fixture, code) in [("unity-pass", 0), ("unity-fail", 1)] {
        fs::copy(elf("microbit", fixture), folder.join("app")).unwrap();
        let runner = ["run", "-b", "desk", "target/thumbv6m-none-eabi/debug/app"];
        let mut command = workshop.jig(runner);
        command.env("CARGO_PKG_NAME", "app").env("CARGO_MANIFEST_DIR", workshop.path(""));
        ran(&mut command).unwrap().says(code, &[]);
    }
}

#[test]
fn places_are_checked_before_anything_runs() {
    let workshop = Workshop::new();
    emulated(&workshop, "riscv32-virt");
    let ran = workshop.run(["boards"]);
    ran.says(3, &["no debug port is described", "[emulation.debug]"]);
    emulated(&workshop, "mps2-an385");
    workshop.run(["boards"]).says(0, &[]);
    // Its flash is blank at the start of each run.
    workshop.run(["run", "-b", "desk"]).says(2, &["image"]);
}
