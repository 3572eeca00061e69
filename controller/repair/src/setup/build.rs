//! Builds in a work tree.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jig_model::program::{ProgramEnd, ProgramError, ProgramRequest, Sandbox};

use super::RepairSetup;
use super::image_files::image_files;
use crate::excerpt::{beginning, build_failure, first_error};
use crate::git::{Git, GitError, remove_folder};
use crate::journal::{Digest, EvidenceRef};
use crate::run::Run;
use crate::toolchain::MissingProgram;

/// Most bytes that a build prints.
const MAX_LOG: u64 = 64 << 20;

/// Largest image.
const MAX_IMAGE: u64 = 512 << 20;

/// A built image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltImage {
    /// SHA-256 in lower-case hex, by which the folder of the run has it.
    pub sha256: String,
    /// Its path below the work tree.
    pub name: PathBuf,
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
        /// Its errors and its last lines; hostile text.
        said: String,
    },
    /// The build could not start a program.
    #[error("{program}; the build failed: {said}")]
    Toolchain {
        /// The program.
        program: MissingProgram,
        /// Its errors and its last lines; hostile text.
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
    /// The build made no executable, or several, and the task does not say which is the image.
    #[error(
        "the task does not name the image (`artifact`), and the build made {}",
        if .0.is_empty() { "no executable ELF file" } else { .0.as_str() }
    )]
    NoOneImage(String),
    /// The files of the repository cannot be listed.
    #[error("the files of the repository cannot be listed")]
    Git(#[source] GitError),
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
            Self::Failed { .. }
            | Self::Toolchain { .. }
            | Self::Overdue(_)
            | Self::NoImage { .. }
            | Self::NoOneImage(_) => true,
            Self::Program(_) | Self::File { .. } | Self::Git(_) => false,
        }
    }

    /// Tells whether the host is to blame, whatever is built.
    pub fn is_of_host(&self) -> bool {
        matches!(self, Self::File { .. } | Self::Git(_))
    }

    /// Tells whether the base has to be built before a patch is blamed: a compiler's error in a file
    /// of the repository is in the log otherwise.
    pub fn needs_control(&self, log: &str, files: &[String]) -> bool {
        match self {
            Self::File { .. } | Self::Git(_) => false,
            Self::Failed { .. } => !has_diagnostic(log, files),
            Self::Program(_)
            | Self::Toolchain { .. }
            | Self::Overdue(_)
            | Self::NoImage { .. }
            | Self::NoOneImage(_) => true,
        }
    }
}

/// Tells whether a log has an error of a compiler in one of these files, such as
/// `src/ring.c:3:5: error: expected ';'`.
fn has_diagnostic(log: &str, files: &[String]) -> bool {
    let in_file = |line: &str| {
        let (place, _) =
            line.split_once(" error: ").or_else(|| line.split_once(" fatal error: "))?;
        let (path, place) = place.trim_end_matches(" fatal").split_once(':')?;
        let is_place = place.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
        let name = path.rsplit('/').next()?;
        let same = |file: &String| file.rsplit('/').next() == Some(name);
        (is_place && files.iter().any(same)).then_some(())
    };
    log.lines().any(|line| in_file(line.trim_start()).is_some())
}

/// Most images that a message names.
const MAX_NAMES: usize = 5;

/// Names the first of several images.
fn shown(mut made: Vec<PathBuf>, last: Option<PathBuf>) -> String {
    made.extend(last);
    let names = made.iter().take(MAX_NAMES).map(|path| path.display().to_string());
    names.collect::<Vec<_>>().join(", ")
}

/// Finds the line of a log that shows what a sandbox refuses.
fn refused_in(log: &str) -> Option<String> {
    let refusals = ["Permission denied", "Operation not permitted", "Network is unreachable"];
    let line = log.lines().find(|line| refusals.iter().any(|refusal| line.contains(refusal)))?;
    Some(beginning(line.trim()))
}

impl RepairSetup {
    /// Builds the base in a work tree as a control. Returns why it does not build, if it does not.
    ///
    /// # Errors
    /// The work tree cannot be used.
    pub async fn build_base(
        &self,
        run: &Run,
        tree: &Git,
        folder: &Path,
        log: &Path,
    ) -> Result<Option<BuildError>, GitError> {
        tree.reset_files(&run.contract.base).await?;
        tree.clean_ignored().await?;
        Ok(self.build(folder, log).await.err())
    }

    /// Builds the base in the run's work tree as a control, and takes the tree back to the candidate.
    /// Returns why it does not build, if it does not.
    ///
    /// # Errors
    /// The work tree cannot be used.
    pub async fn control(&self, run: &Run, log: &Path) -> Result<Option<BuildError>, GitError> {
        let candidate = run.applied.as_ref().unwrap_or(&run.contract.base);
        self.held.forget();
        let (tree, folder) = (self.tree(), self.folder.tree());
        let failed = self.build_base(run, &tree, &folder, log).await?;
        self.hold(candidate).await?;
        tree.clean_ignored().await?;
        Ok(failed)
    }

    /// Builds what a work tree holds, in a sandbox, and keeps image and log. An image that lies there
    /// from before is no result: it is removed first.
    ///
    /// # Errors
    /// There is no image.
    pub async fn build(&self, tree: &Path, log: &Path) -> Result<BuiltImage, BuildError> {
        let at = |path: &Path, source| BuildError::File { path: path.to_owned(), source };
        self.held.forget();
        let build = &self.task.build;
        let known = self.known_images(tree).await?;
        let stale = match &build.artifact {
            Some(artifact) => vec![artifact.clone()],
            None => image_files(tree, &known).map_err(|error| at(tree, error))?,
        };
        for stale in stale {
            let stale = tree.join(stale);
            match fs::remove_file(&stale) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(at(&stale, error));
                }
                _ => {}
            }
        }
        let temporary = self.build_home();
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
        match end {
            Err(_) => return Err(BuildError::Overdue(build.timeout.as_secs())),
            Ok(Err(error)) => return Err(error.into()),
            Ok(Ok(ProgramEnd::Exited(0))) => {}
            Ok(Ok(ProgramEnd::TooMuchOutput)) => {
                let said = format!("it printed more than {MAX_LOG} bytes");
                return Err(BuildError::Failed { said });
            }
            Ok(Ok(_)) => return Err(self.failed(log)),
        }
        let artifact = match &build.artifact {
            Some(artifact) => artifact.clone(),
            None => {
                let mut made = image_files(tree, &known).map_err(|error| at(tree, error))?;
                match (made.pop(), made.is_empty()) {
                    (Some(only), true) => only,
                    (last, _) => return Err(BuildError::NoOneImage(shown(made, last))),
                }
            }
        };
        self.keep_image(tree, artifact)
    }

    /// Removes what builds have left in their home.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub async fn drop_build_home(&self) -> Result<(), GitError> {
        remove_folder(&self.build_home()).await
    }

    /// Home of builds, and where their temporary files are.
    fn build_home(&self) -> PathBuf {
        self.folder.scratch().join("tmp")
    }

    /// Lists the files of the repository where the image has to be told from them.
    async fn known_images(&self, tree: &Path) -> Result<BTreeSet<PathBuf>, BuildError> {
        if self.task.build.artifact.is_some() {
            return Ok(BTreeSet::new());
        }
        let files = self.git.at(tree).files("HEAD").await.map_err(BuildError::Git)?;
        Ok(files.into_iter().map(PathBuf::from).collect())
    }

    /// Returns where a failed build shows why: the first error in its log, or else all of it.
    pub fn evidence_of_build(&self, log: &Path) -> EvidenceRef {
        let bytes = fs::read(log).ok().and_then(|printed| first_error(&printed));
        EvidenceRef { file: log.display().to_string(), bytes }
    }

    /// Says why a build has failed, by its log.
    fn failed(&self, log: &Path) -> BuildError {
        let printed = fs::read(log).unwrap_or_default();
        let text = String::from_utf8_lossy(&printed);
        let refused = self.policy.sandbox.then(|| refused_in(&text)).flatten();
        let refused = refused.map(|line| {
            format!("; the sandbox lets a build write below its work tree alone, and use no network: {line}")
        });
        let (quoted, refused) = (build_failure(&printed), refused.unwrap_or_default());
        let said = format!("{quoted}{refused} (all of it: {})", log.display());
        match MissingProgram::named_in(&text) {
            Some(program) => BuildError::Toolchain { program, said },
            None => BuildError::Failed { said },
        }
    }

    fn keep_image(&self, tree: &Path, name: PathBuf) -> Result<BuiltImage, BuildError> {
        let artifact = tree.join(&name);
        let artifact = artifact.as_path();
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
        Ok(BuiltImage { sha256, name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_sandbox_refuses_is_found_in_the_log() {
        let log =
            "mkdir -p out\n  touch: cannot touch '/usr/x': Permission denied\nmake: Error 1\n";
        let refused = refused_in(log);
        assert_eq!(refused.as_deref(), Some("touch: cannot touch '/usr/x': Permission denied"));
        assert_eq!(refused_in("src/ring.c:3:5: error: expected ';'\n"), None);
    }

    #[test]
    fn a_compilers_error_in_a_file_of_the_repository_needs_no_control() {
        let files = ["src/ring.c", "link.ld"].map(str::to_owned);
        let failed = || BuildError::Failed { said: String::new() };
        for (log, needs) in [
            ("make\nsrc/ring.c:3:5: error: expected ';'\n", false),
            ("  /run/tree/src/ring.c:3: fatal error: no.h: No such file\n", false),
            ("../src/ring.c:3:1: error: x\n", false),
            ("/usr/include/stdio.h:3:1: error: x\n", true),
            ("src/ring.c:3:5: warning: an error: x\n", true),
            ("make: arm-none-eabi-gcc: No such file or directory\n", true),
            ("make: *** [Makefile:3: out/app.elf] Error 127\n", true),
            ("cc1: error: out of memory\n", true),
        ] {
            assert_eq!(failed().needs_control(log, &files), needs, "{log}");
        }
        let file = BuildError::File { path: PathBuf::new(), source: io::Error::other("full") };
        assert!(
            !file.needs_control("", &files) && BuildError::Overdue(3).needs_control("", &files)
        );
    }
}
