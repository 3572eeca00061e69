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
//! [model.local]
//! url = "http://127.0.0.1:8080/v1"
//! name = "a-model"
//! key_env = "LOCAL_MODEL_KEY"
//! max_context_tokens = 8000
//! max_output_tokens = 4096
//! [mcp.scope]
//! command = ["scope-mcp", "--stdio"]
//! ```

use std::collections::BTreeMap;
use std::ops::Range;

use jig_model::{Problem, Problems};
use serde::Deserialize;
use toml::Spanned;

use crate::journal::SessionLimits;

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
    /// Tables of other servers of tools, by their names, as they were written.
    pub mcp: BTreeMap<String, toml::Table>,
}

/// An endpoint of a model.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelEndpoint {
    /// Its address.
    pub url: String,
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
    model: BTreeMap<String, Spanned<ModelEndpoint>>,
    #[serde(default)]
    mcp: BTreeMap<String, toml::Table>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSessionLimits {
    step_s: Option<Spanned<u64>>,
    session_s: Option<Spanned<u64>>,
    iterations: Option<Spanned<u64>>,
    confirm_s: Option<Spanned<u64>>,
    calls: Option<Spanned<u64>>,
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

impl AgentsFile {
    /// Reads the file. `origin` names it in messages.
    ///
    /// # Errors
    /// It is too long, is no TOML, has an unknown key, or a value is out of its bounds: all of it is told at
    /// once, with its place.
    pub fn parse(origin: &str, text: &str) -> Result<Self, Problems> {
        let refused = |list: Vec<Problem>| {
            let (origin, source) = (origin.to_owned(), text.to_owned());
            Err(Problems { kind: "agents file", origin, source, list })
        };
        if text.len() > MAX_AGENTS_FILE {
            let words = format!("the file is longer than {MAX_AGENTS_FILE} bytes");
            return refused(vec![problem("agents::size", words, None, "shorten it")]);
        }
        let raw: RawAgentsFile = match toml::from_str(text) {
            Ok(raw) => raw,
            Err(error) => {
                let help = "jig ask --help names the page that lists the keys";
                let words = error.message().to_owned();
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
        let RawSessionLimits { step_s, session_s, iterations, confirm_s, calls } = raw.session;
        let limits = SessionLimits {
            step_s: bounded("step_s", step_s, usual.step_s, DAY),
            session_s: bounded("session_s", session_s, usual.session_s, DAY),
            iterations: narrow(bounded("iterations", iterations, usual.iterations.into(), 20)),
            confirm_s: bounded("confirm_s", confirm_s, usual.confirm_s, DAY),
            calls: narrow(bounded("calls", calls, usual.calls.into(), 10_000)),
        };
        let mut models = BTreeMap::new();
        for (name, endpoint) in raw.model {
            let span = Some(endpoint.span());
            let model = endpoint.into_inner();
            if model.key_env.is_some() && model.key_file.is_some() {
                let words = format!("model.{name} names its key twice");
                let help = "give key_env or key_file";
                problems.push(problem("agents::key", words, span.clone(), help));
            }
            if !(model.url.starts_with("http://") || model.url.starts_with("https://")) {
                let words = format!("model.{name}.url is no address of a web server");
                let help = "begin it with http:// or https://";
                problems.push(problem("agents::url", words, span, help));
            }
            models.insert(name, model);
        }
        if problems.is_empty() {
            return Ok(Self { limits, models, mcp: raw.mcp });
        }
        problems.sort_by_key(|problem| problem.span.as_ref().map(|span| span.start));
        refused(problems)
    }
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
        let text = "version = 2\n[session]\niterations = 0\ncalls = 99999\n\
                    [model.x]\nurl = \"ftp://x\"\nname = \"x\"\nkey_env = \"A\"\nkey_file = \"b\"\n";
        let problems = AgentsFile::parse("agents.toml", text).unwrap_err();
        let lines: Vec<_> = problems.located().iter().filter_map(|problem| problem.line).collect();
        assert_eq!(lines, [1, 3, 4, 5, 5], "{problems:?}");
        let typo =
            AgentsFile::parse("agents.toml", "version = 1\n[session]\nstep = 5").unwrap_err();
        assert_eq!(typo.located()[0].line, Some(3));
    }
}
