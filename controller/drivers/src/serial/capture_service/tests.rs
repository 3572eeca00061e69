//! Both ends of the socket in one process, over real pseudo-terminals.

use std::fs::{self, File};
use std::future::poll_fn;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jig_model::capture_service::{
    CaptureAnswer, CaptureRequest, LoanPosition, MOST_LINE, Returned, WriterEvent, WriterOrder,
};
use jig_model::protocol::{Handing, LineControl, Transport};
use jig_model::rig_file::{CaptureClient, ConsoleTransport, Endpoint};
use rustix::termios::ioctl_tiocexcl;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixListener;

use super::{CaptureServiceError, Door, release_port, status, writer};
use crate::serial::test_pty::TestPty;
use crate::serial::tty_ioctl::is_exclusive;
use crate::serial::{ReconnectingTransport, SerialPort, TtyTransport};

/// Only a failing test waits as long.
const LONG: Duration = Duration::from_secs(120);

fn terminal() -> (File, PathBuf) {
    let TestPty { master, slave: _, path } = TestPty::open();
    (master, path)
}

fn client(socket: &Path) -> CaptureClient {
    let by = "a test".to_owned();
    CaptureClient { socket: socket.to_owned(), place: "bench".parse().unwrap(), by }
}

/// A port that may be kept, and what its capture services said of their logs.
fn port(tty: &Path, socket: &Path) -> (SerialPort, Arc<Mutex<Vec<LoanPosition>>>) {
    let transport = ConsoleTransport {
        console: "uart0".parse().unwrap(),
        end: Endpoint::Tty(tty.to_str().unwrap().to_owned()),
        baud: None,
        ready: None,
        timeout: None,
        capture: Some(client(socket)),
    };
    let told = Arc::<Mutex<Vec<_>>>::default();
    let seen = Arc::clone(&told);
    let tell = Arc::new(move |lent| seen.lock().unwrap().push(lent));
    (SerialPort::of_transport(&transport, 115_200, tell), told)
}

async fn read(transport: &mut dyn Transport, count: usize) -> Vec<u8> {
    let mut seen = vec![0; count];
    let mut at = 0;
    while at < count {
        at += poll_fn(|cx| transport.poll_read(cx, &mut seen[at..])).await.unwrap();
    }
    seen
}

#[tokio::test]
async fn a_transport_changes_hands_with_what_waits_in_it_and_back() {
    let folder = tempfile::tempdir().unwrap();
    // Longer than a socket's path may be.
    let deep = folder.path().join("d".repeat(120));
    fs::create_dir(&deep).unwrap();
    let socket = deep.join("capture service");
    // What another capture service has left.
    fs::write(&socket, "").unwrap();
    let door = Door::open(&socket).unwrap();
    let (mut target, path) = terminal();
    let mut kept = TtyTransport::open(&path, 115_200).unwrap();
    target.write_all(b"one").unwrap();
    assert_eq!(read(&mut kept, 3).await, b"one");
    target.write_all(b"two").unwrap();
    // As a port of this host is; a borrower that gives it back must leave it so.
    let Handing::Descriptor(tty) = kept.handing().unwrap() else { panic!("no descriptor") };
    ioctl_tiocexcl(&tty).unwrap();
    let (port, told) = port(&path, &socket);
    let lent = LoanPosition { file: 7, offset: 3 };
    let service = async {
        let mut caller = door.accept().await;
        assert_eq!(caller.pid().map(|pid| pid as u32), Some(std::process::id()));
        let request = caller.request().await.unwrap().unwrap();
        assert_eq!(request.by, "a test");
        assert!(matches!(request.ask, CaptureRequest::Transport { .. }), "{request:?}");
        let Handing::Descriptor(fd) = kept.handing().unwrap() else { panic!("no descriptor") };
        caller.answer(&CaptureAnswer::Transport(lent), Some(&fd)).await.unwrap();
        caller
    };
    let (transport, mut caller) = tokio::join!(ReconnectingTransport::open(port, LONG), service);
    let mut transport = transport.unwrap();
    assert_eq!(*told.lock().unwrap(), [lent]);
    assert_eq!(read(&mut transport, 3).await, b"two");
    assert_eq!(poll_fn(|cx| transport.poll_write(cx, b"in")).await.unwrap(), 2);
    // No other process gets it while it is lent, or after.
    assert!(TtyTransport::open(&path, 115_200).is_err());
    // A pseudo-terminal takes a break and has no modem lines.
    transport.control(LineControl::Break).await.unwrap();
    assert!(transport.control(LineControl::Dtr(true)).await.is_err());
    target.write_all(b"three").unwrap();
    drop(transport);
    assert_eq!(caller.next::<Returned>().await.unwrap(), Some(Returned { read: 3 }));
    assert_eq!(caller.next::<Returned>().await.unwrap(), None);
    assert_eq!(read(&mut kept, 5).await, b"three");
    assert!(is_exclusive(tty.as_fd()).unwrap());
    assert!(TtyTransport::open(&path, 115_200).is_err());
    drop(door);
    assert!(!socket.exists());
}

#[tokio::test]
async fn a_port_that_nobody_keeps_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let (mut target, path) = terminal();
    let dead = folder.path().join("dead");
    // Its capture service was killed: the file is there, and no process listens.
    drop(std::os::unix::net::UnixListener::bind(&dead).unwrap());
    for socket in [folder.path().join("none"), folder.path().join("no/folder"), dead] {
        let (port, told) = port(&path, &socket);
        let mut transport = ReconnectingTransport::open(port, LONG).await.unwrap();
        target.write_all(b"x").unwrap();
        assert_eq!(read(&mut transport, 1).await, b"x");
        assert!(told.lock().unwrap().is_empty());
        assert!(status(&client(&socket)).await.unwrap().is_none());
    }
    // One that does not keep it, and one that ends over the question.
    let socket = folder.path().join("capture service");
    let door = Door::open(&socket).unwrap();
    for answer in [Some(CaptureAnswer::NotCaptured), None] {
        let service = async {
            let mut caller = door.accept().await;
            caller.request().await.unwrap().unwrap();
            if let Some(answer) = answer {
                caller.answer(&answer, None).await.unwrap();
            }
        };
        let (port, _) = port(&path, &socket);
        let (transport, ()) = tokio::join!(ReconnectingTransport::open(port, LONG), service);
        target.write_all(b"y").unwrap();
        assert_eq!(read(&mut transport.unwrap(), 1).await, b"y");
    }
}

#[tokio::test]
async fn what_a_stranger_says_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("capture service");
    let listener = UnixListener::bind(&socket).unwrap();
    let endless = vec![b'['; MOST_LINE + 9000];
    let lines: [&[u8]; 5] = [
        b"{\"transport\":{\"file\":1,\"offset\":2}}\n",
        b"\"done\"\n",
        b"what?\n",
        b"[[[[\n",
        &endless,
    ];
    for line in lines {
        let stranger = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            // The asker may hang up before all of it is said.
            let _ = stream.write_all(line).await;
            stream
        };
        let wanted = "uart0".parse().unwrap();
        let at = client(&socket);
        let (asked, _stream) = tokio::join!(super::borrow(&at, &wanted), stranger);
        let error = asked.map(|_| ()).unwrap_err();
        assert!(
            matches!(error, CaptureServiceError::Stranger { .. } | CaptureServiceError::Talk(_)),
            "{error:?} after {:?}",
            &line[..line.len().min(20)]
        );
    }
}

#[tokio::test]
async fn the_pen_and_a_port_held_back_last_as_long_as_their_connections() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("capture service");
    let door = Door::open(&socket).unwrap();
    let (at, console) = (client(&socket), "uart0".parse().unwrap());
    let service = async {
        let mut caller = door.accept().await;
        let ask = caller.request().await.unwrap().unwrap().ask;
        assert!(matches!(ask, CaptureRequest::InputWriter { take: true, .. }), "{ask:?}");
        caller.answer(&CaptureAnswer::Done, None).await.unwrap();
        let order = caller.next::<WriterOrder>().await.unwrap().unwrap();
        assert_eq!(order, WriterOrder::Send(b"\0\xff\n".to_vec()));
        caller.tell(&WriterEvent::Done).await.unwrap();
        caller.tell(&WriterEvent::Taken("ben".to_owned())).await.unwrap();
    };
    let person = async {
        let mut writer = writer(&at, &console, true).await.unwrap().unwrap();
        writer.order(&WriterOrder::Send(b"\0\xff\n".to_vec())).await.unwrap();
        assert_eq!(writer.event().await.unwrap(), Some(WriterEvent::Done));
        assert_eq!(writer.event().await.unwrap(), Some(WriterEvent::Taken("ben".to_owned())));
        assert_eq!(writer.event().await.unwrap(), None);
    };
    tokio::join!(service, person);
    let service = async {
        let mut caller = door.accept().await;
        let ask = caller.request().await.unwrap().unwrap().ask;
        assert_eq!(ask, CaptureRequest::Release { tty: "/dev/x".to_owned() });
        caller.answer(&CaptureAnswer::Done, None).await.unwrap();
        caller
    };
    let (held, mut caller) = tokio::join!(release_port(&at, "/dev/x"), service);
    let held = held.unwrap().unwrap();
    {
        let mut more = Box::pin(caller.next::<Returned>());
        assert!(tokio::time::timeout(Duration::from_millis(1), &mut more).await.is_err());
        drop(held);
        assert_eq!(more.await.unwrap(), None);
    }
    let service = async {
        let mut caller = door.accept().await;
        caller.request().await.unwrap().unwrap();
        caller.answer(&CaptureAnswer::Refused("ben has it".to_owned()), None).await.unwrap();
    };
    let (refused, ()) = tokio::join!(writer(&at, &console, false), service);
    assert_eq!(refused.unwrap_err().to_string(), "jig serve refuses: ben has it");
}
