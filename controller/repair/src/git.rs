//! The calls of git that a run and its agents need.
//!
//! Owns the environment of git: no configuration of the user or the host, no hooks, no file system
//! monitor, no signatures, no prompts, no background work. A repository's own configuration counts,
//! so its content filters work in a work tree of it; in a repository made by [`Git::borrow`] there is
//! none, and files hold the bytes of the commit.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jig_model::program::{ProgramEnd, ProgramError, ProgramRequest, Programs};

use crate::excerpt::last_lines;

/// Most bytes that a call prints, unless it says otherwise.
const MAX_OUTPUT: u64 = 64 << 20;

/// How often and how long it is waited for a program that is being ended: half a second together.
const REMOVE_TRIES: u32 = 25;
const REMOVE_PAUSE: Duration = Duration::from_millis(20);

/// How often and how long it is waited until another process has finished with its work tree: half a
/// second together.
const TREE_TRIES: u32 = 25;
const TREE_PAUSE: Duration = Duration::from_millis(20);

/// Configuration of every call. `safe.directory`: git refuses a repository that belongs to another
/// user, such as a mounted one in a container. Who names it in a task has its build run, too.
const CONFIG: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.quotePath=false",
    "core.abbrev=no",
    "gc.auto=0",
    "maintenance.auto=false",
    "commit.gpgSign=false",
    "submodule.recurse=false",
    "advice.detachedHead=false",
    "safe.directory=*",
    "user.name=Jig",
    "user.email=jig@localhost",
];

/// Configuration of a borrowing repository: no background work, and an identity for an agent that
/// commits.
const BORROWER_CONFIG: &str = "[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n\
    [user]\n\tname = Agent\n\temail = agent@localhost\n";

/// Attributes of a borrowing repository. They precede those of its files.
const RAW_ATTRIBUTES: &str =
    "* !filter !diff !merge !text !crlf !eol !ident !working-tree-encoding\n";

/// The form of every diff.
const DIFF: &[&str] = &[
    "diff-tree",
    "-p",
    "--binary",
    "--full-index",
    "--unified=3",
    "--no-renames",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--src-prefix=a/",
    "--dst-prefix=b/",
];

/// Says why git did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// It could not be run.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// It refused.
    #[error("git {command} failed: {said}")]
    Failed {
        /// The command, such as `apply`.
        command: String,
        /// Its exit code, where it ended by itself.
        code: Option<i32>,
        /// The last lines that it printed; may quote hostile text.
        said: String,
    },
    /// It printed more than was asked for.
    #[error("git {command} printed more than {most} bytes")]
    TooLarge {
        /// The command.
        command: String,
        /// Most bytes.
        most: u64,
    },
    /// There is no commit yet.
    #[error("the repository has no commit yet")]
    Unborn,
    /// A file cannot be read, written or removed.
    #[error("{}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Calls git in one folder. Clones share nothing but the way to run programs.
#[derive(Clone)]
pub struct Git {
    programs: Arc<dyn Programs>,
    dir: PathBuf,
    scratch: PathBuf,
    env: Vec<(OsString, OsString)>,
}

impl Git {
    /// Calls the git of `search_path` (the value of `PATH`) in `dir`. Its output passes through files
    /// in the folder `scratch`, which exists and is no part of the repository.
    pub fn new(
        programs: Arc<dyn Programs>,
        dir: &Path,
        scratch: &Path,
        search_path: &OsStr,
    ) -> Self {
        let env = [
            ("PATH", search_path),
            ("HOME", scratch.as_os_str()),
            ("LC_ALL", OsStr::new("C")),
            ("GIT_CONFIG_GLOBAL", OsStr::new("/dev/null")),
            ("GIT_CONFIG_SYSTEM", OsStr::new("/dev/null")),
            ("GIT_CONFIG_NOSYSTEM", OsStr::new("1")),
            ("GIT_ATTR_NOSYSTEM", OsStr::new("1")),
            ("GIT_NO_REPLACE_OBJECTS", OsStr::new("1")),
            // The index of the user's checkout is not even refreshed.
            ("GIT_OPTIONAL_LOCKS", OsStr::new("0")),
            ("GIT_TERMINAL_PROMPT", OsStr::new("0")),
        ];
        let env = env.map(|(name, value)| (name.into(), value.to_owned())).into();
        Self { programs, dir: dir.to_owned(), scratch: scratch.to_owned(), env }
    }

    /// Calls git in another folder.
    pub fn at(&self, dir: &Path) -> Self {
        Self { dir: dir.to_owned(), ..self.clone() }
    }

    /// Calls git in a work tree with a repository that lies elsewhere.
    pub fn over(&self, repository: &Path, work_tree: &Path) -> Self {
        let mut over = self.at(work_tree);
        over.env.push(("GIT_DIR".into(), repository.into()));
        over.env.push(("GIT_WORK_TREE".into(), work_tree.into()));
        over
    }

    /// Runs git, and returns what it printed to its standard output.
    ///
    /// # Errors
    /// It could not be run, or ended with another code than 0.
    pub async fn run<A: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = A>,
    ) -> Result<Vec<u8>, GitError> {
        self.run_with(args, MAX_OUTPUT).await
    }

    /// Runs `git worktree`. It reads what the repository knows of all its work trees, and fails where
    /// another process is just adding or removing one, so it is tried again.
    async fn work_trees<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<Vec<u8>, GitError> {
        let args: Vec<_> =
            [OsStr::new("worktree")].into_iter().chain(args.iter().map(A::as_ref)).collect();
        let mut tries = 0..TREE_TRIES;
        loop {
            match self.run(&args).await {
                Err(GitError::Failed { said, .. })
                    if said.contains("/worktrees/") && tries.next().is_some() =>
                {
                    tokio::time::sleep(TREE_PAUSE).await;
                }
                ended => return ended,
            }
        }
    }

    async fn run_with<A: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = A>,
        most_output: u64,
    ) -> Result<Vec<u8>, GitError> {
        let asked: Vec<OsString> = args.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
        let command = asked.first().map(|arg| arg.to_string_lossy().into_owned());
        let command = command.unwrap_or_default();
        let config = CONFIG.iter().flat_map(|setting| ["-c", setting]).map(OsString::from);
        let name = self.scratch_name();
        let (stdout, stderr) = (name.with_extension("out"), name.with_extension("err"));
        let request = ProgramRequest {
            program: "git".into(),
            args: config.chain(asked).collect(),
            cwd: self.dir.clone(),
            env: self.env.clone(),
            stdout: stdout.clone(),
            stderr: Some(stderr.clone()),
            most_output,
            // Without hooks and monitors, it starts filters of contents at most, and waits for them.
            trusted: true,
            sandbox: None,
            what: format!("git {command}"),
        };
        let end = self.programs.run(request).await;
        let printed = take(&stdout).await;
        let complained = take(&stderr).await;
        let code = match end? {
            ProgramEnd::Exited(0) => return printed,
            ProgramEnd::TooMuchOutput => {
                return Err(GitError::TooLarge { command, most: most_output });
            }
            ProgramEnd::Exited(code) => Some(code),
            ProgramEnd::Signalled(_) => None,
        };
        let said = match (last_lines(&complained.unwrap_or_default()), code) {
            (said, Some(code)) if said.is_empty() => format!("it ended with code {code}"),
            (said, None) if said.is_empty() => "a signal ended it".to_owned(),
            (said, _) => said,
        };
        Err(GitError::Failed { command, code, said })
    }

    /// Returns a path for a file that no other call uses.
    fn scratch_name(&self) -> PathBuf {
        static CALLS: AtomicU64 = AtomicU64::new(0);
        self.scratch.join(format!("git-{}", CALLS.fetch_add(1, Ordering::Relaxed)))
    }

    /// Returns the commit of the checkout.
    ///
    /// # Errors
    /// [`GitError::Unborn`] where there is none; it is no repository.
    pub async fn head(&self) -> Result<String, GitError> {
        let printed = self.run(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).await;
        match printed {
            Ok(printed) => Ok(line(&printed)),
            Err(GitError::Failed { code: Some(1), .. }) => Err(GitError::Unborn),
            Err(error) => Err(error),
        }
    }

    /// Returns the top folder of the work tree.
    ///
    /// # Errors
    /// It is no work tree.
    pub async fn top(&self) -> Result<PathBuf, GitError> {
        let printed = self.run(["rev-parse", "--show-toplevel"]).await?;
        Ok(path(printed))
    }

    /// Lists the files of the commit that are changed in the work tree or in the index. Files that
    /// git does not track do not count: no commit has them.
    ///
    /// # Errors
    /// It is no work tree.
    pub async fn changed_files(&self) -> Result<Vec<String>, GitError> {
        let args = ["status", "--porcelain=v1", "-z", "--untracked-files=no", "--no-renames"];
        let printed = self.run(args).await?;
        let text = String::from_utf8_lossy(&printed);
        // Two letters and a space come before each path.
        Ok(text
            .split_terminator('\0')
            .filter_map(|entry| entry.get(3..))
            .map(str::to_owned)
            .collect())
    }

    /// Describes a checkout by its commit, its branch, and each file that differs from the commit or is
    /// not tracked: an entry each, in the form of git's status, version 2.
    ///
    /// # Errors
    /// It is no work tree.
    pub async fn state(&self) -> Result<BTreeSet<String>, GitError> {
        let args = ["status", "--porcelain=v2", "--branch", "-z", "--no-renames"];
        let printed = self.run(args).await?;
        let text = String::from_utf8_lossy(&printed);
        Ok(text.split_terminator('\0').map(str::to_owned).collect())
    }

    /// Tells whether [`Git::changed_files`] lists none.
    ///
    /// # Errors
    /// It is no work tree.
    pub async fn is_clean(&self) -> Result<bool, GitError> {
        Ok(self.changed_files().await?.is_empty())
    }

    /// Makes a work tree of a commit, on no branch, in a folder that does not exist yet. One that the
    /// repository still knows in this folder is replaced.
    ///
    /// # Errors
    /// The commit or the folder cannot be used.
    pub async fn work_tree_add(&self, path: &Path, commit: &str) -> Result<Self, GitError> {
        let how = ["add", "--quiet", "--detach", "--force", "--force"].map(OsStr::new);
        self.work_trees(&[&how[..], &[path.as_os_str(), OsStr::new(commit)]].concat()).await?;
        Ok(self.at(path))
    }

    /// Tells whether the repository has a work tree in a folder, also where the folder is missing.
    ///
    /// # Errors
    /// It is no repository.
    pub async fn knows_tree(&self, path: &Path) -> Result<bool, GitError> {
        let printed = self.work_trees(&["list", "--porcelain", "-z"]).await?;
        let wanted = [b"worktree ", path.as_os_str().as_encoded_bytes()].concat();
        Ok(printed.split(|&byte| byte == 0).any(|entry| entry == wanted))
    }

    /// Removes the locks that a killed git has left in this linked work tree; no git may be at work in
    /// it. Locks that it shares with the repository stay.
    ///
    /// # Errors
    /// It is no work tree, or a lock cannot be removed.
    pub async fn unlock_tree(&self) -> Result<(), GitError> {
        let own = path(self.run(["rev-parse", "--absolute-git-dir"]).await?);
        for lock in ["HEAD.lock", "ORIG_HEAD.lock", "index.lock"].map(|name| own.join(name)) {
            match tokio::fs::remove_file(&lock).await {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    return Err(GitError::File { path: lock, source });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Points a branch at a commit, wherever it pointed before.
    ///
    /// # Errors
    /// The repository cannot be written.
    pub async fn set_branch(&self, branch: &str, commit: &str) -> Result<(), GitError> {
        self.run(["update-ref", &format!("refs/heads/{branch}"), commit]).await?;
        Ok(())
    }

    /// Lists the files of a commit.
    ///
    /// # Errors
    /// There is no such commit.
    pub async fn files(&self, commit: &str) -> Result<Vec<String>, GitError> {
        let printed = self.run(["ls-tree", "-r", "-z", "--name-only", commit]).await?;
        let text = String::from_utf8_lossy(&printed);
        Ok(text.split_terminator('\0').map(str::to_owned).collect())
    }

    /// Removes a work tree of this repository, whatever has become of it. Other work trees, also those
    /// whose folders are missing, stay as they are.
    ///
    /// # Errors
    /// The folder cannot be removed, or is no work tree of this repository.
    pub async fn work_tree_remove(&self, path: &Path) -> Result<(), GitError> {
        // git refuses a folder whose `.git` was changed, and accepts that the folder is gone.
        remove_folder(path).await?;
        let how = ["remove", "--force", "--force"].map(OsStr::new);
        self.work_trees(&[&how[..], &[path.as_os_str()]].concat()).await?;
        Ok(())
    }

    /// Applies a patch to the work tree and to the index: all of it or nothing. Where it does not fit
    /// otherwise, white space in the lines around a change is ignored: models lose the `\r` of files
    /// with CR LF, and mix up tabulators and spaces.
    ///
    /// # Errors
    /// [`GitError::Failed`] where the patch does not fit; it names file and line.
    pub async fn apply(&self, patch: &Path) -> Result<(), GitError> {
        let apply = async |how: &'static str| {
            let head = ["apply", "-p1", "--index", "--whitespace=nowarn", how].map(OsStr::new);
            self.run(head.into_iter().chain([patch.as_os_str()])).await
        };
        let Err(exact) = apply("--no-ignore-whitespace").await else { return Ok(()) };
        match apply("--ignore-whitespace").await {
            Ok(_) => Ok(()),
            Err(_) => Err(exact),
        }
    }

    /// Commits what the index holds, such as an applied patch, as Jig. Returns the commit.
    ///
    /// # Errors
    /// Nothing has changed, or git cannot write.
    pub async fn commit(&self, message: &str) -> Result<String, GitError> {
        let how = ["commit", "--no-verify", "--no-gpg-sign", "--cleanup=verbatim"];
        let printed = self.run(how.iter().chain(&["--message", message])).await?;
        match committed(&printed) {
            Some(commit) => Ok(commit),
            None => self.head().await,
        }
    }

    /// Returns what the files of the work tree change of a commit, whatever was committed or added
    /// meanwhile, as a diff of at most so many bytes. Ignored files do not count, unless the commit
    /// has them.
    ///
    /// # Errors
    /// [`GitError::TooLarge`]; git cannot read a file.
    pub async fn diff(&self, base: &str, most: u64) -> Result<Vec<u8>, GitError> {
        let index = self.scratch_name();
        let mut git = self.clone();
        git.env.push(("GIT_INDEX_FILE".into(), index.clone().into()));
        let tree = async {
            // An index without times of files: the bytes of each are looked at.
            git.run(["read-tree", base]).await?;
            git.run(["add", "--all"]).await?;
            git.run(["write-tree"]).await
        };
        let tree = tree.await;
        let _ = tokio::fs::remove_file(&index).await;
        let tree = line(&tree?);
        self.run_with(DIFF.iter().chain(&[base, tree.as_str()]), most).await
    }

    /// Returns what a commit changes of another one, as a diff of at most so many bytes.
    ///
    /// # Errors
    /// [`GitError::TooLarge`]; a commit is missing.
    pub async fn diff_of(&self, base: &str, commit: &str, most: u64) -> Result<Vec<u8>, GitError> {
        self.run_with(DIFF.iter().chain(&[base, commit]), most).await
    }

    /// Lists the files that differ between two commits.
    ///
    /// # Errors
    /// A commit is missing.
    pub async fn files_between(&self, base: &str, commit: &str) -> Result<Vec<String>, GitError> {
        let how = ["diff-tree", "-r", "-z", "--name-only", "--no-renames"];
        let printed = self.run(how.iter().chain(&[base, commit])).await?;
        let text = String::from_utf8_lossy(&printed);
        Ok(text.split_terminator('\0').map(str::to_owned).collect())
    }

    /// Makes the files of a commit and the index equal to the commit. Other files stay.
    ///
    /// # Errors
    /// A file cannot be written or removed.
    pub async fn reset_files(&self, commit: &str) -> Result<(), GitError> {
        self.run(["reset", "--quiet", "--hard", commit]).await?;
        Ok(())
    }

    /// Makes the work tree and the index equal to a commit, and removes files that git neither tracks
    /// nor ignores.
    ///
    /// # Errors
    /// A file cannot be written or removed.
    pub async fn reset_hard(&self, commit: &str) -> Result<(), GitError> {
        self.reset_files(commit).await?;
        self.run(["clean", "--quiet", "-ffd"]).await?;
        Ok(())
    }

    /// Removes ignored files, too, such as the output of a build.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub async fn clean_ignored(&self) -> Result<(), GitError> {
        self.run(["clean", "--quiet", "-ffdx"]).await?;
        Ok(())
    }

    /// Makes a bare repository in `dir` that borrows the objects of this one, and has no branch,
    /// configuration or attributes of it. What is done there does not reach this repository.
    ///
    /// # Errors
    /// It is no repository, or the folder cannot be written.
    pub async fn borrow(&self, dir: &Path) -> Result<Self, GitError> {
        // The name of a folder may hold line ends: the last one parts it from the format.
        let args = ["--path-format=absolute", "--git-common-dir", "--show-object-format"];
        let mut printed = self.run(["rev-parse"].iter().chain(&args)).await?;
        printed.pop_if(|last| *last == b'\n');
        let behind = printed.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let format = format!("--object-format={}", line(&printed.split_off(behind)));
        let from = path(printed);
        let init = ["init", "--quiet", "--bare", "--template=", format.as_str()].map(OsStr::new);
        self.run(init.into_iter().chain([dir.as_os_str()])).await?;
        let mut objects = from.join("objects").into_os_string();
        objects.push("\n");
        write(&dir.join("objects/info/alternates"), objects.as_encoded_bytes()).await?;
        write(&dir.join("info/attributes"), RAW_ATTRIBUTES.as_bytes()).await?;
        let config = dir.join("config");
        let mut text = read(&config).await?;
        text.extend(BORROWER_CONFIG.as_bytes());
        write(&config, &text).await?;
        // Where history was cut off; without it git takes the missing commits for damage.
        if let Ok(shallow) = tokio::fs::read(from.join("shallow")).await {
            write(&dir.join("shallow"), &shallow).await?;
        }
        Ok(self.at(dir))
    }

    /// Calls git for the files of a folder whose own `.git`, if any, is ignored: the repository is
    /// the one that this is called in.
    pub fn with_files_of(&self, folder: &Path) -> Self {
        let mut git = self.at(folder);
        git.env.push(("GIT_DIR".into(), self.dir.clone().into()));
        git.env.push(("GIT_WORK_TREE".into(), folder.into()));
        git
    }
}

/// Reads the commit out of what `git commit` says, such as `[detached HEAD 0123...] message`.
fn committed(printed: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(printed);
    let (head, _) = text.strip_prefix('[')?.split_once(']')?;
    let commit = head.rsplit(' ').next()?;
    // An abbreviated one is none.
    let is_whole = matches!(commit.len(), 40 | 64) && commit.bytes().all(|b| b.is_ascii_hexdigit());
    is_whole.then(|| commit.to_owned())
}

/// Returns a line that git printed, without its end.
fn line(printed: &[u8]) -> String {
    String::from_utf8_lossy(printed).trim_end_matches('\n').to_owned()
}

/// Returns a path that git printed.
fn path(mut printed: Vec<u8>) -> PathBuf {
    printed.pop_if(|last| *last == b'\n');
    PathBuf::from(OsString::from_vec(printed))
}

/// Reads a file and removes it.
async fn take(path: &Path) -> Result<Vec<u8>, GitError> {
    let bytes = read(path).await;
    let _ = tokio::fs::remove_file(path).await;
    bytes
}

async fn read(path: &Path) -> Result<Vec<u8>, GitError> {
    let file = |source| GitError::File { path: path.to_owned(), source };
    tokio::fs::read(path).await.map_err(file)
}

/// Writes a file, and the folder that it is in.
async fn write(path: &Path, bytes: &[u8]) -> Result<(), GitError> {
    let written = async {
        if let Some(folder) = path.parent() {
            tokio::fs::create_dir_all(folder).await?;
        }
        tokio::fs::write(path, bytes).await
    };
    written.await.map_err(|source| GitError::File { path: path.to_owned(), source })
}

/// Removes a folder with all that is in it, if it exists.
///
/// # Errors
/// Something in it cannot be removed.
pub(crate) async fn remove_folder(path: &Path) -> Result<(), GitError> {
    let folder = path.to_owned();
    let removed = tokio::task::spawn_blocking(move || remove_now(&folder)).await;
    let removed = removed.unwrap_or_else(|broken| Err(io::Error::other(broken)));
    removed.map_err(|source| GitError::File { path: path.to_owned(), source })
}

/// Removes a folder, if it exists. Folders that their program has made read-only are made writable,
/// and what a program writes while it is being ended is removed, too.
pub(crate) fn remove_now(path: &Path) -> io::Result<()> {
    let mut tries = 0..REMOVE_TRIES;
    loop {
        let error = match std::fs::remove_dir_all(path) {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        match error.kind() {
            io::ErrorKind::NotFound => return Ok(()),
            io::ErrorKind::PermissionDenied if tries.next().is_some() => make_writable(path)?,
            io::ErrorKind::DirectoryNotEmpty if tries.next().is_some() => {
                std::thread::sleep(REMOVE_PAUSE);
            }
            _ => return Err(error),
        }
    }
}

fn make_writable(folder: &Path) -> io::Result<()> {
    // Permissions of a link are those of what it leads to.
    if !std::fs::symlink_metadata(folder)?.is_dir() {
        return Ok(());
    }
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?;
    std::fs::read_dir(folder)?.try_for_each(|entry| make_writable(&entry?.path()))
}

#[cfg(test)]
#[path = "git_tests.rs"]
mod tests;
