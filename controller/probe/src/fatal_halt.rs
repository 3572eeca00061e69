//! Functions by which a system halts after a fatal error, and whether a core may stand in one. Pure.
//!
//! # Design
//! A system that finds an overflowed stack or a failed assertion calls a function that waits for ever.
//! The core is in no fault then, and may have printed nothing. So these functions are known by name, as
//! data, and a core that stands in one, or in what it has called, has failed.
//!
//! Functions in which a healthy program ends, too, are none of them: `exit`, `_exit` and plain loops.
//! `abort` counts only where `exit` has not called it, as some run-time libraries do at each end. The
//! order of the calls tells: where `abort` has called `_exit`, as that of newlib does, it counts.
//!
//! *The look at calls costs milliseconds*, so it is made only of an image that has such a function, and
//! of a core that stands in one or at a jump within a few bytes, as a loop without end has it.

use jig_model::post_mortem::StackFrame;
use object::{Object as _, ObjectSegment as _, ObjectSymbol as _};

/// The functions, by the system that has them.
const FATAL: &[(&str, &[&str])] = &[
    (
        "FreeRTOS",
        &["vApplicationStackOverflowHook", "vApplicationMallocFailedHook", "vAssertCalled"],
    ),
    (
        "Zephyr",
        &[
            "k_sys_fatal_error_handler",
            "z_fatal_error",
            "z_arm_fatal_error",
            "z_riscv_fatal_error",
            "assert_post_action",
            "k_fatal_halt",
            "arch_system_halt",
        ],
    ),
    ("RIOT", &["core_panic", "panic_arch"]),
    ("NuttX", &["_assert", "up_assert", "up_irq_panic"]),
    ("ThreadX", &["_tx_thread_stack_error_handler"]),
    ("Mbed", &["mbed_error", "mbed_halt_system", "mbed_assert_internal", "mbed_die"]),
    ("ChibiOS", &["chSysHalt"]),
    ("RTX5", &["osRtxErrorNotify", "osRtxKernelErrorNotify"]),
    ("ESP-IDF", &["esp_system_abort", "panic_abort"]),
    ("RT-Thread", &["rt_assert_handler"]),
    ("embOS", &["OS_Error"]),
    ("STM32Cube", &["Error_Handler", "_Error_Handler", "assert_failed"]),
    ("C", &["abort", "__assert_func", "__assert_fail", "__aeabi_assert", "__stack_chk_fail"]),
    ("Rust", &["rust_begin_unwind"]),
    ("others", &["panic", "kernel_panic", "k_panic"]),
];

/// Functions that end a healthy program by `abort`.
const ENDS: [&str; 3] = ["exit", "_exit", "__exit"];

/// Bytes behind the program counter within which a loop without end jumps back.
const LOOP: usize = 8;

/// Returns the name without what languages and compilers put around it: `__rustc::rust_begin_unwind`,
/// `panic(int)`, `vAssertCalled.constprop.0`.
fn base(name: &str) -> &str {
    let name = name.split(['(', '.']).next().unwrap_or(name);
    name.rsplit("::").next().unwrap_or(name)
}

fn is_fatal(name: &str) -> bool {
    FATAL.iter().any(|(_, names)| names.contains(&base(name)))
}

/// Finds the function in which a system has halted, innermost first, in the calls of a core.
pub(crate) fn fatal_function(frames: &[StackFrame]) -> Option<&str> {
    let names: Vec<&str> = frames.iter().filter_map(|frame| frame.function.as_deref()).collect();
    let ends = |callers: &[&str]| callers.iter().any(|name| ENDS.contains(&base(name)));
    let fatal = |(at, name): (usize, &&str)| {
        is_fatal(name) && !(base(name) == "abort" && ends(&names[at + 1..]))
    };
    let at = names.iter().enumerate().position(fatal)?;
    Some(names[at])
}

/// Tells whether a core that is at an address may stand in such a function of an image.
pub(crate) fn may_have_halted(elf: &[u8], pc: u32) -> bool {
    let Ok(file) = object::File::parse(elf) else { return false };
    let symbols = file.symbols().filter(|symbol| symbol.is_definition());
    let mut fatal = symbols.filter(|symbol| {
        let name = symbol.name().unwrap_or_default();
        // Rust's own is mangled.
        is_fatal(name) || name.contains("rust_begin_unwind")
    });
    let inside = |symbol: object::Symbol<'_, '_>| {
        let start = symbol.address() & !1;
        (start..start + symbol.size()).contains(&u64::from(pc))
    };
    let Some(first) = fatal.next() else { return false };
    inside(first) || jumps(&file, pc) || fatal.any(inside)
}

/// Tells whether a plain jump stands at an address or shortly behind it.
fn jumps(file: &object::File<'_>, pc: u32) -> bool {
    let is_arm = file.architecture() == object::Architecture::Arm;
    let code = file.segments().find_map(|segment| {
        let data = segment.data().ok()?;
        // The code runs at its virtual address; flash is loaded at the same.
        let offset = usize::try_from(u64::from(pc).checked_sub(segment.address())?).ok()?;
        data.get(offset..).filter(|rest| rest.len() >= 2).map(|rest| &rest[..rest.len().min(LOOP)])
    });
    let halves = code.unwrap_or_default().as_chunks::<2>().0;
    halves.iter().map(|&half| u16::from_le_bytes(half)).any(|half| match is_arm {
        // `b label`
        true => half >> 11 == 0b11100,
        // `c.j label`, and `jal zero, label`
        false => half & 0xe003 == 0xa001 || half & 0xfff == 0x06f,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::debug_info::tests::emulated::{RISCV, fixture};

    fn frames(names: &[&str]) -> Vec<StackFrame> {
        let frame = |name: &&str| StackFrame {
            pc: 0,
            function: Some((*name).to_owned()),
            file: None,
            line: None,
            inlined: false,
            exception: false,
        };
        names.iter().map(frame).collect()
    }

    #[test]
    fn a_healthy_end_is_no_fatal_halt() {
        for (calls, found) in [
            (&["vApplicationStackOverflowHook", "vTaskSwitchContext"][..], Some(0)),
            (&["arch_system_halt", "k_sys_fatal_error_handler", "z_fatal_error"], Some(0)),
            (&["mbed_die", "main"], Some(0)),
            (&["halt", "__rustc::rust_begin_unwind", "core::panicking::panic"], Some(1)),
            (&["vAssertCalled.constprop.0", "main"], Some(0)),
            (&["abort", "raise_it", "main"], Some(0)),
            (&["abort", "exit", "_start"], None),
            (&["_exit", "abort", "main"], Some(1)),
            (&["_exit", "raise", "abort", "exit", "main"], None),
            (&["_exit", "exit", "main"], None),
            (&["prvIdleTask"], None),
            (&["main", "Reset_Handler"], None),
            (&["panic_button_poll", "main"], None),
            (&[], None),
        ] {
            let wanted = found.map(|index: usize| calls[index]);
            assert_eq!(fatal_function(&frames(calls)), wanted, "{calls:?}");
        }
    }

    #[test]
    fn an_image_without_such_functions_is_not_looked_at() {
        let elf = std::fs::read(fixture(RISCV, "fault-silent")).unwrap();
        assert!(!may_have_halted(&elf, 0x8000_0000));
        assert!(!may_have_halted(b"no ELF file", 0));
    }
}
