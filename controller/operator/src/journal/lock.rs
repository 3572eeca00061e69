//! The right to drive a session, which one process at a time has.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Says why a session cannot be driven by this process.
#[derive(Debug, thiserror::Error)]
pub enum SessionLockError {
    /// Another process drives it.
    #[error("process {0} drives this session")]
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

/// The right to drive a session, for as long as it is held. The kernel gives it back with the process.
#[derive(Debug)]
pub struct SessionLock(#[expect(dead_code, reason = "that it is held is what counts")] File);

impl SessionLock {
    /// Takes the right to drive the session of a folder, and leaves the number of this process there.
    ///
    /// # Errors
    /// Another process has it, or there is no such folder.
    pub fn take(folder: &Path) -> Result<Self, SessionLockError> {
        let path = folder.join("driver.lock");
        let failed = |source| SessionLockError::File { path: path.clone(), source };
        let mut file = File::options().create(true).append(true).open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = fs::read_to_string(&path).map_err(failed)?;
                return Err(SessionLockError::Driven(holder.trim().to_owned()));
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(failed)?;
        Ok(Self(file))
    }
}
