//! OpenSSH's server, started for one test: keys, configuration and port of its own.
//!
//! The only place of these tests that starts it, because it needs its run folder first.

use std::fs;
use std::net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use nix::sys::signal::Signal;

use crate::workshop::{Started, Workshop, ran};

/// What a console server says first to a client.
pub(crate) const OPEN: &str = "console is open";

/// A server that listens until the test's process ends.
pub(crate) struct Sshd {
    port: u16,
    folder: PathBuf,
    connections: Connections,
}

/// The connections of a server so far. Each has a server process, which ends with it.
#[derive(Clone, Default)]
pub(crate) struct Connections(Arc<Mutex<Vec<(TcpStream, Started)>>>);

impl Connections {
    /// Cuts every connection, as a router does that forgets them.
    pub(crate) fn cut(&self) {
        for (stream, _) in self.0.lock().unwrap().iter() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Sends a signal to the server process of each connection.
    pub(crate) fn signal(&self, signal: Signal) {
        for (_, server) in self.0.lock().unwrap().iter() {
            server.signal(signal);
        }
    }

    /// Returns how many there were.
    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

impl Sshd {
    /// Starts a server on a free port of 127.0.0.1.
    pub(crate) fn start(workshop: &Workshop) -> Self {
        Self::start_at(workshop, "127.0.0.1:0")
    }

    /// Starts a server at an address. Connections are accepted when this returns.
    pub(crate) fn start_at(workshop: &Workshop, address: impl ToSocketAddrs) -> Self {
        Self::start_with(workshop.path("ssh"), address, "")
    }

    /// Starts a server in a folder of its own, with more lines in its configuration.
    pub(crate) fn start_with(folder: PathBuf, address: impl ToSocketAddrs, more: &str) -> Self {
        // Only its owner may write there, or the server accepts no key.
        fs::DirBuilder::new().mode(0o700).create(&folder).unwrap();
        for key in ["host", "user"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(folder.join(key));
            let made = ran(keygen.stdin(Stdio::null())).unwrap();
            assert_eq!(made.code(), 0, "{made}");
        }
        let path = |name: &str| folder.join(name).display().to_string();
        let config = format!(
            "HostKey {}\nAuthorizedKeysFile {}\nUsePAM no\nStrictModes no\nPidFile none\n\
             PasswordAuthentication no\nPermitRootLogin prohibit-password\n{more}",
            path("host"),
            path("user.pub")
        );
        fs::write(folder.join("config"), config).unwrap();
        if nix::unistd::geteuid().is_root() {
            // The server of root changes its root to this folder and ends without it. Debian
            // makes it when the service starts, which it never does on a machine for tests.
            fs::create_dir_all("/run/sshd").unwrap();
        }
        let listener = TcpListener::bind(address).unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Connections::default();
        let (known, at) = (connections.clone(), folder.clone());
        // The thread ends with the test's process.
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let server = serve(&at, &stream);
                known.0.lock().unwrap_or_else(PoisonError::into_inner).push((stream, server));
            }
        });
        Self { port, folder, connections }
    }

    /// Returns the connections, which change while the server runs.
    pub(crate) fn connections(&self) -> Connections {
        self.connections.clone()
    }

    /// Returns the port.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Returns a file of the server: its keys are `host` and `user`, and `user.pub` lists the keys
    /// that may log in.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns the line that makes the server's key known, or that of another file beside it.
    pub(crate) fn known_line(&self, key: &str) -> String {
        let key = fs::read_to_string(self.file(key)).unwrap();
        format!("[127.0.0.1]:{} {key}", self.port)
    }

    /// Returns the line of a rig file for a console that a remote program passes on.
    pub(crate) fn transport(&self, remote: &str) -> String {
        let path = |name: &str| self.folder.join(name).display().to_string();
        let (port, key) = (self.port.to_string(), path("user"));
        let known = format!("UserKnownHostsFile={}", path("known"));
        let argv = [
            "ssh",
            "-T",
            "-F",
            "none",
            "-i",
            &key,
            "-p",
            &port,
            "-o",
            &known,
            "-o",
            "StrictHostKeyChecking=accept-new",
            "-o",
            "BatchMode=yes",
            "-o",
            "IdentitiesOnly=yes",
            "127.0.0.1",
            remote,
        ];
        format!("command = {}\nready = \"{OPEN}\"", serde_json::to_string(&argv).unwrap())
    }
}

/// Starts the server process of one connection.
fn serve(folder: &Path, stream: &TcpStream) -> Started {
    let end = || Stdio::from(OwnedFd::from(stream.try_clone().unwrap()));
    let mut server = Command::new("/usr/sbin/sshd");
    server.args(["-i", "-e", "-f"]).arg(folder.join("config"));
    server.stdin(end()).stdout(end());
    let log = fs::File::options().append(true).create(true).open(folder.join("log"));
    server.stderr(log.unwrap());
    Started::of(&mut server)
}
