//! Room on the host: disk, memory, open files.

use std::fs;
use std::path::{Path, PathBuf};

use jig_model::protocol::HealthCheck;
use jig_model::{Cause, byte_size};
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::statvfs::{FsFlags, statvfs};

use super::error::HostCheckError;
use super::{Found, SystemCheck, proc};

/// Checks that so many bytes can still be written below a folder, which need not exist yet; on
/// a disk of less than twice as much, that half of it is free.
pub fn free_disk(folder: PathBuf, least: u64) -> Box<dyn HealthCheck> {
    SystemCheck::boxed("free-disk", Cause::StorageFailed, move || disk(&folder, least))
}

/// Checks that programs can still get so many bytes of memory.
pub fn free_memory(least: u64) -> Box<dyn HealthCheck> {
    SystemCheck::boxed("free-memory", Cause::RigUnhealthy, move || memory(&proc(), least))
}

/// Checks that this process, and the system as a whole, can open so many more files.
pub fn free_handles(least: u64) -> Box<dyn HealthCheck> {
    SystemCheck::boxed("free-handles", Cause::RigUnhealthy, move || {
        let (limit, _) = getrlimit(Resource::RLIMIT_NOFILE).map_err(HostCheckError::Limit)?;
        handles(&proc(), limit, least)
    })
}

fn disk(folder: &Path, least: u64) -> Found {
    let at = folder.ancestors().find(|at| at.exists()).unwrap_or(Path::new("/"));
    let about =
        statvfs(at).map_err(|source| HostCheckError::NoDisk { path: at.to_owned(), source })?;
    if about.flags().contains(FsFlags::ST_RDONLY) {
        return Err(HostCheckError::ReadOnly(at.to_owned()));
    }
    // File systems without a table of files say 0 of 0.
    if about.files() > 0 && about.files_available() == 0 {
        return Err(HostCheckError::NoFiles(at.to_owned()));
    }
    let bytes = |blocks: u64| blocks.saturating_mul(about.fragment_size());
    let (free, whole) = (bytes(about.blocks_available()), bytes(about.blocks()));
    let words = format!("{} free below {}", byte_size(free), at.display());
    let least = least_of(whole, least);
    if free < least { Err(too_little(words, byte_size(least))) } else { Ok(words) }
}

fn too_little(there: String, needed: impl ToString) -> HostCheckError {
    HostCheckError::TooLittle { there, needed: needed.to_string() }
}

fn read(path: &Path) -> Result<String, HostCheckError> {
    let unreadable = |source| HostCheckError::Unreadable { path: path.to_owned(), source };
    fs::read_to_string(path).map_err(unreadable)
}

/// Returns how much of a disk has to be free: a small one could else never have room.
pub(super) fn least_of(whole: u64, least: u64) -> u64 {
    // The kernel's own files are on a disk of nothing, which has no room at all.
    if whole == 0 { least } else { least.min(whole / 2) }
}

pub(super) fn memory(proc: &Path, least: u64) -> Found {
    let path = proc.join("meminfo");
    let text = read(&path)?;
    let free = text.lines().find_map(|line| {
        let kib = line.strip_prefix("MemAvailable:")?.trim().strip_suffix("kB")?;
        kib.trim().parse::<u64>().ok()?.checked_mul(1024)
    });
    let free = free.ok_or(HostCheckError::NoMemory(path))?;
    let words = format!("{} of memory available", byte_size(free));
    if free < least { Err(too_little(words, byte_size(least))) } else { Ok(words) }
}

pub(super) fn handles(proc: &Path, limit: u64, least: u64) -> Found {
    let own = proc.join("self/fd");
    // Looking takes one itself; if there is none left, that is an answer, too.
    let open = fs::read_dir(&own).map_err(HostCheckError::NoList)?.count() as u64;
    let own = limit.saturating_sub(open);
    if own < least {
        return Err(too_little(format!("{own} of {limit} files left to this process"), least));
    }
    let path = proc.join("sys/fs/file-nr");
    let text = read(&path)?;
    let mut words = text.split_ascii_whitespace().map(str::parse::<u64>);
    let (Some(Ok(used)), Some(Ok(unused)), Some(Ok(most))) =
        (words.next(), words.next(), words.next())
    else {
        return Err(HostCheckError::Garbled(path));
    };
    let system = most.saturating_sub(used.saturating_sub(unused));
    if system < least {
        return Err(too_little(format!("{system} of {most} files left to the system"), least));
    }
    Ok(format!("{own} files left to this process"))
}
