//! Faults of the rig that strike a repair run: one, in one of its runs of a plan.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::project::BenchProject;
use super::shop::RepairShop;
use crate::dice::TrialDice;
use crate::faults::{self, ListedFault, Natural};
use xtask::failure::TaskFailure;

/// How long a run of a project's plan goes on, roughly. A fault whose moment does not come strikes
/// the next run.
const NATURAL: Natural = Natural { run_ms: 400, powered_ms: 150, talking_ms: 20 };

/// The first runs of a plan are those of the baseline, the next ones those of a candidate.
const RUNS: u64 = 6;

/// A fault, and the run of a plan that it strikes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RunFault {
    pub(super) fault: String,
    pub(super) run: u64,
}

impl std::fmt::Display for RunFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} in run {}", self.fault, self.run)
    }
}

/// The faults that can strike the boards of the projects, by board.
#[derive(Default)]
pub(super) struct RigFaults(BTreeMap<String, BoardFaults>);

/// The faults that can strike a board, and that a rig can know to be its own.
struct BoardFaults {
    faults: Vec<ListedFault>,
    /// An image that may be on the board from before.
    old: std::path::PathBuf,
}

impl RigFaults {
    /// Asks the program which there are, and tries each once on each board.
    pub(super) fn of(shop: &RepairShop, projects: &[BenchProject]) -> Result<Self, TaskFailure> {
        let mut found = BTreeMap::new();
        for project in projects {
            if !found.contains_key(&project.board) {
                found.insert(project.board.clone(), BoardFaults::of(shop, project)?);
            }
        }
        Ok(Self(found))
    }

    /// Chooses a fault and its moment; the same for the same name under a seed.
    pub(super) fn at_random(&self, seed: u64, board: &str, name: &str) -> Option<RunFault> {
        let BoardFaults { faults, old } = self.0.get(board)?;
        let mut dice = TrialDice::new(seed, name);
        let index = usize::try_from(dice.below(faults.len() as u64)).ok()?;
        let fault = faults.get(index)?.at_random(&NATURAL, old, &mut dice);
        Some(RunFault { fault, run: 1 + dice.below(RUNS) })
    }
}

impl BoardFaults {
    fn of(shop: &RepairShop, project: &BenchProject) -> Result<Self, TaskFailure> {
        let image = project.built(shop, "HEAD")?.zip(project.plan("plan"));
        let Some((image, plan)) = image else {
            return Err(TaskFailure::Because(format!("{} does not build", project.name)));
        };
        let old = shop.folder.join(format!("old-{}.elf", project.board));
        std::fs::copy(&image, &old).map_err(TaskFailure::io("copy", &image))?;
        let mut faults = faults::all(shop.jig())?;
        faults.retain(|fault| fault.traced);
        let mut fitting = Vec::new();
        for fault in faults {
            if shop.accepts(&fault.name, &project.board, &plan, &old)? {
                fitting.push(fault);
            }
        }
        Ok(Self { faults: fitting, old })
    }
}
