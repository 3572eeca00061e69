//! Devices with a web interface: requests and answers are templates and patterns.

use jig_model::power::{HttpCall, HttpPower};
use jig_model::protocol::BoxFuture;
use regex::bytes::Regex;

use super::context::{OpenOutlets, PowerContext};
use super::error::quote;
use super::judge::compile;
use super::template::{TemplateFill, fill, json, percent};
use super::templated::{TemplateCaller, Templated};
use super::web::{Web, WebCall};
use super::{Outlets, PowerError, Secret};

/// Sends requests.
struct HttpRequests {
    web: Web,
    /// An answer that means that it was not done, although the device calls it a success.
    refusal: Option<Regex>,
}

impl OpenOutlets for HttpPower {
    fn open(self, _: &PowerContext) -> Result<Box<dyn Outlets>, PowerError> {
        let password = self.password.as_ref().map(Secret::read).transpose()?;
        let web = Web::new(self.url, &self.tls, self.auth, self.user.as_deref(), password)?;
        let refusal = self.refusal.as_ref().map(compile).transpose()?;
        let requests = HttpRequests { web, refusal };
        Ok(Box::new(Templated::new(requests, (self.set, self.status), self.words, &self.says)?))
    }
}

impl TemplateCaller for HttpRequests {
    type Call = HttpCall;

    fn what(&self) -> String {
        self.web.what()
    }

    fn call<'a>(
        &'a self,
        call: &'a HttpCall,
        outlet: &'a str,
        word: &'a str,
    ) -> BoxFuture<'a, Result<Vec<u8>, PowerError>> {
        Box::pin(async move {
            let (user, password) = (Some(self.web.user()), self.web.password());
            let values = TemplateFill { outlet, state: word, user, password };
            let body = call.body.as_ref().map(|body| fill(body, &values, json)).transpose()?;
            let path = fill(&call.path, &values, percent)?;
            let answer = self.web.ask(WebCall { method: call.method, path, body }).await?;
            if self.refusal.as_ref().is_some_and(|refusal| refusal.is_match(&answer.body)) {
                return Err(PowerError::refused(self.what(), quote(answer.body.trim_ascii())));
            }
            Ok(answer.body)
        })
    }
}
