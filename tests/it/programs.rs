//! Programs that are run to their end: how they end, what they get, what they print, and that
//! nothing of them is left.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use jig_drivers::program::HostPrograms;
use jig_model::program::{ProgramEnd, ProgramError, ProgramRequest, Programs, Sandbox};
use tempfile::TempDir;

use crate::workshop::{Started, tied, until};

/// A folder for one test, and programs that are started in it.
pub(crate) struct ProgramPlace {
    dir: TempDir,
}

impl ProgramPlace {
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("jig-programs-").tempdir().unwrap();
        for name in ["inside", "outside", "tmp"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        Self { dir }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Asks for a program in the folder `inside`, with a `PATH` as its environment.
    pub(crate) fn request(&self, program: &str, args: &[&str]) -> ProgramRequest {
        ProgramRequest {
            program: program.into(),
            args: args.iter().map(Into::into).collect(),
            cwd: self.path("inside"),
            env: vec![("PATH".into(), "/usr/bin:/bin".into())],
            stdout: self.path("stdout"),
            stderr: None,
            most_output: 1 << 20,
            trusted: false,
            sandbox: None,
            what: "test".to_owned(),
        }
    }

    /// Asks for a program that may write below `inside` and `tmp`.
    pub(crate) fn confined(&self, program: &str, args: &[&str]) -> ProgramRequest {
        let mut request = self.request(program, args);
        request.env.push(("TMPDIR".into(), self.path("tmp").into()));
        let writable = vec![self.path("inside"), self.path("tmp")];
        request.sandbox = Some(Sandbox { writable, network: false });
        request
    }

    /// Asks for a script, which is not confined unless said so.
    pub(crate) fn script(&self, confined: bool, program: &str, script: &str) -> ProgramRequest {
        let outside = self.path("outside");
        let args = ["-c", script, outside.to_str().unwrap()];
        match confined {
            true => self.confined(program, &args),
            false => self.request(program, &args),
        }
    }

    pub(crate) fn output(&self) -> String {
        String::from_utf8(fs::read(self.path("stdout")).unwrap()).unwrap()
    }
}

pub(crate) fn host() -> HostPrograms {
    HostPrograms::new(env!("CARGO_BIN_EXE_jig").into())
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

pub(crate) fn run(request: ProgramRequest) -> Result<ProgramEnd, ProgramError> {
    runtime().block_on(host().run(request))
}

/// Runs a program that must end with the code 0; returns what it printed.
#[track_caller]
pub(crate) fn succeeds(place: &ProgramPlace, request: ProgramRequest) -> String {
    let ended = run(request).unwrap();
    assert_eq!(ended, ProgramEnd::Exited(0), "{}", place.output());
    place.output()
}

fn write_program(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

/// Tells whether there is a process of this number, dead or alive.
fn exists(pid: &str) -> bool {
    Path::new("/proc").join(pid).exists()
}

#[test]
fn each_end_has_its_name() {
    let place = ProgramPlace::new();
    for (script, wanted) in [
        ("exit 0", ProgramEnd::Exited(0)),
        ("exit 127", ProgramEnd::Exited(127)),
        ("kill -9 $$", ProgramEnd::Signalled(9)),
        ("kill -15 $$", ProgramEnd::Signalled(15)),
        ("kill -15 0", ProgramEnd::Signalled(15)),
    ] {
        for confined in [false, true] {
            assert_eq!(run(place.script(confined, "sh", script)).unwrap(), wanted, "{script}");
        }
    }
}

#[test]
fn what_cannot_be_started_says_why() {
    let place = ProgramPlace::new();
    write_program(&place.path("inside/orphan"), "#!/nowhere/sh\n", 0o755);
    write_program(&place.path("inside/text"), "text", 0o644);
    let said = |program: &str| match run(place.confined(program, &[])) {
        Err(error) => match &error {
            ProgramError::Refused { source, .. } => format!("{error}: {source}"),
            _ => error.to_string(),
        },
        Ok(ended) => panic!("{program}: {ended:?}"),
    };
    let wanted = "no-such-program is not installed: not in PATH (/usr/bin:/bin)";
    assert_eq!(said("no-such-program"), wanted);
    assert_eq!(said("./none"), "./none is not installed: there is no such file");
    assert!(said("./orphan").starts_with("./orphan is not installed: what runs it is missing"));
    assert_eq!(said("./text"), "could not run test: ./text is not executable");
    // No argument may be longer than 128 KiB.
    let long = place.confined("true", &[&"x".repeat(1 << 18)]);
    let Err(ProgramError::Refused { source, .. }) = run(long) else { panic!("it ran") };
    assert_eq!(source.raw_os_error(), Some(nix::libc::E2BIG));

    let mut elsewhere = place.request("true", &[]);
    elsewhere.cwd = place.path("none");
    let Err(ProgramError::Refused { source, .. }) = run(elsewhere) else { panic!("it ran") };
    assert!(source.to_string().starts_with("there is no folder"), "{source}");

    let mut unwritable = place.request("true", &[]);
    unwritable.stdout = place.path("none/stdout");
    let Err(ProgramError::Refused { source, .. }) = run(unwritable) else { panic!("it ran") };
    assert!(source.to_string().starts_with("write "), "{source}");

    let elsewhere = HostPrograms::new("/nowhere/jig".into());
    let started = runtime().block_on(elsewhere.run(place.request("true", &[])));
    let Err(ProgramError::Refused { source, .. }) = started else { panic!("it ran") };
    assert_eq!(source.to_string(), "start /nowhere/jig: there is no such file");
    let gap = runtime().block_on(elsewhere.sandbox_gap()).unwrap();
    assert_eq!(gap, "probe the sandbox: start /nowhere/jig: there is no such file");
}

#[test]
fn environment_folder_and_name_are_those_of_the_request() {
    let place = ProgramPlace::new();
    for confined in [false, true] {
        let mut request = match confined {
            true => place.confined("env", &["-0"]),
            false => place.request("env", &["-0"]),
        };
        let bytes = std::os::unix::ffi::OsStringExt::from_vec(vec![b'x', 0xff]);
        let odd: (OsString, OsString) = ("ODD".into(), bytes);
        request.env = vec![("PATH".into(), "/usr/bin".into()), odd];
        assert_eq!(run(request).unwrap(), ProgramEnd::Exited(0));
        let mut found: Vec<_> = fs::read(place.path("stdout")).unwrap();
        found.pop();
        let mut found: Vec<_> = found.split(|&byte| byte == 0).collect();
        found.sort_unstable();
        assert_eq!(found, [&b"ODD=x\xff"[..], b"PATH=/usr/bin"]);
    }
    let request =
        place.request("sh", &["-c", "pwd; echo $0; cat; tr '\\0' '\\n' </proc/$$/cmdline"]);
    let inside = place.path("inside");
    let said = succeeds(&place, request);
    assert_eq!(said.lines().take(3).collect::<Vec<_>>(), [inside.to_str().unwrap(), "sh", "sh"]);
}

/// A program that would ask for a password on the terminal must not stop for good.
#[test]
fn a_program_has_no_terminal() {
    let place = ProgramPlace::new();
    let script = "import os\ntry: os.open('/dev/tty', os.O_RDWR)\n\
                  except OSError as error: print(error.errno)\nprint(os.getsid(0) == os.getpid())";
    assert_eq!(succeeds(&place, place.script(false, "python3", script)), "6\nTrue\n");
}

#[test]
fn both_outputs_are_told_apart_or_stand_in_one_file_in_their_order() {
    let place = ProgramPlace::new();
    let script = "for i in 1 2 3; do echo out $i; echo err $i >&2; done";
    let one = succeeds(&place, place.script(true, "sh", script));
    assert_eq!(one, "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n");
    let mut apart = place.script(true, "sh", script);
    apart.stderr = Some(place.path("stderr"));
    assert_eq!(succeeds(&place, apart), "out 1\nout 2\nout 3\n");
    assert_eq!(fs::read_to_string(place.path("stderr")).unwrap(), "err 1\nerr 2\nerr 3\n");
    // The names of its own output work, and cannot empty it.
    let script = "echo one; echo two >/dev/stdout; echo three >/dev/stderr; echo four >/dev/fd/1";
    let named = succeeds(&place, place.script(true, "sh", script));
    assert_eq!(named, "one\ntwo\nthree\nfour\n");
}

#[test]
fn all_that_was_printed_before_the_end_is_in_the_file() {
    let place = ProgramPlace::new();
    let request = place.request("head", &["-c", "1048576", "/dev/zero"]);
    assert_eq!(run(request).unwrap(), ProgramEnd::Exited(0));
    assert_eq!(fs::metadata(place.path("stdout")).unwrap().len(), 1 << 20);
}

#[test]
fn more_output_than_allowed_ends_the_program_and_what_it_started() {
    let place = ProgramPlace::new();
    for to_stderr in [false, true] {
        let script = "trap '' TERM; setsid sh -c 'echo $$ >pid; exec yes >&PORT'; wait";
        let script = script.replace("PORT", if to_stderr { "2" } else { "1" });
        let mut request = place.request("sh", &["-c", &script]);
        request.most_output = 100_000;
        request.stderr = to_stderr.then(|| place.path("stderr"));
        assert_eq!(run(request).unwrap(), ProgramEnd::TooMuchOutput);
        let full = place.path(if to_stderr { "stderr" } else { "stdout" });
        assert_eq!(fs::metadata(full).unwrap().len(), 100_000);
        let pid = fs::read_to_string(place.path("inside/pid")).unwrap();
        assert!(!exists(pid.trim()));
    }
}

#[test]
fn a_full_disk_ends_the_program_with_its_reason() {
    let place = ProgramPlace::new();
    let mut request = place.request("yes", &[]);
    request.stdout = "/dev/full".into();
    request.most_output = u64::MAX;
    let Err(ProgramError::Refused { source, .. }) = run(request) else { panic!("it ended") };
    assert_eq!(source.raw_os_error(), Some(nix::libc::ENOSPC));
}

/// A process that ignores SIGTERM, in a session of its own, whose parent has gone.
const DAEMON: &str = "trap '' TERM HUP; setsid sh -c '\
    (trap \"\" TERM HUP; echo $$ >first; sh -c \"echo \\$\\$ >pid.new; mv pid.new pid; \
    while :; do sleep 600; done\") & exit 0'";

fn daemon_pid(place: &ProgramPlace) -> String {
    until("the start of a daemon", || fs::read_to_string(place.path("inside/pid")).ok())
        .trim()
        .to_owned()
}

#[test]
fn what_a_program_leaves_behind_has_ended_with_it() {
    let place = ProgramPlace::new();
    for confined in [false, true] {
        let _ = fs::remove_file(place.path("inside/pid"));
        let script = format!("{DAEMON}; while ! test -e pid; do sleep 0.01; done; exit 3");
        let request = place.script(confined, "sh", &script);
        assert_eq!(run(request).unwrap(), ProgramEnd::Exited(3));
        // Not even a zombie is left.
        assert!(!exists(&daemon_pid(&place)));
    }
}

#[test]
fn dropping_the_future_ends_the_program_and_daemons_that_it_started() {
    let place = ProgramPlace::new();
    for confined in [false, true] {
        let _ = fs::remove_file(place.path("inside/pid"));
        let script = format!("echo $$ >main; {DAEMON}; while :; do sleep 600; done");
        let request = place.script(confined, "sh", &script);
        let runtime = runtime();
        let task = runtime.spawn(async move { host().run(request).await });
        let pid = daemon_pid(&place);
        let main = fs::read_to_string(place.path("inside/main")).unwrap();
        assert!(exists(&pid) && exists(main.trim()));
        task.abort();
        until("the end of all of it", || (!exists(&pid) && !exists(main.trim())).then_some(()));
    }
}

#[test]
fn a_trusted_program_needs_no_supervisor_and_ends_with_its_group() {
    let place = ProgramPlace::new();
    let run = |script: &str| {
        let _ = fs::remove_file(place.path("inside/pid"));
        let child = "sh -c 'echo $$ >pid.new; mv pid.new pid; exec sleep 600' &";
        let script = format!("{child} while ! test -e pid; do sleep 0.01; done; {script}");
        let mut request = place.request("sh", &["-c", &script]);
        (request.trusted, request.most_output) = (true, 100_000);
        let runtime = runtime();
        let programs = HostPrograms::new("/nowhere/jig".into());
        let task = runtime.spawn(async move { programs.run(request).await });
        (runtime, task)
    };
    let gone = |pid: String| until("the end of its child", || (!exists(&pid)).then_some(()));
    for (script, end) in [
        ("exit 3", ProgramEnd::Exited(3)),
        ("kill -KILL $$", ProgramEnd::Signalled(9)),
        ("exec yes", ProgramEnd::TooMuchOutput),
    ] {
        let (runtime, task) = run(script);
        assert_eq!(runtime.block_on(task).unwrap().unwrap(), end, "{script}");
        gone(daemon_pid(&place));
    }
    let (_runtime, task) = run("while :; do sleep 600; done");
    let pid = daemon_pid(&place);
    task.abort();
    gone(pid);
}

#[test]
fn a_runtime_that_ends_takes_its_programs_with_it() {
    let place = ProgramPlace::new();
    let request = place.script(true, "sh", &format!("{DAEMON}; while :; do sleep 600; done"));
    let runtime = runtime();
    let _task = runtime.spawn(async move { host().run(request).await });
    let pid = daemon_pid(&place);
    drop(runtime);
    until("the end of the daemon", || (!exists(&pid)).then_some(()));
}

/// The supervisor gets a parent-death signal, as each child of Jig does, and has work to do before
/// its end: a process that it does not outlive would leave daemons behind.
#[test]
fn a_jig_that_is_killed_leaves_no_daemon_behind() {
    let place = ProgramPlace::new();
    let script = "import json, os, socket, subprocess, sys\n\
        jig, cwd, script = sys.argv[1:]\n\
        near, far = socket.socketpair()\n\
        text = lambda text: {'Unix': list(text.encode())}\n\
        run = {'program': text('/bin/sh'), 'name': text('sh'), 'cwd': text(cwd),\n\
               'args': [text('-c'), text(script)], 'confinement': None,\n\
               'env': [[text('PATH'), text('/usr/bin:/bin')]]}\n\
        near.sendall(json.dumps({'Run': run}).encode() + b'\\n')\n\
        tied = ['setpriv', '--pdeathsig', 'KILL', '--', jig, 'supervise']\n\
        subprocess.Popen(tied, stdin=far, start_new_session=True)\n\
        far.close()\n\
        near.recv(1)";
    let daemon = format!("{DAEMON}; while :; do sleep 600; done");
    let mut jig = tied("python3");
    jig.args(["-c", script, env!("CARGO_BIN_EXE_jig")]).arg(place.path("inside")).arg(daemon);
    jig.stdin(Stdio::null()).stdout(Stdio::null());
    let mut jig = Started::of(&mut jig);
    let pid = daemon_pid(&place);
    jig.child().kill().unwrap();
    jig.child().wait().unwrap();
    until("the end of the daemon", || (!exists(&pid)).then_some(()));
}

/// One that was killed itself cannot end anything: the program dies with it, and Jig is told.
#[test]
fn a_supervisor_that_is_killed_takes_the_program_with_it_and_is_named() {
    let place = ProgramPlace::new();
    let script = "echo $$ >main; kill -9 $PPID; exec sleep 600";
    let Err(ProgramError::Refused { source, .. }) = run(place.script(false, "sh", script)) else {
        panic!("it ended")
    };
    let said = source.to_string();
    assert_eq!(said, "its supervisor ended by SIGKILL and did not say why");
    let main = fs::read_to_string(place.path("inside/main")).unwrap();
    until("the end of the program", || (!exists(main.trim())).then_some(()));
}

#[test]
fn a_supervisor_that_is_asked_to_end_ends_the_program() {
    let place = ProgramPlace::new();
    let script =
        format!("{DAEMON}; while ! test -e pid; do sleep 0.01; done; kill $PPID; sleep 600");
    let ended = run(place.script(false, "sh", &script)).unwrap();
    assert_eq!(ended, ProgramEnd::Signalled(9));
    assert!(!exists(&daemon_pid(&place)));
}

#[test]
fn the_verb_refuses_what_is_no_order() {
    for stdin in [Stdio::null(), Stdio::piped()] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jig"));
        let ran = command.arg("supervise").stdin(stdin).output().unwrap();
        assert_eq!(ran.status.code(), Some(2), "{}", String::from_utf8_lossy(&ran.stderr));
    }
}
