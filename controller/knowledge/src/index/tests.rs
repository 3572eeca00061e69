//! The index against a model that looks at each unit.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;

use super::super::base::BaseFileError;
use super::*;

fn unit(doc: u32, words: &[String]) -> IndexedUnit {
    let mut terms = BTreeMap::new();
    words.iter().for_each(|word| *terms.entry(word.clone()).or_default() += 1);
    let facts = DocFacts {
        doc,
        length: words.len() as u32,
        created: i64::from(doc),
        ..DocFacts::default()
    };
    IndexedUnit { doc, terms, facts }
}

fn base_of(seq: u64, units: impl IntoIterator<Item = IndexedUnit>) -> BaseIndex {
    BaseIndex::default().merged(7, seq, &[], units)
}

/// BM25 as its definition says it, over all units.
fn model(units: &BTreeMap<u32, IndexedUnit>, question: &[TermWeight]) -> BTreeMap<u32, f32> {
    let all = units.len() as f32;
    let mean = units.values().map(|u| u.facts.length as f32).sum::<f32>() / all.max(1.0);
    let mut scores = BTreeMap::new();
    for TermWeight { term, weight } in question {
        let with = units.values().filter(|unit| unit.terms.contains_key(term)).count() as f32;
        let rarity = ((all - with + 0.5) / (with + 0.5) + 1.0).ln() * weight;
        for (doc, unit) in units {
            let Some(times) = unit.terms.get(term).map(|times| *times as f32) else { continue };
            let length = 1.0 - B + B * unit.facts.length as f32 / mean.max(1.0);
            *scores.entry(*doc).or_default() += rarity * times * (K1 + 1.0) / (times + K1 * length);
        }
    }
    scores
}

fn word() -> impl Strategy<Value = String> {
    "[a-f]"
}

proptest! {
    /// However units are spread over base and tail, and however often they changed: after a merge
    /// the scores are those of the model.
    #[test]
    fn scores_are_those_of_the_model(
        first in proptest::collection::vec(proptest::collection::vec(word(), 1..6), 0..20),
        changes in proptest::collection::vec((0u32..25, proptest::collection::vec(word(), 1..6)), 0..20),
        question in proptest::collection::btree_set(word(), 1..4),
    ) {
        let mut units = BTreeMap::new();
        for (doc, words) in (0..).zip(&first) {
            units.insert(doc, unit(doc, words));
        }
        let mut index = LexicalIndex::new(base_of(1, units.values().cloned()));
        for (doc, words) in &changes {
            units.insert(*doc, unit(*doc, words));
            index.put(unit(*doc, words));
        }
        prop_assert_eq!(index.len() as usize, units.len());
        let question: Vec<_> =
            question.into_iter().map(|term| TermWeight { term, weight: 1.0 }).collect();
        let found = |index: &LexicalIndex| {
            let (found, complete) = index.best(&question, 100, |_| true, || false);
            assert!(complete);
            found.into_iter().map(|scored| (scored.facts.doc, scored.score)).collect::<BTreeMap<_, _>>()
        };
        let expected = model(&units, &question);
        // Before a merge, rarity is an estimate, and the units are the same.
        prop_assert!(found(&index).keys().eq(expected.keys()));
        let merged = LexicalIndex::new(index.merged(7, 2));
        let found = found(&merged);
        prop_assert!(found.keys().eq(expected.keys()));
        for (doc, score) in found {
            prop_assert!((score - expected[&doc]).abs() < 1e-3, "{doc}: {score} {}", expected[&doc]);
        }
    }
}

fn three() -> BaseIndex {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    base_of(3, [unit(1, &words("a b")), unit(2, &words("b c c")), unit(9, &words("=board:x d"))])
}

#[test]
fn a_file_is_read_back_and_of_another_store_it_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    three().write(&path).unwrap();
    let read = BaseIndex::read(&path, 7).unwrap();
    assert_eq!((read.seq, read.docs.len()), (3, 3));
    let index = LexicalIndex::new(read);
    let holding: Vec<_> = index.holding("=board:x").iter().map(|facts| facts.doc).collect();
    assert_eq!(holding, [9]);
    assert!(matches!(BaseIndex::read(&path, 8), Err(BaseFileError::Unusable { .. })));
    assert!(matches!(BaseIndex::read(folder.path(), 7), Err(BaseFileError::Unusable { .. })));
    assert!(matches!(
        BaseIndex::read(Path::new("/dev/null"), 7),
        Err(BaseFileError::Unusable { .. })
    ));
}

#[test]
fn each_damaged_or_cut_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index");
    three().write(&path).unwrap();
    let whole = std::fs::read(&path).unwrap();
    for at in 0..whole.len() {
        std::fs::write(&path, &whole[..at]).unwrap();
        assert!(BaseIndex::read(&path, 7).is_err(), "cut at {at}");
        let mut changed = whole.clone();
        changed[at] ^= 0x10;
        std::fs::write(&path, &changed).unwrap();
        assert!(BaseIndex::read(&path, 7).is_err(), "changed at {at}");
    }
}

#[test]
fn a_search_that_runs_out_of_time_returns_what_rare_terms_found() {
    let words = |rare: bool| {
        let mut words = vec!["often".to_owned()];
        words.extend(rare.then(|| "rare".to_owned()));
        words
    };
    // Few hold `often`, or it would be too common to be looked for.
    let units = (0..200_000u32).map(|doc| match doc % 11 {
        0 => unit(doc, &words(doc == 11)),
        _ => unit(doc, &["other".to_owned()]),
    });
    let index = LexicalIndex::new(base_of(1, units));
    let term = |term: &str| TermWeight { term: term.to_owned(), weight: 1.0 };
    let question = [term("often"), term("rare"), term("also")];
    let (found, complete) = index.best(&question, 3, |_| true, || true);
    assert!(complete, "18,000 postings are looked at before the clock is");
    assert_eq!(found[0].facts.doc, 11);
    let second = term("often");
    let question = [question[0].clone(), question[1].clone(), TermWeight { weight: 0.5, ..second }];
    let (found, complete) = index.best(&question, 3, |_| true, || true);
    assert!(!complete);
    assert_eq!(found[0].facts.doc, 11);
}
