//! The decision as a table, and what holds of it whatever the rules are.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::command::{
    AttachCommand, AttachFollow, AttachInput, Command, ConsoleCommand, PlanText, PowerAction,
    PowerCommand, RecoverCommand, RecoverExtent, RunCommand, RunOptions, TestCommand,
};
use crate::identity::IdentityName;
use crate::lease::PlaceTraits;
use crate::plan::Plan;
use crate::profile::Arch;
use crate::rig_file::{Rig, RigText};

const RIG: &str = "version = 1
[[access]]
identity = [\"ci\", \"ci-*\"]
may = [\"use\"]
places = [\"bench-1\"]
[[access]]
identity = [\"ci\"]
may = [\"see\"]
[[access]]
identity = [\"group:interns\"]
may = [\"power\", \"flash\"]
places = [\"tag=radio,arch=arm\"]
[[access]]
identity = [\"unix:guest\"]
may = []
[[access]]
identity = [\"lead\"]
may = [\"administer\"]
";

fn rules(text: &str) -> AccessRules {
    Rig::parse([RigText { origin: "rig.toml", text }], &[]).unwrap().access
}

fn place(name: &str, tags: &[&str]) -> PlaceTraits {
    PlaceTraits {
        place: name.parse().unwrap(),
        board: "microbit".parse().unwrap(),
        arch: Arch::Arm,
        chip: None,
        tags: tags.iter().map(|tag| tag.parse().unwrap()).collect(),
        parts: BTreeSet::new(),
        emulated: true,
    }
}

/// Decides, and tells it in a word: the line of the rule, or why not.
fn decided(rules: &AccessRules, who: &str, groups: &[&str], right: &str, at: &str) -> String {
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    let place = place(at, if at == "bench-2" { &["radio"] } else { &[] });
    let name: IdentityName = who.parse().unwrap();
    let right = right.parse().ok();
    match rules.decide(&AccessQuestion { name: &name, groups: &groups, right, place: &place }) {
        AccessDecision::Allowed(AccessBasis::Rule(at)) => format!("yes {}", at.line),
        AccessDecision::Allowed(AccessBasis::NoRules) => "open".to_owned(),
        AccessDecision::Allowed(AccessBasis::LocalUser) => "local".to_owned(),
        AccessDecision::Denied(AccessDenial::NotNamed) => "not named".to_owned(),
        AccessDecision::Denied(AccessDenial::NotGiven(at)) => format!("no {}", at.line),
        AccessDecision::Denied(AccessDenial::UnknownVerb) => "unknown".to_owned(),
    }
}

#[test]
fn a_decision_follows_from_rules_and_says_which() {
    let rules = rules(RIG);
    for (who, groups, right, at, told) in [
        ("ci", &[][..], "use", "bench-1", "yes 2"),
        ("ci", &[], "see", "bench-1", "yes 2"),
        ("ci", &[], "see", "bench-2", "yes 6"),
        ("ci", &[], "use", "bench-2", "no 6"),
        ("ci", &[], "power", "bench-1", "no 2"),
        ("ci-7", &[], "run", "bench-1", "yes 2"),
        // The rule that is for the place comes nearer than one that is not.
        ("ci-7", &[], "see", "bench-2", "no 2"),
        ("bot", &[], "see", "bench-1", "not named"),
        ("lead", &[], "flash", "bench-3", "yes 16"),
        ("unix:anna", &[], "administer", "bench-1", "local"),
        ("unix:ci", &[], "administer", "bench-1", "local"),
        ("unix:anna", &["interns"], "flash", "bench-2", "yes 9"),
        ("unix:anna", &["interns"], "use", "bench-2", "no 9"),
        ("unix:anna", &["interns"], "see", "bench-1", "no 9"),
        ("unix:guest", &[], "see", "bench-1", "no 13"),
        ("lead", &[], "levitate", "bench-1", "unknown"),
        ("unix:anna", &[], "", "bench-1", "unknown"),
    ] {
        assert_eq!(decided(&rules, who, groups, right, at), told, "{who} {right} {at}");
    }
    let open = AccessRules::default();
    assert_eq!(decided(&open, "ci", &[], "administer", "bench-1"), "open");
    assert_eq!(decided(&open, "ci", &[], "levitate", "bench-1"), "unknown");
}

fn needed(command: &Command) -> &'static str {
    command.access_right().as_str()
}

#[test]
fn what_a_command_needs_follows_from_what_it_does() {
    let place: crate::PlaceName = "a".parse().unwrap();
    let run = |inject: &[&str]| {
        let inject = inject.iter().map(|fault| (*fault).to_owned()).collect();
        Command::Run(RunCommand {
            place: place.clone(),
            image: None,
            resets: 0,
            next_boot: None,
            until: None,
            console: None,
            reject: Vec::new(),
            allow: Vec::new(),
            timeout_ms: 1,
            options: RunOptions { inject, ..RunOptions::default() },
        })
    };
    assert_eq!(needed(&run(&[])), "use");
    assert_eq!(needed(&run(&["kill-emulator"])), "administer");
    let test = |action: &str| {
        let text = format!(
            "version = 1\nname = \"p\"\ngoal = \"g\"\ntimeout = \"1m\"\n[[stage]]\nname = \"s\"\n\
             [[stage.step]]\nname = \"s\"\ngoal = \"g\"\nactions = [{action}, {{ power = \"cycle\" }}]\n"
        );
        assert!(Plan::parse("p", &text).is_ok(), "{:?}", Plan::parse("p", &text));
        let plan = PlanText { origin: "p".to_owned(), text };
        let (image, options) = (None, RunOptions::default());
        Command::Test(TestCommand { place: place.clone(), plan, image, options })
    };
    assert_eq!(needed(&test("{ deploy = true }")), "use");
    assert_eq!(needed(&test("{ deploy = \"/etc/passwd\" }")), "administer");
    assert_eq!(needed(&test("{ host_command = [\"id\"] }")), "administer");
    let power = |action, force| {
        let place = place.clone();
        Command::Power(PowerCommand { place, action, off_ms: None, force, wait_ms: 0 })
    };
    assert_eq!(needed(&power(PowerAction::Status, false)), "see");
    assert_eq!(needed(&power(PowerAction::Cycle, false)), "power");
    assert_eq!(needed(&power(PowerAction::Cycle, true)), "administer");
    let recover = |extent| Command::Recover(RecoverCommand { place: place.clone(), extent });
    assert_eq!(needed(&recover(RecoverExtent::Prove)), "use");
    assert_eq!(needed(&recover(RecoverExtent::Recover)), "power");
    let attach = |input, boot: bool| {
        let place = place.clone();
        let boot = boot.then(|| ConsoleCommand {
            place: place.clone(),
            image: None,
            console: None,
            quiet_ms: 0,
        });
        let (follow, console) = (AttachFollow::Logged, None);
        Command::Attach(AttachCommand {
            place,
            console,
            since_ms: 0,
            follow,
            input,
            quiet_ms: 0,
            boot,
        })
    };
    assert_eq!(needed(&attach(AttachInput::None, false)), "see");
    assert_eq!(needed(&attach(AttachInput::None, true)), "use");
    assert_eq!(needed(&attach(AttachInput::Send, false)), "use");
}

#[test]
fn a_rule_that_says_nothing_is_refused_where_it_stands() {
    let bad = "version = 1\n[[access]]\nidentity = []\nmay = [\"fly\"]\nplaces = []\n[[access]]\n\
               identity = [\"a b\", \"group:\"]\nmay = [\"see\"]\nplaces = [\"colour=red\"]\n\
               [[access]]\nmay = []\n";
    let problems = Rig::parse([RigText { origin: "rig.toml", text: bad }], &[]).unwrap_err();
    let told: Vec<_> = problems[0].located().into_iter().map(|p| (p.line, p.check)).collect();
    let told: Vec<_> = told.iter().map(|(line, check)| (line.unwrap(), check.as_str())).collect();
    assert_eq!(
        told,
        [
            (3, "rig::access-identity"),
            (4, "document::unknown-word"),
            (5, "rig::access-places"),
            (7, "rig::access-identity"),
            (7, "rig::access-identity"),
            (9, "rig::access-places"),
            (10, "document::missing-key"),
        ]
    );
}

/// Few names, so that rules and identities meet.
fn some_name() -> impl Strategy<Value = IdentityName> {
    prop::sample::select(vec!["a", "ab", "b", "unix:a", "unix:b"])
        .prop_map(|name| name.parse().unwrap())
}

fn some_pattern() -> impl Strategy<Value = crate::identity::IdentityPattern> {
    prop::sample::select(vec!["a", "a*", "b", "unix:a", "unix:*", "group:g", "*"])
        .prop_map(|pattern| pattern.parse().unwrap())
}

fn some_right() -> impl Strategy<Value = AccessRight> {
    prop::sample::select(AccessRight::ALL.to_vec())
}

fn some_rule() -> impl Strategy<Value = AccessRule> {
    let places = prop::option::of(prop::collection::vec(
        prop::sample::select(vec!["p", "q", "tag=t", "board=microbit"])
            .prop_map(|text| text.parse().unwrap()),
        1..3,
    ));
    let may = prop::collection::btree_set(some_right(), 0..3);
    (prop::collection::vec(some_pattern(), 1..3), may, places, 1usize..9).prop_map(
        |(identity, may, places, line)| AccessRule {
            identity,
            may,
            places,
            at: RuleAt { file: "rig.toml".to_owned(), line },
        },
    )
}

proptest! {
    #[test]
    fn a_rule_changes_nothing_for_those_whom_it_does_not_name(
        before in prop::collection::vec(some_rule(), 1..5),
        rule in some_rule(),
        name in some_name(),
        in_group in any::<bool>(),
        right in prop::option::of(some_right()),
        at in prop::sample::select(vec!["p", "q"]),
        tagged in any::<bool>(),
    ) {
        let groups: BTreeSet<String> = in_group.then(|| "g".to_owned()).into_iter().collect();
        let place = place(at, if tagged { &["t"] } else { &[] });
        let question = AccessQuestion { name: &name, groups: &groups, right, place: &place };
        let names = |rule: &AccessRule| rule.identity.iter().any(|p| p.fits(&name, &groups));
        let without = AccessRules { rules: before.clone() };
        let mut rules = before.clone();
        rules.insert(0, rule.clone());
        let with = AccessRules { rules };
        let (old, new) = (without.decide(&question), with.decide(&question));
        if !names(&rule) {
            prop_assert_eq!(&old, &new);
        } else if before.iter().any(names) {
            // Nothing that rules gave is taken by a further one.
            prop_assert!(new.is_allowed() || !old.is_allowed());
        }
        // Deny by default: allowed only by a rule that names, or for a user of the host without one.
        let named = with.rules.iter().any(names);
        match &new {
            AccessDecision::Allowed(AccessBasis::Rule(_)) => prop_assert!(named),
            AccessDecision::Allowed(AccessBasis::LocalUser) => {
                prop_assert!(name.is_local() && !named);
            }
            AccessDecision::Allowed(AccessBasis::NoRules) => prop_assert!(false),
            AccessDecision::Denied(AccessDenial::UnknownVerb) => prop_assert!(right.is_none()),
            AccessDecision::Denied(_) => prop_assert!(named || !name.is_local()),
        }
        prop_assert!(right.is_some() || !new.is_allowed());
        // The order of rules means nothing.
        let mut turned = with.rules.clone();
        turned.reverse();
        let turned = AccessRules { rules: turned }.decide(&question);
        prop_assert_eq!(turned.is_allowed(), new.is_allowed());
    }
}
