//! A program of the user that has this process's terminal, such as a shell.
//!
//! # Design
//! At a terminal it stays in the process group of this process, so that the terminal works for it as if
//! the user had started it; its jobs are its own business. Without one it leads a group, which ends as
//! a whole. Only the caller's wish ends it, first by the signals that a terminal and a service manager
//! send, after a while by force.

use std::ffi::OsString;
use std::future::Future;
use std::io::IsTerminal as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::{Ending, SpawnError};

/// How long the program has to end after it was asked to.
const GRACE: Duration = Duration::from_secs(10);

/// What to start.
pub struct ForegroundRequest {
    /// Program: a name looked up in `PATH`, or a path.
    pub program: OsString,
    /// Arguments, one each; never a shell line.
    pub args: Vec<OsString>,
    /// Variables beside those of this process.
    pub env: Vec<(OsString, OsString)>,
}

/// Runs a program with the terminal, input and output of this process until it ends. Once `stop`
/// resolves, the program is asked to end.
///
/// # Errors
/// There is no such program, or the system refuses.
pub async fn run_in_foreground(
    request: ForegroundRequest,
    stop: impl Future<Output = ()>,
) -> Result<Ending, SpawnError> {
    let ForegroundRequest { program, args, env } = request;
    let refused = |source| SpawnError::of(&program, None, source);
    let mut command = Command::new(&program);
    let leads = !std::io::stdin().is_terminal();
    if leads {
        command.process_group(0);
    }
    let mut child = command.args(&args).envs(env).spawn().map_err(refused)?;
    let pid = Pid::from_raw(child.id().cast_signed());
    let target = if leads { Pid::from_raw(-pid.as_raw()) } else { pid };
    // Its number, as long as it is not reaped.
    let alive = Arc::new(Mutex::new(true));
    let (ended, end) = oneshot::channel();
    let reaped = Arc::clone(&alive);
    std::thread::Builder::new()
        .name("jig-foreground".to_owned())
        .spawn(move || {
            let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
            while waitid(Id::Pid(pid), flags).is_err_and(|errno| errno == nix::errno::Errno::EINTR)
            {
            }
            *reaped.lock().unwrap_or_else(PoisonError::into_inner) = false;
            // The caller may have dropped its future.
            let _ = ended.send(child.wait());
        })
        .map_err(refused)?;
    let signal = |signals: &[Signal]| {
        let alive = alive.lock().unwrap_or_else(PoisonError::into_inner);
        if *alive {
            for signal in signals {
                // It may have ended a moment ago.
                let _ = kill(target, *signal);
            }
        }
    };
    let asks = async {
        stop.await;
        signal(&[Signal::SIGHUP, Signal::SIGTERM, Signal::SIGCONT]);
        sleep(GRACE).await;
        signal(&[Signal::SIGKILL]);
        std::future::pending().await
    };
    let ended = tokio::select! {
        ended = end => ended,
        never = asks => never,
    };
    let status: ExitStatus = match ended {
        Ok(status) => status.map_err(refused)?,
        Err(_) => return Err(refused(std::io::Error::other("its end was not seen"))),
    };
    Ok(match status.code() {
        Some(code) => Ending::Exited(code),
        None => {
            let signal = status.signal().and_then(|number| Signal::try_from(number).ok());
            Ending::Signalled(signal.unwrap_or(Signal::SIGKILL))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(program: &str, args: &[&str]) -> ForegroundRequest {
        let args = args.iter().map(Into::into).collect();
        ForegroundRequest { program: program.into(), args, env: vec![("KEY".into(), "7".into())] }
    }

    #[tokio::test]
    async fn a_program_ends_by_itself_or_when_it_is_asked_to() {
        let exits = request("sh", &["-c", "exit $KEY"]);
        let ended = run_in_foreground(exits, std::future::pending()).await.unwrap();
        assert_eq!(ended, Ending::Exited(7));
        let ended = run_in_foreground(request("sleep", &["60"]), std::future::ready(())).await;
        // Both are on their way.
        let signals = [Signal::SIGHUP, Signal::SIGTERM].map(Ending::Signalled);
        assert!(signals.contains(&ended.unwrap()));
        let missing = run_in_foreground(request("no-such-program", &[]), std::future::pending());
        assert!(matches!(missing.await, Err(SpawnError::NotFound { .. })));
    }
}
