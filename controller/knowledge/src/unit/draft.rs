//! What is to become a unit: the input of capture.

use jiff::Timestamp;
use jig_model::redact::Redactor;
use serde::{Deserialize, Serialize};

use super::content::{UnitContent, UnitMetadata};
use super::id::UnitId;
use super::limits::{self, UnitLimitError};

/// Why something is captured. The order is that of their priorities: P0, then P1, then P2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaptureTrigger {
    /// P0: it succeeded as a whole.
    Success,
    /// P0: a person marked it.
    Marked,
    /// P1: more than half was fixed, and it is clearly better.
    Partial,
    /// P2: the same failure several times.
    RepeatedFailure,
    /// P2: as many similar fixes as the threshold asks for.
    Threshold,
}

impl CaptureTrigger {
    /// Returns the priority: 0 is the most urgent.
    pub fn priority(self) -> u8 {
        match self {
            Self::Success | Self::Marked => 0,
            Self::Partial => 1,
            Self::RepeatedFailure | Self::Threshold => 2,
        }
    }
}

/// A unit that is not yet stored. Its name is drawn first, so that storing it twice stores it once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    /// The name it gets, unless it turns out to repeat another unit.
    pub id: UnitId,
    /// What it says.
    pub content: UnitContent,
    /// What it is about.
    pub metadata: UnitMetadata,
    /// When it was seen.
    pub at: Timestamp,
    /// By whom it is captured.
    pub by: String,
    /// Why it is captured.
    pub trigger: CaptureTrigger,
}

impl Draft {
    /// Makes a draft without secrets, and with texts that have bounds and no control characters.
    ///
    /// # Errors
    /// It is too large, has no title, or its confidence is no number from 0 to 1.
    pub(crate) fn cleaned(mut self, redactor: &Redactor) -> Result<Self, UnitLimitError> {
        limits::check(&self.content, &self.metadata)?;
        self.content.diff = redactor.source(&self.content.diff);
        for text in self.content.texts_mut().chain(self.metadata.texts_mut()) {
            *text = limits::readable(&redactor.text(text));
        }
        self.by = limits::readable(&redactor.text(&self.by));
        let title = self.content.title.split_whitespace().collect::<Vec<_>>().join(" ");
        self.content.title = limits::cut(&title, limits::MAX_TITLE).to_owned();
        self.metadata.tags.iter_mut().for_each(|tag| *tag = tag.trim().to_lowercase());
        for list in [&mut self.metadata.tags, &mut self.metadata.files] {
            list.retain(|text| !text.is_empty());
            list.sort();
            list.dedup();
        }
        if self.content.title.is_empty() {
            return Err(UnitLimitError::Untitled);
        }
        Ok(self)
    }
}
