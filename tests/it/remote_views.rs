//! What a rig tells of itself is the same at the rig and elsewhere: text, JSON and exit code.

use std::fs;

use crate::manifest::elf;
use crate::remote::{OverSsh, TwoHosts};
use crate::workshop::{Ran, Slot, Workshop, name_of, ran};

const RIG: &str = "\
version = 1
[[place]]
name = \"bench-1\"
board = \"microbit\"
emulator = {}
[[place]]
name = \"bench-2\"
board = \"mps2-an385\"
emulator = {}
";

/// Gives a rig a rig file, a run that passed, one that failed, and one whose record is damaged; returns
/// their names, oldest first.
fn with_runs(rig: &Workshop) -> Vec<String> {
    rig.write("rig.toml", RIG);
    rig.run(["run", "-b", "bench-1", &elf("microbit", "unity-pass")]).says(0, &[]);
    rig.run(["run", "-b", "bench-2", &elf("mps2-an385", "fault-bus")]).says(1, &[]);
    rig.run(["run", "-b", "bench-1", &elf("microbit", "unity-fail")]).says(1, &[]);
    let dirs = rig.run_dirs();
    fs::write(dirs[2].join("record.json"), "{").unwrap();
    dirs.iter().map(|dir| name_of(dir).to_owned()).collect()
}

/// Leaves out times of looks, which differ between two of them.
fn steady(ran: &Ran) -> (i32, String, String) {
    let lasting = |text: String| {
        let words = text.split_inclusive(' ').map(|word| match word.trim_end() {
            "ms" | "s" => "",
            number if number.parse::<f64>().is_ok() => "N ",
            _ => word,
        });
        words.collect::<String>()
    };
    // A check measures something else at each look, and a view says when it was taken.
    let checks = [" --check", " top"].iter().any(|text| ran.line.contains(text));
    let digit = |c: char| !(checks && (c.is_ascii_digit() || c == '.'));
    (ran.code(), ran.out().chars().filter(|c| digit(*c)).collect(), lasting(ran.err()))
}

/// Compares each verb at the rig with the same one elsewhere.
fn the_same_at_both(rig: &Workshop, runs: &[String], elsewhere: impl Fn(&[&str]) -> Ran) {
    let (passed, failed, damaged) = (&*runs[0], &*runs[1], &*runs[2]);
    let verbs: &[&[&str]] = &[
        &["boards"],
        &["health", "--check"],
        &["health"],
        &["health", "--history"],
        &["health", "-b", "bench-1", "--history", "3"],
        &["health", "-b", "nothing"],
        &["probes"],
        &["discover"],
        &["runs"],
        &["runs", "list"],
        &["runs", "show", passed],
        &["runs", "show", failed],
        &["runs", "show", &passed[..passed.len() - 1]],
        &["runs", "show", "20260101-000000-0000"],
        &["runs", "show", "../../etc"],
        &["runs", "allow", passed],
        &["runs", "allow", failed],
        &["runs", "log", passed],
        &["runs", "log", failed],
        &["runs", "log", damaged],
        &["runs", "attach", failed],
        &["runs", "attach", passed],
        &["runs", "attach", "20260101-000000-0000"],
        &["runs", "cancel", failed],
        &["top"],
        &["top", "--once"],
        &["top", "--once", "--filter", "bench-2"],
        &["profile", "show", "microbit"],
        &["profile", "show", "nothing"],
        &["access", "check"],
        &["access", "check", "-b", "bench-1", "run"],
        &["access", "check", "-b", "nothing"],
        &["audit"],
        &["audit", "--since", "1h"],
        &["audit", "verify"],
        &["audit", "verify", "--contains", "00"],
    ];
    for verb in verbs {
        for json in [false, true] {
            let more: &[&str] = if json { &["--json"] } else { &[] };
            let verb: Vec<&str> = verb.iter().chain(more).copied().collect();
            let (here, there) = (rig.run(&verb), elsewhere(&verb));
            assert_eq!(steady(&there), steady(&here), "{verb:?}\n{there}\n{here}");
        }
    }
    // One that cannot be read says so with the exit code that it has at the rig.
    let (here, there) = (rig.run(["runs", "show", damaged]), elsewhere(&["runs", "show", damaged]));
    assert_eq!((there.code(), here.code()), (75, 75), "{there}");
    there.says(75, &["record.json", "jig runs log"]);
    let archive = ["runs", "export", failed, "-o", "-"];
    let (here, there) = (rig.run(archive), elsewhere(&archive));
    assert_eq!(there.code(), 0, "{}", there.err());
    assert!(there.stdout == here.stdout, "the archive is another one than at the rig");
    assert!(there.stdout.len() > 1000);
    elsewhere(&["runs", "prune"]).says(2, &["--keep-days 30"]);
    elsewhere(&["runs", "prune", "--keep-days", "1"]).says(0, &[]);
    assert_eq!(rig.run_dirs().len(), runs.len(), "all are young");
    // Repair runs are of the host on which they were begun.
    elsewhere(&["repair", "status"]).says(0, &[]);
    assert!(elsewhere(&["doctor"]).err().contains("this looks at this host"));
    // A run whose record is damaged is left alone.
    let pruned = elsewhere(&["--json", "runs", "prune", "--keep-size", "1"]);
    pruned.says(0, &[]);
    let gone = pruned.json().unwrap();
    let gone = gone["removed"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap());
    let (mut gone, mut wanted) = (gone.collect::<Vec<_>>(), vec![passed, failed]);
    gone.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(gone, wanted, "{pruned}");
    assert_eq!(rig.run_dirs().len(), 1);
    let log = rig.run(["audit"]).out();
    assert!(log.contains("accepted runs-prune") && log.contains("keeps 1 bytes"), "{log}");
}

#[test]
fn what_a_rig_tells_behind_a_socket_is_what_it_tells_at_its_host() {
    let _slot = Slot::take();
    let hosts = TwoHosts::new();
    let runs = with_runs(&hosts.rig);
    the_same_at_both(&hosts.rig, &runs, |verb| hosts.run(verb));
    assert_eq!(hosts.desk.run_dirs().len(), 0, "what is looked at is not kept");
    let left = fs::read_dir(hosts.desk.path("../tmp")).unwrap().count();
    assert_eq!(left, 0, "what was fetched is removed");
    // The rig of the desk has no places of its own; what is broken at the rig is told as there.
    hosts.rig.write("rig.toml", "version = 1\n[[place]]\nname = \"x\"\nboard = \"y\"\n");
    hosts.run(&["boards"]).says(3, &["rig.toml:4"]);
    hosts.run(&["discover"]).says(0, &["boards and places are unknown"]);
}

#[test]
fn what_a_rig_tells_over_ssh_is_what_it_tells_at_its_host() {
    let _slot = Slot::take();
    let hosts = OverSsh::new();
    let runs = with_runs(&hosts.rig);
    the_same_at_both(&hosts.rig, &runs, |verb| ran(&mut hosts.call(verb)).unwrap());
    assert_eq!(hosts.desk.run_dirs().len(), 0, "what is looked at is not kept");
    // What is written is written at the desk.
    let path = hosts.desk.path("found.toml").display().to_string();
    ran(&mut hosts.call(&["discover", "-o", &path])).unwrap().says(0, &["wrote"]);
    assert!(fs::read_to_string(path).unwrap().contains("version = 1"));
}
