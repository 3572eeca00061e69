//! Crashes that the firmware itself expects: a line behind them says so, and a report decides.

use std::time::Duration;

use jig_model::Cause;

use super::fake::*;

const SIGNATURE: &str = "[[fault]]\nname = \"own\"\nline = 'OOPS'\ncause = \"fault_banner\"\n\
                         excuse = 'wanted'\n[limits]";

const WAIT: &str = "{ power = 'cycle' }, { wait_for_results = true, timeout = '20s' }";

fn bench(beats: Vec<Beat>) -> Bench {
    let bench = Bench::new(vec![beats]);
    let profile = bench.profile.replacen("[limits]", SIGNATURE, 1);
    Bench { profile, ..bench }
}

async fn judged(beats: Vec<Beat>) -> Cause {
    bench(beats).cause(&plan(WAIT)).await
}

/// A report with something in front of its last result, and something behind its end.
fn report(within: &str, behind: &str) -> Vec<Beat> {
    vec![print(&format!("TAP version 13\n1..2\nok 1 - a\n{within}ok 2 - b\n{behind}"))]
}

#[tokio::test(start_paused = true)]
async fn a_crash_that_the_firmware_excuses_leaves_the_report_to_decide() {
    for (within, behind, cause) in [
        ("OOPS\nwanted\n", "", Cause::Passed),
        ("OOPS\nCaught assert failed\nTests: 3 failed\nwanted\n", "", Cause::Passed),
        ("OOPS\nwanted\nx\nOOPS\nwanted\n", "", Cause::Passed),
        ("OOPS\n", "", Cause::FaultBanner),
        ("wanted\nOOPS\n", "", Cause::FaultBanner),
        ("OOPS\nOOPS\nwanted\n", "", Cause::FaultBanner),
        ("OOPS\nHardFault at 0x12ab\nwanted\n", "", Cause::FaultBanner),
        ("OOPS\nfake boot\nwanted\n", "", Cause::FaultBanner),
        // Behind the end no report decides any more.
        ("", "OOPS\nwanted\n", Cause::FaultBanner),
        ("OOPS\n", "wanted\n", Cause::FaultBanner),
        // The line excuses a crash of the next case.
        ("OOPS\nok 2 - b\nwanted\n", "", Cause::FaultBanner),
        // What else fails a run fails it as before.
        ("OOPS\nwanted\nnot ok 3 - c\n", "", Cause::TestFailed),
        ("OOPS\nwanted\nTests: 3 failed\n", "", Cause::SuspiciousOutput),
    ] {
        assert_eq!(judged(report(within, behind)).await, cause, "{within:?} {behind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_outcome_does_not_depend_on_how_a_crash_and_its_excuse_are_cut() {
    for (within, cause) in [("OOPS\nwanted\n", Cause::Passed), ("OOPS\n", Cause::FaultBanner)] {
        let text = format!("TAP version 13\n1..2\nok 1 - a\n{within}ok 2 - b\n");
        for cut in 29..text.len() {
            let (head, tail) = text.split_at(cut);
            let end = bench(vec![print(head), Beat::Drain, print(tail)]).perform(&plan(WAIT)).await;
            let verdict = end.unwrap().verdict;
            assert_eq!(verdict.cause, cause, "cut at {cut}");
            assert_eq!(verdict.tests.remarks.is_empty(), cause == Cause::Passed, "cut at {cut}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_without_an_excuse_counts_after_a_second_of_silence() {
    let pause = |ms| Beat::Pause(Duration::from_millis(ms));
    let began = tokio::time::Instant::now();
    assert_eq!(judged(vec![print("OOPS\n")]).await, Cause::FaultBanner);
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(1) && took < Duration::from_secs(3), "{took:?}");
    let apart = |ms| {
        let tail = "x\nwanted\nok 1 - a\nok 2 - b\n";
        vec![print("TAP version 13\n1..2\nOOPS\n"), pause(ms), print(tail)]
    };
    assert_eq!(judged(apart(900)).await, Cause::Passed);
    assert_eq!(judged(apart(1300)).await, Cause::FaultBanner);
}

#[tokio::test(start_paused = true)]
async fn a_crash_behind_the_report_counts_before_the_board_is_switched_off() {
    for tail in ["OOPS\n", "OOPS: x"] {
        let bench = bench(vec![print(GREEN), SOON, print(tail)]);
        let end = bench.perform(&plan(WAIT)).await.unwrap();
        assert_eq!(end.verdict.cause, Cause::FaultBanner, "{tail:?}");
        // The action failed by it, so that it is looked into.
        let workflow = format!("{:?}", end.workflow.unwrap());
        assert!(workflow.contains("state: Error"), "{tail:?} {workflow}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_excuse_without_a_report_behind_it_proves_nothing() {
    // The report does not end: that is the failure, not the crash that was expected.
    let open = "TAP version 13\n1..2\nok 1 - a\nOOPS\nwanted\n";
    assert_eq!(judged(vec![print(open)]).await, Cause::Hang);
    // A plan that waits for a text, without a report and with one.
    let text = plan("{ power = 'cycle' }, { expect = ['ok 2|ready'], timeout = '5s' }");
    let cause = |output: &str| {
        let (bench, text) = (bench(vec![print(output)]), text.clone());
        async move { bench.cause(&text).await }
    };
    assert_eq!(cause("OOPS\nwanted\nready\n").await, Cause::FaultBanner);
    let whole = "TAP version 13\n1..2\nok 1 - a\nOOPS\nwanted\nok 2 - b\n";
    assert_eq!(cause(whole).await, Cause::ExpectationsMet);
    // The text stands in front of the crash, and the report ends behind it.
    let early = "ready\nTAP version 13\n1..1\nOOPS\nwanted\nok 1 - a\n";
    assert_eq!(cause(early).await, Cause::ExpectationsMet);
    assert_eq!(cause("ready\nOOPS\nwanted\n").await, Cause::FaultBanner);
}

#[tokio::test(start_paused = true)]
async fn an_excuse_belongs_to_its_console_and_its_boot() {
    let beats = vec![print("OOPS\n"), Beat::Print(1, b"wanted\n".to_vec()), print(GREEN)];
    assert_eq!(judged(beats).await, Cause::FaultBanner);
    let beats = vec![Beat::Print(1, b"OOPS\nwanted\n".to_vec()), Beat::Drain, print(GREEN)];
    assert_eq!(judged(beats).await, Cause::FaultBanner);
    let text = plan(
        "{ power = 'cycle' }, { expect = ['up'] }, { power = 'cycle' }, { wait_for_results = true }",
    );
    let first = vec![print("OOPS\nup\n")];
    let second = vec![print(&format!("wanted\n{GREEN}"))];
    let bench = Bench { boots: vec![first, second], ..bench(Vec::new()) };
    assert_eq!(bench.cause(&text).await, Cause::FaultBanner);
}

const RUST_PANIC: &str = "[[fault]]\nname = \"rust-panic\"\nline = \"panicked at [^\\r\\n']*:\\\\d+:\\\\d\"\n\
                          cause = \"guest_panic\"\n[limits]";

const SUMMARY: &str =
    "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";

/// A report of libtest in which a case that is to panic has printed something.
fn libtest(printed: &str, behind: &str) -> String {
    format!(
        "running 2 tests\ntest a ... ok\ntest b - should panic ... {printed}ok\n{SUMMARY}{behind}"
    )
}

async fn rust_judged(beats: Vec<Beat>) -> Cause {
    let bench = Bench::new(vec![beats]);
    let profile = bench.profile.replacen("[limits]", RUST_PANIC, 1);
    Bench { profile, ..bench }.cause(&plan(WAIT)).await
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_a_case_that_is_to_panic_leaves_the_report_to_decide() {
    let panic = "panicked at src/x.rs:12:5:\nboom\n";
    let stray = "running 2 tests\ntest a ... panicked at src/x.rs:12:5:\nboom\n";
    for (output, cause) in [
        (libtest(&format!("\n{panic}"), ""), Cause::Passed),
        (libtest(panic, ""), Cause::Passed),
        (libtest("\npanicked at src/x.rs:12:5:\npanicked at src/y.rs:1:1:\n", ""), Cause::Passed),
        (libtest("", panic), Cause::GuestPanic),
        (
            libtest("\n", "").replace("ok\ntest b", &format!("\n{panic}ok\ntest b")),
            Cause::GuestPanic,
        ),
        (libtest(&format!("\n{panic}FAILED\n"), ""), Cause::TestFailed),
        (stray.replace("... ", "... \n"), Cause::GuestPanic),
        // The case does not end.
        (format!("running 1 test\ntest b - should panic ... \n{panic}"), Cause::GuestPanic),
        // The report does not end.
        (libtest(&format!("\n{panic}"), "").replace(SUMMARY, ""), Cause::Hang),
    ] {
        assert_eq!(rust_judged(vec![print(&output)]).await, cause, "{output:?}");
        for cut in [30, output.len() / 2, output.len() - 90.min(output.len()), output.len() - 1] {
            let (head, tail) = output.split_at(cut);
            let beats = vec![print(head), Beat::Drain, print(tail)];
            assert_eq!(rust_judged(beats).await, cause, "cut at {cut}: {output:?}");
        }
    }
}
