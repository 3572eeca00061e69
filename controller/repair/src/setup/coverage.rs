//! What a plan executes of the firmware's sources, and which of its tests do.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use jig_model::VerdictKind;
use jig_model::command::RunOptions;
use jig_model::coverage::{COVERAGE_FILE, CoverageReport, FileCoverage, TestLines};
use jig_model::result::CaseStatus;
use serde::{Deserialize, Serialize};

use super::{PlanResult, RepairSetup, RigFailure};
use crate::localise::{MeasuredCoverage, SourceLine, TestCoverage};
use crate::run::Run;

/// Largest document of a run's coverage.
const MAX_DOCUMENT: u64 = 256 << 20;

/// What the tests of a plan executed of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredTests {
    /// Each of them, with its lines in files of the repository.
    pub tests: Vec<MeasuredTest>,
    /// Lines that have code, by file.
    pub code: BTreeMap<String, Vec<u32>>,
    /// Lines that were executed, by a test or outside of each, by file.
    #[serde(default)]
    pub executed: BTreeMap<String, Vec<u32>>,
    /// Functions that have code, by file.
    #[serde(default)]
    pub functions: BTreeMap<String, Vec<String>>,
    /// Whether everything that was executed is known.
    #[serde(default)]
    pub complete: bool,
}

/// What a test executed, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredTest {
    /// Its lines.
    pub lines: TestLines,
    /// Whether it failed.
    pub failed: bool,
}

/// What was executed behind the last test that is known, such as a test that crashed.
const BEHIND: &str = "what ran behind the known tests";

impl MeasuredTests {
    /// Returns the lines that were executed.
    pub fn executed(&self) -> BTreeSet<SourceLine> {
        source_lines(&self.executed)
    }
}

impl From<MeasuredTests> for MeasuredCoverage {
    fn from(measured: MeasuredTests) -> Self {
        let test = |MeasuredTest { lines, failed }| TestCoverage {
            name: lines.name.unwrap_or_else(|| BEHIND.to_owned()),
            failed,
            lines: source_lines(&lines.files),
        };
        let tests = measured.tests.into_iter().map(test).collect();
        Self { tests, code: source_lines(&measured.code) }
    }
}

fn source_lines(files: &BTreeMap<String, Vec<u32>>) -> BTreeSet<SourceLine> {
    let of_file = |(file, lines): (&String, &Vec<u32>)| -> Vec<_> {
        lines.iter().map(|&line| SourceLine { file: file.clone(), line }).collect()
    };
    files.iter().flat_map(of_file).collect()
}

impl RepairSetup {
    /// Runs the plan once to see what each of its tests executes of an image. The emulator is slower
    /// meanwhile, so what it shows counts only where the tests fail as they do without it: `signature`
    /// is that of the failure. No injected fault strikes it.
    ///
    /// # Errors
    /// The rig failed, or cannot measure it.
    pub async fn measure_tests(
        &self,
        run: &Run,
        (image, signature): (&str, &str),
        files: &[String],
    ) -> Result<MeasuredTests, RigFailure> {
        let path = self.folder.test_coverage(image);
        // One that this run has not written is measured anew.
        if let Ok(known) = self.kept(run, &path) {
            return Ok(known);
        }
        let options = RunOptions { coverage_by_test: true, ..RunOptions::default() };
        let result = self.run_plan(&self.plan, image, options).await?;
        if matches!(result.verdict.kind, VerdictKind::EnvError | VerdictKind::Cancelled) {
            let cancelled = result.verdict.kind == VerdictKind::Cancelled;
            return Err(RigFailure { cancelled, ..RigFailure::new(result.verdict.summary) });
        }
        if result.signature().as_deref() != Some(signature) {
            let why = "the tests end in another way while that is measured";
            return Err(RigFailure::new(format!("{why}: {}", result.verdict.summary)));
        }
        let file = result.dir.join(COVERAGE_FILE);
        let report =
            read(&file).map_err(|e| RigFailure::new(format!("{}: {e}", file.display())))?;
        let report = in_repository(report, &self.folder.tree(), files);
        let CoverageReport { files, tests, complete, .. } = report;
        let names = |file: &FileCoverage| -> Vec<_> {
            file.functions.iter().map(|function| function.name.clone()).collect()
        };
        let executed = |file: &FileCoverage| (file.file.clone(), file.executed.clone());
        let executed = files.iter().map(executed).collect();
        let functions = files.iter().map(|file| (file.file.clone(), names(file))).collect();
        let code = files.into_iter().map(|file| (file.file, file.lines)).collect();
        let tests = with_outcome(&result, tests);
        let measured = MeasuredTests { tests, code, executed, functions, complete };
        let kept = self.keep(&path, &measured);
        kept.map_err(|error| RigFailure::new(format!("{}: {error}", path.display())))?;
        Ok(measured)
    }

    /// Returns what each test executes of an image, where that was measured.
    pub fn measured_tests(&self, run: &Run, image: &str) -> Option<MeasuredTests> {
        self.kept(run, &self.folder.test_coverage(image)).ok()
    }

    /// Runs the plan to see what it executes of an image, whatever the verdict; nothing where the rig
    /// cannot measure that. It runs until it passes, at most as often as `most` says: a run that fails
    /// may have ended too early. `files` are those of the repository.
    ///
    /// # Errors
    /// The rig failed.
    pub async fn covered(
        &self,
        run: &Run,
        image: &str,
        files: &[String],
        most: usize,
    ) -> Result<Option<CoverageReport>, RigFailure> {
        if !self.rig.measures_coverage() {
            return Ok(None);
        }
        let path = self.folder.coverage(image);
        // One that this run has not written is measured anew.
        if let Ok(known) = self.kept(run, &path) {
            return Ok(Some(known));
        }
        let mut all = CoverageReport::new(Vec::new(), Vec::new());
        for _ in 0..most {
            let options = RunOptions { coverage: true, ..RunOptions::default() };
            let result = self.try_out(&self.plan, image, options).await?;
            let failure = RigFailure::new(result.verdict.summary.clone());
            match result.verdict.kind {
                VerdictKind::EnvError => return Err(failure),
                VerdictKind::Cancelled => return Err(RigFailure { cancelled: true, ..failure }),
                _ => {}
            }
            let file = result.dir.join(COVERAGE_FILE);
            let read = read(&file).map_err(|e| RigFailure::new(format!("{}: {e}", file.display())));
            all.merge(in_repository(read?, &self.folder.tree(), files));
            if result.passed() {
                break;
            }
        }
        let kept = self.keep(&path, &all);
        kept.map_err(|error| RigFailure::new(format!("{}: {error}", path.display())))?;
        Ok(Some(all))
    }
}

/// Says which tests failed. Where the run failed and none of them did, what ran behind them has.
fn with_outcome(result: &PlanResult, tests: Vec<TestLines>) -> Vec<MeasuredTest> {
    let cases = &result.verdict.tests.cases;
    let bad = |status| matches!(status, CaseStatus::Fail | CaseStatus::Unfinished);
    let none_failed = !result.passed() && !cases.iter().any(|case| bad(case.status));
    let outcome = |lines: TestLines| {
        let failed = match &lines.name {
            Some(name) => cases.iter().any(|case| case.name == *name && bad(case.status)),
            None => none_failed,
        };
        // A run that was not to its end says nothing of what it has not shown.
        (failed || lines.name.is_some()).then_some(MeasuredTest { lines, failed })
    };
    tests.into_iter().filter_map(outcome).collect()
}

fn read(path: &Path) -> io::Result<CoverageReport> {
    if fs::metadata(path)?.len() > MAX_DOCUMENT {
        return Err(io::Error::other(format!("it has more than {MAX_DOCUMENT} bytes")));
    }
    serde_json::from_slice(&fs::read(path)?).map_err(io::Error::other)
}

/// Names files as the repository does; those that it does not have are left out.
fn in_repository(report: CoverageReport, tree: &Path, files: &[String]) -> CoverageReport {
    let mut by_name: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for file in files {
        by_name.entry(last(file)).or_default().push(file);
    }
    let found = |path: &str| {
        let path = Path::new(path);
        let path = path.strip_prefix(tree).unwrap_or(path).to_string_lossy();
        let same = |one: &&&str| path == ***one || ends(&path, one) || ends(one, &path);
        let alike: Vec<_> = by_name.get(last(&path)).into_iter().flatten().filter(same).collect();
        let exact = alike.iter().find(|one| path == ***one);
        // Two files that it could be are none.
        let found = exact.or(alike.first().filter(|_| alike.len() == 1));
        found.map(|name| (**name).to_string())
    };
    let mut named = CoverageReport::new(Vec::new(), report.limits);
    for mut file in report.files {
        let Some(name) = found(&file.file) else { continue };
        file.file = name;
        named.merge(CoverageReport::new(vec![file], Vec::new()));
    }
    for mut test in report.tests {
        let files = test.files.into_iter();
        test.files = files.filter_map(|(file, lines)| Some((found(&file)?, lines))).collect();
        named.tests.push(test);
    }
    named
}

fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn ends(path: &str, end: &str) -> bool {
    path.strip_suffix(end).is_some_and(|front| front.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use jig_model::result::TestCase;
    use jig_model::{Cause, Verdict};

    use super::*;

    #[test]
    fn tests_that_failed_are_told_and_a_crash_is_what_ran_behind_them() {
        let names = [Some("a"), Some("b"), None].map(|name| name.map(str::to_owned));
        let lines = |name| TestLines { name, ..TestLines::default() };
        let failed = |cause, cases: &[(&str, CaseStatus)]| {
            let mut verdict = Verdict::of(cause, "");
            let case = |&(name, status): &(&str, CaseStatus)| TestCase {
                name: name.to_owned(),
                status,
                message: None,
                duration_ms: None,
                start: 0,
                end: 0,
            };
            verdict.tests.cases = cases.iter().map(case).collect();
            let result = PlanResult {
                run: String::new(),
                dir: "runs/1".into(),
                image: String::new(),
                verdict,
                duration_ms: 0,
            };
            let all = with_outcome(&result, names.clone().map(lines).to_vec());
            let told = all.into_iter().map(|one| (one.lines.name, one.failed));
            told.map(|(name, failed)| (name.unwrap_or_default(), failed)).collect::<Vec<_>>()
        };
        use CaseStatus::{Fail, Pass, Unfinished};
        let told = |all: &[(&str, bool)]| -> Vec<_> {
            all.iter().map(|&(name, failed)| (name.to_owned(), failed)).collect()
        };
        assert_eq!(
            failed(Cause::TestFailed, &[("a", Pass), ("b", Fail)]),
            told(&[("a", false), ("b", true)])
        );
        assert_eq!(
            failed(Cause::FaultBanner, &[("a", Pass), ("b", Unfinished)]),
            told(&[("a", false), ("b", true)])
        );
        assert_eq!(
            failed(Cause::FaultBanner, &[("a", Pass), ("b", Pass)]),
            told(&[("a", false), ("b", false), ("", true)])
        );
        assert_eq!(
            failed(Cause::Passed, &[("a", Pass), ("b", Pass)]),
            told(&[("a", false), ("b", false)])
        );
    }

    #[test]
    fn files_are_named_as_in_the_repository() {
        let files = ["src/a.c", "lib/a.c", "src/main.c", "fw/b.c"].map(str::to_owned);
        for (path, named) in [
            ("src/a.c", Some("src/a.c")),
            ("/run/tree/lib/a.c", Some("lib/a.c")),
            ("/elsewhere/src/main.c", Some("src/main.c")),
            ("b.c", Some("fw/b.c")),
            ("a.c", None),
            ("/usr/lib/start.c", None),
            ("xsrc/main.c", None),
        ] {
            let file = FileCoverage { file: path.to_owned(), ..FileCoverage::default() };
            let report = CoverageReport::new(vec![file], Vec::new());
            let found = in_repository(report, Path::new("/run/tree"), &files);
            let found: Vec<_> = found.files.iter().map(|file| file.file.as_str()).collect();
            assert_eq!(found, named.into_iter().collect::<Vec<_>>(), "{path}");
        }
    }
}
