//! Dumps of emulated cores, read back and shown to gdb.

use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::{CoreDump, CoreDumpError};
use crate::debug_info::tests::emulated::{Emulated, M0, M3, M4, address_of, fixture};
use crate::{CoreKind, CoreSnapshot, MemoryRange, RegisterValue, Symbols, backtrace};

fn small() -> CoreSnapshot {
    let register = |name: &str, value| RegisterValue { name: name.to_owned(), bits: 32, value };
    CoreSnapshot {
        kind: CoreKind::Armv8m,
        registers: vec![
            register("r0", 1),
            register("pc", 0x100),
            register("xpsr", 0x0100_0000),
            register("control", 2),
            RegisterValue { name: "q0".to_owned(), bits: 128, value: u128::MAX },
        ],
        memory: vec![
            MemoryRange { start: 0x100, bytes: vec![1, 2, 3] },
            MemoryRange { start: 0x2000_0000, bytes: vec![4; 100] },
        ],
    }
}

fn written(snapshot: &CoreSnapshot) -> Vec<u8> {
    let mut bytes = Vec::new();
    CoreDump::write(snapshot, &mut bytes).unwrap();
    bytes
}

/// Runs gdb over a dump; returns what it prints.
fn gdb(elf: &Path, core: &Path, commands: &[&str]) -> String {
    let mut gdb = Command::new("gdb-multiarch");
    gdb.args(["-nx", "-batch", "-ex", "set pagination off", "-ex", "set width 0"]);
    gdb.arg("-ex").arg(format!("core-file {}", core.display()));
    for command in commands {
        gdb.args(["-ex", command]);
    }
    let output = gdb.arg(elf).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[test]
fn what_is_written_is_read() {
    assert_eq!(CoreDump::read(&written(&small())).unwrap(), small());
    let empty = CoreSnapshot { kind: CoreKind::Riscv32, registers: vec![], memory: vec![] };
    assert_eq!(CoreDump::read(&written(&empty)).unwrap(), empty);
}

#[test]
fn gdb_sees_the_same_core() {
    for machine in [M0, M3, M4] {
        let elf = fixture(machine, "fault-bus");
        let image = std::fs::read(&elf).unwrap();
        let mut core = Emulated::start(machine, &elf);
        core.run_to(address_of(&image, "fault_entry"));
        let snapshot = core.snapshot();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("crash.core");
        std::fs::write(&path, written(&snapshot)).unwrap();
        assert_eq!(CoreDump::read(&std::fs::read(&path).unwrap()).unwrap(), snapshot);

        let sp = snapshot.register("sp").unwrap();
        let text = gdb(&elf, &path, &["info registers", &format!("x/8xw {sp:#x}"), "bt"]);
        for register in &snapshot.registers {
            let shown = text
                .lines()
                .find(|line| line.split_whitespace().next() == Some(&register.name))
                .unwrap_or_else(|| panic!("{} is missing in {text}", register.name));
            let value = shown.split_whitespace().nth(1).unwrap();
            assert_eq!(value, format!("{:#x}", register.value), "{shown}");
        }
        let stacked = snapshot.read(sp as u64, 32).unwrap();
        for word in stacked.chunks(4) {
            let word = u32::from_le_bytes(word.try_into().unwrap());
            assert!(text.contains(&format!("{word:#010x}")), "{word:#x} is missing in {text}");
        }
        // The same functions in the same order; gdb marks the exception as a frame of its own.
        let ours = backtrace(&snapshot, Some(&Symbols::load(&image).unwrap()));
        let ours: Vec<_> = ours.frames.iter().map(|f| f.function.clone().unwrap()).collect();
        assert_eq!(gdb_functions(&text), ours, "{text}");
    }
}

/// Returns the functions of gdb's backtrace, innermost first.
pub(crate) fn gdb_functions(text: &str) -> Vec<String> {
    // gdb shows the innermost frame once more when it opens a core.
    let begin = text.rfind("\n#0 ").unwrap_or_else(|| panic!("no backtrace in {text}"));
    text[begin..]
        .lines()
        .filter(|line| line.starts_with('#') && !line.contains("<signal handler called>"))
        .map(|line| {
            let rest = line.split_whitespace().skip(1).collect::<Vec<_>>();
            let name = if rest.get(1) == Some(&"in") { rest[2] } else { rest[0] };
            name.to_owned()
        })
        .collect()
}

#[test]
fn other_files_are_refused_by_name() {
    let image = std::fs::read(fixture(M3, "fault-bus")).unwrap();
    let error = CoreDump::read(&image).unwrap_err().to_string();
    assert_eq!(error, "not a readable 32-bit core dump: it is an ELF file of another type");
    let error = CoreDump::read(b"not an ELF file").unwrap_err().to_string();
    assert_eq!(error, "not a readable 32-bit core dump: it does not begin as one");
    let mut other = written(&small());
    other[18] = 62;
    assert!(matches!(CoreDump::read(&other), Err(CoreDumpError::WrongMachine { machine: 62 })));
    let text = String::from_utf8_lossy(&written(&small())).into_owned();
    let at = text.find("\"version\":1").unwrap();
    let mut newer = written(&small());
    let at = newer[at..].iter().position(|&byte| byte == b'1').map_or(at, |offset| at + offset);
    newer[at] = b'2';
    assert!(matches!(CoreDump::read(&newer), Err(CoreDumpError::Newer { version: 2 })));
}

#[test]
fn a_cut_file_is_refused_at_every_length() {
    let whole = written(&small());
    for len in 0..whole.len() {
        assert!(CoreDump::read(&whole[..len]).is_err(), "{len}");
    }
}

proptest! {
    #[test]
    fn no_file_breaks_the_reader(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)
    ) {
        let mut bytes = written(&small());
        for (index, value) in changes {
            let at = index.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(snapshot) = CoreDump::read(&bytes) {
            let known: usize = snapshot.memory.iter().map(|range| range.bytes.len()).sum();
            prop_assert!(known <= bytes.len());
            backtrace(&snapshot, None);
        }
    }
}
