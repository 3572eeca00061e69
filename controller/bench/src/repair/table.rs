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
| bugs | agent | runs | repaired | passed, refused by the proof | false successes | s per run / iteration / candidate | time of the loop itself | peak memory |
|---|---|---|---|---|---|---|---|---|
";

/// Draws the table as a README shows it.
pub(super) fn markdown(trials: &[RepairTrial]) -> String {
    let mut text = HEAD.to_owned();
    for origin in BugOrigin::ALL {
        for (agent, fails) in BenchAgent::ALL.iter().flat_map(|one| [(*one, false), (*one, true)]) {
            let of_row = |one: &&RepairTrial| {
                (one.origin, one.agent, one.fault.is_some()) == (origin, agent, fails)
            };
            let here: Vec<_> = trials.iter().filter(of_row).collect();
            if !here.is_empty() {
                text += &row(origin, agent, fails, &here);
            }
        }
    }
    text
}

fn row(origin: BugOrigin, agent: BenchAgent, fails: bool, here: &[&RepairTrial]) -> String {
    let bugs = match origin {
        BugOrigin::Written => "one in each project",
        BugOrigin::Reverted => "one in each library, a fix taken out",
        BugOrigin::Mutant => "one in each library, by a mutator",
        BugOrigin::Untouchable => "none, or none that may be repaired",
    };
    let count = |worth| here.iter().filter(|one| one.worth == worth).count();
    let median =
        |of: fn(&RepairTrial) -> f64| Samples(here.iter().map(|one| of(one)).collect()).median();
    let peak = here.iter().map(|one| one.peak_mb).fold(0.0, f64::max);
    format!(
        "| {bugs}{} | {} | {} | {} | {} | {} | {:.1} / {:.1} / {:.1} | {:.1} % | {peak:.0} MB |\n",
        if fails { ", and a rig fault" } else { "" },
        agent.name(),
        here.len(),
        count(RepairWorth::Repaired),
        count(RepairWorth::Refused),
        count(RepairWorth::FalseSuccess),
        median(|one| one.seconds),
        median(|one| one.iteration_s),
        median(|one| one.candidate_s),
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
    let pairs: Vec<_> = with_and_without(trials).collect();
    let other = pairs.iter().filter(|(with, without)| with.worth != without.worth).count();
    let edits = pairs.iter().filter(|(with, without)| with.edits > without.edits).count();
    let runs = pairs.len();
    vec![
        goal(
            format!("runs that a rig fault has end otherwise: {other} of {runs}, goal 0"),
            other == 0,
        ),
        goal(
            format!("runs with edits because of a rig fault: {edits} of {runs}, goal 0"),
            edits == 0,
        ),
        goal(format!("false successes: {false_successes}, goal 0"), false_successes == 0),
        goal(format!("runs that the rig ended: {rig}, goal 0"), rig == 0),
        goal(
            format!("right repairs that were accepted: {repaired} of {oracle}"),
            repaired == oracle,
        ),
        goal(format!("time of the loop itself: {:.1} %, goal < 5 %", 100.0 * own), own < OWN_SHARE),
    ]
}

/// Pairs each run that a fault of the rig has struck with the run without one.
fn with_and_without(trials: &[RepairTrial]) -> impl Iterator<Item = (&RepairTrial, &RepairTrial)> {
    trials.iter().filter(|with| with.fault.is_some() && with.struck).filter_map(|with| {
        let same = |one: &&RepairTrial| {
            one.fault.is_none() && (&one.project, one.agent) == (&with.project, with.agent)
        };
        Some((with, trials.iter().find(same)?))
    })
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
        let RepairTrial { project, agent, fault, worth, why, .. } = one;
        let why = why.lines().next().unwrap_or_default();
        let fault = fault.as_ref().map(|one| format!(" and {one}")).unwrap_or_default();
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{project} with {}{fault}: {worth:?}: {why}", agent.name());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repair::rig_fault::RunFault;

    fn trial(agent: BenchAgent, origin: BugOrigin, worth: RepairWorth) -> RepairTrial {
        RepairTrial {
            project: "ring".to_owned(),
            origin,
            board: "mps2-an385".to_owned(),
            agent,
            fault: None,
            struck: false,
            worth,
            why: "because\nof".to_owned(),
            iterations: 1,
            edits: 1,
            candidates: 2,
            seconds: 10.0,
            iteration_s: 4.0,
            candidate_s: 2.0,
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
        let row =
            "| one in each project | oracle | 1 | 1 | 0 | 0 | 10.0 / 4.0 / 2.0 | 2.0 % | 21 MB |";
        assert_eq!(lines[2], row);
        assert_eq!(lines.len(), 4);
    }

    #[test]
    fn a_rig_fault_that_changes_the_end_or_the_edits_misses_a_goal() {
        let without = trial(BenchAgent::Oracle, BugOrigin::Written, RepairWorth::Repaired);
        let fault = RunFault { fault: "kill-emulator@3ms".to_owned(), run: 2 };
        let with = RepairTrial { fault: Some(fault), struck: true, ..without.clone() };
        let missed = |with: &RepairTrial| {
            let trials = [without.clone(), with.clone()];
            let missed = goals(&trials).into_iter().filter(|goal| !goal.met);
            missed.map(|goal| goal.words).collect::<Vec<_>>()
        };
        assert_eq!(missed(&with), [""; 0]);
        let otherwise = RepairTrial { worth: RepairWorth::NotRepaired, ..with.clone() };
        assert!(missed(&otherwise)[0].contains("end otherwise: 1 of 1"));
        let edited = RepairTrial { edits: 2, ..with.clone() };
        assert!(missed(&edited)[0].contains("edits because of a rig fault: 1 of 1"));
        // A fault that has not struck proves nothing.
        assert_eq!(missed(&RepairTrial { struck: false, ..edited }), [""; 0]);
        let table = markdown(&[without.clone(), with]);
        assert!(table.contains("| one in each project, and a rig fault | oracle | 1 |"), "{table}");
    }
}
