//! What a request amounts to, before the rig is asked whether it has the boards and runs.

use serde::{Deserialize, Serialize};

use super::when::SinceWord;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum UserRequest {
    /// Something is to be done, in this order.
    Act {
        /// What.
        actions: Vec<RequestAction>,
    },
    /// Something is to be found out. Nothing is changed.
    Ask {
        /// What.
        question: RequestQuestion,
    },
}

jig_model::words! {
    /// Names what is done to boards.
    ActionVerb, "verb" {
        /// Puts an image on a board.
        Flash = "flash",
        /// Boots an image and judges what it reports.
        Run = "run",
        /// Runs a test plan.
        Test = "test",
        /// Resets a board.
        Reset = "reset",
        /// Erases the flash of a board.
        Erase = "erase",
        /// Switches the power of a board.
        Power = "power",
        /// Proves that a place works, or recovers it.
        Recover = "recover",
        /// Runs the health checks of a place.
        Check = "check",
    }
}

jig_model::words! {
    /// Names what is done with power.
    PowerWord, "power action" {
        /// On.
        On = "on",
        /// Off.
        Off = "off",
        /// Off and on.
        Cycle = "cycle",
    }
}

/// Something to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestAction {
    /// What.
    pub verb: ActionVerb,
    /// With the power, where the verb is that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<PowerWord>,
    /// The image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The test plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// How often.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<u32>,
    /// Where; nothing where no board is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetWord>,
}

/// Boards as a person names them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetWord {
    /// The name of a place or of a kind of board; nothing where any kind is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How many of them.
    pub amount: Amount,
    /// Only those that nobody uses.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub free: bool,
}

/// How many boards are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Amount {
    /// The one of this name.
    Named,
    /// One of them, whichever.
    Any,
    /// All of them.
    Every,
}

/// A run as a person names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunName {
    /// The newest one.
    Last,
    /// The one before the newest.
    Previous,
    /// The one whose id begins like this.
    Id(String),
}

/// Runs that are asked for by how they went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunsWanted {
    /// Those that did not pass.
    Failed,
    /// Those that passed.
    Passed,
}

/// Something to be found out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum RequestQuestion {
    /// Why a run failed.
    WhyRun {
        /// The run.
        run: RunName,
        /// The board, where the run is the newest one there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        board: Option<String>,
    },
    /// Why a test fails.
    WhyTest {
        /// The test, or the plan.
        test: String,
        /// Where.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        board: Option<String>,
        /// Since when.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<SinceWord>,
    },
    /// Which run was the first that failed.
    Bisect {
        /// The test, or the plan.
        test: String,
        /// Where.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        board: Option<String>,
    },
    /// How two runs differ.
    Compare {
        /// The earlier one.
        before: RunName,
        /// The later one.
        after: RunName,
    },
    /// Which boards there are, or are free.
    Boards {
        /// Only of this kind, or this place.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        board: Option<String>,
        /// Only those that nobody uses.
        free: bool,
    },
    /// The health of places.
    Health {
        /// The place; all of them if not named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        board: Option<String>,
    },
    /// Runs.
    Runs {
        /// Only there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        board: Option<String>,
        /// Since when.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<SinceWord>,
        /// Until when; until now if nothing is said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<SinceWord>,
        /// Only those that went so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        only: Option<RunsWanted>,
    },
    /// What a run is.
    Run {
        /// The run.
        run: RunName,
        /// The board, where the run is the newest one there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        board: Option<String>,
    },
    /// How the last run of a test went.
    TestOutcome {
        /// The test, or the plan.
        test: String,
        /// Where.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        board: Option<String>,
        /// Since when.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<SinceWord>,
        /// Until when.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<SinceWord>,
    },
    /// The end of the time line of a run.
    Log {
        /// The run.
        run: RunName,
        /// The board, where the run is the newest one there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        board: Option<String>,
    },
    /// Whether a board has power.
    Power {
        /// The board.
        board: String,
    },
    /// What a console has printed.
    Console {
        /// The board.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        board: Option<String>,
    },
    /// What the lab has learnt.
    Knowledge {
        /// The words that are looked for.
        words: String,
    },
}

impl std::fmt::Display for RunName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Last => f.write_str("last"),
            Self::Previous => f.write_str("previous"),
            Self::Id(id) => f.write_str(id),
        }
    }
}
