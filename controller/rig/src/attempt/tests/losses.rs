//! What the rig does to an attempt: it is never the target's fault.

use jig_model::VerdictKind::{EnvError, Fail, Inconclusive, Pass};
use jig_model::protocol::TransportEvent;
use jig_model::{Cause, RunEvent};

use super::fake::*;
use crate::attempt::AttemptError;
use crate::store::{NewRun, RunStore, SystemClock};
use std::sync::Arc;
use std::time::Duration;

/// Makes a call of the driver go another way.
type Change = fn(&mut Bench);

const WAITS: [&str; 5] = [
    "{ wait_for_results = true }",
    "{ expect = ['never'] }",
    "{ sleep = '20s' }",
    "{ expect = ['hello'] }, { expect = ['never'] }",
    "{ send = 'x' }, { expect = ['never'] }",
];

#[tokio::test(start_paused = true)]
async fn a_lost_board_is_the_labs_fault_in_every_action() {
    for action in WAITS {
        let beats = vec![print("hello\n"), Beat::End(lost())];
        let bench = Bench::new(vec![beats]);
        let text = plan_of(3, &format!("{{ power = 'cycle' }}, {action}"));
        assert_eq!(bench.verdict(&text).await, (EnvError, Cause::EmulatorKilled), "{action}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_loss_is_never_forgiven() {
    // The transport ends first, so the expect fails before the driver says why.
    let beats = vec![print("hello\n"), Beat::EndTransport(0), Beat::Drain, Beat::End(lost())];
    let bench = Bench::new(vec![beats, vec![print("ready\n")]]);
    let text = plan_of(2, "{ power = 'cycle' }, { expect = ['ready'] }");
    assert_eq!(bench.verdict(&text).await, (EnvError, Cause::EmulatorKilled));
}

#[tokio::test(start_paused = true)]
async fn a_broken_transport_ends_every_wait() {
    for action in WAITS {
        for console in [0, 1] {
            let beats = vec![print("hello\n"), Beat::BreakTransport(console)];
            let bench = Bench::new(vec![beats]);
            let text = plan_of(2, &format!("{{ power = 'cycle' }}, {action}"));
            let verdict = bench.verdict(&text).await;
            assert_eq!(verdict, (EnvError, Cause::ConsoleLost), "{action}, {console}");
        }
    }
}

/// Performs and returns the cause, and how many seconds of the fake clock it took.
async fn timed(bench: &Bench, text: &str) -> (Cause, u64) {
    let began = tokio::time::Instant::now();
    let cause = bench.cause(text).await;
    (cause, began.elapsed().as_secs())
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_where_nobody_reads() {
    for action in WAITS {
        let bench = Bench { unreadable: true, ..Bench::new(vec![vec![print(GREEN)]]) };
        let began = tokio::time::Instant::now();
        let text = plan_of(2, &format!("{{ power = 'cycle' }}, {action}"));
        let error = bench.perform(&text).await.unwrap_err();
        assert_eq!(error.cause(), Cause::StorageFailed, "{action}");
        assert!(began.elapsed() < Duration::from_secs(1), "{action}: {:?}", began.elapsed());
        assert_eq!(bench.calls().last(), Some(&"off"), "{action}");
    }
}

#[tokio::test(start_paused = true)]
async fn garbage_ends_a_wait_early_only_where_the_test_is_made_again() {
    let noise = || Beat::Print(0, vec![0xf0; 64]);
    for (action, whole) in [("{ wait_for_results = true }", 30), ("{ expect = ['never'] }", 10)] {
        let text = plan(&format!("{{ power = 'cycle' }}, {action}"));
        let with = |again, beats| Bench { again, place: wired(), ..Bench::new(vec![beats]) };
        let beats = || vec![print("hello\n"), noise()];
        assert_eq!(timed(&with(true, beats()), &text).await, (Cause::OutputLost, 2), "{action}");
        assert_eq!(
            timed(&with(false, beats()), &text).await,
            (Cause::OutputLost, whole),
            "{action}"
        );
        // Text is back, so what is awaited may still come.
        let beats = || vec![noise(), print("hello again\n")];
        assert_eq!(
            timed(&with(true, beats()), &text).await,
            (Cause::OutputLost, whole),
            "{action}"
        );
    }
    let late = vec![noise(), print("\n"), Beat::Pause(Duration::from_secs(1)), print(GREEN)];
    let bench = Bench { again: true, place: wired(), ..Bench::new(vec![late]) };
    let text = plan("{ power = 'cycle' }, { wait_for_results = true }");
    assert_eq!(bench.cause(&text).await, Cause::Passed);
}

#[tokio::test(start_paused = true)]
async fn an_emulators_console_has_garbage_only_where_its_transport_reports_it() {
    let text = plan("{ power = 'cycle' }, { wait_for_results = true }");
    let noise = || vec![print("hello\n"), Beat::Print(0, vec![0xf0; 64])];
    let reported = [noise(), vec![Beat::Drain, Beat::News(TransportEvent::Garbled(9))]].concat();
    for (place, beats, cause, told) in [
        (emulated(), noise(), Cause::NoResults, None),
        (emulated(), reported, Cause::OutputLost, Some(true)),
        (wired(), noise(), Cause::OutputLost, Some(false)),
    ] {
        let bench = Bench { again: true, place, ..Bench::new(vec![beats]) };
        let end = bench.perform(&text).await.unwrap();
        assert_eq!(end.verdict.cause, cause);
        assert_eq!(end.believed.map(|believed| believed.reported), told, "{cause}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_transport_that_breaks_is_not_healed_by_the_next_boot() {
    let bench = Bench::new(vec![
        vec![Beat::BreakTransport(1), Beat::Drain, print("one\n")],
        vec![print(GREEN)],
    ]);
    let text = plan(
        "{ power = 'cycle' }, { expect = ['one'] }, { power = 'cycle' }, { wait_for_results = true }",
    );
    assert_eq!(bench.verdict(&text).await, (EnvError, Cause::ConsoleLost));
}

#[tokio::test(start_paused = true)]
async fn a_transport_that_ends_while_the_board_runs_is_lost() {
    for action in &WAITS[..2] {
        let bench = Bench::new(vec![vec![print("hello\n"), Beat::EndTransport(0)]]);
        let text = plan(&format!("{{ power = 'cycle' }}, {action}"));
        assert_eq!(bench.verdict(&text).await, (EnvError, Cause::ConsoleLost), "{action}");
    }
}

#[tokio::test(start_paused = true)]
async fn failing_calls_are_the_labs_fault() {
    let text = plan("{ deploy = true }, { power = 'cycle' }, { reset = true }, { expect = ['x'] }");
    let fails: [(Change, Cause); 4] = [
        (|b| b.on = Call::Fails(Cause::EmulatorRefused), Cause::EmulatorRefused),
        (|b| b.off = Call::Fails(Cause::PowerFailed), Cause::PowerFailed),
        (|b| b.deploy = Call::Fails(Cause::DeployFailed), Cause::DeployFailed),
        (|b| b.reset = Call::Fails(Cause::EmulatorStuck), Cause::EmulatorStuck),
    ];
    for (fail, cause) in fails {
        let mut bench = Bench::new(vec![vec![print("hello\n")], vec![print("hello\n")]]);
        fail(&mut bench);
        assert_eq!(bench.verdict(&text).await, (EnvError, cause));
    }
    let bench = Bench { bind: Call::Fails(Cause::PowerFailed), ..Bench::new(vec![]) };
    let error = bench.perform(&text).await.unwrap_err();
    assert_eq!(error.cause(), Cause::PowerFailed);
}

#[tokio::test(start_paused = true)]
async fn calls_that_hang_are_given_up_and_the_power_is_taken() {
    let text = plan(
        "{ deploy = true, timeout = '1s' }, { power = 'on', timeout = '1s' }, \
         { reset = true, timeout = '1s' }",
    );
    let hangs: [(Change, Cause); 4] = [
        (|b| b.on = Call::Hangs, Cause::PowerFailed),
        (|b| b.off = Call::Hangs, Cause::PowerFailed),
        (|b| b.deploy = Call::Hangs, Cause::DeployFailed),
        (|b| b.reset = Call::Hangs, Cause::PowerFailed),
    ];
    for (hang, cause) in hangs {
        let mut bench = Bench::new(vec![vec![], vec![]]);
        hang(&mut bench);
        assert_eq!(bench.verdict(&text).await, (EnvError, cause));
    }
}

#[tokio::test(start_paused = true)]
async fn power_is_waited_for_as_long_as_its_device_takes() {
    let seconds = Duration::from_secs;
    let text = plan("{ power = 'on' }, { wait_for_results = true }");
    let slow =
        |off| Bench { off, off_timeout: seconds(90), ..Bench::new(vec![vec![print(GREEN)]]) };
    let bench = slow(Call::Takes(seconds(80)));
    assert_eq!(bench.verdict(&text).await, (Pass, Cause::Passed));
    let ended = slow(Call::Hangs).perform(&text).await.unwrap();
    assert_eq!(ended.verdict.cause, Cause::PowerFailed);
    let words = "could not be taken within 90s";
    assert!(ended.verdict.summary.contains(words), "{:?}", ended.verdict);
}

#[tokio::test(start_paused = true)]
async fn power_that_stays_is_told_and_spoils_a_pass() {
    let off = Call::Fails(Cause::PowerFailed);
    let bench = Bench { off, ..Bench::new(vec![vec![print("hello\n")]]) };
    let text = plan("{ power = 'on' }, { expect = ['never'], timeout = '50ms' }");
    assert_eq!(bench.verdict(&text).await, (Fail, Cause::ExpectMissed));
    let events = std::mem::take(&mut *bench.seen.events.lock().unwrap());
    let told = |e: &RunEvent| matches!(e, RunEvent::Note { text } if text.contains("power"));
    assert!(events.iter().any(told), "{events:?}");
    let bench = Bench { off, ..Bench::new(vec![vec![print(GREEN)]]) };
    let verdict = bench.verdict(&plan("{ power = 'on' }, { wait_for_results = true }")).await;
    assert_eq!(verdict, (EnvError, Cause::PowerFailed));
}

#[tokio::test(start_paused = true)]
async fn what_a_port_counts_is_told_and_puts_in_doubt_what_is_missing() {
    let results = plan("{ power = 'on' }, { wait_for_results = true }");
    let garbled = || Beat::News(TransportEvent::Garbled(2));
    let bench = Bench::new(vec![vec![print("hello\n"), Beat::Drain, garbled()]]);
    assert_eq!(bench.verdict(&results).await, (Inconclusive, Cause::OutputLost));
    let events = std::mem::take(&mut *bench.seen.events.lock().unwrap());
    let told = |e: &RunEvent| matches!(e, RunEvent::Garbled { at: 6, count: 2, .. });
    assert!(events.iter().any(told), "{events:?}");
    // What was read stands; and a line that floats while a chip starts is no bad transport.
    for (beats, verdict) in [
        (vec![print(GREEN), Beat::Drain, garbled()], (Pass, Cause::Passed)),
        (vec![garbled(), print("hello\n")], (Inconclusive, Cause::NoResults)),
    ] {
        assert_eq!(Bench::new(vec![beats]).verdict(&results).await, verdict);
    }
    for (event, why) in [
        (TransportEvent::Overrun(Some(3)), "3 console bytes are missing: overrun"),
        (
            TransportEvent::Shared("minicom (pid 7)".to_owned()),
            "missing: shared with minicom (pid 7)",
        ),
    ] {
        let bench = Bench::new(vec![vec![Beat::News(event), print(GREEN)]]);
        let verdict = bench.perform(&results).await.unwrap().verdict;
        assert_eq!(verdict.cause, Cause::OutputLost);
        assert!(verdict.summary.contains(why), "{}", verdict.summary);
        let events = std::mem::take(&mut *bench.seen.events.lock().unwrap());
        let told = |e: &RunEvent| matches!(e, RunEvent::Gap { at: 0, .. });
        assert!(events.iter().any(told), "{events:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_log_that_cannot_be_made_ends_the_attempt_before_power() {
    let root = tempfile::tempdir().unwrap();
    let live =
        RunStore::new(root.path()).begin(NewRun::default(), Arc::new(SystemClock::new())).unwrap();
    // In the way of the first console's log.
    let raw = live.dir().console_path(1, &"uart0".parse().unwrap());
    std::fs::create_dir_all(&raw).unwrap();
    let bench = Bench::new(vec![vec![print(GREEN)]]);
    let error = bench.perform_in(&live, &plan("{ power = 'on' }")).await.unwrap_err();
    assert!(matches!(error, AttemptError::Log(_)), "{error:?}");
    assert_eq!(error.cause(), Cause::StorageFailed);
    assert!(bench.calls().is_empty());
}
