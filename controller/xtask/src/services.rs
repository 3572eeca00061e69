//! Keeps services from starting while packages are installed.
//!
//! Some packages of the list are servers that tests start themselves, on ports of their own.
//! Debian starts such a server when it is installed, unless `/usr/sbin/policy-rc.d` says no
//! (invoke-rc.d(8)). This module puts such a file there while apt runs, where the host has none.
//! It refuses to touch a policy of the host's own.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::failure::Failure;
use crate::process;

/// Where Debian looks for the policy.
const POLICY: &str = "/usr/sbin/policy-rc.d";

/// What makes a policy recognisable as ours.
const MARK: &str = "# Made by `cargo xtask setup` of Jig";

/// A policy that denies; it goes away with this value.
#[derive(Debug)]
pub(crate) struct Denied {
    /// Makes a command that runs as root.
    as_root: fn(&str) -> Command,
}

impl Denied {
    /// Denies services to start, and says so; none where the host has a policy of its own, which
    /// then decides.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub(crate) fn while_installing(as_root: fn(&str) -> Command) -> Result<Option<Self>, Failure> {
        // What is no text is not ours, and what cannot be read is there.
        let present = Path::new(POLICY).exists().then(|| std::fs::read(POLICY).unwrap_or_default());
        if !may_write(present.as_deref()) {
            println!("setup: whether services start is up to {POLICY} of this host");
            return Ok(None);
        }
        let start = std::fs::read_to_string("/proc/self/stat")
            .map_err(Failure::io("read", Path::new("/proc/self/stat")))?;
        let start = start_time(&start).ok_or_else(|| {
            Failure::Because("/proc/self/stat does not look as proc(5) says".to_owned())
        })?;
        println!(
            "setup: services of these packages are not started now ({POLICY} says so until this \
             ends);\n  with systemd they start at the next boot, unless you `systemctl disable` them"
        );
        let denied = Self { as_root };
        denied.write(&policy(std::process::id(), start))?;
        Ok(Some(denied))
    }

    fn write(&self, text: &str) -> Result<(), Failure> {
        // Whole or not at all, and executable at once.
        let mut install = (self.as_root)("install");
        install.args(["-m", "755", "/dev/stdin", POLICY]).stdin(Stdio::piped());
        let mut child = install.spawn().map_err(process::start_failure(&install))?;
        let written = match child.stdin.take() {
            Some(mut pipe) => pipe.write_all(text.as_bytes()),
            None => Ok(()),
        };
        let status = child.wait().map_err(Failure::io("write", Path::new(POLICY)))?;
        if !status.success() {
            return Err(process::ended(&install, status, String::new()));
        }
        written.map_err(Failure::io("write", Path::new(POLICY)))
    }
}

impl Drop for Denied {
    fn drop(&mut self) {
        if let Err(failure) = process::run((self.as_root)("rm").args(["-f", POLICY])) {
            println!("setup: {failure}; it says yes from now on, but remove it: rm {POLICY}");
        }
    }
}

/// Answers whether a policy may be put where `present` is: where there is none, or one that a
/// set-up left behind when it was killed.
fn may_write(present: Option<&[u8]>) -> bool {
    present.is_none_or(|bytes| String::from_utf8_lossy(bytes).lines().any(|line| line == MARK))
}

/// Makes the policy: no, as long as the process lives that began `start` ticks after boot.
///
/// A set-up that is killed cannot remove the file, so the file must not outlive it in effect. The
/// answer is no to everything, not to starts alone: an upgrade of a service that runs would else
/// stop it and not start it again.
fn policy(pid: u32, start: u64) -> String {
    format!(
        "#!/bin/sh\n{MARK}\n\
         # It says no while that runs and installs packages, and yes ever after.\n\
         read -r line 2>/dev/null < /proc/{pid}/stat || exit 0\n\
         set -- ${{line##*) }}\n\
         shift 19\n\
         [ \"$1\" = {start} ] && exit 101\n\
         exit 0\n"
    )
}

/// Reads when a process began, in ticks since boot: field 22 of its `stat` (proc(5)). The second
/// field is a name in brackets, which may hold anything.
fn start_time(stat: &str) -> Option<u64> {
    stat.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks a policy as invoke-rc.d does.
    fn answer(text: &str) -> i32 {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("policy-rc.d");
        std::fs::write(&file, text).unwrap();
        let asked = Command::new("sh").arg(&file).args(["snmpd", "start"]).output().unwrap();
        assert!(asked.stdout.is_empty() && asked.stderr.is_empty(), "{asked:?}");
        asked.status.code().unwrap()
    }

    #[test]
    fn a_policy_denies_while_its_set_up_lives_and_no_longer() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        let start = start_time(&stat).unwrap();
        let alive = answer(&policy(child.id(), start));
        let another = answer(&policy(child.id(), start + 1));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(alive, 101, "the code that means no");
        assert_eq!(another, 0, "the number was given to another process since");
        assert_eq!(answer(&policy(child.id(), start)), 0, "it was killed");
    }

    #[test]
    fn only_our_own_policy_is_replaced() {
        assert!(may_write(None));
        assert!(may_write(Some(policy(1, 2).as_bytes())));
        let theirs = format!("#!/bin/sh\n# not {MARK}\nexit 101\n");
        for theirs in [theirs.as_bytes(), b"", b"\xff\xfe"] {
            assert!(!may_write(Some(theirs)), "{theirs:?}");
        }
    }

    #[test]
    fn a_process_may_be_named_anything() {
        let fields = "S 1 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 4711 5 6";
        assert_eq!(start_time(&format!("7 (a) b) {fields}")), Some(4711));
        assert_eq!(start_time("7 (sh) S 1"), None);
    }
}
