//! `jig repair` on a rig that fails, on a host that fails, and killed at any moment.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::dice::Dice;
use crate::full_disk::{NAMESPACES, may_mount};
use crate::repair_project::{MEND, RepairProject};
use crate::workshop::{DEADLINE, Ran, Slot, Started, Workshop, ran, side_by_side, tied};

const SCRIPT: &str = "[\"command:script\"]";

/// Puts an emulator into `PATH` that does not start while a shell command succeeds; `$JOURNAL` is the
/// journal of the run, and `$RUNS` the folder of the runs.
fn broken_while(workshop: &Workshop, condition: &str) -> String {
    let path = std::env::var("PATH").unwrap();
    let mut all = path.split(':').map(|folder| format!("{folder}/qemu-system-arm"));
    let real = all.find(|file| fs::metadata(file).is_ok()).expect("qemu-system-arm in PATH");
    let folder = workshop.path("bin");
    fs::create_dir(&folder).unwrap();
    let script = format!(
        "#!/bin/sh\nRUNS='{}'\nJOURNAL=\"$RUNS/repairs/*/journal.db*\"\n\
         if {condition}; then echo broken >&2; exit 1; fi\nexec {real} \"$@\"\n",
        workshop.runs().display()
    );
    let wrapper = folder.join("qemu-system-arm");
    fs::write(&wrapper, script).unwrap();
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:{path}", folder.display())
}

/// A condition: a state has begun, and the recovery of the rig has not.
fn from_until_recovery(state: &str) -> String {
    let has = |word: &str| format!("cat $JOURNAL | grep -aq '\"state\":\"{word}\"'");
    format!("{} && ! {}", has(state), has("ERROR_RECOVERY"))
}

fn repair(project: &RepairProject<'_>, agents: &str, path: &str) -> Ran {
    let task = project.task(agents, Some(MEND).filter(|_| agents == SCRIPT));
    let _slot = Slot::take();
    ran(project.workshop.jig(["--json", "repair"]).arg(task).env("PATH", path)).unwrap()
}

#[test]
fn a_rig_that_fails_is_recovered_and_no_patch_is_blamed() {
    let during = |state: &'static str, agents, event| (from_until_recovery(state), agents, event);
    side_by_side(
        [
            // The first run of the rig is that of the baseline; its recovery is the second.
            (
                "[ $(ls $RUNS | grep -c ^2) -lt 2 ]".to_owned(),
                SCRIPT,
                "context_ready: fails without a patch, 3 times of 3",
            ),
            during("TEST_RUN", SCRIPT, "TEST_RUN runner_failed"),
            during("RESULT_ANALYSIS", SCRIPT, "RESULT_ANALYSIS environment_blamed"),
            during("PATCH_GENERATION", "[\"templates\"]", "PATCH_GENERATION patch_invalid"),
        ],
        |(condition, agents, event)| {
            let workshop = Workshop::new();
            let project = RepairProject::new(&workshop);
            let path = broken_while(&workshop, &condition);
            let ran = repair(&project, agents, &path);
            let log = workshop.run(["repair", "log", "last"]).out();
            assert_eq!(ran.code(), 0, "{event}: {ran}{log}");
            let document = ran.json().unwrap();
            assert_eq!(document["state"], "SUCCESS", "{event}: {document:#}");
            assert_eq!(document["iterations"], 1, "{event}: {document:#}");
            assert!(log.contains(event), "{event}: {log}");
            assert_eq!(log.matches("patch_valid").count(), 1, "{event}: {log}");
            let recovered = log.contains("the rig works") || log.contains("3 times of 3");
            assert!(recovered, "{event}: {log}");
            let failed = workshop.run_dirs().iter().any(|run| {
                let record = fs::read_to_string(run.join("record.json")).unwrap();
                record.contains("\"exit_code\": 75") || record.contains("\"exit_code\":75")
            });
            assert!(failed, "{event}: the rig did not fail");
            project.is_untouched();
            workshop.nothing_lives(DEADLINE).unwrap();
        },
    );
}

#[test]
fn a_fault_that_is_injected_into_one_run_of_the_rig_is_recovered_within_it() {
    // The deepest call of all: a proof of the recovery, in a run, in a command, in a step of the loop. Its
    // thread has the stack that threads usually have.
    let workshop = Workshop::new();
    let project = RepairProject::new(&workshop);
    let task = project.task(SCRIPT, Some(MEND));
    let _slot = Slot::take();
    let inject = ["--json", "repair", "--inject", "kill-emulator@5ms", "--inject-run", "2"];
    let ran = ran(workshop.jig(inject).arg(task)).unwrap();
    let log = workshop.run(["repair", "log", "last"]).out();
    assert_eq!(ran.code(), 0, "{ran}{log}");
    let document = ran.json().unwrap();
    assert_eq!((&document["state"], &document["iterations"]), (&"SUCCESS".into(), &1.into()));
    let recovered = "the rig was recovered by restart-emulator after emulator_killed";
    assert!(log.contains(recovered), "{log}");
    project.is_untouched();
    workshop.nothing_lives(DEADLINE).unwrap();
}

#[test]
fn a_rig_that_does_not_recover_ends_the_run_and_says_nothing_of_the_firmware() {
    side_by_side(["INIT", "TEST_RUN"], |state| {
        let workshop = Workshop::new();
        let project = RepairProject::new(&workshop);
        let condition = format!("cat $JOURNAL | grep -aq '\"state\":\"{state}\"'");
        let path = broken_while(&workshop, &condition);
        let ran = repair(&project, SCRIPT, &path);
        assert_eq!(ran.code(), 75, "{state}: {ran}");
        let document = ran.json().unwrap();
        assert!(document["why"].as_str().unwrap().contains("rig"), "{state}: {document:#}");
        assert_eq!(document["iterations"], 1, "{state}: {document:#}");
        let log = workshop.run(["--json", "repair", "log", "last"]).out();
        assert!(!log.contains("\"fact\":\"refused\""), "{state}: {log}");
        assert_eq!(project.branches(), [""; 0], "{state}");
        project.is_untouched();
        workshop.nothing_lives(DEADLINE).unwrap();
    });
}

/// Runs, and times that each of them is killed: more in one state are a rig that does not work.
const LANES: u64 = 7;
const KILLS: usize = 3;

/// Longest time from the start of a process to its kill, about that of a whole run.
const LATEST_MS: u64 = 4000;

#[test]
fn a_run_that_is_killed_at_any_moments_reaches_the_same_end() {
    side_by_side(0..LANES, |seed| {
        let mut dice = Dice::of(seed * 1000 + 7);
        let workshop = Workshop::new();
        let project = RepairProject::new(&workshop);
        let task = project.task(SCRIPT, Some(MEND));
        let _slot = Slot::take();
        let mut moments = Vec::new();
        for _ in 0..KILLS {
            let began = workshop.run(["repair", "status", "last"]).code() == 0;
            let mut jig = match began {
                true => workshop.jig(["repair", "resume", "last"]),
                false => workshop.jig(["repair"]),
            };
            let jig = if began { &mut jig } else { jig.arg(&task) };
            let run = Started::of(jig.stdout(Stdio::null()).stderr(Stdio::null()));
            let moment = dice.below(LATEST_MS);
            moments.push(moment);
            thread::sleep(Duration::from_millis(moment));
            run.signal(Signal::SIGKILL);
            drop(run);
            workshop.nothing_lives(DEADLINE).unwrap();
        }
        let began = workshop.run(["repair", "status", "last"]).code() == 0;
        let last = match began {
            true => workshop.run(["--json", "repair", "resume", "last"]),
            false => ran(workshop.jig(["--json", "repair"]).arg(&task)).unwrap(),
        };
        let log = workshop.run(["repair", "log", "last"]).out();
        assert_eq!(last.code(), 0, "{seed}, {moments:?}: {last}{log}");
        let document = last.json().unwrap();
        assert_eq!(document["state"], "SUCCESS", "{seed}, {moments:?}: {document:#}{log}");
        assert_eq!(document["iterations"], 1, "{seed}, {moments:?}: {document:#}{log}");
        let commit = document["commit"].as_str().unwrap();
        let diff = project.git(&["diff", "--stat", "HEAD", commit]);
        assert!(diff.contains("1 file changed, 1 insertion(+), 1 deletion(-)"), "{diff}");
        assert_eq!(project.branches().len(), 1, "{seed}, {moments:?}");
        project.is_untouched();
        workshop.nothing_lives(DEADLINE).unwrap();
    });
}

/// Mounts a disk on the first argument, where the runs are; has a run go on once there is room.
const ON_A_DISK: &str = r#"
runs=$1 copy=$2 jig=$3 task=$4
mount -t tmpfs -o size=24m none "$runs" || exit 99
"$jig" --runs "$runs" repair "$task" > first.out 2> first.err; echo $? > first.code
rm "$runs/ballast"
"$jig" --runs "$runs" repair resume last > second.out 2> second.err; echo $? > second.code
cp -a "$runs/." "$copy"
"#;

#[test]
fn a_disk_that_is_full_ends_the_process_and_not_the_run() {
    if !may_mount() {
        return;
    }
    let workshop = Workshop::new();
    let project = RepairProject::new(&workshop);
    let filled = workshop.path("filled");
    let script = format!(
        "{MEND}; [ -e {0} ] || {{ : > {0}; cat /dev/zero > {1}/ballast; }}",
        filled.display(),
        workshop.runs().display()
    );
    let task = project.task(SCRIPT, Some(&script));
    let copy = workshop.path("copy");
    fs::create_dir_all(workshop.runs()).unwrap();
    fs::create_dir(&copy).unwrap();
    let shell = tied("sh");
    let mut unshare = Command::new("unshare");
    unshare.args(NAMESPACES).arg(shell.get_program()).args(shell.get_args());
    unshare.args(["-c", ON_A_DISK, "sh"]).arg(workshop.runs()).arg(&copy);
    unshare.arg(env!("CARGO_BIN_EXE_jig")).arg(task).env_clear().stdin(Stdio::null());
    let jig = workshop.jig([""; 0]);
    unshare.envs(jig.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let _slot = Slot::take();
    let all = ran(unshare.current_dir(workshop.path("."))).unwrap();
    assert_eq!(all.code(), 0, "{all}");
    let said = |name: &str| fs::read_to_string(workshop.path(name)).unwrap();
    let (first, second) = (said("first.err"), said("second.err"));
    assert!(filled.exists(), "{first}");
    assert_eq!(said("first.code").trim(), "75", "{first}");
    assert!(first.contains("full"), "{first}");
    assert_eq!(said("second.code").trim(), "0", "{first}{second}");
    let run = fs::read_dir(copy.join("repairs")).unwrap().next().unwrap().unwrap().path();
    let document: Value =
        serde_json::from_slice(&fs::read(run.join("result.json")).unwrap()).unwrap();
    assert_eq!(document["state"], "SUCCESS", "{document:#}");
    project.is_untouched();
}

#[test]
fn the_time_of_a_run_is_its_end_whatever_is_at_work() {
    let sleeps = ("sleep 1000", "timeout = \"2s\"", "timeout = \"60s\"");
    let hangs = (
        "sed -i 's/r->count > 8/r->count > 8 || ({ for (;;) ; 0; })/' src/ring.c",
        "board",
        "board",
    );
    side_by_side([sleeps, hangs], |(script, from, to)| {
        let workshop = Workshop::new();
        let project = RepairProject::new(&workshop);
        let plan = workshop.path("plan.toml");
        let text = fs::read_to_string(&plan).unwrap();
        fs::write(plan, text.replace("timeout = \"30s\"", "timeout = \"300s\"")).unwrap();
        let task = project.task(SCRIPT, Some(script));
        let text = fs::read_to_string(&task).unwrap().replace(from, to);
        fs::write(&task, text.replace("[limits]\n", "[limits]\nwall = \"12s\"\n")).unwrap();
        let _slot = Slot::take();
        let ran = ran(workshop.jig(["--json", "repair"]).arg(task)).unwrap();
        assert_eq!(ran.code(), 1, "{script}: {ran}");
        let document = ran.json().unwrap();
        assert_eq!(document["why"], "the run has taken its 12 s", "{document:#}");
        let took = document["duration_ms"].as_u64().unwrap();
        assert!((12_000..40_000).contains(&took), "{script}: {took} ms");
        project.is_untouched();
        workshop.nothing_lives(DEADLINE).unwrap();
    });
}
