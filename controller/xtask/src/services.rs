//! Keeps services from starting, now and at boot, while packages are installed.
//!
//! Some packages of the list are servers that tests start themselves, on ports of their own.
//! Debian starts such a server when it is installed, unless `/usr/sbin/policy-rc.d` says no
//! (invoke-rc.d(8)), and enables it at boot. This module puts such a file there while apt runs,
//! and then disables what the new packages have enabled, with Debian's own commands. It refuses to
//! touch a policy of the host's own, and services of packages that were there before.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use xtask::failure::TaskFailure;
use xtask::process;

use crate::apt::Root;

/// Where Debian looks for the policy.
const POLICY: &str = "/usr/sbin/policy-rc.d";

/// What makes a policy recognisable as ours.
const MARK: &str = "# Made by `cargo xtask setup` of Jig";

/// How its line begins that names the new packages, for a set-up after one that was killed.
const PACKAGES: &str = "# packages:";

/// An installation whose services do not start.
#[derive(Debug)]
pub(crate) struct Quiet {
    root: Root,
    packages: Vec<String>,
    /// Whether the policy is ours to remove.
    policy: bool,
}

impl Quiet {
    /// Denies services to start. A host with a policy of its own keeps it.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub(crate) fn begin(root: Root, packages: &[&str]) -> Result<Self, TaskFailure> {
        let present = present();
        let packages: Vec<String> = packages.iter().map(|name| (*name).to_owned()).collect();
        let mut quiet = Self { root, packages, policy: may_write(present.as_deref()) };
        if !quiet.policy {
            println!("setup: {POLICY} of this host decides whether services start now");
            return Ok(quiet);
        }
        quiet.packages.extend(packages_of(present.as_deref()));
        let start = std::fs::read_to_string("/proc/self/stat")
            .map_err(TaskFailure::io("read", Path::new("/proc/self/stat")))?;
        let start = start_time(&start).ok_or_else(|| {
            TaskFailure::Because("/proc/self/stat does not look as proc(5) says".to_owned())
        })?;
        quiet.write(&policy(std::process::id(), start, &quiet.packages))?;
        Ok(quiet)
    }

    /// Disables at boot what the new packages have enabled, and removes the policy.
    ///
    /// # Errors
    /// Names a service that is still enabled; the policy then stays, without effect, so that the
    /// next set-up tries again.
    pub(crate) fn end(mut self) -> Result<(), TaskFailure> {
        let disabled = disable(self.root, &self.packages);
        if disabled.is_err() {
            self.policy = false;
        }
        let disabled = disabled?;
        if !disabled.is_empty() {
            println!(
                "setup: not started, now or at boot: {} (systemctl enable --now NAME does both)",
                disabled.join(" ")
            );
        }
        Ok(())
    }

    fn write(&self, text: &str) -> Result<(), TaskFailure> {
        // Whole or not at all, and executable at once.
        let mut install = self.root.command("install");
        install.args(["-m", "755", "/dev/stdin", POLICY]).stdin(Stdio::piped());
        let mut child = install.spawn().map_err(process::start_failure(&install))?;
        let written = match child.stdin.take() {
            Some(mut pipe) => pipe.write_all(text.as_bytes()),
            None => Ok(()),
        };
        let status = child.wait().map_err(TaskFailure::io("write", Path::new(POLICY)))?;
        if !status.success() {
            return Err(process::ended(&install, status, String::new()));
        }
        written.map_err(TaskFailure::io("write", Path::new(POLICY)))
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        if !self.policy {
            return;
        }
        if let Err(failure) = process::run(self.root.command("rm").args(["-f", POLICY])) {
            println!("setup: {failure}; the file has no effect from now on: rm {POLICY}");
        }
    }
}

/// Returns the policy that is there. What is no text is not ours, and what cannot be read is there.
fn present() -> Option<Vec<u8>> {
    Path::new(POLICY).exists().then(|| std::fs::read(POLICY).unwrap_or_default())
}

/// Returns the packages of a set-up that was killed before it disabled their services.
pub(crate) fn left_behind() -> Vec<String> {
    packages_of(present().as_deref())
}

fn packages_of(policy: Option<&[u8]>) -> Vec<String> {
    let Some(text) = policy.filter(|_| may_write(policy)) else { return Vec::new() };
    let text = String::from_utf8_lossy(text);
    let names = text.lines().find_map(|line| line.strip_prefix(PACKAGES)).unwrap_or_default();
    names.split_whitespace().map(str::to_owned).collect()
}

/// Tells whether a policy may be put where `present` is: where there is none, or one that a
/// set-up left behind when it was killed.
fn may_write(present: Option<&[u8]>) -> bool {
    present.is_none_or(|bytes| String::from_utf8_lossy(bytes).lines().any(|line| line == MARK))
}

/// Makes the policy: no, as long as the process lives that began `start` ticks after boot.
///
/// A set-up that is killed cannot remove the file, so the file must not outlive it in effect. The
/// answer is no to everything, not to starts alone: an upgrade of a service that runs would else
/// stop it and not start it again.
fn policy(pid: u32, start: u64, packages: &[String]) -> String {
    format!(
        "#!/bin/sh\n{MARK}\n\
         # It says no while that runs and installs packages, and yes ever after.\n\
         {PACKAGES} {}\n\
         read -r line 2>/dev/null < /proc/{pid}/stat || exit 0\n\
         set -- ${{line##*) }}\n\
         shift 19\n\
         [ \"$1\" = {start} ] && exit 101\n\
         exit 0\n",
        packages.join(" ")
    )
}

/// Something that a package starts at boot.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Service {
    /// A unit of systemd, with its suffix.
    Unit(String),
    /// A script in `/etc/init.d`.
    Script(String),
}

impl Service {
    /// Recognises a service by a file of its package.
    fn of_file(path: &str) -> Option<Self> {
        let (folder, name) = path.rsplit_once('/')?;
        match folder.trim_start_matches("/usr") {
            "/etc/init.d" => Some(Self::Script(name.to_owned())),
            "/lib/systemd/system" => {
                Path::new(name).extension().map(|_| Self::Unit(name.to_owned()))
            }
            _ => None,
        }
    }

    /// Finds the links below `/etc` that make it start at boot; a unit's other names are some.
    fn links(&self, etc: &Path) -> Vec<PathBuf> {
        match self {
            Self::Unit(name) => {
                let system = etc.join("systemd/system");
                let wants = |path: &PathBuf| {
                    path.extension().is_some_and(|e| e == "wants" || e == "requires")
                };
                let folders = entries(&system).into_iter().filter(wants);
                let links = folders.flat_map(|folder| entries(&folder)).chain(entries(&system));
                let to_it =
                    |link: &PathBuf| std::fs::read_link(link).is_ok_and(|to| to.ends_with(name));
                links.filter(to_it).collect()
            }
            Self::Script(name) => {
                let levels = ["rc2.d", "rc3.d", "rc4.d", "rc5.d", "rcS.d"];
                let links = levels.iter().flat_map(|level| entries(&etc.join(level)));
                let starts_it = |link: &PathBuf| {
                    let link = link.file_name().unwrap_or_default().to_string_lossy();
                    // S, two digits, and the name.
                    link.starts_with('S') && link.get(3..) == Some(name)
                };
                links.filter(starts_it).collect()
            }
        }
    }

    /// Disables it as systemctl(1) and update-rc.d(8) do. A host may have no systemctl, and
    /// maintainer scripts take a missing link for the user's wish.
    fn disable(&self, root: Root, links: &[PathBuf]) -> Result<(), TaskFailure> {
        let mut command;
        match self {
            Self::Unit(_) => {
                command = root.command("rm");
                command.args(["-f", "--"]).args(links);
            }
            Self::Script(name) => {
                command = root.command("update-rc.d");
                command.args([name, "disable"]);
            }
        }
        process::capture(&mut command).map(drop)
    }

    fn name(&self) -> &str {
        match self {
            Self::Unit(name) | Self::Script(name) => name,
        }
    }
}

/// Lists a folder, which may not exist.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Disables the services of packages that are enabled at boot, and returns their names.
fn disable(root: Root, packages: &[String]) -> Result<Vec<String>, TaskFailure> {
    let etc = PathBuf::from("/etc");
    let mut names = Vec::new();
    for package in packages {
        // A set-up that was killed, or an apt that failed, has not installed all of them.
        let Ok(files) = process::capture(Command::new("dpkg").args(["-L", package])) else {
            continue;
        };
        let files = String::from_utf8_lossy(&files).into_owned();
        for service in files.lines().filter_map(Service::of_file) {
            let links = service.links(&etc);
            if links.is_empty() {
                continue;
            }
            service.disable(root, &links)?;
            if !service.links(&etc).is_empty() {
                let name = service.name();
                return Err(TaskFailure::Because(format!(
                    "{name} of package {package} still starts at boot: systemctl disable {name}"
                )));
            }
            names.push(service.name().to_owned());
        }
    }
    Ok(names)
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
        let alive = answer(&policy(child.id(), start, &[]));
        let another = answer(&policy(child.id(), start + 1, &[]));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(alive, 101, "the code that means no");
        assert_eq!(another, 0, "the number was given to another process since");
        assert_eq!(answer(&policy(child.id(), start, &[])), 0, "it was killed");
    }

    #[test]
    fn only_our_own_policy_is_replaced() {
        assert!(may_write(None));
        assert!(may_write(Some(policy(1, 2, &[]).as_bytes())));
        let theirs = format!("#!/bin/sh\n# not {MARK}\nexit 101\n");
        for theirs in [theirs.as_bytes(), b"", b"\xff\xfe"] {
            assert!(!may_write(Some(theirs)), "{theirs:?}");
        }
    }

    #[test]
    fn a_policy_left_behind_names_its_packages() {
        let names = ["snmpd", "ser2net"].map(str::to_owned);
        assert_eq!(packages_of(Some(policy(1, 2, &names).as_bytes())), names);
        assert!(packages_of(Some(policy(1, 2, &[]).as_bytes())).is_empty());
        assert!(packages_of(None).is_empty());
        let theirs = format!("#!/bin/sh\n{PACKAGES} snmpd\n");
        assert!(packages_of(Some(theirs.as_bytes())).is_empty());
    }

    #[test]
    fn services_are_recognised_by_their_files() {
        let unit = |name: &str| Some(Service::Unit(name.to_owned()));
        assert_eq!(Service::of_file("/lib/systemd/system/snmpd.service"), unit("snmpd.service"));
        assert_eq!(Service::of_file("/usr/lib/systemd/system/ssh.socket"), unit("ssh.socket"));
        let script = Some(Service::Script("snmpd".to_owned()));
        assert_eq!(Service::of_file("/etc/init.d/snmpd"), script);
        for other in ["/usr/sbin/snmpd", "/lib/systemd/system", "/etc/init.d", "snmpd"] {
            assert_eq!(Service::of_file(other), None, "{other}");
        }
    }

    #[test]
    fn a_service_starts_at_boot_by_its_links() {
        let etc = tempfile::tempdir().unwrap();
        let unit = Service::Unit("a.service".to_owned());
        let script = Service::Script("a".to_owned());
        let link = |path: &str, to: &str| {
            let path = etc.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(to, &path).unwrap();
            path
        };
        assert!(unit.links(etc.path()).is_empty());
        link("systemd/system/multi-user.target.wants/b.service", "/lib/systemd/system/b.service");
        link("systemd/system/a.service", "/dev/null");
        link("rc2.d/K01a", "../init.d/a");
        link("rc2.d/S01aa", "../init.d/aa");
        assert!(unit.links(etc.path()).is_empty() && script.links(etc.path()).is_empty());
        let wants = "systemd/system/multi-user.target.wants/a.service";
        let mut links = [
            link(wants, "/lib/systemd/system/a.service"),
            link("systemd/system/alias.service", "/lib/systemd/system/a.service"),
        ];
        links.sort();
        let mut found = unit.links(etc.path());
        found.sort();
        assert_eq!(found, links);
        assert_eq!(script.links(etc.path()), [] as [PathBuf; 0]);
        let starts = link("rc3.d/S01a", "../init.d/a");
        assert_eq!(script.links(etc.path()), [starts]);
    }

    #[test]
    fn a_process_may_be_named_anything() {
        let fields = "S 1 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 4711 5 6";
        assert_eq!(start_time(&format!("7 (a) b) {fields}")), Some(4711));
        assert_eq!(start_time("7 (sh) S 1"), None);
    }
}
