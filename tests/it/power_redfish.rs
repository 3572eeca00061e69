//! Power by Redfish: against an emulator of the field, and a server in the test that is stricter.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddrV4, TcpStream};

use crate::manifest::in_target;
use crate::power_lab::{Asked, Lab, Simulator, Web, free_address, json_answer, until_listens};
use crate::workshop::DEADLINE;

/// A Redfish service of one system, in the words of the standard's mock-ups (DSP2043): it takes
/// an action at once and carries it out after some more questions.
fn redfish() -> Web {
    let (mut state, mut pending) = ("On", None::<(&str, u32)>);
    Web::start(move |asked: &Asked| {
        // jig:hunter2
        if !asked.text.to_ascii_lowercase().contains("authorization: basic amlnomh1bnrlcji=") {
            return json_answer("401 Unauthorized", "{}");
        }
        let target = "/redfish/v1/Systems/437XR1138R2/Actions/ComputerSystem.Reset";
        match asked.line.as_str() {
            "GET /redfish/v1/Systems/437XR1138R2" => {
                pending = match pending {
                    Some((next, 0)) => {
                        state = next;
                        None
                    }
                    other => other.map(|(next, asks)| (next, asks - 1)),
                };
                let shown = match pending {
                    Some(("On", _)) => "PoweringOn",
                    Some(_) => "PoweringOff",
                    None => state,
                };
                let body = format!(
                    r##"{{"@odata.id":"/redfish/v1/Systems/437XR1138R2","PowerState":"{shown}",
                    "Actions":{{"#ComputerSystem.Reset":{{"target":"{target}",
                    "ResetType@Redfish.AllowableValues":["On","ForceOff","GracefulShutdown"]}}}}}}"##
                );
                json_answer("200 OK", &body)
            }
            line if line == format!("POST {target}") => {
                let next = match asked.text.rsplit("\r\n\r\n").next().unwrap() {
                    r#"{"ResetType":"On"}"# => "On",
                    r#"{"ResetType":"ForceOff"}"# => "Off",
                    _ => return json_answer("400 Bad Request", r#"{"error":{}}"#),
                };
                if next == state {
                    return json_answer("409 Conflict", r#"{"error":{}}"#);
                }
                pending = Some((next, 3));
                json_answer("202 Accepted", "")
            }
            _ => json_answer(
                "404 Not Found",
                r#"{"error":{"code":"Base.1.8.ResourceMissingAtURI"}}"#,
            ),
        }
    })
}

#[test]
fn a_redfish_system_switches_when_it_has_switched() {
    let web = redfish();
    let device = format!(
        "[power.redfish]\nurl = \"{}\"\nuser = \"jig\"\npassword = {{ env = \"BMC\" }}",
        web.url()
    );
    let lab = Lab::new(&device, &[("a", "437XR1138R2"), ("b", "2")]);
    let secret = [("BMC", "hunter2")];
    let last = || {
        let asked = web.asked();
        let posts = asked.iter().filter(|line| line.starts_with("POST")).count();
        // It is on at first, and each command is another one.
        if posts % 2 == 0 { "on".to_owned() } else { "off".to_owned() }
    };
    lab.switches(&secret, "read-back", last);
    // It is on already: nothing is posted, which it would refuse.
    lab.power_with(&["-b", "a", "on"], &secret).says(0, &[]);
    lab.power_with(&["-b", "b", "on"], &secret).says(75, &["404 Not Found", "ResourceMissing"]);
    let wrong = lab.power_with(&["-b", "a", "off"], &[("BMC", "x")]);
    wrong.says(75, &["does not believe the user and the password"]);
    lab.declare(&format!("settle = \"0ms\"\n{device}"), &[("a", "437XR1138R2")]);
    lab.power_with(&["-b", "a", "off"], &secret).says(75, &["still says the contrary after 0ns"]);
}

/// The system that the emulator has if no other is named.
const SYSTEM: &str = "27946b59-9e44-4fa7-8e91-f3527a1ef094";

/// Starts the emulator. It carries each action out one to eleven seconds later, at random; here
/// it draws the second least, so that a test is not slow by chance and each change is late.
const EMULATOR: &str = r#"
import bcrypt, random, sys
hashed = bcrypt.hashpw(b"hunter2", bcrypt.gensalt(4)).decode()
open("users", "w").write("jig:" + hashed + "\n")
random.randint = lambda least, most: least + 1
sys.argv = ["sushy-emulator", "--config", "emulator.conf", "--fake"]
from sushy_tools.emulator.main import main
sys.exit(main())
"#;

/// Asks the emulator without Jig.
fn state_of(address: SocketAddrV4) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    // jig:hunter2
    let ask = format!(
        "GET /redfish/v1/Systems/{SYSTEM} HTTP/1.0\r\nAuthorization: Basic amlnOmh1bnRlcjI=\r\n\r\n"
    );
    stream.write_all(ask.as_bytes()).unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    let state = said.split("\"PowerState\": \"").nth(1).and_then(|rest| rest.split('"').next());
    state.unwrap_or_else(|| panic!("{said}")).to_ascii_lowercase()
}

#[test]
fn a_redfish_emulator_of_the_field_switches_late() {
    let python = in_target("simulators").join("bin/python");
    if !python.with_file_name("sushy-emulator").exists() {
        eprintln!("no Redfish emulator (cargo xtask setup): nothing was tested against it");
        return;
    }
    let lab = Lab::new("[power.manual]", &[]);
    let (folder, address) = (lab.workshop.path(""), free_address());
    lab.workshop.write("emulator.py", EMULATOR);
    lab.workshop.write(
        "emulator.conf",
        format!(
            "SUSHY_EMULATOR_LISTEN_IP = '{}'\nSUSHY_EMULATOR_LISTEN_PORT = {}\n\
             SUSHY_EMULATOR_AUTH_FILE = 'users'\nSUSHY_EMULATOR_STATE_DIR = '{}'\n",
            address.ip(),
            address.port(),
            folder.display()
        ),
    );
    let _emulator = Simulator::start(&python.display().to_string(), &["emulator.py"], &folder);
    until_listens(address);
    let device = format!(
        "timeout = \"60s\"\n[power.redfish]\nurl = \"http://{address}\"\nuser = \"jig\"\n\
         password = {{ env = \"BMC\" }}"
    );
    lab.declare(&device, &[("a", SYSTEM), ("b", "none")]);
    let secret = [("BMC", "hunter2")];
    lab.power_with(&["-b", "a", "on"], &secret).says(0, &[]);
    lab.switches(&secret, "read-back", || state_of(address));
    lab.power_with(&["-b", "b", "on"], &secret).says(75, &["404 Not Found"]);
    lab.power_with(&["-b", "a", "on"], &[("BMC", "x")]).says(75, &["does not believe"]);
    // One that is not given its time has not done as it was told.
    lab.declare(&format!("settle = \"0ms\"\n{device}"), &[("a", SYSTEM)]);
    lab.power_with(&["-b", "a", "off"], &secret).says(75, &["still says the contrary"]);
}
