//! Where output may have a line with a failed result or a crash: a fast search in front of the rules.

use std::sync::LazyLock;

use regex_automata::meta::Regex;
use regex_automata::util::syntax;

use super::scan::searched_once;
use super::{
    crash_evidence, denied_rows, error_codes, failed_result, fallback_boot, fatal_phrases,
    foreign_verdict, framework_lines, judged_table, legacy_text, measured_limits, odd_verdicts,
    readable, required_value, result_lists, result_rows, runner_ends, structured_counts,
    test_subject, unit_verdicts, verdict_phrases,
};

/// Text without which no line tells of a failed result or of a crash. Text in another form is looked
/// at too, because its letters are not found by a search of bytes: UTF-16, overstrike, full-width
/// letters.
pub(super) static CANDIDATE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let bytes = syntax::Config::new().utf8(false);
    let parts = [
        failed_result::HINTS,
        framework_lines::HINTS,
        result_lists::HINTS,
        result_rows::HINTS,
        crash_evidence::HINTS,
        denied_rows::HINTS,
        error_codes::HINTS,
        fallback_boot::HINTS,
        foreign_verdict::HINTS,
        judged_table::HINTS,
        legacy_text::HINTS,
        measured_limits::HINTS,
        odd_verdicts::HINTS,
        required_value::HINTS,
        runner_ends::HINTS,
        structured_counts::HINTS,
        test_subject::HINTS,
        unit_verdicts::HINTS,
        verdict_phrases::HINTS,
        readable::HINTS,
    ];
    let fatal = fatal_phrases::hints();
    let parts = parts.into_iter().chain([fatal.as_str()]);
    let all = parts.map(|part| format!("(?i-u:{part})")).collect::<Vec<_>>().join("|");
    Regex::builder().configure(searched_once()).syntax(bytes).build(&all).ok()
});

/// Finds the first place in some output that a line with a failed result may have.
pub(crate) fn candidate(output: &[u8]) -> Option<usize> {
    match &*CANDIDATE {
        Some(pattern) => pattern.find(output).map(|found| found.start()),
        None => (!output.is_empty()).then_some(0),
    }
}
