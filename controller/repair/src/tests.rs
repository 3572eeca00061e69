//! What several tests of this crate need: a way to run programs, and a repository.

use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jig_model::program::{ProgramEnd, ProgramError, ProgramRequest, Programs};
use jig_model::protocol::BoxFuture;
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use crate::git::Git;

/// How often a program is looked at.
const LOOK: Duration = Duration::from_millis(2);

/// Runs programs without a sandbox, and knows what was run. Clones share what they know.
#[derive(Clone, Default)]
pub(crate) struct TestPrograms(Arc<Mutex<Vec<String>>>);

impl TestPrograms {
    /// Lists what was run since this was last asked, in the order in which it began.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// Ends the group of a program that is not waited for any longer.
struct Group(Pid);

impl Drop for Group {
    fn drop(&mut self) {
        let _ = kill_process_group(self.0, Signal::KILL);
    }
}

impl Programs for TestPrograms {
    fn run(&self, request: ProgramRequest) -> BoxFuture<'_, Result<ProgramEnd, ProgramError>> {
        Box::pin(async move {
            let refused = |source| ProgramError::Refused { what: request.what.clone(), source };
            self.0.lock().unwrap().push(request.what.clone());
            let stdout = std::fs::File::create(&request.stdout).map_err(refused)?;
            let stderr = match &request.stderr {
                Some(path) => std::fs::File::create(path),
                None => stdout.try_clone(),
            };
            let mut command = Command::new(&request.program);
            command.args(&request.args).current_dir(&request.cwd).env_clear().process_group(0);
            command.envs(request.env.iter().map(|(name, value)| (name, value)));
            command.stdin(Stdio::null()).stdout(stdout).stderr(stderr.map_err(refused)?);
            let mut child = command.spawn().map_err(refused)?;
            let _group = Group(Pid::from_child(&child));
            let size = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
            loop {
                let printed = std::iter::once(&request.stdout).chain(&request.stderr);
                let too_much = printed.map(|path| size(path)).any(|len| len > request.most_output);
                if let Some(status) = child.try_wait().map_err(refused)? {
                    let ended = status.code().map(ProgramEnd::Exited);
                    let signal = ProgramEnd::Signalled(status.signal().unwrap_or_default());
                    let end = ended.unwrap_or(signal);
                    return Ok(if too_much { ProgramEnd::TooMuchOutput } else { end });
                }
                if too_much {
                    child.kill().and_then(|()| child.wait()).map_err(refused)?;
                    return Ok(ProgramEnd::TooMuchOutput);
                }
                tokio::time::sleep(LOOK).await;
            }
        })
    }

    fn sandbox_gap(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(std::future::ready(None))
    }
}

/// Makes a folder in memory, where that can be had: journals and git flush what they write.
pub(crate) fn in_memory() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

/// A repository with one commit, and a folder beside it.
pub(crate) struct TestRepository {
    pub(crate) folder: TempDir,
    pub(crate) base: String,
    pub(crate) programs: TestPrograms,
}

/// The source file of the repository.
pub(crate) const SOURCE: &str = "int head;\n\nint next(void)\n{\n    return head + 2;\n}\n";

impl TestRepository {
    /// Makes a repository with `src/ring.c`, and with `build/` among the ignored files.
    pub(crate) async fn new() -> Self {
        Self::with(&[("src/ring.c", SOURCE), (".gitignore", "build/\n")]).await
    }

    /// Makes a repository with these files.
    pub(crate) async fn with(files: &[(&str, &str)]) -> Self {
        let folder = in_memory();
        let mut made = Self { folder, base: String::new(), programs: TestPrograms::default() };
        std::fs::create_dir_all(made.repo()).unwrap();
        std::fs::create_dir_all(made.scratch()).unwrap();
        for (path, text) in files {
            let path = made.repo().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        made.git().run(["init", "--quiet", "--initial-branch=main"]).await.unwrap();
        made.git().run(["add", "--all"]).await.unwrap();
        made.base = made.git().commit("base").await.unwrap();
        made
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.folder.path().join("repo")
    }

    pub(crate) fn scratch(&self) -> PathBuf {
        self.folder.path().join("scratch")
    }

    pub(crate) fn git(&self) -> Git {
        let search_path = std::env::var_os("PATH").unwrap();
        Git::new(Arc::new(self.programs.clone()), &self.repo(), &self.scratch(), &search_path)
    }
}
