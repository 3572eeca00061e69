//! Files that a user names, read whole.

use std::fs::{File, FileType, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::OFlag;

/// Opens a regular file.
///
/// A device may have no end, and a FIFO may never have a writer, so both are refused; opening does
/// not wait for a writer.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] if it is no regular file, or what the system says.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags((OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits())
        .open(path)
        .map_err(|error| explained(path, error))?;
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !kind.is_file() {
        return Err(no_file(kind));
    }
    Ok(file)
}

/// Says what it is that cannot be opened at all: a socket, or a device without a driver.
fn explained(path: &Path, error: io::Error) -> io::Error {
    let special = path.metadata().ok().map(|about| about.file_type());
    let special = special.filter(|kind| !kind.is_file() && !kind.is_dir());
    match (error.raw_os_error().map(Errno::from_raw), special) {
        (Some(Errno::ENXIO | Errno::ENODEV), Some(kind)) => no_file(kind),
        _ => error,
    }
}

fn no_file(kind: FileType) -> io::Error {
    let what = match kind {
        kind if kind.is_fifo() => "a FIFO",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    };
    io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}, no file"))
}

/// Reads a regular file of at most `limit` bytes.
///
/// # Errors
/// [`io::ErrorKind::FileTooLarge`] beyond the limit, also if the file grows meanwhile, or as
/// [`open_regular`].
pub fn read_whole(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let about = file.metadata()?;
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let size = about.len().max(bytes.len() as u64);
        let why = format!("it has {size} bytes, and at most {limit} are read");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::Mode;

    #[test]
    fn only_regular_files_within_the_limit_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("image.bin");
        std::fs::write(&file, b"four").unwrap();
        assert_eq!(read_whole(&file, 4).unwrap(), b"four");
        assert_eq!(read_whole(&file, 3).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(read_whole(folder.path(), 9).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        let fifo = folder.path().join("fifo");
        nix::unistd::mkfifo(&fifo, Mode::S_IRWXU).unwrap();
        for endless in [fifo.as_path(), Path::new("/dev/zero")] {
            assert_eq!(read_whole(endless, 9).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert_eq!(read_whole(&socket, 9).unwrap_err().to_string(), "it is a socket, no file");
        let missing = read_whole(&folder.path().join("none"), 9).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
