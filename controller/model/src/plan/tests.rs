//! Plans as people write them, and as they should not.

use std::path::PathBuf;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::Problems;
use crate::pattern::Pattern;
use crate::result::ResultFormat;

/// A document with one step that holds these actions.
fn with_actions(actions: &str) -> String {
    format!(
        "version = 1\nname = \"p\"\ntimeout = \"20s\"\n[[stage]]\nname = \"s\"\n\
         [[stage.step]]\nname = \"t\"\nactions = [\n{actions}\n]\n"
    )
}

/// The line of the first action in [`with_actions`].
const FIRST: usize = 9;

/// Lists each problem as `line:column check: message | help`.
fn lines(problems: &Problems) -> Vec<String> {
    let line = |p: &crate::Problem| {
        let place = problems.position(p).map_or("-".to_owned(), |(l, c)| format!("{l}:{c}"));
        format!("{place} {}: {} | {}", p.check, p.message, p.help)
    };
    problems.list.iter().map(line).collect()
}

fn refused(text: &str) -> Vec<String> {
    lines(&Plan::parse("plan.toml", text).expect_err(text))
}

fn actions(text: &str) -> Vec<Action> {
    let plan = Plan::parse("plan.toml", &with_actions(text)).unwrap_or_else(|e| panic!("{e}"));
    plan.stages[0].steps[0].behaviors[0].actions.clone()
}

fn pattern(text: &str) -> Pattern {
    Pattern::new(text).unwrap()
}

#[test]
fn a_full_plan_is_read() {
    let text = r#"
version = 1
name = "uart"
goal = "the driver echoes"
timeout = "20s"
[requires]
boards = ["board-a"]
arch = ["arm", "riscv32"]
features = ["watchdog"]
consoles = ["uart0", "uart1"]
[markers]
pass = '^ok (?<name>\w+)$'
fail = '^bad (?<name>\w+)$'
end = '^done$'
[[stage]]
name = "boot"
goal = "it runs"
[[stage.step]]
name = "start"
actions = [{ power = "cycle" }, { boot = "kernel" }]
[[stage]]
name = "test"
[[stage.step]]
name = "echo"
goal = "it answers"
attempts = 3
[[stage.step.behavior]]
name = "ask"
actions = [{ send = "ping\n", console = "uart1" }]
[[stage.step.behavior]]
name = "hear"
actions = [{ expect = "pong", timeout = "2s" }, { wait_for_results = true }]
"#;
    let plan = Plan::parse("dir/uart.toml", text).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((plan.name.as_str(), plan.goal.as_str()), ("uart", "the driver echoes"));
    assert_eq!((plan.timeout, plan.origin.as_str()), (Duration::from_secs(20), "dir/uart.toml"));
    assert_eq!(plan.requires.consoles.len(), 2);
    assert_eq!(plan.requires.arch.len(), 2);
    assert_eq!(plan.markers.as_ref().unwrap().end.as_str(), "^done$");
    let [boot, test] = &plan.stages[..] else { panic!("{plan:?}") };
    assert_eq!(boot.goal, "it runs");
    assert_eq!(boot.steps[0].attempts, 1);
    assert_eq!(boot.steps[0].behaviors[0].name.as_str(), "start", "named as its step");
    let echo = &test.steps[0];
    assert_eq!((echo.attempts, echo.behaviors.len()), (3, 2));
    assert_eq!(echo.behaviors[1].actions[0].timeout, Duration::from_secs(2));
}

#[test]
fn every_kind_of_action_is_read_with_its_default_time() {
    let list = actions(
        "{ power = 'on' }, { power = 'off' }, { reset = true }, { deploy = true },
        { deploy = 'a/b.elf' }, { boot = true }, { expect = 'x' },
        { expect = ['a', 'b'], reject = ['c'], console = 'uart1', timeout = '2s' },
        { send = \"text\\n\" }, { wait_for_results = true }, { wait_for_results = 'unity' },
        { host_command = ['prog', 'arg'], exit_code = 3, name = 'own' },
        { assert = 'y' }, { assert = 'y', at_least = 2 }, { assert = 'y', absent = true },
        { sleep = '100ms' }, { expect = 'late', timeout = '1h' }",
    );
    use ActionKind as K;
    let expect = |any: &[&str], reject: &[&str], console: Option<&str>| K::Expect {
        console: console.map(|c| c.parse().unwrap()),
        any: any.iter().map(|p| pattern(p)).collect(),
        reject: reject.iter().map(|p| pattern(p)).collect(),
        echo: false,
    };
    let assert_y = |assertion| K::Assert { console: None, pattern: pattern("y"), assertion };
    let wait = |format| K::WaitForResults { console: None, format };
    let argv = vec!["prog".to_owned(), "arg".to_owned()];
    let ms = Duration::from_millis;
    // The plan has 20 s, which caps every longer default.
    let expected = [
        ("power-1", 20_000, K::Power { op: PowerOp::On }),
        ("power-2", 20_000, K::Power { op: PowerOp::Off }),
        ("reset-1", 10_000, K::Reset),
        ("deploy-1", 20_000, K::Deploy { image: None }),
        ("deploy-2", 20_000, K::Deploy { image: Some(PathBuf::from("a/b.elf")) }),
        ("boot-1", 20_000, K::Boot { until: None }),
        ("expect-1", 10_000, expect(&["x"], &[], None)),
        ("expect-2", 2_000, expect(&["a", "b"], &["c"], Some("uart1"))),
        ("send-1", 10_000, K::Send { console: None, bytes: b"text\n".to_vec() }),
        ("wait-for-results-1", 20_000, wait(None)),
        ("wait-for-results-2", 20_000, wait(Some(ResultFormat::Unity))),
        ("own", 20_000, K::HostCommand { argv, exit_code: 3 }),
        ("assert-1", 5_000, assert_y(Assertion::AtLeast(1))),
        ("assert-2", 5_000, assert_y(Assertion::AtLeast(2))),
        ("assert-3", 5_000, assert_y(Assertion::Absent)),
        ("sleep-1", 1_100, K::Sleep { duration: ms(100) }),
        ("expect-3", 20_000, expect(&["late"], &[], None)),
    ];
    assert_eq!(list.len(), expected.len());
    for (action, (name, timeout, kind)) in list.into_iter().zip(expected) {
        assert_eq!(action, Action { name: name.parse().unwrap(), timeout: ms(timeout), kind });
    }
}

#[test]
fn default_names_leave_given_names_alone() {
    let list = actions("{ power = 'on' }, { power = 'on', name = 'power-1' }, { power = 'off' }");
    let names: Vec<_> = list.iter().map(|a| a.name.as_str()).collect();
    assert_eq!(names, ["power-2", "power-1", "power-3"]);
}

#[test]
fn each_bad_action_is_refused_with_its_place_and_a_way_out() {
    // Column counts from the first character of the action's line.
    let cases = [
        (
            "{ }",
            "1 plan::no-kind: the action does not say what to do | add one of: power, reset, expect_reset, deploy, boot, expect, send, wait_for_results, exec, upload, download, reboot, host_command, assert, sleep",
        ),
        (
            "{ reset = true, power = 'on' }",
            "17 plan::two-kinds: `power` cannot stand in one action with `reset` | make it an action of its own: they run one after the other",
        ),
        (
            "{ powr = 'on', reset = true }",
            "3 document::unknown-key: unknown key `powr` | did you mean `power`?",
        ),
        (
            "{ power = 'cicle' }",
            "11 document::unknown-word: \"cicle\" is no power operation | did you mean `cycle`?",
        ),
        (
            "{ reset = false }",
            "11 plan::nothing-to-do: `reset = false` does nothing | remove the action, or write true",
        ),
        (
            "{ reset = 'x' }",
            "11 document::wrong-type: `reset` must be true, not a text | write it like true",
        ),
        ("{ boot = '' }", "10 plan::nothing-to-do: `boot` names nothing | write true, or a name"),
        (
            "{ deploy = '' }",
            "12 plan::nothing-to-do: `deploy` names nothing | write true, or a name",
        ),
        (
            "{ expect = 'ab(c' }",
            "15 document::bad-pattern: bad regular expression: unclosed group | quote it with '...' so that a backslash stands for itself; write \\( or \\[ for the character",
        ),
        (
            "{ expect = ['ok', 'x*'] }",
            "19 document::bad-pattern: bad regular expression: it can match nothing at all, so it would match at once | quote it with '...' so that a backslash stands for itself; write \\( or \\[ for the character",
        ),
        (
            "{ expect = [] }",
            "12 plan::no-pattern: `expect` awaits nothing | give at least one regular expression, such as '^ready$'",
        ),
        (
            "{ send = '' }",
            "10 plan::nothing-to-do: `send` sends nothing | write what to send, such as \"help\\n\"",
        ),
        (
            "{ wait_for_results = 'unty' }",
            "22 document::unknown-word: \"unty\" is no result format | did you mean `unity`?",
        ),
        (
            "{ wait_for_results = 'markers' }",
            "1 plan::no-markers: results by markers are awaited, but the plan declares none | add a `[markers]` table with pass, fail and end",
        ),
        (
            "{ host_command = [] }",
            "18 plan::bad-command: `host_command` names no program | write a list of program and arguments, such as [\"ping\", \"-c1\", \"host\"]",
        ),
        (
            "{ host_command = 'ls -l' }",
            "18 document::wrong-type: `host_command` must be a list, not a text | write it like [...], with one or more values in it",
        ),
        (
            "{ host_command = ['a', \"b\\u0000\"] }",
            "24 plan::bad-command: the argument holds a zero byte | no program can be given one; write it to a file and name that",
        ),
        (
            "{ assert = 'x', at_least = 0 }",
            "28 plan::bad-assertion: `at_least = 0` always holds | to forbid the text, write `absent = true`",
        ),
        (
            "{ assert = 'x', absent = false }",
            "26 plan::bad-assertion: `absent = false` says nothing | remove it: without it, the text must be there",
        ),
        (
            "{ assert = 'x', absent = true, at_least = 1 }",
            "26 plan::bad-assertion: `absent` contradicts `at_least` | keep one of them, or make two actions",
        ),
        (
            "{ sleep = '21s' }",
            "11 plan::endless: the sleep is longer than the plan's time-out, so it can never end well | wait for what the sleep stands for (expect, boot), or allow more time",
        ),
        (
            "{ sleep = '3s', timeout = '2s' }",
            "11 plan::endless: the sleep is longer than its own time-out, so it can never end well | wait for what the sleep stands for (expect, boot), or allow more time",
        ),
        (
            "{ sleep = '0s' }",
            "11 plan::no-time: `sleep` is zero, so nothing can happen in it | give it some time, such as \"10s\"",
        ),
        (
            "{ expect = 'x', timeout = '0ms' }",
            "27 plan::no-time: `timeout` is zero, so nothing can happen in it | give it some time, such as \"10s\"",
        ),
        (
            "{ expect = 'x', timeout = '25h' }",
            "27 plan::endless: `timeout` is over 24 hours: such a plan never ends | give it at most \"24h\"",
        ),
        (
            "{ expect = 'x', timeout = 10 }",
            "27 document::wrong-type: `timeout` must be a time, not a whole number | write it like \"10s\" or \"250ms\"",
        ),
        (
            "{ send = 'x', reject = ['y'] }",
            "15 plan::stray-key: `reject` means nothing for `send` | remove it; it belongs to expect",
        ),
        (
            "{ reset = true, console = 'uart0' }",
            "17 plan::stray-key: `console` means nothing for `reset` | remove it; it belongs to expect_reset, expect, send, wait_for_results, assert",
        ),
        (
            "{ sleep = '1s', exit_code = 0 }",
            "17 plan::stray-key: `exit_code` means nothing for `sleep` | remove it; it belongs to exec, host_command",
        ),
        (
            "{ expect = 'x', absent = true }",
            "17 plan::stray-key: `absent` means nothing for `expect` | remove it; it belongs to assert",
        ),
        (
            "{ reset = true, name = 'a b' }",
            "24 document::bad-name: \"a b\" is not a name: use 1 to 64 of a-z, A-Z, 0-9, `.`, `_` and `-`, starting with a letter or digit | names become file names, so they are kept simple",
        ),
    ];
    for (action, expected) in cases {
        let found = refused(&with_actions(&format!("{{ power = 'on' }},\n{action}")));
        assert_eq!(found, [format!("{}:{expected}", FIRST + 1)], "{action}");
    }
}

#[test]
fn each_bad_structure_is_refused_with_its_place_and_a_way_out() {
    let head = "version = 1\nname = 'p'\ntimeout = '20s'\n";
    let on = "actions = [{ power = 'on' }]\n";
    let step =
        |more: &str| format!("{head}[[stage]]\nname = 's'\n[[stage.step]]\nname = 't'\n{more}");
    let cases = [
        (String::new(), "- document::version: the plan does not say its version | begin it with `version = 1`".to_owned()),
        (format!("{head}stage = []\n"), "4:9 plan::nothing-to-do: the plan has nothing to do | add a `[[stage]]`, or remove it".to_owned()),
        (head.to_owned(), "- document::missing-key: `stage` is missing | add a `[[stage]]`".to_owned()),
        (format!("{head}[[stage]]\nname = 's'\nstep = []\n"), "6:8 plan::nothing-to-do: the stage has nothing to do | add a `[[stage.step]]`, or remove it".to_owned()),
        (step(""), "6:1 plan::nothing-to-do: the step has nothing to do | add `actions = [...]` or a `[[stage.step.behavior]]`, or remove it".to_owned()),
        (step("actions = []\n"), "8:11 plan::nothing-to-do: the step has nothing to do | add an action, such as `{ power = \"cycle\" }`, or remove it".to_owned()),
        (step("[[stage.step.behavior]]\nname = 'b'\nactions = []\n"), "10:11 plan::nothing-to-do: the behaviour has nothing to do | add an action, such as `{ power = \"cycle\" }`, or remove it".to_owned()),
        (step(&format!("attempts = 0\n{on}")), "8:12 plan::attempts: a step with no attempt is never run | write 1 or more, or remove the step".to_owned()),
        (step(&format!("attempts = 1001\n{on}")), "8:12 plan::endless: 1001 attempts are more than 1000 | use fewer; `jig test --repeat` measures how often a plan fails".to_owned()),
        (step(&format!("{on}[[stage.step]]\nname = 't'\n{on}")), "10:8 plan::duplicate-name: another step of the stage is called `t` | results are found by their names; give this one another".to_owned()),
        (step(&format!("{on}[[stage]]\nname = 's'\n[[stage.step]]\nname = 't'\n{on}")), "10:8 plan::duplicate-name: another stage of the plan is called `s` | results are found by their names; give this one another".to_owned()),
        (step(&format!("[[stage.step.behavior]]\nname = 'b'\n{on}[[stage.step.behavior]]\nname = 'b'\n{on}")), "12:8 plan::duplicate-name: another behaviour of the step is called `b` | results are found by their names; give this one another".to_owned()),
        (step("actions = [{ power = 'on', name = 'x' }, { reset = true, name = 'x' }]\n"), "8:65 plan::duplicate-name: another action of the behaviour is called `x` | results are found by their names; give this one another".to_owned()),
        (step("actions = [{ expect = 'x' }, { power = 'on' }, { expect = 'y' }]\n"), "8:12 plan::too-early: `expect` comes before the board runs, when nothing can have been printed | put `{ power = \"cycle\" }`, a reset or a boot before it".to_owned()),
        (step("actions = [{ power = 'off' }, { wait_for_results = true }]\n"), "8:31 plan::too-early: `wait_for_results` comes before the board runs, when nothing can have been printed | put `{ power = \"cycle\" }`, a reset or a boot before it".to_owned()),
        (step("actions = [{ power = 'on' }, { wait_for_results = true }, { wait_for_results = true, console = 'uart1' }]\n"), "8:59 plan::two-results-consoles: results are awaited on another console than before | wait for results on one console; use `expect` for the other".to_owned()),
        (step(on).replace("[[stage]]\n", "[markers]\npass = 'P'\nfail = 'F'\nend = 'E'\n[[stage]]\n"), "4:1 plan::unused-markers: the plan declares markers but never waits for results | add `{ wait_for_results = true }`, or remove the markers".to_owned()),
        (step(on).replace("20s", "0s"), "3:11 plan::no-time: `timeout` is zero, so nothing can happen in it | give it some time, such as \"10s\"".to_owned()),
        (step(on).replace("20s", "2d"), "3:11 plan::endless: `timeout` is over 24 hours: such a plan never ends | give it at most \"24h\"".to_owned()),
        (step(on).replace("timeout = '20s'\n", ""), "- document::missing-key: `timeout` is missing | add `timeout = ...`".to_owned()),
        (step(on).replace("timeout", "timeuot"), "3:1 document::unknown-key: unknown key `timeuot` | did you mean `timeout`?".to_owned()),
    ];
    for (text, expected) in cases {
        let found = refused(&text);
        assert!(found.contains(&expected), "{text}\nexpected {expected}\nfound {found:#?}");
        // A mistyped key is missing, too; all others are one problem only.
        assert_eq!(found.len(), 1 + usize::from(text.contains("timeuot")), "{text}\n{found:#?}");
    }
    let both = step(&format!("{on}[[stage.step.behavior]]\nname = 'b'\n{on}"));
    let found = refused(&both);
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("plan::actions-twice: the step has both `actions` and behaviours"));
}

#[test]
fn all_problems_are_reported_at_once_in_document_order() {
    let text = with_actions(
        "{ expect = 'a(' },\n{ power = 'on', reset = true },\n{ sleep = '9h' },\n{ nope = 1 }",
    )
    .replace("name = \"t\"", "name = \"t\"\nattempts = 0");
    let found = refused(&text);
    let checks: Vec<_> = found.iter().map(|l| l.split(": ").next().unwrap().to_owned()).collect();
    assert_eq!(
        checks,
        [
            "8:12 plan::attempts",
            "10:14 document::bad-pattern",
            "11:17 plan::two-kinds",
            "12:11 plan::endless",
            "13:3 document::unknown-key",
        ]
    );
}

#[test]
fn the_built_in_plan_deploys_cycles_and_waits() {
    let kinds = |plan: &Plan| -> Vec<ActionKind> {
        plan.stages[0].steps[0].behaviors[0].actions.iter().map(|a| a.kind.clone()).collect()
    };
    let cycle = ActionKind::Power { op: PowerOp::Cycle };
    let plan = default_plan(true, RunWaits::new(None, Duration::from_secs(5)));
    assert_eq!(
        kinds(&plan),
        [
            ActionKind::Deploy { image: None },
            cycle.clone(),
            ActionKind::WaitForResults { console: None, format: None }
        ]
    );
    assert!(plan.stages[0].steps[0].behaviors[0].actions.iter().all(|a| a.timeout <= plan.timeout));
    let plan = default_plan(false, RunWaits::new(Some(pattern("login: ")), Duration::MAX));
    let any = vec![pattern("login: ")];
    assert_eq!(
        kinds(&plan),
        [cycle.clone(), ActionKind::Expect { console: None, any, reject: Vec::new(), echo: false }]
    );
    let console = Some("uart1".parse().unwrap());
    let on = |until| {
        let waits = RunWaits { console: console.clone(), ..RunWaits::new(until, Duration::MAX) };
        kinds(&default_plan(false, waits)).pop()
    };
    let any = vec![pattern("up")];
    let wait = ActionKind::Expect {
        console: console.clone(),
        any: any.clone(),
        reject: Vec::new(),
        echo: false,
    };
    assert_eq!(on(any.into_iter().next()), Some(wait));
    let wait = ActionKind::WaitForResults { console: console.clone(), format: None };
    assert_eq!(on(None), Some(wait));
}

#[test]
fn expected_resets_come_between_the_power_cycle_and_the_wait() {
    let next_boot = Some(pattern("^app "));
    let waits = RunWaits::new(None, Duration::from_secs(5));
    let plan = default_plan(true, RunWaits { resets: 2, next_boot: next_boot.clone(), ..waits });
    let actions = &plan.stages[0].steps[0].behaviors[0].actions;
    let names: Vec<_> = actions.iter().map(|action| action.name.to_string()).collect();
    assert_eq!(names, ["deploy", "power", "expect-reset-1", "expect-reset-2", "run"]);
    let reset = ActionKind::ExpectReset { console: None, begins: next_boot };
    assert!(actions[2].kind == reset && actions[3].kind == reset);
}

fn two_by_two() -> Plan {
    let stage = |name: &str| {
        let step =
            |t: &str| format!("[[stage.step]]\nname = '{t}'\nactions = [{{ power = 'on' }}]\n");
        format!("[[stage]]\nname = '{name}'\n{}{}", step("t1"), step("t2"))
    };
    let text = format!("version = 1\nname = 'p'\ntimeout = '9s'\n{}{}", stage("s1"), stage("s2"));
    Plan::parse("p.toml", &text).unwrap()
}

#[test]
fn updates_replace_what_has_not_begun() {
    let plan = two_by_two();
    let steps = serde_json::json!([{"name": "new", "actions": [{"expect": "x"}]}]);
    let changed =
        plan.with_stages(0, &serde_json::json!({"stage": [{"name": "n", "step": steps}]}));
    let changed = changed.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(changed.stages[0], plan.stages[0]);
    assert_eq!((changed.stages.len(), changed.stages[1].name.as_str()), (2, "n"));
    assert_eq!(
        changed.stages[1].steps[0].behaviors[0].actions[0].timeout,
        Duration::from_secs(9),
        "capped by the plan"
    );
    let changed = plan.with_steps(1, 0, &serde_json::json!({"step": steps})).unwrap();
    let names: Vec<_> = changed.stages[1].steps.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["t1", "new"]);
    let ended = plan.with_stages(0, &serde_json::json!({"stage": []})).unwrap();
    assert_eq!(ended.stages, plan.stages[..1]);
}

#[test]
fn bad_updates_are_refused() {
    let plan = two_by_two();
    let taken = serde_json::json!({"stage": [{"name": "s1", "step": [
        {"name": "t", "actions": [{"power": "on"}]}]}]});
    let text = lines(&plan.with_stages(0, &taken).unwrap_err()).join("\n");
    assert!(text.contains("plan::duplicate-name"), "{text}");
    for bad in ["null", "3", "[]", "{}", r#"{"stage": null}"#, r#"{"stage": [{}]}"#, r#"{"x": 1}"#]
    {
        let value = serde_json::from_str(bad).unwrap();
        assert!(plan.with_stages(0, &value).is_err(), "{bad}");
        assert!(plan.with_steps(0, 0, &value).is_err(), "{bad}");
    }
}

#[test]
fn the_plan_schemas_file_is_as_committed() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/plan.schema.json");
    if std::env::var_os("JIG_WRITE_SCHEMAS").is_some() {
        std::fs::write(path, Plan::json_schema()).unwrap();
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        found == Plan::json_schema(),
        "plan.schema.json is out of date: run `JIG_WRITE_SCHEMAS=1 cargo test -p jig-model schemas`"
    );
}

/// Writes actions and what they must be read as.
fn action() -> impl Strategy<Value = (String, &'static str)> {
    prop_oneof![
        Just(("{ reset = true }".to_owned(), "reset")),
        "[a-z]{1,8}".prop_map(|p| (format!("{{ expect = '{p}' }}"), "expect")),
        (1..1000_u32).prop_map(|n| (format!("{{ sleep = '{n}ms' }}"), "sleep")),
        (1..9_u32).prop_map(|n| (format!("{{ assert = 'x', at_least = {n} }}"), "assert")),
        any::<String>()
            .prop_filter("a zero byte or nothing", |s| !s.is_empty() && !s.contains('\0'))
            .prop_map(|s| (format!("{{ send = {} }}", toml::Value::String(s.clone())), "send")),
    ]
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in any::<String>()) {
        let _ = Plan::parse("x", &text);
        let _ = Plan::parse("x", &format!("version = 1\n{text}"));
        let _ = Plan::parse("x", &with_actions(&text)).map_err(|e| e.to_string());
    }

    #[test]
    fn no_mutilated_plan_makes_the_reader_panic(
        cut in 0..400_usize, len in 0..20_usize, junk in "[\\PC\\n'\"{}=\\[\\].]{0,8}",
    ) {
        let text = with_actions("{ power = \"on\" },\n{ expect = ['a(b)', \"\\u00e9\"], timeout = '3s' }");
        let chars: Vec<char> = text.chars().collect();
        let cut = cut.min(chars.len());
        let end = (cut + len).min(chars.len());
        let text: String = chars[..cut].iter().copied().chain(junk.chars())
            .chain(chars[end..].iter().copied()).collect();
        if let Err(problems) = Plan::parse("x", &text) {
            prop_assert!(!problems.list.is_empty());
            for problem in &problems.list {
                prop_assert!(problem.span.is_none() || problems.position(problem).is_some());
            }
        }
    }

    #[test]
    fn valid_plans_are_read_as_written(
        steps in prop::collection::vec((prop::collection::vec(action(), 1..6), 1..1000_u32), 1..5)
    ) {
        let mut text = "version = 1\nname = 'p'\ntimeout = '1m'\n[[stage]]\nname = 's'\n\
            [[stage.step]]\nname = 'on'\nactions = [{ power = 'on' }]\n".to_owned();
        for (n, (actions, attempts)) in steps.iter().enumerate() {
            let list: Vec<_> = actions.iter().map(|a| a.0.as_str()).collect();
            let list = list.join(",\n");
            text += &format!(
                "[[stage.step]]\nname = 't{n}'\nattempts = {attempts}\nactions = [{list}]\n"
            );
        }
        let plan = match Plan::parse("x", &text) {
            Ok(plan) => plan,
            Err(problems) => return Err(TestCaseError::fail(format!("{problems}\n{text}"))),
        };
        for (step, (actions, attempts)) in plan.stages[0].steps[1..].iter().zip(&steps) {
            prop_assert_eq!(step.attempts, *attempts);
            let read: Vec<_> = step.behaviors[0].actions.iter()
                .map(|a| a.name.as_str().split('-').next().unwrap().to_owned()).collect();
            let written: Vec<_> = actions.iter().map(|a| a.1.to_owned()).collect();
            prop_assert_eq!(read, written);
            prop_assert!(step.behaviors[0].actions.iter().all(|a| a.timeout <= plan.timeout));
        }
    }
}
