//! Crashes that the firmware expects, by the shared signatures.

use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use jig_model::profile::{FaultSetText, FaultSets, FaultSignature, Limits};
use proptest::prelude::*;

use super::super::recognise::Recogniser;
use super::*;

/// The signatures of all sets, as a profile has them that names none.
static SIGNATURES: LazyLock<Vec<FaultSignature>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../board-profiles/faults");
    let mut texts: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    texts.sort();
    let names: Vec<String> = (0..texts.len()).map(|n| format!("set{n}")).collect();
    let sets =
        names.iter().zip(&texts).map(|(name, text)| FaultSetText { name, origin: name, text });
    let sets = FaultSets::parse(sets).unwrap();
    sets.names().flat_map(|name| sets.get(name).unwrap().to_vec()).collect()
});

fn recogniser() -> Recogniser {
    static FRESH: LazyLock<Recogniser> = LazyLock::new(|| {
        let silence = Duration::from_secs(10);
        let limits =
            Limits { flood_bytes: u64::MAX, boot_loop: 9, settle: Duration::ZERO, silence };
        let banner = jig_model::pattern::Pattern::new("^\\*\\*\\* Booting").unwrap();
        Recogniser::new(&SIGNATURES, &[], Some(&banner), &limits).unwrap()
    });
    let mut recogniser = FRESH.clone();
    recogniser.expect_boot(0, Duration::ZERO);
    recogniser
}

/// Feeds a text in pieces; returns the texts of what counts, and of what is excused.
fn judge(text: &[u8], cuts: &[usize]) -> (Vec<String>, Vec<String>) {
    let mut recogniser = recogniser();
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
    cuts.sort_unstable();
    let (mut counts, mut excused, mut at) = (Vec::new(), Vec::new(), 0);
    for cut in cuts.into_iter().chain([text.len()]) {
        counts.extend(recogniser.feed(&text[at..cut], Duration::ZERO));
        excused.extend(recogniser.take_excused());
        at = cut;
    }
    counts.extend(recogniser.finish());
    excused.extend(recogniser.take_excused());
    let by = |found: Vec<Recognition>| -> Vec<String> {
        let mut found: Vec<_> = found.into_iter().map(|f| (f.start, f.by)).collect();
        found.sort();
        found.into_iter().map(|(_, by)| by).collect()
    };
    let excused = excused.into_iter().flat_map(|crash| crash.headlines).collect();
    (by(counts), by(excused))
}

fn lines(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("{line}\r\n")).collect()
}

const FATAL: &str = "E: >>> ZEPHYR FATAL ERROR 4: Kernel panic on CPU 0";
const WANTED: &str = "Fatal error expected as part of test case.";
const ASSERT: &str = "ASSERTION FAIL [a != ((void *)0)] @ WEST_TOPDIR/tests/src/main.c:41";
const ASSERT_WANTED: &str = "Assert error expected as part of test case.";
const USAGE: &str = "E: ***** USAGE FAULT *****";
const HARD: &str = "[00:00:00.010,000] \x1b[1;31m<err> os: ***** HARD FAULT *****\x1b[0m";

/// Crashes as Zephyr prints them, with what a handler of a test prints behind.
const WANTED_CRASHES: &[&[&str]] = &[
    &[
        FATAL,
        "E: Current thread: 0x20000188 (unknown)",
        "Caught system error -- reason 4 1",
        WANTED,
    ],
    &[
        USAGE,
        "E:   Attempt to execute undefined instruction",
        "E: r0/a1:  0x00000003",
        FATAL,
        WANTED,
    ],
    &[HARD, "<err> os:   Fault escalation (see below)", "E: ***** BUS FAULT *****", FATAL, WANTED],
    &[
        "E: ***** Reserved Exception ( -2) *****",
        FATAL,
        "fatal error expected as part of test case",
    ],
    &["E:  mcause: 5, Load access fault", "E:   mtval: 0", FATAL, "System error was expected"],
    &["E: ESR_ELn: 0x0000000096000046", FATAL, WANTED],
    &[
        "<err> os:  ** FATAL EXCEPTION",
        "<err> os:  ** CPU 0 EXCCAUSE 28 (load prohibited)",
        FATAL,
        WANTED,
    ],
    &[
        "E: Page fault at address (nil) (error code 0x4)",
        "E: EAX: 0x00000000, EBX: 0x00000000",
        FATAL,
        WANTED,
    ],
    &[ASSERT, "        parameter a should not be NULL!", "Caught assert failed", ASSERT_WANTED],
    &[ASSERT, "Assertion expected as part of a test case."],
    // An assertion without a hook panics, and the panic is expected.
    &[ASSERT, FATAL, "Caught system error -- reason 4 1", WANTED],
];

#[test]
fn a_crash_that_the_next_lines_excuse_does_not_count() {
    for crash in WANTED_CRASHES {
        let (counts, excused) = judge(lines(crash).as_bytes(), &[]);
        assert_eq!(counts, [""; 0], "{crash:?}");
        assert!(!excused.is_empty(), "{crash:?}");
    }
    // Many more than are told of one signature, and one that nobody wanted behind them.
    let many = lines(WANTED_CRASHES[0]).repeat(40);
    let (counts, excused) = judge((many + &lines(&[FATAL])).as_bytes(), &[]);
    assert_eq!((counts, excused.len()), (vec!["zephyr-fatal".to_owned()], 40));
}

#[test]
fn an_excuse_reaches_the_crash_in_front_of_it_only() {
    let far = "x".repeat(100);
    let far: Vec<&str> = [FATAL].into_iter().chain([far.as_str(); 170]).chain([WANTED]).collect();
    for (text, count) in [
        (&[FATAL][..], 1),
        (&[FATAL, "Caught system error -- reason 4 0"], 1),
        (
            &[
                FATAL,
                "Caught system error -- reason 4 0",
                "Fatal error was unexpected, aborting...",
            ],
            2,
        ),
        (&[FATAL, "E: Halting system"], 2),
        // In front of the crash, and quoted within a line.
        (&[WANTED, FATAL], 1),
        (&[FATAL, "a Fatal error expected as part of test case."], 1),
        // Two crashes, of which the second is wanted.
        (&[FATAL, FATAL, WANTED], 1),
        (&[FATAL, USAGE, FATAL, WANTED], 1),
        (&[FATAL, ASSERT, ASSERT_WANTED], 1),
        (&[ASSERT, ASSERT, ASSERT_WANTED], 1),
        (&[FATAL, WANTED, FATAL], 1),
        // Another system's crash, and the words of one that was not wanted.
        (&[FATAL, "Kernel panic - not syncing: x", WANTED], 2),
        (&["*** HardFault: pc=0x00000042 lr=0xfffffff9", WANTED], 1),
        (&["Kernel panic - not syncing: x", WANTED], 1),
        (&[ASSERT, "Assert failed was unexpected, aborting...", FATAL, WANTED], 2),
        // The board has booted meanwhile.
        (&[FATAL, "*** Booting Zephyr OS build v3.7.0 ***", WANTED], 1),
        (&far, 1),
    ] {
        let (counts, _) = judge(lines(text).as_bytes(), &[]);
        assert_eq!(counts.len(), count, "{text:?}: {counts:?}");
    }
}

#[test]
fn a_crash_counts_when_it_is_given_up() {
    let mut recogniser = recogniser();
    assert_eq!(recogniser.feed(lines(&["hello", FATAL]).as_bytes(), Duration::ZERO), []);
    assert_eq!(recogniser.undecided_from(), Some(7));
    assert_eq!(recogniser.give_up().len(), 1);
    assert_eq!(recogniser.undecided_from(), None);
    // An excuse that comes later has nothing left to excuse.
    assert_eq!(recogniser.feed(lines(&[WANTED]).as_bytes(), Duration::ZERO), []);
    assert_eq!((recogniser.take_excused(), recogniser.finish()), (Vec::new(), Vec::new()));
}

#[test]
fn a_headline_that_stops_in_the_middle_counts_when_it_is_given_up() {
    let mut recogniser = recogniser();
    assert_eq!(recogniser.feed(b"***** HARD FAULT **", Duration::ZERO), []);
    assert_eq!(recogniser.undecided_from(), Some(0));
    let found = recogniser.give_up();
    assert_eq!((found.len(), found[0].by.as_str()), (1, "arm-exception"));
    // The rest of the line tells of the same crash.
    assert_eq!(recogniser.feed(b"*** \r\n", Duration::ZERO), []);
    assert_eq!(recogniser.finish(), []);
}

#[test]
fn excuses_name_signatures_that_exist_and_share_their_excuse() {
    let find = |name: &str| SIGNATURES.iter().find(|signature| signature.name == name);
    for signature in SIGNATURES.iter() {
        for name in &signature.continues {
            let other = find(name).unwrap_or_else(|| panic!("{name} of {}", signature.name));
            assert_eq!(other.excuse, signature.excuse, "{name} of {}", signature.name);
        }
    }
    assert!(SIGNATURES.iter().filter(|s| s.excuse.is_some()).count() >= 7);
}

proptest! {
    #[test]
    fn what_is_excused_does_not_depend_on_how_bytes_arrive(
        crashes in prop::collection::vec((any::<prop::sample::Index>(), 0usize..6), 1..5),
        cuts in prop::collection::vec(any::<usize>(), 0..20),
    ) {
        let mut text = String::new();
        for (index, kept) in crashes {
            // With lines missing at the end.
            let crash = index.get(WANTED_CRASHES);
            text += &lines(&crash[..crash.len().min(kept)]);
        }
        prop_assert_eq!(judge(text.as_bytes(), &cuts), judge(text.as_bytes(), &[]));
    }
}
