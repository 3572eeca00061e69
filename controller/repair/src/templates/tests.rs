//! Tests of the templates: one line each that must be among the edits, and the diffs.

use proptest::prelude::*;

use super::tokens::{TokenKind, tokens};
use super::*;
use crate::localise::SourceLine;
use crate::patch::Patch;

fn edited(source: &str, line: u32) -> Vec<String> {
    edits_of(source, line).into_iter().map(|edit| edit.lines.join("\n")).collect()
}

#[test]
fn the_right_line_is_among_the_edits() {
    for (wrong, right) in [
        ("    for (i = 0; i <= n; i++) {", "    for (i = 0; i < n; i++) {"),
        ("    if (head == tail) {", "    if (head != tail) {"),
        ("    if (head = tail) {", "    if (head == tail) {"),
        ("    while (ready && !full) {", "    while (ready || !full) {"),
        ("    if (full(q)) return;", "    if (!(full(q))) return;"),
        ("    return buf[i];", "    return buf[i - 1];"),
        ("    head = (head + 1) % 15;", "    head = (head + 1) % 16;"),
        ("    if (now >= start + limit) {", "    if (now - start >= limit) {"),
        ("    reg |= 1u << 3;", "    reg |= 1u << 4;"),
        ("    reg |= mask;", "    reg &= mask;"),
        ("    reg &= mask;", "    reg &= ~ mask;"),
        ("    crc ^= 0x1020;", "    crc ^= 0x1021;"),
        ("    nibble = x & 0xf0;", "    nibble = x & 0x0f;"),
        ("    sum = a - b;", "    sum = a + b;"),
        ("    count--;", "    count++;"),
        ("static int flag;", "static volatile int flag;"),
        ("    int sum;", "    int sum = 0;"),
        ("    int8_t delta = a - b;", "    int16_t delta = a - b;"),
        ("    uint8_t count = 0;", "    uint16_t count = 0;"),
        ("    clear(flags);", "    ;"),
        ("    report(error);", "    report(error);\n    return;"),
        ("    case 2:", "        break;\n    case 2:"),
    ] {
        let found = edited(&format!("{wrong}\n"), 1);
        // Spaces are nothing to the compiler.
        let same = |line: &String| line.replace("~ ", "~") == right.replace("~ ", "~");
        assert!(found.iter().any(same), "{right:?} is not in {found:#?}");
    }
}

#[test]
fn what_was_taken_is_given_back_before_a_return() {
    let source =
        "int get(void) {\n    mutex_lock(&m);\n    if (!n)\n        return -1;\n    return 0;\n}\n";
    let found = edited(source, 4);
    assert!(
        found.contains(&"        mutex_unlock(&m);\n        return -1;".to_owned()),
        "{found:#?}"
    );
    let other = "void a(void) {\n    mutex_lock(&m);\n}\nint b(void) {\n    return 1;\n}\n";
    assert!(!edited(other, 5).iter().any(|text| text.contains("unlock")));
}

#[test]
fn texts_comments_and_directives_stay() {
    for line in ["#define MAX 15", "// i <= n", "/* 1 + 1 */", " * a <= b", "", "    }"] {
        assert_eq!(edited(line, 1), [""; 0], "{line}");
    }
    let found = edited("    puts(\"1 <= 2\"); // 3 < 4\n", 1);
    assert!(found.iter().all(|line| line == "    ;" || line.contains("\"1 <= 2\"")), "{found:#?}");
    assert_eq!(edits_of("int a;\n", 0), []);
    assert_eq!(edits_of("int a;\n", 2), []);
}

#[test]
fn candidates_are_diffs_in_the_order_of_suspicion() {
    let source = "int a(int n) {\n    return n < 3;\n}\nint b(int n) {\n    return n + 1;\n}";
    let suspect = |line| SuspectLine {
        line: SourceLine { file: "src/a.c".to_owned(), line },
        score: 1.0,
        failed: 1,
        passed: 0,
    };
    let missing =
        SuspectLine { line: SourceLine { file: "gone.c".to_owned(), line: 1 }, ..suspect(1) };
    let text = |file: &str| (file == "src/a.c").then(|| source.to_owned());
    let found = candidates(&[missing, suspect(2), suspect(5), suspect(6)], text);
    assert_eq!(
        found[0].1,
        "diff --git a/src/a.c b/src/a.c\n--- a/src/a.c\n+++ b/src/a.c\n@@ -1,5 +1,5 @@\n \
         int a(int n) {\n-    return n < 3;\n+    return n <= 3;\n }\n int b(int n) {\n     \
         return n + 1;\n"
    );
    assert!(found.is_sorted_by_key(|(edit, _)| edit.template));
    for (edit, diff) in &found {
        let patch = Patch::read(diff).unwrap_or_else(|why| panic!("{edit:?}: {why}\n{diff}"));
        assert_eq!(patch.files[0].path(), "src/a.c");
    }
}

#[test]
fn the_number_of_candidates_is_bounded() {
    let source = "    a = b + c * d - e << 3 | f & g ^ h;\n".repeat(100);
    let suspects: Vec<_> = (1..=100)
        .map(|line| SuspectLine {
            line: SourceLine { file: "a.c".to_owned(), line },
            score: 1.0,
            failed: 1,
            passed: 0,
        })
        .collect();
    assert_eq!(candidates(&suspects, |_| Some(source.clone())).len(), MAX_CANDIDATES);
}

proptest! {
    #[test]
    fn tokens_cover_a_line_in_order(line in "\\PC{0,80}") {
        let mut end = 0;
        for token in tokens(&line) {
            prop_assert!(token.at.start >= end && token.at.end > token.at.start);
            prop_assert_eq!(&line[token.at.clone()], token.text);
            prop_assert!(token.kind == TokenKind::Opaque || !token.text.contains('"'));
            end = token.at.end;
        }
    }

    #[test]
    fn any_line_gives_edits_that_are_other_lines(lines in "(\\PC{0,60}\n){1,4}") {
        let first = lines.lines().next().unwrap_or_default().to_owned();
        for edit in edits_of(&lines, 1) {
            prop_assert_ne!(edit.lines.as_slice(), std::slice::from_ref(&first));
        }
    }
}
