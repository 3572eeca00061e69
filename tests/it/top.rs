//! `jig top`: all places from files, with and without a service, once and live.

use std::cell::RefCell;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde_json::Value;

use crate::capture_service::{CaptureService, captured, named, rig};
use crate::manifest::elf;
use crate::remote::OverSsh;
use crate::serial::terminal;
use crate::workshop::{Slot, Started, Workshop, ran, tied, until};

fn json(workshop: &Workshop, more: &[&str]) -> Value {
    let ran = workshop.run(["--json", "top"].iter().chain(more));
    ran.says(0, &[]);
    ran.json().unwrap()
}

#[test]
fn places_are_shown_with_leases_and_hostile_output_as_text() {
    let workshop = Workshop::new();
    let (mut far, _near, one) = named(&workshop, "one");
    let (_far, _near2, two) = named(&workshop, "two");
    workshop.write("rig.toml", rig(&[("bench-1", &one), ("bench-2", &two)]));
    // Looking begins no store.
    assert_eq!(json(&workshop, &[])["places"].as_array().unwrap().len(), 2);
    assert!(!workshop.path("../home/STATE/jig/leases.db").exists());

    let service = CaptureService::start(&workshop);
    service.state("bench-1", "captured");
    let printed = b"boot\n\x1b[2J\x1b]0;owned\x07 \xe2\x80\xae 12\r\n";
    far.write_all(printed).unwrap();
    let len = u64::try_from(printed.len()).unwrap();
    until("what is printed", || (captured(&workshop, "bench-1") >= len).then_some(()));
    service.stop().says(0, &[]);
    let lease = ["lease", "acquire", "-b", "bench-2", "--ttl", "1h", "--comment", "antenna"];
    workshop.run(lease).says(0, &[]);

    // Without a service.
    let once = workshop.run(["top", "--once"]);
    once.says(0, &[]);
    let text = once.out();
    assert!(text.starts_with("2 places, 2 healthy; 0 running; 0 wait for a lease\n"), "{text}");
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text}");
    let line = |place: &str| text.lines().find(|line| line.starts_with(place)).unwrap();
    assert!(line("bench-1").ends_with("\\x1b[2J\\x1b]0;owned\\x07 \\u{202e} 12"), "{text}");
    assert!(line("bench-2").contains("(antenna)"), "{text}");
    let told = json(&workshop, &["--filter", "ANTENNA"]);
    assert_eq!(told["places"].as_array().unwrap().len(), 0, "a comment is no column: {told}");
    let told = json(&workshop, &["--filter", "bench-2"]);
    assert_eq!(told["places"][0]["lease"]["comment"], "antenna", "{told}");
    workshop.run(["top"]).says(2, &["no terminal", "--once"]);
}

#[test]
fn a_run_is_shown_live_and_keys_work() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    live(&workshop, |args| workshop.jig(args), || ());
}

#[test]
fn a_rig_elsewhere_is_shown_live_whatever_becomes_of_the_connection() {
    let _slot = Slot::take();
    let hosts = OverSsh::new();
    live(&hosts.rig, |args| hosts.call(args), || hosts.sshd.connections().cut());
    assert_eq!(hosts.desk.run_dirs().len(), 0, "what is looked at is not kept");
}

/// Looks at a run of a rig by commands that `look` makes; does something `meanwhile`.
fn live(rig: &Workshop, look: impl Fn(&[&str]) -> Command, meanwhile: impl Fn()) {
    let workshop = rig;
    let image = elf("microbit", "unity-pass");
    let run = ["run", "-b", "microbit", "--until", "never", "--timeout", "10m", &image];
    let mut command = workshop.jig(run);
    let run = Started::of(command.stdout(Stdio::null()).stderr(Stdio::null()));
    let place = || {
        let told = json(workshop, &["--filter", "microbit"]);
        let places = told["places"].as_array().unwrap().clone();
        places.into_iter().find(|at| at["place"] == "microbit").unwrap()
    };
    until("the last line", || (place()["console"] == "OK").then_some(()));
    let id = place()["run"]["id"].as_str().unwrap().to_owned();

    let (mut keys, near, path) = terminal();
    let mut stty = tied("stty");
    stty.arg("-F").arg(&path).args(["rows", "30", "cols", "150"]);
    ran(&mut stty).unwrap().says(0, &[]);
    let mut command = look(&["top"]);
    command.env("TERM", "xterm-256color").env("NO_COLOR", "1");
    command.stdin(near.try_clone().unwrap()).stdout(near.try_clone().unwrap());
    command.stderr(Stdio::piped());
    let top = RefCell::new(Started::of(&mut command));
    let shown = Arc::<Mutex<Vec<u8>>>::default();
    let _told = ToldOnPanic(Arc::clone(&shown));
    let (heard, mut screen) = (Arc::clone(&shown), keys.try_clone().unwrap());
    // Ends when the terminal's last end on this side is closed, at the latest with the test.
    thread::spawn(move || read_all(&mut screen, &heard));
    let sees = |text: &str| {
        until(text, || {
            let ended = top.borrow_mut().child().try_wait().unwrap();
            assert_eq!(ended, None, "{text}: {}", said(&mut top.borrow_mut()));
            String::from_utf8_lossy(&shown.lock().unwrap()).contains(text).then_some(())
        });
    };
    sees(&id);
    // Words only: blanks that were blank before are not drawn.
    sees("filter,");
    meanwhile();
    keys.write_all(b"/microbit\r").unwrap();
    sees("/microbit");
    shown.lock().unwrap().clear();
    keys.write_all(b"\r").unwrap();
    sees("Failures");
    shown.lock().unwrap().clear();
    // Leaves the console, then the view.
    keys.write_all(b"q").unwrap();
    sees("CONSOLE");
    keys.write_all(b"q").unwrap();
    top.into_inner().finish().says(0, &[]);
    run.signal(nix::sys::signal::Signal::SIGINT);
    run.finish().says(130, &[]);
}

/// Shows with a failed test what was on the screen.
struct ToldOnPanic(Arc<Mutex<Vec<u8>>>);

impl Drop for ToldOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            let shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = writeln!(std::io::stderr(), "shown: {}", shown.escape_ascii());
        }
    }
}

/// Returns what a program that has ended said of errors.
fn said(ended: &mut Started) -> String {
    let mut text = String::new();
    ended.child().stderr.as_mut().unwrap().read_to_string(&mut text).unwrap();
    text
}

fn read_all(screen: &mut File, heard: &Mutex<Vec<u8>>) {
    let mut buf = [0; 4096];
    while let Ok(len @ 1..) = screen.read(&mut buf) {
        heard.lock().unwrap().extend(&buf[..len]);
    }
}
