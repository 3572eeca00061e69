//! A hub that boards share: it is cycled only if no other place on it is in use.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::capture_service::CaptureService;
use crate::served::Served;
use crate::workshop::{DEADLINE, Slot, Started, Workshop, until};

/// Writes down what it is told; it hangs over outlet 2, whatever it is asked.
const PDU: &str = "#!/bin/sh\n\
    [ \"$1\" = 2 ] && { touch busy; sleep 600; }\n\
    echo $1 $2 >> sets\n";

#[test]
fn a_hub_is_cycled_only_while_nobody_else_is_on_it() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let socket = workshop.path("../home/STATE/jig/places/desk.probe");
    workshop.write(
        "rig.toml",
        format!(
            "version = 1\n\
             [[power]]\nname = \"pdu\"\nmin_interval = \"0ms\"\n\
             [power.command]\nset = [\"./pdu\", \"{{outlet}}\", \"{{state}}\"]\n\
             [[power]]\nname = \"slow\"\nmin_interval = \"0ms\"\n\
             [power.command]\nset = [\"./pdu\", \"{{outlet}}\", \"{{state}}\"]\n\
             status = [\"./pdu\", \"{{outlet}}\"]\n\
             [[hub]]\nname = \"shelf\"\n\
             power = {{ device = \"pdu\", outlet = \"7\", off_time = \"20ms\" }}\n\
             [[place]]\nname = \"desk\"\nboard = \"microbit\"\nemulator = {{}}\n\
             [[place]]\nname = \"left\"\nboard = \"microbit\"\nhub = \"shelf\"\n\
             probe = {{ selector = \"20b7:9db1:unix:{}\" }}\n\
             [[place]]\nname = \"right\"\nboard = \"microbit\"\nhub = \"shelf\"\n\
             probe = {{ selector = \"0d28:0204:2\" }}\npower = {{ device = \"slow\", outlet = \"2\" }}\n\
             canary = {{ image = \"good.elf\" }}\n",
            socket.display()
        ),
    );
    let pdu = workshop.write("pdu", PDU);
    fs::set_permissions(pdu, fs::Permissions::from_mode(0o755)).unwrap();
    // No process serves the board yet, so nothing proves that it works.
    let recover = || workshop.run(["recover", "-b", "left", "--from", "hub-cycle"]);

    // The other place is in use, by a command that waits for its device, which hangs.
    let mut busy = Started::of(&mut workshop.jig(["power", "-b", "right", "on"]));
    until("a busy place", || workshop.path("busy").exists().then_some(()));
    let who = "hub-cycle did not help";
    let why = "hub shelf: place right is in use by jig";
    let pid = busy.child().id().to_string();
    let refused = recover();
    refused.says(75, &[who, why, &pid, "power -b right on", "out of service"]);
    assert!(!workshop.path("sets").exists(), "the hub was not touched");
    busy.child().kill().unwrap();
    busy.finish();
    // The lists tell of that, and of what else they know of places.
    let boards = workshop.run(["boards", "--json"]).json().unwrap();
    let place = |name: &str| {
        let places = boards["places"].as_array().unwrap();
        places.iter().find(|place| place["name"] == name).unwrap().clone()
    };
    assert_eq!(
        (&place("left")["health"], &place("left")["canary"]),
        (&"quarantined".into(), &json!(null))
    );
    assert_eq!(place("right")["health"], "healthy");
    assert!(place("right")["canary"].as_str().unwrap().ends_with("work/good.elf"), "{boards}");
    let boards = workshop.run(["boards"]);
    boards.says(0, &[]);
    for words in ["places/desk.probe, quarantined", "probe 0d28:0204:2, canary"] {
        assert!(boards.out().contains(words), "{words}: {boards}");
    }
    let doctor = workshop.run(["doctor"]).out();
    for words in ["health left: quarantined", "jig recover -b left", "canary right: ", "./pdu"] {
        assert!(doctor.contains(words), "{words}: {doctor}");
    }

    let served = Served::start(&workshop, "desk", &[]);
    // Then it is free; a place that is out of service can be recovered.
    let recovered = recover();
    recovered.says(0, &["hub-cycle helped", "the power of hub shelf was cycled, off for 20ms"]);
    let sets = fs::read_to_string(workshop.path("sets")).unwrap();
    assert_eq!(sets, "7 off\n7 on\n");

    // A capture service that checks the other place does not count as a user of the hub.
    fs::remove_file(workshop.path("busy")).unwrap();
    let service = CaptureService::with(&workshop, |command| {
        command.args(["--check-every", "100ms"]);
    });
    until("a look at the other place", || workshop.path("busy").exists().then_some(()));
    recover().says(0, &["hub-cycle helped"]);
    service.stop().says(0, &[]);
    drop(served);
    workshop.nothing_lives(DEADLINE).unwrap();
}
