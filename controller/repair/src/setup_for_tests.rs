//! A run's setup for tests of steps: a repository, a build that copies its source, and a rig and an
//! agent that answer as they are told.

use std::future::pending;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jig_model::command::{CheckReply, Command, PlanText, Refusal, Reply, RunReply};
use jig_model::protocol::BoxFuture;
use jig_model::result::{CaseStatus, TestCase};
use jig_model::{Cause, Evidence, Fault, ImageSeen, Verdict};

use crate::agents::{AgentError, Answer, PatchProposal, ProposalRequest, RepairAgent};
use crate::analysis::Preset;
use crate::convergence::{ExecutionMode, TestCounts};
use crate::journal::{Digest, FailedBaseline, Proposed, Usage, now_ms};
use crate::patch::Patch;
use crate::policy::Policy;
use crate::redact::Redactor;
use crate::rig::RigDoor;
use crate::run::Run;
use crate::runs_for_tests::begun;
use crate::setup::{
    BusyClock, Flashes, HeldCommit, InjectedFaults, KeptFiles, KnownBase, NamedAgent, PatchSource,
    RepairFolder, RepairSetup,
};
use crate::task::{BuildTask, RepairLimits, RepairTask};
use crate::tests::TestRepository;

/// How a board behaves with a firmware.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScriptedBoard {
    /// The tests end so.
    Ends(Cause),
    /// Three tests pass.
    PassesAll,
    /// One of three tests fails.
    FailsOne,
    /// The tests pass, and the log is gone.
    LosesLog,
    /// The run of the plan never ends.
    Hangs,
    /// The rig does not accept the command.
    Refuses,
}

/// A rig that answers by the firmware, which is its source here.
struct ScriptedRig {
    board: fn(&str) -> ScriptedBoard,
    recovers: bool,
    folder: RepairFolder,
    runs: Mutex<u32>,
    /// Checks that find the place unfit.
    unfit: Arc<AtomicU32>,
}

impl RigDoor for ScriptedRig {
    fn execute(&self, command: Command) -> BoxFuture<'_, Result<Reply, Refusal>> {
        Box::pin(async move {
            if let Command::Check(_) = &command {
                let one_less = |unfit: u32| unfit.checked_sub(1);
                let usable = self.unfit.fetch_update(SeqCst, SeqCst, one_less).is_err();
                let (place, state) = ("ring".to_owned().try_into().unwrap(), "known".to_owned());
                return Ok(Reply::Checked(CheckReply {
                    place,
                    checks: Vec::new(),
                    state,
                    usable,
                    in_use: None,
                }));
            }
            let board = match &command {
                Command::Test(test) => {
                    let image = test.image.as_deref().unwrap();
                    (self.board)(&std::fs::read_to_string(image).unwrap())
                }
                _ if self.recovers => ScriptedBoard::Ends(Cause::Passed),
                _ => ScriptedBoard::Ends(Cause::PowerMismatch),
            };
            let cause = match board {
                ScriptedBoard::Ends(cause) => cause,
                ScriptedBoard::FailsOne => Cause::TestFailed,
                ScriptedBoard::PassesAll | ScriptedBoard::LosesLog => Cause::Passed,
                ScriptedBoard::Hangs => pending().await,
                ScriptedBoard::Refuses => {
                    let message = "no such place".to_owned();
                    let (fault, help, problems) = (Fault::Lab, None, Vec::new());
                    return Err(Refusal { fault, message, help, problems });
                }
            };
            let number = {
                let mut runs = self.runs.lock().unwrap();
                *runs += 1;
                *runs
            };
            let mut verdict = Verdict::of(cause, format!("{cause}"));
            if let ScriptedBoard::FailsOne | ScriptedBoard::PassesAll = board {
                let last = if cause == Cause::Passed { CaseStatus::Pass } else { CaseStatus::Fail };
                let cases = [("a", CaseStatus::Pass), ("b", CaseStatus::Pass), ("c", last)];
                verdict.tests.cases = cases.map(|(name, status)| case(name, status)).to_vec();
            }
            verdict.image_seen = Some(ImageSeen::Loaded);
            if board == ScriptedBoard::LosesLog {
                let note = "PASS".to_owned();
                verdict.evidence = vec![Evidence { file: "gone".into(), start: 0, end: 4, note }];
            }
            Ok(Reply::Run(RunReply {
                run: format!("run-{number}").try_into().unwrap(),
                dir: self.folder.path().join("runs").join(number.to_string()),
                exit_code: u8::from(cause != Cause::Passed),
                verdict,
                not_struck: Vec::new(),
            }))
        })
    }

    fn is_real(&self) -> bool {
        false
    }

    fn measures_coverage(&self) -> bool {
        false
    }
}

fn case(name: &str, status: CaseStatus) -> TestCase {
    let name = name.to_owned();
    TestCase { name, status, message: None, duration_ms: None, start: 0, end: 0 }
}

/// What an agent answers.
type Answered = Result<Answer, AgentError>;

/// An agent with answers.
struct ScriptedAgent(Box<dyn Fn(&ProposalRequest) -> Answered + Send + Sync>);

impl RepairAgent for ScriptedAgent {
    fn propose<'a>(&'a self, request: &'a ProposalRequest) -> BoxFuture<'a, Answered> {
        Box::pin(async { (self.0)(request) })
    }
}

/// A repository and the setup of a run beside it.
pub(crate) struct TestSetup {
    pub(crate) setup: RepairSetup,
    pub(crate) repository: Arc<TestRepository>,
    /// How many checks find the place unfit.
    pub(crate) unfit: Arc<AtomicU32>,
}

impl TestSetup {
    /// Makes a run whose board behaves so, with its work tree at the base. No agent is asked.
    pub(crate) async fn new(board: fn(&str) -> ScriptedBoard) -> Self {
        Self::with_rig(board, true).await
    }

    /// Makes one whose rig recovers, or does not.
    pub(crate) async fn with_rig(board: fn(&str) -> ScriptedBoard, recovers: bool) -> Self {
        let test = Self::beside(Arc::new(TestRepository::new().await), "run", board, recovers);
        let tree = test.setup.folder.tree();
        test.setup.git.work_tree_add(&tree, &test.repository.base).await.unwrap();
        test
    }

    /// Makes another one for the same repository, without a work tree.
    pub(crate) fn beside(
        repository: Arc<TestRepository>,
        name: &str,
        board: fn(&str) -> ScriptedBoard,
        recovers: bool,
    ) -> Self {
        let folder = RepairFolder::new(repository.folder.path().join(name));
        folder.make().unwrap();
        let unfit = Arc::new(AtomicU32::new(0));
        let (runs, told) = (Mutex::default(), Arc::clone(&unfit));
        let rig = ScriptedRig { board, recovers, folder: folder.clone(), runs, unfit: told };
        let copy = ["sh", "-c", "mkdir -p build && cp src/ring.c build/app.elf"];
        let task = RepairTask {
            goal: "the ring test passes".to_owned(),
            repo: repository.repo(),
            board: "ring".to_owned(),
            screen_on: None,
            plan: "plan.toml".into(),
            held_out: None,
            mode: ExecutionMode::Ci,
            preset: Preset::Balanced,
            agents: Vec::new(),
            analyst: None,
            build: BuildTask {
                command: copy.map(str::to_owned).to_vec(),
                artifact: Some("build/app.elf".into()),
                timeout: Duration::from_secs(60),
            },
            limits: RepairLimits::default(),
            policy: None,
        };
        let setup = RepairSetup {
            name: name.to_owned(),
            task,
            place: "ring".to_owned().try_into().unwrap(),
            screen_place: None,
            plan: PlanText { origin: "plan.toml".to_owned(), text: String::new() },
            held_out: None,
            policy: Policy::default(),
            folder,
            agents: vec![NamedAgent { name: "clients".to_owned(), source: PatchSource::Clients }],
            analyst: None,
            rig: Arc::new(rig),
            programs: Arc::new(repository.programs.clone()),
            git: repository.git(),
            search_path: std::env::var_os("PATH").unwrap(),
            redactor: Redactor::default(),
            kept: KeptFiles::default(),
            flashes: Flashes::default(),
            base: KnownBase::default(),
            held: HeldCommit::default(),
            known: Arc::new(crate::known::NothingKnown),
            clock: BusyClock::default(),
            faults: InjectedFaults::default(),
        };
        Self { setup, repository, unfit }
    }

    /// Has one agent answer.
    pub(crate) fn answer(&mut self, answer: Answered) {
        self.setup.agents.clear();
        self.answer_by("script", move |_| answer.clone());
    }

    /// Adds an agent to the ladder.
    pub(crate) fn answer_by(
        &mut self,
        name: &str,
        answer: impl Fn(&ProposalRequest) -> Answered + Send + Sync + 'static,
    ) {
        let source = PatchSource::Agent(Box::new(ScriptedAgent(Box::new(answer))));
        self.setup.agents.push(NamedAgent { name: name.to_owned(), source });
    }

    /// The run, in its first iteration, behind a baseline that fails.
    pub(crate) fn run(&self) -> Run {
        let mut run = begun(now_ms());
        run.contract.base.clone_from(&self.repository.base);
        run.baseline = Some(FailedBaseline {
            counts: TestCounts { passed: 0, total: 1 },
            signature: "assert".to_owned(),
            run: "baseline".to_owned(),
            image: "base".to_owned(),
            silent: false,
        });
        run
    }

    /// The run behind a proposal of an agent.
    pub(crate) fn proposed(&self, agent: &str, diff: &str) -> Run {
        let mut run = self.run();
        let patch = Patch::read(diff).unwrap();
        let (patch, diff) = (patch.id(), patch.to_string());
        let path = self.setup.folder.patch(&patch);
        self.setup.folder.write(&path, diff.as_bytes()).unwrap();
        run.proposed = Some(Proposed {
            patch,
            diff: Digest::of(diff.as_bytes()).to_string(),
            agent: agent.to_owned(),
            hypothesis: "one too far".to_owned(),
            usage: Usage::default(),
            diagnostic: false,
        });
        run
    }
}

/// A patch of the repository's source that has it return something else.
pub(crate) fn diff(returned: &str) -> String {
    format!(
        "--- a/src/ring.c\n+++ b/src/ring.c\n@@ -3,4 +3,4 @@\n int next(void)\n {{\n\
         -    return head + 2;\n+    return {returned};\n }}\n"
    )
}

/// An answer with one proposal for each of these.
pub(crate) fn proposals(returned: &[&str]) -> Answer {
    let proposal = |returned: &&str| PatchProposal {
        diff: diff(returned),
        hypothesis: format!("it should return {returned}"),
    };
    let usage = Usage { tokens: 10, micro_usd: 3 };
    Answer { proposals: returned.iter().map(proposal).collect(), usage, notes: Vec::new() }
}
