//! Units that changed since the base was made.

use std::collections::{BTreeMap, HashMap};

use super::{DocFacts, IndexedUnit};

/// The tail.
#[derive(Debug, Default)]
pub(super) struct TailIndex {
    units: BTreeMap<u32, IndexedUnit>,
    postings: HashMap<String, BTreeMap<u32, u32>>,
}

impl TailIndex {
    /// Puts a unit in place of its older state.
    pub(super) fn put(&mut self, unit: IndexedUnit) {
        if let Some(old) = self.units.remove(&unit.doc) {
            for term in old.terms.keys() {
                if let Some(docs) = self.postings.get_mut(term) {
                    docs.remove(&unit.doc);
                }
            }
        }
        for (term, times) in &unit.terms {
            self.postings.entry(term.clone()).or_default().insert(unit.doc, *times);
        }
        self.units.insert(unit.doc, unit);
    }

    pub(super) fn len(&self) -> usize {
        self.units.len()
    }

    pub(super) fn facts(&self, doc: u32) -> Option<&DocFacts> {
        self.units.get(&doc).map(|unit| &unit.facts)
    }

    /// Goes through the units that hold a term.
    pub(super) fn postings(&self, term: &str) -> impl Iterator<Item = (&DocFacts, u32)> {
        let docs = self.postings.get(term).into_iter().flatten();
        docs.filter_map(|(doc, times)| Some((self.facts(*doc)?, *times)))
    }

    pub(super) fn units_with(&self, term: &str) -> u32 {
        self.postings.get(term).map_or(0, |docs| docs.len() as u32)
    }

    /// Takes all units out, in order.
    pub(super) fn take(&mut self) -> Vec<IndexedUnit> {
        self.postings.clear();
        std::mem::take(&mut self.units).into_values().collect()
    }
}
