//! A program that is ended together with everything it has started.
//!
//! Runs in a process of its own, which has no other children: it waits for any of them.
//!
//! # Design
//! A process that leads a session of its own escapes a signal to its parent's group. This process
//! is the *subreaper* of all that descends from the program: whatever loses its parent becomes its
//! child, sessions or not. When the program has ended, or is to end, children are killed and reaped
//! until there are none. Only direct children are killed: the kernel gives their numbers to no
//! other process before they are reaped.
//!
//! Nothing here needs a right, a namespace or a cgroup, so it holds in containers, too. Not ended
//! are processes that another user owns (`sudo`), and those that a service starts on request
//! (`systemd-run`, a container engine). A program that forks faster than its processes are killed
//! delays its end.
//!
//! If this process is killed itself, the program dies with it by its parent-death signal; what the
//! program has started lives on. A program in a sandbox cannot kill it from Linux 6.12 on.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::{Pid, getpid};

use super::Ending;
use super::fork::{self, ChildTies};

/// What to start. Its output goes to that of this process; it has no input.
pub(crate) struct SupervisedProgram {
    /// Path of the program.
    pub(crate) program: OsString,
    /// Name that it is called by.
    pub(crate) name: OsString,
    /// Arguments, one each.
    pub(crate) args: Vec<OsString>,
    /// Folder to start in.
    pub(crate) cwd: PathBuf,
    /// Its whole environment.
    pub(crate) env: Vec<(OsString, OsString)>,
}

/// How a program and what it had started ended.
pub(crate) struct SupervisedEnd {
    /// How the program ended.
    pub(crate) ending: Ending,
    /// Whether nothing of what it had started is left.
    pub(crate) all_ended: bool,
}

/// Says why a program was not started.
pub(crate) enum NotSupervised<E> {
    /// It could not be prepared.
    NotPrepared(E),
    /// The system refused.
    NotStarted(io::Error),
}

/// Runs a program to its end, and then ends what it has left behind.
///
/// `prepare` is called on the thread that starts the program, which inherits the restrictions of
/// that thread; this thread gets none of them. The program is killed once `stop` returns, and when
/// this process is asked to end by a signal.
pub(crate) fn supervise<E: Send>(
    program: SupervisedProgram,
    prepare: impl FnOnce() -> Result<(), E> + Send,
    stop: impl FnOnce() + Send + 'static,
) -> Result<SupervisedEnd, NotSupervised<E>> {
    let refused = |errno: Errno| NotSupervised::NotStarted(errno.into());
    prctl::set_child_subreaper(true).map_err(refused)?;
    // The end of its parent is told by `stop`: killed at once, it could end nothing.
    prctl::set_pdeathsig(None).map_err(refused)?;
    let mut requests = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        requests.add(signal);
    }
    // Before there is a second thread: each one inherits the mask.
    requests.thread_block().map_err(refused)?;
    let main = Arc::new(MainProgram::default());
    main.kill_after(stop).map_err(NotSupervised::NotStarted)?;
    let signal = move || {
        let _ = requests.wait();
    };
    main.kill_after(signal).map_err(NotSupervised::NotStarted)?;
    thread::scope(|scope| {
        let (tell, started) = mpsc::channel();
        let (all_done, hold) = mpsc::channel::<()>();
        let starter = thread::Builder::new().spawn_scoped(scope, move || {
            let prepared = prepare().map_err(NotSupervised::NotPrepared);
            let _ = tell.send(prepared.and_then(|()| start(program)));
            // The parent-death signal of the program is tied to this thread.
            let _ = hold.recv();
        });
        starter.map_err(NotSupervised::NotStarted)?;
        let pid = started.recv().unwrap_or_else(|_| {
            Err(NotSupervised::NotStarted(io::Error::other("the starting thread ended")))
        })?;
        main.started(pid);
        let ending = main.wait(pid);
        let all_ended = end_descendants();
        drop(all_done);
        Ok(SupervisedEnd { ending, all_ended })
    })
}

fn start<E>(program: SupervisedProgram) -> Result<Pid, NotSupervised<E>> {
    let refused = |errno: Errno| NotSupervised::NotStarted(errno.into());
    // The program gets this thread's mask: signals that are blocked here are not blocked there.
    SigSet::empty().thread_set_mask().map_err(refused)?;
    let mut command = Command::new(&program.program);
    command.arg0(&program.name).args(&program.args).current_dir(&program.cwd);
    command.env_clear().envs(program.env).stdin(Stdio::null());
    let ties = ChildTies {
        inherit: Vec::new(),
        kill_hidden_exit: None,
        new_session: true,
        no_terminal: false,
    };
    fork::tie_to_this_thread(&mut command, ties);
    match command.spawn() {
        Ok(child) => Ok(Pid::from_raw(child.id().cast_signed())),
        Err(error) => Err(NotSupervised::NotStarted(error)),
    }
}

/// The program itself, as far as it may be killed.
#[derive(Default)]
struct MainProgram(Mutex<MainState>);

#[derive(Default)]
struct MainState {
    /// It runs, or has ended and was not reaped: the number is its own.
    pid: Option<Pid>,
    asked_to_end: bool,
}

impl MainProgram {
    fn kill_after(self: &Arc<Self>, stop: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let main = Arc::clone(self);
        let wait = move || {
            stop();
            main.change(|state| state.asked_to_end = true);
        };
        thread::Builder::new().spawn(wait).map(drop)
    }

    fn started(&self, pid: Pid) {
        self.change(|state| state.pid = Some(pid));
    }

    fn change(&self, change: impl FnOnce(&mut MainState)) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        if let (Some(pid), true) = (state.pid, state.asked_to_end) {
            let _ = kill(pid, Signal::SIGKILL);
        }
    }

    /// Reaps every child until the program has ended.
    fn wait(&self, main: Pid) -> Ending {
        loop {
            let ended = waitid(Id::All, WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT);
            let pid = match ended.map(|status| status.pid()) {
                Ok(Some(pid)) => pid,
                Ok(None) | Err(Errno::EINTR) => continue,
                // Only this thread reaps, so the program is one of the children.
                Err(_) => return Ending::Signalled(Signal::SIGKILL),
            };
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let status = waitpid(pid, None);
            if pid != main {
                continue;
            }
            state.pid = None;
            return match status {
                Ok(WaitStatus::Exited(_, code)) => Ending::Exited(code),
                Ok(WaitStatus::Signaled(_, signal, _)) => Ending::Signalled(signal),
                // Without stop or trace options, wait reports nothing else.
                Ok(_) | Err(_) => Ending::Signalled(Signal::SIGKILL),
            };
        }
    }
}

/// Looks at the list of processes that find no child, although there is one, before it is given up.
/// One that changes its parent during a look is missed by it.
const EMPTY_LOOKS: u32 = 100;

/// Pause between two such looks.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// Kills and reaps children until there are none; tells whether that is so. Children that may not
/// be killed are left.
fn end_descendants() -> bool {
    let mut empty_looks = 0;
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Err(Errno::ECHILD) => return true,
            Ok(WaitStatus::StillAlive) => {}
            // One was reaped, or a signal came: there may be more.
            Ok(_) | Err(_) => continue,
        }
        let children = children();
        let killed = children.iter().filter(|&&pid| kill(pid, Signal::SIGKILL).is_ok()).count();
        if killed > 0 {
            // At least one ends now; its children become those of this process.
            let _ = waitpid(None, None);
            empty_looks = 0;
        } else if !children.is_empty() || empty_looks == EMPTY_LOOKS {
            return false;
        } else {
            empty_looks += 1;
            thread::sleep(LOOK_AGAIN);
        }
    }
}

/// Lists the children of this process, whichever thread has started them.
fn children() -> Vec<Pid> {
    let own = getpid().as_raw();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_child = |pid: &i32| {
        // One that has ended meanwhile has no file.
        let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
        parent(&stat) == Some(own)
    };
    pids.filter(is_child).map(Pid::from_raw).collect()
}

/// Reads the parent's number in `/proc/<pid>/stat`. (proc(5): it stands behind the state, and that
/// behind the name, which is in brackets and may hold any bytes, brackets too.)
fn parent(stat: &[u8]) -> Option<i32> {
    let name_ends = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(&stat[name_ends + 1..]).ok()?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_name_hides_the_parent_behind_it(
            name in proptest::collection::vec(any::<u8>(), 0..20),
            wanted in any::<i32>(),
        ) {
            let _ = parent(&name);
            let rest = format!(") S {wanted} 7 7 0");
            let stat = [b"7 (", name.as_slice(), rest.as_bytes()].concat();
            prop_assert_eq!(parent(&stat), Some(wanted));
        }
    }

    #[test]
    fn a_child_of_any_thread_is_listed() {
        let child = thread::spawn(|| Command::new("sleep").arg("600").spawn().unwrap());
        let mut child = child.join().unwrap();
        let pid = Pid::from_raw(child.id().cast_signed());
        assert!(children().contains(&pid));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!children().contains(&pid));
    }
}
