//! Files of the user that are read: bounded, and regular files only.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::fcntl::OFlag;

/// Reads a text. Bytes that are not UTF-8 are replaced; they can be in comments only.
///
/// # Errors
/// The file is missing, unreadable, too long, or not a regular file.
pub(super) fn read_text(path: &Path, most: usize) -> io::Result<String> {
    // A FIFO without a writer would hold up a plain open.
    let file = File::options().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    file.take(limit).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        let why = format!("it is longer than {most} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads a text; a missing file is no error.
///
/// # Errors
/// As [`read_text`], except for a missing file.
pub(super) fn read_text_if_any(path: &Path, most: usize) -> io::Result<Option<String>> {
    match read_text(path, most) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use nix::sys::stat::Mode;

    use super::*;

    #[test]
    fn only_a_short_regular_file_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        assert_eq!(read_text_if_any(&path, 4).unwrap(), None);
        std::fs::write(&path, b"ab\xff").unwrap();
        assert_eq!(read_text(&path, 4).unwrap(), "ab\u{fffd}");
        assert_eq!(read_text(&path, 2).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        let fifo = dir.path().join("fifo");
        nix::unistd::mkfifo(&fifo, Mode::S_IRWXU).unwrap();
        assert_eq!(read_text(&fifo, 4).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert!(read_text_if_any(dir.path(), 4).is_err());
    }
}
