//! How far a unit is believed: a pure, total machine.
//!
//! | status | meaning |
//! |---|---|
//! | pending | nothing has proven it on another run or board |
//! | verified | an independent proof, or a person, has confirmed it |
//! | rejected | evidence or a person speaks against it |
//! | expired | not read for a year |

use serde::{Deserialize, Serialize};

/// The highest maturity.
pub const MAX_MATURITY: u8 = 3;

/// Rejections after which a unit is archived.
const REJECTIONS: u32 = 2;

/// Whether a unit is proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerificationStatus {
    /// Not yet proven.
    Pending,
    /// Proven.
    Verified,
    /// Refuted.
    Rejected,
    /// Not read for a year.
    Expired,
}

impl VerificationStatus {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Pending, Self::Verified, Self::Rejected, Self::Expired];

    /// Returns its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Verified => "verified",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
        }
    }
}

/// How far a unit is believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Standing {
    /// Whether it is proven.
    pub status: VerificationStatus,
    /// From 0 to [`MAX_MATURITY`].
    pub maturity: u8,
    /// How often it was rejected.
    pub rejections: u32,
    /// Whether it is found only on demand.
    pub archived: bool,
}

/// What happens to a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StandingEvent {
    /// The same change turned a failing baseline green, with the revert check, in the run that the
    /// unit comes from.
    ProvenAtOrigin,
    /// The same in another run, or on another board.
    ProvenElsewhere,
    /// A person confirmed it.
    Confirmed,
    /// The same change did not help in another run.
    Contradicted,
    /// A person, or a verification, rejected it.
    Rejected,
    /// Its content was changed.
    Edited,
    /// Nothing has read it for a year.
    Unread,
    /// A person put it away.
    Archived,
    /// A person took it back.
    Restored,
}

impl StandingEvent {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::ProvenAtOrigin,
        Self::ProvenElsewhere,
        Self::Confirmed,
        Self::Contradicted,
        Self::Rejected,
        Self::Edited,
        Self::Unread,
        Self::Archived,
        Self::Restored,
    ];

    /// Returns its word, for the history.
    pub fn word(self) -> &'static str {
        match self {
            Self::ProvenAtOrigin => "proven at its origin",
            Self::ProvenElsewhere => "proven elsewhere",
            Self::Confirmed => "confirmed",
            Self::Contradicted => "contradicted",
            Self::Rejected => "rejected",
            Self::Edited => "edited",
            Self::Unread => "expired unread",
            Self::Archived => "archived",
            Self::Restored => "restored",
        }
    }
}

/// Says that something cannot happen to a unit as it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IllegalStanding {
    /// It is archived.
    #[error("it is archived")]
    Archived,
    /// It is not archived.
    #[error("it is not archived")]
    InUse,
}

impl Standing {
    /// That of a new unit.
    pub const NEW: Self =
        Self { status: VerificationStatus::Pending, maturity: 0, rejections: 0, archived: false };

    /// Returns the standing behind an event.
    ///
    /// # Errors
    /// The event cannot happen to a unit that stands so.
    pub fn next(self, event: StandingEvent) -> Result<Self, IllegalStanding> {
        use VerificationStatus as Status;
        match (self.archived, event) {
            (true, StandingEvent::Restored) => {
                // What was put away is proven anew. Rejections count on, so a third one archives it.
                return Ok(Self { status: Status::Pending, archived: false, ..self });
            }
            (true, _) => return Err(IllegalStanding::Archived),
            (false, StandingEvent::Restored) => return Err(IllegalStanding::InUse),
            (false, _) => {}
        }
        let risen = self.maturity.saturating_add(1).min(MAX_MATURITY);
        Ok(match event {
            // Evidence against it stays: a proof reopens what was rejected, and does not verify it.
            StandingEvent::ProvenAtOrigin | StandingEvent::ProvenElsewhere
                if self.status == Status::Rejected =>
            {
                Self { status: Status::Pending, ..self }
            }
            StandingEvent::ProvenAtOrigin => Self { maturity: self.maturity.max(1), ..self },
            StandingEvent::ProvenElsewhere => {
                Self { status: Status::Verified, maturity: risen.max(2), ..self }
            }
            StandingEvent::Confirmed => {
                Self { status: Status::Verified, maturity: self.maturity.max(2), ..self }
            }
            StandingEvent::Contradicted => {
                let maturity = self.maturity.saturating_sub(1);
                let status = match self.status {
                    Status::Verified if maturity < 2 => Status::Pending,
                    status => status,
                };
                Self { status, maturity, ..self }
            }
            StandingEvent::Rejected => {
                let rejections = self.rejections.saturating_add(1);
                let archived = rejections >= REJECTIONS;
                Self { status: Status::Rejected, maturity: 0, rejections, archived }
            }
            StandingEvent::Edited => {
                let status = match self.status {
                    Status::Verified => Status::Pending,
                    status => status,
                };
                Self { status, maturity: self.maturity.min(1), ..self }
            }
            StandingEvent::Unread => {
                let status = match self.status {
                    Status::Rejected => Status::Rejected,
                    Status::Pending | Status::Verified | Status::Expired => Status::Expired,
                };
                Self { status, archived: true, ..self }
            }
            StandingEvent::Archived => Self { archived: true, ..self },
            StandingEvent::Restored => self,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Every standing that can be reached from a new unit.
    fn reachable() -> Vec<Standing> {
        let mut found = vec![Standing::NEW];
        let mut at = 0;
        while let Some(standing) = found.get(at).copied() {
            at += 1;
            for event in StandingEvent::ALL {
                if let Ok(next) = standing.next(event)
                    && next.rejections <= 3
                    && !found.contains(&next)
                {
                    found.push(next);
                }
            }
        }
        found
    }

    fn after(events: &[StandingEvent]) -> Standing {
        events.iter().fold(Standing::NEW, |standing, event| standing.next(*event).unwrap())
    }

    #[test]
    fn nothing_is_verified_without_an_independent_proof_or_a_person() {
        use StandingEvent as E;
        assert_eq!(
            after(&[E::ProvenAtOrigin, E::ProvenAtOrigin]).status,
            VerificationStatus::Pending
        );
        for standing in reachable() {
            for event in StandingEvent::ALL {
                let Ok(next) = standing.next(event) else { continue };
                if next.status == VerificationStatus::Verified
                    && standing.status != VerificationStatus::Verified
                {
                    assert!(matches!(event, E::ProvenElsewhere | E::Confirmed), "{event:?}");
                    assert!(next.maturity >= 2, "{next:?}");
                }
            }
        }
    }

    #[test]
    fn evidence_against_a_unit_never_raises_it() {
        for standing in reachable() {
            for event in
                [StandingEvent::Contradicted, StandingEvent::Rejected, StandingEvent::Edited]
            {
                let Ok(next) = standing.next(event) else { continue };
                assert!(next.maturity <= standing.maturity, "{standing:?} {event:?} {next:?}");
                let rises = next.status == VerificationStatus::Verified
                    && standing.status != VerificationStatus::Verified;
                assert!(!rises, "{standing:?} {event:?} {next:?}");
            }
        }
    }

    #[test]
    fn a_unit_that_was_rejected_twice_is_archived_and_a_proof_reopens_it_once() {
        use StandingEvent as E;
        let reopened = after(&[E::ProvenElsewhere, E::Rejected, E::ProvenElsewhere]);
        assert_eq!(reopened.status, VerificationStatus::Pending);
        let again = reopened.next(E::Rejected).unwrap();
        assert!(again.archived);
        assert_eq!(again.next(E::ProvenElsewhere), Err(IllegalStanding::Archived));
        let back = again.next(E::Restored).unwrap();
        assert_eq!((back.status, back.archived), (VerificationStatus::Pending, false));
        assert!(back.next(E::Rejected).unwrap().archived);
    }

    #[test]
    fn contradictions_undo_a_verification() {
        use StandingEvent as E;
        let firm = after(&[E::ProvenElsewhere, E::ProvenElsewhere]);
        assert_eq!((firm.status, firm.maturity), (VerificationStatus::Verified, 3));
        let once = firm.next(E::Contradicted).unwrap();
        assert_eq!((once.status, once.maturity), (VerificationStatus::Verified, 2));
        assert_eq!(once.next(E::Contradicted).unwrap().status, VerificationStatus::Pending);
    }

    #[test]
    fn the_machine_is_total_and_maturity_keeps_its_bounds() {
        let all = reachable();
        let statuses: BTreeSet<&str> = all.iter().map(|s| s.status.word()).collect();
        assert_eq!(statuses.len(), VerificationStatus::ALL.len());
        assert!(all.iter().all(|standing| standing.maturity <= MAX_MATURITY));
        assert!(all.iter().all(|s| s.archived || s.next(StandingEvent::Unread).unwrap().archived));
    }
}
