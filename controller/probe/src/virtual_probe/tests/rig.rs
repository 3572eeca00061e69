//! An emulated board on a rig of its own: its consoles, its emulator, its process.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use jig_drivers::qemu::{Machine, QemuFactory};
use jig_model::ConsoleName;
use jig_model::event::BoardEvent;
use jig_model::profile::{BoardProfile, FaultSetText, FaultSets};
use jig_model::protocol::{BindContext, BoardSink, BoxFuture, ProcessLedger, Protocols, Transport};
use jig_model::rig_file::{EmulatorPart, Place};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::super::VirtualBoard;

/// How long anything may take that a test waits for.
pub(super) const TIMEOUT: Duration = Duration::from_secs(60);

/// What the consoles print, and which emulators run.
#[derive(Default)]
pub(super) struct Seen {
    printed: Mutex<HashMap<String, Vec<u8>>>,
    more: Condvar,
    events: Mutex<Vec<BoardEvent>>,
    running: Mutex<Vec<i32>>,
}

impl BoardSink for Seen {
    fn attach(&self, console: &ConsoleName, mut transport: Box<dyn Transport>) {
        let console = console.to_string();
        let seen = ME.with_borrow(|me| me.clone());
        let seen = seen.unwrap_or_else(|| panic!("no rig on this thread"));
        tokio::spawn(async move {
            let mut chunk = [0; 4096];
            loop {
                let read = std::future::poll_fn(|cx| transport.poll_read(cx, &mut chunk)).await;
                let Ok(count @ 1..) = read else { return };
                let mut printed = seen.printed.lock().unwrap();
                printed.entry(console.clone()).or_default().extend_from_slice(&chunk[..count]);
                seen.more.notify_all();
            }
        });
    }
    fn drained(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
    fn event(&self, event: BoardEvent) {
        self.events.lock().unwrap().push(event);
    }
}

impl ProcessLedger for Seen {
    fn started(&self, pid: i32, _what: &str) {
        self.running.lock().unwrap().push(pid);
    }
    fn ended(&self, pid: i32) {
        self.running.lock().unwrap().retain(|&running| running != pid);
        self.more.notify_all();
    }
}

std::thread_local! {
    /// The rig whose runtime this thread serves.
    static ME: std::cell::RefCell<Option<Arc<Seen>>> = const { std::cell::RefCell::new(None) };
}

/// A rig with one board, off.
pub(crate) struct Rig {
    pub(super) profile: Arc<BoardProfile>,
    pub(super) machine: Machine,
    pub(super) seen: Arc<Seen>,
    _protocols: Protocols,
    runtime: Option<tokio::runtime::Runtime>,
    dir: tempfile::TempDir,
}

impl Rig {
    pub(crate) fn new(board: &str) -> Self {
        let profile = Arc::new(profile(board));
        let seen = Arc::new(Seen::default());
        let me = Arc::clone(&seen);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .on_thread_start(move || ME.set(Some(Arc::clone(&me))))
            .build()
            .unwrap();
        let dir = tempfile::tempdir().unwrap();
        let place = Place::new("p".parse().unwrap(), profile.id.clone());
        let context = BindContext {
            profile: Arc::clone(&profile),
            place: Arc::new(place.with_emulator(EmulatorPart::default())),
            sink: Arc::clone(&seen) as _,
            evidence: dir.path().to_owned(),
            images: dir.path().to_owned(),
            ledger: Arc::clone(&seen) as _,
        };
        let guard = runtime.enter();
        let (protocols, machine) = QemuFactory.bind_with_machine(context).unwrap();
        drop(guard);
        Self { profile, machine, seen, _protocols: protocols, runtime: Some(runtime), dir }
    }

    /// Puts a virtual probe before the board.
    pub(crate) fn board(&self) -> VirtualBoard {
        VirtualBoard::start(self.machine.clone(), &self.profile).unwrap()
    }

    /// Returns a path in the rig's folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Waits until the first console has printed a text so many times.
    pub(super) fn wait_for_text(&self, text: &str, times: usize) {
        let console = self.profile.primary_console().to_string();
        let deadline = Instant::now() + TIMEOUT;
        let mut printed = self.seen.printed.lock().unwrap();
        loop {
            let bytes = printed.get(&console).map_or(&[][..], Vec::as_slice);
            if String::from_utf8_lossy(bytes).matches(text).count() >= times {
                return;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "only {:?}", String::from_utf8_lossy(bytes));
            printed = self.seen.more.wait_timeout(printed, left).unwrap().0;
        }
    }

    /// Returns the emulator that runs.
    pub(crate) fn emulator(&self) -> Pid {
        Pid::from_raw(*self.seen.running.lock().unwrap().last().expect("no emulator runs"))
    }

    /// Sends a signal to the emulator that runs.
    pub(super) fn signal(&self, signal: Signal) {
        kill(self.emulator(), signal).unwrap();
    }

    /// Waits until no emulator runs.
    pub(crate) fn wait_until_off(&self) {
        let deadline = Instant::now() + TIMEOUT;
        let mut running = self.seen.running.lock().unwrap();
        while !running.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{running:?} still run");
            // The ledger is told under its own lock; look again now and then.
            drop(running);
            let printed = self.seen.printed.lock().unwrap();
            drop(self.seen.more.wait_timeout(printed, Duration::from_millis(20)).unwrap());
            running = self.seen.running.lock().unwrap();
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(TIMEOUT);
        }
    }
}

/// Reads a shipped profile.
pub(super) fn profile(board: &str) -> BoardProfile {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../board-profiles");
    let sets: Vec<(String, String)> = std::fs::read_dir(folder.join("faults"))
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "toml"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect();
    let sets = sets.iter().map(|(name, text)| FaultSetText { name, origin: name, text });
    let sets = FaultSets::parse(sets).unwrap_or_else(|problems| panic!("{}", problems[0]));
    let text = std::fs::read_to_string(folder.join(format!("{board}.toml"))).unwrap();
    BoardProfile::parse(&format!("built-in {board}"), &text, &sets)
        .unwrap_or_else(|problems| panic!("{problems}"))
}
