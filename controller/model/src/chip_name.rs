//! Names of chips, checked once, where they enter.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// What stands before the name of a chip that is used as a board.
pub(crate) const CHIP_PREFIX: &str = "chip:";

/// Names a chip as chip descriptions do, such as `STM32F411CEUx`.
///
/// 1 to 59 bytes of `[A-Za-z0-9._+-]`, starting with a letter or digit.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct ChipName(String);

/// Says why a text names no chip.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no chip's name: use 1 to {LONGEST} of a-z, A-Z, 0-9, `.`, `_`, `+` and `-`, starting \
     with a letter or digit (see: jig chips PATTERN)"
)]
pub struct ChipNameError {
    text: String,
}

/// Longest name, in bytes: with [`CHIP_PREFIX`] it is as long as the longest name of a board.
const LONGEST: usize = 59;

impl ChipName {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ChipName {
    type Err = ChipNameError;

    fn from_str(text: &str) -> Result<Self, ChipNameError> {
        let fits = |c: char| c.is_ascii_alphanumeric() || "._+-".contains(c);
        let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        if begins && text.len() <= LONGEST && text.chars().all(fits) {
            Ok(Self(text.to_owned()))
        } else {
            Err(ChipNameError { text: text.chars().take(LONGEST).collect() })
        }
    }
}

impl fmt::Display for ChipName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
