//! No byte is lost: what a bare emulator prints into a file is what the log holds.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use jig_rig::console::{IndexHealth, LogPaths, LogReader, RecordKind};

use crate::manifest::elf;
use crate::workshop::{DEADLINE, Slot, Started, Workshop, tied, until};

/// Runs an image in a bare emulator until it has printed its last line, and as much as jig
/// saw of it: a last line may come more than once.
fn bare(
    workshop: &Workshop,
    emulator: &[&str],
    image: &str,
    (last, logged): (&[u8], usize),
) -> Vec<u8> {
    let file = workshop.path("bare.raw");
    let mut command = tied(emulator[0]);
    command.args(&emulator[1..]).args(["-display", "none", "-nodefaults", "-monitor", "none"]);
    command.args(["-semihosting-config", "enable=on,target=native"]);
    command.arg("-serial").arg(format!("file:{}", file.display())).args(["-kernel", image]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let emulator = Started::of(&mut command);
    let bytes = until("the bare emulator's last line", || {
        let len = fs::metadata(&file).ok()?.len();
        let bytes = (len >= logged as u64).then(|| fs::read(&file).ok())??;
        bytes.ends_with(last).then_some(bytes)
    });
    drop(emulator);
    bytes
}

/// Runs the same image under jig and compares. What is printed behind a report's end has to
/// be waited for by its text.
fn compare(board: &str, fixture: &str, emulator: &[&str], last: &[u8], until: Option<&str>) {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let image = elf(board, fixture);
    let limit = format!("{}s", DEADLINE.as_secs() / 2);
    let args = ["run", "-q", "-b", board, &image, "--timeout", &limit];
    let ran = workshop.run(args.into_iter().chain(until.into_iter().flat_map(|u| ["--until", u])));
    ran.says(0, &[]);
    let folder = workshop.run_dirs()[0].join("consoles/1");
    let logged = fs::read(folder.join("uart0.raw")).unwrap();
    let printed = bare(&workshop, emulator, &image, (last, logged.len()));
    assert_eq!(logged.len(), printed.len(), "{fixture} on {board}: number of bytes");
    let differs = logged.iter().zip(&printed).position(|(a, b)| a != b);
    assert_eq!(differs, None, "{fixture} on {board}: first byte that differs");
    check_index(&folder, logged.len() as u64);
}

/// Checks that the index accounts for every byte, in the order of time.
fn check_index(folder: &Path, len: u64) {
    let log = LogReader::open(&LogPaths::new(folder, &"uart0".parse().unwrap())).unwrap();
    assert_eq!(log.health(), IndexHealth::Whole);
    assert_eq!(log.committed(), len);
    let (mut offset, mut time, mut transports) = (0, 0, Vec::new());
    for record in log.records() {
        assert_eq!(record.offset, offset, "{record:?}");
        assert!(record.stamp.mono_ns >= time, "{record:?} goes back in time");
        time = record.stamp.mono_ns;
        match record.kind {
            RecordKind::Bytes(count) => offset += count,
            RecordKind::Attached | RecordKind::Detached => transports.push(record.kind),
            RecordKind::Gap { .. }
            | RecordKind::Garbled(_)
            | RecordKind::Boot
            | RecordKind::Sent(_) => {
                panic!("one boot, nothing sent, nothing missing; but {record:?}")
            }
        }
    }
    assert_eq!(offset, len, "bytes");
    assert_eq!(transports, [RecordKind::Attached, RecordKind::Detached]);
}

#[test]
fn a_line_of_ten_megabytes() {
    let emulator = ["qemu-system-arm", "-machine", "mps2-an385"];
    compare("mps2-an385", "long-line", &emulator, b"\nOK\n", None);
}

#[test]
fn every_byte_there_is() {
    let emulator = ["qemu-system-riscv32", "-machine", "virt", "-bios", "none", "-m", "16"];
    // It ends with what upsets terminals, and then jig has seen the report's end already.
    let (last, until) = (b"\xc3\x28\xe2\x82\r\n", r"^OK\n[\s\S]*\xc3\(\xe2\x82\r\n");
    compare("riscv32-virt", "noise", &emulator, last, Some(until));
}

#[test]
fn the_end_of_an_emulator_that_ends_itself() {
    let emulator = ["qemu-system-arm", "-machine", "lm3s6965evb"];
    compare("lm3s6965evb", "unity-exit", &emulator, b"OK\n", None);
}
