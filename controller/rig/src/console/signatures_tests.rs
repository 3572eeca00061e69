//! The search for texts loses no match of a shipped signature.

use std::path::Path;
use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use regex_automata::meta;

use super::*;

/// A shipped pattern of lines with its examples.
struct Shipped {
    pattern: Pattern,
    examples: Vec<String>,
}

static SHIPPED: LazyLock<Vec<Shipped>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../board-profiles/faults");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let tables = files.map(|path| std::fs::read_to_string(path).unwrap().parse().unwrap());
    let faults = tables.flat_map(|table: toml::Table| table["fault"].as_array().unwrap().clone());
    let shipped = faults.map(|fault| {
        let text = |key: &str| fault.get(key).map(|value| value.as_str().unwrap().to_owned());
        let examples = ["example", "near_miss", "example_reason", "example_excuse"];
        let pattern = Pattern::new(&text("line").unwrap()).unwrap();
        Shipped { pattern, examples: examples.into_iter().filter_map(text).collect() }
    });
    shipped.collect()
});

fn patterns() -> Vec<Pattern> {
    SHIPPED.iter().map(|shipped| shipped.pattern.clone()).collect()
}

/// Searches for texts in front.
static SEARCHED: LazyLock<Signatures> = LazyLock::new(|| Signatures::new(&patterns(), 9).unwrap());

/// Matches all patterns against each line.
static ALL: LazyLock<Signatures> =
    LazyLock::new(|| Signatures::with_texts(&patterns(), 9, |_| Vec::new()).unwrap());

/// Finds the signatures of a line as it grows; the caches are kept, as in a stream.
fn found(signatures: &Signatures, line: &str, begun: &[usize]) -> Vec<Vec<usize>> {
    let (mut caches, mut all) = (Caches::default(), Vec::new());
    let begun = begun.iter().map(|&at| line.floor_char_boundary(at % (line.len() + 1)));
    for (end, complete) in begun.map(|end| (end, false)).chain([(line.len(), true)]) {
        let mut matches = Matches::new(SHIPPED.len());
        signatures.find_at_starts(&line[..end], complete, &mut caches, &mut matches);
        all.push(matches.iter().map(|found| found.as_usize()).collect());
    }
    all
}

#[test]
fn each_shipped_signature_compiles_and_has_texts() {
    for Shipped { pattern, .. } in &*SHIPPED {
        assert!(pattern.is_shipped(), "{pattern}");
        assert!(pattern.required_texts().next().is_some(), "{pattern}");
        compile(std::slice::from_ref(pattern), pattern).unwrap();
    }
    compile(&patterns(), &SHIPPED[0].pattern).unwrap();
}

#[test]
fn nothing_is_compiled_for_an_ordinary_log() {
    let signatures = Signatures::new(&patterns(), 9).unwrap();
    for line in [
        "jig-fixture unity-exit",
        "test/test_ring.c:21:test_push:PASS",
        "3 Tests 0 Failures 0 Ignored",
    ] {
        assert!(found(&signatures, line, &[7]).concat().is_empty(), "{line}");
    }
    let compiled = |automaton: &&Automaton| automaton.compiled.get().is_some();
    let inner = &*signatures.0;
    let each = inner.each.iter().chain([&inner.always, &inner.preferred]);
    assert_eq!(each.filter(compiled).count(), 0);
    found(&signatures, "Kernel panic - not syncing: x", &[]);
    assert!(inner.each.iter().filter(compiled).count() >= 1);
}

#[test]
fn a_bad_signature_of_a_user_is_refused_at_the_start() {
    let huge = Pattern::new("((x.{999}){999}){99}").unwrap();
    let error = Signatures::new(&[SHIPPED[0].pattern.clone(), huge.clone()], 0).unwrap_err();
    assert!(matches!(error, PatternSetError::Unbuildable { pattern, .. } if pattern == huge));
}

#[test]
fn each_match_of_a_random_text_holds_a_required_one() {
    // Texts made from the expression itself; those with anchors inside cannot be made.
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut made = 0;
    for Shipped { pattern, .. } in &*SHIPPED {
        let parsed = pattern.as_str().replace(r"\b", "").replace('$', "");
        let Ok(strategy) = proptest::string::bytes_regex(&format!("(?-u:{parsed})")) else {
            continue;
        };
        let finder: meta::Regex =
            meta::Builder::new().syntax(Pattern::dialect()).build(pattern.as_str()).unwrap();
        for _ in 0..20 {
            let text = strategy.new_tree(&mut runner).unwrap().current();
            if finder.is_match(&text) {
                made += 1;
                let small = text.to_ascii_lowercase();
                let holds = |held: &str| memchr::memmem::find(&small, held.as_bytes()).is_some();
                assert!(pattern.required_texts().any(holds), "{pattern}: {text:?}");
            }
        }
    }
    assert!(made > 1000, "{made}");
}

/// How an example is changed.
#[derive(Debug, Clone)]
enum Change {
    Drop(usize),
    Insert(usize, char),
    Case(usize),
    Double(usize),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        any::<usize>().prop_map(Change::Drop),
        (
            any::<usize>(),
            prop::sample::select(&[' ', ':', '*', '0', 'x', '\u{e9}', '!', '[', 'A', '.'][..])
        )
            .prop_map(|(at, new)| Change::Insert(at, new)),
        any::<usize>().prop_map(Change::Case),
        any::<usize>().prop_map(Change::Double),
    ];
    prop::collection::vec(change, 0..5)
}

fn changed(text: &str, changes: &[Change]) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    for change in changes {
        let count = letters.len().max(1);
        match *change {
            _ if letters.is_empty() => {}
            Change::Drop(at) => drop(letters.remove(at % count)),
            Change::Insert(at, new) => letters.insert(at % count, new),
            Change::Double(at) => letters.insert(at % count, letters[at % count]),
            Change::Case(at) => {
                let letter = &mut letters[at % count];
                let upper = letter.to_ascii_uppercase();
                *letter = if *letter == upper { letter.to_ascii_lowercase() } else { upper };
            }
        }
    }
    letters.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn search_loses_no_match(
        index in any::<prop::sample::Index>(),
        example in any::<prop::sample::Index>(),
        front in prop::sample::select(&["", "[    1.5] ", "E (12) app: ", "src/main.c:41: ", "*** ", "x"][..]),
        changes in changes(),
        begun in prop::collection::vec(any::<usize>(), 0..4),
    ) {
        let shipped = &SHIPPED[index.index(SHIPPED.len())];
        let example = &shipped.examples[example.index(shipped.examples.len())];
        let line = format!("{front}{}", changed(example, &changes));
        prop_assert_eq!(found(&SEARCHED, &line, &begun), found(&ALL, &line, &begun), "{}", line);
    }
}
