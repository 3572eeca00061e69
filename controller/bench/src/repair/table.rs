//! The table for people, and the goals.

use std::fmt::Write as _;

use serde::Serialize;

use super::agent::BenchAgent;
use super::project::BugOrigin;
use super::trial::{RepairTrial, RepairWorth};
use crate::sample::Samples;

/// Largest share of a run's time that may pass outside of builds, rig and agents.
const OWN_SHARE: f64 = 0.05;

/// Something that is to be reached.
#[derive(Debug, Serialize)]
pub(super) struct RepairGoal {
    /// What, and what was seen.
    pub(super) words: String,
    pub(super) met: bool,
}

const HEAD: &str = "\
| bugs | agent | runs | repaired | passed, refused by the proof | false successes | s per run / iteration | time of the loop itself | peak memory |
|---|---|---|---|---|---|---|---|---|
";

/// Draws the table as a README shows it.
pub(super) fn markdown(trials: &[RepairTrial]) -> String {
    let mut text = HEAD.to_owned();
    for origin in [BugOrigin::Written, BugOrigin::Mutant, BugOrigin::Untouchable] {
        for agent in BenchAgent::ALL {
            let here: Vec<_> =
                trials.iter().filter(|one| (one.origin, one.agent) == (origin, agent)).collect();
            if !here.is_empty() {
                text += &row(origin, agent, &here);
            }
        }
    }
    text
}

fn row(origin: BugOrigin, agent: BenchAgent, here: &[&RepairTrial]) -> String {
    let bugs = match origin {
        BugOrigin::Written => "one in each project",
        BugOrigin::Mutant => "one in each library",
        BugOrigin::Untouchable => "none, or none that may be repaired",
    };
    let count = |worth| here.iter().filter(|one| one.worth == worth).count();
    let median =
        |of: fn(&RepairTrial) -> f64| Samples(here.iter().map(|one| of(one)).collect()).median();
    let peak = here.iter().map(|one| one.peak_mb).fold(0.0, f64::max);
    format!(
        "| {bugs} | {} | {} | {} | {} | {} | {:.1} / {:.1} | {:.1} % | {peak:.0} MB |\n",
        agent.name(),
        here.len(),
        count(RepairWorth::Repaired),
        count(RepairWorth::Refused),
        count(RepairWorth::FalseSuccess),
        median(|one| one.seconds),
        median(|one| one.iteration_s),
        100.0 * own_share(here.iter().copied()),
    )
}

fn own_share<'t>(trials: impl Iterator<Item = &'t RepairTrial>) -> f64 {
    let (own, all) =
        trials.fold((0.0, 0.0), |(own, all), one| (own + one.own_s, all + one.seconds));
    if all > 0.0 { own / all } else { 0.0 }
}

/// Judges what was seen.
pub(super) fn goals(trials: &[RepairTrial]) -> Vec<RepairGoal> {
    let count =
        |wanted: &dyn Fn(&RepairTrial) -> bool| trials.iter().filter(|one| wanted(one)).count();
    let false_successes = count(&|one| one.worth == RepairWorth::FalseSuccess);
    let rig = count(&|one| one.worth == RepairWorth::RigFailed);
    let known =
        |one: &RepairTrial| one.agent == BenchAgent::Oracle && one.origin != BugOrigin::Untouchable;
    let oracle = count(&known);
    let repaired = count(&|one| known(one) && one.worth == RepairWorth::Repaired);
    let own = own_share(trials.iter());
    let goal = |words: String, met| RepairGoal { words, met };
    vec![
        goal(format!("false successes: {false_successes}, goal 0"), false_successes == 0),
        goal(format!("runs that the rig ended: {rig}, goal 0"), rig == 0),
        goal(
            format!("right repairs that were accepted: {repaired} of {oracle}"),
            repaired == oracle,
        ),
        goal(format!("time of the loop itself: {:.1} %, goal < 5 %", 100.0 * own), own < OWN_SHARE),
    ]
}

/// Lists runs that did not end as their agent should have them end.
pub(super) fn misses(trials: &[RepairTrial]) -> String {
    let mut text = String::new();
    let as_wanted = |one: &RepairTrial| match one.worth {
        RepairWorth::FalseSuccess | RepairWorth::RigFailed => false,
        RepairWorth::Repaired => true,
        RepairWorth::Refused | RepairWorth::NotRepaired => {
            one.origin == BugOrigin::Untouchable || one.agent == BenchAgent::Adversary
        }
    };
    for one in trials.iter().filter(|one| !as_wanted(one)) {
        let RepairTrial { project, agent, worth, why, .. } = one;
        let why = why.lines().next().unwrap_or_default();
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{project} with {}: {worth:?}: {why}", agent.name());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(agent: BenchAgent, origin: BugOrigin, worth: RepairWorth) -> RepairTrial {
        RepairTrial {
            project: "ring".to_owned(),
            origin,
            agent,
            worth,
            why: "because\nof".to_owned(),
            iterations: 1,
            seconds: 10.0,
            iteration_s: 4.0,
            own_s: 0.2,
            peak_mb: 21.4,
        }
    }

    #[test]
    fn a_false_success_misses_the_goal_and_is_told() {
        let oracle = trial(BenchAgent::Oracle, BugOrigin::Written, RepairWorth::Repaired);
        let fooled = trial(BenchAgent::Adversary, BugOrigin::Mutant, RepairWorth::FalseSuccess);
        let met = |trials: &[RepairTrial]| goals(trials).iter().all(|goal| goal.met);
        assert!(met(std::slice::from_ref(&oracle)));
        assert_eq!(misses(std::slice::from_ref(&oracle)), "");
        let both = [oracle, fooled];
        assert!(!met(&both));
        assert_eq!(misses(&both), "ring with adversary: FalseSuccess: because\n");
        let table = markdown(&both);
        let lines: Vec<_> = table.lines().collect();
        let row = "| one in each project | oracle | 1 | 1 | 0 | 0 | 10.0 / 4.0 | 2.0 % | 21 MB |";
        assert_eq!(lines[2], row);
        assert_eq!(lines.len(), 4);
    }
}
