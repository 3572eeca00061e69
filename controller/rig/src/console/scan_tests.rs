//! Matches in a stream are those in the whole text.

use std::sync::LazyLock;

use super::*;
use proptest::prelude::*;

fn set(texts: &[&str]) -> PatternSet {
    let patterns: Vec<Pattern> = texts.iter().map(|t| Pattern::new(t).unwrap()).collect();
    PatternSet::new(&patterns).unwrap()
}

fn hits<'a>(set: &PatternSet, chunks: impl Iterator<Item = &'a [u8]>) -> Vec<(u64, usize)> {
    let mut scanner = Scanner::new(set, None);
    let mut found = Vec::new();
    let mut base = 0u64;
    for chunk in chunks {
        let mut rest = chunk;
        loop {
            let scanned = scanner.scan(rest);
            base += scanned.used as u64;
            rest = &rest[scanned.used..];
            if scanned.hits.is_empty() {
                break;
            }
            found.extend(scanned.hits.iter().map(|&hit| (base, hit)));
        }
        assert!(rest.is_empty());
    }
    found.extend(scanner.finish().into_iter().map(|hit| (base, hit)));
    found
}

/// For each end offset, asks a search that only accepts matches ending exactly there.
fn reference(text: &[u8]) -> Vec<(u64, usize)> {
    static FINDERS: LazyLock<Vec<meta::Regex>> = LazyLock::new(|| {
        let config = meta::Config::new().utf8_empty(false);
        let mut builder = meta::Builder::new();
        let builder = builder.syntax(Pattern::dialect()).configure(config);
        TEXTS.iter().map(|pattern| builder.build(pattern).unwrap()).collect()
    });
    let mut found = Vec::new();
    for end in 0..=text.len() {
        for (index, finder) in FINDERS.iter().enumerate() {
            let ends_here = (0..end).any(|start| {
                let input = Input::new(text).span(start..end).anchored(Anchored::Yes);
                finder.search(&input).is_some_and(|m| m.end() == end)
            });
            if ends_here {
                found.push((end as u64, index));
            }
        }
    }
    found
}

/// Patterns for which leftmost-first prefers the longest form, so that the reference,
/// anchored on both sides of a span, sees every end.
const TEXTS: &[&str] = &[
    r"ab+",
    r"^a",
    r"b$",
    r"\bab\b",
    r"a\n?b",
    r"(?:aa|bb){1,2}",
    r"\Ba",
    r"[^\n]{3}",
    r"\r\n",
    r"^b*a$",
    r"(?i)AB\B",
    r"\xff",
];

fn text() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(vec![b'a', b'b', b'\n', b'\r', b' ', 0xff]), 0..40)
}

proptest! {
    #[test]
    fn chunking_changes_nothing_but_order_at_one_offset(text in text(), cuts in prop::collection::vec(0usize..40, 0..6)) {
        static SET: LazyLock<PatternSet> = LazyLock::new(|| set(TEXTS));
        let set = &*SET;
        let whole = hits(set, std::iter::once(text.as_slice()));
        let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(text.len())).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let cut = hits(set, cuts.windows(2).map(|w| &text[w[0]..w[1]]));
        prop_assert_eq!(&whole, &cut);
        let bytewise = hits(set, text.chunks(1));
        prop_assert_eq!(&whole, &bytewise);
        let mut sorted = whole;
        sorted.sort_unstable();
        prop_assert_eq!(sorted, reference(&text));
    }

    #[test]
    fn earliest_end_agrees_with_the_regex_crate(text in text()) {
        static PAIRS: LazyLock<Vec<(PatternSet, regex::bytes::Regex)>> = LazyLock::new(|| {
            let naive = |pattern| {
                let mut builder = regex::bytes::RegexBuilder::new(pattern);
                builder.unicode(false).multi_line(true).crlf(true).build().unwrap()
            };
            TEXTS.iter().map(|&pattern| (set(&[pattern]), naive(pattern))).collect()
        });
        for (set, finder) in PAIRS.iter() {
            let found = hits(set, std::iter::once(text.as_slice()));
            prop_assert_eq!(found.first().map(|h| h.0), finder.shortest_match(&text).map(|e| e as u64), "{}", finder);
        }
    }
}

#[test]
fn a_prompt_is_told_at_once_and_a_look_ahead_waits() {
    let set = set(&["login: ", "login:$", r"login\b"]);
    let mut scanner = Scanner::new(&set, None);
    assert_eq!(scanner.scan(b"login"), Scanned { used: 5, hits: vec![] });
    assert_eq!(scanner.scan(b":"), Scanned { used: 0, hits: vec![2] });
    assert_eq!(scanner.scan(b":"), Scanned { used: 1, hits: vec![] });
    assert_eq!(scanner.scan(b" "), Scanned { used: 1, hits: vec![0] });
    assert_eq!(scanner.scan(b"x"), Scanned { used: 1, hits: vec![] });
}

#[test]
fn the_byte_before_decides_whether_a_line_starts_here() {
    let set = set(&["^ok"]);
    let found = |before| Scanner::new(&set, before).scan(b"ok").hits;
    assert_eq!(found(None), [0]);
    assert_eq!(found(Some(b'\n')), [0]);
    assert_eq!(found(Some(b'x')), [0usize; 0]);
}

#[test]
fn too_large_patterns_are_refused_by_name() {
    let small = Pattern::new("ok").unwrap();
    let large = Pattern::new("a.{1,200}b").unwrap();
    let error = PatternSet::new(&[small, large.clone()]).unwrap_err();
    assert!(matches!(error, PatternSetError::TooLarge { pattern, .. } if pattern == large));
    let huge = Pattern::new("((x.{999}){999}){99}").unwrap();
    assert!(matches!(PatternSet::new(&[huge]), Err(PatternSetError::TooLarge { .. })));
}

#[test]
fn groups_and_start_are_located_behind_the_hit() {
    let set = set(&[r"v(?P<major>\d)\.(\d)(x)?"]);
    let text = b"boot v1.2 rest";
    let located = set.locate(0, text, 0..9).unwrap();
    assert_eq!(located.start, 5);
    assert_eq!(
        located.groups,
        [(Some("major".to_owned()), Some(6..7)), (None, Some(8..9)), (None, None)]
    );
    assert_eq!(set.locate(0, text, 6..9), None);
}

#[test]
fn an_empty_set_matches_nothing() {
    let mut scanner = Scanner::new(&set(&[]), None);
    assert_eq!(scanner.scan(b"abc"), Scanned { used: 3, hits: vec![] });
    assert!(scanner.finish().is_empty());
}
