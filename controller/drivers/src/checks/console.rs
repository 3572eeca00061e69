//! Checks that the other ends of console transports are present, usable and not in use elsewhere.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jig_model::protocol::{BoxFuture, CheckReport, HealthCheck};
use jig_model::rig_file::Endpoint;
use jig_model::{Cause, ConsoleName};
use nix::errno::Errno;
use nix::fcntl::AT_FDCWD;
use nix::unistd::{AccessFlags, faccessat};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::error::HostCheckError;
use super::{Found, SystemCheck, proc, report};
use crate::serial::{holder_pid, openers};

/// How long a server may take to accept: on a lab's network it takes milliseconds.
const CONNECT: Duration = Duration::from_secs(3);

/// Checks that a console's transport ends at something that can be used: a port that exists, may be
/// read and written and is held by no other program; a server that accepts.
///
/// A port is not opened: the first opening may raise lines that reset the board. A server is
/// connected to and let go, as nothing else tells whether it listens.
pub fn console(name: &ConsoleName, end: &Endpoint) -> Box<dyn HealthCheck> {
    let name = format!("console-{name}");
    match end {
        Endpoint::Tty(path) => {
            let path = PathBuf::from(path);
            SystemCheck::boxed(name, Cause::ConsoleLost, move || tty(&path, &proc()))
        }
        Endpoint::Unix(path) => {
            let path = PathBuf::from(path);
            SystemCheck::boxed(name, Cause::ConsoleLost, move || socket(&path))
        }
        Endpoint::Command(argv) => {
            let program = argv.first().cloned().unwrap_or_default();
            let path = std::env::var_os("PATH").unwrap_or_default();
            SystemCheck::boxed(name, Cause::ConsoleLost, move || command(&program, &path))
        }
        Endpoint::Tcp(address) | Endpoint::Rfc2217(address) => {
            Box::new(Accepts { name, address: address.clone() })
        }
    }
}

/// Checks that no other process holds a serial port. A port that does not exist yet passes: the
/// code that opens it knows how long to wait. Other endpoints than ports are not checked, because a
/// check would disturb them.
pub fn untaken(name: &ConsoleName, end: &Endpoint) -> Option<Box<dyn HealthCheck>> {
    let Endpoint::Tty(path) = end else { return None };
    let path = PathBuf::from(path);
    let look = move || match path.try_exists() {
        Ok(false) => Ok(format!("{} is not there yet", path.display())),
        Ok(true) | Err(_) => tty(&path, &proc()),
    };
    Some(SystemCheck::boxed(format!("console-{name}"), Cause::ConsoleLost, look))
}

fn tty(path: &Path, proc: &Path) -> Found {
    let about = fs::metadata(path).map_err(|error| missing(path, error))?;
    if !about.file_type().is_char_device() {
        return Err(HostCheckError::NotPort(path.to_owned()));
    }
    usable(path)?;
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let others = holders(&real, proc);
    let words = format!("{} is there", path.display());
    match others.iter().find(|other| !other.is_us) {
        Some(other) => Err(HostCheckError::InUse { path: path.to_owned(), by: other.who.clone() }),
        None => Ok(others.first().map_or(words.clone(), |o| format!("{words}, held by {}", o.who))),
    }
}

fn socket(path: &Path) -> Found {
    let about = fs::metadata(path).map_err(|error| missing(path, error))?;
    if !about.file_type().is_socket() {
        return Err(HostCheckError::NotSocket(path.to_owned()));
    }
    usable(path)?;
    Ok(format!("{} is there", path.display()))
}

/// A program is only looked for: to start it would take the console from the process that has it.
fn command(program: &str, path: &OsStr) -> Found {
    let found = std::env::split_paths(path).map(|folder| folder.join(program)).find(|at| {
        fs::metadata(at).is_ok_and(|about| about.is_file())
            && faccessat(AT_FDCWD, at, AccessFlags::X_OK, nix::fcntl::AtFlags::AT_EACCESS).is_ok()
    });
    match found {
        Some(at) => Ok(format!("{} is there", at.display())),
        None if program.contains('/') => Err(HostCheckError::NoFile(program.to_owned())),
        None => Err(HostCheckError::NoProgram(program.to_owned())),
    }
}

fn missing(path: &Path, source: io::Error) -> HostCheckError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::NotFound => HostCheckError::Missing(path),
        _ => HostCheckError::Unseen { path, source },
    }
}

fn usable(path: &Path) -> Result<(), HostCheckError> {
    let wanted = AccessFlags::R_OK | AccessFlags::W_OK;
    match faccessat(AT_FDCWD, path, wanted, nix::fcntl::AtFlags::AT_EACCESS) {
        Ok(()) => Ok(()),
        Err(Errno::EACCES) => Err(HostCheckError::Denied(path.to_owned())),
        Err(source) => Err(HostCheckError::Unusable { path: path.to_owned(), source }),
    }
}

/// A process that has a port.
struct Other {
    who: String,
    /// Runs the same program as this process, and holds the lock: another Jig, which gives the port
    /// away to the process that holds the place. Or is about to become a child of this process.
    is_us: bool,
}

/// Lists the processes that lock a file or have it open, as far as this user may see.
fn holders(path: &Path, proc: &Path) -> Vec<Other> {
    let locker = holder_pid(path);
    let mut pids: Vec<u32> = locker.into_iter().chain(openers(path, proc)).collect();
    pids.sort_unstable();
    pids.dedup();
    // An ancestor of this process that has the port open knows that this process uses it.
    let starters = ancestors(proc);
    pids.retain(|&pid| pid != std::process::id() && !starters.contains(&pid));
    let own = fs::read_link(proc.join("self/exe")).ok();
    let other = |pid: u32| {
        let exe = fs::read_link(proc.join(format!("{pid}/exe"))).ok();
        let is_us = exe.is_some() && exe == own && (locker == Some(pid) || is_fork(pid, proc));
        Other { who: crate::serial::named(pid), is_us }
    };
    pids.into_iter().map(other).collect()
}

/// Lists the processes from this one's parent up to the first of the system.
fn ancestors(proc: &Path) -> Vec<u32> {
    // The name stands in brackets and may hold any bytes; the parent stands behind the state.
    let parent = |of: &str| {
        let stat = fs::read_to_string(proc.join(of).join("stat")).ok()?;
        stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse::<u32>().ok()
    };
    let first = parent("self");
    // Longer than any chain of shells, and an end should the numbers run in a circle.
    std::iter::successors(first, |pid| parent(&pid.to_string())).take(64).collect()
}

/// Tells whether a process is this one's child that has not begun its own program yet: until
/// then it has all that is open here, and the same command line.
fn is_fork(pid: u32, proc: &Path) -> bool {
    let line = |of: &str| fs::read(proc.join(of).join("cmdline")).ok();
    line(&pid.to_string()).is_some_and(|line_of| Some(line_of) == line("self"))
}

/// A server that accepts connections.
struct Accepts {
    name: String,
    address: String,
}

impl HealthCheck for Accepts {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn cause(&self) -> Cause {
        Cause::ConsoleLost
    }

    fn check(&mut self) -> BoxFuture<'_, CheckReport> {
        Box::pin(async {
            let connected = connect(&self.address).await;
            report(self.name.clone(), connected.map(|_| format!("{} accepts", self.address)))
        })
    }
}

/// Connects to a server, or says why not.
pub(super) async fn connect(at: &str) -> Result<TcpStream, HostCheckError> {
    match timeout(CONNECT, TcpStream::connect(at)).await {
        Ok(connected) => {
            connected.map_err(|source| HostCheckError::Refused { at: at.to_owned(), source })
        }
        Err(_) => Err(HostCheckError::NoAnswer { at: at.to_owned(), timeout: CONNECT }),
    }
}
