//! Restricts the calling thread, and so what it starts: which files it may write, and whether it
//! reaches the network. Never does so in part: what cannot be enforced is an error.
//!
//! # Design
//! Landlock needs no right and no mount, and works in most containers. Reading and executing is not
//! restricted. Landlock forbids truncation from Linux 6.2 on (ABI 3); on older kernels the filter of
//! system calls does. Moves between folders need Linux 5.19 (ABI 2). Where the kernel can, a device
//! is not controlled by `ioctl` (Linux 6.10) and no process outside of the sandbox gets a signal
//! (Linux 6.12).
//!
//! Below the named folders everything is allowed but making device files, by which root would
//! reach the disk. A file cannot be brought there from a folder where less is allowed: the kernel
//! refuses such a link or move.
//!
//! **What Landlock does not govern:** modes, owners, times and extended attributes of the user's
//! files outside of the folders.

use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, LandlockStatus, PathBeneath, PathFd,
    PathFdError, Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError,
    RulesetStatus, Scope,
};
use nix::errno::Errno;

use super::call_filter::{AllowedCalls, call_filter};
use super::wire::Confinement;
use crate::process::set_filter;

/// Says why a thread could not be confined, and what helps.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConfineError {
    #[error(
        "the kernel has no Landlock, or a container forbids it (needs Linux 5.19 or later with \
         CONFIG_SECURITY_LANDLOCK; in a container, allow the system calls landlock_* in its \
         seccomp profile)"
    )]
    NoLandlock,
    #[error(
        "Landlock is switched off (add `landlock` to the list `lsm=` of the kernel's command line)"
    )]
    LandlockOff,
    #[error(
        "Landlock of this kernel cannot allow moves between folders: it has ABI {0}, and ABI 2 is \
         needed (Linux 5.19 or later)"
    )]
    OldLandlock(i32),
    #[error("open the folder {}: {}", .path.display(), .source)]
    Folder { path: PathBuf, source: io::Error },
    #[error("restrict access to files: {0}")]
    Rules(#[from] RulesetError),
    #[error("no filter of system calls is known for this processor (x86-64 and arm64 have one)")]
    NoFilter,
    #[error(
        "the kernel refuses a filter of system calls: {0} (needs CONFIG_SECCOMP_FILTER; in a \
         container, allow seccomp)"
    )]
    FilterRefused(Errno),
}

/// Restricts the calling thread for good.
pub(super) fn confine(confinement: &Confinement) -> Result<(), ConfineError> {
    for abi in [ABI::V3, ABI::V2] {
        if let Ok(rules) = ruleset(abi) {
            return confine_by(abi, rules, confinement);
        }
    }
    Err(match ruleset(ABI::V2) {
        Ok(_) => ConfineError::NoLandlock,
        Err(error) => what_is_missing().unwrap_or(ConfineError::Rules(error)),
    })
}

/// Restricts it by rules of this kind: the second forbids no truncation, the third does.
fn confine_by(
    abi: ABI,
    rules: RulesetCreated,
    confinement: &Confinement,
) -> Result<(), ConfineError> {
    let allowed = AllowedCalls { network: confinement.network, truncation: abi >= ABI::V3 };
    let filter = call_filter(allowed).ok_or(ConfineError::NoFilter)?;
    let mut rules = rules.set_compatibility(CompatLevel::HardRequirement);
    let all = AccessFs::from_write(abi);
    let below = all & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    for folder in &confinement.writable {
        rules = rules.add_rule(PathBeneath::new(open(Path::new(folder))?, below))?;
    }
    let device = all & (AccessFs::WriteFile | AccessFs::Truncate);
    rules = rules.add_rule(PathBeneath::new(open(Path::new("/dev/null"))?, device))?;
    // This gives up the right to gain rights, too (`no_new_privs`).
    let status = rules.restrict_self()?;
    if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
        return Err(ConfineError::NoLandlock);
    }
    set_filter(&filter).map_err(ConfineError::FilterRefused)
}

/// Makes rules that forbid all writing which this kind can forbid.
fn ruleset(abi: ABI) -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_write(abi))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::IoctlDev)?
        .scope(Scope::from_all(ABI::V6))?
        .create()
}

fn open(path: &Path) -> Result<PathFd, ConfineError> {
    PathFd::new(path).map_err(|error| {
        let source = match error {
            PathFdError::OpenCall { source, .. } => source,
            other => io::Error::other(other),
        };
        ConfineError::Folder { path: path.to_owned(), source }
    })
}

/// Asks the kernel what it lacks. It answers only when a thread restricts itself; this one is given
/// up anyway.
fn what_is_missing() -> Option<ConfineError> {
    let rules =
        Ruleset::default().handle_access(AccessFs::from_write(ABI::V2)).ok()?.create().ok()?;
    match rules.restrict_self().ok()?.landlock {
        LandlockStatus::NotImplemented => Some(ConfineError::NoLandlock),
        LandlockStatus::NotEnabled => Some(ConfineError::LandlockOff),
        LandlockStatus::Available { effective_abi, .. } if effective_abi < ABI::V2 => {
            Some(ConfineError::OldLandlock(effective_abi as i32))
        }
        LandlockStatus::Available { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::os::unix::fs::OpenOptionsExt as _;

    use nix::libc::O_TRUNC;
    use nix::unistd::truncate;

    use super::*;

    /// Does on a thread of its own what empties a file, after the thread was restricted.
    fn emptied(file: &Path, restrict: impl FnOnce() + Send) -> [Option<i32>; 3] {
        let opened = |options: &OpenOptions| {
            options.open(file).err().map(|error| error.raw_os_error().unwrap())
        };
        let all = || {
            restrict();
            [
                truncate(file, 0).err().map(|errno| errno as i32),
                opened(OpenOptions::new().read(true).custom_flags(O_TRUNC)),
                opened(OpenOptions::new().write(true).truncate(true)),
            ]
        };
        std::thread::scope(|scope| scope.spawn(all).join().unwrap())
    }

    #[test]
    fn files_are_not_emptied_on_kernels_with_and_without_rules_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let [inside, outside] = ["inside", "outside"].map(|name| folder.path().join(name));
        let confinement = Confinement { writable: vec![inside.clone().into()], network: false };
        for (abi, inside_too) in [(ABI::V3, None), (ABI::V2, Some(nix::libc::EACCES))] {
            for path in [&inside, &outside] {
                fs::create_dir_all(path).unwrap();
                fs::write(path.join("file"), "text").unwrap();
            }
            let restrict = || confine_by(abi, ruleset(abi).unwrap(), &confinement).unwrap();
            let refused = Some(nix::libc::EACCES);
            assert_eq!(emptied(&outside.join("file"), restrict), [refused; 3], "{abi:?}");
            assert_eq!(fs::read(outside.join("file")).unwrap(), b"text");
            // By path, a file is not emptied where the filter stands in for the rules.
            let found = emptied(&inside.join("file"), restrict);
            assert_eq!(found, [inside_too, inside_too, None], "{abi:?}");
            assert_eq!(emptied(&outside.join("file"), || ()), [None; 3]);
        }
    }

    #[test]
    fn rules_without_truncation_alone_would_let_files_be_emptied() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        let rules_alone = || {
            ruleset(ABI::V2).unwrap().restrict_self().unwrap();
        };
        fs::write(&file, "text").unwrap();
        let found = emptied(&file, rules_alone);
        assert_eq!(found, [None, None, Some(nix::libc::EACCES)]);
        assert_eq!(fs::read(&file).unwrap(), b"");
    }
}
