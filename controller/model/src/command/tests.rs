//! Every command, event and answer survives its line, and nothing else is taken for one.

use proptest::prelude::*;

use super::*;
use crate::pattern::Pattern;
use crate::power::{Confirmation, PlaceSense};
use crate::protocol::{CheckReport, PowerState};
use crate::recovery::{RecoveryStep, Rung};
use crate::{Cause, Fault, PlaceName, RunEvent, Verdict};

fn place() -> PlaceName {
    "bench-1".parse().unwrap()
}

fn commands() -> Vec<Command> {
    let options =
        RunOptions { repeat: 3, recoveries: Some(0), inject: vec!["kill-emulator@2s".to_owned()] };
    let image = Some("app.elf".into());
    let mut commands = vec![
        Command::Run(RunCommand {
            place: place(),
            image: image.clone(),
            until: Some(Pattern::new("ready v[0-9]").unwrap()),
            timeout_ms: 10_000,
            options: options.clone(),
        }),
        Command::Test(TestCommand {
            place: place(),
            plan: PlanText { origin: "plan.toml".to_owned(), text: "version = 1\n".to_owned() },
            image: None,
            options: RunOptions::default(),
        }),
        Command::Console(ConsoleCommand {
            place: place(),
            image,
            console: Some("uart0".parse().unwrap()),
            quiet_ms: 1000,
        }),
        Command::RecoverySteps(RecoverySteps { place: place(), from: Some(RecoveryStep::Reopen) }),
        Command::Check(CheckCommand { place: place(), wait_ms: Some(0) }),
        Command::Check(CheckCommand { place: place(), wait_ms: None }),
    ];
    let extents =
        [RecoverExtent::Prove, RecoverExtent::Recover, RecoverExtent::From(RecoveryStep::Reopen)];
    commands
        .extend(extents.map(|extent| Command::Recover(RecoverCommand { place: place(), extent })));
    let actions = [
        PowerAction::On,
        PowerAction::Off,
        PowerAction::Cycle,
        PowerAction::Status,
        PowerAction::Verify,
        PowerAction::Explain,
    ];
    commands.extend(actions.map(|action| {
        let off_ms = (action == PowerAction::Cycle).then_some(500);
        Command::Power(PowerCommand { place: place(), action, off_ms, force: true, wait_ms: 1 })
    }));
    commands
}

fn said() -> Vec<WorkerLine> {
    let events = [
        CommandEvent::RunBegan { run: "r1".parse().unwrap(), dir: "runs/1".into() },
        CommandEvent::Run {
            event: RunEvent::AttemptStarted { attempt: 1, purpose: Default::default() },
        },
        CommandEvent::Console { console: "uart0".parse().unwrap(), log: "uart0.raw".into() },
        CommandEvent::Waiting { place: place(), holder: "jig \u{1b}[31m".to_owned() },
        CommandEvent::Disturbing { place: place(), holder: String::new() },
    ];
    let mut said: Vec<_> = events.into_iter().map(WorkerLine::Event).collect();
    let replies = [
        Reply::RecoverySteps(RecoveryStepsReply {
            place: place(),
            steps: vec![Rung { step: RecoveryStep::Reopen, budget_ms: 1, skip: None }],
            timeout_ms: 7,
        }),
        Reply::Power(PowerReply {
            place: place(),
            device: "pdu".parse().unwrap(),
            driver: "relay".to_owned(),
            outlet: "3".to_owned(),
            action: PowerAction::Cycle,
            state: Some(PowerState::On),
            confirmation: Some(Confirmation::ReadBack),
            sense: None,
            shared_with: vec![place()],
            off_ms: Some(1),
            duration_ms: 2,
        }),
        Reply::EmulatedPower(EmulatedPowerReply {
            place: place(),
            action: PowerAction::Status,
            state: PowerState::Off,
            in_use_by: None,
        }),
        Reply::PowerExplained(PowerExplained {
            place: place(),
            device: "pdu".parse().unwrap(),
            driver: "relay".to_owned(),
            outlet: String::new(),
            about: serde_json::json!({ "kind": "relay" }),
            declared_in: "rig.toml".to_owned(),
            min_interval_ms: 1,
            timeout_ms: 2,
            settle_ms: 3,
            off_ms: 4,
            shared_with: vec![SharedOutlet { place: place(), in_use_by: Some("x".to_owned()) }],
            sense: PlaceSense::DebugPort,
            hub: None,
            hub_neighbours: Vec::new(),
            lock: "pdu.power".into(),
        }),
        Reply::Checked(CheckReply {
            place: place(),
            checks: vec![CheckReport { check: "disk".to_owned(), ok: true, detail: String::new() }],
            state: "healthy".to_owned(),
            usable: true,
        }),
    ];
    said.extend(replies.into_iter().map(WorkerLine::Reply));
    said.push(WorkerLine::Refused(Refusal {
        fault: Fault::Lab,
        message: "in use".to_owned(),
        help: Some("wait".to_owned()),
    }));
    said
}

#[test]
fn every_command_survives_its_line() {
    for command in commands() {
        let line = to_line(&command).unwrap();
        assert!(!line.contains('\n'), "{line}");
        assert_eq!(Command::from_line(line.as_bytes()).unwrap(), command, "{line}");
        assert_eq!(*command.place(), place());
    }
}

#[test]
fn everything_a_worker_says_survives_its_line() {
    for said in said() {
        let line = to_line(&said).unwrap();
        assert!(!line.contains('\n'), "{line}");
        assert_eq!(WorkerLine::from_line(line.as_bytes()).unwrap(), said, "{line}");
    }
    // A verdict holds numbers that are no integers, so it is compared as text.
    let run = RunReply {
        run: "r1".parse().unwrap(),
        dir: "runs/r".into(),
        verdict: Verdict::of(Cause::ExpectationsMet, "3 passed"),
        exit_code: 0,
        not_struck: vec!["x".to_owned()],
    };
    let said = WorkerLine::Reply(Reply::Run(run));
    let line = to_line(&said).unwrap();
    assert_eq!(to_line(&WorkerLine::from_line(line.as_bytes()).unwrap()).unwrap(), line);
}

#[test]
fn a_line_of_another_version_is_refused_before_it_is_understood() {
    let newer = br#"{"version":2,"say":{"command":"levitate"},"and":"more"}"#;
    let error = Command::from_line(newer).unwrap_err();
    assert!(matches!(error, LineError::Newer { found: 2 }), "{error}");
    assert!(matches!(WorkerLine::from_line(newer), Err(LineError::Newer { found: 2 })));
}

#[test]
fn unknown_fields_and_commands_are_refused() {
    let steps = r#"{"version":1,"say":{"command":"recovery_steps","place":"a"}}"#;
    assert!(Command::from_line(steps.as_bytes()).is_ok());
    for (known, unknown) in [
        (r#""place":"a""#, r#""place":"a","force":true"#),
        ("recovery_steps", "levitate"),
        (r#""version":1"#, r#""version":1,"more":1"#),
        (r#""place":"a""#, r#""place":"-a""#),
    ] {
        let line = steps.replace(known, unknown);
        assert!(
            matches!(Command::from_line(line.as_bytes()), Err(LineError::Malformed(_))),
            "{line}"
        );
    }
    let long = vec![b' '; MOST_LINE + 1];
    assert!(matches!(Command::from_line(&long), Err(LineError::TooLong { .. })));
}

proptest! {
    #[test]
    fn no_bytes_break_the_reader(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Command::from_line(&bytes).is_err());
        prop_assert!(WorkerLine::from_line(&bytes).is_err());
    }

    #[test]
    fn a_line_that_is_cut_is_refused(which in 0..14usize, at in 0..1000usize) {
        let commands = commands();
        let line = to_line(&commands[which % commands.len()]).unwrap();
        let cut = at % line.len();
        prop_assert!(Command::from_line(&line.as_bytes()[..cut]).is_err());
    }
}
