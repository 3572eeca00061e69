//! Another program that reads a console's tty.

use std::convert::Infallible;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jig_model::protocol::NoLedger;
use nix::fcntl::OFlag;

use crate::process::{ManagedProcess, SpawnRequest};

/// How a program is started that reads a tty until it is killed. The tty's path is added to
/// the arguments.
#[derive(Debug, Clone)]
pub struct PortReader {
    /// The program.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
}

/// A theft that is due.
#[derive(Debug)]
pub(super) struct PortRead {
    /// The fault's number.
    pub(super) fault: usize,
    pub(super) port_reader: PortReader,
    pub(super) tty: String,
    pub(super) time: Duration,
}

impl PortRead {
    /// Starts the port reader; it goes on until it is dropped.
    pub(super) async fn begin(self) -> Option<ManagedProcess> {
        let PortReader { program, mut args } = self.port_reader;
        args.push(self.tty.into());
        let request = SpawnRequest::silent(program, args, "port reader");
        let begun = ManagedProcess::spawn(request, Arc::new(NoLedger)).await;
        begun.inspect_err(|error| tracing::warn!(%error, "no program reads the tty")).ok()
    }
}

/// Reads a tty that others use, and throws away what it gets: the other half of [`PortReader`].
///
/// # Errors
/// The tty cannot be opened, or has gone.
pub fn steal_tty(path: &Path) -> io::Result<Infallible> {
    let mut options = OpenOptions::new();
    let mut tty = options.read(true).custom_flags(OFlag::O_NOCTTY.bits()).open(path)?;
    let mut loot = [0; 1 << 10];
    while tty.read(&mut loot)? > 0 {}
    Err(io::ErrorKind::UnexpectedEof.into())
}
