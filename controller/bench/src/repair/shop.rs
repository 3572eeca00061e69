//! The folder of the bench, the program that is measured, and what it is asked.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::library::made;
use crate::program::memory;
use xtask::failure::TaskFailure;
use xtask::process;
use xtask::project::git;

/// The image, below the folder of a project.
pub(super) const IMAGE: &str = "out/app.elf";

/// How often a process is asked for its memory; its peak is kept by the kernel.
const LOOK: Duration = Duration::from_millis(2);

/// Where projects, runs and answers lie.
pub(super) struct RepairShop {
    jig: PathBuf,
    pub(super) folder: PathBuf,
}

/// What the program said, and what it cost.
pub(super) struct MeasuredAnswer {
    pub(super) said: String,
    /// Its own peak memory in megabytes, without its children.
    pub(super) peak_mb: f64,
}

impl RepairShop {
    pub(super) fn new(jig: PathBuf, folder: PathBuf) -> Self {
        Self { jig, folder }
    }

    /// Prepares a call of the program, with nothing of the user's.
    pub(super) fn jig(&self) -> Command {
        let mut command = Command::new(&self.jig);
        command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.env("HOME", &self.folder).env("TMPDIR", &self.folder).current_dir(&self.folder);
        for name in ["CACHE", "CONFIG", "DATA", "STATE"] {
            command.env(format!("XDG_{name}_HOME"), self.folder.join(name));
        }
        command.arg("--runs").arg(self.folder.join("runs")).args(["--json", "--quiet"]);
        command.stdin(Stdio::null());
        command
    }

    /// Runs the program to its end, whatever its exit code.
    pub(super) fn answer(&self, command: &mut Command) -> Result<MeasuredAnswer, TaskFailure> {
        let path = self.folder.join("answer");
        let out = fs::File::create(&path).map_err(TaskFailure::io("create", &path))?;
        let started = command.stdout(out).stderr(Stdio::null()).spawn();
        let mut child = started.map_err(process::start_failure(command))?;
        let mut peak_mb = 0.0_f64;
        loop {
            peak_mb = peak_mb.max(memory(child.id(), "VmHWM:").unwrap_or(0.0));
            if child.try_wait().map_err(process::start_failure(command))?.is_some() {
                break;
            }
            std::thread::sleep(LOOK);
        }
        let said = fs::read_to_string(&path).map_err(TaskFailure::io("read", &path))?;
        Ok(MeasuredAnswer { said, peak_mb })
    }

    /// Builds a commit in a clone of its own; returns the image, or none where it does not build.
    pub(super) fn built(
        &self,
        repository: &Path,
        build: &[String],
        commit: &str,
    ) -> Result<Option<PathBuf>, TaskFailure> {
        let clone = self.folder.join("clone");
        if clone.exists() {
            fs::remove_dir_all(&clone).map_err(TaskFailure::io("remove", &clone))?;
        }
        made(&clone)?;
        let mut copy = git(&self.folder);
        copy.args(["clone", "--quiet", "--shared", "--no-checkout"]);
        process::run(copy.arg(repository).arg(&clone))?;
        process::run(git(&clone).args(["checkout", "--quiet", "--detach", commit]))?;
        let (program, args) = build.split_first().map_or(("make", &[][..]), |(p, a)| (p, a));
        let mut make = Command::new(program);
        make.args(args).current_dir(&clone).stdin(Stdio::null());
        make.stdout(Stdio::null()).stderr(Stdio::null());
        let status = make.status().map_err(process::start_failure(&make))?;
        Ok(Some(clone.join(IMAGE)).filter(|image| status.success() && image.is_file()))
    }

    /// Tells whether a fault can strike a board.
    pub(super) fn accepts(
        &self,
        fault: &str,
        board: &str,
        plan: &Path,
        image: &Path,
    ) -> Result<bool, TaskFailure> {
        let mut jig = self.jig();
        jig.args(["test", "-b", board, "--inject", fault]).arg(plan).arg("--image").arg(image);
        let answer = self.answer(&mut jig)?;
        let said: Value = serde_json::from_str(&answer.said).unwrap_or_default();
        Ok(said["verdict"]["kind"].is_string())
    }

    /// Runs a plan on a board; returns the kind of the verdict.
    pub(super) fn verdict(
        &self,
        board: &str,
        plan: &Path,
        image: &Path,
    ) -> Result<String, TaskFailure> {
        let mut jig = self.jig();
        jig.args(["test", "-b", board]).arg(plan).arg("--image").arg(image);
        let answer = self.answer(&mut jig)?;
        let said: Value = serde_json::from_str(&answer.said).unwrap_or_default();
        Ok(said["verdict"]["kind"].as_str().unwrap_or("nothing").to_owned())
    }
}
