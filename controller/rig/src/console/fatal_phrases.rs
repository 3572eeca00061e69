//! Phrases that systems and languages print when a program or the machine has come to its end. Pure.
//!
//! # Design
//! These lines have no word of a crash, or hold it where the rules for words take it back. Each phrase
//! is one of a single system, so it counts wherever it stands in a line. `suspicion_lines.toml` has
//! a whole line for each.

/// What no passing test prints: it counts between the results of a report, too.
const FATAL: &[&str] = &[
    "BEGIN CORE DUMP",
    "chipDie chipDie",
    "HAB_FAILURE",
    "no RM attachment (",
    "Internal Errors 0x",
    "page allocation failure",
    "EXT4-fs error",
    "UBIFS error",
    "Kernel pid terminated",
    "=CRASH REPORT====",
    "** (RuntimeError)",
    "duktape fatal: ",
    "' shutdown: ",
    "Transition to shutdown state: ",
    "MbedOS Error Info",
    "MEM manage handler",
    "VerifyOrDie failed",
    "CY_HALT called",
    "DMA-API: ",
    "ODEBUG: ",
    "usercopy: Kernel memory ",
    "Microcode SW error",
    "controller is down; will reset",
    "failed to come online",
    "double-bit error",
    "is freed already by",
    "FAULTY THREAD",
    "STATUS NOT ZERO",
    "is seriously wrong",
    "is in infinite loop",
    "BLOWN STACK",
    "Boot loop detected",
    "has overflowed its stack",
    "Erlang has closed",
    "exited on signal ",
    "abort called: ",
    "_panic called from ",
    "has not been verified; rolling back",
    "debugger invoked on a ",
    ": failed to initialize (-",
    "Segmentation fault in ",
    ": nobody cared (try ",
    "Deadlock detected",
    "NETDEV WATCHDOG: ",
    "#CD:BEGIN#",
    ": UBSAN: ",
    "UBIFS assert failed in ",
    "Modem has crashed",
    "Unhandled context fault: ",
    "lost async page write",
    "HARDWARE PROTECTION shutdown",
    "UNEXPECTED INCONSISTENCY; RUN fsck",
    "in writable segment detected",
    "tcache chunk detected",
    "osRtxErrorStackOverflow",
    "osRtxErrorClibSpace",
    "has had a failure and has been stopped",
    "Det_ReportError: ",
    "Hook: E_OS_STACKFAULT",
    "Hook: E_OS_PROTECTION_",
    "Hook: E_OS_SYS_",
    "OS_ERR_STK_OVF",
    "RedzoneHitHook",
    ") crashed on cpu#",
    "refcount_t: ",
    " subsystem failure reason: ",
    "Init FOC failed",
    "AllocateTensors() failed",
    "[Faulted]",
    ": Prelude.",
    "NMI received for unknown reason",
    "Dazed and confused, but",
    "in kernel code[#",
    "unaligned access[#",
    "Kernel bug detected[#",
    "test case CRASHED: ",
    "detected stall on CPU",
    "stall detected on CPU",
    "detected stalls on CPUs",
];

/// What a test may log of an error that it caught: it counts behind the end of a report.
const LOGGED: &[&str] = &[
    "__dbpanic(",
    "Heap and stack collision",
    "AP: WDG: ",
    "APM: WDG: T",
    "MFLT: Reset Causes",
    "ure virtual fn called",
    "ast chance handler",
    "spinning forever",
    "ERROR STOP",
    "[MSG:Reset to continue]",
    "(Required to lock TCPIP core",
    "Unregistered interrupt",
    "Reset info: 0x07",
    "(most recent call last)",
    "bad syscall #",
    "=ERROR REPORT====",
    "(RuntimeError)",
    "(NoMethodError)",
    "Script Error:",
    "MPY: soft reboot",
    "MemoryError: ",
    "StkOverflow",
    "Undefined behaviour: ",
    "ask watchdog channel ",
    "ask watchdog callback",
    "Resetting device...",
    "CallStack (from HasCallStack)",
    "on an undefined value at ",
    "Shutdown due to ",
    "watchdog did not stop!",
    "Controller unresponsive",
    "switch to read-only mode",
    "Gave up waiting for ",
    "Dropping to a shell",
    "Mem alloc fail",
    "Didn't find op for builtin opcode",
    "Arena size is too small",
    ": index too large",
    "ddb> ",
    "OS_Error(): ",
    "KDB: enter: ",
    "PROCESSOR RESET called",
    "Exiting cFE with ",
    "BFV:0",
    "LCH called",
];

/// Tells whether a line has a phrase that no passing test prints.
pub(super) fn is_fatal(line: &str) -> bool {
    FATAL.iter().any(|phrase| line.contains(phrase))
}

/// Tells whether a line has a phrase of an end.
pub(super) fn tells_end(line: &str) -> bool {
    is_fatal(line) || LOGGED.iter().any(|phrase| line.contains(phrase))
}

/// Returns an expression for the lines that [`is_fatal`] looks at.
pub(super) fn hints() -> String {
    let escaped: Vec<String> = FATAL.iter().map(|phrase| regex::escape(phrase)).collect();
    escaped.join("|")
}
