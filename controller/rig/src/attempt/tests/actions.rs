//! Each action, its time-out, and what it is blamed for.

use jig_model::VerdictKind::{Cancelled, EnvError, Fail, Inconclusive, Pass};
use std::time::Duration;

use jig_model::event::BoardEvent;
use jig_model::protocol::CommandEnd;
use jig_model::{Cause, RunEvent};

use super::fake::*;

#[tokio::test(start_paused = true)]
async fn an_expect_consumes_and_a_boot_begins_anew() {
    let cases = [
        ("{ expect = ['one'] }, { expect = ['two'] }", Pass),
        ("{ expect = ['two'] }, { expect = ['one'], timeout = '50ms' }", Fail),
        ("{ expect = ['one'] }, { expect = ['one'], timeout = '50ms' }", Fail),
        ("{ expect = ['two'] }, { reset = true }, { expect = ['three'] }", Pass),
        ("{ expect = ['one'] }, { reset = true }, { expect = ['two'], timeout = '50ms' }", Fail),
        ("{ expect = ['one'] }, { reset = true }, { expect = ['^three'] }", Pass),
    ];
    for (actions, kind) in cases {
        let bench = Bench::new(vec![vec![print("one\ntwo\n")], vec![print("three\n")]]);
        let text = plan(&format!("{{ power = 'cycle' }}, {actions}"));
        assert_eq!(bench.verdict(&text).await.0, kind, "{actions}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejected_text_fails_the_expect() {
    let bench = Bench::new(vec![vec![print("bad\n")]]);
    let text = plan("{ power = 'cycle' }, { expect = ['good'], reject = ['bad'] }");
    assert_eq!(bench.verdict(&text).await, (Fail, Cause::AssertFailed));
}

#[tokio::test(start_paused = true)]
async fn assertions_look_at_the_whole_boot() {
    let cases = [
        ("{ assert = 'one', at_least = 2 }", Pass),
        ("{ assert = 'one', at_least = 3 }", Fail),
        ("{ assert = 'two', absent = true }", Pass),
        ("{ assert = 'one', absent = true }", Fail),
    ];
    for (assertion, kind) in cases {
        let bench = Bench::new(vec![vec![print("one\none\nend\n")]]);
        let text = plan(&format!("{{ power = 'cycle' }}, {{ expect = ['end'] }}, {assertion}"));
        assert_eq!(bench.verdict(&text).await.0, kind, "{assertion}");
    }
}

/// No pause separates the text from the end.
#[tokio::test(start_paused = true)]
async fn unwanted_text_is_looked_for_as_a_terminal_shows_it() {
    for (output, pattern, unwanted) in [
        ("warn: over\x1b[0mrun of fifo\r\n", "overrun", true),
        ("\x1b[31mERROR\x1b[0m: sd\r\n", "^ERROR", true),
        ("E\x1b[1m42\x1b[0m sd\r\n", "E42", true),
        ("ERX\x08R-42 sd\r\n", "ERR-42", true),
        ("warn: over\x1b[0m run of fifo\r\n", "overrun", false),
        ("sd: \x1b[31mERROR\x1b[0m\r\n", "^ERROR", false),
        ("E\x1b[1m\r\n42\r\n", "E42", false),
    ] {
        let expect = format!("{{ expect = ['^end'], reject = ['{pattern}'] }}");
        let assert = format!("{{ expect = ['^end'] }}, {{ assert = '{pattern}', absent = true }}");
        for actions in [expect, assert] {
            let bench = Bench::new(vec![vec![print(&format!("{output}end\r\n"))]]);
            let text = plan(&format!("{{ power = 'cycle' }}, {actions}"));
            let found = bench.cause(&text).await == Cause::AssertFailed;
            assert_eq!(found, unwanted, "{output:?} {actions}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn input_reaches_the_target() {
    let bench = Bench::new(vec![vec![print("> "), Beat::Input(3), print("done\n")]]);
    let text =
        plan("{ power = 'cycle' }, { expect = ['> '] }, { send = 'go!' }, { expect = ['done'] }");
    assert_eq!(bench.verdict(&text).await, (Pass, Cause::ExpectationsMet));
    let deaf = Bench { deaf: true, ..Bench::new(vec![vec![print("> ")]]) };
    let text = plan("{ power = 'cycle' }, { expect = ['> '] }, { send = 'go!', timeout = '50ms' }");
    assert_eq!(deaf.verdict(&text).await, (Fail, Cause::ExpectMissed));
}

#[tokio::test(start_paused = true)]
async fn what_a_console_repeats_of_its_input_proves_nothing() {
    let sends = "{ power = 'cycle' }, { expect = ['> '] }, { send = 'run all passed' }, \
                 { expect = ['all passed'], timeout = '2s' }";
    for (output, verdict) in [
        (vec![print("run all passed\r\n")], (Fail, Cause::ExpectMissed)),
        (vec![print("run all pa"), SOON, print("ssed\r\n")], (Fail, Cause::ExpectMissed)),
        (vec![print("run all passed\r\nall passed\r\n")], (Pass, Cause::ExpectationsMet)),
        (vec![print("all passed\r\n")], (Pass, Cause::ExpectationsMet)),
    ] {
        let boot = [vec![print("> "), Beat::Input(14)], output.clone()].concat();
        let bench = Bench::new(vec![boot]);
        assert_eq!(bench.verdict(&plan(sends)).await, verdict, "{output:?}");
    }
    let boot = vec![print("> "), Beat::Input(14), print("run all passed\r\n")];
    // The echo may be what is tested.
    let echo = sends.replace("timeout = '2s'", "echo = true");
    let verdict = Bench::new(vec![boot.clone()]).verdict(&plan(&echo)).await;
    assert_eq!(verdict, (Pass, Cause::ExpectationsMet));
    let end = Bench::new(vec![boot]).perform(&plan(sends)).await.unwrap();
    let summary = end.verdict.summary;
    assert!(summary.contains("at byte 2 of uart0 it matches only what"), "{summary}");
}

#[tokio::test(start_paused = true)]
async fn a_text_in_an_echo_is_neither_rejected_nor_counted() {
    let answer = |text| vec![print("> "), Beat::Input(10), print("run errors\r\n"), print(text)];
    let sends = "{ power = 'cycle' }, { expect = ['> '] }, { send = 'run errors' }";
    let rejects = format!("{sends}, {{ expect = ['done'], reject = 'error' }}");
    let absent = format!("{sends}, {{ expect = ['done'] }}, {{ assert = 'error', absent = true }}");
    let counted =
        format!("{sends}, {{ expect = ['done'] }}, {{ assert = 'errors', at_least = 2 }}");
    let later = format!("{sends}, {{ expect = ['done'] }}, {{ expect = ['run errors'] }}");
    let long = "x".repeat(3000) + "\ndone\nrun errors\n";
    for (actions, output, verdict) in [
        (&rejects, "done\n", (Pass, Cause::ExpectationsMet)),
        (&rejects, "error 3\ndone\n", (Fail, Cause::AssertFailed)),
        (&absent, "done\n", (Pass, Cause::ExpectationsMet)),
        (&absent, "error 3\ndone\n", (Fail, Cause::AssertFailed)),
        (&counted, "errors: 0\ndone\n", (Fail, Cause::AssertFailed)),
        (&counted, "errors: 0\nno errors\ndone\n", (Pass, Cause::ExpectationsMet)),
        // The first repetition is the echo, however far behind a second one comes.
        (&later, &long, (Pass, Cause::ExpectationsMet)),
    ] {
        let bench = Bench::new(vec![answer(output)]);
        assert_eq!(bench.verdict(&plan(actions)).await, verdict, "{actions} {output:.20}");
        // A prompt in colour changes nothing, nor does an echo in colour.
        for echo in ["\x1b[1mrun errors\x1b[m\r\n", "run er\x1b[1mrors\x1b[m\r\n"] {
            let answer =
                vec![print("\x1b[32m> \x1b[m"), Beat::Input(10), print(echo), print(output)];
            let found = Bench::new(vec![answer]).verdict(&plan(actions)).await;
            assert!(found == verdict || *actions == later, "{actions} {echo:?} {output:.20}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_refuses_what_was_sent_takes_a_pass() {
    let sends = "{ power = 'cycle' }, { expect = ['> '] }, { send = 'tst' }";
    let prompt = format!("{sends}, {{ expect = ['> $'] }}");
    let wanted = format!("{sends}, {{ expect = ['Unknown command'] }}");
    let refused = (Inconclusive, Cause::SuspiciousOutput);
    let passed = (Pass, Cause::ExpectationsMet);
    for (actions, before, answer, verdict) in [
        (&prompt, "", "Unknown command 'tst'\r\n> ", refused),
        (&prompt, "", "ERROR\r\n> ", refused),
        (&prompt, "", "sh: tst: not found\r\n> ", refused),
        (&prompt, "", "OK\r\n> ", passed),
        (&prompt, "", "error: none\r\n> ", passed),
        (&wanted, "", "Unknown command 'tst'\r\n> ", passed),
        // What was printed before is no answer.
        (&prompt, "Unknown command 'x'\r\n", "OK\r\n> ", passed),
    ] {
        let boot =
            vec![print(before), print("> "), Beat::Input(3), print("tst\r\n"), print(answer)];
        let bench = Bench::new(vec![boot]);
        assert_eq!(bench.verdict(&plan(actions)).await, verdict, "{actions} {before} {answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_asks_nothing_of_its_target_proves_nothing() {
    let hello = || vec![print("hello\n")];
    for (output, actions, verdict) in [
        (hello(), "{ sleep = '1s' }", (Inconclusive, Cause::NothingExpected)),
        (hello(), "{ power = 'off' }", (Inconclusive, Cause::NothingExpected)),
        (vec![], "{ assert = 'x', absent = true }", (Inconclusive, Cause::NoOutput)),
        (
            hello(),
            "{ sleep = '1s' }, { assert = 'x', absent = true }",
            (Pass, Cause::ExpectationsMet),
        ),
        (hello(), "{ expect = ['hello'] }, { sleep = '1s' }", (Pass, Cause::ExpectationsMet)),
    ] {
        let text = plan(&format!("{{ power = 'cycle' }}, {actions}"));
        assert_eq!(Bench::new(vec![output]).verdict(&text).await, verdict, "{actions}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_can_be_asked_of_a_target_that_has_ended() {
    for action in ["{ send = 'x' }", "{ expect = ['x'] }", "{ reset = true }"] {
        let beats = vec![print("bye\n"), exit(0)];
        let bench = Bench { at_once: true, ..Bench::new(vec![beats]) };
        let text = plan(&format!("{{ power = 'cycle' }}, {action}"));
        assert_eq!(bench.verdict(&text).await, (Fail, Cause::ExpectMissed), "{action}");
    }
}

#[tokio::test(start_paused = true)]
async fn host_commands_are_blamed_as_they_end() {
    let text = plan("{ power = 'cycle' }, { expect = ['up'] }, { host_command = ['x', 'y'] }");
    for (command, verdict) in [
        (Ok(CommandEnd::Exited(0)), (Pass, Cause::ExpectationsMet)),
        (Ok(CommandEnd::Exited(2)), (Fail, Cause::HostCommandFailed)),
        (Ok(CommandEnd::Signalled(9)), (Fail, Cause::HostCommandFailed)),
        (Ok(CommandEnd::TimedOut), (Fail, Cause::HostCommandFailed)),
        (Err(Cause::HostCommandMissing), (EnvError, Cause::HostCommandMissing)),
    ] {
        let bench = Bench { command, ..Bench::new(vec![vec![print("up\n")]]) };
        assert_eq!(bench.verdict(&text).await, verdict, "{command:?}");
        let events = bench.seen.events.lock().unwrap();
        let told = events.iter().any(|e| matches!(e, RunEvent::HostCommand { .. }));
        assert_eq!(told, command.is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_runs_out_says_what_was_awaited_and_seen_last() {
    let bench = Bench::new(vec![vec![print("TAP version 13\n1..2\nok 1 - a\nlast words")]]);
    let text = plan("{ power = 'cycle' }, { wait_for_results = true, timeout = '1s' }");
    let end = bench.perform(&text).await.unwrap();
    assert_eq!(end.verdict.cause, Cause::Hang);
    for words in ["the report did not end", "1s", "last words"] {
        assert!(end.verdict.summary.contains(words), "{}", end.verdict.summary);
    }
    // The plan's own time says as much.
    let bench = Bench::new(vec![vec![print("TAP version 13\n1..2\nok 1 - a\nlast words")]]);
    let text = plan("{ power = 'cycle' }, { wait_for_results = true }").replace("30s", "1s");
    let end = bench.perform(&text).await.unwrap();
    assert_eq!(end.verdict.cause, Cause::Hang);
    assert!(end.verdict.summary.contains("last words"), "{}", end.verdict.summary);
}

#[tokio::test(start_paused = true)]
async fn a_silent_target_proves_nothing() {
    let text = plan("{ power = 'cycle' }, { wait_for_results = true, timeout = '50ms' }");
    let verdict = Bench::new(vec![vec![]]).verdict(&text).await;
    assert_eq!(verdict, (Inconclusive, Cause::NoOutput));
    let text = plan("{ power = 'cycle' }, { expect = ['x'], timeout = '50ms' }");
    let verdict = Bench::new(vec![vec![]]).verdict(&text).await;
    assert_eq!(verdict, (Inconclusive, Cause::NoOutput));
    // It is not silent if it speaks on the console that was asked for.
    let text = plan("{ power = 'cycle' }, { expect = ['x'], console = 'uart1', timeout = '50ms' }");
    let bench = Bench::new(vec![vec![Beat::Print(1, b"y\n".into())]]);
    assert_eq!(bench.verdict(&text).await, (Fail, Cause::ExpectMissed));
}

#[tokio::test(start_paused = true)]
async fn a_stop_is_heeded_at_once_and_takes_the_power() {
    let actions = [
        "{ wait_for_results = true }",
        "{ expect = ['never'] }",
        "{ sleep = '20s' }",
        "{ send = 'x' }, { expect = ['never'] }",
    ];
    for action in actions {
        let beats = vec![print("hello\n"), Beat::Drain, Beat::Cancel];
        let bench = Bench::new(vec![beats]);
        let text = plan(&format!("{{ power = 'cycle' }}, {action}"));
        assert_eq!(bench.verdict(&text).await, (Cancelled, Cause::Cancelled), "{action}");
    }
    // Even a board that fails at that moment was called off.
    let bench = Bench::new(vec![vec![print(FAULT), Beat::Cancel, Beat::Event(lost())]]);
    let text = plan("{ power = 'cycle' }, { wait_for_results = true }");
    assert_eq!(bench.verdict(&text).await.0, Cancelled);
    let bench = Bench::new(vec![vec![print(GREEN)]]);
    bench.cancel.cancel();
    assert_eq!(bench.verdict(&text).await.0, Cancelled);
    assert_eq!(bench.calls(), ["off"]);
}

#[tokio::test(start_paused = true)]
async fn a_stop_interrupts_calls_that_hang() {
    let hanging: [fn(&mut Bench); 3] =
        [|b| b.on = Call::Hangs, |b| b.deploy = Call::Hangs, |b| b.reset = Call::Hangs];
    for hang in hanging {
        let mut bench = Bench::new(vec![vec![]]);
        hang(&mut bench);
        let text = plan("{ deploy = true }, { power = 'on' }, { reset = true }");
        let stop = async {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            bench.cancel.cancel();
        };
        let (verdict, ()) = tokio::join!(bench.verdict(&text), stop);
        assert_eq!(verdict.0, Cancelled);
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_goes_on_for_as_long_as_the_board_stood() {
    let waits = [
        ("{ wait_for_results = true, timeout = '1s' }", Cause::Hang),
        ("{ expect = ['ok 2'], timeout = '1s' }", Cause::ExpectMissed),
    ];
    let ms = Duration::from_millis;
    for (wait, missed) in waits {
        for (stood, late, passes) in [(0, 400, false), (2000, 1500, true), (2000, 2500, false)] {
            let beats = vec![
                print("TAP version 13\n1..2\nok 1 - a\n"),
                Beat::Pause(ms(700)),
                Beat::Event(BoardEvent::Stood { ms: stood, stopped: false }),
                Beat::Pause(ms(late)),
                print("ok 2 - b\n"),
            ];
            let bench = Bench::new(vec![beats]);
            let (kind, cause) =
                bench.verdict(&plan(&format!("{{ power = 'cycle' }}, {wait}"))).await;
            assert_eq!(kind == Pass, passes, "{wait}: {stood}, {late}: {cause}");
            assert!(passes || cause == missed, "{wait}: {stood}, {late}: {cause}");
        }
    }
}
