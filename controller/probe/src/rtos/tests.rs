//! Threads of a program that keeps them as FreeRTOS does, and of a memory that lies.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::saved::SavedRegisters;
use crate::debug_info::tests::emulated::{Emulated, M4, address_of};
use crate::{CoreKind, CoreSnapshot, Symbols, Why, explain};

const SOURCE: &str = include_str!("tests/freertos.c");

fn build(dir: &Path) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let elf = dir.join("freertos.elf");
    let mut gcc = Command::new("arm-none-eabi-gcc");
    gcc.args(["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=soft", "-Os", "-g", "-ffreestanding"]);
    gcc.args(["-nostdlib", "-Wl,--no-warn-rwx-segments", "-T"]);
    gcc.arg(here.join("debug_info/tests/nested.ld")).arg(here.join("rtos/tests/freertos.c"));
    assert!(gcc.arg("-o").arg(&elf).status().unwrap().success());
    elf
}

/// Runs the program until the second task runs.
fn stopped() -> (CoreSnapshot, Symbols, Vec<u8>) {
    let dir = tempfile::tempdir().unwrap();
    let path = build(dir.path());
    let elf = std::fs::read(&path).unwrap();
    let mut core = Emulated::start(M4, &path);
    core.run_to(address_of(&elf, "idle_task"));
    (core.snapshot(), Symbols::load(&elf).unwrap(), elf)
}

#[test]
fn the_thread_that_waits_is_shown_with_its_calls() {
    let (snapshot, symbols, _) = stopped();
    let story = explain(&snapshot, Some(&symbols), Why::Hang);
    let line = 1 + SOURCE.lines().position(|line| line.contains("while (events == 0)")).unwrap();
    let [running, waiting] = story.threads.as_slice() else { panic!("{story:#?}") };
    assert_eq!((&*running.name, &*running.state, running.frames.len()), ("I", "runs", 0));
    assert_eq!((&*waiting.name, &*waiting.state), ("rx", "waits"));
    let names: Vec<_> = waiting.frames.iter().filter_map(|f| f.function.as_deref()).collect();
    assert_eq!(names[..3], ["wait_for_event", "read_sensor", "rx_task"]);
    let at = waiting.frames[0].line.unwrap() as usize;
    assert!((line..=line + 3).contains(&at), "{story:#?}");
    let words =
        format!("; waiting: rx in wait_for_event (freertos.c:{at}) <- read_sensor <- rx_task");
    assert!(story.summary.starts_with("running in idle_task (freertos.c:"), "{}", story.summary);
    assert!(story.summary.contains(&words), "{}", story.summary);
}

#[test]
fn the_smallest_cores_have_saved_the_upper_registers_first() {
    let (mut snapshot, symbols, elf) = stopped();
    let pc = address_of(&elf, "idle_task") as u32;
    let saved = [8, 9, 10, 11, 4, 5, 6, 7, 0xffff_fffd];
    let frame = [0, 1, 2, 3, 12, 0, pc, 0x0100_0000];
    let ram = snapshot.memory.iter_mut().find(|range| range.start == M4.ram.0).unwrap();
    for (place, word) in ram.bytes.as_chunks_mut::<4>().0.iter_mut().zip(saved.iter().chain(&frame))
    {
        *place = u32::to_le_bytes(*word);
    }
    let top = SavedRegisters::OnStack(M4.ram.0 as u32);
    for (kind, r4) in [(CoreKind::Armv6m, 4), (CoreKind::Armv7m, 8)] {
        snapshot.kind = kind;
        let context = top.restore(&snapshot, &symbols).unwrap();
        assert_eq!((context.pc, context.get(4)), (pc, Some(r4)), "{kind:?}");
    }
}

#[test]
fn lists_and_stacks_that_lie_end_the_walk() {
    let (honest, symbols, elf) = stopped();
    let address = |name| address_of(&elf, name) as u32;
    let suspended = address("xSuspendedTaskList");
    let item = honest.word(suspended + 12).unwrap();
    let task = honest.word(item + 12).unwrap();
    for (at, word) in [
        // A list in a circle without its end, a next element outside of memory, and at its end.
        (item + 4, item),
        (item + 4, 0x6000_0000),
        (item + 4, u32::MAX),
        (suspended + 12, 0),
        // A task and saved registers that are nowhere.
        (item + 12, 0xffff_fff0),
        (task, 0xffff_fff0),
        (task, 0),
        (address("pxCurrentTCB"), 0xffff_ffff),
    ] {
        let mut lying = honest.clone();
        let ram = lying.memory.iter_mut().find(|range| range.start == M4.ram.0).unwrap();
        let offset = (u64::from(at) - ram.start) as usize;
        ram.bytes[offset..offset + 4].copy_from_slice(&word.to_le_bytes());
        let story = explain(&lying, Some(&symbols), Why::Hang);
        assert!(story.threads.len() <= 2, "{at:#x} {word:#x}: {story:#?}");
    }
}
