//! A unit of knowledge: content, metadata, standing and audit.

mod content;
mod draft;
mod id;
mod limits;
mod standing;
mod trigger;

pub use content::{EvidenceSource, UnitAudit, UnitContent, UnitMetadata};
pub use draft::Draft;
pub use id::{UnitId, UnitIdError};
pub(crate) use limits::readable as readable_text;
pub use limits::{MAX_UNIT, UnitLimitError};
pub use standing::{IllegalStanding, MAX_MATURITY, Standing, StandingEvent, VerificationStatus};
pub use trigger::CaptureTrigger;

use serde::{Deserialize, Serialize};

/// One piece of knowledge, as it is stored, shown and exported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnowledgeUnit {
    /// Its name, the same in every lab that has it.
    pub id: UnitId,
    /// What it says.
    pub content: UnitContent,
    /// What it is about.
    pub metadata: UnitMetadata,
    /// How far it is believed.
    pub standing: Standing,
    /// Where it comes from.
    pub audit: UnitAudit,
}
