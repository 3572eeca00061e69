//! The state of a run: what its journal amounts to. Pure.
//!
//! The fold uses the same table of transitions as the driver, so a journal that the machine could
//! not have written is refused and not repaired.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::breaker::CircuitBreaker;
use crate::convergence::TestCounts;
use crate::journal::{
    Contract, Digest, Entry, Fact, FailedBaseline, Intent, Outcome, Proposed, Request, Row,
    StepResult, SubmittedPatch, Usage,
};
use crate::machine::{IllegalRepairEvent, RepairEvent, RepairState, RepairSubState, next};
use crate::proof::ProofFacts;
use crate::recovery::{ErrorClass, RecoveryAction};
use crate::test_code::TestCode;

/// Says why rows are not the journal of a run.
#[derive(Debug, thiserror::Error)]
pub enum FoldError {
    /// The first row does not begin a run, or a later one does.
    #[error("row {0}: a run is begun by its first row and by no other")]
    Beginning(u64),
    /// An outcome has no intent, or another one.
    #[error("row {seq}: {found} has an outcome, and the run is in {expected}")]
    WrongState {
        /// The row.
        seq: u64,
        /// State of the row.
        found: RepairState,
        /// State of the run.
        expected: RepairState,
    },
    /// An outcome moves the run in a way that the table does not hold.
    #[error("row {seq}")]
    Illegal {
        /// The row.
        seq: u64,
        /// Why.
        #[source]
        source: IllegalRepairEvent,
    },
}

/// A tested candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The iteration.
    pub iteration: u64,
    /// The run of the plan.
    pub run: String,
    /// The rung of the ladder of agents that proposed it.
    pub strategy: u64,
    /// Identity of its patch.
    pub patch: String,
    /// It shows where the failure is, and is never part of a repair.
    pub diagnostic: bool,
    /// Its tests.
    pub counts: TestCounts,
    /// Signature of the failure; `None` where all tests passed.
    pub signature: Option<String>,
}

/// A proposal that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedProposal {
    /// The iteration.
    pub iteration: u64,
    /// Identity of the change; empty where it is not even a patch.
    pub patch: String,
    /// Why; may quote hostile text.
    pub why: String,
}

/// An error, and where it occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepError {
    /// Its class.
    pub class: ErrorClass,
    /// The state that failed.
    pub state: RepairState,
    /// Errors of this class before it since the last finished iteration.
    pub retries: u32,
}

/// The state of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Run {
    /// What it is held to.
    pub contract: Contract,
    /// When it began, in milliseconds since 1970.
    pub begun_ms: u64,
    /// For how long nothing drove it, or it waited for an answer, in milliseconds.
    pub idle_ms: u64,
    /// Number of the last row.
    pub seq: u64,
    /// Hash of the last row.
    pub hash: Digest,
    /// Where it stands.
    pub state: RepairState,
    /// The part of the state that is next, where it has parts.
    pub part: Option<RepairSubState>,
    /// Why it came to its state: the reason of the last outcome with an event.
    pub why: String,
    /// How it ended.
    pub ended: Option<RepairState>,
    /// A step that was begun and has no outcome.
    pub begun_step: Option<Intent>,
    /// Number of the iteration, from 1.
    pub iteration: u64,
    /// How often the strategy was switched: the next agent of the list is asked.
    pub strategy: u64,
    /// The baseline.
    pub baseline: Option<FailedBaseline>,
    /// Which code decides what the tests say.
    pub test_code: TestCode,
    /// The last proposal.
    pub proposed: Option<Proposed>,
    /// Identities of all proposals.
    pub patches: BTreeSet<String>,
    /// Identities of candidates that were tried and do not make the tests pass.
    pub screened: BTreeSet<String>,
    /// Proposals that were refused.
    pub refused: Vec<RefusedProposal>,
    /// What was looked at when the required tests passed last.
    pub proof: Option<ProofFacts>,
    /// Commit of the candidate that is applied.
    pub applied: Option<String>,
    /// SHA-256 of the candidate's image.
    pub image: Option<String>,
    /// What the circuit breaker counts.
    pub breaker: CircuitBreaker,
    /// The tested candidates.
    pub attempts: Vec<Attempt>,
    /// The error that is being recovered.
    pub error: Option<StepError>,
    /// What the agents have used.
    pub usage: Usage,
    /// For how long builds, the rig or an agent were at work, in milliseconds.
    pub busy_ms: u64,
    /// How often a real board was flashed.
    pub flash_cycles: u64,
    /// Digest of what waits for an approval, or for a patch of a client.
    pub waits: Option<String>,
    /// The patch that a client submitted where one was waited for.
    pub submitted: Option<SubmittedPatch>,
    /// Digests that are approved.
    pub approved: BTreeSet<String>,
    /// Why what waited was refused.
    pub rejected: Option<String>,
    /// Why the run is to stop.
    pub stop: Option<String>,
    retries: BTreeMap<ErrorClass, u32>,
    /// When the last row was written.
    last_ms: u64,
}

impl Run {
    /// Folds the rows of a journal.
    ///
    /// # Errors
    /// The rows are not the journal of a run.
    pub fn of(rows: &[Row]) -> Result<Self, FoldError> {
        let Some((Row { entry: Entry::Begun(contract), .. }, rest)) = rows.split_first() else {
            return Err(FoldError::Beginning(1));
        };
        let first = &rows[0];
        let mut run = Self {
            contract: contract.clone(),
            begun_ms: first.time_ms,
            last_ms: first.time_ms,
            seq: first.seq,
            hash: first.hash,
            state: RepairState::Init,
            iteration: 1,
            ..Self::default()
        };
        rest.iter().try_for_each(|row| run.apply(row))?;
        Ok(run)
    }

    /// Adds a row.
    ///
    /// # Errors
    /// The row does not follow the ones before it.
    pub fn apply(&mut self, row: &Row) -> Result<(), FoldError> {
        if self.waits.is_some() || row.entry == Entry::Request(Request::Resume) {
            self.idle_ms += row.time_ms.saturating_sub(self.last_ms);
        }
        self.last_ms = row.time_ms;
        match &row.entry {
            Entry::Begun(_) => return Err(FoldError::Beginning(row.seq)),
            Entry::Intent(intent) => {
                self.expect(row.seq, intent.state)?;
                self.begun_step = Some(intent.clone());
            }
            Entry::Outcome(outcome) => self.outcome(row.seq, outcome)?,
            Entry::Request(request) => self.request(request),
        }
        (self.seq, self.hash) = (row.seq, row.hash);
        Ok(())
    }

    fn expect(&self, seq: u64, found: RepairState) -> Result<(), FoldError> {
        let expected = self.state;
        if found == expected { Ok(()) } else { Err(FoldError::WrongState { seq, found, expected }) }
    }

    fn outcome(&mut self, seq: u64, outcome: &Outcome) -> Result<(), FoldError> {
        self.expect(seq, outcome.state)?;
        self.begun_step = None;
        self.waits = None;
        // An answer is for what waited, and a step has dealt with it.
        let StepResult { event, reason, facts, .. } = &outcome.result;
        self.rejected = self.rejected.take().filter(|_| event.is_none());
        self.submitted = self.submitted.take().filter(|_| event.is_none());
        facts.iter().for_each(|fact| self.learn(fact));
        let Some(event) = *event else {
            if self.waits.is_none() {
                self.part = following(self.state, self.part);
            }
            return Ok(());
        };
        self.state =
            next(self.state, event).map_err(|source| FoldError::Illegal { seq, source })?;
        self.part = self.state.sub_states().first().copied();
        if event != RepairEvent::Reported {
            self.why.clone_from(reason);
        }
        match event {
            RepairEvent::Continue | RepairEvent::StrategySwitched => {
                self.strategy += u64::from(event == RepairEvent::StrategySwitched);
                self.iteration += 1;
            }
            RepairEvent::Reported => self.ended = Some(outcome.state),
            // An iteration was tested: what failed on the way to it is over.
            RepairEvent::DecisionProduced => self.retries.clear(),
            _ => {}
        }
        Ok(())
    }

    fn learn(&mut self, fact: &Fact) {
        self.breaker.learn(fact);
        match fact.clone() {
            Fact::Baseline(baseline) => self.baseline = Some(baseline),
            Fact::TestCode(code) => self.test_code = code,
            Fact::Proposed(proposed) => {
                self.spend(proposed.usage);
                // What has shown the failure may still be proposed as its repair.
                self.patches.extend((!proposed.diagnostic).then(|| proposed.patch.clone()));
                self.proposed = Some(proposed);
            }
            Fact::Refused { patch, why } => {
                let iteration = self.iteration;
                self.refused.push(RefusedProposal { iteration, patch, why });
            }
            Fact::Screened { patches } => self.screened.extend(patches),
            Fact::Used(usage) => self.spend(usage),
            Fact::Proved(facts) => self.proof = Some(*facts),
            // What was proven was proven for another candidate.
            Fact::Applied { commit, .. } => (self.applied, self.proof) = (Some(commit), None),
            Fact::RolledBack => {
                (self.applied, self.image, self.proof) = (None, None, None);
                // That one patch does not build says nothing of the next.
                self.retries.remove(&ErrorClass::BuildFailure);
            }
            Fact::Built { image } => self.image = Some(image),
            Fact::Tested { run, counts, signature } => {
                let (iteration, strategy) = (self.iteration, self.strategy);
                let proposed = self.proposed.as_ref();
                let patch = proposed.map(|p| p.patch.clone()).unwrap_or_default();
                let diagnostic = proposed.is_some_and(|p| p.diagnostic);
                let attempt =
                    Attempt { iteration, run, strategy, patch, diagnostic, counts, signature };
                self.attempts.push(attempt);
            }
            Fact::Failed { class } => {
                let count = self.retries.entry(class).or_default();
                self.error = Some(StepError { class, state: self.state, retries: *count });
                *count += 1;
            }
            Fact::Recovered { action, uses_iteration } => {
                self.error = None;
                // An agent without a usable answer is followed by the next one.
                self.strategy += u64::from(action == RecoveryAction::Degrade);
                self.iteration += u64::from(uses_iteration);
            }
            Fact::Waited { ms } => self.busy_ms = self.busy_ms.saturating_add(ms),
            Fact::Flashed => self.flash_cycles += 1,
            Fact::Waits { digest } => self.waits = Some(digest),
        }
    }

    fn spend(&mut self, usage: Usage) {
        self.usage.tokens = self.usage.tokens.saturating_add(usage.tokens);
        self.usage.micro_usd = self.usage.micro_usd.saturating_add(usage.micro_usd);
    }

    fn request(&mut self, request: &Request) {
        match request {
            Request::Resume => {}
            Request::Stop { why } => self.stop = Some(why.clone()),
            Request::Approve { digest } => {
                self.approved.insert(digest.clone());
            }
            Request::Reject { why } => self.rejected = Some(why.clone()),
            Request::Submit(patch) => {
                if self.waits_for_patch() && self.waits.as_ref() == Some(&patch.answers) {
                    self.submitted.get_or_insert_with(|| patch.clone());
                }
            }
        }
    }

    /// Returns how long the run has been driven, in milliseconds.
    pub fn driven_ms(&self, now_ms: u64) -> u64 {
        let waits = self.waited_ms(now_ms);
        now_ms.saturating_sub(self.begun_ms).saturating_sub(self.idle_ms).saturating_sub(waits)
    }

    /// Returns how long the run has waited for the answer that it waits for, in milliseconds.
    pub fn waited_ms(&self, now_ms: u64) -> u64 {
        if self.waits.is_some() { now_ms.saturating_sub(self.last_ms) } else { 0 }
    }

    /// Returns how long the step that is next may take. The end of the time of a run does not cut off
    /// what follows it: the report, and the recovery of a rig, which others need.
    pub fn time_left(&self, now_ms: u64) -> Duration {
        if self.state.is_final() || self.state == RepairState::ErrorRecovery {
            return Duration::MAX;
        }
        let allowed = self.contract.limits.wall_s.saturating_mul(1000);
        Duration::from_millis(allowed.saturating_sub(self.driven_ms(now_ms)))
    }

    /// Tells whether what waits has got an answer.
    pub fn is_answered(&self) -> bool {
        let approved = |digest| self.approved.contains(digest);
        let answered = self.rejected.is_some() || self.submitted.is_some();
        answered || self.waits.as_ref().is_none_or(approved)
    }

    /// Tells whether a patch of a client is waited for.
    pub fn waits_for_patch(&self) -> bool {
        self.waits.is_some() && self.state == RepairState::PatchGeneration
    }
}

/// Returns the part of a state behind one of its parts; behind the last the first follows again.
fn following(state: RepairState, part: Option<RepairSubState>) -> Option<RepairSubState> {
    let parts = state.sub_states();
    let at = parts.iter().position(|&one| Some(one) == part);
    parts.get(at.map_or(0, |at| at + 1)).or(parts.first()).copied()
}
