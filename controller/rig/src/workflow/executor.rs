//! The protocol of an action executor.
//!
//! Owns what an action's end looks like, good or bad. Refuses to know how anything is done.

use std::time::Duration;

use jig_model::plan::{Action, ActionKind};
use jig_model::protocol::BoxFuture;
use jig_model::{Cause, Evidence};

/// What an action that went well has to say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActionDone {
    /// What was seen, in one line; may quote the target.
    pub detail: String,
    /// Passages that show it.
    pub evidence: Vec<Evidence>,
}

/// Says that an action, or the workflow around it, did not go well.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct ActionFailure {
    /// The cause; who is to blame for it decides whether there is another attempt.
    pub cause: Cause,
    /// What was seen, in one line; may quote the target.
    pub detail: String,
    /// Passages that show it.
    pub evidence: Vec<Evidence>,
}

impl ActionFailure {
    /// Builds a failure without evidence.
    pub fn new(cause: Cause, detail: impl Into<String>) -> Self {
        Self { cause, detail: detail.into(), evidence: Vec::new() }
    }
}

/// Does the actions of a plan on one board.
pub trait ActionExecutor: Send {
    /// Does one action and keeps to its time-out. `path` is `stage/step/behaviour/action`.
    ///
    /// The future may be dropped at any await; whatever it holds must then be released.
    fn execute<'a>(
        &'a mut self,
        path: &'a str,
        action: &'a Action,
    ) -> BoxFuture<'a, Result<ActionDone, ActionFailure>>;

    /// Judges what it means that the plan's time was over during an action, which was dropped after
    /// this time. An executor that has seen the board's output can say more than the default.
    fn overdue<'a>(
        &'a mut self,
        path: &'a str,
        action: &'a Action,
        _after: Duration,
    ) -> BoxFuture<'a, ActionFailure> {
        Box::pin(std::future::ready(overdue(path, &action.kind)))
    }
}

/// Judges, by the kind of an action alone, what it means that the plan's time was over during it.
pub fn overdue(path: &str, kind: &ActionKind) -> ActionFailure {
    let cause = match kind {
        ActionKind::Power { .. } | ActionKind::Reset => Cause::PowerFailed,
        ActionKind::Deploy { .. } => Cause::DeployFailed,
        ActionKind::HostCommand { .. } => Cause::HostCommandFailed,
        ActionKind::Boot { .. }
        | ActionKind::Expect { .. }
        | ActionKind::ExpectReset { .. }
        | ActionKind::Send { .. }
        | ActionKind::WaitForResults { .. }
        | ActionKind::Assert { .. }
        | ActionKind::Sleep { .. } => Cause::Hang,
        ActionKind::Exec { .. } => Cause::CommandFailed,
        ActionKind::Upload { .. } | ActionKind::Download { .. } => Cause::TransferFailed,
        ActionKind::Reboot { .. } => Cause::RebootFailed,
    };
    ActionFailure::new(cause, format!("the plan's time was over during {path}"))
}

/// Describes in one line what an action does.
pub fn describe(kind: &ActionKind) -> String {
    match kind {
        ActionKind::Power { op } => format!("power {op:?}").to_ascii_lowercase(),
        ActionKind::Reset => "reset".to_owned(),
        ActionKind::ExpectReset { begins: None, .. } => "expect a reset by the target".to_owned(),
        ActionKind::ExpectReset { begins: Some(begins), .. } => {
            format!("expect a reset by the target, then /{begins}/")
        }
        ActionKind::Deploy { image: None } => "deploy the image".to_owned(),
        ActionKind::Deploy { image: Some(path) } => format!("deploy {}", path.display()),
        ActionKind::Boot { until: None } => "boot".to_owned(),
        ActionKind::Boot { until: Some(stage) } => format!("boot up to {stage}"),
        ActionKind::Expect { any, .. } => {
            let list: Vec<_> = any.iter().map(|p| format!("/{p}/")).collect();
            format!("expect {}", list.join(" or "))
        }
        ActionKind::Send { bytes, .. } => format!("send \"{}\"", bytes.escape_ascii()),
        ActionKind::WaitForResults { format: None, .. } => "wait for results".to_owned(),
        ActionKind::WaitForResults { format: Some(format), .. } => {
            format!("wait for results by {}", format.as_str())
        }
        ActionKind::Exec { argv, .. } => {
            format!("run {} on the target", argv.first().map_or("nothing", String::as_str))
        }
        ActionKind::Upload { from, to, .. } => {
            format!("copy {} to {to} on the target", from.display())
        }
        ActionKind::Download { from, .. } => format!("copy {from} from the target"),
        ActionKind::Reboot { .. } => "reboot the target".to_owned(),
        ActionKind::HostCommand { argv, .. } => {
            format!("run {}", argv.first().map_or("nothing", String::as_str))
        }
        ActionKind::Assert { pattern, .. } => format!("assert /{pattern}/"),
        ActionKind::Sleep { duration } => format!("sleep {} ms", duration.as_millis()),
    }
}
