//! The processes that hold a device or its lock, as the kernel tells it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use nix::sys::stat::{major, minor};

/// How often the list of locks is looked through before a lock's holder counts as unknown.
const LOOKS: u32 = 5;

/// Names the process that holds a file's lock, such as `minicom (pid 4711)`, if that is to be
/// found out.
pub(super) fn holder(path: &Path) -> Option<String> {
    holder_pid(path).map(named)
}

/// Names a process other than this one that has a port locked or open, such as `minicom (pid 4711)`,
/// as far as this user may see.
pub fn port_user(path: &Path) -> Option<String> {
    holder_pid(path).filter(|&pid| pid != std::process::id()).map(named).or_else(|| opener(path))
}

/// Finds the process that holds a file's lock, if that is to be found out.
pub(crate) fn holder_pid(path: &Path) -> Option<u32> {
    let file = fs::metadata(path).ok()?;
    // The list is read piece by piece: a lock that goes meanwhile makes the kernel skip one.
    let look = || pid_in(&fs::read_to_string("/proc/locks").ok()?, file.dev(), file.ino());
    (0..LOOKS).find_map(|_| look())
}

/// Names a process other than this one that has a file open, as far as this user may see.
pub(super) fn opener(path: &Path) -> Option<String> {
    let path = fs::canonicalize(path).ok()?;
    let all = openers(&path, "/proc".as_ref());
    all.into_iter().find(|&pid| pid != std::process::id()).map(named)
}

/// Names a process: `minicom (pid 4711)`.
pub(crate) fn named(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    // A process may call itself anything.
    let name: String = name.trim().chars().filter(|c| !c.is_control()).take(32).collect();
    match name.as_str() {
        "" => format!("pid {pid}"),
        name => format!("{name} (pid {pid})"),
    }
}

/// Lists the processes that have a file open, as far as this user may see.
pub(crate) fn openers(path: &Path, proc: &Path) -> Vec<u32> {
    let Ok(all) = fs::read_dir(proc) else { return Vec::new() };
    let has = |pid: &u32| {
        let Ok(open) = fs::read_dir(proc.join(format!("{pid}/fd"))) else { return false };
        open.flatten().any(|entry| fs::read_link(entry.path()).is_ok_and(|to| to == path))
    };
    let pids = all.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(has).collect()
}

/// Finds the process that locks a file: `1: FLOCK ADVISORY WRITE 4711 00:18:5 0 EOF`, with the
/// numbers of its file system in hex and of its inode in decimal (proc_locks(5)). A process that
/// waits for a lock stands behind an arrow; a holder in another pid namespace has no number.
fn pid_in(locks: &str, device: u64, inode: u64) -> Option<u32> {
    let wanted = format!("{:02x}:{:02x}:{inode}", major(device), minor(device));
    locks.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let ours = words.next() == Some("FLOCK");
        let pid = words.nth(2)?.parse().ok().filter(|&pid| pid > 0)?;
        (ours && words.next() == Some(&wanted)).then_some(pid)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_found_among_other_locks() {
        let locks = "1: POSIX  ADVISORY  WRITE 7 00:18:5 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 8 00:18:51 0 EOF\n\
                     3: -> FLOCK  ADVISORY  WRITE 9 00:18:5 0 EOF\n\
                     garbage\n4:\n\
                     5: FLOCK  ADVISORY  WRITE 10 00:18:5 0 EOF\n\
                     6: FLOCK  ADVISORY  WRITE 0 08:0a:6 0 EOF\n";
        let device = nix::sys::stat::makedev(0, 0x18);
        assert_eq!(pid_in(locks, device, 5), Some(10));
        assert_eq!(pid_in(locks, device, 6), None);
        assert_eq!(pid_in(locks, nix::sys::stat::makedev(8, 10), 6), None);
    }

    #[test]
    fn this_process_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(holder(file.path()), None);
        file.as_file().lock().unwrap();
        let who = holder(file.path()).unwrap();
        assert!(who.ends_with(&format!("(pid {})", std::process::id())), "{who}");
    }
}
