//! A lab of its own: folders, a rig file, and the program that is tried.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::setting::{RecoveryTarget, emptied};
use xtask::failure::TaskFailure;

/// Where the trials of one board are made.
pub(super) struct TrialLab {
    jig: PathBuf,
    /// Scratch: each process of a trial names it in its arguments or its folder.
    pub(super) folder: PathBuf,
    rig: PathBuf,
    pub(super) fixtures: PathBuf,
    /// The only place of its rig.
    pub(super) place: String,
    pub(super) board: String,
    /// The firmware that is tested.
    pub(super) image: PathBuf,
    /// One that may have stayed from an earlier test.
    pub(super) old: PathBuf,
}

impl TrialLab {
    /// Makes the folders and the rig file.
    pub(super) fn prepare(
        jig: &Path,
        target: &Path,
        recovered: &RecoveryTarget,
    ) -> Result<Self, TaskFailure> {
        let RecoveryTarget { place, board, fixture, old, by_probe } = recovered;
        let folder = emptied(target, &format!("bench/recovery/{place}"))?;
        let fixtures = target.join("fixtures");
        let rig = folder.join("rig.toml");
        let deploy = if *by_probe { "deploy = \"probe\"\n" } else { "" };
        let text = format!(
            "version = 1\n\n[[place]]\nname = \"{place}\"\nboard = \"{board}\"\n\n\
             [place.emulator]\n{deploy}"
        );
        fs::write(&rig, text).map_err(TaskFailure::io("write", &rig))?;
        let image = |name: &str| fixtures.join(format!("{board}/{name}.elf"));
        Ok(Self {
            jig: jig.to_owned(),
            image: image(fixture),
            old: image(old),
            place: place.clone(),
            board: board.clone(),
            folder,
            rig,
            fixtures,
        })
    }

    /// Prepares a call of the program, with nothing of the user's.
    pub(super) fn jig(&self) -> Command {
        let mut command = Command::new(&self.jig);
        command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.env("HOME", &self.folder).env("TMPDIR", &self.folder);
        for name in ["CACHE", "CONFIG", "DATA", "STATE"] {
            command.env(format!("XDG_{name}_HOME"), self.folder.join(name));
        }
        command.arg("--rig").arg(&self.rig).arg("--runs").arg(self.runs());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Returns the folder of the runs.
    pub(super) fn runs(&self) -> PathBuf {
        self.folder.join("runs")
    }
}
