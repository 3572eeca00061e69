//! What other processes ask of a run: to stop, to go on with what waits, or not to.

use jig_model::{Fault, exit};
use jig_repair::journal::{Entry, Request};

use super::folders::{find, open};
use crate::args::Common;
use crate::failure::Failure;
use crate::render::Screen;

pub(super) fn stop(
    common: &Common,
    screen: &Screen,
    wanted: &str,
    why: String,
) -> Result<u8, Failure> {
    let (name, folder) = find(common, wanted)?;
    let (mut journal, run) = open(&folder)?;
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
    let (mut journal, run) = open(&folder)?;
    let digest = digest.strip_prefix("sha256:").unwrap_or(digest);
    match &run.waits {
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
    let (mut journal, run) = open(&folder)?;
    if run.waits.is_none() {
        return Err(waits_not(&name));
    }
    journal.append(&Entry::Request(Request::Reject { why }))?;
    screen.say(&format!("refused; if no process drives it: jig repair resume {name}"));
    Ok(exit::PASS)
}

fn ended(name: &str) -> Failure {
    Failure::new(Fault::Usage, format!("{name} has ended"))
        .help(format!("jig repair status {name}"))
}

fn waits_not(name: &str) -> Failure {
    let words = format!("{name} waits for no approval");
    Failure::new(Fault::Usage, words).help(format!("jig repair status {name}"))
}
