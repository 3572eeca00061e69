//! What commands and orders to the leases leave in the audit log.
//!
//! # Design
//! *A line that cannot be written stops callers from elsewhere, and warns users of this host.* Who came
//! in by a key could otherwise fill the disk and act without a record. A user of the host owns the log
//! anyway, and must be able to repair a rig whose disk is full.

use std::sync::Arc;

use jiff::Timestamp;
use jig_model::access::AccessRight;
use jig_model::command::{Command, CommandEvent, EventSink};
use jig_model::lease::{LeaseAnswer, LeaseNamed, LeaseOrder};
use jig_model::{Fault, PlaceName, RunId, chain};
use jig_rig::audit::{AuditDecision, AuditEntry, AuditError, AuditLease, AuditLog};
use jig_rig::leases::LeaseError;

use crate::{AccessError, Catalogue};

/// Says why an order to the leases was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum LeaseOrderError {
    /// The leases refuse it.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The user has not the right.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// It cannot be noted.
    #[error(transparent)]
    Audit(#[from] AuditError),
}

impl LeaseOrderError {
    /// Says who is to blame.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Lease(error) => error.fault(),
            Self::Access(error) => error.fault(),
            Self::Audit(error) => error.fault(),
        }
    }
}

impl Catalogue {
    /// Returns the audit log.
    pub fn audit_log(&self) -> AuditLog {
        AuditLog::in_state(&self.state())
    }

    /// Returns an entry of the user.
    fn entry(&self, command: &str, decision: AuditDecision, why: String) -> AuditEntry {
        AuditEntry {
            at: Timestamp::now(),
            identity: self.user().identity.clone(),
            command: command.to_owned(),
            place: None,
            right: None,
            decision,
            why,
            lease: None,
            of: None,
            run: None,
        }
    }

    /// Notes that a command is let in; returns the number of the line, if there is one.
    pub(crate) fn note_accepted(
        &self,
        command: &Command,
        why: String,
        lease: Option<AuditLease>,
    ) -> Result<Option<u64>, AuditError> {
        let entry = self.entry(command.name(), AuditDecision::Accepted, why);
        let (place, right) = (Some(command.place().clone()), Some(command.access_right()));
        self.note(AuditEntry { place, right, lease, ..entry })
    }

    /// Notes that a command is refused.
    pub fn note_refused(&self, command: &Command, why: String) {
        let entry = self.entry(command.name(), AuditDecision::Refused, why);
        let (place, right) = (Some(command.place().clone()), Some(command.access_right()));
        self.note_anyway(AuditEntry { place, right, ..entry });
    }

    /// Notes that a call is let in that is about no place alone.
    pub(crate) fn note_call(
        &self,
        call: &str,
        right: AccessRight,
        why: String,
    ) -> Result<Option<u64>, AuditError> {
        let entry = self.entry(call, AuditDecision::Accepted, why);
        self.note(AuditEntry { right: Some(right), ..entry })
    }

    /// Notes that such a call is refused.
    pub(crate) fn note_refused_call(&self, call: &str, right: AccessRight, why: String) {
        let entry = self.entry(call, AuditDecision::Refused, why);
        self.note_anyway(AuditEntry { right: Some(right), ..entry });
    }

    /// Notes what cannot be kept from happening.
    fn note_anyway(&self, entry: AuditEntry) {
        if let Err(error) = self.audit_log().append(entry) {
            tracing::warn!(error = chain(&error), "the audit log lacks a line");
        }
    }

    /// Notes what is going to happen.
    fn note(&self, entry: AuditEntry) -> Result<Option<u64>, AuditError> {
        match self.audit_log().append(entry) {
            Ok(number) => Ok(Some(number)),
            Err(error) if self.user().identity.name.is_local() => {
                tracing::warn!(error = chain(&error), "the audit log lacks a line");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Answers what the user asks of the leases. Waits for the disk and for other processes.
    ///
    /// # Errors
    /// It is refused, cannot be noted, or the store cannot be used.
    pub fn order_lease(&self, order: &LeaseOrder) -> Result<LeaseAnswer, LeaseOrderError> {
        let named = |name, of: &LeaseNamed| match of {
            LeaseNamed::Lease(lease) => (name, None, lease.to_string()),
            LeaseNamed::Place(place) => (name, Some(place.clone()), String::new()),
        };
        let (name, place, words) = match order {
            LeaseOrder::Ask(ask) => ("lease-ask", None, format!("{} {}", ask.lease, ask.need)),
            LeaseOrder::Extend { of, .. } => named("lease-extend", of),
            LeaseOrder::Release(of) => named("lease-release", of),
            LeaseOrder::Steal { place, .. } => ("lease-steal", Some(place.clone()), String::new()),
            LeaseOrder::Poll(_) | LeaseOrder::Renew { .. } | LeaseOrder::Own { .. } => {
                return Ok(self.answer_lease(order)?);
            }
            LeaseOrder::List => return Ok(self.visible(self.answer_lease(order)?)),
        };
        let right = order.access_right();
        let entry = |decision, why: String| {
            let joint = if words.is_empty() { "" } else { "; " };
            let entry = self.entry(name, decision, format!("{why}{joint}{words}"));
            AuditEntry { place: place.clone(), right, ..entry }
        };
        match self.may_order(order) {
            Ok(why) => {
                self.note(entry(AuditDecision::Accepted, why))?;
                Ok(self.answer_lease(order)?)
            }
            Err(error) => {
                self.note_anyway(entry(AuditDecision::Refused, error.to_string()));
                Err(error)
            }
        }
    }

    /// Tells by what the user may give an order.
    fn may_order(&self, order: &LeaseOrder) -> Result<String, LeaseOrderError> {
        match order {
            LeaseOrder::Ask(ask) => {
                let places = self.leasable().into_iter().map(|at| at.traits);
                let fitting = places.filter(|at| ask.need.fits(at)).map(|at| at.place);
                let seen: Vec<_> = fitting.filter(|at| self.may(AccessRight::See, at)).collect();
                let (right, need) = (AccessRight::Use, ask.need.to_string());
                match seen.iter().find(|at| self.may(right, at)) {
                    Some(place) => Ok(self.why(right, place)?),
                    // The leases say that there is no such place.
                    None if seen.is_empty() => Ok("no place fits".to_owned()),
                    None => {
                        if let [place] = &seen[..] {
                            self.why(right, place)?;
                        }
                        let name = self.user().identity.name.clone();
                        Err(AccessError::DeniedAll { name, right, need }.into())
                    }
                }
            }
            LeaseOrder::Steal { place, .. } => {
                if self.holds(place)? {
                    return Ok("it is the user's own".to_owned());
                }
                match self.why(AccessRight::Administer, place) {
                    // As of a place that is not there.
                    Err(AccessError::Hidden(_)) => Err(LeaseError::NotLeased(place.clone()).into()),
                    why => Ok(why?),
                }
            }
            LeaseOrder::Poll(_)
            | LeaseOrder::Renew { .. }
            | LeaseOrder::Extend { .. }
            | LeaseOrder::Release(_)
            | LeaseOrder::Own { .. }
            | LeaseOrder::List => Ok("it is the user's own".to_owned()),
        }
    }

    fn why(&self, right: AccessRight, place: &PlaceName) -> Result<String, AccessError> {
        let basis = self.authorise_at(right, place)?;
        Ok(basis.map_or_else(|| "there is no such place".to_owned(), |basis| basis.to_string()))
    }

    /// Tells whether a place is leased by the user.
    fn holds(&self, place: &PlaceName) -> Result<bool, LeaseError> {
        let LeaseAnswer::List { places, .. } = self.answer_lease(&LeaseOrder::List)? else {
            return Ok(false);
        };
        let lease = places.into_iter().find(|at| at.place == *place).and_then(|at| at.lease);
        Ok(lease.is_some_and(|lease| lease.owner == self.user().owner()))
    }

    /// Leaves out the places that the user may not see, and the leases that wait for those only.
    pub(crate) fn visible(&self, answer: LeaseAnswer) -> LeaseAnswer {
        let LeaseAnswer::List { now, mut places, mut queue } = answer else { return answer };
        places.retain(|at| self.may(AccessRight::See, &at.place));
        let seen: Vec<_> = self.visible_places().filter_map(|place| self.traits(place)).collect();
        let own = self.user().owner();
        queue.retain(|lease| lease.owner == own || seen.iter().any(|at| lease.need.fits(at)));
        LeaseAnswer::List { now, places, queue }
    }
}

/// Passes on what happens, and notes the run that a command begins.
pub(crate) struct AuditedEvents {
    pub(crate) events: Arc<dyn EventSink>,
    pub(crate) log: AuditLog,
    /// What is noted, without the run.
    pub(crate) entry: AuditEntry,
}

impl AuditedEvents {
    /// Wraps the events of a command that line `of` has let in.
    pub(crate) fn of(
        catalogue: &Catalogue,
        command: &Command,
        of: Option<u64>,
        lease: Option<AuditLease>,
        events: Arc<dyn EventSink>,
    ) -> Arc<dyn EventSink> {
        let entry = catalogue.entry(command.name(), AuditDecision::Began, String::new());
        let place = Some(command.place().clone());
        let entry = AuditEntry { place, lease, of, ..entry };
        Arc::new(Self { events, log: catalogue.audit_log(), entry })
    }

    fn note(&self, run: &RunId) {
        let entry =
            AuditEntry { at: Timestamp::now(), run: Some(run.clone()), ..self.entry.clone() };
        if let Err(error) = self.log.append(entry) {
            tracing::warn!(error = chain(&error), "the audit log lacks a line");
        }
    }
}

impl EventSink for AuditedEvents {
    fn event(&self, event: CommandEvent) {
        if let CommandEvent::RunBegan { run, .. } = &event {
            self.note(run);
        }
        self.events.event(event);
    }
}
