//! What the rig, its recoveries and the repair loop have seen: the input of capture. Pure.
//!
//! Owns the bounds of what is seen: texts come from targets, logs, peers and models.
//! Refuses to judge: an end is what the verdict of the run says.
//!
//! # Design
//! One type for each source, and nothing of the crates that the sources are. A source that comes later
//! hands in an [`LearningInput`] of its own kind, or a [`crate::unit::Draft`] where it has nothing to compare.

use jiff::Timestamp;
use jig_model::redact::Redactor;
use jig_model::signature::signature;
use serde::{Deserialize, Serialize};

use crate::text::digest_of;
use crate::unit::{EvidenceSource, readable_text};

/// Longest signature that is stored whole: tags and names of units have bounds.
const SIGNATURE: usize = 900;

/// Longest name.
const NAME: usize = 512;

/// Longest text of a target that is quoted, such as a line or a range of evidence.
const QUOTE: usize = 2048;

/// Longest diff.
const DIFF: usize = 256 << 10;

/// Most names of tests, attempts and recoveries.
const MOST: usize = 1000;

/// Most ranges of evidence, and most quotes.
const EVIDENCE: usize = 8;

/// Something that was seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case", deny_unknown_fields)]
pub enum LearningInput {
    /// A run of the rig.
    Run(Box<ObservedRun>),
    /// A run of the repair loop.
    Repair(Box<ObservedRepair>),
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObservedEnd {
    /// The target passed.
    Passed,
    /// The target failed.
    Failed,
    /// The rig failed.
    RigFailed,
    /// Nothing is proven: flaky, inconclusive, cancelled.
    Unclear,
}

impl ObservedEnd {
    /// Returns its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::RigFailed => "rig failed",
            Self::Unclear => "unclear",
        }
    }
}

/// A run of the rig that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObservedRun {
    /// The run. It is learnt from once.
    pub run: String,
    /// When it ended.
    pub at: Timestamp,
    /// Who asked for it.
    pub by: String,
    /// The place.
    pub place: Option<String>,
    /// The kind of board.
    pub board: Option<String>,
    /// The chip.
    pub chip: Option<String>,
    /// The plan.
    pub plan: Option<String>,
    /// The image.
    pub image: Option<ObservedImage>,
    /// How it ended.
    pub end: ObservedEnd,
    /// What failed, where something did.
    pub failure: Option<ObservedFailure>,
    /// Names of the cases that passed.
    pub passed: Vec<String>,
    /// Steps by which the rig was recovered, or was not.
    pub recoveries: Vec<ObservedRecovery>,
    /// Whether a fault was injected: such a run teaches nothing.
    pub drill: bool,
    /// Whether the repair loop made it, which fails and passes on purpose.
    pub in_repair: bool,
}

/// An image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObservedImage {
    /// Name of its file.
    pub name: String,
    /// SHA-256 of the file, hexadecimal.
    pub sha256: String,
    /// Its build id.
    pub build_id: Option<String>,
    /// Commit of the work tree that it lay in.
    pub commit: Option<String>,
}

/// A failure.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObservedFailure {
    /// Its class: the cause of the verdict.
    pub class: String,
    /// Its signature, of bounded length.
    pub signature: String,
    /// One line.
    pub summary: String,
    /// Names of the cases that failed or did not end.
    pub failed: Vec<String>,
    /// The line that shows it best.
    pub line: Option<String>,
    /// What the target printed, in short.
    pub quotes: Vec<String>,
    /// Where that stands.
    pub evidence: Vec<EvidenceSource>,
    /// Source files that it names.
    pub files: Vec<String>,
}

/// A step of recovery that was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObservedRecovery {
    /// What was wrong.
    pub cause: String,
    /// The step.
    pub step: String,
    /// Whether the rig worked behind it.
    pub ok: bool,
}

/// A run of the repair loop that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObservedRepair {
    /// The run. It is learnt from once.
    pub run: String,
    /// When it ended.
    pub at: Timestamp,
    /// Who asked for it.
    pub by: String,
    /// The place.
    pub place: String,
    /// The kind of board.
    pub board: Option<String>,
    /// The chip.
    pub chip: Option<String>,
    /// What was to be reached.
    pub goal: String,
    /// The failure without a patch.
    pub failure: ObservedFailure,
    /// How it ended.
    pub end: RepairEnd,
    /// Tests that passed without a patch, and tests in all.
    pub before: TestTally,
    /// The same with the candidate that was tested last.
    pub after: Option<TestTally>,
    /// The candidate that was proposed last.
    pub patch: Option<ObservedPatch>,
    /// The line that is suspected most.
    pub suspect: Option<String>,
    /// Candidates that were tested.
    pub attempts: Vec<ObservedAttempt>,
    /// On what a proof rests.
    pub evidence: Vec<EvidenceSource>,
    /// The row of the journal that decided.
    pub row: Option<u64>,
}

/// How a run of the repair loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RepairEnd {
    /// The patch is proven, with the revert check, and a held-out plan passes.
    ProvenHeldOut,
    /// The patch is proven, with the revert check; there is no held-out plan.
    Proven,
    /// It is not repaired.
    Unrepaired,
}

impl RepairEnd {
    /// Tells whether the patch is proven.
    pub fn is_proven(self) -> bool {
        matches!(self, Self::ProvenHeldOut | Self::Proven)
    }
}

/// Tests that passed, of how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestTally {
    /// Tests that passed.
    pub passed: u64,
    /// Tests in all.
    pub total: u64,
}

/// A patch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObservedPatch {
    /// Its identity: equal for equal changes.
    pub identity: String,
    /// The unified diff.
    pub diff: String,
    /// Files that it changes.
    pub files: Vec<String>,
    /// Who proposed it.
    pub agent: String,
    /// What that took for the cause.
    pub hypothesis: String,
    /// Whether a model may have written the hypothesis.
    pub by_model: bool,
}

/// A candidate that was tested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObservedAttempt {
    /// Identity of its patch.
    pub patch: String,
    /// Signature of the failure with it; nothing where all tests passed.
    pub signature: Option<String>,
}

/// Returns a signature as it is stored and looked for: a long one is cut, and ends with its hash.
pub fn bounded_signature(text: &str) -> String {
    if text.len() <= SIGNATURE {
        return text.to_owned();
    }
    let hash = digest_of(text);
    format!("{} ~{}", &text[..text.floor_char_boundary(SIGNATURE - 20)], &hash[..16])
}

/// Returns the signature of a failure of the rig: the same cause at another place is another failure.
pub fn rig_signature(cause: &str, place: &str) -> String {
    bounded_signature(&signature(&format!("rig:{cause}"), [place], None))
}

impl LearningInput {
    /// Returns the run, by which it is learnt from once.
    pub fn run(&self) -> &str {
        match self {
            Self::Run(run) => &run.run,
            Self::Repair(repair) => &repair.run,
        }
    }

    /// Returns when it ended.
    pub fn at(&self) -> Timestamp {
        match self {
            Self::Run(run) => run.at,
            Self::Repair(repair) => repair.at,
        }
    }

    /// Makes an observation without secrets, whose texts have bounds and no control characters.
    #[must_use]
    pub fn cleaned(mut self, redactor: &Redactor) -> Self {
        let clean = |text: &mut String, most: usize| {
            let whole = readable_text(&redactor.text(text));
            *text = whole[..whole.floor_char_boundary(most)].to_owned();
        };
        let names = |list: &mut Vec<String>| {
            list.truncate(MOST);
            list.iter_mut().for_each(|name| clean(name, NAME));
        };
        let failure = |failure: &mut ObservedFailure| {
            let ObservedFailure {
                class,
                signature,
                summary,
                failed,
                line,
                quotes,
                evidence,
                files,
            } = failure;
            clean(class, NAME);
            *signature = bounded_signature(&readable_text(&redactor.text(signature)));
            clean(summary, QUOTE);
            line.iter_mut().for_each(|line| clean(line, QUOTE));
            names(failed);
            names(files);
            quotes.truncate(EVIDENCE);
            quotes.iter_mut().for_each(|quote| clean(quote, QUOTE));
            evidence.truncate(EVIDENCE);
        };
        match &mut self {
            Self::Run(run) => {
                clean(&mut run.run, NAME);
                clean(&mut run.by, NAME);
                let named = [&mut run.place, &mut run.board, &mut run.chip, &mut run.plan];
                named.into_iter().flatten().for_each(|name| clean(name, NAME));
                if let Some(image) = &mut run.image {
                    clean(&mut image.name, NAME);
                    clean(&mut image.sha256, NAME);
                    let more = [&mut image.build_id, &mut image.commit];
                    more.into_iter().flatten().for_each(|text| clean(text, NAME));
                }
                run.failure.iter_mut().for_each(failure);
                names(&mut run.passed);
                run.recoveries.truncate(MOST);
                for one in &mut run.recoveries {
                    clean(&mut one.cause, NAME);
                    clean(&mut one.step, NAME);
                }
            }
            Self::Repair(repair) => {
                clean(&mut repair.run, NAME);
                clean(&mut repair.by, NAME);
                clean(&mut repair.place, NAME);
                let named = [&mut repair.board, &mut repair.chip, &mut repair.suspect];
                named.into_iter().flatten().for_each(|name| clean(name, NAME));
                clean(&mut repair.goal, QUOTE);
                failure(&mut repair.failure);
                if let Some(patch) = &mut repair.patch {
                    clean(&mut patch.identity, NAME);
                    let diff = redactor.source(&patch.diff);
                    patch.diff = diff[..diff.floor_char_boundary(DIFF)].to_owned();
                    names(&mut patch.files);
                    clean(&mut patch.agent, NAME);
                    clean(&mut patch.hypothesis, QUOTE);
                }
                repair.attempts.truncate(MOST);
                for attempt in &mut repair.attempts {
                    clean(&mut attempt.patch, NAME);
                    let signature = attempt.signature.take();
                    attempt.signature = signature
                        .map(|text| bounded_signature(&readable_text(&redactor.text(&text))));
                }
                repair.evidence.truncate(EVIDENCE);
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_signature_is_cut_and_stays_apart_from_others() {
        let long = |end: &str| format!("test_failed | {}{end}", "test_a,".repeat(400));
        let (one, other) = (bounded_signature(&long("x")), bounded_signature(&long("y")));
        assert!(one.len() <= SIGNATURE && one != other);
        assert_eq!(bounded_signature(&one), one);
        assert_eq!(rig_signature("probe_missing", "bench-3"), "rig:probe_missing | bench-3");
    }
}
