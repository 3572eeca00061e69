//! The machine Jig runs on: commands and TCP banners.

use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jig_model::Cause;
use jig_model::power::SecretSource;
use jig_model::protocol::{BoxFuture, CommandEnd, DriverError, Host, ProcessLedger};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::power::Secret;
use crate::process::{Ending, ManagedProcess, SpawnRequest};

/// This machine.
pub struct LocalHost {
    /// Where commands start.
    pub cwd: PathBuf,
    /// Where commands are accounted for.
    pub ledger: Arc<dyn ProcessLedger>,
}

/// How long a command may take to end after it was asked to: enough to close its files.
const GRACE: Duration = Duration::from_secs(2);

/// How long a connection may stay silent before the next is tried. A connection that the
/// emulator accepted too early never gets an answer, so it must be given up; an SSH server
/// on a slow guest was seen to need half a second.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Pause between tries: short against the half second a guest's server takes to start.
const PAUSE: Duration = Duration::from_millis(50);

/// Longest banner: RFC 4253 allows an SSH server 255 bytes.
const MAX_BANNER: usize = 256;

impl Host for LocalHost {
    fn command<'a>(
        &'a self,
        argv: &'a [String],
        timeout: Duration,
        output: &'a Path,
    ) -> BoxFuture<'a, Result<CommandEnd, DriverError>> {
        Box::pin(async move {
            let storage = |error: io::Error| {
                DriverError::new(Cause::StorageFailed, format!("write {}", output.display()))
                    .with_source(error)
            };
            let mut open = OpenOptions::new();
            let log = open.create(true).append(true).open(output).map_err(storage)?;
            let Some((program, args)) = argv.split_first() else {
                let message = "run a host command: its argument list is empty";
                return Err(DriverError::new(Cause::HostCommandMissing, message));
            };
            let request = SpawnRequest {
                program: program.into(),
                args: args.iter().map(Into::into).collect(),
                cwd: Some(self.cwd.clone()),
                stdin: None,
                stdout: Some(log.try_clone().map_err(storage)?),
                stderr: Some(log),
                inherit: Vec::new(),
                exits_for_target: false,
                env: None,
                ends_itself: false,
                what: program.clone(),
            };
            let mut process = ManagedProcess::spawn(request, Arc::clone(&self.ledger))
                .await
                .map_err(|error| {
                    let cause = error.cause(Cause::HostCommandMissing, Cause::HostCommandRefused);
                    DriverError::of(cause, error)
                })?;
            Ok(match tokio::time::timeout(timeout, process.ended()).await {
                Ok(Ending::Exited(code)) => CommandEnd::Exited(code),
                Ok(Ending::Signalled(signal)) => CommandEnd::Signalled(signal as i32),
                Err(_) => {
                    process.stop(GRACE).await;
                    CommandEnd::TimedOut
                }
            })
        })
    }

    fn secret(&self, source: &SecretSource) -> Result<String, DriverError> {
        let secret = Secret::read(source);
        let secret = secret.map_err(|error| DriverError::of(Cause::ShellRefused, error))?;
        Ok(secret.reveal().to_owned())
    }

    fn banner<'a>(&'a self, address: &'a str) -> BoxFuture<'a, Vec<u8>> {
        Box::pin(async move {
            loop {
                if let Ok(Ok(banner)) = timeout(TIMEOUT, first_line(address)).await
                    && !banner.is_empty()
                {
                    return banner;
                }
                sleep(PAUSE).await;
            }
        })
    }
}

async fn first_line(address: &str) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address).await?;
    let mut line = Vec::new();
    while line.len() < MAX_BANNER && !line.ends_with(b"\n") {
        match stream.read_u8().await {
            Ok(byte) => line.push(byte),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(error),
        }
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jig_model::protocol::NoLedger;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    fn host(cwd: &Path) -> LocalHost {
        LocalHost { cwd: cwd.into(), ledger: Arc::new(NoLedger) }
    }

    async fn run(argv: &[&str], timeout: Duration) -> (Result<CommandEnd, DriverError>, String) {
        let dir = tempfile::tempdir().unwrap();
        let argv: Vec<String> = argv.iter().map(|&a| a.to_owned()).collect();
        let output = dir.path().join("out");
        let end = host(dir.path()).command(&argv, timeout, &output).await;
        (end, std::fs::read_to_string(output).unwrap_or_default())
    }

    #[tokio::test]
    async fn output_and_code_are_kept() {
        let minute = Duration::from_secs(60);
        let (end, output) = run(&["sh", "-c", "echo out; echo err >&2; exit 3"], minute).await;
        assert_eq!(end.unwrap(), CommandEnd::Exited(3));
        assert_eq!(output, "out\nerr\n");
        let (end, _) = run(&["no-such-program-x"], minute).await;
        assert_eq!(end.unwrap_err().cause, Cause::HostCommandMissing);
        // A file without the permission to be executed.
        let files = tempfile::tempdir().unwrap();
        let file = files.path().join("file");
        std::fs::write(&file, "no program").unwrap();
        let error = run(&[file.to_str().unwrap()], minute).await.0.unwrap_err();
        assert_eq!(error.cause, Cause::HostCommandRefused);
        assert!(jig_model::chain(&error).contains("ermission denied"), "{error}");
    }

    #[tokio::test]
    async fn a_command_that_takes_too_long_is_ended() {
        let (end, _) = run(&["sleep", "600"], Duration::from_millis(1)).await;
        assert_eq!(end.unwrap(), CommandEnd::TimedOut);
    }

    #[tokio::test]
    async fn a_banner_is_awaited_through_connections_that_say_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = async {
            drop(listener.accept().await.unwrap());
            loop {
                // A busy machine may have given up this one too; then there is a next.
                let (mut stream, _) = listener.accept().await.unwrap();
                let _ = stream.write_all(b"SSH-2.0-x\r\nmore").await;
            }
        };
        let here = host(Path::new("/"));
        tokio::select! {
            banner = here.banner(&address) => assert_eq!(banner, b"SSH-2.0-x\r\n"),
            () = server => {}
        }
    }
}
