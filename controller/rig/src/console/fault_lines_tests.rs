//! The shared fault signatures, and lines that were cut anywhere.

use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use jig_model::Cause;
use jig_model::profile::{FaultSignature, FaultText, Limits};
use proptest::prelude::*;

use super::*;
use crate::console::lines::MAX_LINE;
use crate::console::{FaultReasons, Recogniser, Recognition};

/// A shared signature with its example and near miss.
struct Shared {
    signature: FaultSignature,
    example: String,
    near_miss: String,
    reason: Option<String>,
    /// A line that excuses it, and one that does not.
    excuse: Option<(String, String)>,
}

/// Reads the sets of `board-profiles/faults/`.
static SHARED: LazyLock<Vec<Shared>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../board-profiles/faults");
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let tables = paths.iter().map(|path| std::fs::read_to_string(path).unwrap());
    let tables = tables.map(|text| text.parse::<toml::Table>().unwrap());
    let faults = tables.flat_map(|table| table["fault"].as_array().unwrap().clone());
    let shared = faults.map(|fault| {
        let key = |key: &str| {
            let value = fault.get(key).unwrap_or_else(|| panic!("no {key:?} in {fault}"));
            value.as_str().unwrap().to_owned()
        };
        let text = FaultText::Line(Pattern::new(&key("line")).unwrap());
        let cause: Cause = key("cause").parse().unwrap();
        let reason = fault.get("reason").map(|_| Pattern::new(&key("reason")).unwrap());
        let example_reason = reason.as_ref().map(|_| key("example_reason"));
        let excuse = fault.get("excuse").map(|_| Pattern::new(&key("excuse")).unwrap());
        let example_excuse =
            excuse.as_ref().map(|_| (key("example_excuse"), key("near_miss_excuse")));
        let continues = fault.get("continues").map(|names| names.as_array().unwrap().clone());
        let continues = continues.unwrap_or_default().into_iter();
        let continues = continues.map(|name| name.as_str().unwrap().to_owned()).collect();
        let signature =
            FaultSignature { name: key("name"), text, cause, reason, excuse, continues };
        let (example, near_miss) = (key("example"), key("near_miss"));
        Shared { signature, example, near_miss, reason: example_reason, excuse: example_excuse }
    });
    shared.collect()
});

fn recogniser() -> Recogniser {
    static FRESH: LazyLock<Recogniser> = LazyLock::new(|| {
        let signatures: Vec<_> = SHARED.iter().map(|shared| shared.signature.clone()).collect();
        let silence = Duration::from_secs(10);
        let limits =
            Limits { flood_bytes: u64::MAX, boot_loop: 9, settle: Duration::ZERO, silence };
        Recogniser::new(&signatures, &[], None, &limits).unwrap()
    });
    let mut recogniser = FRESH.clone();
    recogniser.expect_boot(0, Duration::ZERO);
    recogniser
}

/// Feeds a stream in pieces and returns all that is recognised.
fn recognise(text: &[u8], cuts: &[usize]) -> Vec<Recognition> {
    let mut recogniser = recogniser();
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
    cuts.sort_unstable();
    let (mut found, mut at) = (Vec::new(), 0);
    for cut in cuts.into_iter().chain([text.len()]) {
        found.extend(recogniser.feed(&text[at..cut], Duration::ZERO));
        at = cut;
    }
    found.extend(recogniser.finish());
    found
}

#[test]
fn each_shared_signature_matches_its_example_and_not_its_near_miss() {
    assert!(SHARED.len() >= 150, "{}", SHARED.len());
    for Shared { signature, example, near_miss, .. } in &*SHARED {
        let log = format!("boot\r\n{example}\r\nmore\r\n");
        let found = recognise(log.as_bytes(), &[]);
        let causes: Vec<Cause> = found.iter().map(|found| found.cause).collect();
        assert!(causes.contains(&signature.cause), "{}: {found:?}", signature.name);
        assert_eq!(found[0].start, 6, "{}", signature.name);
        let found = recognise(format!("{near_miss}\n").as_bytes(), &[]);
        assert_eq!(found, [], "near miss of {}", signature.name);
    }
}

#[test]
fn headlines_take_their_reason_from_the_lines_behind() {
    let signatures: Vec<_> = SHARED.iter().map(|shared| shared.signature.clone()).collect();
    let reasons = FaultReasons::new(&signatures).unwrap();
    let mut count = 0;
    for Shared { signature, example, reason, .. } in &*SHARED {
        let Some(reason) = reason else { continue };
        count += 1;
        let log = format!("{example}\r\n\r\n{reason}\r\nmore\r\n");
        let (end, found) =
            reasons.find(log.as_bytes()).unwrap_or_else(|| panic!("{}", signature.name));
        let ends = example.len() + 4 + reason.len();
        assert!(reason.ends_with(&found) && end == ends, "{}: {found:?}", signature.name);
        let far = format!("{example}\r\n{}{reason}\r\n", "*\r\n".repeat(20));
        let late = reasons.find(far.as_bytes()).map(|(_, text)| text);
        assert_ne!(late, Some(found), "{}", signature.name);
        let alone = format!("{reason}\r\n");
        assert_eq!(reasons.find(alone.as_bytes()), None, "{}", signature.name);
    }
    assert!(count >= 10, "{count}");
}

#[test]
fn each_excuse_matches_its_example_and_not_its_near_miss() {
    let mut count = 0;
    for Shared { signature, example, excuse, .. } in &*SHARED {
        let Some((line, near_miss)) = excuse else { continue };
        count += 1;
        let behind = |line| recognise(format!("{example}\r\nx\r\n{line}\r\n").as_bytes(), &[]);
        assert_eq!(behind(line), [], "{}", signature.name);
        let found = behind(near_miss);
        assert!(found.iter().any(|f| f.start == 0), "{}: {found:?}", signature.name);
    }
    assert!(count >= 7, "{count}");
}

#[test]
fn each_shared_signature_is_needed_for_its_example() {
    for Shared { signature, example, .. } in &*SHARED {
        let FaultText::Line(line) = &signature.text else { unreachable!() };
        let mut alone = FaultLines::new(std::slice::from_ref(line), 0).unwrap();
        let mut found = 0;
        alone.feed(format!("{example}\n").as_bytes(), |_| found += 1);
        assert_eq!(found, 1, "{}", signature.name);
    }
}

#[test]
fn a_signature_that_breaks_off_a_word_is_found() {
    for line in [
        r#"idle: loop 1assertion "n < 3" failed: file "src/q.c", line 20, function: tick_c"#,
        r#"test/assertion "n < 3" failed: file "src/q.c", line 20, function: tick_c"#,
        "idle: loAssertion failed: n < 3, file src/q.c, line 20",
        r#"idle: loassertion "n < 3" failed: file "src/q.c", line 20, function: tick_c"#,
        "idle: loterminate called after throwing an instance of 'int'",
        "idle: lo[00:00:01.000,000] <err> os: ***** HARD FAULT *****",
        "..[00:00:01.000,000] <err> os: ***** HARD FAULT *****",
        "....Assertion failed: n < 3, file src/q.c, line 20",
        "idle: loPANIC: queue full at q.c:20",
        "idle: 12panicked at src/main.rs:12:5",
        "[00123] I (wifi) connASSERT: tasks.c:1034",
        "idle: loStack overflow in task net",
        "  42%Wrong parameters value: file src/q.c on line 20",
        "idle: loo*** HardFault: pc=0x00000042 lr=0xfffffff9",
        "idle: lo\u{1b}[31mGuru Meditation Error: Core  0 panic'ed (LoadProhibited)",
    ] {
        let found = recognise(format!("{line}\r\n").as_bytes(), &[3, 20]);
        assert!(!found.is_empty(), "{line}");
    }
}

#[test]
fn a_line_of_any_bytes_may_break_off_anywhere() {
    let line = "é1panicked at é'é 1Assertion failed: é, file é, line 2é/*** HardFault é";
    for cut in 0..=line.len() {
        recognise(&line.as_bytes()[..cut], &[cut / 2, cut]);
    }
}

#[test]
fn words_that_end_like_a_crash_are_no_fault() {
    for line in [
        "reset_control_deassert failed: phy:0",
        "DEASSERT: phy.c:12",
        r#"reassertion "n < 3" failed: file "src/q.c""#,
        "bootstrap cause: 1",
        "reset reason=Hard fault",
        "reset reason:Hard fault",
        "cause=Assertion failed: n < 3, file src/q.c, line 20",
        "says 'Assertion failed: n < 3, file src/q.c, line 20'",
        "testHardFault",
        "onPanic: installed",
        "testHardFault:PASS",
        "[       OK ] Fault.HandlesHardFault (0 ms)",
        "[       OK ] Fault.PanicFault (0 ms)",
        "vTaskStackOverflow hook installed",
        "nonfatal error: out of memory",
    ] {
        let found = recognise(format!("{line}\r\n").as_bytes(), &[3, 20]);
        assert_eq!(found, [], "{line}");
    }
}

#[test]
fn prose_and_results_of_tests_are_no_faults() {
    for line in [
        "This test checks that a panicked at message, a HardFault or an Oops is seen.",
        "PASS: test_kernel_panic - not syncing",
        "the handler prints *** HardFault: pc=0x0",
        "ok 3 - ++ MbedOS Fault Handler ++ was printed",
        "Oops, that was close [#1]",
        "zephyr fatal error 4",
        "assertion failed: file a, line 3",
        "x.ino:12: Assertion failed: (1) == (2).",
        "x.ino:12: Assertion failed: (a=1) == (b=2), file ring.ino, line 12.",
        "# Kernel panic - not syncing is expected next",
        "*** stack smashing detected? no",
        "test/test_fault.c:12:test_hard_fault:PASS",
        "[       OK ] Fault.HardFault (0 ms)",
        "[ RUN      ] Panic.Kernel",
        "test panic ... ok",
        "test fault::hard_fault - should panic ... ok",
        " PASS - test_panic in 0.001 seconds",
        "START - test_assertion",
        "Assertions: 12 passed",
        "panic_handler installed",
        "> panic",
        "3 Tests 0 Failures 0 Ignored",
        "faults: 0, panics: 0, asserts: 0",
        "usage fault handler: enabled",
        "Hard fault handler (weak) linked",
        "hard fault: none",
        "Bus Fault detected: no",
        "Unhandled exception count: 0",
        "INFO panic: handler installed",
        "panic: no",
        "ufsr: 1",
        "pure virtual function called test",
        "Fault on thread safety: none",
        "Exception (3): handled",
        "*** PANIC *** button test",
        "[ RUN      ] HardFault.handler",
        "ok 3 - hardfault handler installed",
        "stack overflow detected: no",
        "malloc failed: 0 times",
        "reboot: System halted",
        "Nov 23 01:02:03 host kernel: Oops counter: 0",
    ] {
        assert_eq!(recognise(format!("{line}\r\n").as_bytes(), &[]), [], "{line}");
    }
}

#[test]
fn what_loggers_put_in_front_hides_no_headline() {
    for front in [
        "Nov 23 01:02:03 host kernel: ",
        "Nov  3 01:02:03 host kernel: [   12.345678] ",
        "2026-11-23T01:02:03.123456+00:00 host kernel: ",
        "<14>Nov 23 01:02:03 host kernel: ",
        "[ERR : App       ] ",
        "[EROR][net ]: ",
        "[  1234][E][Wire.cpp:499] ",
        "E (123) app: ",
        "[00:00:01.000,000] \x1b[1;31m<err> os: ",
        "src/main.c:41: ",
        "12:30:01.5 ERROR ",
    ] {
        let found = recognise(format!("{front}Kernel panic - not syncing: x\n").as_bytes(), &[]);
        assert_eq!(found.len(), 1, "{front}");
    }
}

#[test]
fn a_headline_without_a_line_end_is_recognised_at_once() {
    let mut recogniser = recogniser();
    let found = recogniser.feed(b"3 Tests\n*** HardFault: stacked p", Duration::ZERO);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].start, found[0].text.as_str()), (8, "*** HardFault: stacked p"));
    assert_eq!(recogniser.feed(b"c=0x42\n", Duration::ZERO), []);
}

#[test]
fn a_word_that_must_end_its_line_waits_for_the_end() {
    let mut recogniser = recogniser();
    assert_eq!(recogniser.feed(b"PANIC", Duration::ZERO), []);
    assert_eq!(recogniser.feed(b" test passed\nPANIC", Duration::ZERO), []);
    assert_eq!(recogniser.finish().len(), 1);
}

#[test]
fn a_headline_of_an_endless_line_is_recognised_however_it_arrives() {
    let text = [b"*** HardFault: pc=0x42".as_slice(), &[b' '; 2 * MAX_LINE]].concat();
    for cuts in [&[][..], &[40], &[MAX_LINE], &[MAX_LINE + 1]] {
        assert_eq!(recognise(&text, cuts).len(), 1, "{cuts:?}");
    }
    let ended = [text.as_slice(), b"\n"].concat();
    assert_eq!(recognise(&ended, &[]).len(), 1);
}

#[test]
fn a_tag_that_has_only_begun_is_no_headline() {
    let text = b"<err> sbi_trap_error: installed\n";
    for cut in 0..text.len() {
        assert_eq!(recognise(text, &[cut]), [], "{cut}");
    }
}

proptest! {
    #[test]
    fn what_is_recognised_does_not_depend_on_how_bytes_arrive(
        lines in prop::collection::vec(any::<prop::sample::Index>(), 1..6),
        misses in any::<bool>(),
        end in prop::sample::select(&["\n", "\r\n"][..]),
        cuts in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        let mut text = String::new();
        for index in lines {
            let shared = &SHARED[index.index(SHARED.len())];
            if misses {
                text += &shared.near_miss;
            }
            text += &shared.example;
            text += end;
        }
        let facts = |found: Vec<Recognition>| {
            let mut facts: Vec<_> = found.iter().map(|f| (f.start, f.cause.as_str())).collect();
            facts.sort_unstable();
            facts
        };
        prop_assert_eq!(facts(recognise(text.as_bytes(), &cuts)), facts(recognise(text.as_bytes(), &[])));
    }
}
