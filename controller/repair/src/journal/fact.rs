//! What steps find out that later steps need to know.

use std::collections::BTreeSet;

use jig_agents::Usage;
use serde::{Deserialize, Serialize};

use crate::convergence::TestCounts;
use crate::proof::ProofFacts;
use crate::recovery::{ErrorClass, RecoveryAction};
use crate::test_code::TestCode;

/// Something that a step found out. Each replaces the earlier one of its kind, unless it says that
/// it is counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "kebab-case")]
pub enum Fact {
    /// How the required tests end without a patch.
    Baseline(FailedBaseline),
    /// Which code decides what the tests say.
    TestCode(TestCode),
    /// An agent proposed a patch.
    Proposed(Proposed),
    /// A proposal was refused. Counted.
    Refused {
        /// Identity of the change; empty where it is not even a patch.
        patch: String,
        /// Why, in words that an agent can act on; may quote hostile text.
        why: String,
    },
    /// Candidates were tried that do not make the tests pass. Counted.
    Screened {
        /// Identities of their changes.
        patches: Vec<String>,
    },
    /// What an answer cost that held no patch. Counted.
    Used(Usage),
    /// What was looked at once the required tests pass.
    Proved(Box<ProofFacts>),
    /// The candidate is a commit.
    Applied {
        /// The commit.
        commit: String,
        /// Its risk in percent, where no person has approved it; counted.
        #[serde(default)]
        risk: u64,
    },
    /// The candidate was taken back.
    RolledBack,
    /// The candidate was built.
    Built {
        /// SHA-256 of the image, in lower-case hex.
        image: String,
    },
    /// The candidate was tested. Counted.
    Tested {
        /// The run of the plan.
        run: String,
        /// Its tests.
        counts: TestCounts,
        /// Signature of the failure; `None` where all tests passed.
        signature: Option<String>,
    },
    /// A step failed. Counted by class.
    Failed {
        /// Class of the error.
        class: ErrorClass,
    },
    /// An error was recovered.
    Recovered {
        /// By what.
        action: RecoveryAction,
        /// Whether the iteration counts.
        uses_iteration: bool,
    },
    /// A step waited for builds, the rig or an agent. Counted.
    Waited {
        /// For how long, in milliseconds.
        ms: u64,
    },
    /// A document on which a proof rests was written.
    Kept {
        /// Its path below the folder of the run.
        file: String,
        /// SHA-256 of it, in lower-case hex.
        sha256: String,
    },
    /// Files that git tracks and that the build without a patch rewrites.
    Rewritten {
        /// Their paths in the repository.
        files: BTreeSet<String>,
    },
    /// A real board was flashed. Counted.
    Flashed,
    /// The run waits for an approval of what has this digest.
    Waits {
        /// SHA-256 in lower-case hex of what an answer is for, such as patch, image and board.
        digest: String,
    },
}

/// How the required tests end without a patch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedBaseline {
    /// Tests of one run of the plan.
    pub counts: TestCounts,
    /// Signature of the failure.
    pub signature: String,
    /// The run of the plan that shows it.
    pub run: String,
    /// SHA-256 of the image without a patch.
    pub image: String,
    /// Nothing shows where the firmware fails: it prints nothing, and no place in it is known.
    #[serde(default)]
    pub silent: bool,
}

/// A patch that an agent proposed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposed {
    /// Identity of the change: equal for equal changes.
    pub patch: String,
    /// SHA-256 of the diff as it is applied, in lower-case hex: to this an approval is bound.
    #[serde(default)]
    pub diff: String,
    /// The agent.
    pub agent: String,
    /// What it takes for the cause.
    pub hypothesis: String,
    /// What it cost. Counted.
    pub usage: Usage,
    /// It shows where the failure is, and is never part of a repair.
    #[serde(default)]
    pub diagnostic: bool,
}
