//! `jig serve` and `jig console` on what it keeps: hand-over, kills, changes of the rig.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{self, ChildStdout, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use jig_lab::{AttachError, CommandError, Lab, LabConfig};
use jig_model::command::{
    AttachCommand, AttachFollow, AttachInput, Command, CommandEvent, ConsoleLogEvent,
    ConsoleLogItem, ConsoleLogSource, EventSink, InputLoss, LineControlCommand, Reply,
};
use jig_model::protocol::LineControl;
use jig_rig::workflow::CancelToken;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::serial::{Bench, terminal, tty};
use crate::served::first_line;
use crate::workshop::{Ran, Started, Workshop, tied, until};

/// A capture service; killed when dropped.
pub(crate) struct CaptureService {
    program: Started,
    told: Arc<Mutex<Vec<Value>>>,
}

impl CaptureService {
    pub(crate) fn start(workshop: &Workshop) -> Self {
        Self::with(workshop, |_| ())
    }

    pub(crate) fn with(workshop: &Workshop, more: impl FnOnce(&mut process::Command)) -> Self {
        let mut command = workshop.jig(["--json", "serve"]);
        command.stdout(Stdio::piped());
        command.stderr(File::create(workshop.path("keeper.txt")).unwrap());
        more(&mut command);
        let mut program = Started::of(&mut command);
        let out = BufReader::new(program.child().stdout.take().unwrap());
        let told = Arc::<Mutex<Vec<Value>>>::default();
        let heard = Arc::clone(&told);
        // Ends with the capture service, which is killed at the latest when this is dropped.
        thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let event = serde_json::from_str(&line).unwrap_or_else(|_| line.into());
                heard.lock().unwrap_or_else(PoisonError::into_inner).push(event);
            }
        });
        let service = Self { program, told };
        service.tells("ready", |_| true);
        service
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(self.program.id().cast_signed())
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        self.program.signal(signal);
    }

    pub(crate) fn told(&self) -> Vec<Value> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for an event.
    #[track_caller]
    pub(crate) fn tells(&self, event: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        until(event, || {
            self.told().into_iter().rev().find(|told| told["event"] == event && is_it(told))
        })
    }

    /// Waits until the last that was told of a place is this state.
    #[track_caller]
    pub(crate) fn state(&self, place: &str, state: &str) {
        until(&format!("{place} {state}"), || {
            let told = self.told();
            let last = told.iter().rev().find(|told| told["place"] == place)?;
            (last["state"] == state).then_some(())
        });
    }

    pub(crate) fn kill(self) {
        self.program.signal(Signal::SIGKILL);
        assert_eq!(self.program.finish().code(), 128 + 9);
    }

    pub(crate) fn stop(self) -> Ran {
        self.program.signal(Signal::SIGTERM);
        self.finish()
    }

    /// Waits for its end.
    pub(crate) fn finish(self) -> Ran {
        self.program.finish()
    }
}

/// Prints numbered lines into a terminal until it is stopped.
struct Flood {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<(u64, File)>>,
}

impl Flood {
    fn begin(mut target: File) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            for number in 0.. {
                if stopped.load(Ordering::Relaxed) {
                    return (number, target);
                }
                // Waits while the terminal is full; fails when the test has.
                if writeln!(target, "{number:08}").is_err() {
                    return (number, target);
                }
                // As fast as a line at 230400 baud, or its target would count as storming.
                thread::sleep(Duration::from_micros(400));
            }
            unreachable!()
        });
        Self { stop, thread: Some(thread) }
    }

    /// Returns how many lines there were, and the terminal's far end.
    fn end(mut self) -> (u64, File) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |about| about.len())
}

/// Waits until a log has grown well beyond what was on its way.
#[track_caller]
fn grows(what: &str, size: impl Fn() -> u64) {
    let before = size();
    until(what, || (size() > before + 4096).then_some(()));
}

pub(crate) fn captured(workshop: &Workshop, place: &str) -> u64 {
    let state = workshop.path("../home/STATE/jig/places");
    let folder = state.join(format!("{place}.consoles/uart0"));
    let files = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let raws =
        files.map(|file| file.path()).filter(|path| path.extension() == Some("raw".as_ref()));
    raws.map(|path| size(&path)).sum()
}

/// Returns a terminal under a name that stays its own.
pub(crate) fn named(workshop: &Workshop, name: &str) -> (File, File, PathBuf) {
    let (far, near, path) = terminal();
    let link = workshop.path(name);
    symlink(path, &link).unwrap();
    (far, near, link)
}

/// Joins what a console shows between its gaps.
fn between_gaps(shown: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for line in shown.lines() {
        let item: Value = serde_json::from_str(line).unwrap();
        match item["text"].as_str() {
            Some(text) => pieces.last_mut().unwrap().push_str(text),
            None => pieces.push(String::new()),
        }
    }
    pieces
}

/// Lists the gaps in a console's logs, for the message of a failed assertion.
fn gaps(bench: &Bench) -> String {
    let all =
        bench.workshop.run(["--json", "console", "-b", "bench", "--listen-only", "--since", "1h"]);
    let items: Vec<String> =
        all.out().lines().filter(|line| !line.contains("\"text\"")).map(str::to_owned).collect();
    items.join("\n")
}

#[test]
fn through_hand_overs_and_kills_each_line_is_kept_or_a_gap_says_that_it_is_not() {
    let mut ends = None;
    let bench = Bench::new(|workshop| {
        let (far, near, link) = named(workshop, "by-id");
        ends = Some((far, near));
        tty(&link)
    });
    let (far, _near) = ends.unwrap();
    // Of all its attempts: one may be made again.
    let in_run = || {
        let attempts = fs::read_dir(bench.run_dir().unwrap().join("consoles")).unwrap();
        attempts.map(|attempt| size(&attempt.unwrap().path().join("uart0.raw"))).sum()
    };
    let between = || captured(&bench.workshop, "bench");
    let service = CaptureService::start(&bench.workshop);
    service.state("bench", "captured");
    let flood = Flood::begin(far);
    grows("what is captured first", between);

    // In order, there and back.
    let run = bench.run_until("never");
    service.state("bench", "lent");
    grows("the first run's log", in_run);
    run.signal(Signal::SIGINT);
    run.finish().says(130, &[]);
    service.state("bench", "captured");
    grows("what is captured after it", between);

    // The run dies: its process is the service's, and not that of its caller.
    let run = bench.run_until("never");
    service.state("bench", "lent");
    grows("the second run's log", in_run);
    let workers = bench.workshop.processes().into_iter();
    let mut workers = workers.filter(|(_, line)| line.contains(" worker --job "));
    kill(workers.next().expect("the run's process").0, Signal::SIGKILL).unwrap();
    run.finish().says(75, &[]);
    service.state("bench", "captured");
    grows("what is captured after the kill", between);

    // The capture service dies over a run, and the next one waits for its end.
    let run = bench.run_until("never");
    service.state("bench", "lent");
    grows("the third run's log", in_run);
    service.kill();
    grows("the third run's log without a capture service", in_run);
    let service = CaptureService::start(&bench.workshop);
    service.state("bench", "waiting");
    run.signal(Signal::SIGINT);
    run.finish().says(130, &[]);
    service.state("bench", "captured");
    grows("what the second capture service keeps", between);

    // It dies while it keeps.
    service.kill();
    let service = CaptureService::start(&bench.workshop);
    service.state("bench", "captured");
    grows("what the third capture service keeps", between);
    let (lines, _far) = flood.end();
    let last = format!("{:08}\n", lines - 1);
    let look = ["--json", "console", "-b", "bench", "--listen-only", "--since", "1h"];
    let pieces = until("the last line", || {
        let all = bench.workshop.run(look);
        all.says(0, &[]);
        let pieces = between_gaps(&all.out());
        pieces.last().unwrap().ends_with(&last).then_some(pieces)
    });

    // What is between two gaps is whole.
    // What a piece begins and ends with is enough to see which gap is one too many.
    let ends = |piece: &String| {
        let mut lines = piece.lines().map(str::to_owned);
        (lines.next(), lines.next_back())
    };
    let told: Vec<_> = pieces.iter().map(ends).collect();
    assert_eq!(pieces.len(), 4, "there are three gaps: {told:?} {}", gaps(&bench));
    assert!(pieces[0].starts_with("00000000\n"), "{:?}", &pieces[0][..20]);
    let mut next = 0;
    for (number, piece) in pieces.iter().enumerate() {
        // A gap may cut a line on either side.
        let from = if number == 0 { 0 } else { piece.find('\n').unwrap() + 1 };
        let to = piece.rfind('\n').unwrap() + 1;
        for line in piece[from..to].lines() {
            let line: u64 = line.parse().unwrap_or_else(|_| panic!("{line:?} in piece {number}"));
            // Behind a gap lines may be missing, and only there.
            let first = piece[from..].starts_with(&format!("{line:08}\n"));
            let jumps = number > 0 && line > next && first;
            assert!(line == next || jumps, "{line} instead of {next} in piece {number}");
            next = line + 1;
        }
    }
    assert_eq!(next, lines);
    let events = fs::read_to_string(bench.run_dir().unwrap().join("events.jsonl")).unwrap();
    assert!(events.contains("\"what\":\"taken_over\""), "{events}");
    service.stop().says(0, &[]);
}

#[test]
fn one_device_under_two_names_is_told_with_both_and_its_line() {
    let workshop = Workshop::new();
    let port = workshop.write("port", "");
    let place = |name: &str| {
        let link = workshop.path(&format!("{name}-port"));
        std::os::unix::fs::symlink(&port, &link).unwrap();
        format!(
            "[[place]]\nname = \"{name}\"\nboard = \"microbit\"\n[place.probe]\n\
             selector = \"0d28:0204:{name}\"\n[[place.console]]\nname = \"uart0\"\ntty = \"{}\"\n",
            link.display()
        )
    };
    let rig = workshop.write("rig.toml", format!("version = 1\n{}{}", place("one"), place("two")));
    let checked = workshop.run(["profile", "check", rig.to_str().unwrap()]);
    checked.says(3, &["one-port", "two-port", "are the same device", "rig.toml:17"]);
    let service = CaptureService::start(&workshop);
    service.tells("shared_port", |event| {
        let error = event["error"].as_str().unwrap_or_default();
        error.contains("rig.toml:17: place two") && error.contains("one-port")
    });
    service.tells("ready", |event| event["consoles"] == 1);
    service.stop().says(0, &[]);
}

#[test]
fn a_port_behind_a_server_is_lent_by_passing_its_bytes_on() {
    let (mut far, _near, path) = terminal();
    // An address of its own on the loopback network: no other process can have the port.
    let [.., high, low] = std::process::id().to_be_bytes();
    let address = format!("127.{high}.{low}.200,3001");
    let mut server = None;
    let bench = Bench::new(|workshop| {
        let device = path.display();
        let config = format!(
            "connection: &port\n  accepter: telnet(rfc2217),tcp,{address}\n  \
             connector: serialdev,{device},115200n81,local\n"
        );
        let config = workshop.write("ser2net.yaml", config);
        let mut command = tied("/usr/sbin/ser2net");
        command.args(["-n", "-c"]).arg(config);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        server = Some(Started::of(&mut command));
        format!("rfc2217 = \"{}\"", address.replace(',', ":"))
    });
    let service = CaptureService::start(&bench.workshop);
    service.state("bench", "captured");
    far.write_all(b"before\n").unwrap();
    until("the first line", || (captured(&bench.workshop, "bench") == 7).then_some(()));
    let run = bench.run_until("^during$");
    service.state("bench", "lent");
    bench.event("\"event\":\"boot\"");
    far.write_all(b"during\n").unwrap();
    run.finish().says(0, &[]);
    service.state("bench", "captured");
    far.write_all(b"after\n").unwrap();
    until("the last line", || (captured(&bench.workshop, "bench") == 13).then_some(()));
    let all = ["--quiet", "console", "-b", "bench", "--listen-only", "--since", "1h"];
    let all = bench.workshop.run(all);
    assert_eq!(all.out(), "before\nduring\nafter\n", "{all}");
    service.stop().says(0, &[]);
}

/// A rig of places whose probes are never used.
pub(crate) fn rig(places: &[(&str, &Path)]) -> String {
    let place = |(name, port): &(&str, &Path)| {
        format!(
            "[[place]]\nname = \"{name}\"\nboard = \"microbit\"\n[place.probe]\n\
             selector = \"1209:4a49:{name}\"\n[[place.console]]\nname = \"uart0\"\n{}\n",
            tty(port)
        )
    };
    let places: String = places.iter().map(place).collect();
    format!("version = 1\n{places}")
}

/// Passes on each event.
struct Told(mpsc::UnboundedSender<CommandEvent>);

impl EventSink for Told {
    fn event(&self, event: CommandEvent) {
        let _ = self.0.send(event);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_attaches_to_a_captured_console() {
    let workshop = Workshop::new();
    let (mut far, _near, link) = named(&workshop, "port");
    let rig_file = workshop.write("rig.toml", rig(&[("bench", &link)]));
    let state = Some(workshop.path("../home/STATE/jig"));
    let (rig_file, runs) = (Some(rig_file), Some(workshop.runs()));
    let lab = Lab::open(&LabConfig { rig: rig_file, runs, state, ..LabConfig::default() }).unwrap();
    let place = || "bench".parse().unwrap();
    let attach = |input, follow| {
        let (since_ms, quiet_ms) = (3_600_000, 0);
        let (place, console) = (place(), None);
        let boot = None;
        Command::Attach(AttachCommand { place, console, since_ms, follow, input, quiet_ms, boot })
    };
    let (events, mut told) = mpsc::unbounded_channel();
    let (events, stop) = (Arc::new(Told(events)), CancelToken::new());
    let ask = |command| lab.execute(command, events.clone(), stop.clone());
    let refused = ask(attach(AttachInput::Send, AttachFollow::Always)).await.unwrap_err();
    let free = matches!(refused, CommandError::Attach(AttachError::NotCaptured { .. }));
    assert!(free, "{refused}");
    assert!(told.try_recv().is_err());

    let service = CaptureService::start(&workshop);
    service.state("bench", "captured");
    far.write_all(b"hello\n").unwrap();
    until("the first line", || (captured(&workshop, "bench") == 6).then_some(()));
    let (keys, input) = mpsc::channel(1);
    let (server, sink, cancel) = (lab.clone(), events.clone(), stop.clone());
    let take = attach(AttachInput::Take, AttachFollow::Always);
    let session =
        tokio::spawn(async move { server.execute_with_input(take, input, sink, cancel).await });
    let attached = told.recv().await.unwrap();
    assert!(matches!(attached, CommandEvent::ConsoleAttached { sends: true, .. }), "{attached:?}");
    let mut printed = Vec::new();
    while printed.len() < 6 {
        let event = told.recv().await.unwrap();
        let CommandEvent::ConsoleLog(ConsoleLogEvent { source, item, .. }) = event else {
            panic!("{event:?}")
        };
        assert_eq!(source, ConsoleLogSource::Captured { file: 1 });
        if let ConsoleLogItem::Output { bytes } = item {
            printed.extend(bytes);
        }
    }
    assert_eq!(printed, b"hello\n");
    keys.send(b"hi\n".to_vec()).await.unwrap();
    let mut heard = [0; 3];
    far.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"hi\n");

    // Another user takes the right to send: the session is told, and reads on.
    let line = LineControlCommand {
        place: place(),
        console: Some("uart0".parse().unwrap()),
        controls: vec![LineControl::Break],
        take: true,
    };
    assert!(matches!(ask(Command::LineControl(line)).await, Ok(Reply::Ended(_))));
    let (mut lost, mut broke) = (false, false);
    while !(lost && broke) {
        match told.recv().await.unwrap() {
            CommandEvent::InputLost { loss: InputLoss::Taken { .. } } => lost = true,
            CommandEvent::LineControlled { done: LineControl::Break, .. } => broke = true,
            other => panic!("{other:?}"),
        }
    }
    far.write_all(b"more\n").unwrap();
    let more = told.recv().await.unwrap();
    assert!(matches!(more, CommandEvent::ConsoleLog(_)), "{more:?}");
    drop(keys);
    assert!(matches!(session.await.unwrap(), Ok(Reply::Ended(_))));
    // What is logged is told without input and without a service.
    service.stop().says(0, &[]);
    assert!(matches!(
        ask(attach(AttachInput::None, AttachFollow::Logged)).await,
        Ok(Reply::Ended(_))
    ));
    let follow = ask(attach(AttachInput::None, AttachFollow::Always));
    stop.cancel();
    assert!(matches!(follow.await, Ok(Reply::Ended(_))));
}

#[test]
fn the_rig_file_may_change_and_be_broken_and_there_is_one_keeper() {
    let workshop = Workshop::new();
    let (mut far, _near, link) = named(&workshop, "one");
    let late = workshop.path("two");
    workshop.write("rig.toml", rig(&[("one", &link)]));
    let service = CaptureService::start(&workshop);
    service.state("one", "captured");
    workshop.run(["serve"]).says(75, &["the consoles are captured by jig", "serve (pid "]);

    workshop.write("rig.toml", rig(&[("one", &link), ("two", &late)]));
    service.state("two", "waiting");
    let (_far, _near, _) = named(&workshop, "two");
    service.state("two", "captured");
    workshop.write("rig.toml", "version = 1\n[[place]]\nname = 7\n");
    service.tells("rig_refused", |_| true);
    far.write_all(b"still here\n").unwrap();
    until("what is printed", || (captured(&workshop, "one") > 0).then_some(()));
    workshop.write("rig.toml", rig(&[("two", &late)]));
    service.tells("reloaded", |told| told["ended"][0] == "one uart0");
    // The first transport was opened once, and let go at the end.
    let told = service.told();
    let states: Vec<_> = told.iter().filter(|told| told["place"] == "one").collect();
    assert_eq!(states.len(), 1, "{told:?}");
    until("the port", || File::open(&link).unwrap().try_lock().ok());
    let socket = service.tells("ready", |_| true)["socket"].as_str().unwrap().to_owned();
    assert!(Path::new(&socket).exists());
    service.stop().says(0, &[]);
    assert!(!Path::new(&socket).exists());
}

#[test]
fn idle_places_are_looked_after() {
    let workshop = Workshop::new();
    let (_far, near, link) = named(&workshop, "port");
    // Only the capture service is to have the port, and there is no such probe.
    drop(near);
    workshop.write("rig.toml", rig(&[("bench", &link)]));
    let service = CaptureService::with(&workshop, |command| {
        command.args(["--check-every", "100ms"]);
    });
    service.state("bench", "captured");
    let health = until("a finding", || {
        let ran = workshop.run(["--json", "health", "-b", "bench"]);
        // It may have failed again and again by now.
        (!ran.out().contains("\"state\":\"healthy\"")).then_some(ran)
    });
    // The port is found held by the capture service, and no fault in that.
    assert!(!health.out().contains("in use"), "{health}");
    service.stop().says(0, &[]);
}

#[test]
fn idle_places_are_looked_after_by_a_service_whose_program_was_upgraded() {
    let workshop = Workshop::new();
    let (_far, near, link) = named(&workshop, "port");
    drop(near);
    workshop.write("rig.toml", "version = 1\n");
    let (installed, built) = (workshop.path("jig"), env!("CARGO_BIN_EXE_jig"));
    fs::copy(built, &installed).unwrap();
    let template = workshop.jig(["--json", "serve", "--check-every", "100ms"]);
    let mut command = process::Command::new(template.get_program());
    command.args(
        template.get_args().map(|arg| if arg == built { installed.as_os_str() } else { arg }),
    );
    command.env_clear().stdin(Stdio::null()).stdout(Stdio::piped());
    command.envs(template.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut service = Started::of(command.current_dir(workshop.path("")));
    first_line(&mut service);
    // As a package manager does: the new file gets the name, and the running one has none any more.
    let new = workshop.path("jig.dpkg-new");
    fs::copy(built, &new).unwrap();
    fs::rename(new, installed).unwrap();
    workshop.write("rig.toml", rig(&[("bench", &link)]));
    until("a finding", || {
        let ran = workshop.run(["--json", "health", "-b", "bench"]);
        (!ran.out().contains("\"state\":\"healthy\"")).then_some(())
    });
    service.signal(Signal::SIGTERM);
    service.finish().says(0, &[]);
}

/// Reads lines of a console until one of them is this.
#[track_caller]
fn shows(out: &mut BufReader<ChildStdout>, wanted: &str) -> Vec<String> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        assert!(out.read_line(&mut line).unwrap() > 0, "{wanted:?} did not come after {lines:?}");
        lines.push(line.trim_end().to_owned());
        if lines.last().is_some_and(|line| line == wanted) {
            return lines;
        }
    }
}

#[test]
fn nine_stuck_readers_disturb_neither_the_tenth_nor_the_transport_and_one_may_send() {
    let workshop = Workshop::new();
    let (mut far, _near, link) = named(&workshop, "port");
    workshop.write("rig.toml", rig(&[("bench", &link)]));
    let console = |more: &[&str]| {
        let mut command = workshop.jig(["--quiet", "console", "-b", "bench"].iter().chain(more));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Started::of(&mut command)
    };
    // No process captures it, and nothing was captured.
    workshop
        .run(["console", "-b", "bench", "--send-break"])
        .says(2, &["no process captures uart0", "jig serve"]);
    // Nothing would ever come.
    workshop
        .run(["console", "-b", "bench", "--listen-only"])
        .says(2, &["no process captures uart0", "--follow"]);
    let nothing = workshop.run(["console", "-b", "bench", "--listen-only", "--since", "1h"]);
    nothing.says(0, &[]);
    assert_eq!(nothing.out(), "");

    let service = CaptureService::start(&workshop);
    service.state("bench", "captured");
    let _stuck: Vec<Started> = (0..9).map(|_| console(&["--listen-only"])).collect();
    let mut last = console(&["--listen-only", "--since", "1h", "--follow"]);
    let mut out = BufReader::new(last.child().stdout.take().unwrap());
    // Ten times what a pipe holds, so that each of the nine is stuck.
    let lines: Vec<String> = (0..65_536).map(|number| format!("{number:09}")).collect();
    let text = lines.join("\n") + "\n";
    let target = thread::spawn(move || {
        far.write_all(text.as_bytes()).unwrap();
        far
    });
    assert_eq!(shows(&mut out, "000065535"), lines);
    let mut far = target.join().unwrap();

    // One client has the writer; the next is told its name, and may take it.
    let mut anna = workshop.jig(["console", "-b", "bench", "--since", "1s"]);
    anna.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut anna = Started::of(&mut anna);
    let mut keys = anna.child().stdin.take().unwrap();
    keys.write_all(b"from anna\n").unwrap();
    let mut heard = [0; 10];
    far.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"from anna\n");
    let refused = workshop.run(["console", "-b", "bench"]);
    refused.says(75, &["input is in use by jig", "--take"]);
    let mut ben = workshop.jig(["console", "-b", "bench", "--take"]);
    ben.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut ben = Started::of(&mut ben);
    let mut typed = ben.child().stdin.take().unwrap();
    typed.write_all(b"from ben\n").unwrap();
    drop(typed);
    let mut heard = [0; 9];
    far.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"from ben\n");
    ben.finish().says(0, &[]);
    drop(keys);
    anna.finish().says(75, &["input is not sent any more: jig", "--take", "may send now"]);
    workshop.run(["console", "-b", "bench", "--send-break"]).says(0, &["a break was sent"]);
    // A pseudo-terminal has no such line.
    workshop
        .run(["console", "-b", "bench", "--dtr", "on"])
        .says(2, &["has no modem lines: its port has none"]);
    far.write_all(b"done\n").unwrap();
    shows(&mut out, "done");
}
