//! The programs that profiles name.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jig_drivers::host::LocalHost;
use jig_lab::Catalogue;
use jig_model::flasher::FlasherPresets;
use jig_model::profile::Deploy;
use jig_model::protocol::{CommandEnd, Host as _, NoLedger};

use super::{DoctorFinding, DoctorLevel};

/// Debian's package of a program, by the beginning of the program's name; the first that
/// fits counts.
const PACKAGES: &[(&str, &str)] = &[
    ("qemu-system-arm", "qemu-system-arm"),
    ("qemu-system-aarch64", "qemu-system-arm"),
    ("qemu-system-mips", "qemu-system-mips"),
    ("qemu-system-ppc", "qemu-system-ppc"),
    ("qemu-system-sparc", "qemu-system-sparc"),
    ("qemu-system-i386", "qemu-system-x86"),
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("ipmitool", "ipmitool"),
    // Everything rarer, RISC-V among it.
    ("qemu-system-", "qemu-system-misc"),
];

/// A program that takes longer to say its version is broken: it takes some 30 ms.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// Longest version that is shown, in characters.
const MAX_VERSION: usize = 80;

/// Looks for the emulators of all boards.
pub(super) fn look(catalogue: &Catalogue) -> Vec<DoctorFinding> {
    let mut users: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for profile in catalogue.profiles.values() {
        if let Some(emulation) = &profile.emulation {
            users.entry(&emulation.program).or_default().push(profile.id.as_str());
        }
    }
    let found: Vec<_> =
        users.into_iter().map(|(program, boards)| (program, boards, find(program))).collect();
    // One emulator is enough to begin with; without any, nothing runs.
    let worst = match found.iter().any(|(_, _, path)| path.is_some()) {
        true => DoctorLevel::Warning,
        false => DoctorLevel::Missing,
    };
    let finding = |(program, boards, path): (&str, Vec<&str>, Option<PathBuf>)| match path {
        Some(path) => match version(&path) {
            Ok(version) => DoctorFinding::ok(program, format!("{version} ({})", path.display())),
            Err(why) => DoctorFinding::bad(
                program,
                worst,
                format!("{}: {why}", path.display()),
                fix(program),
            ),
        },
        None => {
            let found = format!("not in PATH; needed by {}", boards.join(", "));
            DoctorFinding::bad(program, worst, found, fix(program))
        }
    };
    found.into_iter().map(finding).chain(flashers(catalogue)).collect()
}

/// Looks for the flashers of places whose boards name one. Their versions are not asked:
/// not every flasher takes the question well.
fn flashers(catalogue: &Catalogue) -> Vec<DoctorFinding> {
    let mut users: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for place in &catalogue.rig.places {
        let profile = catalogue.profiles.get(&place.board);
        let Some(Deploy::Command(command)) = profile.and_then(|profile| profile.deploy_at(place))
        else {
            continue;
        };
        if let Some(program) = command.argv.into_iter().next() {
            users.entry(program).or_default().push(place.name.as_str());
        }
    }
    let finding = |(program, places): (String, Vec<&str>)| match find(&program) {
        Some(path) => DoctorFinding::ok(&program, path.display().to_string()),
        None => {
            let found = format!("not in PATH; needed to flash {}", places.join(", "));
            DoctorFinding::bad(&program, DoctorLevel::Warning, found, fix(&program))
        }
    };
    users.into_iter().map(finding).collect()
}

pub(super) fn fix(program: &str) -> String {
    let preset = FlasherPresets::shipped().of_program(program);
    let known = preset.and_then(|preset| preset.install.command());
    match PACKAGES.iter().find(|(head, _)| program.starts_with(head)) {
        Some((_, package)) => format!("sudo apt-get install {package}"),
        None => known.unwrap_or_else(|| format!("install {program}, or put it into PATH")),
    }
}

/// Finds a program as it is started: one with a slash is no matter of PATH.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|file| is_program(file));
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Asks a program for its version.
pub(super) fn version(path: &Path) -> Result<String, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let output = std::env::temp_dir().join(format!("jig-doctor-{}-{name}", std::process::id()));
    let host = LocalHost { cwd: "/".into(), ledger: Arc::new(NoLedger) };
    let argv = [path.display().to_string(), "--version".to_owned()];
    let end = runtime.block_on(host.command(&argv, ANSWERS_WITHIN, &output));
    let text = std::fs::read(&output).unwrap_or_default();
    let _ = std::fs::remove_file(&output);
    let text = String::from_utf8_lossy(&text);
    let first: String = text.lines().next().unwrap_or_default().chars().take(MAX_VERSION).collect();
    match end {
        Ok(CommandEnd::Exited(0)) if !first.is_empty() => Ok(first),
        Ok(CommandEnd::Exited(code)) => Err(format!("--version ended with {code}: {first}")),
        Ok(CommandEnd::Signalled(signal)) => {
            Err(format!("--version was killed by signal {signal}"))
        }
        Ok(CommandEnd::TimedOut) => Err("--version does not end".to_owned()),
        Err(error) => Err(crate::failure::chain(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_gets_a_command_that_helps() {
        assert_eq!(fix("qemu-system-aarch64"), "sudo apt-get install qemu-system-arm");
        assert_eq!(fix("qemu-system-riscv32"), "sudo apt-get install qemu-system-misc");
        assert_eq!(fix("bossac"), "sudo apt-get install bossa-cli");
        assert_eq!(fix("pyocd"), "pipx install pyocd");
        assert!(fix("renode").contains("PATH"));
    }

    #[test]
    fn versions_are_asked_for_and_failures_told() {
        let folder = tempfile::tempdir().unwrap();
        let script = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            path
        };
        let good = script("good", "#!/bin/sh\necho emulator 1.2\necho more\n");
        let bad = script("bad", "#!/bin/sh\necho broken >&2\nexit 3\n");
        assert_eq!(version(&good).unwrap(), "emulator 1.2");
        assert_eq!(version(&bad).unwrap_err(), "--version ended with 3: broken");
        assert!(version(Path::new("/no/such/program")).is_err());
    }
}
