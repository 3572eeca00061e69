//! `cargo xtask demo`: sets up, builds, and shows Jig judging good firmware, bad firmware and a
//! broken rig on emulated boards.
//!
//! The scenes are data; each names the exit code a user must see. The demonstration fails when a
//! scene ends any other way, so it cannot rot into a film.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::failure::Failure;
use crate::{fixtures, process, setup};

/// One command shown to the newcomer.
struct Scene {
    title: &'static str,
    /// The command line after `jig`.
    args: &'static [&'static str],
    /// Environment variables that make the scene.
    env: &'static [(&'static str, &'static str)],
    /// The exit code that makes the scene a success.
    exit: i32,
}

const SCENES: &[Scene] = &[
    Scene { title: "the boards this rig knows", args: &["boards"], env: &[], exit: 0 },
    Scene {
        title: "a firmware that boots and passes its tests",
        args: &["run", "-b", "microbit", "target/fixtures/microbit/unity-pass.elf"],
        env: &[],
        exit: 0,
    },
    Scene {
        title: "a firmware that crashes: the target is to blame",
        args: &["run", "-b", "mps2-an385", "target/fixtures/mps2-an385/fault-bus.elf"],
        env: &[],
        exit: 1,
    },
    Scene {
        title: "an emulator that cannot be started: the lab is to blame, not the firmware",
        args: &["run", "-b", "microbit", "target/fixtures/microbit/unity-pass.elf"],
        // Nothing on the path is found, so the lab fails before any firmware runs.
        env: &[("PATH", "/nonexistent")],
        exit: 75,
    },
];

/// Runs the demonstration.
pub(crate) fn run() -> Result<(), Failure> {
    setup::run()?;
    println!("demo: building");
    process::run(&mut process::cargo(&["build", "--workspace"]))?;

    fixtures::run(&fixtures::Choice::default())?;

    let repository = process::repository();
    let jig = binary(&repository);
    let mut surprises = Vec::new();
    let start = Instant::now();
    for (number, scene) in SCENES.iter().enumerate() {
        println!(
            "\n[{}/{}] {}\n$ jig {}",
            number + 1,
            SCENES.len(),
            scene.title,
            scene.args.join(" ")
        );
        let mut command = Command::new(&jig);
        command.args(scene.args).envs(scene.env.iter().copied());
        command.current_dir(&repository).stdin(Stdio::null());
        let status = command.status().map_err(process::start_failure(&command))?;
        match status.code() {
            Some(code) if code == scene.exit => println!("=> exit code {code}, as it should"),
            _ => {
                println!("=> {status}, but {} was due", scene.exit);
                surprises.push(scene.title);
            }
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("\ndemo: {} scenes in {seconds:.1} s", SCENES.len());
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
