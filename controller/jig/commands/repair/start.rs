//! Beginnings of repair runs: a new one, one that goes on, one that parts from another.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use jig_lab::{BoardFacts, Unreadable, read};
use jig_model::plan::Plan;
use jig_model::{Fault, PlaceName};
use jig_repair::driver_lock::DriverLock;
use jig_repair::journal::{Contract, Digest, Entry, Journal, Request};
use jig_repair::policy::Policy;
use jig_repair::redact::Redactor;
use jig_repair::run::Run;
use jig_repair::setup::InjectedFaults;
use jig_repair::task::{AgentRef, RepairTask};
use toml::{Table, Value};

use super::drive::{drive, ended};
use super::folders::{
    HELD_OUT, ORIGIN, Origin, PLAN, POLICY, TASK, find, make, open, root, unusable,
};
use super::host::{git_in, redactor_of, search_path};
use super::rig::RepairRig;
use crate::args::{Common, RepairStart};
use crate::commands::runtime::runtime;
use crate::failure::Failure;
use crate::render::Screen;

/// Begins a run and drives it.
pub(super) fn start(common: &Common, screen: &Screen, start: RepairStart) -> Result<u8, Failure> {
    let (origin, folder, text) = task_text(&start)?;
    let (origin, text) = with_choices(origin, text, &start)?;
    let task = RepairTask::parse(&origin, &text).map_err(|p| Failure::problems(vec![p]))?;
    let plan_text = file(&folder.join(&task.plan), "plan")?;
    check_plan(&folder.join(&task.plan), &plan_text)?;
    let held_out = task.held_out.as_ref().map(|path| folder.join(path));
    let held_text = held_out.as_ref().map(|path| {
        let text = file(path, "held-out plan")?;
        check_plan(path, &text)?;
        Ok::<_, Failure>(text)
    });
    let held_text = held_text.transpose()?;
    let policy = task.policy.as_ref().map(|path| folder.join(path));
    let policy_text = policy.as_ref().map(|path| file(path, "policy")).transpose()?;
    if let (Some(path), Some(text)) = (&policy, &policy_text) {
        Policy::parse(&path.display().to_string(), text)
            .map_err(|problems| Failure::problems(vec![problems]))?;
    }
    Policy::check_rules().map_err(|error| Failure::of(Fault::Bug, &error))?;
    Redactor::check_rules().map_err(|error| Failure::of(Fault::Bug, &error))?;
    let place: PlaceName = task.board.parse().map_err(|e| Failure::of(Fault::Profile, &e))?;
    let rig = RepairRig::open(common)?;
    let of_task = rig.board(&place)?;
    if let Some(screen_on) = &task.screen_on {
        let name: PlaceName = screen_on.parse().map_err(|e| Failure::of(Fault::Profile, &e))?;
        can_screen(&name, &rig.board(&name)?, &of_task)?;
    }
    let (repo, base, files) = repository(&folder.join(&task.repo))?;
    check_programs(&task, &files)?;
    if let Some(path) = policy.as_ref().and_then(|path| path.canonicalize().ok())
        && path.starts_with(&repo)
    {
        let words = format!(
            "the policy {} lies in the repository, which patches may change",
            path.display()
        );
        return Err(Failure::new(Fault::Usage, words).help("keep it beside the repository"));
    }
    let of_task = [start.task.clone(), Some(folder.join(&task.plan)), held_out.clone()];
    let own_files = in_repository(&repo, of_task.into_iter().flatten());
    let runs = root(common)?;
    for path in [&repo, &runs] {
        if path.to_str().is_none() {
            let words = format!("the path {} is not valid UTF-8", path.display());
            return Err(Failure::new(Fault::Usage, words).help("rename the folder"));
        }
    }
    let (name, path) = make(&runs)?;
    let lab = common.own_lab();
    let absolute =
        |path: Option<PathBuf>| path.map(|path| std::path::absolute(&path).unwrap_or(path));
    let there = common.is_elsewhere().then(|| common.rig.as_ref().map(ToString::to_string));
    let there = there.flatten();
    let origin = Origin { repo, rig: absolute(lab.rig), boards: absolute(lab.boards), there };
    let origin = serde_json::to_string_pretty(&origin).map_err(|e| Failure::of(Fault::Bug, &e))?;
    let copies = [
        (TASK, Some(&text)),
        (PLAN, Some(&plan_text)),
        (HELD_OUT, held_text.as_ref()),
        (POLICY, policy_text.as_ref()),
        (ORIGIN, Some(&origin)),
    ];
    let mut digests = BTreeMap::new();
    for (file, text) in copies {
        let path = path.join(file);
        let Some(text) = text else { continue };
        digests.insert(file.to_owned(), Digest::of(text.as_bytes()).to_string());
        fs::write(&path, text).map_err(|error| unusable(&path, &error))?;
    }
    let contract = Contract {
        goal: task.goal.clone(),
        task: Digest::of(text.as_bytes()).to_string(),
        base,
        limits: task.limits,
        copies: digests,
        own_files,
    };
    let lock = DriverLock::take(&path)?;
    Journal::begin(&path, contract, redactor_of(&task))?;
    screen.say(&format!("repair run {name}: {}", path.display()));
    let faults = start.faults.inject.iter().map(ToString::to_string).collect();
    let faults = InjectedFaults::at_run(start.inject_run, faults);
    drive(common, screen, &name, &path, lock, faults)
}

/// Drives a run on.
pub(super) fn resume(common: &Common, screen: &Screen, wanted: &str) -> Result<u8, Failure> {
    let (name, path) = find(common, wanted)?;
    // Before a row says that it goes on, this process has the right to drive it.
    let lock = DriverLock::take(&path)?;
    let (mut journal, run) = open(&path)?;
    if run.ended.is_some() {
        return ended(screen, &name, &path, &run);
    }
    journal.append(&Entry::Request(Request::Resume))?;
    drop(journal);
    drive(common, screen, &name, &path, lock, InjectedFaults::default())
}

/// Begins a run with the first rows of another one.
pub(super) fn fork(common: &Common, screen: &Screen, from: &str) -> Result<u8, Failure> {
    let (wanted, seq) = match from.split_once('@') {
        Some((run, seq)) => {
            let number = seq.parse().map_err(|_| {
                Failure::new(Fault::Usage, format!("{seq:?} is no number of a row"))
                    .help("jig repair log RUN shows the rows with their numbers")
            })?;
            (run, Some(number))
        }
        None => (from, None),
    };
    let (from_name, from) = find(common, wanted)?;
    let (journal, run) = open(&from)?;
    let seq = forked_at(&run, seq)?;
    let (name, path) = make(&root(common)?)?;
    for file in [TASK, PLAN, HELD_OUT, POLICY, ORIGIN] {
        copy(&from.join(file), &path.join(file))?;
    }
    copy_folders(&from, &path, &run)?;
    let lock = DriverLock::take(&path)?;
    let mut fork = journal.fork(seq, &path)?;
    fork.append(&Entry::Request(Request::Resume))?;
    drop(fork);
    screen.say(&format!("repair run {name}, from {from_name}: {}", path.display()));
    drive(common, screen, &name, &path, lock, InjectedFaults::default())
}

/// Returns the last row that a fork takes over. Behind the row that ends a run nothing goes on.
fn forked_at(run: &Run, wanted: Option<u64>) -> Result<u64, Failure> {
    let last = if run.ended.is_some() { run.seq - 1 } else { run.seq };
    let seq = wanted.unwrap_or(run.seq);
    if (1..=last).contains(&seq) {
        return Ok(seq);
    }
    let words = match wanted {
        Some(seq) if seq != run.seq => format!("the run has no row {seq} to part from"),
        _ => format!("row {} ends the run", run.seq),
    };
    let help = format!("part from a row from 1 to {last}, such as RUN@{last}: jig repair log RUN");
    Err(Failure::new(Fault::Usage, words).help(help))
}

fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    match fs::copy(from, to) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(unusable(from, &error)),
        _ => Ok(()),
    }
}

/// Copies what the steps of a run have kept: what they have learnt is in its journal, and names these
/// files.
fn copy_folders(from: &Path, to: &Path, run: &Run) -> Result<(), Failure> {
    let kept =
        ["patches", "submitted", "images", "results", "coverage", "files"].map(str::to_owned);
    let iterations = (1..=run.iteration).map(|number| format!("iteration-{number}"));
    kept.into_iter()
        .chain(iterations)
        .try_for_each(|name| copy_all(&from.join(&name), &to.join(&name)))
}

fn copy_all(from: &Path, to: &Path) -> Result<(), Failure> {
    let Ok(entries) = fs::read_dir(from) else { return Ok(()) };
    fs::create_dir_all(to).map_err(|error| unusable(to, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| unusable(from, &error))?;
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(|error| unusable(&path, &error))?;
        if kind.is_dir() {
            copy_all(&path, &to)?;
        } else if kind.is_file() {
            copy(&path, &to)?;
        }
    }
    Ok(())
}

/// Returns where the task comes from, the folder that its paths are relative to, and its text.
fn task_text(start: &RepairStart) -> Result<(String, PathBuf, String), Failure> {
    if let Some(path) = &start.task {
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).to_owned();
        return Ok((path.display().to_string(), folder, file(path, "task")?));
    }
    let text = |path: &Path| Value::String(path.display().to_string());
    let repo = start.repo.as_deref().unwrap_or(Path::new("."));
    let build = match (&start.build, &start.artifact) {
        (Some(build), Some(_)) => build.as_str(),
        // The image is told from what the build makes, where it is not named.
        (None, _) if is_built_by_make(repo) => "make",
        _ => return Err(unknown_build(start)),
    };
    let words = build.split_whitespace();
    let command = words.map(|word| Value::String(word.to_owned())).collect();
    let mut build = Table::from_iter([("command".to_owned(), Value::Array(command))]);
    if let Some(artifact) = &start.artifact {
        build.insert("artifact".to_owned(), Value::String(artifact.clone()));
    }
    let goal = start.goal.clone().unwrap_or_else(|| "the tests of the plan pass".to_owned());
    let board = start.board.as_ref().map(ToString::to_string).unwrap_or_default();
    let mut task = Table::from_iter([
        ("version".to_owned(), Value::Integer(1)),
        ("goal".to_owned(), Value::String(goal)),
        ("repo".to_owned(), text(start.repo.as_deref().unwrap_or(Path::new(".")))),
        ("plan".to_owned(), text(start.plan.as_deref().unwrap_or(Path::new("plan.toml")))),
        ("board".to_owned(), Value::String(board)),
        ("agents".to_owned(), Value::Array(vec![Value::String("templates".to_owned())])),
        ("build".to_owned(), Value::Table(build)),
    ]);
    if let Some(path) = &start.held_out {
        task.insert("held-out".to_owned(), text(path));
    }
    if let Some(path) = &start.policy {
        let policy = Table::from_iter([("file".to_owned(), text(path))]);
        task.insert("policy".to_owned(), Value::Table(policy));
    }
    Ok(("the arguments".to_owned(), PathBuf::from("."), task.to_string()))
}

/// Refuses a place on which candidates cannot be tried instead of another one.
fn can_screen(name: &PlaceName, screen: &BoardFacts, of_task: &BoardFacts) -> Result<(), Failure> {
    let why = if !screen.emulated {
        "is not emulated"
    } else if screen.board != of_task.board {
        "has another board"
    } else {
        return Ok(());
    };
    let words = format!("`screen-on`: the place {name} {why}");
    Err(Failure::new(Fault::Usage, words)
        .help(format!("name an emulated place of the board {}", of_task.board)))
}

/// How the files of a repository tell what builds it.
const BUILDS: &[(&str, &str)] = &[
    ("Makefile", "make"),
    ("makefile", "make"),
    ("GNUmakefile", "make"),
    ("west.yml", "west build"),
    ("CMakeLists.txt", "cmake --build build"),
    ("build.ninja", "ninja"),
    ("meson.build", "meson compile -C build"),
    ("Cargo.toml", "cargo build --release"),
];

/// Tells whether one file at the root of a repository says how it is built, and that is a file of `make`.
fn is_built_by_make(repo: &Path) -> bool {
    let known = BUILDS.iter().filter(|(file, _)| repo.join(file).is_file());
    matches!(known.collect::<Vec<_>>().as_slice(), [(_, "make")])
}

/// Says which command line has what is missing: where more than one file says how a firmware is built, or
/// none, what builds it and where its image is then is not guessed, since a repair is judged by that image.
fn unknown_build(start: &RepairStart) -> Failure {
    let shown = |path: &Path| path.display().to_string();
    let repo = start.repo.as_deref().unwrap_or(Path::new("."));
    let known = BUILDS.iter().find(|(file, _)| repo.join(file).is_file()).map(|(_, build)| *build);
    let build = start.build.as_deref().or(known).unwrap_or("COMMAND");
    let mut line = format!("jig repair --repo {}", shown(repo));
    for (option, path) in
        [("--plan", &start.plan), ("--held-out", &start.held_out), ("--policy", &start.policy)]
    {
        line.extend(path.iter().map(|path| format!(" {option} {}", shown(path))));
    }
    line.extend(start.board.iter().map(|board| format!(" -b {board}")));
    line.extend(start.goal.iter().map(|goal| format!(" --goal {goal:?}")));
    let artifact = start.artifact.as_deref().unwrap_or("PATH_OF_IMAGE");
    line += &format!(" --build {build:?} --artifact {artifact}");
    Failure::new(Fault::Usage, "what builds the firmware, and the image that it makes, is not said")
        .help(line)
}

/// Puts the choices of the command line in place of the task's.
fn with_choices(
    origin: String,
    text: String,
    start: &RepairStart,
) -> Result<(String, String), Failure> {
    if start.mode.is_none() && start.agents.is_empty() {
        return Ok((origin, text));
    }
    // Mistakes are shown in the text that the user wrote.
    RepairTask::parse(&origin, &text).map_err(|problems| Failure::problems(vec![problems]))?;
    let mut task: Table = toml::from_str(&text).map_err(|e| Failure::of(Fault::Profile, &e))?;
    if let Some(mode) = &start.mode {
        task.insert("mode".to_owned(), Value::String(mode.clone()));
    }
    if !start.agents.is_empty() {
        let agents: Vec<_> = start.agents.iter().cloned().map(Value::String).collect();
        if let Some(Value::Table(settings)) = task.get_mut("agent") {
            let used = |name: &str| {
                start
                    .agents
                    .iter()
                    .any(|agent| agent.split_once(':').is_some_and(|(_, n)| n == name))
            };
            settings.retain(|name, _| used(name));
        }
        task.insert("agents".to_owned(), Value::Array(agents));
    }
    Ok((format!("{origin} as changed by the arguments"), task.to_string()))
}

/// Refuses programs of agents that are not there: a run would only learn it behind its baseline. One
/// with a relative path is taken from the commit, since an agent works in a work tree of it.
fn check_programs(task: &RepairTask, files: &[String]) -> Result<(), Failure> {
    for agent in &task.agents {
        let AgentRef::Command(command) = agent else { continue };
        let Some(program) = command.command.first() else { continue };
        let path = Path::new(program);
        let (there, help) = if path.is_absolute() {
            (path.is_file(), "write the path of a program")
        } else if program.contains('/') {
            let inside = program.strip_prefix("./").unwrap_or(program);
            let help = "commit it to the repository, or write its absolute path: an agent works in \
                        a work tree of the commit";
            (files.iter().any(|file| file == inside), help)
        } else {
            let found =
                std::env::split_paths(&search_path()).any(|folder| folder.join(program).is_file());
            (found, "install it, or write its absolute path")
        };
        if !there {
            let words = format!("the program of agent {} is not there: {program}", command.name);
            return Err(Failure::new(Fault::Usage, words).help(help));
        }
    }
    Ok(())
}

fn file(path: &Path, what: &str) -> Result<String, Failure> {
    read(path).map(|source| source.text).map_err(|why| match why {
        Unreadable::Io(error) => {
            Failure::new(Fault::Usage, format!("cannot read {what} {}: {error}", path.display()))
        }
        Unreadable::NoText(problems) => Failure::problems(vec![*problems]),
    })
}

fn check_plan(path: &Path, text: &str) -> Result<(), Failure> {
    let plan = Plan::parse(&path.display().to_string(), text);
    plan.map(drop).map_err(|problems| Failure::problems(vec![problems]))
}

/// Lists files that lie in a repository, as paths below it; a link in it counts like what it leads to.
fn in_repository(repo: &Path, files: impl Iterator<Item = PathBuf>) -> Vec<String> {
    let mut found = Vec::new();
    for file in files {
        let folder =
            std::path::absolute(&file).ok().and_then(|path| path.parent()?.canonicalize().ok());
        let itself = folder.zip(file.file_name()).map(|(folder, name)| folder.join(name));
        for path in [itself, file.canonicalize().ok()].into_iter().flatten() {
            let below = path.strip_prefix(repo).ok().and_then(|path| path.to_str());
            found.extend(below.map(str::to_owned));
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Returns the top folder of the repository, the commit that is repaired, and its files.
fn repository(path: &Path) -> Result<(PathBuf, String, Vec<String>), Failure> {
    let usage = |words: String, help: &str| Failure::new(Fault::Usage, words).help(help);
    let scratch = tempfile::tempdir().map_err(|error| Failure::of(Fault::Lab, &error))?;
    let git = git_in(path, scratch.path());
    runtime()?.block_on(async {
        let top = git.top().await.map_err(|error| {
            let words =
                format!("{} is no git work tree: {}", path.display(), jig_model::chain(&error));
            usage(words, "give the work tree of the firmware as `repo`")
        })?;
        let git = git.at(&top);
        let head = git.head().await.map_err(|error| {
            usage(jig_model::chain(&error), "commit the firmware: git add --all && git commit")
        })?;
        let changed = git.changed_files().await.map_err(|error| Failure::of(Fault::Lab, &error))?;
        if let Some(first) = changed.first() {
            let words = format!("the repository has changes that no commit has: {first}");
            return Err(usage(words, "commit or stash them: what is repaired is a commit"));
        }
        let files = git.files(&head).await.map_err(|error| Failure::of(Fault::Lab, &error))?;
        Ok((top, head, files))
    })
}
