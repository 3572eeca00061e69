//! Serial ports behind a real server: ser2net, which opens a pseudo-terminal.

use std::fs::{self, File};
use std::future::poll_fn;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Poll;
use std::time::Duration;

use jig_model::protocol::{LineControl, Transport, TransportEvent};
use jig_model::rig_file::Endpoint;
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use tempfile::TempDir;

use super::test_pty::TestPty;
use super::{ReconnectingTransport, SerialError, SerialPort};

/// Only a failing test waits as long.
const LONG: Duration = Duration::from_secs(120);

/// A target behind a server of serial ports.
struct Bench {
    folder: TempDir,
    address: String,
    target: File,
    /// Kept open and raw, so that nothing is echoed while the server is away.
    near: File,
    server: Option<Child>,
}

impl Bench {
    fn new(accepter: &str) -> Self {
        let TestPty { master: target, slave: near, path } = TestPty::open();
        let device = path.display();
        let mut settings = tcgetattr(&near).unwrap();
        settings.make_raw();
        tcsetattr(&near, OptionalActions::Now, &settings).unwrap();
        // An address of its own on the loopback network: no other process can have the port.
        static NEXT: AtomicU8 = AtomicU8::new(2);
        let [.., high, low] = std::process::id().to_be_bytes();
        let host = format!("127.{high}.{low}.{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = tempfile::tempdir().unwrap();
        let config = format!(
            "connection: &port\n  accepter: {accepter},{host},3001\n  \
             connector: serialdev,{device},115200n81,local\n"
        );
        fs::write(folder.path().join("ser2net.yaml"), config).unwrap();
        let mut bench =
            Self { folder, address: format!("{host}:3001"), target, near, server: None };
        bench.start();
        bench
    }

    /// Starts the server; it does not outlive the thread of its test.
    fn start(&mut self) {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "/usr/sbin/ser2net", "-n", "-c"]);
        command.arg(self.folder.path().join("ser2net.yaml"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.server = Some(command.spawn().unwrap());
    }

    fn stop(&mut self) {
        if let Some(mut server) = self.server.take() {
            server.kill().unwrap();
            server.wait().unwrap();
        }
    }

    /// Passes every byte there is both ways.
    async fn talk(&mut self, transport: &mut ReconnectingTransport) {
        let all: Vec<u8> = (0..=255).collect();
        write(transport, &all).await;
        let mut target = self.target.try_clone().unwrap();
        // What the target hears proves that the server has opened the port.
        let heard = tokio::task::spawn_blocking(move || {
            let mut heard = [0; 256];
            target.read_exact(&mut heard).unwrap();
            heard
        });
        assert_eq!(heard.await.unwrap()[..], all);
        self.target.write_all(&all).unwrap();
        let mut seen = Vec::new();
        while seen.len() < all.len() {
            let mut buf = [0; 100];
            let count = poll_fn(|cx| transport.poll_read(cx, &mut buf)).await.unwrap();
            seen.extend_from_slice(&buf[..count]);
        }
        assert_eq!(seen, all);
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn write(transport: &mut ReconnectingTransport, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let count = poll_fn(|cx| transport.poll_write(cx, bytes)).await.unwrap();
        bytes = &bytes[count..];
    }
}

async fn event(transport: &mut ReconnectingTransport) -> TransportEvent {
    poll_fn(|cx| match transport.poll_read(cx, &mut [0; 64]) {
        Poll::Pending => transport.event().map_or(Poll::Pending, Poll::Ready),
        Poll::Ready(read) => panic!("nothing was sent, but {read:?}"),
    })
    .await
}

/// A server passes bytes on; killed and started again, it is met again.
async fn outlasts(end: fn(String) -> Endpoint, accepter: &str) -> Bench {
    let mut bench = Bench::new(accepter);
    let port = SerialPort::new(end(bench.address.clone()), 57_600);
    let mut transport = ReconnectingTransport::open(port, LONG).await.unwrap();
    bench.talk(&mut transport).await;
    bench.stop();
    let TransportEvent::Lost(why) = event(&mut transport).await else { panic!("no loss") };
    assert!(why.starts_with(&bench.address), "{why}");
    bench.start();
    assert_eq!(event(&mut transport).await, TransportEvent::Back);
    bench.talk(&mut transport).await;
    bench
}

#[tokio::test]
async fn a_raw_server_is_a_port_that_may_restart() {
    outlasts(Endpoint::Tcp, "tcp").await;
}

#[tokio::test]
async fn a_server_that_speaks_rfc_2217_sets_the_speed_and_may_restart() {
    let mut bench = outlasts(Endpoint::Rfc2217, "telnet(rfc2217),tcp").await;
    assert_eq!(tcgetattr(&bench.near).unwrap().output_speed(), 57_600);
    // What is done to the line goes with what is read, and the bytes stay whole.
    let port = SerialPort::new(Endpoint::Rfc2217(bench.address.clone()), 57_600);
    let mut transport = ReconnectingTransport::open(port, LONG).await.unwrap();
    transport.control(LineControl::Dtr(true)).await.unwrap();
    let over = transport.control(LineControl::Break);
    assert!(transport.control(LineControl::Rts(false)).await.is_err());
    tokio::select! {
        over = over => over.unwrap(),
        read = poll_fn(|cx| transport.poll_read(cx, &mut [0; 8])) => panic!("{read:?}"),
    }
    bench.talk(&mut transport).await;
}

/// A server that lets its port be controlled, reports two kinds of errors, and writes down what
/// it is told.
fn scribe() -> (String, std::thread::JoinHandle<Vec<Vec<u8>>>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        // DO COM-PORT; the speed is set; overrun and framing error; framing error.
        client.write_all(b"\xff\xfd\x2c\xff\xfa\x2c\x65\0\0\xe1\0\xff\xf0").unwrap();
        client.write_all(b"\xff\xfa\x2c\x6a\x0a\xff\xf0\xff\xfa\x2c\x6a\x08\xff\xf0").unwrap();
        let mut heard = Vec::new();
        client.read_to_end(&mut heard).unwrap();
        let commands = heard.split(|&byte| byte == 0xf0).filter_map(|part| {
            let at = part.windows(3).position(|three| three == [0xff, 0xfa, 0x2c])?;
            Some(part[at + 3..].strip_suffix(b"\xff").unwrap().to_vec())
        });
        commands.collect()
    });
    (address, server)
}

#[tokio::test]
async fn modem_lines_are_left_alone_until_somebody_asks() {
    for asked in [false, true] {
        let (address, server) = scribe();
        let port = SerialPort::new(Endpoint::Rfc2217(address), 57_600);
        let mut transport = ReconnectingTransport::open(port, LONG).await.unwrap();
        assert_eq!(event(&mut transport).await, TransportEvent::Overrun(None));
        // Both at once or one by one, as they come.
        let mut garbled = 0;
        while garbled < 2 {
            let TransportEvent::Garbled(count) = event(&mut transport).await else {
                panic!("no error")
            };
            garbled += count;
        }
        let lines = [
            LineControl::Dtr(true),
            LineControl::Dtr(false),
            LineControl::Rts(true),
            LineControl::Rts(false),
        ];
        for what in lines.into_iter().filter(|_| asked) {
            transport.control(what).await.unwrap();
        }
        // What was asked for goes with the next thing that is written.
        write(&mut transport, b"x").await;
        drop(transport);
        let told = server.join().unwrap();
        // SET-CONTROL, and the values of RFC 2217 for DTR and RTS.
        let controls: Vec<&[u8]> =
            told.iter().filter(|command| command[0] == 5).map(Vec::as_slice).collect();
        let wanted: &[[u8; 2]] = if asked { &[[5, 8], [5, 9], [5, 11], [5, 12]] } else { &[] };
        assert_eq!(controls, wanted, "{told:?}");
        assert!(told.contains(&vec![1, 0, 0, 0xe1, 0]), "its speed is set: {told:?}");
    }
}

#[tokio::test]
async fn a_server_without_control_of_the_port_is_refused() {
    let bench = Bench::new("telnet,tcp");
    // Waits for the server, which a raw connection shows.
    let raw = SerialPort::new(Endpoint::Tcp(bench.address.clone()), 0);
    drop(ReconnectingTransport::open(raw, LONG).await.unwrap());
    let port = SerialPort::new(Endpoint::Rfc2217(bench.address.clone()), 57_600);
    let error = ReconnectingTransport::open(port, LONG).await.unwrap_err();
    assert!(matches!(error, SerialError::Refused { .. }), "{error}");
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let port = SerialPort::new(Endpoint::Rfc2217(address.clone()), 57_600);
    let timeout = Duration::from_millis(50);
    let error = ReconnectingTransport::open(port, timeout).await.unwrap_err();
    assert_eq!(error.to_string(), format!("{address} was not there within 50ms"));
}

#[tokio::test]
async fn a_port_that_comes_only_to_go_gets_no_new_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("port");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    // As a server does whose port is taken.
    let server = std::thread::spawn(move || {
        for client in listener.incoming() {
            let mut word = [0; 3];
            let _ = client.as_ref().unwrap().set_nonblocking(true);
            if matches!(client.unwrap().read(&mut word), Ok(3)) {
                return;
            }
        }
    });
    let port = SerialPort::new(Endpoint::Unix(path.to_str().unwrap().to_owned()), 0);
    let mut transport =
        ReconnectingTransport::open(port, Duration::from_millis(200)).await.unwrap();
    let mut losses = 0;
    let end = poll_fn(|cx| {
        let read = transport.poll_read(cx, &mut [0; 64]);
        losses += u32::from(matches!(transport.event(), Some(TransportEvent::Lost(_))));
        read
    });
    let error = end.await.unwrap_err();
    assert!(losses >= 1 && error.to_string().contains(" come"), "{losses}: {error}");
    // It stays gone, whatever the server does.
    assert!(poll_fn(|cx| transport.poll_read(cx, &mut [0; 64])).await.is_err());
    while !server.is_finished() {
        let Ok(mut client) = std::os::unix::net::UnixStream::connect(&path) else { break };
        let _ = client.write_all(b"end");
        tokio::task::yield_now().await;
    }
    server.join().unwrap();
}

#[tokio::test]
async fn a_socket_of_this_host_is_a_port() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("port");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let port = SerialPort::new(Endpoint::Unix(path.to_str().unwrap().to_owned()), 0);
    let mut transport = ReconnectingTransport::open(port, LONG).await.unwrap();
    let (mut server, _) = listener.accept().unwrap();
    write(&mut transport, b"in\xff").await;
    let mut three = [0; 3];
    server.read_exact(&mut three).unwrap();
    assert_eq!(&three, b"in\xff");
    server.write_all(b"out\xff").unwrap();
    let mut buf = [0; 16];
    let count = poll_fn(|cx| transport.poll_read(cx, &mut buf)).await.unwrap();
    assert_eq!(&buf[..count], b"out\xff");
}
