//! Exceptions in exceptions: stacks, frames with floating point, inlined calls.

use std::path::Path;
use std::process::Command;

use super::emulated::{Emulated, M4, address_of};
use crate::{RegisterValue, Symbols, Why, backtrace, explain};

const SOURCE: &str = include_str!("nested.c");

fn build(dir: &Path) -> std::path::PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/debug_info/tests");
    let elf = dir.join("nested.elf");
    let mut gcc = Command::new("arm-none-eabi-gcc");
    gcc.args(["-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard", "-Os"]);
    gcc.args(["-g", "-ffreestanding", "-nostdlib", "-Wl,--no-warn-rwx-segments", "-T"]);
    let status = gcc
        .arg(here.join("nested.ld"))
        .arg(here.join("nested.c"))
        .arg("-o")
        .arg(&elf)
        .status()
        .unwrap();
    assert!(status.success());
    elf
}

fn line(text: &str) -> u32 {
    1 + SOURCE.lines().position(|line| line.contains(text)).unwrap() as u32
}

#[test]
fn the_walk_goes_through_two_exceptions_and_two_stacks() {
    let dir = tempfile::tempdir().unwrap();
    let path = build(dir.path());
    let elf = std::fs::read(&path).unwrap();
    let symbols = Symbols::load(&elf).unwrap();
    let mut core = Emulated::start(M4, &path);
    core.run_to(address_of(&elf, "hard_fault"));
    let mut snapshot = core.snapshot();

    // The emulator's gdb stub does not tell the process stack pointer: without it, the walk ends
    // at the handler and says so.
    let short = backtrace(&snapshot, Some(&symbols));
    assert_eq!(short.frames.last().unwrap().function.as_deref(), Some("pend_sv"));
    assert!(short.limits.iter().any(|l| l.contains("process stack pointer")), "{short:#?}");

    // A kibibyte of stack, of which `thread` used two words and the core pushed 26.
    let psp = address_of(&elf, "process_stack") + 1024 - 8 - 0x68;
    snapshot.registers.push(RegisterValue { name: "psp".to_owned(), bits: 32, value: psp.into() });
    let story = explain(&snapshot, Some(&symbols), Why::Fault);
    let seen: Vec<_> = story
        .frames
        .iter()
        .map(|f| (f.function.as_deref().unwrap(), f.line.unwrap(), f.inlined, f.exception))
        .collect();
    assert_eq!(
        seen[..5],
        [
            ("hard_fault", seen[0].1, false, true),
            ("poke", line("the fault"), true, false),
            ("Deep_Handler", line("poke(value + 1)"), false, false),
            ("pend_sv", line("in the handler"), false, true),
            ("work", line("interrupted */"), false, false),
        ],
        "{story:#?}"
    );
    assert_eq!(seen[5].0, "thread");
    let line = line("the fault");
    assert!(
        story.summary.starts_with(&format!(
            "HardFault: bus fault writing 0x60000000 in poke (nested.c:{line}) <- \
             Deep_Handler <- pend_sv <- work <- thread"
        )),
        "{}",
        story.summary
    );
    let status = story.status.join("\n");
    assert!(status.contains("HardFault returns by 0xfffffff1: to the main stack"), "{status}");
    assert!(status.contains("PendSV returns by 0xffffffed: to the process stack"), "{status}");
    assert!(status.contains("with floating point registers"), "{status}");
}
