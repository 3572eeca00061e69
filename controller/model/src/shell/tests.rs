//! Shells of boards: what profile and place amount to, and mistakes in both.

use super::*;
use crate::document::{Findings, open};
use crate::profile::BoardProfile;
use crate::profile::tests::shipped;
use crate::rig_file::{Place, Rig, RigText};

fn board() -> BoardProfile {
    shipped().into_iter().find(|board| board.features.contains("ssh")).unwrap()
}

fn table(text: &str) -> ShellTable {
    crate::toml_table! {
        /// A document with a shell.
        struct RawWithShell {
            /// The version.
            version: u32 = required,
            /// The table.
            shell: RawShell = required,
        }
    }
    let findings = Findings::new();
    let text = format!("version = 1\n[shell]\n{text}");
    let raw = open::<RawWithShell>("shell", 1, &text, &findings).unwrap();
    let lowered = lower(raw.value.shell.unwrap().value);
    assert!(findings.is_empty());
    lowered.unwrap()
}

fn place(parts: &str) -> Result<Place, String> {
    let board = board();
    let text =
        format!("version = 1\n[[place]]\nname = \"p\"\nboard = {:?}\n{parts}", board.id.as_str());
    let file = RigText { origin: "rig.toml", text: &text };
    match Rig::parse([file], &[board]) {
        Ok(mut rig) => Ok(rig.places.remove(0)),
        Err(problems) => Err(problems
            .iter()
            .flat_map(|problems| &problems.list)
            .map(|problem| format!("{} {}", problem.check, problem.message))
            .collect::<Vec<_>>()
            .join("; ")),
    }
}

#[test]
fn keys_of_a_place_go_before_those_of_its_profile() {
    let profile = table("kind = 'cmd'\nprompt = '> $'\nencoding = 'cp850'");
    let at_place = table("host = 'pc-1'\nencoding = 'utf-8'");
    let both = at_place.over(&profile);
    assert_eq!((both.kind, both.host.as_deref()), (Some(ShellKind::Cmd), Some("pc-1")));
    assert_eq!(both.encoding, Some(TextEncoding::Utf8));
}

#[test]
fn a_shell_is_reached_by_what_a_place_has() {
    let mut board = board();
    board.shell = Some(table("forwarded = 'ssh'\nprompt = '^jig# '"));
    let emulated = place("emulator = {}").unwrap();
    let shell = board.shell_at(&emulated).unwrap();
    let ssh = shell.ssh.clone().unwrap();
    assert_eq!(ssh.host, SshHost::Forwarded("ssh".to_owned()));
    assert_eq!((ssh.host_key, shell.via), (HostKeyCheck::Any, ShellWay::Ssh));
    assert_eq!(shell.serial.as_ref().unwrap().console.as_str(), "uart0");
    assert_eq!(shell.reboot, ["reboot"]);
    let names = |board: &BoardProfile, place: &Place| -> Vec<String> {
        board.at(place).consoles.iter().map(|console| console.name.to_string()).collect()
    };
    assert_eq!(names(&board, &emulated), ["uart0", "shell"]);
    // A board that is bound twice has it once.
    assert_eq!(names(&board.at(&emulated), &emulated), ["uart0", "shell"]);

    let real = place("shell = { host = \"192.0.2.7\", user = \"root\" }").unwrap();
    let shell = board.shell_at(&real).unwrap();
    let host = SshHost::Named { host: "192.0.2.7".to_owned(), port: 22 };
    let ssh = shell.ssh.unwrap();
    assert_eq!((ssh.host, ssh.host_key), (host, HostKeyCheck::Known));
    assert_eq!((shell.serial, shell.via), (None, ShellWay::Ssh));
    assert_eq!(names(&board, &real), ["shell"]);

    let serial = place("console = [{ name = \"uart0\", tty = \"/dev/x\" }]").unwrap();
    let shell = board.shell_at(&serial).unwrap();
    assert_eq!((shell.way(None), shell.way(Some(ShellWay::Ssh))), (Some(ShellWay::Serial), None));
    assert_eq!(names(&board, &serial), ["uart0"]);
    board.shell = None;
    assert_eq!(board.shell_at(&emulated), None);
}

#[test]
fn a_console_name_that_is_taken_is_left_alone() {
    let mut board = board();
    board.consoles[0].name = "shell".parse().unwrap();
    board.shell = Some(table("forwarded = 'ssh'"));
    let emulated = place("emulator = {}").unwrap();
    assert_eq!(board.at(&emulated).consoles[1].name.as_str(), "shell2");
}

#[test]
fn mistakes_are_told_with_their_check() {
    for (shell, words) in [
        ("host = \"-oProxyCommand=x\"", "rig::shell this is no host"),
        ("host = \"a b\"", "rig::shell this is no host"),
        ("host = \"pc\", port = 0", "port 0 does not exist"),
        ("host = \"pc\", user = \"a@b\"", "this is no user name"),
        ("host = \"pc\", identity = \"key\"", "names no file by its whole path"),
        ("host = \"pc\", forwarded = \"ssh\"", "only a profile knows"),
        ("host = \"pc\", reboot = []", "this names no program"),
        ("host = \"pc\", console = \"uart9\"", "no serial console uart9"),
        ("kind = \"cmd\", prompt = '> $'", "only a POSIX shell"),
        ("host = \"pc\", login = { user = \"r\", password = \"hunter2\" }", "rig::secret"),
    ] {
        let said = place(&format!("shell = {{ {shell} }}")).unwrap_err();
        assert!(said.contains(words), "{shell}: {said}");
        assert!(!said.contains("hunter2"));
    }
    let said = place("emulator = {}\nshell = { host = \"pc\" }").unwrap_err();
    assert!(said.contains("emulated board is reached by a port"), "{said}");
}
