//! Processes that a killed jig left behind, identified so that no other can be hit.

use std::fs;

use jig_model::protocol::CHILD_MARK;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// What `/proc/<pid>/stat` says of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    dead: bool,
    group: i32,
    start_ticks: u64,
}

/// Reads the part that follows the name; a name may hold anything, even `)`.
fn parse_stat(text: &[u8]) -> Option<Stat> {
    let end = text.iter().rposition(|&b| b == b')')?;
    let rest = std::str::from_utf8(text.get(end + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // proc(5) counts from 1: state is field 3, pgrp 5, starttime 22; fields[0] is field 3.
    Some(Stat {
        dead: matches!(*fields.first()?, "Z" | "X" | "x"),
        group: fields.get(2)?.parse().ok()?,
        start_ticks: fields.get(19)?.parse().ok()?,
    })
}

fn stat(pid: u32) -> Option<Stat> {
    parse_stat(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// Returns when a process began, in clock ticks since the machine started; none when it
/// is gone. Together with the pid and the boot it names one process for ever.
pub(super) fn start_ticks(pid: u32) -> Option<u64> {
    stat(pid).map(|stat| stat.start_ticks)
}

/// Returns the id of this boot of the machine, or nothing where the kernel hides it.
pub(super) fn boot_id() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned())
}

/// Returns the name of this host, or of the container that this process runs in.
pub fn host_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().chars().take(64).collect()
}

/// Returns the number of this process's pid namespace; 0 where it cannot be told. Pids of another
/// one name other processes here, or none.
pub(super) fn pid_namespace() -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata("/proc/self/ns/pid").map_or(0, |about| about.ino())
}

/// Tells whether exactly this process still runs.
pub(super) fn lives(pid: u32, start_ticks: u64) -> bool {
    stat(pid).is_some_and(|stat| !stat.dead && stat.start_ticks == start_ticks)
}

/// Tells whether exactly this process, or the group that it led, still runs.
pub(super) fn lives_on(pid: u32, start_ticks: u64) -> bool {
    let group = || i32::try_from(pid).is_ok_and(|group| outlived(group, start_ticks));
    match stat(pid) {
        Some(found) if found.start_ticks != start_ticks => false,
        Some(found) if !found.dead => true,
        Some(_) | None => group(),
    }
}

/// Kills exactly this process, with its group if it leads one; tells whether any of it ran.
///
/// A leader dies with its jig, and its group may outlive it. Between the look and the kill the pid
/// could be given to another process only if the kernel went through all its pids in those
/// microseconds.
pub(super) fn kill_exactly(pid: u32, start_ticks: u64) -> Result<bool, Errno> {
    // 0 and 1 would mean "my group" and init; a damaged ledger must not reach them.
    let Ok(raw) = i32::try_from(pid) else { return Ok(false) };
    if raw <= 1 {
        return Ok(false);
    }
    let whom = match stat(pid) {
        Some(found) if found.start_ticks != start_ticks => return Ok(false),
        Some(found) if !found.dead && found.group != raw => Pid::from_raw(raw),
        Some(found) if !found.dead => Pid::from_raw(-raw),
        Some(_) | None if outlived(raw, start_ticks) => Pid::from_raw(-raw),
        Some(_) | None => return Ok(false),
    };
    match kill(whom, Signal::SIGKILL) {
        Ok(()) => Ok(true),
        Err(Errno::ESRCH) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Tells whether the group of a leader that has ended still has members. The kernel gives a
/// group's number to no other process while one of them lives, and the mark tells them from a later
/// group of that number.
fn outlived(group: i32, start_ticks: u64) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.into_iter().any(|pid| {
        let belongs = stat(pid).is_some_and(|stat| {
            !stat.dead && stat.group == group && stat.start_ticks >= start_ticks
        });
        belongs && is_marked(pid)
    })
}

/// Tells whether a process is, or descends from, a child of a jig.
fn is_marked(pid: u32) -> bool {
    let mark = format!("{CHILD_MARK}=").into_bytes();
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|&byte| byte == 0).any(|variable| variable.starts_with(&mark))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_hostile_name_does_not_shift_the_fields() {
        let line = b"42 (a) Z 1 (b) S 1 40 40 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 777 1 1\n";
        let expected = Stat { dead: false, group: 40, start_ticks: 777 };
        assert_eq!(parse_stat(line), Some(expected));
        for end in 0..line.len() {
            let _ = parse_stat(&line[..end]);
        }
    }

    proptest! {
        #[test]
        fn no_name_hides_what_follows_it_and_no_bytes_panic(
            name in proptest::collection::vec(any::<u8>(), 0..20),
            group in any::<i32>(),
            start_ticks in any::<u64>(),
        ) {
            let _ = parse_stat(&name);
            let rest = format!(") S 1 {group} 40 0 -1 0 1 0 0 0 0 0 0 0 20 0 1 0 {start_ticks} 1\n");
            let line = [b"42 (", name.as_slice(), rest.as_bytes()].concat();
            prop_assert_eq!(parse_stat(&line), Some(Stat { dead: false, group, start_ticks }));
        }
    }

    #[test]
    fn this_process_lives_and_pids_zero_and_one_are_never_hit() {
        let me = std::process::id();
        let ticks = start_ticks(me).unwrap();
        assert!(lives(me, ticks));
        assert!(!lives(me, ticks + 1));
        assert_eq!(kill_exactly(me, ticks + 1), Ok(false));
        assert_eq!(kill_exactly(0, 0), Ok(false));
        assert_eq!(kill_exactly(1, start_ticks(1).unwrap_or(0)), Ok(false));
        assert_eq!(kill_exactly(u32::MAX, 0), Ok(false));
    }
}
