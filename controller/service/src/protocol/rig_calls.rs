//! Calls that look at a rig and at its runs.

use std::collections::BTreeMap;

use jig_lab::{
    BoardFacts, DescribedRig, KnowledgeAnswered, KnowledgeOrder, PrunedRuns, RigQuery, RigView,
    RunLimits,
};
use jig_model::{PlaceName, RunId};
use serde::{Deserialize, Serialize};

use super::{Nothing, RpcCall};

/// Path of the events of a run within it.
pub const EVENTS: &str = "events.jsonl";

/// Looks at the rig.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ViewRig {
    /// What is asked.
    pub query: RigQuery,
}

impl RpcCall for ViewRig {
    const METHOD: &'static str = "rig.view";
    type Answer = RigView;
}

/// Asks what describes the rig. Answered to users of the rig's host, who find out by it whether the
/// host serves the rig that they mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DescribeRig {}

impl RpcCall for DescribeRig {
    const METHOD: &'static str = "rig.describe";
    type Answer = DescribedRig;
}

/// Asks what the board of a place is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DescribeBoard {
    /// The place.
    pub place: PlaceName,
}

impl RpcCall for DescribeBoard {
    const METHOD: &'static str = "rig.board";
    type Answer = BoardFacts;
}

/// Asks something of the knowledge of the rig, as whom the caller acts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskKnowledge {
    /// What.
    pub order: KnowledgeOrder,
}

impl RpcCall for AskKnowledge {
    const METHOD: &'static str = "rig.knowledge";
    type Answer = KnowledgeAnswered;
}

/// Removes runs of the rig that are not to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PruneRuns {
    /// Which may stay.
    pub limits: RunLimits,
}

impl RpcCall for PruneRuns {
    const METHOD: &'static str = "runs.prune";
    type Answer = PrunedRuns;
}

/// Streams events and consoles of a run, as [`RunPiece`], until the run has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WatchRun {
    /// The run.
    pub run: RunId,
    /// How many bytes of each file the caller has; none of a file that is not named.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub have: BTreeMap<String, u64>,
    /// Whether what the logs of the consoles hold at this moment is left out.
    #[serde(default)]
    pub from_now: bool,
}

impl RpcCall for WatchRun {
    const METHOD: &'static str = "run.watch";
    type Answer = Nothing;
}

/// The next bytes of a file of a run that is watched. The first of each file says where the caller
/// stands, and may have no bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunPiece {
    /// The call that watches the run.
    pub call: u64,
    /// Path of the file within the run: `events.jsonl`, or a console's `consoles/<attempt>/<name>.raw`.
    pub path: String,
    /// Where the bytes begin.
    pub offset: u64,
    /// The bytes, in base64.
    pub data: String,
}
