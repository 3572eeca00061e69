//! Commands on a target that runs an operating system, and consoles, at a rig behind a real SSH server.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::manifest::elf;
use crate::remote::OverSsh;
use crate::workshop::{Ran, Slot, ran};

/// A rig whose place is this host as a computer: behind the SSH server that leads to the rig.
fn with_computer() -> OverSsh {
    let hosts = OverSsh::new();
    let file = |name: &str| hosts.sshd.file(name).display().to_string();
    fs::write(hosts.sshd.file("known"), hosts.sshd.known_line("host.pub")).unwrap();
    hosts.rig.write(
        "rig.toml",
        format!(
            "version = 1\n[[place]]\nname = \"pc\"\nboard = \"arm64-virt\"\n[place.shell]\n\
             host = \"127.0.0.1\"\nport = {}\nidentity = {:?}\nknown_hosts = {:?}\n",
            hosts.sshd.port(),
            file("user"),
            file("known"),
        ),
    );
    hosts
}

fn at_rig(hosts: &OverSsh, args: &[&str]) -> Ran {
    ran(&mut hosts.call(args)).unwrap_or_else(|why| panic!("{why}"))
}

#[test]
fn commands_and_copies_by_another_rig_are_those_of_the_caller() {
    let hosts = with_computer();
    let script = "printf 'a\\033[31mb\\n'; echo err >&2; exit 42";
    let told = at_rig(&hosts, &["exec", "-b", "pc", "--", "sh", "-c", script]);
    assert_eq!((told.code(), told.out().as_str()), (42, "a\u{1b}[31mb\nerr\n"), "{told}");
    let told = at_rig(&hosts, &["--json", "exec", "-b", "pc", "--", "sh", "-c", script]);
    let json = told.json().unwrap();
    assert_eq!((told.code(), &json["status"]), (42, &Value::from(42)), "{told}");
    assert_eq!(json["output"], "a\u{1b}[31mb\nerr\n");
    // Files are those of the desk, which shares no folder with the rig; what is copied is more than
    // one message holds.
    let sent: Vec<u8> = (0..=255).cycle().take(700_000).collect();
    let file = hosts.desk.write("tool", &sent);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    let there = hosts.rig.path("there");
    fs::create_dir(&there).unwrap();
    let to = format!(":{}/", there.display());
    at_rig(&hosts, &["cp", "-b", "pc", "tool", &to]).says(0, &["sha256"]);
    let found: Vec<_> = fs::read_dir(&there).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(found, [there.join("tool")], "it has the name that the caller gave it");
    assert_eq!(fs::read(&found[0]).unwrap(), sent);
    assert_eq!(found[0].metadata().unwrap().permissions().mode() & 0o777, 0o755);
    let from = format!(":{}", found[0].display());
    let back = at_rig(&hosts, &["--json", "cp", "-b", "pc", &from, "back"]);
    back.says(0, &[]);
    assert_eq!(back.json().unwrap()["bytes"], 700_000);
    assert_eq!(fs::read(hosts.desk.path("back")).unwrap(), sent);
    assert!(!hosts.rig.path("back").exists());
    at_rig(&hosts, &["cp", "-b", "pc", "nothing", ":/tmp/"]).says(2, &["nothing"]);
    at_rig(&hosts, &["cp", "-b", "pc", ":/nonexistent/x", "."]).says(1, &["/nonexistent/x"]);
    // A target that refuses is told as at the rig.
    fs::write(hosts.sshd.file("known"), "").unwrap();
    let refused = at_rig(&hosts, &["exec", "-b", "pc", "--", "true"]);
    refused.says(75, &["accept-new"]);
    assert_eq!(refused.out(), "");
}

#[test]
fn a_console_at_another_rig_takes_one_connection() {
    let _slot = Slot::take();
    let hosts = OverSsh::new();
    let mut command = hosts.call(&["console", "-b", "microbit", "--image"]);
    command.arg(elf("microbit", "unity-pass"));
    let told = ran(&mut command).unwrap_or_else(|why| panic!("{why}"));
    told.says(0, &[]);
    assert!(told.out().contains("3 Tests 0 Failures"), "{told}");
    assert_eq!(hosts.sshd.connections().count(), 1);
}
