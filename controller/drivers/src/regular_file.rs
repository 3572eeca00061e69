//! Files that a user names, opened without waiting for another program.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::fcntl::OFlag;

/// Opens a regular file.
///
/// # Errors
/// It is a device, which may have no end, or a FIFO, which may have no writer; or what the system says.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let flags = (OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file")),
    }
}

/// Reads a regular file of at most `limit` bytes.
///
/// # Errors
/// [`io::ErrorKind::FileTooLarge`] beyond the limit, or as [`open_regular`].
pub(crate) fn read_regular(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let why = format!("it is larger than {limit} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_within_the_limit_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let (file, fifo) = (folder.path().join("file"), folder.path().join("fifo"));
        std::fs::write(&file, "four").unwrap();
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(read_regular(&file, 4).unwrap(), b"four");
        assert_eq!(read_regular(&file, 3).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        for endless in [&fifo, Path::new("/dev/zero"), folder.path()] {
            assert_eq!(read_regular(endless, 9).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }
}
