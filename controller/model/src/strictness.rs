//! Which output keeps a run from passing because nothing accounts for it.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};
use toml::de::DeValue;

use crate::document::{FromToml, Node};

/// Which output has to be accounted for in a run that passes: to be part of a report, expected or allowed.
///
/// Written `false`, `"behind"` and `true`. The stricter of two is the greater one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strictness {
    /// None; a pass has a note of lines behind the report.
    #[default]
    Off,
    /// What stands behind the end of a report.
    Behind,
    /// All of it.
    All,
}

/// What stands for [`Strictness::Behind`].
const BEHIND: &str = "behind";

impl Strictness {
    /// Tells whether nothing has to be accounted for.
    pub fn is_off(&self) -> bool {
        *self == Self::Off
    }
}

impl From<bool> for Strictness {
    fn from(all: bool) -> Self {
        if all { Self::All } else { Self::Off }
    }
}

impl FromToml for Strictness {
    fn schema() -> Value {
        json!({ "anyOf": [{ "type": "boolean" }, { "const": BEHIND }] })
    }

    fn read(node: &Node<'_>) -> Option<Self> {
        match node.value() {
            DeValue::Boolean(all) => Some((*all).into()),
            DeValue::String(text) if text == BEHIND => Some(Self::Behind),
            _ => {
                node.wrong_type("true, false or \"behind\"", "true");
                None
            }
        }
    }
}

impl Serialize for Strictness {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => serializer.serialize_bool(false),
            Self::Behind => serializer.serialize_str(BEHIND),
            Self::All => serializer.serialize_bool(true),
        }
    }
}

impl<'de> Deserialize<'de> for Strictness {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Bool(all) => Ok(all.into()),
            Value::String(text) if text == BEHIND => Ok(Self::Behind),
            _ => Err(D::Error::custom("strict is true, false or \"behind\"")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stricter_of_two_is_the_greater_one() {
        let written = ["false", "\"behind\"", "true"];
        let read = written.map(|text| serde_json::from_str::<Strictness>(text).unwrap());
        assert_eq!(read, [Strictness::Off, Strictness::Behind, Strictness::All]);
        assert!(read.is_sorted());
        assert_eq!(read.map(|strict| serde_json::to_string(&strict).unwrap()), written);
        serde_json::from_str::<Strictness>("\"in front\"").unwrap_err();
    }
}
