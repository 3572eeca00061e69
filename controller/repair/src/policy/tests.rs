//! Tests of the policy: each rule by its examples, reviews by small patches.

use super::rules::{Rules, TEXT};
use super::*;
use crate::patch::Patch;
use crate::runs_for_tests::begun;
use crate::test_code::TestCode;

fn patch(path: &str, body: &str) -> Patch {
    let old = body.lines().filter(|line| !line.starts_with('+')).count();
    let new = body.lines().filter(|line| !line.starts_with('-')).count();
    let text = format!(
        "diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1,{old} +1,{new} @@\n{body}"
    );
    Patch::read(&text).unwrap()
}

fn plain(path: &str) -> Patch {
    patch(path, " int a;\n-int b = 1;\n+int b = 2;\n")
}

#[test]
fn each_built_in_rule_does_what_its_examples_say() {
    assert_eq!(Policy::check_rules(), Ok(()));
}

#[test]
fn rules_with_a_wrong_one_are_none() {
    let why = |from: &str, to: &str| {
        assert!(TEXT.contains(from), "{from}");
        Rules::read(&TEXT.replacen(from, to, 1)).unwrap_err().to_string()
    };
    for (from, to, words) in [
        ("\"**/test/**\"", "\"**/[test/**\"", "\"a test\" cannot be used: bad pattern of paths"),
        ("\"test/main.c\"", "\"src/main.c\"", "it does not match \"src/main.c\""),
        ("\"src/contest.c\"", "\"src/test/a.c\"", "it matches \"src/test/a.c\""),
        ("BOOST_\\w+|", "BOOST_\\w+(|", "regex parse error"),
        ("weight = 0.", "weight = 1.", "no number between 0 and 1"),
        ("refused = true", "refuse = true", "unknown field `refuse`"),
    ] {
        let found = why(from, to);
        assert!(found.contains(words), "{words:?} is not in {found:?}");
    }
}

#[test]
fn a_small_change_of_a_source_file_is_neither_refused_nor_risky() {
    let found = review(&plain("src/ring.c"), &Policy::default());
    assert_eq!((found.refusals.as_slice(), found.asks), (&[][..], false));
    assert!(found.risk < 0.01, "{found:?}");
}

#[test]
fn a_line_with_a_command_that_destroys_is_refused_where_it_is_added() {
    let line = "static const char *tidy = \"rm -rf /data\";";
    let added = patch("src/ring.c", &format!(" int a;\n-int b;\n+{line}\n"));
    let refusals = review(&added, &Policy::default()).refusals;
    assert_eq!(refusals, [format!("src/ring.c: the command \"rm -rf\" is forbidden: {line}")]);
    let removed = patch("src/ring.c", &format!(" int a;\n-{line}\n+int b;\n"));
    assert_eq!(review(&removed, &Policy::default()).refusals, [""; 0]);
}

#[test]
fn protected_paths_change_only_where_a_policy_names_them() {
    let refusals = |path: &str, policy: &str| {
        let policy = Policy::parse("policy.toml", &format!("version = 1\n{policy}")).unwrap();
        review(&plain(path), &policy).refusals
    };
    assert_eq!(refusals("tests/a.c", ""), ["tests/a.c belongs to a test and is protected"]);
    assert_eq!(refusals("tests/a.c", "write_allow = ['tests/a.c']"), [""; 0]);
    assert_eq!(refusals("src/a.c", "write_allow = ['src/**']"), [""; 0]);
    assert_eq!(
        refusals("lib/a.c", "write_allow = ['src/**']"),
        ["lib/a.c: the policy does not allow it to change"]
    );
    assert_eq!(
        refusals("src/boot/a.c", "write_allow = ['src/**']\nwrite_deny = ['src/boot/**']"),
        ["src/boot/a.c: the policy denies src/boot/**"]
    );
}

#[test]
fn a_file_that_defines_a_reported_case_is_a_test_wherever_it_lies() {
    let file = ("src/check.c".to_owned(), "test_wraps".to_owned());
    let mut run = begun(0);
    run.test_code = TestCode { files: [file].into(), ..TestCode::default() };
    let policy = |text: &str| {
        Policy::parse("policy.toml", &format!("version = 1\n{text}")).unwrap().for_run(&run)
    };
    assert_eq!(
        review(&plain("src/check.c"), &policy("")).refusals,
        ["src/check.c defines the test test_wraps and is protected; write_allow can name it"]
    );
    assert!(is_test("src/check.c", &policy("")) && !is_test("src/ring.c", &policy("")));
    assert!(policy("").to_string().contains("- src/check.c\n"));
    let allowed = policy("write_allow = ['src/check.c']");
    assert_eq!(review(&plain("src/check.c"), &allowed).refusals, [""; 0]);
    assert!(!is_test("src/check.c", &allowed));
}

#[test]
fn files_of_the_task_never_change() {
    let mut run = begun(0);
    run.contract.own_files = vec!["ci/plan.toml".to_owned()];
    let policy = Policy::parse("policy.toml", "version = 1\nwrite_allow = ['**']\n").unwrap();
    assert_eq!(review(&plain("ci/plan.toml"), &policy).refusals, [""; 0]);
    let policy = policy.for_run(&run);
    assert_eq!(
        review(&plain("ci/plan.toml"), &policy).refusals,
        ["ci/plan.toml belongs to the task of this run and is protected"]
    );
    assert_eq!(review(&plain("ci/b.toml"), &policy).refusals, [""; 0]);
}

#[test]
fn a_forged_result_and_a_removed_assertion_are_refused_in_any_file() {
    let printed = patch("src/a.c", " int main(void) {\n+    puts(\"PASS\");\n");
    let found = review(&printed, &Policy::default());
    assert_eq!(found.refusals, ["src/a.c: prints a test result: puts(\"PASS\");"]);
    let removed = patch("src/a.c", " x();\n-TEST_ASSERT_EQUAL(1, x);\n");
    let found = review(&removed, &Policy::default());
    assert_eq!(
        found.refusals,
        ["src/a.c: removes an assertion or a test: TEST_ASSERT_EQUAL(1, x);"]
    );
}

#[test]
fn risks_add_up_and_ask_above_the_threshold() {
    let body = " x();\n+__disable_irq();\n+WDT->CTRL = 0;\n+*(volatile int *)0x40000000 = 1;\n+asm(\"nop\");\n";
    let found = review(&patch("src/a.c", body), &Policy::default());
    assert_eq!((found.refusals.len(), found.risks.len(), found.asks), (0, 4, true), "{found:?}");
    let size = 1.0 - 0.5 * 4.0 / 200.0;
    let expected = 1.0 - size * (1.0 - 0.3) * (1.0 - 0.2) * (1.0 - 0.3) * (1.0 - 0.4);
    assert!((found.risk - expected).abs() < 1e-12, "{found:?}");
    let calm = Policy { risk_threshold: 1.0, ..Policy::default() };
    assert!(!review(&patch("src/a.c", body), &calm).asks);
    let strict = Policy { approve_patches: true, ..Policy::default() };
    assert!(review(&plain("src/a.c"), &strict).asks);
}

#[test]
fn what_is_too_large_or_has_no_place_is_refused() {
    let small = Policy { max_lines: 1, max_files: 0, ..Policy::default() };
    let found = review(&plain("src/a.c"), &small);
    assert_eq!(
        found.refusals,
        ["files: 1, and 0 are allowed", "changed lines: 2, and 1 are allowed"]
    );
    let floating = Patch::read(
        "diff --git a/src/a.c b/src/a.c\n--- a/src/a.c\n+++ b/src/a.c\n@@ -3,0 +4,1 @@\n+int x;\n",
    );
    let found = review(&floating.unwrap(), &Policy::default());
    assert_eq!(found.refusals, ["src/a.c: lines are added without any line that says where"]);
}

#[test]
fn a_wrong_policy_names_all_its_problems() {
    let text = "version = 1\nwrite_allow = ['src/[']\nrisk_percent = 200\nmax_file = 3\n";
    let problems = Policy::parse("policy.toml", text).unwrap_err().to_string();
    for words in ["src/[", "from 0 to 100", "unknown key `max_file`"] {
        assert!(problems.contains(words), "{words:?} is not in {problems}");
    }
    assert!(Policy::json_schema().contains("write_deny"));
}

#[test]
fn a_policy_forbids_lines_and_checks_its_own_examples() {
    let rule = |pattern: &str, hit: &str, miss: &str| {
        let text = format!(
            "version = 1\n[[forbid]]\npattern = '{pattern}'\nhits = ['{hit}']\nmisses = ['{miss}']\n"
        );
        Policy::parse("policy.toml", &text)
    };
    let policy = rule("flash_erase\\s*\\(", "flash_erase(0);", "flash_erased = 1;").unwrap();
    let added = patch("src/ring.c", " int a;\n+    flash_erase (1);\n");
    let found = review(&added, &policy).refusals;
    assert_eq!(found, ["src/ring.c: the policy forbids flash_erase\\s*\\(: flash_erase (1);"]);
    let removed = patch("src/ring.c", " int a;\n-    flash_erase (1);\n");
    assert_eq!(review(&removed, &policy).refusals, [""; 0]);
    assert!(policy.to_string().contains("- flash_erase"), "{policy}");
    for (pattern, hit, miss, line, words) in [
        ("erase(", "erase(0)", "x", 3, "unclosed group"),
        ("erase", "era(0)", "x", 4, "the pattern does not match \"era(0)\""),
        ("erase", "erase", "erased", 5, "the pattern matches \"erased\""),
    ] {
        let problems = rule(pattern, hit, miss).unwrap_err();
        let [problem] = &problems.located()[..] else { panic!("{problems:?}") };
        assert!(problem.message.contains(words), "{problem:?}");
        assert_eq!(problem.line, Some(line), "{problem:?}");
    }
    let lacking = "version = 1\n[[forbid]]\npattern = 'x'\nhits = []\nmisses = ['y']\n";
    let problems = Policy::parse("policy.toml", lacking).unwrap_err();
    assert!(problems.located()[0].message.contains("lacks examples"), "{problems:?}");
}
