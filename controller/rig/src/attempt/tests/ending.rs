//! The end of a run: the quiet period in board time, then stop, drain, judge.

use std::time::Duration;

use jig_model::Cause;

use super::fake::*;
use crate::store::{LiveRun, NewRun, RunStore, SystemClock};

const RESULTS: &str = "{ power = 'cycle' }, { wait_for_results = true }";
const TEXT: &str = "{ power = 'cycle' }, { expect = ['ok 2'] }";

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn begin(root: &tempfile::TempDir) -> LiveRun {
    let clock = std::sync::Arc::new(SystemClock::new());
    RunStore::new(root.path()).begin(NewRun::default(), clock).unwrap()
}

/// What a user can read is what was judged: the bytes that arrive between the last look and the
/// stop are in the log, and decide.
#[tokio::test(start_paused = true)]
async fn last_bytes_before_the_stop_are_captured_and_judged() {
    for controls in [true, false] {
        for (waits, console, words, cause) in [
            (RESULTS, 0, "", Cause::Passed),
            (RESULTS, 0, FAULT, Cause::FaultBanner),
            (RESULTS, 1, FAULT, Cause::FaultBanner),
            (RESULTS, 0, RED, Cause::TestFailed),
            (RESULTS, 1, RED, Cause::TestFailed),
            // The last line needs no line end.
            (RESULTS, 0, FAULT.trim_end(), Cause::FaultBanner),
            (TEXT, 0, "", Cause::ExpectationsMet),
            (TEXT, 0, FAULT, Cause::FaultBanner),
            (TEXT, 1, FAULT, Cause::FaultBanner),
        ] {
            let last_words = vec![(console, words.to_owned())];
            let bench = Bench { controls, last_words, ..Bench::new(vec![vec![print(GREEN)]]) };
            let root = tempfile::tempdir().unwrap();
            let live = begin(&root);
            let end = bench.perform_in(&live, &plan(waits)).await.unwrap();
            assert_eq!(end.verdict.cause, cause, "{controls} {waits} {console} {words:?}");
            let logs = ["uart0", "uart1"].map(|name| {
                std::fs::read_to_string(live.dir().console_path(1, &name.parse().unwrap())).unwrap()
            });
            let mut printed = [GREEN.to_owned(), String::new()];
            printed[console].push_str(words);
            assert_eq!(logs, printed);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn last_bytes_of_a_board_that_fails_or_exits_are_judged_too() {
    let missed = "{ power = 'cycle' }, { expect = ['never'], timeout = '100ms' }";
    let last_words = vec![(1, FAULT.to_owned())];
    for controls in [true, false] {
        let last_words = last_words.clone();
        let bench = Bench { controls, last_words, ..Bench::new(vec![vec![print("hello\n")]]) };
        assert_eq!(bench.cause(&plan(missed)).await, Cause::FaultBanner);
    }
    let beats = vec![print(GREEN), Beat::Print(1, FAULT.into()), exit(0)];
    let bench = Bench { controls: true, ..Bench::new(vec![beats]) };
    assert_eq!(bench.cause(&plan(RESULTS)).await, Cause::FaultBanner);
}

#[tokio::test(start_paused = true)]
async fn only_time_that_the_board_had_counts_for_the_quiet_period() {
    // The period is 50 ms; the first answer is asked for when it begins.
    for (lost, at, cause) in [
        (vec![ms(0)], 49, Cause::FaultBanner),
        (vec![ms(0)], 51, Cause::Passed),
        (vec![ms(7), ms(37)], 79, Cause::FaultBanner),
        (vec![ms(7), ms(37)], 81, Cause::Passed),
        // The board loses more while it is listened to again.
        (vec![ms(0), ms(10), ms(10), ms(35), ms(35), ms(40)], 89, Cause::FaultBanner),
        (vec![ms(0), ms(10), ms(10), ms(35), ms(35), ms(40)], 91, Cause::Passed),
        // It loses time between the halt and the moment at which it runs again: here 60 ms.
        (vec![ms(0), ms(20), ms(80)], 129, Cause::FaultBanner),
        (vec![ms(0), ms(20), ms(80)], 131, Cause::Passed),
    ] {
        for (waits, passed) in [(RESULTS, Cause::Passed), (TEXT, Cause::ExpectationsMet)] {
            let beats = vec![print(GREEN), Beat::Pause(ms(at)), print(FAULT)];
            let lost = lost.clone();
            let bench = Bench { controls: true, lost, ..Bench::new(vec![beats]) };
            let end = bench.perform(&plan(waits)).await.unwrap();
            let cause = if cause == Cause::Passed { passed } else { cause };
            assert_eq!(end.verdict.cause, cause, "{at} {waits}");
            let listened = (cause == passed).then_some(50);
            assert_eq!(end.verdict.listened_ms, listened, "{at} {waits}");
        }
    }
}

/// A busy host takes 60 ms to let the board run on; the board has the rest of its period behind that, and
/// is not halted once more meanwhile.
#[tokio::test(start_paused = true)]
async fn a_board_that_runs_on_has_the_rest_of_its_period_at_once() {
    let lost = vec![ms(0), ms(20), ms(80)];
    let bench = Bench { controls: true, lost, ..Bench::new(vec![vec![print(GREEN)]]) };
    assert_eq!(bench.cause(&plan(RESULTS)).await, Cause::Passed);
    let calls = bench.calls();
    assert_eq!(calls.iter().filter(|call| **call == "resume").count(), 1, "{calls:?}");
}

/// To halt the board and let it run on takes a busy host 3 ms each, in which the board loses time.
#[tokio::test(start_paused = true)]
async fn a_board_that_loses_time_at_each_halt_is_halted_less_often() {
    let lost = (0..400).map(|count| ms(count * 3)).collect();
    let bench = Bench { controls: true, lost, ..Bench::new(vec![vec![print(GREEN)]]) };
    assert_eq!(bench.cause(&plan(RESULTS)).await, Cause::Passed);
    let calls = bench.calls();
    let halts = calls.iter().filter(|call| **call == "halt").count();
    assert!(halts < 12, "{halts}");
}

#[tokio::test(start_paused = true)]
async fn a_board_that_gets_no_time_behind_its_report_proves_nothing() {
    // The time of the quiet period is over, and that of the whole plan.
    for all in [ms(20_000), ms(3_600_000)] {
        let lost = vec![ms(0), all];
        let bench = Bench { controls: true, lost, ..Bench::new(vec![vec![print(GREEN)]]) };
        assert_eq!(bench.cause(&plan(RESULTS)).await, Cause::RigUnhealthy, "{all:?}");
    }
}

/// Lost time that is not known would make the quiet period too short.
#[tokio::test(start_paused = true)]
async fn an_emulator_that_does_not_tell_the_lost_time_is_the_rigs_failure() {
    for waits in [RESULTS, TEXT] {
        let lost_time = Call::Fails(Cause::EmulatorStuck);
        let bench = Bench { controls: true, lost_time, ..Bench::new(vec![vec![print(GREEN)]]) };
        assert_eq!(bench.cause(&plan(waits)).await, Cause::EmulatorStuck, "{waits}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_takes_the_power_at_its_end_watches_the_board_before() {
    let waits = "{ power = 'cycle' }, { expect = ['up'] }, { power = 'off' }";
    for (behind, cause) in [(SOON, Cause::FaultBanner), (LATE, Cause::ExpectationsMet)] {
        let beats = vec![print("up\n"), behind, print(FAULT)];
        for controls in [true, false] {
            let bench = Bench { controls, ..Bench::new(vec![beats.clone()]) };
            assert_eq!(bench.cause(&plan(waits)).await, cause, "{controls}");
        }
    }
    // A cut in the middle comes when the plan says.
    let cut = format!("{waits}, {{ power = 'on' }}, {{ expect = ['up'] }}");
    let boots = vec![vec![print("up\n"), SOON, print(FAULT)], vec![print("up\n")]];
    assert_eq!(Bench::new(boots).cause(&plan(&cut)).await, Cause::ExpectationsMet);
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_ends_the_quiet_period() {
    for waits in [RESULTS, TEXT] {
        let beats = vec![print(GREEN), Beat::Pause(ms(5_000)), Beat::Cancel];
        let began = tokio::time::Instant::now();
        let text = format!("settle = '60s'\n{}", plan(waits));
        assert_eq!(Bench::new(vec![beats]).cause(&text).await, Cause::Cancelled, "{waits}");
        assert!(began.elapsed() < ms(20_000), "{waits}: {:?}", began.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_board_that_was_halted_runs_on_for_the_next_action() {
    let waits = "{ power = 'cycle' }, { wait_for_results = true }, { send = 'again' }, \
                 { expect = ['done'] }";
    let beats = vec![print(GREEN), Beat::Input(5), print("done\n")];
    let bench = Bench { controls: true, ..Bench::new(vec![beats]) };
    assert_eq!(bench.cause(&plan(waits)).await, Cause::Passed);
    let calls = ["off", "on", "halt", "resume", "halt", "halt", "off"];
    assert_eq!(bench.calls(), calls);
}

/// Prints a text in pieces, with a pause in front of each.
fn slowly(text: &str, size: usize, pause: Duration) -> impl Iterator<Item = Beat> {
    let pieces: Vec<_> = text.as_bytes().chunks(size).map(<[u8]>::to_vec).collect();
    pieces.into_iter().flat_map(move |piece| [Beat::Pause(pause), Beat::Print(0, piece)])
}

#[tokio::test(start_paused = true)]
async fn the_quiet_period_begins_again_with_each_byte() {
    let line = "test_b.c:3:test_erase_of_locked_sector_is_refused:FAIL: Expected 0 Was 5\n";
    let log = "I (300) wifi: scan channel 1, nothing found\n".repeat(5);
    for (what, text, size, pause, waits, cause) in [
        ("9600 baud", line.to_owned(), 1, ms(1), RESULTS, Cause::TestFailed),
        ("9600 baud behind a text", line.to_owned(), 1, ms(1), TEXT, Cause::TestFailed),
        ("a log, then a fault", format!("{log}{FAULT}"), 11, ms(5), RESULTS, Cause::FaultBanner),
        ("a late line", format!("x\n{FAULT}"), 11, ms(40), RESULTS, Cause::FaultBanner),
    ] {
        let beats: Vec<_> = [print(GREEN)].into_iter().chain(slowly(&text, size, pause)).collect();
        for controls in [true, false] {
            let bench = Bench { controls, ..Bench::new(vec![beats.clone()]) };
            assert_eq!(bench.cause(&plan(waits)).await, cause, "{what} {controls}");
        }
    }
    // Another console counts, too.
    let other = Beat::Print(1, b"x\n".to_vec());
    let beats = vec![print(GREEN), Beat::Pause(ms(40)), other, Beat::Pause(ms(40)), print(FAULT)];
    assert_eq!(Bench::new(vec![beats]).cause(&plan(RESULTS)).await, Cause::FaultBanner);
}

#[tokio::test(start_paused = true)]
async fn a_board_that_never_is_quiet_is_watched_for_five_periods() {
    let printing = "the target was still printing 250 ms behind the end, and what it printed later \
                    is not judged (to watch it longer: --settle TIME)";
    for (ticks, tail, cause, noted) in [
        (60, "", Cause::Passed, true),
        // What stands at the end without a line end is judged like a line.
        (23, "Tests: 3 failed", Cause::SuspiciousOutput, true),
        (23, FAULT, Cause::FaultBanner, false),
        (25, FAULT, Cause::Passed, true),
    ] {
        let dots = (0..ticks).flat_map(|_| [Beat::Pause(ms(10)), print(".\n")]);
        let last = [Beat::Pause(ms(10)), print(tail)];
        let beats: Vec<_> = [print(GREEN)].into_iter().chain(dots).chain(last).collect();
        let bench = Bench { controls: true, ..Bench::new(vec![beats]) };
        let end = bench.perform(&plan(RESULTS)).await.unwrap();
        assert_eq!(end.verdict.cause, cause, "{ticks} {tail:?}");
        let found = end.verdict.notes.iter().any(|note| *note == printing);
        assert_eq!(found, noted, "{ticks} {tail:?}: {:?}", end.verdict.notes);
        if noted {
            assert_eq!(end.verdict.listened_ms, Some(250), "{ticks} {tail:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_plan_says_how_long_is_listened() {
    let beats = vec![print(GREEN), Beat::Pause(ms(490)), print(FAULT)];
    for (settle, cause) in [("", Cause::Passed), ("settle = '500ms'\n", Cause::FaultBanner)] {
        let text = format!("{settle}{}", plan(RESULTS));
        assert_eq!(Bench::new(vec![beats.clone()]).cause(&text).await, cause, "{settle}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_format_that_ended_long_ago_is_printed_out() {
    for (pause, printed_out) in [(0, true), (9_000, false)] {
        let beats = vec![print("hello\n"), Beat::Pause(ms(pause)), print("bye\n")];
        let text = plan("{ power = 'cycle' }, { wait_for_results = true, timeout = '10s' }");
        let end = Bench::new(vec![beats]).perform(&text).await.unwrap();
        assert_eq!((end.verdict.cause, end.printed_out), (Cause::NoResults, printed_out));
    }
}
