//! A program that resets a board.

use std::sync::Arc;

use jig_model::Cause;
use jig_model::protocol::{
    BindContext, BoxFuture, DriverError, PartFactory, ProcessLedger, Protocols,
};
use jig_model::rig_file::{ResetCommand, ResetPart};

use super::{ResetMeans, with_reset};
use crate::power::run_program;

/// Adds the reset of a board that a program resets.
pub struct CommandResetFactory;

impl PartFactory for CommandResetFactory {
    fn join(&self, context: &BindContext, built: Protocols) -> Result<Protocols, DriverError> {
        let Some(ResetPart::Command(command)) = context.place.reset_part() else {
            return Ok(built);
        };
        let means = CommandReset { command, ledger: Arc::clone(&context.ledger) };
        Ok(with_reset(Box::new(means), context, built))
    }
}

struct CommandReset {
    command: ResetCommand,
    ledger: Arc<dyn ProcessLedger>,
}

impl ResetMeans for CommandReset {
    /// The program resets and lets go at once, so nothing is held.
    fn hold(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn release(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async {
            let ResetCommand { argv, timeout } = &self.command;
            let failed = |message: String| DriverError::new(Cause::PowerFailed, message);
            let ran = run_program(argv, Vec::new(), Arc::clone(&self.ledger));
            let program = argv.first().map_or("", String::as_str);
            match tokio::time::timeout(*timeout, ran).await {
                Ok(Ok(_)) => Ok(()),
                Ok(Err(error)) => Err(failed("reset the board".to_owned()).with_source(error)),
                Err(_) => {
                    Err(failed(format!("reset the board: {program} took longer than {timeout:?}")))
                }
            }
        })
    }
}
