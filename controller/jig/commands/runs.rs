//! `jig runs`: what happened before.
//!
//! Reads runs in whatever state they are: live, killed, damaged. Only `prune` changes
//! anything. A missing runs folder means that there has been no run.

mod export;
mod list;
mod log;
mod show;
#[cfg(test)]
mod tests;
mod timeline;
mod words;

use jig_lab::Catalogue;
use jig_model::{Fault, byte_size, exit};
use jig_rig::store::{Retention, RunEntry, RunStore, StoreError};
use serde_json::{Value, json};

use crate::args::{Common, RunsCommand};
use crate::failure::{Failure, chain};
use crate::render::{Screen, one_line};

/// Lists, shows, exports or removes runs.
pub(crate) fn runs(
    common: &Common,
    screen: &Screen,
    command: Option<RunsCommand>,
) -> Result<u8, Failure> {
    // With the folder given, what the rig file says does not matter, nor whether it is right.
    let store = || match &common.runs {
        Some(dir) => Ok::<_, Failure>(RunStore::new(dir)),
        None => Ok(RunStore::new(Catalogue::load(&common.lab()?)?.runs_dir())),
    };
    match command.unwrap_or(RunsCommand::List) {
        RunsCommand::List => list::list(screen, &store()?),
        RunsCommand::Show { run } => show::show(screen, &open(&store()?, &run)?),
        RunsCommand::Log { run } => log::log(screen, &open(&store()?, &run)?),
        RunsCommand::Export { run, output } => export::export(screen, &store()?, &run, output),
        RunsCommand::Prune { keep_days, keep_size } => {
            let given = Retention { keep_days, keep_bytes: keep_size };
            if given != Retention::default() && common.runs.is_some() {
                return prune(screen, &store()?, given);
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

/// Converts an error of the store into a failure.
fn failed(error: &StoreError) -> Failure {
    Failure::new(error.fault(), chain(error))
}

fn open(store: &RunStore, run: &str) -> Result<RunEntry, Failure> {
    store.open(run).map_err(|error| match error {
        StoreError::NotFound { .. } if store.list().is_ok_and(|runs| runs.is_empty()) => {
            let message = format!("no runs yet in {}", store.root().display());
            Failure::new(error.fault(), message)
                .help("begin with `jig run -b BOARD app.elf`, or name another folder with --runs")
        }
        StoreError::NotFound { .. } => failed(&error).help("--runs names another folder"),
        other => failed(&other),
    })
}

/// Removes old runs. JSON: `{"removed":[{"id","bytes"}],"left":[{"id","error"}]}`.
fn prune(screen: &Screen, store: &RunStore, keep: Retention) -> Result<u8, Failure> {
    let pruned = store.prune(keep, jiff::Timestamp::now()).map_err(|error| failed(&error))?;
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
