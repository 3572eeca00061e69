//! A program of the lab's own.

use std::sync::Arc;

use jig_model::power::CommandPower;
use jig_model::protocol::{BoxFuture, PowerState, ProcessLedger};

use super::judge::Judge;
use super::template::{Fill, fill, plain};
use super::{Outlets, PowerError, program};

/// Switches by a program. Its exit code 0 means that it was done.
pub(super) struct CommandOutlets {
    command: CommandPower,
    judge: Judge,
    ledger: Arc<dyn ProcessLedger>,
}

impl CommandOutlets {
    pub(super) fn new(
        command: CommandPower,
        ledger: Arc<dyn ProcessLedger>,
    ) -> Result<Self, PowerError> {
        Ok(Self { judge: Judge::of(&command.says)?, command, ledger })
    }

    async fn run(&self, argv: &[String], outlet: &str, word: &str) -> Result<Vec<u8>, PowerError> {
        let values = Fill { outlet, state: word, user: None, password: None };
        let argv: Vec<String> =
            argv.iter().map(|arg| fill(arg, &values, plain)).collect::<Result<_, _>>()?;
        program::run(&argv, Vec::new(), Arc::clone(&self.ledger)).await
    }
}

impl Outlets for CommandOutlets {
    fn what(&self) -> String {
        format!("the program {}", self.command.set.first().map_or("", String::as_str))
    }

    fn set<'a>(
        &'a self,
        outlet: &'a str,
        state: PowerState,
    ) -> BoxFuture<'a, Result<(), PowerError>> {
        let word = match state {
            PowerState::On => &self.command.words.0,
            PowerState::Off => &self.command.words.1,
        };
        Box::pin(async move { self.run(&self.command.set, outlet, word).await.map(drop) })
    }

    fn read<'a>(
        &'a self,
        outlet: &'a str,
    ) -> BoxFuture<'a, Result<Option<PowerState>, PowerError>> {
        Box::pin(async move {
            let Some(status) = &self.command.status else { return Ok(None) };
            let said = self.run(status, outlet, "").await?;
            let program = status.first().map_or("", String::as_str);
            self.judge.state(program, said.trim_ascii()).map(Some)
        })
    }
}
