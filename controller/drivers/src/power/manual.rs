//! Power that a person switches; the person's answer is believed.

use std::sync::Arc;

use jig_model::power::ManualPower;
use jig_model::protocol::{BoxFuture, PowerState};

use super::context::{OpenOutlets, PowerContext};
use super::error::word;
use super::human::{AskHuman, PERSON};
use super::{Outlets, PowerError};

/// Asks a person. How long they may take is the device's time-out.
struct ManualOutlets {
    about: ManualPower,
    human: Arc<dyn AskHuman>,
}

impl OpenOutlets for ManualPower {
    fn open(self, context: &PowerContext) -> Result<Box<dyn Outlets>, PowerError> {
        Ok(Box::new(ManualOutlets { about: self, human: Arc::clone(&context.human) }))
    }
}

impl Outlets for ManualOutlets {
    fn what(&self) -> String {
        PERSON.to_owned()
    }

    fn set<'a>(
        &'a self,
        outlet: &'a str,
        state: PowerState,
    ) -> BoxFuture<'a, Result<(), PowerError>> {
        let hint = self.about.hint.as_ref().map_or(String::new(), |hint| format!(" ({hint})"));
        Box::pin(async move {
            let question = format!("switch {outlet}{hint} {}", word(state));
            Ok(self.human.ask(&question).await?)
        })
    }

    fn read<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Option<PowerState>, PowerError>> {
        Box::pin(async { Ok(None) })
    }
}
