//! Computes the table of the shipped expressions, and compares it with the file.

use std::collections::BTreeMap;
use std::path::Path;

use regex_syntax::hir::{Class, Hir, HirKind};

use super::super::{Pattern, parsed};
use super::*;

/// Most texts that stand for a part of an expression.
const MOST: usize = 24;
/// A text of fewer letters and digits stands in many a line: `] `.
const LEAST: usize = 2;
/// Longer texts find no fewer lines.
const LONGEST: usize = 8;

/// What is known of all matches of an expression, in small letters.
struct Known {
    /// All that it matches, if that is little.
    exact: Option<Vec<Vec<u8>>>,
    /// Texts of which each match holds one.
    held: Option<Vec<Vec<u8>>>,
}

impl Known {
    fn exactly(mut texts: Vec<Vec<u8>>) -> Self {
        texts.sort();
        texts.dedup();
        Self { held: few(&texts), exact: (texts.len() <= MOST).then_some(texts) }
    }

    fn nothing() -> Self {
        Self { exact: None, held: None }
    }

    fn of(hir: &Hir) -> Self {
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => Self::exactly(vec![Vec::new()]),
            HirKind::Literal(literal) => Self::exactly(vec![literal.0.to_ascii_lowercase()]),
            HirKind::Class(Class::Bytes(class)) => {
                let bytes = class.iter().flat_map(|range| range.start()..=range.end());
                Self::exactly(bytes.map(|byte| vec![byte.to_ascii_lowercase()]).collect())
            }
            HirKind::Class(Class::Unicode(_)) => Self::nothing(),
            HirKind::Capture(capture) => Self::of(&capture.sub),
            HirKind::Repetition(repetition) => {
                let sub = Self::of(&repetition.sub);
                match (repetition.min, repetition.max, sub.exact) {
                    (0, Some(1), Some(mut exact)) => {
                        exact.push(Vec::new());
                        Self::exactly(exact)
                    }
                    (0, ..) => Self::nothing(),
                    _ => Self { exact: None, held: sub.held },
                }
            }
            HirKind::Concat(parts) => Self::of_parts(parts),
            HirKind::Alternation(parts) => {
                let parts: Vec<Self> = parts.iter().map(Self::of).collect();
                let exact: Option<Vec<_>> = parts.iter().map(|part| part.exact.clone()).collect();
                if let Some(exact) = exact {
                    return Self::exactly(exact.concat());
                }
                let held: Option<Vec<_>> = parts.into_iter().map(|part| part.held).collect();
                Self { exact: None, held: held.and_then(|held| few(&held.concat())) }
            }
        }
    }

    /// Takes the first one out of a repetition.
    fn unrolled(part: &Hir) -> Vec<Self> {
        match part.kind() {
            HirKind::Repetition(repetition) if repetition.min > 0 => {
                vec![Self::of(&repetition.sub), Self::nothing()]
            }
            _ => vec![Self::of(part)],
        }
    }

    /// Puts the texts of neighbours together as long as they are few.
    fn of_parts(parts: &[Hir]) -> Self {
        let mut run = vec![Vec::new()];
        let (mut best, mut whole) = (None, true);
        for part in parts.iter().flat_map(Self::unrolled) {
            let joined = part.exact.as_ref().map(|exact| {
                let behind = |front: &Vec<u8>| {
                    exact.iter().map(|back| [front.as_slice(), back].concat()).collect::<Vec<_>>()
                };
                Self::exactly(run.iter().flat_map(behind).collect()).exact
            });
            match joined.flatten() {
                Some(joined) => run = joined,
                None => {
                    whole = false;
                    best = better(best, Self::exactly(std::mem::take(&mut run)).held);
                    best = better(best, part.held);
                    run = part.exact.unwrap_or_else(|| vec![Vec::new()]);
                }
            }
        }
        if whole {
            return Self::exactly(run);
        }
        Self { exact: None, held: better(best, Self::exactly(run).held) }
    }
}

/// Leaves out each text that holds another one, and ends long ones early if there are too many.
fn few(texts: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
    if texts.iter().any(Vec::is_empty) {
        return None;
    }
    let cut_at = |longest| {
        let mut cut: Vec<&[u8]> =
            texts.iter().map(|text| &text[..text.len().min(longest)]).collect();
        cut.sort_by_key(|text| (text.len(), *text));
        let mut few: Vec<Vec<u8>> = Vec::new();
        for text in cut {
            if !few.iter().any(|held| text.windows(held.len()).any(|part| part == held)) {
                few.push(text.to_vec());
            }
        }
        few.sort();
        (few.len() <= MOST).then_some(few)
    };
    [LONGEST, 6, 4].into_iter().find_map(cut_at)
}

/// Counts letters and digits.
fn letters(text: &[u8]) -> usize {
    text.iter().filter(|byte| byte.is_ascii_alphanumeric()).count()
}

/// Prefers the texts of which the shortest one has more letters, then the fewer ones.
fn better(one: Option<Vec<Vec<u8>>>, other: Option<Vec<Vec<u8>>>) -> Option<Vec<Vec<u8>>> {
    let worth = |texts: &Vec<Vec<u8>>| {
        let shortest = texts.iter().map(|text| letters(text).min(LONGEST)).min();
        (shortest, std::cmp::Reverse(texts.len()))
    };
    [one, other].into_iter().flatten().max_by_key(worth)
}

/// Computes the texts of an expression; none where they are too short to be rare.
fn texts_of(pattern: &str) -> Vec<String> {
    let held = Known::of(&parsed(pattern).unwrap()).held.unwrap_or_default();
    let texts: Option<Vec<_>> = held.into_iter().map(|text| String::from_utf8(text).ok()).collect();
    let bad = |text: &String| letters(text.as_bytes()) < LEAST || text.contains(['\t', '\n', '\r']);
    texts.filter(|texts| !texts.iter().any(bad)).unwrap_or_default()
}

/// Reads the expressions of `board-profiles/faults/`.
fn expressions() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../board-profiles/faults");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let tables = files.map(|path| std::fs::read_to_string(path).unwrap().parse().unwrap());
    let faults: Vec<toml::Value> =
        tables.flat_map(|table: toml::Table| table["fault"].as_array().unwrap().clone()).collect();
    let keys = ["line", "pattern", "reason", "excuse"];
    let all = keys.iter().flat_map(|key| faults.iter().filter_map(|fault| fault.get(*key)));
    all.map(|value| value.as_str().unwrap().to_owned()).collect()
}

#[test]
fn table_holds_what_is_computed() {
    let rows: BTreeMap<String, Vec<String>> =
        expressions().into_iter().map(|pattern| (pattern.clone(), texts_of(&pattern))).collect();
    let row = |(pattern, texts): (&String, &Vec<String>)| {
        assert!(!pattern.contains(['\t', '\n', '\r']), "{pattern:?}");
        format!("{pattern}\t{}\n", texts.join("\t"))
    };
    let table: String = rows.iter().map(row).collect();
    if std::env::var_os("JIG_WRITE_PATTERNS").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/pattern/shipped.tsv");
        return std::fs::write(path, table).unwrap();
    }
    assert!(
        table == TABLE,
        "shipped.tsv is out of date: run `JIG_WRITE_PATTERNS=1 cargo test -p jig-model table_holds`"
    );
}

#[test]
fn shipped_expressions_are_good_ones() {
    for pattern in SHIPPED.keys() {
        Pattern::checked(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
    }
}

#[test]
fn texts_stand_in_each_match() {
    for (pattern, wanted) in [
        ("Kernel panic - not", &["kernel p"][..]),
        ("(?i)ab[cd]e+f", &["abce", "abde"]),
        (r"x\d+ (?:fault|abort) at", &[" abort a", " fault a"]),
        (r"(?:a\d|b)?oops#", &["oops#"]),
        (r"(?:=+ PANIC|\d+ panicked at)", &[" panic"]),
        (r"one\d|\d{2}", &[]),
        (r"\d+:\d+", &[]),
        ("(?:long text){2}", &["long tex"]),
        ("[a-z]{3}", &[]),
    ] {
        assert_eq!(texts_of(pattern), wanted, "{pattern}");
    }
}
