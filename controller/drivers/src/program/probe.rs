//! Tries a sandbox for real: a thread confines itself and then does what it must not.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::thread;

use super::confine::confine;
use super::wire::Confinement;

/// Says what a sandbox on this host cannot do, and what helps.
pub(super) fn sandbox_gap() -> Option<String> {
    let folder = match ProbeFolder::make() {
        Ok(folder) => folder,
        Err(error) => {
            let place = std::env::temp_dir();
            return Some(format!("make a folder in {}: {error}", place.display()));
        }
    };
    thread::scope(|scope| {
        let tried = thread::Builder::new().spawn_scoped(scope, || tried(&folder.0));
        match tried.map(thread::ScopedJoinHandle::join) {
            Ok(Ok(gap)) => gap,
            Ok(Err(_)) => Some("the thread that tried it ended".to_owned()),
            Err(error) => Some(format!("start a thread: {error}")),
        }
    })
}

fn tried(folder: &Path) -> Option<String> {
    let inside = folder.join("inside");
    let confinement = Confinement { writable: vec![inside.clone().into()], network: false };
    if let Err(error) = confine(&confinement) {
        return Some(error.to_string());
    }
    if let Err(error) = fs::write(inside.join("file"), "probe") {
        return Some(format!("a file in a folder that is allowed could not be written: {error}"));
    }
    let local = (Ipv4Addr::LOCALHOST, 0);
    let forbidden = [
        (
            "a file outside of the folders was not kept from writing",
            fs::write(folder.join("file"), "probe"),
        ),
        ("a TCP socket was not refused", TcpListener::bind(local).map(drop)),
        ("a UDP socket was not refused", UdpSocket::bind(local).map(drop)),
    ];
    forbidden.into_iter().find_map(|(what, outcome)| match outcome {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => None,
        Err(error) => Some(format!("{what} as it should be: {error}")),
        Ok(()) => Some(what.to_owned()),
    })
}

/// Names that are tried for the folder. One that exists was left by a probe that was killed.
const MOST_NAMES: u32 = 100;

/// A folder with a folder in it, which are removed at the end.
struct ProbeFolder(PathBuf);

impl ProbeFolder {
    fn make() -> io::Result<Self> {
        let own = format!("jig-sandbox-{}", std::process::id());
        let names = (0..MOST_NAMES).map(|number| format!("{own}-{number}"));
        let mut refused = io::Error::from(ErrorKind::AlreadyExists);
        for path in names.map(|name| std::env::temp_dir().join(name)) {
            // Fails where something of this name exists, which may belong to another process.
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    let folder = Self(path);
                    fs::create_dir(folder.0.join("inside"))?;
                    return Ok(folder);
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => refused = error,
                Err(error) => return Err(error),
            }
        }
        Err(refused)
    }
}

impl Drop for ProbeFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Also shows that other threads stay free, and that nothing is left.
    #[test]
    fn a_sandbox_of_this_host_is_whole_and_binds_its_thread_alone() {
        assert_eq!(sandbox_gap(), None);
        let folder = ProbeFolder::make().unwrap();
        fs::write(folder.0.join("file"), "free").unwrap();
        UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    }
}
