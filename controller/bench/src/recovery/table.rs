//! The tables for people, and the goals.

use std::fmt::Write as _;

use jig_model::{Cause, Fault};
use serde::{Deserialize, Serialize};

use super::trial::TrialOutcome;

/// What became of a fault's trials at a place, or at all of them together.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct FaultTally {
    pub(super) fault: String,
    /// Where; nothing for all places together.
    pub(super) place: String,
    /// Whether a rig can know that it was the rig.
    pub(super) traced: bool,
    /// Trials in which it struck.
    pub(super) runs: usize,
    /// Trials whose moment did not come; they count for nothing.
    pub(super) missed: usize,
    /// The test was attempted and passed.
    recovered: usize,
    /// Of these, trials that needed no second attempt.
    unharmed: usize,
    /// Seconds from the strike to the test's next attempt.
    seconds: Vec<f64>,
    /// The target was blamed.
    blamed: usize,
    /// The run ended by the rig, or without a verdict: the test has no result.
    lost: usize,
    /// Processes that were left behind.
    pub(super) leaks: usize,
    /// Why the fault is none for such a place.
    refused: Option<String>,
    /// Each trial that did not pass: place, fault as it was written, what became of it.
    not_passed: Vec<[String; 3]>,
}

impl FaultTally {
    pub(super) fn new(fault: &str, place: &str, traced: bool) -> Self {
        Self { fault: fault.to_owned(), place: place.to_owned(), traced, ..Self::default() }
    }

    /// Counts a trial.
    pub(super) fn add(&mut self, written: &str, outcome: TrialOutcome) {
        let words = match outcome {
            TrialOutcome::Missed => {
                self.missed += 1;
                return;
            }
            TrialOutcome::Refused(words) => {
                self.refused = Some(words);
                return;
            }
            TrialOutcome::Passed { recovered_s } => {
                self.runs += 1;
                self.recovered += 1;
                match recovered_s {
                    Some(seconds) => self.seconds.push(seconds),
                    None => self.unharmed += 1,
                }
                return;
            }
            TrialOutcome::Ended(cause) => {
                if cause.fault() == Some(Fault::Target) {
                    self.blamed += 1;
                } else {
                    self.lost += 1;
                }
                cause.to_string()
            }
            TrialOutcome::Nothing(words) => {
                self.lost += 1;
                words
            }
        };
        self.runs += 1;
        self.not_passed.push([self.place.clone(), written.to_owned(), words]);
    }

    /// Says how it went, while others are still tried.
    pub(super) fn progress(&self) -> String {
        let Self { fault, place, runs, recovered, blamed, lost, .. } = self;
        match &self.refused {
            Some(words) => format!("{fault} at {place}: refused: {}", words.trim()),
            None if *runs == 0 => format!("{fault} at {place}: does not strike there"),
            None => format!(
                "{fault} at {place}: {recovered} of {runs} recovered, {blamed} blamed on \
                 firmware, {lost} lost"
            ),
        }
    }

    fn join(&mut self, other: &Self) {
        self.runs += other.runs;
        self.missed += other.missed;
        self.recovered += other.recovered;
        self.unharmed += other.unharmed;
        self.seconds.extend(&other.seconds);
        self.blamed += other.blamed;
        self.lost += other.lost;
        self.leaks += other.leaks;
        self.not_passed.extend(other.not_passed.iter().cloned());
    }

    fn row(&self) -> String {
        let time = match (quantile(&self.seconds, 0.5), quantile(&self.seconds, 0.95)) {
            (Some(median), Some(p95)) => format!("{median:.2} / {p95:.2} s"),
            _ => "-".to_owned(),
        };
        let FaultTally { fault, runs, recovered, unharmed, blamed, lost, leaks, .. } = self;
        let share = 100.0 * *recovered as f64 / (*runs).max(1) as f64;
        format!(
            "| {fault} | {runs} | {share:.0} % | {unharmed} | {time} | {blamed} | {lost} | {leaks} |"
        )
    }
}

/// Returns the value below which a share of all lies: the nearest rank.
fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

/// A broken firmware that was run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct BrokenFirmware {
    pub(super) board: String,
    pub(super) fixture: String,
    pub(super) expected: Cause,
    /// What it was judged as; none without a verdict.
    pub(super) found: Option<Cause>,
}

impl BrokenFirmware {
    /// Tells whether the rig was blamed for it.
    pub(super) fn blamed_on_rig(&self) -> bool {
        self.found.is_none_or(|cause| cause.fault() != Some(Fault::Target))
    }
}

/// All that was tried.
#[derive(Debug, Clone, Default)]
pub(super) struct TrialTable {
    /// By fault and place.
    pub(super) lines: Vec<FaultTally>,
    pub(super) firmware: Vec<BrokenFirmware>,
    /// What is left behind at the end.
    pub(super) left: Vec<String>,
}

/// Something that is to be reached.
#[derive(Debug, Serialize)]
pub(super) struct RecoveryGoal {
    /// What, and what was seen.
    pub(super) words: String,
    pub(super) met: bool,
}

const HEAD: &str = "\
| fault | runs | recovered | needed no recovery | time to recover, median / p95 | blamed on firmware | without a result | left behind |
|---|---|---|---|---|---|---|---|
";

impl TrialTable {
    /// Returns how much was tried.
    pub(super) fn len(&self) -> usize {
        self.lines.len() + self.firmware.len()
    }

    /// Returns the faults that struck, all places together.
    fn joined(&self) -> Vec<FaultTally> {
        let mut joined: Vec<FaultTally> = Vec::new();
        for line in self.lines.iter().filter(|line| line.runs > 0) {
            match joined.iter_mut().find(|known| known.fault == line.fault) {
                Some(known) => known.join(line),
                None => {
                    let mut first = FaultTally::new(&line.fault, "", line.traced);
                    first.join(line);
                    joined.push(first);
                }
            }
        }
        joined
    }

    /// Draws the tables as a README shows them.
    pub(super) fn markdown(&self) -> String {
        let lines = self.joined();
        let mut text = HEAD.to_owned();
        let mut all = FaultTally::new("all", "", true);
        for line in &lines {
            let mark = if line.traced { "" } else { ": leaves no trace" };
            let shown = FaultTally { fault: format!("{}{mark}", line.fault), ..line.clone() };
            let _ = writeln!(text, "{}", shown.row());
            all.join(line);
        }
        let _ = writeln!(text, "{}", all.row());
        let wrong = self.firmware.iter().filter(|broken| broken.blamed_on_rig()).count();
        let count = self.firmware.len();
        let _ = writeln!(text, "\nOf {count} broken firmwares {wrong} were blamed on the rig.");
        for RecoveryGoal { words, met } in self.goals() {
            let mark = if met { "met" } else { "**missed**" };
            let _ = writeln!(text, "- {mark}: {words}");
        }
        text
    }

    /// Holds the numbers against the goals.
    pub(super) fn goals(&self) -> Vec<RecoveryGoal> {
        let lines = &self.lines;
        let sum = |of: fn(&FaultTally) -> usize| lines.iter().map(of).sum::<usize>();
        let blamed = sum(|line| line.blamed);
        let rig = self.firmware.iter().filter(|broken| broken.blamed_on_rig()).count();
        let curable = || lines.iter().filter(|line| line.traced);
        let runs: usize = curable().map(|line| line.runs).sum();
        let recovered: usize = curable().map(|line| line.recovered).sum();
        let share = 100.0 * recovered as f64 / runs.max(1) as f64;
        let seconds: Vec<f64> = lines.iter().flat_map(|line| line.seconds.clone()).collect();
        let median = quantile(&seconds, 0.5);
        let seen = median.map_or("nothing to recover".to_owned(), |m| format!("{m:.2} s"));
        let behind = sum(|line| line.leaks) + self.left.len();
        let goal = |words: String, met| RecoveryGoal { words, met };
        vec![
            goal(format!("rig faults blamed on firmware 0: {blamed}"), blamed == 0),
            goal(format!("firmware faults blamed on the rig 0: {rig}"), rig == 0),
            goal(
                format!("recovered at least 99 % of what leaves a trace: {share:.1} % of {runs}"),
                runs == 0 || share >= 99.0,
            ),
            goal(
                format!("median time to recover under 2 s: {seen}"),
                median.is_none_or(|m| m < 2.0),
            ),
            goal(format!("nothing left behind: {behind}"), behind == 0),
        ]
    }

    /// Names each miss.
    pub(super) fn details(&self) -> String {
        let mut text = String::new();
        for what in &self.left {
            let _ = writeln!(text, "left: {what}");
        }
        for broken in self.firmware.iter().filter(|broken| broken.blamed_on_rig()) {
            let BrokenFirmware { board, fixture, expected, found } = broken;
            let found = found.map_or("no verdict".to_owned(), |cause| cause.to_string());
            let _ = writeln!(text, "{fixture} on {board}: {found} instead of {expected}");
        }
        for line in &self.lines {
            if line.runs == 0 {
                let _ = writeln!(text, "{}", line.progress());
            }
            for [place, written, words] in &line.not_passed {
                let _ = writeln!(text, "{place}: {written}: {}", words.trim());
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_a_trial_ends_is_counted_once() {
        let mut line = FaultTally::new("x", "a", true);
        line.add("x@1ms", TrialOutcome::Passed { recovered_s: Some(1.5) });
        line.add("x@2ms", TrialOutcome::Passed { recovered_s: None });
        line.add("x@3ms", TrialOutcome::Ended(Cause::ReportIncomplete));
        line.add("x@4ms", TrialOutcome::Missed);
        let mut other = FaultTally::new("x", "b", true);
        other.add("x@4ms", TrialOutcome::Ended(Cause::PowerMismatch));
        other.add("x@5ms", TrialOutcome::Nothing("disk full".to_owned()));
        let mut none = FaultTally::new("y", "b", true);
        none.add("y", TrialOutcome::Refused("no such transport".to_owned()));
        let table = TrialTable { lines: vec![line, other, none], ..TrialTable::default() };
        let text = table.markdown();
        let row = "| 5 | 40 % | 1 | 1.50 / 1.50 s | 1 | 2 | 0 |";
        for wanted in [
            format!("| x {row}"),
            format!("| all {row}"),
            "- **missed**: rig faults blamed on firmware 0: 1".to_owned(),
            "- met: median time to recover under 2 s: 1.50 s".to_owned(),
        ] {
            assert!(text.lines().any(|line| line == wanted), "{wanted}: {text}");
        }
        assert!(!text.contains("| y |"), "{text}");
        let details = table.details();
        assert!(details.contains("b: x@5ms: disk full"), "{details}");
        assert!(details.contains("y at b: refused: no such transport"), "{details}");
    }

    #[test]
    fn quantiles_are_values_that_were_seen() {
        let values: Vec<f64> = (1..=20).rev().map(f64::from).collect();
        assert_eq!(quantile(&values, 0.5), Some(10.0));
        assert_eq!(quantile(&values, 0.95), Some(19.0));
        assert_eq!((quantile(&[], 0.5), quantile(&[3.0], 0.95)), (None, Some(3.0)));
    }

    #[test]
    fn a_firmware_without_a_verdict_is_not_blamed() {
        let broken = |found| BrokenFirmware {
            board: "b".into(),
            fixture: "f".into(),
            expected: Cause::Hang,
            found,
        };
        assert!(!broken(Some(Cause::ReportIncomplete)).blamed_on_rig());
        assert!(broken(Some(Cause::EmulatorStuck)).blamed_on_rig());
        assert!(broken(None).blamed_on_rig());
    }
}
