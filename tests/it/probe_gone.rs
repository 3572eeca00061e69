//! What is in the middle of a flash operation goes away: the emulator, the server, the client.
//!
//! Each is killed when the flasher has said that it programs. A quick machine may be done
//! before the kill lands; then it is tried again, and one that lands must be met.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use serde_json::Value;

use crate::dice::Dice;
use crate::manifest::elf;
use crate::served::{Served, bytes_of};
use crate::workshop::{DEADLINE, Ran, Slot, Started, Workshop, until};

/// All of the chip's flash: programming it takes a hundred times as long as to be killed.
const FLASH: usize = 256 << 10;

/// How often a kill may come too late.
const TRIES: usize = 20;

/// How long a flasher may take to notice, on a busy machine; the worker's own bound is 20 s
/// without a sign of life.
const BOUND: Duration = Duration::from_secs(120);

/// How many kills of a client have to meet it alive.
const KILLS: usize = 50;

fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut dice = Dice::of(seed);
    (0..len).map(|_| dice.below(255) as u8).collect()
}

/// A flasher that has said that it programs.
struct Flashing {
    jig: Started,
    said: PathBuf,
}

impl Flashing {
    fn start(workshop: &Workshop, args: &[&str]) -> Self {
        let said = workshop.path("said.txt");
        let mut command = workshop.jig(["flash", "-b", "microbit"].iter().chain(args));
        command.stdout(Stdio::null()).stderr(File::create(&said).unwrap());
        let jig = Started::of(&mut command);
        let flashing = Self { jig, said };
        until("the word that it programs", || {
            flashing.said().contains("programming").then_some(())
        });
        flashing
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.said).unwrap()
    }

    /// Waits for the end; nothing if it was done before what should have hit it.
    fn hit(self, since: Instant) -> Option<Ran> {
        let mut ran = self.jig.finish();
        ran.stderr = fs::read(&self.said).unwrap();
        assert!(since.elapsed() < BOUND, "it took {:?} to notice: {ran}", since.elapsed());
        (ran.code() != 0).then_some(ran)
    }
}

/// Tries until the fault hits a flasher at work, and checks that the flasher blames the probe.
fn until_met(what: &str, mut attempt: impl FnMut() -> Option<Ran>) {
    let met = (0..TRIES).find_map(|_| attempt());
    let ran = met.unwrap_or_else(|| panic!("{what}: all {TRIES} came too late"));
    ran.says(75, &["the probe was lost during flash", "jig probes"]);
}

#[test]
fn an_emulator_that_dies_while_it_is_programmed_is_the_labs_fault() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    workshop.write("old.bin", noise(1 << 10, 1));
    workshop.write("all.bin", noise(FLASH, 2));
    let old = ["flash", "-b", "microbit", "old.bin@0x4000"];
    workshop.run(old).says(0, &[]);
    until_met("emulator", || {
        let flashing = Flashing::start(&workshop, &["all.bin@0", "--all"]);
        let emulator = workshop.emulators().pop()?;
        kill(emulator, Signal::SIGKILL).ok()?;
        flashing.hit(Instant::now())
    });
    workshop.nothing_lives(DEADLINE).unwrap();
    workshop.run(["flash", "-b", "microbit", "all.bin@0"]).says(0, &[]);
    let read = workshop.run(["mem", "read", "-b", "microbit", "0", "256K", "-o", "-"]);
    assert!(read.stdout == noise(FLASH, 2), "{}", read.says(0, &[]).line);
}

#[test]
fn a_served_emulator_that_dies_while_it_is_programmed_is_the_labs_fault() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    workshop.write("all.bin", noise(FLASH, 3));
    until_met("emulator of a server", || {
        let served = Served::start(&workshop, "microbit", &[]);
        let flashing = Flashing::start(&workshop, &["all.bin@0", "--all"]);
        kill(workshop.emulators().pop()?, Signal::SIGKILL).ok()?;
        let ran = flashing.hit(Instant::now());
        served.ended().says(75, &["the emulated board microbit is gone: emulator_killed"]);
        ran
    });
    let served = Served::start(&workshop, "microbit", &[]);
    served.verb(&["flash"], &["all.bin@0"]).says(0, &[]);
    served.stop().says(0, &[]);
}

#[test]
fn a_server_that_dies_while_it_is_used_to_program_is_the_labs_fault() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    workshop.write("all.bin", noise(FLASH, 4));
    until_met("server", || {
        let served = Served::start(&workshop, "microbit", &[]);
        let flashing = Flashing::start(&workshop, &["all.bin@0", "--all"]);
        served.signal(Signal::SIGKILL);
        let ran = flashing.hit(Instant::now());
        drop(served);
        workshop.nothing_lives(DEADLINE).unwrap();
        ran
    });
    let served = Served::start(&workshop, "microbit", &[]);
    served.verb(&["flash"], &["all.bin@0"]).says(0, &[]);
    served.stop().says(0, &[]);
}

#[test]
fn a_client_killed_at_any_moment_leaves_a_board_that_can_be_flashed() {
    let _slot = Slot::take();
    let (workshop, mut dice) = (Workshop::new(), Dice::new());
    let images = [noise(8 << 10, 5), noise(8 << 10, 6)];
    for (nth, bytes) in images.iter().enumerate() {
        workshop.write(&format!("{nth}.bin"), bytes);
    }
    let program = elf("microbit", "unity-pass");
    let served = Served::start(&workshop, "microbit", &["--image", &program]);
    let began = Instant::now();
    served.verb(&["flash"], &["0.bin@0x8000"]).says(0, &[]);
    let mut takes = began.elapsed();
    let mut landed = 0;
    for throw in 0..KILLS * 4 {
        let image = format!("{}.bin@0x8000", (throw + 1) % images.len());
        let mut command = workshop.jig(["flash", "-b", "microbit", &image]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut client = Started::of(&mut command);
        // This is no wait for anything: the moment is what is thrown.
        let moment = Duration::from_micros(dice.below((takes.as_micros() as u64).max(1)));
        std::thread::sleep(moment);
        client.child().kill().unwrap();
        match client.finish().status.code() {
            None => landed += 1,
            // It was quicker than before, when the machine may have been busier.
            Some(_) => takes = moment,
        }
        if landed == KILLS {
            break;
        }
    }
    assert_eq!(landed, KILLS, "kills that met a living client");
    let last = served.json(&["flash"], &["1.bin@0x8000"]);
    assert_eq!(last["report"]["verified"], true);
    let read = bytes_of(&served.json(&["mem", "read"], &["0x8000", "8K"]));
    assert!(read == images[1], "the last image is not whole");
    // The rest of the chip was left alone, and its program runs.
    let boots = served.printed().matches("jig-fixture").count();
    served.verb(&["reset"], &[]).says(0, &[]);
    until("the program's banner", || {
        (served.printed().matches("jig-fixture").count() > boots).then_some(())
    });
    served.stop().says(0, &[]);
}

/// A rig with a place whose board is deployed through a probe.
fn rig(workshop: &Workshop, resource: &str) {
    let head = "version = 1\n\n[[place]]\nname = \"bench\"\nboard = \"microbit\"\n\n";
    workshop.write("rig.toml", format!("{head}{resource}\n"));
}

/// Runs an image and does something while it is programmed; returns the verdict if the
/// deployment was not over by then.
fn hit_while_deploying(workshop: &Workshop, image: &str, hit: impl FnOnce()) -> Option<Value> {
    let before = workshop.run_dirs().len();
    let mut command = workshop.jig([
        "--json",
        "run",
        "-b",
        "bench",
        "--max-recoveries",
        "0",
        image,
        "--timeout",
        "1s",
    ]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = Started::of(&mut command);
    until("a deployment that programs", || {
        let dirs = workshop.run_dirs();
        let text = fs::read_to_string(dirs.get(before)?.join("events.jsonl")).unwrap_or_default();
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let percents = events.filter(|event| event["what"] == "deploying");
        // Comparing and erasing are weighed with two fifths.
        { percents }.any(|event| event["percent"].as_u64() > Some(40)).then_some(())
    });
    let since = Instant::now();
    hit();
    let ran = run.finish();
    assert!(since.elapsed() < BOUND, "it took {:?} to notice: {ran}", since.elapsed());
    let verdict = ran.json().unwrap()["verdict"].clone();
    assert!(ran.code() != 75 || verdict["kind"] == "env_error", "{ran}");
    let run = workshop.run_dirs().pop().unwrap();
    let events = fs::read_to_string(run.join("events.jsonl")).unwrap();
    // A board that is lost after its deployment is another story.
    let deployed = events.contains("\"event\":\"deployed\"");
    (ran.code() == 75 && !deployed).then_some(verdict)
}

/// Deploys images in turns until a hit meets a deployment, and checks the cause.
fn until_deployment_met(what: &str, cause: &str, mut attempt: impl FnMut(&str) -> Option<Value>) {
    let mut images = ["0.bin@0", "1.bin@0"].into_iter().cycle().take(TRIES);
    let met = images.find_map(&mut attempt);
    let verdict = met.unwrap_or_else(|| panic!("{what}: all {TRIES} came too late"));
    assert_eq!(verdict["cause"], cause, "{what}: {verdict}");
}

#[test]
fn a_deployment_whose_emulator_dies_is_the_labs_fault() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    rig(&workshop, "[place.emulator]\ndeploy = \"probe\"");
    (0..2).for_each(|nth| drop(workshop.write(&format!("{nth}.bin"), noise(FLASH, 7 + nth))));
    until_deployment_met("emulator", "emulator_killed", |image| {
        hit_while_deploying(&workshop, image, || {
            let emulator = workshop.emulators().pop();
            emulator.map(|emulator| kill(emulator, Signal::SIGKILL));
        })
    });
    workshop.nothing_lives(DEADLINE).unwrap();
    let image = elf("microbit", "unity-pass");
    workshop.run(["run", "-b", "bench", &image]).says(0, &["3 tests passed"]);
}

#[test]
fn a_deployment_whose_probe_vanishes_is_the_labs_fault() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    (0..2).for_each(|nth| drop(workshop.write(&format!("{nth}.bin"), noise(FLASH, 7 + nth))));
    let serve = || {
        // The serving process must not see the rig file that puts the board at a place.
        let _ = fs::remove_file(workshop.path("rig.toml"));
        let served = Served::start(&workshop, "microbit", &[]);
        rig(&workshop, &format!("[place.probe]\nselector = \"{}\"", served.selector));
        served
    };
    until_deployment_met("server", "probe_lost", |image| {
        let served = serve();
        let verdict = hit_while_deploying(&workshop, image, || served.signal(Signal::SIGKILL));
        drop(served);
        workshop.nothing_lives(DEADLINE).unwrap();
        verdict
    });
    until_deployment_met("emulator of a server", "probe_lost", |image| {
        let served = serve();
        let verdict = hit_while_deploying(&workshop, image, || {
            let emulator = workshop.emulators().pop();
            emulator.map(|emulator| kill(emulator, Signal::SIGKILL));
        });
        served.ended().says(75, &["is gone"]);
        verdict
    });
    let served = serve();
    let image = elf("microbit", "rtt-report");
    workshop.run(["run", "-b", "bench", &image]).says(0, &["3 tests passed"]);
    served.stop().says(0, &[]);
}
