//! Tests of whole runs: the real steps with git and builds, beside a rig and agents that answer as they
//! are told.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use super::*;
use crate::agents::{AgentError, Answer, ProposalRequest};
use crate::convergence::ExecutionMode;
use crate::drive::{Waiting, drive};
use crate::driver_lock::DriverLock;
use crate::git::remove_now;
use crate::journal::{Contract, Entry, Journal, Request, Usage};
use crate::redact::Redactor;
use crate::setup_for_tests::{ScriptedBoard, TestSetup, proposals};
use crate::tests::TestRepository;

type Board = fn(&str) -> ScriptedBoard;

/// With the right source the tests pass.
fn board(source: &str) -> ScriptedBoard {
    let right = source.contains("return head + 1;");
    if right { ScriptedBoard::PassesAll } else { ScriptedBoard::FailsOne }
}

/// One of three tests fails, whatever the source.
fn one_fails(_: &str) -> ScriptedBoard {
    ScriptedBoard::FailsOne
}

/// Number of the iteration that asks, by the folder of its evidence.
fn iteration(request: &ProposalRequest) -> u32 {
    let folder = request.bundle.parent().unwrap().file_name().unwrap().to_str().unwrap();
    folder.strip_prefix("iteration-").unwrap().parse().unwrap()
}

/// A wrong patch first and the right one then, where there is evidence.
fn second_is_right(request: &ProposalRequest) -> Result<Answer, AgentError> {
    if !request.bundle.join("failure.json").is_file() {
        let why = "there is no evidence".to_owned();
        return Err(AgentError { why, usage: Usage::default() });
    }
    Ok(proposals(&[if iteration(request) == 1 { "head + 3" } else { "head + 1" }]))
}

/// A patch that differs from all earlier ones and repairs nothing.
fn always_wrong(request: &ProposalRequest) -> Result<Answer, AgentError> {
    Ok(proposals(&[&format!("head + {}", iteration(request) + 10)]))
}

struct Journey {
    steps: Steps,
    journal: Journal,
    lock: DriverLock,
    /// Removed with the run.
    _repository: Arc<TestRepository>,
}

impl Journey {
    fn begin(test: TestSetup) -> Self {
        let folder = test.setup.folder.path().to_owned();
        let contract = Contract {
            goal: "the ring test passes".to_owned(),
            base: test.repository.base.clone(),
            ..Contract::default()
        };
        let lock = DriverLock::take(&folder).unwrap();
        let journal = Journal::begin(&folder, contract, Redactor::default()).unwrap();
        Self { steps: Steps(test.setup), journal, lock, _repository: test.repository }
    }

    async fn drive(&mut self) -> Run {
        drive(&mut self.journal, &self.lock, &self.steps, Waiting::Leave).await.unwrap()
    }

    /// Goes on behind a row in a folder of its own, as another process does.
    fn forked(&self, test: TestSetup, seq: u64) -> Self {
        let (from, to) = (self.steps.0.folder.path(), test.setup.folder.path().to_owned());
        copied(from, &to);
        let lock = DriverLock::take(&to).unwrap();
        let mut journal = self.journal.fork(seq, &to).unwrap();
        journal.append(&Entry::Request(Request::Resume)).unwrap();
        Self { steps: Steps(test.setup), journal, lock, _repository: test.repository }
    }

    /// Lists what has moved the run, in order.
    fn events(&self) -> Vec<RepairEvent> {
        let rows = self.journal.rows().unwrap().into_iter();
        rows.filter_map(|row| match row.entry {
            Entry::Outcome(outcome) => outcome.result.event,
            _ => None,
        })
        .collect()
    }

    #[track_caller]
    fn has(&self, wanted: &[RepairEvent]) {
        let events = self.events();
        for event in wanted {
            assert!(events.contains(event), "{event} is not in {events:?}");
        }
    }
}

/// Copies what a run has kept: all but its work tree, its journal and its lock.
fn copied(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let name = entry.file_name();
        let left = ["tree", "scratch", "driver.lock"];
        if left.iter().any(|one| name == *one) || name.to_str().unwrap().starts_with("journal.db") {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            copied(&entry.path(), &to.join(name));
        } else {
            fs::copy(entry.path(), to.join(name)).unwrap();
        }
    }
}

/// What must be the same however often a run was cut off.
fn end(run: &Run) -> impl PartialEq + std::fmt::Debug {
    let mut attempts: Vec<_> = run.attempts.iter().map(|one| (one.iteration, one.counts)).collect();
    // Behind a board in an unknown state a candidate is tested again.
    attempts.dedup();
    (run.ended, run.iteration, attempts, run.patches.clone(), run.image.clone())
}

async fn with_agent(
    board: Board,
    answer: impl Fn(&ProposalRequest) -> Result<Answer, AgentError> + Send + Sync + 'static,
) -> TestSetup {
    let mut test = TestSetup::new(board).await;
    test.setup.agents.clear();
    test.answer_by("script", answer);
    test
}

#[tokio::test]
async fn a_run_that_is_forked_behind_any_row_reaches_the_same_end() {
    let test = with_agent(board, second_is_right).await;
    let repository = Arc::clone(&test.repository);
    let mut whole = Journey::begin(test);
    let undisturbed = whole.drive().await;
    assert_eq!((undisturbed.ended, undisturbed.iteration), (Some(RepairState::Success), 2));
    assert_eq!(undisturbed.patches.len(), 2);
    // Behind the last row nothing goes on.
    for seq in 1..undisturbed.seq {
        let name = format!("fork-{seq}");
        let mut test = TestSetup::beside(Arc::clone(&repository), &name, board, true);
        test.setup.agents.clear();
        test.answer_by("script", second_is_right);
        let mut fork = whole.forked(test, seq);
        let begun = Run::of(&fork.journal.rows().unwrap()).unwrap();
        fork.steps.0.ensure_tree(&begun).await.unwrap();
        let run = fork.drive().await;
        let row = &whole.journal.rows().unwrap()[seq as usize - 1];
        assert_eq!(end(&run), end(&undisturbed), "forked behind {row:?}");
        remove_now(fork.steps.0.folder.path()).unwrap();
    }
}

#[tokio::test]
async fn a_run_starts_git_as_often_as_it_has_to() {
    let test = with_agent(board, |_| Ok(proposals(&["head + 1"]))).await;
    let programs = test.repository.programs.clone();
    let mut journey = Journey::begin(test);
    programs.take();
    assert_eq!(journey.drive().await.ended, Some(RepairState::Success));
    let mut git = programs.take();
    git.retain(|what| what.starts_with("git "));
    // What waits for another program at the same time has no order.
    git.sort();
    assert_eq!(
        git,
        [
            "git apply",
            "git clean",
            "git clean",
            "git commit",
            // What git has committed is reviewed, and listed for the proof.
            "git diff-tree",
            "git diff-tree",
            "git ls-tree",
            "git reset",
            "git reset",
            "git status",
            "git status",
            "git update-ref",
            "git worktree",
            "git worktree",
            "git worktree",
        ]
    );
}

#[tokio::test]
async fn results_that_vanish_end_a_run_without_another_edit() {
    // An agent with the rights of the user can remove them.
    let answer = |request: &ProposalRequest| {
        fs::remove_dir_all(request.bundle.ancestors().nth(2).unwrap().join("results")).unwrap();
        Ok(proposals(&["head + 1"]))
    };
    let mut journey = Journey::begin(with_agent(board, answer).await);
    let run = journey.drive().await;
    assert_eq!(run.ended, Some(RepairState::Aborted), "{}", run.why);
    assert!(run.why.contains("is not what the run has written"), "{}", run.why);
    assert_eq!(run.patches.len(), 0);
}

/// A run in a repository with these files beside the source and a build that also does this.
async fn with_build(files: &[(&str, &str)], also: &str) -> Journey {
    let usual = [("src/ring.c", crate::tests::SOURCE), (".gitignore", "build/\n")];
    let files: Vec<_> = usual.iter().chain(files).copied().collect();
    let repository = Arc::new(TestRepository::with(&files).await);
    let mut test = TestSetup::beside(repository, "run", board, true);
    test.setup.agents.clear();
    test.answer_by("script", |_| Ok(proposals(&["head + 1"])));
    test.setup.task.build.command[2] += &format!("; {also}");
    Journey::begin(test)
}

#[tokio::test]
async fn a_build_that_rewrites_tracked_files_makes_no_repair_unprovable() {
    let files = [("link.ld", "first\n"), ("version.txt", "1\n")];
    let mut journey = with_build(&files, "date +%N >version.txt; date +%N >link.ld").await;
    let run = journey.drive().await;
    assert_eq!(run.ended, Some(RepairState::Success), "{}", run.why);
    assert_eq!(
        run.rewritten.iter().map(String::as_str).collect::<Vec<_>>(),
        ["link.ld", "version.txt"]
    );
    let rows = journey.journal.rows().unwrap();
    let says = |row: &crate::journal::Row| match &row.entry {
        Entry::Outcome(outcome) => outcome
            .result
            .reason
            .contains("the build rewrites link.ld, version.txt, which git tracks"),
        _ => false,
    };
    assert!(rows.iter().any(says), "{rows:?}");
}

#[tokio::test]
async fn a_build_that_rewrites_a_protected_file_with_the_patch_alone_proves_nothing() {
    let also = "if grep -q 'head + 1' src/ring.c; then echo other >link.ld; fi";
    let mut journey = with_build(&[("link.ld", "first\n")], also).await;
    journey.steps.0.task.limits.iterations = 1;
    let run = journey.drive().await;
    assert_ne!(run.ended, Some(RepairState::Success), "{}", run.why);
    let proof = run.proof.unwrap();
    assert_eq!(proof.rewritten_protected, ["link.ld"]);
    assert_eq!(proof.changed_protected, [""; 0]);
}

#[tokio::test]
async fn an_image_that_was_replaced_ends_a_run() {
    // An agent has the rights of the user. The image of the base is tested again for the proof.
    let answer = |request: &ProposalRequest| {
        let images = request.bundle.ancestors().nth(2).unwrap().join("images");
        for image in fs::read_dir(images).unwrap() {
            fs::write(image.unwrap().path(), "another image").unwrap();
        }
        Ok(proposals(&["head + 1"]))
    };
    let mut journey = Journey::begin(with_agent(board, answer).await);
    let run = journey.drive().await;
    assert_eq!(run.ended, Some(RepairState::Aborted), "{}", run.why);
    assert!(run.why.contains("is not the image that was built"), "{}", run.why);
}

#[tokio::test]
async fn a_log_that_is_gone_is_collected_again_and_then_missed() {
    let board = |source: &str| match source.contains("head + 1;") {
        true => ScriptedBoard::LosesLog,
        false => ScriptedBoard::FailsOne,
    };
    let answer = |_: &ProposalRequest| Ok(proposals(&["head + 1"]));
    let mut journey = Journey::begin(with_agent(board, answer).await);
    let run = journey.drive().await;
    assert_eq!((run.ended, run.iteration), (Some(RepairState::Failure), 1), "{}", run.why);
    journey.has(&[RepairEvent::ArtifactsMissing, RepairEvent::RecoveredToCollection]);
}

#[tokio::test]
async fn a_build_program_that_is_gone_ends_a_run_as_the_hosts_fault() {
    let mut test = TestSetup::new(board).await;
    let tools = test.repository.folder.path().join("tools");
    fs::create_dir(&tools).unwrap();
    std::os::unix::fs::symlink("/bin/sh", tools.join("builder")).unwrap();
    let path = [tools.clone()].into_iter().chain(std::env::split_paths(&test.setup.search_path));
    test.setup.search_path = std::env::join_paths(path).unwrap();
    test.setup.task.build.command[0] = "builder".to_owned();
    test.setup.agents.clear();
    test.answer_by("script", move |_| {
        fs::remove_dir_all(&tools).unwrap();
        Ok(proposals(&["head + 1"]))
    });
    let mut journey = Journey::begin(test);
    let run = journey.drive().await;
    journey.has(&[RepairEvent::ToolchainMissing]);
    assert_eq!((run.ended, run.iteration), (Some(RepairState::Failure), 1), "{}", run.why);
    assert_eq!(exit_code(&run), jig_model::exit::LAB);
}

#[tokio::test]
async fn a_lock_that_a_killed_git_has_left_is_removed_and_costs_no_iteration() {
    let test = with_agent(board, |_| Ok(proposals(&["head + 1"]))).await;
    let mut other = TestSetup::beside(Arc::clone(&test.repository), "fork", board, true);
    other.answer(Ok(proposals(&["head + 1"])));
    let mut whole = Journey::begin(test);
    let undisturbed = whole.drive().await;
    let rows = whole.journal.rows().unwrap();
    let begins = |row: &&crate::journal::Row| matches!(&row.entry, Entry::Intent(intent) if intent.state == RepairState::BuildSetup);
    let seq = rows.iter().find(begins).unwrap().seq;
    let mut fork = whole.forked(other, seq);
    let begun = Run::of(&fork.journal.rows().unwrap()).unwrap();
    fork.steps.0.ensure_tree(&begun).await.unwrap();
    let own = fork.steps.0.tree().run(["rev-parse", "--absolute-git-dir"]).await.unwrap();
    let lock = Path::new(String::from_utf8(own).unwrap().trim()).join("index.lock");
    fs::write(&lock, "").unwrap();
    let run = fork.drive().await;
    fork.has(&[RepairEvent::ToolchainMissing, RepairEvent::RecoveredToBuildSetup]);
    assert_eq!(end(&run), end(&undisturbed), "{}", run.why);
}

/// Builds by a script that gets the folder of the repository as its argument.
fn built_by(test: &mut TestSetup, script: &str) {
    let folder = test.repository.folder.path().display().to_string();
    let script = format!("{script}\nmkdir -p build && cp src/ring.c build/app.elf");
    test.setup.task.build.command =
        ["sh", "-c", &script, "sh", &folder].map(str::to_owned).to_vec();
}

#[tokio::test]
async fn a_host_that_builds_no_more_is_blamed_on_no_candidate_of_a_trial() {
    let mut test = TestSetup::new(board).await;
    built_by(&mut test, "test ! -e \"$1/gone\" || { echo cc: not found >&2; exit 127; }");
    let gone = test.repository.folder.path().join("gone");
    test.setup.agents.clear();
    test.answer_by("script", move |_| {
        fs::write(&gone, "").unwrap();
        Ok(proposals(&["head + 3", "head + 1"]))
    });
    let mut journey = Journey::begin(test);
    let run = journey.drive().await;
    assert_eq!((run.ended, run.iteration), (Some(RepairState::Aborted), 1), "{}", run.why);
    assert_eq!(exit_code(&run), jig_model::exit::LAB);
    assert!(run.screened.is_empty() && run.why.contains("does not build any more"), "{}", run.why);
}

#[tokio::test]
async fn a_candidate_that_does_not_link_costs_one_build_of_the_base() {
    let mut test = TestSetup::new(board).await;
    let linker = "ld: /tmp/cc$$.o: undefined reference to gone";
    built_by(
        &mut test,
        &format!("grep -q 'head + 3' src/ring.c && {{ echo \"{linker}\"; exit 1; }}"),
    );
    test.setup.agents.clear();
    test.answer_by("script", second_is_right);
    let programs = test.repository.programs.clone();
    let mut journey = Journey::begin(test);
    programs.take();
    let run = journey.drive().await;
    assert_eq!((run.ended, run.iteration), (Some(RepairState::Success), 2), "{}", run.why);
    journey.has(&[RepairEvent::BuildFailed, RepairEvent::RecoveredToBuild]);
    let builds = programs.take().iter().filter(|what| *what == "build").count();
    // The baseline; the wrong patch, the base, the wrong patch again; the right patch and its clean build.
    assert_eq!(builds, 6);
}

#[tokio::test]
async fn a_place_that_is_not_fit_is_recovered_before_the_test() {
    let test = with_agent(board, |_| Ok(proposals(&["head + 1"]))).await;
    test.unfit.store(1, SeqCst);
    let mut journey = Journey::begin(test);
    let run = journey.drive().await;
    assert_eq!((run.ended, run.iteration), (Some(RepairState::Success), 1), "{}", run.why);
    journey.has(&[RepairEvent::EnvironmentFailed, RepairEvent::RecoveredToTestSetup]);
}

#[tokio::test]
async fn a_plateau_ends_as_the_mode_says() {
    use RepairEvent as E;
    for (mode, event, ended) in [
        (ExecutionMode::Interactive, E::HumanReview, RepairState::Aborted),
        (ExecutionMode::Ci, E::AcceptedWithWarning, RepairState::Success),
        (ExecutionMode::Auto, E::StrategySwitched, RepairState::Failure),
    ] {
        let mut test = with_agent(one_fails, always_wrong).await;
        test.setup.task.mode = mode;
        let mut journey = Journey::begin(test);
        let run = journey.drive().await;
        journey.has(&[event]);
        assert_eq!(run.ended, Some(ended), "{mode}: {}", run.why);
        assert_ne!(exit_code(&run), jig_model::exit::PASS, "{mode}");
    }
}

#[tokio::test]
async fn a_plateau_is_followed_by_the_next_agent() {
    let mut test = with_agent(one_fails, always_wrong).await;
    let asked = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let counted = Arc::clone(&asked);
    test.answer_by("second", move |request| {
        counted.fetch_add(1, SeqCst);
        always_wrong(request)
    });
    let mut journey = Journey::begin(test);
    let run = journey.drive().await;
    journey.has(&[RepairEvent::StrategySwitched]);
    assert!(run.strategy >= 1 && asked.load(SeqCst) > 0, "{}", run.why);
}
