//! Callers of a shared rig who are many, or come the wrong way: what each is told, and that no other one
//! waits for them.

use std::fs;
use std::io::Write as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Instant;

use nix::unistd::Pid;

use crate::remote::{HELLO, OverSsh, TwoHosts};
use crate::workshop::{Workshop, ran, until};

/// Connections of a wave, more than the service takes at a time, and in all.
const WAVE: usize = 500;
const ALL: usize = 10_000;

/// Finds the service of a rig.
fn service(hosts: &TwoHosts) -> Pid {
    let mut all = hosts.rig.processes().into_iter();
    all.find(|(_, line)| line.trim_end().ends_with(" serve")).expect("the service runs").0
}

fn descriptors(pid: Pid) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// Returns the most memory that a process has had.
pub(crate) fn memory_kib(pid: Pid) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn ten_thousand_connections_shut_no_caller_out() {
    let (hosts, began) = (TwoHosts::new(), Instant::now());
    let (socket, pid) = (hosts.socket(), service(&hosts));
    hosts.run(&["boards"]).says(0, &[]);
    let before = descriptors(pid);
    let hello = format!("{HELLO}\n");
    let says: [&[u8]; 4] = [b"", b"\x7fELF\0\xff\n", &hello.as_bytes()[..20], hello.as_bytes()];
    for wave in 0..ALL / WAVE {
        let open = |number: usize| {
            let mut stream = UnixStream::connect(&socket).unwrap();
            // One that was hung up on takes nothing.
            let _ = stream.write_all(says[(wave + number) % says.len()]);
            stream
        };
        let streams: Vec<UnixStream> = (0..WAVE).map(open).collect();
        let most = descriptors(pid);
        assert!(most <= before + 300, "{most} descriptors, {before} before");
        drop(streams);
    }
    // Callers who say nothing keep no place that another one wants.
    let silent: Vec<_> = (0..WAVE).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    hosts.run(&["boards"]).says(0, &[]);
    drop(silent);
    until("the connections are closed", || (descriptors(pid) <= before).then_some(()));
    assert!(memory_kib(pid) < 400 << 10, "{} KiB", memory_kib(pid));
    let log = fs::read_to_string(hosts.rig.path("keeper.txt")).unwrap();
    let full = log.lines().filter(|line| line.contains("too many callers")).count();
    // Told once a minute.
    let most = 1 + began.elapsed().as_secs() / 60;
    assert!((1..=most).contains(&(full as u64)), "{full} lines, {most} at most");
}

#[test]
fn a_socket_without_a_service_is_named_with_what_to_do() {
    let workshop = Workshop::new();
    let (none, file, dead) =
        (workshop.path("none.sock"), workshop.path("file"), workshop.path("dead"));
    fs::write(&file, "").unwrap();
    drop(UnixListener::bind(&dead).unwrap());
    for path in [&none, &file, &dead, &PathBuf::from("/dev/null"), &workshop.path("")] {
        let rig = format!("unix:{}", path.display());
        for verb in
            [&["boards"][..], &["run", "-b", "microbit"], &["lease", "ls"], &["top", "--once"]]
        {
            let ran = workshop.run([&["--rig", &rig], verb].concat());
            ran.says(75, &[&path.display().to_string(), "jig serve"]);
            assert_eq!(ran.out(), "", "{ran}");
        }
    }
    let long = format!("unix:/tmp/{}", "x".repeat(200));
    workshop.run(["--rig", &long, "boards"]).says(75, &["jig serve"]);
}

#[test]
fn what_an_ssh_server_refuses_is_said_by_each_verb_with_what_to_type() {
    let hosts = OverSsh::new();
    let verbs = [&["boards"][..], &["test", "-b", "microbit", "plan.toml"], &["lease", "ls"]];
    hosts.desk.write("plan.toml", "version = 1\nname = \"p\"\n[[stage]]\nname = \"s\"\n[[stage.step]]\nname = \"s\"\nactions = [{ power = \"cycle\" }]\n");
    let refused = |rig: Option<&str>, code: i32, words: &[&str]| {
        for verb in verbs {
            let mut call = hosts.call(verb);
            if let Some(rig) = rig {
                call.env("JIG_RIG", rig);
            }
            let ran = ran(&mut call).unwrap();
            ran.says(code, words);
            assert_eq!(ran.out(), "", "{ran}");
        }
    };
    let port = hosts.sshd.port();
    refused(
        Some(&format!("ssh://nouser@127.0.0.1:{port}")),
        2,
        &["permission denied", "ssh-copy-id"],
    );
    let absent = format!("ssh://127.0.0.1:{port}/no/such/jig");
    refused(Some(&absent), 75, &["no program `/no/such/jig`", "install"]);
    // A program that is no jig, and one that ends at once.
    let other = hosts.rig.write("other", "#!/bin/sh\necho Welcome; cat\n");
    let ends = hosts.rig.write("ends", "#!/bin/sh\necho no libudev >&2; exit 127\n");
    for program in [&other, &ends] {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let rig = |program: &PathBuf| format!("ssh://127.0.0.1:{port}{}", program.display());
    refused(Some(&rig(&other)), 75, &["Welcome"]);
    refused(Some(&rig(&ends)), 75, &["no libudev"]);
    // The key of the host is another one, and then none is known.
    let known = hosts.desk.path("../home/.ssh/known_hosts");
    let user_key = fs::read_to_string(hosts.sshd.file("user.pub")).unwrap();
    fs::write(&known, format!("[127.0.0.1]:{port} {user_key}")).unwrap();
    refused(None, 2, &["THE HOST KEY HAS CHANGED", "known_hosts:1", "ssh-keygen"]);
    fs::write(&known, "").unwrap();
    refused(None, 2, &["not known", "SHA256:", "--ssh-accept-new"]);
    fs::write(&known, hosts.sshd.known_line("host.pub")).unwrap();
    ran(&mut hosts.call(&["boards"])).unwrap().says(0, &[]);
    // The key is taken off the list.
    fs::write(hosts.sshd.file("user.pub"), "").unwrap();
    refused(None, 2, &["permission denied", "id_ed25519", "ssh-copy-id"]);
}
