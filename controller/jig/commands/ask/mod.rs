//! `jig ask` and `jig sessions`: requests in words, planned, confirmed, carried out and verified.

mod bind;
mod drive;
mod folders;
mod instructions;
mod models;
mod others;
mod person;
mod remember;
mod sessions;
mod show;
mod work_tree;

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use jig_model::{Fault, exit};
use jig_operator::config::AgentsFile;
use jig_operator::grammar::FORMS;
use jig_operator::journal::{Charter, PlanSource, SessionJournal, SessionLimits};
use jig_operator::plan::{MAX_DRAFT, read_draft};
use serde_json::json;

pub(crate) use self::bind::agents_file;
pub(crate) use self::folders::sessions_of;
use self::folders::{NewSession, find, root, unusable};
pub(crate) use self::models::{KeyProblem, approved, model_keys};
pub(crate) use self::sessions::sessions;
use crate::args::{AskArgs, Common};
use crate::failure::Failure;
use crate::render::{Screen, Style, TextTable};

/// Carries out a request; ends with the exit code that its runs give.
pub(crate) fn ask(common: &Common, screen: &Screen, args: AskArgs) -> Result<u8, Failure> {
    if args.forms {
        forms(screen);
        return Ok(exit::PASS);
    }
    if let Some(wanted) = &args.resume {
        let (name, folder) = find(common, wanted)?;
        return drive::resume(common, screen, (&name, &folder), &args);
    }
    let text = args.words.join(" ");
    let source = match &args.plan {
        Some(path) => PlanSource::Draft { draft: read_draft(&plan_text(path)?).map_err(failed)? },
        None if text.trim().is_empty() => {
            return Err(Failure::new(Fault::Usage, "nothing was asked").help(
                "jig ask \"run app.elf on BOARD\"; jig ask --forms lists what is understood",
            ));
        }
        None => PlanSource::Words,
    };
    let text = match &source {
        PlanSource::Draft { draft } if text.is_empty() => draft.plan_summary.clone(),
        _ => text,
    };
    let agents = agents_file(common)?;
    let words = matches!(source, PlanSource::Words);
    let model = models::chosen(&agents, args.model.as_deref())?.filter(|_| words);
    let root = root(common)?;
    let new = NewSession::make(&root)?;
    let NewSession { name, folder, begun } = &new;
    let here = std::env::current_dir().map_err(|error| unusable(Path::new("."), &error))?;
    let charter = Charter {
        text,
        source,
        confirmed: args.yes.map(Into::into),
        plan_only: args.plan_only,
        trace_id: trace_id(folder),
        limits: limits(&agents, &args),
        folder: here.display().to_string(),
        host: Some(jig_rig::store::host_name()),
        model,
    };
    let redactor = models::session_model(common, &agents, charter.model.as_ref(), &root).redactor;
    let journal = SessionJournal::begin(begun, charter, redactor);
    drop(journal.map_err(folders::journal_failure)?);
    new.there()?;
    drive::drive(common, screen, (name, folder), 0)
}

/// Makes the id of a session's trace out of its folder and this host, which no other session has.
fn trace_id(folder: &Path) -> String {
    let about = format!("{} {}", jig_rig::store::host_name(), folder.display());
    // It is a hash of bytes in memory: nothing can fail.
    let hash = jig_operator::sha256_of(about.as_bytes()).unwrap_or_default();
    hash.chars().take(32).collect()
}

/// Reads the limits of sessions: of the command line, else of `agents.toml`, else as documented.
fn limits(agents: &AgentsFile, args: &AskArgs) -> SessionLimits {
    let mut limits = agents.limits;
    let seconds = |time: std::time::Duration| time.as_secs().max(1);
    limits.step_s = args.step_timeout.map_or(limits.step_s, seconds);
    limits.session_s = args.session_timeout.map_or(limits.session_s, seconds);
    limits
}

fn plan_text(path: &Path) -> Result<String, Failure> {
    let most = u64::try_from(MAX_DRAFT).unwrap_or(u64::MAX).saturating_add(1);
    let text = if path == Path::new("-") {
        std::io::read_to_string(std::io::stdin().take(most))
    } else {
        let about = std::fs::metadata(path);
        match about {
            Ok(about) if !about.is_file() => {
                let words = format!("{} is no file", path.display());
                return Err(Failure::new(Fault::Usage, words).help("name a plan in JSON"));
            }
            _ => File::open(path).and_then(|file| std::io::read_to_string(file.take(most))),
        }
    };
    text.map_err(|error| {
        Failure::new(Fault::Usage, format!("could not read the plan {}: {error}", path.display()))
            .help("jig ask --plan-only --json \"REQUEST\" shows a plan of the right form")
    })
}

/// An error of the operator as a failure of this program.
fn failed(error: jig_operator::error::OperatorError) -> Failure {
    Failure::new(error.code.fault(), error.to_string()).help(error.next)
}

/// Lists the forms. JSON: `[{"form","example","about"}]`.
fn forms(screen: &Screen) {
    if screen.json() {
        let all = FORMS
            .iter()
            .map(|form| json!({ "form": form.form, "example": form.example, "about": form.about }));
        return screen.out_json(&all.collect::<Vec<_>>());
    }
    let mut table = TextTable::new(&["FORM", "EXAMPLE", "WHAT IS DONE"]);
    for form in FORMS {
        table.row([
            (form.form.to_owned(), Some(Style::Bold)),
            (form.example.to_owned(), None),
            (form.about.to_owned(), None),
        ]);
    }
    screen.out(&table.text(screen.out_paint()));
}
