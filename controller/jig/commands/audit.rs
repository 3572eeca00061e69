//! `jig audit`: what was asked at the places of a rig, by whom, and whether the log is whole.

use jiff::Timestamp;
use jig_lab::{AuditPage, RigQuery, RigView};
use jig_model::{Fault, exit};
use jig_rig::audit::{AuditChain, AuditDecision, AuditEntry, AuditItem, AuditLine};
use jig_rig::console::escape;
use serde_json::json;

use super::execute::unexpected;
use super::rig::{elsewhere, seen, stopped, view};
use super::runtime::until_signalled;
use crate::args::{AuditArgs, AuditCommand, Common};
use crate::failure::Failure;
use crate::render::{Screen, one_line};

/// Shows the audit log, or checks it.
///
/// JSON: a line of the log as it is kept, each on a line of its own; of `verify` one object
/// `{"lines","first","last":[NUMBER,SHA256],"bad":{"file","line","why"}}`.
pub(crate) fn audit(common: &Common, screen: &Screen, args: AuditArgs) -> Result<u8, Failure> {
    if let Some(AuditCommand::Verify { contains }) = args.command {
        let query = RigQuery::AuditChain { contains: contains.clone() };
        let RigView::AuditChain(chain) = view(common, query)? else { return Err(unexpected()) };
        return verify(screen, chain, contains.as_deref());
    }
    let since = args.since.and_then(|since| Timestamp::now().checked_sub(since).ok());
    let rig = elsewhere(common)?;
    until_signalled(async |cancel| {
        let mut skip = Some(0);
        while let Some(behind) = skip {
            let query = RigQuery::Audit { since, skip: behind };
            let page = tokio::select! {
                page = seen(rig.as_ref(), common, query) => page?,
                () = cancel.cancelled() => return Err(stopped()),
            };
            let RigView::Audit(AuditPage { items, next }) = page else { return Err(unexpected()) };
            for item in items {
                show(screen, item, since);
            }
            // A page that leads no further is the last one, whatever it says.
            skip = next.filter(|next| *next > behind);
        }
        Ok(exit::PASS)
    })
}

/// Shows a line of the log, and what is wrong with it; of older ones, only that.
fn show(screen: &Screen, item: AuditItem, since: Option<Timestamp>) {
    let AuditItem { file, line, content, finding, .. } = item;
    if let Some(finding) = finding {
        let file = escape(file.display().to_string().as_bytes()).to_string();
        screen.insist(&format!("{file}:{line}: {finding}"));
    }
    let Some(content) = content else { return };
    if since.is_some_and(|since| content.entry.at < since) {
        return;
    }
    match screen.json() {
        true => screen.out_json(&json!(content)),
        false => screen.out(&told(&content)),
    }
}

/// Tells a line to people.
fn told(line: &AuditLine) -> String {
    let AuditLine { number, entry, .. } = line;
    let AuditEntry { at, identity, command, place, decision, why, lease, of, run, .. } = entry;
    let decision = match decision {
        AuditDecision::Accepted => "accepted",
        AuditDecision::Refused => "refused",
        AuditDecision::Began => "began",
    };
    let place = place.as_ref().map_or_else(String::new, |place| format!(" {place}"));
    let lease = lease.as_ref().map(|lease| format!("{} (token {})", lease.id, lease.token));
    let run = run.as_ref().map(|run| format!("run {run}"));
    let of = of.map(|of| format!("line {of}"));
    let why = (!why.is_empty()).then(|| one_line(why));
    let rest: Vec<String> = [run, of, lease, why].into_iter().flatten().collect();
    let at = at.strftime("%Y-%m-%d %H:%M:%SZ");
    let (identity, command) = (one_line(&identity.to_string()), one_line(command));
    format!("{number} {at} {identity} {decision} {command}{place}: {}", rest.join(", "))
}

fn verify(screen: &Screen, chain: AuditChain, contains: Option<&str>) -> Result<u8, Failure> {
    let AuditChain { lines, first, last, bad, contains: found } = chain;
    if screen.json() {
        let bad = bad.as_ref().map(|(file, line, finding)| {
            json!({ "file": file, "line": line, "why": finding.to_string() })
        });
        screen.out_json(&json!({ "lines": lines, "first": first, "last": last, "bad": bad }));
    }
    if let Some((file, line, finding)) = bad {
        let file = escape(file.display().to_string().as_bytes()).to_string();
        let words = format!("the audit log is damaged at {file}:{line}: {finding}");
        return Err(Failure::new(Fault::Lab, words)
            .help("lines before it are whole; compare the file with a copy"));
    }
    if let Some(wanted) = contains.filter(|_| !found) {
        let wanted = escape(wanted.as_bytes()).to_string();
        let words = format!("the audit log has no line with the hash {wanted}");
        return Err(Failure::new(Fault::Lab, words)
            .help("lines were removed since it was noted, or the log was written anew"));
    }
    if !screen.json() {
        screen.out(&match &last {
            None => "the audit log has no line".to_owned(),
            Some((number, hash)) => {
                format!("{lines} lines, and the chain is whole; line {number} is {hash}")
            }
        });
        if let Some(first) = first.filter(|first| *first > 1) {
            screen.say(&format!("the log begins at line {first}: older files were removed"));
        }
    }
    Ok(exit::PASS)
}
