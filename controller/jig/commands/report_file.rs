//! The file that a report is written to: a regular file, a device, or a pipe with a reader.
//!
//! Opening it never blocks: a FIFO without a reader is refused. A reader that does not read holds up
//! the end of the command, which a repeated signal ends.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::unistd::{AccessFlags, access};

/// Names of standard output. It is written as a stream: opened again, a regular file behind it
/// would be truncated, and a socket is refused.
const STANDARD_OUTPUT: [&str; 4] = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

/// Tells whether a path means standard output.
pub(super) fn is_standard_output(path: &Path) -> bool {
    STANDARD_OUTPUT.iter().any(|name| path == Path::new(name))
}

/// Looks whether a report can be written, before there is one. The file is neither created nor
/// truncated; a FIFO may still get its reader.
///
/// # Errors
/// It is a folder or a socket, or may not be written; or its folder is missing.
pub(super) fn check(path: &Path) -> io::Result<()> {
    if is_standard_output(path) {
        return Ok(());
    }
    match std::fs::metadata(path) {
        Ok(about) => {
            refuse(about.file_type())?;
            Ok(access(path, AccessFlags::W_OK)?)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            Ok(access(folder.unwrap_or(Path::new(".")), AccessFlags::W_OK | AccessFlags::X_OK)?)
        }
        Err(error) => Err(error),
    }
}

/// Writes a report over what the file holds.
///
/// # Errors
/// It is a folder, a socket or a FIFO without a reader, or what the system says.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    open(path)?.write_all(text.as_bytes())
}

fn open(path: &Path) -> io::Result<File> {
    let opened = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .custom_flags((OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits())
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) => {
            let kind = std::fs::metadata(path).map_or(None, |about| Some(about.file_type()));
            kind.map_or(Ok(()), refuse)?;
            let unread = error.raw_os_error() == Some(nix::errno::Errno::ENXIO as i32)
                && kind.is_some_and(|kind| kind.is_fifo());
            return Err(if unread { invalid("it is a FIFO that no program reads") } else { error });
        }
    };
    // Only opening must not block: a reader takes a long report in parts.
    let flags = OFlag::from_bits_retain(fcntl(&file, FcntlArg::F_GETFL)?);
    fcntl(&file, FcntlArg::F_SETFL(flags - OFlag::O_NONBLOCK))?;
    Ok(file)
}

fn refuse(kind: std::fs::FileType) -> io::Result<()> {
    match kind {
        _ if kind.is_dir() => Err(invalid("it is a folder")),
        _ if kind.is_socket() => Err(invalid("it is a socket")),
        _ => Ok(()),
    }
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::fd::AsRawFd as _;
    use std::os::unix::net::UnixListener;

    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;

    /// Longer than a pipe holds.
    const LONG: usize = 200_000;

    #[test]
    fn a_regular_file_is_written_over_and_only_then() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("report.xml");
        check(&file).unwrap();
        assert!(!file.exists());
        std::fs::write(&file, "an older, longer report").unwrap();
        check(&file).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "an older, longer report");
        write(&file, "new").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
        write(Path::new("/dev/null"), "new").unwrap();
        assert_eq!(
            write(Path::new("/dev/full"), "new").unwrap_err().kind(),
            io::ErrorKind::StorageFull
        );
    }

    #[test]
    fn a_path_that_takes_no_report_is_refused_before_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let _listener = UnixListener::bind(&socket).unwrap();
        for (path, why) in [
            (folder.path().to_owned(), "it is a folder"),
            (socket, "it is a socket"),
            (folder.path().join("missing/report.xml"), "No such file"),
        ] {
            let error = check(&path).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
            let error = write(&path, "text").unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_pipe_is_written_if_it_has_a_reader() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        mkfifo(&fifo, Mode::S_IRWXU).unwrap();
        // Its reader may come during the run.
        check(&fifo).unwrap();
        let error = write(&fifo, "text").unwrap_err().to_string();
        assert_eq!(error, "it is a FIFO that no program reads");
        let text = "x".repeat(LONG);
        let path = fifo.clone();
        let reader = std::thread::spawn(move || std::fs::read_to_string(path).unwrap());
        while write(&fifo, &text).is_err() {
            std::thread::yield_now();
        }
        assert!(reader.join().unwrap() == text);
        // As of a process substitution.
        let (mut reader, writer) = io::pipe().unwrap();
        let path = format!("/dev/fd/{}", writer.as_raw_fd());
        check(Path::new(&path)).unwrap();
        write(Path::new(&path), "text").unwrap();
        drop(writer);
        let mut read = String::new();
        reader.read_to_string(&mut read).unwrap();
        assert_eq!(read, "text");
    }

    #[test]
    fn standard_output_has_several_names() {
        for name in ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
            assert!(is_standard_output(Path::new(name)), "{name}");
            check(Path::new(name)).unwrap();
        }
        assert!(!is_standard_output(Path::new("./-")));
    }
}
