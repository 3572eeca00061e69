//! Where a command was started: handed in, so that every look-up can be tested.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The environment variables that decide where files are looked for.
const VARIABLES: &[&str] =
    &["HOME", "JIG_IMAGES", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"];

/// The current directory, the environment, and the machine's configuration folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Surroundings {
    /// The current directory.
    pub(crate) cwd: PathBuf,
    /// Configuration of the whole machine.
    pub(crate) etc: PathBuf,
    /// Environment variables that are set and not empty.
    pub(crate) variables: Vec<(&'static str, OsString)>,
}

impl Surroundings {
    /// Looks around this process.
    pub(crate) fn of_process() -> Self {
        let variables = VARIABLES.iter().filter_map(|&name| {
            let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
            Some((name, value))
        });
        // Without a current directory (it was removed), relative paths stay relative, and
        // the system says what is wrong as soon as one is used.
        let cwd = std::env::current_dir().unwrap_or_default();
        Self { cwd, etc: "/etc".into(), variables: variables.collect() }
    }

    fn variable(&self, name: &str) -> Option<&Path> {
        self.variables.iter().find(|(known, _)| *known == name).map(|(_, value)| Path::new(value))
    }

    /// Returns a folder of this user: below an XDG variable, or below the home directory.
    fn user_folder(&self, xdg: &str, below_home: &str) -> Option<PathBuf> {
        // The XDG specification says to ignore relative paths.
        let base = self.variable(xdg).filter(|path| path.is_absolute()).map(Path::to_owned);
        base.or_else(|| self.variable("HOME").map(|home| home.join(below_home)))
    }

    /// Returns the folder of this user's configuration of Jig.
    pub(crate) fn user_config(&self) -> Option<PathBuf> {
        self.user_folder("XDG_CONFIG_HOME", ".config").map(|base| base.join("jig"))
    }

    /// Returns the folder of the machine's configuration of Jig.
    pub(crate) fn machine_config(&self) -> PathBuf {
        self.etc.join("jig")
    }

    /// Returns the folder of what outlives a command. Without a home directory (a service,
    /// a container) that is below the current directory.
    pub(crate) fn state(&self) -> PathBuf {
        self.user_folder("XDG_STATE_HOME", ".local/state")
            .map_or_else(|| self.cwd.join(".jig"), |base| base.join("jig"))
    }

    /// Returns where image sets are; `cargo xtask images` puts them into the same folder.
    pub(crate) fn images(&self) -> PathBuf {
        let folder = self.variable("JIG_IMAGES").map(Path::to_owned).or_else(|| {
            self.user_folder("XDG_CACHE_HOME", ".cache").map(|base| base.join("jig/images"))
        });
        self.cwd.join(folder.unwrap_or_else(|| ".jig/images".into()))
    }

    /// Returns the nearest `rig.toml` in the current directory or above, up to and
    /// including the root of a repository: what lies above belongs to others.
    pub(crate) fn project_rig(&self) -> Option<PathBuf> {
        for folder in self.cwd.ancestors() {
            let file = folder.join("rig.toml");
            if file.is_file() {
                return Some(file);
            }
            if folder.join(".git").exists() {
                return None;
            }
        }
        None
    }
}
