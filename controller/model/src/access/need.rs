//! Which right each command and each order to the leases needs.

use super::AccessRight;
use crate::command::{AttachInput, Command, PowerAction, RecoverExtent, RunOptions, ShellTask};
use crate::lease::LeaseOrder;
use crate::plan::Plan;

impl Command {
    /// Returns the right that the command needs at its place.
    pub fn access_right(&self) -> AccessRight {
        match self {
            Self::Run(run) => of_run(&run.options),
            Self::Test(test) => {
                // A plan that cannot be read runs nothing, and the command says what is wrong.
                let plan = Plan::parse(&test.plan.origin, &test.plan.text).ok();
                match plan.is_some_and(|plan| plan.reaches_host()) {
                    true => AccessRight::Administer,
                    false => of_run(&test.options),
                }
            }
            Self::Console(_)
            | Self::LineControl(_)
            | Self::Check(_)
            | Self::Reset(_)
            | Self::Debug(_)
            | Self::Shell(_)
            | Self::Hold(_) => AccessRight::Use,
            Self::Attach(attach) => match (attach.input, &attach.boot) {
                (AttachInput::None, None) => AccessRight::See,
                (AttachInput::None | AttachInput::Send | AttachInput::Take, _) => AccessRight::Use,
            },
            Self::Recover(recover) => match recover.extent {
                RecoverExtent::Prove => AccessRight::Use,
                RecoverExtent::Recover | RecoverExtent::From(_) => AccessRight::Power,
            },
            Self::RecoverySteps(_) => AccessRight::See,
            Self::Power(power) => match (power.action, power.force) {
                (PowerAction::Status | PowerAction::Explain, _) => AccessRight::See,
                (PowerAction::Verify, _) => AccessRight::Use,
                (PowerAction::On | PowerAction::Off | PowerAction::Cycle, false) => {
                    AccessRight::Power
                }
                // It takes the power from places that other users have.
                (PowerAction::On | PowerAction::Off | PowerAction::Cycle, true) => {
                    AccessRight::Administer
                }
            },
            Self::Flash(_) | Self::Erase(_) | Self::ServeProbe(_) => AccessRight::Flash,
        }
    }

    /// Returns the name of the command, for records.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Run(_) => "run",
            Self::Test(_) => "test",
            Self::Console(_) => "console",
            Self::Attach(attach) => match attach.input {
                AttachInput::None => "console-read",
                AttachInput::Send | AttachInput::Take => "console",
            },
            Self::LineControl(_) => "console-lines",
            Self::Recover(_) => "recover",
            Self::RecoverySteps(_) => "recovery-steps",
            Self::Power(power) => match power.action {
                PowerAction::On => "power-on",
                PowerAction::Off => "power-off",
                PowerAction::Cycle => "power-cycle",
                PowerAction::Status => "power-status",
                PowerAction::Verify => "power-verify",
                PowerAction::Explain => "power-explain",
            },
            Self::Check(_) => "check",
            Self::Flash(_) => "flash",
            Self::Erase(_) => "erase",
            Self::Reset(_) => "reset",
            Self::Debug(_) => "debug",
            Self::ServeProbe(_) => "probe-serve",
            Self::Hold(_) => "hold",
            Self::Shell(shell) => match shell.what {
                ShellTask::Exec { .. } => "exec",
                ShellTask::Upload { .. } => "upload",
                ShellTask::Download { .. } => "download",
            },
        }
    }
}

/// Faults make the rig fail, which others see in the health of its places.
fn of_run(options: &RunOptions) -> AccessRight {
    if options.inject.is_empty() { AccessRight::Use } else { AccessRight::Administer }
}

impl LeaseOrder {
    /// Returns the right that the order needs at the place that it is about; nothing where it is about
    /// the caller's own lease, or about all places that the caller sees.
    pub fn access_right(&self) -> Option<AccessRight> {
        match self {
            Self::Ask(_) => Some(AccessRight::Use),
            Self::Steal { .. } => Some(AccessRight::Administer),
            Self::Poll(_)
            | Self::Renew { .. }
            | Self::Extend { .. }
            | Self::Release(_)
            | Self::Own { .. }
            | Self::List => None,
        }
    }
}
