//! Files that calls of a session change, in the work tree of git that its folder lies in.
//!
//! # Design
//! *A repository of the session over the user's files.* Its trees hold the files as they were before and behind
//! a call, changes that the user has not committed included; its objects are its own and those of the
//! user's repository are only read. So the user's index, branches and objects stay as they are. What
//! `.gitignore` names is not looked at.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jig_model::chain;
use jig_model::protocol::BoxFuture;
use jig_operator::error::{OperatorCode, OperatorError};
use jig_operator::journal::ChangedFiles;
use jig_operator::session::SessionUndo;
use jig_repair::git::{Git, GitError};
use tokio::time::timeout;

use crate::commands::repair::host::git_in;
use crate::render::one_line;

/// How long the work tree may take to be noted, compared or put back.
const LIMIT: Duration = Duration::from_secs(30);

/// Most files that a change names.
const MAX_FILES: usize = 50;

/// Most bytes of a patch.
const MAX_PATCH: usize = 64 << 20;

/// The work tree of a session.
pub(super) struct WorkTreeUndo {
    /// The folder in which the session was asked for.
    root: PathBuf,
    /// Where trees, patches and the repository of the session are.
    folder: PathBuf,
}

/// The repository of a session over a work tree.
struct Opened {
    git: Git,
    top: PathBuf,
}

impl WorkTreeUndo {
    /// Binds the work tree of a folder to the folder of a session.
    pub(super) fn new(root: &Path, session: &Path) -> Self {
        Self { root: root.to_owned(), folder: session.join("undo") }
    }

    fn tree_of(&self, call: u32) -> PathBuf {
        self.folder.join(format!("{call}.tree"))
    }

    /// Returns the patch that undoes a call.
    pub(super) fn patch_of(&self, call: u32) -> PathBuf {
        self.folder.join(format!("{call}.patch"))
    }

    async fn opened(&self) -> Result<Opened, OperatorError> {
        let (repository, scratch) = (self.folder.join("git"), self.folder.join("scratch"));
        fs::create_dir_all(&scratch).map_err(|error| failed(&self.folder, &error))?;
        let users = git_in(&self.root, &scratch);
        let top = users.top().await.map_err(|error| {
            let words = format!(
                "{} lies in no work tree of git that can be used: {}",
                self.root.display(),
                said(&error)
            );
            OperatorError::new(OperatorCode::Io, words).next("git init makes one").untouched()
        })?;
        let git = users.over(&repository, &top);
        if !repository.join("objects/info/alternates").is_file() {
            let made = git.run(["init", "--quiet"]).await;
            made.map_err(|error| unusable(&error))?;
            let objects =
                users.run(["rev-parse", "--path-format=absolute", "--git-path", "objects"]);
            let mut objects = objects.await.map_err(|error| unusable(&error))?;
            if objects.last() != Some(&b'\n') {
                objects.push(b'\n');
            }
            let info = repository.join("info");
            // The journal of the session may lie below the work tree, and is no work of a call.
            let own = self.folder.ancestors().nth(2).and_then(|own| own.strip_prefix(&top).ok());
            let own = own.map(|own| format!("/{}/\n", own.display())).unwrap_or_default();
            let written = fs::create_dir_all(&info)
                .and_then(|()| fs::write(info.join("exclude"), own))
                .and_then(|()| fs::create_dir_all(repository.join("objects/info")))
                .and_then(|()| fs::write(repository.join("objects/info/alternates"), objects));
            written.map_err(|error| failed(&repository, &error))?;
        }
        Ok(Opened { git, top })
    }

    async fn tree(&self, opened: &Opened) -> Result<String, OperatorError> {
        let Opened { git, .. } = opened;
        git.run(["add", "--all", "--", "."]).await.map_err(|error| unusable(&error))?;
        let tree = git.run(["write-tree"]).await.map_err(|error| unusable(&error))?;
        Ok(String::from_utf8_lossy(&tree).trim().to_owned())
    }

    async fn note_now(&self, call: u32) -> Result<(), OperatorError> {
        let opened = self.opened().await?;
        let tree = self.tree(&opened).await?;
        let path = self.tree_of(call);
        fs::write(&path, tree).map_err(|error| failed(&path, &error))
    }

    async fn changed_now(&self, call: u32) -> Result<Option<ChangedFiles>, OperatorError> {
        let Ok(before) = fs::read_to_string(self.tree_of(call)) else { return Ok(None) };
        let opened = self.opened().await?;
        let after = self.tree(&opened).await?;
        let before = before.trim();
        if before == after {
            return Ok(None);
        }
        let git = &opened.git;
        let names = ["diff-tree", "-r", "--name-only", "--no-renames", "-z", before, &after];
        let names = git.run(names).await.map_err(|error| unusable(&error))?;
        let names = String::from_utf8_lossy(&names).into_owned();
        let files = names.split_terminator('\0');
        let count = u64::try_from(files.clone().count()).unwrap_or(u64::MAX);
        let inverse = [
            "diff-tree",
            "-p",
            "--binary",
            "--full-index",
            "--no-renames",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            &after,
            before,
        ];
        let patch = git.run(inverse).await.map_err(|error| unusable(&error))?;
        if patch.len() > MAX_PATCH {
            let words = format!("the change has {} bytes, and {MAX_PATCH} are kept", patch.len());
            return Err(OperatorError::new(OperatorCode::Io, words));
        }
        let path = self.patch_of(call);
        fs::write(&path, patch).map_err(|error| failed(&path, &error))?;
        let files = files.take(MAX_FILES).map(one_line).collect();
        Ok(Some(ChangedFiles { call, step: None, files, count, unsure: false }))
    }

    async fn undo_now(&self, call: u32) -> Result<(), OperatorError> {
        let opened = self.opened().await?;
        let patch = self.patch_of(call);
        let apply = async |more: &[&str]| {
            let args = ["apply", "--whitespace=nowarn"].iter().chain(more).map(PathBuf::from);
            opened.git.run(args.chain([patch.clone()])).await
        };
        match apply(&["--check"]).await {
            Ok(_) => {
                apply(&[]).await.map_err(|error| unusable(&error))?;
                // git removes a folder with its last file, also that of the session.
                fs::create_dir_all(&self.root).map_err(|error| failed(&self.root, &error))
            }
            // It was done before, and the record of it was lost.
            Err(_) if apply(&["--check", "-R"]).await.is_ok() => Ok(()),
            Err(error) => {
                let words = format!(
                    "the files in {} are not as call {call} has left them: {}",
                    opened.top.display(),
                    said(&error)
                );
                let help =
                    format!("look at what it undoes, and do it by hand: {}", patch.display());
                Err(OperatorError::new(OperatorCode::Conflict, words).next(help).untouched())
            }
        }
    }
}

impl SessionUndo for WorkTreeUndo {
    fn note(&self, call: u32) -> BoxFuture<'_, Result<(), OperatorError>> {
        Box::pin(in_time(self.note_now(call)))
    }

    fn changed(&self, call: u32) -> BoxFuture<'_, Result<Option<ChangedFiles>, OperatorError>> {
        Box::pin(in_time(self.changed_now(call)))
    }

    fn undo(&self, call: u32) -> BoxFuture<'_, Result<(), OperatorError>> {
        Box::pin(in_time(self.undo_now(call)))
    }
}

async fn in_time<T>(
    work: impl Future<Output = Result<T, OperatorError>>,
) -> Result<T, OperatorError> {
    timeout(LIMIT, work).await.unwrap_or_else(|_| {
        let words = format!("git took longer than {} s", LIMIT.as_secs());
        Err(OperatorError::new(OperatorCode::ToolTimeout, words))
    })
}

fn said(error: &GitError) -> String {
    one_line(&chain(error))
}

fn unusable(error: &GitError) -> OperatorError {
    OperatorError::new(OperatorCode::Io, said(error)).next("jig doctor")
}

fn failed(path: &Path, error: &std::io::Error) -> OperatorError {
    OperatorError::new(OperatorCode::Io, format!("could not use {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn git(folder: &Path, args: &[&str]) -> String {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(args);
        let ran = git.current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
        assert!(ran.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    }

    struct Tree {
        folder: tempfile::TempDir,
    }

    impl Tree {
        fn new() -> Self {
            let tree = Self { folder: tempfile::tempdir().unwrap() };
            fs::create_dir_all(tree.at("work/sub")).unwrap();
            git(&tree.at("work"), &["init", "--quiet"]);
            tree.write("work/a.c", "one\n");
            tree.write("work/.gitignore", "build/\n");
            git(&tree.at("work"), &["add", "-A"]);
            git(&tree.at("work"), &["commit", "-q", "-m", "x"]);
            tree
        }

        fn at(&self, path: &str) -> PathBuf {
            self.folder.path().join(path)
        }

        fn write(&self, path: &str, text: &str) {
            fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
            fs::write(self.at(path), text).unwrap();
        }

        fn read(&self, path: &str) -> Option<String> {
            fs::read_to_string(self.at(path)).ok()
        }

        fn undo(&self) -> WorkTreeUndo {
            WorkTreeUndo::new(&self.at("work/sub"), &self.at("session"))
        }
    }

    #[tokio::test]
    async fn what_a_call_changes_is_named_and_put_back_with_what_was_not_committed() {
        let tree = Tree::new();
        tree.write("work/a.c", "one\nmine\n");
        let undo = tree.undo();
        undo.note(3).await.unwrap();
        assert_eq!(undo.changed(3).await.unwrap(), None);
        tree.write("work/a.c", "two\n");
        tree.write("work/sub/new.c", "new\0\n");
        tree.write("work/build/out.o", "ignored");
        let before = git(&tree.at("work"), &["status", "--porcelain"]);
        let change = undo.changed(3).await.unwrap().unwrap();
        assert_eq!((change.files, change.count), (vec!["a.c".into(), "sub/new.c".into()], 2));
        assert_eq!(git(&tree.at("work"), &["status", "--porcelain"]), before);
        for _ in 0..2 {
            undo.undo(3).await.unwrap();
            assert_eq!(tree.read("work/a.c").unwrap(), "one\nmine\n");
            assert_eq!(tree.read("work/sub/new.c"), None);
            assert_eq!(tree.read("work/build/out.o").unwrap(), "ignored");
        }
    }

    #[tokio::test]
    async fn files_that_others_have_changed_since_stay_as_they_are() {
        let tree = Tree::new();
        let undo = tree.undo();
        undo.note(1).await.unwrap();
        tree.write("work/a.c", "two\n");
        tree.write("work/b.c", "b\n");
        undo.changed(1).await.unwrap().unwrap();
        tree.write("work/a.c", "three\n");
        let refused = undo.undo(1).await.unwrap_err();
        assert_eq!((refused.code, refused.untouched), (OperatorCode::Conflict, true), "{refused}");
        assert_eq!(tree.read("work/a.c").unwrap(), "three\n");
        assert_eq!(tree.read("work/b.c").unwrap(), "b\n");
    }

    #[tokio::test]
    async fn a_folder_outside_of_a_work_tree_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let undo = WorkTreeUndo::new(folder.path(), &folder.path().join("session"));
        let refused = undo.note(1).await.unwrap_err();
        assert!(
            refused.message.contains("lies in no work tree of git that can be used"),
            "{refused}"
        );
        assert_eq!(undo.changed(1).await.unwrap(), None);
    }
}
