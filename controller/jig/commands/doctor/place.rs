//! What keeps this user from using one place: rights, other programs, devices that are not there.
//!
//! Opens no device: looks at nodes, their groups and the processes that have them open. A shell over SSH
//! is asked.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use jig_drivers::flasher::{mount_command, volume_mounts};
use jig_drivers::serial::port_user;
use jig_lab::{Catalogue, ShellSilence};
use jig_model::PlaceName;
use jig_model::flasher::InstallHint;
use jig_model::profile::{Deploy, FlashCommand};
use jig_model::rig_file::{ConsoleTransport, Endpoint, Place, ProbePart};
use jig_model::shell::TargetShell;
use jig_probe::{ProbeInfo, list_probes_now};
use nix::errno::Errno;
use nix::unistd::{AccessFlags, Gid, Group, access};

use super::{DoctorFinding, DoctorLevel, find_program};
use crate::failure::{Failure, chain};

/// Looks at the devices of a place.
pub(super) async fn look(
    catalogue: &Catalogue,
    name: &PlaceName,
) -> Result<Vec<DoctorFinding>, Failure> {
    let (place, profile) = catalogue.place(name)?;
    let mut findings: Vec<DoctorFinding> = place.consoles.iter().filter_map(console).collect();
    findings.extend(flasher_port(&place));
    if let Some(bound) = place.probe.as_ref().filter(|probe| !probe.is_served()) {
        findings.push(match list_probes_now() {
            Ok(attached) => probe(bound, &attached),
            Err(error) => {
                let fix = "plug the probes in again, one after the other: jig probes";
                DoctorFinding::bad("probe", DoctorLevel::Missing, chain(&error), fix)
            }
        });
    }
    match profile.deploy_at(&place) {
        Some(Deploy::Command(command)) => findings.push(flasher(&command, find_program)),
        Some(Deploy::Volume(copy)) => {
            findings.push(volume(&copy.volume, &volume_mounts(&copy.volume)));
        }
        _ => {}
    }
    if let Some(access) = profile.shell_at(&place) {
        findings.push(shell(name, &access, catalogue.ask_shell(&place, &profile).await));
    }
    if findings.is_empty() {
        let found = "it has no serial port of this host, no debug probe and no shell";
        findings.push(DoctorFinding::ok(format!("place {name}"), found));
    }
    Ok(findings)
}

/// Tells how the shell of a place is reached, and whether it answers.
fn shell(
    name: &PlaceName,
    access: &TargetShell,
    answer: Result<Option<String>, ShellSilence>,
) -> DoctorFinding {
    let by = access.via;
    match answer {
        Ok(Some(_)) => DoctorFinding::ok("shell", "it answers over ssh"),
        Ok(None) => {
            let found =
                format!("over {by}; it is asked when a command runs: jig exec -b {name} -- true");
            DoctorFinding::ok("shell", found)
        }
        Err(error) => {
            let fix = format!("correct `[place.shell]`, then: jig exec -b {name} -- true");
            DoctorFinding::bad("shell", DoctorLevel::Missing, chain(&error), fix)
        }
    }
}

fn console(transport: &ConsoleTransport) -> Option<DoctorFinding> {
    let Endpoint::Tty(path) = &transport.end else { return None };
    let check = format!("console {}", transport.console);
    Some(tty(&check, Path::new(path), &TtyState::of(Path::new(path))))
}

/// Looks at the port of the flasher, where that is no console of the place.
fn flasher_port(place: &Place) -> Option<DoctorFinding> {
    let port = place.flasher.as_ref().and_then(|flasher| flasher.port.as_deref())?;
    let is_it = |transport: &ConsoleTransport| matches!(&transport.end, Endpoint::Tty(path) if path == port);
    let path = Path::new(port);
    (!place.consoles.iter().any(is_it)).then(|| tty("flasher port", path, &TtyState::of(path)))
}

/// Looks for the program that flashes the board.
fn flasher(command: &FlashCommand, find: impl Fn(&str) -> Option<PathBuf>) -> DoctorFinding {
    let program = command.argv.first().map_or("", String::as_str);
    if let Some(path) = find(program) {
        return DoctorFinding::ok("flasher", path.display().to_string());
    }
    let install = command.install.as_ref().and_then(InstallHint::command);
    let fix =
        install.unwrap_or_else(|| "install it, or correct its name in the rig file".to_owned());
    let found = format!("{program}, which flashes the board, is not installed");
    DoctorFinding::bad("flasher", DoctorLevel::Missing, found, fix)
}

/// Tells whether the image can be copied to a volume. One of a boot loader is there only while that runs.
fn volume(name: &str, mounts: &[PathBuf]) -> DoctorFinding {
    let bad = |level, found, fix: &str| DoctorFinding::bad("volume", level, found, fix);
    match mounts {
        [] => {
            let found =
                format!("{name} is not mounted: it is while its probe or boot loader is there");
            bad(DoctorLevel::Warning, found, &mount_command(name))
        }
        [one] => match access(one, AccessFlags::W_OK) {
            Ok(()) => DoctorFinding::ok("volume", format!("{name} at {}", one.display())),
            Err(Errno::EROFS) => {
                let found = format!("{} is read-only", one.display());
                bad(DoctorLevel::Missing, found, "plug the board in again")
            }
            Err(_) => {
                let found = format!("this user may not write to {}", one.display());
                let fix = "unmount it, then as this user: udisksctl mount -b DEVICE";
                bad(DoctorLevel::Missing, found, fix)
            }
        },
        several => {
            let shown: Vec<_> = several.iter().map(|at| at.display().to_string()).collect();
            let found = format!("{name} is mounted at {}", shown.join(" and "));
            let fix = "write the whole path of one of them as `volume`, or unplug the others";
            bad(DoctorLevel::Missing, found, fix)
        }
    }
}

/// What is known of a serial port without opening it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TtyState {
    /// There is no such node.
    Absent,
    /// This user may not open it; the group that may, if it has a name.
    Forbidden { device: PathBuf, group: Option<String> },
    /// A process has it open: its name and id.
    Used(String),
    /// It can be opened.
    Free,
}

impl TtyState {
    fn of(path: &Path) -> Self {
        let (Ok(meta), Ok(device)) = (fs::metadata(path), fs::canonicalize(path)) else {
            return Self::Absent;
        };
        if access(path, AccessFlags::R_OK | AccessFlags::W_OK).is_err() {
            let group = Group::from_gid(Gid::from_raw(meta.gid())).ok().flatten();
            return Self::Forbidden { device, group: group.map(|group| group.name) };
        }
        port_user(path).map_or(Self::Free, Self::Used)
    }
}

fn tty(check: &str, path: &Path, state: &TtyState) -> DoctorFinding {
    let shown = path.display();
    let bad =
        |found: String, fix: String| DoctorFinding::bad(check, DoctorLevel::Missing, found, fix);
    match state {
        TtyState::Absent => bad(
            format!("there is no {shown}"),
            "plug the adapter in, or correct its name in the rig file: jig discover".to_owned(),
        ),
        TtyState::Forbidden { device, group: Some(group) } if group != "root" => bad(
            format!(
                "this user may not open {shown}: {} belongs to group {group}",
                device.display()
            ),
            format!("sudo usermod -aG {group} $USER   # then log in again"),
        ),
        TtyState::Forbidden { device, .. } => bad(
            format!("this user may not open {shown}: {} belongs to root alone", device.display()),
            format!("sudo chgrp dialout {0} && sudo chmod g+rw {0}", device.display()),
        ),
        TtyState::Used(by) if by.starts_with("ModemManager ") => bad(
            format!("{by} has {shown} open, as it does with every new port"),
            "sudo systemctl disable --now ModemManager".to_owned(),
        ),
        // The capture service lends its ports.
        TtyState::Used(by) if by.starts_with("jig ") => {
            DoctorFinding::ok(check, format!("{shown}, in use by {by}"))
        }
        TtyState::Used(by) => bad(format!("{by} has {shown} open"), end(by)),
        TtyState::Free => DoctorFinding::ok(check, shown.to_string()),
    }
}

fn probe(bound: &ProbePart, attached: &[ProbeInfo]) -> DoctorFinding {
    let selector = &bound.selector;
    let bad =
        |found: String, fix: String| DoctorFinding::bad("probe", DoctorLevel::Missing, found, fix);
    let meant: Vec<&ProbeInfo> =
        attached.iter().filter(|probe| bound.may_mean(&probe.selector)).collect();
    match meant.as_slice() {
        [] => {
            let present: Vec<&str> = attached.iter().map(|probe| probe.selector.as_str()).collect();
            let present = match present.is_empty() {
                true => "none is attached".to_owned(),
                false => format!("there are {}", present.join(", ")),
            };
            let fix = "plug it in, or correct `selector`: jig probes".to_owned();
            bad(format!("there is no probe {selector}; {present}"), fix)
        }
        [one] if !one.accessible => {
            bad(format!("this user may not open {selector}"), rule(selector))
        }
        [one] => match &one.holder {
            Some(by) if by.starts_with("jig ") => {
                DoctorFinding::ok("probe", format!("{selector}, in use by {by}"))
            }
            Some(by) => bad(format!("{by} has probe {selector} open"), end(by)),
            None => DoctorFinding::ok("probe", format!("{selector} ({})", one.name)),
        },
        several => {
            let names: Vec<&str> = several.iter().map(|probe| probe.selector.as_str()).collect();
            let fix = "write the serial number behind `selector`; without one, unplug one of them";
            bad(format!("{selector} means {}", names.join(", ")), fix.to_owned())
        }
    }
}

/// Returns the command that lets users of this host open a USB device.
fn rule(selector: &str) -> String {
    let mut parts = selector.splitn(3, ':');
    let vendor = parts.next().unwrap_or_default();
    let product = parts.next().unwrap_or_default();
    let product = product.split_once('-').map_or(product, |(id, _)| id);
    format!(
        "echo 'ATTRS{{idVendor}}==\"{vendor:0>4}\", ATTRS{{idProduct}}==\"{product:0>4}\", \
         MODE=\"0660\", GROUP=\"plugdev\", TAG+=\"uaccess\"' \
         | sudo tee /etc/udev/rules.d/70-jig-{vendor:0>4}-{product:0>4}.rules \
         && sudo udevadm control --reload && sudo udevadm trigger"
    )
}

/// Returns the command that ends a program, named as `NAME (pid N)`.
fn end(by: &str) -> String {
    let pid = by.rsplit_once("pid ").and_then(|(_, rest)| rest.trim_end_matches(')').parse().ok());
    match pid {
        Some(pid) => {
            let pid: u32 = pid;
            format!("close it, or: kill {pid}")
        }
        None => "close it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use jig_model::rig_file::FlasherPart;

    use super::*;

    fn of_tty(state: &TtyState) -> (DoctorLevel, String) {
        let finding = tty("console uart0", Path::new("/dev/serial/by-id/x"), state);
        (finding.level, finding.fix.unwrap_or_default())
    }

    #[test]
    fn each_obstacle_of_a_port_has_its_command() {
        let device = PathBuf::from("/dev/ttyUSB0");
        let forbidden = |group: &str| TtyState::Forbidden {
            device: device.clone(),
            group: Some(group.to_owned()),
        };
        for (state, fix) in [
            (forbidden("dialout"), "sudo usermod -aG dialout $USER   # then log in again"),
            (forbidden("root"), "sudo chgrp dialout /dev/ttyUSB0 && sudo chmod g+rw /dev/ttyUSB0"),
            (
                TtyState::Used("ModemManager (pid 7)".to_owned()),
                "sudo systemctl disable --now ModemManager",
            ),
            (TtyState::Used("minicom (pid 4711)".to_owned()), "close it, or: kill 4711"),
            (
                TtyState::Absent,
                "plug the adapter in, or correct its name in the rig file: jig discover",
            ),
        ] {
            assert_eq!(of_tty(&state), (DoctorLevel::Missing, fix.to_owned()), "{state:?}");
        }
        for state in [TtyState::Free, TtyState::Used("jig (pid 5)".to_owned())] {
            assert_eq!(of_tty(&state).0, DoctorLevel::Ok, "{state:?}");
        }
    }

    #[test]
    fn the_port_of_a_flasher_that_is_no_console_is_looked_at() {
        let place = |console: &str| {
            let mut place = Place::new("p".parse().unwrap(), "b".parse().unwrap());
            place.consoles = vec![ConsoleTransport {
                console: "uart0".parse().unwrap(),
                end: Endpoint::Tty(console.to_owned()),
                baud: None,
                timeout: None,
                ready: None,
                capture: None,
            }];
            let port = Some("/dev/ttyJig8".to_owned());
            place.flasher = Some(FlasherPart { port, ..FlasherPart::default() });
            place
        };
        let finding = flasher_port(&place("/dev/ttyJig9")).unwrap();
        assert_eq!((finding.level, finding.check.as_str()), (DoctorLevel::Missing, "flasher port"));
        assert!(flasher_port(&place("/dev/ttyJig8")).is_none());
    }

    #[test]
    fn each_obstacle_of_a_volume_has_its_command() {
        let folder = tempfile::tempdir().unwrap();
        let one = folder.path().to_owned();
        assert_eq!(volume("MICROBIT", std::slice::from_ref(&one)).level, DoctorLevel::Ok);
        let absent = volume("MICROBIT", &[]);
        assert_eq!(absent.level, DoctorLevel::Warning);
        assert_eq!(absent.fix.as_deref(), Some("udisksctl mount -b /dev/disk/by-label/MICROBIT"));
        let both = volume("MICROBIT", &[one.clone(), one]);
        assert_eq!(both.level, DoctorLevel::Missing);
        assert!(both.fix.unwrap().contains("whole path"));
    }

    #[test]
    fn a_flasher_that_is_not_installed_has_its_command() {
        let mut command = FlashCommand::new(vec!["avrdude".to_owned()]);
        let absent = flasher(&command, |_| None);
        assert_eq!(absent.level, DoctorLevel::Missing);
        assert!(absent.fix.unwrap().contains("install it, or correct its name"));
        let debian = Some("avrdude".to_owned());
        command.install = Some(InstallHint { debian, ..InstallHint::default() });
        let absent = flasher(&command, |_| None);
        assert_eq!(absent.fix.as_deref(), Some("sudo apt-get install avrdude"));
        let there = flasher(&command, |program| Some(Path::new("/bin").join(program)));
        assert_eq!((there.level, there.found.as_str()), (DoctorLevel::Ok, "/bin/avrdude"));
    }

    #[test]
    fn the_state_of_a_port_is_seen_without_opening_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ttyX");
        assert_eq!(TtyState::of(&path), TtyState::Absent);
        fs::write(&path, "").unwrap();
        assert_eq!(TtyState::of(&path), TtyState::Free);
    }

    #[test]
    fn each_obstacle_of_a_probe_has_its_command() {
        let bound = ProbePart { selector: "0483:374b".to_owned(), ..ProbePart::default() };
        let attached = |serial: &str, accessible, holder: Option<&str>| ProbeInfo {
            name: "STLink V2-1".to_owned(),
            selector: format!("0483:374b:{serial}"),
            kind: "ST-LINK".to_owned(),
            port: None,
            holder: holder.map(str::to_owned),
            accessible,
        };
        let fix = |attached: &[ProbeInfo]| probe(&bound, attached).fix.unwrap_or_default();
        assert!(fix(&[]).contains("jig probes"));
        let rule = fix(&[attached("1", false, None)]);
        assert!(rule.contains("ATTRS{idVendor}==\"0483\", ATTRS{idProduct}==\"374b\""), "{rule}");
        assert!(rule.contains("/etc/udev/rules.d/70-jig-0483-374b.rules"), "{rule}");
        let held = attached("1", true, Some("openocd (pid 99)"));
        assert_eq!(fix(&[held]), "close it, or: kill 99");
        let two = [attached("1", true, None), attached("2", true, None)];
        assert!(fix(&two).contains("serial number"));
        assert_eq!(probe(&bound, &two[..1]).level, DoctorLevel::Ok);
    }
}
