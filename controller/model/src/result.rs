//! Test results as a target reports them, whatever format it speaks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Names the formats the result parser recognises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResultFormat {
    /// Unity: `file:line:name:PASS` and `N Tests N Failures N Ignored`.
    Unity,
    /// Zephyr's ztest.
    Ztest,
    /// TAP 13 or 14, with sub-tests.
    Tap,
    /// The kernel's KTAP.
    Ktap,
    /// GoogleTest.
    Gtest,
    /// Rust's libtest and embedded-test.
    Libtest,
    /// CppUTest, quiet or verbose.
    Cpputest,
    /// cmocka's standard output.
    Cmocka,
    /// embUnit, as RIOT prints it.
    Embunit,
    /// Check, the unit test framework for C.
    Check,
    /// doctest's console reporter.
    Doctest,
    /// Catch2's console reporter.
    Catch2,
    /// Mbed's Greentea.
    Greentea,
    /// AUnit and ArduinoUnit.
    Aunit,
    /// NuttX's `ostest`.
    Nuttx,
    /// pytest.
    Pytest,
    /// Go's `testing`, run with `-v`.
    Go,
    /// TeamCity's service messages, of whatever framework.
    Teamcity,
    /// Knurling's defmt-test.
    #[serde(rename = "defmt-test")]
    DefmtTest,
    /// Markers that the plan declares.
    Markers,
}

impl ResultFormat {
    /// Returns the stable text form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unity => "unity",
            Self::Ztest => "ztest",
            Self::Tap => "tap",
            Self::Ktap => "ktap",
            Self::Gtest => "gtest",
            Self::Libtest => "libtest",
            Self::Cpputest => "cpputest",
            Self::Cmocka => "cmocka",
            Self::Embunit => "embunit",
            Self::Check => "check",
            Self::Doctest => "doctest",
            Self::Catch2 => "catch2",
            Self::Greentea => "greentea",
            Self::Aunit => "aunit",
            Self::Nuttx => "nuttx",
            Self::Pytest => "pytest",
            Self::Go => "go",
            Self::Teamcity => "teamcity",
            Self::DefmtTest => "defmt-test",
            Self::Markers => "markers",
        }
    }
}

/// Names how one test case ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CaseStatus {
    /// The case passed.
    Pass,
    /// The case failed.
    Fail,
    /// The case was skipped, ignored, or is an expected failure (TODO).
    Skip,
    /// The case began and no result followed.
    Unfinished,
}

/// One test case of a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestCase {
    /// Name, with suites or parents in front, joined by `::`.
    pub name: String,
    /// How it ended.
    pub status: CaseStatus,
    /// The target's own words on it (reason, assertion); may hold hostile bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Duration in milliseconds, where the target says one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Offset in the console's log of the first byte of the deciding line.
    pub start: u64,
    /// Offset one past its last byte.
    pub end: u64,
}

/// Everything a target reported in one boot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestReport {
    /// The format that was recognised, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<ResultFormat>,
    /// Cases in the order they were decided.
    pub cases: Vec<TestCase>,
    /// How many cases the target announced, before (TAP plan) or after (summaries).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<u64>,
    /// Failures that the target's own summary claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_failures: Option<u64>,
    /// Whether the format's end marker was seen.
    pub ended: bool,
    /// What is wrong with the report itself: contradictions, bail-outs, limits reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// Whether nothing was read but a line that a log may hold by accident, such as `START - motor`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_be_log: bool,
}

impl TestReport {
    /// Tells whether a report has begun: a format was recognised, by more than a line that a log may
    /// hold by accident.
    pub fn has_begun(&self) -> bool {
        self.format.is_some() && !self.may_be_log
    }

    /// Counts the cases with a status.
    pub fn count(&self, status: CaseStatus) -> usize {
        self.cases.iter().filter(|case| case.status == status).count()
    }

    /// Tells whether a case failed, or the target's own summary claims that one did.
    pub fn fails(&self) -> bool {
        self.count(CaseStatus::Fail) > 0 || self.claimed_failures.is_some_and(|claimed| claimed > 0)
    }
}
