//! The agents of a task: each that needs settings with its table, each table with its agent.

use std::collections::BTreeMap;
use std::time::Duration;

use jig_agents::{HttpDialect, TokenPrices};
use jig_model::document::{Findings, Located, did_you_mean};
use jig_model::power::WebAddress;

use super::raw::RawAgent;
use super::types::{AgentCommand, AgentHttp, AgentRef};

/// How long a build or a proposal may take where the task does not say.
const USUAL_TIMEOUT: Duration = Duration::from_secs(600);

/// How many tokens an answer may have where the task does not say: a diff of 300 lines has half of
/// it, and models that think first need the rest.
const USUAL_MAX_TOKENS: u32 = 8192;

/// Most answers to one bundle.
const MAX_SAMPLES: u32 = 16;

type Agents = BTreeMap<String, Located<RawAgent>>;

pub(super) fn lower_agents(
    list: Located<Vec<Located<String>>>,
    analyst: Option<&Located<String>>,
    settings: &Agents,
    findings: &Findings,
) -> Vec<AgentRef> {
    if list.value.is_empty() {
        let help = "write agents = [\"templates\"] for edits without a model";
        findings.add("task::no-agent", list.at(), "`agents` names no agent", help);
    }
    for (number, text) in list.value.iter().enumerate() {
        if list.value[..number].iter().any(|before| before.value == text.value) {
            let message = format!("{:?} is in the list before", text.value);
            let help = "remove it; the last agent is asked again while the run goes on";
            findings.add("task::agent-twice", text.at(), message, help);
        }
    }
    let agents: Vec<_> =
        list.value.iter().filter_map(|text| agent(text, settings, findings)).collect();
    // An agent that cannot be used still uses its table.
    let used = |name: &str| {
        let named = |text: &Located<String>| {
            text.value
                .split_once(':')
                .is_some_and(|(kind, other)| matches!(kind, "command" | "http") && other == name)
        };
        list.value.iter().chain(analyst).any(named)
    };
    for (name, unused) in settings.iter().filter(|(name, _)| !used(name)) {
        let kind = if unused.value.url.is_some() { "http" } else { "command" };
        let help = format!("add \"{kind}:{name}\" to `agents`, or remove the table");
        let message = format!("`[agent.{name}]` is not in `agents`");
        findings.add("task::unused-agent", unused.at(), message, help);
    }
    agents
}

/// Reads who explains failures: a model behind HTTP. What is wrong with its table is told once.
pub(super) fn lower_analyst(
    text: &Located<String>,
    settings: &Agents,
    findings: &Findings,
) -> Option<AgentHttp> {
    if let Some(("http", name)) = text.value.split_once(':').filter(|(_, name)| !name.is_empty()) {
        return http(name, table(name, "url", text, settings, findings)?, findings);
    }
    let shown: String = text.value.chars().take(40).collect();
    let help = "write \"http:NAME\", and give [agent.NAME] a `url`";
    findings.add("task::analyst", text.at(), format!("{shown:?} is no model behind HTTP"), help);
    None
}

fn agent(text: &Located<String>, settings: &Agents, findings: &Findings) -> Option<AgentRef> {
    let settings = |name: &str, key: &str| table(name, key, text, settings, findings);
    match text.value.split_once(':') {
        None if text.value == "templates" => return Some(AgentRef::Templates),
        None if text.value == "mcp" => return Some(AgentRef::Mcp),
        Some(("http", name)) if !name.is_empty() => {
            return http(name, settings(name, "url")?, findings).map(AgentRef::Http);
        }
        Some(("command", name)) if !name.is_empty() => {
            return command(name, settings(name, "command")?, findings).map(AgentRef::Command);
        }
        _ => {}
    }
    let shown: String = text.value.chars().take(40).collect();
    let help = "write \"templates\", \"mcp\", \"command:NAME\" or \"http:NAME\"";
    findings.add("task::unknown-agent", text.at(), format!("{shown:?} is no agent"), help);
    None
}

/// Finds the table of an agent that is asked by what `key` says.
fn table<'a>(
    name: &str,
    key: &str,
    text: &Located<String>,
    settings: &'a Agents,
    findings: &Findings,
) -> Option<&'a Located<RawAgent>> {
    let Some(agent) = settings.get(name) else {
        let mut help = format!("add `[agent.{name}]` with its `{key}`");
        if !settings.is_empty() {
            let near = did_you_mean(name, settings.keys().map(String::as_str));
            help.push_str(&format!("; {near}"));
        }
        let message = format!("`[agent.{name}]` is missing");
        findings.add("task::missing-agent", text.at(), message, help);
        return None;
    };
    if agent.value.command.is_some() && agent.value.url.is_some() {
        let help = format!("keep `{key}`, by which `agents` asks it");
        let message = format!("`[agent.{name}]` has `command` and `url`");
        findings.add("task::command-and-url", agent.at(), message, help);
        return None;
    }
    Some(agent)
}

fn command(name: &str, agent: &Located<RawAgent>, findings: &Findings) -> Option<AgentCommand> {
    let raw = agent.value.clone();
    let argv = values(raw.command);
    if argv.first().is_none_or(String::is_empty) {
        let help = match raw.url {
            Some(_) => format!("write \"http:{name}\" in `agents`, or give it a `command`"),
            None => "write command = [\"./fix.sh\", \"{bundle}\"]".to_owned(),
        };
        let message = format!("`[agent.{name}]` has no `command`");
        findings.add("task::no-command", agent.at(), message, help);
        return None;
    }
    for (key, at) in [
        ("dialect", raw.dialect.map(|key| key.at())),
        ("model", raw.model.map(|key| key.at())),
        ("key-env", raw.key_env.map(|key| key.at())),
        ("samples", raw.samples.map(|key| key.at())),
        ("max-tokens", raw.max_tokens.map(|key| key.at())),
        ("temperature", raw.temperature.map(|key| key.at())),
        ("usd-per-million-in", raw.usd_per_million_in.map(|key| key.at())),
        ("usd-per-million-out", raw.usd_per_million_out.map(|key| key.at())),
    ] {
        if let Some(at) = at {
            let message = format!("`{key}` is no setting of a program");
            let help = "remove it; it belongs to an agent with `url`";
            findings.add("task::agent-key", at, message, help);
        }
    }
    Some(AgentCommand {
        name: name.to_owned(),
        command: argv,
        timeout: timeout(raw.timeout, findings),
        env: values(raw.env),
        micro_usd_per_call: raw.usd_per_call.map(|usd| usd.value.0),
    })
}

fn http(name: &str, agent: &Located<RawAgent>, findings: &Findings) -> Option<AgentHttp> {
    let raw = agent.value.clone();
    let missing = |key: &str, help: String| {
        let message = format!("`[agent.{name}]` has no `{key}`");
        findings.add("task::missing-key", agent.at(), message, help);
    };
    if let Some(env) = raw.env {
        let help = "remove it; the variable with the key is named by `key-env`";
        let message = "`env` is no setting of a model behind HTTP";
        findings.add("task::agent-key", env.at(), message, help);
    }
    if let Some(price) = raw.usd_per_call {
        let help = "remove it; write `usd-per-million-in` and `usd-per-million-out`";
        let message = "`usd-per-call` is no setting of a model behind HTTP";
        findings.add("task::agent-key", price.at(), message, help);
    }
    let url = match &raw.url {
        Some(text) => match text.value.parse::<WebAddress>() {
            Ok(url) => Some(url),
            Err(error) => {
                let help = "write url = \"http://localhost:8080/v1\"";
                findings.add("task::url", text.at(), error.to_string(), help);
                None
            }
        },
        None => {
            let help = match raw.command {
                Some(_) => format!("write \"command:{name}\" in `agents`, or give it a `url`"),
                None => "write url = \"http://localhost:8080/v1\"".to_owned(),
            };
            missing("url", help);
            return None;
        }
    };
    let model = raw.model.map(|model| model.value).filter(|model| !model.is_empty());
    if model.is_none() {
        missing("model", "write model = \"NAME\", as the endpoint calls it".to_owned());
    }
    let count = |key: &str, given: Option<Located<u32>>, usual: u32, most: u32| {
        let Some(given) = given else { return usual };
        if !(1..=most).contains(&given.value) {
            let help = format!("write a number from 1 to {most}");
            findings.add("task::agent-count", given.at(), format!("`{key}` is out of range"), help);
        }
        given.value
    };
    let price = |given: Option<Located<super::raw::Dollars>>| given.map_or(0, |usd| usd.value.0);
    Some(AgentHttp {
        name: name.to_owned(),
        samples: count("samples", raw.samples, 1, MAX_SAMPLES),
        max_tokens: count("max-tokens", raw.max_tokens, USUAL_MAX_TOKENS, 1_000_000),
        timeout: timeout(raw.timeout, findings),
        url: url?,
        dialect: raw.dialect.map_or(HttpDialect::OpenAi, |dialect| dialect.value),
        model: model?,
        key_env: raw.key_env.map(|key| key.value),
        temperature: raw.temperature.map(|temperature| temperature.value.0),
        prices: TokenPrices {
            micro_usd_per_million_in: price(raw.usd_per_million_in),
            micro_usd_per_million_out: price(raw.usd_per_million_out),
        },
    })
}

pub(super) fn timeout(given: Option<Located<Duration>>, findings: &Findings) -> Duration {
    let Some(given) = given else { return USUAL_TIMEOUT };
    if given.value.is_zero() {
        findings.add(
            "task::timeout",
            given.at(),
            "no time is left for it",
            "write `timeout = \"2m\"`",
        );
    }
    given.value
}

pub(super) fn values(list: Option<Located<Vec<Located<String>>>>) -> Vec<String> {
    list.map(|list| list.value.into_iter().map(|item| item.value).collect()).unwrap_or_default()
}
