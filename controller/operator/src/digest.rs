//! SHA-256, by which rows, files and confirmations are known.

use std::io::{self, Read};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// A SHA-256 hash. The default, all zero, stands in front of the first row of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RowHash(pub(crate) [u8; 32]);

impl RowHash {
    /// Returns the hash of the row that follows the one with this hash.
    pub(crate) fn followed_by(&self, seq: u64, time_ms: u64, body: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update(seq.to_be_bytes());
        hash.update(time_ms.to_be_bytes());
        hash.update(body);
        Self(hash.finalize().into())
    }
}

impl std::fmt::Display for RowHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Returns the SHA-256 of a JSON value in lower-case hex. Objects have their keys in order, so that equal
/// values have equal hashes.
pub(crate) fn value_digest(value: &Value) -> String {
    RowHash(Sha256::digest(value.to_string()).into()).to_string()
}

/// Reads to the end, and returns the SHA-256 of what was read in lower-case hex.
///
/// # Errors
/// The reader fails.
pub fn sha256_of(mut reader: impl Read) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut part = [0; 65536];
    loop {
        match reader.read(&mut part) {
            Ok(0) => return Ok(RowHash(hash.finalize().into()).to_string()),
            Ok(read) => hash.update(&part[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
