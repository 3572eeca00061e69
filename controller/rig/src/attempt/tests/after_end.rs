//! Output behind the end of a green report, or behind the last expected text.

use jig_model::Cause;
use jig_model::VerdictKind::{Inconclusive, Pass};

use super::fake::*;

const BOOT_AND_WAIT: &str = "{ power = 'cycle' }, { wait_for_results = true }";
const PANIC: &str = "thread 'main' panicked at src/main.rs:17:5:\n";

#[tokio::test(start_paused = true)]
async fn nothing_passes_with_a_crash_behind_its_end() {
    let boot = || vec![print(PANIC), print(GREEN), print("bye\n"), print(PANIC)];
    let end = Bench::new(vec![boot()]).perform(&plan(BOOT_AND_WAIT)).await.unwrap();
    assert_eq!(end.verdict.cause, Cause::SuspiciousOutput);
    let start = (PANIC.len() + GREEN.len() + 4) as u64;
    let evidence = &end.verdict.evidence[0];
    let line = PANIC.trim_end();
    assert_eq!((evidence.start, evidence.end), (start, start + line.len() as u64));
    assert!(end.verdict.summary.contains(line), "{}", end.verdict.summary);
}

#[tokio::test(start_paused = true)]
async fn what_stands_before_the_end_or_is_harmless_does_not_count() {
    for behind in ["", "0 errors\nbye\n", "panic handler installed\n"] {
        let boot = vec![print(PANIC), print(GREEN), print(behind)];
        let verdict = Bench::new(vec![boot]).verdict(&plan(BOOT_AND_WAIT)).await;
        assert_eq!(verdict, (Pass, Cause::Passed), "{behind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pass_tells_of_what_nothing_accounts_for_behind_its_report() {
    for (behind, told) in [
        ("", None),
        ("uart:~$ ", None),
        ("bye\n", Some("a line that nothing accounts for: bye (with --strict-behind")),
        ("route lost\nuart:~$ \nbye\n", Some("accounts for (2 lines): route lost (with --strict")),
    ] {
        let bench = Bench::new(vec![vec![print("hello\n"), print(GREEN), print(behind)]]);
        let verdict = bench.perform(&plan(BOOT_AND_WAIT)).await.unwrap().verdict;
        assert_eq!(verdict.kind, Pass, "{behind:?}");
        let notes: Vec<String> = verdict.notes.iter().map(ToString::to_string).collect();
        assert_eq!(notes.len(), usize::from(told.is_some()), "{notes:?}");
        assert!(notes.iter().all(|note| told.is_some_and(|told| note.contains(told))), "{notes:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn rest_of_an_expected_line_is_looked_at_like_a_line() {
    for (output, cause) in [
        ("READY in 5 s, no errors\nbye\n", Cause::ExpectationsMet),
        ("READY PANIC: queue full\nbye\n", Cause::SuspiciousOutput),
        ("READY *** HardFault: pc=0x42 lr=0xfffffff9\n", Cause::SuspiciousOutput),
        ("READY\npanic: queue is full", Cause::SuspiciousOutput),
    ] {
        for text in [
            "{ power = 'cycle' }, { expect = ['READY'] }",
            "{ power = 'cycle' }, { expect = ['READY'] }, { sleep = '1s' }",
        ] {
            let bench = Bench::new(vec![vec![print(output)]]);
            assert_eq!(bench.cause(&plan(text)).await, cause, "{output:?} {text}");
        }
    }
    // Behind a text that does not end the plan, its actions make the target print.
    let text = "{ power = 'cycle' }, { expect = ['READY'] }, { send = 'crash' }";
    let bench = Bench::new(vec![vec![print("READY\npanic: queue is full\n")]]);
    assert_eq!(bench.cause(&plan(text)).await, Cause::ExpectationsMet);
}

#[tokio::test(start_paused = true)]
async fn what_the_plan_expects_behind_a_report_is_no_incident() {
    let waits = format!("{BOOT_AND_WAIT}, {{ expect = ['panicked'] }}");
    let bench = Bench::new(vec![vec![print(GREEN), print(PANIC)]]);
    assert_eq!(bench.verdict(&plan(&waits)).await, (Pass, Cause::Passed));
}

#[tokio::test(start_paused = true)]
async fn profile_and_plan_allow_patterns() {
    let boot = || vec![print(GREEN), print(PANIC), print("trap: 7\n")];
    let head = |allowed: &str, text: &str| format!("allow_output = [{allowed}]\n{text}");
    let text = plan(BOOT_AND_WAIT);
    let with = |profile: &str, text: String| {
        let bench = Bench::new(vec![boot()]);
        let profile = if profile.is_empty() {
            bench.profile.clone()
        } else {
            bench.profile.replacen("version = 1", &head(profile, "version = 1"), 1)
        };
        (Bench { profile, ..bench }, text)
    };
    for (profile, text, wanted) in [
        ("", text.clone(), Inconclusive),
        ("'^trap: '", text.clone(), Inconclusive),
        ("'^trap: ', 'panicked at'", text.clone(), Pass),
        ("'^trap: '", head("'panicked at'", &text), Pass),
    ] {
        let (bench, text) = with(profile, text);
        assert_eq!(bench.verdict(&text).await.0, wanted, "{profile}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_strict_plan_passes_only_by_lines_that_it_knows() {
    let strict = |head: &str, actions: &str| format!("strict = true\n{head}\n{}", plan(actions));
    let allowed = "allow_output = ['^boot v', '^spi: yes$']";
    let until = "{ power = 'cycle' }, { expect = '^summary: [a-z ]+$' }";
    let spelled = "{ power = 'cycle' }, { expect = '^summary: all fine$' }";
    for (text, output, verdict) in [
        (strict("", BOOT_AND_WAIT), GREEN.to_owned(), (Pass, Cause::Passed)),
        (
            strict("", BOOT_AND_WAIT),
            format!("boot v1\n{GREEN}"),
            (Inconclusive, Cause::SuspiciousOutput),
        ),
        (
            strict(allowed, BOOT_AND_WAIT),
            format!("boot v1\nspi: yes\n{GREEN}---\n"),
            (Pass, Cause::Passed),
        ),
        (
            strict(allowed, BOOT_AND_WAIT),
            format!("boot v1\n{GREEN}spi: DEAD\n"),
            (Inconclusive, Cause::SuspiciousOutput),
        ),
        (
            strict("", until),
            "summary: not all fine\n".to_owned(),
            (Inconclusive, Cause::SuspiciousOutput),
        ),
        (strict("", spelled), "summary: all fine\n".to_owned(), (Pass, Cause::ExpectationsMet)),
        (plan(until), "summary: all fine\n".to_owned(), (Pass, Cause::ExpectationsMet)),
    ] {
        let bench = Bench::new(vec![vec![print(&output)]]);
        assert_eq!(bench.verdict(&text).await, verdict, "{text} {output}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_plan_may_be_strict_behind_its_report_only() {
    let strict =
        |head: &str, actions: &str| format!("strict = 'behind'\n{head}\n{}", plan(actions));
    let until = "{ power = 'cycle' }, { expect = '^summary: [a-z ]+$' }";
    for (text, output, cause) in [
        (strict("", BOOT_AND_WAIT), format!("boot v1\n{GREEN}\nuart:~$ "), Cause::Passed),
        (strict("", BOOT_AND_WAIT), format!("{GREEN}bye\n"), Cause::SuspiciousOutput),
        (strict("allow_output = ['^bye$']", BOOT_AND_WAIT), format!("{GREEN}bye\n"), Cause::Passed),
        (strict("", until), "summary: all fine\nbye\n".to_owned(), Cause::ExpectationsMet),
    ] {
        let bench = Bench::new(vec![vec![print(&output)]]);
        assert_eq!(bench.cause(&text).await, cause, "{text} {output}");
    }
}

#[tokio::test(start_paused = true)]
async fn allowed_lines_hide_no_crash_behind_them() {
    let allowed = "trap: 7\n".repeat(2000);
    let text = format!("allow_output = ['^trap: ']\n{}", plan(BOOT_AND_WAIT));
    for (last, cause) in [("", Cause::Passed), (PANIC, Cause::SuspiciousOutput)] {
        let boot = vec![print(GREEN), print(&format!("{allowed}{last}"))];
        let bench = Bench::new(vec![boot]);
        assert_eq!(bench.cause(&text).await, cause, "{last:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_headline_is_quoted_whole_and_with_its_reason_however_it_arrived() {
    let signature = "[[fault]]\nname = \"riot\"\nline = '\\*\\*\\* RIOT kernel panic'\n\
                     cause = \"guest_panic\"\nreason = '[A-Z]'\n";
    let text =
        "\u{1b}[31m*** RIOT kernel panic:\u{1b}[0m\r\nHARD FAULT HANDLER\r\n\r\n*** halted.\r\n";
    for cut in [text.len(), 26, 30, 40, 50] {
        let (head, tail) = text.split_at(cut);
        let mut boot = vec![print("hello\n"), print(head)];
        if !tail.is_empty() {
            boot.extend([SOON, print(tail)]);
        }
        let bench = Bench::new(vec![boot]);
        let profile = bench.profile.replacen("[limits]", &format!("{signature}[limits]"), 1);
        let end = Bench { profile, ..bench }.perform(&plan(BOOT_AND_WAIT)).await.unwrap();
        assert_eq!(
            end.verdict.summary, "panic: *** RIOT kernel panic: HARD FAULT HANDLER",
            "{cut}"
        );
        let evidence = &end.verdict.evidence[0];
        let behind = 6 + text.find("\r\n\r\n").unwrap() as u64;
        assert_eq!((evidence.start, evidence.end), (6, behind), "{cut}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_passes_beside_a_failed_result_that_no_report_has() {
    const RESULT: &str = "Tests: 3 failed, 2 passed";
    let line = format!("{RESULT}\n");
    for (what, boot) in [
        ("in front", vec![print(&line), print(GREEN)]),
        ("behind", vec![print(GREEN), print(&line)]),
        ("without a line end", vec![print(GREEN), print(RESULT)]),
        (
            "on another console",
            vec![Beat::Print(1, line.clone().into()), Beat::Drain, print(GREEN)],
        ),
    ] {
        let end = Bench::new(vec![boot]).perform(&plan(BOOT_AND_WAIT)).await.unwrap();
        assert_eq!(end.verdict.cause, Cause::SuspiciousOutput, "{what}");
        assert!(end.verdict.summary.contains(RESULT), "{what}: {}", end.verdict.summary);
        let (evidence, start) = (&end.verdict.evidence[0], end.verdict.evidence[0].start);
        assert_eq!(evidence.end, start + RESULT.len() as u64, "{what}");
    }
    // Between the lines of the report, too.
    let (head, tail) = GREEN.split_once('\n').unwrap();
    let boot = vec![print(&format!("{head}\n{line}{tail}"))];
    assert_eq!(Bench::new(vec![boot]).cause(&plan(BOOT_AND_WAIT)).await, Cause::SuspiciousOutput);
    // Where the plan waits for a text, and does not expect that line itself.
    for (awaited, cause) in [("up", Cause::SuspiciousOutput), ("3 failed", Cause::ExpectationsMet)]
    {
        let waits = format!("{{ power = 'cycle' }}, {{ expect = ['{awaited}'] }}");
        let boot = vec![print(&line), print("up\n")];
        assert_eq!(Bench::new(vec![boot]).cause(&plan(&waits)).await, cause, "{awaited}");
    }
}

#[tokio::test(start_paused = true)]
async fn failed_results_that_a_report_explains_or_that_are_allowed_do_not_count() {
    let todo = "TAP version 13\n1..2\nok 1 - a\nnot ok 2 - b # TODO later\n";
    for (what, head, boot) in [
        ("a point that may fail", "", vec![print(todo)]),
        ("a log", "", vec![print("retry failed, trying again\n0 failures\n"), print(GREEN)]),
        (
            "allowed",
            "allow_output = ['^Tests: ']\n",
            vec![print("Tests: 3 failed\n"), print(GREEN)],
        ),
        (
            "a console whose reports do not count",
            "ignore_reports_on = ['uart1']\n",
            vec![Beat::Print(1, b"Tests: 3 failed\n".to_vec()), Beat::Drain, print(GREEN)],
        ),
    ] {
        let text = format!("{head}{}", plan(BOOT_AND_WAIT));
        assert_eq!(Bench::new(vec![boot]).cause(&text).await, Cause::Passed, "{what}");
    }
    // An earlier boot of the plan counts.
    let text = plan(
        "{ power = 'cycle' }, { expect = ['up'] }, { power = 'cycle' }, { wait_for_results = true }",
    );
    let boots = vec![vec![print("Tests: 3 failed\nup\n")], vec![print(GREEN)]];
    assert_eq!(Bench::new(boots).cause(&text).await, Cause::SuspiciousOutput);
}

#[tokio::test(start_paused = true)]
async fn a_crash_on_another_console_counts_behind_the_end_and_in_doubt_in_front_of_it() {
    let panic = || Beat::Print(1, PANIC.into());
    for (boot, cause) in [
        (vec![print(GREEN), Beat::Drain, SOON, panic()], Cause::SuspiciousOutput),
        // The log's clock is not paused: the panic was captured only just in front.
        (vec![panic(), Beat::Drain, SOON, print(GREEN)], Cause::SuspiciousOutput),
    ] {
        assert_eq!(Bench::new(vec![boot]).cause(&plan(BOOT_AND_WAIT)).await, cause);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_passes_by_a_line_that_says_error() {
    let waits = |pattern| plan(&format!("{{ power = 'cycle' }}, {{ expect = ['{pattern}'] }}"));
    for (output, pattern, cause) in [
        ("IntSem ERROR - tick count 12\n", "tick count", Cause::SuspiciousOutput),
        ("IntSem ERROR - tick count 12\n", "ERROR - tick count", Cause::ExpectationsMet),
        ("IntSem OK - tick count 12\n", "tick count", Cause::ExpectationsMet),
        ("ERROR: sensor\ntick count 12\n", "tick count", Cause::ExpectationsMet),
        // A row of a list in front of the awaited text.
        ("self test\nADC    NG\nRAM   OK\ndone\n", "done", Cause::SuspiciousOutput),
        ("self test\nADC    NG\nRAM   OK\ndone\n", "RAM +OK", Cause::SuspiciousOutput),
        ("ADC    NG\nRAM   OK\n", "OK", Cause::SuspiciousOutput),
    ] {
        let bench = Bench::new(vec![vec![print(output)]]);
        assert_eq!(bench.cause(&waits(pattern)).await, cause, "{output:?} {pattern}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_passes_with_a_boot_or_a_cut_result_behind_its_end() {
    for (behind, cause) in [
        ("U-Boot 2024.01 (Jan 01 2024 - 00:00:00 +0000)\n", Cause::SuspiciousOutput),
        ("rst:0xc (SW_CPU_RESET),boot:0x13 (SPI_FAST_FLASH_BOOT)\n", Cause::SuspiciousOutput),
        ("Call trace:\n", Cause::SuspiciousOutput),
        ("*** reset ***\n", Cause::SuspiciousOutput),
        ("b.c:2:u:FAI", Cause::SuspiciousOutput),
        ("Ran 3 tests, 1 bad\n", Cause::SuspiciousOutput),
        ("U-Boot environment saved\n", Cause::Passed),
    ] {
        let bench = Bench::new(vec![vec![print(GREEN), print(behind)]]);
        assert_eq!(bench.cause(&plan(BOOT_AND_WAIT)).await, cause, "{behind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_text_that_a_later_line_takes_back_proves_nothing() {
    let waits = |pattern| plan(&format!("{{ power = 'cycle' }}, {{ expect = ['{pattern}'] }}"));
    for (output, pattern, cause) in [
        ("modem: READY\nmodem: NOT READY\n", "READY", Cause::SuspiciousOutput),
        ("modem: READY\nmodem: NOT READY\n", "^modem: READY$", Cause::ExpectationsMet),
        ("link up\nlink up: no\n", "link up", Cause::SuspiciousOutput),
        ("modem: NOT READY\nmodem: READY\n", "^modem: READY$", Cause::ExpectationsMet),
        ("modem: READY\nmodem: READY\n", "READY", Cause::ExpectationsMet),
        ("up\nnot up\n", "^up", Cause::ExpectationsMet),
    ] {
        let bench = Bench::new(vec![vec![print(output)]]);
        let end = bench.perform(&waits(pattern)).await.unwrap();
        assert_eq!(end.verdict.cause, cause, "{output:?} {pattern}");
        let told = end.verdict.summary.contains("taken back by a later line");
        assert_eq!(told, cause == Cause::SuspiciousOutput, "{}", end.verdict.summary);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_passes_by_a_text_that_proves_nothing_where_it_stands() {
    let waits = |pattern| plan(&format!("{{ power = 'cycle' }}, {{ expect = ['{pattern}'] }}"));
    for (output, pattern, hint) in [
        ("boot incomplete\n", "complete", Some(r"'\bcomplete\b'")),
        ("main rc=-5\r\n", "rc=", Some("'rc= *0$'")),
        ("not all of the links are up\n", "links are up", Some("'^links are up'")),
        ("self-test passed? no\n", "self-test passed", Some("'self\\-test passed$'")),
        ("flash was not ready\n", "(?i)READY", Some("'^ready'")),
        ("flash is not ready\n", "flash.*ready", Some("'^ready'")),
        ("boot incomplete\n", "in[c]omplete", None),
        ("boot incomplete\nboot complete\n", r"\bcomplete\b", None),
        ("main rc=0\n", "rc=", None),
        ("all tests passed\n", "all tests", None),
        ("temp=-5\n", "temp=", None),
        ("Hello\n", ".ello", None),
        ("boot completed in 12 ms\n", "complete", None),
    ] {
        let boot = || vec![print(output)];
        let end = Bench::new(vec![boot()]).perform(&waits(pattern)).await.unwrap();
        let (cause, summary) = (end.verdict.cause, &end.verdict.summary);
        let wanted = if hint.is_some() { Cause::SuspiciousOutput } else { Cause::ExpectationsMet };
        assert_eq!(cause, wanted, "{output:?} {pattern} {summary}");
        assert!(summary.contains(hint.unwrap_or_default()), "{summary}");
        let text = format!("allow_output = ['.']\n{}", waits(pattern));
        assert_eq!(Bench::new(vec![boot()]).cause(&text).await, Cause::ExpectationsMet, "{output}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_headline_that_is_cut_on_another_console_counts_whenever_it_came() {
    for (behind, cause) in [
        ("net up\n*** HardFau", Cause::SuspiciousOutput),
        ("net up\n*** HardFau\n", Cause::Passed),
        ("net> ", Cause::Passed),
    ] {
        // In one moment with the end of the report, and in front of it.
        let there = || Beat::Print(1, behind.into());
        for boot in [vec![print(GREEN), there()], vec![there(), Beat::Drain, SOON, print(GREEN)]] {
            let bench = Bench::new(vec![boot]);
            assert_eq!(bench.cause(&plan(BOOT_AND_WAIT)).await, cause, "{behind:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_passes_with_another_boot_on_another_console() {
    for (front, behind, cause) in [
        ("net v3.1 start\nup\n", "net v3.1 start\n", Cause::SuspiciousOutput),
        ("net v3.1 start\nup\n", "net v3.1 idle\n", Cause::Passed),
        ("tick\n", "tick\n", Cause::Passed),
    ] {
        let there = |text: &str| Beat::Print(1, text.into());
        let boot = vec![there(front), Beat::Drain, print(GREEN), Beat::Drain, SOON, there(behind)];
        let bench = Bench::new(vec![boot]);
        assert_eq!(bench.cause(&plan(BOOT_AND_WAIT)).await, cause, "{front:?} {behind:?}");
    }
}
