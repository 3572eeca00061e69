//! Lines of test frameworks without a grammar, and of runners around one, that tell of a failure in
//! other words than a log. Pure.
//!
//! # Design
//! A pattern stands here where a program prints such a line only when its own exit code says that
//! something failed. What a log of healthy firmware may print, too, is none of them.
//! `failed_result_lines.toml` holds examples of each, and lines that only resemble them.

use std::sync::LazyLock;

use regex_automata::meta::Regex;
use regex_automata::util::syntax;

use super::scan::searched_once;

/// Patterns of such lines, of ASCII. The search of a log looks at lines with [`HINTS`] only, and at
/// those with words of results.
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
    // LiteX
    r"^\s*(?:bus|addr|data) errors: +0*[1-9]\d*/\d+$",
    r"^Memtest KO$",
    r"^Memory initialization failed$",
    r"^BIOS CRC failed \(expected ",
    // Forth's ttester
    r"^(?:INCORRECT (?:[A-Z]+ )?RESULT|WRONG NUMBER OF (?:[A-Z]+ ){0,2}RESULTS|CELL COUNT MISMATCH): ",
    // UVM
    r"^(?:# )?UVM_(?:ERROR|FATAL)(?: \S+\(\d+\))? @ ",
    r"^(?:# )?UVM_(?:ERROR|FATAL) ?: *0*[1-9]\d*$",
    // memtester
    r"\bFAILURE: 0x[0-9a-f]+ != 0x[0-9a-f]+",
    // subunit
    r"^\s*(?:failure|error): \S+ \[$",
    // FreeRTOS demos
    r"^x(?:Are|Is)\w+StillRunning\(\) returned (?:false|pdFALSE)\b",
    r"^(?:Error in|ERROR in|ERROR IN) [A-Za-z]\w*(?: [A-Za-z]\w*){0,3}\.?$",
    // ThreadX' regression tests, Tock's capsules, NuttX' smart_test and crypto tests, U-Boot's mmc
    r"^match \w+ failed$",
    r"^Data check NG=0*[1-9]\d* OK=",
    r"^Running .*\.{3,} ERROR #\d+$",
    r"^\w*Test ERROR: ",
    r"^\w+ error on line \d+$",
    r"^MMC (?:read|write|erase): .*: ERROR$",
    // CUnit: Type, Total, Ran, Passed, Failed, Inactive
    r"^\s*(?:suites|tests|asserts)\s+\d+\s+\d+\s+(?:\d+|n/a)\s+0*[1-9]\d*\s+(?:\d+|n/a)$",
    // pytest, with its plugins for coverage, for speed and for several processes
    r"^!{4,} (?:[\w.]+\.)?(?:KeyboardInterrupt|Interrupted|Exit)\b.* !{4,}$",
    r"^INTERNALERROR> ",
    r"^(?:ERROR|FAILED) [\w./-]+\.py(?:::\S+)?(?: - .*)?$",
    r"^\[gw\d+\] node down: ",
    r"^FAIL Required test coverage of ",
    r"^Coverage failure: total of ",
    r"^ERROR: (?:Performance has regressed:|Coverage failure: )",
    // Go's testing, its race detector and its JSON; sanitizers
    r"^WARNING: DATA RACE$",
    r"^Found [1-9]\d* data race\(s\)$",
    r"^exit status [1-9]\d*$",
    r#""Action" ?: ?"fail""#,
    r"^ThreadSanitizer: reported [1-9]\d* warnings?",
    r"^SUMMARY: \w+Sanitizer: ",
    // Linux: the detector of leaks, the self-test of locks
    r"^kmemleak: [1-9]\d* new suspected memory leaks?\b",
    r"^BUG: +[1-9]\d* unexpected failures?\b",
    // A shell, of a program that died or that is missing
    r"^(?:\S+: )?(?:line \d+: +\d+ )?(?:Segmentation fault|Bus error|Illegal instruction|Aborted)(?: \(core dumped\))?(?:  +\S.*)?$",
    r"^(?:\S+: )?(?:(?:line )?\d+: )?\.{1,2}/\S+: (?:not found|No such file or directory)$",
    r"^\S+: line \d+: +\d+ (?:Killed|Terminated|Alarm clock)(?:  +\S.*)?$",
    r"^timeout: (?:sending signal \S+ to command|the monitored command dumped core)",
    r"^\S+: (?:error while loading shared libraries|symbol lookup error): ",
    // TAP beside reports in another format; prove, Perl's Test::More, unittest
    r"^Bail out!(?: |$)",
    r" Dubious, test returned [1-9]",
    r"^# Looks like (?:your test exited with [1-9]|you failed [1-9]|you planned \d+ tests? but ran )",
    r"^# (?:No tests run!|Tests were run but no plan was declared and done_testing\(\) was not seen)",
    r"^UNEXPECTED SUCCESS: \S",
    // Automake
    r"^# (?:ERROR|XPASS|FAIL): +0*[1-9]\d*$",
    r"^XPASS: \S",
    r"^ERROR: [\w./-]*test[\w./-]*$",
    // DejaGnu
    r"^(?:UNRESOLVED|KPASS): \S",
    r"^# of (?:unresolved testcases|(?:unexpected|unknown) successes|unexpected failures)\s+0*[1-9]",
    r"^ERROR: tcl error ",
    // Meson
    r"^\d+/\d+ .*\s(?:TIMEOUT|UNEXPECTEDPASS|ERROR|INTERRUPT|FAIL)\s+\d+(?:\.\d+)?s\b",
    r"^(?:Timeout|Unexpected Pass): {4,}0*[1-9]\d*$",
    // CTest, nextest, TF-A, Criterion, LTP, xfstests
    r"Test +#\d+: .*\*\*\*(?:Exception|Timeout|Failed|Not Run|Bad|Could not)",
    r"^TRY \d+ (?:FAIL|SIG\w+|TMT|ABORT)\s+\[",
    r"^TEST COMPLETE\s+(?:Crashed|Failed|Incomplete)",
    r"^\[====\] Synthesis: .*\b(?:Failing|Crashing): 0*[1-9]",
    r"^broken {2,}0*[1-9]\d*$",
    r"^\w+/\d{3}\s.*(?:- output mismatch|\[failed, exit status )",
    // JUnit's XML, embUnit's, that of CMSIS-Driver Validation, Robot Framework's; a page of HTML
    r#"<testsuites?\b[^>]*\b(?:errors|failures)="0*[1-9]"#,
    r#"<test(?:case)?\b[^>]*\b(?:result|status|outcome)="(?i-u:error|errored|fail|failed|failure|crash|crashed|timeout|aborted|broken)""#,
    r#"<error (?:message|type)="|<testcase\b.*<(?:error|failure)[ />]"#,
    r"<(?:Failures|Errors)>0*[1-9]",
    r"<t?res>Failed</|<fail>0*[1-9]",
    r#"<status\b[^>]*\bstatus="(?:FAIL|ERROR)""#,
    r"<t[dh]\b[^>]*>\s*(?:FAIL|FAILED|ERROR)\s*</t[dh]>",
    // Jest's and Allure's JSON
    r#""num(?:FailedTests|FailedTestSuites|RuntimeErrorTestSuites)" ?: ?[1-9]"#,
    r#""status" ?: ?"broken""#,
    // stress-ng, STREAM
    r"^stress-ng: fail: ",
    r"^stress-ng: .*\] (?:failed: 0*[1-9]\d*:|unsuccessful run completed\b)",
    r"^Failed Validation on array ",
    // busted, PlatformIO, libc-test
    r"\b\d+ success(?:es)? / \d+ failures? / 0*[1-9]\d* errors? /",
    r"\[ERRORED\] Took |^=+ .*\b[1-9]\d* errored in |\sERRORED\s+\d+:\d\d:",
    r"^FAIL \S+ \[(?:status \d+|timed out|signal .*)\]$",
    // BabbleSim, google-benchmark, Boost.Test, RT-Thread, ESP-IDF
    r"(?:^|\s)ERROR: \([\w./-]+:\d+\): ",
    r"^\S+ +ERROR OCCURRED: '",
    r"^Test setup error: ",
    r"\[ +ASSERT +\] \[ *unit *\]",
    r"^The test leaked too much memory$",
    // MicroPython and its relatives
    r"^Traceback \(most recent call last\):$",
    // Bazel, nextest, Automake's other form, LAVA
    r"^//\S*:\S+ +(?:\(\w+\) +)?(?:TIMEOUT in \d|NO STATUS$|FAILED in \d|FAILED TO BUILD$)",
    r"^\s*SIG[A-Z]+ \[ *\d+\.\d+s\] ",
    r"^:test-result: (?:ERROR|XPASS|FAIL)\b",
    r"<LAVA_SIGNAL_TESTCASE\b[^>]* RESULT=(?:fail|unknown)\b|<LAVA_SIGNAL_TESTRAISE ",
    // CppUnit, embUnit, Contiki, CUnit, Cgreen, bandit, doctest, Catch2
    r"^\w+(?:::\w+)+ : (?:assertion|error)$",
    r"^\d+\) NG \S+ \(\S+ \d+\) ",
    r"^\S+\.\w+ \d+: \w+: exp .+ was .+$",
    r"^\S+\.\w+ \([\w./-]+\.\w+[ :]\d+\) exp .+ was .+$",
    r"^=check-me= FAILED\b",
    r"^WARNING - Suite (?:initialization|cleanup) failed for ",
    r#"^Completed "[^"]*": .*\b0*[1-9]\d* (?:failure|exception)s?\b"#,
    r"^There were failures!$",
    r": (?:FATAL )?ERROR: .* is NOT correct!$",
    r"^Should have failed but didn't!|^Test case exceeded time limit of \d",
    r"^Failed (?:all|both) (?:\d+ )?test cases?, failed ",
    // Runners that have run nothing
    r"^NO TESTS RAN\b|^No tests (?:ran|were found!+)$|^No test cases matched '|^Ran 0 tests in \d",
    r"^\[ ERROR \] Suite '.*' contains no tests\b",
    // Leaks and guards of CppUTest, Boost.Test and Unity's fixtures
    r"^Detected memory leaks!|^Memory leak\(s\) found\.$",
    r"^Buffer overrun detected during \w+\(\)",
    // KUnit's own words for a case, ztest's for a mistake of the tests
    r"^\s*# \w+: (?:try faulted\b|try timed out$|internal error occurred )",
    r"^ERROR: (?:Test '.*' assigned to multiple suites|cannot \w+ in test '.*', bailing)",
    r"^ERROR: Test '.*' assigned to test suite '.*' which doesn't exist",
    // CppUTest, of a test in a process of its own; AUnit; properties
    r"^[.!]*Failed in separate process\b",
    r"^Unexpected Errors: +0*[1-9]",
    r"^Falsif(?:iable after \d+ tests?|ying example: )",
    // libtest's word on a panic that was wanted
    r"^note: test did not panic as expected$",
    // ESP-IDF's check of leaks
    r"\bcritical leak: Before ",
    // Self-tests of ST, NXP and GigaDevice; Linux' test of memory
    r"\bCRC (?:Test )?(?:Error|Failure) at Start-up\b",
    r"^[\w-]+(?: [\w-]+){1,5} Test Failure[.!]*$",
    r"^The read content isn't consistent\b",
    r"\bread out data value incorrect\b",
    r"^Error occurred in \w+(?: \w+)* transfer ?!",
    r"\bRead and Write aren't Matching\b",
    r"^[0-9a-f]{8,} bad mem addr 0x[0-9a-f]+ - ",
    // QuickCheck, VUnit, CORE-V, Arm's tests of PSA, mruby
    r"^\[\w+\] TEST FAILED\.",
    r"^fail (?:0*[1-9]\d* of \d+$|\S+ +\(\d+\.\d+ seconds\)$)",
    r"^EXIT FAILURE: ",
    r"^fail \(P=\d+ S=\d+ F=\d+ T=\d+\)",
    r"^TOTAL SIM ERROR *: *0*[1-9]",
    r"^\s*Crash: 0*[1-9]\d*$",
    // U-Boot's unit tests
    r"^(?:[\w./-]+:\d+, )?\w+\(\): .+: Expected .+, got .+$",
    // badblocks, Linux' tests of flash, Thread-Metric, FreeRTOS demo
    r"\((?:0*[1-9]\d*/\d+/\d+|\d+/0*[1-9]\d*/\d+|\d+/\d+/0*[1-9]\d*) errors\)$",
    r"^mtd_\w+: error: ",
    r"^ERROR: Invalid counter value\(s\)\.",
    r"^\w+: ERROR - .*\bstalled\b",
    r"^!{4,} stopping after [1-9]\d* failures? !{4,}$",
    // Android's instrumentation, Linux' torture tests, fio, RTEMS
    r"^INSTRUMENTATION_STATUS_CODE: -[12]$",
    r"-torture:(?: ?---)? ?End of test: (?:FAILURE|\w+_HOTPLUG)\b",
    r"\berr= ?0*[1-9]\d* \(file:",
    r"^\S+: ?\d+ \w+ != RTEMS_SUCCESSFUL",
    // An assertion with its place
    r"^ASSERT(?:ION)?: ?\S+ ?@ ?[\w./-]+\.(?:c|h|cc|cpp|cxx|hpp|S|rs|ino)[,:] ?\d+",
    r"^ASSERT(?:ION)?(?: FAILED)?:? +[\w./-]+\.(?:c|h|cc|cpp|cxx|hpp|S|rs|ino):\d+(?:$|:? \()",
    r"^(?:ASSERT|CHECK|EXPECT|REQUIRE|VERIFY)\w*\(.*\) (?:failed:?|at|failed:? at) [\w./-]+\.\w+:\d+",
];

/// Text of which one stands in each line that a pattern matches, unless a word of results does.
/// Such a line is rare, since looking at it costs a microsecond.
pub(super) const HINTS: &str = r#"(?-i:Bail out!|# Looks like |# No tests |# Tests were run but|UNEXPECTED SUCC|!!!! |node down: |DATA RACE| data race\(s\)|XPASS|UNRESOLVED|KPASS|UNEXPECTEDPASS|INTERRUPT |Dubious, |Unexpected Pass: |# of un|TRY [0-9]+ |Synthesis: |ASSERT|CHECK\(|EXPECT\(|REQUIRE\(|VERIFY\(|Traceback|Sanitizer: |kmemleak: |Segmentation f|Illegal ins|\*\*\*(?:Exception|Not|Bad|Could)|output mismatch|leaked too much|UVM_FATAL|NO STATUS|SIG[A-Z]+ \[|LAVA_SIGNAL_TEST(?:CASE|RAISE)|: assertion|: exp |\) exp |, got |: [0-9]+ exception|, [0-9]+ exception|exceeded time limit|NO TESTS RAN|No tests |No test cases matched|Ran 0 tests|contains no tests|memory leaks!|eak\(s\) found|overrun detected|try faulted|NOT correct!|multiple suites|which doesn't exist|did not panic as|Falsif|: line [0-9]+: +[0-9]+ [KTA]|timeout: (?:sending|the mon)|loading shared lib|symbol lookup err|isn't consistent|aren't Matching|bailing|INSTRUMENTATION_STATUS_CODE: -|_HOTPLUG|err= ?[1-9]|!= RTEMS_|StillRunning\(\) returned |NG=[0-9])|exit status [1-9]|\./[^ :]*: no(?:t found| such)"#;

pub(super) static FAILURES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let ascii = syntax::Config::new().unicode(false).utf8(false);
    Regex::builder().configure(searched_once()).syntax(ascii).build_many(PATTERNS).ok()
});

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
