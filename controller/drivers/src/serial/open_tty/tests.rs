//! What the crate does alone, and what is done beside it; what is no port, or held by another
//! program.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::task::Waker;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::super::SerialError;
use super::super::test_pty::{TestPty, wait_readable};
use super::*;

fn open(path: &Path) -> Result<OpenTty, TtyError> {
    OpenTty::open(path, 115_200, Parity::None)
}

/// A stream as the crate opens it.
fn plain(path: &Path) -> SerialStream {
    tokio_serial::new(path.to_str().unwrap(), 115_200).open_native_async().unwrap()
}

#[tokio::test]
async fn read_asks_the_system_where_the_stream_remembers_that_nothing_was_there() {
    let TestPty { mut master, slave, path } = TestPty::open();
    let mut tty = open(&path).unwrap();
    let mut cx = Context::from_waker(Waker::noop());
    let mut buf = [0; 8];
    assert!(tty.poll_read(&mut cx, &mut buf).is_pending());
    master.write_all(b"x").unwrap();
    wait_readable(&slave);
    // The event loop had no turn since, so the stream does not know.
    let mut read = ReadBuf::new(&mut buf);
    assert!(Pin::new(&mut tty.stream).poll_read(&mut cx, &mut read).is_pending());
    assert!(matches!(tty.poll_read(&mut cx, &mut buf), Poll::Ready(Ok(1))));
    assert!(tty.poll_read(&mut cx, &mut buf).is_pending());
}

#[tokio::test]
async fn close_leaves_dtr_alone_and_no_garbled_byte_is_dropped() {
    let TestPty { master: _master, slave, path } = TestPty::open();
    let bits = || {
        let settings = tcgetattr(&slave).unwrap();
        let hupcl = settings.control_modes.contains(ControlModes::HUPCL);
        (hupcl, settings.input_modes.contains(InputModes::IGNPAR))
    };
    let mut settings = tcgetattr(&slave).unwrap();
    settings.control_modes |= ControlModes::HUPCL;
    tcsetattr(&slave, OptionalActions::Now, &settings).unwrap();
    drop(plain(&path));
    assert_eq!(bits(), (true, true), "the crate alone");
    let _tty = open(&path).unwrap();
    assert_eq!(bits(), (false, false));
}

#[tokio::test]
async fn port_stays_exclusive_for_whoever_goes_on_with_it() {
    let TestPty { master: _master, slave, path } = TestPty::open();
    let is_exclusive = || is_exclusive(slave.as_fd()).unwrap();
    for restored in [false, true] {
        let stream = plain(&path);
        let fd = same_open_file(&stream).unwrap();
        let lent = fd.try_clone().unwrap();
        assert!(is_exclusive());
        drop(OpenTty { stream, beside: Beside { fd, exclusive: restored } });
        assert_eq!(is_exclusive(), restored, "the crate alone lifts it");
        assert!(matches!(open(&path), Err(TtyError::Taken { .. })), "the lock goes with it");
        drop(lent);
    }
}

#[tokio::test]
async fn pseudo_terminal_is_locked_and_not_left_exclusive() {
    let TestPty { master: _master, slave, path } = TestPty::open();
    let tty = open(&path).unwrap();
    // A killed program would leave it so.
    assert!(!is_exclusive(slave.as_fd()).unwrap());
    assert!(slave.try_lock().is_err());
    drop(tty);
    assert!(!is_exclusive(slave.as_fd()).unwrap());
    slave.try_lock().unwrap();
}

#[tokio::test]
async fn lock_taken_since_the_look_is_respected() {
    let TestPty { master: _master, slave, path } = TestPty::open();
    let seen = look(&path).unwrap();
    slave.try_lock().unwrap();
    let error = OpenTty::set_up(&path, &seen, 115_200, Parity::None).unwrap_err();
    assert!(matches!(error, TtyError::Taken { by: Some(_), .. }), "{error}");
}

#[tokio::test]
async fn exclusive_port_of_another_program_is_not_shared_with_it() {
    let TestPty { master: _master, slave, path } = TestPty::open();
    let mut other = Command::new("setpriv");
    other.args(["--pdeathsig", "KILL", "sleep", "infinity"]).stdin(slave.try_clone().unwrap());
    let mut other = other.spawn().unwrap();
    // An open file without a lock or `TIOCEXCL` keeps no process out.
    drop(open(&path).unwrap());
    ioctl_tiocexcl(&slave).unwrap();
    let error = open(&path).unwrap_err();
    let who = format!("(pid {})", other.id());
    assert!(error.to_string().ends_with(&who), "{error}");
    other.kill().unwrap();
    other.wait().unwrap();
    ioctl_tiocnxcl(&slave).unwrap();
    open(&path).unwrap();
}

#[tokio::test]
async fn port_that_goes_while_it_is_opened_may_come_back() {
    let TestPty { master, slave, path } = TestPty::open();
    let seen = look(&path).unwrap();
    drop(master);
    let error = OpenTty::set_up(&path, &seen, 115_200, Parity::None).unwrap_err();
    assert!(
        matches!(&error, TtyError::Settings { source, .. }
        if source.raw_os_error() == Some(libc::EIO)),
        "{error:?}"
    );
    assert!(SerialError::from(error).may_pass());
    drop((seen, slave));
    let error = open(&path).unwrap_err();
    assert!(matches!(error, TtyError::Open { .. }), "{error:?}");
    assert!(SerialError::from(error).may_pass());
}

#[tokio::test]
async fn path_to_something_else_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    File::create(path("file")).unwrap();
    fs::create_dir(path("folder")).unwrap();
    // Would block, or wake a program at its other end.
    mkfifo(&path("fifo"), Mode::S_IRWXU).unwrap();
    let _listener = UnixListener::bind(path("socket")).unwrap();
    symlink("/dev/null", path("link")).unwrap();
    for name in ["file", "folder", "fifo", "socket", "link"] {
        let error = open(&path(name)).unwrap_err();
        assert!(matches!(error, TtyError::NotTty { .. }), "{name}: {error:?}");
        assert_eq!(error.to_string(), format!("{} is no serial port", path(name).display()));
        assert!(!SerialError::from(error).may_pass(), "{name}");
    }
    symlink(path("gone"), path("dangling")).unwrap();
    for name in ["gone", "dangling"] {
        let error = open(&path(name)).unwrap_err();
        assert!(matches!(error, TtyError::Open { .. }), "{name}: {error:?}");
        assert!(SerialError::from(error).may_pass(), "{name}");
    }
}

#[tokio::test]
async fn parity_that_the_port_does_not_have_is_refused() {
    let TestPty { master: _master, slave: _slave, path } = TestPty::open();
    for (parity, name) in [(Parity::Even, "even"), (Parity::Odd, "odd")] {
        let error = OpenTty::open(&path, 9600, parity).unwrap_err();
        assert!(matches!(error, TtyError::Parity { .. }), "{error:?}");
        assert!(error.to_string().ends_with(&format!("to {name} parity")), "{error}");
        assert!(!SerialError::from(error).may_pass());
    }
    open(&path).unwrap();
}

#[test]
fn device_without_its_rights_is_waited_for_only_after_a_plug_in() {
    let denied = |kind: io::ErrorKind| {
        let error = TtyError::Open { path: "/dev/x".into(), source: kind.into() };
        let error = SerialError::from(error);
        (error.may_pass(), error.is_denied())
    };
    assert_eq!(denied(io::ErrorKind::PermissionDenied), (false, true));
    assert_eq!(denied(io::ErrorKind::NotFound), (true, false));
}
