//! What one run of a plan has shown, for the loop.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jig_model::command::RunReply;
use jig_model::result::CaseStatus;
use jig_model::{Evidence, Note, Verdict, VerdictKind};
use serde::{Deserialize, Serialize};

use crate::convergence::TestCounts;
use crate::journal::EvidenceRef;
use crate::proof::PlanRun;
pub use crate::signature::{first_bad_line, verdict_signature};

/// The result of one run of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanResult {
    /// The run.
    pub run: String,
    /// Its folder.
    pub dir: PathBuf,
    /// SHA-256 of the image.
    pub image: String,
    /// What it amounts to.
    pub verdict: Verdict,
    /// How long it took, in milliseconds.
    #[serde(default)]
    pub duration_ms: u64,
}

impl PlanResult {
    /// Takes in the answer of the rig, for which was waited so long.
    pub fn of(reply: RunReply, image: &str, waited: Duration) -> Self {
        let RunReply { run, dir, verdict, .. } = reply;
        let duration_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
        Self { run: run.to_string(), dir, image: image.to_owned(), verdict, duration_ms }
    }

    /// Tells whether it passed.
    pub fn passed(&self) -> bool {
        self.verdict.kind == VerdictKind::Pass
    }

    fn count(&self, status: CaseStatus) -> u64 {
        self.verdict.tests.count(status) as u64
    }

    /// Counts its tests. Where the target reported none, the plan is one test. `known` is the number
    /// of tests that another run had: a crash must not make tests disappear.
    ///
    /// A run that passed counts as passed with all its tests: whether they are all tests that there
    /// are is for the proof to say.
    pub fn counts(&self, known: u64) -> TestCounts {
        let tests = &self.verdict.tests;
        let cases = tests.cases.len() as u64;
        let skipped = self.count(CaseStatus::Skip);
        let seen = tests.planned.unwrap_or(0).max(cases).saturating_sub(skipped).max(1);
        if self.passed() {
            return TestCounts { passed: seen, total: seen };
        }
        let total = seen.max(known);
        // A failure that no test reports, such as a crash behind the last one, is one of a test.
        TestCounts { passed: self.count(CaseStatus::Pass).min(total - 1), total }
    }

    /// Returns the line that shows the failure best.
    pub fn first_bad_line(&self) -> Option<&str> {
        first_bad_line(&self.verdict)
    }

    /// Says where the output stands that the verdict rests on.
    pub fn evidence(&self) -> Vec<EvidenceRef> {
        let place = |evidence: &Evidence| EvidenceRef {
            file: self.dir.join(&evidence.file).display().to_string(),
            bytes: Some((evidence.start, evidence.end)),
        };
        self.verdict.evidence.iter().map(place).collect()
    }

    /// Returns the signature of its failure; `None` for a pass.
    pub fn signature(&self) -> Option<String> {
        verdict_signature(&self.verdict)
    }

    /// Tells whether the rig failed, and not the firmware.
    pub fn blames_rig(&self) -> bool {
        self.verdict.kind == VerdictKind::EnvError
    }

    /// Says how the rig was recovered on the way to this result, for the reason of a step.
    pub fn recovered(&self) -> Option<String> {
        let recovery = |note: &&Note| {
            matches!(note, Note::Recovered { .. } | Note::RecoveredBeforeTest { .. })
        };
        self.verdict.notes.iter().find(recovery).map(ToString::to_string)
    }

    /// Tells whether nothing shows where the firmware fails: no test, no output, no line of a source.
    pub fn is_silent(&self) -> bool {
        let has_line = |note: &str| {
            let behind = note.split('(').skip(1).filter_map(|part| part.split_once(')'));
            let mut places = behind.filter_map(|(place, _)| place.rsplit_once(':'));
            places.any(|(_, line)| line.parse::<u32>().is_ok())
        };
        let shows = |one: &Evidence| {
            let is_log = Path::new(&one.file).extension().is_some_and(|end| end == "raw");
            if is_log { one.end > one.start } else { has_line(&one.note) }
        };
        let Verdict { tests, evidence, .. } = &self.verdict;
        !self.passed() && tests.cases.is_empty() && !evidence.iter().any(shows)
    }

    /// Returns what a proof looks at.
    pub fn for_proof(&self) -> PlanRun {
        let tests = &self.verdict.tests;
        let passed = tests.cases.iter().filter(|case| case.status == CaseStatus::Pass);
        PlanRun {
            run: self.run.clone(),
            passed: self.passed(),
            planned: tests.planned,
            executed: tests.cases.len() as u64,
            skipped: self.count(CaseStatus::Skip),
            passes: passed.map(|case| case.name.clone()).collect(),
            image_seen: self.verdict.image_seen.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use jig_model::result::TestCase;
    use jig_model::{Cause, ImageSeen};

    use super::*;

    fn result(cause: Cause, cases: &[CaseStatus], planned: Option<u64>) -> PlanResult {
        let mut verdict = Verdict::of(cause, "");
        verdict.tests.planned = planned;
        let case = |&status: &CaseStatus| TestCase {
            name: String::new(),
            status,
            message: None,
            duration_ms: None,
            start: 0,
            end: 0,
        };
        verdict.tests.cases = cases.iter().map(case).collect();
        PlanResult {
            run: String::new(),
            dir: PathBuf::new(),
            image: String::new(),
            verdict,
            duration_ms: 0,
        }
    }

    #[test]
    fn an_image_is_seen_where_the_rig_says_what_shows_it() {
        let mut passed = result(Cause::Passed, &[], None);
        assert!(!passed.for_proof().image_seen);
        passed.verdict.image_seen = Some(ImageSeen::ReadBack);
        assert!(passed.for_proof().image_seen);
    }

    #[test]
    fn a_failure_without_test_output_and_source_line_is_silent() {
        use CaseStatus::Fail;
        let evidence = |file: &str, end, note: &str| Evidence {
            file: file.into(),
            start: 0,
            end,
            note: note.to_owned(),
        };
        let log = |end| evidence("consoles/1/uart0.raw", end, "output of this boot");
        let core = |note| evidence("consoles/1/post-mortem.json", 900, note);
        for (cause, cases, evidence, silent) in [
            (Cause::NoOutput, &[][..], vec![], true),
            (Cause::NoOutput, &[], vec![log(0)], true),
            (Cause::NoOutput, &[], vec![log(0), core("running in 0x8a <- 0xbe")], true),
            (Cause::NoOutput, &[], vec![log(0), core("running in put (ring.c:5) <- main")], false),
            (Cause::NoOutput, &[], vec![log(7)], false),
            (Cause::TestFailed, &[Fail], vec![], false),
            (Cause::Passed, &[], vec![log(0)], false),
        ] {
            let mut result = result(cause, cases, None);
            result.verdict.evidence = evidence;
            assert_eq!(result.is_silent(), silent, "{cause} {:?}", result.verdict.evidence);
        }
    }

    #[test]
    fn a_run_that_passed_has_passed_all_and_one_that_failed_has_not() {
        use CaseStatus::{Fail, Pass, Skip, Unfinished};
        let (good, bad) = (Cause::Passed, Cause::FaultBanner);
        for (cause, cases, planned, known, passed, total) in [
            // Firmware that reports no test is one test, whatever the baseline counted.
            (good, &[][..], None, 0, 1, 1),
            (good, &[], None, 1, 1, 1),
            (bad, &[], None, 0, 0, 1),
            (bad, &[], None, 3, 0, 3),
            (good, &[Pass, Pass, Skip], Some(3), 2, 2, 2),
            (bad, &[Pass, Fail], Some(2), 0, 1, 2),
            (bad, &[Pass, Unfinished], Some(4), 0, 1, 4),
            // A crash behind the last test is a failure, and makes no further test.
            (bad, &[Pass, Pass], Some(2), 0, 1, 2),
            (good, &[Pass, Pass], Some(2), 2, 2, 2),
            // A crash makes no test disappear.
            (bad, &[Pass], None, 5, 1, 5),
        ] {
            let counts = result(cause, cases, planned).counts(known);
            assert_eq!(counts, TestCounts { passed, total }, "{cause}: {cases:?} of {known}");
        }
    }
}
