//! `jig sessions instructions`: what sessions have taught, as revisions that a person approves.

use jig_model::{Fault, exit};
use jig_operator::memory::{
    CaseComparison, CaseRole, CaseStore, InstructionRevision, RevisionStatus,
};
use serde_json::json;

use super::folders::root;
use crate::args::{Common, InstructionsCommand, own_name};
use crate::failure::Failure;
use crate::render::{Screen, Style, TextTable, one_line};

/// Does what was asked.
pub(super) fn instructions(
    common: &Common,
    screen: &Screen,
    command: InstructionsCommand,
) -> Result<u8, Failure> {
    let root = root(common)?;
    std::fs::create_dir_all(&root).map_err(|error| super::folders::unusable(&root, &error))?;
    let mut store = CaseStore::open(&root)?;
    match command {
        InstructionsCommand::Ls => list(screen, &store),
        InstructionsCommand::Show { what } => show(screen, &store, &what),
        InstructionsCommand::Approve { number, anyway } => {
            decide(screen, &mut store, number, (true, anyway))
        }
        InstructionsCommand::Reject { number } => {
            decide(screen, &mut store, number, (false, false))
        }
    }
}

/// Lists roles and revisions. JSON: `{"roles":[{"role","version","text"}],"revisions":[REVISION]}`.
fn list(screen: &Screen, store: &CaseStore) -> Result<u8, Failure> {
    let revisions = store.revisions()?;
    let roles = CaseRole::ALL.iter().map(|role| store.instruction(*role));
    let roles = roles.collect::<Result<Vec<_>, _>>()?;
    if screen.json() {
        screen.out_json(&json!({ "roles": roles, "revisions": revisions }));
        return Ok(exit::PASS);
    }
    let mut table = TextTable::new(&["ROLE", "VERSION"]);
    for role in &roles {
        table.row([(role.role.to_string(), Some(Style::Bold)), (role.version.to_string(), None)]);
    }
    screen.out(&table.text(screen.out_paint()));
    if revisions.is_empty() {
        screen.say("no revision was proposed: no failure class has come back three times");
        return Ok(exit::PASS);
    }
    let mut table = TextTable::new(&["REVISION", "STATUS", "FAILURE CLASS", "SESSIONS"]);
    for revision in &revisions {
        table.row([
            (revision.number.to_string(), Some(Style::Bold)),
            (revision.status.to_string(), None),
            (one_line(&revision.class.key()), None),
            (revision.cases.len().to_string(), None),
        ]);
    }
    screen.out(&table.text(screen.out_paint()));
    Ok(exit::PASS)
}

/// Shows the instruction of a role, or a revision. JSON: `{"role","version","text"}`, or
/// `{"revision":REVISION,"diff","comparison"}`.
fn show(screen: &Screen, store: &CaseStore, what: &str) -> Result<u8, Failure> {
    if let Ok(role) = what.parse::<CaseRole>() {
        let instruction = store.instruction(role)?;
        match screen.json() {
            true => screen.out_json(&instruction),
            false => screen.out(&instruction.text),
        }
        return Ok(exit::PASS);
    }
    let number = what.parse().map_err(|_| {
        let roles: Vec<_> = CaseRole::ALL.iter().map(|role| role.as_str()).collect();
        let words = format!("{what:?} is no role and no number of a revision");
        Failure::new(Fault::Usage, words).help(format!("the roles are {}", roles.join(", ")))
    })?;
    let revision = store.revision(number)?;
    let compared = match revision.comparison {
        Some(then) => then,
        None => store.compare(number)?,
    };
    // Of one that was decided, the diff is what it would add to the instruction of today.
    let diff = store.instruction(revision.class.role)?.diff(&revision);
    if screen.json() {
        let document = json!({ "revision": revision, "diff": diff, "comparison": compared });
        screen.out_json(&document);
        return Ok(exit::PASS);
    }
    tell(screen, &revision, &compared);
    if revision.status == RevisionStatus::Proposed {
        screen.out(diff.trim_end());
        screen.out(&format!("approve: jig sessions instructions approve {number}"));
    }
    Ok(exit::PASS)
}

fn tell(screen: &Screen, revision: &InstructionRevision, compared: &CaseComparison) {
    let InstructionRevision { number, class, cases, status, decided, .. } = revision;
    screen.out(&format!("revision {number} of {} ({status})", class.role));
    let times = cases.len();
    screen.out(&format!("  class: {}, in {times} sessions", one_line(&class.key())));
    let CaseComparison { cases, concerned, failed_otherwise, passed } = compared;
    screen.out(&format!(
        "  of {cases} recorded cases it concerns {concerned} that failed by its class, \
         {failed_otherwise} that failed otherwise, and {passed} that passed without it"
    ));
    if let Some((by, at)) = decided {
        screen.out(&format!("  decided by {} at {at}", one_line(by)));
    }
}

/// Approves or rejects a revision. JSON: the revision.
fn decide(
    screen: &Screen,
    store: &mut CaseStore,
    number: u64,
    how: (bool, bool),
) -> Result<u8, Failure> {
    let by = own_name();
    let revision = store.decide(number, how, (&by, jiff::Timestamp::now()))?;
    if screen.json() {
        screen.out_json(&revision);
        return Ok(exit::PASS);
    }
    tell(screen, &revision, &revision.comparison.unwrap_or_default());
    let version = store.instruction(revision.class.role)?.version;
    screen.say(&format!("the instruction of {} has version {version}", revision.class.role));
    Ok(exit::PASS)
}
