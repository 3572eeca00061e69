//! What a report is worth, and what takes its worth away.

use jig_model::VerdictKind::{EnvError, Fail, Flaky, Inconclusive, Pass};
use std::time::Duration;

use jig_model::event::BoardEvent;

use super::fake::*;
use jig_model::Cause;

const BOOT_AND_WAIT: &str = "{ power = 'cycle' }, { wait_for_results = true }";

/// Judges one boot that prints this, then a wait for results.
async fn judged(beats: Vec<Beat>) -> (jig_model::VerdictKind, Cause) {
    Bench::new(vec![beats]).verdict(&plan(BOOT_AND_WAIT)).await
}

#[tokio::test(start_paused = true)]
async fn a_complete_green_report_passes() {
    let bench = Bench::new(vec![vec![print("fake boot\n"), print(GREEN)]]);
    let end = bench.perform(&plan(BOOT_AND_WAIT)).await.unwrap();
    assert_eq!(end.verdict.cause, Cause::Passed);
    assert_eq!(end.boots, [0]);
    assert_eq!(end.consoles[&"uart0".parse().unwrap()], 10 + GREEN.len() as u64);
    assert_eq!(bench.calls(), ["off", "on", "off"]);
}

#[tokio::test(start_paused = true)]
async fn a_report_whose_last_line_has_no_end_is_complete_once_the_target_is_quiet() {
    let report = "a.c:1:one:PASS\n\n-----------------------\n1 Tests 0 Failures 0 Ignored\nOK";
    assert_eq!(judged(vec![print(report)]).await, (Pass, Cause::Passed));
    let failed = "a.c:1:one:FAIL\n\n-----------------------\n1 Tests 1 Failures 0 Ignored\nFAIL";
    assert_eq!(judged(vec![print(failed)]).await, (Fail, Cause::TestFailed));
    // An `ok` that fulfils the plan stays one, unless a directive has begun.
    let point = "TAP version 13\n1..1\nok 1 - a";
    assert_eq!(judged(vec![print(point)]).await, (Pass, Cause::Passed));
    let directive = "TAP version 13\n1..1\nok 1 - a # TIM";
    assert_ne!(judged(vec![print(directive)]).await.0, Pass);
}

#[tokio::test(start_paused = true)]
async fn a_red_or_empty_report_does_not() {
    assert_eq!(judged(vec![print(RED)]).await, (Fail, Cause::TestFailed));
    let empty = vec![print("TAP version 13\n1..0\n")];
    assert_eq!(judged(empty).await, (Inconclusive, Cause::NoTests));
}

#[tokio::test(start_paused = true)]
async fn what_a_boot_before_printed_is_no_result() {
    let boots = vec![vec![print(GREEN), Beat::Drain], vec![print("hello\n")]];
    let bench = Bench { at_once: true, ..Bench::new(boots) };
    let text =
        plan("{ power = 'on' }, { reset = true }, { wait_for_results = true, timeout = '50ms' }");
    assert_eq!(bench.verdict(&text).await, (Inconclusive, Cause::NoResults));
    // A report that only a reset completes is none either.
    let boots = vec![
        vec![print("TAP version 13\n1..2\nok 1 - a\n"), Beat::Drain],
        vec![print("ok 2 - b\n")],
    ];
    let bench = Bench { at_once: true, ..Bench::new(boots) };
    assert_ne!(bench.verdict(&text).await.0, Pass);
}

#[tokio::test(start_paused = true)]
async fn an_awaited_report_of_an_earlier_boot_still_counts() {
    let waits = "{ power = 'cycle' }, { wait_for_results = true }, \
                 { power = 'cycle' }, { wait_for_results = true }";
    for (first, second, cause) in [
        (GREEN, GREEN, Cause::Passed),
        (RED, GREEN, Cause::TestFailed),
        (GREEN, RED, Cause::TestFailed),
        ("TAP version 13\n1..0\n", GREEN, Cause::NoTests),
        ("TAP version 13\n1..0\n", RED, Cause::TestFailed),
    ] {
        let bench = Bench::new(vec![vec![print(first)], vec![print(second)]]);
        assert_eq!(bench.cause(&plan(waits)).await, cause, "{first:?} {second:?}");
    }
    // A report that the plan did not wait for was cut on purpose.
    let text = plan(
        "{ power = 'cycle' }, { expect = ['ok 1'] }, { power = 'cycle' }, { wait_for_results = true }",
    );
    let cut = "TAP version 13\n1..2\nok 1 - a\n";
    let bench = Bench::new(vec![vec![print(cut)], vec![print(GREEN)]]);
    assert_eq!(bench.cause(&text).await, Cause::Passed);
}

#[tokio::test(start_paused = true)]
async fn a_failure_before_a_reset_of_the_plan_fails_the_run() {
    let failed_case = "TAP version 13\n1..2\nnot ok 1 - a\n";
    for switch in ["{ power = 'cycle' }", "{ reset = true }"] {
        for (console, first, cause) in [
            (0, "", Cause::Passed),
            (0, "ok 1 - a\n", Cause::Passed),
            (0, failed_case, Cause::TestFailed),
            (0, RED, Cause::TestFailed),
            (1, failed_case, Cause::TestFailed),
            (1, RED, Cause::TestFailed),
        ] {
            for end in ["{ wait_for_results = true }", "{ expect = ['ok 2'] }"] {
                let text = plan(&format!(
                    "{{ power = 'cycle' }}, {{ expect = ['up'] }}, {{ sleep = '1s' }}, {switch}, {end}"
                ));
                let boot = vec![Beat::Print(console, first.into()), Beat::Drain, print("up\n")];
                let bench = Bench::new(vec![boot, vec![print(GREEN)]]);
                let found = bench.cause(&text).await;
                let green = [Cause::Passed, Cause::ExpectationsMet].contains(&found);
                assert!(found == cause || (green && cause == Cause::Passed), "{found} {first:?}");
            }
        }
    }
    // That of a start of a behaviour that is over does not count.
    let actions = "{ power = 'cycle' }, { expect = ['up'], timeout = '50ms' }, \
                   { wait_for_results = true }";
    let boots = vec![vec![print(RED)], vec![print("up\n"), print(GREEN)]];
    assert_eq!(Bench::new(boots).cause(&plan_of(2, actions)).await, Cause::Flaky);
}

#[tokio::test(start_paused = true)]
async fn a_second_wait_in_a_boot_wants_a_second_report() {
    let text = plan(
        "{ power = 'cycle' }, { wait_for_results = true }, { send = 'again' }, \
         { wait_for_results = true, timeout = '50ms' }",
    );
    let bench = Bench::new(vec![vec![print(GREEN)]]);
    assert_eq!(bench.verdict(&text).await, (Fail, Cause::Hang));
}

#[tokio::test(start_paused = true)]
async fn a_fault_is_found_however_it_is_cut() {
    let text = format!("TAP version 13\n1..2\nok 1 - a\nok 2 {FAULT}\n");
    let from = text.find("Hard").unwrap() - 3;
    for cut in from..text.len() {
        let (head, tail) = text.split_at(cut);
        let beats = vec![print(head), Beat::Drain, print(tail)];
        let bench = Bench::new(vec![beats]);
        let end = bench.perform(&plan(BOOT_AND_WAIT)).await.unwrap();
        assert_eq!(end.verdict.cause, Cause::FaultBanner, "cut at {cut}");
        let cases: Vec<_> = end.verdict.tests.cases.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(cases, ["a"], "cut at {cut}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_fault_behind_the_end_marker_is_waited_for() {
    let behind = |pause| vec![print(GREEN), pause, print(FAULT)];
    assert_eq!(judged(behind(SOON)).await, (Fail, Cause::FaultBanner));
    assert_eq!(judged(behind(LATE)).await, (Pass, Cause::Passed));
    // Also where the plan waits for a text.
    let text = plan("{ power = 'cycle' }, { expect = ['ready'] }");
    let behind = |pause| Bench::new(vec![vec![print("ready\n"), pause, print(FAULT)]]);
    assert_eq!(behind(SOON).verdict(&text).await, (Fail, Cause::FaultBanner));
    assert_eq!(behind(LATE).verdict(&text).await, (Pass, Cause::ExpectationsMet));
}

#[tokio::test(start_paused = true)]
async fn a_report_that_goes_on_behind_its_end_marker_is_waited_for_again() {
    let (head, tail) = ("TAP version 13\n1..2\nok 1 - a\n", "ok 2 - b\n");
    // It does not end a second time.
    assert_eq!(judged(vec![print(GREEN), SOON, print(head)]).await, (Fail, Cause::Hang));
    // It does, long after, and contradicts itself.
    let pause = || Beat::Pause(Duration::from_secs(10));
    let twice = vec![print(GREEN), SOON, print(head), pause(), print(tail)];
    assert_eq!(judged(twice).await, (Inconclusive, Cause::PlanMismatch));
    // The target is watched behind the last end, not the first.
    let twice = vec![print(GREEN), SOON, print(GREEN), SOON, print(FAULT)];
    assert_eq!(judged(twice).await, (Fail, Cause::FaultBanner));
    // One that is repeated for ever has no last end, which is no failure; that of a test is.
    let beats = [print(GREEN), SOON].into_iter().cycle().take(2000).collect();
    assert_eq!(judged(beats).await, (Inconclusive, Cause::ReportIncomplete));
    let beats = [print(RED), SOON].into_iter().cycle().take(2000).collect();
    assert_eq!(judged(beats).await, (Fail, Cause::TestFailed));
    // It hangs in one of the repetitions.
    let mut beats: Vec<Beat> = [print(GREEN), SOON].into_iter().cycle().take(8).collect();
    beats.push(print(head));
    assert_eq!(judged(beats).await, (Fail, Cause::Hang));
    // What comes when the wait is over is not waited for.
    assert_eq!(judged(vec![print(GREEN), LATE, print(head)]).await, (Pass, Cause::Passed));
}

#[tokio::test(start_paused = true)]
async fn faults_count_on_every_console() {
    let beats = vec![Beat::Print(1, FAULT.into()), Beat::Drain, print(GREEN)];
    assert_eq!(judged(beats).await, (Fail, Cause::FaultBanner));
}

#[tokio::test(start_paused = true)]
async fn resets_by_the_target_are_told_apart() {
    let boot = || print("fake boot\n");
    let looping = vec![boot(), boot(), boot(), boot()];
    assert_eq!(judged(looping).await, (Fail, Cause::BootLoop));
    let three = vec![reset_by_target(), reset_by_target(), reset_by_target()];
    assert_eq!(judged(three).await, (Fail, Cause::BootLoop));
    assert_eq!(judged(vec![reset_by_target()]).await, (Fail, Cause::UnexpectedReset));
    let once = Bench::new(vec![vec![print("x\n"), reset_by_target()]]);
    let end = once.perform(&plan(BOOT_AND_WAIT)).await.unwrap();
    assert_eq!(end.verdict.summary, "the target reset itself once, unasked");
    let watchdog = Beat::Event(BoardEvent::Watchdog { action: "reset".to_owned() });
    let bitten = vec![watchdog, reset_by_target()];
    assert_eq!(judged(bitten).await, (Fail, Cause::WatchdogReset));
    let before_the_report = vec![reset_by_target(), print(GREEN)];
    assert_eq!(judged(before_the_report).await, (Fail, Cause::UnexpectedReset));
}

#[tokio::test(start_paused = true)]
async fn exits_are_judged_with_the_report() {
    let partial = "TAP version 13\n1..2\nok 1 - a\n";
    assert_eq!(judged(vec![print(GREEN), exit(0)]).await, (Pass, Cause::Passed));
    let (kind, _) = judged(vec![print(partial), exit(0)]).await;
    assert_eq!(kind, Inconclusive);
    assert_eq!(judged(vec![exit(0)]).await, (Inconclusive, Cause::NoOutput));
    assert_eq!(judged(vec![print(GREEN), SOON, exit(1)]).await, (Fail, Cause::GuestExit));
    assert_eq!(judged(vec![print(GREEN), LATE, exit(1)]).await, (Pass, Cause::Passed));
}

#[tokio::test(start_paused = true)]
async fn the_exit_of_an_earlier_boot_ends_no_later_wait() {
    let text = plan(
        "{ power = 'cycle' }, { wait_for_results = true }, { power = 'cycle' }, \
         { expect = ['hello'] }, { wait_for_results = true }",
    );
    let second = vec![print("hello\n"), Beat::Input(1)];
    let later = vec![print("hello\n"), Beat::Drain, print(GREEN)];
    let bench = Bench::new(vec![vec![print(GREEN), exit(0)], later]);
    assert_eq!(bench.cause(&text).await, Cause::Passed);
    let text =
        text.replace("wait_for_results = true }]", "wait_for_results = true, timeout = '50ms' }]");
    let bench = Bench::new(vec![vec![print(GREEN), exit(0)], second]);
    assert_eq!(bench.verdict(&text).await, (Inconclusive, Cause::NoResults));
}

#[tokio::test(start_paused = true)]
async fn results_may_come_on_a_named_console() {
    let on_second = || vec![print("noise\n"), Beat::Print(1, GREEN.into())];
    let text = plan("{ power = 'cycle' }, { wait_for_results = true, console = 'uart1' }");
    assert_eq!(Bench::new(vec![on_second()]).cause(&text).await, Cause::Passed);
    let elsewhere = plan("{ power = 'cycle' }, { wait_for_results = true, timeout = '50ms' }");
    let verdict = Bench::new(vec![on_second()]).verdict(&elsewhere).await;
    assert_eq!(verdict, (Inconclusive, Cause::NoResults));
    // A wait without a console still means the board's first one.
    let text = plan(
        "{ power = 'cycle' }, { expect = ['noise'], timeout = '50ms' }, \
         { wait_for_results = true, console = 'uart1' }",
    );
    let bench = Bench::new(vec![on_second()]);
    let end = bench.perform(&text).await.unwrap();
    assert_eq!(end.verdict.cause, Cause::Passed);
}

#[tokio::test(start_paused = true)]
async fn build_ids_are_compared() {
    let text = plan("{ deploy = true }, { power = 'cycle' }, { wait_for_results = true }");
    let cases = [
        ("jig-build-id: 0123456789abcdef\n", Cause::Passed),
        ("jig-build-id: 01234567\r\n", Cause::Passed),
        ("jig-build-id: 0123456\n", Cause::IdentityMissing),
        ("jig-build-id: 0123456789abcdef00\n", Cause::WrongImage),
        ("jig-build-id: fedcba98\n", Cause::WrongImage),
        ("", Cause::IdentityMissing),
    ];
    for (line, cause) in cases {
        let beats = vec![print(line), print(GREEN)];
        let bench = Bench { build_id: Some("announced"), ..Bench::new(vec![beats]) };
        assert_eq!(bench.cause(&text).await, cause, "{line:?}");
    }
    let wrong = vec![print("jig-build-id: fedcba98\n"), print(RED)];
    let bench = Bench { build_id: Some("announced"), ..Bench::new(vec![wrong]) };
    assert_eq!(bench.verdict(&text).await, (EnvError, Cause::WrongImage));
}

#[tokio::test(start_paused = true)]
async fn the_build_id_may_come_on_another_console_than_the_results() {
    let text = plan(
        "{ deploy = true }, { power = 'cycle' }, { wait_for_results = true, console = 'uart1' }",
    );
    for (line, cause) in [
        ("jig-build-id: 01234567\n", Cause::Passed),
        ("jig-build-id: fedcba98\n", Cause::WrongImage),
    ] {
        let beats = vec![print(line), Beat::Drain, Beat::Print(1, GREEN.into())];
        let bench = Bench { build_id: Some("announced"), ..Bench::new(vec![beats]) };
        assert_eq!(bench.cause(&text).await, cause, "{line:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn lost_bytes_make_a_green_report_worthless() {
    let beats = vec![Beat::Gap, print(GREEN)];
    assert_eq!(judged(beats).await, (Inconclusive, Cause::OutputLost));
    // What was not seen may be what was lost; what was seen stands.
    let text = plan("{ power = 'cycle' }, { expect = ['never'], timeout = '50ms' }");
    let bench = Bench::new(vec![vec![print("hello\n"), Beat::Gap]]);
    assert_eq!(bench.verdict(&text).await, (Inconclusive, Cause::OutputLost));
    assert_eq!(judged(vec![Beat::Gap, print(RED)]).await, (Fail, Cause::TestFailed));
}

#[tokio::test(start_paused = true)]
async fn a_second_try_is_flaky_and_the_first_is_forgiven() {
    let text = plan_of(2, BOOT_AND_WAIT);
    let faulty = || vec![print("TAP version 13\n1..2\nok 1 - a\n"), print(FAULT)];
    let bench = Bench::new(vec![faulty(), vec![print(GREEN)]]);
    assert_eq!(bench.verdict(&text).await, (Flaky, Cause::Flaky));
    let bench = Bench::new(vec![faulty(), faulty()]);
    assert_eq!(bench.verdict(&text).await, (Fail, Cause::FaultBanner));
}

#[tokio::test(start_paused = true)]
async fn what_a_failed_try_still_prints_does_not_fail_the_next() {
    let text =
        plan_of(2, "{ host_command = ['x'] }, { power = 'cycle' }, { wait_for_results = true }");
    // The second banner comes after the first has ended the try.
    let first = vec![print(FAULT), Beat::Drain, print(FAULT)];
    let bench = Bench::new(vec![first, vec![print(GREEN)]]);
    let (kind, cause) = bench.verdict(&text).await;
    assert_eq!((kind, cause), (Flaky, Cause::Flaky));
}
