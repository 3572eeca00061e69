//! Which places would do: `bench-1`, `my-board`, or `arch=arm,tag=radio,has=probe`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::document::did_you_mean;
use crate::profile::Arch;
use crate::{BoardId, PlaceName, TagName};

/// Longest selector in bytes, and most terms: far more than people write.
const MOST_TEXT: usize = 1024;
const MOST_TERMS: usize = 32;

/// The keys, as messages list them.
const KEYS: [&str; 7] = ["place", "board", "arch", "chip", "tag", "has", "kind"];

/// Which places would do; all terms have to fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PlaceSelector(Vec<Term>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Term {
    /// A place or a board of this name.
    Named(String),
    Place(String),
    Board(String),
    Arch(String),
    Chip(String),
    Tag(String),
    Has(String),
    Kind(String),
}

/// Says why a text selects no places.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// It is empty.
    #[error("no place is selected; name one, or write such as `arch=arm,tag=radio`")]
    Empty,
    /// It is too long.
    #[error("a selector has at most {MOST_TEXT} bytes and {MOST_TERMS} terms")]
    TooLong,
    /// There is no such key.
    #[error("there is no key {key:?} to select places by; {help}")]
    Key {
        /// The key.
        key: String,
        /// The nearest one.
        help: String,
    },
    /// A key has no value, or the value is none.
    #[error("{0:?} selects nothing: use letters, digits, `.`, `_`, `-` and `+`")]
    Value(String),
}

/// What places are selected by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceTraits {
    /// The place.
    pub place: PlaceName,
    /// Its board.
    pub board: BoardId,
    /// The processor family of its board.
    pub arch: Arch,
    /// Its chip.
    pub chip: Option<String>,
    /// What the rig file calls it beside.
    pub tags: BTreeSet<TagName>,
    /// Its parts: `probe`, `power`, `console`, `network`, `canary`.
    pub parts: BTreeSet<&'static str>,
    /// Whether its board is emulated: kind `emulated`, else `real`.
    pub emulated: bool,
}

impl FromStr for PlaceSelector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        if text.len() > MOST_TEXT {
            return Err(SelectorError::TooLong);
        }
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let terms = parts.map(term).collect::<Result<Vec<_>, _>>()?;
        match terms.len() {
            0 => Err(SelectorError::Empty),
            1..=MOST_TERMS => Ok(Self(terms)),
            _ => Err(SelectorError::TooLong),
        }
    }
}

fn term(text: &str) -> Result<Term, SelectorError> {
    let short = |text: &str| text.chars().take(64).collect::<String>();
    let (key, value) = match text.split_once('=') {
        Some((key, value)) => (Some(key.trim()), value.trim()),
        None => (None, text),
    };
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+');
    let make = match key {
        None => Term::Named,
        Some("place") => Term::Place,
        Some("board") => Term::Board,
        Some("arch") => Term::Arch,
        Some("chip") => Term::Chip,
        Some("tag") => Term::Tag,
        Some("has") => Term::Has,
        Some("kind") => Term::Kind,
        Some(other) => {
            let help = did_you_mean(other, KEYS);
            return Err(SelectorError::Key { key: short(other), help });
        }
    };
    match !value.is_empty() && value.chars().all(allowed) {
        true => Ok(make(value.to_owned())),
        false => Err(SelectorError::Value(short(text))),
    }
}

impl PlaceSelector {
    /// Selects one place.
    pub fn of_place(place: &PlaceName) -> Self {
        Self(vec![Term::Place(place.as_str().to_owned())])
    }

    /// Tells whether a place would do.
    pub fn fits(&self, place: &PlaceTraits) -> bool {
        self.0.iter().all(|term| term.fits(place))
    }

    /// Says which term selects none of some places, and what would select one.
    pub fn why_none(&self, places: &[PlaceTraits]) -> String {
        let Some(term) = self.0.iter().find(|term| !places.iter().any(|at| term.fits(at))) else {
            return format!("each part of `{self}` fits some place, and all together fit none");
        };
        let known: BTreeSet<&str> = places.iter().flat_map(|place| term.known(place)).collect();
        format!("no place has `{term}`; {}", did_you_mean(term.value(), known.iter().copied()))
    }
}

impl Term {
    fn fits(&self, place: &PlaceTraits) -> bool {
        match self {
            Self::Named(name) => place.place.as_str() == name || place.board.as_str() == name,
            Self::Place(name) => place.place.as_str() == name,
            Self::Board(name) => place.board.as_str() == name,
            Self::Arch(arch) => place.arch.as_str() == arch,
            Self::Chip(chip) => {
                place.chip.as_ref().is_some_and(|other| other.eq_ignore_ascii_case(chip))
            }
            Self::Tag(tag) => place.tags.iter().any(|other| other.as_str() == tag),
            Self::Has(part) => place.parts.contains(part.as_str()),
            Self::Kind(kind) => kind == place.kind(),
        }
    }

    /// Lists what a place has of what the term is about.
    fn known<'p>(&self, place: &'p PlaceTraits) -> Vec<&'p str> {
        match self {
            Self::Named(_) => vec![place.place.as_str(), place.board.as_str()],
            Self::Place(_) => vec![place.place.as_str()],
            Self::Board(_) => vec![place.board.as_str()],
            Self::Arch(_) => vec![place.arch.as_str()],
            Self::Chip(_) => place.chip.as_deref().into_iter().collect(),
            Self::Tag(_) => place.tags.iter().map(TagName::as_str).collect(),
            Self::Has(_) => place.parts.iter().copied().collect(),
            Self::Kind(_) => vec![place.kind()],
        }
    }

    fn key(&self) -> Option<&'static str> {
        match self {
            Self::Named(_) => None,
            Self::Place(_) => Some("place"),
            Self::Board(_) => Some("board"),
            Self::Arch(_) => Some("arch"),
            Self::Chip(_) => Some("chip"),
            Self::Tag(_) => Some("tag"),
            Self::Has(_) => Some("has"),
            Self::Kind(_) => Some("kind"),
        }
    }

    fn value(&self) -> &str {
        match self {
            Self::Named(value)
            | Self::Place(value)
            | Self::Board(value)
            | Self::Arch(value)
            | Self::Chip(value)
            | Self::Tag(value)
            | Self::Has(value)
            | Self::Kind(value) => value,
        }
    }
}

impl PlaceTraits {
    fn kind(&self) -> &'static str {
        if self.emulated { "emulated" } else { "real" }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key() {
            Some(key) => write!(f, "{key}={}", self.value()),
            None => f.write_str(self.value()),
        }
    }
}

impl fmt::Display for PlaceSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, term) in self.0.iter().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            write!(f, "{comma}{term}")?;
        }
        Ok(())
    }
}

impl TryFrom<String> for PlaceSelector {
    type Error = SelectorError;

    fn try_from(text: String) -> Result<Self, SelectorError> {
        text.parse()
    }
}

impl From<PlaceSelector> for String {
    fn from(selector: PlaceSelector) -> Self {
        selector.to_string()
    }
}
