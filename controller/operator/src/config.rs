//! `agents.toml`: limits of sessions, endpoints of models, other servers of tools.
//!
//! The file lies beside the rig file. It never holds a key: an endpoint names the variable of the environment
//! or the file that has it.
//!
//! ```toml
//! version = 1
//! [session]
//! step_s = 60            # a call of a tool
//! session_s = 600        # all work of a session; waiting for a person is not work
//! iterations = 3
//! confirm_s = 600        # how long a confirmation may be given, and holds
//! calls = 200
//! tokens = 200000        # of all models, questions and answers
//! usd = 5.0              # of all models that have a price
//! [planner]
//! model = "local"        # needed where there are several
//! first = false          # true: it also plans what the grammar understands
//! search = false         # true: it phrases a question to what the lab knows where the request finds nothing
//! [model.local]
//! url = "http://127.0.0.1:8080/v1"
//! dialect = "openai"     # or anthropic
//! name = "a-model"
//! key_env = "LOCAL_MODEL_KEY"   # or key_file = "key.txt", relative to this file
//! max_context_tokens = 8000
//! max_output_tokens = 4096
//! temperature = 0.1      # the endpoint's own if left out
//! timeout_s = 60         # an answer
//! usd_per_million_in = 3.0      # 0 if left out: tokens of a question
//! usd_per_million_out = 15.0
//! [mcp.scope]
//! command = ["scope-mcp", "--stdio"]
//! ```

use std::collections::BTreeMap;
use std::ops::Range;

use jig_agents::{HttpDialect, MAX_USD, TokenPrices, micro_usd};
use jig_model::document::did_you_mean;
use jig_model::power::WebAddress;
use jig_model::{Problem, Problems};
use serde::Deserialize;
use toml::Spanned;

use crate::journal::{CharterModel, SessionLimits};

/// The newest version that this program knows.
const VERSION: u32 = 1;

/// Most bytes of the file.
pub const MAX_AGENTS_FILE: usize = 256 << 10;

/// What `agents.toml` says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentsFile {
    /// Limits of sessions.
    pub limits: SessionLimits,
    /// Endpoints of models, by their names.
    pub models: BTreeMap<String, ModelEndpoint>,
    /// The model that plans where nothing else is said.
    pub planner: Option<CharterModel>,
    /// Tables of other servers of tools, by their names, as they were written.
    pub mcp: BTreeMap<String, toml::Table>,
}

/// An endpoint of a model.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelEndpoint {
    /// Its address.
    pub url: String,
    /// What it speaks.
    #[serde(default)]
    dialect: RawDialect,
    /// The model.
    pub name: String,
    /// The variable of the environment that holds the key.
    #[serde(default)]
    pub key_env: Option<String>,
    /// The file that holds the key.
    #[serde(default)]
    pub key_file: Option<String>,
    /// Most tokens of a prompt.
    #[serde(default = "context_tokens")]
    pub max_context_tokens: u32,
    /// Most tokens of an answer.
    #[serde(default = "output_tokens")]
    pub max_output_tokens: u32,
    /// Temperature; the endpoint's own where there is none.
    #[serde(default)]
    pub temperature: Option<f64>,
    /// How long an answer may take, in seconds; as the role says if not said.
    #[serde(default)]
    pub timeout_s: Option<u64>,
    /// Price of a million tokens of a question, in US dollars.
    #[serde(default)]
    usd_per_million_in: f64,
    /// Price of a million tokens of an answer.
    #[serde(default)]
    usd_per_million_out: f64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawDialect {
    #[default]
    OpenAi,
    Anthropic,
}

impl ModelEndpoint {
    /// Returns what it speaks.
    pub fn dialect(&self) -> HttpDialect {
        match self.dialect {
            RawDialect::OpenAi => HttpDialect::OpenAi,
            RawDialect::Anthropic => HttpDialect::Anthropic,
        }
    }

    /// Returns what tokens cost.
    pub fn prices(&self) -> TokenPrices {
        let price = |dollars| micro_usd(dollars).unwrap_or_default();
        TokenPrices {
            micro_usd_per_million_in: price(self.usd_per_million_in),
            micro_usd_per_million_out: price(self.usd_per_million_out),
        }
    }

    /// Lists what is wrong with it, and the fix.
    fn problems(&self, name: &str) -> Vec<(&'static str, String, String)> {
        let mut found = Vec::new();
        if self.key_env.is_some() && self.key_file.is_some() {
            let words = format!("model.{name} names its key twice");
            found.push(("agents::key", words, "give key_env or key_file".to_owned()));
        }
        if let Err(error) = self.url.parse::<WebAddress>() {
            let words = format!("model.{name}.url: {error}");
            found.push(("agents::url", words, "begin it with http:// or https://".to_owned()));
        }
        let counts = [
            ("max_context_tokens", u64::from(self.max_context_tokens), 2000, 2_000_000),
            ("max_output_tokens", u64::from(self.max_output_tokens), 1, 1_000_000),
            ("timeout_s", self.timeout_s.unwrap_or(1), 1, DAY),
        ];
        for (key, value, least, most) in counts {
            if !(least..=most).contains(&value) {
                let words = format!("model.{name}.{key} is {value}");
                let help = format!("give a number from {least} to {most}");
                found.push(("agents::bounds", words, help));
            }
        }
        let prices = [
            ("usd_per_million_in", self.usd_per_million_in),
            ("usd_per_million_out", self.usd_per_million_out),
        ];
        for (key, price) in prices {
            if micro_usd(price).is_none() {
                let words = format!("model.{name}.{key} is {price}");
                found.push(("agents::bounds", words, format!("give a number from 0 to {MAX_USD}")));
            }
        }
        if self.temperature.is_some_and(|value| !(0.0..=2.0).contains(&value)) {
            let words = format!("model.{name}.temperature is out of range");
            found.push(("agents::bounds", words, "give a number from 0 to 2".to_owned()));
        }
        found
    }
}

fn context_tokens() -> u32 {
    8000
}

fn output_tokens() -> u32 {
    4096
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAgentsFile {
    version: Spanned<u32>,
    #[serde(default)]
    session: RawSessionLimits,
    #[serde(default)]
    planner: Option<Spanned<RawPlanner>>,
    #[serde(default)]
    model: BTreeMap<String, Spanned<ModelEndpoint>>,
    #[serde(default)]
    mcp: BTreeMap<String, toml::Table>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPlanner {
    model: Option<String>,
    #[serde(default)]
    first: bool,
    #[serde(default)]
    search: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSessionLimits {
    step_s: Option<Spanned<u64>>,
    session_s: Option<Spanned<u64>>,
    iterations: Option<Spanned<u64>>,
    confirm_s: Option<Spanned<u64>>,
    calls: Option<Spanned<u64>>,
    tokens: Option<Spanned<u64>>,
    usd: Option<Spanned<f64>>,
}

/// A day in seconds: what takes longer is no step of a session.
const DAY: u64 = 86_400;

fn problem(
    check: &'static str,
    message: String,
    span: Option<Range<usize>>,
    help: &str,
) -> Problem {
    Problem { check, message, span, help: help.to_owned() }
}

/// What people call a key where they write it into the file.
const KEYS: [&str; 8] =
    ["key", "api_key", "apikey", "api-key", "token", "secret", "password", "authorization"];

/// Tells whether a name is one of a key.
fn is_key(name: &str) -> bool {
    let name = name.trim_matches(['"', '\'']).to_ascii_lowercase();
    KEYS.contains(&name.as_str())
}

/// Covers the values of keys: a message quotes the file, and goes to terminals and logs. No place moves.
fn without_keys(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let mut covered = line.to_owned();
        let mut from = 0;
        while let Some(at) = covered[from..].find('=').map(|at| from + at) {
            let name = covered[..at].trim_end().rsplit([' ', '\t', ',', '{', '.']).next();
            if name.is_some_and(is_key) {
                covered.replace_range(at + 1.., &"*".repeat(covered.len() - at - 1));
                break;
            }
            from = at + 1;
        }
        lines.push(covered);
    }
    lines.join("\n")
}

impl AgentsFile {
    /// Reads the file. `origin` names it in messages.
    ///
    /// # Errors
    /// It is too long, is no TOML, has an unknown key, or a value is out of its bounds: all of it is told at
    /// once, with its place.
    pub fn parse(origin: &str, text: &str) -> Result<Self, Problems> {
        let refused = |list: Vec<Problem>| {
            let (origin, source) = (origin.to_owned(), without_keys(text));
            Err(Problems { kind: "agents file", origin, source, list })
        };
        if text.len() > MAX_AGENTS_FILE {
            let words = format!("the file is longer than {MAX_AGENTS_FILE} bytes");
            return refused(vec![problem("agents::size", words, None, "shorten it")]);
        }
        let raw: RawAgentsFile = match toml::from_str(text) {
            Ok(raw) => raw,
            Err(error) => {
                let words = error.message().to_owned();
                let of_key = error.span().and_then(|span| text.get(span)).is_some_and(is_key);
                let help = match of_key {
                    true => {
                        "a key never stands in this file: key_env names its variable, key_file its file"
                    }
                    false => "jig ask --help names the page that lists the keys",
                };
                return refused(vec![problem("agents::syntax", words, error.span(), help)]);
            }
        };
        let mut problems = Vec::new();
        if *raw.version.get_ref() != VERSION {
            let words = format!("version {} is not known", raw.version.get_ref());
            let help = "write version = 1, or use a newer jig";
            problems.push(problem("agents::version", words, Some(raw.version.span()), help));
        }
        let usual = SessionLimits::default();
        let mut bounded = |name: &str, value: Option<Spanned<u64>>, usual: u64, most: u64| {
            let Some(value) = value else { return usual };
            let found = *value.get_ref();
            if !(1..=most).contains(&found) {
                let words = format!("session.{name} is {found}");
                let help = format!("give a number from 1 to {most}");
                problems.push(problem("agents::bounds", words, Some(value.span()), &help));
            }
            found
        };
        let RawSessionLimits { step_s, session_s, iterations, confirm_s, calls, tokens, usd } =
            raw.session;
        let limits = SessionLimits {
            step_s: bounded("step_s", step_s, usual.step_s, DAY),
            session_s: bounded("session_s", session_s, usual.session_s, DAY),
            iterations: narrow(bounded("iterations", iterations, usual.iterations.into(), 20)),
            confirm_s: bounded("confirm_s", confirm_s, usual.confirm_s, DAY),
            calls: narrow(bounded("calls", calls, usual.calls.into(), 10_000)),
            tokens: bounded("tokens", tokens, usual.tokens, 1_000_000_000),
            micro_usd: usual.micro_usd,
        };
        let limits = match usd {
            None => limits,
            Some(usd) => match micro_usd(*usd.get_ref()) {
                Some(micro_usd) => SessionLimits { micro_usd, ..limits },
                None => {
                    let words = format!("session.usd is {}", usd.get_ref());
                    let help = format!("give a number from 0 to {MAX_USD}");
                    problems.push(problem("agents::bounds", words, Some(usd.span()), &help));
                    limits
                }
            },
        };
        let mut models = BTreeMap::new();
        for (name, endpoint) in raw.model {
            let span = Some(endpoint.span());
            let model = endpoint.into_inner();
            for (check, words, help) in model.problems(&name) {
                problems.push(problem(check, words, span.clone(), &help));
            }
            models.insert(name, model);
        }
        let planner = planner(raw.planner, &models, &mut problems);
        if problems.is_empty() {
            return Ok(Self { limits, models, planner, mcp: raw.mcp });
        }
        problems.sort_by_key(|problem| problem.span.as_ref().map(|span| span.start));
        refused(problems)
    }
}

/// Finds the model that plans: the one that is named, else the only one.
fn planner(
    raw: Option<Spanned<RawPlanner>>,
    models: &BTreeMap<String, ModelEndpoint>,
    problems: &mut Vec<Problem>,
) -> Option<CharterModel> {
    let span = raw.as_ref().map(Spanned::span);
    let RawPlanner { model, first, search } = raw.map(Spanned::into_inner).unwrap_or_default();
    let name = match model {
        Some(name) if models.contains_key(&name) => name,
        Some(name) => {
            let words = format!("planner.model names {name:?}, and there is no such model");
            let help = did_you_mean(&name, models.keys().map(String::as_str));
            problems.push(problem("agents::planner", words, span, &help));
            return None;
        }
        None if models.len() > 1 => {
            let words = format!("there are {} models, and no planner.model", models.len());
            let help = "name the one that plans: [planner] model = \"NAME\"";
            problems.push(problem("agents::planner", words, span, help));
            return None;
        }
        None => models.keys().next()?.clone(),
    };
    Some(CharterModel { name, first, search })
}

fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_as_documented_and_all_mistakes_are_told_with_their_lines() {
        let file = AgentsFile::parse("agents.toml", "version = 1\n[session]\nstep_s = 5").unwrap();
        let SessionLimits { step_s, session_s, iterations, .. } = file.limits;
        assert_eq!((step_s, session_s, iterations), (5, 600, 3));
        let text = "version = 2\n[session]\niterations = 0\ncalls = 99999\nusd = -1.0\n\
                    [model.x]\nusd_per_million_in = nan\nurl = \"ftp://x\"\nname = \"x\"\nkey_env = \"A\"\nkey_file = \"b\"\n";
        let problems = AgentsFile::parse("agents.toml", text).unwrap_err();
        let lines: Vec<_> = problems.located().iter().filter_map(|problem| problem.line).collect();
        assert_eq!(lines, [1, 3, 4, 5, 6, 6, 6], "{problems:?}");
        let one = "version = 1\n[model.a]\nurl = \"http://localhost:8080/v1\"\nname = \"x\"\n";
        let file = AgentsFile::parse("agents.toml", one).unwrap();
        assert_eq!(
            file.planner,
            Some(CharterModel { name: "a".to_owned(), first: false, search: false })
        );
        assert_eq!(file.models["a"].dialect(), HttpDialect::OpenAi);
        let two =
            format!("{one}[model.b]\nurl = \"https://b\"\nname = \"x\"\ndialect = \"anthropic\"\n");
        let problems = AgentsFile::parse("agents.toml", &two).unwrap_err();
        assert!(problems.list[0].message.contains("there are 2 models"), "{problems:?}");
        let named = format!("{two}[planner]\nmodel = \"b\"\nfirst = true\n");
        let file = AgentsFile::parse("agents.toml", &named).unwrap();
        assert_eq!(
            file.planner,
            Some(CharterModel { name: "b".to_owned(), first: true, search: false })
        );
        assert_eq!(file.models["b"].dialect(), HttpDialect::Anthropic);
        assert_eq!(file.models["b"].prices(), TokenPrices::default());
        assert_eq!(file.limits.micro_usd, 5_000_000);
        let priced = format!("{one}usd_per_million_out = 15.5\n[session]\nusd = 0.25\n");
        let file = AgentsFile::parse("agents.toml", &priced).unwrap();
        assert_eq!(file.limits.micro_usd, 250_000);
        assert_eq!(file.models["a"].prices().micro_usd_per_million_out, 15_500_000);
        let absent = named.replace("model = \"b\"", "model = \"c\"");
        let problems = AgentsFile::parse("agents.toml", &absent).unwrap_err();
        assert_eq!(problems.located()[0].line, Some(9), "{problems:?}");
        let typo =
            AgentsFile::parse("agents.toml", "version = 1\n[session]\nstep = 5").unwrap_err();
        assert_eq!(typo.located()[0].line, Some(3));
    }
    #[test]
    fn a_key_that_stands_in_the_file_is_refused_and_not_quoted() {
        let model = "version = 1\n[model.a]\nurl = \"http://a\"\nname = \"x\"\n";
        for line in [
            "key = \"s3cr3t-4419\"",
            "  api_key='s3cr3t-4419'",
            "\"token\" = \"\u{fc}s3cr3t-4419\"  # mine",
            "timeout_s = 5 # s\nPassword = \"s3cr3t-4419\"",
        ] {
            let problems =
                AgentsFile::parse("agents.toml", &format!("{model}{line}\n")).unwrap_err();
            let told = format!("{problems:?}");
            assert!(!told.contains("s3cr3t"), "{told}");
            assert!(told.contains("key_env names its variable"), "{told}");
            // Places in the file stay what they are.
            assert_eq!(problems.source.len(), model.len() + line.len() + 1, "{told}");
            let wanted = if line.starts_with("timeout") { 6 } else { 5 };
            assert_eq!(problems.located()[0].line, Some(wanted), "{told}");
        }
        let inline = "version = 1\nmodel = { a = { url = \"http://a\", key = \"s3cr3t,4419\" } }\n";
        let told = format!("{:?}", AgentsFile::parse("agents.toml", inline).unwrap_err());
        assert!(!told.contains("s3cr3t") && !told.contains("4419"), "{told}");
    }
}
