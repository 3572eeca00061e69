//! `jig serve --metrics`: what Prometheus is told, and what other callers are.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::capture_service::{CaptureService, captured, named, rig};
use crate::manifest::elf;
use crate::workshop::{DEADLINE, Slot, Workshop, until};

/// Sends a request and returns all of the answer.
fn ask(mut stream: impl Read + Write, request: &[u8]) -> String {
    // The server may hang up before it has read all.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn get(socket: &Path) -> BTreeMap<String, f64> {
    let stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let answer = ask(stream, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    let samples = body.lines().filter(|line| !line.starts_with("# "));
    let samples = samples.map(|line| {
        let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
        (name.to_owned(), value.parse().unwrap_or_else(|_| panic!("{line}")))
    });
    samples.collect()
}

#[test]
fn runs_places_leases_and_consoles_are_counted() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let (mut far, _near, link) = named(&workshop, "port");
    let emulated = "[[place]]\nname = \"desk\"\nboard = \"microbit\"\n[place.emulator]\n";
    workshop.write("rig.toml", format!("{}{emulated}", rig(&[("bench", &link)])));
    let socket = workshop.path("metrics.sock");
    let service = CaptureService::with(&workshop, |command| {
        command.arg("--metrics").arg(format!("unix:{}", socket.display()));
    });
    service.state("bench", "captured");
    let mode = fs::metadata(&socket).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let first = get(&socket);
    assert_eq!(first["jig_places{state=\"healthy\"}"], 2.0, "{first:?}");
    assert!(first["process_resident_memory_bytes"] > 1e6);
    let bytes = "jig_console_captured_bytes_total{place=\"bench\",console=\"uart0\"}";
    assert_eq!(first[bytes], 0.0);

    far.write_all(b"twelve bytes").unwrap();
    until("what is printed", || (captured(&workshop, "bench") == 12).then_some(()));
    workshop.run(["run", "-b", "desk", &elf("microbit", "unity-pass")]).says(0, &[]);
    workshop.run(["run", "-b", "desk", &elf("microbit", "unity-fail")]).says(1, &[]);
    workshop.run(["lease", "acquire", "-b", "bench", "--ttl", "1h"]).says(0, &[]);
    // An answer is given again for a moment.
    let now = until("all of that", || Some(get(&socket)).filter(|now| now[bytes] == 12.0));
    let counts: Vec<_> =
        now.iter().filter(|(name, _)| name.starts_with("jig_runs_total")).collect();
    assert_eq!(counts.len(), 2, "{now:?}");
    assert_eq!(now["jig_runs_total{verdict=\"fail\",cause=\"test_failed\"}"], 1.0, "{now:?}");
    assert_eq!(now["jig_run_duration_seconds_bucket{le=\"+Inf\"}"], 2.0);
    assert_eq!(now["jig_run_duration_seconds_count"], 2.0);
    assert_eq!(now["jig_place_leased{place=\"bench\"}"], 1.0);
    assert_eq!(now["jig_lease_queue_length"], 0.0);
    service.stop().says(0, &[]);
    assert!(!socket.exists());
}

#[test]
fn hostile_callers_get_no_metrics_and_harm_none() {
    let workshop = Workshop::new();
    workshop.write("kept", "no socket");
    // A port that was free a moment ago, on an address of this process.
    let [.., high, low] = std::process::id().to_be_bytes();
    let address = format!("127.{high}.{low}.201:9464");
    workshop.run(["serve", "--metrics", "0.0.0.0:9464"]).says(2, &["127.0.0.1:PORT"]);
    let kept = format!("unix:{}", workshop.path("kept").display());
    workshop.run(["serve", "--metrics", &kept]).says(75, &["metrics cannot be offered"]);
    assert_eq!(fs::read_to_string(workshop.path("kept")).unwrap(), "no socket");

    let service = CaptureService::with(&workshop, |command| {
        command.args(["--metrics", &address]);
    });
    let call = |request: &[u8]| {
        let stream = TcpStream::connect(&address).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        ask(stream, request)
    };
    let long = [b"GET /".as_slice(), &[b'a'; 100_000], b" HTTP/1.1\r\n\r\n"].concat();
    let fields = format!("GET /metrics HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(200));
    for (request, status) in [
        (
            &b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello"[..],
            "405",
        ),
        (b"GET /../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", "404"),
        (b"GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n", "403"),
        (b"\x16\x03\x01\x00\xff garbage\r\n\r\n", "400"),
        (fields.as_bytes(), "431"),
        (b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", "200"),
    ] {
        let answer = call(request);
        let told = answer.lines().next().unwrap_or_default();
        assert!(told.contains(status), "{status}: {told} to {}", request.escape_ascii());
    }
    assert!(!call(&long).contains(" 200 "));
    // Callers that send nothing are hung up on, and one who asks gets through.
    let silent: Vec<_> = (0..40).map(|_| TcpStream::connect(&address).unwrap()).collect();
    assert!(call(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").contains(" 200 "));
    drop(silent);
    service.stop().says(0, &[]);
}
