//! Faults that strike only real transports.

use std::fs;
use std::io::{Read, Write as _};
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::manifest::elf;
use crate::serial::{Bench, terminal, tty};
use crate::workshop::{DEADLINE, Slot, Workshop, until};

/// Waits until a program that steals has a tty open, or was seen to have ended.
fn port_reader_at_work(workshop_mark: &str, tty: &Path) {
    let mut seen = false;
    until("a port reader at the tty", || {
        let pids = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let port_reader = pids.into_iter().find(|pid| {
            let line = fs::read(pid.join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            line.contains("--steal-tty") && line.contains(workshop_mark)
        });
        seen |= port_reader.is_some();
        let Some(port_reader) = port_reader else { return seen.then_some(()) };
        let open = fs::read_dir(port_reader.join("fd")).into_iter().flatten().flatten();
        open.map(|fd| fs::read_link(fd.path())).any(|to| to.is_ok_and(|to| to == tty)).then_some(())
    });
}

#[test]
fn a_tty_that_another_program_reads_is_the_rigs_fault_and_the_test_has_its_turn_again() {
    let bench = Bench::of(|workshop| {
        let (mut far, near, path) = terminal();
        // It stays as it was set, and only the run has it open.
        drop(near);
        let link = workshop.path("by-id");
        symlink(&path, &link).unwrap();
        let mark = link.display().to_string();
        let pass = move |mut board: std::io::BufReader<_>| {
            let (mut some, mut struck) = ([0; 256], false);
            while let Ok(count @ 1..) = board.read(&mut some) {
                // What the first attempt prints is met by two readers.
                if !std::mem::replace(&mut struck, true) {
                    port_reader_at_work(&mark, &path);
                }
                if far.write_all(&some[..count]).is_err() {
                    return;
                }
            }
        };
        (tty(&link), pass)
    });
    let image = elf("microbit", "unity-pass");
    let args = ["--json", "run", "-b", "bench", &image, "--timeout", "4m"];
    let ran = bench.workshop.run(args.iter().chain(&["--inject", "steal-tty=3s"]));
    ran.says(0, &["the rig works again"]);
    let document = ran.json().unwrap();
    let first = &document["attempts"][0];
    assert_eq!((&first["cause"], &first["replaced"]), (&"output_lost".into(), &true.into()));
    assert!(first["summary"].as_str().unwrap().contains("shared with jig (pid "), "{ran}");
    let left = bench.workshop.processes();
    assert!(left.iter().all(|(_, line)| !line.contains("--steal-tty")), "{left:?}");
}

#[test]
fn a_fault_of_a_transport_that_the_place_has_not_is_refused() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let image = elf("microbit", "unity-pass");
    for (fault, wanted) in [("steal-tty", "`tty`"), ("ssh-drop", "`command`")] {
        let ran = workshop.run(["run", "-b", "microbit", &image, "--inject", fault]);
        ran.says(2, &["console uart0 of place microbit is no transport of its own", wanted]);
    }
    assert!(workshop.run_dirs().is_empty(), "nothing was run");
    workshop.nothing_lives(DEADLINE).unwrap();
}
