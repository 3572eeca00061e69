//! Tests of the task file: the documented example, the defaults, and every refusal.

use std::time::Duration;

use super::*;
use crate::analysis::Preset;
use crate::convergence::ExecutionMode;

/// The example of the guide.
const FULL: &str = r#"
version = 1
goal = "the boot test passes"
repo = "."
board = "microbit"
screen-on = "emulated"
plan = "plan.toml"
held-out = "held.toml"
mode = "auto"
preset = "strict"
agents = ["command:fixer", "templates", "http:large"]
analyst = "http:large"
[build]
command = ["make", "-C", "fw"]
artifact = "fw/out/app.elf"
timeout = "2m"
[agent.fixer]
command = ["./fix.sh", "{bundle}"]
timeout = "5m"
env = ["FIXER_TOKEN"]
usd-per-call = 0.07
[agent.large]
url = "https://models.lab/api/"
dialect = "anthropic"
model = "large-1"
key-env = "MODELS_KEY"
samples = 3
max-tokens = 4000
temperature = 0.5
usd-per-million-in = 3
usd-per-million-out = 15.5
timeout = "3m"
[limits]
iterations = 12
wall = "45m"
tokens = 1000
usd = 0.25
flash-cycles = 20
[policy]
file = "policy.toml"
"#;

const SMALL: &str = r#"
version = 1
goal = "g"
board = "microbit"
plan = "plan.toml"
agents = ["templates", "mcp", "http:local"]
[build]
command = ["make"]
artifact = "app.elf"
[agent.local]
url = "http://localhost:8080/v1"
model = "small"
"#;

#[test]
fn every_key_is_read() {
    let task = RepairTask::parse("task.toml", FULL).unwrap();
    let fixer = AgentCommand {
        name: "fixer".to_owned(),
        command: vec!["./fix.sh".to_owned(), "{bundle}".to_owned()],
        timeout: Duration::from_secs(300),
        env: vec!["FIXER_TOKEN".to_owned()],
        micro_usd_per_call: Some(70_000),
    };
    let large = AgentHttp {
        name: "large".to_owned(),
        url: "https://models.lab/api".parse().unwrap(),
        dialect: HttpDialect::Anthropic,
        model: "large-1".to_owned(),
        key_env: Some("MODELS_KEY".to_owned()),
        samples: 3,
        max_tokens: 4000,
        temperature: Some(0.5),
        prices: TokenPrices {
            micro_usd_per_million_in: 3_000_000,
            micro_usd_per_million_out: 15_500_000,
        },
        timeout: Duration::from_secs(180),
    };
    let agents = vec![AgentRef::Command(fixer), AgentRef::Templates, AgentRef::Http(large.clone())];
    let variables: Vec<_> = task.variables().collect();
    assert_eq!(variables, ["FIXER_TOKEN", "MODELS_KEY", "MODELS_KEY"]);
    let limits = RepairLimits {
        iterations: 12,
        wall_s: 2700,
        tokens: 1000,
        micro_usd: 250_000,
        flash_cycles: 20,
    };
    assert_eq!(
        task,
        RepairTask {
            goal: "the boot test passes".to_owned(),
            repo: ".".into(),
            board: "microbit".to_owned(),
            screen_on: Some("emulated".to_owned()),
            plan: "plan.toml".into(),
            held_out: Some("held.toml".into()),
            mode: ExecutionMode::Auto,
            preset: Preset::Strict,
            agents,
            analyst: Some(large),
            build: BuildTask {
                command: ["make", "-C", "fw"].map(str::to_owned).into(),
                artifact: Some("fw/out/app.elf".into()),
                timeout: Duration::from_secs(120),
            },
            limits,
            policy: Some("policy.toml".into()),
        }
    );
}

#[test]
fn what_is_left_out_has_a_finite_default() {
    let task = RepairTask::parse("task.toml", SMALL).unwrap();
    assert_eq!((task.mode, task.preset), (ExecutionMode::Ci, Preset::Balanced));
    assert_eq!(task.limits, RepairLimits::default());
    for (preset, iterations) in [("strict", 15), ("balanced", 10), ("aggressive", 5)] {
        let text =
            SMALL.replacen("version = 1\n", &format!("version = 1\npreset = \"{preset}\"\n"), 1);
        let of_preset = RepairTask::parse("task.toml", &text).unwrap().limits;
        assert_eq!(of_preset, RepairLimits { iterations, ..task.limits }, "{preset}");
        let text = format!("{text}[limits]\niterations = 7\n");
        assert_eq!(RepairTask::parse("task.toml", &text).unwrap().limits.iterations, 7);
    }
    assert_eq!(task.build.timeout, Duration::from_secs(600));
    let [AgentRef::Templates, AgentRef::Mcp, AgentRef::Http(local)] = task.agents.as_slice() else {
        panic!("{:?}", task.agents)
    };
    assert_eq!((local.dialect, local.samples), (HttpDialect::OpenAi, 1));
    assert_eq!((local.max_tokens, local.timeout), (8192, Duration::from_secs(600)));
    assert_eq!((&local.key_env, local.temperature), (&None, None));
    assert_eq!(local.prices, TokenPrices::default());
    assert_eq!((task.held_out, task.policy, task.repo), (None, None, ".".into()));
}

#[test]
fn each_mistake_is_named_with_a_way_out() {
    let with = |old: &str, new: &str| FULL.replace(old, new);
    for (text, words) in [
        (with("version = 1", "version = 2"), "version"),
        (with("[\"command:fixer\", \"templates\", \"http:large\"]", "[]"), "names no agent"),
        (with("\"templates\"", "\"template\""), "\"template\" is no agent"),
        (with("command:fixer", "command:fix"), "`[agent.fix]` is missing"),
        (with("command:fixer", "mcp"), "`[agent.fixer]` is not in `agents`"),
        (with("[\"./fix.sh\", \"{bundle}\"]", "[]"), "`[agent.fixer]` has no `command`"),
        (with("[agent.large]", "[agent.other]"), "`[agent.large]` is missing"),
        (with("\"http:large\"", "\"mcp\""), "\"mcp\" is no model behind HTTP"),
        (with("\"http:large\"", "\"mcp\""), "add \"http:large\" to `agents`"),
        (
            with("analyst = \"http:large\"", "analyst = \"http:fixer\""),
            "`[agent.fixer]` has no `url`",
        ),
        (
            with("analyst = \"http:large\"", "analyst = \"http:lerge\""),
            "`[agent.lerge]` is missing",
        ),
        (with("http:large", "command:large"), "write \"http:large\" in `agents`"),
        (with("command:fixer", "http:fixer"), "write \"command:fixer\" in `agents`"),
        (with("[agent.large]\n", "[agent.large]\ncommand = [\"x\"]\n"), "`command` and `url`"),
        (with("[agent.large]\n", "[agent.large]\nenv = [\"X\"]\n"), "named by `key-env`"),
        (
            with("[agent.large]\n", "[agent.large]\nusd-per-call = 1\n"),
            "write `usd-per-million-in`",
        ),
        (with("[agent.fixer]\n", "[agent.fixer]\nmodel = \"m\"\n"), "`model` is no setting"),
        (with("model = \"large-1\"\n", ""), "`[agent.large]` has no `model`"),
        (with("https://models", "ftp://models"), "begins with http:// or https://"),
        (with("https://models", "https://user:key@models"), "does not belong into an address"),
        (with("\"anthropic\"", "\"google\""), "\"google\" is no dialect"),
        (with("samples = 3", "samples = 0"), "`samples` is out of range"),
        (with("max-tokens = 4000", "max-tokens = 0"), "`max-tokens` is out of range"),
        (with("temperature = 0.5", "temperature = 3"), "`temperature` is out of range"),
        (with("timeout = \"3m\"", "timeout = \"0s\""), "no time is left"),
        (with("[\"make\", \"-C\", \"fw\"]", "[]"), "`command` is empty"),
        (with("fw/out/app.elf", "../app.elf"), "leads out of the repository"),
        (with("fw/out/app.elf", "/app.elf"), "leads out of the repository"),
        (with("iterations = 12", "iterations = 0"), "a run needs an iteration"),
        (with("wall = \"45m\"", "wall = \"0s\""), "a run needs at least a second"),
        (with("wall = \"45m\"", "wall = \"300ms\""), "write wall = \"30m\""),
        (with("goal = \"the boot test passes\"", "goal = \" \""), "`goal` is empty"),
        (with("\"templates\"", "\"http:large\""), "\"http:large\" is in the list before"),
        (with("timeout = \"2m\"", "timeout = \"0s\""), "no time is left"),
        (with("usd = 0.25", "usd = -1"), "`usd` is out of range"),
        (with("usd = 0.25", "usd = nan"), "`usd` is out of range"),
        (with("usd = 0.25", "usd = \"5\""), "`usd` must be an amount"),
        (with("held-out", "held_out"), "unknown key `held_out`"),
        (with("mode = \"auto\"", "mode = \"autom\""), "is no mode"),
        (with("[agent.fixer]", "[agent]"), "must be a table"),
    ] {
        let problems = RepairTask::parse("task.toml", &text).unwrap_err();
        let found = problems.to_string();
        assert!(found.contains(words), "{words:?} is not in {found}");
    }
}

#[test]
fn the_schema_names_every_key() {
    let schema = RepairTask::json_schema();
    for key in ["held-out", "flash-cycles", "agents", "artifact", "key-env", "additionalProperties"]
    {
        assert!(schema.contains(&format!("\"{key}\"")), "{key}");
    }
}
