//! Drives a session: binds it to the rig, and goes on until it has ended or waits for a person.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jig_model::access::AccessRight;
use jig_model::redact::Redactor;
use jig_model::{Fault, SessionTrace, exit};
use jig_operator::config::AgentsFile;
use jig_operator::journal::{PersonRequest, SessionEntry, SessionJournal, SessionLock};
use jig_operator::machine::OperatorState;
use jig_operator::mcp::ToolDoors;
use jig_operator::plan::RiskLevel;
use jig_operator::planner::WordsPlanner;
use jig_operator::session::{Session, SessionBinding, drive as drive_session};
use jig_operator::tools::{RigToolDoor, ToolPolicy};

use tokio::task::spawn_blocking;

use super::bind::{BoardUsers, FolderFiles, RowWatcher, agents_file};
use super::folders::{journal_failure, lock, open, open_with};
use super::models::{SessionModel, session_model};
use super::others;
use super::person::answered;
use super::remember::HostMemory;
use super::show::{document, tell};
use super::work_tree::WorkTreeUndo;
use crate::args::{AskArgs, Common};
use crate::commands::mcp::LabCalls;
use crate::commands::rig::stopped;
use crate::commands::runtime::until_signalled;
use crate::failure::Failure;
use crate::render::{Screen, one_line};

/// How often a signal is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// Goes on with a session, with what the person says to it.
pub(super) fn resume(
    common: &Common,
    screen: &Screen,
    (name, folder): (&str, &Path),
    args: &AskArgs,
) -> Result<u8, Failure> {
    let (mut journal, session, _) = open(folder)?;
    let held = lock(folder)?;
    let words = args.words.join(" ");
    let refused =
        |words: String| Failure::new(Fault::Usage, words).help(format!("jig sessions show {name}"));
    if session.ended && (!words.is_empty() || args.confirm.is_some() || args.refuse) {
        return Err(refused(format!("{name} has ended, and asks nothing any more")));
    }
    if session.ended {
        return ended(screen, name, &session);
    }
    asked_here(name, &session)?;
    let mut requests = vec![PersonRequest::Resume];
    match session.state {
        OperatorState::Clarifying if !words.is_empty() => {
            let answers: Vec<String> =
                words.split(';').map(|answer| answer.trim().to_owned()).collect();
            let (given, wanted) = (answers.len(), session.questions.len());
            if given != wanted {
                let words = format!("{given} answers were given to {wanted} questions");
                return Err(refused(words));
            }
            requests.push(PersonRequest::Answer { answers });
        }
        OperatorState::AwaitingConfirmation => requests.extend(confirmation(&session, args, name)?),
        _ if !words.is_empty() => return Err(refused(format!("{name} asks nothing"))),
        _ if args.confirm.is_some() || args.refuse => {
            return Err(refused(format!("{name} waits for no confirmation")));
        }
        _ => {}
    }
    let rows: Vec<_> = requests.into_iter().map(SessionEntry::Request).collect();
    journal.append_all(&rows).map_err(journal_failure)?;
    drop((journal, held));
    drive(common, screen, (name, folder), session.seq)
}

/// Refuses to go on with a session that was asked for elsewhere: its boards and files are those of another host,
/// and what was confirmed there was not confirmed here.
fn asked_here(name: &str, session: &Session) -> Result<(), Failure> {
    let (here, folder) = (jig_rig::store::host_name(), &session.charter.folder);
    if let Some(host) = session.charter.host.as_ref().filter(|host| **host != here) {
        let words = format!("{name} was asked for on {}, and this is {here}", one_line(host));
        let help = format!("go on with it there, or ask anew; jig sessions show {name}");
        return Err(Failure::new(Fault::Usage, words).help(help));
    }
    if !Path::new(folder).is_dir() {
        let folder = one_line(folder);
        let words = format!("the folder in which {name} was asked for, {folder}, is not there");
        return Err(Failure::new(Fault::Usage, words).help(
            "put it back, or ask anew: the files of a session are named relative to its folder",
        ));
    }
    Ok(())
}

/// Reads the confirmation out of the arguments.
fn confirmation(
    session: &Session,
    args: &AskArgs,
    name: &str,
) -> Result<Option<PersonRequest>, Failure> {
    let Some(waits) = &session.waits else { return Ok(None) };
    let digest = waits.digest.clone();
    if args.refuse {
        return Ok(Some(PersonRequest::Confirm { yes: false, digest }));
    }
    if let Some(given) = &args.confirm {
        let given = given.strip_prefix("sha256:").unwrap_or(given);
        if given != digest {
            let words = format!("{name} does not wait for a confirmation of {given}");
            return Err(Failure::new(Fault::Usage, words).help(format!(
                "it waits for {digest}; look at it again: jig sessions show {name}"
            )));
        }
        return Ok(Some(PersonRequest::Confirm { yes: true, digest }));
    }
    let highest = session.dangers.iter().map(|danger| danger.risk).max().unwrap_or(RiskLevel::High);
    let allowed = args.yes.is_some_and(|level| RiskLevel::from(level) >= highest);
    Ok(allowed.then_some(PersonRequest::Confirm { yes: true, digest }))
}

/// Drives a session to its end, or to where it waits for a person that is not there. Rows behind row `told`
/// were written by this process.
pub(super) fn drive(
    common: &Common,
    screen: &Screen,
    (name, folder): (&str, &Path),
    mut told: u64,
) -> Result<u8, Failure> {
    let held = lock(folder)?;
    let (_, mut session, _) = open(folder)?;
    let sessions = folder.parent().unwrap_or(Path::new("."));
    let SessionModel { model, redactor } = match session.charter.model.as_ref() {
        None => session_model(common, &AgentsFile::default(), None, sessions),
        wanted => session_model(common, &agents_file(common)?, wanted, sessions),
    };
    let mut journal = open_with(folder, redactor.clone())?;
    let root = session.charter.folder.clone();
    // What a plan may do is confirmed by the person who asks; what reaches the rig's host is not planned.
    let rights = [AccessRight::See, AccessRight::Use, AccessRight::Flash, AccessRight::Power];
    let policy: ToolPolicy = rights.into_iter().collect();
    loop {
        let calls = Arc::new(LabCalls::open(common, None, Some(Path::new(&root)))?);
        let door = RigToolDoor::new(Arc::clone(&calls) as _, policy.clone());
        let door = match asked(name, &session) {
            Some(asked) => door.asked_in(asked),
            None => door,
        };
        let servers = Arc::new(others::bound(common)?);
        let rows = journal.rows().map_err(journal_failure)?;
        let watcher = RowWatcher::new(screen, name, (&rows, told));
        let watcher = watcher.map_err(|error| Failure::of(Fault::Lab, &error))?;
        let binding = SessionBinding {
            door: Arc::new(ToolDoors::new(vec![Arc::new(door), Arc::clone(&servers) as _])),
            events: Arc::new(BoardUsers(screen.clone())),
            planner: Arc::new(WordsPlanner),
            model: model.clone(),
            files: Arc::new(FolderFiles(Arc::clone(&calls))),
            now: jiff::Timestamp::now,
            watcher: Arc::new(watcher),
            undo: Arc::new(WorkTreeUndo::new(Path::new(&root), folder)),
            memory: Arc::new(HostMemory::of(common, sessions, name)),
        };
        let learn = others::learnt(&servers, &session, screen);
        let about = (folder, redactor.clone(), learn);
        session = driven(&mut journal, &held, &binding, &calls, about)?;
        if session.ended {
            break;
        }
        told = session.seq;
        let Some(request) = ask_person(screen, name, &session)? else { break };
        journal.append(&SessionEntry::Request(request)).map_err(journal_failure)?;
    }
    ended(screen, name, &session)
}

/// Returns how records of runs name the session; nothing for one of an older program, whose trace has no id
/// of this form.
fn asked(name: &str, session: &Session) -> Option<SessionTrace> {
    let trace_id = session.charter.trace_id.parse().ok()?;
    Some(SessionTrace { session: name.parse().ok()?, trace_id })
}

/// Asks the person, unless a signal comes first. The session waits meanwhile, and can be gone on with.
fn ask_person(
    screen: &Screen,
    name: &str,
    session: &Session,
) -> Result<Option<PersonRequest>, Failure> {
    until_signalled(async |cancel| {
        let (screen, name, session) = (screen.clone(), name.to_owned(), session.clone());
        let answer = spawn_blocking(move || answered(&screen, &name, &session));
        tokio::select! {
            answer = answer => answer.map_err(|error| Failure::of(Fault::Bug, &error)),
            () = cancel.cancelled() => Err(stopped()),
        }
    })
}

/// Drives until the session has ended or waits. A signal asks for its end; calls under way are brought to
/// theirs in order.
fn driven(
    journal: &mut SessionJournal,
    held: &SessionLock,
    binding: &SessionBinding,
    calls: &LabCalls,
    (folder, redactor, learn): (&Path, Redactor, impl Future<Output = ()>),
) -> Result<Session, Failure> {
    let mut asking = open_with(folder, redactor)?;
    until_signalled(async |cancel| {
        let stop = async {
            while !cancel.is_cancelled() {
                tokio::time::sleep(LOOK).await;
            }
            let why = "a signal asked for it".to_owned();
            let asked = asking.append(&SessionEntry::Request(PersonRequest::Cancel { why }));
            match asked {
                // The session ends, and this with it.
                Ok(()) => std::future::pending::<Failure>().await,
                Err(error) => journal_failure(error),
            }
        };
        let driven = tokio::select! {
            driven = async {
                learn.await;
                drive_session(journal, held, binding).await
            } => driven.map_err(|error| Failure::of(Fault::Lab, &error)),
            failure = stop => Err(failure),
        };
        calls.closed().await;
        driven
    })
}

/// Shows where a session stands, and returns its exit code.
fn ended(screen: &Screen, name: &str, session: &Session) -> Result<u8, Failure> {
    if screen.json() {
        screen.out_json(&document(name, session));
    } else {
        tell(screen, name, session);
    }
    Ok(session.summary.as_ref().map_or(exit::INCONCLUSIVE, |summary| summary.exit_code))
}
