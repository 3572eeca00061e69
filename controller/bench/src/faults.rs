//! The faults there are, as the program lists them, and random moments for them.

use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use crate::dice::TrialDice;
use xtask::failure::TaskFailure;
use xtask::process;

/// How long a run takes in which nothing fails.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Natural {
    /// From the run's beginning to its end, in milliseconds.
    pub(crate) run_ms: u64,
    /// From the board's first power to its last, in milliseconds.
    pub(crate) powered_ms: u64,
    /// From the board's first power to the last test that it reports, in milliseconds.
    pub(crate) talking_ms: u64,
}

/// A fault of the program's list.
#[derive(Debug, Deserialize)]
pub(crate) struct ListedFault {
    pub(crate) name: String,
    /// What it takes, if it takes anything.
    argument: Option<String>,
    default: Option<String>,
    /// Where it strikes.
    seam: String,
    /// The kind of transport that it needs, which no emulated board has.
    #[serde(default)]
    transport: Option<String>,
    /// Whether a rig can know that it was the rig: else it cannot be recovered.
    pub(crate) traced: bool,
    moments: FaultMoments,
}

#[derive(Debug, Clone, Copy, Deserialize)]
enum FaultMoments {
    #[serde(rename = "time-since-power-on or share-of-deployment")]
    Running,
    #[serde(rename = "share-of-deployment or time-since-power-on")]
    Deploying,
    #[serde(rename = "time-since-run-began or share-of-deployment")]
    Run,
    #[serde(rename = "time-since-run-began")]
    Command,
    #[serde(rename = "before-deployment")]
    BeforeDeploying,
    /// One that is not known here: the program chooses.
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct List {
    faults: Vec<ListedFault>,
}

/// Asks for all that can strike an emulated board.
pub(crate) fn all(mut jig: Command) -> Result<Vec<ListedFault>, TaskFailure> {
    let text = process::capture(jig.args(["inject", "--list", "--json"]))?;
    let list: Result<List, _> = serde_json::from_slice(&text);
    let list = list.map_err(|e| TaskFailure::Because(format!("the list of faults is odd: {e}")))?;
    Ok(list.faults.into_iter().filter(|fault| fault.transport.is_none()).collect())
}

impl ListedFault {
    /// Writes the fault with a random moment within a run as it naturally goes; `old` is an
    /// image that may be on the board from before.
    pub(crate) fn at_random(&self, natural: &Natural, old: &Path, dice: &mut TrialDice) -> String {
        let share = |dice: &mut TrialDice| format!("{}%", dice.below(101));
        // Faults of a transport have no effect while nothing is transferred.
        let talks = self.seam == "console";
        let span = if talks { natural.talking_ms + 1 } else { natural.powered_ms };
        let running = |dice: &mut TrialDice| format!("{}ms", dice.below(span));
        let moment = match self.moments {
            FaultMoments::Running => running(dice),
            // Half before the board runs and half while it does.
            FaultMoments::Deploying if dice.below(2) == 0 => share(dice),
            FaultMoments::Deploying => running(dice),
            FaultMoments::Run => format!("{}ms", dice.below(natural.run_ms)),
            // The first command that follows is meant, and one follows at the end at least.
            FaultMoments::Command => format!("{}ms", dice.below(natural.run_ms)),
            FaultMoments::BeforeDeploying => "0%".to_owned(),
            FaultMoments::Other => String::new(),
        };
        // What takes something and has no default takes a file, or does without.
        let takes_file = self.argument.is_some() && self.default.is_none();
        let file = if takes_file && dice.below(2) == 0 {
            format!("={}", old.display())
        } else {
            String::new()
        };
        let at = if moment.is_empty() { "" } else { "@" };
        format!("{}{file}{at}{moment}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_lie_within_the_run() {
        let text = r#"{"faults":[{"name":"a","moments":"time-since-run-began","seam":"x","traced":true},
            {"name":"b","moments":"before-deployment","seam":"x","traced":true},
            {"name":"c","moments":"at full moon","seam":"x","traced":true}]}"#;
        let list: List = serde_json::from_str(text).unwrap();
        let natural = Natural { run_ms: 5, powered_ms: 3, talking_ms: 1 };
        let mut dice = TrialDice::new(1, "");
        for _ in 0..50 {
            let written = list.faults[0].at_random(&natural, Path::new("old"), &mut dice);
            let time = written.strip_prefix("a@").and_then(|rest| rest.strip_suffix("ms"));
            assert!(time.unwrap().parse::<u64>().unwrap() < 5, "{written}");
        }
        assert_eq!(list.faults[1].at_random(&natural, Path::new("old"), &mut dice), "b@0%");
        assert_eq!(list.faults[2].at_random(&natural, Path::new("old"), &mut dice), "c");
    }
}
