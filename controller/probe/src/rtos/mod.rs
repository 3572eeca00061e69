//! The threads of an operating system on a halted core, found by its variables.
//!
//! Knows FreeRTOS, Zephyr and RIOT on Cortex-M, as far as the debug information tells where their
//! structures have their members. Owns the walk through lists and saved registers; names and
//! lines come from the image.
//!
//! # Design
//! *Memory is hostile.* A list may be a circle, a pointer may lead anywhere: each walk has a
//! bound, and only captured memory is read. A thread whose saved registers are no plausible
//! exception frame is listed without frames.
//!
//! *The thread that waits explains a hang.* The core itself mostly stands in the idle thread.

mod entry;
mod freertos;
mod riot;
mod saved;
#[cfg(test)]
mod tests;
mod zephyr;

use jig_model::post_mortem::ThreadStory;

use crate::debug_info::{KnownMemory, Symbols, walk_thread};
use crate::{CoreKind, CoreSnapshot};
use entry::{MAX_THREADS, ThreadMemory};

pub(crate) use entry::WAITING;

/// Finds the threads of the system that the image has; none where there is no such system.
pub(crate) fn threads(snapshot: &CoreSnapshot, symbols: Option<&Symbols>) -> Vec<ThreadStory> {
    let Some(symbols) = symbols.filter(|_| snapshot.kind != CoreKind::Riscv32) else {
        return Vec::new();
    };
    let data = ThreadMemory {
        layouts: symbols.layouts(),
        memory: KnownMemory::new(snapshot, Some(symbols)),
    };
    let systems = [freertos::threads, zephyr::threads, riot::threads];
    let found = systems.into_iter().find_map(|system| system(&data).filter(|all| !all.is_empty()));
    let stories = found.unwrap_or_default().into_iter().take(MAX_THREADS).map(|thread| {
        let context = thread.saved.and_then(|saved| saved.restore(snapshot, symbols));
        let frames =
            context.map_or_else(Vec::new, |context| walk_thread(context, snapshot, symbols));
        ThreadStory { name: thread.name, state: thread.state.to_owned(), frames }
    });
    stories.collect()
}
