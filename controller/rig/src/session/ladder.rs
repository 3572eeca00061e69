//! The recovery ladder of one place: which steps it has, and why it lacks the others. Pure.

use std::time::Duration;

use jig_model::PlaceName;
use jig_model::recovery::{Recovery, RecoveryStep, Rung};

/// What a place can be recovered with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Means {
    /// Its board is emulated: each start makes a new board.
    pub(super) emulated: bool,
    /// A command has made it out of a chip and a probe: the next one may mean another board.
    pub(super) of_command: bool,
    /// Its board has a debug probe.
    pub(super) probe: bool,
    /// Something resets its board without taking its power.
    pub(super) resets: bool,
    /// Longest time that its power device may take for a power cycle, if it has one.
    pub(super) outlet: Option<Duration>,
    /// The board may be given a known-good image.
    pub(super) known_good: bool,
    /// Longest time that a power cycle of its hub may take, if the hub can be switched.
    pub(super) hub: Option<Duration>,
    /// Other places with the same kind of board.
    pub(super) equivalents: Vec<PlaceName>,
}

/// Returns every step of a profile's ladder, and for each step that the place skips, why.
pub(super) fn ladder(recovery: &Recovery, means: &Means) -> Vec<Rung> {
    let rung = |step: &RecoveryStep| Rung {
        step: *step,
        budget_ms: millis(budget(*step, recovery, means)),
        skip: missing(*step, means).map(str::to_owned),
    };
    recovery.ladder.iter().map(rung).collect()
}

/// A power cycle may take as long as its device needs, and as long as the power is away.
fn budget(step: RecoveryStep, recovery: &Recovery, means: &Means) -> Duration {
    let outlet = means.outlet.unwrap_or_default();
    let needed = match step {
        RecoveryStep::PowerCycle => outlet,
        RecoveryStep::LongPowerCycle => recovery.long_off + outlet.max(POWER),
        RecoveryStep::HubCycle => means.hub.map_or(Duration::ZERO, |hub| hub + ENUMERATION),
        _ => Duration::ZERO,
    };
    step.budget().max(needed)
}

/// What stopping and starting the board itself may take beside its power device.
const POWER: Duration = Duration::from_secs(60);

/// How long the devices on a hub may take to be there again: the kernel gives a port that does
/// not answer three tries of five seconds.
pub(super) const ENUMERATION: Duration = Duration::from_secs(15);

fn missing(step: RecoveryStep, means: &Means) -> Option<&'static str> {
    let unless = |has: bool, why: &'static str| (!has).then_some(why);
    match step {
        RecoveryStep::Reopen | RecoveryStep::Reset | RecoveryStep::AttachUnderReset
            if means.emulated =>
        {
            Some("an emulated board is a new one at each start: restart-emulator is all of these")
        }
        RecoveryStep::Reopen => None,
        RecoveryStep::Reset => {
            unless(means.resets, "nothing resets the board without taking its power")
        }
        RecoveryStep::AttachUnderReset => unless(means.probe, "the place has no debug probe"),
        RecoveryStep::RestartEmulator => unless(means.emulated, "the board is not emulated"),
        RecoveryStep::ReflashKnownGood if means.emulated => {
            Some("an emulated board keeps no image from one start to the next")
        }
        RecoveryStep::ReflashKnownGood => unless(
            means.known_good,
            "the place declares no canary, so nothing but what a run deploys is put on its board",
        ),
        RecoveryStep::PowerCycle | RecoveryStep::LongPowerCycle if means.emulated => {
            Some("an emulated board loses its power with its emulator")
        }
        RecoveryStep::PowerCycle | RecoveryStep::LongPowerCycle => {
            unless(means.outlet.is_some(), "nothing switches the board's power")
        }
        RecoveryStep::HubCycle => {
            unless(means.hub.is_some(), "nothing switches the power of the board's hub")
        }
        RecoveryStep::Wait => None,
        RecoveryStep::FailOver => unless(
            !means.equivalents.is_empty(),
            "no other place of the rig has this kind of board on the same parts",
        ),
        RecoveryStep::OutOfService if means.of_command => {
            Some("the place is a chip on the probe that the command names, and no rig file has it")
        }
        RecoveryStep::OutOfService => unless(
            !means.emulated,
            "what state an emulated board is in is never unknown: the next start is a new one",
        ),
    }
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ladder_ended(means: &Means) -> Vec<&'static str> {
        let rungs = ladder(&Recovery::default(), means);
        assert_eq!(rungs.len(), RecoveryStep::ALL.len());
        rungs.iter().filter(|rung| rung.skip.is_none()).map(|rung| rung.step.as_str()).collect()
    }

    #[test]
    fn a_place_recovers_by_what_it_has_the_means_for() {
        let emulated = Means { emulated: true, known_good: true, ..Means::default() };
        assert_eq!(ladder_ended(&emulated), ["restart-emulator", "wait"]);
        assert_eq!(ladder_ended(&Means::default()), ["reopen", "wait", "out-of-service"]);
        let probed = Means { probe: true, resets: true, ..Means::default() };
        assert_eq!(
            ladder_ended(&probed),
            ["reopen", "reset", "attach-under-reset", "wait", "out-of-service"]
        );
        let of_command = Means { of_command: true, ..probed };
        assert_eq!(ladder_ended(&of_command), ["reopen", "reset", "attach-under-reset", "wait"]);
        let rich = Means {
            emulated: false,
            of_command: false,
            probe: true,
            resets: true,
            outlet: Some(Duration::from_secs(30)),
            known_good: true,
            hub: Some(Duration::from_secs(30)),
            equivalents: vec!["b".parse().unwrap()],
        };
        let all = ladder_ended(&rich);
        assert_eq!(all.len(), RecoveryStep::ALL.len() - 1);
        assert!(!all.contains(&"restart-emulator"));
    }

    #[test]
    fn a_profile_orders_and_shortens_its_ladder() {
        let recovery = Recovery {
            ladder: vec![RecoveryStep::LongPowerCycle, RecoveryStep::Reset],
            long_off: Duration::from_secs(300),
            ..Recovery::default()
        };
        let means = Means { outlet: Some(Duration::ZERO), ..Means::default() };
        let rungs = ladder(&recovery, &means);
        assert_eq!(rungs[0].step, RecoveryStep::LongPowerCycle);
        assert_eq!(rungs[0].budget_ms, 360_000);
        assert_eq!(rungs[1].step, RecoveryStep::Reset);
    }

    #[test]
    fn a_power_cycle_may_take_as_long_as_its_device() {
        let budgets = |outlet, hub| {
            let seconds = |time: u64| Some(Duration::from_secs(time));
            let means = Means { outlet: seconds(outlet), hub: seconds(hub), ..Means::default() };
            let rungs = ladder(&Recovery::default(), &means);
            let of = |step| rungs.iter().find(|rung| rung.step == step).unwrap().budget_ms / 1000;
            use RecoveryStep::{HubCycle, LongPowerCycle, PowerCycle};
            [of(PowerCycle), of(LongPowerCycle), of(HubCycle)]
        };
        assert_eq!(budgets(1, 1), [60, 90, 90]);
        // A management controller that takes a minute to settle; a person who has to walk to the
        // switch.
        assert_eq!(budgets(220, 600), [220, 230, 615]);
    }
}
