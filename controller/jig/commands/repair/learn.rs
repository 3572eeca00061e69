//! What the repair loop learns, and what it is told of what the lab knows.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jig_knowledge::observed::{
    LearningInput, ObservedAttempt, ObservedFailure, ObservedPatch, ObservedRepair, RepairEnd,
    TestTally, bounded_signature,
};
use jig_knowledge::retrieve::KnowledgeHit;
use jig_knowledge::unit::{EvidenceSource, VerificationStatus};
use jig_knowledge::{Observed, SimilarAsked};
use jig_lab::{BoardFacts, Catalogue, KnowledgeDesk};
use jig_model::protocol::BoxFuture;
use jig_model::{Fault, PlaceName, exit};
use jig_repair::agents::templates::TEMPLATES;
use jig_repair::convergence::TestCounts;
use jig_repair::known::{FailureAsked, KnownFailures, KnownUnit};
use jig_repair::patch::Patch;
use jig_repair::proof::{Confidence, proven};
use jig_repair::run::Run;
use jig_repair::setup::{RepairFolder, TASK};
use jig_repair::steps::exit_code;
use jig_repair::task::RepairTask;
use serde::Deserialize;

use super::folders::{find, open, unusable};
use super::rig::RepairRig;
use crate::args::Common;
use crate::failure::Failure;

/// What is read of a result document.
#[derive(Debug, Default, Deserialize)]
struct EndedDocument {
    #[serde(default)]
    suspects: Vec<SuspectLine>,
    #[serde(default)]
    transitions: Vec<JournalRow>,
}

#[derive(Debug, Deserialize)]
struct SuspectLine {
    file: String,
    line: u32,
}

#[derive(Debug, Deserialize)]
struct JournalRow {
    seq: u64,
}

/// Largest result document that is read.
const MOST_DOCUMENT: u64 = 4 << 20;

/// Largest patch that is read.
const MOST_PATCH: u64 = 1 << 20;

/// Where a repair run took place.
pub(super) struct RepairedAt {
    pub(super) desk: KnowledgeDesk,
    pub(super) place: PlaceName,
    pub(super) board: Option<String>,
    pub(super) chip: Option<String>,
    pub(super) by: String,
}

impl RepairedAt {
    pub(super) fn of(catalogue: &Catalogue, place: &PlaceName, board: Option<&BoardFacts>) -> Self {
        Self {
            desk: catalogue.knowledge(),
            place: place.clone(),
            board: board.map(|board| board.board.to_string()),
            chip: board.and_then(|board| board.chip.clone()),
            by: catalogue.user().identity.to_string(),
        }
    }

    /// Learns from a run that has ended, behind its result.
    pub(super) fn learn(&self, name: &str, path: &Path, run: &Run) {
        if let Some(seen) = self.observed(name, path, run) {
            self.desk.capture_repair(seen);
        }
    }

    /// Returns what is seen in a run that has ended; nothing where there was no failure to repair.
    fn observed(&self, name: &str, path: &Path, run: &Run) -> Option<ObservedRepair> {
        let baseline = run.baseline.as_ref().filter(|_| run.ended.is_some())?;
        let folder = RepairFolder::new(path);
        let document = bounded(&folder.document(), MOST_DOCUMENT);
        let ended: EndedDocument = document
            .as_deref()
            .and_then(|text| serde_json::from_slice(text).ok())
            .unwrap_or_default();
        let evidence = document.map(|text| EvidenceSource::of(name, "result.json", 0, &text));
        let signature = bounded_signature(&baseline.signature);
        let is_proven = exit_code(run) == exit::PASS;
        let end = match run.proof.as_ref().map(proven) {
            Some(Ok(Confidence::HeldOut)) if is_proven => RepairEnd::ProvenHeldOut,
            Some(Ok(Confidence::Plausible)) if is_proven => RepairEnd::Proven,
            _ => RepairEnd::Unrepaired,
        };
        let tally = |counts: &TestCounts| TestTally { passed: counts.passed, total: counts.total };
        let attempts = run.attempts.iter().filter(|attempt| !attempt.diagnostic);
        Some(ObservedRepair {
            run: name.to_owned(),
            at: Timestamp::now(),
            by: self.by.clone(),
            place: self.place.to_string(),
            board: self.board.clone(),
            chip: self.chip.clone(),
            goal: run.contract.goal.clone(),
            failure: self.failure(&baseline.run, signature),
            end,
            before: tally(&baseline.counts),
            after: run.attempts.last().map(|last| tally(&last.counts)),
            patch: patch_of(&folder, run),
            suspect: ended.suspects.first().map(|line| format!("{}:{}", line.file, line.line)),
            attempts: attempts
                .map(|attempt| ObservedAttempt {
                    patch: attempt.patch.clone(),
                    signature: attempt.signature.as_deref().map(bounded_signature),
                })
                .collect(),
            evidence: evidence.into_iter().collect(),
            row: ended.transitions.last().map(|row| row.seq),
        })
    }

    /// Returns the failure without a patch, as its run shows it, as far as that is still there.
    fn failure(&self, run: &str, signature: String) -> ObservedFailure {
        let seen = self.desk.observed(run).ok();
        let failure = seen.and_then(|seen| match seen {
            LearningInput::Run(run) => run.failure,
            LearningInput::Repair(_) => None,
        });
        match failure {
            Some(failure) => ObservedFailure { signature, ..failure },
            None => {
                let class = signature.split(" | ").next().unwrap_or_default().to_owned();
                let summary = signature.clone();
                ObservedFailure { class, signature, summary, ..ObservedFailure::default() }
            }
        }
    }
}

/// Learns from a repair run, named by its name, a beginning of that, or `last`.
pub(crate) fn capture_repair(common: &Common, wanted: &str) -> Result<(String, Observed), Failure> {
    let (name, path) = find(common, wanted)?;
    let (_, run) = open(&path)?;
    let task = path.join(TASK);
    let text = fs::read_to_string(&task).map_err(|error| unusable(&task, &error))?;
    let task = RepairTask::parse(TASK, &text).map_err(|bad| Failure::problems(vec![bad]))?;
    let place: PlaceName =
        task.board.parse().map_err(|error| Failure::of(Fault::Profile, &error))?;
    let rig = RepairRig::open(common)?;
    // The place may be gone by now.
    let at = RepairedAt::of(rig.catalogue(), &place, rig.board(&place).ok().as_ref());
    let seen = at.observed(&name, &path, &run).ok_or_else(|| {
        Failure::new(
            Fault::Usage,
            format!("{name} has not ended, or has found no failure to repair"),
        )
        .help(format!("jig repair status {name}"))
    })?;
    Ok((name, at.desk.learner().observe(LearningInput::Repair(Box::new(seen)))?))
}

fn patch_of(folder: &RepairFolder, run: &Run) -> Option<ObservedPatch> {
    let proposed = run.proposed.as_ref().filter(|proposed| !proposed.diagnostic)?;
    let diff = String::from_utf8(bounded(&folder.patch(&proposed.patch), MOST_PATCH)?).ok()?;
    let files = Patch::read(&diff)
        .map(|patch| patch.files.iter().map(|file| file.path().to_owned()).collect::<Vec<_>>());
    Some(ObservedPatch {
        identity: proposed.patch.clone(),
        files: files.unwrap_or_default(),
        diff,
        agent: proposed.agent.clone(),
        hypothesis: proposed.hypothesis.clone(),
        by_model: proposed.agent != TEMPLATES,
    })
}

fn bounded(path: &PathBuf, most: u64) -> Option<Vec<u8>> {
    let about = fs::metadata(path).ok()?;
    (about.is_file() && about.len() <= most).then(|| fs::read(path).ok())?
}

/// What this lab knows, for agents.
pub(super) struct LabKnows {
    pub(super) desk: KnowledgeDesk,
    pub(super) board: Option<String>,
}

impl KnownFailures for LabKnows {
    fn known(&self, asked: FailureAsked) -> BoxFuture<'_, Vec<KnownUnit>> {
        let desk = self.desk.clone();
        let asked = SimilarAsked {
            signature: bounded_signature(&asked.signature),
            text: asked.line.unwrap_or_default(),
            files: asked.files,
            board: self.board.clone(),
        };
        Box::pin(async move {
            let found = tokio::task::spawn_blocking(move || desk.similar(asked)).await;
            found.unwrap_or_default().iter().map(row).collect()
        })
    }
}

fn row(hit: &KnowledgeHit) -> KnownUnit {
    let unit = &hit.unit;
    KnownUnit {
        unit: unit.id.to_string(),
        standing: match unit.standing.status {
            VerificationStatus::Verified => "verified",
            VerificationStatus::Rejected => "rejected",
            VerificationStatus::Pending | VerificationStatus::Expired => "not verified",
        },
        seen: unit.audit.count,
        addresses_agent: hit.instruction.is_some(),
        title: unit.content.title.clone(),
        root_cause: unit.content.root_cause.clone(),
        resolution: unit.content.resolution.clone(),
        patch: unit.content.diff.clone(),
    }
}
