//! Commands on the machine that Jig runs on.

use std::sync::Arc;

use jig_model::Cause;
use jig_model::event::RunEvent;
use jig_model::plan::Action;
use jig_model::protocol::CommandEnd;

use super::{Actions, by_driver};
use crate::attempt::abort_condition::abort_condition;
use crate::judge::ByteRange;
use crate::workflow::ActionFailure;

impl Actions<'_> {
    pub(super) async fn host_command(
        &mut self,
        action: &Action,
        argv: &[String],
        expected: i32,
    ) -> Result<String, ActionFailure> {
        self.commands += 1;
        let name = format!("command-{}-{}-{}.log", self.attempt, self.commands, action.name);
        let path = self.dir.artefact_path(&name);
        let artefact = self.dir.relative(&path).unwrap_or(name);
        let board = Arc::clone(&self.board);
        let end = tokio::select! {
            biased;
            failure = abort_condition(&board) => return Err(failure),
            end = self.host.command(argv, action.timeout, &path) => end,
        };
        let end = end.map_err(|error| by_driver(&error))?;
        let code = match end {
            CommandEnd::Exited(code) => Some(code),
            CommandEnd::Signalled(_) | CommandEnd::TimedOut => None,
        };
        let argv = argv.to_vec();
        let program = argv.first().cloned().unwrap_or_default();
        self.board.emit(RunEvent::HostCommand { argv, code, artefact: artefact.clone() });
        let words = match end {
            CommandEnd::Exited(code) if code == expected => return Ok(format!("exit code {code}")),
            CommandEnd::Exited(code) => format!("ended with code {code}, not {expected}"),
            CommandEnd::Signalled(signal) => format!("was ended by signal {signal}"),
            CommandEnd::TimedOut => format!("did not end within {:?}", action.timeout),
        };
        let end = std::fs::metadata(&path).map_or(0, |m| m.len());
        let text = "its output".to_owned();
        let range = ByteRange { file: artefact, start: 0, end, text };
        Err(ActionFailure {
            cause: Cause::HostCommandFailed,
            detail: format!("host command {program} {words}"),
            evidence: vec![range.evidence()],
        })
    }
}
