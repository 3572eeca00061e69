//! `jig runs`: what happened before, and what goes on.
//!
//! Reads runs in whatever state they are: live, killed, damaged. Only `prune` removes
//! anything. A missing runs folder means that there has been no run.

mod allow;
mod attach;
mod cancel;
mod export;
pub(crate) mod list;
pub(crate) mod log;
mod show;
pub(crate) mod source;
#[cfg(test)]
mod tests;
mod timeline;
mod words;

use jig_lab::{Catalogue, LeftRun, PrunedRuns, RunLimits};
use jig_model::{byte_size, exit};
use jig_rig::store::RunStore;
use jig_service::client::RunPart;
use jig_service::protocol::PruneRuns;
use serde_json::json;

use self::source::open;
use super::rig::named_elsewhere;
use super::runtime::until_signalled;
use crate::args::{Common, RunsCommand};
use crate::failure::Failure;
use crate::render::{Screen, one_line};

/// Lists, shows, follows, cancels, exports or removes runs.
pub(crate) fn runs(
    common: &Common,
    screen: &Screen,
    command: Option<RunsCommand>,
) -> Result<u8, Failure> {
    match command.unwrap_or(RunsCommand::List) {
        RunsCommand::List => list::list(common, screen),
        RunsCommand::Show { run } => {
            show::show(common, screen, &open(common, &run, RunPart::Record)?)
        }
        RunsCommand::Log { run } => log::log(screen, &open(common, &run, RunPart::Log)?),
        RunsCommand::Allow { run } => allow::allow(screen, &open(common, &run, RunPart::Record)?),
        RunsCommand::Attach { run, tail } => attach::attach(common, screen, &run, tail),
        RunsCommand::Cancel { run } => cancel::cancel(common, screen, &run),
        RunsCommand::Export { run, output } => export::export(common, screen, &run, output),
        RunsCommand::Prune { keep_days, keep_size } => {
            let limits = RunLimits { keep_days, keep_bytes: keep_size };
            let pruned = match (named_elsewhere(common)?, &common.runs) {
                (Some(rig), _) => {
                    until_signalled(async |_| Ok(rig.call(&PruneRuns { limits }).await?))?
                }
                // What the rig file says does not matter then, nor whether it is right.
                (None, Some(folder)) if limits != RunLimits::default() => {
                    PrunedRuns::of(&RunStore::new(folder), limits)?
                }
                (None, _) => Catalogue::load(&common.lab()?)?.prune_runs(limits)?,
            };
            Ok(show_pruned(screen, &pruned))
        }
    }
}

/// Tells which runs were removed. JSON: `{"removed":[{"id","bytes"}],"left":[{"id","error"}]}`.
fn show_pruned(screen: &Screen, pruned: &PrunedRuns) -> u8 {
    let PrunedRuns { removed, left } = pruned;
    if screen.json() {
        screen.out_json(&json!({ "removed": removed, "left": left }));
    } else {
        let bytes = removed.iter().map(|run| run.bytes).fold(0, u64::saturating_add);
        let s = if removed.len() == 1 { "" } else { "s" };
        screen.out(&format!("removed {} run{s}, {}", removed.len(), byte_size(bytes)));
        for LeftRun { id, error } in left {
            screen.insist(&format!("could not remove {id}: {}", one_line(error)));
        }
    }
    if left.is_empty() { exit::PASS } else { exit::LAB }
}
