//! Tests against real repositories.

use std::fs;

use super::*;
use crate::patch::Patch;
use crate::tests::{SOURCE, TestRepository};

/// Runs git in a folder as a user would: with its configuration, hooks and attributes.
fn user_git(folder: &Path, args: &[&str]) {
    let mut command = std::process::Command::new("git");
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", folder);
    let who = ["-c", "user.name=User", "-c", "user.email=user@localhost"];
    let output = command.current_dir(folder).args(who).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn executable(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn a_repository_without_commit_and_a_folder_without_repository_are_told_apart() {
    let made = TestRepository::new().await;
    assert_eq!(made.git().head().await.unwrap(), made.base);
    assert_eq!(made.git().at(&made.repo().join("src")).top().await.unwrap(), made.repo());
    let unborn = made.folder.path().join("unborn");
    fs::create_dir(&unborn).unwrap();
    let git = made.git().at(&unborn);
    let none = git.head().await.unwrap_err();
    assert!(none.to_string().contains("not a git repository"), "{none}");
    git.run(["init", "--quiet"]).await.unwrap();
    assert!(matches!(git.head().await, Err(GitError::Unborn)));
}

#[tokio::test]
async fn changed_files_are_named_and_untracked_files_do_not_count() {
    let made = TestRepository::new().await;
    let git = made.git();
    fs::write(made.repo().join("note.txt"), "x").unwrap();
    assert!(git.is_clean().await.unwrap());
    fs::write(made.repo().join("src/ring.c"), "int head;\n").unwrap();
    fs::write(made.repo().join("a b.c"), "").unwrap();
    git.run(["add", "a b.c"]).await.unwrap();
    let index = fs::read(made.repo().join(".git/index")).unwrap();
    assert_eq!(git.changed_files().await.unwrap(), ["a b.c", "src/ring.c"]);
    assert_eq!(fs::read(made.repo().join(".git/index")).unwrap(), index, "the index was written");
}

#[tokio::test]
async fn locks_that_a_killed_git_left_in_a_work_tree_are_removed() {
    let made = TestRepository::new().await;
    let path = made.folder.path().join("tree");
    let tree = made.git().work_tree_add(&path, &made.base).await.unwrap();
    let own = made.repo().join(".git/worktrees/tree");
    for lock in ["HEAD.lock", "index.lock"] {
        fs::write(own.join(lock), "").unwrap();
        tree.reset_hard(&made.base).await.unwrap_err();
        tree.unlock_tree().await.unwrap();
        tree.reset_hard(&made.base).await.unwrap();
    }
}

#[tokio::test]
async fn a_work_tree_takes_a_patch_as_one_commit_and_is_rolled_back() {
    let made = TestRepository::new().await;
    let path = made.folder.path().join("tree");
    let tree = made.git().work_tree_add(&path, &made.base).await.unwrap();
    fs::write(path.join("src/ring.c"), SOURCE.replace("+ 2", "+ 1")).unwrap();
    fs::write(path.join("new.c"), "int x;\n").unwrap();
    fs::create_dir(path.join("build")).unwrap();
    fs::write(path.join("build/app.elf"), "x").unwrap();
    let diff = tree.diff(&made.base, 1 << 20).await.unwrap();
    let patch = Patch::read(str::from_utf8(&diff).unwrap()).unwrap();
    let paths: Vec<_> = patch.files.iter().map(|file| file.path()).collect();
    assert_eq!(paths, ["new.c", "src/ring.c"], "ignored files are left out");

    tree.reset_hard(&made.base).await.unwrap();
    assert_eq!(fs::read_to_string(path.join("src/ring.c")).unwrap(), SOURCE);
    assert!(!path.join("new.c").exists() && path.join("build/app.elf").exists());
    tree.clean_ignored().await.unwrap();
    assert!(!path.join("build").exists());

    let file = made.scratch().join("patch.diff");
    fs::write(&file, &diff).unwrap();
    tree.apply(&file).await.unwrap();
    let commit = tree.commit("repair: candidate 1").await.unwrap();
    let shown = tree.run(["log", "--format=%P %an %s", "-1", &commit]).await.unwrap();
    assert_eq!(line(&shown), format!("{} Jig repair: candidate 1", made.base));
    assert_eq!(tree.diff(&made.base, 1 << 20).await.unwrap(), diff);
    assert_eq!(made.git().head().await.unwrap(), made.base, "the checkout of the user moved");
    assert!(made.git().is_clean().await.unwrap());
    let left: Vec<_> = fs::read_dir(made.scratch()).unwrap().collect();
    assert_eq!(left.len(), 1, "more than the patch is left: {left:?}");
}

#[tokio::test]
async fn a_patch_that_does_not_fit_changes_nothing_and_is_explained() {
    let made = TestRepository::new().await;
    let path = made.folder.path().join("tree");
    let tree = made.git().work_tree_add(&path, &made.base).await.unwrap();
    let file = made.scratch().join("patch.diff");
    let fits = "--- /dev/null\n+++ b/new.c\n@@ -0,0 +1 @@\n+int x;\n";
    let misfit = "--- a/src/ring.c\n+++ b/src/ring.c\n@@ -1 +1 @@\n-int tail;\n+int x;\n";
    fs::write(&file, format!("{fits}{misfit}")).unwrap();
    let error = tree.apply(&file).await.unwrap_err();
    let said = error.to_string();
    assert!(said.contains("git apply failed") && said.contains("src/ring.c:1"), "{said}");
    assert!(!path.join("new.c").exists());
    let missing = misfit.replace("ring.c", "ringbuffer.c");
    fs::write(&file, missing).unwrap();
    let said = tree.apply(&file).await.unwrap_err().to_string();
    assert!(said.contains("src/ringbuffer.c: does not exist in index"), "{said}");
    let said = tree.commit("empty").await.unwrap_err().to_string();
    assert!(said.starts_with("git commit failed"), "{said}");
}

#[tokio::test]
async fn a_patch_without_the_line_ends_of_its_file_is_applied() {
    let source = SOURCE.replace('\n', "\r\n").replace("    ", "\t");
    let made = TestRepository::with(&[("src/ring.c", &source)]).await;
    let file = made.scratch().join("patch.diff");
    let diff = "--- a/src/ring.c\n+++ b/src/ring.c\n@@ -3,4 +3,4 @@\n int next(void)\n {\n\
                -    return head + 2;\n+    return head + 1;\n }\n";
    fs::write(&file, diff).unwrap();
    made.git().apply(&file).await.unwrap();
    let found = fs::read_to_string(made.repo().join("src/ring.c")).unwrap();
    assert_eq!(found, source.replace("\treturn head + 2;\r\n", "    return head + 1;\n"));
    fs::write(&file, diff.replace("head + 2", "head + 3")).unwrap();
    let said = made.git().apply(&file).await.unwrap_err().to_string();
    assert!(said.contains("src/ring.c:3"), "{said}");
}

#[tokio::test]
async fn a_work_tree_is_removed_whatever_has_become_of_it() {
    let made = TestRepository::new().await;
    let git = made.git();
    let path = made.folder.path().join("tree");
    // The user's own work tree on a disk that is not there now.
    let other = made.folder.path().join("other");
    git.work_tree_add(&other, &made.base).await.unwrap();
    fs::rename(&other, made.folder.path().join("away")).unwrap();
    let listed = async || String::from_utf8(git.run(["worktree", "list"]).await.unwrap()).unwrap();
    let changes: [fn(&Path); 5] = [
        |_| {},
        |path| fs::remove_file(path.join(".git")).unwrap(),
        |path| fs::write(path.join(".git"), "gitdir: /nowhere\n").unwrap(),
        |path| fs::remove_dir_all(path).unwrap(),
        |path| {
            fs::set_permissions(path.join("src"), fs::Permissions::from_mode(0o500)).unwrap();
        },
    ];
    for (number, change) in changes.iter().enumerate() {
        git.work_tree_add(&path, &made.base).await.unwrap();
        change(&path);
        git.work_tree_remove(&path).await.unwrap();
        assert!(!path.exists(), "change {number}");
        let list = listed().await;
        assert!(!list.contains("/tree") && list.contains("/other"), "change {number}: {list}");
    }
    let unknown = git.work_tree_remove(&path).await.unwrap_err().to_string();
    assert!(unknown.contains("is not a working tree"), "{unknown}");
}

#[tokio::test]
async fn a_work_tree_that_another_process_is_adding_is_waited_for() {
    let made = TestRepository::new().await;
    let git = made.git();
    // What git has written of a work tree in the middle of adding it.
    let begun = made.repo().join(".git/worktrees/begun");
    fs::create_dir_all(&begun).unwrap();
    fs::write(begun.join("gitdir"), "/nowhere/.git\n").unwrap();
    fs::write(begun.join("commondir"), "").unwrap();
    let path = made.folder.path().join("tree");
    let stays = git.work_tree_add(&path, &made.base).await.err().unwrap().to_string();
    assert!(stays.contains("begun/commondir"), "{stays}");
    made.programs.take();
    let mut calls = 0;
    let finish = async {
        // The second call shows that the first one has failed.
        while calls < 2 {
            tokio::task::yield_now().await;
            calls += made.programs.take().iter().filter(|what| *what == "git worktree").count();
        }
        fs::write(begun.join("commondir"), "../..\n").unwrap();
    };
    let (added, ()) = tokio::join!(git.work_tree_add(&path, &made.base), finish);
    added.unwrap();
    assert_eq!(git.at(&path).head().await.unwrap(), made.base);
}

#[tokio::test]
async fn hooks_monitors_and_settings_of_the_repository_have_no_effect() {
    let made = TestRepository::new().await;
    let ran = made.folder.path().join("ran");
    let script = format!("#!/bin/sh\necho \"$0\" >> '{}'\nexit 1\n", ran.display());
    for hook in ["post-checkout", "pre-commit", "commit-msg", "post-commit", "post-index-change"] {
        executable(&made.repo().join(".git/hooks").join(hook), &script);
    }
    let monitor = made.folder.path().join("monitor");
    executable(&monitor, &script);
    let monitor = monitor.to_str().unwrap();
    for (name, value) in [
        ("core.fsmonitor", monitor),
        ("diff.external", monitor),
        ("core.pager", monitor),
        ("commit.gpgSign", "true"),
        ("gpg.program", monitor),
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("diff.renames", "copies"),
        ("color.ui", "always"),
        ("diff.context", "0"),
    ] {
        user_git(&made.repo(), &["config", name, value]);
    }
    let path = made.folder.path().join("tree");
    let tree = made.git().work_tree_add(&path, &made.base).await.unwrap();
    assert!(made.git().is_clean().await.unwrap());
    fs::write(path.join("src/ring.c"), SOURCE.replace("+ 2", "+ 1")).unwrap();
    tree.run(["add", "--all"]).await.unwrap();
    tree.commit("candidate").await.unwrap();
    let diff = String::from_utf8(tree.diff(&made.base, 1 << 20).await.unwrap()).unwrap();
    assert!(diff.contains("\n--- a/src/ring.c\n+++ b/src/ring.c\n@@ -2,5 +2,5 @@"), "{diff}");
    assert!(!ran.exists(), "{}", fs::read_to_string(&ran).unwrap());
}

#[tokio::test]
async fn what_is_done_in_a_borrowing_repository_does_not_reach_the_lender() {
    let made = TestRepository::new().await;
    let before = made.git().run(["for-each-ref"]).await.unwrap();
    let config = fs::read(made.repo().join(".git/config")).unwrap();
    let borrower = made.git().borrow(&made.folder.path().join("own.git")).await.unwrap();
    let path = made.folder.path().join("tree");
    borrower.work_tree_add(&path, &made.base).await.unwrap();
    fs::write(path.join("src/ring.c"), SOURCE.replace("+ 2", "+ 1")).unwrap();
    user_git(&path, &["stash"]);
    user_git(&path, &["checkout", "-q", "-b", "mine"]);
    user_git(&path, &["commit", "-q", "--allow-empty", "-m", "mine"]);
    user_git(&path, &["config", "user.name", "Someone"]);
    assert_eq!(made.git().run(["for-each-ref"]).await.unwrap(), before);
    assert_eq!(fs::read(made.repo().join(".git/config")).unwrap(), config);
    assert!(!made.repo().join(".git/worktrees").exists());
}

#[tokio::test]
async fn a_shallow_repository_lends_too() {
    let made = TestRepository::new().await;
    fs::write(made.repo().join("b.c"), "").unwrap();
    made.git().run(["add", "--all"]).await.unwrap();
    let second = made.git().commit("second").await.unwrap();
    let from = format!("file://{}", made.repo().display());
    user_git(made.folder.path(), &["clone", "-q", "--depth=1", &from, "shallow"]);
    let shallow = made.git().at(&made.folder.path().join("shallow"));
    let borrower = shallow.borrow(&made.folder.path().join("own.git")).await.unwrap();
    let path = made.folder.path().join("tree");
    let tree = borrower.work_tree_add(&path, &second).await.unwrap();
    let log = tree.run(["log", "--format=%s"]).await.unwrap();
    assert_eq!(line(&log), "second");
}

#[tokio::test]
async fn a_diff_that_is_too_large_is_refused() {
    let made = TestRepository::new().await;
    let text: String = (0..5000).map(|line| format!("line {line}\n")).collect();
    fs::write(made.repo().join("big.c"), text).unwrap();
    let error = made.git().diff(&made.base, 1000).await.unwrap_err();
    assert!(matches!(error, GitError::TooLarge { most: 1000, .. }), "{error}");
}
