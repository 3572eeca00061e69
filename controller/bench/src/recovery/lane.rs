//! One board's trials, one after the other.

use std::path::Path;
use std::time::Instant;

use super::firmware;
use super::journal::Journal;
use super::lab::TrialLab;
use super::leaks;
use super::table::FaultTally;
use super::trial::{FaultTrial, TrialOutcome};
use crate::dice::TrialDice;
use crate::faults::{self, ListedFault, Natural};
use crate::setting::RecoveryTarget;
use xtask::failure::TaskFailure;

/// A moment that has not come by the end of the run is no trial; beyond so many for each that
/// counts, or so many before the first, the fault cannot strike there.
const MISSES: usize = 3;
const NEVER: usize = 10;

/// A fault that is recovered.
const REPAIRED: &str = "kill-emulator@0s";

/// The other side's name among the faults.
const FIRMWARE: &str = "firmware";

/// What is to be tried.
pub(super) struct Wanted {
    /// Moments for each fault.
    pub(super) rounds: usize,
    /// Only faults whose name contains this.
    pub(super) only: Option<String>,
}

impl Wanted {
    fn contains(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| name.contains(only.as_str()))
    }
}

/// A board, and the lab in which it is tried.
pub(super) struct Lane {
    lab: TrialLab,
    /// How a run goes in which nothing fails.
    natural: Natural,
    /// What its place keeps between runs, when nothing had failed yet.
    kept: Vec<String>,
}

impl Lane {
    /// Makes the lab, and a few runs: the firmware is known to be good from then on.
    pub(super) fn prepare(
        jig: &Path,
        target: &Path,
        recovered: &RecoveryTarget,
    ) -> Result<Self, TaskFailure> {
        let lab = TrialLab::prepare(jig, target, recovered)?;
        // Once before, and recovered once: what a place keeps for good is there from then on.
        FaultTrial::natural(&lab)?;
        FaultTrial { lab: &lab, fault: REPAIRED }.run()?;
        let natural = FaultTrial::natural(&lab)?;
        let kept = leaks::places(&lab);
        Ok(Self { lab, natural, kept })
    }

    /// Tries everything that the journal does not know; returns what is left behind.
    pub(super) fn drive(
        &self,
        wanted: &Wanted,
        journal: &Journal,
    ) -> Result<Vec<String>, TaskFailure> {
        let place = &self.lab.place;
        for fault in
            faults::all(self.lab.jig())?.iter().filter(|fault| wanted.contains(&fault.name))
        {
            if journal.knows_fault(&fault.name, place) {
                continue;
            }
            let began = Instant::now();
            let line = self.strike(fault, wanted.rounds, journal.seed())?;
            println!("recovery: {}, {:.0} s", line.progress(), began.elapsed().as_secs_f64());
            journal.add_line(line)?;
        }
        if wanted.contains(FIRMWARE) {
            firmware::all(&self.lab, journal)?;
        }
        // The next start removes what a run left that could not write.
        FaultTrial::natural(&self.lab)?;
        Ok(leaks::left(&self.lab, &self.kept))
    }

    /// Has a fault strike at so many random moments.
    fn strike(
        &self,
        fault: &ListedFault,
        rounds: usize,
        seed: u64,
    ) -> Result<FaultTally, TaskFailure> {
        // Each fault and place has its own dice: what is left out changes no other moment.
        let mut dice = TrialDice::new(seed, &format!("{} {}", fault.name, self.lab.place));
        let mut line = FaultTally::new(&fault.name, &self.lab.place, fault.traced);
        for _ in 0..rounds * MISSES {
            if line.runs == rounds || (line.runs == 0 && line.missed == NEVER) {
                break;
            }
            let written = fault.at_random(&self.natural, &self.lab.old, &mut dice);
            let outcome = FaultTrial { lab: &self.lab, fault: &written }.run()?;
            let refused = matches!(outcome, TrialOutcome::Refused(_));
            line.add(&written, outcome);
            if refused {
                break;
            }
            line.leaks += leaks::processes(&self.lab);
        }
        Ok(line)
    }
}
