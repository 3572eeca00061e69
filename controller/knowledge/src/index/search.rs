//! The index as it is searched: BM25 over base and tail.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::base::BaseIndex;
use super::tail::TailIndex;
use super::{DocFacts, IndexedUnit};

/// Saturation of repeated terms, and weight of a unit's length: the customary values. Measured on the
/// newer half of a boot loader's fixes, .4 in place of .75 finds .02 less among ten.
const K1: f32 = 1.2;
const B: f32 = 0.75;

/// A term in more than this share of the units says nothing and costs the most. Leaving such terms
/// out finds .015 *more* among ten, in a third of the time.
const COMMON: f32 = 0.1;

/// Fewer units than this have no common terms.
const FEW: u32 = 200;

/// Units scored between two looks at the clock.
const LOOK: usize = 16_384;

/// A term of a question.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TermWeight {
    pub(crate) term: String,
    /// 1 for a word of the question, less for its synonyms.
    pub(crate) weight: f32,
}

/// A unit and how well it fits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scored {
    pub(crate) facts: DocFacts,
    pub(crate) score: f32,
}

/// Base and tail.
#[derive(Debug, Default)]
pub(crate) struct LexicalIndex {
    base: BaseIndex,
    /// Which rows of the base the tail hides.
    dead: Vec<bool>,
    rows: HashMap<u32, u32>,
    tail: TailIndex,
    /// Tokens of all units.
    length: u64,
    live: u32,
}

impl LexicalIndex {
    /// Opens a base.
    pub(crate) fn new(base: BaseIndex) -> Self {
        let rows = (0..).zip(&base.docs).map(|(row, facts)| (facts.doc, row)).collect();
        let length = base.docs.iter().map(|facts| u64::from(facts.length)).sum();
        let (dead, live) = (vec![false; base.docs.len()], base.docs.len() as u32);
        Self { base, dead, rows, tail: TailIndex::default(), length, live }
    }

    /// Puts a unit in place of its older state.
    pub(crate) fn put(&mut self, unit: IndexedUnit) {
        let row = self.rows.get(&unit.doc).map(|row| *row as usize);
        let before = match (self.tail.facts(unit.doc), row) {
            (Some(facts), _) => Some(*facts),
            (None, Some(row)) if !self.dead[row] => Some(self.base.docs[row]),
            (None, _) => None,
        };
        if let Some(row) = row {
            self.dead[row] = true;
        }
        match before {
            Some(facts) => self.length -= u64::from(facts.length),
            None => self.live += 1,
        }
        self.length += u64::from(unit.facts.length);
        self.tail.put(unit);
    }

    /// Returns the units that are not in the base.
    pub(crate) fn tail_len(&self) -> usize {
        self.tail.len()
    }

    /// Returns how many units there are.
    pub(crate) fn len(&self) -> u32 {
        self.live
    }

    /// Returns how many bytes the base takes.
    pub(crate) fn size(&self) -> usize {
        self.base.size() + self.rows.len() * 12 + self.dead.len()
    }

    /// Makes a base of all units.
    pub(crate) fn merged(mut self, store: u64, seq: u64) -> BaseIndex {
        let more = self.tail.take();
        self.base.merged(store, seq, &self.dead, more)
    }

    fn units_with(&self, term: &str) -> u32 {
        // Units that the tail hides are still counted in the base: an estimate is good enough.
        self.base.units_with(term) + self.tail.units_with(term)
    }

    /// Returns how rare a term is; nothing for one that no unit or too many hold.
    pub(crate) fn rarity(&self, term: &str) -> Option<f32> {
        let units = self.units_with(term);
        let all = self.live.max(units) as f32;
        let common = self.live > FEW && units as f32 > all * COMMON;
        let units = units as f32;
        (units > 0.0 && !common).then(|| ((all - units + 0.5) / (units + 0.5) + 1.0).ln())
    }

    /// Returns the units that hold a term.
    pub(crate) fn holding(&self, term: &str) -> Vec<DocFacts> {
        let mut found = Vec::new();
        self.base.postings(term, |row, _| {
            if !self.dead[row as usize] {
                found.push(self.base.docs[row as usize]);
            }
        });
        found.extend(self.tail.postings(term).map(|(facts, _)| *facts));
        found
    }

    /// Returns what a search filters a unit by.
    pub(crate) fn facts(&self, doc: u32) -> Option<DocFacts> {
        let of_base = || {
            let row = *self.rows.get(&doc)? as usize;
            (!self.dead[row]).then(|| self.base.docs[row])
        };
        self.tail.facts(doc).copied().or_else(of_base)
    }

    /// Returns the units that fit best, the best first, and whether all terms were looked at.
    ///
    /// Rare terms come first, so where `over` says that the time is over, what was found is what
    /// counts most.
    pub(crate) fn best(
        &self,
        question: &[TermWeight],
        most: usize,
        keep: impl Fn(&DocFacts) -> bool,
        over: impl Fn() -> bool,
    ) -> (Vec<Scored>, bool) {
        let mut terms: Vec<(f32, &str)> = question
            .iter()
            .filter_map(|term| Some((self.rarity(&term.term)? * term.weight, term.term.as_str())))
            .collect();
        terms.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(other.1)));
        let mean = self.length as f32 / self.live.max(1) as f32;
        let part = |rarity: f32, times: u32, length: u32| {
            let times = times as f32;
            rarity * times * (K1 + 1.0)
                / (times + K1 * (1.0 - B + B * length as f32 / mean.max(1.0)))
        };
        let mut base = vec![0f32; self.base.docs.len()];
        let mut tail: HashMap<u32, Scored> = HashMap::new();
        let (mut complete, mut looked) = (true, 0usize);
        for (rarity, term) in terms {
            if looked >= LOOK {
                looked = 0;
                if over() {
                    complete = false;
                    break;
                }
            }
            self.base.postings(term, |row, times| {
                looked += 1;
                base[row as usize] += part(rarity, times, self.base.docs[row as usize].length);
            });
            for (facts, times) in self.tail.postings(term) {
                let scored = tail.entry(facts.doc).or_insert(Scored { facts: *facts, score: 0.0 });
                scored.score += part(rarity, times, facts.length);
            }
        }
        let of_base = base.into_iter().zip(&self.base.docs).zip(&self.dead);
        let of_base = of_base.filter(|((score, _), dead)| *score > 0.0 && !**dead);
        let of_base = of_base.map(|((score, facts), _)| Scored { facts: *facts, score });
        let found = of_base.chain(tail.into_values()).filter(|scored| keep(&scored.facts));
        (top(found.collect(), most), complete)
    }
}

/// Where scores are equal the younger unit comes first.
fn order(one: &Scored, other: &Scored) -> Ordering {
    other.score.total_cmp(&one.score).then(other.facts.doc.cmp(&one.facts.doc))
}

fn top(mut found: Vec<Scored>, most: usize) -> Vec<Scored> {
    if found.len() > most && most > 0 {
        found.select_nth_unstable_by(most - 1, order);
    }
    found.truncate(most);
    found.sort_by(order);
    found
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
