//! A board of the lab for tests: an emulator that is switched like a real one, behind a serial
//! adapter that stays when its power goes. Nothing of it is Jig's.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::power_lab::{Asked, Web};
use crate::serial::terminal;
use crate::workshop::{Workshop, tied};

/// The kind of all these boards.
pub(crate) const KIND: &str = "lm3s6965evb";

/// What comes to a board, or from it.
type Sink = Arc<Mutex<Option<Box<dyn Write + Send>>>>;

/// A board: its flash is a file with the path of an image.
#[derive(Clone)]
pub(crate) struct Board(Arc<Inner>);

struct Inner {
    flash: PathBuf,
    /// Where its emulator connects its UART.
    uart: PathBuf,
    emulator: Mutex<Option<Child>>,
    /// The adapter's other side, while a process has it open.
    host: Sink,
    target: Sink,
    /// The connection of the process that has it open, where that is by a socket.
    plug: Mutex<Option<UnixStream>>,
    /// Its outlet only says that it switches.
    lies: Mutex<bool>,
    lines: Mutex<Lines>,
}

/// The modem line of its adapter that resets it.
#[derive(Default, Clone, Copy)]
pub(crate) enum ResetBy {
    #[default]
    Rts,
    Dtr,
}

/// The modem lines of its adapter.
#[derive(Default)]
struct Lines {
    by: ResetBy,
    rts: bool,
    dtr: bool,
}

impl Lines {
    /// The usual circuit: both together do nothing.
    fn resets(&self) -> bool {
        match self.by {
            ResetBy::Rts => self.rts && !self.dtr,
            ResetBy::Dtr => self.dtr && !self.rts,
        }
    }
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap()
}

impl Board {
    /// Makes a board without power and without an image.
    pub(crate) fn new(workshop: &Workshop, name: &str) -> Self {
        let inner = Inner {
            flash: workshop.path(&format!("{name}.flash")),
            uart: workshop.path(&format!("{name}.uart")),
            emulator: Mutex::default(),
            host: Sink::default(),
            target: Sink::default(),
            plug: Mutex::default(),
            lies: Mutex::default(),
            lines: Mutex::default(),
        };
        let board = Self(Arc::new(inner));
        let listener = UnixListener::bind(&board.0.uart).unwrap();
        let at = board.clone();
        // Threads of this end with the process: they block no other thread and hold nothing else.
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                *lock(&at.0.target) = Some(Box::new(stream.try_clone().unwrap()));
                let host = Arc::clone(&at.0.host);
                thread::spawn(move || pump(&mut stream, |bytes| put(&host, bytes)));
            }
        });
        board
    }

    /// Puts its console behind a socket of this host.
    pub(crate) fn on_a_socket(&self, path: &Path) {
        let listener = UnixListener::bind(path).unwrap();
        let at = self.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                *lock(&at.0.host) = Some(Box::new(stream.try_clone().unwrap()));
                *lock(&at.0.plug) = Some(stream.try_clone().unwrap());
                let target = Arc::clone(&at.0.target);
                thread::spawn(move || pump(&mut stream, |bytes| put(&target, bytes)));
            }
        });
    }

    /// Puts its console behind a pseudo-terminal, as of a USB adapter; returns its path. The adapter is
    /// there until the board is plugged in again.
    pub(crate) fn on_a_tty(&self) -> PathBuf {
        let (mut far, near, path) = terminal();
        let (plug, unplugged) = UnixStream::pair().unwrap();
        *lock(&self.0.host) = Some(Box::new(far.try_clone().unwrap()));
        *lock(&self.0.plug) = Some(plug);
        let target = Arc::clone(&self.0.target);
        thread::spawn(move || {
            // While it is open here, the adapter stays when Jig closes the port.
            let _near = near;
            let mut buf = [0; 4096];
            loop {
                let [told, here] =
                    [unplugged.as_fd(), far.as_fd()].map(|end| PollFd::new(end, PollFlags::POLLIN));
                let mut ends = [told, here];
                poll(&mut ends, PollTimeout::NONE).unwrap();
                if ends[0].any().unwrap() {
                    return;
                }
                match far.read(&mut buf) {
                    Ok(count @ 1..) => put(&target, &buf[..count]),
                    _ => return,
                }
            }
        });
        path
    }

    /// Puts its console behind a server that speaks RFC 2217, of which one line resets the board
    /// while the other is released; returns the server's address.
    pub(crate) fn on_rfc2217(&self, by: ResetBy) -> String {
        lock(&self.0.lines).by = by;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let at = self.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let answer = Arc::new(Mutex::new(stream.try_clone().unwrap()));
                *lock(&at.0.host) = Some(Box::new(Escaped(Arc::clone(&answer))));
                let (at, mut said) = (at.clone(), Vec::new());
                thread::spawn(move || {
                    pump(&mut stream, |bytes| {
                        said.extend_from_slice(bytes);
                        while let Some(length) = at.understand(&said, &answer) {
                            said.drain(..length);
                        }
                    });
                });
            }
        });
        address
    }

    /// Answers one thing that a client of RFC 2217 says; returns its length, if all of it is there.
    fn understand(&self, said: &[u8], answer: &Mutex<TcpStream>) -> Option<usize> {
        let tell = |bytes: &[u8]| drop(lock(answer).write_all(bytes));
        match said {
            [255, 251, option, ..] => tell(&[255, 253, *option]),
            [255, 253, option, ..] => tell(&[255, 251, *option]),
            [255, 250, ..] => {
                let end = said.windows(2).position(|two| two == [255, 240])?;
                match &said[2..end] {
                    [44, 1, baud @ ..] => {
                        tell(&[&[255, 250, 44, 101], baud, &[255, 240]].concat());
                    }
                    [44, 5, value] => self.line(*value),
                    _ => {}
                }
                return Some(end + 2);
            }
            [255, _, ..] | [255] | [] => return None,
            [byte, ..] => {
                put(&self.0.target, &[*byte]);
                return Some(1);
            }
        }
        Some(3)
    }

    /// Sets a modem line, by the values of RFC 2217.
    fn line(&self, value: u8) {
        let mut lines = lock(&self.0.lines);
        let was = lines.resets();
        match value {
            8 | 9 => lines.dtr = value == 8,
            11 | 12 => lines.rts = value == 11,
            _ => {}
        }
        match (was, lines.resets()) {
            (false, true) => self.off(),
            (true, false) => self.on(),
            _ => {}
        }
    }

    /// Puts an image into its flash.
    pub(crate) fn flash(&self, image: &str) {
        fs::write(&self.0.flash, image).unwrap();
    }

    /// Has its outlet say what it is told and switch nothing.
    pub(crate) fn lies(&self) {
        *lock(&self.0.lies) = true;
    }

    /// Gives it power: it boots what is in its flash.
    pub(crate) fn on(&self) {
        let mut emulator = lock(&self.0.emulator);
        let image = fs::read_to_string(&self.0.flash).unwrap_or_default();
        if emulator.is_some() || image.is_empty() {
            return;
        }
        let serial = format!("unix:{}", self.0.uart.display());
        let started = tied("qemu-system-arm")
            .args(["-machine", KIND])
            .args(["-nic", "user,restrict=on,model=stellaris", "-display", "none"])
            .args(["-monitor", "none", "-semihosting", "-serial", &serial])
            .args(["-kernel", image.trim()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        *emulator = Some(started.unwrap());
    }

    /// Takes its power.
    pub(crate) fn off(&self) {
        if let Some(mut emulator) = lock(&self.0.emulator).take() {
            let _ = emulator.kill();
            let _ = emulator.wait();
        }
    }

    /// Pulls its serial adapter out, and plugs it in again.
    pub(crate) fn replug(&self) {
        let plug = lock(&self.0.plug).take().unwrap();
        *lock(&self.0.host) = None;
        plug.shutdown(Shutdown::Both).unwrap();
    }
}

/// What goes to a client of RFC 2217.
struct Escaped(Arc<Mutex<TcpStream>>);

impl Write for Escaped {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let twice = |byte: &u8| if *byte == 255 { vec![255, 255] } else { vec![*byte] };
        let escaped: Vec<u8> = bytes.iter().flat_map(twice).collect();
        lock(&self.0).write_all(&escaped)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn put(sink: &Sink, bytes: &[u8]) {
    let mut open = lock(sink);
    // A line that no process listens to loses what is sent.
    if let Some(stream) = open.as_mut()
        && stream.write_all(bytes).is_err()
    {
        *open = None;
    }
}

fn pump(from: &mut impl Read, mut to: impl FnMut(&[u8])) {
    let mut buf = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut buf) {
        to(&buf[..count]);
    }
}

/// Outlets that switch boards: `/set/OUTLET/on`, `/get/OUTLET`.
pub(crate) fn outlets(boards: &[&Board]) -> Web {
    let boards: Vec<Board> = boards.iter().map(|&board| board.clone()).collect();
    let mut on = vec![false; boards.len()];
    Web::start(move |asked: &Asked| {
        let words: Vec<&str> = asked.line.split('/').collect();
        let outlet: usize = words[2].parse().unwrap();
        if words[1] == "set" {
            on[outlet] = words[3] == "on";
            let board = &boards[outlet];
            match on[outlet] {
                _ if *lock(&board.0.lies) => {}
                true => board.on(),
                false => board.off(),
            }
        }
        let word = if on[outlet] { "on" } else { "off" };
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{word}", word.len()).into_bytes()
    })
}

/// Declares those outlets.
pub(crate) fn device(web: &Web) -> String {
    format!(
        "[[power]]\nname = \"pdu\"\nmin_interval = \"0ms\"\noff_time = \"1ms\"\n[power.http]\n\
         url = \"{}\"\nset = \"/set/{{outlet}}/{{state}}\"\nstatus = \"/get/{{outlet}}\"\n",
        web.url()
    )
}
