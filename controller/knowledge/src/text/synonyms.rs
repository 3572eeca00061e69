//! Words that mean the same, as data.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::tokens::tokens;

const BUILT_IN: &str = include_str!("synonyms.toml");

/// Most words that stand for one.
const MOST: usize = 12;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SynonymFile {
    same: Vec<Vec<String>>,
}

/// Says what is wrong with a file of synonyms.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SynonymError {
    /// It is not TOML of the right form.
    #[error("the synonyms cannot be read: {0}")]
    Unreadable(String),
    /// A group has too few or too many members.
    #[error("the group of {first:?} has {found} words; a group has from 2 to {MOST}")]
    Group {
        /// Its first word.
        first: String,
        /// How many it has.
        found: usize,
    },
}

/// Words that mean the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Synonyms(BTreeMap<String, Vec<String>>);

impl Synonyms {
    /// Returns those that come with Jig.
    ///
    /// # Errors
    /// The file that was built in is wrong; a test reads it.
    pub fn built_in() -> Result<Self, SynonymError> {
        Self::read(BUILT_IN)
    }

    /// Reads groups of words: `same = [["hang", "freeze", "lockup"]]`.
    ///
    /// # Errors
    /// Says what is wrong with the text.
    pub fn read(text: &str) -> Result<Self, SynonymError> {
        let file: SynonymFile = toml::from_str(text)
            .map_err(|error| SynonymError::Unreadable(error.message().to_owned()))?;
        let mut same: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for group in file.same {
            if !(2..=MOST).contains(&group.len()) {
                let first = group.first().cloned().unwrap_or_default();
                return Err(SynonymError::Group { first, found: group.len() });
            }
            let group: Vec<String> =
                group.iter().filter_map(|word| tokens(word).into_iter().next()).collect();
            for word in &group {
                let others = same.entry(word.clone()).or_default();
                others.extend(group.iter().filter(|other| *other != word).cloned());
            }
        }
        Ok(Self(same))
    }

    /// Returns the words that mean the same as a token.
    pub fn of(&self, token: &str) -> &[String] {
        self.0.get(token).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_words_are_sound() {
        let words = Synonyms::built_in().unwrap();
        assert!(words.of("hang").iter().any(|word| word == "freeze"));
        assert_eq!(words.of("ring_push"), [] as [String; 0]);
    }

    #[test]
    fn a_group_of_one_is_refused() {
        let refused = Synonyms::read("same = [[\"hang\"]]");
        assert_eq!(refused, Err(SynonymError::Group { first: "hang".to_owned(), found: 1 }));
    }
}
