//! Resets of the target that the plan expects: which events are part of one. Pure.
//!
//! # Design
//! A reset is told by the driver, by a line that the target prints behind it, or by both, in any
//! order. A watchdog that fires is told before the reset that it causes. All of these are one reset.
//! An expected reset may come before the action that expects it begins; until then it ends no wait.

use jig_model::Cause;

use crate::judge::{ByteRange, Incident, IncidentKind};

/// The resets of an attempt that the plan expects.
#[derive(Debug, Clone, Default)]
pub(super) struct ExpectedResets {
    /// How many more may come.
    left: usize,
    /// Those that came, in order.
    came: Vec<SeenReset>,
    /// How many of them an action has claimed.
    claimed: usize,
}

/// A reset of the target that came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SeenReset {
    /// What the driver told of it.
    pub(super) told: Option<ByteRange>,
    /// The line that tells of it.
    pub(super) line: Option<ByteRange>,
}

impl ExpectedResets {
    /// Sets how many resets the rest of the plan expects.
    pub(super) fn expect(&mut self, ahead: usize) {
        self.left = ahead.saturating_sub(self.came.len() - self.claimed);
    }

    /// Takes in an incident; tells whether it is part of an expected reset.
    pub(super) fn admit(&mut self, incident: &Incident) -> bool {
        let Incident { kind, range } = incident;
        let (told, line) = match kind {
            IncidentKind::Watchdog => return self.left > 0,
            IncidentKind::Reset => (Some(range.clone()), None),
            IncidentKind::Recognised(Cause::WatchdogReset | Cause::UnexpectedReset) => {
                (None, Some(range.clone()))
            }
            _ => return false,
        };
        let mut came = self.came.iter_mut();
        if line.is_some() && came.any(|reset| reset.line == line) {
            // A log that is read again shows it again.
            return true;
        }
        if let Some(last) = self.came.last_mut() {
            let other_half = match (&last.told, &last.line) {
                (Some(_), None) => line.is_some(),
                (None, Some(_)) => told.is_some(),
                _ => false,
            };
            if other_half {
                last.told = last.told.take().or(told);
                last.line = last.line.take().or(line);
                return true;
            }
        }
        let expected = self.left > 0;
        if expected {
            self.left -= 1;
            self.came.push(SeenReset { told, line });
        }
        expected
    }

    /// Returns the first reset that no action has claimed.
    pub(super) fn unclaimed(&self) -> Option<&SeenReset> {
        self.came.get(self.claimed)
    }

    /// Claims a reset: the one that came, or one that only the output of the next boot shows.
    pub(super) fn claim(&mut self) {
        if self.claimed < self.came.len() {
            self.claimed += 1;
        } else {
            self.left = self.left.saturating_sub(1);
        }
    }

    /// Returns the resets that no action has claimed, which nothing expects any more.
    pub(super) fn take_unclaimed(&mut self) -> Vec<Incident> {
        let unclaimed = self.came.drain(self.claimed..);
        let incident = |SeenReset { told, line }: SeenReset| Incident {
            kind: IncidentKind::Reset,
            range: told.or(line).unwrap_or_default(),
        };
        unclaimed.map(incident).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(kind: IncidentKind, start: u64) -> Incident {
        Incident { kind, range: ByteRange { start, ..ByteRange::default() } }
    }

    fn expecting(ahead: usize) -> ExpectedResets {
        let mut resets = ExpectedResets::default();
        resets.expect(ahead);
        resets
    }

    #[test]
    fn an_expected_reset_is_one_however_it_is_told() {
        use IncidentKind::{Recognised, Reset, Watchdog};
        let line = Recognised(Cause::WatchdogReset);
        for told in [
            &[at(Reset, 1)][..],
            &[at(Watchdog, 1), at(Reset, 1)],
            &[at(Watchdog, 1), at(Reset, 1), at(line.clone(), 2)],
            &[at(line.clone(), 2), at(Reset, 1), at(line.clone(), 2)],
        ] {
            let mut resets = expecting(1);
            assert!(told.iter().all(|incident| resets.admit(incident)), "{told:?}");
            assert!(resets.unclaimed().is_some());
            for second in [at(Watchdog, 3), at(Reset, 3), at(Recognised(Cause::FaultBanner), 3)] {
                assert!(!resets.clone().admit(&second), "{told:?} {second:?}");
            }
            resets.claim();
            assert!(resets.unclaimed().is_none() && resets.take_unclaimed().is_empty());
        }
        assert!(!expecting(0).admit(&at(Reset, 1)) && !expecting(0).admit(&at(Watchdog, 1)));
    }

    #[test]
    fn a_reset_that_no_action_claims_is_unexpected() {
        let mut resets = expecting(2);
        assert!(
            resets.admit(&at(IncidentKind::Reset, 1)) && resets.admit(&at(IncidentKind::Reset, 2))
        );
        resets.claim();
        assert_eq!(resets.take_unclaimed(), [at(IncidentKind::Reset, 2)]);
    }
}
