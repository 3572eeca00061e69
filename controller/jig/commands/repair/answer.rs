//! What other processes ask of a run: to stop, to go on with what waits, or not to.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use jig_model::{Fault, exit};
use jig_repair::journal::{Entry, Request};
use jig_repair::run::Run;
use jig_repair::setup::RepairFolder;
use jig_repair::submit::{SubmitError, submit as submit_to};

use super::folders::{as_begun, find, open_to_ask, origin_of, policy_of};
use super::host::git_in;
use crate::args::Common;
use crate::commands::runtime::runtime;
use crate::failure::Failure;
use crate::render::Screen;

/// Most bytes of a patch that are read: one more than a run takes.
const MAX_PATCH: u64 = (4 << 20) + 1;

pub(super) fn stop(
    common: &Common,
    screen: &Screen,
    wanted: &str,
    why: String,
) -> Result<u8, Failure> {
    let (name, folder) = find(common, wanted)?;
    let (mut journal, run) = open_to_ask(&folder)?;
    if run.ended.is_some() {
        return Err(ended(&name));
    }
    journal.append(&Entry::Request(Request::Stop { why }))?;
    screen.say(&format!("asked {name} to end; if no process drives it: jig repair resume {name}"));
    Ok(exit::PASS)
}

pub(super) fn approve(
    common: &Common,
    screen: &Screen,
    wanted: &str,
    digest: &str,
) -> Result<u8, Failure> {
    let (name, folder) = find(common, wanted)?;
    let (mut journal, run) = open_to_ask(&folder)?;
    let digest = digest.strip_prefix("sha256:").unwrap_or(digest);
    match run.waits.as_ref().filter(|_| !run.waits_for_patch()) {
        None => return Err(waits_not(&name)),
        Some(waiting) if waiting != digest => {
            let words = format!("{name} does not wait for sha256:{digest}");
            let help = format!(
                "it waits for sha256:{waiting}; look at it again: what waits may have changed"
            );
            return Err(Failure::new(Fault::Usage, words).help(help));
        }
        Some(_) => {}
    }
    journal.append(&Entry::Request(Request::Approve { digest: digest.to_owned() }))?;
    screen.say(&format!("approved; if no process drives it: jig repair resume {name}"));
    Ok(exit::PASS)
}

pub(super) fn reject(
    common: &Common,
    screen: &Screen,
    wanted: &str,
    why: String,
) -> Result<u8, Failure> {
    let (name, folder) = find(common, wanted)?;
    let (mut journal, run) = open_to_ask(&folder)?;
    if run.waits.is_none() {
        return Err(waits_not(&name));
    }
    journal.append(&Entry::Request(Request::Reject { why }))?;
    screen.say(&format!("refused; if no process drives it: jig repair resume {name}"));
    Ok(exit::PASS)
}

/// Submits a patch of a person, or of a script.
pub(super) fn submit(
    common: &Common,
    screen: &Screen,
    wanted: &str,
    patch: &Path,
    why: &str,
) -> Result<u8, Failure> {
    let (name, folder) = find(common, wanted)?;
    let text = if patch == Path::new("-") {
        std::io::read_to_string(std::io::stdin().take(MAX_PATCH))
    } else {
        File::open(patch).and_then(|file| std::io::read_to_string(file.take(MAX_PATCH)))
    };
    let text = text.map_err(|error| {
        Failure::new(Fault::Usage, format!("cannot read the patch {}: {error}", patch.display()))
    })?;
    let id = take(&folder, &text, why).map_err(|error| match error {
        Taken::Refused(SubmitError::NotAwaited) => {
            Failure::new(Fault::Usage, format!("{name} waits for no patch"))
                .help(format!("jig repair status {name}"))
        }
        Taken::Refused(error @ (SubmitError::Journal(_) | SubmitError::Write { .. })) => {
            Failure::of(Fault::Lab, &error)
        }
        Taken::Refused(error) => Failure::of(Fault::Usage, &error),
        Taken::Unusable(failure) => failure,
    })?;
    screen.say(&format!("submitted {id}; if no process drives it: jig repair resume {name}"));
    Ok(exit::PASS)
}

/// Says why a run has not taken a patch.
pub(super) enum Taken {
    Refused(SubmitError),
    Unusable(Failure),
}

/// Gives a run a patch; returns the identity of the change.
pub(super) fn take(folder: &Path, diff: &str, hypothesis: &str) -> Result<String, Taken> {
    let (mut journal, run) = open_to_ask(folder).map_err(Taken::Unusable)?;
    as_begun(folder, &run).map_err(Taken::Unusable)?;
    let policy = policy_of(folder).map_err(Taken::Unusable)?;
    let base = files_of_base(folder, &run).map_err(Taken::Unusable)?;
    let files = RepairFolder::new(folder);
    let with = (&run, &policy, base.as_slice());
    submit_to(&mut journal, with, &files, diff, hypothesis).map_err(Taken::Refused)
}

/// Lists the files of the commit that a run repairs.
fn files_of_base(folder: &Path, run: &Run) -> Result<Vec<String>, Failure> {
    let scratch = tempfile::tempdir().map_err(|error| Failure::of(Fault::Lab, &error))?;
    let git = git_in(&origin_of(folder)?.repo, scratch.path());
    let files = runtime()?.block_on(git.files(&run.contract.base));
    files.map_err(|error| Failure::of(Fault::Lab, &error))
}

fn ended(name: &str) -> Failure {
    Failure::new(Fault::Usage, format!("{name} has ended"))
        .help(format!("jig repair status {name}"))
}

fn waits_not(name: &str) -> Failure {
    let words = format!("{name} waits for no approval");
    Failure::new(Fault::Usage, words).help(format!("jig repair status {name}"))
}
