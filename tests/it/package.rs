//! The Debian package: unpacked, its program run and its files understood by those who read them.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::workshop::{Ran, Workshop, ran, tied};

/// Runs a program that must succeed.
#[track_caller]
fn runs(command: &mut Command) -> Ran {
    let ran = ran(command).unwrap_or_else(|why| panic!("{why}"));
    ran.says(0, &[]);
    ran
}

/// Builds the package from the program under test, and unpacks it.
fn unpacked(workshop: &Workshop) -> (PathBuf, PathBuf) {
    let jig = Path::new(env!("CARGO_BIN_EXE_jig"));
    let xtask = jig.with_file_name("xtask");
    assert!(xtask.exists(), "{} is not built: cargo build --workspace", xtask.display());
    let output = workshop.path("package");
    let mut build = tied(xtask);
    // That of this test names another package.
    build.env_remove("CARGO_MANIFEST_DIR");
    build.args(["package", "--unchecked", "--program"]).arg(jig).arg("--output").arg(&output);
    runs(&mut build);
    let mut made = fs::read_dir(&output).unwrap().map(|entry| entry.unwrap().path());
    let package = made.find(|path| path.extension() == Some("deb".as_ref())).unwrap();
    let root = workshop.path("root");
    runs(tied("dpkg-deb").arg("-x").arg(&package).arg(&root));
    (package, root)
}

#[test]
fn a_package_holds_a_program_that_runs_and_a_service_that_is_understood() {
    let workshop = Workshop::new();
    let (package, root) = unpacked(&workshop);
    let version = runs(tied(root.join("usr/bin/jig")).arg("--version")).out();
    let fields = runs(tied("dpkg-deb").arg("--field").arg(&package)).out();
    let number = version.trim().strip_prefix("jig ").unwrap();
    assert!(fields.contains(&format!("Version: {number}\n")), "{fields}");
    assert!(fields.contains("Depends: libc6 (>= "), "{fields}");
    for page in ["jig", "jig-serve", "jig-lease-acquire"] {
        let page = root.join(format!("usr/share/man/man1/{page}.1.gz"));
        assert!(runs(tied("zcat").arg(&page)).out().contains(".TH "), "{}", page.display());
    }
    for file in [
        "usr/share/bash-completion/completions/jig",
        "usr/share/doc/jig/copyright",
        "usr/share/doc/jig/changelog.gz",
        "usr/share/doc/jig/guide/serve.md",
        "usr/lib/sysusers.d/jig.conf",
        "usr/lib/tmpfiles.d/jig.conf",
    ] {
        let mode = fs::metadata(root.join(file)).unwrap_or_else(|why| panic!("{file}: {why}"));
        assert_eq!(mode.permissions().mode() & 0o777, 0o644, "{file}");
    }
    let boards = fs::read_dir(root.join("usr/share/jig/board-profiles")).unwrap();
    assert!(boards.count() > 10);

    // Nothing makes the service start: no link of a target, no order in a script.
    let wants: Vec<_> = fs::read_dir(root.join("usr/lib/systemd/system"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(wants, ["jig.service"]);
    assert!(!root.join("etc").exists());
    runs(tied("dpkg-deb").arg("--control").arg(&package).arg(workshop.path("control")));
    for script in ["postinst", "prerm", "postrm"] {
        let path = workshop.path("control").join(script);
        runs(tied("sh").arg("-n").arg(&path));
        let text = fs::read_to_string(&path).unwrap();
        for word in ["systemctl start", "systemctl enable", "systemctl restart", "invoke start"] {
            assert!(!text.contains(word), "{script}: {word}");
        }
    }

    // The unit, as it would be where the package is installed.
    let unit = fs::read_to_string(root.join("usr/lib/systemd/system/jig.service")).unwrap();
    if Path::new("/usr/bin/systemd-analyze").exists() {
        let here = unit.replace("/usr/bin/jig", root.join("usr/bin/jig").to_str().unwrap());
        let file = workshop.write("jig.service", here);
        let verified = runs(tied("systemd-analyze").args(["verify", "--man=no"]).arg(file));
        // Unknown settings are told, and end with 0.
        assert_eq!(verified.err(), "");
    }
    let setting = |key: &str| {
        let lines = unit.lines().filter_map(|line| line.split_once('='));
        lines.filter(|(name, _)| *name == key).map(|(_, value)| value).collect::<Vec<_>>()
    };
    let stop = setting("TimeoutStopSec")[0];
    assert!(stop.parse::<u32>().unwrap() > 120 + 30, "a stop drains for 2 min and ends a proof");
    // Commands outlive the service: what it has for itself alone is gone with it.
    assert_eq!(setting("KillMode"), ["process"]);
    assert_eq!(setting("PrivateTmp"), [""; 0], "commands would lose their /tmp at a restart");
    // All else is read-only, also a board's disk that is mounted before the start.
    let writable: BTreeSet<&str> = setting("ReadWritePaths")[0].split(' ').collect();
    for path in ["/var/lib/jig", "/tmp", "/var/tmp", "-/media", "-/sys/devices"] {
        assert!(writable.contains(path), "{path} is read-only");
    }
    // A mistake in the rig file ends the service with 3, and is no reason to start it again and again.
    assert_eq!(setting("RestartPreventExitStatus"), ["2 3"]);
    // Power by network is switched at a shutdown, too.
    assert_eq!(setting("After"), ["network.target"]);
    // Its groups exist wherever its account does.
    let accounts = fs::read_to_string(root.join("usr/lib/sysusers.d/jig.conf")).unwrap();
    let words = accounts.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let groups: BTreeSet<&str> =
        words.filter(|words| words.first() == Some(&"m")).map(|words| words[2]).collect();
    let wanted: BTreeSet<&str> = setting("SupplementaryGroups")[0].split(' ').collect();
    assert_eq!(groups, wanted);
}

#[test]
fn rules_for_probes_name_devices_that_exist_once() {
    let path = crate::manifest::repository().join("controller/packaging/deb/60-jig-probes.rules");
    let text = fs::read_to_string(path).unwrap();
    let mut seen = BTreeSet::new();
    for line in text.lines().filter(|line| line.starts_with("ATTRS{idVendor}")) {
        let value = |key: &str| {
            let from = line.split_once(&format!("{key}==\"")).unwrap_or_else(|| panic!("{line}"));
            from.1.split_once('"').unwrap().0.to_owned()
        };
        let hex = |text: &str| {
            text.len() == 4 && text.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'))
        };
        let vendor = value("ATTRS{idVendor}");
        assert!(hex(&vendor), "{line}");
        for product in value("ATTRS{idProduct}").split('|') {
            // All of SEGGER's with bit 12 set.
            assert!(hex(product) || product == "1*", "{line}");
            assert!(seen.insert((vendor.clone(), product.to_owned())), "{vendor}:{product} twice");
        }
        assert!(line.ends_with("MODE=\"0660\", GROUP=\"plugdev\", TAG+=\"uaccess\""), "{line}");
    }
    assert!(seen.len() > 20, "{seen:?}");
}
