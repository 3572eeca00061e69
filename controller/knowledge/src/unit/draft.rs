//! What is to become a unit: the input of capture.

use jiff::Timestamp;
use jig_model::redact::Redactor;
use serde::{Deserialize, Serialize};

use super::content::{UnitContent, UnitMetadata};
use super::id::UnitId;
use super::limits::{self, UnitLimitError};
use super::trigger::CaptureTrigger;

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
