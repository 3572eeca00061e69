//! What `jig repair` needs of the host besides a rig: git, and a sandbox for builds.

use std::path::PathBuf;

use jig_drivers::program::HostPrograms;
use jig_model::program::Programs as _;

use super::programs::{find, version};
use super::{DoctorFinding, DoctorLevel};
use crate::commands::runtime::runtime;

/// Looks at both. Without one of them boards can be tested, and nothing can be repaired.
pub(super) fn look() -> Vec<DoctorFinding> {
    vec![git(), sandbox(gap())]
}

fn git() -> DoctorFinding {
    let fix = "apt install git   # jig repair needs it";
    match find("git").map(|path| version(&path)) {
        Some(Ok(version)) => DoctorFinding::ok("git", version),
        Some(Err(why)) => DoctorFinding::bad("git", DoctorLevel::Warning, why, fix),
        None => {
            let found = "not in PATH; needed by jig repair";
            DoctorFinding::bad("git", DoctorLevel::Warning, found, fix)
        }
    }
}

/// Tries a sandbox, and says what it cannot do.
fn gap() -> Option<String> {
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("jig"));
    match runtime() {
        Ok(runtime) => runtime.block_on(HostPrograms::new(program).sandbox_gap()),
        Err(failure) => Some(failure.message),
    }
}

fn sandbox(gap: Option<String>) -> DoctorFinding {
    match gap {
        None => DoctorFinding::ok("sandbox", "builds of jig repair can be confined"),
        Some(gap) => DoctorFinding::bad(
            "sandbox",
            DoctorLevel::Warning,
            format!("builds of jig repair cannot be confined: {gap}"),
            "use a kernel with Landlock, or write `sandbox = false` in the policy of the repair",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_of_the_sandbox_is_a_warning_with_what_to_do() {
        assert_eq!(sandbox(None).level, DoctorLevel::Ok);
        let bad = sandbox(Some("no Landlock".to_owned()));
        assert_eq!(bad.level, DoctorLevel::Warning);
        assert!(
            bad.found.ends_with("no Landlock") && bad.fix.is_some_and(|fix| fix.contains("policy"))
        );
    }
}
