//! The service of a whole machine at the socket of its unit, `/run/jig/rig.sock`, for the rig file of the machine:
//! in a mount namespace with a `/run` and an `/etc` of its own.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::full_disk::{NAMESPACES, may_mount};
use crate::manifest::elf;
use crate::workshop::{Ran, Slot, Workshop, ran, tied};

const RIG: &str = "version = 1
[[place]]
name = \"bench-1\"
board = \"microbit\"
emulator = {}
";

/// Starts the service as its unit does, and calls jig four times: as a user of the machine, by the name of the
/// socket, as one who has a rig file of the same words, and behind the end of the service. Each call leaves its
/// output and exit code.
const SCRIPT: &str = r#"
etc=$1 jig=$2 state=$3 image=$4
mount -t tmpfs none /run || exit 90
mount --bind "$etc" /etc || exit 91
mkdir /run/jig && : > empty || exit 92
STATE_DIRECTORY="$state" RUNTIME_DIRECTORY=/run/jig "$jig" --json serve --check-every 0s \
    > serve.out 2> serve.err &
service=$!
until grep -q '"event":"ready"' serve.out; do
    kill -0 $service || exit 93
    sleep 0.02
done
call() {
    name=$1; shift
    "$@" > "$name.out" 2> "$name.err"; echo $? > "$name.code"
    ls "$state/jobs" 2>/dev/null | wc -l > "$name.jobs"
}
call found "$jig" run -b bench-1 "$image"
call named "$jig" --rig unix:/run/jig/rig.sock lease acquire -b bench-1
cp /etc/jig/rig.toml project/rig.toml
( cd project && call ../own "$jig" run -b bench-1 "$image" )
kill -TERM $service; wait $service; echo $? > serve.code
call alone "$jig" boards
[ ! -e /run/jig/rig.sock ] || exit 94
"#;

/// What a call of the script has left.
fn call(workshop: &Workshop, name: &str) -> (i32, String, usize) {
    let read = |what: &str| fs::read_to_string(workshop.path(&format!("{name}.{what}"))).unwrap();
    let said = read("out") + &read("err");
    (read("code").trim().parse().unwrap(), said, read("jobs").trim().parse().unwrap())
}

/// Makes an `/etc` that has what a program needs to start, and a rig file.
fn etc(workshop: &Workshop) -> PathBuf {
    let etc = workshop.path("etc");
    fs::create_dir_all(etc.join("jig")).unwrap();
    for file in ["passwd", "group", "nsswitch.conf", "ld.so.cache"] {
        // The loader and the look-up of users do without those that a host lacks.
        let _ = fs::copy(format!("/etc/{file}"), etc.join(file));
    }
    fs::write(etc.join("jig/rig.toml"), RIG).unwrap();
    etc
}

#[test]
fn the_service_of_the_machine_is_found_at_the_socket_of_its_unit() {
    if !may_mount() {
        return;
    }
    let _slot = Slot::take();
    let workshop = Workshop::new();
    fs::create_dir(workshop.path("project")).unwrap();
    let state = workshop.path("machine");
    let jig = workshop.jig([""; 0]);
    let mut command = Command::new("unshare");
    // Within the namespaces: a process that enters them is not killed with its parent any more.
    let shell = tied("sh");
    command.args(NAMESPACES).arg(shell.get_program()).args(shell.get_args());
    command
        .args(["-c", SCRIPT, "sh"])
        .arg(etc(&workshop))
        .arg(env!("CARGO_BIN_EXE_jig"))
        .arg(&state);
    command.arg(elf("microbit", "unity-pass")).env_clear().stdin(Stdio::null());
    command.envs(jig.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let all: Ran = ran(command.current_dir(workshop.path("."))).unwrap();
    let told = fs::read_to_string(workshop.path("serve.err")).unwrap_or_default();
    assert_eq!(all.code(), 0, "{all}\n{told}");
    let (code, said, jobs) = call(&workshop, "found");
    assert_eq!((code, jobs), (0, 1), "{said}");
    assert!(said.contains("PASS bench-1"), "{said}");
    let runs = fs::read_dir(state.join("runs")).unwrap().filter_map(Result::ok);
    let own = runs.filter(|run| run.path().join("children.jsonl").exists()).count();
    assert_eq!(own, 1, "the service has carried it out");
    let (code, said, _) = call(&workshop, "named");
    assert_eq!(code, 0, "{said}");
    // A rig file of the same words elsewhere is another rig, whose boards are this user's.
    let (code, said, jobs) = call(&workshop, "own");
    assert_eq!((code, jobs), (0, 1), "{said}");
    assert!(!said.contains("leased"), "{said}");
    assert_eq!(fs::read_to_string(workshop.path("serve.code")).unwrap().trim(), "0", "{told}");
    let (code, said, _) = call(&workshop, "alone");
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("bench-1") && !said.contains("is not used"), "{said}");
}
