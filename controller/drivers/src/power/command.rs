//! A program of the lab's own.

use std::sync::Arc;

use jig_model::power::CommandPower;
use jig_model::protocol::{BoxFuture, ProcessLedger};

use super::context::{OpenOutlets, PowerContext};
use super::template::{TemplateFill, fill, plain};
use super::templated::{TemplateCaller, Templated};
use super::{Outlets, PowerError, program};

/// Runs a program. Its exit code 0 means that it was done.
struct Program {
    name: String,
    ledger: Arc<dyn ProcessLedger>,
}

impl OpenOutlets for CommandPower {
    fn open(self, context: &PowerContext) -> Result<Box<dyn Outlets>, PowerError> {
        let name = self.set.first().cloned().unwrap_or_default();
        let program = Program { name, ledger: Arc::clone(&context.ledger) };
        Ok(Box::new(Templated::new(program, (self.set, self.status), self.words, &self.says)?))
    }
}

impl TemplateCaller for Program {
    type Call = Vec<String>;

    fn what(&self) -> String {
        format!("the program {}", self.name)
    }

    fn what_is_called(&self, argv: &Vec<String>) -> String {
        argv.first().map_or_else(|| self.what(), |program| format!("the program {program}"))
    }

    fn call<'a>(
        &'a self,
        argv: &'a Vec<String>,
        outlet: &'a str,
        word: &'a str,
    ) -> BoxFuture<'a, Result<Vec<u8>, PowerError>> {
        Box::pin(async move {
            let values = TemplateFill { outlet, state: word, user: None, password: None };
            let filled = argv.iter().map(|arg| fill(arg, &values, plain));
            let argv: Vec<String> = filled.collect::<Result<_, _>>()?;
            program::run(&argv, Vec::new(), Arc::clone(&self.ledger)).await
        })
    }
}
