//! `jig sessions`: what was asked, and what came of it.

use std::path::Path;

use jig_model::{Fault, exit};
use jig_operator::journal::{PersonRequest, SessionEntry};
use jig_operator::records::{records_of, session_otlp};
use jig_operator::session::{SessionFoldError, SessionUndo as _};
use serde_json::json;

use super::folders::{find, journal_failure, lock, names, open, root};
use super::instructions;
use super::show::{document, plan_lines, tell};
use super::work_tree::WorkTreeUndo;
use crate::args::{Common, SessionsCommand};
use crate::commands::rig::stopped;
use crate::commands::runtime::until_signalled;
use crate::failure::Failure;
use crate::render::{Screen, Style, TextTable, one_line};

/// Longest piece of a row that the log shows.
const MAX_SHOWN: usize = 160;

/// Does what was asked.
pub(crate) fn sessions(
    common: &Common,
    screen: &Screen,
    command: SessionsCommand,
) -> Result<u8, Failure> {
    match command {
        SessionsCommand::Ls => list(common, screen),
        SessionsCommand::Show(named) => {
            let (name, folder) = find(common, &named.session)?;
            let (_, session, _) = open(&folder)?;
            if screen.json() {
                screen.out_json(&document(&name, &session));
            } else {
                plan_lines(&session).iter().for_each(|line| screen.out(line));
                tell(screen, &name, &session);
            }
            Ok(exit::PASS)
        }
        SessionsCommand::Log(named) => {
            let (_, folder) = find(common, &named.session)?;
            let (_, _, rows) = open(&folder)?;
            for row in rows {
                if screen.closed() {
                    break;
                }
                if screen.json() {
                    screen.out_json(&row.exported());
                    continue;
                }
                let entry = serde_json::to_string(&row.entry).unwrap_or_default();
                let shown: String = one_line(&entry).chars().take(MAX_SHOWN).collect();
                let at = i64::try_from(row.time_ms).ok();
                let at = at.and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
                let at = at.map(|at| at.strftime("%H:%M:%S%.3f").to_string()).unwrap_or_default();
                screen.out(&format!("{at} {:>4} {shown}", row.seq));
            }
            Ok(exit::PASS)
        }
        SessionsCommand::Undo(named) => undo(common, screen, &named.session),
        SessionsCommand::Instructions(command) => {
            instructions::instructions(common, screen, command)
        }
        SessionsCommand::Export { session: named, records, otlp } => {
            let (name, folder) = find(common, &named.session)?;
            let (_, _, rows) = open(&folder)?;
            let unfolded = |error: SessionFoldError| Failure::of(Fault::Lab, &error);
            if otlp {
                let version = env!("CARGO_PKG_VERSION");
                screen.out_json(&session_otlp(&name, &rows, version).map_err(unfolded)?);
                return Ok(exit::PASS);
            }
            if records {
                let (records, _) = records_of(&name, &rows).map_err(unfolded)?;
                for (_, record) in records.iter().take_while(|_| !screen.closed()) {
                    screen.out_json(record);
                }
                return Ok(exit::PASS);
            }
            for row in rows.iter().take_while(|_| !screen.closed()) {
                screen.out_json(&row.exported());
            }
            Ok(exit::PASS)
        }
        SessionsCommand::Cancel { session: named, why } => {
            let (name, folder) = find(common, &named.session)?;
            let (mut journal, session, _) = open(&folder)?;
            if session.ended {
                return Err(Failure::new(Fault::Usage, format!("{name} has ended"))
                    .help(format!("jig sessions show {name}")));
            }
            let request = PersonRequest::Cancel { why };
            journal.append(&SessionEntry::Request(request)).map_err(journal_failure)?;
            screen.say(&format!(
                "asked {name} to end; if no process drives it: jig ask --resume {name}"
            ));
            Ok(exit::PASS)
        }
    }
}

/// Puts back the files that calls of a session have changed, the newest change first. Nothing is put back
/// where a later change cannot be.
fn undo(common: &Common, screen: &Screen, wanted: &str) -> Result<u8, Failure> {
    let (name, folder) = find(common, wanted)?;
    let _held = lock(&folder)?;
    let (mut journal, session, _) = open(&folder)?;
    let left: Vec<_> = session
        .changes
        .iter()
        .rev()
        .filter(|(_, undone)| !undone)
        .map(|(change, _)| change)
        .collect();
    let tree = WorkTreeUndo::new(Path::new(&session.charter.folder), &folder);
    let mut files = Vec::new();
    for change in left {
        let undone = until_signalled(async |cancel| {
            tokio::select! {
                undone = tree.undo(change.call) => Ok(undone),
                () = cancel.cancelled() => Err(stopped()),
            }
        })?;
        undone.map_err(|error| {
            Failure::new(error.code.fault(), one_line(&error.to_string()))
                .help(one_line(&error.next))
        })?;
        let row = SessionEntry::Request(PersonRequest::Undone { call: change.call });
        journal.append(&row).map_err(journal_failure)?;
        files.extend(change.files.iter().cloned());
        screen
            .say(&format!("call {} is undone: {} files are as before", change.call, change.count));
    }
    if screen.json() {
        screen.out_json(&json!({ "session": name, "files": files }));
    } else if files.is_empty() {
        screen.say(&format!("no call of {name} has changed files that are not as before"));
    }
    Ok(exit::PASS)
}

/// Lists sessions. JSON: `[{"session","state","request","exit_code","error"}]`.
fn list(common: &Common, screen: &Screen) -> Result<u8, Failure> {
    let root = root(common)?;
    let mut documents = Vec::new();
    let mut table = TextTable::new(&["SESSION", "STATE", "EXIT", "REQUEST"]);
    for name in names(&root)? {
        // A journal that cannot be read hides no other.
        let (state, exit, request, error) = match open(&root.join(&name)) {
            Ok((_, session, _)) => {
                let exit = session.summary.as_ref().map(|summary| summary.exit_code);
                (session.state.to_string(), exit, session.charter.text.clone(), None)
            }
            Err(failure) => ("broken".to_owned(), None, String::new(), Some(failure.message)),
        };
        documents.push(json!({
            "session": name, "state": state, "request": request, "exit_code": exit, "error": error,
        }));
        let shown: String =
            one_line(error.as_deref().unwrap_or(&request)).chars().take(80).collect();
        table.row([
            (name, Some(Style::Bold)),
            (state, None),
            (exit.map_or_else(|| "-".to_owned(), |code| code.to_string()), None),
            (shown, None),
        ]);
    }
    if screen.json() {
        screen.out_json(&documents);
    } else if documents.is_empty() {
        screen.say("no sessions yet; begin with jig ask \"which boards are free\"");
    } else {
        screen.out(&table.text(screen.out_paint()));
    }
    Ok(exit::PASS)
}
