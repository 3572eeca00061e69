//! Running a program that talks to a device.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use jig_model::protocol::ProcessLedger;
use nix::fcntl::OFlag;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::time::timeout;

use super::PowerError;
use super::error::quote;
use crate::process::{Ending, ManagedProcess, SpawnRequest};

/// Most that a program may say. A state is a word; 64 KiB are a broken program.
const MAX_OUTPUT: usize = 64 << 10;

/// How long the output may stay open after the program has ended. Only a child that left its
/// group can hold it, and has nothing to say.
const REST: Duration = Duration::from_millis(500);

/// Runs a program to its end and returns what it said; it must end with code 0.
///
/// Dropping the future kills it with all it started. `inherit` are descriptors it gets under
/// their own numbers.
pub(crate) async fn run(
    argv: &[String],
    inherit: Vec<OwnedFd>,
    ledger: Arc<dyn ProcessLedger>,
) -> Result<Vec<u8>, PowerError> {
    let (program, args) = argv
        .split_first()
        .ok_or_else(|| PowerError::unusable("a command", "its argument list is empty"))?;
    let broken = |error: io::Error| PowerError::unusable(format!("the output of {program}"), error);
    let (near, far) = nix::unistd::pipe2(OFlag::O_CLOEXEC).map_err(|e| broken(e.into()))?;
    let far = File::from(far);
    let request = SpawnRequest {
        program: program.into(),
        args: args.iter().map(OsString::from).collect(),
        cwd: None,
        stdin: None,
        stdout: Some(far.try_clone().map_err(broken)?),
        stderr: Some(far),
        inherit,
        exits_for_target: false,
        env: None,
        ends_itself: false,
        what: program.clone(),
    };
    let mut near = Receiver::from_owned_fd(near).map_err(broken)?;
    let mut process = ManagedProcess::spawn(request, ledger).await?;
    let mut said = Vec::new();
    let mut bytes = vec![0; 4 << 10];
    let ending = loop {
        tokio::select! {
            biased;
            read = near.read(&mut bytes) => match read.map_err(broken)? {
                0 => break process.ended().await,
                n => said.extend_from_slice(&bytes[..n]),
            },
            ending = process.ended() => {
                // Its group is gone; what it said is in the pipe, up to its end.
                let rest = async {
                    while let Ok(n) = near.read(&mut bytes).await
                        && n > 0
                        && said.len() <= MAX_OUTPUT
                    {
                        said.extend_from_slice(&bytes[..n]);
                    }
                };
                if timeout(REST, rest).await.is_err() {
                    tracing::debug!(program, "somebody still holds its output");
                }
                break ending;
            }
        }
        if said.len() > MAX_OUTPUT {
            process.kill().await;
            let said = format!("more than {MAX_OUTPUT} bytes");
            return Err(PowerError::Garbage { what: program.clone(), said });
        }
    };
    let why = match ending {
        Ending::Exited(0) => return Ok(said),
        Ending::Exited(code) => format!("it ended with code {code}"),
        Ending::Signalled(signal) => format!("it was ended by {signal}"),
    };
    let words = said.trim_ascii();
    let why = if words.is_empty() { why } else { format!("{why} and said {}", quote(words)) };
    Err(PowerError::refused(program.clone(), why))
}
