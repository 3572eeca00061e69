//! Builds in a work tree.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jig_model::program::{ProgramEnd, ProgramError, ProgramRequest, Sandbox};

use super::RepairSetup;
use crate::excerpt::last_lines;
use crate::journal::Digest;

/// Most bytes that a build prints.
const MAX_LOG: u64 = 64 << 20;

/// Largest image.
const MAX_IMAGE: u64 = 512 << 20;

/// A built image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltImage {
    /// SHA-256 in lower-case hex, by which the folder of the run has it.
    pub sha256: String,
}

/// Says why there is no image.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A program is missing, or the sandbox.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The build failed.
    #[error("the build failed: {said}")]
    Failed {
        /// Its last lines; hostile text.
        said: String,
    },
    /// The build took too long.
    #[error("the build took longer than {0} s")]
    Overdue(u64),
    /// The build succeeded without making the image.
    #[error("the build made no {}: {why}", path.display())]
    NoImage {
        /// Where it should be.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A file of the run cannot be written.
    #[error("{}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl BuildError {
    /// Tells whether what was built is to blame, and not the host.
    pub fn blames_build(&self) -> bool {
        match self {
            Self::Failed { .. } | Self::Overdue(_) | Self::NoImage { .. } => true,
            Self::Program(_) | Self::File { .. } => false,
        }
    }
}

impl RepairSetup {
    /// Builds what a work tree holds, in a sandbox, and keeps image and log. An image that lies there
    /// from before is no result: it is removed first.
    ///
    /// # Errors
    /// There is no image.
    pub async fn build(&self, tree: &Path, log: &Path) -> Result<BuiltImage, BuildError> {
        let at = |path: &Path, source| BuildError::File { path: path.to_owned(), source };
        let build = &self.task.build;
        let artifact = tree.join(&build.artifact);
        match fs::remove_file(&artifact) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(at(&artifact, error));
            }
            _ => {}
        }
        let temporary = self.folder.scratch().join("tmp");
        fs::create_dir_all(&temporary).map_err(|error| at(&temporary, error))?;
        if let Some(folder) = log.parent() {
            fs::create_dir_all(folder).map_err(|error| at(folder, error))?;
        }
        let (program, args) =
            build.command.split_first().map_or((String::new(), &[][..]), |(p, a)| (p.clone(), a));
        let writable = vec![tree.to_owned(), temporary.clone()];
        let env = [
            ("PATH", self.search_path.clone()),
            ("HOME", temporary.clone().into()),
            ("TMPDIR", temporary.into()),
            ("LC_ALL", "C".into()),
        ];
        let request = ProgramRequest {
            program: program.into(),
            args: args.iter().map(OsString::from).collect(),
            cwd: tree.to_owned(),
            env: env.map(|(name, value)| (name.into(), value)).into(),
            stdout: log.to_owned(),
            stderr: None,
            most_output: MAX_LOG,
            trusted: false,
            sandbox: self.policy.sandbox.then_some(Sandbox { writable, network: false }),
            what: "build".to_owned(),
        };
        let work = tokio::time::timeout(build.timeout, self.programs.run(request));
        let end = self.clock.during(work).await;
        let said = || last_lines(&fs::read(log).unwrap_or_default());
        match end {
            Err(_) => return Err(BuildError::Overdue(build.timeout.as_secs())),
            Ok(Err(error)) => return Err(error.into()),
            Ok(Ok(ProgramEnd::Exited(0))) => {}
            Ok(Ok(ProgramEnd::TooMuchOutput)) => {
                let said = format!("it printed more than {MAX_LOG} bytes");
                return Err(BuildError::Failed { said });
            }
            Ok(Ok(_)) => return Err(BuildError::Failed { said: said() }),
        }
        self.keep_image(&artifact)
    }

    fn keep_image(&self, artifact: &Path) -> Result<BuiltImage, BuildError> {
        let missing = |why: String| BuildError::NoImage { path: artifact.to_owned(), why };
        let about = fs::symlink_metadata(artifact).map_err(|error| missing(error.to_string()))?;
        if !about.is_file() {
            return Err(missing("it is no file".to_owned()));
        }
        if about.len() > MAX_IMAGE {
            return Err(missing(format!("it has {} bytes, more than {MAX_IMAGE}", about.len())));
        }
        let bytes = fs::read(artifact).map_err(|error| missing(error.to_string()))?;
        let sha256 = Digest::of(&bytes).to_string();
        let path = self.folder.image(&sha256);
        let written = self.folder.write(&path, &bytes);
        written.map_err(|source| BuildError::File { path, source })?;
        Ok(BuiltImage { sha256 })
    }
}
