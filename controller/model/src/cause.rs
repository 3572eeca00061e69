//! The closed list of reasons a run can end for.
//!
//! A cause is what a fixture expects, a report prints and a script matches on, so its
//! text form is stable. Who is to blame and what verdict follows are facts of the cause
//! and stand here once.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Fault;

/// Names the five verdicts, and the end of a run that was called off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// Proven good.
    Pass,
    /// The target failed.
    Fail,
    /// The target passed in some attempts and failed in others.
    Flaky,
    /// The rig failed; this says nothing about the target.
    EnvError,
    /// Evidence is missing; neither good nor bad is proven.
    Inconclusive,
    /// The run was called off.
    Cancelled,
}

impl VerdictKind {
    /// Returns the stable text form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Flaky => "flaky",
            Self::EnvError => "env_error",
            Self::Inconclusive => "inconclusive",
            Self::Cancelled => "cancelled",
        }
    }
}

impl std::fmt::Display for VerdictKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

macro_rules! causes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $text:literal => $verdict:ident, $fault:ident;)+) => {
        /// Names why a run ended as it did.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum Cause { $($(#[doc = $doc])+ $variant,)+ }

        impl Cause {
            /// Lists every cause, in the order of this file.
            pub const ALL: &'static [Cause] = &[$(Cause::$variant,)+];

            /// Returns the stable text form, as used in JSON and fixtures.
            pub fn as_str(self) -> &'static str {
                match self { $(Cause::$variant => $text,)+ }
            }

            /// Returns the verdict that a single attempt with this cause gets.
            pub fn verdict(self) -> VerdictKind {
                match self { $(Cause::$variant => VerdictKind::$verdict,)+ }
            }

            /// Returns who is to blame, or none where everything went well.
            pub fn fault(self) -> Option<Fault> {
                match self { $(Cause::$variant => causes!(@fault $fault),)+ }
            }

            /// Returns the one-line meaning of the cause.
            pub fn meaning(self) -> &'static str {
                match self { $(Cause::$variant => concat!($($doc, " "),+).trim_ascii(),)+ }
            }
        }
    };
    (@fault None) => { None };
    (@fault $fault:ident) => { Some(Fault::$fault) };
}

causes! {
    /// Every planned case ran and passed, and the end was seen in this boot.
    Passed = "passed" => Pass, None;
    /// The plan's own expectations were all met; it declared no test results.
    ExpectationsMet = "expectations_met" => Pass, None;

    /// At least one test case reported failure.
    TestFailed = "test_failed" => Fail, Target;
    /// The firmware's own summary reports failures that no case line showed.
    SummaryFailed = "summary_failed" => Fail, Target;
    /// A fault banner of the firmware's handler was seen.
    FaultBanner = "fault_banner" => Fail, Target;
    /// The debug port found the processor in a fault that no console tells of.
    CoreFault = "core_fault" => Fail, Target;
    /// The processor locked up: a fault inside the fault handler.
    Lockup = "lockup" => Fail, Target;
    /// The firmware did what its board cannot execute, and that ended the board.
    TargetAborted = "target_aborted" => Fail, Target;
    /// The operating system of the target panicked.
    GuestPanic = "guest_panic" => Fail, Target;
    /// A watchdog reset the target.
    WatchdogReset = "watchdog_reset" => Fail, Target;
    /// The target reset itself although the plan did not ask for it.
    UnexpectedReset = "unexpected_reset" => Fail, Target;
    /// The target keeps booting again.
    BootLoop = "boot_loop" => Fail, Target;
    /// The target prints without end, faster or longer than the profile allows.
    OutputFlood = "output_flood" => Fail, Target;
    /// The firmware ended with a failing exit code.
    GuestExit = "guest_exit" => Fail, Target;
    /// The firmware started in this boot but did not finish within its time limit.
    Hang = "hang" => Fail, Target;
    /// Text that the plan waits for did not come, although the target printed in this boot.
    ExpectMissed = "expect_missed" => Fail, Target;
    /// Text that the plan forbids was seen, or an assertion on earlier output failed.
    AssertFailed = "assert_failed" => Fail, Target;
    /// A command on the target ended with another exit status than the plan expects.
    CommandFailed = "command_failed" => Fail, Target;
    /// A file could not be copied to or from the target: no room, no permission, no such file.
    TransferFailed = "transfer_failed" => Fail, Target;
    /// The target did not come back after the plan had rebooted it.
    RebootFailed = "reboot_failed" => Fail, Target;
    /// The connection to an emulated target was lost, with nothing but its emulator in between.
    ShellLost = "shell_lost" => Fail, Target;
    /// A host command of the plan ended with an unexpected exit code.
    HostCommandFailed = "host_command_failed" => Fail, Target;

    /// The target printed nothing in this boot.
    NoOutput = "no_output" => Inconclusive, Target;
    /// Something was printed, but no known result format was found in it.
    NoResults = "no_results" => Inconclusive, Target;
    /// A result report was found, but it holds no test.
    NoTests = "no_tests" => Inconclusive, Target;
    /// The plan expects nothing of the target, so its end proves nothing.
    NothingExpected = "nothing_expected" => Inconclusive, Target;
    /// The report announces another number of tests than were executed.
    PlanMismatch = "plan_mismatch" => Inconclusive, Target;
    /// The report has no end marker.
    ReportIncomplete = "report_incomplete" => Inconclusive, Target;
    /// Output beside a green report looks like a failed test that no format knows, or like a crash
    /// that no fault signature knows.
    SuspiciousOutput = "suspicious_output" => Inconclusive, Target;
    /// Console bytes are known to be missing.
    OutputLost = "output_lost" => Inconclusive, Lab;
    /// The image announces its build id, but none was printed in this boot.
    IdentityMissing = "identity_missing" => Inconclusive, Target;
    /// Something was missing in one attempt and not in the next, or the core stands in a fault of
    /// which nothing more can be found out: board or rig, it cannot be told.
    Unconfirmed = "unconfirmed" => Inconclusive, Unknown;
    /// The planner found a goal unmet although every action was done.
    GoalMissed = "goal_missed" => Inconclusive, Target;

    /// Another image ran than the one that was deployed.
    WrongImage = "wrong_image" => EnvError, Lab;
    /// The emulator's program is not installed.
    EmulatorMissing = "emulator_missing" => EnvError, Lab;
    /// The emulator refused to start.
    EmulatorRefused = "emulator_refused" => EnvError, Lab;
    /// The emulator was killed by a signal that Jig did not send.
    EmulatorKilled = "emulator_killed" => EnvError, Lab;
    /// The emulator ended although neither the firmware nor Jig asked for it.
    EmulatorExited = "emulator_exited" => EnvError, Lab;
    /// The emulator is alive but does not answer its monitor.
    EmulatorStuck = "emulator_stuck" => EnvError, Lab;
    /// The board's debug probe is not there, or cannot be told from another.
    ProbeMissing = "probe_missing" => EnvError, Lab;
    /// Another program holds the board's debug probe.
    ProbeBusy = "probe_busy" => EnvError, Lab;
    /// The debug probe stopped answering.
    ProbeLost = "probe_lost" => EnvError, Lab;
    /// The debug probe works, but the chip behind it does not answer.
    TargetUnresponsive = "target_unresponsive" => EnvError, Lab;
    /// The chip refuses debug access until it is erased.
    ChipProtected = "chip_protected" => EnvError, Lab;
    /// The board holds another chip than its profile says, or one that is not known.
    WrongChip = "wrong_chip" => EnvError, Lab;
    /// A health check of the rig failed.
    RigUnhealthy = "rig_unhealthy" => EnvError, Lab;
    /// The console's transport broke.
    ConsoleLost = "console_lost" => EnvError, Lab;
    /// The target's shell could not be reached, or the connection to it was lost.
    ShellUnreachable = "shell_unreachable" => EnvError, Lab;
    /// The target's shell cannot be used as the rig is set up: it refuses the key, or shows another
    /// host key.
    ShellRefused = "shell_refused" => EnvError, Lab;
    /// The image could not be put on the board.
    DeployFailed = "deploy_failed" => EnvError, Lab;
    /// The board could not be powered as asked.
    PowerFailed = "power_failed" => EnvError, Lab;
    /// What switches the board's power did not answer.
    PowerUnreachable = "power_unreachable" => EnvError, Lab;
    /// What switches the board's power says that it did, but the power stayed as it was.
    PowerMismatch = "power_mismatch" => EnvError, Lab;
    /// The run's record or logs could not be written.
    StorageFailed = "storage_failed" => EnvError, Lab;
    /// The program of a host command, or of a flasher, does not exist.
    HostCommandMissing = "host_command_missing" => EnvError, Lab;
    /// The system refused to start a host command: no permission, or no program of this machine.
    HostCommandRefused = "host_command_refused" => EnvError, Lab;
    /// The planner or generator of the workflow gave no usable answer.
    PlannerFailed = "planner_failed" => EnvError, Lab;

    /// A part of Jig broke; the logs of this run say where.
    InternalError = "internal_error" => EnvError, Bug;

    /// Passed in some attempts and failed in others.
    Flaky = "flaky" => Flaky, Target;
    /// The caller asked to stop.
    Cancelled = "cancelled" => Cancelled, Cancelled;
    /// Jig was killed while the run was under way; found by a later start.
    Abandoned = "abandoned" => Cancelled, Cancelled;
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for Cause {
    type Err = UnknownCause;
    fn from_str(text: &str) -> Result<Self, UnknownCause> {
        Cause::ALL
            .iter()
            .copied()
            .find(|cause| cause.as_str() == text)
            .ok_or_else(|| UnknownCause(text.to_owned()))
    }
}

/// Says that a text names no cause.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a cause")]
pub struct UnknownCause(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_equals_serde_form_and_parses_back() {
        for &cause in Cause::ALL {
            assert_eq!(serde_json::to_value(cause).unwrap(), cause.as_str());
            assert_eq!(cause.as_str().parse(), Ok(cause));
        }
    }

    #[test]
    fn only_a_pass_blames_nobody() {
        for &cause in Cause::ALL {
            assert_eq!(cause.fault().is_none(), cause.verdict() == VerdictKind::Pass, "{cause}");
        }
    }
}
