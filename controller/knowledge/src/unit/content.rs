//! What a unit says, what it is about, and where it comes from.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::trigger::CaptureTrigger;

/// What a unit says. All texts may come from targets, logs, people and models: they are data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UnitContent {
    /// One line.
    pub title: String,
    /// A few sentences. Extraction is deterministic, so this is empty or written by a person or a model.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// Whether a model wrote the summary.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub summary_by_model: bool,
    /// What was seen.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub symptom: String,
    /// Why it happened.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub root_cause: String,
    /// What helped, in words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resolution: String,
    /// The change that helped, as a unified diff.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub diff: String,
    /// The steps that helped, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
    /// On what it rests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<EvidenceSource>,
}

/// A range of bytes in a file of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvidenceSource {
    /// The run.
    pub run: String,
    /// The file, from the folder of the run.
    pub file: String,
    /// First byte.
    pub start: u64,
    /// The byte behind the last one.
    pub end: u64,
    /// SHA-256 of these bytes, hexadecimal.
    pub sha256: String,
}

/// What a unit is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UnitMetadata {
    /// The kind of board.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub board: Option<String>,
    /// The chip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chip: Option<String>,
    /// The part of the firmware or of the rig.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub component: Option<String>,
    /// The line of products.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub product_line: Option<String>,
    /// Files that were changed or that failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Class of the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Signature of the failure, see [`jig_model::signature`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// Words to find it by.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// How sure its source was, from 0 to 1.
    pub confidence: f64,
}

impl Default for UnitMetadata {
    fn default() -> Self {
        Self {
            board: None,
            chip: None,
            component: None,
            product_line: None,
            files: Vec::new(),
            class: None,
            signature: None,
            tags: Vec::new(),
            // The least that a search without options finds.
            confidence: 0.5,
        }
    }
}

/// Where a unit comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitAudit {
    /// When it was captured.
    pub created_at: Timestamp,
    /// When its content, metadata or standing changed.
    pub updated_at: Timestamp,
    /// By whom.
    pub created_by: String,
    /// Why it was captured.
    pub trigger: CaptureTrigger,
    /// Number of its content, from 1.
    pub version: u32,
    /// How often it was seen.
    pub count: u64,
    /// When it was seen last.
    pub last_seen: Timestamp,
}

impl EvidenceSource {
    /// Names bytes of a file of a run, by their place and hash.
    pub fn of(run: &str, file: &str, start: u64, bytes: &[u8]) -> Self {
        use sha2::{Digest as _, Sha256};
        let end = start.saturating_add(bytes.len() as u64);
        let sha256 = jig_model::image::hex(&Sha256::digest(bytes));
        Self { run: run.to_owned(), file: file.to_owned(), start, end, sha256 }
    }
}

impl UnitContent {
    /// Returns what the unit says as prose: what is compared with other units.
    pub fn prose(&self) -> String {
        let remedy = self.remedy();
        let parts = [&self.title, &self.summary, &self.symptom, &self.root_cause, &remedy];
        let mut text = String::new();
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            text.push_str(part);
            text.push('\n');
        }
        text
    }

    /// Returns what helped: words, steps and change.
    pub fn remedy(&self) -> String {
        let mut text = self.resolution.clone();
        for part in self.steps.iter().chain([&self.diff]).filter(|part| !part.is_empty()) {
            text.push('\n');
            text.push_str(part);
        }
        text
    }

    /// Goes through all texts.
    pub(crate) fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let Self {
            title,
            summary,
            summary_by_model: _,
            symptom,
            root_cause,
            resolution,
            diff,
            steps,
            evidence,
        } = self;
        let evidence = evidence
            .iter_mut()
            .flat_map(|source| [&mut source.run, &mut source.file, &mut source.sha256]);
        [title, summary, symptom, root_cause, resolution, diff]
            .into_iter()
            .chain(steps)
            .chain(evidence)
    }
}

impl UnitMetadata {
    /// Goes through all texts.
    pub(crate) fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let Self {
            board,
            chip,
            component,
            product_line,
            files,
            class,
            signature,
            tags,
            confidence: _,
        } = self;
        let single = [board, chip, component, product_line, class, signature];
        single.into_iter().flatten().chain(files).chain(tags)
    }
}
