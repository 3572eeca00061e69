//! Resets by the target that the plan expects.

use std::time::Duration;

use jig_model::Cause;
use jig_model::event::BoardEvent;

use super::fake::*;

const WAITS: &str = "{ power = 'cycle' }, { expect_reset = true, timeout = '1s' }, \
                     { wait_for_results = true, timeout = '1s' }";

/// A board that tells of its resets, and whose profile has no boot banner.
fn bench(beats: Vec<Beat>) -> Bench {
    let bench = Bench::new(vec![beats]);
    let profile = bench.profile.replace("boot_banner = '^fake boot'\n", "");
    Bench { controls: true, profile, ..bench }
}

fn watchdog() -> Beat {
    Beat::Event(BoardEvent::Watchdog { action: "reset".to_owned() })
}

const HEAD: &str = "app 1\nready\n";

#[tokio::test(start_paused = true)]
async fn an_expected_reset_begins_a_boot_and_excuses_nothing_else() {
    let boot = |text: &str| print(&format!("{HEAD}{text}"));
    let half = "TAP version 13\n1..2\nok 1 - a\n";
    let reset = || vec![watchdog(), reset_by_target()];
    for (before, after, cause) in [
        // What the first boot did not finish is no part of the report.
        (vec![boot(half)], vec![boot(GREEN)], Cause::Passed),
        (vec![boot(GREEN)], vec![boot(GREEN)], Cause::Passed),
        // Cut in the middle of a line.
        (vec![boot("TAP version 13\n1..2\nok 1")], vec![boot(GREEN)], Cause::Passed),
        // A failure before the reset stays one.
        (vec![boot(RED)], vec![boot(GREEN)], Cause::TestFailed),
        (vec![boot("TAP version 13\n1..2\nnot ok 1 - a\n")], vec![boot(GREEN)], Cause::TestFailed),
        (vec![boot(FAULT)], vec![boot(GREEN)], Cause::FaultBanner),
        // A report before the reset is none behind it.
        (vec![boot(GREEN)], vec![boot("")], Cause::NoResults),
        (vec![boot(half)], vec![boot("ok 2 - b\n")], Cause::NoResults),
        // The reset came, and what the target does behind it is not known.
        (vec![boot(GREEN)], vec![], Cause::Unconfirmed),
        (vec![boot(GREEN)], vec![print("app 2\nready\n"), print(GREEN)], Cause::Unconfirmed),
        // A second reset, whoever caused it.
        (vec![boot(half)], vec![boot(GREEN), reset_by_target()], Cause::UnexpectedReset),
        (vec![boot(half)], vec![boot(GREEN), watchdog(), reset_by_target()], Cause::WatchdogReset),
        (vec![boot(half), reset_by_target()], vec![boot(GREEN)], Cause::WatchdogReset),
    ] {
        for drained in [true, false] {
            let told = format!("{before:?} {after:?} {drained}");
            let mut beats = before.clone();
            if drained {
                beats.push(Beat::Drain);
            }
            beats.extend(reset());
            beats.extend(after.clone());
            assert_eq!(bench(beats).cause(&plan(WAITS)).await, cause, "{told}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_driver_may_tell_of_a_reset_when_the_next_boot_has_printed_already() {
    let printed = print(&format!("{HEAD}{RED}{HEAD}{GREEN}"));
    let late = vec![printed, Beat::Drain, watchdog(), reset_by_target()];
    assert_eq!(bench(late).cause(&plan(WAITS)).await, Cause::TestFailed);
    let printed = print(&format!("{HEAD}TAP version 13\n1..2\nok 1 - a\n{HEAD}{GREEN}"));
    let late = vec![printed, Beat::Drain, watchdog(), reset_by_target()];
    assert_eq!(bench(late).cause(&plan(WAITS)).await, Cause::Passed);
}

#[tokio::test(start_paused = true)]
async fn a_reset_that_does_not_come_is_a_failure() {
    let end = bench(vec![print(HEAD), print(GREEN)]).perform(&plan(WAITS)).await.unwrap();
    assert_eq!(end.verdict.cause, Cause::ExpectMissed);
    assert!(end.verdict.summary.contains("did not reset itself within 1s"), "{:?}", end.verdict);
    // One that comes before the text that the plan expects first is not the expected one.
    let text = plan(
        "{ power = 'cycle' }, { expect = ['armed'], timeout = '1s' }, \
         { expect_reset = true, timeout = '1s' }",
    );
    let early = vec![print(HEAD), reset_by_target(), print(HEAD), print("armed\n")];
    assert_eq!(bench(early).cause(&text).await, Cause::UnexpectedReset);
    let on_time = vec![print(HEAD), print("armed\n"), reset_by_target(), print(HEAD)];
    assert_eq!(bench(on_time).cause(&text).await, Cause::ExpectationsMet);
}

#[tokio::test(start_paused = true)]
async fn the_next_boot_is_known_by_its_banner_or_by_the_text_of_the_plan() {
    let named = WAITS.replace("true, timeout = '1s' }, {", "'^stage 2', timeout = '1s' }, {");
    let boots =
        |second: &str| vec![print("stage 1\n"), reset_by_target(), print(second), print(GREEN)];
    assert_eq!(bench(boots("stage 2\n")).cause(&plan(&named)).await, Cause::Passed);
    assert_eq!(bench(boots("stage 3\n")).cause(&plan(&named)).await, Cause::ExpectMissed);
    // A board that does not tell of resets: its boot banner comes again.
    let beats = vec![print("fake boot\n"), print("half\n"), print("fake boot\n"), print(GREEN)];
    assert_eq!(Bench::new(vec![beats]).cause(&plan(WAITS)).await, Cause::Passed);
    let once = vec![print("fake boot\n"), print(GREEN)];
    assert_eq!(Bench::new(vec![once]).cause(&plan(WAITS)).await, Cause::ExpectMissed);
}

#[tokio::test(start_paused = true)]
async fn an_expected_reset_is_asked_for_though_the_plan_cuts_off_the_wait() {
    // What is waited for before takes time, so that the plan's time is over first.
    let text = plan("{ power = 'cycle' }, { expect = 'ready' }, { expect_reset = true }");
    let text = text.replace("30s", "2s");
    let late = || Beat::Pause(Duration::from_millis(100));
    let came =
        vec![late(), print(HEAD), Beat::Drain, watchdog(), reset_by_target(), print("app 2\n")];
    for (beats, cause, told) in [
        (came, Cause::Unconfirmed, "where its next boot begins is not known"),
        (vec![late(), print(HEAD)], Cause::ExpectMissed, "did not reset itself within 1."),
    ] {
        let verdict = bench(beats).perform(&text).await.unwrap().verdict;
        assert_eq!(verdict.cause, cause, "{}", verdict.summary);
        let over = "the plan's time was over during s/t/t/expect-reset-1: ";
        assert!(verdict.summary.starts_with(over), "{}", verdict.summary);
        assert!(verdict.summary.contains(told), "{}", verdict.summary);
    }
}
