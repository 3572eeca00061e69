//! Every command, event and answer survives its line, and nothing else is taken for one.

use std::num::NonZeroU64;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::debug::{
    AttachMethod, CoreState, EraseReport, FlashPhase, FlashProgress, FlashReport, HaltReason,
    MemoryWidth, RegisterValue, WireProtocol,
};
use crate::image::DeployReport;
use crate::pattern::Pattern;
use crate::post_mortem::{PostMortem, StackFrame};
use crate::power::{Confirmation, PlaceSense};
use crate::protocol::{CheckReport, LineControl, PowerState};
use crate::recovery::{RecoveryStep, Rung};
use crate::{Cause, Fault, LocatedProblem, PlaceName, RunEvent, SessionTrace, Strictness, Verdict};

fn place() -> PlaceName {
    "bench-1".parse().unwrap()
}

fn commands() -> Vec<Command> {
    let options = RunOptions {
        repeat: 3,
        recoveries: Some(0),
        settle_ms: Some(500),
        strict: Strictness::Behind,
        inject: vec!["kill-emulator@2s".to_owned()],
        coverage: true,
        coverage_by_test: true,
        asked: Some(SessionTrace {
            session: "s20261126-101530-1a2b".parse().unwrap(),
            trace_id: "0af7651916cd43dd8448eb211c80319c".parse().unwrap(),
        }),
    };
    let image = Some("app.elf".into());
    let mut commands = vec![
        Command::Run(RunCommand {
            place: place(),
            image: image.clone(),
            resets: 1,
            next_boot: Some(Pattern::new("^app ").unwrap()),
            until: Some(Pattern::new("ready v[0-9]").unwrap()),
            console: Some("uart1".parse().unwrap()),
            reject: vec![Pattern::new("ERROR").unwrap()],
            allow: vec![Pattern::new("^self-test ").unwrap()],
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
        Command::Attach(AttachCommand {
            place: place(),
            console: None,
            since_ms: 60_000,
            follow: AttachFollow::Always,
            input: AttachInput::Take,
            quiet_ms: 0,
            boot: Some(ConsoleCommand { place: place(), image: None, console: None, quiet_ms: 0 }),
        }),
        Command::LineControl(LineControlCommand {
            place: place(),
            console: Some("uart0".parse().unwrap()),
            controls: vec![LineControl::Break, LineControl::Dtr(true), LineControl::Rts(false)],
            take: true,
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
    commands.extend(probe_commands());
    commands
}

fn probe_commands() -> Vec<Command> {
    let probe = ProbeAccess {
        selector: Some("20b7:9db1:unix:a.probe".to_owned()),
        chip: Some("chip".to_owned()),
        speed_khz: Some(4000),
        protocol: Some(WireProtocol::Jtag),
        under_reset: true,
        allow_unlock: true,
        wait_ms: 30_000,
    };
    let image = || Some("app.elf".into());
    let actions = [
        DebugAction::Halt,
        DebugAction::Resume,
        DebugAction::Step { count: 5 },
        DebugAction::Registers {
            set: vec![("r0".to_owned(), u64::MAX)],
            read: vec!["pc".to_owned()],
        },
        DebugAction::ReadMemory {
            address: u64::MAX,
            length: NonZeroU64::MIN,
            width: MemoryWidth::Any,
            output: image(),
        },
        DebugAction::WriteMemory { address: 0, bytes: vec![0, 255], width: MemoryWidth::Half },
        DebugAction::Breakpoint { at: CodeLocation::Address(4), reset: true, timeout_ms: 1 },
        DebugAction::Breakpoint {
            at: CodeLocation::Function { name: "main".to_owned(), image: "app.elf".into() },
            reset: false,
            timeout_ms: 1,
        },
        DebugAction::Backtrace { image: image() },
        DebugAction::Dump { output: "a.core".into(), memory: vec![0..4, 8..16] },
        DebugAction::Rtt { image: None, channel: 1, reset: true, timeout_ms: Some(7) },
        DebugAction::Gdb { listen: ([127, 0, 0, 1], 0).into(), allow_remote: true, reset: true },
    ];
    let mut commands = vec![
        Command::Flash(FlashImageCommand {
            place: place(),
            probe: probe.clone(),
            image: "app.elf".into(),
            by: FlashBy::Probe(ProbeFlash {
                start: false,
                preserve: vec![0x100..0x200, 0x400..0x500],
                ..ProbeFlash::default()
            }),
        }),
        Command::Flash(FlashImageCommand {
            place: place(),
            probe: ProbeAccess::default(),
            image: "app.elf".into(),
            by: FlashBy::Usual,
        }),
        Command::Erase(EraseCommand { place: place(), probe: probe.clone(), range: Some(0..4) }),
        Command::Reset(BoardResetCommand {
            place: place(),
            probe: probe.clone(),
            by: ResetBy::Probe { halt: true },
        }),
        Command::Reset(BoardResetCommand {
            place: place(),
            probe: probe.clone(),
            by: ResetBy::Usual,
        }),
        Command::ServeProbe(ServeProbeCommand {
            place: place(),
            listen: Some(ListenAt::Tcp(([127, 0, 0, 1], 0).into())),
            image: image(),
            wait_ms: 1,
        }),
        Command::Hold(HoldCommand {
            place: place(),
            image: image(),
            wait_ms: 1,
            ends_with_lease: false,
        }),
    ];
    commands.extend(actions.map(|action| {
        Command::Debug(DebugCommand { place: place(), probe: probe.clone(), action })
    }));
    commands
}

fn probe_events() -> Vec<CommandEvent> {
    let progress = FlashProgress { phase: FlashPhase::Program, done: 1, total: 2 };
    let channel = || RttChannelInfo { number: 0, name: "Terminal".to_owned(), size: 1024 };
    vec![
        CommandEvent::Attached {
            chip: "chip".to_owned(),
            attempts: 2,
            method: AttachMethod::UnderReset,
            failures: vec!["no answer".to_owned()],
        },
        CommandEvent::Flashing { progress },
        CommandEvent::Deploying { program: "esptool".to_owned(), percent: None },
        CommandEvent::Deploying { program: "esptool".to_owned(), percent: Some(100) },
        CommandEvent::RttChannels { up: vec![channel()], down: Vec::new() },
        CommandEvent::RttBytes { bytes: vec![0, 0x1b, 0xff] },
        CommandEvent::RttLine { line: "INFO ready".to_owned() },
        CommandEvent::RttBroken { bytes: 3 },
        CommandEvent::GdbServed { place: place(), address: "127.0.0.1:3333".to_owned() },
        CommandEvent::ProbeServed {
            place: place(),
            selector: "20b7:9db1:unix:a.probe".to_owned(),
            chip: None,
            description: Some("name: chip".to_owned()),
        },
        CommandEvent::Held {
            place: place(),
            consoles: vec!["uart0".parse().unwrap()],
            debug: true,
        },
        CommandEvent::HeldBoardEnded { place: place(), why: "the firmware ended".to_owned() },
        CommandEvent::ConsoleBytes { console: "uart0".parse().unwrap(), bytes: b"ok".to_vec() },
    ]
}

fn attach_events() -> Vec<CommandEvent> {
    let console = || "uart0".parse().unwrap();
    let captured = || ConsoleLogSource::Captured { file: 3 };
    let run = || ConsoleLogSource::Run { run: "r1".parse().unwrap(), attempt: 2 };
    let log = |source, item| {
        let at = "2024-05-06T07:08:09.123456789Z".parse().unwrap();
        CommandEvent::ConsoleLog(ConsoleLogEvent { at, source, offset: 7, item })
    };
    let by = || "jig \u{1b}[31m".to_owned();
    let lost = |loss| CommandEvent::InputLost { loss };
    vec![
        CommandEvent::ConsoleAttached { console: console(), sends: true },
        log(captured(), ConsoleLogItem::Output { bytes: vec![0, 0xff] }),
        log(run(), ConsoleLogItem::Gap { lost: None, reason: "transport".to_owned() }),
        log(run(), ConsoleLogItem::Garbled { count: 1 }),
        CommandEvent::InputFailed { why: by() },
        lost(InputLoss::Lent { by: by() }),
        lost(InputLoss::Taken { by: by() }),
        lost(InputLoss::ServiceEnded),
        lost(InputLoss::Failed { why: by() }),
        CommandEvent::LineControlled {
            place: place(),
            console: console(),
            done: LineControl::Dtr(false),
        },
    ]
}

fn probe_replies() -> Vec<Reply> {
    let chip = || "chip".to_owned();
    let core = CoreState::Halted { reason: HaltReason::Breakpoint, pc: 0x0800_0000 };
    let register = |value| RegisterValue { name: "q0".to_owned(), bits: 128, value };
    let frame = StackFrame {
        pc: 4,
        function: Some("main".to_owned()),
        file: None,
        line: Some(7),
        inlined: false,
        exception: true,
    };
    let found = PostMortem {
        summary: "halted".to_owned(),
        kind: "running".to_owned(),
        status: Vec::new(),
        frames: vec![frame],
        limits: vec!["no image".to_owned()],
        threads: Vec::new(),
        registers: vec![("pc".to_owned(), 4)],
        core: None,
        proves: Some(Cause::CoreFault),
    };
    let took = Duration::from_micros(1500);
    let report = FlashReport {
        bytes: 5,
        written: 8,
        sectors_erased: 1,
        sectors_equal: 2,
        verified: true,
        read_back_sha256: Some("00".to_owned()),
        phases: vec![(FlashPhase::Compare, took)],
    };
    let deployed = DeployReport { method: "esptool".to_owned(), ..DeployReport::default() };
    vec![
        Reply::Flashed(FlashReply { place: place(), chip: chip(), attempts: 1, report }),
        Reply::Deployed(DeployReply { place: place(), report: deployed }),
        Reply::Erased(EraseReply {
            place: place(),
            chip: chip(),
            report: Some(EraseReport { bytes: 1024, took }),
        }),
        Reply::Reset(ResetReply { place: place(), method: ResetMethod::Line }),
        Reply::Core(CoreReply { place: place(), chip: chip(), core }),
        Reply::Core(CoreReply { place: place(), chip: chip(), core: CoreState::LockedUp }),
        Reply::Registers(RegistersReply {
            place: place(),
            registers: vec![register(0), register(u128::MAX)],
        }),
        Reply::MemoryRead(MemoryReadReply {
            place: place(),
            address: 0x2000_0000,
            length: 3,
            bytes: vec![0, 0x7f, 0xff],
        }),
        Reply::MemoryWritten(MemoryWrittenReply { place: place(), address: 4, written: 2 }),
        Reply::Breakpoint(BreakpointReply {
            place: place(),
            chip: chip(),
            address: 4,
            outcome: BreakpointOutcome::Stopped,
            core,
            found: Some(found.clone()),
        }),
        Reply::Backtrace(BacktraceReply { place: place(), found }),
        Reply::Dumped(DumpReply {
            place: place(),
            core: "a.core".into(),
            memory: 4096,
            unreadable: vec![0..4, 8..16],
            registers: 17,
        }),
        Reply::Ended(EndedReply { place: place() }),
    ]
}

fn said() -> Vec<WorkerLine> {
    let events = [
        CommandEvent::RunBegan { run: "r1".parse().unwrap(), dir: "runs/1".into() },
        CommandEvent::Run {
            event: RunEvent::AttemptStarted {
                attempt: 1,
                purpose: Default::default(),
                repetition: Some(1),
            },
        },
        CommandEvent::Console { console: "uart0".parse().unwrap(), log: "uart0.raw".into() },
        CommandEvent::Waiting { place: place(), holder: "jig \u{1b}[31m".to_owned() },
        CommandEvent::LeaseLost { lease: "l1".parse().unwrap(), why: "\u{7}".to_owned() },
        CommandEvent::Disturbing { place: place(), holder: String::new() },
    ];
    let events = events.into_iter().chain(attach_events()).chain(probe_events());
    let mut said: Vec<_> = events.map(WorkerLine::Event).collect();
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
            in_use: None,
        }),
    ];
    said.extend(replies.into_iter().chain(probe_replies()).map(WorkerLine::Reply));
    said.push(WorkerLine::Refused(Refusal {
        fault: Fault::Lab,
        message: "in use".to_owned(),
        help: Some("wait".to_owned()),
        problems: vec![LocatedProblem {
            file: "plan.toml".to_owned(),
            line: Some(1),
            column: None,
            check: "plan::unknown-key".to_owned(),
            message: "unknown key".to_owned(),
            help: "remove it".to_owned(),
        }],
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
fn every_order_to_a_holder_survives_its_line() {
    let command = commands().into_iter().map(|command| HolderOrder::Command(Box::new(command)));
    let input = HolderOrder::Input { bytes: vec![0, 255] };
    let others = [input, HolderOrder::InputEnd, HolderOrder::Cancel, HolderOrder::Describe];
    for order in command.chain(others) {
        let line = to_line(&order).unwrap();
        assert!(!line.contains('\n'), "{line}");
        assert_eq!(HolderOrder::from_line(line.as_bytes()).unwrap(), order, "{line}");
    }
    let ports = [("ssh".to_owned(), "127.0.0.1:2222".to_owned())].into();
    for facts in [HeldBoardFacts::default(), HeldBoardFacts { ports, off: Some("a\nb".into()) }] {
        let line = to_line(&facts).unwrap();
        assert_eq!(HeldBoardFacts::from_line(line.as_bytes()).unwrap(), facts, "{line}");
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
    for (other, says) in [(0, "it is of version 0, "), (1, "it is of version 1, ")] {
        let line = format!(r#"{{"version":{other},"say":{{"command":"levitate"}},"and":"more"}}"#);
        let error = Command::from_line(line.as_bytes()).unwrap_err();
        assert!(matches!(error, LineError::Version { found } if found == other), "{error}");
        assert!(error.to_string().starts_with(says), "{error}");
        let error = WorkerLine::from_line(line.as_bytes()).unwrap_err();
        assert!(matches!(error, LineError::Version { found } if found == other), "{error}");
    }
}

#[test]
fn unknown_fields_and_commands_are_refused() {
    let steps = r#"{"version":4,"say":{"command":"recovery_steps","place":"a"}}"#;
    assert!(Command::from_line(steps.as_bytes()).is_ok());
    for (known, unknown) in [
        (r#""place":"a""#, r#""place":"a","force":true"#),
        ("recovery_steps", "levitate"),
        (r#""version":4"#, r#""version":4,"more":1"#),
        (r#""place":"a""#, r#""place":"-a""#),
    ] {
        let line = steps.replace(known, unknown);
        assert!(
            matches!(Command::from_line(line.as_bytes()), Err(LineError::Malformed(_))),
            "{line}"
        );
    }
    let read = r#"{"version":4,"say":{"command":"debug","place":"a","action":{"read_memory":
        {"address":0,"length":1}}}}"#;
    assert!(Command::from_line(read.as_bytes()).is_ok());
    let nothing = read.replace(r#""length":1"#, r#""length":0"#);
    assert!(matches!(Command::from_line(nothing.as_bytes()), Err(LineError::Malformed(_))));
    let long = vec![b' '; MOST_LINE + 1];
    assert!(matches!(Command::from_line(&long), Err(LineError::TooLong { .. })));
}

#[test]
fn registers_and_memory_travel_as_hexadecimal_digits() {
    let lines: Vec<_> = probe_replies().iter().map(|reply| to_line(reply).unwrap()).collect();
    let has = |text: &str| lines.iter().any(|line| line.contains(text));
    assert!(has(r#""value":"0xffffffffffffffffffffffffffffffff""#), "{lines:#?}");
    assert!(has(r#""bytes":"007fff""#), "{lines:#?}");
    let write = r#"{"version":4,"say":{"command":"debug","place":"a","action":{"write_memory":
        {"address":0,"bytes":"00ff"}}}}"#;
    assert!(Command::from_line(write.as_bytes()).is_ok());
    for bytes in ["0", "00f", "0x", "00 f", "zz", "+1"] {
        let line = write.replace("00ff", bytes);
        assert!(
            matches!(Command::from_line(line.as_bytes()), Err(LineError::Malformed(_))),
            "{line}"
        );
    }
}

#[test]
fn a_path_to_listen_at_is_told_from_an_address() {
    let read = |text: &str| text.parse::<ListenAt>();
    let unix = |path: &str| Ok(ListenAt::Unix(path.into()));
    assert_eq!(read("/run/a:b.probe"), unix("/run/a:b.probe"));
    assert_eq!(read("./board.probe"), unix("./board.probe"));
    assert_eq!(read("unix:board.probe"), unix("board.probe"));
    assert_eq!(read("127.0.0.1:0"), Ok(ListenAt::Tcp(([127, 0, 0, 1], 0).into())));
    assert!(matches!(read("[::1]:3333"), Ok(ListenAt::Tcp(address)) if address.port() == 3333));
    for bad in ["", "unix:", "board.probe", "3333", "127.0.0.1", "localhost:3333", ":1"] {
        assert!(read(bad).is_err(), "{bad}");
    }
}

#[test]
fn the_usual_part_of_a_place_is_the_default() {
    let flash = r#"{"version":4,"say":{"command":"flash","place":"a","image":"b"}}"#;
    let flash = Command::from_line(flash.as_bytes()).unwrap();
    assert!(matches!(flash, Command::Flash(FlashImageCommand { by: FlashBy::Usual, .. })));
    let reset = r#"{"version":4,"say":{"command":"reset","place":"a"}}"#;
    let reset = Command::from_line(reset.as_bytes()).unwrap();
    assert!(matches!(reset, Command::Reset(BoardResetCommand { by: ResetBy::Usual, .. })));
}

#[test]
fn an_answer_that_is_longer_than_a_line_is_not_written() {
    let bytes = vec![0; MOST_LINE / 2];
    let length = bytes.len() as u64;
    let read = MemoryReadReply { place: place(), address: 0, length, bytes };
    let told = to_line(&WorkerLine::Reply(Reply::MemoryRead(read)));
    assert!(matches!(told, Err(LineError::TooLong { len }) if len > MOST_LINE));
}

proptest! {
    #[test]
    fn no_bytes_break_the_reader(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Command::from_line(&bytes).is_err());
        prop_assert!(WorkerLine::from_line(&bytes).is_err());
    }

    #[test]
    fn a_line_that_is_cut_is_refused(which in 0..30usize, at in 0..1000usize) {
        let commands = commands();
        let line = to_line(&commands[which % commands.len()]).unwrap();
        let cut = at % line.len();
        prop_assert!(Command::from_line(&line.as_bytes()[..cut]).is_err());
    }
}
