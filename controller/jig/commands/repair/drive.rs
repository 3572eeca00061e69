//! Drives a repair run: binds its files, the rig and the agents, and shows what happens.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jig_agents::roles::RoleBook;
use jig_model::command::{CommandEvent, EventSink, PlanText};
use jig_model::{Fault, PlaceName, exit};
use jig_repair::agents::RepairAgent;
use jig_repair::agents::analyst::FailureAnalyst;
use jig_repair::agents::command::CommandAgent;
use jig_repair::agents::http::HttpAgent;
use jig_repair::agents::templates::{TEMPLATES, TemplateAgent};
use jig_repair::convergence::ExecutionMode;
use jig_repair::drive::{Waiting, drive as drive_run};
use jig_repair::driver_lock::DriverLock;
use jig_repair::git::Git;
use jig_repair::journal::{Entry, Journal, Request, now_ms};
use jig_repair::run::Run;
use jig_repair::setup::{
    BusyClock, Flashes, HeldCommit, InjectedFaults, KeptFiles, KnownBase, NamedAgent, PatchSource,
    RepairFolder, RepairSetup,
};
use jig_repair::steps::{Steps, exit_code};
use jig_repair::task::{AgentRef, RepairTask};

use super::door::RepairDoor;
use super::folders::{HELD_OUT, PLAN, TASK, as_begun, open, origin_of, policy_of, unusable};
use super::host::{programs, redactor_of, search_path};
use super::learn::{LabKnows, RepairedAt};
use super::rig::RepairRig;
use super::show::{RowFollower, document, standing, tell};
use crate::args::Common;
use crate::commands::ask::{approved, sessions_of};
use crate::commands::runtime::until_signalled;
use crate::failure::Failure;
use crate::render::Screen;

/// How often new rows are shown.
const LOOK: Duration = Duration::from_millis(100);

/// What happens in the runs of the rig is in their records.
struct Silent;

impl EventSink for Silent {
    fn event(&self, _: CommandEvent) {}
}

/// Drives a run to its end, or in the modes without a person to where it waits for an approval, or has
/// waited for a patch as long as a run may take. Ends with the exit code of the run.
pub(super) fn drive(
    common: &Common,
    screen: &Screen,
    name: &str,
    path: &Path,
    lock: DriverLock,
    faults: InjectedFaults,
) -> Result<u8, Failure> {
    let (mut setup, door, waiting, at) = bind(common, name, path)?;
    setup.faults = faults;
    let redactor = setup.redactor.clone();
    let steps = Steps(setup);
    let mut journal = Journal::open(path, redactor.clone())?;
    let watched = Journal::open(path, redactor.clone())?;
    let mut asked = Journal::open(path, redactor)?;
    let driven = until_signalled(async |cancel| {
        let run = Run::of(&journal.rows()?).map_err(|error| Failure::of(Fault::Lab, &error))?;
        let tree = steps.0.ensure_tree(&run).await;
        tree.map_err(|error| Failure::of(Fault::Lab, &error))?;
        let mut rows = RowFollower::default();
        let follow = async {
            let mut stopped = false;
            loop {
                let waits = rows.show_new(&watched, screen)?;
                if waits && waiting.awaits(&open(path)?.1, now_ms()) {
                    let (_, run) = open(path)?;
                    standing(name, path, &run).iter().for_each(|line| screen.say(line));
                }
                if cancel.is_cancelled() && !std::mem::replace(&mut stopped, true) {
                    let why = "a signal asked for it".to_owned();
                    asked.append(&Entry::Request(Request::Stop { why }))?;
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        let drive = drive_run(&mut journal, &lock, &steps, waiting);
        let driven = tokio::select! {
            driven = drive => driven.map_err(|error| Failure::of(Fault::Lab, &error)),
            followed = follow => match followed {
                Ok(never) => never,
                Err(failure) => Err(failure),
            },
        };
        door.closed().await;
        rows.show_new(&watched, screen)?;
        driven
    });
    // What is said from here on is said of a run that this process drives no longer.
    drop(lock);
    let run = driven?;
    if run.ended.is_none() {
        let (_, run) = open(path)?;
        if screen.json() {
            screen.out_json(&document(name, path, &run));
        } else {
            tell(screen, name, path, &run);
        }
        return Ok(exit::INCONCLUSIVE);
    }
    let code = ended(screen, name, path, &run);
    at.learn(name, path, &run);
    code
}

/// Shows how a run has ended, and ends with its exit code.
pub(super) fn ended(screen: &Screen, name: &str, path: &Path, run: &Run) -> Result<u8, Failure> {
    let document = path.join("result.json");
    if screen.json() {
        let text = fs::read_to_string(&document).map_err(|error| unusable(&document, &error))?;
        screen.out(text.trim_end());
    } else {
        tell(screen, name, path, run);
    }
    Ok(exit_code(run))
}

/// Binds the files of a run to its rig and to the agents of this host.
fn bind(
    common: &Common,
    name: &str,
    path: &Path,
) -> Result<(RepairSetup, Arc<RepairDoor>, Waiting, RepairedAt), Failure> {
    as_begun(path, &open(path)?.1)?;
    let text = |file: &str| {
        let path = path.join(file);
        fs::read_to_string(&path).map_err(|error| unusable(&path, &error))
    };
    let problems = |problems| Failure::problems(vec![problems]);
    let task = RepairTask::parse(TASK, &text(TASK)?).map_err(problems)?;
    let origin = origin_of(path)?;
    let plan = |file: &str| {
        let origin = path.join(file).display().to_string();
        Ok::<_, Failure>(PlanText { origin, text: text(file)? })
    };
    let held_out = path.join(HELD_OUT).is_file().then(|| plan(HELD_OUT)).transpose()?;
    let policy = policy_of(path)?;
    let place: PlaceName = task.board.parse().map_err(|e| Failure::of(Fault::Profile, &e))?;
    let screen_place = task.screen_on.as_ref().map(|place| place.parse()).transpose();
    let screen_place = screen_place.map_err(|e| Failure::of(Fault::Profile, &e))?;
    let rig = RepairRig::of_run(common, &origin)?;
    let board = rig.board(&place)?;
    let at = RepairedAt::of(rig.catalogue(), &place, Some(&board));
    let known = Arc::new(LabKnows { desk: at.desk.clone(), board: at.board.clone() });
    let sessions = sessions_of(&rig.catalogue().runs_dir());
    let door = Arc::new(rig.door(&board, Arc::new(Silent))?);
    let folder = RepairFolder::new(path);
    folder.make().map_err(|error| unusable(path, &error))?;
    let programs = programs();
    let git = Git::new(Arc::clone(&programs), &origin.repo, &folder.scratch(), &search_path());
    let variable = |name: &str| std::env::var_os(name);
    let roles = RoleBook::built_in().map_err(|error| Failure::of(Fault::Bug, &error))?;
    // Instructions that a person has approved hold for the models of each way to the rig.
    let roles = approved(roles, &sessions);
    let analyst = task.analyst.clone().map(|http| {
        Box::new(HttpAgent::new(http, roles.clone(), variable)) as Box<dyn FailureAnalyst>
    });
    let mut agents = Vec::new();
    let redactor = redactor_of(&task);
    for agent in &task.agents {
        let asked = |agent: Box<dyn RepairAgent>| PatchSource::Agent(agent);
        let (name, source) = match agent {
            AgentRef::Templates => (TEMPLATES.to_owned(), asked(Box::new(TemplateAgent))),
            AgentRef::Command(command) => {
                let (programs, git) = (Arc::clone(&programs), git.clone());
                let agent = CommandAgent::new(command.clone(), programs, git, variable);
                (format!("command:{}", command.name), asked(Box::new(agent)))
            }
            AgentRef::Http(http) => {
                let agent = HttpAgent::new(http.clone(), roles.clone(), variable);
                (format!("http:{}", http.name), asked(Box::new(agent)))
            }
            AgentRef::Mcp => ("mcp".to_owned(), PatchSource::Clients),
        };
        agents.push(NamedAgent { name, source });
    }
    let waiting = match task.mode {
        ExecutionMode::Interactive => Waiting::Await,
        // A client is the agent of such a run, and no person.
        ExecutionMode::Ci | ExecutionMode::Auto => Waiting::AwaitPatches,
    };
    let setup = RepairSetup {
        name: name.to_owned(),
        plan: plan(PLAN)?,
        held_out,
        task,
        place,
        screen_place,
        policy,
        folder,
        agents,
        analyst,
        rig: Arc::clone(&door) as _,
        known,
        programs,
        git,
        search_path: search_path(),
        redactor,
        kept: KeptFiles::default(),
        flashes: Flashes::default(),
        base: KnownBase::default(),
        held: HeldCommit::default(),
        clock: BusyClock::default(),
        faults: InjectedFaults::default(),
    };
    Ok((setup, door, waiting, at))
}
