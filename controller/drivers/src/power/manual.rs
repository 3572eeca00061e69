//! A person who switches, and is believed.

use std::sync::Arc;

use jig_model::power::ManualPower;
use jig_model::protocol::{BoxFuture, PowerState};

use super::error::word;
use super::{AskHuman, Outlets, PowerError};

/// Asks a person. How long they may take is the device's time-out.
pub(super) struct ManualOutlets {
    about: ManualPower,
    human: Arc<dyn AskHuman>,
}

impl ManualOutlets {
    pub(super) fn new(about: ManualPower, human: Arc<dyn AskHuman>) -> Self {
        Self { about, human }
    }
}

impl Outlets for ManualOutlets {
    fn what(&self) -> String {
        "the person at the terminal".to_owned()
    }

    fn set<'a>(
        &'a self,
        outlet: &'a str,
        state: PowerState,
    ) -> BoxFuture<'a, Result<(), PowerError>> {
        let hint = self.about.hint.as_ref().map_or(String::new(), |hint| format!(" ({hint})"));
        Box::pin(async move {
            let question = format!("switch {outlet}{hint} {}", word(state));
            let done = self.human.ask(&question).await;
            done.map_err(|why| PowerError::refused(self.what(), why))
        })
    }

    fn read<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Option<PowerState>, PowerError>> {
        Box::pin(async { Ok(None) })
    }
}
