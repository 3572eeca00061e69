//! Compiles what the search for failures takes, while a board is switched on.
//!
//! # Design
//! A log is searched when its run has ended, and somebody waits for the verdict then. The patterns of the
//! search take some 15 ms of one core to compile, less than an emulator takes to start.

use std::sync::LazyLock;

use regex_automata::meta::Regex;

use super::{
    boot_banner, candidate_lines, crash_evidence, error_codes, fallback_boot, framework_lines,
    measured_limits, odd_verdicts, required_value, result_rows, runner_ends, structured_counts,
    supervision, test_subject, trouble_forms, unit_verdicts, verdict_phrases,
};

/// Compiles what the search takes where it finds nothing, as far as that is not compiled yet.
pub(crate) fn prepare_search() {
    let searches: [&LazyLock<Option<Regex>>; 24] = [
        &candidate_lines::CANDIDATE,
        &result_rows::FAILURES,
        &framework_lines::FAILURES,
        &unit_verdicts::VERDICTS,
        &verdict_phrases::ANYWHERE,
        &verdict_phrases::LINES,
        &verdict_phrases::VALUES,
        &fallback_boot::FALLBACKS,
        &fallback_boot::VERSIONS,
        &structured_counts::WHOLE_LINES,
        &structured_counts::TEXTS,
        &required_value::VALUES,
        &error_codes::CODES,
        &runner_ends::ENDS,
        &test_subject::FINDINGS,
        &crash_evidence::STEM,
        &crash_evidence::EVIDENCE,
        &supervision::EVENTS,
        &supervision::ABSENT_EVENTS,
        &trouble_forms::TROUBLE,
        &measured_limits::LIMITS,
        &odd_verdicts::PASSED_VERDICTS,
        &odd_verdicts::FAILED_VERDICTS,
        &boot_banner::ANYWHERE,
    ];
    for search in searches {
        LazyLock::force(search);
    }
}
