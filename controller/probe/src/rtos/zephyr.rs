//! Zephyr: threads are in one list, if `CONFIG_THREAD_MONITOR` is set.

use super::entry::{
    DELAYED, MAX_THREADS, READY, RUNNING, SUSPENDED, ThreadEntry, ThreadMemory, WAITING,
};
use super::saved::SavedRegisters;

const THREAD: &str = "k_thread";

/// Bits of a thread's state.
const DUMMY: u8 = 1;
const PENDING: u8 = 1 << 1;
const DEAD: u8 = 1 << 3;
const HELD_BACK: u8 = 1 << 4;
const QUEUED: u8 = 1 << 7;

/// Finds the threads; nothing if the image has no such system, or keeps no list of them.
pub(super) fn threads(data: &ThreadMemory<'_>) -> Option<Vec<ThreadEntry>> {
    let kernel = data.layouts.variable("_kernel")?.address;
    let cpu = kernel.checked_add(data.layouts.offset("z_kernel", "cpus")?)?;
    let current = data.member(cpu, "_cpu", "current")?;
    let mut thread = data.member(kernel, "z_kernel", "threads")?;
    let mut seen = Vec::new();
    let mut found = Vec::new();
    while thread != 0 && !seen.contains(&thread) && seen.len() < MAX_THREADS {
        seen.push(thread);
        found.extend(entry(data, thread, current));
        let Some(next) = data.member(thread, THREAD, "next_thread") else { break };
        thread = next;
    }
    Some(found)
}

fn entry(data: &ThreadMemory<'_>, thread: u32, current: u32) -> Option<ThreadEntry> {
    let name = data.layouts.offset(THREAD, "name").and_then(|offset| thread.checked_add(offset));
    let name = name.and_then(|at| data.text(at)).unwrap_or_else(|| format!("{thread:#010x}"));
    if thread == current {
        return Some(ThreadEntry { name, state: RUNNING, saved: None });
    }
    let base = thread.checked_add(data.layouts.offset(THREAD, "base")?)?;
    let bits = data.byte(base, "_thread_base", "thread_state")?;
    let state = match bits {
        bits if bits & (DUMMY | DEAD) != 0 => return None,
        bits if bits & PENDING != 0 => WAITING,
        bits if bits & HELD_BACK != 0 => SUSPENDED,
        bits if bits & QUEUED != 0 => READY,
        _ => DELAYED,
    };
    let saved = thread.checked_add(data.layouts.offset(THREAD, "callee_saved")?)?;
    let psp = data.member(saved, "_callee_saved", "psp");
    let r4 = data.layouts.offset("_callee_saved", "v1").and_then(|v1| saved.checked_add(v1));
    let saved = psp.zip(r4).map(|(psp, r4)| SavedRegisters::Apart { r4, psp });
    Some(ThreadEntry { name, state, saved })
}
