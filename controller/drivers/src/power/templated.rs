//! Devices that a rig file describes: what they are told, and what their answers mean.

use jig_model::pattern::Pattern;
use jig_model::protocol::{BoxFuture, PowerState};

use super::judge::StateJudge;
use super::{Outlets, PowerError};

/// Fills a call in, makes it, and returns what the device says.
pub(super) trait TemplateCaller: Send + Sync {
    /// What is filled in: an argument list, a request.
    type Call: Send + Sync;

    /// Says what it talks to, for messages.
    fn what(&self) -> String;

    /// Says what a call talks to, for messages.
    fn what_is_called(&self, _call: &Self::Call) -> String {
        self.what()
    }

    /// Makes a call. `word` stands for the state, and is empty in a question for it.
    fn call<'a>(
        &'a self,
        call: &'a Self::Call,
        outlet: &'a str,
        word: &'a str,
    ) -> BoxFuture<'a, Result<Vec<u8>, PowerError>>;
}

/// Switches by calls that the rig file spells out.
pub(super) struct Templated<C: TemplateCaller> {
    caller: C,
    set: C::Call,
    status: Option<C::Call>,
    /// What stands for on, and for off.
    words: (String, String),
    judge: StateJudge,
}

impl<C: TemplateCaller> Templated<C> {
    /// `says` is what the answer to `status` looks like when it is on, and when it is off.
    pub(super) fn new(
        caller: C,
        (set, status): (C::Call, Option<C::Call>),
        words: (String, String),
        says: &(Pattern, Pattern),
    ) -> Result<Self, PowerError> {
        Ok(Self { caller, set, status, words, judge: StateJudge::of(says)? })
    }
}

impl<C: TemplateCaller> Outlets for Templated<C> {
    fn what(&self) -> String {
        self.caller.what()
    }

    fn what_is_asked(&self) -> String {
        self.status
            .as_ref()
            .map_or_else(|| self.what(), |status| self.caller.what_is_called(status))
    }

    fn set<'a>(
        &'a self,
        outlet: &'a str,
        state: PowerState,
    ) -> BoxFuture<'a, Result<(), PowerError>> {
        let word = match state {
            PowerState::On => &self.words.0,
            PowerState::Off => &self.words.1,
        };
        Box::pin(async move { self.caller.call(&self.set, outlet, word).await.map(drop) })
    }

    fn read<'a>(
        &'a self,
        outlet: &'a str,
    ) -> BoxFuture<'a, Result<Option<PowerState>, PowerError>> {
        Box::pin(async move {
            let Some(status) = &self.status else { return Ok(None) };
            let said = self.caller.call(status, outlet, "").await?;
            self.judge.state(&self.what_is_asked(), said.trim_ascii()).map(Some)
        })
    }
}
