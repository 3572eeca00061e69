//! `cargo xtask demo`: installs and builds what the demonstration takes, and shows Jig judging good
//! firmware, bad firmware and a broken rig on emulated boards.
//!
//! The scenes are data, in `demo.toml`; each names the exit code a user must see. The demonstration
//! fails when a scene ends any other way. Refuses to install, or to build, what no scene shows.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde::Deserialize;
use xtask::failure::TaskFailure;
use xtask::{fixtures, process, project};

use crate::apt::Conflicts;
use crate::packages::Task;
use crate::setup;

/// Built in: the scenes belong to the program that plays them.
const SCENES: &str = include_str!("../demo.toml");

/// The task of a repair without a model.
const TASK: &str = include_str!("../demo-task.toml");

/// Patches of templates usually wait for an approval.
const POLICY: &str = "version = 1\napprove_templates = false\n";

/// What is shown.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Demo {
    /// In order.
    scene: Vec<Scene>,
}

/// One command shown to the newcomer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scene {
    title: String,
    /// The command line after `jig`, but for the image.
    args: Vec<String>,
    /// The fixture that runs, as `BOARD/FIXTURE`; the last argument is its file.
    image: Option<String>,
    /// The project that is repaired; the last argument is its task.
    project: Option<String>,
    /// Environment variables that make the scene.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// The exit code that makes the scene a success.
    exit: i32,
}

impl Scene {
    /// Returns the command line after `jig`, with paths below `repository` as people write them.
    fn line(&self, fixtures: &Path, projects: &Path, repository: &Path) -> Vec<String> {
        let image = self.image.iter().map(|image| fixtures.join(format!("{image}.elf")));
        let task = self.project.iter().map(|name| projects.join(name).join("task.toml"));
        let written =
            |file: PathBuf| file.strip_prefix(repository).unwrap_or(&file).display().to_string();
        self.args.iter().cloned().chain(image.chain(task).map(written)).collect()
    }
}

fn scenes() -> Result<Vec<Scene>, TaskFailure> {
    let demo: Demo = toml::from_str(SCENES).map_err(|source| TaskFailure::Recipe {
        path: "controller/xtask/demo.toml".into(),
        source: Box::new(source),
    })?;
    Ok(demo.scene)
}

/// Runs the demonstration.
pub(crate) fn run(conflicts: Conflicts) -> Result<(), TaskFailure> {
    let start = Instant::now();
    let scenes = scenes()?;
    println!("demo: four steps: packages, jig, firmware, {} scenes", scenes.len());
    println!("demo: [1/4] packages");
    setup::run(Task::Demo, conflicts)?;
    println!("demo: [2/4] building jig, without optimisation; the first time takes some minutes");
    process::build(&["build", "--bin", "jig"])?;
    println!("demo: [3/4] building the firmware that is shown");
    let mut images: Vec<&str> = scenes.iter().filter_map(|scene| scene.image.as_deref()).collect();
    images.sort_unstable();
    images.dedup();
    let fixtures = fixtures::build_images(&images)?;
    let projects = process::target_dir().join("demo");
    scenes.iter().flat_map(|scene| &scene.project).try_for_each(|one| prepare(one, &projects))?;
    println!("demo: [4/4] scenes");
    let jig = process::target_dir().join("debug/jig");
    let mut surprises = Vec::new();
    for (number, scene) in (1..).zip(&scenes) {
        println!("\n[{number}/{}] {}", scenes.len(), scene.title);
        if !play(scene, &jig, &fixtures, &projects)? {
            surprises.push(scene.title.as_str());
        }
        if number == 1 {
            println!("demo: first verdict {:.0} s after the start", start.elapsed().as_secs_f64());
        }
    }
    if surprises.is_empty() {
        println!("\ndemo: next, try `jig boards`, or `jig test` with a plan of your own");
        Ok(())
    } else {
        Err(TaskFailure::Because(format!("not as it should be: {}", surprises.join("; "))))
    }
}

/// Makes the repository of a project with a bug, and the task of its repair beside it.
fn prepare(name: &str, projects: &Path) -> Result<(), TaskFailure> {
    let folder = projects.join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(TaskFailure::io("remove", &folder))?;
    }
    project::made(name, &folder.join("firmware"))?;
    let plans = project::fixtures("repair").join(name);
    let plan = |file: &str| plans.join(file).display().to_string();
    let task = TASK
        .replace("PLAN", &format!("{:?}", plan("plan.toml")))
        .replace("HELD", &format!("{:?}", plan("held-out.toml")));
    for (file, text) in [("task.toml", task.as_str()), ("policy.toml", POLICY)] {
        let path = folder.join(file);
        fs::write(&path, text).map_err(TaskFailure::io("write", &path))?;
    }
    Ok(())
}

/// Runs the command of a scene, and tells whether it ended as it should.
fn play(scene: &Scene, jig: &Path, fixtures: &Path, projects: &Path) -> Result<bool, TaskFailure> {
    let repository = process::repository();
    let line = scene.line(fixtures, projects, &repository);
    let env: String = scene.env.iter().map(|(name, value)| format!("{name}={value} ")).collect();
    println!("$ {env}jig {}", line.join(" "));
    let mut command = Command::new(jig);
    command.args(&line).envs(&scene.env).current_dir(&repository).stdin(Stdio::null());
    let status = command.status().map_err(process::start_failure(&command))?;
    let expected = status.code() == Some(scene.exit);
    match expected {
        true => println!("=> exit code {}, as it should be", scene.exit),
        false => println!("=> {status}, but exit code {} was due", scene.exit),
    }
    Ok(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scenes_show_good_bad_and_broken() {
        let exits: Vec<i32> = scenes().unwrap().iter().map(|scene| scene.exit).collect();
        for exit in [0, 1, 75] {
            assert!(exits.contains(&exit), "no scene ends with {exit}");
        }
    }

    #[test]
    fn the_first_scene_is_a_pass_of_a_firmware() {
        let first = scenes().unwrap().remove(0);
        assert!(first.image.is_some() && first.exit == 0, "{first:?}");
    }

    #[test]
    fn images_are_shown_relative_to_the_repository() {
        let scene: Scene =
            toml::from_str("title = \"\"\nargs = [\"run\"]\nimage = \"b/f\"\nexit = 0\n").unwrap();
        let line = |fixtures: &str| {
            scene.line(Path::new(fixtures), Path::new("/r/target/demo"), Path::new("/r"))
        };
        assert_eq!(line("/r/target/fixtures"), ["run", "target/fixtures/b/f.elf"]);
        assert_eq!(line("/elsewhere"), ["run", "/elsewhere/b/f.elf"]);
        let repair = Scene { image: None, project: Some("p".to_owned()), ..scene };
        let line = repair.line(Path::new("/f"), Path::new("/r/target/demo"), Path::new("/r"));
        assert_eq!(line, ["run", "target/demo/p/task.toml"]);
    }
}
