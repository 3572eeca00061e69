//! What a run does after each attempt, each known-good image and each recovery. Pure.
//!
//! # Design
//! An attempt has one of three results.
//!
//! - **An observed result**: a pass, a failed case, a fault. It counts.
//! - **A rig failure**: the attempt does not count. The rig is recovered and the test is attempted
//!   again, once per recovery. A crash or a failed test that the attempt showed nevertheless is kept:
//!   a retry that passes is `unconfirmed`.
//! - **A missing result**: silence, no end of the report, a reset. An exit code and a flood count
//!   as missing, too, because no console output confirms them. The known-good image shows whether
//!   the rig works now, but not whether it worked during the attempt, so the test is attempted
//!   again. A result that is missing twice, with a working rig in between, is reported as a failure
//!   of the firmware. A result that appears only on the retry is reported as `unconfirmed`, never
//!   as a pass. A run retries once for a missing result.
//!
//! There are three exceptions. Output in no known format that ended long before its wait was seen
//! as a whole, so another attempt would show nothing else. An attempt without the build id that its image announces may have run
//! another image, so it does not count, and the next attempt decides alone. Garbage on a transport
//! makes an attempt a rig failure, until it returns on a rig on which the known-good image has
//! passed: then the firmware prints it. A retry that passes counts only if the transport reported
//! errors and the readable text showed no failure; else it is `unconfirmed`.

use jig_model::result::CaseStatus;
use jig_model::{Cause, Note, Verdict, VerdictKind};

use super::known_good::KnownGoodResult;
use super::run_ladder::LadderOutcome;
use crate::attempt::Believed;

/// What a verdict may be due to, before it is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Suspicion {
    /// Neither: the evidence names the cause, or no recovery helps.
    Neither,
    /// The rig: it is recovered, and the test is attempted again.
    Rig,
    /// The firmware or the rig: either may have prevented what is missing. A known-good image on
    /// the same place decides.
    Either,
}

/// Returns what a verdict may be due to.
///
/// An observed failure, such as a failed case or a fault, is due to the firmware. A missing result
/// proves nothing by itself: a loose cable and a weak supply cause silence and resets, too.
fn suspicion(verdict: &Verdict) -> Suspicion {
    match verdict.cause {
        // A verdict on several attempts was examined when they were made.
        Cause::Passed | Cause::ExpectationsMet | Cause::Flaky | Cause::Unconfirmed => {
            Suspicion::Neither
        }
        Cause::Cancelled | Cause::Abandoned => Suspicion::Neither,

        Cause::TestFailed
        | Cause::SummaryFailed
        | Cause::FaultBanner
        | Cause::CoreFault
        | Cause::Lockup
        | Cause::GuestPanic
        | Cause::AssertFailed
        | Cause::HostCommandFailed
        | Cause::CommandFailed
        | Cause::TransferFailed
        | Cause::SuspiciousOutput
        | Cause::NothingExpected => Suspicion::Neither,

        // An exit code comes from the emulator process, and line noise can be a flood: no console
        // output confirms either.
        Cause::GuestExit
        | Cause::TargetAborted
        | Cause::OutputFlood
        | Cause::WatchdogReset
        | Cause::UnexpectedReset
        | Cause::BootLoop
        | Cause::Hang
        | Cause::ExpectMissed
        | Cause::RebootFailed
        | Cause::ShellLost
        | Cause::NoOutput
        | Cause::NoResults
        | Cause::NoTests
        | Cause::PlanMismatch
        | Cause::ReportIncomplete
        | Cause::IdentityMissing
        | Cause::GoalMissed => Suspicion::Either,

        Cause::OutputLost
        | Cause::WrongImage
        | Cause::EmulatorRefused
        | Cause::EmulatorKilled
        | Cause::EmulatorExited
        | Cause::EmulatorStuck
        | Cause::ProbeMissing
        | Cause::ProbeBusy
        | Cause::ProbeLost
        | Cause::TargetUnresponsive
        | Cause::RigUnhealthy
        | Cause::ConsoleLost
        | Cause::ShellUnreachable
        | Cause::DeployFailed
        | Cause::PowerFailed
        | Cause::PowerUnreachable
        | Cause::PowerMismatch
        | Cause::StorageFailed => Suspicion::Rig,

        // Only a person can change these: the chip, its protection, the installed programs.
        Cause::ChipProtected
        | Cause::WrongChip
        | Cause::ShellRefused
        | Cause::EmulatorMissing
        | Cause::HostCommandMissing
        | Cause::HostCommandRefused
        | Cause::PlannerFailed
        | Cause::InternalError => Suspicion::Neither,
    }
}

/// What is done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextAction {
    /// The known-good image is run.
    Control,
    /// The rig is recovered.
    Recover,
    /// The test is attempted again, and the last attempt does not count.
    Again,
    /// The test is not attempted again.
    Done,
}

/// The verdict on the attempts of a test so far, and what is done next.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RetryStep {
    /// The verdict on the last attempt; at the end, the verdict on all attempts.
    pub(super) verdict: Verdict,
    pub(super) next: NextAction,
}

/// What is known of the attempts of a run.
#[derive(Debug)]
pub(super) struct RetryPolicy {
    /// How many more times the rig may be recovered.
    max_recoveries: u32,
    /// Whether the known-good image is run after a missing result, and the test attempted again.
    looks_again: bool,
    /// This run has retried for a missing result already.
    asked: bool,
    /// There was garbage on a transport already.
    garbled: bool,
    /// A known-good image has failed where the test had shown something else.
    unmasked: bool,
    /// A known-good image has passed since, or at all.
    vouched: bool,
    /// The verdict of the attempt with a missing result, if this test had one.
    first: Option<Verdict>,
    /// What an attempt with a rig failure showed of a failure of the target nevertheless.
    doubted: Option<Verdict>,
    /// The recoveries between the attempts of this test.
    recovers: Vec<Note>,
}

impl RetryPolicy {
    /// Begins a run in which the rig may be recovered this often. Zero means a single attempt,
    /// whose verdict stands: no known-good image is run, either.
    pub(super) fn new(max_recoveries: u32) -> Self {
        Self {
            max_recoveries,
            looks_again: max_recoveries > 0,
            asked: false,
            garbled: false,
            unmasked: false,
            vouched: false,
            first: None,
            doubted: None,
            recovers: Vec::new(),
        }
    }

    /// Begins the first attempt of a test, or of a repetition of it.
    pub(super) fn begin(&mut self) {
        (self.first, self.doubted) = (None, None);
        self.recovers.clear();
    }

    /// Records that a known-good image has passed, here or as the proof of a recovery.
    pub(super) fn vouch(&mut self) {
        self.vouched = true;
    }

    /// Decides after an attempt. `believed` is its verdict if the transport is trusted, where
    /// `verdict` says that it is not.
    pub(super) fn attempted(&mut self, verdict: Verdict, believed: Option<Believed>) -> RetryStep {
        let verdict = match believed {
            Some(believed) if std::mem::replace(&mut self.garbled, true) && self.vouched => {
                noted(believed.verdict, Note::GarbageAgain)
            }
            Some(believed) => {
                if shows_failure(&believed) {
                    self.doubted.get_or_insert(with_failure(believed));
                } else {
                    let Verdict { cause, summary, .. } = believed.verdict;
                    self.recovers.push(Note::Shown { cause, summary });
                }
                verdict
            }
            None => verdict,
        };
        match suspicion(&verdict) {
            Suspicion::Neither => self.seen(verdict),
            Suspicion::Rig => self.spoiled(verdict),
            // Without a retry, the known-good image would decide nothing.
            Suspicion::Either if !self.looks_again => self.missed(verdict),
            Suspicion::Either => RetryStep { verdict, next: NextAction::Control },
        }
    }

    /// Keeps the failure of the target that an attempt showed whose verdict blames the rig.
    pub(super) fn shown(&mut self, failure: Verdict) {
        self.doubted.get_or_insert(failure);
    }

    /// Decides after an attempt whose target has printed all that it prints, in no known format:
    /// another attempt would show the same.
    pub(super) fn printed_out(&mut self, verdict: Verdict) -> RetryStep {
        self.seen(verdict)
    }

    /// Tells whether an attempt with garbage on a transport is retried, whatever it shows.
    pub(super) fn makes_garbled_again(&self) -> bool {
        self.max_recoveries > 0 && !self.garbled
    }

    /// Tells whether the known-good image has failed, passed and failed again.
    pub(super) fn contradicts_itself(&self, control: &KnownGoodResult) -> bool {
        matches!(control, KnownGoodResult::Failed(_)) && self.unmasked && self.vouched
    }

    /// Decides after the known-good image, which followed an attempt with this verdict.
    pub(super) fn controlled(&mut self, verdict: Verdict, control: KnownGoodResult) -> RetryStep {
        let contradicts = self.contradicts_itself(&control);
        match control {
            KnownGoodResult::Cancelled => self.done(undecided(verdict)),
            KnownGoodResult::Failed(failure) if contradicts => {
                let failure = failure.to_string();
                self.missed(noted(verdict, Note::KnownGoodContradicts { failure }))
            }
            KnownGoodResult::Failed(failure) => {
                (self.unmasked, self.vouched) = (true, false);
                self.spoiled(the_rigs(verdict, failure.to_string()))
            }
            KnownGoodResult::Passed(image) => {
                self.vouch();
                self.missed(noted(verdict, Note::KnownGoodPassed { image }))
            }
            KnownGoodResult::Unreliable(failure) => {
                let failure = failure.to_string();
                self.missed(noted(verdict, Note::KnownGoodContradicts { failure }))
            }
            KnownGoodResult::None => self.missed(verdict),
        }
    }

    /// Decides after a recovery, which followed an attempt with this verdict.
    pub(super) fn recovered(&mut self, verdict: Verdict, outcome: &LadderOutcome) -> RetryStep {
        self.vouched |= outcome.vouched;
        match outcome.recovered_by {
            Some(step) => {
                let after = verdict.cause;
                self.recovers.push(Note::Recovered { step, after });
                self.recovers.extend(discarded_failure(&verdict));
                RetryStep { verdict, next: NextAction::Again }
            }
            None if outcome.cancelled => {
                let words = "a stop was requested while the rig was recovered";
                self.done(Verdict::of(Cause::Cancelled, words))
            }
            None => {
                let detail = outcome.detail.clone();
                self.done(noted(verdict, Note::NotRecovered { detail }))
            }
        }
    }

    /// Ends a test whose run cannot be recorded any more: another attempt would leave nothing, and no
    /// recovery of the rig brings a deleted folder back.
    pub(super) fn unrecorded(&mut self, verdict: Verdict) -> RetryStep {
        self.done(verdict)
    }

    /// The rig failed.
    fn spoiled(&mut self, verdict: Verdict) -> RetryStep {
        match self.max_recoveries.checked_sub(1) {
            Some(left) => {
                self.max_recoveries = left;
                RetryStep { verdict, next: NextAction::Recover }
            }
            None => self.done(verdict),
        }
    }

    /// A result is missing, and nothing shows that the rig caused it.
    fn missed(&mut self, verdict: Verdict) -> RetryStep {
        if let Some(first) = self.first.take() {
            // The verdict that shows more stands: a target that printed and stopped, over a silent
            // one.
            let weaker = first.kind == VerdictKind::Fail && verdict.kind != VerdictKind::Fail;
            let (mut told, other) = if weaker { (first, verdict) } else { (verdict, first) };
            told.notes.extend(other.notes);
            told.notes.dedup();
            return self.done(noted(told, Note::MissingAgain));
        }
        if !self.looks_again || std::mem::replace(&mut self.asked, true) {
            return self.done(verdict);
        }
        self.first = Some(verdict.clone());
        RetryStep { verdict, next: NextAction::Again }
    }

    /// A result was observed.
    fn seen(&mut self, verdict: Verdict) -> RetryStep {
        let passed = verdict.kind == VerdictKind::Pass;
        let doubted = if passed { self.doubted.take() } else { None };
        let verdict = match self.first.take().or(doubted) {
            Some(first) if verdict.kind == VerdictKind::Pass => together(first, verdict),
            Some(_) | None => verdict,
        };
        self.done(verdict)
    }

    fn done(&mut self, mut verdict: Verdict) -> RetryStep {
        if let Some(Verdict { cause, summary, .. }) = self.doubted.take()
            && cause != verdict.cause
        {
            verdict.notes.push(Note::Shown { cause, summary });
        }
        verdict.notes.append(&mut self.recovers);
        RetryStep { verdict, next: NextAction::Done }
    }
}

/// Tells whether an attempt with garbage on a transport showed a failure. Where the transport reported
/// nothing, the firmware may have printed the garbage, so what is missing counts. Else a failure in
/// readable text does: a summary that counts failures, a line that looks like a failed test or a crash,
/// or a report that began and stopped without garbage behind it. Text that never came shows nothing.
fn shows_failure(Believed { verdict, reported, garbage_last, failure }: &Believed) -> bool {
    if !reported && verdict.kind != VerdictKind::Pass {
        return true;
    }
    let began = verdict.tests.format.is_some() && !garbage_last;
    let stopped = began && (verdict.kind == VerdictKind::Fail || !verdict.tests.ended);
    verdict.cause == Cause::SummaryFailed || failure.is_some() || stopped
}

/// Returns the verdict with the line that looks like a failure.
fn with_failure(Believed { mut verdict, failure, .. }: Believed) -> Verdict {
    if let Some(line) = failure {
        let text = &line.text;
        verdict.summary = format!("{}; the target printed: {text}", verdict.summary.trim_end());
        verdict.evidence.insert(0, line.evidence());
    }
    verdict
}

/// Returns a note on failed tests that an attempt with a rig failure showed, or on a report that it
/// began and did not end: it does not count, but a reader of the retry's result wants to know.
fn discarded_failure(verdict: &Verdict) -> Option<Note> {
    let failed = verdict.tests.count(CaseStatus::Fail);
    let mut cases = verdict.tests.cases.iter();
    if let Some(first) = cases.find(|case| case.status == CaseStatus::Fail) {
        let summary = format!("{failed} failed, first {}", first.name);
        return Some(Note::Shown { cause: Cause::TestFailed, summary });
    }
    let claimed = verdict.tests.claimed_failures.filter(|&claimed| claimed > 0);
    let Some(claimed) = claimed else {
        let last = verdict.tests.cases.last().filter(|_| !verdict.tests.ended)?;
        let summary = format!("a report began, and its last result was {}", last.name);
        return Some(Note::Shown { cause: Cause::ReportIncomplete, summary });
    };
    let summary = format!("the target's own summary claimed {claimed} failed");
    Some(Note::Shown { cause: Cause::SummaryFailed, summary })
}

fn noted(mut verdict: Verdict, note: Note) -> Verdict {
    verdict.notes.push(note);
    verdict
}

/// Combines an attempt with a missing result and a retry that passed.
fn together(first: Verdict, mut passed: Verdict) -> Verdict {
    if first.cause == Cause::IdentityMissing {
        passed.notes.insert(0, Note::NotIdentified);
        return passed;
    }
    let Verdict { cause, summary, evidence, tests, notes, .. } = first;
    let summary = format!(
        "{cause}: {summary}; made again, it passed: it happens only now and then, or output was lost \
         on the way (find out: --repeat 10)"
    );
    Verdict { evidence, tests, notes, ..Verdict::of(Cause::Unconfirmed, summary) }
}

/// Returns the verdict of a run that was cancelled before the known-good image had decided.
fn undecided(shown: Verdict) -> Verdict {
    instead(
        shown,
        Cause::Cancelled,
        "cancelled before it was known whether the rig or the firmware had failed",
    )
}

/// Returns the verdict that blames the rig, with what the test had shown as a note.
fn the_rigs(shown: Verdict, words: String) -> Verdict {
    instead(shown, Cause::RigUnhealthy, words)
}

fn instead(shown: Verdict, cause: Cause, words: impl Into<String>) -> Verdict {
    let seen = Note::Shown { cause: shown.cause, summary: shown.summary.clone() };
    let Verdict { evidence, notes, .. } = noted(shown, seen);
    Verdict { evidence, notes, ..Verdict::of(cause, words) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jig_model::Fault;
    use jig_model::recovery::RecoveryStep;
    use proptest::prelude::*;

    use super::*;
    use crate::judge::ByteRange;
    use crate::session::step_outcome::KnownGoodFailure;

    /// What happens next in a script.
    #[derive(Debug, Clone)]
    enum Scene {
        /// The test is attempted.
        Test(Cause),
        /// The test is attempted on a transport with garbage; this is its cause without the
        /// garbage.
        Garbled(Cause),
        /// The same, and the transport reports characters with errors.
        Reported(Cause),
        /// The known-good image is run.
        Says(KnownGoodResult),
        /// The rig is recovered, by a known-good image's proof or without one.
        Recover { recovered: bool, vouched: bool },
    }

    use Scene::{Garbled, Reported, Says, Test};

    const RECOVERED: Scene = Scene::Recover { recovered: true, vouched: true };

    fn good() -> Scene {
        Says(KnownGoodResult::Passed("good".to_owned()))
    }

    fn failed() -> KnownGoodResult {
        let (image, summary) = ("good.elf".to_owned(), String::new());
        KnownGoodResult::Failed(KnownGoodFailure { image, cause: Cause::Hang, summary })
    }

    fn bad() -> Scene {
        Says(failed())
    }

    fn fickle() -> Scene {
        let KnownGoodResult::Failed(failure) = failed() else { unreachable!() };
        Says(KnownGoodResult::Unreliable(failure))
    }

    fn ladder_ended(recovered: bool, vouched: bool) -> LadderOutcome {
        LadderOutcome {
            recovered_by: recovered.then_some(RecoveryStep::Reopen),
            detail: "asked".to_owned(),
            took: Duration::ZERO,
            vouched,
            cancelled: false,
        }
    }

    fn garbage() -> Verdict {
        Verdict::of(Cause::OutputLost, "garbage")
    }

    fn believed(cause: Cause, reported: bool) -> Believed {
        let verdict = Verdict::of(cause, "shown");
        Believed { verdict, reported, garbage_last: false, failure: None }
    }

    /// Plays one test out of a script that must fit; returns its verdict.
    fn turn(retries: &mut RetryPolicy, script: &mut impl Iterator<Item = Scene>) -> Verdict {
        retries.begin();
        let mut step =
            RetryStep { verdict: Verdict::of(Cause::NoResults, ""), next: NextAction::Again };
        loop {
            let RetryStep { verdict, next } = step;
            step = match (next, (next != NextAction::Done).then(|| script.next()).flatten()) {
                (NextAction::Done, _) => return verdict,
                (NextAction::Again, Some(Test(cause))) => {
                    retries.attempted(Verdict::of(cause, "shown"), None)
                }
                (NextAction::Again, Some(Garbled(cause))) => {
                    retries.attempted(garbage(), Some(believed(cause, false)))
                }
                (NextAction::Again, Some(Reported(cause))) => {
                    retries.attempted(garbage(), Some(believed(cause, true)))
                }
                (NextAction::Control, Some(Says(control))) => retries.controlled(verdict, control),
                (NextAction::Recover, Some(Scene::Recover { recovered, vouched })) => {
                    retries.recovered(verdict, &ladder_ended(recovered, vouched))
                }
                (next, scene) => panic!("{next:?} is asked for, {scene:?} comes"),
            };
        }
    }

    fn amounts_to(max_recoveries: u32, script: &[Scene]) -> Verdict {
        let mut script = script.iter().cloned();
        let verdict = turn(&mut RetryPolicy::new(max_recoveries), &mut script);
        assert!(script.next().is_none(), "over too early: {verdict:?}");
        verdict
    }

    #[test]
    fn a_turn_amounts_to_what_is_proven_in_it() {
        use Cause::*;
        let none = || Says(KnownGoodResult::None);
        let given_up = Scene::Recover { recovered: false, vouched: false };
        for (script, wanted) in [
            // Observed results count.
            (vec![Test(Passed)], Passed),
            (vec![Test(TestFailed)], TestFailed),
            // An attempt with a rig failure does not count.
            (vec![Test(EmulatorKilled), RECOVERED, Test(Passed)], Passed),
            (vec![Test(EmulatorKilled), RECOVERED, Test(TestFailed)], TestFailed),
            (vec![Test(EmulatorKilled), given_up], EmulatorKilled),
            // A result that is missing twice is a failure; the verdict that shows more stands.
            (vec![Test(Hang), good(), Test(Hang), good()], Hang),
            (vec![Test(Hang), good(), Test(NoOutput), good()], Hang),
            (vec![Test(NoOutput), good(), Test(Hang), good()], Hang),
            (
                vec![Test(ReportIncomplete), none(), Test(ReportIncomplete), none()],
                ReportIncomplete,
            ),
            // A pass on the retry is unconfirmed; an observed failure stands.
            (vec![Test(Hang), good(), Test(Passed)], Unconfirmed),
            (vec![Test(UnexpectedReset), good(), Test(Passed)], Unconfirmed),
            (vec![Test(PlanMismatch), good(), Test(TestFailed)], TestFailed),
            (vec![Test(IdentityMissing), good(), Test(Passed)], Passed),
            // A recovery in between does not explain a result that was missing before it.
            (vec![Test(Hang), good(), Test(EmulatorKilled), RECOVERED, Test(Passed)], Unconfirmed),
            // A failing known-good image blames the rig, until it contradicts itself.
            (vec![Test(Hang), bad(), RECOVERED, Test(Passed)], Passed),
            (vec![Test(Hang), bad(), RECOVERED, Test(Hang), bad(), Test(Hang), bad()], Hang),
            // One that passes and fails says nothing.
            (vec![Test(Hang), fickle(), Test(Hang), none()], Hang),
            (vec![Test(Hang), fickle(), Test(Passed)], Unconfirmed),
            // Garbage blames the transport, until it returns on a good one. Without a report of the
            // transport it excuses nothing that is missing.
            (vec![Reported(Hang), RECOVERED, Test(Passed)], Passed),
            (vec![Garbled(Hang), RECOVERED, Test(Passed)], Unconfirmed),
            (vec![Garbled(NoResults), RECOVERED, Test(Passed)], Unconfirmed),
            (vec![Garbled(ReportIncomplete), RECOVERED, Test(Passed)], Unconfirmed),
            (vec![Garbled(IdentityMissing), RECOVERED, Test(Passed)], Passed),
            (vec![Garbled(TestFailed), RECOVERED, Garbled(TestFailed)], TestFailed),
            (vec![Garbled(Hang), RECOVERED, Garbled(Hang), good(), Garbled(Hang), good()], Hang),
        ] {
            let found = amounts_to(2, &script);
            assert_eq!(found.cause, wanted, "{script:?}");
        }
    }

    #[test]
    fn who_wants_one_attempt_gets_one() {
        for cause in [Cause::Passed, Cause::EmulatorKilled, Cause::Hang, Cause::GuestExit] {
            assert_eq!(amounts_to(0, &[Test(cause)]).cause, cause);
        }
    }

    #[test]
    fn a_run_of_many_turns_asks_once_for_what_was_not_seen() {
        let mut retries = RetryPolicy::new(2);
        let mut script = [
            [Test(Cause::Hang), good(), Test(Cause::Passed)].as_slice(),
            &[Test(Cause::Passed)],
            &[Test(Cause::Hang), good()],
            // The known-good image still runs.
            &[Test(Cause::Hang), bad(), RECOVERED, Test(Cause::Passed)],
        ]
        .concat()
        .into_iter();
        let causes: Vec<_> = (0..4).map(|_| turn(&mut retries, &mut script).cause).collect();
        use Cause::{Hang, Passed, Unconfirmed};
        assert_eq!(causes, [Unconfirmed, Passed, Hang, Passed]);
        assert!(script.next().is_none());
    }

    #[test]
    fn whoever_stops_is_told_what_was_seen() {
        let stopped = amounts_to(2, &[Test(Cause::Hang), Says(KnownGoodResult::Cancelled)]);
        assert_eq!(
            (stopped.cause, stopped.notes[0].to_string().as_str()),
            (Cause::Cancelled, "the test had shown: hang: shown")
        );
        let recovered = amounts_to(2, &[Test(Cause::ProbeLost), RECOVERED, Test(Cause::Passed)]);
        assert_eq!(recovered.notes, ["the rig was recovered by reopen after probe_lost"]);
    }

    #[test]
    fn a_failure_in_readable_text_beside_garbage_is_never_forgotten() {
        use jig_model::result::{ResultFormat, TestReport};
        let unity = Some(ResultFormat::Unity);
        let end = |ended| TestReport { format: unity, ended, ..TestReport::default() };
        let none = TestReport::default;
        for (cause, tests, garbage_last, line, ended) in [
            (Cause::Hang, end(false), false, false, Cause::Unconfirmed),
            (Cause::SummaryFailed, end(true), false, false, Cause::Unconfirmed),
            (Cause::ReportIncomplete, end(false), false, false, Cause::Unconfirmed),
            (Cause::PlanMismatch, end(false), false, false, Cause::Unconfirmed),
            // The case that is missing may be lost in the garbage.
            (Cause::PlanMismatch, end(true), false, false, Cause::Passed),
            // The rest of the report may be lost in the garbage.
            (Cause::Hang, end(false), true, false, Cause::Passed),
            (Cause::ReportIncomplete, end(false), true, false, Cause::Passed),
            // Nothing was read, so nothing was seen to fail.
            (Cause::Hang, none(), false, false, Cause::Passed),
            (Cause::NoResults, none(), false, false, Cause::Passed),
            // A line was read that looks like a failed test or a crash.
            (Cause::NoResults, none(), true, true, Cause::Unconfirmed),
            (Cause::PlanMismatch, end(true), false, true, Cause::Unconfirmed),
        ] {
            let mut retries = RetryPolicy::new(3);
            retries.begin();
            let verdict = Verdict { tests, ..Verdict::of(cause, "it said so") };
            let text = "3 tests failed".to_owned();
            let failure = line.then(|| ByteRange { text, ..ByteRange::default() });
            let believed = Believed { verdict, reported: true, garbage_last, failure };
            let doubt = Verdict::of(Cause::OutputLost, "garbage");
            let step = retries.attempted(doubt, Some(believed));
            assert_eq!(step.next, NextAction::Recover);
            let step = retries.recovered(step.verdict, &ladder_ended(true, false));
            assert_eq!(step.next, NextAction::Again);
            let verdict = retries.attempted(Verdict::of(Cause::Passed, ""), None).verdict;
            assert_eq!(verdict.cause, ended, "{cause}");
            let notes: String = verdict.notes.iter().map(|note| format!("{note}\n")).collect();
            let told = verdict.summary + &notes;
            assert!(told.contains("it said so"), "{told}");
            assert_eq!(told.contains("3 tests failed"), line, "{told}");
        }
    }

    #[test]
    fn a_failure_that_was_shown_before_the_rig_failed_is_never_forgotten() {
        for (retry, ended) in
            [(Cause::Passed, Cause::Unconfirmed), (Cause::TestFailed, Cause::TestFailed)]
        {
            let mut retries = RetryPolicy::new(3);
            retries.begin();
            retries.shown(Verdict::of(Cause::FaultBanner, "it crashed"));
            let step = retries.attempted(Verdict::of(Cause::RigUnhealthy, "starved"), None);
            retries.recovered(step.verdict, &ladder_ended(true, true));
            let verdict = retries.attempted(Verdict::of(retry, ""), None).verdict;
            let notes: String = verdict.notes.iter().map(|note| format!("{note}\n")).collect();
            let told = format!("{} {notes}", verdict.summary);
            assert_eq!(verdict.cause, ended, "{told}");
            assert!(told.contains("it crashed"), "{told}");
            // The next test of the run begins anew.
            retries.begin();
            let next = retries.attempted(Verdict::of(Cause::Passed, ""), None).verdict;
            assert_eq!(next.cause, Cause::Passed);
        }
    }

    #[test]
    fn a_pass_behind_a_rig_failure_tells_of_failed_tests_before() {
        use jig_model::result::{TestCase, TestReport};
        let case = TestCase {
            name: "test_b".to_owned(),
            status: CaseStatus::Fail,
            message: None,
            duration_ms: None,
            start: 0,
            end: 1,
        };
        let failed = TestReport { cases: vec![case], ..TestReport::default() };
        let claimed = TestReport { claimed_failures: Some(2), ..TestReport::default() };
        for (tests, words) in [
            (failed, "test_failed: 1 failed, first test_b"),
            (claimed, "summary_failed: the target's own summary claimed 2 failed"),
        ] {
            let lost = Verdict { tests, ..Verdict::of(Cause::EmulatorKilled, "") };
            let mut retries = RetryPolicy::new(3);
            retries.begin();
            let step = retries.attempted(lost, None);
            retries.recovered(step.verdict, &ladder_ended(true, true));
            let verdict = retries.attempted(Verdict::of(Cause::Passed, ""), None).verdict;
            let notes: String = verdict.notes.iter().map(|note| format!("{note}\n")).collect();
            assert!(notes.contains(words), "{notes}");
        }
    }

    #[test]
    fn the_rig_is_suspected_exactly_where_the_lab_is_to_blame_and_can_be_repaired() {
        for &cause in Cause::ALL {
            let found = suspicion(&Verdict::of(cause, ""));
            match cause.fault() {
                None | Some(Fault::Cancelled | Fault::Bug | Fault::Unknown) => {
                    assert_eq!(found, Suspicion::Neither, "{cause}");
                }
                Some(Fault::Target) => assert_ne!(found, Suspicion::Rig, "{cause}"),
                Some(Fault::Lab) => assert_ne!(found, Suspicion::Either, "{cause}"),
                Some(other) => panic!("{cause} is blamed on {other:?}"),
            }
            // An inconclusive verdict is accepted at once only where something was observed.
            let observed = matches!(
                cause,
                Cause::Unconfirmed | Cause::SuspiciousOutput | Cause::NothingExpected
            );
            if cause.verdict() == VerdictKind::Inconclusive && !observed {
                assert_ne!(found, Suspicion::Neither, "{cause}");
            }
        }
    }

    proptest! {
        /// Whatever a test shows and whatever the rig does, its attempts end. It passes only if the
        /// last attempt passed and no earlier one had a missing result; an observed failure is
        /// never turned into anything better.
        #[test]
        fn no_turn_is_endless_or_better_than_its_attempts(
            shown in proptest::collection::vec((0..Cause::ALL.len(), any::<bool>()), 16),
            controls in proptest::collection::vec(0..3_u8, 16),
            recovers in proptest::collection::vec(any::<(bool, bool)>(), 4),
            max_recoveries in 0..4_u32,
        ) {
            let mut retries = RetryPolicy::new(max_recoveries);
            retries.begin();
            let (mut shown, mut controls) = (shown.into_iter(), controls.into_iter());
            let mut recovers = recovers.into_iter();
            let mut last = Cause::Passed;
            let mut missing = false;
            let mut step = RetryStep { verdict: Verdict::of(Cause::NoResults, ""), next: NextAction::Again };
            let verdict = loop {
                let RetryStep { verdict, next } = step;
                step = match next {
                    NextAction::Done => break verdict,
                    NextAction::Again => {
                        let (index, garbled) = shown.next().expect("an endless turn");
                        last = Cause::ALL[index];
                        match garbled {
                            true => {
                                retries.attempted(garbage(), Some(believed(last, false)))
                            }
                            false => retries.attempted(Verdict::of(last, ""), None),
                        }
                    }
                    NextAction::Control => {
                        let control = match controls.next().expect("an endless turn") {
                            0 => KnownGoodResult::None,
                            1 => KnownGoodResult::Passed(String::new()),
                            _ => failed(),
                        };
                        let identity = verdict.cause == Cause::IdentityMissing;
                        let step = retries.controlled(verdict, control);
                        missing |= step.next == NextAction::Again && !identity;
                        step
                    }
                    NextAction::Recover => {
                        let (recovered, vouched) = recovers.next().expect("more recoveries than allowed");
                        retries.recovered(verdict, &ladder_ended(recovered, vouched))
                    }
                };
            };
            if verdict.kind == VerdictKind::Pass {
                prop_assert_eq!(last.verdict(), VerdictKind::Pass);
                prop_assert!(!missing);
            }
            if suspicion(&Verdict::of(last, "")) == Suspicion::Neither
                && last.verdict() == VerdictKind::Fail
                && verdict.cause != Cause::OutputLost
            {
                prop_assert_eq!(verdict.cause, last);
            }
        }
    }
}
