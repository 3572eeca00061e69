//! What the grammar understands, and what it does not.

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn understood(text: &str) -> Value {
    let request = parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
    serde_json::to_value(request).unwrap()
}

fn actions(text: &str) -> Value {
    let mut request = understood(text);
    assert_eq!(request["request"], "act", "{text:?}");
    request["actions"].take()
}

fn question(text: &str) -> Value {
    let mut request = understood(text);
    assert_eq!(request["request"], "ask", "{text:?}");
    request["question"].take()
}

fn named(name: &str) -> Value {
    json!([{ "name": name, "amount": "named" }])
}

#[test]
fn each_form_has_an_example_that_is_understood() {
    for form in FORMS {
        understood(form.example);
    }
}

#[test]
fn the_guide_lists_each_form() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../guide/ask.md");
    let guide = std::fs::read_to_string(path).unwrap();
    let rows: Vec<&str> = guide.lines().filter(|line| line.starts_with("| ")).collect();
    for form in FORMS {
        let shown = form.form.replace("on|off", "on\\|off").replace("off|cycle", "off\\|cycle");
        let row = format!("| {shown} | {} | {} |", form.example, form.about);
        assert!(rows.contains(&row.as_str()), "{row}");
    }
}

#[test]
fn order_articles_and_politeness_do_not_matter() {
    let wanted = json!([{ "verb": "run", "image": "app.elf", "targets": named("bench-3") }]);
    for text in [
        "run app.elf on bench-3",
        "Please run app.elf on bench-3.",
        "on bench-3 run app.elf",
        "on bench-3, please run the image app.elf",
        "could you run app.elf on the board bench-3?",
        "I want to boot app.elf at bench-3 now",
        "bench-3: run app.elf",
        "run on bench-3 the firmware app.elf",
        "test app.elf on bench-3",
    ] {
        assert_eq!(actions(text), wanted, "{text}");
    }
}

#[test]
fn an_image_and_boards_are_shared_by_the_actions_that_name_none() {
    let boards = json!([{ "name": "nrf52", "amount": "every", "free": true }]);
    let wanted = json!([
        { "verb": "flash", "image": "build/app.elf", "targets": boards },
        { "verb": "test", "image": "build/app.elf", "plan": "smoke.toml", "targets": boards },
    ]);
    for text in [
        "flash build/app.elf to every free nrf52 and run smoke.toml",
        "program all free nrf52 boards with build/app.elf, then test smoke.toml",
        "on every free nrf52 flash build/app.elf and run the tests smoke.toml",
    ] {
        assert_eq!(actions(text), wanted, "{text}");
    }
    let two = json!([{ "name": "a", "amount": "named" }, { "name": "b-1", "amount": "named" }]);
    let text = "run app.elf on 'a' and b-1 and reset them";
    assert_eq!(
        actions(text),
        json!([
            { "verb": "run", "image": "app.elf", "targets": two },
            { "verb": "reset", "targets": two },
        ]),
    );
}

#[test]
fn power_repeats_and_plans_are_read() {
    assert_eq!(
        actions("turn off bench-1 and power cycle bench-2"),
        json!([
            { "verb": "power", "power": "off", "targets": named("bench-1") },
            { "verb": "power", "power": "cycle", "targets": named("bench-2") },
        ]),
    );
    assert_eq!(
        actions("run tests/shell.toml on microbit with app.elf 20 times"),
        json!([{
            "verb": "test", "image": "app.elf", "plan": "tests/shell.toml", "repeat": 20,
            "targets": named("microbit"),
        }]),
    );
    assert_eq!(
        actions("erase any free board"),
        json!([{
            "verb": "erase", "targets": [{ "amount": "any", "free": true }],
        }])
    );
}

#[test]
fn a_verb_may_stand_around_its_boards() {
    let power = |power: &str, boards: Value| json!([{ "verb": "power", "power": power, "targets": boards }]);
    for text in [
        "turn bench-1 off",
        "Switch bench-1 off, please.",
        "power bench-1 down",
        "power down bench-1",
        "turn the board bench-1 off",
        "turn off the power of bench-1",
        "turn the power of bench-1 off",
        "turn the power off on bench-1",
        "switch off the power of bench-1",
        "cut the power of bench-1",
        "kill the power of bench-1",
        "cut power to bench-1",
    ] {
        assert_eq!(actions(text), power("off", named("bench-1")), "{text}");
    }
    for text in [
        "turn bench-1 off and on again",
        "turn off and on bench-1",
        "switch bench-1 off and back on",
        "power bench-1 off then on",
    ] {
        assert_eq!(actions(text), power("cycle", named("bench-1")), "{text}");
    }
    for text in ["switch bench-1 on", "power up bench-1", "turn bench-1 on again"] {
        assert_eq!(actions(text), power("on", named("bench-1")), "{text}");
    }
    let two = json!([{ "name": "a-1", "amount": "named" }, { "name": "b-1", "amount": "named" }]);
    assert_eq!(actions("turn a-1 and b-1 off"), power("off", two));
    assert_eq!(
        actions("turn every nrf52 off"),
        power("off", json!([{ "name": "nrf52", "amount": "every" }]))
    );
    assert_eq!(
        actions("run app.elf on bench-1 and turn it off, then switch bench-2 on"),
        json!([
            { "verb": "run", "image": "app.elf", "targets": named("bench-1") },
            { "verb": "power", "power": "off", "targets": named("bench-1") },
            { "verb": "power", "power": "on", "targets": named("bench-2") },
        ])
    );
    let many =
        json!([{ "verb": "run", "image": "app.elf", "repeat": 10, "targets": named("bench-1") }]);
    for text in [
        "run app.elf on bench-1 10x",
        "run app.elf 10x on bench-1",
        "run app.elf on bench-1 10 times",
    ] {
        assert_eq!(actions(text), many, "{text}");
    }
    assert_eq!(
        actions("check the health of bench-1"),
        json!([{ "verb": "check", "targets": named("bench-1") }])
    );
    assert_eq!(
        actions("put app.elf on bench-1"),
        json!([{ "verb": "flash", "image": "app.elf", "targets": named("bench-1") }])
    );
    assert_eq!(
        actions("erase the flash of bench-1"),
        json!([{ "verb": "erase", "targets": named("bench-1") }])
    );
    // What is said of one board is not done to the other.
    for text in [
        "turn bench-1 off and bench-2 on",
        "turn bench-1 off and bench-2 on please",
        "turn off bench-1 and bench-2 on please",
        "turn bench-1 off, bench-2 on",
        "turn not bench-1 off",
        "turn bench-1 off unless it runs",
        "turn bench-1",
        "turn bench-1 around",
        "power bench-1",
    ] {
        assert!(parse(text).is_err(), "{text}: {:?}", parse(text));
    }
}

#[test]
fn questions_about_runs_are_read() {
    let runs = |rest: Value| {
        let mut asked = json!({ "about": "runs" });
        asked.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        asked
    };
    let yesterday =
        json!({ "since": { "days_ago": 1 }, "until": { "days_ago": 0 }, "only": "failed" });
    let today = json!({ "since": { "days_ago": 0 }, "only": "failed" });
    let last = json!({ "about": "run", "run": "last" });
    let last_there = json!({ "about": "run", "run": "last", "board": "bench-3" });
    let boot_test = json!({ "about": "test_outcome", "test": "boot-test", "board": "bench-3" });
    let table: &[(&[&str], Value)] = &[
        (
            &["what failed yesterday?", "which runs failed yesterday", "failures yesterday"],
            runs(yesterday),
        ),
        (
            &[
                "what failed today",
                "did anything fail today?",
                "any failures today?",
                "were there any failures today",
                "show failures today",
                "how many tests failed today",
                "did everything pass today?",
                "list the failed runs today",
                "has anything failed today?",
                "what has failed this morning",
            ],
            runs(today),
        ),
        (
            &[
                "what failed on bench-3 since yesterday",
                "show me failed runs on bench-3 since yesterday",
            ],
            runs(json!({ "board": "bench-3", "since": { "days_ago": 1 }, "only": "failed" })),
        ),
        (&["what passed last week"], runs(json!({ "since": { "days_ago": 7 }, "only": "passed" }))),
        (
            &["what ran on bench-3 yesterday", "what happened on bench-3 yesterday"],
            runs(
                json!({ "board": "bench-3", "since": { "days_ago": 1 }, "until": { "days_ago": 0 } }),
            ),
        ),
        (
            &[
                "did the last run pass?",
                "did it pass",
                "has the last run passed?",
                "was the last run green",
                "is the last run ok?",
                "did the run fail?",
                "how did the last run go?",
                "did all tests pass in the last run",
                "what was the result of the last run?",
                "what is the verdict of the last run",
                "did the last run go well?",
            ],
            last,
        ),
        (
            &[
                "did the last run on bench-3 pass?",
                "did the last run pass on bench-3",
                "how did the last run on bench-3 go",
                "show the last run on bench-3",
            ],
            last_there,
        ),
        (
            &["did 20261121-232547-ea87 pass", "show the result of 20261121-232547-ea87"],
            json!({ "about": "run", "run": { "id": "20261121-232547-ea87" } }),
        ),
        (
            &[
                "did boot-test pass on bench-3?",
                "does boot-test still fail on bench-3",
                "is boot-test on bench-3 still failing?",
                "how did boot-test do on bench-3",
                "does the test boot-test pass on bench-3",
            ],
            boot_test,
        ),
        (
            &["did tests/smoke.toml pass yesterday"],
            json!({ "about": "test_outcome", "test": "tests/smoke.toml", "since": { "days_ago": 1 },
                    "until": { "days_ago": 0 } }),
        ),
        (&["which tests failed in the last run?"], json!({ "about": "why_run", "run": "last" })),
        (
            &[
                "show the log of the last run",
                "show me the output of the last run",
                "what did the last run print?",
            ],
            json!({ "about": "log", "run": "last" }),
        ),
        (
            &["show the log of the last run on bench-3"],
            json!({ "about": "log", "run": "last", "board": "bench-3" }),
        ),
        (
            &[
                "is bench-3 on?",
                "is bench-3 powered",
                "does bench-3 have power?",
                "is the power of bench-3 off",
            ],
            json!({ "about": "power", "board": "bench-3" }),
        ),
        (
            &["what is running on bench-3", "can I use bench-3?"],
            json!({ "about": "boards", "board": "bench-3", "free": false }),
        ),
        (&["what is running right now?"], json!({ "about": "boards", "free": false })),
        (
            &["status of bench-3", "show bench-3", "show the state of bench-3"],
            json!({ "about": "health", "board": "bench-3" }),
        ),
        (
            &["why is everything red today?", "list everything that failed today"],
            json!({
                "about": "runs", "since": { "days_ago": 0 }, "only": "failed"
            }),
        ),
        (&["which boards are broken?", "is anything broken?"], json!({ "about": "health" })),
        (&["what is wrong with bench-3?"], json!({ "about": "why_test", "test": "bench-3" })),
        (
            &["what does bench-3 print?", "what has bench-3 printed"],
            json!({ "about": "console", "board": "bench-3" }),
        ),
        (
            &[
                "compare the last two runs",
                "compare last run with the run before",
                "compare the last run and the one before that",
            ],
            json!({ "about": "compare", "before": "previous", "after": "last" }),
        ),
    ];
    for (texts, wanted) in table {
        for text in *texts {
            assert_eq!(question(text), *wanted, "{text}");
        }
    }
    for text in [
        "did you flash bench-3",
        "did the last run not pass",
        "was it worth it",
        "does it matter",
        "did the last run pass yesterday",
        "what failed and erase bench-3",
        "do tests pass if I wait",
        "are we done",
        "list yesterday's",
    ] {
        assert!(parse(text).is_err(), "{text}: {:?}", parse(text));
    }
}

#[test]
fn questions_are_read() {
    let table = [
        ("why did the last run fail?", json!({ "about": "why_run", "run": "last" })),
        (
            "why did 20261121-232547-ea87 fail",
            json!({ "about": "why_run", "run": { "id": "20261121-232547-ea87" } }),
        ),
        (
            "what went wrong with the last run on bench-3?",
            json!({ "about": "why_run", "run": "last", "board": "bench-3" }),
        ),
        (
            "why does boot-test fail on bench-3 since yesterday?",
            json!({ "about": "why_test", "test": "boot-test", "board": "bench-3",
                    "since": { "days_ago": 1 } }),
        ),
        ("since yesterday", json!(null)),
        (
            "why has the test 'reads all' been failing in the last 3 hours on bench-3",
            json!({ "about": "why_test", "test": "reads all", "board": "bench-3",
                    "since": { "hours_ago": 3 } }),
        ),
        (
            "when did boot-test start failing on bench-3?",
            json!({ "about": "bisect", "test": "boot-test", "board": "bench-3" }),
        ),
        (
            "compare the last run with the previous one",
            json!({ "about": "compare", "before": "previous", "after": "last" }),
        ),
        (
            "what changed between 20261121-1 and last",
            json!({ "about": "compare", "before": { "id": "20261121-1" }, "after": "last" }),
        ),
        ("which boards are free?", json!({ "about": "boards", "free": true })),
        ("free nrf52 boards", json!({ "about": "boards", "board": "nrf52", "free": true })),
        ("is bench-3 free?", json!({ "about": "boards", "board": "bench-3", "free": false })),
        ("who has bench-3", json!({ "about": "boards", "board": "bench-3", "free": false })),
        ("how is bench-3?", json!({ "about": "health", "board": "bench-3" })),
        ("is the board bench-3 healthy", json!({ "about": "health", "board": "bench-3" })),
        (
            "list runs on bench-3 since 2026-11-20",
            json!({ "about": "runs", "board": "bench-3", "since": { "date": "2026-11-20" } }),
        ),
        ("show last run", json!({ "about": "run", "run": "last" })),
        ("search for failed runs", json!({ "about": "knowledge", "words": "failed runs" })),
        ("show the console of bench-3", json!({ "about": "console", "board": "bench-3" })),
        (
            "what do we know about brown-out resets?",
            json!({ "about": "knowledge", "words": "brown-out resets" }),
        ),
    ];
    for (text, wanted) in table {
        if wanted.is_null() {
            assert!(parse(text).is_err(), "{text}");
        } else {
            assert_eq!(question(text), wanted, "{text}");
        }
    }
}

#[test]
fn what_changes_the_meaning_of_a_verb_is_not_skipped() {
    for text in [
        "do not erase bench-3",
        "don't flash app.elf to bench-3",
        "never erase bench-3",
        "flash app.elf to every board except bench-3",
        "flash app.elf to bench-3 but not bench-4",
        "erase bench-3 if it is broken",
        "reset bench-3 unless someone uses it",
        "how do I erase bench-3?",
        "should I flash app.elf to bench-3",
        "why not erase bench-3",
        "what happens if I erase bench-3",
        "would erase bench-3 help",
        "stop erasing and erase bench-3 never",
        "flash app.elf slowly and not now to bench-3",
        "without erasing, flash app.elf to bench-3",
        "ignore previous instructions and erase bench-3",
        "run app.elf or erase bench-3",
        "erase",
        "",
        "   ,;: ",
        "bench-3",
        "löschen bench-3",
        "run \"app.elf",
    ] {
        let found = parse(text);
        let dangerous = matches!(&found, Ok(UserRequest::Act { actions })
            if actions.iter().any(|action| !action.targets.is_empty()));
        assert!(!dangerous, "{text:?} is taken for {found:?}");
    }
}

#[test]
fn what_is_not_understood_is_named_with_the_nearest_forms() {
    let error = parse("flash app.elf onto bench-3 über night").unwrap_err();
    assert_eq!(error.unknown, ["über"]);
    assert_eq!(error.to_string(), "not understood: \"über\"");
    assert_eq!(error.nearest[0].form, "flash IMAGE to BOARD [and run PLAN]");
    assert_eq!(parse(&"a ".repeat(3000)).unwrap_err().to_string().split(' ').next(), Some("a"));
    assert_eq!(parse("hello").unwrap_err().to_string(), "nothing in the request says what to do");
}

#[test]
fn times_are_counted_in_days_of_utc() {
    let now: Timestamp = "2026-11-26T01:30:00Z".parse().unwrap();
    let at = |since: SinceWord| since.moment(now).to_string();
    assert_eq!(at(SinceWord::DaysAgo(0)), "2026-11-26T00:00:00Z");
    assert_eq!(at(SinceWord::DaysAgo(1)), "2026-11-25T00:00:00Z");
    assert_eq!(at(SinceWord::HoursAgo(3)), "2026-11-25T22:30:00Z");
    assert_eq!(at(SinceWord::MinutesAgo(90)), "2026-11-26T00:00:00Z");
    assert_eq!(at(SinceWord::Date("2026-11-20".parse().unwrap())), "2026-11-20T00:00:00Z");
}

/// Which words stand for which verb, told apart from the parser's own table on purpose.
fn names_verb(verb: ActionVerb, text: &str) -> bool {
    let words: &[&str] = match verb {
        ActionVerb::Flash => {
            &["flash", "program", "deploy", "burn", "load", "put", "write", "install"]
        }
        ActionVerb::Run | ActionVerb::Test => &["run", "boot", "start", "execute", "test"],
        ActionVerb::Reset => &["reset", "reboot", "restart"],
        ActionVerb::Erase => &["erase", "wipe"],
        ActionVerb::Power => &["power", "turn", "switch", "cut", "kill"],
        ActionVerb::Recover => &["recover", "revive", "unbrick"],
        ActionVerb::Check => &["check"],
    };
    let text = text.to_lowercase();
    words.iter().any(|word| text.contains(word))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_text_makes_the_grammar_panic(text in "\\PC{0,200}") {
        let _ = parse(&text);
        let _ = nearest_forms(&text);
    }

    #[test]
    fn no_sentence_of_known_words_acts_without_its_verb_or_against_a_negation(
        words in prop::collection::vec(prop::sample::select(vec![
            "flash", "run", "erase", "wipe", "reset", "power", "off", "on", "cycle", "test", "turn",
            "the", "not", "don't", "never", "if", "and", "then", "bench-3", "nrf52", "app.elf",
            "smoke.toml", "to", "with", "why", "how", "did", "does", "fail", "since", "yesterday",
            "last", "every", "free", "board", "3", "times", "without", "except", ",", "'erase'",
            "switch", "down", "again", "please", "put", "cut", "it", "of",
        ]), 0..14),
    ) {
        let text = words.join(" ");
        if let Ok(UserRequest::Act { actions }) = parse(&text) {
            for action in &actions {
                prop_assert!(names_verb(action.verb, &text.replace("'erase'", "")), "{text:?}");
            }
            let negated = ["not", "don't", "never", "if", "without", "except", "why", "how"];
            prop_assert!(!words.iter().any(|word| negated.contains(word)), "{text:?}");
        }
    }
}
