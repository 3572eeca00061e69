//! `jig runs`: what happened before, and what goes on.
//!
//! Reads runs in whatever state they are: live, killed, damaged. Only `prune` removes
//! anything. A missing runs folder means that there has been no run.

mod attach;
mod cancel;
mod export;
mod list;
mod log;
mod show;
pub(crate) mod source;
#[cfg(test)]
mod tests;
mod timeline;
mod words;

use jig_lab::Catalogue;
use jig_model::{Fault, byte_size, exit};
use jig_rig::store::{Retention, RunStore};
use jig_service::client::RunPart;
use serde_json::{Value, json};

use self::source::open;
use crate::args::{Common, RunsCommand};
use crate::failure::{Failure, chain};
use crate::render::{Screen, one_line};

/// Lists, shows, follows, cancels, exports or removes runs.
pub(crate) fn runs(
    common: &Common,
    screen: &Screen,
    command: Option<RunsCommand>,
) -> Result<u8, Failure> {
    match command.unwrap_or(RunsCommand::List) {
        RunsCommand::List => list::list(common, screen),
        RunsCommand::Show { run } => show::show(screen, &open(common, &run, RunPart::Record)?),
        RunsCommand::Log { run } => log::log(screen, &open(common, &run, RunPart::Log)?),
        RunsCommand::Attach { run, tail } => attach::attach(common, screen, &run, tail),
        RunsCommand::Cancel { run } => cancel::cancel(common, screen, &run),
        RunsCommand::Export { run, output } => export::export(common, screen, &run, output),
        RunsCommand::Prune { keep_days, keep_size } => {
            if common.is_elsewhere() {
                let words = "`jig runs prune` removes runs of this host only, and a rig elsewhere is \
                             named";
                return Err(Failure::new(Fault::Usage, words).help(
                    "run it at the rig's host; for the copies of this host, leave out --rig and \
                     JIG_RIG",
                ));
            }
            let given = Retention { keep_days, keep_bytes: keep_size };
            if let (true, Some(folder)) = (given != Retention::default(), &common.runs) {
                // What the rig file says does not matter then, nor whether it is right.
                return prune(screen, &RunStore::new(folder), given);
            }
            let catalogue = Catalogue::load(&common.lab()?)?;
            // What is typed replaces what the rig file says; mixing them would surprise.
            let keep = if given == Retention::default() { catalogue.retention() } else { given };
            if keep == Retention::default() {
                return Err(Failure::new(Fault::Usage, "nothing says which runs may stay").help(
                    "try `jig runs prune --keep-days 30`, or set `keep` in [runs] of the rig file",
                ));
            }
            prune(screen, &RunStore::new(catalogue.runs_dir()), keep)
        }
    }
}

/// Removes old runs. JSON: `{"removed":[{"id","bytes"}],"left":[{"id","error"}]}`.
fn prune(screen: &Screen, store: &RunStore, keep: Retention) -> Result<u8, Failure> {
    let pruned = store.prune(keep, jiff::Timestamp::now()).map_err(Failure::from)?;
    let (left, removed): (Vec<_>, Vec<_>) = pruned.into_iter().partition(|p| p.error.is_some());
    if screen.json() {
        let gone = removed.iter().map(|p| json!({ "id": p.id, "bytes": p.bytes }));
        let kept = left
            .iter()
            .map(|p| json!({ "id": p.id, "error": p.error.as_ref().map(|error| chain(error)) }));
        let (gone, kept) = (gone.collect::<Vec<Value>>(), kept.collect::<Vec<Value>>());
        screen.out_json(&json!({ "removed": gone, "left": kept }));
    } else {
        let bytes = removed.iter().map(|p| p.bytes).fold(0, u64::saturating_add);
        let s = if removed.len() == 1 { "" } else { "s" };
        screen.out(&format!("removed {} run{s}, {}", removed.len(), byte_size(bytes)));
        for p in &left {
            let why = p.error.as_ref().map(|error| chain(error)).unwrap_or_default();
            screen.insist(&format!("could not remove {}: {}", p.id, one_line(&why)));
        }
    }
    Ok(if left.is_empty() { exit::PASS } else { exit::LAB })
}
