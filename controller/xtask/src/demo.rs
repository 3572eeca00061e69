//! `cargo xtask demo`: sets up, builds, and shows Jig judging good firmware, bad firmware and a
//! broken rig on emulated boards.
//!
//! The scenes are data, in `demo.toml`; each names the exit code a user must see. The demonstration
//! fails when a scene ends any other way.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde::Deserialize;

use crate::failure::Failure;
use crate::{fixtures, process, setup};

/// Built in: the scenes belong to the program that plays them.
const SCENES: &str = include_str!("../demo.toml");

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
    /// The command line after `jig`.
    args: Vec<String>,
    /// Environment variables that make the scene.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// The exit code that makes the scene a success.
    exit: i32,
}

fn scenes() -> Result<Vec<Scene>, Failure> {
    let demo: Demo = toml::from_str(SCENES).map_err(|source| Failure::Recipe {
        path: "controller/xtask/demo.toml".into(),
        source: Box::new(source),
    })?;
    Ok(demo.scene)
}

/// Runs the demonstration.
pub(crate) fn run() -> Result<(), Failure> {
    let scenes = scenes()?;
    setup::run()?;
    println!("demo: building");
    process::run(&mut process::cargo(&["build", "--workspace"]))?;

    fixtures::run(&fixtures::Choice::default())?;

    let repository = process::repository();
    let jig = binary(&repository);
    let mut surprises = Vec::new();
    let start = Instant::now();
    for (number, scene) in scenes.iter().enumerate() {
        println!(
            "\n[{}/{}] {}\n$ jig {}",
            number + 1,
            scenes.len(),
            scene.title,
            scene.args.join(" ")
        );
        let mut command = Command::new(&jig);
        command.args(&scene.args).envs(&scene.env);
        command.current_dir(&repository).stdin(Stdio::null());
        let status = command.status().map_err(process::start_failure(&command))?;
        match status.code() {
            Some(code) if code == scene.exit => println!("=> exit code {code}, as it should"),
            _ => {
                println!("=> {status}, but {} was due", scene.exit);
                surprises.push(scene.title.as_str());
            }
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("\ndemo: {} scenes in {seconds:.1} s", scenes.len());
    if surprises.is_empty() {
        println!("demo: next, try `jig boards`, or `jig test` with a plan of your own");
        Ok(())
    } else {
        Err(Failure::Because(format!("not as it should be: {}", surprises.join("; "))))
    }
}

fn binary(repository: &Path) -> PathBuf {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    repository.join(target).join("debug/jig")
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
}
