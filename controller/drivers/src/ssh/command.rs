//! The fall-back: OpenSSH's client as a child process, for what libssh2 cannot do.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::process::{Ending, ManagedProcess, SpawnRequest};
use jig_model::protocol::ProcessLedger;
use nix::fcntl::OFlag;
use nix::unistd::pipe2;
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::end::{SshEnd, SshEnding, Tail};
use super::error::SshError;
use super::target::SshTarget;
use super::words::shell_line;

/// What these programs are entered as in a ledger.
const WHAT: &str = "ssh client";

/// How long standard error is read on after the end of the client: another process may hold it.
const REST: Duration = Duration::from_millis(500);

/// A client and the tasks that follow it. Dropping it kills the client with all it has started.
pub(super) struct CommandProcess {
    _process: ManagedProcess,
    _tasks: JoinSet<()>,
}

/// Starts a client that takes OpenSSH's options and gives it the command for the far side.
///
/// # Errors
/// The command makes no command line, or the client cannot be started.
pub(super) async fn start(
    client: &[String],
    target: &SshTarget,
    command: &[String],
    ledger: Arc<dyn ProcessLedger>,
) -> Result<(UnixStream, watch::Receiver<Option<SshEnd>>, CommandProcess), SshError> {
    let line = shell_line(command).map_err(SshError::Command)?;
    let at = target.to_string();
    let refused = |source: io::Error| SshError::system(&at, "make a pipe", source);
    let (near, far) = StdStream::pair().map_err(refused)?;
    near.set_nonblocking(true).map_err(refused)?;
    let output = far.try_clone().map_err(refused)?;
    let (said, stderr) = pipe2(OFlag::O_CLOEXEC).map_err(|errno| refused(errno.into()))?;
    let said = pipe::Receiver::from_owned_fd(said).map_err(refused)?;
    let argv = arguments(client, target, line);
    let program = argv.first().cloned().unwrap_or_default();
    let request = SpawnRequest {
        program: program.into(),
        args: argv.into_iter().skip(1).map(Into::into).collect(),
        cwd: None,
        env: None,
        stdin: Some(File::from(OwnedFd::from(far))),
        stdout: Some(File::from(OwnedFd::from(output))),
        stderr: Some(File::from(stderr)),
        inherit: Vec::new(),
        exits_for_target: false,
        ends_itself: false,
        what: WHAT.to_owned(),
    };
    let spawned = ManagedProcess::spawn(request, ledger).await;
    let process = spawned.map_err(|error| SshError::Spawn(Arc::new(error)))?;
    let stream = UnixStream::from_std(near).map_err(refused)?;
    let (sender, end) = watch::channel(None);
    let program = command.first().cloned().unwrap_or_default();
    let ended = process.end();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let tail = Mutex::new(Tail::default());
        let mut reading = std::pin::pin!(follow(said, &tail));
        let mut ended = std::pin::pin!(ended);
        let ending = tokio::select! {
            ending = &mut ended => {
                let _ = timeout(REST, reading).await;
                ending
            }
            () = &mut reading => ended.await,
        };
        let ending = match ending {
            Ending::Exited(code) => SshEnding::Exited(code),
            Ending::Signalled(signal) => SshEnding::Signalled(signal.to_string()),
        };
        let stderr = tail.lock().unwrap_or_else(PoisonError::into_inner).text();
        // What comes through the socket is counted by the pipe.
        sender.send_replace(Some(SshEnd { ending, stderr, received: 0, at, program }));
    });
    Ok((stream, end, CommandProcess { _process: process, _tasks: tasks }))
}

async fn follow(mut said: pipe::Receiver, tail: &Mutex<Tail>) {
    let mut some = [0; 4 << 10];
    while let Ok(count @ 1..) = said.read(&mut some).await {
        tail.lock().unwrap_or_else(PoisonError::into_inner).add(&some[..count]);
    }
}

/// Returns the client's whole command line. What the user has given comes first, and wins.
fn arguments(client: &[String], target: &SshTarget, line: String) -> Vec<String> {
    let mut argv = client.to_vec();
    // A client in the background of a terminal would be stopped by its own question.
    argv.extend(["-T", "-o", "BatchMode=yes"].map(str::to_owned));
    if let Some(port) = target.port() {
        argv.extend(["-p".to_owned(), port.to_string()]);
    }
    if let Some(user) = target.user() {
        argv.extend(["-l".to_owned(), user.to_owned()]);
    }
    argv.extend(["--".to_owned(), target.host().to_owned(), line]);
    argv
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_user_come_first_and_the_host_is_no_option() {
        let client = ["ssh", "-F", "my file"].map(str::to_owned);
        let target = "ssh://lab@rig7:2222".parse().unwrap();
        let argv = arguments(&client, &target, "jig rpc".to_owned());
        let tail =
            ["-T", "-o", "BatchMode=yes", "-p", "2222", "-l", "lab", "--", "rig7", "jig rpc"];
        assert_eq!(argv[..3], client);
        assert_eq!(argv[3..], tail);
    }
}
