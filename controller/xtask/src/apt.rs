//! Installs Debian packages with apt. Removes none unless the user said so: what an installation
//! would remove is found by a simulation, shown, and left to the user.

use std::process::Command;

use xtask::failure::TaskFailure;
use xtask::process;

/// Arguments of every installation.
const INSTALL: &[&str] = &["install", "-y", "--no-install-recommends"];

/// What happens to packages of the host that an installation would remove.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::Args)]
pub(crate) struct Conflicts {
    /// Lets the set-up remove packages of this host that are in the way of those it installs.
    #[arg(long)]
    pub(crate) remove_conflicting: bool,
}

/// How commands become root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Root {
    /// We are.
    Own,
    /// `sudo` runs them.
    Sudo,
}

impl Root {
    /// Finds a way to be root; none if there is no `sudo`.
    pub(crate) fn find() -> Option<Self> {
        // The owner of our own process folder: no unsafe call and no crate for one number.
        use std::os::unix::fs::MetadataExt as _;
        match std::fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0) {
            true => Some(Self::Own),
            false => process::find_program("sudo").map(|_| Self::Sudo),
        }
    }

    /// Makes a command that runs as root.
    pub(crate) fn command(self, program: &str) -> Command {
        match self {
            Self::Own => Command::new(program),
            Self::Sudo => {
                let mut sudo = Command::new("sudo");
                sudo.arg(program);
                sudo
            }
        }
    }

    fn apt_get(self, args: &[&str]) -> Command {
        // sudo drops the environment, so the variables travel as arguments of env.
        let mut command = self.command("env");
        command.args(["DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8", "apt-get", "-q"]);
        command.args(args);
        command
    }
}

/// What an installation would do, by package.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct AptPlan {
    /// Packages that this host does not have, dependencies included.
    pub(crate) new: Vec<String>,
    /// Packages that it has in an older version.
    pub(crate) upgraded: Vec<String>,
    /// Packages that it would lose.
    pub(crate) removed: Vec<String>,
}

impl AptPlan {
    /// Reads what `apt-get --simulate` prints.
    fn read(simulation: &str) -> Self {
        let mut plan = Self::default();
        for line in simulation.lines() {
            let mut words = line.split_whitespace();
            let (Some(what), Some(name)) = (words.next(), words.next()) else { continue };
            match what {
                // The version that is here stands in square brackets.
                "Inst" if words.next().is_some_and(|word| word.starts_with('[')) => {
                    plan.upgraded.push(name.to_owned());
                }
                "Inst" => plan.new.push(name.to_owned()),
                "Remv" => plan.removed.push(name.to_owned()),
                _ => {}
            }
        }
        plan
    }
}

/// Refreshes the lists of packages. Says whether apt was content: one bad index of many (a mirror
/// in mid-sync, a third party's repository) leaves lists that may be good enough.
pub(crate) fn update(root: Root) -> Result<(), TaskFailure> {
    process::narrate(&mut root.apt_get(&["update"]), "apt-get update")
}

/// Finds out what installing packages would do.
pub(crate) fn plan(root: Root, names: &[&str]) -> Result<AptPlan, TaskFailure> {
    let simulation = process::capture(root.apt_get(INSTALL).arg("--simulate").args(names))?;
    Ok(AptPlan::read(&String::from_utf8_lossy(&simulation)))
}

/// Installs packages. Removes none unless conflicts may be resolved so.
pub(crate) fn install(root: Root, names: &[&str], conflicts: Conflicts) -> Result<(), TaskFailure> {
    let mut command = root.apt_get(INSTALL);
    if !conflicts.remove_conflicting {
        command.arg("--no-remove");
    }
    process::narrate(command.args(names), "apt-get install")
}

/// Spells the installation for people, without `--no-remove`: apt asks the person who types it.
pub(crate) fn by_hand(names: &[&str]) -> String {
    format!("apt-get install --no-install-recommends {}", names.join(" "))
}

/// Says what is in the way of an installation and what the user can choose.
pub(crate) fn conflict(removed: &[String], names: &[&str]) -> TaskFailure {
    let removed = removed.join(" ");
    TaskFailure::Because(format!(
        "installing {} would remove packages that this host has: {removed}\n\
         nothing was changed; either run this again with --remove-conflicting, which removes \
         them,\nor keep them and install as root from the suite they came from (apt-cache policy \
         {removed}):\n  \
         {install} -t SUITE",
        names.join(" "),
        install = by_hand(names),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIMULATION: &str = "Reading package lists...\n\
        The following packages will be REMOVED:\n  qemu-utils\n\
        Remv qemu-utils [1:9.2.0+ds-2~bpo12+1]\n\
        Inst libc6 [2.36-9] (2.36-10 Debian:12.12/oldstable [amd64]) []\n\
        Inst qemu-system-arm (1:7.2+dfsg-7 Debian:12.12/oldstable [amd64])\n\
        Conf libc6 (2.36-10 Debian:12.12/oldstable [amd64])\n\
        Conf qemu-system-arm (1:7.2+dfsg-7 Debian:12.12/oldstable [amd64])\n";

    #[test]
    fn a_simulation_tells_what_is_new_upgraded_and_removed() {
        let plan = AptPlan::read(SIMULATION);
        assert_eq!(plan.new, ["qemu-system-arm"]);
        assert_eq!(plan.upgraded, ["libc6"]);
        assert_eq!(plan.removed, ["qemu-utils"]);
        assert_eq!(AptPlan::read("Reading package lists...\n\nRemv\n"), AptPlan::default());
    }

    #[test]
    fn a_conflict_names_both_sides_and_the_commands_to_choose_from() {
        let shown = conflict(&["qemu-utils".to_owned()], &["qemu-system-arm"]).to_string();
        for part in [
            "installing qemu-system-arm would remove packages that this host has: qemu-utils",
            "run this again with --remove-conflicting",
            "(apt-cache policy qemu-utils)",
            "\n  apt-get install --no-install-recommends qemu-system-arm -t SUITE",
        ] {
            assert!(shown.contains(part), "{shown}");
        }
    }

    #[test]
    fn sudo_runs_the_same_command_as_root_does() {
        let own = process::line(&Root::Own.apt_get(&["update"]));
        assert_eq!(process::line(&Root::Sudo.apt_get(&["update"])), format!("sudo {own}"));
        assert!(own.ends_with("DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 apt-get -q update"));
    }
}
