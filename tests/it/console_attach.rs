//! `jig console` at a captured console: where its output begins, and what it does to a terminal.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use nix::pty::openpty;
use nix::sys::signal::Signal;
use nix::sys::termios::{LocalFlags, OutputFlags, Termios, tcgetattr};

use crate::capture_service::{CaptureService, captured, named, rig};
use crate::manifest::elf;
use crate::workshop::{DEADLINE, Slot, Started, Workshop, until};

/// A console whose board is this test, captured by `jig serve`.
struct Captured {
    workshop: Workshop,
    board: File,
    _near: File,
    service: CaptureService,
}

impl Captured {
    fn new() -> Self {
        let workshop = Workshop::new();
        let (board, near, link) = named(&workshop, "port");
        workshop.write("rig.toml", rig(&[("bench", &link)]));
        let service = CaptureService::start(&workshop);
        service.state("bench", "captured");
        Self { workshop, board, _near: near, service }
    }

    /// Prints a line that is in the log before this returns.
    fn print_before(&mut self) {
        self.board.write_all(b"before\n").unwrap();
        until("the line in the log", || (captured(&self.workshop, "bench") == 7).then_some(()));
    }

    /// Reads what the board gets, up to this length.
    fn board_gets(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.board.read_exact(&mut bytes).unwrap();
        bytes
    }

    fn piped(&self, options: &[&str]) -> (Started, ChildStdin, Shown) {
        let mut command = self.workshop.jig(["console", "-b", "bench"].iter().chain(options));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut session = Started::of(&mut command);
        let keys = session.child().stdin.take().unwrap();
        let out = session.child().stdout.take().unwrap();
        (session, keys, Shown::of(out))
    }
}

/// What a session shows, as it comes.
pub(crate) struct Shown {
    pieces: Receiver<Vec<u8>>,
    all: Vec<u8>,
}

impl Shown {
    pub(crate) fn of(mut out: impl std::io::Read + Send + 'static) -> Self {
        let (sender, pieces) = channel();
        // Ends with the session, at the latest when that is dropped.
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(len @ 1..) = out.read(&mut bytes) {
                if sender.send(bytes[..len].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { pieces, all: Vec::new() }
    }

    /// Waits until so many bytes were shown; returns all that was.
    pub(crate) fn at_least(&mut self, length: usize) -> Result<&[u8], String> {
        while self.all.len() < length {
            match self.pieces.recv_timeout(DEADLINE) {
                Ok(bytes) => self.all.extend(bytes),
                Err(error) => return Err(format!("{error} after {} bytes", self.all.len())),
            }
        }
        Ok(&self.all)
    }

    /// Waits until all that was shown ends so; returns it.
    #[track_caller]
    fn ends_with(&mut self, wanted: &[u8]) -> String {
        while !self.all.ends_with(wanted) {
            match self.pieces.recv_timeout(DEADLINE) {
                Ok(bytes) => self.all.extend(bytes),
                Err(error) => panic!("{error} after {}", self.all.escape_ascii()),
            }
        }
        String::from_utf8(self.all.clone()).unwrap()
    }
}

#[test]
fn a_program_is_shown_only_what_is_printed_from_now_on() {
    for (options, wanted) in [
        (&["--raw"][..], "after\n"),
        (&["--raw=bytes"], "after\n"),
        (&[], "after\n"),
        (&["--since", "0s"], "after\n"),
        (&["--raw", "--since", "1h"], "before\nafter\n"),
    ] {
        let mut console = Captured::new();
        console.print_before();
        let (session, mut keys, mut shown) = console.piped(options);
        keys.write_all(b"x").unwrap();
        assert_eq!(console.board_gets(1), b"x", "it is attached");
        console.board.write_all(b"after\n").unwrap();
        assert_eq!(shown.ends_with(b"after\n"), wanted, "{options:?}");
        drop(keys);
        session.finish().says(0, &[]);
    }
}

/// A session on a terminal of its own.
struct OnTerminal {
    session: Started,
    user: File,
    near: File,
    shown: Shown,
}

impl OnTerminal {
    fn begin(console: &Captured, options: &[&str]) -> Self {
        let terminal = openpty(None, None).unwrap();
        let near = File::from(terminal.slave);
        let mut command =
            console.workshop.jig(["--quiet", "console", "-b", "bench"].iter().chain(options));
        let end = || Stdio::from(near.try_clone().unwrap());
        command.stdin(end()).stdout(end()).stderr(end());
        let session = Started::of(&mut command);
        let user = File::from(terminal.master);
        let shown = Shown::of(user.try_clone().unwrap());
        Self { session, user, near, shown }
    }

    fn settings(&self) -> Termios {
        tcgetattr(&self.near).unwrap()
    }

    /// Tells whether it has been set to raw mode.
    fn is_raw(&self) -> bool {
        !self.settings().local_flags.contains(LocalFlags::ICANON)
    }
}

#[test]
fn raw_bytes_leaves_the_terminal_alone_and_raw_does_not() {
    for (option, typed, gets, shows) in
        [("--raw=bytes", "hi\n", "hi\n", "hi\r\none\r\n"), ("--raw", "hi\n", "hi\n", "one\n")]
    {
        let mut console = Captured::new();
        console.print_before();
        let mut terminal = OnTerminal::begin(&console, &[option]);
        let raw = option == "--raw";
        if raw {
            until("raw mode", || terminal.is_raw().then_some(()));
        }
        terminal.user.write_all(typed.as_bytes()).unwrap();
        assert_eq!(console.board_gets(gets.len()), gets.as_bytes(), "{option}");
        assert_eq!(terminal.is_raw(), raw, "{option}");
        let converts = terminal.settings().output_flags.contains(OutputFlags::OPOST);
        assert_eq!(converts, !raw, "{option}");
        console.board.write_all(b"one\n").unwrap();
        assert_eq!(terminal.shown.ends_with(shows.as_bytes()), shows, "{option}");
        // Ctrl-] ends the one, the end of the input (Ctrl-D) the other.
        terminal.user.write_all(if raw { b"\x1d" } else { b"\x04" }).unwrap();
        let near = terminal.near.try_clone().unwrap();
        terminal.session.finish().says(0, &[]);
        let settings = tcgetattr(&near).unwrap();
        assert!(settings.local_flags.contains(LocalFlags::ICANON), "{option}: not restored");
    }
}

#[test]
fn the_line_end_is_converted_only_where_a_line_is_typed() {
    let mut console = Captured::new();
    let (session, mut keys, _shown) = console.piped(&["--raw=bytes", "--line-end", "cr"]);
    keys.write_all(b"a\n").unwrap();
    assert_eq!(console.board_gets(2), b"a\r");
    drop(keys);
    session.finish().says(0, &[]);
    let refused = console.workshop.run(["console", "-b", "bench", "--raw", "--line-end", "cr"]);
    refused.says(2, &["--line-end has no effect", "--raw=bytes"]);
}

#[test]
fn piped_input_that_is_not_sent_is_no_success() {
    // The capture service ends.
    let mut console = Captured::new();
    let (session, mut keys, _shown) = console.piped(&[]);
    keys.write_all(b"x").unwrap();
    assert_eq!(console.board_gets(1), b"x");
    let Captured { service, .. } = console;
    service.stop();
    session.finish().says(75, &["input is not sent any more: "]);
    // The port is closed: its other end has gone.
    let mut console = Captured::new();
    let (session, mut keys, _shown) = console.piped(&[]);
    keys.write_all(b"x").unwrap();
    assert_eq!(console.board_gets(1), b"x");
    let Captured { workshop, board, _near, service } = console;
    // Another test may get the number of the closed terminal, which the service then opens.
    std::fs::remove_file(workshop.path("port")).unwrap();
    drop((board, _near));
    service.state("bench", "away");
    keys.write_all(b"help\n").unwrap();
    drop(keys);
    session.finish().says(75, &["not all of the input was sent: "]);
}

#[test]
fn a_modem_line_of_a_console_without_one_is_a_wrong_request() {
    let workshop = Workshop::new();
    let (_far, _near, link) = named(&workshop, "port");
    let socket = workshop.path("socket");
    std::fs::create_dir(workshop.path("board-profiles")).unwrap();
    workshop.write(
        "board-profiles/two.toml",
        "version = 1\nid = \"two\"\ntitle = \"Two ports\"\narch = \"arm\"\n\
         memory = [{ name = \"ram\", kind = \"ram\", start = 0x2000_0000, size = \"128K\" }]\n\
         console = [{ name = \"uart0\", kind = \"uart\", baud = 115200 }, \
         { name = \"uart1\", kind = \"uart\", baud = 115200 }]\n",
    );
    let rig = format!(
        "version = 1\n[[place]]\nname = \"bench\"\nboard = \"two\"\n\
         [[place.console]]\nname = \"uart0\"\nunix = \"{}\"\n\
         [[place.console]]\nname = \"uart1\"\ntty = \"{}\"\n",
        socket.display(),
        link.display()
    );
    workshop.write("rig.toml", rig);
    for line in [&["--dtr", "on"][..], &["--rts", "off"], &["--send-break"]] {
        let ran = workshop.run(["console", "-b", "bench"].iter().chain(line));
        ran.says(2, &["uart0 of place bench has no modem lines: its transport is a `unix`"]);
        ran.says(2, &["serial port at: uart1"]);
    }
}

#[test]
fn two_signals_at_once_end_a_session_in_order() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let image = elf("microbit", "shell");
    let mut command = workshop.jig(["console", "-b", "microbit", "--image", &image, "--raw"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut session = Started::of(&mut command);
    let _keys = session.child().stdin.take();
    let mut shown = Shown::of(session.child().stdout.take().unwrap());
    shown.ends_with(b"jig> ");
    // As `make` and a terminal that closes send them.
    session.signal(Signal::SIGTERM);
    session.signal(Signal::SIGHUP);
    session.finish().says(0, &[]);
    assert!(workshop.processes().is_empty());
    let next = workshop.run(["console", "-b", "microbit", "--image", &image, "--raw"]);
    next.says(0, &[]);
    assert_eq!(next.err(), "", "the next start says nothing of the session before");
}
