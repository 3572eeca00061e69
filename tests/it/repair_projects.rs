//! Firmware projects with one bug each (`firmware-fixtures/repair`): how one becomes a repository, and
//! that each fails and is repaired as its `about.toml` says.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use jig_repair::templates::{Template, edits_of};
use serde::Deserialize;
use serde_json::Value;

use crate::manifest::repository;
use crate::workshop::{Ran, Slot, Workshop, name_of, ran, tied};

/// The board of all projects.
pub(crate) const BOARD: &str = "mps2-an385";

/// The image, below the folder of a project.
pub(crate) const IMAGE: &str = "out/app.elf";

/// Projects under way at once. Each emulates one board at a time; builds use the processor meanwhile.
const WORKERS: usize = 3;

/// Attempts of what must fail or pass each time, and of what must do both: of that, half of the
/// boots fail, and one of 30,000 series shows a single outcome.
const SAME: u32 = 2;
const BOTH: u32 = 16;

/// Files of a project that belong to no repository.
const BESIDE: &[&str] = &["about.toml", "plan.toml", "held-out.toml", "fix.diff", "wrong.diff"];

/// A project.
#[derive(Debug)]
pub(crate) struct Project {
    pub(crate) name: String,
    pub(crate) about: About,
}

/// What `about.toml` says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct About {
    version: u32,
    name: String,
    pub(crate) kind: Kind,
    bug: String,
    description: String,
    /// What `wrong.diff` does.
    wrong: Option<String>,
    /// The template of the offline agent that makes `fix.diff`.
    template: Option<Template>,
    pub(crate) expect: Expected,
}

/// What is to be done with a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// Its bug can be repaired.
    Repair,
    /// Its bug lies in a file that no patch may change.
    Forbidden,
    /// It fails by chance.
    Flaky,
    /// It has no bug.
    AlreadyGreen,
}

/// The verdict without a patch.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expected {
    verdict: String,
    pub(crate) cause: String,
    /// Names of the tests that fail, where it is certain.
    failed: Option<Vec<String>>,
}

fn folder() -> PathBuf {
    repository().join("firmware-fixtures/repair")
}

/// Lists all projects by their names.
pub(crate) fn projects() -> Vec<Project> {
    let all = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let mut names: Vec<_> =
        all.filter(|path| path.is_dir()).map(|path| name_of(&path).to_owned()).collect();
    names.retain(|name| name != "support");
    names.sort();
    names.iter().map(|name| project(name)).collect()
}

/// Reads a project.
pub(crate) fn project(name: &str) -> Project {
    let path = folder().join(name).join("about.toml");
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let about: About = toml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert_eq!((about.version, about.name.as_str()), (1, name), "{}", path.display());
    assert!(!about.bug.is_empty() && about.description.ends_with('.'), "{}", path.display());
    Project { name: name.to_owned(), about }
}

impl Project {
    /// Returns one of the files that lie beside the repository.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        assert!(BESIDE.contains(&name), "{name}");
        folder().join(&self.name).join(name)
    }

    fn has_patches(&self) -> bool {
        matches!(self.about.kind, Kind::Repair | Kind::Forbidden)
    }

    /// Makes a repository of the project, with one commit.
    pub(crate) fn assemble(&self, workshop: &Workshop, name: &str) -> PathBuf {
        let path = workshop.path(name);
        copy(&folder().join("support"), &path);
        copy(&folder().join(&self.name), &path);
        for name in BESIDE {
            let _ = fs::remove_file(path.join(name));
        }
        git(&path, &["init", "--quiet", "--initial-branch=main"]);
        git(&path, &["add", "--all"]);
        git(&path, &["commit", "--quiet", "--message=firmware: first version"]);
        path
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), &to).unwrap();
        }
    }
}

/// Prepares a program that finds others, and nothing else of its user.
fn alone(program: &str, folder: &Path) -> Command {
    let mut command = tied(program);
    command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    command.current_dir(folder).env("HOME", folder).env("LC_ALL", "C");
    command
}

/// Runs git in a repository and returns what it prints.
#[track_caller]
pub(crate) fn git(repository: &Path, args: &[&str]) -> String {
    let mut git = alone("git", repository);
    git.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    for role in ["AUTHOR", "COMMITTER"] {
        git.env(format!("GIT_{role}_NAME"), "Jig")
            .env(format!("GIT_{role}_EMAIL"), "jig@localhost");
        git.env(format!("GIT_{role}_DATE"), "2026-01-01T00:00:00Z");
    }
    let ran = ran(git.args(args)).unwrap();
    assert_eq!(ran.code(), 0, "{ran}");
    ran.out()
}

/// Builds a repository; returns the image.
fn build(repository: &Path) -> PathBuf {
    let ran = ran(alone("make", repository).arg("--silent")).unwrap();
    assert_eq!(ran.code(), 0, "{ran}");
    assert_eq!(ran.err(), "", "a compiler that warns finds the bug");
    repository.join(IMAGE)
}

/// Runs a plan; returns the verdict document.
fn run(workshop: &Workshop, plan: &Path, image: &Path, repeat: u32) -> Result<Value, String> {
    let mut jig = workshop.jig(["--json", "test", "-b", BOARD, "--repeat", &repeat.to_string()]);
    jig.arg(plan).arg("--image").arg(image);
    let slot = Slot::take();
    let ran: Ran = ran(&mut jig)?;
    drop(slot);
    ran.json()
}

/// Returns a text of the verdict in a document.
fn word<'a>(document: &'a Value, key: &str) -> &'a str {
    document["verdict"][key].as_str().unwrap_or_default()
}

/// Runs what a project promises: without a patch, with the right one, with the wrong one.
fn check(project: &Project) -> Result<(), String> {
    let workshop = Workshop::new();
    let tree = project.assemble(&workshop, "firmware");
    let image = build(&tree);
    let plan = project.file("plan.toml");
    let expect = &project.about.expect;
    let repeat = if project.about.kind == Kind::Flaky { BOTH } else { SAME };
    let base = run(&workshop, &plan, &image, repeat)?;
    let cases = base["verdict"]["tests"]["cases"].as_array();
    let failed: Vec<_> = cases
        .into_iter()
        .flatten()
        .filter(|case| case["status"] == "fail")
        .map(|case| case["name"].as_str().unwrap_or_default())
        .collect();
    if (word(&base, "kind"), word(&base, "cause")) != (&expect.verdict, &expect.cause)
        || expect.failed.as_ref().is_some_and(|names| *names != failed)
    {
        return Err(format!("without a patch: {expect:?} is expected: {base:#}"));
    }
    if project.about.kind == Kind::AlreadyGreen {
        let held = run(&workshop, &project.file("held-out.toml"), &image, 1)?;
        return passes(&held, "the held-out plan without a patch");
    }
    if !project.has_patches() {
        return Ok(());
    }
    for (patch, right) in [("fix.diff", true), ("wrong.diff", false)] {
        git(&tree, &["checkout", "--quiet", "."]);
        git(&tree, &["apply", project.file(patch).to_str().unwrap()]);
        let image = build(&tree);
        passes(&run(&workshop, &plan, &image, 1)?, &format!("the plan with {patch}"))?;
        let held = run(&workshop, &project.file("held-out.toml"), &image, 1)?;
        if right {
            passes(&held, "the held-out plan with fix.diff")?;
        } else if word(&held, "kind") != "fail" {
            return Err(format!("the held-out plan with wrong.diff does not fail: {held:#}"));
        }
    }
    Ok(())
}

fn passes(document: &Value, what: &str) -> Result<(), String> {
    match word(document, "kind") {
        "pass" => Ok(()),
        _ => Err(format!("{what} does not pass: {document:#}")),
    }
}

#[test]
fn each_project_fails_and_is_repaired_as_it_says() {
    let mut projects = projects();
    // The slow ones first, so that they do not trail behind all others.
    projects
        .sort_by_key(|one| !matches!(one.about.expect.cause.as_str(), "hang" | "watchdog_reset"));
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(project) = projects.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(why) = check(project) {
                        failures.lock().unwrap().push(format!("{}: {why}", project.name));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn projects_are_of_all_kinds_and_complete() {
    let projects = projects();
    let count = |kind| projects.iter().filter(|one| one.about.kind == kind).count();
    let counts = [Kind::Repair, Kind::Forbidden, Kind::Flaky, Kind::AlreadyGreen].map(count);
    assert!(counts[0] >= 12 && counts[1..] == [2, 1, 1], "{counts:?}");
    let mut bugs: Vec<_> = projects.iter().map(|one| one.about.bug.as_str()).collect();
    bugs.sort_unstable();
    assert!(bugs.windows(2).all(|two| two[0] != two[1]), "{bugs:?}");
    for project in &projects {
        let patches = ["fix.diff", "wrong.diff"].map(|name| project.file(name).is_file());
        assert_eq!(patches, [project.has_patches(); 2], "{}", project.name);
        assert_eq!(project.about.wrong.is_some(), project.has_patches(), "{}", project.name);
    }
}

#[test]
fn the_template_of_a_project_makes_its_repair() {
    for project in projects().iter().filter(|one| one.about.kind == Kind::Repair) {
        let diff = fs::read_to_string(project.file("fix.diff")).unwrap();
        let found = single_line(&diff).and_then(|(file, removed, added)| {
            let source = fs::read_to_string(folder().join(&project.name).join(file)).unwrap();
            let at = source.lines().position(|line| line == removed).unwrap();
            let edits = edits_of(&source, u32::try_from(at).unwrap() + 1);
            edits.into_iter().find(|edit| edit.lines == added).map(|edit| edit.template)
        });
        assert_eq!(found, project.about.template, "{}", project.name);
    }
}

/// Returns the file, the removed line and the added lines of a patch that changes one line.
fn single_line(diff: &str) -> Option<(&str, &str, Vec<&str>)> {
    let file = diff.lines().find_map(|line| line.strip_prefix("+++ b/")).unwrap();
    let lines = |mark: &str, head: &str| -> Vec<&str> {
        let marked = diff.lines().filter(|line| !line.starts_with(head));
        marked.filter_map(|line| line.strip_prefix(mark)).collect()
    };
    match lines("-", "---")[..] {
        [removed] => Some((file, removed, lines("+", "+++"))),
        _ => None,
    }
}

#[test]
fn the_folder_of_a_project_does_not_change_its_image() {
    let workshop = Workshop::new();
    let project = project("ring-wrap");
    let images = ["a", "a-folder-with-a-longer-name"].map(|name| {
        let image = build(&project.assemble(&workshop, name));
        fs::read(image).unwrap()
    });
    assert!(images[0] == images[1], "the images differ");
    let own = workshop.path("").into_os_string().into_encoded_bytes();
    let found = images[0].windows(own.len()).any(|part| part == own);
    assert!(!found, "the image holds the folder that it was built in");
}
