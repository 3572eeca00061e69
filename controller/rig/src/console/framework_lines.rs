//! Lines of test frameworks without a grammar that tell of a failure in other words than a log. Pure.

use std::sync::LazyLock;

use regex_automata::meta::Regex;

/// Patterns of such lines. The search of a log looks at lines with `CANDIDATES` only.
const PATTERNS: &[&str] = &[
    // Greentea, behind whatever stands in front: a second core, a multiplexer.
    r"\{\{__testcase_finish;[^;}]*;\d+;0*[1-9]\d*\}\}",
    r"\{\{__testcase_summary;\d+;0*[1-9]\d*\}\}",
    r"\{\{(?:end|result);(?:failure|fail|error|timeout)[^}]*\}\}",
    // RTEMS Test Framework: a failed check, and the totals of a case and of the run.
    r"^\s*F:\d+:\d+:[^:]*:[^:]*:\d+:",
    r"^\s*[EZ]:[^:]+:(?:C:\d+:)?N:\d+:F:0*[1-9]\d*:D:",
    // CoreMark
    r"^\[\d+\]ERROR! .* should be ",
    r"^\s*Errors detected\.?$",
    // memtester
    r"\bFAILURE: 0x[0-9a-f]+ != 0x[0-9a-f]+",
    // subunit
    r"^\s*(?:failure|error): \S+ \[$",
    // FreeRTOS demo
    r"^(?:Error|ERROR) in [A-Za-z]\w*(?: [A-Za-z]\w*){0,3}\.?$",
    // CUnit: Type, Total, Ran, Passed, Failed, Inactive
    r"^\s*(?:suites|tests|asserts)\s+\d+\s+\d+\s+(?:\d+|n/a)\s+0*[1-9]\d*\s+(?:\d+|n/a)$",
];

static FAILURES: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new_many(PATTERNS).ok());

/// Tells whether a line is one of a known framework that says that a test failed.
pub(super) fn is_framework_failure(line: &str) -> bool {
    FAILURES.as_ref().is_some_and(|patterns| patterns.is_match(line.trim_ascii_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_patterns_compile() {
        assert!(FAILURES.is_some());
    }
}
