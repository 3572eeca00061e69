//! The processes that hold a device or its lock, as the kernel tells it.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
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

/// Lists the processes that have a file open, as far as this user may see. A file of the same name in a container
/// is another one, unless it is the node of the same device.
pub(crate) fn openers(path: &Path, proc: &Path) -> Vec<u32> {
    let (Ok(all), Ok(wanted)) = (fs::read_dir(proc), fs::metadata(path)) else { return Vec::new() };
    let has = |pid: &u32| {
        let Ok(open) = fs::read_dir(proc.join(format!("{pid}/fd"))) else { return false };
        // Looked into only where the name fits: a file on a disk that hangs cannot be looked into.
        let mut named = open.flatten().map(|entry| entry.path());
        named.any(|entry| {
            fs::read_link(&entry).is_ok_and(|to| to == path)
                && fs::metadata(&entry).is_ok_and(|open| is_same(&open, &wanted))
        })
    };
    let pids = all.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(has).collect()
}

/// Major numbers of pseudo-terminals, whose numbers begin anew in each container (devices.txt of Linux).
const PTYS: std::ops::RangeInclusive<u64> = 136..=143;

/// Tells whether two nodes are the same file or device.
fn is_same(open: &fs::Metadata, wanted: &fs::Metadata) -> bool {
    let device = wanted.file_type().is_char_device() && !PTYS.contains(&major(wanted.rdev()));
    let same_device = device && open.file_type().is_char_device() && open.rdev() == wanted.rdev();
    same_device || (open.dev(), open.ino()) == (wanted.dev(), wanted.ino())
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
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};

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
    fn a_file_of_the_same_name_in_a_container_is_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let port = folder.path().join("port");
        fs::write(&port, "").unwrap();
        let start = |wrapper: &[&str], mount: &str| {
            let script = format!("{mount}: >> \"$0\" && exec 3<> \"$0\" && echo up && read end");
            let mut words: Vec<&str> = wrapper.to_vec();
            words.extend(["sh", "-c", script.as_str()]);
            let mut command = Command::new(words[0]);
            command.args(&words[1..]).arg(&port).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = command.stderr(Stdio::null()).spawn().unwrap();
            let mut said = String::new();
            BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
            (child, said == "up\n")
        };
        let contained = ["unshare", "--user", "--map-root-user", "--mount"];
        let (mut other, is_up) = start(&contained, "mount -t tmpfs none \"${0%/*}\" && ");
        // A user who may not make a namespace cannot be misled by one.
        if is_up {
            assert!(openers(&port, Path::new("/proc")).is_empty());
        }
        let (mut same, is_up) = start(&["env"], "");
        assert!(is_up);
        assert_eq!(openers(&port, Path::new("/proc")), [same.id()]);
        for child in [&mut other, &mut same] {
            // Its input ends with its handle.
            drop(child.stdin.take());
            child.wait().unwrap();
        }
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
