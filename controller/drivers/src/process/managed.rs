//! A child process and the thread that watches over it.
//!
//! # Design
//! Each child has one OS thread, its *warden*: it spawns the child, waits for its end,
//! kills what is left of its process group, and reaps it. The kernel sends the
//! parent-death signal when the spawning *thread* ends, and the warden lives exactly as
//! long as the child, so the signal means what it should: Jig is gone.
//!
//! The warden waits with `WNOWAIT`, so the dead child keeps its pid until the group has
//! been killed under the lock that also guards [`ManagedProcess::signal`]. No signal can
//! hit a process that got the number later.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jig_model::Cause;
use jig_model::protocol::{CHILD_MARK, ProcessLedger};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::{Pid, pipe2, read};
use tokio::sync::{oneshot, watch};

use super::fork::{self, ChildTies};
use super::starved::ThreadTime;

/// What to start.
pub struct SpawnRequest {
    /// Program: a name looked up in `PATH`, or a path.
    pub program: OsString,
    /// Arguments, one each; never a shell line.
    pub args: Vec<OsString>,
    /// Directory to start in.
    pub cwd: Option<PathBuf>,
    /// Its whole environment, beside the mark of a child; that of this process without one.
    pub env: Option<Vec<(OsString, OsString)>>,
    /// Where standard input comes from; nowhere without one.
    pub stdin: Option<File>,
    /// Where standard output goes; nowhere without one.
    pub stdout: Option<File>,
    /// Where standard error goes; nowhere without one.
    pub stderr: Option<File>,
    /// Descriptors the child gets under their own numbers.
    pub inherit: Vec<OwnedFd>,
    /// Whether its exit code is that of a target: a code other than 0 whose low byte is 0, which
    /// would look like success, then ends it by SIGSYS if the kernel lets a filter be set.
    pub exits_for_target: bool,
    /// Whether it ends what it has started, and then itself, when its standard input ends. Dropping
    /// the handle then sends it no signal.
    pub ends_itself: bool,
    /// What it is, for the ledger.
    pub what: String,
}

impl SpawnRequest {
    /// Starts a program without input, output or a directory of its own.
    pub(crate) fn silent(program: OsString, args: Vec<OsString>, what: &str) -> Self {
        let what = what.to_owned();
        let (cwd, stdin, stdout, stderr, inherit) = (None, None, None, None, Vec::new());
        let (env, exits_for_target, ends_itself) = (None, false, false);
        Self {
            program,
            args,
            cwd,
            env,
            stdin,
            stdout,
            stderr,
            inherit,
            exits_for_target,
            ends_itself,
            what,
        }
    }
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It ended by itself with this code.
    Exited(i32),
    /// A signal ended it.
    Signalled(Signal),
}

/// Says why a program could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// There is no program of this name.
    #[error("start {program}: there is no such program in PATH (try: jig doctor)")]
    NotFound {
        /// The program.
        program: String,
    },
    /// There is nothing at the program's path.
    #[error("start {program}: there is no such file")]
    NoFile {
        /// The path.
        program: String,
    },
    /// The program is a file, but what runs it is missing.
    #[error(
        "start {program}: its interpreter is missing (see its first line; try: file {program})"
    )]
    NoInterpreter {
        /// The path.
        program: String,
    },
    /// The system refused.
    #[error("start {program}")]
    Refused {
        /// The program.
        program: String,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl SpawnError {
    /// Says why the system did not start a program; `cwd` is where it was to start.
    pub(super) fn of(program: &OsStr, cwd: Option<&Path>, source: io::Error) -> Self {
        let path = cwd.unwrap_or(Path::new("")).join(program);
        let is_path = program.as_encoded_bytes().contains(&b'/');
        let program = program.to_string_lossy().into_owned();
        // A folder to start in that is missing gives the same error.
        match source.kind() {
            io::ErrorKind::NotFound if cwd.is_some_and(|cwd| !cwd.is_dir()) => {
                Self::Refused { program, source }
            }
            io::ErrorKind::NotFound if !is_path => Self::NotFound { program },
            io::ErrorKind::NotFound if path.exists() => Self::NoInterpreter { program },
            io::ErrorKind::NotFound => Self::NoFile { program },
            _ => Self::Refused { program, source },
        }
    }

    /// Returns the cause of a failed start: `missing` where the program does not exist, which no
    /// recovery changes, and else `refused`.
    pub(crate) fn cause(&self, missing: Cause, refused: Cause) -> Cause {
        match self {
            Self::NotFound { .. } | Self::NoFile { .. } | Self::NoInterpreter { .. } => missing,
            Self::Refused { .. } => refused,
        }
    }
}

/// A running or ended child. Dropping it kills the whole group, unless it ends itself.
pub struct ManagedProcess {
    pid: Pid,
    ending: watch::Receiver<Option<Ending>>,
    reaped: Arc<Mutex<bool>>,
    hidden_exit_kills: bool,
    ends_itself: bool,
}

/// A warden waits, but it also calls the ledger, which may log through whatever subscriber
/// the program has, and an overrun stack ends all of Jig. Only pages in use cost memory.
const WARDEN_STACK: usize = 512 * 1024;

impl ManagedProcess {
    /// Starts a child.
    ///
    /// # Errors
    /// The program is missing, or the system refuses to start it.
    pub async fn spawn(
        request: SpawnRequest,
        ledger: Arc<dyn ProcessLedger>,
    ) -> Result<Self, SpawnError> {
        let (program, cwd) = (request.program.clone(), request.cwd.clone());
        let (started_tx, started) = oneshot::channel();
        let warden = Warden { request, ledger };
        let refused = |source| SpawnError::of(&program, cwd.as_deref(), source);
        std::thread::Builder::new()
            .name("jig-warden".to_owned())
            .stack_size(WARDEN_STACK)
            .spawn(move || warden.run(started_tx))
            .map_err(refused)?;
        match started.await {
            Ok(Ok(process)) => Ok(process),
            Ok(Err(source)) => Err(refused(source)),
            Err(_) => Err(refused(io::Error::other("its warden thread ended"))),
        }
    }

    /// Returns the process id, which is also the id of its group.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw()
    }

    /// Tells whether SIGSYS may be what ended it instead of an exit code whose low byte is 0; see
    /// [`SpawnRequest::exits_for_target`].
    pub fn hidden_exit_kills(&self) -> bool {
        self.hidden_exit_kills
    }

    /// Tells whether it was stopped (SIGSTOP): it lives, and does nothing.
    pub fn is_stopped(&self) -> bool {
        let reaped = self.reaped.lock().unwrap_or_else(PoisonError::into_inner);
        // Until it is reaped the number is its own.
        let stat = match *reaped {
            false => std::fs::read(format!("/proc/{}/stat", self.pid)),
            true => return false,
        };
        stopped(&stat.unwrap_or_default())
    }

    /// Returns how long each of its threads has run, and has waited for a processor.
    pub(super) fn thread_times(&self) -> BTreeMap<u32, ThreadTime> {
        let reaped = self.reaped.lock().unwrap_or_else(PoisonError::into_inner);
        // Until it is reaped the number is its own.
        match *reaped {
            false => super::starved::thread_times(Path::new(&format!("/proc/{}/task", self.pid))),
            true => BTreeMap::new(),
        }
    }

    /// Returns how it ended, if it has.
    pub fn ending(&self) -> Option<Ending> {
        *self.ending.borrow()
    }

    /// Waits for its end. Cancel-safe.
    pub async fn ended(&mut self) -> Ending {
        end_of(&mut self.ending).await
    }

    /// Returns its end, for a caller that waits without holding it.
    pub fn end(&self) -> impl Future<Output = Ending> + Send + 'static {
        let mut ending = self.ending.clone();
        async move { end_of(&mut ending).await }
    }

    /// Sends a signal to the whole group; does nothing once it has been reaped.
    pub fn signal(&self, signal: Signal) {
        let reaped = self.reaped.lock().unwrap_or_else(PoisonError::into_inner);
        if !*reaped {
            let _ = killpg(self.pid, signal);
        }
    }

    /// Kills the group at once and waits until it is reaped.
    pub async fn kill(&mut self) -> Ending {
        self.signal(Signal::SIGKILL);
        self.ended().await
    }

    /// Asks the group to end, and kills it if it has not within `grace`.
    pub async fn stop(&mut self, grace: Duration) -> Ending {
        self.signal(Signal::SIGTERM);
        match tokio::time::timeout(grace, self.ended()).await {
            Ok(ending) => ending,
            Err(_) => self.kill().await,
        }
    }
}

async fn end_of(ending: &mut watch::Receiver<Option<Ending>>) -> Ending {
    match ending.wait_for(Option::is_some).await.map(|e| *e) {
        Ok(Some(ending)) => ending,
        // The warden publishes before it ends, so this arm needs a warden that panicked.
        Ok(None) | Err(_) => Ending::Signalled(Signal::SIGKILL),
    }
}

impl Drop for ManagedProcess {
    fn drop(&mut self) {
        if !self.ends_itself {
            self.signal(Signal::SIGKILL);
        }
    }
}

struct Warden {
    request: SpawnRequest,
    ledger: Arc<dyn ProcessLedger>,
}

impl Warden {
    fn run(self, started: oneshot::Sender<io::Result<ManagedProcess>>) {
        let Self { request, ledger } = self;
        let mut command = Command::new(&request.program);
        if let Some(env) = &request.env {
            command.env_clear().envs(env.iter().map(|(name, value)| (name, value)));
        }
        command.args(&request.args).process_group(0).env(CHILD_MARK, "1");
        command.stdin(request.stdin.map_or_else(Stdio::null, Stdio::from));
        command.stdout(request.stdout.map_or_else(Stdio::null, Stdio::from));
        command.stderr(request.stderr.map_or_else(Stdio::null, Stdio::from));
        if let Some(cwd) = &request.cwd {
            command.current_dir(cwd);
        }
        // Without the pipe there is no filter, as without the right to set one.
        let filter = request.exits_for_target.then(|| pipe2(OFlag::O_CLOEXEC).ok()).flatten();
        let ties = ChildTies {
            inherit: request.inherit.iter().map(AsRawFd::as_raw_fd).collect(),
            kill_hidden_exit: filter.as_ref().map(|(_, far)| far.as_raw_fd()),
            new_session: false,
            no_terminal: true,
        };
        fork::tie_to_this_thread(&mut command, ties);
        let pid = match command.spawn() {
            // The `Child` is let go: this thread waits by pid, without the reaping that
            // `Child::wait` would do behind the lock.
            Ok(child) => Pid::from_raw(child.id().cast_signed()),
            Err(error) => {
                let _ = started.send(Err(error));
                return;
            }
        };
        // The parent's copies must go, or the other ends would never see the end.
        drop(command);
        drop(request.inherit);
        // The child's copy was closed by the start of the program: this ends at once.
        let hidden_exit_kills = filter.is_some_and(|(near, far)| {
            drop(far);
            read(&near, &mut [0]) == Ok(1)
        });
        ledger.started(pid.as_raw(), &request.what);
        let (ending, ended) = watch::channel(None);
        let reaped = Arc::new(Mutex::new(false));
        let process = ManagedProcess {
            pid,
            ending: ended,
            reaped: Arc::clone(&reaped),
            hidden_exit_kills,
            ends_itself: request.ends_itself,
        };
        // The caller may have gone away, before this or before taking it: wherever the
        // handle is dropped, the child is killed.
        drop(started.send(Ok(process)));
        let status = wait_and_reap(pid, &reaped);
        ledger.ended(pid.as_raw());
        let _ = ending.send(Some(status));
    }
}

fn wait_and_reap(pid: Pid, reaped: &Mutex<bool>) -> Ending {
    while waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) == Err(Errno::EINTR) {}
    let mut reaped = reaped.lock().unwrap_or_else(PoisonError::into_inner);
    let _ = killpg(pid, Signal::SIGKILL);
    let status = loop {
        match waitpid(pid, None) {
            Err(Errno::EINTR) => {}
            other => break other,
        }
    };
    *reaped = true;
    match status {
        Ok(WaitStatus::Exited(_, code)) => Ending::Exited(code),
        Ok(WaitStatus::Signaled(_, signal, _)) => Ending::Signalled(signal),
        // Without stop or trace options, wait reports nothing else.
        Ok(_) | Err(_) => Ending::Signalled(Signal::SIGKILL),
    }
}

/// Tells whether `/proc/<pid>/stat` says that a process was stopped. (proc(5): the state
/// stands behind the name, which is in brackets and may hold any bytes, brackets too.)
fn stopped(stat: &[u8]) -> bool {
    let name_ends = stat.iter().rposition(|&byte| byte == b')');
    name_ends.and_then(|at| stat.get(at + 2)) == Some(&b'T')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::StillnessWatch;
    use jig_model::protocol::NoLedger;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_name_hides_the_state_behind_it(
            name in proptest::collection::vec(any::<u8>(), 0..20),
            state in "[RSDTtZX]",
        ) {
            let _ = stopped(&name);
            let stat = [b"7 (", name.as_slice(), b") ", state.as_bytes(), b" 1 7 7 0"].concat();
            prop_assert_eq!(stopped(&stat), state == "T");
        }
    }

    fn request(program: &str, args: &[&str]) -> SpawnRequest {
        SpawnRequest {
            program: program.into(),
            args: args.iter().map(Into::into).collect(),
            cwd: None,
            stdin: None,
            stdout: None,
            stderr: None,
            inherit: Vec::new(),
            exits_for_target: false,
            env: None,
            ends_itself: false,
            what: "test".to_owned(),
        }
    }

    async fn spawn(program: &str, args: &[&str]) -> ManagedProcess {
        ManagedProcess::spawn(request(program, args), Arc::new(NoLedger)).await.unwrap()
    }

    /// A parent is told the low byte of a code, which is 0 for 256: such an end is a signal.
    #[tokio::test]
    async fn exit_code_of_a_target_is_not_mistaken_for_success() {
        for (code, ending) in [
            (0, Ending::Exited(0)),
            (3, Ending::Exited(3)),
            (255, Ending::Exited(255)),
            (257, Ending::Exited(1)),
            (256, Ending::Signalled(Signal::SIGSYS)),
            (-512, Ending::Signalled(Signal::SIGSYS)),
        ] {
            let script = format!("import os; os._exit({code})");
            let request = request("python3", &["-c", &script]);
            let request = SpawnRequest { exits_for_target: true, ..request };
            let mut process = ManagedProcess::spawn(request, Arc::new(NoLedger)).await.unwrap();
            assert!(process.hidden_exit_kills());
            assert_eq!(process.ended().await, ending, "{code}");
        }
        assert!(!spawn("true", &[]).await.hidden_exit_kills());
    }

    #[tokio::test]
    async fn exit_codes_and_signals_are_told_apart() {
        assert_eq!(spawn("sh", &["-c", "exit 7"]).await.ended().await, Ending::Exited(7));
        let mut sleeper = spawn("sleep", &["600"]).await;
        sleeper.signal(Signal::SIGTERM);
        assert_eq!(sleeper.ended().await, Ending::Signalled(Signal::SIGTERM));
    }

    #[tokio::test]
    async fn a_missing_program_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        std::fs::write(&script, "#!/nowhere/sh\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&script, mode).unwrap();
        let spawn = async |program: &str, cwd: Option<&Path>| {
            let request = SpawnRequest { cwd: cwd.map(Path::to_owned), ..request(program, &[]) };
            let spawned = ManagedProcess::spawn(request, Arc::new(NoLedger)).await;
            spawned.err().unwrap().to_string()
        };
        assert!(spawn("no-such-program-x", None).await.contains("no such program in PATH"));
        let said = spawn("/nowhere/flash", None).await;
        assert_eq!(said, "start /nowhere/flash: there is no such file");
        assert!(spawn(script.to_str().unwrap(), None).await.contains("interpreter is missing"));
        assert!(spawn("./script", Some(folder.path())).await.contains("interpreter is missing"));
        assert!(spawn("./other", Some(folder.path())).await.contains("there is no such file"));
        // A missing folder is not blamed on the program.
        assert_eq!(spawn("sh", Some(Path::new("/nowhere"))).await, "start sh");
    }

    #[tokio::test]
    async fn a_child_that_nobody_took_over_is_killed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pid");
        let script = format!("echo $$ > {}.new; mv {0}.new {0}; sleep 600", path.display());
        let mut asked =
            Box::pin(ManagedProcess::spawn(request("sh", &["-c", &script]), Arc::new(NoLedger)));
        // Polled once, so that the child is started, and never again.
        assert!(poll_once(asked.as_mut()).is_pending());
        let pid = loop {
            match std::fs::read_to_string(&path) {
                Ok(text) => break text.trim().to_owned(),
                Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        };
        drop(asked);
        let gone = async {
            while std::path::Path::new("/proc").join(&pid).exists() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), gone).await.unwrap();
    }

    /// Polls a future once.
    fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> std::task::Poll<F::Output> {
        future.poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
    }

    #[tokio::test]
    async fn children_of_the_child_die_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pid");
        let script = format!("sleep 600 & echo $! > {}.new; mv {0}.new {0}", path.display());
        let mut shell = spawn("sh", &["-c", &script]).await;
        shell.ended().await;
        let pid: i32 = std::fs::read_to_string(&path).unwrap().trim().parse().unwrap();
        // The kill was sent before the shell was reaped; the kernel carries it out soon after.
        let dead = async {
            while is_alive(pid) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), dead).await.expect("it still runs");
    }

    /// A zombie is dead: only its new parent can reap it.
    fn is_alive(pid: i32) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
        !matches!(state, None | Some('Z' | 'X'))
    }

    #[tokio::test]
    async fn a_deaf_child_is_killed_after_the_grace() {
        let mut deaf = spawn("sh", &["-c", "trap '' TERM; while :; do sleep 600; done"]).await;
        // The trap may not be set yet; either signal ends it, and both in bounded time.
        let ending = deaf.stop(Duration::from_millis(50)).await;
        assert!(matches!(ending, Ending::Signalled(_)));
    }

    #[tokio::test]
    async fn a_stopped_child_is_told_from_one_that_waits() {
        let mut sleeper = spawn("sleep", &["600"]).await;
        assert!(!sleeper.is_stopped());
        sleeper.signal(Signal::SIGSTOP);
        let stopped = async {
            while !sleeper.is_stopped() {
                tokio::task::yield_now().await;
            }
        };
        let mut watch = StillnessWatch::new(&sleeper);
        tokio::time::timeout(Duration::from_secs(60), stopped).await.expect("it goes on");
        while watch.look(&sleeper, Duration::MAX).time.is_zero() {}
        assert!(watch.look(&sleeper, Duration::MAX).stopped);
        assert_eq!(watch.look(&sleeper, Duration::ZERO).time, Duration::ZERO);
        sleeper.kill().await;
        assert!(!sleeper.is_stopped());
    }

    #[tokio::test]
    async fn dropping_kills() {
        let sleeper = spawn("sleep", &["600"]).await;
        let mut ending = sleeper.ending.clone();
        drop(sleeper);
        let ended = *ending.wait_for(Option::is_some).await.unwrap();
        assert_eq!(ended, Some(Ending::Signalled(Signal::SIGKILL)));
    }
}
