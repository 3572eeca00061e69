//! One user of a place at a time, across processes.
//!
//! # Which processes lock
//! A process that uses something that there is only one of: a real board, or the persistent flash
//! of an emulated place ([`super::FlashFile`]). Runs on an emulated place that load their own image
//! into an emulator of their own share nothing; they take no lock and run side by side.
//!
//! # Design
//! The lock is an `flock` on `places/<place>.lock`: the kernel gives it up when its holder
//! dies, even by `kill -9`, so there is no stale lock. The file also names the holder, for people.
//! That record may be stale (its writer was killed) or late (its writer has the lock and is about
//! to write), so it is believed only while its process lives, and nothing is ever decided by it.
//! The file is never removed: two processes could then hold two files of one name.
//!
//! Waiters poll, because `flock` has no timeout; the order of waiters is not defined.

use std::fmt;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use jig_model::{Fault, PlaceName};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use super::StoreError;
use super::place_command::{PlaceCommand, end_children};
use super::process::{host_name, lives, pid_namespace, start_ticks};
use crate::leases::LeaseError;

/// Pause between two looks at a lock: short for people, and 20 looks a second cost nothing.
const LOOK: Duration = Duration::from_millis(50);

/// How often, and with which pause, a lock without a known holder is tried again: a look at a lock
/// takes microseconds.
const LOOKERS: u32 = 3;
const LOOKER: Duration = Duration::from_millis(5);

/// Largest record that is read, and how much of a command line is kept.
const MAX_RECORD: u64 = 16 << 10;
const MAX_ARGS: usize = 16;
const MAX_ARG: usize = 200;

/// The folder in which places keep what outlives a run.
#[derive(Debug, Clone)]
pub struct Places {
    root: PathBuf,
}

/// The holder of a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its process, within its pid namespace.
    pub pid: u32,
    /// Name of its host; of its container, if it runs in one. Empty in a record of an earlier
    /// version.
    #[serde(default)]
    pub host: String,
    /// Number of its pid namespace; 0 if it is unknown.
    #[serde(default)]
    pub pid_namespace: u64,
    /// When that process began, in ticks since the machine started: with the pid, its name.
    pub start_ticks: u64,
    /// Its command line, shortened.
    pub command: Vec<String>,
    /// Since when it holds the place.
    pub since: Timestamp,
    /// The selector by which others may use its probe, if it serves one.
    #[serde(default)]
    pub selector: Option<String>,
}

impl fmt::Display for Holder {
    /// Writes what a person needs to find it: `jig gdb -b x (pid 7, since ...)`. May hold
    /// any text: escape it before printing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = self.since.strftime("%Y-%m-%d %H:%M:%SZ");
        write!(f, "{} (pid {}", command_shown(&self.command), self.pid)?;
        if self.is_elsewhere() {
            write!(f, " of another container or host: {}", self.host)?;
        }
        write!(f, ", since {since}")?;
        match &self.selector {
            Some(selector) => write!(f, ", serves probe {selector})"),
            None => f.write_str(")"),
        }
    }
}

/// Returns a command line as others read it. Of a process that carries out a job of a service, its folders say
/// nothing to people: the job is named, which `jig runs attach` and `jig runs cancel` take.
pub fn command_shown(command: &[String]) -> String {
    let job = match command {
        [.., worker, option, folder] if (&**worker, &**option) == ("worker", "--job") => {
            Path::new(folder).file_name()
        }
        _ => None,
    };
    match job {
        Some(job) => format!("a command of a service, job {}", job.to_string_lossy()),
        None => command.join(" "),
    }
}

impl Holder {
    /// Tells whether its pid means nothing here: it runs in another pid namespace or on another
    /// host that shares the folder.
    fn is_elsewhere(&self) -> bool {
        let known = !self.host.is_empty() && self.pid_namespace != 0;
        known && (self.host != host_name() || self.pid_namespace != pid_namespace())
    }
}

/// Says why a place could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum PlaceLockError {
    /// Another process has it.
    #[error("place {place} is in use by {}", by(holder.as_deref()))]
    Held {
        /// The place.
        place: PlaceName,
        /// The holder, if it could be found out.
        holder: Option<Box<Holder>>,
    },
    /// Another process keeps the consoles.
    #[error("the consoles are captured by {}", by(holder.as_deref()))]
    Kept {
        /// The process that captures them, if it could be found out.
        holder: Option<Box<Holder>>,
    },
    /// Another user has a lease for it, or a right to one.
    #[error(transparent)]
    Leased(Box<LeaseError>),
    /// The lock cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl PlaceLockError {
    /// Says who is to blame.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Held { .. } | Self::Kept { .. } => Fault::Lab,
            Self::Leased(error) => error.fault(),
            Self::Store(error) => error.fault(),
        }
    }
}

fn by(holder: Option<&Holder>) -> String {
    holder.map_or_else(|| "another process".to_owned(), Holder::to_string)
}

/// A place that is held. Dropping it gives it up.
#[derive(Debug)]
pub struct PlaceLock {
    place: PlaceName,
    held: LockFile,
}

/// The right to keep consoles between runs; one process at a time has it. Dropping it gives
/// it up.
#[derive(Debug)]
pub struct CaptureLock(#[expect(dead_code, reason = "that it is held is what counts")] LockFile);

/// A lock's file, and what it says of its holder.
#[derive(Debug)]
struct LockFile {
    path: PathBuf,
    holder: Holder,
    file: Flock<File>,
}

impl Places {
    /// Names the folder below Jig's state directory; it is created with the first lock.
    pub fn new(state: &Path) -> Self {
        let root = state.join("places");
        Self { root: std::path::absolute(&root).unwrap_or(root) }
    }

    /// Returns the folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the path of what a place keeps under this ending.
    pub(super) fn path(&self, place: &PlaceName, ending: &str) -> PathBuf {
        // A name is one safe path component; a dot in it cannot make two places meet.
        self.root.join(format!("{place}.{ending}"))
    }

    /// Returns the folder of what a place's consoles print between runs.
    pub fn consoles(&self, place: &PlaceName) -> PathBuf {
        self.path(place, "consoles")
    }

    /// Takes a place, or names its holder at once.
    ///
    /// # Errors
    /// Another process holds it, or the folder cannot be written.
    pub fn try_lock(&self, place: &PlaceName) -> Result<PlaceLock, PlaceLockError> {
        self.try_take(place).map(PlaceLock::cleared)
    }

    fn try_take(&self, place: &PlaceName) -> Result<PlaceLock, PlaceLockError> {
        match self.try_hold(&self.path(place, "lock"))? {
            Ok(held) => Ok(PlaceLock { place: place.clone(), held }),
            Err(holder) => Err(PlaceLockError::Held { place: place.clone(), holder }),
        }
    }

    /// Takes a place as [`Places::try_lock`] does. What the last command at the place left running
    /// is ended on a thread for blocking work, because all processes are looked at for it.
    ///
    /// # Errors
    /// Another process holds it, or the folder cannot be written.
    pub async fn lock_now(&self, place: &PlaceName) -> Result<PlaceLock, PlaceLockError> {
        let mut lock = self.try_take(place);
        for _ in 0..LOOKERS {
            // Held for the moment in which another process looks whether it is held.
            let Err(PlaceLockError::Held { holder: None, .. }) = lock else { break };
            sleep(LOOKER).await;
            lock = self.try_take(place);
        }
        let lock = lock?;
        // The thread owns the lock meanwhile: the next holder must not start before it is done.
        let cleared = tokio::task::spawn_blocking(move || lock.cleared()).await;
        let broken = |error| StoreError::writing(&self.root, io::Error::other(error)).into();
        cleared.map_err(broken)
    }

    /// Returns the highest token of a lease that a place has seen; 0 if it has seen none.
    pub fn fence(&self, place: &PlaceName) -> u64 {
        read_fence(&self.path(place, "fence"))
    }

    /// Returns the socket of the capture service. It lies beside the folder: a place may have any
    /// name.
    pub fn capture_socket(&self) -> PathBuf {
        self.beside("serve.sock")
    }

    /// Returns the socket at which the holder of a place takes commands for its board.
    pub fn holder_socket(&self, place: &PlaceName) -> PathBuf {
        self.path(place, "holder")
    }

    /// Returns the socket at which the holder of a place serves the consoles that it captures.
    pub fn held_consoles_socket(&self, place: &PlaceName) -> PathBuf {
        self.path(place, "capture")
    }

    /// Takes the lock of the capture service, or names its holder at once.
    ///
    /// # Errors
    /// Another process holds it, or the folder cannot be written.
    pub fn try_capture_lock(&self) -> Result<CaptureLock, PlaceLockError> {
        match self.try_hold(&self.beside("serve.lock"))? {
            Ok(held) => Ok(CaptureLock(held)),
            Err(holder) => Err(PlaceLockError::Kept { holder }),
        }
    }

    fn beside(&self, name: &str) -> PathBuf {
        self.root.parent().unwrap_or(&self.root).join(name)
    }

    /// Takes a lock, or names its holder.
    fn try_hold(&self, path: &Path) -> Result<Result<LockFile, Option<Box<Holder>>>, StoreError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o750)
            .create(&self.root)
            .map_err(|e| StoreError::writing(&self.root, e))?;
        let mut open = OpenOptions::new();
        let file = open.read(true).write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|e| StoreError::writing(path, e))?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(file) => Ok(Ok(LockFile::begin(path.to_owned(), file))),
            Err((mut file, Errno::EWOULDBLOCK)) => Ok(Err(read_holder(&mut file).map(Box::new))),
            Err((_, errno)) => Err(StoreError::writing(path, errno.into())),
        }
    }

    /// Takes a place as soon as it is free, within a time. `waiting` is told the holder, once at
    /// the start and again when it changes. Dropping the future stops the waiting.
    ///
    /// # Errors
    /// It is still held when the time is over, or the folder cannot be written.
    pub async fn lock_within(
        &self,
        place: &PlaceName,
        timeout: Duration,
        mut waiting: impl FnMut(Option<&Holder>),
    ) -> Result<PlaceLock, PlaceLockError> {
        let deadline = Instant::now() + timeout;
        let mut told: Option<Option<Holder>> = None;
        loop {
            let held = match self.lock_now(place).await {
                Err(PlaceLockError::Held { place, holder }) => (place, holder),
                other => return other,
            };
            let (place, holder) = held;
            if Instant::now() >= deadline {
                return Err(PlaceLockError::Held { place, holder });
            }
            let now = holder.map(|holder| *holder);
            if told.as_ref() != Some(&now) {
                waiting(now.as_ref());
                told = Some(now);
            }
            sleep(LOOK.min(deadline.saturating_duration_since(Instant::now()))).await;
        }
    }

    /// Returns the holder of a place, if it is held now; `Some(None)` if its holder is unknown.
    ///
    /// # Errors
    /// The lock cannot be looked at.
    pub fn holder(&self, place: &PlaceName) -> Result<Option<Option<Holder>>, StoreError> {
        let path = self.path(place, "lock");
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(StoreError::reading(&path, e)),
        };
        // Shared, so that lookers do not take each other for holders.
        match Flock::lock(file, FlockArg::LockSharedNonblock) {
            Ok(_) => Ok(None),
            Err((mut file, Errno::EWOULDBLOCK)) => Ok(Some(read_holder(&mut file))),
            Err((_, errno)) => Err(StoreError::reading(&path, errno.into())),
        }
    }
}

impl PlaceLock {
    /// Ends what the last command at the place left running.
    fn cleared(self) -> Self {
        end_children(&self.command_folder());
        self
    }

    /// Returns the place.
    pub fn place(&self) -> &PlaceName {
        &self.place
    }

    /// Takes note of the token of a lease, and returns the highest one that the place has seen. A
    /// lease whose token is lower has ended, whatever a database says.
    ///
    /// # Errors
    /// The file beside the lock cannot be written.
    pub fn pass_fence(&self, token: u64) -> Result<u64, StoreError> {
        let path = self.held.path.with_extension("fence");
        let seen = read_fence(&path);
        if token > seen {
            // One process has the lock, so one writes.
            let fresh = self.held.path.with_extension("fence-new");
            std::fs::write(&fresh, token.to_string())
                .and_then(|()| std::fs::rename(&fresh, &path))
                .map_err(|error| StoreError::writing(&path, error))?;
        }
        Ok(seen.max(token))
    }

    /// Begins a command at the place, in the place's one folder for commands.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn begin_command(&self) -> Result<PlaceCommand, StoreError> {
        PlaceCommand::begin(self.command_folder())
    }

    fn command_folder(&self) -> PathBuf {
        self.held.path.with_extension("command")
    }

    /// Tells others by which selector they may use the probe that is served here; none once it is
    /// not served any more.
    pub fn serves(&mut self, selector: Option<&str>) {
        self.held.holder.selector =
            selector.map(|selector| selector.chars().take(MAX_ARG).collect());
        self.held.write();
    }
}

impl LockFile {
    fn begin(path: PathBuf, file: Flock<File>) -> Self {
        let pid = std::process::id();
        let shorten =
            |arg: std::ffi::OsString| arg.to_string_lossy().chars().take(MAX_ARG).collect();
        let mut command: Vec<String> = std::env::args_os().take(MAX_ARGS).map(shorten).collect();
        if let Some(program) = command.first_mut() {
            let name = Path::new(program.as_str()).file_name().unwrap_or_default();
            *program = name.to_string_lossy().into_owned();
        }
        let holder = Holder {
            pid,
            host: host_name(),
            pid_namespace: pid_namespace(),
            start_ticks: start_ticks(pid).unwrap_or_default(),
            command,
            since: Timestamp::now(),
            selector: None,
        };
        let mut held = Self { path, holder, file };
        held.write();
        held
    }

    /// Writes the holder. It only tells people, so a failure is not worth more than a line in the
    /// log.
    fn write(&mut self) {
        let write = |file: &mut File, holder: &Holder| -> io::Result<()> {
            let text = serde_json::to_vec(holder)?;
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
            file.write_all(&text)
        };
        if let Err(error) = write(&mut self.file, &self.holder) {
            tracing::warn!(%error, path = %self.path.display(), "the holder was not recorded");
        }
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        // Before the lock is given up: afterwards it would be the next holder's record.
        let _ = self.file.set_len(0);
    }
}

fn read_fence(path: &Path) -> u64 {
    std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// Reads the holder of a lock that is known to be held; nothing if the record is not that of a
/// process that lives. Of a process elsewhere only the lock tells that it lives.
fn read_holder(file: &mut File) -> Option<Holder> {
    let mut text = Vec::new();
    file.take(MAX_RECORD).read_to_end(&mut text).ok()?;
    let holder: Holder = serde_json::from_slice(&text).ok()?;
    (holder.is_elsewhere() || lives(holder.pid, holder.start_ticks)).then_some(holder)
}
