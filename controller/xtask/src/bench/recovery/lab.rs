//! A lab of its own: folders, a rig file, and the program that is tried.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::super::setting::{Healed, emptied};
use super::trial::{Natural, Trial};
use crate::failure::Failure;

/// Where trials are made.
pub(super) struct Lab {
    jig: PathBuf,
    /// Scratch: each process of a trial names it in its arguments or its folder.
    pub(super) folder: PathBuf,
    rig: PathBuf,
    pub(super) fixtures: PathBuf,
    /// By place: what is tested there, and what may have stayed from an earlier test.
    images: Vec<(String, PathBuf, PathBuf)>,
}

impl Lab {
    /// Makes the folders and the rig file.
    pub(super) fn prepare(jig: PathBuf, target: &Path, places: &[Healed]) -> Result<Self, Failure> {
        let folder = emptied(target, "bench/recovery")?;
        let fixtures = target.join("fixtures");
        let rig = folder.join("rig.toml");
        let mut text = "version = 1\n".to_owned();
        for Healed { place, board, by_probe, .. } in places {
            let deploy = if *by_probe { "deploy = \"probe\"\n" } else { "" };
            let _ = writeln!(
                text,
                "\n[[place]]\nname = \"{place}\"\nboard = \"{board}\"\n\n[place.emulator]\n{deploy}"
            );
        }
        fs::write(&rig, text).map_err(Failure::io("write", &rig))?;
        let image = |healed: &Healed| {
            let of = |name: &str| fixtures.join(format!("{}/{name}.elf", healed.board));
            (healed.place.clone(), of(&healed.fixture), of(&healed.old))
        };
        let images = places.iter().map(image).collect();
        Ok(Self { jig, folder, rig, fixtures, images })
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

    /// Returns the firmware that is tested at a place, and the one before.
    pub(super) fn images(&self, place: &str) -> Result<(&Path, &Path), Failure> {
        let images = self.images.iter().find(|(of, ..)| of == place);
        let none = || Failure::Because(format!("there is no place {place}"));
        images.map(|(_, now, old)| (now.as_path(), old.as_path())).ok_or_else(none)
    }

    /// Makes a run of each place in which nothing fails: its firmware is known to be good from
    /// then on, and it says how long a run takes.
    pub(super) fn natural(&self, places: &[Healed]) -> Result<Vec<Natural>, Failure> {
        places.iter().map(|healed| Trial::natural(self, &healed.place)).collect()
    }
}
