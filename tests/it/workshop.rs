//! A place to run the program in: folders of its own, no setting of the user's, a deadline.
//!
//! It also owns the number of boards that are emulated at the same time, so that tests which
//! run side by side do not starve each other's firmware.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Condvar, LazyLock, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

/// How long anything may take before a test gives up. Only a failing test waits this long,
/// and a machine with other work takes several times as long as an idle one.
pub(crate) const DEADLINE: Duration = Duration::from_secs(300);

/// Pause between two looks at something that cannot be waited on, such as `/proc`.
const LOOK: Duration = Duration::from_millis(2);

/// Folders for one test.
pub(crate) struct Workshop {
    dir: TempDir,
}

impl Workshop {
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("jig-it-").tempdir().unwrap();
        for folder in ["home", "tmp", "work"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        Self { dir }
    }

    /// Returns a path in the folder that the program is started in.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("work").join(name)
    }

    /// Writes a file into the folder that the program is started in.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }

    /// Returns the runs folder.
    pub(crate) fn runs(&self) -> PathBuf {
        self.dir.path().join("runs")
    }

    /// Prepares a call of the program.
    pub(crate) fn jig<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = tied(env!("CARGO_BIN_EXE_jig"));
        let home = self.dir.path().join("home");
        command.env_clear().env("HOME", &home).current_dir(self.dir.path().join("work"));
        for name in ["CACHE", "CONFIG", "DATA", "STATE"] {
            command.env(format!("XDG_{name}_HOME"), home.join(name));
        }
        // Only what finds programs comes from outside. What is left behind by a process that
        // was killed goes with this place, and marks what it started as this place's.
        command.env("TMPDIR", self.dir.path().join("tmp"));
        command.envs(std::env::var_os("PATH").map(|value| ("PATH", value)));
        command.arg("--runs").arg(self.runs()).args(args).stdin(Stdio::null());
        command
    }

    /// Calls the program and waits for its end.
    pub(crate) fn run<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Ran {
        ran(&mut self.jig(args)).unwrap_or_else(|why| panic!("{why}"))
    }

    /// Returns the directories of the runs, oldest first.
    pub(crate) fn run_dirs(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.runs()) else { return Vec::new() };
        let mut dirs: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        dirs.retain(|path| !name_of(path).starts_with('.'));
        dirs.sort();
        dirs
    }

    /// Lists the processes that work in this place, by pid and command line.
    ///
    /// A board's emulator carries the path of its run in its arguments.
    pub(crate) fn processes(&self) -> Vec<(Pid, String)> {
        let mark = self.dir.path().to_str().unwrap();
        let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        // A process that has ended meanwhile has no file; a zombie has an empty one.
        let lines = pids.filter_map(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            Some((Pid::from_raw(pid), String::from_utf8_lossy(&line).replace('\0', " ")))
        });
        lines.filter(|(_, line)| line.contains(mark)).collect()
    }

    /// Lists the emulators among [`Workshop::processes`].
    pub(crate) fn emulators(&self) -> Vec<Pid> {
        let all = self.processes().into_iter();
        all.filter(|(_, line)| line.starts_with("qemu-system-")).map(|(pid, _)| pid).collect()
    }

    /// Waits until no process of this place is left, and tells which ones were too long.
    pub(crate) fn nothing_lives(&self, timeout: Duration) -> Result<(), String> {
        let end = Instant::now() + timeout;
        loop {
            let left = self.processes();
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() >= end {
                return Err(format!("still alive after {timeout:?}: {left:?}"));
            }
            thread::sleep(LOOK);
        }
    }
}

/// Returns the last part of a path.
pub(crate) fn name_of(path: &Path) -> &str {
    path.file_name().and_then(OsStr::to_str).unwrap_or_default()
}

/// What a call of the program left behind.
pub(crate) struct Ran {
    /// The command line, for messages.
    pub(crate) line: String,
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

impl Ran {
    /// Returns the exit code; a signal counts as the shell counts it.
    pub(crate) fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap_or_default())
    }

    pub(crate) fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub(crate) fn err(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Returns standard output as the one JSON document it has to be.
    pub(crate) fn json(&self) -> Result<serde_json::Value, String> {
        serde_json::from_slice(&self.stdout)
            .map_err(|error| format!("standard output is not JSON: {error}\n{self}"))
    }

    /// Checks the exit code and words that standard error must have.
    #[track_caller]
    pub(crate) fn says(&self, code: i32, words: &[&str]) -> &Self {
        assert_eq!(self.code(), code, "exit code of {self}");
        // Long messages are wrapped; where is not part of the promise.
        let said = self.err().split_whitespace().collect::<Vec<_>>().join(" ");
        for word in words {
            assert!(said.contains(word), "{word:?} is missing in standard error of {self}");
        }
        self
    }
}

impl std::fmt::Display for Ran {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (out, err) = (end_of(&self.stdout), end_of(&self.stderr));
        write!(f, "{} ({})\n--- stdout\n{out}\n--- stderr\n{err}\n---", self.line, self.status)
    }
}

/// Shows the end of an output: a console's can have megabytes.
fn end_of(bytes: &[u8]) -> String {
    let from = bytes.len().saturating_sub(3000);
    bytes.get(from..).unwrap_or_default().escape_ascii().to_string().replace("\\n", "\n")
}

/// Prepares a call of a program that the kernel kills when the calling thread ends, which is at the
/// latest when the test binary is killed. The process id is that of the program.
pub(crate) fn tied(name: impl AsRef<OsStr>) -> Command {
    // Found here: a test may give the program no PATH, or another one.
    static SETPRIV: LazyLock<PathBuf> = LazyLock::new(|| {
        let path = std::env::var_os("PATH").unwrap();
        let mut all = std::env::split_paths(&path).map(|folder| folder.join("setpriv"));
        all.find(|file| file.exists()).expect("setpriv in PATH")
    });
    let mut command = Command::new(&*SETPRIV);
    command.args(DIES_WITH_US).arg(name);
    command
}

const DIES_WITH_US: [&str; 3] = ["--pdeathsig", "KILL", "--"];

/// Runs a command to its end, with nothing to read and all it says kept.
pub(crate) fn ran(command: &mut Command) -> Result<Ran, String> {
    let line = line_of(command);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().map_err(|error| format!("start {line}: {error}"))?;
    finish(child, line)
}

fn line_of(command: &Command) -> String {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
    match words.get(1..4) {
        Some(wrapper) if wrapper == DIES_WITH_US => words[4..].join(" "),
        _ => words.join(" "),
    }
}

/// Waits for a child's end and takes in what it says; kills it at the deadline.
pub(crate) fn finish(child: Child, line: String) -> Result<Ran, String> {
    let pid = Pid::from_raw(child.id().cast_signed());
    let (done, end) = mpsc::channel();
    thread::spawn(move || done.send(child.wait_with_output()));
    let (output, late) = match end.recv_timeout(DEADLINE) {
        Ok(output) => (output, false),
        Err(_) => {
            let _ = kill(pid, Signal::SIGKILL);
            (end.recv().unwrap(), true)
        }
    };
    let output = output.map_err(|error| format!("wait for {line}: {error}"))?;
    let ran = Ran { line, status: output.status, stdout: output.stdout, stderr: output.stderr };
    if late { Err(format!("did not end within {DEADLINE:?}: {ran}")) } else { Ok(ran) }
}

/// A child that does not outlive its test.
pub(crate) struct Started {
    child: Option<Child>,
    line: String,
}

impl Started {
    /// Starts a command.
    pub(crate) fn of(command: &mut Command) -> Self {
        Self { line: line_of(command), child: Some(command.spawn().unwrap()) }
    }

    /// Returns the child.
    pub(crate) fn child(&mut self) -> &mut Child {
        self.child.as_mut().unwrap()
    }

    /// Returns its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Sends it a signal. It has not been waited for, so the number is its own.
    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.id().cast_signed()), signal).unwrap();
    }

    /// Waits for its end.
    pub(crate) fn finish(mut self) -> Ran {
        let child = self.child.take().unwrap();
        finish(child, self.line.clone()).unwrap_or_else(|why| panic!("{why}"))
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Waits until a look finds something.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + DEADLINE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "{what} did not happen within {DEADLINE:?}");
        thread::sleep(LOOK);
    }
}

/// Checks each case on a thread of its own; a panic of one fails the test.
pub(crate) fn side_by_side<C: Send>(
    cases: impl IntoIterator<Item = C>,
    check: impl Fn(C) + Send + Sync,
) {
    thread::scope(|scope| {
        for case in cases {
            let check = &check;
            scope.spawn(move || check(case));
        }
    });
}

/// The right to emulate a board.
pub(crate) struct Slot(());

/// How many boards are emulated at once. Most of a run is waiting, so it may be more than
/// there are cores; beyond this the firmware's own deadlines come into danger.
const SLOTS: usize = 3;

static FREE: (Mutex<usize>, Condvar) = (Mutex::new(SLOTS), Condvar::new());

impl Slot {
    /// Waits for a free slot.
    pub(crate) fn take() -> Self {
        let mut free = FREE.0.lock().unwrap_or_else(PoisonError::into_inner);
        while *free == 0 {
            free = FREE.1.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        *free -= 1;
        Self(())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        *FREE.0.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        FREE.1.notify_one();
    }
}

/// Set for the copy of the test binary that the test kills.
const COPY: &str = "JIG_TEST_COPY";

#[test]
fn programs_die_with_the_test_binary() {
    if std::env::var_os(COPY).is_some() {
        let workshop = Workshop::new();
        let _service = Started::of(workshop.jig(["--json", "serve"]).stdout(Stdio::piped()));
        loop {
            thread::park();
        }
    }
    let workshop = Workshop::new();
    let mut copy = tied(std::env::current_exe().unwrap());
    copy.args(["--exact", "workshop::programs_die_with_the_test_binary"]).env(COPY, "1");
    // The folders of the copy lie in those of this test: its processes are found by their path.
    copy.env("TMPDIR", workshop.path(".")).stdout(Stdio::null()).stderr(Stdio::null());
    let copy = Started::of(&mut copy);
    // What ties a program to its parent is set by `setpriv`, before it becomes the program.
    let is_tied = |(_, line): &(Pid, String)| !line.contains("setpriv");
    until("a service of the copy", || workshop.processes().iter().any(is_tied).then_some(()));
    copy.signal(Signal::SIGKILL);
    assert_eq!(copy.finish().code(), 128 + 9);
    workshop.nothing_lives(Duration::from_secs(30)).unwrap();
}
