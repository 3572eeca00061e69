//! `jig hold` at places of real parts: the same verbs reach the board, by its console, outlet,
//! flasher and probe.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::board::{Board, KIND, device, outlets};
use crate::capture_service::CaptureService;
use crate::hold::Held;
use crate::manifest::elf;
use crate::probe_runs::Served;
use crate::workshop::{Slot, Workshop};

/// Writes a rig file of one place.
fn rig(workshop: &Workshop, more: &str, place: &str) {
    let place = format!("[[place]]\nname = \"bare\"\nboard = \"{KIND}\"\n{place}\n");
    workshop.write("rig.toml", format!("version = 1\n{more}{place}"));
}

#[test]
fn a_board_at_an_outlet_is_reset_and_flashed_beside_its_console() {
    for is_served in [false, true] {
        let _slot = Slot::take();
        let workshop = Workshop::new();
        let board = Board::new(&workshop, "one");
        let web = outlets(&[&board]);
        let socket = workshop.path("console");
        board.on_a_socket(&socket);
        let program = workshop.write("flash", "#!/bin/sh\necho \"$1\" > \"$2\"\n");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let place = format!(
            "flasher = {{ command = [\"{}\", \"{{image}}\", \"{}\"] }}\n\
             power = {{ device = \"pdu\", outlet = \"0\" }}\n[[place.console]]\n\
             name = \"uart0\"\nunix = \"{}\"\n",
            program.display(),
            workshop.path("one.flash").display(),
            socket.display()
        );
        rig(&workshop, &device(&web), &place);
        board.flash(&elf(KIND, "shell"));
        let service = is_served.then(|| CaptureService::start(&workshop));
        if let Some(service) = &service {
            service.state("bare", "captured");
        }
        let held = Held::with(&workshop, "bare", &[]);
        let wanted =
            json!({"event": "held", "place": "bare", "consoles": ["uart0"], "debug": false});
        assert_eq!(held.held, wanted);
        let mut console = held.session(&["console", "--raw"], &["--since", "1h"]);
        // The boot by the power that the holder has given.
        console.expect("jig-fixture shell");
        console.send(b"ver\r");
        console.expect("shell 1.4.2");
        for _ in 0..2 {
            let reset = held.verb(&["--json", "reset"], &[]);
            reset.says(0, &[]);
            assert_eq!(reset.json().unwrap()["method"], "power", "{reset}");
            console.expect("jig-fixture shell");
            console.send(b"ver\r");
            console.expect("shell 1.4.2");
        }
        held.verb(&["flash"], &[&elf(KIND, "unity-pass")]).says(0, &[]);
        console.expect("3 Tests 0 Failures");
        held.verb(&["bt"], &[]).says(3, &["has no debug probe", "[place.probe]"]);
        workshop.run(["power", "-b", "bare", "off"]).says(75, &["hold -b bare"]);
        console.hang_up().says(0, &[]);
        held.holder.signal(Signal::SIGINT);
        held.holder.finish().says(0, &[]);
        // The holder has switched it on, so it is off again.
        let power = workshop.run(["--json", "power", "-b", "bare", "status"]);
        assert_eq!(power.json().unwrap()["state"], "off", "{power}");
        if let Some(service) = service {
            service.stop().says(0, &[]);
        }
    }
}

#[test]
fn a_board_behind_a_probe_has_one_session_for_all_verbs() {
    let workshop = Workshop::new();
    let _server = Served::start(&workshop, "microbit");
    let image = elf("microbit", "rtt-echo");
    let held = Held::with(&workshop, "bench", &["--image", &image]);
    assert_eq!(held.held["debug"], true);
    let mut rtt = held.session(&["rtt"], &["--elf", &image]);
    rtt.expect("rtt-echo ready");
    for word in ["one", "two"] {
        held.verb(&["reset"], &[]).says(0, &[]);
        rtt.expect("rtt-echo ready");
        let bt = held.verb(&["bt"], &["--elf", &image]);
        assert!(bt.says(0, &[]).out().contains("fixture_main"), "{bt}");
        rtt.send(format!("{word}\n").as_bytes());
        rtt.expect(word);
    }
    let mut gdb = held.session(&["gdb"], &[]);
    gdb.expect("127.0.0.1:");
    let core =
        |verb| -> Value { held.verb(&["--json", verb], &[]).json().unwrap()["core"].clone() };
    assert_eq!(core("halt")["state"], "halted");
    assert_eq!(core("resume")["state"], "running");
    held.verb(&["probe", "serve"], &[]).says(2, &["is a real board"]);
    held.holder.signal(Signal::SIGTERM);
    held.holder.finish().says(0, &[]);
    // Sessions end with it, in order.
    rtt.hang_up().says(0, &[]);
    assert_eq!(gdb.hang_up().code(), 130);
    workshop.run(["reset", "-b", "bench"]).says(0, &[]);
}
