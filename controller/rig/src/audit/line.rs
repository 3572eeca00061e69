//! A line of the log.

use jiff::Timestamp;
use jig_model::access::AccessRight;
use jig_model::{Identity, LeaseId, PlaceName, RunId};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Version of the format.
pub(super) const VERSION: u32 = 1;

/// Longest line in bytes, without its end. Names are short; texts are cut to [`MOST_TEXT`].
pub(super) const MOST_LINE: usize = 16 << 10;

/// Longest text in characters; one takes up to six bytes in JSON.
const MOST_TEXT: usize = 512;

/// What stands in the first line of all for the hash of the line before.
pub(super) const NONE_BEFORE: &str =
    "0000000000000000000000000000000000000000000000000000000000000000";

/// What became of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditDecision {
    /// It was let in, and acts from now on.
    Accepted,
    /// It was not.
    Refused,
    /// It has begun a run.
    Began,
}

/// The lease that a command runs under.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditLease {
    /// The lease.
    pub id: LeaseId,
    /// Its fencing token.
    pub token: u64,
}

/// What is to be noted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditEntry {
    /// When, by the clock of the rig's host.
    pub at: Timestamp,
    /// Who asked.
    pub identity: Identity,
    /// What: the name of a command, or of an order to the leases.
    pub command: String,
    /// Where; nothing where a lease is asked for at any of several places.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<PlaceName>,
    /// The right that it needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub right: Option<AccessRight>,
    /// What became of it.
    pub decision: AuditDecision,
    /// By which rule, or why not. May hold any text.
    pub why: String,
    /// The lease that it runs under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<AuditLease>,
    /// The line by which it was accepted, of a command that has begun a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<u64>,
    /// That run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
}

/// A line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditLine {
    /// Version of the format.
    pub version: u32,
    /// Its number, from 1 on, over all files.
    pub number: u64,
    /// SHA-256 of the line before, without its end, in hexadecimal digits.
    pub before: String,
    /// How many bytes of an unfinished line were taken off in front of this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_off: Option<u64>,
    /// What is noted.
    pub entry: AuditEntry,
}

impl AuditLine {
    /// Reads a line, without its end.
    pub(super) fn read(line: &[u8]) -> Option<Self> {
        let found: Self = serde_json::from_slice(line).ok()?;
        (found.version == VERSION).then_some(found)
    }

    /// Writes a line, with its end. Longer texts are cut.
    pub(super) fn write(mut self) -> serde_json::Result<Vec<u8>> {
        for text in [&mut self.entry.why, &mut self.entry.command] {
            if let Some((end, _)) = text.char_indices().nth(MOST_TEXT) {
                text.truncate(end);
            }
        }
        let mut line = serde_json::to_vec(&self)?;
        line.push(b'\n');
        Ok(line)
    }
}

/// Returns the hash of a line, without its end.
pub(super) fn hash(line: &[u8]) -> String {
    Sha256::digest(line).iter().map(|byte| format!("{byte:02x}")).collect()
}
