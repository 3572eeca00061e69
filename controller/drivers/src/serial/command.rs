//! A console that a program reaches: its standard input and output are the transport.
//!
//! # Design
//! Console servers are reached by SSH, by `ipmitool`, by whatever a lab has; the program that
//! knows how is at hand, and need only be run and ended. The process layer owns it, so it goes
//! with the transport and with this process.
//!
//! A program that runs is not one that is connected, and what the target prints before that is lost
//! without a record. So the transport is open when the program has said so, in words that the rig
//! file knows. Where it says nothing, a second has to do: what cannot connect mostly says so and
//! ends within that time, and if not, its end is a loss that stands in the log.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use jig_model::protocol::{BoxFuture, ProcessLedger, Transport};
use nix::fcntl::OFlag;
use nix::unistd::pipe2;
use tokio::io::Interest;
use tokio::time::{Sleep, sleep, timeout};

use super::error::SerialError;
use crate::descriptor::Descriptor;
use crate::process::{Ending, ManagedProcess, SpawnRequest};

/// What these programs are entered as in a ledger.
pub(crate) const PROGRAM: &str = "console program";

/// How long a program runs before it counts as connected that does not say so.
const SETTLED: Duration = Duration::from_secs(1);

/// How long a program may live on that has closed its output, to say how it ended.
const REST: Duration = Duration::from_millis(500);

/// How much a program may print before it says that it is connected: a banner and a message of
/// the day are some kilobytes.
const MOST_BEFORE: usize = 64 << 10;

/// How much is remembered of what a program complains about, and how much of that is shown.
const REMEMBERED: usize = 2 << 10;
const SHOWN: usize = 200;

/// How often complaints are read before the console has its turn again.
const TURNS: usize = 16;

/// A program whose input and output are a console.
pub(super) struct CommandTransport {
    output: Descriptor,
    input: Descriptor,
    complaints: Complaints,
    /// Bytes of the console that came while it was waited for.
    first: VecDeque<u8>,
    end: BoxFuture<'static, Ending>,
    ended: Option<Ending>,
    /// Runs while it lives without an output.
    rest: Option<Pin<Box<Sleep>>>,
    /// Killed with all it started when this is dropped.
    _process: ManagedProcess,
}

impl CommandTransport {
    /// Starts a program, and waits until it is connected, without a timeout: the caller sets one.
    /// `ready` is what a line of its output then holds.
    pub(super) async fn open(
        argv: &[String],
        ready: Option<&str>,
        ledger: Arc<dyn ProcessLedger>,
    ) -> Result<Self, SerialError> {
        let address = argv.join(" ");
        let unusable = |source| SerialError::Connect { address: address.clone(), source };
        let mut transport = Self::start(argv, ledger, unusable).await?;
        let connected = async {
            match ready {
                Some(ready) => transport.until_it_says(ready.as_bytes()).await,
                None => transport.until_settled().await,
            }
        };
        let why = match connected.await {
            Ok(()) => return Ok(transport),
            Err(error) => error.to_string(),
        };
        Err(SerialError::Ended { address, why })
    }

    async fn start(
        argv: &[String],
        ledger: Arc<dyn ProcessLedger>,
        unusable: impl Fn(io::Error) -> SerialError,
    ) -> Result<Self, SerialError> {
        let pipe = || pipe2(OFlag::O_CLOEXEC).map_err(|errno| unusable(errno.into()));
        let ((stdin, input), (output, stdout), (said, stderr)) = (pipe()?, pipe()?, pipe()?);
        let program = argv.first().map(OsString::from).unwrap_or_default();
        let request = SpawnRequest {
            program,
            args: argv.iter().skip(1).map(OsString::from).collect(),
            cwd: None,
            stdin: Some(File::from(stdin)),
            stdout: Some(File::from(stdout)),
            stderr: Some(File::from(stderr)),
            inherit: Vec::new(),
            exits_for_target: false,
            env: None,
            ends_itself: false,
            what: PROGRAM.to_owned(),
        };
        let process = ManagedProcess::spawn(request, ledger).await?;
        let end = |fd: OwnedFd, interest| Descriptor::new(fd, interest).map_err(&unusable);
        Ok(Self {
            output: end(output, Interest::READABLE)?,
            input: end(input, Interest::WRITABLE)?,
            complaints: Complaints {
                pipe: Some(end(said, Interest::READABLE)?),
                last: VecDeque::new(),
            },
            first: VecDeque::new(),
            end: Box::pin(process.end()),
            ended: None,
            rest: None,
            _process: process,
        })
    }

    /// Takes in what it prints.
    async fn take_in(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        let mut some = [0; 4 << 10];
        let count = poll_fn(|cx| self.poll_output(cx, &mut some)).await?;
        into.extend_from_slice(&some[..count]);
        Ok(())
    }

    /// Waits for a line that holds a text; what follows it is the console's.
    async fn until_it_says(&mut self, ready: &[u8]) -> io::Result<()> {
        let mut said = Vec::new();
        while said.len() <= MOST_BEFORE {
            self.take_in(&mut said).await?;
            let line = said.split_inclusive(|&b| b == b'\n').scan(0, |end, line| {
                *end += line.len();
                Some((*end, line))
            });
            let holds = |line: &[u8]| line.windows(ready.len()).any(|part| part == ready);
            let mut whole = line.filter(|(_, line)| line.ends_with(b"\n"));
            if let Some((end, _)) = whole.find(|(_, line)| holds(line)) {
                self.first.extend(&said[end..]);
                return Ok(());
            }
        }
        let ready = String::from_utf8_lossy(ready);
        Err(io::Error::other(format!("it prints much and not the line with `{ready}`")))
    }

    async fn until_settled(&mut self) -> io::Result<()> {
        let mut said = Vec::new();
        if let Ok(taken) = timeout(SETTLED, self.take_in(&mut said)).await {
            taken?;
        }
        self.first.extend(said);
        Ok(())
    }

    /// Reads its output; its end is an error that says how.
    fn poll_output(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        self.complaints.poll_listen(cx);
        // Asked before the output is read: what it printed last is in the pipe by then.
        if self.ended.is_none()
            && let Poll::Ready(ending) = self.end.as_mut().poll(cx)
        {
            self.ended = Some(ending);
        }
        match self.output.poll_read(cx, buf) {
            Poll::Ready(Ok(0)) => {}
            // Another process may hold the output open, but the console was the program, and it has
            // ended.
            Poll::Pending if self.ended.is_some() => {}
            other => return other,
        }
        let how = match self.ended {
            Some(Ending::Exited(code)) => format!("it ended with code {code}"),
            Some(Ending::Signalled(signal)) => format!("it was ended by {signal}"),
            None => {
                let rest = self.rest.get_or_insert_with(|| Box::pin(sleep(REST)));
                ready!(rest.as_mut().poll(cx));
                "it has closed its output".to_owned()
            }
        };
        self.complaints.poll_listen(cx);
        let why = match self.complaints.last_line() {
            Some(said) => format!("{how}: {said}"),
            None => how,
        };
        Poll::Ready(Err(io::Error::other(why)))
    }
}

impl Transport for CommandTransport {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        if buf.is_empty() || !self.first.is_empty() {
            return Poll::Ready(io::Read::read(&mut self.first, buf));
        }
        self.poll_output(cx, buf)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.input.poll_write(cx, bytes)
    }
}

/// What a program says on standard error, of which the end is kept.
struct Complaints {
    /// Nothing once it has closed it.
    pipe: Option<Descriptor>,
    last: VecDeque<u8>,
}

impl Complaints {
    /// Takes in what there is, so that the program is never held up.
    fn poll_listen(&mut self, cx: &mut Context<'_>) {
        let mut some = [0; 1 << 10];
        for _ in 0..TURNS {
            let Some(pipe) = &mut self.pipe else { return };
            match pipe.poll_read(cx, &mut some) {
                Poll::Pending => return,
                Poll::Ready(Ok(count)) if count > 0 => self.last.extend(&some[..count]),
                Poll::Ready(_) => self.pipe = None,
            }
            let old = self.last.len().saturating_sub(REMEMBERED);
            self.last.drain(..old);
        }
        cx.waker().wake_by_ref();
    }

    /// Returns the last line in which it said something.
    fn last_line(&mut self) -> Option<String> {
        let text = String::from_utf8_lossy(self.last.make_contiguous()).into_owned();
        let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
        Some(line.chars().filter(|c| !c.is_control()).take(SHOWN).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use jig_model::protocol::{NoLedger, TransportEvent};
    use jig_model::rig_file::Endpoint;

    use super::super::{ReconnectingTransport, SerialPort};
    use super::*;

    /// Only a failing test waits as long.
    const LONG: Duration = Duration::from_secs(120);

    fn shell(script: &str) -> Vec<String> {
        ["sh", "-c", script].map(str::to_owned).to_vec()
    }

    async fn open(script: &str, ready: Option<&str>) -> Result<CommandTransport, SerialError> {
        CommandTransport::open(&shell(script), ready, Arc::new(NoLedger)).await
    }

    async fn read(transport: &mut dyn Transport, wanted: &[u8]) {
        let mut seen = vec![0; wanted.len()];
        let mut at = 0;
        while at < seen.len() {
            at += poll_fn(|cx| transport.poll_read(cx, &mut seen[at..])).await.unwrap();
        }
        assert_eq!(seen.escape_ascii().to_string(), wanted.escape_ascii().to_string());
    }

    async fn ends(transport: &mut dyn Transport) -> String {
        let read = poll_fn(|cx| transport.poll_read(cx, &mut [0; 8]));
        read.await.unwrap_err().to_string()
    }

    #[tokio::test]
    async fn its_input_and_output_are_the_transport_behind_the_word_that_it_is_connected() {
        let script = "echo Welcome; printf 'Terminal rea'; printf 'dy\\r\\nfirst '; exec cat";
        let mut transport = open(script, Some("Terminal ready")).await.unwrap();
        read(&mut transport, b"first ").await;
        assert_eq!(poll_fn(|cx| transport.poll_write(cx, b"\0\xff\n")).await.unwrap(), 3);
        read(&mut transport, b"\0\xff\n").await;
        // Without such a word its first byte will do.
        let mut transport = open("printf hello; exec cat", None).await.unwrap();
        read(&mut transport, b"hello").await;
    }

    #[tokio::test]
    async fn its_end_is_told_behind_its_last_bytes_with_what_it_said() {
        let script =
            "echo ready; printf last; echo noise >&2; printf '\\033[1mrefused\\n\\n' >&2; exit 7";
        let mut transport = open(script, Some("ready")).await.unwrap();
        read(&mut transport, b"last").await;
        assert_eq!(ends(&mut transport).await, "it ended with code 7: [1mrefused");
        let mut transport = open("echo ready; kill -9 $$", Some("ready")).await.unwrap();
        assert_eq!(ends(&mut transport).await, "it was ended by SIGKILL");
        let mut transport =
            open("echo ready; exec >&-; exec sleep 600", Some("ready")).await.unwrap();
        assert_eq!(ends(&mut transport).await, "it has closed its output");
    }

    #[tokio::test]
    async fn what_does_not_connect_is_named() {
        for (script, why) in [
            ("echo unknown host >&2; exit 255", "it ended with code 255: unknown host"),
            ("exec cat /dev/zero", "it prints much and not the line with `ready`"),
        ] {
            let Err(error) = open(script, Some("ready")).await else { panic!("{script}") };
            assert!(error.may_pass(), "{error}");
            assert_eq!(error.to_string(), format!("sh -c {script}: {why}"));
        }
        let argv = ["no-such-program-x".to_owned()];
        let Err(error) = CommandTransport::open(&argv, None, Arc::new(NoLedger)).await else {
            panic!()
        };
        assert!(!error.may_pass(), "{error}");
    }

    #[tokio::test]
    async fn complaints_without_end_hold_up_nobody_and_take_no_memory() {
        let script =
            "echo ready; head -c 3000000 /dev/zero | tr '\\0' x >&2; printf done; exec cat";
        let mut transport = open(script, Some("ready")).await.unwrap();
        read(&mut transport, b"done").await;
        assert!(transport.complaints.last.len() <= REMEMBERED);
    }

    #[tokio::test]
    async fn one_that_ends_is_started_again_and_the_gap_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let count = folder.path().join("count");
        let script = format!(
            "echo x >> {0}; echo ready; printf $(wc -l < {0}); [ $(wc -l < {0}) = 1 ] && exit 3; \
             exec cat",
            count.display()
        );
        let port = SerialPort::new(Endpoint::Command(shell(&script)), 0);
        let port = port.ready_by(Some("ready".to_owned()));
        let mut transport = ReconnectingTransport::open(port, LONG).await.unwrap();
        read(&mut transport, b"1").await;
        let mut event = async || {
            poll_fn(|cx| {
                assert!(transport.poll_read(cx, &mut [0; 8]).is_pending());
                transport.event().map_or(Poll::Pending, Poll::Ready)
            })
            .await
        };
        let TransportEvent::Lost(why) = event().await else { panic!("no loss") };
        assert!(why.ends_with("failed: it ended with code 3"), "{why}");
        assert_eq!(event().await, TransportEvent::Back);
        read(&mut transport, b"2").await;
        assert_eq!(fs::read_to_string(&count).unwrap(), "x\nx\n");
    }

    #[tokio::test]
    async fn nothing_of_it_outlives_the_transport() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("held");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        // Its child holds the fifo open for writing.
        let script = format!("sleep 600 > {} & echo ready; wait", fifo.display());
        let transport = open(&script, Some("ready"));
        let (held, transport) =
            tokio::join!(tokio::task::spawn_blocking(move || File::open(fifo)), transport);
        drop(transport.unwrap());
        let gone = tokio::task::spawn_blocking(move || {
            io::Read::read_to_end(&mut held.unwrap().unwrap(), &mut Vec::new())
        });
        assert_eq!(timeout(LONG, gone).await.unwrap().unwrap().unwrap(), 0);
    }
}
