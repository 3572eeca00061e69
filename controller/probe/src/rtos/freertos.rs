//! FreeRTOS: tasks are in lists by what they wait for.

use super::entry::{
    DELAYED, MAX_THREADS, READY, RUNNING, SUSPENDED, ThreadEntry, ThreadMemory, WAITING,
};
use super::saved::SavedRegisters;

const TASK: &str = "tskTaskControlBlock";

/// Finds the tasks; nothing if the image has no such system.
pub(super) fn threads(data: &ThreadMemory<'_>) -> Option<Vec<ThreadEntry>> {
    let layouts = data.layouts;
    let current = layouts.variable("pxCurrentTCB").or_else(|| layouts.variable("pxCurrentTCBs"))?;
    let current = data.word(current.address)?;
    let list = layouts.size("xLIST").filter(|&size| size >= 4)?;
    let mut lists: Vec<(u32, &'static str)> = Vec::new();
    if let Some(ready) = layouts.variable("pxReadyTasksLists") {
        let count = (ready.size / list).min(MAX_THREADS as u32);
        lists.extend((0..count).map(|index| (ready.address + index * list, READY)));
    }
    for (name, state) in [
        ("xPendingReadyList", READY),
        ("xDelayedTaskList1", DELAYED),
        ("xDelayedTaskList2", DELAYED),
        ("xSuspendedTaskList", SUSPENDED),
    ] {
        lists.extend(layouts.variable(name).map(|list| (list.address, state)));
    }
    let mut found: Vec<(u32, ThreadEntry)> = Vec::new();
    for (list, state) in lists {
        for task in tasks_of(data, list) {
            if found.len() < MAX_THREADS && !found.iter().any(|(known, _)| *known == task) {
                found.extend(entry(data, task, current, state).map(|entry| (task, entry)));
            }
        }
    }
    Some(found.into_iter().map(|(_, entry)| entry).collect())
}

fn tasks_of(data: &ThreadMemory<'_>, list: u32) -> Vec<u32> {
    let walk = || {
        let end = list.checked_add(data.layouts.offset("xLIST", "xListEnd")?)?;
        let mut item = data.member(end, "xLIST_ITEM", "pxNext")?;
        let mut tasks = Vec::new();
        while item != end && tasks.len() < MAX_THREADS {
            tasks.push(data.member(item, "xLIST_ITEM", "pvOwner")?);
            item = data.member(item, "xLIST_ITEM", "pxNext")?;
        }
        Some(tasks)
    };
    walk().unwrap_or_default()
}

fn entry(
    data: &ThreadMemory<'_>,
    task: u32,
    current: u32,
    state: &'static str,
) -> Option<ThreadEntry> {
    let name = task.checked_add(data.layouts.offset(TASK, "pcTaskName")?)?;
    let name = data.text(name).unwrap_or_else(|| format!("{task:#010x}"));
    if task == current {
        return Some(ThreadEntry { name, state: RUNNING, saved: None });
    }
    // A task that waits for a queue with a time limit is delayed, and without one suspended.
    let event = data.layouts.offset(TASK, "xEventListItem");
    let event = event.and_then(|offset| task.checked_add(offset));
    let container = event.and_then(|item| {
        // Releases differ in the name.
        data.member(item, "xLIST_ITEM", "pxContainer")
            .or_else(|| data.member(item, "xLIST_ITEM", "pvContainer"))
    });
    let waits = state != READY && container.is_some_and(|list| list != 0);
    let top = data.member(task, TASK, "pxTopOfStack")?;
    let state = if waits { WAITING } else { state };
    Some(ThreadEntry { name, state, saved: Some(SavedRegisters::OnStack(top)) })
}
