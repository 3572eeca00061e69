//! The rig used by a program instead of by the command line.

use std::sync::{Arc, Mutex};

use jig_lab::{CatalogueError, CommandError, Lab, LabConfig, ProbeCommandError};
use jig_model::VerdictKind;
use jig_model::command::{
    BoardResetCommand, Command, CommandEvent, CoreReply, DebugAction, DebugCommand, EventSink,
    FlashBy, FlashImageCommand, ProbeAccess, Reply, ResetBy, ServeProbeCommand,
};
use jig_model::debug::{CoreState, HaltReason, MemoryWidth};
use jig_model::image::{ImageFormat, Payload};
use jig_rig::workflow::CancelToken;
use tokio::sync::mpsc;

use crate::manifest::entry;
use crate::workshop::{Slot, Workshop, name_of};

#[allow(dead_code, unreachable_pub, reason = "a program of its own elsewhere")]
#[path = "../../controller/lab/examples/run_test.rs"]
mod run_test;

fn config(workshop: &Workshop) -> LabConfig {
    let (runs, state) = (Some(workshop.runs()), Some(workshop.path("state")));
    LabConfig { runs, state, ..LabConfig::default() }
}

#[tokio::test]
async fn the_example_runs_a_test_on_an_emulated_board() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let fixture = entry("microbit", "markers-pass");
    let (plan, image) = (fixture.plan().unwrap(), Some(fixture.elf()));
    let verdict = run_test::run_test(&config(&workshop), "microbit", &plan, image).await.unwrap();
    assert_eq!(verdict.kind, VerdictKind::Pass, "{verdict:?}");
    // It is recorded like any other run.
    let [run] = workshop.run_dirs().try_into().unwrap();
    let list = workshop.run(["runs", "list"]);
    list.says(0, &[]);
    assert!(list.out().contains(name_of(&run)), "{list}");
}

#[tokio::test]
async fn a_wrong_plan_and_an_unknown_place_are_told_by_types() {
    let workshop = Workshop::new();
    let config = config(&workshop);
    let refused = async |place: &str, plan: &std::path::Path| {
        let error = run_test::run_test(&config, place, plan, None).await.unwrap_err();
        *error.downcast::<CommandError>().unwrap()
    };
    let plan = workshop.write("plan.toml", "version = 1\n");
    let error = refused("microbit", &plan).await;
    assert!(matches!(&error, CommandError::Plan(problems) if !problems.list.is_empty()));
    let plan = entry("microbit", "markers-pass").plan().unwrap();
    let error = refused("nowhere", &plan).await;
    let unknown = matches!(&error, CommandError::Catalogue(CatalogueError::UnknownPlace { .. }));
    assert!(unknown, "{error}");
    assert!(workshop.run_dirs().is_empty());
}

/// Keeps what it is told, and says when a debug port is served.
struct Told {
    events: Mutex<Vec<CommandEvent>>,
    served: mpsc::UnboundedSender<()>,
}

impl Told {
    fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<()>) {
        let (served, serves) = mpsc::unbounded_channel();
        (Arc::new(Self { events: Mutex::default(), served }), serves)
    }

    fn any(&self, test: impl Fn(&CommandEvent) -> bool) -> bool {
        self.events.lock().unwrap().iter().any(test)
    }
}

impl EventSink for Told {
    fn event(&self, event: CommandEvent) {
        if let CommandEvent::ProbeServed { .. } = &event {
            self.served.send(()).unwrap();
        }
        self.events.lock().unwrap().push(event);
    }
}

#[test]
fn the_future_of_a_command_moves_between_threads() {
    fn is_send<T: Send>(_: impl FnOnce(&'static Lab) -> T) {}
    fn is_static<T: Send + 'static>(_: impl FnOnce(Lab) -> T) {}
    let command = || {
        let (place, probe) = ("a".parse().unwrap(), ProbeAccess::default());
        Command::Debug(DebugCommand { place, probe, action: DebugAction::Halt })
    };
    let (events, _) = Told::new();
    let told = Arc::clone(&events);
    is_send(|lab| lab.execute(command(), told, CancelToken::new()));
    is_static(|lab| async move { lab.execute(command(), events, CancelToken::new()).await });
}

#[tokio::test]
async fn a_program_flashes_and_debugs_an_emulated_board() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let lab = Lab::open(&config(&workshop)).unwrap();
    let image = entry("microbit", "unity-pass").elf();
    let payload = Payload::read(ImageFormat::Elf, &std::fs::read(&image).unwrap()).unwrap();
    let first = payload.segments[0].clone();
    let place = || "microbit".parse().unwrap();
    let access = ProbeAccess::default;
    let (events, mut serves) = Told::new();
    let ask = async |command| {
        lab.execute(command, Arc::clone(&events) as Arc<dyn EventSink>, CancelToken::new()).await
    };
    let debug = |action| Command::Debug(DebugCommand { place: place(), probe: access(), action });

    // The board lives as long as a command: its flash is kept, and its core is not.
    let flash = Command::Flash(FlashImageCommand {
        place: place(),
        probe: access(),
        image: image.clone(),
        by: FlashBy::Usual,
    });
    let Reply::Flashed(flashed) = ask(flash).await.unwrap() else { panic!() };
    assert!(flashed.report.verified && flashed.report.bytes >= first.bytes.len() as u64);
    assert!(events.any(|event| matches!(event, CommandEvent::Attached { .. })));
    assert!(events.any(|event| matches!(event, CommandEvent::Flashing { .. })));
    let error = ask(debug(DebugAction::Halt)).await.unwrap_err();
    let kept = matches!(&error, CommandError::Probe(ProbeCommandError::NotKept { .. }));
    assert!(kept, "{error}");

    // While it is served, the core outlives each command.
    let (server, stop) = (lab.clone(), CancelToken::new());
    let serve = Command::ServeProbe(ServeProbeCommand {
        place: place(),
        listen: None,
        image: None,
        wait_ms: 0,
    });
    let (told, until) = (Arc::clone(&events), stop.clone());
    let served = tokio::spawn(async move { server.execute(serve, told, until).await });
    serves.recv().await.unwrap();
    let Reply::Core(halted) = ask(debug(DebugAction::Halt)).await.unwrap() else { panic!() };
    let CoreReply { core: CoreState::Halted { reason: HaltReason::Requested, pc }, .. } = halted
    else {
        panic!("{halted:?}")
    };
    let read = DebugAction::Registers { set: Vec::new(), read: vec!["pc".to_owned()] };
    let Reply::Registers(read) = ask(debug(read)).await.unwrap() else { panic!() };
    assert_eq!((read.registers[0].bits, read.registers[0].value), (32, pc.into()));
    let length = (first.bytes.len() as u64).try_into().unwrap();
    let address = first.start;
    let width = MemoryWidth::Any;
    let read = DebugAction::ReadMemory { address, length, width, output: None };
    let Reply::MemoryRead(read) = ask(debug(read)).await.unwrap() else { panic!() };
    assert_eq!((read.address, read.bytes), (address, first.bytes));
    let reset =
        Command::Reset(BoardResetCommand { place: place(), probe: access(), by: ResetBy::Usual });
    let Reply::Core(reset) = ask(reset).await.unwrap() else { panic!() };
    assert!(!matches!(reset.core, CoreState::Halted { .. }), "{reset:?}");
    stop.cancel();
    assert!(matches!(served.await.unwrap(), Ok(Reply::Ended(_))));
    assert!(events.any(|event| matches!(event, CommandEvent::ConsoleBytes { .. })));
    workshop.nothing_lives(std::time::Duration::from_secs(5)).unwrap();
}
