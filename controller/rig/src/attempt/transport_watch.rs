//! Notices that a console's log or transport has failed. Pure.

use jig_model::Cause;
use tokio::time::Instant;

use super::board::REASON;
use crate::console::{LogState, TransportEnd};

/// What was reported already, and since when a transport has been missing.
#[derive(Debug, Default)]
pub(super) struct TransportWatch {
    storage: bool,
    broken: bool,
    /// Number of the transport whose loss was reported.
    lost: Option<u32>,
    ended: Option<Instant>,
    /// Whether the other end of the transport was reported away.
    away: bool,
    /// How many of its losses were reported.
    losses: u32,
}

impl TransportWatch {
    /// Reports once each that the other end is away, and that it is back, even if it was back
    /// before the first look.
    pub(super) fn away(&mut self, state: &LogState) -> Vec<String> {
        let mut told = Vec::new();
        let lost = state.losses > std::mem::replace(&mut self.losses, state.losses);
        if lost && let Some(why) = &state.loss {
            told.push(format!("{why}; bytes may be missing; waiting for it"));
            self.away = true;
        }
        if state.away.is_none() && std::mem::take(&mut self.away) && state.attached {
            told.push("the transport is back".to_owned());
        }
        told
    }

    /// Checks the state of a log; returns each failure once.
    ///
    /// `powered` means that the board is on according to the driver. A transport that ends then
    /// without an event of the driver is lost.
    pub(super) fn look(
        &mut self,
        state: &LogState,
        powered: bool,
        now: Instant,
    ) -> Option<(Cause, String)> {
        if let Some(error) = &state.error
            && !std::mem::replace(&mut self.storage, true)
        {
            let text = format!("the console's log could not be written: {error}");
            return Some((Cause::StorageFailed, text));
        }
        if let Some(error) = &state.broken
            && !std::mem::replace(&mut self.broken, true)
        {
            return Some((Cause::ConsoleLost, format!("the console's transport broke: {error}")));
        }
        let ended = state.ended == Some(TransportEnd::Closed) && powered;
        if !ended || self.lost == Some(state.transports) {
            self.ended = None;
            return None;
        }
        let since = *self.ended.get_or_insert(now);
        (now.duration_since(since) >= REASON).then(|| {
            self.lost = Some(state.transports);
            let text = "the console's transport ended, but the board has power".to_owned();
            (Cause::ConsoleLost, text)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transport_that_is_back_before_anybody_looks_is_told_of_all_the_same() {
        let mut watch = TransportWatch::default();
        let up = LogState { attached: true, ..LogState::default() };
        assert!(watch.away(&up).is_empty());
        let back = LogState { losses: 1, loss: Some("x".into()), ..up.clone() };
        let told = watch.away(&back);
        assert_eq!(told, ["x; bytes may be missing; waiting for it", "the transport is back"]);
        assert!(watch.away(&back).is_empty());
        let away = LogState { losses: 2, away: Some("y".into()), loss: Some("y".into()), ..up };
        assert_eq!(watch.away(&away), ["y; bytes may be missing; waiting for it"]);
        assert!(watch.away(&away).is_empty());
        assert_eq!(watch.away(&LogState { away: None, ..away }), ["the transport is back"]);
    }

    #[test]
    fn each_failure_is_told_once_and_a_closed_transport_only_in_time() {
        let now = Instant::now();
        let mut watch = TransportWatch::default();
        let mut state =
            LogState { transports: 1, ended: Some(TransportEnd::Closed), ..LogState::default() };
        assert_eq!(watch.look(&state, false, now), None);
        assert_eq!(watch.look(&state, true, now), None);
        let later = now + REASON;
        // A power-off in between restarts the time.
        assert_eq!(watch.look(&state, false, later), None);
        assert_eq!(watch.look(&state, true, later), None);
        let told = watch.look(&state, true, later + REASON).map(|(cause, _)| cause);
        assert_eq!(told, Some(Cause::ConsoleLost));
        assert_eq!(watch.look(&state, true, later + REASON), None);
        // A broken transport is reported even if the next one is attached already.
        state = LogState { transports: 2, ended: None, broken: Some("x".into()), ..state };
        assert!(watch.look(&state, false, now).is_some());
        assert_eq!(watch.look(&state, false, now), None);
        state.error = Some("full".into());
        let told = watch.look(&state, false, now).map(|(cause, _)| cause);
        assert_eq!(told, Some(Cause::StorageFailed));
        assert_eq!(watch.look(&state, false, now), None);
    }
}
