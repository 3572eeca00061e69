//! Consoles that are serial ports: late, lost for a while, taken by another process, remote.

use std::fs::{self, File};
use std::io::{self, BufReader, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Stdio};
use std::thread;

use nix::fcntl::OFlag;
use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt};
use nix::sys::termios::{SetArg, cfmakeraw, tcgetattr, tcsetattr};

use crate::manifest::elf;
use crate::served::first_line;
use crate::workshop::{Slot, Started, Workshop, tied, until};

/// A board that another process serves, and a rig that has it with a transport of some kind.
pub(crate) struct Bench {
    pub(crate) workshop: Workshop,
    _server: Started,
    _slot: Slot,
}

impl Bench {
    pub(crate) fn new(transport: impl FnOnce(&Workshop) -> String) -> Self {
        Self::of(|workshop| {
            let unheard = |mut board| drop(io::copy(&mut board, &mut io::sink()));
            (transport(workshop), unheard)
        })
    }

    /// Takes a transport, and the reader of the board's serial output, which runs until that ends.
    pub(crate) fn of<O>(transport: impl FnOnce(&Workshop) -> (String, O)) -> Self
    where
        O: FnOnce(BufReader<ChildStdout>) + Send + 'static,
    {
        let (slot, workshop) = (Slot::take(), Workshop::new());
        let mut command = workshop.jig(["probe", "serve", "-b", "microbit"]);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = Started::of(&mut command);
        let (selector, out) = first_line(&mut server);
        let (transport, output) = transport(&workshop);
        let rig = format!(
            "version = 1\n\n[[place]]\nname = \"bench\"\nboard = \"microbit\"\n\n[place.probe]\n\
             selector = \"{selector}\"\n\n[[place.console]]\nname = \"uart0\"\n\
             {}\ntimeout = \"5m\"\n",
            transport
        );
        workshop.write("rig.toml", rig);
        // Ends with the server, which is killed at the latest when this is dropped.
        thread::spawn(move || output(out));
        Self { workshop, _server: server, _slot: slot }
    }

    /// Starts a run that waits for a text; what it says to people goes to a file.
    pub(crate) fn run_until(&self, text: &str) -> Started {
        let image = elf("microbit", "rtt-echo");
        let wait = ["--until", text, "--timeout", "1h"];
        let args = ["--json", "run", "-b", "bench", "--max-recoveries", "0", &image];
        let mut command = self.workshop.jig(args.into_iter().chain(wait));
        command.stdout(Stdio::piped());
        command.stderr(File::create(self.workshop.path("said.txt")).unwrap());
        Started::of(&mut command)
    }

    pub(crate) fn run_dir(&self) -> Option<PathBuf> {
        self.workshop.run_dirs().pop()
    }

    /// Waits until the run has written an event with a text.
    pub(crate) fn event(&self, text: &str) {
        until(text, || {
            let events = fs::read_to_string(self.run_dir()?.join("events.jsonl")).ok()?;
            events.contains(text).then_some(())
        });
    }
}

/// A terminal that is raw before the first byte is written: its far end, and its near end held
/// open.
pub(crate) fn terminal() -> (File, File, PathBuf) {
    // No child may inherit the far end: it would keep the transport alive.
    let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let master = posix_openpt(flags).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let path = PathBuf::from(ptsname_r(&master).unwrap());
    let near = File::options().read(true).write(true).open(&path).unwrap();
    let mut settings = tcgetattr(&near).unwrap();
    cfmakeraw(&mut settings);
    tcsetattr(&near, SetArg::TCSANOW, &settings).unwrap();
    (File::from(OwnedFd::from(master)), near, path)
}

pub(crate) fn tty(path: &Path) -> String {
    format!("tty = \"{}\"", path.display())
}

#[test]
fn a_port_that_comes_late_and_goes_for_a_while_leaves_a_gap_and_no_pass() {
    let bench = Bench::new(|workshop| tty(&workshop.path("by-id")));
    let link = bench.workshop.path("by-id");
    let run = bench.run_until("^second$");
    until("the word that it waits", || {
        let said = fs::read_to_string(bench.workshop.path("said.txt")).unwrap();
        said.contains("waiting for a serial port").then_some(())
    });
    let (mut far, near, path) = terminal();
    symlink(&path, &link).unwrap();
    // The port is open before the board has power.
    bench.event("\"event\":\"boot\"");
    far.write_all(b"first\n").unwrap();
    let raw = bench.run_dir().unwrap().join("consoles/1/uart0.raw");
    until("the first line", || fs::read_to_string(&raw).ok().filter(|raw| raw == "first\n"));

    // Another number after the replug, as adapters get one; the name by id stays.
    let (mut again, _near, path) = terminal();
    let new = bench.workshop.path("new");
    symlink(&path, &new).unwrap();
    fs::rename(&new, &link).unwrap();
    drop((far, near));
    bench.event("has hung up");
    bench.event("the transport is back");
    again.write_all(b"second\n").unwrap();
    let ran = run.finish();
    ran.says(4, &[]);
    let verdict = ran.json().unwrap()["verdict"].clone();
    assert_eq!(
        (&verdict["kind"], &verdict["cause"]),
        (&"inconclusive".into(), &"output_lost".into())
    );
    assert!(verdict["summary"].as_str().unwrap().contains("transport, away for "), "{verdict}");
    assert_eq!(fs::read_to_string(&raw).unwrap(), "first\nsecond\n");
}

#[test]
fn who_has_taken_a_port_is_named() {
    let (_far, near, path) = terminal();
    let bench = Bench::new(|_| tty(&path));
    let mut command = tied("flock");
    command.args(["--no-fork".as_ref(), path.as_os_str(), "sleep".as_ref(), "300".as_ref()]);
    let mut port_reader = Started::of(&mut command);
    until("the lock", || {
        let free = near.try_lock().is_ok();
        near.unlock().unwrap();
        (!free).then_some(())
    });
    let pid = port_reader.child().id();
    let ran = bench.run_until("never").finish();
    ran.says(75, &[]);
    let verdict = ran.json().unwrap()["verdict"].clone();
    assert_eq!(verdict["cause"], "console_lost", "{verdict}");
    let summary = verdict["summary"].as_str().unwrap();
    assert!(summary.contains(&format!("in use by sleep (pid {pid})")), "{ran}");
}

#[test]
fn a_socket_is_a_console_that_takes_input() {
    let bench = Bench::new(|workshop| format!("unix = \"{}\"", workshop.path("port").display()));
    let listener = UnixListener::bind(bench.workshop.path("port")).unwrap();
    let target = thread::spawn(move || {
        let (mut transport, _) = listener.accept().unwrap();
        let mut heard = [0; 5];
        transport.read_exact(&mut heard).unwrap();
        transport.write_all(b"heard ").unwrap();
        transport.write_all(&heard).unwrap();
        // Stays until the other end goes.
        let _ = transport.read(&mut [0; 1]);
    });
    let plan = bench.workshop.write(
        "plan.toml",
        "version = 1\nname = \"talk\"\ngoal = \"it answers\"\ntimeout = \"5m\"\n\
         [[stage]]\nname = \"s\"\n[[stage.step]]\nname = \"s\"\ngoal = \"g\"\n\
         actions = [{ deploy = true }, { power = \"cycle\" }, \
         { send = \"ping\\n\", console = \"uart0\" }, \
         { expect = '^heard ping\\n', console = \"uart0\", timeout = \"4m\" }]\n",
    );
    let image = elf("microbit", "rtt-echo");
    let args = ["test", "-b", "bench", plan.to_str().unwrap(), "--image", &image];
    bench.workshop.run(args).says(0, &[]);
    target.join().unwrap();
    let raw = fs::read(bench.run_dir().unwrap().join("consoles/1/uart0.raw")).unwrap();
    assert_eq!(raw, b"heard ping\n");
}
