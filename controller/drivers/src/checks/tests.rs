//! Checks against made-up hosts: files, sizes and clocks that say what a test wants.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jig_model::Cause;
use jig_model::protocol::{CheckReport, HealthCheck, NoLedger};
use jig_model::rig_file::Endpoint;

use super::host::{handles, memory};
use super::*;
use crate::process::{ManagedProcess, SpawnRequest};
use crate::serial::test_pty::TestPty;

async fn run(mut check: Box<dyn HealthCheck>) -> CheckReport {
    let report = check.check().await;
    assert_eq!(report.check, check.name());
    report
}

#[tokio::test]
async fn room_on_the_disk_is_measured_where_the_folder_will_be() {
    let dir = tempfile::tempdir().unwrap();
    let later = dir.path().join("runs/that/are/not/there/yet");
    let report = run(free_disk(later.clone(), 1)).await;
    assert!(report.ok, "{report:?}");
    assert!(report.detail.ends_with(&format!("free below {}", dir.path().display())), "{report:?}");
    assert_eq!(free_disk(later, 1).cause(), Cause::StorageFailed);
    // The kernel's own files have no room at all.
    let report = run(free_disk("/proc/self/x".into(), 1 << 20)).await;
    assert!(!report.ok && report.detail.contains("1.0 MiB needed"), "{report:?}");
}

#[test]
fn a_small_disk_has_room_if_half_of_it_is_free() {
    const MIB: u64 = 1 << 20;
    for (whole, least, wanted) in
        [(4 * MIB, 512 * MIB, 2 * MIB), (MIB << 20, 512 * MIB, 512 * MIB), (0, MIB, MIB)]
    {
        assert_eq!(host::least_of(whole, least), wanted);
    }
}

#[tokio::test]
async fn this_host_has_memory_and_files() {
    assert!(run(free_memory(1)).await.ok);
    let report = run(free_memory(u64::MAX)).await;
    assert!(!report.ok && report.detail.starts_with("only "), "{report:?}");
    assert!(run(free_handles(1)).await.ok);
    assert!(!run(free_handles(u64::MAX)).await.ok);
}

#[test]
fn what_the_kernel_says_is_read_with_care() {
    let dir = tempfile::tempdir().unwrap();
    let meminfo = dir.path().join("meminfo");
    for (text, expected) in [
        ("MemTotal: 9 kB\nMemAvailable:     2048 kB\n", Ok("2.0 MiB of memory available")),
        ("MemAvailable:     1023 kB\n", Err("only 1023.0 KiB of memory available, 1.0 MiB needed")),
        ("MemAvailable: 99999999999999999999 kB\n", Err("does not say what is available")),
        ("MemAvailable: -3 kB\n", Err("does not say what is available")),
        ("\u{0}", Err("does not say what is available")),
    ] {
        fs::write(&meminfo, text).unwrap();
        match (memory(dir.path(), 1 << 20), expected) {
            (Ok(seen), Ok(expected)) => assert_eq!(seen, expected),
            (Err(seen), Err(expected)) => assert!(seen.to_string().ends_with(expected), "{seen}"),
            (seen, expected) => panic!("{seen:?} is not {expected:?}"),
        }
    }
    fs::create_dir_all(dir.path().join("self/fd")).unwrap();
    fs::create_dir_all(dir.path().join("sys/fs")).unwrap();
    for name in ["0", "1", "2"] {
        fs::write(dir.path().join("self/fd").join(name), "").unwrap();
    }
    let system = dir.path().join("sys/fs/file-nr");
    fs::write(&system, "90\t10\t100\n").unwrap();
    assert_eq!(handles(dir.path(), 13, 10).unwrap(), "10 files left to this process");
    let few = handles(dir.path(), 12, 10).unwrap_err().to_string();
    assert_eq!(few, "only 9 of 12 files left to this process, 10 needed");
    let few = handles(dir.path(), 100, 21).unwrap_err().to_string();
    assert_eq!(few, "only 20 of 100 files left to the system, 21 needed");
    fs::write(&system, "90\n").unwrap();
    assert!(handles(dir.path(), 13, 10).is_err());
}

/// A machine whose times are what a test says.
struct Machine {
    dir: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("sys/kernel/random")).unwrap();
        Self { dir }
    }

    fn at(&self, boot: &str, up: f64) -> &Self {
        fs::write(self.dir.path().join("sys/kernel/random/boot_id"), format!("{boot}\n")).unwrap();
        fs::write(self.dir.path().join("uptime"), format!("{up:.2} 77.00\n")).unwrap();
        self
    }

    async fn look(&self, wall: fn() -> SystemTime) -> CheckReport {
        let sources = ClockSources { proc: self.dir.path().to_owned(), wall };
        let record = self.dir.path().join("state/clock");
        let built = UNIX_EPOCH + Duration::from_secs(1_000_000);
        run(clock(record, Duration::from_secs(5), built, sources)).await
    }
}

macro_rules! wall {
    ($seconds:literal) => {
        || UNIX_EPOCH + Duration::from_secs($seconds)
    };
}

#[tokio::test]
async fn a_clock_that_jumps_is_told_once() {
    let machine = Machine::new();
    let first = machine.at("a", 100.0).look(wall!(2_000_000)).await;
    assert!(first.ok && first.detail.starts_with("first look"), "{first:?}");
    let steady = machine.at("a", 160.0).look(wall!(2_000_062)).await;
    assert_eq!(
        (steady.ok, steady.detail.as_str()),
        (true, "2.000 s off since the last look, 60 s ago")
    );
    let back = machine.at("a", 170.0).look(wall!(1_990_000)).await;
    assert_eq!(
        (back.ok, back.detail.as_str()),
        (false, "the clock jumped back by 10072.000 s within 10 s")
    );
    let after = machine.at("a", 180.0).look(wall!(1_990_010)).await;
    assert!(after.ok, "{after:?}");
    let forward = machine.at("a", 181.0).look(wall!(1_990_030)).await;
    assert!(!forward.ok && forward.detail.contains("forward by 19.000 s"), "{forward:?}");
    // A day of the kernel's fastest correction is 43 s.
    let slewed = machine.at("a", 181.0 + 86_400.0).look(wall!(2_076_470)).await;
    assert!(slewed.ok, "{slewed:?}");
    // Another start of the machine: nothing to compare with.
    let again = machine.at("b", 5.0).look(wall!(3_000_000)).await;
    assert!(again.ok && again.detail.starts_with("first look"), "{again:?}");
    let unset = machine.at("c", 5.0).look(wall!(100_000)).await;
    assert_eq!(unset.detail, "the clock is 10 days before this program was installed");
    assert!(!unset.ok);
}

#[tokio::test]
async fn a_record_of_anything_is_a_first_look() {
    let machine = Machine::new();
    let record = machine.dir.path().join("state/clock");
    fs::create_dir_all(record.parent().unwrap()).unwrap();
    for text in
        [&b""[..], b"a", b"a x y", b"a 99999999999999999999999 1", b"a 999999999999 1", b"\xff\xfe"]
    {
        fs::write(&record, text).unwrap();
        let seen = machine.at("a", 100.0).look(wall!(2_000_000)).await;
        assert!(seen.ok && seen.detail.starts_with("first look"), "{seen:?}");
    }
    fs::write(machine.dir.path().join("uptime"), "inf 0").unwrap();
    assert!(!machine.look(wall!(2_000_000)).await.ok);
    // Where the record cannot be kept, each look is a first one, and leaves nothing.
    let folder = tempfile::tempdir().unwrap();
    let taken = folder.path().join("taken");
    fs::create_dir(&taken).unwrap();
    for record in [Path::new("/proc/jig-clock"), &taken] {
        let sources = ClockSources::default();
        let look = clock(record.to_owned(), Duration::from_secs(5), UNIX_EPOCH, sources);
        let report = run(look).await;
        assert!(report.ok, "{report:?}");
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

fn transport(end: &Endpoint) -> Box<dyn HealthCheck> {
    console(&"uart0".parse().unwrap(), end)
}

#[tokio::test]
async fn a_serial_port_is_there_usable_and_free() {
    let TestPty { master: _master, slave: _slave, path } = TestPty::open();
    let dir = tempfile::tempdir().unwrap();
    let by_id = dir.path().join("usb-by-id");
    std::os::unix::fs::symlink(&path, &by_id).unwrap();
    // This process has it open, and that is its right.
    let report = run(transport(&Endpoint::Tty(by_id.display().to_string()))).await;
    assert_eq!((report.ok, report.check.as_str()), (true, "console-uart0"), "{report:?}");
    // Another program, which reads the port and knows nothing of locks.
    let port_reader = SpawnRequest {
        program: "sleep".into(),
        args: vec!["600".into()],
        cwd: None,
        stdin: None,
        stdout: None,
        stderr: None,
        inherit: vec![fs::File::open(&by_id).unwrap().into()],
        exits_for_target: false,
        env: None,
        ends_itself: false,
        what: "port reader".to_owned(),
    };
    let mut port_reader = ManagedProcess::spawn(port_reader, Arc::new(NoLedger)).await.unwrap();
    let report = run(transport(&Endpoint::Tty(by_id.display().to_string()))).await;
    let pid = port_reader.pid();
    assert!(!report.ok, "{report:?}");
    assert!(report.detail.ends_with(&format!("is in use by sleep (pid {pid})")), "{report:?}");
    port_reader.kill().await;
    let report = run(transport(&Endpoint::Tty(by_id.display().to_string()))).await;
    assert!(report.ok, "{report:?}");
    for (end, words) in [
        (dir.path().join("gone").display().to_string(), "is not there"),
        (dir.path().display().to_string(), "is no serial port"),
    ] {
        let report = run(transport(&Endpoint::Tty(end))).await;
        assert!(!report.ok && report.detail.ends_with(words), "{report:?}");
    }
}

#[tokio::test]
async fn servers_and_sockets_are_reached() {
    let dir = tempfile::tempdir().unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    for end in [Endpoint::Tcp(address.clone()), Endpoint::Rfc2217(address.clone())] {
        let report = run(transport(&end)).await;
        assert!(report.ok, "{report:?}");
    }
    drop(listener);
    let report = run(transport(&Endpoint::Tcp(address))).await;
    assert!(!report.ok && report.detail.starts_with("connect to 127.0.0.1:"), "{report:?}");
    let path = dir.path().join("socket");
    let socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let end = Endpoint::Unix(path.display().to_string());
    assert!(run(transport(&end)).await.ok);
    drop(socket);
    fs::remove_file(&path).unwrap();
    assert!(!run(transport(&end)).await.ok);
    fs::write(&path, "").unwrap();
    let report = run(transport(&end)).await;
    assert!(!report.ok && report.detail.ends_with("is no socket"), "{report:?}");
}
