//! The service of this host, used without being named: the same output, exit codes and runs as without it,
//! and whatever listens at its socket breaks no command.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use nix::sys::signal::Signal;

use crate::capture_service::CaptureService;
use crate::manifest::elf;
use crate::remote::lasting;
use crate::workshop::{Ran, Slot, Started, Workshop, ran, tied, until};

const RIG: &str = "version = 1
[[place]]
name = \"bench-1\"
board = \"microbit\"
emulator = {}
";

/// What is told once of a socket that cannot be used.
const UNUSED: &str = "is not used";

fn state(workshop: &Workshop) -> PathBuf {
    workshop.path("../home/STATE/jig")
}

/// Counts the jobs that were begun with a state folder.
fn jobs(state: &Path) -> usize {
    fs::read_dir(state.join("jobs")).map_or(0, Iterator::count)
}

/// Counts how often a call told that a service is not used.
fn told(ran: &Ran) -> usize {
    ran.err().matches(UNUSED).count()
}

#[test]
fn a_service_with_the_same_folders_carries_commands_out() {
    let _slot = Slot::take();
    let rig = Workshop::new();
    let cases = [("unity-pass", 0), ("unity-fail", 1)];
    let images = cases.map(|(fixture, code)| (elf("microbit", fixture), code));
    let run = |image: &str, options: &[&str]| {
        rig.run([options, &["run", "-b", "microbit", image]].concat())
    };
    let alone: Vec<Ran> = images.iter().map(|(image, _)| run(image, &[])).collect();
    assert_eq!(jobs(&state(&rig)), 0);
    let service = CaptureService::start(&rig);
    for ((image, code), alone) in images.iter().zip(&alone) {
        let before = jobs(&state(&rig));
        let served = run(image, &[]);
        served.says(*code, &[]);
        assert_eq!(jobs(&state(&rig)), before + 1, "{served}");
        assert_eq!(served.out(), alone.out());
        assert_eq!(lasting(&served.err()), lasting(&alone.err()));
        run(image, &["--rig", "local"]).says(*code, &[]);
        assert_eq!(jobs(&state(&rig)), before + 1, "local is this process");
    }
    // Its runs are where those of this process are, and are no copies.
    assert_eq!(rig.run_dirs().len(), 6);
    for dir in rig.run_dirs() {
        assert!(dir.join("children.jsonl").exists(), "{dir:?} is a copy");
    }
    // A plan names files and programs as the caller does.
    fs::create_dir(rig.path("project")).unwrap();
    let plan = "version = 1\nname = \"p\"\ngoal = \"g\"\ntimeout = \"1m\"\n[[stage]]\nname = \"s\"\n\
                [[stage.step]]\nname = \"s\"\ngoal = \"g\"\nactions = [{ host_command = [\"only-here\"] }, \
                { deploy = \"app.elf\" }, { power = \"cycle\" }, { wait_for_results = true }]\n";
    rig.write("project/plan.toml", plan);
    fs::copy(&images[0].0, rig.path("project/app.elf")).unwrap();
    let program = rig.write("project/only-here", "#!/bin/sh\nexec test -f plan.toml\n");
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    let before = jobs(&state(&rig));
    let mut test = rig.jig(["test", "-b", "microbit", "plan.toml"]);
    let path = format!("{}:{}", rig.path("project").display(), std::env::var("PATH").unwrap());
    test.current_dir(rig.path("project")).env("PATH", path);
    ran(&mut test).unwrap().says(0, &["PASS microbit"]);
    assert_eq!(jobs(&state(&rig)), before + 1);
    // What is wrong with a plan is shown with its lines.
    let wrong = rig.write("wrong.toml", "version = 1\nnam = \"p\"\n").display().to_string();
    let both = ["local", "unset"].map(|how| {
        let options: &[&str] = if how == "local" { &["--rig", "local"] } else { &[] };
        rig.run([options, &["test", "-b", "microbit", &wrong]].concat())
    });
    both[1].says(3, &["nam", "wrong.toml:2"]);
    assert_eq!(both[0].err(), both[1].err());
    // What looks and what ends with its caller begins no job.
    let before = jobs(&state(&rig));
    rig.run(["health"]).says(0, &[]);
    rig.run(["boards"]).says(0, &[]);
    rig.run(["runs", "list"]).says(0, &[]);
    assert_eq!(jobs(&state(&rig)), before);
    service.stop().says(0, &[]);
}

/// Starts a run that ends when it is cancelled.
fn endless(rig: &Workshop) -> Started {
    let before = rig.run_dirs().len();
    let mut command = rig.jig(["run", "-b", "microbit", "--until", "never", "--timeout", "10m"]);
    command.arg(elf("microbit", "unity-pass")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let started = Started::of(&mut command);
    until("the run", || (rig.run_dirs().len() > before).then_some(()));
    until("its emulator", || (!rig.emulators().is_empty()).then_some(()));
    started
}

#[test]
fn a_command_outlives_its_caller_and_the_service_but_not_the_wish_to_end_it() {
    let _slot = Slot::take();
    let rig = Workshop::new();
    let service = CaptureService::start(&rig);
    let run = endless(&rig);
    run.signal(Signal::SIGKILL);
    run.finish();
    assert_eq!(rig.emulators().len(), 1, "the run goes on");
    rig.run(["runs", "cancel", "last"]).says(0, &[]);
    until("its end", || rig.emulators().is_empty().then_some(()));
    rig.run(["runs", "attach", "last"]).says(130, &[]);
    // The service is killed in mid-run: its caller goes on by itself.
    let run = endless(&rig);
    service.kill();
    run.signal(Signal::SIGINT);
    run.finish().says(130, &["CANCELLED"]);
    until("its end", || rig.emulators().is_empty().then_some(()));
}

#[test]
fn a_socket_that_leads_to_no_service_is_told_of_once() {
    let _slot = Slot::take();
    let rig = Workshop::new();
    let image = elf("microbit", "unity-pass");
    let run = |options: &[&str]| rig.run([options, &["run", "-b", "microbit", &image]].concat());
    let service = CaptureService::start(&rig);
    let socket = state(&rig).join("rig.sock");
    service.kill();
    assert!(socket.exists());
    let stale = run(&[]);
    stale.says(0, &["PASS", "the service that made it has ended", "--rig local"]);
    assert_eq!(told(&stale), 1, "{stale}");
    assert_eq!(told(run(&["--rig", "local"]).says(0, &["PASS"])), 0);
    // A view asks twice within one call.
    assert_eq!(told(rig.run(["health"]).says(0, &[])), 1);
    rig.run(["--json", "boards"]).says(0, &[]).json().unwrap();

    for (why, answers) in [
        ("nothing was answered within 2s", None),
        ("no answer of a service", Some(&b"\x7fELF\0\xff\n"[..])),
        ("no answer of a service", Some(&[b'x'; 4 << 20])),
        ("the service is jig 0.0.1", Some(OTHER_VERSION)),
    ] {
        fs::remove_file(&socket).unwrap();
        let listener = UnixListener::bind(&socket).unwrap();
        // Ends with the test's process: each caller is answered the same, and held.
        thread::spawn(move || {
            let mut held = Vec::new();
            for mut stream in listener.incoming().map_while(Result::ok) {
                answer(&mut stream, answers);
                held.push(stream);
            }
        });
        let fallen_back = run(&[]);
        fallen_back.says(0, &["PASS", why]);
        assert_eq!(told(&fallen_back), 1, "{fallen_back}");
    }
    // Another file is no socket.
    fs::remove_file(&socket).unwrap();
    fs::write(&socket, "").unwrap();
    assert_eq!(told(run(&[]).says(0, &["PASS"])), 0);
    assert_eq!(jobs(&state(&rig)), 0);
}

/// What a service of another version says.
const OTHER_VERSION: &[u8] = br#"{"jsonrpc":"2.0","id":0,"result":{"protocol":1,"program":"0.0.1","host":"h","identity":"unix:root","runs":{"path":"/","inode":null,"boot":""}}}
"#;

/// Answers the first call of a caller, under its number.
fn answer(stream: &mut UnixStream, words: Option<&[u8]>) {
    let Some(words) = words else { return };
    let mut line = String::new();
    let _ = BufReader::new(stream.try_clone().unwrap()).read_line(&mut line);
    let hello: serde_json::Value = serde_json::from_str(&line).unwrap();
    let words = match std::str::from_utf8(words) {
        Ok(text) => text.replace("\"id\":0", &format!("\"id\":{}", hello["id"])).into_bytes(),
        Err(_) => words.to_vec(),
    };
    // One that has hung up wants no more.
    let _ = stream.write_all(&words);
}

#[test]
fn a_service_of_another_rig_is_left_alone() {
    let _slot = Slot::take();
    let rig = Workshop::new();
    let image = elf("microbit", "unity-pass");
    let _service = CaptureService::start(&rig);
    // The service was started without this rig file, in another folder.
    fs::create_dir(rig.path("project")).unwrap();
    rig.write("project/rig.toml", RIG);
    let mut run = rig.jig(["run", "-b", "bench-1", &image]);
    let other = ran(run.current_dir(rig.path("project"))).unwrap();
    other.says(0, &["PASS bench-1"]);
    assert_eq!((told(&other), jobs(&state(&rig))), (0, 0));
    // Another folder of runs is another rig, too: the run is where it was asked for.
    let runs = rig.path("own-runs");
    let mut run = rig.jig([] as [&str; 0]);
    let args: Vec<_> = run.get_args().map(std::ffi::OsStr::to_owned).collect();
    let mut again = Command::new(run.get_program());
    for (name, value) in run.get_envs() {
        again.env(name, value.unwrap_or_default());
    }
    // `--runs` of the workshop is replaced.
    let at = args.iter().position(|arg| arg == "--runs").unwrap();
    again.args(&args[..at]).arg("--runs").arg(&runs).args(["run", "-b", "microbit", &image]);
    run = again;
    ran(run.current_dir(rig.path("")).stdin(Stdio::null())).unwrap().says(0, &["PASS microbit"]);
    assert_eq!(jobs(&state(&rig)), 0);
    assert_eq!(fs::read_dir(runs).unwrap().count(), 1);
}

/// A service of a rig file of the user, with a folder of state of its own, and a user who has another one.
fn of_user(rig: &Workshop, desk: &Workshop, more: impl FnOnce(&mut Command)) -> CaptureService {
    fs::create_dir_all(rig.path("../home/CONFIG/jig")).unwrap();
    rig.write("../home/CONFIG/jig/rig.toml", RIG);
    let folder = desk.path("run/jig");
    fs::create_dir_all(&folder).unwrap();
    CaptureService::with(rig, |command| {
        command.env("RUNTIME_DIRECTORY", folder);
        more(command);
    })
}

fn at_desk(rig: &Workshop, desk: &Workshop, args: &[&str]) -> Command {
    let mut command = desk.jig(args);
    command.env("XDG_CONFIG_HOME", rig.path("../home/CONFIG"));
    command.env("XDG_RUNTIME_DIR", desk.path("run"));
    command
}

#[test]
fn the_service_of_a_rig_file_owns_its_boards_whoever_uses_them() {
    let _slot = Slot::take();
    let (rig, desk) = (Workshop::new(), Workshop::new());
    let service = of_user(&rig, &desk, |_| ());
    let image = elf("microbit", "unity-pass");
    let call = |args: &[&str]| ran(&mut at_desk(&rig, &desk, args)).unwrap();
    call(&["run", "-b", "bench-1", &image]).says(0, &["PASS bench-1"]);
    assert_eq!((jobs(&state(&rig)), jobs(&state(&desk))), (1, 0));
    // The run is there, and a copy is where this user's runs are.
    assert_eq!((rig.run_dirs().len(), desk.run_dirs().len()), (1, 1));
    call(&["runs", "show", "last"]).says(0, &[]);
    // Leases and health are those of the service.
    call(&["lease", "acquire", "-b", "bench-1"]).says(0, &[]);
    let list = rig.run(["lease", "ls", "--json"]).json().unwrap();
    assert!(list["places"][0]["lease"].is_object(), "{list}");
    assert!(!state(&desk).join("leases.db").exists());
    call(&["lease", "release", "bench-1"]).says(0, &[]);
    call(&["health", "-b", "bench-1", "--history"]).says(0, &[]);
    // Who names a folder of state means that one.
    let own = desk.path("own");
    let named = call(&["--state", own.to_str().unwrap(), "run", "-b", "bench-1", &image]);
    named.says(0, &["PASS bench-1"]);
    assert_eq!((jobs(&state(&rig)), told(&named)), (1, 0));
    service.stop().says(0, &[]);
    // Without it the same command is carried out by the caller.
    call(&["run", "-b", "bench-1", &image]).says(0, &["PASS bench-1"]);
    assert_eq!((jobs(&state(&rig)), rig.run_dirs().len(), desk.run_dirs().len()), (1, 1, 3));
}

/// Listens at a socket and passes all on to a service, which so seems to have another version.
fn posing(socket: &Path, service: &Path) {
    let (listener, service) = (UnixListener::bind(socket).unwrap(), service.to_owned());
    let own = format!("\"program\":\"{}\"", env!("CARGO_PKG_VERSION"));
    // Ends with the test's process.
    thread::spawn(move || {
        for near in listener.incoming().map_while(Result::ok) {
            let far = UnixStream::connect(&service).unwrap();
            let (mut from_near, mut to_far) = (near.try_clone().unwrap(), far.try_clone().unwrap());
            thread::spawn(move || {
                let _ = io::copy(&mut from_near, &mut to_far);
                let _ = to_far.shutdown(Shutdown::Write);
            });
            let (own, mut to_near) = (own.clone(), near);
            thread::spawn(move || {
                for line in BufReader::new(far).lines().map_while(Result::ok) {
                    let line = line.replace(&own, "\"program\":\"0.0.9\"");
                    if writeln!(to_near, "{line}").is_err() {
                        break;
                    }
                }
                let _ = to_near.shutdown(Shutdown::Both);
            });
        }
    });
}

#[test]
fn a_service_that_was_not_restarted_behind_an_upgrade_keeps_its_boards() {
    let _slot = Slot::take();
    let (rig, desk) = (Workshop::new(), Workshop::new());
    fs::create_dir(desk.path("service")).unwrap();
    let folder = desk.path("service");
    let service = of_user(&rig, &desk, |command| {
        command.env("RUNTIME_DIRECTORY", folder);
    });
    let socket = desk.path("service/rig.sock");
    posing(&desk.path("run/jig/rig.sock"), &socket);
    let image = elf("microbit", "unity-pass");
    let call = |args: &[&str]| ran(&mut at_desk(&rig, &desk, args)).unwrap();
    // Its boards are known to be free by its folder alone.
    let used = call(&["run", "-b", "bench-1", &image]);
    used.says(0, &["PASS bench-1"]);
    assert_eq!((jobs(&state(&rig)), told(&used)), (1, 0), "{used}");
    call(&["lease", "acquire", "-b", "bench-1"]).says(0, &[]);
    assert!(!state(&desk).join("leases.db").exists());
    call(&["lease", "release", "bench-1"]).says(0, &[]);
    // Its own user finds the same locks without it.
    posing(&state(&rig).join("rig.sock"), &socket);
    let own = rig.run(["run", "-b", "bench-1", &image]);
    own.says(0, &["PASS bench-1", "the service is jig 0.0.9"]);
    assert_eq!((jobs(&state(&rig)), told(&own)), (1, 1), "{own}");
    service.stop().says(0, &[]);
}

/// Another user of this host; nothing unless the test may become one.
fn other_user() -> Option<&'static str> {
    // The numbers are those that Debian gives to nobody and nogroup.
    nix::unistd::geteuid().is_root().then_some("65534")
}

#[test]
fn a_service_of_another_user_is_used_where_it_lets_in_and_its_folder_is_its_own() {
    let Some(user) = other_user() else {
        eprintln!("skipped: only root can be another user");
        return;
    };
    let rig = Workshop::new();
    let opened = |workshop: &Workshop| {
        for folder in [workshop.path(""), workshop.path("..")] {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
        }
    };
    opened(&rig);
    // A stranger's service in a folder of this user.
    fs::create_dir_all(state(&rig)).unwrap();
    fs::create_dir(rig.path("stranger")).unwrap();
    for folder in [state(&rig), rig.path("stranger")] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let socket = state(&rig).join("rig.sock");
    let as_other = |own: &Command, args: &[&str]| {
        let mut call = tied("setpriv");
        call.args(["--reuid", user, "--regid", user, "--clear-groups"]);
        call.arg(env!("CARGO_BIN_EXE_jig")).args(args);
        for (name, value) in own.get_envs() {
            call.env(name, value.unwrap_or_default());
        }
        call.current_dir("/").stdin(Stdio::null());
        call
    };
    let folder = rig.path("stranger").display().to_string();
    let mut serve = as_other(&rig.jig(["serve"]), &["--json", "--state", &folder, "serve"]);
    serve.env("RUNTIME_DIRECTORY", state(&rig));
    let mut stranger = Started::of(serve.stdout(Stdio::piped()).stderr(Stdio::inherit()));
    let mut up = String::new();
    BufReader::new(stranger.child().stdout.take().unwrap()).read_line(&mut up).unwrap();
    assert!(up.contains("ready"), "{up:?}");
    let refused = rig.run(["boards"]);
    refused.says(0, &["user 65534 serves it, to whom its folder does not belong"]);
    assert_eq!(told(&refused), 1);
    drop(stranger);
    fs::remove_file(&socket).unwrap();
    fs::set_permissions(state(&rig), fs::Permissions::from_mode(0o755)).unwrap();
    // A user who is no member of the group cannot give a socket to it.
    let mut serve =
        as_other(&rig.jig(["serve"]), &["--state", &folder, "serve", "--socket-group", "0"]);
    serve.env("RUNTIME_DIRECTORY", rig.path("stranger"));
    ran(&mut serve)
        .unwrap()
        .says(75, &["stranger/rig.sock", "in group 0", "SupplementaryGroups=0"]);
    // The socket of this user, which lets in nobody else, as that user meets it.
    let desk = Workshop::new();
    let _service = of_user(&rig, &desk, |_| ());
    opened(&desk);
    let args = ["--state", "/nonexistent/state", "boards"];
    let denied = ran(&mut as_other(&at_desk(&rig, &desk, &["boards"]), &args)).unwrap();
    denied.says(0, &["this user has no right to connect (see: ls -l "]);
    assert_eq!(told(&denied), 1, "{denied}");
}
