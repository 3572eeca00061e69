//! Signatures in a stream that was cut anywhere.

use std::sync::LazyLock;

use super::*;
use proptest::prelude::*;

fn fault(name: &str, pattern: &str) -> FaultSignature {
    let pattern = Pattern::new(pattern).unwrap();
    FaultSignature {
        name: name.to_owned(),
        text: FaultText::Pattern(pattern),
        cause: Cause::FaultBanner,
        reason: None,
        excuse: None,
        continues: Vec::new(),
    }
}

fn limits() -> Limits {
    Limits {
        flood_bytes: 100,
        boot_loop: 2,
        settle: Duration::ZERO,
        silence: Duration::from_secs(10),
    }
}

const NOW: Duration = Duration::from_secs(1);

fn recogniser() -> Recogniser {
    static FRESH: LazyLock<Recogniser> = LazyLock::new(|| {
        let faults = [
            fault("hard", "HardFault.*"),
            fault("panic", r"panic\b"),
            fault("dump", r"dump[\s\S]*z"),
        ];
        let banner = Pattern::new(r"^\*\*\* Boot").unwrap();
        Recogniser::new(&faults, &[], Some(&banner), &limits()).unwrap()
    });
    let mut recogniser = FRESH.clone();
    recogniser.expect_boot(0, NOW);
    recogniser
}

#[test]
fn a_fault_is_told_once_per_line_with_its_range() {
    let mut recogniser = recogniser();
    let found = recogniser.feed(b"hello\nE: HardFault at 0x4\nnext\n", NOW);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].start, found[0].end), (9, 18));
    assert_eq!((found[0].text.as_str(), found[0].by.as_str()), ("E: HardFault", "hard"));
    assert_eq!(recogniser.feed(b"HardFault again", NOW).len(), 1);
}

#[test]
fn a_flood_of_faults_is_bounded() {
    let mut recogniser = recogniser();
    let found = recogniser.feed(&b"HardFault\n".repeat(5000), NOW);
    assert_eq!(found.iter().filter(|r| r.by == "hard").count(), TOLD_PER_BOOT as usize);
    assert!(recogniser.tail.len() <= 2 * KEPT);
}

#[test]
fn boots_beyond_those_asked_for_make_a_loop() {
    let mut recogniser = recogniser();
    assert!(recogniser.feed(b"*** Boot 1\n", NOW).is_empty());
    recogniser.expect_boot(11, NOW);
    assert!(recogniser.feed(b"*** Boot 2\n*** Boot 3\n", NOW).is_empty());
    let found = recogniser.feed(b"*** Boot 4\n*** Boot 5\n", NOW);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].cause, found[0].start), (Cause::BootLoop, 33));
    assert_eq!(recogniser.boots_seen(), 5);
}

#[test]
fn a_flood_is_told_at_the_exact_byte_of_its_boot() {
    let mut recogniser = recogniser();
    assert!(recogniser.feed(&[b'x'; 100], NOW).is_empty());
    let found = recogniser.feed(b"yy", NOW);
    assert_eq!((found[0].cause, found[0].start, found[0].end), (Cause::OutputFlood, 0, 101));
    assert!(recogniser.feed(&[b'x'; 100], NOW).is_empty());
    recogniser.expect_boot(202, NOW);
    assert!(recogniser.feed(&[b'x'; 100], NOW).is_empty());
}

#[test]
fn silence_is_told_once_until_the_board_speaks_again() {
    let second = Duration::from_secs;
    let mut recogniser = recogniser();
    assert_eq!(recogniser.check_silence(second(10)), None);
    assert_eq!(recogniser.check_silence(second(11)).unwrap().cause, Cause::NoOutput);
    assert_eq!(recogniser.check_silence(second(30)), None);
    recogniser.feed(b"x", second(31));
    assert_eq!(recogniser.check_silence(second(40)), None);
    assert_eq!(recogniser.check_silence(second(41)).unwrap().cause, Cause::Hang);
}

#[test]
fn a_range_over_many_lines_is_one_fault() {
    let mut recogniser = recogniser();
    let found = recogniser.feed(b"dump\naz\nbz\ncz\ndump z\n", NOW);
    let spans: Vec<_> = found.iter().map(|r| (r.start, r.end)).collect();
    assert_eq!(spans, [(0, 7), (14, 20)]);
}

fn output() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "HardFault",
        "panic",
        "ked",
        "*** Boot",
        "\n",
        "\r\n",
        " ",
        "dump",
        "z",
        "x",
        "\u{1b}[1m",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|p| p.concat().into_bytes())
}

proptest! {
    #[test]
    fn chunking_changes_nothing(bytes in output(), size in 1usize..20, stuffing in 0usize..9000) {
        let mut bytes = bytes;
        let middle = bytes.len() / 2;
        bytes.splice(middle..middle, std::iter::repeat_n(b'.', stuffing));
        let all = |size: usize| {
            let mut recogniser = recogniser();
            let mut found: Vec<Recognition> =
                bytes.chunks(size).flat_map(|c| recogniser.feed(c, NOW)).collect();
            found.extend(recogniser.finish());
            found
        };
        prop_assert_eq!(all(bytes.len().max(1)), all(size));
    }
}

#[test]
fn what_a_plan_rejects_is_seen_as_a_terminal_shows_it() {
    for (output, start) in [
        ("ok\n\x1b[31mERR\x1b[0m-42\n", Some(8)),
        ("ok\nERX\x08R-42 sd\n", Some(3)),
        ("ok\nERR|\x08-42", Some(3)),
        ("ok\nERR-42\n", Some(3)),
        // Told once.
        ("ok\nERR-42 \x1b[31mERR-42\x1b[0m\n", Some(3)),
        ("ok\nERR \x1b[0m-42\n", None),
        ("ERR\x1b[0m\n-42\n", None),
    ] {
        let pattern = Pattern::new("ERR-42").unwrap();
        let fresh = Recogniser::new(&[], &[pattern], None, &limits()).unwrap();
        for chunk in [1, 4, 100] {
            let mut recogniser = fresh.clone();
            recogniser.expect_boot(0, NOW);
            let mut found = Vec::new();
            output
                .as_bytes()
                .chunks(chunk)
                .for_each(|b| found.append(&mut recogniser.feed(b, NOW)));
            found.append(&mut recogniser.finish());
            let starts: Vec<_> = found.iter().map(|found| found.start).collect();
            assert_eq!(starts, start.into_iter().collect::<Vec<_>>(), "{output:?}");
            assert!(found.iter().all(|f| f.cause == Cause::AssertFailed && f.by == REJECTED));
        }
    }
    // A boot cuts the line.
    let pattern = Pattern::new("ERR-42").unwrap();
    let mut recogniser = Recogniser::new(&[], &[pattern], None, &limits()).unwrap();
    assert_eq!(recogniser.feed(b"ERR\x1b[0m-42 s", NOW), []);
    assert_eq!(recogniser.cut_line().len(), 1);
    recogniser.expect_boot(12, NOW);
    assert_eq!(recogniser.feed(b"d\n", NOW), []);
}
