//! The look at the core before the plan itself ends a boot: by a reset, or by taking the power.
//!
//! # Design
//! A core that stands in a fault has failed this boot, and a reset or a power cut would leave nothing
//! of that. So the board is halted, its consoles are read to the end, and the core is looked at as at
//! the end of a run. A boot that has failed already, or belongs to a start of a behaviour that is
//! over, is not looked at.
//!
//! There is no quiet period in front of a switch that another boot follows: the plan says when it
//! takes the power. In front of the last one there is, as at every end.

use std::sync::Arc;

use jig_model::Cause;
use jig_model::plan::{ActionKind, Plan, PowerOp};

use super::Actions;
use crate::attempt::abort_condition::found;
use crate::attempt::after_end::{AwaitedEnd, is_passive};
use crate::attempt::post_mortem::{Examination, image_of, symbols_of};
use crate::judge::ExpectedCrash;
use crate::workflow::ActionFailure;

/// Returns the path of the action by which a plan takes the power at its end, if it does.
pub(in crate::attempt) fn last_off(plan: &Plan) -> Option<String> {
    let stage = plan.stages.last()?;
    let step = stage.steps.last()?;
    let behavior = step.behaviors.last()?;
    let last = behavior.actions.iter().rfind(|action| !is_passive(&action.kind))?;
    let off = matches!(last.kind, ActionKind::Power { op: PowerOp::Off });
    off.then(|| format!("{}/{}/{}/{}", stage.name, step.name, behavior.name, last.name))
}

/// Tells whether an action ends a boot that runs.
pub(in crate::attempt) fn ends_boot(kind: &ActionKind) -> bool {
    match kind {
        ActionKind::Power { op } => matches!(op, PowerOp::Off | PowerOp::Cycle),
        ActionKind::Reset => true,
        _ => false,
    }
}

impl Actions<'_> {
    /// Fails if the core stands in a fault. Else the board runs on.
    pub(super) async fn look_before_switch(&mut self) -> Result<(), ActionFailure> {
        if !self.core_counts() {
            return Ok(());
        }
        self.halt().await?;
        // A failure that is found fails the run anyway.
        drop(self.looked_at_everything().await);
        self.look_at_halted("before the plan ends this boot").await?;
        self.run_on().await
    }

    /// Fails if the core of a halted board, whose consoles are read to the end, stands in a fault that
    /// counts.
    pub(super) async fn look_at_halted(&mut self, when: &str) -> Result<(), ActionFailure> {
        let expected = self.expected_crash() == ExpectedCrash::Last;
        if found(&self.board).is_none() && self.core_counts() && !expected {
            self.look_at_core(when).await?;
        }
        Ok(())
    }

    /// Notes behind which text the plan ends this boot. What a crash that the plan expects prints
    /// belongs to it.
    pub(super) fn note_awaited_end(&mut self) {
        let Some(console) = self.awaited.take() else { return };
        let boot = self.board.boots();
        let cursor = self.cursors.get(&console).filter(|(seen, _)| *seen == boot);
        let Some(at) = cursor.map(|(_, follower)| follower.cursor()) else { return };
        if self.expected_crash() == ExpectedCrash::None {
            self.awaited_ends.push(AwaitedEnd { boot, console, at });
        }
    }

    /// Tells whether there is a core that can be looked at, in a boot that has not failed yet.
    fn core_counts(&self) -> bool {
        let facts = self.board.facts();
        let counts = facts.may_be_looked_at() && !facts.starts_again();
        drop(facts);
        self.protocols.debug.is_some() && self.board.boots() > 0 && counts
    }

    /// Returns what became of a crash that the plan expects in this boot.
    pub(super) fn expected_crash(&self) -> ExpectedCrash {
        let board = &self.board;
        let file = board.lines.get(&board.results).map(|line| line.file.as_str());
        let progress = self.watched.get(&board.results).map(|progress| *progress.borrow());
        let end = progress.filter(|progress| progress.boots == board.boots());
        let end = end.and_then(|progress| Some((file?, progress.ended_at?)));
        board.facts().expected_crash(end)
    }

    /// Has the image read that a look at the core will want.
    pub(super) fn read_ahead(&mut self) {
        let image = symbols_of(image_of(self.images, self.deployed.as_ref()));
        if let (Some(debug), Some(image)) = (&mut self.protocols.debug, image) {
            debug.read_ahead(&image);
        }
    }

    /// Has the core of a halted board read that is about to be looked at.
    pub(super) fn look_ahead(&mut self) {
        if self.core_counts()
            && let Some(debug) = &mut self.protocols.debug
        {
            debug.look_ahead();
        }
    }

    async fn look_at_core(&mut self, when: &str) -> Result<(), ActionFailure> {
        let board = Arc::clone(&self.board);
        let expected_crash = self.expected_crash();
        let examination = Examination {
            dir: self.dir,
            attempt: self.attempt,
            evidence: self.evidence,
            cancel: self.cancel,
        };
        let image = image_of(self.images, self.deployed.as_ref());
        let Some(debug) = self.protocols.debug.as_deref_mut() else { return Ok(()) };
        let control = self.protocols.control.as_deref_mut();
        let finding = examination.look(&board, (&mut *debug, control), image).await;
        let proven = finding.as_ref().and_then(|finding| finding.proves);
        let taken = finding.as_ref().and_then(|finding| finding.taken);
        let proven = match expected_crash.excuses(taken) {
            Some(false) => proven,
            Some(true) => None,
            None => proven.map(|_| Cause::Unconfirmed),
        };
        let Some(
            cause @ (Cause::CoreFault | Cause::Lockup | Cause::GuestPanic | Cause::Unconfirmed),
        ) = proven
        else {
            debug.watch_on().await;
            return Ok(());
        };
        let range = finding.as_ref().map(|finding| finding.range.clone()).unwrap_or_default();
        self.core = finding;
        let stands = if cause == Cause::Unconfirmed { "may stand" } else { "stands" };
        let detail = format!("{when}, the processor {stands} in a fault: {}", range.text);
        Err(ActionFailure { cause, detail, evidence: vec![range.evidence()] })
    }
}
