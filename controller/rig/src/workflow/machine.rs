//! The machine: one state, moved only by the table, with a record of every try.
//!
//! Owns the state and the history. Refuses moves that the table does not hold and moves by another
//! owner than the table's; a refusal changes nothing but the list of refusals.

use jiff::Timestamp;

use super::record::{Fsm, RefusedMove, RefusedReason, WorkflowMove};
use super::state::{Event, Owner, State};
use super::table::find;

/// Says that the machine did not move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("workflow refused {event} by {by} in state {from}: {}", .reason.text())]
pub struct Refused {
    /// The state, which stayed.
    pub from: State,
    /// The event.
    pub event: Event,
    /// The party that asked.
    pub by: Owner,
    /// Why.
    pub reason: RefusedReason,
}

/// A workflow's state with its history.
#[derive(Debug, Clone)]
pub struct WorkflowMachine {
    fsm: Fsm,
    refused: Vec<RefusedMove>,
}

impl WorkflowMachine {
    /// Builds a machine that is idle.
    pub fn new(at: Timestamp) -> Self {
        let fsm =
            Fsm { state: State::Idle, last_transition: None, timestamp: at, history: Vec::new() };
        Self { fsm, refused: Vec::new() }
    }

    /// Returns the state.
    pub fn state(&self) -> State {
        self.fsm.state
    }

    /// Returns the record of the moves.
    pub fn fsm(&self) -> &Fsm {
        &self.fsm
    }

    /// Returns the moves that were refused.
    pub fn refused(&self) -> &[RefusedMove] {
        &self.refused
    }

    /// Tells whether the table holds a move from here by this event and owner.
    pub fn allows(&self, event: Event, by: Owner) -> bool {
        find(self.fsm.state, event).is_some_and(|t| t.owner == by)
    }

    /// Makes a move, or refuses it; either is recorded.
    ///
    /// # Errors
    /// Refuses a pair that the table does not hold, and an owner other than the table's.
    pub fn apply(&mut self, event: Event, by: Owner, at: Timestamp) -> Result<State, Refused> {
        let from = self.fsm.state;
        let reason = match find(from, event) {
            Some(t) if t.owner == by => {
                self.fsm.state = t.to;
                self.fsm.last_transition = Some(format!("{event} -> {}", t.to));
                self.fsm.timestamp = at;
                self.fsm.history.push(WorkflowMove { from, event, to: t.to, timestamp: at });
                return Ok(t.to);
            }
            Some(t) => RefusedReason::NotTheOwner { owner: t.owner },
            None => RefusedReason::NoSuchMove,
        };
        self.refused.push(RefusedMove { from, event, by, reason, timestamp: at });
        Err(Refused { from, event, by, reason })
    }

    /// Gives up the machine for its record.
    pub(crate) fn into_parts(self) -> (Fsm, Vec<RefusedMove>) {
        (self.fsm, self.refused)
    }
}

#[cfg(test)]
mod tests;
