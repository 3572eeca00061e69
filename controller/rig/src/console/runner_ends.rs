//! Tells whether a line says how the runner of tests itself ended: what its end returned, what its
//! set-up or tear-down returned, what it found to be leaked. Pure.
//!
//! # Design
//! These lines stand behind totals that may be green. A number that is not zero counts only behind a
//! name of a runner or of its parts, and a leak only with its amount or as the verdict of a check:
//! `heap: 12 kB free, 0 leaks` and `leak detection enabled` are none.
//! `runner_end_lines.toml` holds examples and near misses of each.

use std::sync::LazyLock;

use regex_automata::meta::Regex;

use super::line_forms::{Form, compiled};
use super::result_rows::goes_on;
use super::words::{listed, words};

/// Parts of the patterns, by the name that they are put in for.
const PARTS: &[(&str, &str)] = &[
    ("NONZERO", r"-?0*[1-9][0-9]*[.!]?$"),
    (
        "RETURNED",
        r"(?:\([^)]*\) ?(?:[:=]|=>|->) ?|(?:\([^)]*\))? ?(?:(?:has )?(?:returned|returns|exited|ended|finished|failed)(?: with)?(?: (?:a |an )?(?:(?:exit|return|error) ?)?(?:code|status|value))?:?|(?:(?:exit|return) ?)(?:code|status|value) ?[:=]?) ?)",
    ),
    (
        "THINGS",
        r"(?:bytes?|B|blocks?|buffers?|objects?|allocations?|allocs?|handles?|chunks?|tasks?|threads?|timers?|mutexes|sockets?)",
    ),
];

const FORMS: &[Form] = &[
    (
        "unity-end",
        r"^(?:main: ?)?UNITY_?END(?:(?:\(\))? ?(?:[:=]|=>|->) ?|RETURNED)NONZERO|^(?:main: ?)?UNITY_?ENDRETURNED-?0*[1-9][0-9]*(?:[,;]| -) ?",
    ),
    (
        "runner",
        r"^(?:main: ?)?(?:(?:all|unit|my|the) ?)?(?:test[ _-]?)?(?:tests|run[ _-]?all[ _-]?tests|run_tests?|runner|harness|test[ _-]main|app_main|user_main|unity_main|main_test|catch[ _]session|pytest|ctest)RETURNEDNONZERO",
    ),
    (
        "part",
        r"^(?:[\w.:]+ )?\w*(?:(?:suite|group|class|module|global|env|environment|test)?[ _]?(?:set[ _-]?up|tear[ _-]?down|cleanup))(?: of [\w.]+)?RETURNEDNONZERO",
    ),
    (
        "part-failed",
        r"^(?:(?:suite|group|test|module|fixture|case|class)[ _]?)?(?:set[ _-]?up|tear[ _-]?down|cleanup)\w*(?:\([^)]*\))? (?:has |was )?(?:failed|unsuccessful)(?:[.!]*$|:| \()",
    ),
    ("part-error", r"^error in (?:set[ _-]?up|tear[ _-]?down)\b"),
    ("tap-exit", r"^# (?:exit|exited)(?: (?:code|status|with))*[:= ]+NONZERO"),
    (
        "leaked-things",
        r"\b0*[1-9][0-9]* (?:(?:memory|heap) )?THINGS (?:\([^)]*\) )?(?:(?:were|was|are|is|still|have|has|been|in \d+ allocations?) )*'?(?:leaked|lost|unfreed|not (?:freed|released|closed))\b",
    ),
    (
        "leak-count",
        r"\b(?:leaks?|leaked)(?: (?:found|detected|count|size|bytes|blocks))?(?:\(s\))? ?[:=] ?0*[1-9][0-9]*(?: THINGS)?(?:[ ,;.]|$)",
    ),
    ("leak-total", r"\b(?:leak|leaked|leaking) 0*[1-9][0-9]* THINGS\b"),
    (
        "leak-verdict",
        r"^(?:(?:error|fail(?:ed|ure)?|warning): ?)?(?:LeakSanitizer: )?(?:heap |memory )?leaks?(?:\(s\))? (?:found|detected)(?:[.!]+|: .*)?$|: (?:detected )?memory leaks?(?: detected)?[.!]*$",
    ),
    ("leak-lost", r"\bdefinitely lost: [0-9,]*[1-9][0-9,]* bytes\b"),
    ("leak-direct", r"^(?:in)?direct leak of [1-9][0-9]* byte\(s\)"),
    ("leak-of", r"\bleaks?(?:age)?(?: of|[!:]+) 0*[1-9][0-9]* THINGS\b"),
    (
        "leak-at-exit",
        r"\b0*[1-9][0-9]* THINGS (?:(?:are|is) )?still (?:allocated|in use) at exit\b",
    ),
];

/// Text of which one stands in each such line, unless a word of results does.
pub(super) const HINTS: &str = r"UNITY_?END|tests returned|leak|definitely lost|(?:runner|harness|_main|run_tests?|all[ _-]tests|[ _]main|pytest|ctest|session)[^\r\n]*[1-9]|(?:set|tear)[ _-]?(?:up|down)[^\r\n]*[1-9]|cleanup[^\r\n]*[1-9]|# exit|not (?:freed|released|closed)|unfreed|at exit|[1-9] [a-z]+ (?:were |was |are )?lost";

/// Words of a line that tells of no such end.
const DENIALS: &str = "\
    no not without never if unless expected expecting wanted simulated injected known allowed \
    threshold limit limits enabled disabled detection detector checker tracking ok pass passed skip \
    skipped";

/// Words behind a failure that take it back.
const TAKEN_BACK: &str =
    "expected wanted simulated injected known allowed ok pass passed skip skipped";

pub(super) static ENDS: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(FORMS, PARTS));

/// Tells whether a text says that a runner of tests ended badly.
pub(super) fn ends_runner_badly(text: &str) -> bool {
    form_of(text).is_some()
}

/// Returns the name of the form that a text has.
fn form_of(text: &str) -> Option<&'static str> {
    let text = text.trim_ascii();
    let found = ENDS.as_ref()?.find(text)?;
    let (name, _) = FORMS.get(found.pattern().as_usize())?;
    let denied = words(text).iter().enumerate().any(|(at, word)| {
        let not_freed = word.text == "not"
            && words(text)
                .get(at + 1)
                .is_some_and(|next| listed("freed released closed", &next.text));
        // What stands behind is the reason.
        let reason = *name == "part-failed" && !listed(TAKEN_BACK, &word.text);
        listed(DENIALS, &word.text) && !not_freed && !reason
    });
    (!denied && !goes_on(text)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::super::line_forms::tests::have_examples;
    use super::*;

    #[test]
    fn each_form_has_examples_and_near_misses() {
        have_examples(FORMS, form_of, include_str!("runner_end_lines.toml"));
    }
}
