//! RIOT: threads are in an array by their number.

use super::entry::{MAX_THREADS, RUNNING, ThreadEntry, ThreadMemory, WAITING};
use super::saved::SavedRegisters;

const THREAD: &str = "_thread";

/// Finds the threads; nothing if the image has no such system.
///
/// A thread that is ready counts as one that waits: the numbers of the states differ from release
/// to release.
pub(super) fn threads(data: &ThreadMemory<'_>) -> Option<Vec<ThreadEntry>> {
    let array = data.layouts.variable("sched_threads")?;
    let current = data.layouts.variable("sched_active_thread");
    let current = current.and_then(|active| data.word(active.address));
    let count = (array.size / 4).min(MAX_THREADS as u32);
    let pointers = (0..count).filter_map(|number| {
        let thread = data.word(array.address.checked_add(4 * number)?)?;
        (thread != 0).then_some((number, thread))
    });
    let entries = pointers.filter_map(|(number, thread)| {
        let name = data.member(thread, THREAD, "name").and_then(|at| data.text(at));
        let name = name.unwrap_or_else(|| format!("thread {number}"));
        if current == Some(thread) {
            return Some(ThreadEntry { name, state: RUNNING, saved: None });
        }
        let top = data.member(thread, THREAD, "sp")?;
        let saved = Some(SavedRegisters::OnStack(top));
        Some(ThreadEntry { name, state: WAITING, saved })
    });
    Some(entries.collect())
}
