//! Devices with a web interface: requests and answers are templates and patterns.

use jig_model::power::{HttpCall, HttpPower};
use jig_model::protocol::{BoxFuture, PowerState};
use regex::bytes::Regex;

use super::error::quote;
use super::judge::{Judge, compile};
use super::template::{Fill, fill, json, percent};
use super::web::{Answer, Call, Web};
use super::{Outlets, PowerError, Secret};

/// Switches by requests.
pub(super) struct HttpOutlets {
    about: HttpPower,
    web: Web,
    judge: Judge,
    refusal: Option<Regex>,
}

impl HttpOutlets {
    pub(super) fn new(about: HttpPower) -> Result<Self, PowerError> {
        let password = about.password.as_ref().map(Secret::read).transpose()?;
        let web =
            Web::new(about.url.clone(), &about.tls, about.auth, about.user.as_deref(), password)?;
        let refusal = about.refusal.as_ref().map(compile).transpose()?;
        Ok(Self { web, judge: Judge::of(&about.says)?, refusal, about })
    }

    async fn ask(&self, call: &HttpCall, outlet: &str, word: &str) -> Result<Answer, PowerError> {
        let values = Fill {
            outlet,
            state: word,
            user: Some(self.web.user()),
            password: self.web.password(),
        };
        let body = call.body.as_ref().map(|body| fill(body, &values, json)).transpose()?;
        let path = fill(&call.path, &values, percent)?;
        let answer = self.web.ask(Call { method: call.method, path, body }).await?;
        if self.refusal.as_ref().is_some_and(|refusal| refusal.is_match(&answer.body)) {
            return Err(PowerError::refused(self.what(), quote(answer.body.trim_ascii())));
        }
        Ok(answer)
    }
}

impl Outlets for HttpOutlets {
    fn what(&self) -> String {
        self.web.what()
    }

    fn set<'a>(
        &'a self,
        outlet: &'a str,
        state: PowerState,
    ) -> BoxFuture<'a, Result<(), PowerError>> {
        let word = match state {
            PowerState::On => &self.about.words.0,
            PowerState::Off => &self.about.words.1,
        };
        Box::pin(async move { self.ask(&self.about.set, outlet, word).await.map(drop) })
    }

    fn read<'a>(
        &'a self,
        outlet: &'a str,
    ) -> BoxFuture<'a, Result<Option<PowerState>, PowerError>> {
        Box::pin(async move {
            let Some(status) = &self.about.status else { return Ok(None) };
            let answer = self.ask(status, outlet, "").await?;
            self.judge.state(&self.what(), answer.body.trim_ascii()).map(Some)
        })
    }
}
