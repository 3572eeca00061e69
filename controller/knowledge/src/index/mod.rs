//! The inverted index: which units hold a term, and how well each fits a question.
//!
//! Owns nothing that cannot be rebuilt: it is derived from the store, follows the store's change
//! sequence, and is rebuilt where its file is missing, damaged or of another store.
//!
//! # Design
//! *Why not FTS5.* `bm25()` of FTS5 looks up the length of each unit that holds any term: a question of
//! 40 words took 60 ms at the 99th percentile over 30,000 units (busy machine), and a log of 400 terms
//! 124 ms. Here the lengths are in memory and postings are scanned once. A full-text engine as a
//! dependency (tantivy) was not measured.
//!
//! *A base and a tail.* The base is one immutable file that is read as a whole; its postings are
//! decoded only for the terms of a question. Units that changed since are in a tail in memory, and
//! hide their older state in the base. The tail is merged into a new base once it has grown.
//!
//! *No query language.* A question is a set of tokens, so nothing in a text is an operator.
//!
//! Metadata is indexed by terms, too, such as `=board:x`; no token of a text begins with `=`.

mod base;
mod codec;
mod search;
mod tail;

pub(crate) use base::BaseIndex;
pub(crate) use search::{LexicalIndex, Scored, TermWeight};

/// What the index holds of a unit.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct IndexedUnit {
    /// Its number in the store.
    pub(crate) doc: u32,
    /// Terms of its texts and how often each occurs, and terms of its metadata.
    pub(crate) terms: std::collections::BTreeMap<String, u32>,
    /// What a search filters by.
    pub(crate) facts: DocFacts,
}

/// What a search filters by, for each unit in memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DocFacts {
    /// Its number in the store.
    pub(crate) doc: u32,
    /// Tokens of its texts.
    pub(crate) length: u32,
    /// When it was created, in seconds since 1970.
    pub(crate) created: i64,
    /// Its confidence in 1/1000.
    pub(crate) confidence: u16,
    /// Its status, by its place in `VerificationStatus::ALL`.
    pub(crate) status: u8,
    /// Its maturity.
    pub(crate) maturity: u8,
    /// Whether it is archived.
    pub(crate) archived: bool,
}
