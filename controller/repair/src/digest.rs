//! SHA-256, by which rows, files and what is approved are known. Pure.

use sha2::{Digest as _, Sha256};

/// A SHA-256 hash. The default, all zero, stands in front of the first row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Digest(pub(crate) [u8; 32]);

impl Digest {
    /// Hashes bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

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

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
