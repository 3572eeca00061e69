//! What is known of a failure when it is seen again.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::KnowledgeError;
use crate::store::KnowledgeStore;
use crate::text::instruction_in;
use crate::unit::{KnowledgeUnit, UnitId, VerificationStatus};

/// Most units that are told.
const UNITS: usize = 3;

/// Longest line of a unit, in characters.
const LINE: usize = 160;

/// What is known of a failure. Its texts are data: escape them before a terminal shows them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenBefore {
    /// Signature of the failure.
    pub signature: String,
    /// Runs that have failed so before.
    pub count: u64,
    /// When the last one of them ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Timestamp>,
    /// That run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<String>,
    /// What is known of it: what helped and is believed most comes first.
    pub units: Vec<SeenUnit>,
}

/// A unit about a failure, in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenUnit {
    /// The unit.
    pub id: UnitId,
    /// Its title.
    pub title: String,
    /// The first line of what helped; empty where nothing is known to help.
    pub remedy: String,
    /// Whether it is proven.
    pub status: VerificationStatus,
    /// How far it is believed.
    pub maturity: u8,
    /// How often it was seen.
    pub count: u64,
    /// Whether its text addresses an agent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub addresses_agent: bool,
}

impl SeenBefore {
    /// Says it in one line, such as `3 times, last in run R; fixed by ... (verified): jig kb show UNIT`.
    pub fn words(&self) -> String {
        let mut parts = Vec::new();
        if self.count > 0 {
            let s = if self.count == 1 { "" } else { "s" };
            let last = self.last_run.as_ref().map(|run| format!(", last in run {run}"));
            parts.push(format!("{} time{s}{}", self.count, last.unwrap_or_default()));
        }
        if let Some(unit) = self.units.first() {
            let standing = match unit.status {
                VerificationStatus::Verified => "verified",
                VerificationStatus::Rejected => "rejected",
                VerificationStatus::Pending | VerificationStatus::Expired => "not verified",
            };
            let SeenUnit { id, title, .. } = unit;
            parts.push(format!("{title} ({standing}): jig kb show {id}"));
        }
        parts.join("; ")
    }
}

impl SeenUnit {
    fn of(unit: &KnowledgeUnit) -> Self {
        let content = &unit.content;
        let remedy =
            content.resolution.lines().next().or(content.steps.first().map(String::as_str));
        let clip = |text: &str| text.chars().take(LINE).collect::<String>();
        Self {
            id: unit.id.clone(),
            title: clip(&content.title),
            remedy: clip(remedy.unwrap_or_default()),
            status: unit.standing.status,
            maturity: unit.standing.maturity,
            count: unit.audit.count,
            addresses_agent: instruction_in(&content.prose()).is_some(),
        }
    }

    /// The order of what is told: what helps, is not refuted, is believed, was seen often.
    fn rank(&self) -> (bool, bool, bool, u8, u64) {
        let refuted = self.status == VerificationStatus::Rejected;
        let verified = self.status == VerificationStatus::Verified;
        (refuted, self.remedy.is_empty(), !verified, u8::MAX - self.maturity, u64::MAX - self.count)
    }
}

impl KnowledgeStore {
    /// Tells what is known of a signature, but for one run; nothing where nothing is.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn seen_before(
        &self,
        signature: &str,
        without: &str,
    ) -> Result<Option<SeenBefore>, KnowledgeError> {
        let (count, last) = self.seen_runs(signature, without)?;
        let units = self.units_of_signature(signature)?;
        let mut units: Vec<_> = units.iter().map(SeenUnit::of).collect();
        units.sort_by_key(SeenUnit::rank);
        units.truncate(UNITS);
        if count == 0 && units.is_empty() {
            return Ok(None);
        }
        let (last_run, last) = match last {
            Some((run, at)) => (Some(run), Timestamp::from_microsecond(at).ok()),
            None => (None, None),
        };
        let signature = signature.to_owned();
        Ok(Some(SeenBefore { signature, count, last, last_run, units }))
    }
}
