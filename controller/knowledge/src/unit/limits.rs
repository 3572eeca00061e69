//! Bounds of a unit. What comes from targets, peers, files and models is checked by them.

use super::content::{UnitContent, UnitMetadata};

/// Most bytes of all texts of a unit. Logs belong into the run; a unit names a range of them.
pub const MAX_UNIT: usize = 1 << 20;

/// Longest title, in bytes.
pub(super) const MAX_TITLE: usize = 300;

/// Most members of a list.
const MAX_LIST: usize = 256;

/// Longest name, tag or path.
const MAX_NAME: usize = 1024;

/// Says why something cannot be a unit.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum UnitLimitError {
    /// It has too many bytes.
    #[error("its texts have {0} bytes and may have {MAX_UNIT}; quote less, and name the run")]
    TooLarge(usize),
    /// A list has too many members.
    #[error("{what} has {found} members and may have {MAX_LIST}")]
    TooMany {
        /// Which list.
        what: &'static str,
        /// How many it has.
        found: usize,
    },
    /// A name is too long.
    #[error("{what} has {found} bytes and may have {MAX_NAME}")]
    LongName {
        /// Which name.
        what: &'static str,
        /// How many bytes it has.
        found: usize,
    },
    /// It has no title.
    #[error("it has no title")]
    Untitled,
    /// Its confidence is out of range.
    #[error("its confidence is {0}, and confidence is a number from 0 to 1")]
    Confidence(f64),
}

pub(super) fn check(content: &UnitContent, metadata: &UnitMetadata) -> Result<(), UnitLimitError> {
    let (mut content, mut metadata) = (content.clone(), metadata.clone());
    let size = content.texts_mut().chain(metadata.texts_mut()).map(|text| text.len()).sum();
    if size > MAX_UNIT {
        return Err(UnitLimitError::TooLarge(size));
    }
    let lists = [
        ("the list of steps", content.steps.len()),
        ("the list of evidence", content.evidence.len()),
        ("the list of files", metadata.files.len()),
        ("the list of tags", metadata.tags.len()),
    ];
    if let Some((what, found)) = lists.into_iter().find(|(_, found)| *found > MAX_LIST) {
        return Err(UnitLimitError::TooMany { what, found });
    }
    if let Some(found) = metadata.texts_mut().map(|text| text.len()).find(|len| *len > MAX_NAME) {
        return Err(UnitLimitError::LongName { what: "a name, tag, path or signature", found });
    }
    let confidence = metadata.confidence;
    if !(0.0..=1.0).contains(&confidence) {
        return Err(UnitLimitError::Confidence(confidence));
    }
    Ok(())
}

/// Replaces control characters but line ends and tabs, and characters that reorder or hide text.
pub(crate) fn readable(text: &str) -> String {
    let hides = |c: char| {
        matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}')
    };
    let bad = |c: char| (c.is_control() && !matches!(c, '\n' | '\t')) || hides(c);
    text.replace("\r\n", "\n").chars().map(|c| if bad(c) { '\u{fffd}' } else { c }).collect()
}

/// Cuts a text at the end of a character.
pub(super) fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}
