//! The expressions of the shipped fault signatures, checked ahead.
//!
//! # Design
//! To parse and compile 150 signatures costs a run more than all that it does itself, and nearly no
//! run prints one. What a start needs to know of them is computed ahead and kept in `shipped.tsv`: that
//! an expression is a good one, and texts of which each of its matches holds one. The table is found
//! by the expression itself, so an expression of a user is parsed and compiled as ever, and a table
//! out of date costs time and no match. A test computes the table anew.

use std::collections::HashMap;
use std::sync::LazyLock;

/// An expression, a tab, and its texts with a tab between them; see [`required_texts`].
const TABLE: &str = include_str!("shipped.tsv");

static SHIPPED: LazyLock<HashMap<&str, &str>> =
    LazyLock::new(|| TABLE.lines().filter_map(|line| line.split_once('\t')).collect());

/// Tells whether an expression is a shipped one, which is known to be good.
pub(super) fn is_shipped(pattern: &str) -> bool {
    SHIPPED.contains_key(pattern)
}

/// Returns texts of which each match of a shipped expression holds one, whatever the case of its
/// letters; none if the expression is not shipped or has no such texts.
pub(super) fn required_texts(pattern: &str) -> impl Iterator<Item = &'static str> {
    let texts = SHIPPED.get(pattern).copied().unwrap_or_default();
    texts.split('\t').filter(|text| !text.is_empty())
}

#[cfg(test)]
#[path = "shipped_tests.rs"]
mod tests;
