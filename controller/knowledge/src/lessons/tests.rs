//! Lessons of recorded facts, through a store: what is learnt, once, and how far it is believed.

use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use jig_model::redact::Redactor;

use crate::learner::{Learner, Observed};
use crate::observed::*;
use crate::store::{CaptureRules, KnowledgeStore, Learnt};
use crate::unit::{CaptureTrigger, KnowledgeUnit, StandingEvent, VerificationStatus};

const SIGNATURE: &str = "test_failed | test_wrap | ring.c:#: expected #";

struct Lab {
    folder: tempfile::TempDir,
    rules: CaptureRules,
    second: AtomicI64,
}

impl Lab {
    fn new() -> Self {
        let rules = CaptureRules::default();
        Self { folder: tempfile::tempdir().unwrap(), rules, second: AtomicI64::new(0) }
    }

    fn learner(&self) -> Learner {
        Learner::new(self.folder.path(), self.rules, Redactor::default())
    }

    fn store(&self) -> KnowledgeStore {
        KnowledgeStore::open(&self.folder.path().join("knowledge.db")).unwrap()
    }

    fn learn(&self, observation: LearningInput) -> Learnt {
        match self.learner().observe(observation).unwrap() {
            Observed::Learnt(learnt) => learnt,
            Observed::Queued { why, .. } => panic!("{why}"),
        }
    }

    fn see(&self, mut run: ObservedRun) -> Learnt {
        let second = self.second.fetch_add(1, Ordering::Relaxed);
        run.at = Timestamp::from_second(1_700_000_000 + second).unwrap();
        if run.run.is_empty() {
            run.run = format!("run-{second}");
        }
        self.learn(LearningInput::Run(Box::new(run)))
    }

    /// Returns the unit that an observation has made or renewed.
    fn only(&self, learnt: &Learnt) -> KnowledgeUnit {
        assert_eq!(learnt.units.len(), 1, "{learnt:?}");
        self.store().unit(&learnt.units[0].id).unwrap()
    }
}

fn image(hash: &str) -> ObservedImage {
    let (build_id, commit) = (None, Some(format!("commit-of-{hash}")));
    ObservedImage { name: "app.elf".to_owned(), sha256: hash.to_owned(), build_id, commit }
}

fn run(hash: &str, end: ObservedEnd) -> ObservedRun {
    ObservedRun {
        run: String::new(),
        at: Timestamp::UNIX_EPOCH,
        by: "ci".to_owned(),
        place: Some("bench-1".to_owned()),
        board: Some("microbit".to_owned()),
        chip: Some("nRF51822".to_owned()),
        plan: Some("unit".to_owned()),
        image: Some(image(hash)),
        end,
        failure: None,
        passed: Vec::new(),
        recoveries: Vec::new(),
        drill: false,
        in_repair: false,
    }
}

fn failing(hash: &str, failed: &[&str], passed: &[&str]) -> ObservedRun {
    let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let failure = ObservedFailure {
        class: "test_failed".to_owned(),
        signature: SIGNATURE.to_owned(),
        summary: "1 of 3 tests failed".to_owned(),
        failed: names(failed),
        line: Some("ring.c:12: expected 3".to_owned()),
        quotes: vec!["password=\"hunter2-hunter2\" ring.c:12:test_wrap:FAIL".to_owned()],
        ..ObservedFailure::default()
    };
    ObservedRun { failure: Some(failure), passed: names(passed), ..run(hash, ObservedEnd::Failed) }
}

fn passing(hash: &str, passed: &[&str]) -> ObservedRun {
    let passed = passed.iter().map(|name| (*name).to_owned()).collect();
    ObservedRun { passed, ..run(hash, ObservedEnd::Passed) }
}

#[test]
fn a_failure_that_a_newer_image_fixes_is_learnt_once() {
    let lab = Lab::new();
    assert_eq!(lab.see(failing("aaaa", &["test_wrap"], &["test_put"])), Learnt::default());
    let fixed = ObservedRun { run: "fixed".into(), ..passing("bbbb", &["test_wrap", "test_put"]) };
    let learnt = lab.see(fixed.clone());
    let unit = lab.only(&learnt);
    assert!(learnt.units[0].new);
    assert_eq!(unit.audit.trigger, CaptureTrigger::Success);
    assert_eq!(unit.metadata.signature.as_deref(), Some(SIGNATURE));
    assert_eq!(unit.standing.status, VerificationStatus::Pending);
    let said = unit.content.prose();
    for words in ["test_wrap fails", "aaaa", "bbbb", "commit-of-bb", "run-0", "run fixed"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(said.contains("[removed: ") && !said.contains("hunter2"), "{said}");
    // The same run teaches once, however often it is handed in.
    assert_eq!(lab.see(fixed), Learnt { known: true, ..Learnt::default() });
    assert_eq!(lab.store().unit(&unit.id).unwrap().audit.count, 1);
    // It goes away once more: the same unit, counted.
    lab.see(failing("cccc", &["test_wrap"], &["test_put"]));
    let again = lab.see(passing("dddd", &["test_wrap", "test_put"]));
    assert_eq!(lab.only(&again).audit.count, 2);
    assert_eq!(again.units[0].id, unit.id);
    let seen = lab.learner().seen_before(SIGNATURE, "run-9").unwrap().unwrap();
    assert_eq!((seen.count, seen.units.len()), (2, 1));
    let words = seen.words();
    assert!(words.starts_with("2 times, last in run run-"), "{words}");
    assert!(words.ends_with(&format!("(not verified): jig kb show {}", unit.id)), "{words}");
}

#[test]
fn a_pass_that_proves_no_fix_teaches_nothing() {
    let fails = || failing("aaaa", &["test_wrap"], &[]);
    let all = &["test_wrap", "test_put"][..];
    let other_file = ObservedImage { name: "other.elf".to_owned(), ..image("bbbb") };
    let elsewhere = |change: fn(&mut ObservedRun)| {
        let mut run = passing("bbbb", &["test_wrap"]);
        change(&mut run);
        run
    };
    for (what, before, now) in [
        ("the same image", fails(), passing("aaaa", all)),
        ("the test did not run", fails(), passing("bbbb", &["test_put"])),
        (
            "another firmware",
            fails(),
            ObservedRun { image: Some(other_file), ..passing("bbbb", all) },
        ),
        ("another place", fails(), elsewhere(|run| run.place = Some("bench-2".to_owned()))),
        ("another plan", fails(), elsewhere(|run| run.plan = Some("other".to_owned()))),
        ("a drill", fails(), elsewhere(|run| run.drill = true)),
        ("within a repair", fails(), elsewhere(|run| run.in_repair = true)),
        ("a drill before", ObservedRun { drill: true, ..fails() }, passing("bbbb", all)),
        ("a repair before", ObservedRun { in_repair: true, ..fails() }, passing("bbbb", all)),
        ("an unclear end", fails(), elsewhere(|run| run.end = ObservedEnd::Unclear)),
        ("a pass before", passing("aaaa", all), passing("bbbb", all)),
    ] {
        let lab = Lab::new();
        assert_eq!(lab.see(before).units, [], "{what}");
        assert_eq!(lab.see(now).units, [], "{what}");
        assert_eq!(lab.store().counts().unwrap().units, 0, "{what}");
    }
}

#[test]
fn more_than_half_fixed_and_none_new_is_a_partial_fix() {
    let before = || failing("aaaa", &["a", "b", "c"], &["d"]);
    for (failed, passed, learnt) in [
        (&["c"][..], &["a", "b", "d"][..], true),
        // A third is not more than half; a case fails that had not.
        (&["b", "c"], &["a", "d"], false),
        (&["c", "e"], &["a", "b", "d"], false),
        // What does not run is not fixed.
        (&["c"], &["d"], false),
    ] {
        let lab = Lab::new();
        lab.see(before());
        let told = lab.see(failing("bbbb", failed, passed));
        assert_eq!(told.units.len(), usize::from(learnt), "{failed:?} {passed:?}");
        if learnt {
            let unit = lab.only(&told);
            assert_eq!(unit.audit.trigger, CaptureTrigger::Partial);
            assert!(unit.content.resolution.contains("still failing: c"), "{unit:?}");
        }
    }
}

#[test]
fn the_same_failure_as_often_as_the_rules_say_is_one_unit_with_its_count() {
    let lab = Lab::new();
    assert_eq!(lab.see(failing("aaaa", &["test_wrap"], &[])).units, []);
    assert_eq!(lab.see(failing("aaaa", &["test_wrap"], &[])).units, []);
    let third = lab.see(failing("bbbb", &["test_wrap"], &[]));
    let unit = lab.only(&third);
    assert_eq!((unit.audit.trigger, unit.audit.count), (CaptureTrigger::RepeatedFailure, 3));
    assert!(unit.content.remedy().trim().is_empty());
    let fourth = lab.see(failing("bbbb", &["test_wrap"], &[]));
    assert_eq!(lab.only(&fourth).audit.count, 4);
    // What a person has written stays; the count goes on.
    let knowledge = crate::Knowledge::open(lab.folder.path(), Default::default()).unwrap();
    let content = crate::unit::UnitContent { title: "ours".into(), ..unit.content.clone() };
    knowledge.edit(&unit.id, 1, content, unit.metadata.clone(), "alice").unwrap();
    let fifth = lab.only(&lab.see(failing("bbbb", &["test_wrap"], &[])));
    assert_eq!((fifth.content.title.as_str(), fifth.audit.count), ("ours", 5));
}

fn recovered(ok: bool) -> ObservedRun {
    let step = |step: &str, ok| ObservedRecovery {
        cause: "probe_missing".to_owned(),
        step: step.to_owned(),
        ok,
    };
    let recoveries = vec![step("reset", false), step("power-cycle", ok)];
    ObservedRun { recoveries, ..run("aaaa", ObservedEnd::Passed) }
}

#[test]
fn recoveries_are_counted_for_each_place_cause_and_step() {
    let lab = Lab::new();
    for n in 0..15 {
        lab.see(recovered(n != 7));
    }
    // Neither a drill nor another place counts.
    lab.see(ObservedRun { drill: true, ..recovered(true) });
    lab.see(ObservedRun { place: Some("bench-9".into()), ..recovered(true) });
    let signature = rig_signature("probe_missing", "bench-1");
    let seen = lab.learner().seen_before(&signature, "").unwrap().unwrap();
    let titles: Vec<_> = seen.units.iter().map(|unit| unit.title.as_str()).collect();
    assert_eq!(
        titles,
        [
            "bench-1: power-cycle recovers from probe_missing, 14 of 15",
            "bench-1: reset does not help against probe_missing, 0 of 15"
        ]
    );
    assert_eq!(seen.units[0].status, VerificationStatus::Verified);
    assert_eq!(seen.units[0].count, 15);
    assert_eq!(seen.units[1].status, VerificationStatus::Pending);
    assert!(seen.units[0].remedy.contains("jig recover -b bench-1 --from power-cycle"));
}

fn repair(name: &str, board: &str, identity: &str) -> ObservedRepair {
    ObservedRepair {
        run: name.to_owned(),
        at: Timestamp::from_second(1_700_000_000).unwrap(),
        by: "loop".to_owned(),
        place: "bench-1".to_owned(),
        board: Some(board.to_owned()),
        chip: None,
        goal: "the tests pass".to_owned(),
        failure: failing("aaaa", &["test_wrap"], &[]).failure.unwrap(),
        end: RepairEnd::Proven,
        before: TestTally { passed: 1, total: 3 },
        after: Some(TestTally { passed: 3, total: 3 }),
        patch: Some(ObservedPatch {
            identity: identity.to_owned(),
            diff: "--- a/src/ring.c\n+++ b/src/ring.c\n@@ -1 +1 @@\n-a <= b\n+a < b\n".to_owned(),
            files: vec!["src/ring.c".to_owned()],
            agent: "templates".to_owned(),
            hypothesis: "relation".to_owned(),
            by_model: false,
        }),
        suspect: Some("src/ring.c:41".to_owned()),
        attempts: vec![ObservedAttempt { patch: identity.to_owned(), signature: None }],
        evidence: Vec::new(),
        row: Some(33),
    }
}

fn see_repair(lab: &Lab, repair: ObservedRepair) -> Learnt {
    lab.learn(LearningInput::Repair(Box::new(repair)))
}

#[test]
fn a_patch_is_verified_by_its_second_proof() {
    let lab = Lab::new();
    let first = see_repair(&lab, repair("r1", "microbit", "p1"));
    let unit = lab.only(&first);
    assert_eq!((unit.standing.status, unit.standing.maturity), (VerificationStatus::Pending, 1));
    assert!(unit.content.diff.contains("+a < b"));
    assert!(unit.content.resolution.contains("row 33"), "{unit:?}");
    assert!(unit.content.root_cause.contains("src/ring.c:41"));
    assert!(see_repair(&lab, repair("r1", "microbit", "p1")).known);
    assert_eq!(lab.store().unit(&unit.id).unwrap().standing.maturity, 1);
    // On another board, in another run.
    let second = see_repair(&lab, repair("r2", "nrf52840dk", "p1"));
    assert_eq!(second.units[0].told, Some(StandingEvent::ProvenElsewhere));
    let unit = lab.only(&second);
    assert_eq!((unit.standing.status, unit.audit.count), (VerificationStatus::Verified, 2));
    let words = lab.learner().seen_before(SIGNATURE, "").unwrap().unwrap().words();
    assert!(words.contains("repaired in src/ring.c (verified)"), "{words}");
    // Another patch for the same failure is another unit, however like its text is.
    let near = lab.only(&see_repair(&lab, repair("r3", "microbit", "p2")));
    assert!(near.id != unit.id && near.standing.status == VerificationStatus::Pending);
}

#[test]
fn evidence_against_a_patch_lowers_it_and_archives_it_at_last() {
    let lab = Lab::new();
    for (run, board) in [("r1", "microbit"), ("r2", "other")] {
        see_repair(&lab, repair(run, board, "p1"));
    }
    let failed = |name: &str| {
        let attempt = ObservedAttempt { patch: "p1".into(), signature: Some(SIGNATURE.into()) };
        let (end, patch, after) = (RepairEnd::Unrepaired, None, None);
        let attempts = vec![attempt];
        ObservedRepair { end, patch, after, attempts, ..repair(name, "microbit", "p1") }
    };
    let id = lab.store().units_of_signature(SIGNATURE).unwrap()[0].id.clone();
    let mut standings = Vec::new();
    for number in 0..4 {
        see_repair(&lab, failed(&format!("f{number}")));
        let standing = lab.store().unit(&id).unwrap().standing;
        standings.push((standing.status, standing.maturity, standing.archived));
    }
    use VerificationStatus::{Pending, Rejected};
    assert_eq!(
        standings,
        [(Pending, 1, false), (Pending, 0, false), (Rejected, 0, false), (Rejected, 0, true)]
    );
    // What is archived is not shown.
    let known = lab.learner().seen_before(SIGNATURE, "").unwrap();
    assert_eq!(known, None);
}

#[test]
fn a_failure_with_the_image_that_had_fixed_it_speaks_against_the_fix() {
    let lab = Lab::new();
    lab.see(failing("aaaa", &["test_wrap"], &[]));
    let unit = lab.only(&lab.see(passing("bbbb", &["test_wrap"])));
    lab.see(failing("bbbb", &["test_wrap"], &[]));
    let unit = lab.store().unit(&unit.id).unwrap();
    assert_eq!(unit.standing.status, VerificationStatus::Rejected);
}

/// Runs of two images, `F` failing and `P` passing, one after the other; returns the unit of the fix.
fn seen(lab: &Lab, runs: &[(&str, char)]) -> KnowledgeUnit {
    for (image, end) in runs {
        match end {
            'F' => lab.see(failing(image, &["test_wrap"], &["test_put"])),
            'P' => lab.see(passing(image, &["test_wrap", "test_put"])),
            _ => lab.see(run(image, ObservedEnd::Unclear)),
        };
    }
    let units = lab.store().units_of_signature(SIGNATURE).unwrap();
    units.into_iter().find(|unit| unit.content.title.ends_with("fixed by a newer image")).unwrap()
}

const ONCE: [(&str, char); 2] = [("a", 'F'), ("b", 'P')];

#[test]
fn a_fix_is_verified_by_the_old_image_failing_again_and_the_new_one_passing_again() {
    let lab = Lab::new();
    let first = seen(&lab, &ONCE);
    assert_eq!((first.standing.status, first.standing.maturity), (VerificationStatus::Pending, 0));
    let second = seen(&lab, &ONCE);
    assert_eq!(
        (second.standing.status, second.standing.maturity),
        (VerificationStatus::Verified, 2)
    );
    assert!(
        lab.learner().seen_before(SIGNATURE, "").unwrap().unwrap().words().contains("(verified)")
    );
    // Another new image passes, too: it is counted, and the unit names the two that are proven.
    let other = seen(&lab, &[("a", 'F'), ("c", 'P')]);
    assert_eq!((other.standing.maturity, other.audit.count), (2, 3));
    assert_eq!(other.content, second.content);
    // The new image fails so after all.
    let refuted = seen(&lab, &[("b", 'F')]);
    assert_eq!(
        (refuted.standing.status, refuted.standing.maturity),
        (VerificationStatus::Pending, 1)
    );
    // From then on nothing proves it by itself.
    let again = seen(&lab, &[("b", 'P'), ("a", 'F'), ("b", 'P')]);
    assert_ne!(again.standing.status, VerificationStatus::Verified, "{:?}", again.standing);
}

#[test]
fn another_board_of_the_kind_repeats_the_proof_and_another_kind_does_not() {
    for (board, wanted) in
        [("microbit", VerificationStatus::Verified), ("nrf52840dk", VerificationStatus::Pending)]
    {
        let lab = Lab::new();
        let first = seen(&lab, &ONCE);
        let elsewhere = |run: ObservedRun| ObservedRun {
            place: Some("bench-2".into()),
            board: Some(board.into()),
            ..run
        };
        lab.see(elsewhere(failing("a", &["test_wrap"], &["test_put"])));
        lab.see(elsewhere(passing("b", &["test_wrap", "test_put"])));
        assert_eq!(lab.store().unit(&first.id).unwrap().standing.status, wanted, "{board}");
    }
}

/// What alternates by itself proves no change between two images.
#[test]
fn images_that_come_to_two_ends_verify_no_fix() {
    let flaky_old = [ONCE[0], ("a", 'P'), ONCE[0], ONCE[1], ONCE[0], ONCE[1]];
    let flaky_new = [ONCE[0], ONCE[1], ("b", 'F'), ("b", 'P'), ONCE[0], ONCE[1]];
    let unclear_old = [("a", '?'), ONCE[0], ONCE[1], ONCE[0], ONCE[1]];
    let unclear_new = [ONCE[0], ONCE[1], ("b", '?'), ONCE[0], ONCE[1]];
    let three = [ONCE[0], ONCE[1], ("c", 'F'), ONCE[1]];
    let another_new = [ONCE[0], ONCE[1], ONCE[0], ("c", 'P')];
    let runs: [&[(&str, char)]; 6] =
        [&flaky_old, &flaky_new, &unclear_old, &unclear_new, &three, &another_new];
    for runs in runs {
        let lab = Lab::new();
        let unit = seen(&lab, runs);
        assert_ne!(unit.standing.status, VerificationStatus::Verified, "{runs:?}");
    }
    // One image alone makes no unit of a fix, however it alternates.
    let lab = Lab::new();
    for _ in 0..6 {
        lab.see(failing("a", &["test_wrap"], &["test_put"]));
        lab.see(passing("a", &["test_wrap", "test_put"]));
    }
    let units = lab.store().units_of_signature(SIGNATURE).unwrap();
    assert!(units.iter().all(|unit| unit.audit.trigger == CaptureTrigger::RepeatedFailure));
    // A fix that was believed is so no more when the old image passes.
    let lab = Lab::new();
    seen(&lab, &[ONCE, ONCE].concat());
    let doubted = seen(&lab, &[("a", 'P')]);
    assert_eq!(
        (doubted.standing.status, doubted.standing.maturity),
        (VerificationStatus::Pending, 1)
    );
    // What has passed is a plan of its own, without the test: that says nothing.
    let lab = Lab::new();
    seen(&lab, &[ONCE, ONCE].concat());
    lab.see(passing("a", &["test_put"]));
    assert_eq!(seen(&lab, &[]).standing.maturity, 2);
}

#[test]
fn attempts_that_did_not_help_and_patches_that_help_in_part_are_learnt() {
    let lab = Lab::new();
    let attempts = |count: usize| {
        (0..count)
            .map(|n| ObservedAttempt { patch: format!("x{n}"), signature: Some(SIGNATURE.into()) })
            .collect::<Vec<_>>()
    };
    let of = |name: &str, count| ObservedRepair {
        end: RepairEnd::Unrepaired,
        attempts: attempts(count),
        after: Some(TestTally { passed: 1, total: 3 }),
        ..repair(name, "microbit", "x0")
    };
    assert_eq!(see_repair(&lab, of("r1", 2)).units, []);
    let unit = lab.only(&see_repair(&lab, of("r2", 3)));
    assert_eq!(unit.audit.trigger, CaptureTrigger::RepeatedFailure);
    assert!(unit.content.symptom.contains("3 patches of repair run r2 did not help: x0, x1, x2"));
    let better = ObservedRepair {
        after: Some(TestTally { passed: 7, total: 9 }),
        before: TestTally { passed: 4, total: 9 },
        ..of("r3", 1)
    };
    let unit = lab.only(&see_repair(&lab, better));
    assert_eq!((unit.audit.trigger, unit.standing.maturity), (CaptureTrigger::Partial, 0));
    assert!(unit.content.resolution.contains("7 of 9 tests pass"), "{unit:?}");
}

#[test]
fn as_many_fixes_of_a_class_as_the_threshold_are_a_pattern() {
    let mut lab = Lab::new();
    lab.rules.threshold = 3;
    let of = |n: usize| {
        let mut run = repair(&format!("r{n}"), "microbit", &format!("p{n}"));
        run.failure.signature = format!("test_failed | test_{n}");
        run
    };
    assert_eq!(see_repair(&lab, of(1)).units.len(), 1);
    assert_eq!(see_repair(&lab, of(2)).units.len(), 1);
    let third = see_repair(&lab, of(3));
    let pattern = lab.store().unit(&third.units[1].id).unwrap();
    assert_eq!(pattern.content.title, "3 fixes of test_failed on microbit");
    assert!(pattern.content.root_cause.contains("src/ring.c (3 fixes)"), "{pattern:?}");
}

#[test]
fn a_full_store_makes_no_unit_and_forgets_no_run() {
    let mut lab = Lab::new();
    lab.rules.most_units = 0;
    lab.see(failing("aaaa", &["test_wrap"], &[]));
    let learnt = lab.see(passing("bbbb", &["test_wrap"]));
    assert_eq!((learnt.units.len(), learnt.left_out), (0, 1));
    assert_eq!(lab.learner().seen_before(SIGNATURE, "").unwrap().unwrap().count, 1);
}

#[test]
fn what_a_broken_store_does_not_take_waits_and_is_learnt_once() {
    let lab = Lab::new();
    let path = lab.folder.path().join("knowledge.db");
    std::fs::write(&path, b"this is no database".repeat(100)).unwrap();
    let mut before = failing("aaaa", &["test_wrap"], &[]);
    let mut now = passing("bbbb", &["test_wrap"]);
    (before.run, now.run) = ("a".into(), "b".into());
    now.at = Timestamp::from_second(5).unwrap();
    for run in [&before, &now] {
        let kept = lab.learner().observe(LearningInput::Run(Box::new(run.clone()))).unwrap();
        let Observed::Queued { file, .. } = kept else { panic!("{kept:?}") };
        assert!(!std::fs::read_to_string(file).unwrap().contains("hunter2"));
    }
    assert!(lab.learner().catch_up().is_err());
    std::fs::remove_file(&path).unwrap();
    assert_eq!(lab.learner().catch_up().unwrap(), (2, Vec::new()));
    assert_eq!(lab.learner().catch_up().unwrap(), (0, Vec::new()));
    assert_eq!(lab.store().units_of_signature(SIGNATURE).unwrap().len(), 1);
    let unknown = lab.learner().unknown_of(vec!["a".into(), "c".into()]).unwrap();
    assert_eq!(unknown, ["c"]);
}
