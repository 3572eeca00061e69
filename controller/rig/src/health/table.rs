//! The one table of moves between states. The machine, the printed diagram and the tests read
//! it.

use jiff::Timestamp;

use super::{HealthEvent, HealthPolicy, HealthState, PlaceHealth, Signal};

/// Says how a signal counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streak {
    /// One more pass in a row.
    Pass,
    /// One more failure in a row.
    Failure,
    /// Both counts begin anew.
    Restart,
}

/// What a signal does in a state. A pair that the table does not hold changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HealthMove {
    /// State before.
    pub from: HealthState,
    /// What was seen.
    pub signal: Signal,
    /// How it counts.
    pub streak: Streak,
    /// State after.
    pub to: HealthState,
    /// State after instead, once there were enough of its kind in a row.
    pub enough: Option<HealthState>,
}

/// Lists every move; a pair of state and signal occurs at most once.
pub const MOVES: &[HealthMove] = {
    use HealthState::{Healthy, Quarantined, Suspect, Unhealthy};
    use Signal as S;
    use Streak::{Failure, Pass, Restart};
    const fn to(from: HealthState, signal: Signal, streak: Streak, to: HealthState) -> HealthMove {
        HealthMove { from, signal, streak, to, enough: None }
    }
    /// Goes on as `till` says until there are enough in a row.
    const fn count(
        from: HealthState,
        signal: Signal,
        streak: Streak,
        till: HealthState,
        enough: HealthState,
    ) -> HealthMove {
        HealthMove { from, signal, streak, to: till, enough: Some(enough) }
    }
    &[
        count(Healthy, S::Failed, Failure, Suspect, Unhealthy),
        to(Healthy, S::Recovered, Restart, Suspect),
        to(Healthy, S::NotRecovered, Failure, Unhealthy),
        to(Healthy, S::Quarantined, Restart, Quarantined),
        count(Suspect, S::Sound, Pass, Suspect, Healthy),
        count(Suspect, S::Proof, Pass, Suspect, Healthy),
        count(Suspect, S::Failed, Failure, Suspect, Unhealthy),
        to(Suspect, S::Recovered, Restart, Suspect),
        to(Suspect, S::NotRecovered, Failure, Unhealthy),
        to(Suspect, S::Quarantined, Restart, Quarantined),
        to(Suspect, S::Cleared, Restart, Healthy),
        count(Unhealthy, S::Sound, Pass, Unhealthy, Healthy),
        count(Unhealthy, S::Proof, Pass, Unhealthy, Healthy),
        to(Unhealthy, S::Failed, Failure, Unhealthy),
        to(Unhealthy, S::Recovered, Restart, Suspect),
        to(Unhealthy, S::NotRecovered, Failure, Unhealthy),
        to(Unhealthy, S::Quarantined, Restart, Quarantined),
        to(Unhealthy, S::Cleared, Restart, Healthy),
        // Nothing else leads out: a sound run or a person's word is no proof of an unknown state.
        count(Quarantined, S::Proof, Pass, Quarantined, Healthy),
        to(Quarantined, S::Failed, Failure, Quarantined),
        to(Quarantined, S::Recovered, Restart, Quarantined),
        to(Quarantined, S::NotRecovered, Failure, Quarantined),
        to(Quarantined, S::Quarantined, Restart, Quarantined),
    ]
};

/// Returns what is known of a place after an event. Total: every event is taken in every
/// state.
pub fn next(
    now: &PlaceHealth,
    at: Timestamp,
    event: &HealthEvent,
    policy: &HealthPolicy,
) -> PlaceHealth {
    let signal = event.signal(policy);
    let found = MOVES.iter().find(|m| m.from == now.state && Some(m.signal) == signal);
    let Some(found) = found else {
        return PlaceHealth { passes_needed: needed(now.state, now.passes, policy), ..now.clone() };
    };
    let (passes, failures, threshold) = match found.streak {
        Streak::Pass => (now.passes.saturating_add(1), 0, policy.passes_out_of(now.state)),
        Streak::Failure => (0, now.failures.saturating_add(1), policy.failures_to_unhealthy.max(1)),
        Streak::Restart => (0, 0, u32::MAX),
    };
    let state = match found.enough {
        Some(enough) if passes.max(failures) >= threshold => enough,
        Some(_) | None => found.to,
    };
    let entered = state != now.state;
    let why = match (found.streak, state) {
        (Streak::Pass, HealthState::Healthy) => format!("{passes} passes in a row"),
        // On the way to health, the last failure is still the fact that the user needs.
        (Streak::Pass, _) => now.why.clone(),
        // What had put it out of service is what the user has to look at.
        (Streak::Failure | Streak::Restart, HealthState::Quarantined) if !entered => {
            appended(&now.why, &event.words())
        }
        (Streak::Failure | Streak::Restart, _) => event.words(),
    };
    // A healthy place has nothing to count.
    let passes = if state == HealthState::Healthy { 0 } else { passes };
    PlaceHealth {
        state,
        since: if entered { Some(at) } else { now.since },
        why,
        passes_needed: needed(state, passes, policy),
        passes,
        failures,
    }
}

/// Stands between the reason of a quarantine and what came later.
const LATER: &str = "; later: ";

/// Longest list of reasons in bytes, three lines of a wide terminal. Beyond it only the first and the
/// newest are kept.
const MAX_REASON_BYTES: usize = 400;

/// Returns the first reason with a later one behind it. Of several later ones the newest is kept if
/// they do not all fit.
fn appended(why: &str, later: &str) -> String {
    let (first, _) = why.split_once(LATER).unwrap_or((why, ""));
    if first.is_empty() || first == later || why.ends_with(&format!("{LATER}{later}")) {
        return if first.is_empty() { later.to_owned() } else { why.to_owned() };
    }
    let all = format!("{why}{LATER}{later}");
    if all.len() <= MAX_REASON_BYTES { all } else { format!("{first}{LATER}{later}") }
}

/// Returns how many passes are missing until a place is healthy.
pub(super) fn needed(state: HealthState, passes: u32, policy: &HealthPolicy) -> u32 {
    match state {
        HealthState::Healthy => 0,
        // A policy that became laxer since they were counted still wants one more to say so.
        HealthState::Suspect | HealthState::Unhealthy | HealthState::Quarantined => {
            policy.passes_out_of(state).saturating_sub(passes).max(1)
        }
    }
}
