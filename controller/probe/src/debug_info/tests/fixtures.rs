//! Each fault fixture, on each kind of core: what is said, with the line its source has.

use std::path::Path;

use super::emulated::{Emulated, M0, M3, M4, M33, Machine, RISCV, address_of, fixture};
use crate::debug_info::TrapCode;
use crate::debug_info::trap_code::call_before;
use crate::{Symbols, Why, explain, parse_register_dump};
use jig_model::post_mortem::PostMortem;

/// Catches a fixture where `symbol` begins, and explains it.
fn caught(machine: Machine, name: &str, symbol: &str, why: Why) -> PostMortem {
    let path = fixture(machine, name);
    let elf = std::fs::read(&path).unwrap();
    let mut core = Emulated::start(machine, &path);
    core.run_to(address_of(&elf, symbol));
    let story = explain(&core.snapshot(), Some(&Symbols::load(&elf).unwrap()), why);
    eprintln!("{} {name}: {story:#?}", machine.name);
    story
}

/// Returns the line of a fixture's source that holds a text, counted from 1.
fn line(name: &str, text: &str) -> usize {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../firmware-fixtures");
    let source = std::fs::read_to_string(root.join(name).join("src/main.c")).unwrap();
    1 + source.lines().position(|line| line.contains(text)).unwrap()
}

#[test]
fn a_bus_fault_names_direction_address_and_line() {
    for machine in [M0, M3, M4, M33] {
        let story = caught(machine, "fault-bus", "fault_entry", Why::Fault);
        let line = line("fault-bus", "*nothing = 1");
        assert_eq!(
            story.summary,
            format!(
                "HardFault: bus fault writing 0x60000000 in fixture_main (main.c:{line}) <- \
                 runtime_start"
            ),
        );
        assert_eq!(story.kind, "HardFault");
        let names: Vec<_> = story.frames.iter().map(|f| f.function.as_deref().unwrap()).collect();
        assert_eq!(names, ["fault_entry", "fixture_main", "runtime_start", "reset_handler"]);
        assert_eq!(
            story.frames.iter().map(|f| f.exception).collect::<Vec<_>>(),
            [true, false, false, false]
        );
        assert_eq!(story.limits, Vec::<String>::new());
    }
}

#[test]
fn a_fault_is_told_after_its_handler_moved_to_another_stack() {
    for machine in [M0, M3, M4, M33] {
        let story = caught(machine, "fault-bus", "idle", Why::Hang);
        let line = line("fault-bus", "*nothing = 1");
        assert_eq!(
            story.summary,
            format!(
                "HardFault: bus fault writing 0x60000000 in fixture_main (main.c:{line}) <- \
                 runtime_start"
            ),
        );
        assert!(story.limits.iter().any(|limit| limit.contains("another stack")), "{story:#?}");
    }
}

#[test]
fn an_undefined_instruction_is_named() {
    for machine in [M0, M3, M4, M33] {
        let story = caught(machine, "fault-banner", "fault_entry", Why::Fault);
        let line = line("fault-banner", "UNDEFINED_INSTRUCTION()");
        assert_eq!(
            story.summary,
            format!(
                "HardFault: undefined instruction 0xde00 in fixture_main (main.c:{line}) <- \
                 runtime_start"
            ),
        );
    }
}

#[test]
fn a_null_call_names_the_caller_also_if_it_was_a_tail_call() {
    for machine in [M0, M3, M4, M33] {
        let story = caught(machine, "fault-null-call", "fault_entry", Why::Fault);
        let line = line("fault-null-call", "callback();");
        assert_eq!(
            story.summary,
            format!(
                "HardFault: call of a null pointer in fixture_main (main.c:{line}) <- \
                 runtime_start"
            ),
        );
        assert_eq!(story.frames[1].pc, 0);
        assert_eq!(story.frames[1].function, None);
    }
}

#[test]
fn an_unaligned_access_names_its_address() {
    for machine in [M3, M4, M33] {
        let story = caught(machine, "fault-unaligned", "fault_entry", Why::Fault);
        let line = line("fault-unaligned", "print_hex(*odd)");
        let odd = machine.ram.0 + 0x801;
        let expected = format!(
            "HardFault: unaligned access reading {odd:#010x} in fixture_main (main.c:{line})"
        );
        assert!(story.summary.starts_with(&expected), "{}", story.summary);
    }
}

#[test]
fn a_stack_overflow_names_the_recursion() {
    let machines = [M0, M4, M33].into_iter();
    for (machine, symbol) in machines.flat_map(|m| [(m, "fault_entry"), (m, "idle")]) {
        let story = caught(machine, "fault-stack", symbol, Why::Fault);
        let line = line("fault-stack", "return always ?");
        assert!(
            story.summary.starts_with("HardFault: stack overflow: the stack pointer 0x")
                && story.summary.contains(&format!("lies below {:#010x} in", machine.ram.0)),
            "{}",
            story.summary
        );
        let expected = format!("in descend (main.c:{line}) x");
        assert!(story.summary.contains(&expected), "{}", story.summary);
        assert!(story.summary.ends_with(" <- fixture_main <- runtime_start"), "{}", story.summary);
    }
}

#[test]
fn a_lock_up_is_told_from_the_emulators_last_words() {
    for machine in [M0, M3, M4, M33] {
        let path = fixture(machine, "lockup");
        let elf = std::fs::read(&path).unwrap();
        let words = Emulated::start(machine, &path).run_to_death();
        let snapshot = parse_register_dump(&words).unwrap_or_else(|| panic!("{words}"));
        let story = explain(&snapshot, Some(&Symbols::load(&elf).unwrap()), Why::LockUp);
        let line = line("lockup", "UNDEFINED_INSTRUCTION()");
        assert_eq!(
            story.summary,
            format!(
                "lock-up: undefined instruction 0xde00 in on_fault (main.c:{line}) <- \
                 fault_report"
            ),
        );
    }
}

#[test]
fn a_hang_names_where_it_runs() {
    for machine in [M0, M3, M4, M33] {
        let story = caught(machine, "hang-in-test", "idle", Why::Hang);
        assert!(story.summary.starts_with("running in idle (cortex-m.c:"), "{}", story.summary);
        assert!(story.summary.ends_with(") <- runtime_start"), "{}", story.summary);
        assert_eq!(story.kind, "running");
    }
}

#[test]
fn without_an_image_there_are_two_addresses_and_a_reason() {
    let path = fixture(M3, "hang-in-test");
    let elf = std::fs::read(&path).unwrap();
    let mut core = Emulated::start(M3, &path);
    core.run_to(address_of(&elf, "uart_put"));
    let story = explain(&core.snapshot(), None, Why::Hang);
    let pc = address_of(&elf, "uart_put");
    assert_eq!(story.frames.len(), 2);
    assert_eq!(story.frames[0].pc, pc);
    assert_eq!(story.summary, format!("running in {pc:#010x} <- {:#010x}", story.frames[1].pc));
    assert!(story.limits.iter().any(|limit| limit.contains("no image")), "{story:#?}");
}

#[test]
fn a_risc_v_core_is_walked_by_the_same_tables() {
    let story = caught(RISCV, "hang-in-test", "uart_put", Why::Hang);
    assert!(story.summary.starts_with("running in uart_put (ns16550.c:"), "{}", story.summary);
    let names: Vec<_> = story.frames.iter().filter_map(|f| f.function.as_deref()).collect();
    assert!(names.ends_with(&["print", "banner", "runtime_start"]), "{names:?}");
    let story = caught(RISCV, "hang-in-test", "idle", Why::Hang);
    assert!(story.summary.ends_with(") <- runtime_start"), "{}", story.summary);
}

#[test]
fn only_what_the_trap_handler_alone_calls_is_its_code() {
    for name in ["fault-silent", "fault-stepped-over"] {
        let elf = std::fs::read(fixture(RISCV, name)).unwrap();
        let symbols = Symbols::load(&elf).unwrap();
        let address = |name: &str| address_of(&elf, name);
        let code = TrapCode::find(&symbols, address("trap_entry") as u32);
        for (function, alone) in [
            ("trap_entry", true),
            ("trap_report", true),
            ("on_fault", true),
            // These are called by others, too, and this one calls none of them.
            ("print", false),
            ("idle", false),
            ("runtime_start", false),
        ] {
            assert_eq!(code.holds(address(function)), alone, "{name} {function}");
        }
        // The handler reports, and the report ends in a jump to `idle`; so do others, whose return
        // address then tells that it was they.
        let entry = address("runtime_start");
        let after = |called: &str| {
            let called = address(called);
            (entry..entry + 0x200).find(|&at| call_before(&symbols, at) == Some(called)).unwrap()
        };
        let idle = address("idle");
        assert!(code.jumped_to(&symbols, idle, after("uart_init")), "{name}");
        assert!(!code.jumped_to(&symbols, idle, after("idle")), "{name}");
        assert!(!code.jumped_to(&symbols, idle, entry + 1), "{name}: no call is there");
        assert!(!code.jumped_to(&symbols, address("uart_init"), after("banner")), "{name}");
        assert!(!TrapCode::find(&symbols, 0x1000).holds(0x1000), "there is no code");
    }
}
