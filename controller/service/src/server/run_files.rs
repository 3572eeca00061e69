//! Files of runs, for callers that keep a copy.

use std::fs::{self, File};
use std::io;
use std::path::{Component, Path, PathBuf};

use jig_model::{Fault, RunId};
use jig_rig::store::{RunDir, open_regular};

use crate::digest::{FileDigest, digest_of_file};
use crate::protocol::{RunFile, RunFiles};

/// Most files of a run that are listed, and how deep its folders are looked through.
const MOST_FILES: usize = 20_000;
const MOST_DEPTH: usize = 8;

/// Says why a file of a run cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunFileError {
    /// The path leaves the run.
    #[error("{0:?} is no path within a run")]
    Path(String),
    /// The run has too many files.
    #[error("run {run} has more than {MOST_FILES} files")]
    TooMany {
        /// The run.
        run: RunId,
    },
    /// It cannot be read.
    #[error("read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why, in the system's words.
        source: io::Error,
    },
}

impl RunFileError {
    pub(super) fn fault(&self) -> Fault {
        match self {
            Self::Path(_) => Fault::Usage,
            Self::TooMany { .. } | Self::Read { .. } => Fault::Lab,
        }
    }

    fn read(path: &Path, source: io::Error) -> Self {
        Self::Read { path: path.to_owned(), source }
    }
}

/// Lists the files of a run, with their digests once it has ended.
pub(super) fn describe(dir: &RunDir) -> Result<RunFiles, RunFileError> {
    let live = dir.is_live();
    let mut paths = Vec::new();
    list(dir.path(), MOST_DEPTH, &mut paths)?;
    if paths.len() > MOST_FILES {
        return Err(RunFileError::TooMany { run: dir.id().clone() });
    }
    let mut files = Vec::new();
    for path in paths {
        let Some(inner) = dir.relative(&path) else { continue };
        let (size, sha256) = match live {
            true => (fs::metadata(&path).map_or(0, |about| about.len()), None),
            false => {
                let FileDigest { sha256, size } =
                    digest_of_file(&path).map_err(|error| RunFileError::read(&path, error))?;
                (size, Some(sha256))
            }
        };
        files.push(RunFile { path: inner, size, sha256 });
    }
    Ok(RunFiles { live, files })
}

fn list(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), RunFileError> {
    let entries = fs::read_dir(folder).map_err(|error| RunFileError::read(folder, error))?;
    for entry in entries {
        let entry = entry.map_err(|error| RunFileError::read(folder, error))?;
        // Neither links nor devices are part of a run. One that has just gone is no file any more.
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() && depth > 0 {
            list(&entry.path(), depth - 1, found)?;
        } else if kind.is_file() && found.len() <= MOST_FILES {
            found.push(entry.path());
        }
    }
    Ok(())
}

/// Opens a file of a run by its path within it.
pub(super) fn open(run: &Path, inner: &str) -> Result<File, RunFileError> {
    let normal = |part| matches!(part, Component::Normal(_));
    if inner.is_empty() || !Path::new(inner).components().all(normal) {
        return Err(RunFileError::Path(inner.chars().take(200).collect()));
    }
    let path = run.join(inner);
    let failed = |error| RunFileError::read(&path, error);
    // A link within a run must not lead out of it.
    let real = path.canonicalize().map_err(failed)?;
    match run.canonicalize().is_ok_and(|run| real.starts_with(run)) {
        true => open_regular(&real).map_err(failed),
        false => Err(RunFileError::Path(inner.chars().take(200).collect())),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use jig_rig::store::RunStore;

    use super::*;

    #[test]
    fn no_path_leads_out_of_a_run() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("secret"), "secret").unwrap();
        let id: RunId = "20261121-221530-7f3a".parse().unwrap();
        let copy = RunStore::new(folder.path().join("runs")).begin_copy(&id, b"{}").unwrap();
        let run = copy.dir().path();
        symlink(folder.path(), run.join("out")).unwrap();
        symlink(folder.path().join("secret"), run.join("link")).unwrap();
        nix::unistd::mkfifo(&run.join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        for bad in [
            "",
            ".",
            "..",
            "../secret",
            "../../secret",
            "consoles/../../../secret",
            "/etc/passwd",
            "out/secret",
            "link",
            "fifo",
            "consoles",
            "no/such/file",
            "record.json\0",
            "\0",
            "a\nb",
            &"x/".repeat(5000),
            &"../".repeat(100),
        ] {
            assert!(open(run, bad).is_err(), "{bad:?}");
        }
        assert!(open(run, "record.json").is_ok());
        // Neither links nor devices are listed.
        let listed = describe(copy.dir()).unwrap();
        let paths: Vec<_> = listed.files.iter().map(|file| file.path.as_str()).collect();
        assert!(listed.live && paths.contains(&"record.json"), "{paths:?}");
        assert!(!paths.iter().any(|path| ["out", "link", "fifo"].contains(path)), "{paths:?}");
    }
}
