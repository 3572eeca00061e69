//! The health of places as users see it, and what is found on a machine.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use nix::fcntl::OFlag;
use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::manifest::elf;
use crate::served::first_line;
use crate::sshd::Sshd;
use crate::workshop::{DEADLINE, Ran, Slot, Started, Workshop, ran};

/// Returns what is said of one place.
#[track_caller]
fn place(ran: &Ran, name: &str) -> Value {
    let all = ran.json().unwrap_or_else(|why| panic!("{why}"));
    let places = all["places"].as_array().unwrap();
    let found = places.iter().find(|place| place["place"] == name);
    found.unwrap_or_else(|| panic!("{name} is not in {ran}")).clone()
}

/// Returns what a check of a place has seen.
#[track_caller]
fn check(place: &Value, name: &str) -> (bool, String) {
    let checks = place["checks"].as_array().unwrap();
    let found = checks.iter().find(|check| check["check"] == name);
    let found = found.unwrap_or_else(|| panic!("{name} is not in {place}"));
    (found["ok"].as_bool().unwrap(), found["detail"].as_str().unwrap().to_owned())
}

#[test]
fn a_place_that_fails_twice_is_unhealthy_until_it_passes_twice() {
    let (_slot, workshop) = (Slot::take(), Workshop::new());
    let look = ["health", "-b", "microbit", "--check", "--json"];
    // An emulator that cannot be started: its program is a file of another kind.
    let bin = workshop.path("bin");
    fs::create_dir(&bin).unwrap();
    let broken = bin.join("qemu-system-arm");
    fs::write(&broken, "#!/nonexistent/interpreter\n").unwrap();
    fs::set_permissions(&broken, fs::Permissions::from_mode(0o755)).unwrap();
    let broken = || ran(workshop.jig(look).env("PATH", &bin)).unwrap();
    for (state, failures) in [("suspect", 1), ("unhealthy", 2)] {
        let ran = broken();
        ran.says(75, &[]);
        let place = place(&ran, "microbit");
        assert_eq!((&place["state"], &place["failures"]), (&state.into(), &failures.into()));
        let (ok, detail) = check(&place, "emulator-answers");
        assert!(!ok && detail.contains("qemu-system-arm"), "{detail}");
        assert!(check(&place, "free-disk").0, "{place}");
    }
    let told = workshop.run(["health"]);
    told.says(75, &[]);
    let line = told.out().lines().find(|line| line.starts_with("microbit ")).unwrap().to_owned();
    for words in ["unhealthy", "emulator-answers: ", "2 passes in a row: jig recover -b microbit"] {
        assert!(line.contains(words), "{words:?} is not in {line}");
    }
    for (state, code, needed) in [("unhealthy", 75, 1), ("healthy", 0, 0)] {
        let ran = workshop.run(look);
        ran.says(code, &[]);
        let place = place(&ran, "microbit");
        assert_eq!((&place["state"], &place["passes_needed"]), (&state.into(), &needed.into()));
        assert!(check(&place, "emulator-answers").1.starts_with("off; a trial start answered"));
    }
    let past = workshop.run(["health", "-b", "microbit", "--history", "3", "--json"]);
    past.says(0, &[]);
    let place = place(&past, "microbit");
    let states = place["history"].as_array().unwrap().iter().map(|e| e["state"].as_str().unwrap());
    assert_eq!(states.collect::<Vec<_>>(), ["healthy", "unhealthy", "unhealthy"]);
    assert_eq!((&place["figures"]["runs"], &place["checks"]), (&0.into(), &Value::Null));
    workshop.nothing_lives(DEADLINE).unwrap();
}

#[test]
fn a_board_behind_a_probe_is_asked_and_its_transports_and_outlet_are_looked_at() {
    let (_slot, workshop) = (Slot::take(), Workshop::new());
    let mut command = workshop.jig(["probe", "serve", "-b", "microbit"]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = Started::of(&mut command);
    let (selector, mut out) = first_line(&mut server);
    // Ends with the server, which is killed at the latest when this test ends.
    thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
    let port = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC).unwrap();
    grantpt(&port).unwrap();
    unlockpt(&port).unwrap();
    let tty = ptsname_r(&port).unwrap();
    let outlet = workshop.write("outlet", "on\n");
    workshop.write(
        "rig.toml",
        format!(
            "version = 1\n[[power]]\nname = \"pdu\"\n[power.command]\nset = [\"false\", \"{{state}}\"]\n\
             status = [\"cat\", \"{}\"]\n[[place]]\nname = \"bench\"\nboard = \"microbit\"\n\
             power = {{ device = \"pdu\", outlet = \"1\" }}\n[place.probe]\n\
             selector = \"{selector}\"\n[[place.console]]\nname = \"uart0\"\ntty = \"{tty}\"\n",
            outlet.display()
        ),
    );
    let look = || workshop.run(["health", "-b", "bench", "--check", "--json"]);
    let ran = look();
    ran.says(0, &[]);
    let well = place(&ran, "bench");
    assert_eq!(well["state"], "healthy", "{ran}");
    assert_eq!(check(&well, "power-answers"), (true, "on".to_owned()));
    assert!(check(&well, "console-uart0").1.ends_with("is there"), "{ran}");
    assert!(check(&well, "probe-answers").1.starts_with("off; the core says CPUID 0x410"), "{ran}");
    // Another process reads the console; the board has no power, which is no fault.
    let taken = File::options().read(true).write(true).open(&tty).unwrap();
    let mut port_reader = Started::of(Command::new("sleep").arg("600").stdin(taken));
    fs::write(&outlet, "off\n").unwrap();
    let ran = look();
    ran.says(75, &[]);
    let ill = place(&ran, "bench");
    assert_eq!(ill["state"], "suspect", "{ran}");
    let (ok, detail) = check(&ill, "console-uart0");
    let pid = format!("(pid {})", port_reader.child().id());
    assert!(!ok && detail.contains("is in use by") && detail.ends_with(&pid), "{detail}");
    assert_eq!(check(&ill, "probe-answers"), (true, "not asked: its outlet is off".to_owned()));
    port_reader.signal(Signal::SIGKILL);
    port_reader.finish();
    // A port that the board takes with it is missed only while it has power.
    let rig = fs::read_to_string(workshop.path("rig.toml")).unwrap();
    workshop.write("rig.toml", rig.replace(&tty, "/dev/serial/by-id/none"));
    let (ok, detail) = check(&place(&look(), "bench"), "console-uart0");
    assert!(ok && detail.ends_with("by-id/none is not there yet"), "{detail}");
    fs::write(&outlet, "on\n").unwrap();
    assert!(!check(&place(&look(), "bench"), "console-uart0").0);
    workshop.write("rig.toml", rig);
    // The board has gone, and its outlet answers nonsense.
    fs::write(&outlet, "perhaps\n").unwrap();
    server.child().kill().unwrap();
    server.finish();
    let ran = look();
    ran.says(75, &[]);
    let gone = place(&ran, "bench");
    assert_eq!(gone["state"], "unhealthy", "{ran}");
    assert!(!check(&gone, "probe-answers").0 && !check(&gone, "power-answers").0, "{ran}");
    assert!(check(&gone, "console-uart0").0, "{ran}");
    // A place in use is left alone, unless it was asked for.
    let lock = workshop.path("../home/STATE/jig/places/bench.lock");
    let lock = File::options().read(true).write(true).open(lock).unwrap();
    lock.lock().unwrap();
    let ran = workshop.run(["health", "--check", "--json"]);
    let busy = place(&ran, "bench");
    assert!(busy["in_use"].as_str().unwrap().contains("is in use by"), "{ran}");
    assert_eq!((&busy["checks"], &busy["failures"]), (&Value::Null, &gone["failures"]));
}

#[test]
fn a_run_begins_with_a_look_at_its_host() {
    let (_slot, workshop) = (Slot::take(), Workshop::new());
    let profiles = Path::new(env!("CARGO_MANIFEST_DIR")).join("board-profiles");
    let profile = fs::read_to_string(profiles.join("mps2-an385.toml")).unwrap();
    fs::create_dir(workshop.path("board-profiles")).unwrap();
    let wants = format!("{profile}\n[health]\nfree_disk = \"1000000G\"\n");
    workshop.write("board-profiles/mps2-an385.toml", wants);
    let image = elf("mps2-an385", "unity-pass");
    let ran = workshop.run(["--json", "run", "-b", "mps2-an385", &image]);
    ran.says(0, &[]);
    let notes = ran.json().unwrap()["verdict"]["notes"].clone();
    let note = notes[0].as_str().unwrap();
    assert!(note.starts_with("before the test: free-disk: only "), "{ran}");
    let ran = workshop.run(["--json", "health", "-b", "mps2-an385"]);
    let now = place(&ran, "mps2-an385");
    assert_eq!((&now["state"], &now["passes"]), (&"suspect".into(), &1.into()), "{ran}");
    // A place that is not well is asked itself, so the test's own attempt is the second.
    workshop.run(["--json", "run", "-b", "mps2-an385", &image]).says(0, &[]);
    let dir = workshop.run_dirs().pop().unwrap();
    assert!(dir.join("consoles/2/uart0.raw").exists(), "{dir:?}");
    workshop.nothing_lives(DEADLINE).unwrap();
}

#[test]
fn a_board_is_reached_by_ssh() {
    let workshop = Workshop::new();
    // An address of its own on the loopback network: no other process can have the port.
    let [.., high, low] = std::process::id().to_be_bytes();
    let address = format!("127.{high}.{low}.201");
    workshop.write(
        "rig.toml",
        format!(
            "version = 1\n[[place]]\nname = \"bench\"\nboard = \"microbit\"\n\
             probe = {{ selector = \"1209:4a49:1\" }}\n\
             network = {{ ssh = \"{address}:2222\", tcp = \"{address}:2222\" }}\n"
        ),
    );
    let look = || place(&workshop.run(["health", "-b", "bench", "--check", "--json"]), "bench");
    assert!(!check(&look(), "network-ssh").0);
    let _server = Sshd::start_at(&workshop, format!("{address}:2222"));
    let seen = look();
    assert!(check(&seen, "network-tcp").0);
    let (ok, words) = check(&seen, "network-ssh");
    assert!(ok && words.contains(" says SSH-2.0-OpenSSH"), "{words}");
}

#[test]
fn a_damaged_store_is_named_and_stops_no_run() {
    let workshop = Workshop::new();
    let state = workshop.path("../home/STATE/jig");
    fs::create_dir_all(&state).unwrap();
    fs::write(state.join("health.db"), "no database at all\n".repeat(99)).unwrap();
    let ran = workshop.run(["health"]);
    ran.says(75, &["health.db is damaged", "set it aside to begin a new one: mkdir "]);
    // What it says to type helps.
    let said = ran.err().split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, line) = said.split_once("begin a new one: ").unwrap();
    let mut shell = Command::new("sh");
    let helped = crate::workshop::ran(shell.args(["-c", line])).unwrap();
    helped.says(0, &[]);
    workshop.run(["health"]).says(0, &[]);
}

#[test]
fn commands_at_once_and_commands_that_are_killed_leave_the_store_whole() {
    let workshop = Workshop::new();
    fs::create_dir(workshop.path("boards")).unwrap();
    let board = "version = 1\nid = \"b\"\ntitle = \"B\"\narch = \"arm\"\n\
                 console = [{ name = \"u\", kind = \"uart\" }]\n\
                 health = { checks = [\"memory\"], free_memory = 1 }\n\
                 emulation = { program = \"none\", machine = \"none\", \
                 image_args = [\"{image}\"] }\n";
    workshop.write("boards/b.toml", board);
    let look = ["--boards", "boards", "health", "-b", "b", "--check", "--json"];
    let (mut whole, mut killed) = (0, 0);
    for _ in 0..4 {
        let start = |_| {
            let mut command = workshop.jig(look);
            Started::of(command.stdout(Stdio::piped()).stderr(Stdio::piped()))
        };
        // The first of them begin the store, all at once.
        let mut started: Vec<Started> = (0..6).map(start).collect();
        let rest = started.split_off(3);
        for one in started {
            one.finish().says(0, &[]);
            whole += 1;
        }
        // These are wherever they are by now; some have ended.
        for mut one in rest {
            one.child().kill().unwrap();
            match one.finish().code() {
                0 => whole += 1,
                code => {
                    assert_eq!(code, 137);
                    killed += 1;
                }
            }
        }
    }
    let args = ["--boards", "boards", "health", "-b", "b", "--history", "1000", "--json"];
    let ran = workshop.run(args);
    ran.says(0, &[]);
    let noted = place(&ran, "b")["history"].as_array().unwrap().len();
    assert!((whole..=whole + killed).contains(&noted), "{noted} of {whole} and {killed}");
}

/// Makes a folder with files, and links in it.
pub(crate) fn tree(root: &Path, files: &[(&str, &str)], links: &[(&str, &str)]) {
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    for (path, to) in links {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(to, path).unwrap();
    }
}

#[test]
fn what_is_attached_becomes_a_rig_file() {
    let workshop = Workshop::new();
    let root = workshop.path("machine");
    let usb = "sys/devices/usb1";
    tree(
        &root,
        &[
            (&format!("{usb}/1-3/idVendor"), "0403\n"),
            (&format!("{usb}/1-3/idProduct"), "6001\n"),
            (&format!("{usb}/1-3/1-3:1.0/bInterfaceNumber"), "00\n"),
            (&format!("{usb}/1-3/1-3:1.0/ttyUSB0/dev"), "188:0\n"),
            (&format!("{usb}/bDeviceClass"), "09\n"),
            ("sys/bus/usb/devices/1-0:1.0/usb1-port3/disable", "0\n"),
        ],
        &[
            ("sys/class/tty/ttyUSB0/device", "../../../devices/usb1/1-3/1-3:1.0/ttyUSB0"),
            ("sys/bus/usb/devices/usb1", "../../../devices/usb1"),
            ("sys/bus/usb/devices/1-0:1.0/usb1-port3/device", "../../1-3"),
            ("dev/serial/by-id/usb-FTDI-port0", "../../ttyUSB0"),
        ],
    );
    let (sys, dev) = (root.join("sys"), root.join("dev"));
    let roots = ["--sysfs", sys.to_str().unwrap(), "--dev", dev.to_str().unwrap()];
    let discover = |more: &[&str]| workshop.run([&["discover"][..], &roots, more].concat());
    let json = discover(&["--json"]);
    json.says(0, &[]);
    let json = json.json().unwrap();
    assert_eq!(json["ttys"][0]["usb"]["vendor"], "0403");
    assert!(json["ttys"][0]["by_id"].as_str().unwrap().ends_with("by-id/usb-FTDI-port0"));
    assert_eq!(json["hubs"][0]["ports"][0]["device"], "1-3");
    let text = discover(&[]);
    text.says(0, &[]);
    assert_eq!(text.out(), json["rig"].as_str().unwrap());
    discover(&["-o", "lab.toml"]).says(0, &["wrote lab.toml"]);
    assert_eq!(fs::read_to_string(workshop.path("lab.toml")).unwrap(), text.out());
    workshop.run(["--rig", "lab.toml", "boards"]).says(0, &[]);
    discover(&["-o", "lab.toml"]).says(2, &["lab.toml is there already"]);
}
