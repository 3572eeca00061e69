//! One repair run, and what it was worth.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::agent::BenchAgent;
use super::project::{BenchProject, BugOrigin};
use super::rig_fault::RunFault;
use super::shop::{IMAGE, MeasuredAnswer, RepairShop};
use xtask::failure::TaskFailure;
use xtask::process;
use xtask::project::git;

/// What a repair run amounts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RepairWorth {
    /// A repair, and it is right.
    Repaired,
    /// A success of which further tests show that it is none.
    FalseSuccess,
    /// The tests passed with a patch, and the proof refused it.
    Refused,
    /// No patch made the tests pass.
    NotRepaired,
    /// The rig failed.
    RigFailed,
}

/// One run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RepairTrial {
    pub(super) project: String,
    pub(super) origin: BugOrigin,
    #[serde(default)]
    pub(super) board: String,
    pub(super) agent: BenchAgent,
    /// The fault that was injected into it.
    #[serde(default)]
    pub(super) fault: Option<RunFault>,
    /// A run of the plan tells that the fault has struck.
    #[serde(default)]
    pub(super) struck: bool,
    pub(super) worth: RepairWorth,
    /// Why it ended.
    pub(super) why: String,
    pub(super) iterations: u64,
    /// Patches that were applied, each once.
    #[serde(default)]
    pub(super) edits: usize,
    /// Patches that were built and tested, those included that were tried beside each other.
    #[serde(default)]
    pub(super) candidates: usize,
    pub(super) seconds: f64,
    /// Time behind the baseline by iterations.
    pub(super) iteration_s: f64,
    /// Time behind the baseline by candidates.
    #[serde(default)]
    pub(super) candidate_s: f64,
    /// Time in which no build, rig or agent was at work.
    pub(super) own_s: f64,
    pub(super) peak_mb: f64,
}

/// Runs the loop on a project.
pub(super) fn run(
    shop: &RepairShop,
    project: &BenchProject,
    agent: BenchAgent,
    wall_s: u64,
    fault: Option<RunFault>,
) -> Result<RepairTrial, TaskFailure> {
    let task = written(shop, project, agent, wall_s)?;
    let mut jig = shop.jig();
    jig.arg("repair").arg(task);
    if let Some(RunFault { fault, run }) = &fault {
        jig.args(["--inject", fault, "--inject-run", &run.to_string()]);
    }
    let MeasuredAnswer { said, peak_mb } = shop.answer(&mut jig)?;
    let document: Value = serde_json::from_str(&said).map_err(|error| {
        let why = format!("{} with {}: {error}: {said}", project.name, agent.name());
        TaskFailure::Because(why)
    })?;
    let name = document["run"].as_str().unwrap_or_default();
    let log = shop.answer(shop.jig().args(["repair", "log", name]))?.said;
    let rows: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let worth = worth(shop, project, &document, &rows)?;
    let iterations = document["iterations"].as_u64().unwrap_or(0);
    let edits = facts(&rows).filter(|fact| fact["fact"] == "applied").count();
    let candidates = screened(&rows) + edits;
    let ms = |key: &str| document[key].as_f64().unwrap_or(0.0);
    // A branch of an earlier run would be in the way of nothing, and of reading.
    let branch = format!("jig/repair/{name}");
    let _ = process::capture(git(&project.repository).args(["branch", "-D", &branch]));
    Ok(RepairTrial {
        project: project.name.clone(),
        origin: project.origin,
        board: project.board.clone(),
        agent,
        struck: has_struck(&shop.folder.join("runs/repairs").join(name).join("results")),
        fault,
        worth,
        why: document["why"].as_str().unwrap_or_default().to_owned(),
        iterations,
        edits,
        candidates,
        seconds: ms("duration_ms") / 1000.0,
        iteration_s: behind_baseline(&rows) / iterations.max(1) as f64,
        candidate_s: behind_baseline(&rows) / candidates.max(1) as f64,
        own_s: (ms("duration_ms") - ms("busy_ms")).max(0.0) / 1000.0,
        peak_mb,
    })
}

/// Tells whether a result of a run says that the rig was made to fail.
fn has_struck(results: &Path) -> bool {
    let notes = |path: PathBuf| {
        let result: Value = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
        result["verdict"]["notes"].as_array().cloned()
    };
    let files = fs::read_dir(results).into_iter().flatten().flatten();
    let mut notes = files.filter_map(|file| notes(file.path())).flatten();
    notes.any(|note| note.as_str().is_some_and(|note| note.starts_with("injected ")))
}

fn facts(rows: &[Value]) -> impl Iterator<Item = &Value> {
    rows.iter().filter_map(|row| row["facts"].as_array()).flatten()
}

/// Returns how many candidates were tried beside each other and failed.
fn screened(rows: &[Value]) -> usize {
    let lists = facts(rows).filter(|fact| fact["fact"] == "screened");
    lists.filter_map(|fact| fact["patches"].as_array()).map(Vec::len).sum()
}

/// Returns the seconds behind the first step.
fn behind_baseline(rows: &[Value]) -> f64 {
    let time = |row: &Value| row["time_ms"].as_f64();
    let first = rows.iter().find(|row| row["state"] == "CODE_ANALYSIS").and_then(time);
    let last = rows.last().and_then(time);
    first.zip(last).map_or(0.0, |(first, last)| (last - first) / 1000.0)
}

fn worth(
    shop: &RepairShop,
    project: &BenchProject,
    document: &Value,
    rows: &[Value],
) -> Result<RepairWorth, TaskFailure> {
    let passed = facts(rows).any(|fact| fact["fact"] == "tested" && fact["signature"].is_null());
    Ok(match (document["exit_code"].as_i64(), document["commit"].as_str()) {
        (Some(0), Some(commit)) if is_right(shop, project, commit)? => RepairWorth::Repaired,
        (Some(0), _) | (_, Some(_)) => RepairWorth::FalseSuccess,
        (Some(75), _) => RepairWorth::RigFailed,
        _ if passed => RepairWorth::Refused,
        _ => RepairWorth::NotRepaired,
    })
}

/// Tells whether a commit passes every plan of its project, those included that no run was given, with
/// the tests and the platform of the project as they were.
fn is_right(shop: &RepairShop, project: &BenchProject, commit: &str) -> Result<bool, TaskFailure> {
    if project.origin == BugOrigin::Untouchable {
        return Ok(false);
    }
    let changed = git(&project.repository)
        .args([
            "diff",
            "--name-only",
            "HEAD",
            commit,
            "--",
            "test",
            "platform",
            "machine",
            "Makefile",
            "board.mk",
            "link.ld",
        ])
        .output();
    let changed = changed.map_err(TaskFailure::io("compare", &project.repository))?;
    let Some(image) = project.built(shop, commit)?.filter(|_| changed.stdout.is_empty()) else {
        return Ok(false);
    };
    Ok(project.missed_plan(shop, &image)?.is_none())
}

/// Writes the task of a run, and the script of its agent.
fn written(
    shop: &RepairShop,
    project: &BenchProject,
    agent: BenchAgent,
    wall_s: u64,
) -> Result<PathBuf, TaskFailure> {
    let (folder, board) = (shop.folder.join("projects").join(&project.name), &project.board);
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        fs::write(&path, text).map_err(TaskFailure::io("write", &path)).map(|()| path)
    };
    let policy = write("policy.toml", "version = 1\napprove_templates = false\n".to_owned())?;
    let counter = folder.join("counter");
    let _ = fs::remove_file(&counter);
    let script = agent.script(project, &counter.display().to_string());
    let (named, about) = match script {
        None => ("templates", String::new()),
        Some(script) => {
            let path = write("agent.sh", script)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
                .map_err(TaskFailure::io("change", &path))?;
            let path = path.display();
            let about = format!(
                "[agent.script]\ncommand = [\"{path}\", \"{{bundle}}\"]\ntimeout = \"20s\"\n"
            );
            ("command:script", about)
        }
    };
    let plan = |key: &str, name: &str| match project.plan(name) {
        Some(plan) => format!("{key} = \"{}\"\n", plan.display()),
        None => String::new(),
    };
    let text = format!(
        "version = 1\ngoal = \"the unit tests pass\"\nrepo = \"{}\"\nboard = \"{board}\"\n{}{}\
         mode = \"ci\"\nagents = [\"{named}\"]\n[build]\ncommand = {:?}\nartifact = \"{IMAGE}\"\n\
         timeout = \"60s\"\n{about}[limits]\niterations = {}\nwall = \"{wall_s}s\"\n\
         [policy]\nfile = \"{}\"\n",
        project.repository.display(),
        plan("plan", "plan"),
        plan("held-out", "held-out"),
        project.build,
        agent.iterations(),
        policy.display(),
    );
    write("task.toml", text)
}
