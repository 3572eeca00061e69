//! The chain of hashes: a row that was changed, removed or put in does not fit to its neighbours.

use super::Row;
use super::schema::StoredRow;
use crate::digest::Digest;

/// Says where a chain of rows breaks.
#[derive(Debug, thiserror::Error)]
pub enum BrokenChain {
    /// A row is missing.
    #[error("row {0} is missing")]
    Missing(u64),
    /// A row has another content than when it was written.
    #[error("row {0} is not what was written")]
    Changed(u64),
    /// A row holds an entry of a form that is not known.
    #[error("row {seq} cannot be read")]
    Unreadable {
        /// The row.
        seq: u64,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}

/// Checks a row against the number and the hash of the one before.
pub(super) fn checked(row: StoredRow, before: (u64, Digest)) -> Result<Row, BrokenChain> {
    let StoredRow { seq, time_ms, body, hash } = row;
    if seq != before.0 + 1 {
        return Err(BrokenChain::Missing(before.0 + 1));
    }
    if hash != before.1.followed_by(seq, time_ms, &body) {
        return Err(BrokenChain::Changed(seq));
    }
    let entry =
        serde_json::from_str(&body).map_err(|source| BrokenChain::Unreadable { seq, source })?;
    Ok(Row { seq, time_ms, entry, hash })
}
