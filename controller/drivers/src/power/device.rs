//! The owner of one power device.
//!
//! # Design
//! A task holds the driver and does one command at a time. Between processes, an `flock` on
//! `places/<device>.power` keeps commands apart; when it is given up, the file's time of
//! modification says when the last command ended, so that the interval holds across processes
//! and no process has to linger. A clock that was set back costs one interval, not more.
//!
//! A command that was begun is carried to its end even if the caller has gone: half a
//! command confuses more devices than a whole one.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jig_model::DeviceName;
use jig_model::power::PowerDevice;
use jig_model::protocol::PowerState;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout};

use super::{Outlets, PowerError};

/// Pause between two looks at a lock that another process holds.
const LOOK: Duration = Duration::from_millis(20);

/// How many commands of other processes are waited for before the device counts as busy.
const TURNS: u32 = 8;

type DeviceReply<T> = oneshot::Sender<Result<T, PowerError>>;

enum DeviceOrder {
    Set(String, PowerState, DeviceReply<()>),
    Read(String, DeviceReply<Option<PowerState>>),
}

/// A power device of this process. Clones share the one owner.
#[derive(Debug, Clone)]
pub struct OpenDevice {
    orders: mpsc::Sender<DeviceOrder>,
    name: DeviceName,
    turn: Duration,
}

impl OpenDevice {
    /// Gives a device its owner. `locks` is the folder in which processes of this user meet.
    /// Call within a tokio runtime.
    pub fn start(about: &PowerDevice, outlets: Box<dyn Outlets>, locks: &Path) -> Self {
        let (orders, inbox) = mpsc::channel(16);
        let owner = DeviceOwner {
            what: format!("{} ({})", about.name, outlets.what()),
            what_is_asked: format!("{} ({})", about.name, outlets.what_is_asked()),
            outlets,
            min_interval: about.min_interval,
            timeout: about.timeout,
            // A name is one safe path component.
            lock: locks.join(format!("{}.power", about.name)),
        };
        let turn = owner.queue_timeout() + owner.min_interval + owner.timeout;
        tokio::spawn(owner.run(inbox));
        Self { orders, name: about.name.clone(), turn }
    }

    /// Returns how long a command takes at most, until its turn and then itself. Commands of
    /// this process that came before it are not counted.
    pub fn turn_timeout(&self) -> Duration {
        self.turn
    }

    /// Returns its name.
    pub fn name(&self) -> &DeviceName {
        &self.name
    }

    /// Switches an outlet; returns when the device has taken the command.
    ///
    /// # Errors
    /// The device cannot be reached, refuses, or takes too long.
    pub async fn set(&self, outlet: &str, state: PowerState) -> Result<(), PowerError> {
        let (reply, answer) = oneshot::channel();
        self.ask(DeviceOrder::Set(outlet.to_owned(), state, reply), answer).await
    }

    /// Reads an outlet's state; nothing where the device has no way to tell.
    ///
    /// # Errors
    /// The device cannot be reached, answers nonsense, or takes too long.
    pub async fn read(&self, outlet: &str) -> Result<Option<PowerState>, PowerError> {
        let (reply, answer) = oneshot::channel();
        self.ask(DeviceOrder::Read(outlet.to_owned(), reply), answer).await
    }

    async fn ask<T>(
        &self,
        order: DeviceOrder,
        answer: oneshot::Receiver<Result<T, PowerError>>,
    ) -> Result<T, PowerError> {
        let gone = || PowerError::unusable(self.name.to_string(), "its owner has ended");
        self.orders.send(order).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

struct DeviceOwner {
    /// What switches, and what tells the state, for messages.
    what: String,
    what_is_asked: String,
    outlets: Box<dyn Outlets>,
    min_interval: Duration,
    timeout: Duration,
    lock: PathBuf,
}

impl DeviceOwner {
    async fn run(self, mut inbox: mpsc::Receiver<DeviceOrder>) {
        while let Some(order) = inbox.recv().await {
            // A caller that has gone away needs no answer.
            match order {
                DeviceOrder::Set(outlet, state, reply) => {
                    let done = self.turn(&self.what, self.outlets.set(&outlet, state)).await;
                    drop(reply.send(done));
                }
                DeviceOrder::Read(outlet, reply) => {
                    let done = self.turn(&self.what_is_asked, self.outlets.read(&outlet)).await;
                    drop(reply.send(done));
                }
            }
        }
    }

    /// Carries out one command in its turn.
    async fn turn<T>(
        &self,
        what: &str,
        command: impl Future<Output = Result<T, PowerError>>,
    ) -> Result<T, PowerError> {
        let lock = self.lock().await?;
        let rest = lock.metadata().and_then(|about| {
            let since = SystemTime::now().duration_since(about.modified()?).unwrap_or_default();
            // A file that was just made has had no command.
            Ok(if about.len() == 0 {
                Duration::ZERO
            } else {
                self.min_interval.saturating_sub(since)
            })
        });
        sleep(rest.unwrap_or(self.min_interval)).await;
        let done = timeout(self.timeout, command).await;
        let mut file: &File = &lock;
        if let Err(error) = stamp(&mut file) {
            tracing::debug!(%error, path = %self.lock.display(), "the time was not kept");
        }
        let late = PowerError::TimedOut { what: what.to_owned(), timeout: self.timeout };
        done.unwrap_or(Err(late))
    }

    /// Returns how long commands of other processes are waited for.
    fn queue_timeout(&self) -> Duration {
        (self.timeout + self.min_interval) * TURNS
    }

    async fn lock(&self) -> Result<Flock<File>, PowerError> {
        let unusable = |error: io::Error| {
            PowerError::unusable(format!("the lock {}", self.lock.display()), error)
        };
        if let Some(folder) = self.lock.parent() {
            DirBuilder::new().recursive(true).mode(0o750).create(folder).map_err(unusable)?;
        }
        let queue_timeout = self.queue_timeout();
        let end = Instant::now() + queue_timeout;
        let mut open = OpenOptions::new();
        open.read(true).write(true).create(true).truncate(false);
        let mut file = open.open(&self.lock).map_err(unusable)?;
        loop {
            file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => return Ok(lock),
                Err((file, Errno::EWOULDBLOCK)) => file,
                Err((_, errno)) => return Err(unusable(errno.into())),
            };
            if Instant::now() >= end {
                return Err(PowerError::Busy { what: self.what.clone(), timeout: queue_timeout });
            }
            sleep(LOOK).await;
        }
    }
}

/// Marks the end of a command.
fn stamp(file: &mut &File) -> io::Result<()> {
    use std::io::{Seek as _, SeekFrom, Write as _};
    file.seek(SeekFrom::Start(0))?;
    file.write_all(b"last command: see the time of this file\n")?;
    file.set_modified(SystemTime::now())
}
