//! Worker processes: one command each, which outlives the program that asked for it.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use jig_model::Fault;
use jig_model::command::{
    Command, CommandEvent, DebugAction, DebugCommand, PlanText, ProbeAccess, RecoverySteps, Reply,
    RunCommand, RunOptions, TestCommand, WorkerLine, to_line,
};
use jig_model::debug::MemoryWidth;
use jig_model::image::{ImageFormat, Payload};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::capture_service::CaptureService;
use crate::ladder::{health, rig};
use crate::manifest::elf;
use crate::served::Served;
use crate::workshop::{DEADLINE, Slot, Started, Workshop, until};

/// Starts a worker with a line on its standard input.
fn worker(workshop: &Workshop, line: &str) -> Started {
    let mut command = workshop.jig(["worker"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut worker = Started::of(&mut command);
    let mut stdin = worker.child().stdin.take().unwrap();
    stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
    worker
}

/// Asks for a run whose firmware says nothing for more than a second.
fn slow_run() -> String {
    to_line(&Command::Run(RunCommand {
        place: "mps2-an385".parse().unwrap(),
        image: Some(elf("mps2-an385", "slow-start").into()),
        resets: 0,
        next_boot: None,
        until: None,
        console: None,
        reject: Vec::new(),
        allow: Vec::new(),
        timeout_ms: 60_000,
        options: RunOptions::default(),
    }))
    .unwrap()
}

fn record(workshop: &Workshop) -> Value {
    let dir = workshop.run_dirs().pop().unwrap();
    serde_json::from_slice(&fs::read(dir.join("record.json")).unwrap()).unwrap()
}

#[test]
fn a_worker_tells_events_and_ends_with_the_reply() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let ran = worker(&workshop, &slow_run()).finish();
    ran.says(0, &[]);
    let lines = ran.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let lines: Vec<WorkerLine> = lines.map(|line| WorkerLine::from_line(line).unwrap()).collect();
    let [events @ .., WorkerLine::Reply(Reply::Run(reply))] = lines.as_slice() else {
        panic!("the last line is no reply: {ran}");
    };
    assert_eq!((reply.exit_code, reply.verdict.kind.as_str()), (0, "pass"));
    let is = |wanted: fn(&CommandEvent) -> bool| {
        events.iter().any(|line| matches!(line, WorkerLine::Event(event) if wanted(event)))
    };
    assert!(is(|event| matches!(event, CommandEvent::RunBegan { .. })));
    assert!(is(|event| matches!(event, CommandEvent::Run { .. })));
    // The logs that are named hold what the board has printed.
    let mut logs = events.iter().filter_map(|line| match line {
        WorkerLine::Event(CommandEvent::Console { log, .. }) => Some(log),
        _ => None,
    });
    assert!(logs.any(|log| !fs::read(log).unwrap().is_empty()));
    assert_eq!(record(&workshop)["id"], reply.run.as_str());
}

#[test]
fn a_worker_refuses_what_it_does_not_understand() {
    let workshop = Workshop::new();
    for (line, words) in [
        (r#"{"version":1,"say":{}}"#, "is of version 1"),
        (r#"{"version":0,"say":{}}"#, "is of version 0"),
        (r#"{"version":4,"say":{"command":"levitate"}}"#, "no command"),
        ("", "no command"),
    ] {
        let ran = worker(&workshop, line).finish();
        assert_eq!(ran.code(), 2, "{ran}");
        let last = WorkerLine::from_line(ran.stdout.trim_ascii_end()).unwrap();
        let WorkerLine::Refused(refusal) = last else { panic!("{ran}") };
        assert_eq!(refusal.fault, Fault::Usage);
        assert!(refusal.message.contains(words), "{ran}");
    }
    assert!(workshop.run_dirs().is_empty());
}

#[test]
fn a_worker_whose_reply_is_lost_does_not_pass() {
    let workshop = Workshop::new();
    let steps = RecoverySteps { place: "microbit".parse().unwrap(), from: None };
    let line = to_line(&Command::RecoverySteps(steps)).unwrap();
    let mut command = workshop.jig(["worker"]);
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    command.stdin(Stdio::piped()).stdout(full).stderr(Stdio::piped());
    let mut worker = Started::of(&mut command);
    worker.child().stdin.take().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    worker.finish().says(75, &["could not write to standard output"]);
}

#[test]
fn a_worker_tells_the_problems_of_a_plan_as_data() {
    let workshop = Workshop::new();
    let plan =
        PlanText { origin: "plan.toml".to_owned(), text: "version = 1\nspeed = 9\n".to_owned() };
    let line = to_line(&Command::Test(TestCommand {
        place: "microbit".parse().unwrap(),
        plan,
        image: None,
        options: RunOptions::default(),
    }));
    let ran = worker(&workshop, &line.unwrap()).finish();
    assert_eq!(ran.code(), 3, "{ran}");
    let last = WorkerLine::from_line(ran.stdout.trim_ascii_end()).unwrap();
    let WorkerLine::Refused(refusal) = last else { panic!("{ran}") };
    let mut problems = refusal.problems.iter();
    let speed = problems.find(|problem| problem.message.contains("speed"));
    let at = speed.map(|problem| (problem.file.as_str(), problem.line, problem.column));
    assert_eq!(at, Some(("plan.toml", Some(2), Some(1))), "{ran}");
}

#[test]
fn a_worker_debugs_a_board() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let image = elf("microbit", "unity-pass");
    workshop.run(["flash", "-b", "microbit", &image]).says(0, &[]);
    let length = 4.try_into().unwrap();
    let read =
        DebugAction::ReadMemory { address: 0, length, width: MemoryWidth::Word, output: None };
    let line = to_line(&Command::Debug(DebugCommand {
        place: "microbit".parse().unwrap(),
        probe: ProbeAccess::default(),
        action: read,
    }));
    let ran = worker(&workshop, &line.unwrap()).finish();
    ran.says(0, &[]);
    let last = ran.stdout.trim_ascii_end().rsplit(|byte| *byte == b'\n').next().unwrap();
    let last = WorkerLine::from_line(last).unwrap();
    let WorkerLine::Reply(Reply::MemoryRead(read)) = last else { panic!("{ran}") };
    let loads = Payload::read(ImageFormat::Elf, &fs::read(&image).unwrap()).unwrap();
    assert_eq!(read.bytes, loads.segments[0].bytes[..4]);
}

#[test]
fn a_worker_whose_caller_has_gone_finishes_its_run() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let mut worker = worker(&workshop, &slow_run());
    let mut out = BufReader::new(worker.child().stdout.take().unwrap());
    let mut first = String::new();
    out.read_line(&mut first).unwrap();
    assert!(first.contains("run_began"), "{first}");
    // Nothing reads what it says from here on.
    drop((out, worker.child().stderr.take()));
    assert_eq!(worker.finish().code(), 0);
    assert_eq!(record(&workshop)["verdict"]["kind"], "pass");
}

/// Finds the worker that proves a place, once its run has begun.
fn proof(workshop: &Workshop, runs: usize) -> Pid {
    until("a proof", || {
        if workshop.run_dirs().len() <= runs {
            return None;
        }
        let mut all = workshop.processes().into_iter();
        all.find(|(_, line)| line.trim_end().ends_with(" worker")).map(|(pid, _)| pid)
    })
}

/// Makes a place that is out of service, and whose proof takes long and fails.
fn out_of_service(workshop: &Workshop) -> Served<'_> {
    let image = elf("microbit", "silent");
    let canary = format!("canary = {{ image = '{image}', timeout = '5s' }}\n");
    rig(workshop, 1, "['reopen', 'out-of-service']", &canary);
    let good = elf("microbit", "rtt-report");
    workshop.run(["run", "-b", "bench-1", &good]).says(75, &["out of service"]);
    assert_eq!(health(workshop, "bench-1")["state"], "quarantined");
    Served::start(workshop, "desk-1", &[])
}

fn serve(workshop: &Workshop) -> CaptureService {
    CaptureService::with(workshop, |command| {
        command.args(["--check-every", "100ms"]);
    })
}

#[test]
fn a_worker_that_is_killed_ends_its_run_and_not_the_daemon() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let served = out_of_service(&workshop);
    let before = workshop.run_dirs().len();
    let daemon = serve(&workshop);
    let worker = proof(&workshop, before);
    // What reloads the daemon is nothing to the run.
    for reloads in 1..=2 {
        daemon.signal(Signal::SIGHUP);
        until("a reload", || {
            let told = daemon.told().into_iter();
            (told.filter(|told| told["event"] == "reloaded").count() >= reloads).then_some(())
        });
    }
    kill(worker, Signal::SIGKILL).unwrap();
    // The next proof sweeps the run.
    let run = workshop.run_dirs().remove(before);
    until("the sweep", || {
        let record = fs::read_to_string(run.join("record.json")).ok()?;
        record.contains("abandoned").then_some(())
    });
    daemon.stop().says(0, &[]);
    drop(served);
    workshop.nothing_lives(DEADLINE).unwrap();
}

#[test]
fn a_daemon_that_is_killed_leaves_the_run_to_its_end() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let served = out_of_service(&workshop);
    let before = workshop.run_dirs().len();
    let daemon = serve(&workshop);
    proof(&workshop, before);
    daemon.kill();
    until("the end of the run", || (!record(&workshop)["verdict"].is_null()).then_some(()));
    assert_eq!(record(&workshop)["verdict"]["kind"], "env_error", "a silent board proves nothing");
    drop(served);
    workshop.nothing_lives(DEADLINE).unwrap();
}
