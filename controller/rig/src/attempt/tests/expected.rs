//! Text that a plan expects or rejects: a crash that is the test, and output that fails a run.

use jig_model::Cause;

use super::fake::*;

/// Judges one boot that prints this, on a plan that ends with one of these texts.
async fn judged(output: &str, awaited: &str) -> Cause {
    let text =
        plan(&format!("{{ power = 'cycle' }}, {{ expect = ['{awaited}'], timeout = '1s' }}"));
    Bench::new(vec![vec![print(output)]]).cause(&text).await
}

#[tokio::test(start_paused = true)]
async fn a_crash_that_the_plan_expects_is_no_incident() {
    for (output, awaited, cause) in [
        ("HardFault at 0x12ab\n", "HardFault", Cause::ExpectationsMet),
        // In the rest of its line, and in its headline, too.
        ("HardFault at 0x12ab: stack smashed\n", "stack smashed", Cause::ExpectationsMet),
        ("HardFault at 0x12ab\n", "[Hh]ard ?[Ff]ault", Cause::ExpectationsMet),
        // What stands in the line of a crash does not mean it.
        ("HardFault at 0x12ab: task ready\n", "task ready", Cause::FaultBanner),
        ("HardFault at 0x12ab\n", "[A-Za-z]+ at 0x[0-9a-f]+", Cause::FaultBanner),
        // A crash before the text, or behind it, is not the one that was expected.
        ("HardFault at 0x12ab:\nready\n", "ready", Cause::FaultBanner),
        ("HardFault at 0x12ab\nready\n", "ready", Cause::FaultBanner),
        ("HardFault at 0x12ab\n\nready\n", "ready", Cause::FaultBanner),
        ("HardFault at 0x12ab:\n\nready\n", "ready", Cause::FaultBanner),
        ("ready\nHardFault at 0x12ab\n", "ready", Cause::FaultBanner),
        ("HardFault at 0x12ab\nHardFault at 0x34cd\n", "HardFault", Cause::FaultBanner),
        ("HardFault at 0x12ab\nHardFault at 0x34cd\n", "34cd", Cause::FaultBanner),
        ("HardFault at 0x12ab\n", "never", Cause::FaultBanner),
    ] {
        assert_eq!(judged(output, awaited).await, cause, "{output:?} {awaited}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_reason_of_a_crash_belongs_to_it_and_other_lines_do_not() {
    let signature = "[[fault]]\nname = \"riot\"\nline = '\\*\\*\\* RIOT kernel panic'\n\
                     cause = \"guest_panic\"\nreason = '[a-z]+:'\n";
    for (output, awaited, cause) in [
        ("*** RIOT kernel panic:\nssp: smashed\n", "smashed", Cause::ExpectationsMet),
        ("*** RIOT kernel panic:\n 1 2\n\nssp: smashed\n", "smashed", Cause::ExpectationsMet),
        ("*** RIOT kernel panic:\nssp: smashed\nready\n", "ready", Cause::GuestPanic),
        ("*** RIOT kernel panic:\nready\nssp: smashed\n", "ready", Cause::GuestPanic),
        ("*** RIOT kernel panic:\nready\n", "ready", Cause::GuestPanic),
    ] {
        let text = format!("{{ power = 'cycle' }}, {{ expect = ['{awaited}'], timeout = '1s' }}");
        let bench = Bench::new(vec![vec![print(output)]]);
        let profile = bench.profile.replacen("[limits]", &format!("{signature}[limits]"), 1);
        let found = Bench { profile, ..bench }.cause(&plan(&text)).await;
        assert_eq!(found, cause, "{output:?} {awaited}");
    }
}

/// Signatures of three headlines of one crash.
fn headlines() -> String {
    let line = |name: &str, line: &str| {
        format!("[[fault]]\nname = \"{name}\"\nline = '{line}'\ncause = \"guest_panic\"\n")
    };
    line("usage", "USAGE FAULT") + &line("fatal", "FATAL ERROR") + &line("halt", "Halting system")
}

const DUMP: &str =
    "up\nUSAGE FAULT\nr0: 0x00000003\nFATAL ERROR 36\nthread: 0x20000188\nHalting system\n";

async fn judged_with_headlines(beats: Vec<Beat>, text: &str) -> Cause {
    let bench = Bench::new(vec![beats]);
    let profile = bench.profile.replacen("[limits]", &format!("{}[limits]", headlines()), 1);
    Bench { profile, ..bench }.cause(text).await
}

#[tokio::test(start_paused = true)]
async fn an_expected_headline_excuses_the_others_of_its_dump() {
    let other = DUMP.replace("r0: 0x00000003", "test 2 begins");
    let twice = format!("{DUMP}{}", DUMP.replace("up\n", ""));
    let unwanted = DUMP.replace("FATAL ERROR 36", "FATAL ERROR was unexpected");
    for (output, awaited, cause) in [
        (DUMP, "USAGE FAULT", Cause::ExpectationsMet),
        (DUMP, "FATAL ERROR", Cause::ExpectationsMet),
        (DUMP, "Halting system", Cause::ExpectationsMet),
        (DUMP, "up", Cause::GuestPanic),
        (&other, "FATAL ERROR", Cause::GuestPanic),
        (&other, "USAGE FAULT", Cause::GuestPanic),
        (&twice, "FATAL ERROR", Cause::GuestPanic),
        (&unwanted, "USAGE FAULT", Cause::GuestPanic),
    ] {
        let text =
            plan(&format!("{{ power = 'cycle' }}, {{ expect = ['{awaited}'], timeout = '1s' }}"));
        let found = judged_with_headlines(vec![print(output)], &text).await;
        assert_eq!(found, cause, "{output:?} {awaited}");
    }
}

/// What decides are the bytes, and not how they arrived.
#[tokio::test(start_paused = true)]
async fn each_headline_of_a_crash_may_be_awaited_however_the_bytes_arrive() {
    let waits = |texts: &[&str]| {
        let waits: String = texts
            .iter()
            .map(|text| format!(", {{ expect = ['{text}'], timeout = '1s' }}"))
            .collect();
        plan(&format!("{{ power = 'cycle' }}{waits}"))
    };
    let separate = DUMP.replace("r0: 0x00000003", "test 2 begins");
    for (output, texts, cause) in [
        (DUMP, &["up", "USAGE FAULT", "FATAL ERROR", "Halting"][..], Cause::ExpectationsMet),
        (&separate, &["USAGE FAULT", "FATAL ERROR"], Cause::ExpectationsMet),
        (&separate, &["up", "test 2", "FATAL ERROR"], Cause::GuestPanic),
    ] {
        let text = waits(texts);
        for cut in 0..output.len() {
            let (head, tail) = output.split_at(cut);
            let pieces = [head, tail].into_iter().filter(|piece| !piece.is_empty());
            let beats = pieces.flat_map(|piece| [print(piece), Beat::Drain]).collect();
            assert_eq!(judged_with_headlines(beats, &text).await, cause, "{texts:?} {cut}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_is_expected_only_where_it_is_awaited() {
    // On another console, and in the boot of another expectation.
    let text = plan("{ power = 'cycle' }, { expect = ['HardFault'], timeout = '1s' }");
    let boot = vec![Beat::Print(1, FAULT.into()), Beat::Drain, print(FAULT)];
    assert_eq!(Bench::new(vec![boot]).cause(&text).await, Cause::FaultBanner);
    let twice = plan(
        "{ power = 'cycle' }, { expect = ['HardFault'] }, { power = 'cycle' }, { expect = ['up'] }",
    );
    let second = |output: &str| Bench::new(vec![vec![print(FAULT)], vec![print(output)]]);
    assert_eq!(second("up\n").cause(&twice).await, Cause::ExpectationsMet);
    assert_eq!(second("up\nHardFault at 0x12ab\n").cause(&twice).await, Cause::FaultBanner);
    // A handler may take a moment to print the rest.
    let beats = vec![print("HardFault at 0x12ab:"), Beat::Drain, SOON, print(" smashed\n")];
    let text = plan("{ power = 'cycle' }, { expect = ['smashed'], timeout = '1s' }");
    assert_eq!(Bench::new(vec![beats]).cause(&text).await, Cause::ExpectationsMet);
}

/// A busy host gives the handler no less time to print.
#[tokio::test(start_paused = true)]
async fn the_rest_of_an_expected_crash_is_awaited_in_board_time() {
    let ms = std::time::Duration::from_millis;
    let text = plan("{ power = 'cycle' }, { expect = ['smashed'], timeout = '1s' }");
    for (lost, cause) in [(0, Cause::FaultBanner), (80, Cause::ExpectationsMet)] {
        let pause = Beat::Pause(ms(150));
        let beats = vec![print("HardFault at 0x12ab:"), Beat::Drain, pause, print(" smashed\n")];
        let lost = vec![ms(0), ms(lost)];
        let bench = Bench { controls: true, lost, ..Bench::new(vec![beats]) };
        assert_eq!(bench.cause(&text).await, cause);
    }
}

#[tokio::test(start_paused = true)]
async fn rejected_output_fails_on_every_console_until_the_end() {
    let text = format!("reject = ['ERR[0-9]+']\n{}", plan(RESULTS));
    for (console, beats) in [
        (0, vec![print("ERR7\n"), print(GREEN)]),
        (0, vec![print(GREEN), SOON, print("ERR7\n")]),
        (1, vec![print(GREEN), SOON, Beat::Print(1, b"ERR7\n".to_vec())]),
        // As a terminal shows it.
        (0, vec![print("ERR\x1b[31m7\x1b[0m\n"), print(GREEN)]),
        (1, vec![print(GREEN), SOON, Beat::Print(1, b"E\x1b[1mRR7".to_vec())]),
        (0, vec![print("ERX\x08R7\n"), print(GREEN)]),
    ] {
        let bench = Bench { controls: true, ..Bench::new(vec![beats]) };
        let end = bench.perform(&text).await.unwrap();
        assert_eq!(end.verdict.cause, Cause::AssertFailed, "{console}");
        let printed = end.verdict.summary.replace(r"X\x08", "");
        assert!(printed.contains("ERR7"), "{printed}");
    }
    for output in ["ERR\n", "ERR \x1b[31m7\x1b[0m\n", "ERRX\x08 7\n"] {
        let bench = Bench::new(vec![vec![print(output), print(GREEN)]]);
        assert_eq!(bench.cause(&text).await, Cause::Passed, "{output:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn rejected_output_ends_a_wait_as_a_terminal_shows_it() {
    let text = plan("{ power = 'cycle' }, { expect = ['end'], timeout = '5s' }");
    let text = format!("reject = ['^ERR[0-9]+']\n{text}");
    for (output, at_once, cause) in [
        ("\x1b[31mERR7\x1b[0m: sd\n", true, Cause::AssertFailed),
        ("ERX\x08R7 sd\n", true, Cause::AssertFailed),
        // The line may go on.
        ("\x1b[31mERR7\x1b[0m: sd", false, Cause::AssertFailed),
        ("sd: \x1b[31mERR7\x1b[0m\n", false, Cause::ExpectMissed),
    ] {
        let bench = Bench::new(vec![vec![print(output), Beat::Drain]]);
        let began = tokio::time::Instant::now();
        assert_eq!(bench.cause(&text).await, cause, "{output:?}");
        let time = began.elapsed();
        assert_eq!(time < std::time::Duration::from_secs(5), at_once, "{output:?} {time:?}");
    }
}

const RESULTS: &str = "{ power = 'cycle' }, { wait_for_results = true }";

#[tokio::test(start_paused = true)]
async fn no_console_contradicts_a_pass() {
    let begun = "TAP version 13\n1..2\nok 1 - a\n";
    for (other, ignored, cause) in [
        (GREEN, false, Cause::Passed),
        (RED, false, Cause::TestFailed),
        (RED, true, Cause::Passed),
        // It began and did not end.
        (begun, false, Cause::PlanMismatch),
        ("TAP version 13\n1..2\n", false, Cause::PlanMismatch),
        // A single line may be one of a log.
        ("1..2\n", false, Cause::Passed),
        ("START - motor\n", false, Cause::Passed),
        ("hello\n", false, Cause::Passed),
    ] {
        let ignore = if ignored { "ignore_reports_on = ['uart1']\n" } else { "" };
        for format in ["true", "'tap'"] {
            let waits = RESULTS.replace("true", format);
            let beats = vec![Beat::Print(1, other.into()), Beat::Drain, print(GREEN)];
            let bench = Bench::new(vec![beats]);
            let found = bench.cause(&format!("{ignore}{}", plan(&waits))).await;
            assert_eq!(found, cause, "{other:?} {ignored} {format}");
        }
    }
    // The primary console is another one where the plan waits elsewhere.
    let waits = "{ power = 'cycle' }, { wait_for_results = true, console = 'uart1' }";
    let beats = vec![print(RED), Beat::Drain, Beat::Print(1, GREEN.into())];
    assert_eq!(Bench::new(vec![beats]).cause(&plan(waits)).await, Cause::TestFailed);
    // A report elsewhere passes nothing, and a red one fails a plan that waits for none.
    let beats = vec![print("hello\n"), Beat::Print(1, GREEN.into())];
    let short = RESULTS.replace("true", "true, timeout = '1s'");
    let end = Bench::new(vec![beats]).perform(&plan(&short)).await.unwrap();
    assert_eq!(end.verdict.cause, Cause::NoResults);
    let advice = "a report stands on console uart1: add --console uart1";
    assert!(end.verdict.summary.contains(advice), "{}", end.verdict.summary);
    let text = plan("{ power = 'cycle' }, { expect = ['up'] }");
    let beats = vec![Beat::Print(1, RED.into()), Beat::Drain, print("up\n")];
    assert_eq!(Bench::new(vec![beats]).cause(&text).await, Cause::TestFailed);
}

#[tokio::test(start_paused = true)]
async fn a_red_report_elsewhere_in_an_earlier_boot_counts() {
    let waits = format!("{RESULTS}, {RESULTS}");
    let boots =
        vec![vec![Beat::Print(1, RED.into()), Beat::Drain, print(GREEN)], vec![print(GREEN)]];
    assert_eq!(Bench::new(boots).cause(&plan(&waits)).await, Cause::TestFailed);
}

#[tokio::test(start_paused = true)]
async fn a_missed_text_that_stands_elsewhere_is_found_there() {
    let wait = "{ power = 'cycle' }, { expect = ['up'] }, { expect = ['go 1$'], timeout = '1s' }";
    for (beats, hint) in [
        (vec![print("up\nnone\n")], ""),
        (vec![print("go 1\nup\n")], "in front of this wait, at byte 0 of"),
        (
            vec![print("up\n"), Beat::Print(1, b"x\ngo 1\n".to_vec())],
            "at byte 2: add --console uart1, or console = \"uart1\" in a plan",
        ),
    ] {
        let end = Bench::new(vec![beats]).perform(&plan(wait)).await.unwrap();
        assert_eq!(end.verdict.cause, Cause::ExpectMissed);
        let summary = end.verdict.summary;
        assert_eq!(summary.contains("it matches"), !hint.is_empty(), "{summary}");
        assert!(summary.contains(hint), "{hint:?} is not in {summary}");
    }
    // A prompt that came too late for a pause behind it hides nothing.
    let short = wait.replace("1s", "300ms");
    let end = Bench::new(vec![vec![print("up\ngo 1")]]).perform(&plan(&short)).await.unwrap();
    assert_eq!(end.verdict.cause, Cause::ExpectMissed);
    assert!(!end.verdict.summary.contains("it matches"), "{}", end.verdict.summary);
}

#[tokio::test(start_paused = true)]
async fn an_expectation_that_the_plan_cuts_off_says_what_it_missed() {
    let text = plan("{ power = 'cycle' }, { expect = ['up'] }, { expect = ['OK'] }");
    let text = text.replace("30s", "2s");
    let bench = Bench::new(vec![vec![print("up\nunknown command\n> ")]]);
    let verdict = bench.perform(&text).await.unwrap().verdict;
    assert_eq!(verdict.cause, Cause::ExpectMissed);
    let told = "the plan's time was over during s/t/t/expect-2: waited 2.0 s for `OK`; 19 bytes were \
                printed, and the output ends with \"up\\nunknown command\\n> \"";
    assert_eq!(verdict.summary, told);
    let range = verdict.evidence.first().map(|found| (found.start, found.end));
    assert_eq!(range, Some((2, 21)), "{:?}", verdict.evidence);
}
