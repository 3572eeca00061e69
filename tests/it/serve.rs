//! `jig serve` under a service manager: readiness, watchdog, reload, stop, folders, socket, log.

use std::fs::{self, File};
use std::os::linux::fs::MetadataExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;

use crate::capture_service::{CaptureService, named, rig};
use crate::manifest::elf;
use crate::workshop::{DEADLINE, Slot, Started, Workshop, until};

/// The socket of a service manager.
pub(crate) struct Manager(UnixDatagram);

impl Manager {
    pub(crate) fn of(workshop: &Workshop) -> Self {
        let socket = UnixDatagram::bind(workshop.path("manager")).unwrap();
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
        Self(socket)
    }

    /// Has a service notify this manager.
    pub(crate) fn manage(workshop: &Workshop, command: &mut Command) {
        command.env("NOTIFY_SOCKET", workshop.path("manager"));
    }

    /// Returns the next message.
    #[track_caller]
    pub(crate) fn told(&self) -> String {
        let mut said = [0; 512];
        let len = self.0.recv(&mut said).unwrap();
        String::from_utf8_lossy(&said[..len]).into_owned()
    }

    /// Waits for a message that begins like this, and returns it.
    #[track_caller]
    pub(crate) fn tells(&self, start: &str) -> String {
        loop {
            let told = self.told();
            if told.starts_with(start) {
                return told;
            }
        }
    }

    /// Waits until messages that begin so have come, in whatever order.
    #[track_caller]
    fn tells_all(&self, starts: &[&str]) {
        let mut missing = starts.to_vec();
        while !missing.is_empty() {
            let told = self.told();
            missing.retain(|start| !told.starts_with(start));
        }
    }
}

#[test]
fn a_service_manager_is_told_of_each_phase() {
    let workshop = Workshop::new();
    let (_far, _near, link) = named(&workshop, "port");
    let good = rig(&[("bench", &link)]);
    workshop.write("rig.toml", &good);
    let manager = Manager::of(&workshop);
    let service = CaptureService::with(&workshop, |command| {
        Manager::manage(&workshop, command);
        command.env("WATCHDOG_USEC", "100000");
    });
    // Calls are answered when the first message comes.
    assert_eq!(manager.told(), "READY=1");
    assert!(workshop.path("../home/STATE/jig/rig.sock").exists());
    service.state("bench", "captured");
    manager.tells("STATUS=serving; 1 of 1 consoles");
    for _ in 0..3 {
        manager.tells("WATCHDOG=1");
    }

    workshop.write("rig.toml", "version = 1\n[[place]]\nname = 7\n");
    service.signal(Signal::SIGHUP);
    // The file may have been seen to change before the signal.
    manager.tells_all(&[
        "RELOADING=1",
        "STATUS=rig file refused, the earlier one holds: ",
        "READY=1",
    ]);
    service.state("bench", "captured");
    workshop.write("rig.toml", &good);
    service.signal(Signal::SIGHUP);
    manager.tells_all(&["STATUS=serving; 1 of 1 consoles", "READY=1"]);
    // The console was opened once.
    let states = service.told().into_iter().filter(|told| told["place"] == "bench").count();
    assert_eq!(states, 1);

    service.stop().says(0, &[]);
    // Two minutes for commands of callers, and some behind it, whatever the unit allows.
    assert_eq!(manager.tells("STOPPING=1"), "STOPPING=1\nEXTEND_TIMEOUT_USEC=190000000");
    manager.tells("STATUS=stopping; 0 commands");
}

/// A command of a caller that goes on until it is cancelled.
fn endless(rig: &Workshop, desk: &Workshop) -> Started {
    let image = elf("microbit", "unity-pass");
    let mut command = desk.jig(["run", "-b", "microbit", "--until", "never", "--timeout", "10m"]);
    command.arg(image).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env("JIG_RIG", format!("unix:{}", socket(rig).display()));
    let started = Started::of(&mut command);
    until("the run", || rig.run_dirs().first().map(drop));
    until("its emulator", || (!rig.emulators().is_empty()).then_some(()));
    started
}

fn socket(rig: &Workshop) -> std::path::PathBuf {
    rig.path("../home/STATE/jig/rig.sock")
}

#[test]
fn a_stop_waits_for_commands_and_begins_none() {
    let _slot = Slot::take();
    let (rig, desk) = (Workshop::new(), Workshop::new());
    let service = CaptureService::start(&rig);
    let run = endless(&rig, &desk);
    service.signal(Signal::SIGTERM);
    service.tells("draining", |told| told["commands"] == 1);
    let late = Workshop::new();
    let mut call = late.jig(["--json", "run", "-b", "microbit", &elf("microbit", "unity-pass")]);
    call.env("JIG_RIG", format!("unix:{}", socket(&rig).display()));
    crate::workshop::ran(&mut call).unwrap().says(75, &[]);
    // It is still watched by way of the service that stops.
    run.signal(Signal::SIGINT);
    run.finish().says(130, &[]);
    service.tells("drained", |told| told["left"] == 0);
    service.finish().says(0, &[]);
    rig.nothing_lives(DEADLINE).unwrap();
}

#[test]
fn a_stop_leaves_commands_that_take_longer() {
    let _slot = Slot::take();
    let (rig, desk) = (Workshop::new(), Workshop::new());
    // The time is over at once; or a second signal does not wait for it.
    for (more, again, code) in [(&["--drain", "0s"][..], false, 0), (&[][..], true, 130)] {
        let service = CaptureService::with(&rig, |command| {
            command.args(more);
        });
        let run = match rig.emulators().is_empty() {
            true => Some(endless(&rig, &desk)),
            // That of the first service.
            false => None,
        };
        service.signal(Signal::SIGTERM);
        service.tells("draining", |told| told["commands"] == 1);
        if again {
            service.signal(Signal::SIGTERM);
        }
        service.finish().says(code, &[]);
        assert!(!rig.emulators().is_empty());
        if let Some(run) = run {
            // The next service answers this caller; here it does not wait for one.
            run.signal(Signal::SIGKILL);
            run.finish();
        }
    }
    for (pid, line) in rig.processes() {
        if line.contains(" worker --job ") {
            nix::sys::signal::kill(pid, Signal::SIGTERM).unwrap();
        }
    }
    rig.nothing_lives(DEADLINE).unwrap();
}

#[test]
fn folders_and_the_socket_are_those_of_the_manager() {
    let workshop = Workshop::new();
    let (_far, _near, link) = named(&workshop, "port");
    workshop.write("rig.toml", rig(&[("bench", &link)]));
    let (state, runtime) = (workshop.path("state"), workshop.path("runtime"));
    fs::create_dir(&runtime).unwrap();
    let group = nix::unistd::getegid();
    let service = CaptureService::with(&workshop, |command| {
        command.env("STATE_DIRECTORY", format!("{}:/other", state.display()));
        command.env("RUNTIME_DIRECTORY", &runtime);
        command.args(["--socket-mode", "660", "--socket-group", &group.to_string()]);
    });
    service.state("bench", "captured");
    let told = service.tells("ready", |_| true);
    let socket = runtime.join("rig.sock");
    assert_eq!(told["rig"], socket.to_str().unwrap());
    let about = fs::metadata(&socket).unwrap();
    assert_eq!((about.permissions().mode() & 0o777, about.st_gid()), (0o660, group.as_raw()));
    // Clients of the consoles get descriptors of ports, so theirs stays with this user.
    let consoles = told["socket"].as_str().unwrap();
    assert!(consoles.starts_with(state.to_str().unwrap()), "{consoles}");
    assert_eq!(fs::metadata(consoles).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(state.join("places/bench.consoles").exists());
    assert!(!workshop.path("../home/STATE/jig").exists());
    service.stop().says(0, &[]);
    assert!(!socket.exists());
    let refused = workshop.run(["serve", "--socket-group", "no such group"]);
    refused.says(2, &["there is no group"]);
    workshop.run(["serve", "--socket-mode", "066"]).says(2, &["three octal digits"]);
}

#[test]
fn the_rig_file_sets_what_the_command_line_leaves_open() {
    let workshop = Workshop::new();
    let metrics = workshop.path("m.sock");
    let modes = || {
        [&socket(&workshop), &metrics].map(|path| {
            let about = fs::metadata(path).unwrap();
            about.permissions().mode() & 0o777
        })
    };
    let shown = metrics.display();
    let table = format!("[serve]\nsocket_mode = \"660\"\nmetrics = \"unix:{shown}\"\n");
    workshop.write("rig.toml", format!("version = 1\n{table}"));
    let service = CaptureService::start(&workshop);
    assert_eq!(modes(), [0o660; 2]);
    service.stop().says(0, &[]);
    let service = CaptureService::with(&workshop, |command| {
        command.args(["--socket-mode", "600"]);
    });
    assert_eq!(modes(), [0o600; 2]);
    service.stop().says(0, &[]);
    let bad = "version = 1\n[serve]\nmetrics = \"0.0.0.0:1\"\nsocket_mode = \"066\"\n";
    workshop.write("rig.toml", bad);
    workshop.run(["serve"]).says(3, &["rig.toml:3", "127.0.0.1:PORT", "rig.toml:4", "octal"]);
}

#[test]
fn lines_of_the_journal_begin_with_their_level() {
    let workshop = Workshop::new();
    for format in ["text", "json"] {
        let (log, out) = (workshop.path(format), workshop.path("out"));
        let file = File::create(&log).unwrap();
        let about = file.metadata().unwrap();
        let mut command = workshop.jig(["--log-format", format, "serve", "--check-every", "0s"]);
        command.env("JOURNAL_STREAM", format!("{}:{}", about.st_dev(), about.st_ino()));
        // There is no such manager, which is worth a warning.
        command.env("NOTIFY_SOCKET", workshop.path("nowhere"));
        command.stdout(File::create(&out).unwrap()).stderr(file);
        let service = Started::of(&mut command);
        let text = || fs::read_to_string(&log).unwrap();
        until("a warning", || text().contains("READY=1").then_some(()));
        // A mistake in the rig file is an error, each line of it.
        workshop.write("rig.toml", "version = 1\n[[place]]\nname = 7\n");
        if format == "text" {
            until("the mistake", || text().contains(" found\n").then_some(()));
            let is_error = ["all stays as it was", "name = 7", "error: "];
            let wrong = |line: &&str| {
                is_error.iter().any(|text| line.contains(text)) && !line.starts_with("<3>")
            };
            assert_eq!(text().lines().find(wrong), None);
        }
        fs::remove_file(workshop.path("rig.toml")).unwrap();
        service.signal(Signal::SIGTERM);
        service.finish().says(0, &[]);
        let text = text();
        assert!(!text.contains("Ctrl-C"), "{text}");
        let line = text.lines().find(|line| line.contains("READY=1")).unwrap();
        let rest = line.strip_prefix("<4>").unwrap_or_else(|| panic!("{line}"));
        match format {
            "json" => {
                let line: serde_json::Value = serde_json::from_str(rest).unwrap();
                assert_eq!(line["level"], "WARN", "{line}");
                assert!(line["session_id"].is_string(), "{line}");
            }
            _ => assert!(rest.starts_with("jig::commands::serve::manager: "), "{line}"),
        }
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}
