//! The task file as it is written.

use std::collections::BTreeMap;
use std::time::Duration;

use jig_agents::{HttpDialect, MAX_USD, micro_usd};
use jig_model::document::{Choice, FromToml, Located, Node};
use jig_model::toml_table;
use serde_json::{Value, json};
use toml::de::DeValue;

use crate::analysis::Preset;
use crate::convergence::ExecutionMode;

toml_table! {
    /// A task of the repair loop.
    pub(super) struct RawTask {
        /// Version of the task file: 1.
        version: u32 = required,
        /// What is to be reached, in words.
        goal: String = required,
        /// Git work tree, relative to the task file; the task file's folder if left out. It is read
        /// and never changed.
        repo: String = optional,
        /// A place or a board.
        board: String = required,
        /// An emulated place of the same board, on which candidates are tried before `board`, a real
        /// one, is flashed with one that passes there.
        screen_on as "screen-on": String = optional,
        /// Plan with the tests that must pass, relative to the task file.
        plan: String = required,
        /// Plan that decides at the end and that no agent sees.
        held_out as "held-out": String = optional,
        /// Who can be asked: interactive, ci or auto; ci if left out.
        mode: ExecutionMode = optional,
        /// Thresholds of the convergence check, and the usual number of iterations: strict, balanced
        /// or aggressive; balanced if left out.
        preset: Preset = optional,
        /// Agents, in the order in which they are asked: `templates`, `mcp`, `command:NAME` or
        /// `http:NAME`.
        agents: Vec<Located<String>> = required,
        /// A model that explains the failure before an agent is asked, as `http:NAME`; what it says is
        /// evidence for the agents. None is asked if left out.
        analyst: String = optional,
        /// How the firmware is built.
        build: RawBuild = required,
        /// Agents of the list that need settings, by name.
        agent: BTreeMap<String, Located<RawAgent>> = optional,
        /// Where the run ends at the latest.
        limits: RawLimits = optional,
        /// What may change.
        policy: RawPolicyPath = optional,
    }
    /// How the firmware is built.
    pub(super) struct RawBuild {
        /// Program and arguments, run in the root of the repository; never a shell line.
        command: Vec<Located<String>> = required,
        /// The image that it makes, relative to the repository; the only executable ELF file that a
        /// build makes if left out.
        artifact: String = optional,
        /// How long it may take; 10m if left out.
        timeout: Duration = optional,
    }
    /// An agent. One that is a program has `command`; one that is asked by HTTP has `url`.
    pub(super) struct RawAgent {
        /// Program and arguments; `{bundle}` stands for the folder with the evidence, `{usage}` for a
        /// file into which the program may write what it has used.
        command: Vec<Located<String>> = optional,
        /// How long one proposal may take; 10m if left out.
        timeout: Duration = optional,
        /// Variables that are passed on to a program; of the others it gets PATH and LANG, and a HOME
        /// and a TMPDIR of its own.
        env: Vec<Located<String>> = optional,
        /// Address below which the endpoint has `/chat/completions` (openai) or `/v1/messages`
        /// (anthropic).
        url: String = optional,
        /// What the endpoint speaks: openai or anthropic; openai if left out.
        dialect: HttpDialect = optional,
        /// The model, as the endpoint calls it.
        model: String = optional,
        /// Variable that holds the key of the endpoint; it is asked without a key if left out.
        key_env as "key-env": String = optional,
        /// Answers that are asked for, 1 to 16; 1 if left out.
        samples: u32 = optional,
        /// Most tokens of an answer; 8192 if left out.
        max_tokens as "max-tokens": u32 = optional,
        /// Temperature of the model, 0 to 2; the endpoint's own if left out.
        temperature: Temperature = optional,
        /// Price of a million tokens of the question in US dollars; 0 if left out.
        usd_per_million_in as "usd-per-million-in": Dollars = optional,
        /// Price of a million tokens of the answer in US dollars; 0 if left out.
        usd_per_million_out as "usd-per-million-out": Dollars = optional,
        /// Price of an answer of a program in US dollars, which counts where the program does not write
        /// another one to `{usage}`.
        usd_per_call as "usd-per-call": Dollars = optional,
    }
    /// Where the run ends at the latest.
    pub(super) struct RawLimits {
        /// Most iterations; if left out 10, and with the preset strict 15, with aggressive 5.
        iterations: u32 = optional,
        /// Longest time; 30m if left out.
        wall: Duration = optional,
        /// Most tokens of all agents; 200000 if left out.
        tokens: u32 = optional,
        /// Most money of all agents in US dollars; 5 if left out.
        usd: Dollars = optional,
        /// Most times that a real board is flashed; 200 if left out.
        flash_cycles as "flash-cycles": u32 = optional,
    }
    /// What may change.
    pub(super) struct RawPolicyPath {
        /// The policy file, relative to the task file. It stands outside of the repository.
        file: String = required,
    }
}

impl Choice for ExecutionMode {
    const WHAT: &'static str = "mode";
    const CHOICES: &'static [(&'static str, Self)] =
        &[("interactive", Self::Interactive), ("ci", Self::Ci), ("auto", Self::Auto)];
}

impl Choice for Preset {
    const WHAT: &'static str = "preset";
    const CHOICES: &'static [(&'static str, Self)] =
        &[("strict", Self::Strict), ("balanced", Self::Balanced), ("aggressive", Self::Aggressive)];
}

/// An amount of money, in millionths of a US dollar.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dollars(pub(super) u64);

impl FromToml for Dollars {
    fn schema() -> Value {
        json!({ "type": "number", "minimum": 0, "maximum": MAX_USD })
    }

    fn read(node: &Node<'_>) -> Option<Self> {
        number(node, "an amount", "5.0", MAX_USD).and_then(micro_usd).map(Self)
    }
}

/// How freely a model chooses its words.
#[derive(Debug, Clone, Copy)]
pub(super) struct Temperature(pub(super) f64);

/// Endpoints refuse more.
const MAX_TEMPERATURE: f64 = 2.0;

impl FromToml for Temperature {
    fn schema() -> Value {
        json!({ "type": "number", "minimum": 0, "maximum": MAX_TEMPERATURE })
    }

    fn read(node: &Node<'_>) -> Option<Self> {
        number(node, "a number", "0.7", MAX_TEMPERATURE).map(Self)
    }
}

/// Reads a number from 0 to `most`.
fn number(node: &Node<'_>, what: &str, example: &str, most: f64) -> Option<f64> {
    let number = match node.value() {
        DeValue::Float(number) => number.as_str().parse::<f64>().ok(),
        DeValue::Integer(number) => number.as_str().parse::<f64>().ok(),
        _ => {
            node.wrong_type(what, example);
            return None;
        }
    };
    let fitting = number.filter(|number| (0.0..=most).contains(number));
    if fitting.is_none() {
        let message = format!("`{}` is out of range", node.key());
        node.refuse("document::bad-value", message, format!("use 0 to {most}"));
    }
    fitting
}
