//! The verdict of a run as text for people.

use jiff::Timestamp;
use std::fmt::Write as _;

use jig_model::result::CaseStatus;
use jig_model::{Cause, Evidence, Fault, Verdict, VerdictKind};
use jig_rig::store::{POST_MORTEM_FILE, RunRecord};

use super::diagnostics::one_line;
use super::paint::{Paint, Style};
use super::screen::Screen;

/// Most tests that are listed: a screenful; the reports list all.
const MAX_TESTS: usize = 20;

/// Most ranges that are listed.
const MAX_EVIDENCE: usize = 5;

/// Longest text of the target on one line, in characters.
const MAX_TEXT: usize = 300;

/// Shows what came of a run on standard error: standard output may carry a report or the
/// console. Quiet keeps the first line. With `--json` the caller prints the record.
pub(crate) fn show_verdict(screen: &Screen, record: &RunRecord) {
    if screen.json() {
        return;
    }
    let text = verdict_text(record, screen.err_paint());
    let mut lines = text.trim_end().lines();
    if let Some(first) = lines.next() {
        screen.insist(first);
    }
    for line in lines {
        screen.say(line);
    }
}

/// Writes what came of a run.
pub(crate) fn verdict_text(record: &RunRecord, paint: Paint) -> String {
    let mut text = String::new();
    let Some(verdict) = &record.verdict else {
        // Whether it still runs, only its lock can tell.
        let word = paint.paint(Style::Bold, "NO VERDICT");
        let _ = writeln!(text, "{word} {}: the run has not ended", place(record));
        return text;
    };
    headline(&mut text, record, verdict, paint);
    cases(&mut text, verdict, paint);
    for remark in verdict.tests.remarks.iter().take(MAX_EVIDENCE) {
        let _ = writeln!(text, "  remark: {}", clipped(remark));
    }
    if let Some(ms) = verdict.listened_ms {
        let _ = writeln!(text, "  listened {ms} ms behind the end");
    }
    for note in verdict.notes.iter().take(MAX_EVIDENCE) {
        let _ = writeln!(text, "  note: {}", clipped(&note.to_string()));
    }
    if verdict.kind == VerdictKind::Pass {
        return text;
    }
    for evidence in verdict.evidence.iter().take(MAX_EVIDENCE) {
        let label = if explains(evidence) { "explained" } else { "evidence" };
        let _ = writeln!(text, "  {label}: {}", pointer(evidence, paint));
    }
    let more = verdict.evidence.len().saturating_sub(MAX_EVIDENCE);
    if more > 0 {
        let _ = writeln!(text, "  evidence: and {more} more ranges");
    }
    let _ = writeln!(text, "  cause: {}, {}", verdict.cause, blame(verdict.kind, verdict.cause));
    let _ = writeln!(text, "  next: jig runs log {}", record.id);
    text
}

fn headline(text: &mut String, record: &RunRecord, verdict: &Verdict, paint: Paint) {
    let (word, style) = verdict_word(verdict.kind);
    let _ = write!(text, "{} {}", paint.paint(style, word), place(record));
    let passed = verdict.tests.count(CaseStatus::Pass);
    if verdict.cause == Cause::Passed && record.attempts.len() <= 1 && passed > 0 {
        let s = if passed == 1 { "" } else { "s" };
        let _ = write!(text, " {passed} test{s} passed");
        let skipped = verdict.tests.count(CaseStatus::Skip);
        if skipped > 0 {
            let _ = write!(text, ", {skipped} skipped");
        }
    } else {
        let _ = write!(text, ": {}", clipped(&verdict.summary));
    }
    if let Some(took) = record.duration_ms {
        let _ = write!(text, " ({})", seconds(took));
    }
    text.push('\n');
}

/// Returns what a verdict is called in capitals, and its colour.
pub(crate) fn verdict_word(kind: VerdictKind) -> (&'static str, Style) {
    match kind {
        VerdictKind::Pass => ("PASS", Style::Good),
        VerdictKind::Fail => ("FAIL", Style::Bad),
        VerdictKind::Flaky => ("FLAKY", Style::Warn),
        VerdictKind::EnvError => ("ERROR", Style::Bad),
        VerdictKind::Inconclusive => ("INCONCLUSIVE", Style::Warn),
        VerdictKind::Cancelled => ("CANCELLED", Style::Warn),
    }
}

/// Writes milliseconds as seconds.
pub(crate) fn seconds(ms: u64) -> String {
    format!("{}.{:02} s", ms / 1000, ms % 1000 / 10)
}

/// Writes how long it is from one moment to another, for people: `45 s`, `29 min`, `3 h 05 min`.
pub(crate) fn rest(from: Timestamp, to: Timestamp) -> String {
    let seconds = to.duration_since(from).as_secs().max(0);
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", (seconds + 30) / 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
    }
}

fn place(record: &RunRecord) -> String {
    let place = record.place.as_ref().map(ToString::to_string);
    place.or_else(|| record.board.as_ref().map(ToString::to_string)).unwrap_or_else(|| "run".into())
}

fn cases(text: &mut String, verdict: &Verdict, paint: Paint) {
    let bad = verdict.tests.cases.iter().filter_map(|case| match case.status {
        CaseStatus::Fail => Some((case, "failed", Style::Bad)),
        CaseStatus::Unfinished => Some((case, "unfinished", Style::Warn)),
        CaseStatus::Pass | CaseStatus::Skip => None,
    });
    let mut more = 0_usize;
    for (n, (case, word, style)) in bad.enumerate() {
        if n >= MAX_TESTS {
            more += 1;
            continue;
        }
        let _ = write!(text, "  {}: {}", paint.paint(style, word), clipped(&case.name));
        if let Some(message) = case.message.as_deref().filter(|message| !message.is_empty()) {
            let _ = write!(text, ": {}", clipped(message));
        }
        text.push('\n');
    }
    if more > 0 {
        let _ = writeln!(text, "  and {more} more");
    }
}

/// Tells whether a debug port wrote this file.
fn explains(evidence: &Evidence) -> bool {
    evidence.file.rsplit('/').next() == Some(POST_MORTEM_FILE)
}

fn pointer(evidence: &Evidence, paint: Paint) -> String {
    let Evidence { file, start, end, note } = evidence;
    if file.is_empty() {
        return clipped(note);
    }
    let place = paint.paint(Style::Bold, &format!("{} @{start}..{end}", clipped(file)));
    if note.is_empty() { place } else { format!("{place} {}", clipped(note)) }
}

/// Makes a text of the target or of a file harmless, one line long and bounded.
fn clipped(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        None => one_line(text.trim_end()),
        Some((at, _)) => format!("{} [...]", one_line(&text[..at])),
    }
}

/// Says who has to act.
fn blame(kind: VerdictKind, cause: Cause) -> &'static str {
    if kind == VerdictKind::Inconclusive {
        return match cause.fault() {
            Some(Fault::Lab) => "the rig lost evidence; nothing is proven about the target",
            _ => "evidence is missing; who is to blame is unknown",
        };
    }
    match cause.fault() {
        None => "no fault",
        Some(Fault::Target) => "the target is to blame",
        Some(Fault::Lab) => "the rig is to blame; this says nothing about the target",
        Some(Fault::Usage) => "the command line is to blame",
        Some(Fault::Profile) => "the configuration is to blame",
        Some(Fault::Unknown) => "who is to blame is unknown",
        Some(Fault::Cancelled) => "no fault; the run was cancelled before its end",
        Some(Fault::Bug) => "jig is to blame; please report it with `jig runs export`",
    }
}

#[cfg(test)]
mod tests {
    use jig_model::result::TestCase;
    use serde_json::json;

    use super::*;

    fn record(verdict: Option<Verdict>) -> RunRecord {
        let mut record: RunRecord = serde_json::from_value(json!({
            "format": "jig-run", "version": 1, "id": "20261121-221530-7f3a", "state": "ended",
            "jig_version": null, "started": null, "ended": null, "duration_ms": 1234,
            "place": "bench-1", "board": "board-a", "plan": null, "images": [], "attempts": [],
            "verdict": null, "exit_code": null, "host": {},
        }))
        .unwrap();
        record.verdict = verdict;
        record
    }

    fn case(name: &str, status: CaseStatus, message: Option<&str>) -> TestCase {
        let (name, message) = (name.to_owned(), message.map(str::to_owned));
        TestCase { name, status, message, duration_ms: None, start: 0, end: 0 }
    }

    fn shown(verdict: Verdict) -> String {
        verdict_text(&record(Some(verdict)), Paint { on: false })
    }

    #[test]
    fn a_pass_is_one_line() {
        let mut verdict = Verdict::of(Cause::Passed, "all passed");
        verdict.tests.cases =
            vec![case("a", CaseStatus::Pass, None), case("b", CaseStatus::Skip, None)];
        assert_eq!(shown(verdict), "PASS bench-1 1 test passed, 1 skipped (1.23 s)\n");
        let met = Verdict::of(Cause::ExpectationsMet, "every expectation was met");
        assert_eq!(shown(met), "PASS bench-1: every expectation was met (1.23 s)\n");
    }

    #[test]
    fn what_the_rig_had_to_do_is_noted() {
        let mut verdict = Verdict::of(Cause::ExpectationsMet, "met");
        let note = "the probe answered at the 2nd attach\x1b".to_owned();
        verdict.notes.push(jig_model::Note::Text(note));
        let note = "\n  note: the probe answered at the 2nd attach\\x1b\n";
        assert!(shown(verdict).ends_with(note));
    }

    #[test]
    fn evidence_of_no_file_is_shown_by_its_note() {
        let mut verdict = Verdict::of(Cause::CoreFault, "a fault");
        let note = "HardFault".into();
        verdict.evidence = vec![Evidence { file: String::new(), start: 0, end: 0, note }];
        assert!(shown(verdict).contains("\n  evidence: HardFault\n"));
    }

    #[test]
    fn a_failure_shows_tests_evidence_blame_and_the_next_step() {
        let mut verdict = Verdict::of(Cause::TestFailed, "2 of 3 tests failed, first a\x1b[2J");
        verdict.tests.cases = vec![
            case("s::a\u{202e}", CaseStatus::Fail, Some("1 != 2\nsecond line")),
            case("s::b", CaseStatus::Pass, None),
            case("s::c", CaseStatus::Unfinished, None),
        ];
        verdict.evidence = vec![Evidence {
            file: "consoles/1/uart0.raw".into(),
            start: 10,
            end: 25,
            note: "a.c:3:a:FAIL".into(),
        }];
        assert_eq!(
            shown(verdict),
            "FAIL bench-1: 2 of 3 tests failed, first a\\x1b[2J (1.23 s)\n  \
             failed: s::a\\u{202e}: 1 != 2\\nsecond line\n  \
             unfinished: s::c\n  \
             evidence: consoles/1/uart0.raw @10..25 a.c:3:a:FAIL\n  \
             cause: test_failed, the target is to blame\n  \
             next: jig runs log 20261121-221530-7f3a\n"
        );
    }

    #[test]
    fn what_the_debug_port_found_is_shown_and_harmless() {
        let told = "HardFault in \x1b]0;x\x07\u{202e}main\n (a.c:4)";
        let mut verdict = Verdict::of(Cause::Lockup, format!("the processor locked up; {told}"));
        let evidence = |file: &str, note: &str| Evidence {
            file: file.into(),
            start: 0,
            end: 9,
            note: note.into(),
        };
        verdict.evidence = vec![
            evidence("consoles/1/uart0.raw", "deciding"),
            evidence("consoles/1/post-mortem.json", told),
        ];
        let text = shown(verdict);
        let harmless = "HardFault in \\x1b]0;x\\x07\\u{202e}main\\n (a.c:4)";
        assert!(text.contains(&format!("locked up; {harmless}")), "{text}");
        let line = format!("  explained: consoles/1/post-mortem.json @0..9 {harmless}\n");
        assert!(text.contains(&line), "{text}");
        assert!(!text.contains('\x1b') && !text.contains('\u{202e}'));
    }

    #[test]
    fn only_the_first_tests_and_texts_of_bounded_length_are_listed() {
        let mut verdict = Verdict::of(Cause::TestFailed, "x".repeat(10_000));
        let many = (0..MAX_TESTS + 3).map(|n| case(&format!("t{n}"), CaseStatus::Fail, None));
        verdict.tests.cases = many.collect();
        let text = shown(verdict);
        assert!(text.contains("failed: t19\n  and 3 more\n"), "{text}");
        assert!(text.len() < 2000, "{}", text.len());
    }

    #[test]
    fn blame_is_said_in_words() {
        let line = |cause: Cause| shown(Verdict::of(cause, "s")).lines().nth(1).unwrap().to_owned();
        assert!(line(Cause::EmulatorRefused).contains("the rig is to blame"));
        assert!(line(Cause::NoOutput).contains("unknown"));
        assert!(line(Cause::OutputLost).contains("the rig lost evidence"));
        assert!(line(Cause::Cancelled).contains("no fault"));
        assert!(line(Cause::InternalError).contains("jig is to blame"));
    }

    #[test]
    fn a_run_without_a_verdict_says_so() {
        let text = verdict_text(&record(None), Paint { on: false });
        assert_eq!(text, "NO VERDICT bench-1: the run has not ended\n");
    }
}
