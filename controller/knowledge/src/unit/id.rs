//! Names of units.

use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

const PREFIX: &str = "k-";

/// Hexadecimal digits behind the prefix: 48 bits, so that a million units of many labs have a chance
/// of 1 in 500 that two of them share a name. An import then shows a conflict and replaces nothing.
const DIGITS: usize = 12;

/// The name of a unit: `k-` and twelve hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct UnitId(String);

/// Says that a text is not the name of a unit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the name of a unit is `k-` and {DIGITS} hexadecimal digits, such as k-0123456789ab")]
pub struct UnitIdError;

impl UnitId {
    /// Draws a name by the randomness that the standard library has for hash tables.
    pub fn random() -> Self {
        let drawn = RandomState::new().build_hasher().finish();
        Self(format!("{PREFIX}{:012x}", drawn & 0xffff_ffff_ffff))
    }

    /// Derives a name from what a unit is the only one for: the same words give the same name.
    pub fn derived(words: &[&str]) -> Self {
        let hash = crate::text::digest_of(&words.join("\u{0}"));
        Self(format!("{PREFIX}{}", &hash[..DIGITS]))
    }

    /// Returns it as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for UnitId {
    type Err = UnitIdError;

    fn from_str(text: &str) -> Result<Self, UnitIdError> {
        let digits = text.strip_prefix(PREFIX).ok_or(UnitIdError)?;
        let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        let fits = digits.len() == DIGITS && digits.bytes().all(hex);
        if fits { Ok(Self(text.to_owned())) } else { Err(UnitIdError) }
    }
}

impl TryFrom<String> for UnitId {
    type Error = UnitIdError;

    fn try_from(text: String) -> Result<Self, UnitIdError> {
        text.parse()
    }
}

impl From<UnitId> for String {
    fn from(id: UnitId) -> Self {
        id.0
    }
}

impl fmt::Display for UnitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_others_are_refused() {
        let id = UnitId::random();
        assert_eq!(id.as_str().parse(), Ok(id.clone()));
        assert_ne!(id, UnitId::random());
        let derived = UnitId::derived(&["a", "b"]);
        assert_eq!(derived.as_str().parse(), Ok(derived.clone()));
        assert_eq!(derived, UnitId::derived(&["a", "b"]));
        assert_ne!(derived, UnitId::derived(&["ab", ""]));
        for wrong in
            ["", "k-", "k-0123456789AB", "k-0123456789abc", "x-0123456789ab", "k-../../etc/"]
        {
            assert_eq!(wrong.parse::<UnitId>(), Err(UnitIdError), "{wrong}");
        }
    }
}
