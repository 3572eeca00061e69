//! Tells whether a line is the failed state of an item in a YAML list of results. Pure.
//!
//! # Design
//! `status: failed` alone may be the state of a network or of a service. It is a result where an item
//! (`- name: adc`) stands in front of it, and the list is one of results: a heading says so, or another
//! item passed.

use super::log_prefix::without_context;

/// Reads `status: failed` as whether it is a passed or a failed state.
fn state(line: &str) -> Option<bool> {
    let (key, value) = field(line)?;
    let value = value.trim_matches(['"', '\'']).to_ascii_lowercase();
    matches!(key, "status" | "state" | "result" | "outcome" | "verdict").then_some(())?;
    match value.as_str() {
        "passed" | "pass" | "ok" | "success" => Some(true),
        "failed" | "fail" | "failure" | "error" | "nok" => Some(false),
        _ => None,
    }
}

/// Splits `key: value` of an item, whose first line has a dash.
fn field(line: &str) -> Option<(&str, &str)> {
    let body = line.trim_ascii();
    let (key, value) = body.strip_prefix("- ").unwrap_or(body).split_once(": ")?;
    let is_key = key.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    is_key.then_some((key, value.trim_ascii()))
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_ascii_start().len()
}

/// Tells whether a line may be such a state.
pub(super) fn may_be_failed_state(line: &str) -> bool {
    let logged = indent(line) == 0 && without_context(line, true).is_some();
    !logged && state(line) == Some(false)
}

/// Tells whether a line is such a state, by the lines `before` it and those `behind` it.
pub(super) fn is_failed_state(before: &[&str], line: &str, behind: &[&str]) -> bool {
    if !may_be_failed_state(line) {
        return false;
    }
    let is_item = |other: &&&str| {
        let name =
            field(other).is_some_and(|(key, _)| matches!(key, "name" | "test" | "case" | "id"));
        other.trim_ascii_start().starts_with("- ") && name
    };
    let Some(item) = before.iter().rev().find(is_item) else { return false };
    let within = line.trim_ascii_start().starts_with("- ") || indent(line) > indent(item);
    let heads = |other: &&str| {
        let head = other.trim_ascii().to_ascii_lowercase();
        head.strip_suffix(':').is_some_and(|head| {
            head.split(['_', ' ', '-'])
                .any(|word| matches!(word, "results" | "tests" | "cases" | "testcases"))
        })
    };
    let passed = |other: &&str| state(other) == Some(true) && indent(other) == indent(line);
    let beside = before.iter().chain(behind);
    within && (before.iter().any(heads) || beside.into_iter().any(passed))
}

#[cfg(test)]
mod tests {
    use super::super::candidate_lines::candidate;
    use super::super::{failed_in_list, may_fail_in_list};

    fn failed(output: &str) -> bool {
        let lines: Vec<&str> = output.lines().collect();
        (0..lines.len()).any(|at| {
            let found = failed_in_list(&lines[..at], lines[at], &lines[at + 1..]) == Some(0);
            found && may_fail_in_list(lines[at]) && candidate(lines[at].as_bytes()).is_some()
        })
    }

    #[test]
    fn state_of_an_item_is_a_result_in_a_list_of_results() {
        for (output, is_failed) in [
            ("results:\n  - name: adc\n    status: failed\n", true),
            ("self_test results:\n- name: adc\n  volt: 1.2\n  outcome: \"fail\"\n", true),
            ("- name: adc\n  status: failed\n- name: dac\n  status: passed\n", true),
            ("- name: dac\n  result: ok\n- name: adc\n  result: error\n", true),
            ("results:\n  - name: adc\n    status: passed\n    failed: false\n", false),
            ("services:\n  - name: wifi\n    status: failed\n", false),
            ("results:\nstatus: failed\n", false),
            ("status: failed\n", false),
        ] {
            assert_eq!(failed(output), is_failed, "{output}");
        }
    }
}
