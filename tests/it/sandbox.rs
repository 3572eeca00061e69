//! Programs in a sandbox: what they may touch, what they may not, and that builds work.
//!
//! Each forbidden deed is also done without a sandbox, where it must succeed: one that fails for
//! another reason shows nothing.

use std::fs;
use std::io::Read as _;
use std::net::{TcpListener, UdpSocket};

use jig_model::program::{ProgramEnd, ProgramError, Programs as _, Sandbox};

use crate::programs::{ProgramPlace, host, run, succeeds};

/// Begins a script that does deeds and prints a line for each: what came of it.
const DEEDS: &str = "\
import ctypes, errno, os, socket, struct, sys
outside = sys.argv[1]
def deed(name, call):
    try:
        call()
        print(name, 'done', flush=True)
    except OSError as error:
        print(name, errno.errorcode[error.errno], flush=True)
def write(path, flags=os.O_WRONLY | os.O_CREAT):
    file = os.open(path, flags, 0o644)
    os.write(file, b'changed')
    os.close(file)
";

/// Runs deeds; returns what came of each, in order.
fn deeds(
    place: &ProgramPlace,
    confined: bool,
    network: bool,
    deeds: &str,
) -> Vec<(String, String)> {
    let mut request = place.script(confined, "python3", &format!("{DEEDS}{deeds}"));
    if let Some(sandbox) = &mut request.sandbox {
        sandbox.network = network;
    }
    let said = succeeds(place, request);
    let words = said.lines().map(|line| line.split_once(' ').unwrap());
    words.map(|(name, outcome)| (name.to_owned(), outcome.to_owned())).collect()
}

/// Fails unless every deed came to one of these outcomes.
#[track_caller]
fn all_are(found: &[(String, String)], count: usize, outcomes: &[&str]) {
    assert_eq!(found.len(), count, "{found:?}");
    let wrong: Vec<_> =
        found.iter().filter(|(_, outcome)| !outcomes.contains(&outcome.as_str())).collect();
    assert!(wrong.is_empty(), "not {outcomes:?}: {wrong:?}");
}

/// Changes of files outside of the folders. Each has a file or folder of its own.
const OUTSIDE: &str = "
deed('write', lambda: write(f'{outside}/write'))
deed('create', lambda: write(f'{outside}/new'))
deed('append', lambda: write(f'{outside}/append', os.O_WRONLY | os.O_APPEND))
deed('truncate', lambda: os.truncate(f'{outside}/truncate', 0))
deed('open-truncate', lambda: os.open(f'{outside}/open-truncate', os.O_RDONLY | os.O_TRUNC))
deed('remove', lambda: os.remove(f'{outside}/remove'))
deed('mkdir', lambda: os.mkdir(f'{outside}/mkdir'))
deed('rmdir', lambda: os.rmdir(f'{outside}/rmdir'))
deed('mkfifo', lambda: os.mkfifo(f'{outside}/mkfifo'))
deed('rename', lambda: os.rename(f'{outside}/rename', f'{outside}/renamed'))
deed('symlink', lambda: os.symlink('/', f'{outside}/symlink'))
os.symlink(f'{outside}/through', 'link')
deed('through-symlink', lambda: write('link'))
os.symlink(outside, 'folder')
deed('through-folder', lambda: write('folder/through-folder'))
deed('dots', lambda: write('../outside/dots'))
write('mine'); write('mine-too')
deed('rename-out', lambda: os.rename('mine', f'{outside}/rename-out'))
deed('link-out', lambda: os.link('mine-too', f'{outside}/link-out'))
deed('rename-in', lambda: os.rename(f'{outside}/rename-in', 'rename-in'))
deed('link-in', lambda: os.link(f'{outside}/link-in', 'link-in'))
deed('shared-memory', lambda: (write(f'/dev/shm/{outside.replace(chr(47), chr(45))}'),
                               os.remove(f'/dev/shm/{outside.replace(chr(47), chr(45))}')))
";

/// Makes the files that the deeds change; returns what is in the folder.
fn fill(place: &ProgramPlace) -> Vec<(String, String)> {
    let outside = place.path("outside");
    for name in [
        "write",
        "append",
        "truncate",
        "open-truncate",
        "remove",
        "rename",
        "through",
        "through-folder",
        "dots",
        "rename-in",
        "link-in",
    ] {
        fs::write(outside.join(name), "untouched").unwrap();
    }
    fs::create_dir(outside.join("rmdir")).unwrap();
    content(place)
}

fn content(place: &ProgramPlace) -> Vec<(String, String)> {
    let entries = fs::read_dir(place.path("outside")).unwrap().map(|entry| entry.unwrap());
    let mut all: Vec<_> = entries
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read_to_string(entry.path()).unwrap_or_default())
        })
        .collect();
    all.sort();
    all
}

#[test]
fn nothing_outside_of_the_folders_is_changed() {
    let place = ProgramPlace::new();
    let before = fill(&place);
    let refused = deeds(&place, true, false, OUTSIDE);
    all_are(&refused, 19, &["EACCES", "EXDEV", "EPERM"]);
    assert_eq!(content(&place), before);
    let free = ProgramPlace::new();
    fill(&free);
    all_are(&deeds(&free, false, false, OUTSIDE), 19, &["done"]);
}

#[test]
fn everything_is_read_and_the_folders_and_dev_null_are_written() {
    let place = ProgramPlace::new();
    fs::write(place.path("outside/secret"), "read me").unwrap();
    let allowed = "
tmp = os.environ['TMPDIR']
deed('read', lambda: open(f'{outside}/secret').read())
deed('list', lambda: os.listdir('/etc'))
deed('create', lambda: write('file'))
deed('truncate', lambda: os.truncate('file', 0))
deed('mkdir', lambda: os.makedirs('a/b/c'))
deed('rename', lambda: os.rename('file', 'a/b/c/file'))
deed('link', lambda: os.link('a/b/c/file', 'a/link'))
deed('symlink', lambda: os.symlink('a', 'symlink'))
deed('mkfifo', lambda: os.mkfifo('a/fifo'))
deed('to-other-folder', lambda: os.rename('a/link', f'{tmp}/link'))
deed('chmod', lambda: os.chmod('a/b/c/file', 0o755))
deed('remove', lambda: os.remove(f'{tmp}/link'))
deed('null', lambda: write('/dev/null', os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
deed('shell-null', lambda: os.system('echo >/dev/null') == 0 or os.open('/none', 0))
pair, pipe = socket.socketpair(), os.pipe()
deed('pair', lambda: pair[0].send(b'x'))
deed('pipe', lambda: os.write(pipe[1], b'x'))
";
    all_are(&deeds(&place, true, false, allowed), 16, &["done"]);
}

/// Root could reach the disk by a device file of its own.
#[test]
fn no_device_is_made_and_no_right_is_gained() {
    let place = ProgramPlace::new();
    let script = "
deed('device', lambda: os.mknod('device', 0o020600, os.makedev(1, 3)))
status = open('/proc/self/status').read()
print('rights', status.split('NoNewPrivs:')[1].split()[0])
print('filters', status.split('Seccomp:')[1].split()[0])
";
    let found = deeds(&place, true, false, script);
    let words: Vec<_> = found.iter().map(|(_, outcome)| outcome.as_str()).collect();
    assert!(["EACCES", "EPERM"].contains(&words[0]), "{found:?}");
    assert_eq!(words[1..], ["1", "2"]);
    let free = deeds(&place, false, false, script);
    assert_eq!(free[1].1, "0");
}

/// From Linux 6.12 on, as the sandbox says of itself.
#[test]
fn no_process_outside_gets_a_signal_where_the_kernel_can_forbid_it() {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map(|part| part.trim().parse::<u32>().unwrap_or(0));
    let kernel = (numbers.next().unwrap(), numbers.next().unwrap());
    let place = ProgramPlace::new();
    let script = "deed('signal', lambda: os.kill(os.getppid(), 0))";
    let wanted = if kernel >= (6, 12) { "EPERM" } else { "done" };
    all_are(&deeds(&place, true, false, script), 1, &[wanted]);
    all_are(&deeds(&place, false, false, script), 1, &["done"]);
}

/// Every way to a network, with the ports of a listener and of a socket in this process.
fn network_deeds(tcp: u16, udp: u16) -> String {
    format!(
        "
def tcp():
    with socket.create_connection(('127.0.0.1', {tcp})) as s: s.sendall(b'x')
deed('tcp', tcp)
deed('udp', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {udp})))
deed('tcp6', lambda: socket.socket(socket.AF_INET6))
deed('netlink', lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW))
"
    )
}

const LOCAL: &str = "
deed('unix', lambda: socket.socket(socket.AF_UNIX))
libc = ctypes.CDLL(None, use_errno=True)
def ring():
    if libc.syscall(425, 1, ctypes.create_string_buffer(120)) < 0:
        raise OSError(ctypes.get_errno(), '')
deed('ring', ring)
";

#[test]
fn no_socket_is_opened_without_the_network_and_unix_sockets_never() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_nonblocking(true).unwrap();
    tcp.set_nonblocking(true).unwrap();
    let ports = (tcp.local_addr().unwrap().port(), udp.local_addr().unwrap().port());
    let inet = network_deeds(ports.0, ports.1);
    let arrived = || {
        let connected = tcp.accept().map(|(mut stream, _)| {
            stream.set_nonblocking(false).unwrap();
            stream.read(&mut [0; 1]).unwrap()
        });
        (connected.is_ok(), udp.recv(&mut [0; 8]).is_ok())
    };
    let place = ProgramPlace::new();
    all_are(&deeds(&place, true, false, &inet), 4, &["EACCES"]);
    assert_eq!(arrived(), (false, false));
    all_are(&deeds(&place, true, true, &inet), 4, &["done"]);
    assert_eq!(arrived(), (true, true));
    all_are(&deeds(&place, false, false, &inet), 4, &["done"]);
    assert_eq!(arrived(), (true, true));
    for network in [false, true] {
        all_are(&deeds(&place, true, network, LOCAL), 2, &["EACCES", "ENOSYS"]);
    }
    // A kernel may have no rings, or forbid them to all.
    assert_eq!(deeds(&place, false, false, LOCAL)[0].1, "done");
}

/// A 64-bit program can make the calls of 32-bit ones, by other numbers.
#[cfg(target_arch = "x86_64")]
#[test]
fn calls_of_32_bit_programs_open_no_socket_either() {
    let place = ProgramPlace::new();
    fs::write(
        place.path("inside/socket32.c"),
        "#include <stdio.h>\n\
         static long call(long number, long a, long b, long c) {\n\
           long result;\n\
           __asm__ volatile(\"int $0x80\" : \"=a\"(result)\n\
                            : \"a\"(number), \"b\"(a), \"c\"(b), \"d\"(c) : \"memory\");\n\
           return (int)result;\n\
         }\n\
         int main(void) { printf(\"%ld %ld\\n\", call(359, 2, 1, 0), call(20, 0, 0, 0) > 0); }\n",
    )
    .unwrap();
    succeeds(&place, place.confined("cc", &["-o", "socket32", "socket32.c"]));
    // Their numbers are not known to a kernel without 32-bit programs.
    let confined = succeeds(&place, place.confined("./socket32", &[]));
    let free = succeeds(&place, place.request("./socket32", &[]));
    match free.as_str() {
        "3 1\n" => assert_eq!(confined, "-13 1\n"),
        other => assert!(other.starts_with('-'), "{other}"),
    }
}

#[test]
fn the_host_has_no_gap_and_a_probe_leaves_nothing_behind() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    assert_eq!(runtime.block_on(host().sandbox_gap()), None);
}

#[test]
fn a_sandbox_that_cannot_be_made_starts_nothing() {
    let place = ProgramPlace::new();
    let mut request = place.confined("touch", &["started"]);
    request.sandbox =
        Some(Sandbox { writable: vec![place.path("inside"), place.path("none")], network: false });
    let Err(error) = run(request) else { panic!("it ran") };
    assert!(matches!(error, ProgramError::NoSandbox { .. }), "{error}");
    let said = error.to_string();
    assert!(said.starts_with("no sandbox for test: open the folder"), "{said}");
    assert!(!place.path("inside/started").exists());
}

/// A configure step that tries the compiler, a parallel build out of the tree, an archive, a
/// generated file, a test run of the result.
#[test]
fn make_and_a_compiler_build_in_a_sandbox() {
    let place = ProgramPlace::new();
    let source = place.path("inside/src");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("a.c"), "int a(void) { return VALUE; }\n").unwrap();
    fs::write(
        source.join("main.c"),
        "#include <stdio.h>\n#include \"made.h\"\nint a(void);\n\
        int main(void) { printf(\"%d %s\\n\", a(), MADE); return 0; }\n",
    )
    .unwrap();
    fs::write(
        source.join("configure"),
        "#!/bin/sh\nset -e\n\
        probe=$(mktemp -d)\necho 'int main(void){return 0;}' >$probe/t.c\n\
        cc -o $probe/t $probe/t.c 2>/dev/null && $probe/t && echo VALUE=42 >config.mk\n\
        rm -r $probe\ncat >/dev/null <<END\nhere document\nEND\n",
    )
    .unwrap();
    fs::write(
        source.join("Makefile"),
        "include config.mk\nvpath %.c ../src\n\
        app: main.o liba.a\n\tcc -o $@ $^\n\
        liba.a: a.o\n\tar rcs $@ $^\n\
        main.o: made.h\nmade.h:\n\techo '#define MADE \"made\"' >$@\n\
        %.o: %.c\n\tcc -pipe -g -O2 -MMD -I. -DVALUE=$(VALUE) -c -o $@ $<\n\
        check: app\n\t./app\n\tstrip app && install -m 755 app installed\n",
    )
    .unwrap();
    let script = "mkdir build && cd build && sh ../src/configure && \
                  make -s -j2 -f ../src/Makefile check && test -x installed";
    assert_eq!(succeeds(&place, place.confined("sh", &["-c", script])), "42 made\n");
    assert_eq!(fs::read_dir(place.path("tmp")).unwrap().count(), 0);
}

#[test]
fn git_works_in_a_sandbox() {
    let place = ProgramPlace::new();
    let script = "set -e; git init -q . ; echo one >file; git add file; \
        git -c user.name=a -c user.email=a@example.invalid commit -q -m one; \
        git worktree add -q ../tmp/tree; echo two >../tmp/tree/file; \
        git -C ../tmp/tree diff --stat | cat; git gc -q; git status --short; git log --format=%s";
    let mut request = place.confined("sh", &["-c", script]);
    request.env.push(("HOME".into(), place.path("tmp").into()));
    request.env.push(("GIT_CONFIG_NOSYSTEM".into(), "1".into()));
    let said = succeeds(&place, request);
    assert!(said.contains("1 file changed") && said.ends_with("one\n"), "{said}");
    // The same in a repository that is only read.
    let outside = place.path("outside");
    let mut request = place.request("git", &["clone", "-q", "."]);
    request.args.push(outside.join("clone").into());
    request.env.push(("HOME".into(), place.path("tmp").into()));
    succeeds(&place, request);
    let mut request = place.confined("git", &["-C"]);
    request.args.extend([outside.join("clone").into(), "commit".into(), "--allow-empty".into()]);
    request.env.push(("HOME".into(), place.path("tmp").into()));
    assert!(matches!(run(request).unwrap(), ProgramEnd::Exited(code) if code != 0));
}
