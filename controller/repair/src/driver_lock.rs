//! The right to drive a run, which one process at a time has.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// How often the lock is tried. A process that only asks whether a run is driven holds it, too, for
/// the time of two system calls.
const TRIES: usize = 20;
const PAUSE: Duration = Duration::from_millis(10);

/// Says why a run cannot be driven by this process.
#[derive(Debug, thiserror::Error)]
pub enum DriverLockError {
    /// Another process drives it.
    #[error("process {0} drives this run")]
    Driven(String),
    /// The lock cannot be taken.
    #[error("could not lock {path}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// The right to drive a run, for as long as it is held. The kernel gives it back with the process.
#[derive(Debug)]
pub struct DriverLock(#[expect(dead_code, reason = "that it is held is what counts")] File);

impl DriverLock {
    /// Takes the right to drive the run of a folder, and leaves the number of this process there.
    ///
    /// # Errors
    /// Another process has it, or there is no such folder.
    pub fn take(folder: &Path) -> Result<Self, DriverLockError> {
        let path = path_in(folder);
        let failed = |source| DriverLockError::File { path: path.clone(), source };
        let mut file = File::options().create(true).append(true).open(&path).map_err(failed)?;
        for attempt in 1.. {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if attempt < TRIES => sleep(PAUSE),
                Err(TryLockError::WouldBlock) => {
                    let holder = fs::read_to_string(&path).map_err(failed)?;
                    return Err(DriverLockError::Driven(holder.trim().to_owned()));
                }
                Err(TryLockError::Error(source)) => return Err(failed(source)),
            }
        }
        file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(failed)?;
        Ok(Self(file))
    }

    /// Tells whether a process drives the run of a folder.
    pub fn is_held(folder: &Path) -> bool {
        let file = File::open(path_in(folder));
        file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }
}

fn path_in(folder: &Path) -> PathBuf {
    folder.join("driver.lock")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_at_a_time_has_the_right_to_drive() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!DriverLock::is_held(folder.path()));
        let lock = DriverLock::take(folder.path()).unwrap();
        assert!(DriverLock::is_held(folder.path()));
        let refused = DriverLock::take(folder.path()).unwrap_err().to_string();
        assert_eq!(refused, format!("process {} drives this run", std::process::id()));
        drop(lock);
        assert!(!DriverLock::is_held(folder.path()));
        // Who asks whether a run is driven does not keep a driver from it.
        let asked = File::open(path_in(folder.path())).unwrap();
        asked.try_lock_shared().unwrap();
        let asking = std::thread::spawn(move || {
            sleep(PAUSE);
            drop(asked);
        });
        DriverLock::take(folder.path()).unwrap();
        asking.join().unwrap();
        let absent = DriverLock::take(&folder.path().join("absent")).unwrap_err();
        assert!(matches!(absent, DriverLockError::File { .. }));
    }
}
