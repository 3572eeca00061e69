//! What connects the records of one request: its session, and the id of its trace.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::name::RunId;

/// Says why a text is no id of a trace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no id of a trace: use 32 lower-case hexadecimal digits, not all of them 0")]
pub struct TraceIdError(String);

/// The id of a trace as W3C Trace Context has it: 32 lower-case hexadecimal digits, not all zero.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
pub struct TraceId(#[schemars(regex(pattern = r"^[0-9a-f]{32}$"))] String);

impl TraceId {
    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for TraceId {
    type Err = TraceIdError;
    fn from_str(text: &str) -> Result<Self, TraceIdError> {
        let digits = text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if text.len() == 32 && digits && text.bytes().any(|b| b != b'0') {
            Ok(Self(text.to_owned()))
        } else {
            Err(TraceIdError(text.chars().take(64).collect()))
        }
    }
}

impl TryFrom<String> for TraceId {
    type Error = TraceIdError;
    fn try_from(text: String) -> Result<Self, TraceIdError> {
        text.parse()
    }
}

impl From<TraceId> for String {
    fn from(id: TraceId) -> String {
        id.0
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The session that asks for a run, and the trace that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionTrace {
    /// The session, by its name.
    pub session: RunId,
    /// The trace.
    pub trace_id: TraceId,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_a_trace_is_sixteen_bytes_in_hex_and_not_zero() {
        let good = "0af7651916cd43dd8448eb211c80319c";
        assert_eq!(good.parse::<TraceId>().unwrap().as_str(), good);
        let (zero, upper) = ("0".repeat(32), good.to_uppercase());
        for bad in ["", "0af7", zero.as_str(), upper.as_str(), &format!("{good}0"), "é"] {
            assert!(bad.parse::<TraceId>().is_err(), "{bad}");
        }
    }
}
