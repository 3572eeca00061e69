//! Tests with scripts as agents in a real repository.

use std::fs;
use std::time::Instant;

use super::*;
use crate::agents::AgentBudget;
use crate::patch::{Patch, Special};
use crate::tests::{SOURCE, TestPrograms, TestRepository};

const TOKEN: &str = "s3cr3t-token-value";

struct Asked {
    made: TestRepository,
    agent: CommandAgent,
    request: ProposalRequest,
}

impl Asked {
    async fn new(script: &str) -> Self {
        Self::of(TestRepository::new().await, script)
    }

    fn of(made: TestRepository, script: &str) -> Self {
        let settings = AgentCommand {
            name: "fixer".to_owned(),
            command: ["sh", "-c", script, "sh", "{bundle}"].map(str::to_owned).into(),
            timeout: Duration::from_secs(60),
            env: ["FIXER_TOKEN", "FIXER_UNSET"].map(str::to_owned).into(),
            micro_usd_per_call: None,
        };
        let variable = |name: &str| match name {
            "FIXER_TOKEN" => Some(TOKEN.into()),
            "FIXER_UNSET" => None,
            name => std::env::var_os(name),
        };
        let (bundle, scratch) = (made.folder.path().join("bundle"), made.folder.path().join("own"));
        fs::create_dir(&bundle).unwrap();
        fs::create_dir(&scratch).unwrap();
        fs::write(bundle.join("TASK.md"), "the ring skips an entry\n").unwrap();
        let time = Duration::from_secs(60);
        let request = ProposalRequest {
            sources: Arc::default(),
            bundle,
            suspects: PathBuf::new(),
            scratch,
            base: made.base.clone(),
            budget: AgentBudget { left: Usage::default(), time },
        };
        let agent =
            CommandAgent::new(settings, Arc::new(TestPrograms::default()), made.git(), variable);
        Self { made, agent, request }
    }

    /// One whose program is given the file for its usage.
    async fn with_usage(script: &str) -> Self {
        let mut asked = Self::new(script).await;
        asked.agent.settings.command.push(USAGE.to_owned());
        asked
    }

    /// Asks, and checks that nothing but the log is left and that the repository is as before.
    async fn ask(&self) -> Result<Answer, AgentError> {
        let refs = self.made.git().run(["for-each-ref"]).await.unwrap();
        let config = fs::read(self.made.repo().join(".git/config")).unwrap();
        let answer = self.agent.propose(&self.request).await;
        let entries = fs::read_dir(&self.request.scratch).unwrap();
        let left: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| name == LOG), "{left:?}");
        assert_eq!(self.made.git().run(["for-each-ref"]).await.unwrap(), refs);
        assert_eq!(fs::read(self.made.repo().join(".git/config")).unwrap(), config);
        assert!(!self.made.repo().join(".git/worktrees").exists());
        assert!(self.made.git().is_clean().await.unwrap());
        answer
    }

    async fn why(&self) -> String {
        self.ask().await.unwrap_err().why
    }

    async fn diff(&self) -> String {
        let mut answer = self.ask().await.unwrap();
        assert_eq!(answer.proposals.len(), 1);
        answer.proposals.remove(0).diff
    }

    fn log(&self) -> String {
        fs::read_to_string(self.request.scratch.join(LOG)).unwrap()
    }
}

/// The edit that the ring needs.
const FIX: &str = "sed -i 's/+ 2/+ 1/' src/ring.c";

fn fixed(diff: &str) {
    let patch = Patch::read(diff).unwrap();
    let [file] = patch.files.as_slice() else { panic!("{diff}") };
    assert_eq!((file.path(), file.special, file.changed_lines()), ("src/ring.c", None, 2));
    assert!(diff.contains("-    return head + 2;\n+    return head + 1;\n"), "{diff}");
}

#[tokio::test]
async fn the_diff_is_what_the_program_changed() {
    let script = format!(
        "{FIX}; cat \"$1/TASK.md\"; echo HYPOTHESIS: the index skips one; mkdir build; \
         echo junk > build/app.o; echo 'int x;' > src/new.c"
    );
    let asked = Asked::new(&script).await;
    let answer = asked.ask().await.unwrap();
    let [PatchProposal { diff, hypothesis }] = answer.proposals.as_slice() else {
        panic!("{answer:?}")
    };
    assert_eq!(hypothesis, "the index skips one");
    let patch = Patch::read(diff).unwrap();
    let paths: Vec<_> = patch.files.iter().map(|file| file.path()).collect();
    assert_eq!(paths, ["src/new.c", "src/ring.c"]);
    assert_eq!(answer.usage, Usage::default());
    assert_eq!(asked.log(), "the ring skips an entry\nHYPOTHESIS: the index skips one\n");
    // What is proposed can be applied.
    let file = asked.made.folder.path().join("patch.diff");
    fs::write(&file, diff).unwrap();
    asked.made.git().apply(&file).await.unwrap();
}

#[tokio::test]
async fn the_environment_holds_what_is_listed_and_nothing_else() {
    let asked = Asked::new("env | cut -d= -f1 | sort; echo \"$FIXER_TOKEN\"; exit 3").await;
    let why = asked.why().await;
    let log = asked.log();
    let names: Vec<_> = log.lines().collect();
    // The shell sets PWD and its kind by itself.
    let expected = ["FIXER_TOKEN", "HOME", "LANG", "PATH", "TMPDIR", "[removed: FIXER_TOKEN]"];
    let own = ["LANG", "PWD", "OLDPWD", "SHLVL", "_"];
    let fixed = |name: &&str| !own.contains(name);
    let found: Vec<_> = names.into_iter().filter(fixed).collect();
    assert_eq!(found, expected.into_iter().filter(|name| fixed(name)).collect::<Vec<_>>());
    assert!(why.starts_with("agent fixer: it ended with code 3: "), "{why}");
    assert!(why.ends_with("(not set: FIXER_UNSET)") && !why.contains(TOKEN), "{why}");
}

#[tokio::test]
async fn a_program_that_changes_nothing_says_so() {
    let why = Asked::new("echo I am done; mkdir build; echo x > build/app.o").await.why().await;
    assert_eq!(why, "agent fixer: it changed nothing: I am done");
}

#[tokio::test]
async fn a_program_that_fails_proposes_nothing() {
    let why = Asked::new(&format!("{FIX}; echo no key >&2; exit 1")).await.why().await;
    assert!(why.starts_with("agent fixer: it ended with code 1: no key"), "{why}");
    let why = Asked::new(&format!("{FIX}; kill -SEGV $$")).await.why().await;
    assert!(why.starts_with("agent fixer: it was ended by signal 11"), "{why}");
}

#[tokio::test]
async fn commits_stashes_and_branches_of_the_program_change_nothing() {
    let script = format!(
        "{FIX}; git add -A; git commit -q -m mine; git checkout -q -b other; \
         git config user.name Someone; echo x > note; git stash -u -q; git checkout -q --detach; \
         git worktree lock . || true"
    );
    fixed(&Asked::new(&script).await.diff().await);
}

#[tokio::test]
async fn filters_and_drivers_of_the_program_do_not_run() {
    let ran = tempfile::tempdir().unwrap();
    let mark = ran.path().join("ran");
    let evil = format!("touch '{}'; cat", mark.display());
    let script = format!(
        "{FIX}; printf '*.c filter=evil diff=evil text eol=crlf ident\\n* -diff\\n' > .gitattributes
         for key in filter.evil.clean filter.evil.smudge filter.evil.process diff.evil.textconv \
             diff.evil.command diff.external core.fsmonitor core.sshCommand; do
             git config $key \"{evil}\"; git config --global $key \"{evil}\"
         done
         git config filter.evil.required true; git config diff.noprefix true
         git config core.excludesFile /dev/null; rm -f '{}'",
        mark.display()
    );
    let diff = Asked::new(&script).await.diff().await;
    assert!(!mark.exists(), "a filter ran");
    let patch = Patch::read(&diff).unwrap();
    let paths: Vec<_> = patch.files.iter().map(|file| file.path()).collect();
    assert_eq!(paths, [".gitattributes", "src/ring.c"], "the edit of the attributes is seen");
    assert!(diff.contains("-    return head + 2;\n+    return head + 1;\n"), "{diff}");
}

#[tokio::test]
async fn filters_of_the_repository_do_not_change_a_diff() {
    let attributes = "*.c text eol=crlf ident\n";
    let files = [(".gitattributes", attributes), ("src/ring.c", SOURCE)];
    fixed(&Asked::of(TestRepository::with(&files).await, FIX).diff().await);
}

#[tokio::test]
async fn a_link_is_proposed_as_what_it_is() {
    let diff = Asked::new("ln -s /etc/passwd src/link.c; chmod +x src/ring.c").await.diff().await;
    let patch = Patch::read(&diff).unwrap();
    let specials: Vec<_> = patch.files.iter().map(|file| file.special).collect();
    assert_eq!(specials, [Some(Special::NotAFile), Some(Special::Mode)]);
}

#[tokio::test]
async fn a_changed_or_missing_git_file_does_not_matter() {
    for script in [
        "rm .git",
        "rm .git; git init -q; git add -A; git -c user.name=a -c user.email=b commit -q -m a",
        "echo 'gitdir: /nowhere' > .git",
        "rm -rf \"$(git rev-parse --git-common-dir)\"",
    ] {
        fixed(&Asked::new(&format!("{FIX}; {script}")).await.diff().await);
    }
}

#[tokio::test]
async fn changes_of_the_index_attributes_and_exclusions_do_not_matter() {
    for script in [
        "git checkout -q --orphan other; git read-tree --empty",
        "printf '*.c binary\\n' > \"$(git rev-parse --git-common-dir)/info/attributes\"",
        "echo src > \"$(git rev-parse --git-common-dir)/info/exclude\"",
        "git update-index --assume-unchanged src/ring.c",
    ] {
        fixed(&Asked::new(&format!("{FIX}; {script}")).await.diff().await);
    }
}

#[tokio::test]
async fn a_work_tree_that_is_gone_is_named() {
    for script in ["rm -rf \"$PWD\"", "cd ..; mv tree away; ln -s away tree; mv away judge.git"] {
        let why = Asked::new(script).await.why().await;
        assert_eq!(why, "agent fixer: it removed its work tree", "{script}");
    }
}

#[tokio::test]
async fn too_much_output_ends_the_program() {
    let mut asked = Asked::new(&format!("{FIX}; exec yes 0123456789")).await;
    asked.agent.most_output = 100_000;
    let why = asked.why().await;
    assert!(
        why.starts_with("agent fixer: it printed more than 100000 bytes and was ended: 0123"),
        "{why}"
    );
}

#[tokio::test]
async fn the_deadline_ends_the_program_and_what_it_started() {
    let mut asked = Asked::new(&format!("{FIX}; sleep 600 & echo $!; echo $$; wait")).await;
    asked.request.budget.time = Duration::from_millis(300);
    let begun = Instant::now();
    let why = asked.why().await;
    assert!(begun.elapsed() < Duration::from_secs(30), "it was waited for");
    assert!(why.starts_with("agent fixer: it did not end within 300ms and was ended: "), "{why}");
    let log = asked.log();
    let pids: Vec<i32> = log.lines().map(|pid| pid.parse().unwrap()).collect();
    assert_eq!(pids.len(), 2);
    for pid in pids {
        // A program that was ended and is not collected yet has no command line.
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        assert!(line.is_empty(), "{pid} runs: {}", String::from_utf8_lossy(&line));
    }
}

#[tokio::test]
async fn an_agent_that_is_not_waited_for_leaves_nothing() {
    let asked = Asked::new(&format!("{FIX}; echo $$; sleep 600")).await;
    let begun = asked.request.scratch.join("printed");
    let started = async {
        while fs::read(&begun).unwrap_or_default().is_empty() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::select! {
        answer = asked.agent.propose(&asked.request) => panic!("{answer:?}"),
        () = started => {}
    }
    assert_eq!(fs::read_dir(&asked.request.scratch).unwrap().count(), 0);
}

#[tokio::test]
async fn a_change_that_is_too_large_or_no_text_is_refused() {
    let why = Asked::new("yes 0123456789 | head -c 1200000 > big.c").await.why().await;
    assert_eq!(why, "agent fixer: its change is larger than 1048576 bytes");
    let why = Asked::new("printf 'caf\\351\\n' > latin.c").await.why().await;
    assert_eq!(why, "agent fixer: its change holds text that is not UTF-8");
}

#[tokio::test]
async fn a_change_with_a_secret_is_refused() {
    let why = Asked::new("echo \"// $FIXER_TOKEN\" > key.c").await.why().await;
    assert_eq!(why, "agent fixer: its change holds the value of FIXER_TOKEN");
}

#[tokio::test]
async fn a_program_that_does_not_exist_is_named() {
    let mut asked = Asked::new("").await;
    asked.agent.settings.command = vec!["./fix-nothing.sh".to_owned()];
    let why = asked.why().await;
    assert!(why.starts_with("agent fixer: could not run agent fixer"), "{why}");
}

#[tokio::test]
async fn a_base_that_does_not_exist_is_an_error_of_git() {
    let mut asked = Asked::new(FIX).await;
    asked.request.base = "0123456789012345678901234567890123456789".to_owned();
    let why = asked.why().await;
    assert!(why.contains("its work tree cannot be used: git worktree failed"), "{why}");
}

#[tokio::test]
async fn what_the_program_writes_of_its_usage_is_counted() {
    let usage = |text: &str| format!("printf '%s' '{text}' > \"$2\"; {FIX}");
    for (written, tokens, micro_usd) in [
        (r#"{"input_tokens":1000,"output_tokens":20,"usd":0.25}"#, 1020, 250_000),
        (r#"{"output_tokens":20}"#, 20, 70_000),
        ("{}", 0, 70_000),
    ] {
        let mut asked = Asked::with_usage(&usage(written)).await;
        asked.agent.settings.micro_usd_per_call = Some(70_000);
        asked.request.budget.left = Usage { tokens: 9999, micro_usd: 70_000 };
        let answer = asked.ask().await.unwrap();
        assert_eq!((answer.usage, answer.notes), (Usage { tokens, micro_usd }, Vec::new()));
    }
}

#[tokio::test]
async fn usage_that_cannot_be_read_costs_the_price_of_a_call() {
    for script in [
        "",
        "echo nonsense > \"$2\";",
        "echo '{\"usd\":-1}' > \"$2\";",
        "echo '{\"usd\":1e999}' > \"$2\";",
        "echo '{\"tokens\":1}' > \"$2\";",
        "ln -s /dev/zero \"$2\";",
        "mkfifo \"$2\";",
        "head -c 100000 /dev/zero > \"$2\";",
    ] {
        let mut asked = Asked::with_usage(&format!("{script} {FIX}")).await;
        asked.agent.settings.micro_usd_per_call = Some(5);
        asked.request.budget.left.micro_usd = 5;
        let answer = asked.ask().await.unwrap();
        assert_eq!(answer.usage, Usage { tokens: 0, micro_usd: 5 }, "{script}");
        assert!(answer.notes[0].starts_with("its usage is unknown"), "{:?}", answer.notes);
    }
}

#[tokio::test]
async fn a_program_without_an_answer_is_paid_for_and_none_is_started_without_money() {
    let script = "echo '{\"input_tokens\":7,\"usd\":0.5}' > \"$2\"; exit 3";
    let mut asked = Asked::with_usage(script).await;
    assert!(asked.agent.counts_usage());
    let error = asked.ask().await.unwrap_err();
    assert_eq!(error.usage, Usage { tokens: 7, micro_usd: 500_000 }, "{}", error.why);
    asked.agent.settings.micro_usd_per_call = Some(10);
    asked.request.budget.left.micro_usd = 9;
    let error = asked.ask().await.unwrap_err();
    assert_eq!(error.usage, Usage::default());
    assert!(error.why.contains("`usd-per-call`), and 9 are left"), "{}", error.why);
    asked.agent.settings.micro_usd_per_call = None;
    asked.agent.settings.command.pop();
    assert!(!asked.agent.counts_usage());
}
