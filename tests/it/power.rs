//! Power by programs, web interfaces and pdudaemon; shared outlets; emulated boards.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::manifest::elf;
use crate::power_lab::{Asked, Lab, Simulator, Web, free_address, json_answer, until_listens};
use crate::served::Served;
use crate::workshop::{DEADLINE, Ran, Slot, Started, Workshop, until};

const PROGRAM: &str = "min_interval = \"0ms\"\n[power.command]\nset = [\"./pdu\", \"set\", \"{outlet}\", \
                       \"{state}\"]\nstatus = [\"./pdu\", \"get\", \"{outlet}\"]";

/// A program that keeps each outlet's state in a file, and writes down when it was called.
const PDU: &str = "#!/bin/sh\n\
    date +%s%N >> calls\n\
    case $1 in\n\
    set) echo $3 > outlet-$2; echo $2 $3 >> sets ;;\n\
    get) echo state: $(cat outlet-$2) ;;\n\
    esac\n\
    date +%s%N >> calls\n";

fn program(lab: &Lab, text: &str) {
    let path = lab.workshop.write("pdu", text);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn outlet(lab: &Lab, name: &str) -> String {
    fs::read_to_string(lab.workshop.path(&format!("outlet-{name}"))).unwrap().trim().to_owned()
}

#[test]
fn a_program_switches_and_is_read_back() {
    let lab = Lab::new(PROGRAM, &[("a", "3"), ("b", "4")]);
    program(&lab, PDU);
    lab.switches(&[], "read-back", || outlet(&lab, "3"));
    let ran = lab.power(&["-b", "a", "cycle", "--off-time", "30ms"]);
    ran.says(0, &[]);
    assert_eq!(ran.out(), "a: on (outlet 3 of pdu, read back, off for 30ms)\n");
    assert!(!lab.workshop.path("outlet-4").exists(), "the other outlet was left alone");
    lab.power(&["-b", "b", "status"]).says(75, &["nonsense", "--explain b"]);
}

#[test]
fn a_program_that_lies_fails_or_says_too_much_is_the_labs_fault() {
    let lab = Lab::new(&format!("settle = \"100ms\"\ntimeout = \"60s\"\n{PROGRAM}"), &[("a", "3")]);
    for (text, words) in [
        ("#!/bin/sh\necho on\n", "was switched off, but still says the contrary after 100ms"),
        ("#!/bin/sh\necho 'no such outlet' >&2; exit 3\n", "code 3 and said \"no such outlet\""),
        ("#!/bin/sh\nkill -9 $$\n", "it was ended by SIGKILL"),
        ("#!/bin/sh\nwhile :; do echo oooooooooooooooooon; done\n", "more than 65536 bytes"),
        ("#!/bin/sh\necho on off\n", "nonsense: \"on off\""),
    ] {
        program(&lab, text);
        lab.power(&["-b", "a", "off"]).says(75, &[words]);
    }
    fs::remove_file(lab.workshop.path("pdu")).unwrap();
    lab.power(&["-b", "a", "off"]).says(75, &["start ./pdu: there is no such file"]);

    let lab = Lab::new(&format!("timeout = \"100ms\"\n{PROGRAM}"), &[("a", "3")]);
    program(&lab, "#!/bin/sh\nsleep 600\n");
    lab.power(&["-b", "a", "off"]).says(75, &["./pdu) did not answer within 100ms"]);
    // The program that hangs is the one that is named.
    let asks = PROGRAM.replace("[\"./pdu\", \"get\"", "[\"./ask\", \"get\"");
    let lab = Lab::new(&format!("timeout = \"100ms\"\n{asks}"), &[("a", "3")]);
    program(&lab, "#!/bin/sh\n");
    let ask = lab.workshop.write("ask", "#!/bin/sh\nsleep 600\n");
    fs::set_permissions(ask, fs::Permissions::from_mode(0o755)).unwrap();
    lab.power(&["-b", "a", "status"]).says(75, &["the program ./ask) did not answer"]);
    lab.power(&["-b", "a", "off"]).says(75, &["the program ./ask) did not answer"]);
    lab.workshop.nothing_lives(crate::workshop::DEADLINE).unwrap();
}

#[test]
fn commands_to_one_device_come_one_by_one_with_its_gap() {
    let device = PROGRAM.replace("0ms", "150ms");
    let lab = Lab::new(&device, &[("a", "1"), ("b", "2"), ("c", "3")]);
    program(&lab, PDU);
    let ran: Vec<Ran> = thread::scope(|scope| {
        let lab = &lab;
        let go = |place| scope.spawn(move || lab.power(&["-b", place, "on"]));
        let threads = ["a", "b", "c"].map(go);
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for ran in &ran {
        ran.says(0, &[]);
    }
    // Begin and end of each command in turn, by the program's own clock.
    let calls = fs::read_to_string(lab.workshop.path("calls")).unwrap();
    let calls: Vec<u64> = calls.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(calls.len(), 12, "set and read-back of three outlets");
    for pair in calls[1..calls.len() - 1].chunks(2) {
        let gap = pair[1].checked_sub(pair[0]).expect("commands overlap");
        // The time of a file is kept in ticks of the kernel, at most 10 ms.
        assert!(gap >= 139_000_000, "only {gap} ns between two commands: {calls:?}");
    }
}

#[test]
fn places_on_one_outlet_are_not_switched_under_each_other() {
    let lab = Lab::new(PROGRAM, &[("a", "3"), ("b", "3"), ("c", "3"), ("d", "4")]);
    program(&lab, PDU);
    let free = lab.power(&["-b", "a", "off", "--json"]);
    free.says(0, &[]);
    assert_eq!(free.json().unwrap()["shared_with"], serde_json::json!(["b", "c"]));
    assert_eq!(outlet(&lab, "3"), "off");

    // Place `d` is in use, by a command that waits for its device, which hangs.
    let slow = "#!/bin/sh\n[ \"$2\" = 4 ] && { touch busy; sleep 600; }\necho $3 > outlet-$2\n";
    let one_way = PROGRAM.replace("status = ", "#");
    lab.declare(&one_way, &[("d", "4")]);
    program(&lab, slow);
    let mut jig = lab.workshop.jig(["power", "-b", "d", "on"]);
    let mut busy = crate::workshop::Started::of(&mut jig);
    until("a busy place", || lab.workshop.path("busy").exists().then_some(()));
    // Meanwhile the rig file puts another place on its outlet.
    lab.declare(&one_way, &[("a", "3"), ("b", "3"), ("c", "3"), ("d", "4"), ("e", "4")]);
    let refused = lab.power(&["-b", "e", "off"]);
    refused.says(75, &["d would be disturbed", "power -b d on", "--force", "e, d"]);
    lab.power(&["-b", "d", "off"]).says(75, &["place d is in use by", "power -b d on"]);
    let explained = lab.power(&["--explain", "e"]);
    explained.says(0, &[]);
    assert!(explained.out().contains("d: in use by jig "), "{explained}");
    busy.child().kill().unwrap();
    busy.finish();
    // With --force it goes ahead although the other place is held.
    program(&lab, PDU);
    let holder = lab.workshop.path("../home/STATE/jig/places/b.lock");
    assert!(holder.is_file(), "{holder:?}");
    let file = fs::OpenOptions::new().read(true).write(true).open(holder).unwrap();
    file.lock().unwrap();
    lab.power(&["-b", "a", "on"]).says(75, &["b would be disturbed", "another process"]);
    assert_eq!(outlet(&lab, "3"), "off");
    lab.power(&["-b", "a", "on", "--force"]).says(0, &["disturbing place b"]);
    assert_eq!(outlet(&lab, "3"), "on");
}

#[test]
fn what_would_be_switched_is_explained() {
    let lab = Lab::new(PROGRAM, &[("a", "3"), ("b", "3"), ("c", "4")]);
    for args in [&["--explain", "a"][..], &["-b", "a", "--explain"]] {
        let ran = lab.power(args);
        ran.says(0, &[]);
        for words in ["outlet 3 of pdu, a command device of rig.toml", "b: free now", "20ms"] {
            assert!(ran.out().contains(words), "{words}: {ran}");
        }
    }
    let json = lab.power(&["--explain", "a", "--json"]).json().unwrap();
    assert_eq!((&json["driver"], &json["off_ms"]), (&"command".into(), &20.into()));
    assert_eq!(json["shared_with"][0]["place"], "b");
    lab.power(&["status"]).says(2, &["--board"]);
    lab.power(&["-b", "a"]).says(2, &[]);
    lab.power(&["-b", "a", "of"]).says(2, &["off"]);
    lab.power(&["-b", "x", "on"]).says(2, &["there is no place \"x\""]);
}

#[test]
fn a_board_without_power_is_not_called_a_broken_probe() {
    let lab = Lab::new(PROGRAM, &[("a", "3")]);
    program(&lab, PDU);
    lab.power(&["-b", "a", "off"]).says(0, &[]);
    let image = elf("microbit", "unity-pass");
    let regs = || lab.workshop.run(["regs", "-b", "a"]);
    for ran in [regs(), lab.workshop.run(["flash", "-b", "a", &image])] {
        ran.says(75, &["a has no power: outlet 3 of pdu is off", "jig power -b a on"]);
    }
    lab.power(&["-b", "a", "on"]).says(0, &[]);
    let before = fs::read_to_string(lab.workshop.path("calls")).unwrap();
    let ran = regs();
    ran.says(75, &["jig probes"]);
    assert!(!ran.err().contains("power"), "{ran}");
    let after = fs::read_to_string(lab.workshop.path("calls")).unwrap();
    assert_eq!(after.lines().count(), before.lines().count() + 2, "asked once, behind the failure");
}

#[test]
fn slips_in_the_rig_file_are_shown_with_carets() {
    let lab = Lab::new("[power.usb_hub]\nhub = \"1-1\"", &[("a", "x")]);
    lab.power(&["-b", "a", "on"])
        .says(3, &["this is no outlet of pdu", "rig.toml:", "from 1 to 31"]);
    let secret = "[power.http]\nurl = \"http://h\"\npreset = \"tasmota\"\npassword = \"hunter2\"";
    lab.declare(secret, &[("a", "1")]);
    let ran = lab.power(&["-b", "a", "on"]);
    ran.says(3, &["does not belong into a file", "{ env = \"PDU_PASSWORD\" }"]);
    assert!(!ran.err().contains("hunter2"), "{ran}");
    lab.workshop.write(
        "rig.toml",
        "version = 1\n[[place]]\nname = \"a\"\nboard = \"microbit\"\nprobe = { selector = \"1:2\" }\n",
    );
    lab.power(&["-b", "a", "on"]).says(3, &["nothing says what switches the power of a"]);
}

#[test]
fn an_emulated_board_has_the_power_of_its_emulator() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let power = |action: &str| workshop.run(["power", "-b", "microbit", action]);
    power("status").says(0, &[]);
    assert!(power("status").out().starts_with("microbit: off"), "{}", power("status"));
    power("off").says(0, &[]);
    power("cycle").says(0, &[]);
    power("on").says(2, &["jig hold -b microbit"]);
    assert!(workshop.run(["power", "--explain", "microbit"]).out().contains("emulated"));
    let served = Served::start(&workshop, "microbit", &[]);
    let status = workshop.run(["power", "-b", "microbit", "status", "--json"]);
    status.says(0, &[]);
    assert_eq!(status.json().unwrap()["state"], "on");
    power("on").says(0, &[]);
    power("off").says(75, &["runs its emulator"]);
    drop(served);
}

/// A plug with the Tasmota firmware: answers as version 12 does, one relay.
fn tasmota(password: Option<&'static str>) -> Web {
    let mut on = true;
    Web::start(move |asked: &Asked| {
        let Some(query) = asked.line.strip_prefix("GET /cm?") else {
            return json_answer("404 Not Found", "");
        };
        let query: Vec<&str> = query.split('&').collect();
        if let Some(password) = password
            && !(query.contains(&"user=admin")
                && query.contains(&format!("password={password}").as_str()))
        {
            let body = r#"{"WARNING":"Need user=<username>&password=<password>"}"#;
            return json_answer("200 OK", body);
        }
        match query.last().unwrap().to_ascii_lowercase().as_str() {
            "cmnd=power1%20on" => on = true,
            "cmnd=power1%20off" => on = false,
            "cmnd=power1" => {}
            _ => return json_answer("200 OK", r#"{"Command":"Unknown"}"#),
        }
        json_answer("200 OK", if on { r#"{"POWER":"ON"}"# } else { r#"{"POWER":"OFF"}"# })
    })
}

fn plug(web: &Web, more: &str) -> String {
    format!(
        "min_interval = \"1ms\"\nsettle = \"100ms\"\n[power.http]\nurl = \"{}\"\n{more}",
        web.url()
    )
}

#[test]
fn a_tasmota_plug_switches() {
    let web = tasmota(None);
    let lab = Lab::new(&plug(&web, "preset = \"tasmota\""), &[("a", "1"), ("b", "9")]);
    let said = || web.asked().iter().rev().find(|line| line.contains("%20")).unwrap().clone();
    lab.switches(&[], "read-back", || said().rsplit("%20").next().unwrap().to_ascii_lowercase());
    lab.power(&["-b", "b", "on"]).says(75, &["refused", "Unknown"]);
}

#[test]
fn a_plugs_password_comes_from_outside_and_is_never_shown() {
    let web = tasmota(Some("hunter2%26"));
    let device = plug(&web, "preset = \"tasmota\"\npassword = { env = \"PLUG\" }");
    let lab = Lab::new(&device, &[("a", "1")]);
    let good = lab.power_with(&["-b", "a", "off", "-vvv"], &[("PLUG", "hunter2&")]);
    good.says(0, &[]);
    let bad = lab.power_with(&["-b", "a", "off", "-vvv"], &[("PLUG", "hunter3")]);
    bad.says(75, &["refused", "WARNING"]);
    lab.power(&["-b", "a", "off"]).says(75, &["the variable PLUG is not set"]);
    let explained = lab.power_with(&["--explain", "a", "--json"], &[("PLUG", "hunter2&")]);
    for ran in [&good, &bad, &explained] {
        assert!(!format!("{ran}").contains("hunter"), "{ran}");
    }
    let path = lab.workshop.write("secret", "hunter2&\n");
    let device = plug(
        &web,
        &format!("preset = \"tasmota\"\npassword = {{ file = \"{}\" }}", path.display()),
    );
    lab.declare(&device, &[("a", "1")]);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    lab.power(&["-b", "a", "off"]).says(75, &["may be read by others", "chmod 600"]);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    lab.power(&["-b", "a", "off"]).says(0, &[]);
}

/// A Shelly of the second generation with a password: digest, SHA-256.
fn shelly() -> Web {
    let mut on = true;
    Web::start(move |asked: &Asked| {
        let proof =
            asked.text.lines().find(|line| line.to_ascii_lowercase().starts_with("authorization:"));
        if !proof.is_some_and(|line| {
            line.contains("username=\"admin\"") && line.contains("nonce=\"60dc2c69\"")
        }) {
            return b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Digest qop=\"auth\", \
                     realm=\"shellyplus1-x\", nonce=\"60dc2c69\", algorithm=SHA-256\r\n\
                     Content-Length: 0\r\n\r\n"
                .to_vec();
        }
        match asked.line.as_str() {
            "GET /rpc/Switch.Set?id=0&on=true" => on = true,
            "GET /rpc/Switch.Set?id=0&on=false" => on = false,
            "GET /rpc/Switch.GetStatus?id=0" => {
                let body = format!(r#"{{"id":0, "source":"HTTP", "output":{on}, "apower":0.0}}"#);
                return json_answer("200 OK", &body);
            }
            _ => {
                return json_answer(
                    "404 Not Found",
                    r#"{"code":-105,"message":"Argument 'id', value 9 not found!"}"#,
                );
            }
        }
        json_answer("200 OK", r#"{"was_on":true}"#)
    })
}

#[test]
fn a_shelly_switches_and_asks_who_one_is() {
    let web = shelly();
    let device = plug(&web, "preset = \"shelly\"\npassword = { env = \"PLUG\" }");
    let lab = Lab::new(&device, &[("a", "0"), ("b", "9")]);
    let said = || {
        let asked = web.asked();
        let last = asked.iter().rev().find(|line| line.contains("Switch.Set")).unwrap();
        if last.ends_with("true") { "on".to_owned() } else { "off".to_owned() }
    };
    lab.switches(&[("PLUG", "x")], "read-back", said);
    lab.power_with(&["-b", "b", "on"], &[("PLUG", "x")]).says(75, &["404 Not Found", "not found!"]);
    lab.declare(&plug(&web, "preset = \"shelly\""), &[("a", "0")]);
    lab.power(&["-b", "a", "on"]).says(75, &["it wants a user and a password"]);
}

#[test]
fn a_web_interface_that_answers_nonsense_is_survived() {
    let endless = |_: &Asked| {
        let mut answer = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
        answer.resize(300 << 10, b'x');
        answer
    };
    let head = |_: &Asked| {
        let mut answer = b"HTTP/1.1 200 OK\r\nX: ".to_vec();
        answer.resize(100 << 10, b'x');
        answer
    };
    type Answer = Box<dyn FnMut(&Asked) -> Vec<u8> + Send>;
    let cases: [(Answer, &str); 7] = [
        (Box::new(|_| b"\x00\xff\x1b[31mgarbage\r\n\r\n".to_vec()), "nonsense"),
        (Box::new(|_| json_answer("200 OK", "\u{1b}]0;x\u{7}{\"POWER\":\"MAYBE\"}")), "MAYBE"),
        (Box::new(endless), "more than 262144 bytes"),
        (Box::new(head), "nonsense"),
        (Box::new(|_| Vec::new()), "reach"),
        (Box::new(|_| json_answer("302 Found", "")), "sends one elsewhere"),
        (Box::new(|_| json_answer("200 OK", "{\"POWER\":\"OFF\"}")), "but still says the contrary"),
    ];
    for (answer, words) in cases {
        let web = Web::start(answer);
        let lab = Lab::new(&plug(&web, "preset = \"tasmota\""), &[("a", "1")]);
        let ran = lab.power(&["-b", "a", "on"]);
        ran.says(75, &[words]);
        assert!(!ran.stderr.contains(&0x1b), "{ran}");
    }
}

#[test]
fn a_device_that_is_not_there_or_hangs_is_given_up_in_time() {
    let nobody = free_address();
    let device = format!("[power.http]\nurl = \"http://{nobody}\"\npreset = \"tasmota\"");
    let lab = Lab::new(&device, &[("a", "1")]);
    lab.power(&["-b", "a", "on"]).says(75, &["reach http://127.", "Connection refused"]);
    // Accepts, and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let device =
        format!("timeout = \"200ms\"\n[power.http]\nurl = \"{url}\"\npreset = \"tasmota\"");
    lab.declare(&device, &[("a", "1")]);
    let began = Instant::now();
    lab.power(&["-b", "a", "on"]).says(75, &["did not answer within 200ms"]);
    assert!(began.elapsed() >= Duration::from_millis(200));
}

#[test]
fn pdudaemon_switches() {
    let lab = Lab::new("[power.pdudaemon]\nurl = \"http://x\"\nhostname = \"y\"", &[]);
    let folder = lab.workshop.path("");
    let address = free_address();
    let config = serde_json::json!({
        "daemon": {
            "hostname": address.ip().to_string(), "port": address.port(), "listener": "http",
            "logging_level": "DEBUG",
        },
        "pdus": { "bench": {
            "driver": "localcmdline", "retries": 1,
            "cmd_on": "echo on > outlet-%s", "cmd_off": "echo off > outlet-%s",
        } },
    });
    lab.workshop.write("pdudaemon.conf", config.to_string());
    let args = ["--conf", "pdudaemon.conf"];
    let _daemon = Simulator::start("/usr/sbin/pdudaemon", &args, &folder);
    until_listens(address);
    let device = |host: &str| {
        format!("[power.pdudaemon]\nurl = \"http://{address}\"\nhostname = \"{host}\"")
    };
    lab.declare(&device("bench"), &[("a", "3")]);
    lab.switches(&[], "accepted", || outlet(&lab, "3"));
    let ran = lab.power(&["-b", "a", "status"]);
    assert_eq!(ran.out(), "a: unknown (outlet 3 of pdu, it cannot be asked)\n");
    lab.declare(&device("other"), &[("a", "3")]);
    lab.power(&["-b", "a", "on"]).says(75, &["it knows no device \"other\""]);
}

/// The board is an emulated one that another process serves, so the outlet switches nothing
/// that the run could see; but it is told what a real one would be told, and when.
#[test]
fn a_run_on_a_real_board_switches_its_outlet() {
    let slot = Slot::take();
    let lab = Lab::new(PROGRAM, &[]);
    program(&lab, PDU);
    let served = Served::start(&lab.workshop, "microbit", &[]);
    // The board is that of one place at a time, as a probe belongs to one.
    let at = |place: &str, outlet: &str| {
        let rig = format!(
            "version = 1\n[[power]]\nname = \"pdu\"\noff_time = \"10ms\"\nsettle = \"300ms\"\n\
             {PROGRAM}\n[[place]]\nname = \"{place}\"\nboard = \"microbit\"\n\
             probe = {{ selector = \"{}\" }}\npower = {{ device = \"pdu\", {outlet} }}\n",
            served.selector
        );
        lab.workshop.write("rig.toml", rig);
    };
    at("a", "outlet = \"3\"");
    let image = crate::manifest::elf("microbit", "rtt-report");
    let ran = lab.workshop.run(["run", "-b", "a", &image, "--timeout", "60s"]);
    ran.says(0, &[]);
    assert_eq!(outlet(&lab, "3"), "off", "a run ends with the power off: {ran}");
    let sets = fs::read_to_string(lab.workshop.path("sets")).unwrap();
    // Power to flash the board, a power cycle to boot it, and the power cut at the end.
    assert!(sets.contains("3 on\n3 off\n3 on\n3 off\n") && sets.ends_with("3 off\n"), "{sets}");
    assert!(!lab.workshop.path("outlet-4").exists());
    // The board knows better than the outlet whether it has power.
    at("c", "outlet = \"3\", sense = \"debug-port\"");
    let sense = "outlet 3 of pdu says that it is off, but the debug port sees the contrary";
    lab.power(&["-b", "c", "verify"]).says(75, &[sense]);
    lab.power(&["-b", "c", "on"]).says(0, &[]);
    let verified = lab.power(&["-b", "c", "verify"]);
    assert_eq!(verified.out(), "c: on (outlet 3 of pdu, sensed by the debug port)\n");
    // A device that fails once is caught by its read-back, and the rig recovered.
    at("a", "outlet = \"3\"");
    for (fault, cause) in [
        ("power-mismatch", "power_mismatch"),
        ("power-silent=100ms", "power_unreachable"),
        ("power-babbles", "power_failed"),
    ] {
        let ran = lab.workshop.run(["run", "-b", "a", &image, "--inject", fault]);
        ran.says(0, &[fault, &format!("after {cause}")]);
        // A place that is not known to be well is looked at before the test, where the next
        // fault would strike.
        lab.workshop.run(["recover", "-b", "a"]).says(0, &[]);
    }
    // A device that refuses is the rig's failure, and the firmware's never.
    program(&lab, "#!/bin/sh\n[ $1 = get ] && echo off\nexit 0\n");
    at("b", "outlet = \"4\"");
    let lied = lab.workshop.run(["run", "-b", "b", &image, "--max-recoveries", "0"]);
    lied.says(75, &["outlet 4 of pdu was switched on, but still says the contrary"]);
    assert!(lied.err().contains("power_mismatch"), "{lied}");
    drop(served);
    drop(slot);
}

/// A plug that speaks HTTPS, with a certificate of its own driver.
const TLS_PLUG: &str = r#"
import http.server, ssl, sys
class Plug(http.server.BaseHTTPRequestHandler):
    on = True
    def do_GET(self):
        if self.path.endswith("turn=on") or self.path.endswith("turn=off"):
            Plug.on = self.path.endswith("on")
        good = self.headers.get("Authorization") == "Basic YWRtaW46aHVudGVyMg=="
        body = b'{"ison":%s}' % (b"true" if Plug.on else b"false")
        self.send_response(200 if good else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("cert.pem", "key.pem")
server = http.server.HTTPServer((sys.argv[1], int(sys.argv[2])), Plug)
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"#;

#[test]
fn an_encrypted_plug_is_believed_as_the_rig_file_says() {
    let lab = Lab::new("[power.manual]", &[]);
    let (folder, address) = (lab.workshop.path(""), free_address());
    let mut openssl = std::process::Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]);
    openssl.args(["-nodes", "-days", "2", "-subj", "/CN=plug", "-keyout", "key.pem"]);
    openssl.args(["-out", "cert.pem", "-addext", &format!("subjectAltName=IP:{}", address.ip())]);
    let made = openssl.current_dir(&folder).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    lab.workshop.write("plug.py", TLS_PLUG);
    let args = ["plug.py", &address.ip().to_string(), &address.port().to_string()];
    let _plug = Simulator::start("/usr/bin/python3", &args, &folder);
    until_listens(address);
    let device = |more: &str| {
        format!(
            "min_interval = \"1ms\"\n[power.http]\nurl = \"https://{address}\"\npreset = \"shelly-gen1\"\n\
             password = {{ env = \"PLUG\" }}\n{more}"
        )
    };
    let own = format!("ca = \"{}\"", lab.workshop.path("cert.pem").display());
    let (secret, a) = ([("PLUG", "hunter2")], [("a", "0")]);
    for more in ["insecure = true", &own] {
        lab.declare(&device(more), &a);
        for (action, state) in [("off", "off"), ("on", "on")] {
            let ran = lab.power_with(&["-b", "a", action, "--json"], &secret);
            ran.says(0, &[]);
            assert_eq!(ran.json().unwrap()["state"], state, "{ran}");
        }
    }
    lab.power_with(&["-b", "a", "on"], &[("PLUG", "x")]).says(75, &["does not believe"]);
    lab.declare(&device(""), &a);
    lab.power_with(&["-b", "a", "on"], &secret).says(75, &["reach https://", "certificate"]);
    // Another certificate, for the same address.
    openssl.args(["-keyout", "other.key", "-out", "other.pem"]);
    assert!(openssl.output().unwrap().status.success());
    lab.declare(&device(&own.replace("cert.pem", "other.pem")), &a);
    lab.power_with(&["-b", "a", "on"], &secret).says(75, &["reach https://", "certificate"]);
    lab.workshop.write("empty.pem", "");
    lab.declare(&device(&own.replace("cert.pem", "empty.pem")), &a);
    lab.power_with(&["-b", "a", "on"], &secret).says(75, &["empty.pem: there is none"]);
}

#[test]
fn a_signal_ends_a_command_and_what_it_started() {
    let lab = Lab::new(PROGRAM, &[("a", "3")]);
    program(&lab, "#!/bin/sh\ntouch busy\nsleep 600\n");
    let mut jig = lab.workshop.jig(["power", "-b", "a", "on"]);
    jig.stdout(Stdio::piped()).stderr(Stdio::piped());
    let started = Started::of(&mut jig);
    until("a busy program", || lab.workshop.path("busy").exists().then_some(()));
    started.signal(Signal::SIGINT);
    let ran = started.finish();
    ran.says(130, &["a may be on or off now", "jig power -b a status"]);
    lab.workshop.nothing_lives(DEADLINE).unwrap();
}

#[test]
fn a_person_is_asked_on_the_terminal() {
    let device = "timeout = \"60s\"\n[power.manual]\nhint = \"under the desk\"";
    let lab = Lab::new(device, &[("a", "plug-3")]);
    for (answer, code, words) in [
        ("\n", 0, "switch plug-3 (under the desk) off - press enter when it is done"),
        ("no\n", 75, "taken as no"),
        ("\x04", 75, "the terminal was closed"),
    ] {
        let pty = nix::pty::openpty(None, None).unwrap();
        let mut terminal = fs::File::from(pty.master);
        terminal.write_all(answer.as_bytes()).unwrap();
        let mut jig = lab.workshop.jig(["power", "-b", "a", "off"]);
        let ran = crate::workshop::ran(jig.stdin(Stdio::from(pty.slave))).unwrap();
        ran.says(code, &[words]);
    }
    let late = Lab::new(&device.replace("60s", "200ms"), &[("a", "plug-3")]);
    let pty = nix::pty::openpty(None, None).unwrap();
    let mut jig = late.workshop.jig(["power", "-b", "a", "off"]);
    let ran = crate::workshop::ran(jig.stdin(Stdio::from(pty.slave))).unwrap();
    ran.says(75, &["the person at the terminal) did not answer within 200ms"]);
}

#[test]
fn a_sense_sees_what_the_device_only_claims() {
    let lab = Lab::new(PROGRAM, &[]);
    program(&lab, PDU);
    let rig = format!(
        "version = 1\n[[power]]\nname = \"pdu\"\n{PROGRAM}\n[[power]]\nname = \"eye\"\n\
         command = {{ set = [\"false\", \"{{state}}\"], status = [\"cat\", \"{{outlet}}\"] }}\n\
         [[place]]\nname = \"a\"\nboard = \"microbit\"\nprobe = {{ selector = \"1:2\" }}\n\
         power = {{ device = \"pdu\", outlet = \"3\", off_time = \"1ms\", \
         sense = {{ device = \"eye\", outlet = \"seen\" }} }}\n"
    );
    lab.workshop.write("rig.toml", rig);
    lab.workshop.write("seen", "off\n");
    let off = lab.power(&["-b", "a", "off"]);
    off.says(0, &[]);
    assert_eq!(off.out(), "a: off (outlet 3 of pdu, sensed by outlet seen of eye)\n");
    // The wires of two outlets were swapped: the device does as told, and the board stays off.
    let words =
        "outlet 3 of pdu was switched on, but outlet seen of eye sees the contrary after 5s";
    lab.power(&["-b", "a", "on"]).says(75, &[words]);
    assert!(lab.power(&["--explain", "a"]).out().contains("sense       outlet seen of eye"));
}

/// A program that feeds a board: it prints as long as it has power.
const FEEDS: &str = "#!/bin/sh\n\
    case $1 in\n\
    set) echo $3 > outlet-$2; [ $3 = on ] && touch fed || rm -f fed ;;\n\
    get) cat outlet-$2 ;;\n\
    esac\n";

/// Stands for the console of that board, behind a server.
fn chatter(lab: &Lab) -> PathBuf {
    let (path, fed) = (lab.workshop.path("console"), lab.workshop.path("fed"));
    let listener = UnixListener::bind(&path).unwrap();
    // Ends with the process: it blocks no other thread and holds nothing of the test's.
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            // A line without power may hum.
            let says = || if fed.exists() { &b"tick tock\r\n"[..] } else { b"\0" };
            while stream.write_all(says()).is_ok() {
                thread::sleep(Duration::from_millis(20));
            }
        }
    });
    path
}

#[test]
fn a_console_that_prints_on_contradicts_an_outlet_that_is_off() {
    let slot = Slot::take();
    let lab = Lab::new(PROGRAM, &[]);
    let (console, served) = (chatter(&lab), Served::start(&lab.workshop, "microbit", &[]));
    let rig = format!(
        "version = 1\n[[power]]\nname = \"pdu\"\n{PROGRAM}\n\
         [[place]]\nname = \"a\"\nboard = \"microbit\"\nprobe = {{ selector = \"{}\" }}\n\
         power = {{ device = \"pdu\", outlet = \"3\", off_time = \"1ms\", sense = \"console\" }}\n\
         [[place.console]]\nname = \"uart0\"\nunix = \"{}\"\n",
        served.selector,
        console.display()
    );
    lab.workshop.write("rig.toml", rig);
    let image = elf("microbit", "rtt-echo");
    let wait = ["--until", "tick tock", "--timeout", "60s", "--max-recoveries", "0"];
    let run = || lab.workshop.run(["run", "-b", "a", &image].iter().chain(&wait));
    program(&lab, FEEDS);
    for (action, state) in [("on", "on"), ("off", "off"), ("verify", "off"), ("cycle", "on")] {
        let ran = lab.power(&["-b", "a", action]);
        let words = format!("a: {state} (outlet 3 of pdu, sensed by console uart0");
        assert!(ran.out().starts_with(&words), "{ran}");
    }
    run().says(0, &[]);
    // It feeds another board; its own read-back says that all is well.
    program(&lab, &FEEDS.replace("rm -f fed", "true"));
    lab.power(&["-b", "a", "on"]).says(0, &[]);
    let words = "outlet 3 of pdu was switched off, but console uart0 sees the contrary after 5s";
    run().says(75, &[words, "power_mismatch"]);
    assert!(lab.power(&["--explain", "a"]).out().contains("console uart0: what prints has power"));
    drop(served);
    drop(slot);
}
