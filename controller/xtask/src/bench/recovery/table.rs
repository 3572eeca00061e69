//! The tables for people, and the goals.

use std::fmt::Write as _;

use jig_model::Fault;
use serde::Serialize;

use super::firmware::Broken;
use super::trial::Outcome;

/// What became of a fault's trials, on all places together.
#[derive(Debug, Default, Serialize)]
pub(super) struct Line {
    pub(super) fault: String,
    /// Whether a rig can know that it was the rig.
    pub(super) traced: bool,
    /// Trials in which it struck.
    pub(super) runs: usize,
    /// Trials whose moment did not come; they count for nothing.
    pub(super) missed: usize,
    /// The test had its turn and passed.
    pub(super) recovered: usize,
    /// Of these, it needed no second turn.
    pub(super) unharmed: usize,
    /// Seconds from the strike to the test's next turn.
    pub(super) seconds: Vec<f64>,
    /// The target was blamed.
    pub(super) blamed: usize,
    /// The run ended by the rig, or without a verdict: the test lost its turn.
    pub(super) lost: usize,
    /// Processes that were left behind.
    pub(super) leaks: usize,
    /// Each trial that did not pass: place, fault as it was written, what became of it.
    pub(super) not_passed: Vec<[String; 3]>,
}

impl Line {
    pub(super) fn new(fault: &str, traced: bool) -> Self {
        Self { fault: fault.to_owned(), traced, ..Self::default() }
    }

    /// Counts a trial in which the fault struck.
    pub(super) fn add(&mut self, place: &str, written: &str, outcome: Outcome) {
        self.runs += 1;
        let words = match outcome {
            Outcome::Missed => return,
            Outcome::Passed { recovered_s } => {
                self.recovered += 1;
                match recovered_s {
                    Some(seconds) => self.seconds.push(seconds),
                    None => self.unharmed += 1,
                }
                return;
            }
            Outcome::Ended(cause) => {
                if cause.fault() == Some(Fault::Target) {
                    self.blamed += 1;
                } else {
                    self.lost += 1;
                }
                cause.to_string()
            }
            Outcome::Nothing(words) => {
                self.lost += 1;
                words
            }
        };
        self.not_passed.push([place.to_owned(), written.to_owned(), words]);
    }

    /// Says how it went, while others are still tried.
    pub(super) fn progress(&self) -> String {
        let Self { fault, runs, recovered, blamed, lost, .. } = self;
        format!(
            "{fault}: {recovered} of {runs} recovered, {blamed} blamed on firmware, {lost} lost"
        )
    }

    fn share(&self) -> f64 {
        100.0 * self.recovered as f64 / self.runs.max(1) as f64
    }
}

/// Returns the value below which a share of all lies: the nearest rank.
fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

/// Draws the faults.
pub(super) fn faults(lines: &[Line]) -> String {
    let head = "| fault | runs | recovered | needed no repair | time to recover, median / p95 | blamed on firmware | lost their turn | left behind |\n|---|---|---|---|---|---|---|---|\n";
    let mut text = head.to_owned();
    for line in lines {
        let time = match (quantile(&line.seconds, 0.5), quantile(&line.seconds, 0.95)) {
            (Some(median), Some(p95)) => format!("{median:.2} / {p95:.2} s"),
            _ => "-".to_owned(),
        };
        let Line { fault, runs, unharmed, blamed, lost, leaks, .. } = line;
        let share = line.share();
        let mark = if line.traced { "" } else { " (no trace)" };
        let _ = writeln!(
            text,
            "| {fault}{mark} | {runs} | {share:.0} % | {unharmed} | {time} | {blamed} | {lost} | {leaks} |"
        );
    }
    text
}

/// Says how broken firmware fared.
pub(super) fn firmware(all: &[Broken]) -> String {
    let wrong = all.iter().filter(|broken| broken.blamed_on_rig());
    let mut text = format!(
        "broken firmware: {} runs, {} blamed on the rig\n",
        all.len(),
        all.iter().filter(|broken| broken.blamed_on_rig()).count()
    );
    for Broken { board, fixture, expected, found } in wrong {
        let found = found.map_or("no verdict".to_owned(), |cause| cause.to_string());
        let _ = writeln!(text, "  {fixture} on {board}: {found} instead of {expected}");
    }
    text
}

/// Holds the numbers against the goals, and names every miss.
pub(super) fn goals(lines: &[Line], firmware: &[Broken], left: &[String]) -> String {
    let mut text = String::new();
    let mut goal = |words: &str, met: bool, seen: String| {
        let met = if met { "ok" } else { "MISSED" };
        let _ = writeln!(text, "{met:7} {words}: {seen}");
    };
    let blamed: usize = lines.iter().map(|line| line.blamed).sum();
    goal("rig faults blamed on firmware 0", blamed == 0, blamed.to_string());
    let rig = firmware.iter().filter(|broken| broken.blamed_on_rig()).count();
    goal("firmware faults blamed on the rig 0", rig == 0, rig.to_string());
    let curable = || lines.iter().filter(|line| line.traced);
    let runs: usize = curable().map(|line| line.runs).sum();
    let recovered: usize = curable().map(|line| line.recovered).sum();
    let share = 100.0 * recovered as f64 / runs.max(1) as f64;
    let met = runs == 0 || share >= 99.0;
    goal("cured at least 99 % of what leaves a trace", met, format!("{share:.1} % of {runs}"));
    let seconds: Vec<f64> = lines.iter().flat_map(|line| line.seconds.iter().copied()).collect();
    let median = quantile(&seconds, 0.5);
    let seen = median.map_or("nothing to recover".to_owned(), |m| format!("{m:.2} s"));
    goal("median time to recover under 2 s", median.is_none_or(|m| m < 2.0), seen);
    let leaks: usize = lines.iter().map(|line| line.leaks).sum();
    let behind = leaks + left.len();
    goal("nothing left behind", behind == 0, behind.to_string());
    for what in left {
        let _ = writeln!(text, "  left: {what}");
    }
    for line in lines {
        for [place, written, words] in &line.not_passed {
            let _ = writeln!(text, "  {place}: {written}: {words}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use jig_model::Cause;

    use super::*;

    #[test]
    fn every_way_a_trial_ends_is_counted_once() {
        let mut line = Line::new("x", true);
        line.add("a", "x@1ms", Outcome::Passed { recovered_s: Some(1.5) });
        line.add("a", "x@2ms", Outcome::Passed { recovered_s: None });
        line.add("a", "x@3ms", Outcome::Ended(Cause::NoEnd));
        line.add("a", "x@4ms", Outcome::Ended(Cause::PowerLied));
        line.add("b", "x@5ms", Outcome::Nothing("disk full".to_owned()));
        let counts = (line.runs, line.recovered, line.unharmed, line.blamed, line.lost);
        assert_eq!(counts, (5, 2, 1, 1, 2));
        let text = faults(std::slice::from_ref(&line));
        let row = "| x | 5 | 40 % | 1 | 1.50 / 1.50 s | 1 | 2 | 0 |";
        assert!(text.lines().any(|line| line == row), "{text}");
        let goals = goals(&[line], &[], &[]);
        assert!(goals.contains("MISSED  rig faults blamed on firmware 0: 1"), "{goals}");
        assert!(goals.contains("ok      median time to recover under 2 s: 1.50 s"), "{goals}");
        assert!(goals.contains("b: x@5ms: disk full"), "{goals}");
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
        let broken =
            |found| Broken { board: "b".into(), fixture: "f".into(), expected: Cause::Hang, found };
        assert!(!broken(Some(Cause::NoEnd)).blamed_on_rig());
        assert!(broken(Some(Cause::EmulatorStuck)).blamed_on_rig());
        assert!(broken(None).blamed_on_rig());
    }
}
