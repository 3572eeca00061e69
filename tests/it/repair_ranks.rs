//! Which rank the wrong line of each firmware project has among the suspects of `jig repair`: by what
//! its tests execute, and by what they can reach. Prints the table of the guide with `--nocapture`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Mutex;

use jig_repair::localise::{MeasuredCoverage, RankedSuspect, SuspectMeasure};
use jig_repair::setup::{MeasuredTests, PlanResult, RepairFolder};
use jig_repair::suspects::{FailureSeen, suspects};

use crate::repair_projects::{BOARD, IMAGE, Kind, Project, projects};
use crate::workshop::{Slot, Workshop, name_of, ran, side_by_side};

struct Ranks {
    project: String,
    measured: usize,
    ochiai: (usize, SuspectMeasure),
    /// `None` where the line is not listed.
    call_graph: Option<usize>,
}

/// Returns file and number of the line that the right repair replaces.
fn wrong_line(project: &Project) -> (String, u32) {
    let diff = fs::read_to_string(project.file("fix.diff")).unwrap();
    let (mut file, mut number) = (String::new(), 0);
    for line in diff.lines() {
        if let Some(path) = line.strip_prefix("--- a/") {
            file = path.to_owned();
        } else if let Some(rest) = line.strip_prefix("@@ -") {
            number = rest.split([',', ' ']).next().unwrap().parse().unwrap();
        } else if line.starts_with('-') {
            return (file, number);
        } else if line.starts_with(' ') {
            number += 1;
        }
    }
    panic!("{}: the repair replaces no line", project.name)
}

/// Reads the sources below a folder, by their paths.
fn sources(root: &Path, folder: &Path, all: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && name_of(&path) != ".git" {
            sources(root, &path, all);
        } else if path.extension().is_some_and(|end| end == "c" || end == "h") {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            all.insert(name, fs::read_to_string(&path).unwrap());
        }
    }
}

fn ranks(project: &Project) -> Ranks {
    let workshop = Workshop::new();
    let repository = project.assemble(&workshop, "firmware");
    workshop.write("policy.toml", "version = 1\n");
    // It proposes nothing, so that the run ends behind the analysis.
    let task = workshop.write(
        "task.toml",
        format!(
            "version = 1\ngoal = \"the unit tests pass\"\nrepo = \"firmware\"\nboard = \"{BOARD}\"\n\
             plan = \"{}\"\nmode = \"ci\"\nagents = [\"command:none\"]\n\
             [build]\ncommand = [\"make\", \"--silent\"]\nartifact = \"{IMAGE}\"\n\
             [agent.none]\ncommand = [\"true\"]\ntimeout = \"20s\"\n\
             [limits]\niterations = 1\n[policy]\nfile = \"policy.toml\"\n",
            project.file("plan.toml").display()
        ),
    );
    let slot = Slot::take();
    let ran = ran(workshop.jig(["--json", "repair"]).arg(task)).unwrap();
    drop(slot);
    let document = ran.json().unwrap();
    let folder = workshop.runs().join("repairs").join(document["run"].as_str().unwrap());
    let log = workshop.run(["repair", "log", "last", "--json"]).out();
    let rows = log.lines().filter_map(|row| serde_json::from_str(row).ok());
    let rows: Vec<serde_json::Value> = rows.collect();
    let facts = rows.iter().filter_map(|row| row["facts"].as_array()).flatten();
    let baseline = facts.into_iter().find(|fact| fact["fact"] == "baseline");
    let baseline = baseline.unwrap_or_else(|| panic!("{}: {log}", project.name));
    let folder = RepairFolder::new(folder);
    let word = |key: &str| baseline[key].as_str().unwrap();
    let shown: PlanResult = folder.read_json(&folder.result(word("run"))).unwrap();
    let measured: MeasuredTests = folder.read_json(&folder.test_coverage(word("image"))).unwrap();
    let count = measured.tests.len();
    let mut texts = BTreeMap::new();
    sources(&repository, &repository, &mut texts);
    let seen = FailureSeen::of(&shown.verdict);
    let (file, line) = wrong_line(project);
    let of = |measured: &MeasuredCoverage| {
        let all = suspects(&texts, &seen, |file| !file.starts_with("test/"), measured, usize::MAX);
        let found = all.iter().find(|one| one.file == file && one.line == line);
        found.map(|found| (found.rank, found.measure))
    };
    let call_graph = of(&MeasuredCoverage::default()).map(|(rank, _)| rank);
    let ochiai = of(&measured.into()).unwrap_or_else(|| panic!("{}: {file}:{line}", project.name));
    // What the agent was given says the same.
    let given: Vec<RankedSuspect> = folder.read_json(&folder.suspects(1)).unwrap();
    let given = given.iter().find(|one| one.file == file && one.line == line).unwrap();
    assert_eq!((given.rank, given.measure), ochiai, "{}", project.name);
    let project = project.name.clone();
    Ranks { project, measured: count, ochiai, call_graph }
}

#[test]
fn the_wrong_line_ranks_higher_by_what_tests_execute_than_by_what_they_can_reach() {
    let bugs = projects().into_iter().filter(|one| one.about.kind == Kind::Repair);
    let found = Mutex::new(Vec::new());
    side_by_side(bugs, |project| {
        let ranks = ranks(&project);
        found.lock().unwrap().push(ranks);
    });
    let mut found = found.into_inner().unwrap();
    found.sort_by(|a, b| a.project.cmp(&b.project));
    println!("| project | tests measured | rank by coverage | measure | rank by call graph |");
    println!("|---|---|---|---|---|");
    for Ranks { project, measured, ochiai: (rank, measure), call_graph } in &found {
        let (measure, call_graph) = (measure.as_str(), call_graph.map(|rank| rank.to_string()));
        let call_graph = call_graph.as_deref().unwrap_or("not listed");
        println!("| {project} | {measured} | {rank} | {measure} | {call_graph} |");
    }
    let within = |most: usize| {
        let ochiai = found.iter().filter(|one| one.ochiai.0 <= most).count();
        let graph = found.iter().filter(|one| one.call_graph.is_some_and(|rank| rank <= most));
        (ochiai, graph.count())
    };
    for most in [1, 5, 10] {
        println!("among the first {most}: {:?} of {}", within(most), found.len());
    }
    assert!(found.len() >= 12);
    let (ochiai, call_graph) = within(10);
    assert!(ochiai > call_graph, "{ochiai} {call_graph}");
    assert!(found.iter().filter(|one| one.ochiai.1 == SuspectMeasure::Ochiai).count() >= 10);
}
