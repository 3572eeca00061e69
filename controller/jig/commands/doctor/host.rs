//! The host: its disk, its limits, and what killed runs left behind.

use std::path::Path;

use jig_rig::store::{RunState, RunStore};
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::statvfs::statvfs;
use nix::unistd::{AccessFlags, access};

use super::{DoctorFinding, DoctorLevel};
use crate::failure::chain;

/// Free bytes below which a warning is due: two hundred runs that print up to the flood
/// limit of 8 MiB, so about a night of a board that misbehaves.
const LITTLE_SPACE: u64 = 2 << 30;

/// Free bytes below which a run may fail: a flood on a few consoles.
const NO_SPACE: u64 = 64 << 20;

/// Open files that a run with an emulator, its monitor and eight consoles needs, with as
/// much again to spare.
const FILES: u64 = 128;

/// Looks whether runs can be kept, and how many more.
pub(super) fn runs_folder(root: &Path) -> Vec<DoctorFinding> {
    let shown = root.display();
    // The folder is made with the first run, so the nearest one that exists must allow it.
    let Some(existing) = root.ancestors().find(|folder| folder.exists()) else {
        let fix = format!("mkdir -p {shown}");
        return vec![DoctorFinding::bad(
            "runs-folder",
            DoctorLevel::Missing,
            format!("no way to {shown}"),
            fix,
        )];
    };
    if !existing.is_dir() {
        let found = format!("{} is no folder", existing.display());
        let fix = "choose another with --runs or JIG_RUNS";
        return vec![DoctorFinding::bad("runs-folder", DoctorLevel::Missing, found, fix)];
    }
    let mut findings = Vec::new();
    findings.push(match access(existing, AccessFlags::W_OK | AccessFlags::X_OK) {
        Ok(()) if existing == root => DoctorFinding::ok("runs-folder", shown.to_string()),
        Ok(()) => DoctorFinding::ok("runs-folder", format!("{shown} (made with the first run)")),
        Err(errno) => DoctorFinding::bad(
            "runs-folder",
            DoctorLevel::Missing,
            format!("may not write {}: {}", existing.display(), errno.desc()),
            "choose another with --runs or JIG_RUNS, or make it writable",
        ),
    });
    if let Ok(disk) = statvfs(existing) {
        let free = disk.blocks_available().saturating_mul(disk.fragment_size());
        findings.push(space(free));
    }
    findings
}

fn space(free: u64) -> DoctorFinding {
    let found = format!("{} MiB free for runs", free >> 20);
    let fix = "jig runs prune --keep-days 30";
    match free {
        NO_SPACE.. if free >= LITTLE_SPACE => DoctorFinding::ok("disk-space", found),
        NO_SPACE.. => DoctorFinding::bad("disk-space", DoctorLevel::Warning, found, fix),
        _ => DoctorFinding::bad("disk-space", DoctorLevel::Missing, found, fix),
    }
}

/// Looks for runs whose jig was killed, and for records that cannot be read.
pub(super) fn leftovers(store: &RunStore) -> Vec<DoctorFinding> {
    let entries = match store.list() {
        Ok(entries) => entries,
        Err(error) => {
            let fix = "make the folder readable, or choose another with --runs";
            return vec![DoctorFinding::bad("runs", DoctorLevel::Missing, chain(&error), fix)];
        }
    };
    let killed = entries.iter().filter(|entry| {
        !entry.live && entry.record.as_ref().is_ok_and(|r| r.state == RunState::Running)
    });
    let broken = entries.iter().filter(|entry| !entry.live && entry.record.is_err());
    let (killed, broken) = (killed.count(), broken.count());
    if killed == 0 && broken == 0 {
        return vec![DoctorFinding::ok(
            "runs",
            format!("{} kept, none left behind", entries.len()),
        )];
    }
    let found = format!(
        "{killed} left behind by a killed jig, {broken} with a record that cannot be read, of {}",
        entries.len()
    );
    let fix = "the next `jig run` or `jig test` ends and marks them; `jig runs` lists them";
    vec![DoctorFinding::bad("runs", DoctorLevel::Warning, found, fix)]
}

/// Looks at the system itself.
pub(super) fn system() -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    findings.push(if Path::new("/proc/self/stat").exists() {
        DoctorFinding::ok("proc", "/proc is mounted")
    } else {
        let found = "/proc is not mounted, so leaked processes cannot be told from others";
        DoctorFinding::bad("proc", DoctorLevel::Missing, found, "sudo mount -t proc proc /proc")
    });
    if let Ok((soft, _)) = getrlimit(Resource::RLIMIT_NOFILE) {
        findings.push(if soft >= FILES {
            DoctorFinding::ok("open-files", format!("up to {soft}"))
        } else {
            let found = format!("only up to {soft}; a run may need {FILES}");
            DoctorFinding::bad(
                "open-files",
                DoctorLevel::Warning,
                found,
                format!("ulimit -n {FILES}"),
            )
        });
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_is_judged_by_what_a_run_may_print() {
        assert_eq!(space(LITTLE_SPACE).level, DoctorLevel::Ok);
        assert_eq!(space(LITTLE_SPACE - 1).level, DoctorLevel::Warning);
        assert_eq!(space(NO_SPACE).level, DoctorLevel::Warning);
        assert_eq!(space(NO_SPACE - 1).level, DoctorLevel::Missing);
    }

    #[test]
    fn a_runs_folder_is_fine_if_it_can_be_made() {
        let folder = tempfile::tempdir().unwrap();
        let level = |path: &Path| runs_folder(path)[0].level;
        assert_eq!(level(folder.path()), DoctorLevel::Ok);
        assert_eq!(level(&folder.path().join("a/b")), DoctorLevel::Ok);
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(level(&file), DoctorLevel::Missing);
        assert_eq!(level(&file.join("below")), DoctorLevel::Missing);
    }
}
