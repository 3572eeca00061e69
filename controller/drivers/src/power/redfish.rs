//! Management controllers that speak Redfish (DSP0266, DSP0268).
//!
//! A resource says its `PowerState`, and under `Actions` where to post what: systems and
//! chassis have `Reset` with a `ResetType`, outlets of a rack unit have `PowerControl` with a
//! `PowerState`. A controller takes an action at once and carries it out later; the caller waits
//! for the state.

use jig_model::power::{HttpAuth, HttpMethod, RedfishPower};
use jig_model::protocol::{BoxFuture, PowerState};
use serde_json::{Value, json};

use super::context::{OpenOutlets, PowerContext};
use super::web::{Web, WebCall};
use super::{Outlets, PowerError, Secret};

/// Switches by actions of resources.
struct RedfishOutlets(Web);

/// What to post where.
#[derive(Debug, PartialEq, Eq)]
struct RedfishAction {
    target: String,
    body: String,
}

impl OpenOutlets for RedfishPower {
    fn open(self, _: &PowerContext) -> Result<Box<dyn Outlets>, PowerError> {
        let password = self.password.as_ref().map(Secret::read).transpose()?;
        let user = self.user.as_deref();
        let web = Web::new(self.url, &self.tls, HttpAuth::Basic, user, password)?;
        Ok(Box::new(RedfishOutlets(web)))
    }
}

impl RedfishOutlets {
    async fn resource(&self, outlet: &str) -> Result<Value, PowerError> {
        let path = match outlet.starts_with('/') {
            true => outlet.to_owned(),
            false => format!("/redfish/v1/Systems/{outlet}"),
        };
        let answer = self.0.ask(WebCall::get(path)).await?;
        serde_json::from_slice(&answer.body)
            .map_err(|_| PowerError::garbage(self.what(), &answer.body))
    }

    fn state(&self, resource: &Value) -> Result<PowerState, PowerError> {
        match resource.get("PowerState").and_then(Value::as_str) {
            // What is on its way off still has power, and the other way round.
            Some("On" | "PoweringOff" | "Paused") => Ok(PowerState::On),
            Some("Off" | "PoweringOn") => Ok(PowerState::Off),
            Some(other) => Err(PowerError::garbage(self.what(), other.as_bytes())),
            None => Err(PowerError::garbage(self.what(), b"no PowerState")),
        }
    }
}

/// Says why a resource cannot be switched.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum NoAction {
    #[error("it can neither be reset nor switched")]
    Missing,
    #[error("its action has no target here")]
    Elsewhere,
    #[error("it allows no {0}")]
    NotAllowed(&'static str),
}

/// Chooses how a resource is switched.
fn action(resource: &Value, state: PowerState) -> Result<RedfishAction, NoAction> {
    let actions = resource.get("Actions");
    let find = |name: &str| actions.and_then(|actions| actions.get(name));
    let target = |action: &Value| {
        let target = action.get("target").and_then(Value::as_str).unwrap_or_default();
        // What leads elsewhere would get the password.
        match target.starts_with('/') && !target.starts_with("//") {
            true => Ok(target.to_owned()),
            false => Err(NoAction::Elsewhere),
        }
    };
    if let Some(control) = find("#Outlet.PowerControl") {
        let word = if state == PowerState::On { "On" } else { "Off" };
        let body = json!({ "PowerState": word }).to_string();
        return Ok(RedfishAction { target: target(control)?, body });
    }
    let reset = find("#ComputerSystem.Reset").or_else(|| find("#Chassis.Reset"));
    let reset = reset.ok_or(NoAction::Missing)?;
    let wanted: &[&'static str] = match state {
        PowerState::On => &["On", "ForceOn"],
        // To shut down is to ask the software; power off is a power cut.
        PowerState::Off => &["ForceOff"],
    };
    let allowed = reset.get("ResetType@Redfish.AllowableValues").and_then(Value::as_array);
    let may = |word: &&&str| {
        allowed.is_none_or(|list| list.iter().any(|value| value.as_str() == Some(**word)))
    };
    let word = wanted.iter().find(may).ok_or(NoAction::NotAllowed(wanted[0]))?;
    Ok(RedfishAction { target: target(reset)?, body: json!({ "ResetType": word }).to_string() })
}

impl Outlets for RedfishOutlets {
    fn what(&self) -> String {
        self.0.what()
    }

    fn set<'a>(
        &'a self,
        outlet: &'a str,
        state: PowerState,
    ) -> BoxFuture<'a, Result<(), PowerError>> {
        Box::pin(async move {
            let resource = self.resource(outlet).await?;
            // Some refuse to switch on what is on.
            if self.state(&resource)? == state {
                return Ok(());
            }
            let refused = |why: NoAction| {
                PowerError::refused(format!("{outlet} of {}", self.what()), why.to_string())
            };
            let RedfishAction { target, body } = action(&resource, state).map_err(refused)?;
            let call = WebCall { method: HttpMethod::Post, path: target, body: Some(body) };
            self.0.ask(call).await.map(drop)
        })
    }

    fn read<'a>(
        &'a self,
        outlet: &'a str,
    ) -> BoxFuture<'a, Result<Option<PowerState>, PowerError>> {
        Box::pin(async move {
            let resource = self.resource(outlet).await?;
            self.state(&resource).map(Some)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(target: &str, allowed: &[&str]) -> Value {
        json!({ "PowerState": "On", "Actions": { "#ComputerSystem.Reset": {
            "target": target, "ResetType@Redfish.AllowableValues": allowed,
        } } })
    }

    #[test]
    fn the_action_is_what_the_resource_offers() {
        let target = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset";
        let of = |allowed: &[&str], state| action(&system(target, allowed), state);
        let body = |action: Result<RedfishAction, NoAction>| action.map(|action| action.body);
        let all = ["On", "ForceOff", "GracefulShutdown"];
        assert_eq!(body(of(&all, PowerState::Off)), Ok(r#"{"ResetType":"ForceOff"}"#.to_owned()));
        assert_eq!(body(of(&["ForceOn"], PowerState::On)), Ok(r#"{"ResetType":"ForceOn"}"#.into()));
        assert_eq!(of(&["Sleep"], PowerState::Off), Err(NoAction::NotAllowed("ForceOff")));
        let outlet = json!({ "Actions": { "#Outlet.PowerControl": { "target": "/x" } } });
        let wanted = RedfishAction { target: "/x".into(), body: r#"{"PowerState":"Off"}"#.into() };
        assert_eq!(action(&outlet, PowerState::Off), Ok(wanted));
        assert_eq!(action(&json!({}), PowerState::On), Err(NoAction::Missing));
    }

    #[test]
    fn no_target_leads_elsewhere() {
        for target in ["http://evil/x", "//evil/x", ""] {
            let action = action(&system(target, &["On"]), PowerState::On);
            assert_eq!(action, Err(NoAction::Elsewhere), "{target}");
        }
    }
}
