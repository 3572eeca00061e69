//! The ladder by which a rig is recovered: its steps, and what is told of a ladder.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Cause;
use crate::document::Choice;

macro_rules! steps {
    ($($(#[doc = $doc:literal])+ $variant:ident = $text:literal, $budget:literal;)+) => {
        /// A step of the ladder, gentlest first.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum RecoveryStep { $($(#[doc = $doc])+ $variant,)+ }

        impl RecoveryStep {
            /// Lists every step, in the order in which they are taken.
            pub const ALL: &'static [RecoveryStep] = &[$(RecoveryStep::$variant,)+];

            /// Returns the stable text form.
            pub fn as_str(self) -> &'static str {
                match self { $(RecoveryStep::$variant => $text,)+ }
            }

            /// Returns the one-line meaning of the step.
            pub fn meaning(self) -> &'static str {
                match self { $(RecoveryStep::$variant => concat!($($doc, " "),+).trim_ascii(),)+ }
            }

            /// Returns how long the step may take, its proof not counted, if the profile says
            /// nothing.
            pub fn budget(self) -> Duration {
                match self { $(RecoveryStep::$variant => Duration::from_secs($budget),)+ }
            }
        }

        impl Choice for RecoveryStep {
            const WHAT: &'static str = "step of the recovery ladder";
            const CHOICES: &'static [(&'static str, Self)] =
                &[$(($text, RecoveryStep::$variant),)+];
        }
    };
}

// The budgets: what is done by transport takes milliseconds and fails by the driver's own time-out,
// which is below ten seconds; an outlet's device has up to 30 s to answer and be read back; a
// flash of a megabyte over a slow probe takes half a minute.
steps! {
    /// Lets go of everything the place is made of and takes it up again.
    Reopen = "reopen", 15;
    /// Resets the board.
    Reset = "reset", 15;
    /// Attaches the debug probe while the chip is held in reset.
    AttachUnderReset = "attach-under-reset", 20;
    /// Ends the emulator and starts a new one.
    RestartEmulator = "restart-emulator", 15;
    /// Puts the known-good image on the board.
    ReflashKnownGood = "reflash-known-good", 60;
    /// Takes the board's power for a moment.
    PowerCycle = "power-cycle", 60;
    /// Takes the board's power long enough for capacitors and parasitic feeds to run dry.
    LongPowerCycle = "long-power-cycle", 90;
    /// Takes the power of the hub that the board hangs on.
    HubCycle = "hub-cycle", 90;
    /// Waits for what passes by itself, such as a device that comes back or a host that is busy.
    Wait = "wait", 30;
    /// Moves to another place with the same kind of board.
    FailOver = "fail-over", 60;
    /// Takes the place out of service until it is proven to work again.
    OutOfService = "out-of-service", 5;
}

impl std::fmt::Display for RecoveryStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for RecoveryStep {
    type Err = UnknownStep;
    fn from_str(text: &str) -> Result<Self, UnknownStep> {
        let found = Self::ALL.iter().copied().find(|step| step.as_str() == text);
        found.ok_or_else(|| UnknownStep(text.chars().take(40).collect()))
    }
}

/// Says that a text names no step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no step of the recovery ladder")]
pub struct UnknownStep(String);

/// How a kind of board is recovered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recovery {
    /// The steps, in the order in which they are taken. Those that a place has no means for
    /// are left out there.
    pub ladder: Vec<RecoveryStep>,
    /// How often a run may recover the rig and attempt the same test again.
    pub max_recoveries: u32,
    /// How long one ladder may take, proofs included.
    pub timeout: Duration,
    /// How long the power is away in a long power cycle.
    pub long_off: Duration,
}

/// What ends an emulator or shakes a plug comes in bursts of two or three; a rig that breaks a
/// fourth time in one run breaks a fifth time.
pub const MAX_RECOVERIES: u32 = 3;
/// Long enough for every step of a board with a slow power device, short enough for a CI job.
pub const TIMEOUT: Duration = Duration::from_secs(300);
/// A bulk capacitor of 1000 uF behind a board that leaks 0.1 mA loses 1 V in ten seconds.
pub const LONG_OFF: Duration = Duration::from_secs(10);

impl Default for Recovery {
    fn default() -> Self {
        Self {
            ladder: RecoveryStep::ALL.to_vec(),
            max_recoveries: MAX_RECOVERIES,
            timeout: TIMEOUT,
            long_off: LONG_OFF,
        }
    }
}

/// A step of a ladder as it stands at one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rung {
    /// The step.
    pub step: RecoveryStep,
    /// How long it may take, in milliseconds, its proof not counted.
    pub budget_ms: u64,
    /// Why it is not taken here, if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip: Option<String>,
}

/// What is told of a ladder, each before or right after it is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum RecoveryEvent {
    /// A ladder begins.
    Began {
        /// What made it necessary.
        cause: Cause,
        /// The ladder as it stands here, bottom first.
        ladder: Vec<Rung>,
        /// How long it may take at most, in milliseconds.
        #[serde(alias = "within_ms")]
        timeout_ms: u64,
    },
    /// A step is about to be taken.
    Step {
        /// The step.
        step: RecoveryStep,
    },
    /// A step was taken, and the rig was asked whether it works.
    Proof {
        /// The step.
        step: RecoveryStep,
        /// Whether it works.
        ok: bool,
        /// What the step did and what proves it, or why it does not.
        detail: String,
        /// How long step and proof took, in milliseconds.
        took_ms: u64,
    },
    /// The ladder ended.
    Ended {
        /// The step that recovered, or nothing.
        recovered_by: Option<RecoveryStep>,
        /// How long it took, in milliseconds.
        took_ms: u64,
        /// One line for people.
        detail: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_equals_serde_form_and_parses_back() {
        for &step in RecoveryStep::ALL {
            assert_eq!(serde_json::to_value(step).unwrap(), step.as_str());
            assert_eq!(step.as_str().parse(), Ok(step));
            assert!(!step.meaning().is_empty());
        }
        assert!("".parse::<RecoveryStep>().is_err());
    }

    #[test]
    fn logs_that_name_the_timeout_as_before_are_read() {
        let new = r#"{"what":"began","cause":"probe_lost","ladder":[],"timeout_ms":7}"#;
        let event: RecoveryEvent = serde_json::from_str(new).unwrap();
        let old = new.replace("timeout_ms", "within_ms");
        assert_eq!(serde_json::from_str::<RecoveryEvent>(&old).unwrap(), event);
    }
}
