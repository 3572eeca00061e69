//! Functions by which a system halts after a fatal error, and whether a core may stand in one. Pure.
//!
//! # Design
//! A system that finds an overflowed stack or a failed assertion calls a function that waits for ever;
//! some call the handler of a fault. The core is in no fault then, and may have printed nothing. So these
//! functions are known by name, or by the words at its end, as data, and a core that stands in one, or in
//! what it has called, has failed.
//!
//! Functions in which a healthy program ends, too, are none of them: `exit`, `_exit` and plain loops.
//! `abort` counts only where its caller is not `exit`, as in some run-time libraries at each end. The
//! order of the calls tells: where `abort` has called `_exit`, as that of newlib does, it counts, and so
//! does one that a function called which `exit` runs at the end. `raise` may be that of an event, so it counts
//! where it has called `_exit` or `_kill`; what has called it may not be known.
//!
//! The function may call others for ever: `Error_Handler` that blinks, or feeds a watchdog. So each core
//! on which nothing has failed is looked at, whatever it executes.
//!
//! *The look at calls costs milliseconds*, and stops the core. So it is made only of an image that has
//! such a function, and of a core that may stand in one: its program counter or its return address
//! lies in one, or a word on top of its stack does, which any function that was called from there has
//! left. Old words of a stack are no proof; they cost the look, and the chain of calls decides. A
//! core that executes an interrupt has another stack on top, and is looked at, too.

use std::ops::RangeInclusive;

use jig_model::post_mortem::StackFrame;
use object::{Object as _, ObjectSymbol as _};

use crate::exit_code::ENDS;

/// The functions, by the system that has them.
const FATAL: &[(&str, &[&str])] = &[
    (
        "FreeRTOS",
        &[
            "vApplicationStackOverflowHook",
            "vApplicationMallocFailedHook",
            "vAssertCalled",
            "prvTaskExitError",
        ],
    ),
    ("Zephyr", &["assert_post_action", "k_fatal_halt"]),
    ("RIOT", &["panic_arch"]),
    ("NuttX", &["_assert", "up_assert", "_up_assert"]),
    ("ThreadX", &["_tx_thread_stack_error_handler"]),
    ("Mbed", &["mbed_error", "mbed_halt_system", "mbed_assert_internal", "mbed_die"]),
    ("ChibiOS", &["chSysHalt"]),
    ("RTX5", &["osRtxErrorNotify", "osRtxKernelErrorNotify"]),
    ("ESP-IDF", &["esp_system_abort", "panic_abort"]),
    ("embOS", &["OS_Error"]),
    (
        "CMSIS",
        &[
            "HardFault_Handler",
            "MemManage_Handler",
            "BusFault_Handler",
            "UsageFault_Handler",
            "SecureFault_Handler",
        ],
    ),
    (
        "C",
        &["abort", "raise", "__assert_func", "__aeabi_assert", "__stack_chk_fail", "longjmperror"],
    ),
    ("Arm EABI", &["__aeabi_idiv0", "__aeabi_ldiv0", "__rt_SIGABRT"]),
    (
        "C++",
        &[
            "__cxa_pure_virtual",
            "_ZSt9terminatev",
            "terminate",
            "_ZN9__gnu_cxx27__verbose_terminate_handlerEv",
            "__verbose_terminate_handler",
        ],
    ),
    ("nRF5 SDK", &["app_error_fault_handler", "app_error_handler_bare", "assert_nrf_callback"]),
    ("Infineon", &["Cy_SysLib_Halt", "Cy_SysLib_AssertFailed", "handle_error"]),
    ("Silicon Labs", &["assertEFM"]),
    ("TI driverlib", &["__error__"]),
    (
        "TI SYS/BIOS",
        &["System_abort", "xdc_runtime_System_abort__E", "xdc_runtime_System_abortSpin__E"],
    ),
    ("Pico SDK", &["hard_assertion_failure"]),
    ("Xilinx", &["Xil_Assert"]),
    ("QP", &["Q_onAssert", "Q_onError"]),
    ("RTX4", &["os_error"]),
    ("Contiki", &["_xassert"]),
    ("AUTOSAR", &["Det_ReportError"]),
    ("MicroPython", &["nlr_jump_fail"]),
    ("OpenSBI", &["sbi_hart_hang"]),
    ("coreboot", &["die"]),
    ("Rust", &["rust_begin_unwind"]),
    ("others", &["panic_blink", "error_loop", "ErrorLoop", "SystemFailure"]),
];

/// Words by which the names of most of them end: `z_fatal_error`, `Error_Handler`, `otPlatAssertFail`.
const FATAL_ENDS: &[&str] = &[
    "panic",
    "panic_handler",
    "panic_loop",
    "panic_fmt",
    "fatal_error",
    "fatal_error_handler",
    "error_handler",
    "assert_fail",
    "assert_failed",
    "assert_handler",
    "assertion_failed",
    "assertion_handler",
    "system_halt",
    "last_chance_handler",
];

/// Parts of names that Rust has mangled.
const MANGLED: [&str; 2] = ["rust_begin_unwind", "9panicking9panic_fmt"];

/// Functions by which a signal ends a program.
const KILLS: [&str; 3] = ["_kill", "kill", "_kill_r"];

/// Words of the stack that are searched for a return address. A called function keeps it above its
/// own variables, and buffers of 1 KiB are the largest that such functions have.
pub(crate) const STACK_WORDS: usize = 512;

/// Returns the name without what languages and compilers put around it: `__rustc::rust_begin_unwind`,
/// `panic(int)`, `vAssertCalled.constprop.0`.
fn base(name: &str) -> &str {
    let name = name.split(['(', '.']).next().unwrap_or(name);
    name.rsplit("::").next().unwrap_or(name)
}

fn is_fatal(name: &str) -> bool {
    let name = base(name);
    FATAL.iter().any(|(_, names)| names.contains(&name)) || ends_fatally(name)
}

/// Parts the words of a name by `_`; in the name, a word may begin with a capital instead.
pub(crate) fn in_words(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 8);
    for c in name.chars() {
        if c.is_ascii_uppercase() && words.ends_with(|c: char| c.is_ascii_lowercase()) {
            words.push('_');
        }
        words.push(c.to_ascii_lowercase());
    }
    words
}

/// Tells whether a name ends with the words of a fatal function.
fn ends_fatally(name: &str) -> bool {
    let words = in_words(name);
    let words = words.trim_end_matches('_');
    FATAL_ENDS.iter().any(|end| {
        words.strip_suffix(end).is_some_and(|front| front.is_empty() || front.ends_with('_'))
    })
}

/// Finds the function in which a system has halted, innermost first, in the calls of a core.
pub(crate) fn fatal_function(frames: &[StackFrame]) -> Option<&str> {
    let names: Vec<&str> = frames.iter().filter_map(|frame| frame.function.as_deref()).collect();
    let caller = |at: usize| names.get(at + 1).map_or("", |name| base(name));
    let has_called_end = |at: usize| {
        let called = at.checked_sub(1).map_or("", |at| base(names[at]));
        ENDS.contains(&called) || KILLS.contains(&called)
    };
    let fatal = |(at, name): (usize, &&str)| match base(name) {
        "abort" => !ENDS.contains(&caller(at)),
        "raise" => has_called_end(at) && caller(at) != "abort" && !ENDS.contains(&caller(at)),
        _ => is_fatal(name),
    };
    let at = names.iter().enumerate().position(fatal)?;
    Some(names[at])
}

/// Where the fatal functions of an image lie.
#[derive(Debug, Default)]
pub(crate) struct FatalRanges(Vec<RangeInclusive<u64>>);

impl FatalRanges {
    /// Finds the functions; none in an image without symbols.
    pub(crate) fn of(file: &object::File<'_>) -> Self {
        let symbols = file.symbols().filter(|symbol| symbol.is_definition());
        let fatal = symbols.filter(|symbol| {
            let name = symbol.name().unwrap_or_default();
            // Rust's own is mangled.
            is_fatal(name) || MANGLED.iter().any(|part| name.contains(part))
        });
        let range = |symbol: object::Symbol<'_, '_>| {
            let start = symbol.address() & !1;
            // A call that does not return may be the last instruction.
            start..=start.saturating_add(symbol.size())
        };
        Self(fatal.map(range).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Tells whether an address of code or of a return, with the bit of Thumb or not, lies in one.
    pub(crate) fn hold(&self, address: u32) -> bool {
        self.0.iter().any(|range| range.contains(&u64::from(address & !1)))
    }
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
            (&["_exit", "abort", "at_end", "__call_exitprocs", "exit", "main"], Some(1)),
            (&["_exit", "raise", "abort", "exit", "main"], None),
            (&["_exit", "exit", "main"], None),
            // Without unwind information, the caller is not known.
            (&["_exit", "raise"], Some(1)),
            (&["_kill", "raise", "abort", "main"], Some(2)),
            (&["_kill", "raise", "main"], Some(1)),
            (&["raise", "loop", "main"], None),
            (&["on_event", "raise", "loop", "main"], None),
            (&["System_abort", "main"], Some(0)),
            (&["error_loop", "main"], Some(0)),
            (&["prvIdleTask"], None),
            (&["main", "Reset_Handler"], None),
            (&["panic_button_poll", "main"], None),
            (&["__gnat_last_chance_handler", "main"], Some(0)),
            (&["fih_panic_loop", "main"], Some(0)),
            (&["FatalError", "main"], Some(0)),
            (&["halAssertHandler", "main"], Some(0)),
            (&["core::panicking::panic_fmt", "main"], Some(0)),
            (&["nopanic", "main"], None),
            (&["__aeabi_idiv0", "main"], Some(0)),
            (&["_sys_exit", "__rt_SIGABRT", "abort", "main"], Some(1)),
            (&["error_handler_init", "main"], None),
            (&[], None),
        ] {
            let wanted = found.map(|index: usize| calls[index]);
            assert_eq!(fatal_function(&frames(calls)), wanted, "{calls:?}");
        }
    }

    #[test]
    fn an_image_without_such_functions_is_not_looked_at() {
        let elf = std::fs::read(fixture(RISCV, "fault-silent")).unwrap();
        let file = object::File::parse(elf.as_slice()).unwrap();
        assert!(FatalRanges::of(&file).is_empty());
    }

    #[test]
    fn a_return_address_may_lie_behind_the_last_instruction() {
        let ranges = FatalRanges(vec![0x100..=0x110]);
        for (address, held) in
            [(0xff, false), (0x100, true), (0x109, true), (0x111, true), (0x112, false)]
        {
            assert_eq!(ranges.hold(address), held, "{address:#x}");
        }
    }
}
