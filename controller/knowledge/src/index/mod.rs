//! The inverted index: which units hold a term, and how well each fits a question.
//!
//! Owns nothing that cannot be rebuilt: it is derived from the store, follows the store's change
//! sequence, and is rebuilt where its file is missing, damaged or of another store.
//!
//! # Design
//! *Why not FTS5.* `bm25()` of FTS5 looks up the length of each unit that holds any term: a question of
//! 40 words took 60 ms at the 99th percentile over 30,000 units (busy machine), and a log of 400 terms
//! 124 ms. Here the lengths are in memory and postings are scanned once.
//!
//! *Why not tantivy.* Measured with tantivy 0.25 on 30,000 documents, on the same tokens, one after the
//! other on a host with load 25 (real-time priority, 697 questions each):
//!
//! | | tantivy, best 100 only | a whole search of this crate |
//! |---|---|---|
//! | 40 words | p50 4.6 ms, p99 12.7 ms | p50 4.9 ms, p99 15.9 ms |
//! | 400 words | p50 65 ms, p99 130 ms | p50 7.5 ms, p99 17.9 ms |
//! | answer among ten, words only | .575 | .588 |
//! | on disk; in memory | 3.1 MiB; 33 MiB with its writer | 4.4 MiB; 6 MiB |
//! | one unit made searchable | commit: p50 19 ms, p99 47 ms | no commit: the tail in memory |
//! | crates | 108, 37 of them new to this workspace | none |
//! | processor time of a build | 106 s, optimised 231 s | none |
//!
//! A whole search includes candidates by files, 13 features of up to 220 units, and diversity. Logs are
//! what differs: terms that every tenth unit holds are left out here, which finds more in less time. Tantivy
//! also has a store of its own that must follow the store of record, like this index.
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
