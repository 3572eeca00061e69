//! A child that outlives this process, and says what it does in lines.
//!
//! # Design
//! Unlike a [`ManagedProcess`](super::ManagedProcess) it is not tied to its parent: it leads its
//! own process group, gets no parent-death signal, and dropping its handle does not end it. A
//! thread reads its output, whether the handle's owner takes it or not, so that it never waits for
//! a reader; the same thread reaps it.

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, PipeReader, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::{Ending, SpawnError};

/// Lines that may wait to be taken. More are dropped, except the last line of all.
const WAITING: usize = 1024;

/// What to start.
pub struct DetachedRequest {
    /// Program: a name looked up in `PATH`, or a path.
    pub program: OsString,
    /// Arguments, one each; never a shell line.
    pub args: Vec<OsString>,
    /// All of its standard input.
    pub input: Vec<u8>,
    /// Longest line that is read of its standard output; a longer one ends the reading.
    pub most_line: usize,
}

/// What a detached child says or does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DetachedEvent {
    /// A line of its standard output, its end cut off.
    Line(Vec<u8>),
    /// It has ended; nothing follows.
    Ended(Ending),
}

/// A child that outlives this process.
pub struct DetachedProcess {
    pid: Pid,
    reaped: Arc<Mutex<bool>>,
    event: mpsc::Receiver<DetachedEvent>,
}

impl DetachedProcess {
    /// Starts it. Its standard error is that of this process.
    ///
    /// # Errors
    /// There is no such program, or the system refuses.
    pub fn start(request: DetachedRequest) -> Result<Self, SpawnError> {
        let DetachedRequest { program, args, input, most_line } = request;
        let refused = |source| SpawnError::of(&program, None, source);
        let (said, output) = io::pipe().map_err(refused)?;
        let mut command = Command::new(&program);
        command.args(&args).process_group(0).stdin(Stdio::piped()).stdout(output);
        let mut child = command.spawn().map_err(refused)?;
        // It holds the writing end, which has to be the child's alone.
        drop(command);
        let id = i32::try_from(child.id()).unwrap_or(i32::MAX);
        let (pid, reaped) = (Pid::from_raw(id), Arc::new(Mutex::new(false)));
        let (sender, event) = mpsc::channel(WAITING);
        let stdin = child.stdin.take();
        let watch =
            DetachedWatch { child, pid, reaped: Arc::clone(&reaped), event: sender, most_line };
        std::thread::Builder::new()
            .name("jig-worker".to_owned())
            .spawn(move || watch.run(stdin, &input, said))
            .map_err(refused)?;
        Ok(Self { pid, reaped, event })
    }

    /// Waits for what comes next; nothing behind its end. Cancel-safe.
    pub async fn next(&mut self) -> Option<DetachedEvent> {
        self.event.recv().await
    }

    /// Asks it to end in order; does nothing once it has ended.
    pub fn terminate(&self) {
        let reaped = self.reaped.lock().unwrap_or_else(PoisonError::into_inner);
        // Until it is reaped the number is its own.
        if !*reaped {
            let _ = kill(self.pid, Signal::SIGTERM);
        }
    }
}

/// What the thread of a child holds.
struct DetachedWatch {
    child: Child,
    pid: Pid,
    reaped: Arc<Mutex<bool>>,
    event: mpsc::Sender<DetachedEvent>,
    most_line: usize,
}

impl DetachedWatch {
    fn run(mut self, stdin: Option<ChildStdin>, input: &[u8], said: PipeReader) {
        if let Some(mut stdin) = stdin {
            // A child that does not want it says why.
            let _ = stdin.write_all(input);
        }
        let mut said = BufReader::new(said);
        let mut line = Vec::new();
        let mut held = None;
        while let Ok(true) = read_line(&mut said, &mut line, self.most_line) {
            // A caller that does not listen any more holds up nothing.
            let sent = self.event.try_send(DetachedEvent::Line(std::mem::take(&mut line)));
            held = sent.err().map(TrySendError::into_inner);
        }
        let _ = waitid(Id::Pid(self.pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT);
        let mut reaped = self.reaped.lock().unwrap_or_else(PoisonError::into_inner);
        let status = self.child.wait();
        *reaped = true;
        drop(reaped);
        let ending = status.map_or(Ending::Signalled(Signal::SIGKILL), |status| {
            let signal = status.signal().and_then(|number| Signal::try_from(number).ok());
            signal.map_or_else(|| Ending::Exited(status.code().unwrap_or(-1)), Ending::Signalled)
        });
        // The last line says what came of all before it.
        for event in held.into_iter().chain([DetachedEvent::Ended(ending)]) {
            let _ = self.event.blocking_send(event);
        }
    }
}

/// Reads a line without its end; tells whether there was one that is not too long.
fn read_line(from: &mut impl io::BufRead, line: &mut Vec<u8>, most: usize) -> io::Result<bool> {
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    from.by_ref().take(limit).read_until(b'\n', line)?;
    if line.pop_if(|last| *last == b'\n').is_some() {
        return Ok(true);
    }
    // The last line may have no end.
    Ok(!line.is_empty() && line.len() <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cat(input: &[u8], most_line: usize) -> DetachedProcess {
        let (program, args) = ("cat".into(), Vec::new());
        DetachedProcess::start(DetachedRequest { program, args, input: input.to_vec(), most_line })
            .unwrap()
    }

    async fn all(process: &mut DetachedProcess) -> Vec<DetachedEvent> {
        let mut all = Vec::new();
        while let Some(event) = process.next().await {
            all.push(event);
        }
        all
    }

    #[tokio::test]
    async fn a_child_is_heard_line_by_line_until_it_ends() {
        let mut process = cat(b"one\n\nlast", 100);
        let line = |text: &[u8]| DetachedEvent::Line(text.to_vec());
        let ended = DetachedEvent::Ended(Ending::Exited(0));
        assert_eq!(all(&mut process).await, [line(b"one"), line(b""), line(b"last"), ended]);
        process.terminate();
    }

    #[tokio::test]
    async fn a_line_without_end_is_not_read_on() {
        let mut process = cat(&[b'x'; 4096], 1024);
        let heard = all(&mut process).await;
        assert!(matches!(heard.as_slice(), [DetachedEvent::Ended(_)]), "{}", heard.len());
    }

    #[tokio::test]
    async fn last_line_arrives_although_lines_before_it_were_dropped() {
        let lines: String = (0..3 * WAITING).map(|number| format!("{number}\n")).collect();
        let mut process = cat(lines.as_bytes(), 100);
        // Nothing is taken until all is said.
        while !*process.reaped.lock().unwrap() {
            tokio::task::yield_now().await;
        }
        let heard = all(&mut process).await;
        let last = DetachedEvent::Line(format!("{}", 3 * WAITING - 1).into_bytes());
        assert_eq!(heard.len(), WAITING + 2);
        assert_eq!(heard[WAITING..], [last, DetachedEvent::Ended(Ending::Exited(0))]);
    }

    #[tokio::test]
    async fn a_child_that_is_asked_to_end_does() {
        let (program, args) = ("sleep".into(), vec!["1000".into()]);
        let request = DetachedRequest { program, args, input: Vec::new(), most_line: 10 };
        let mut process = DetachedProcess::start(request).unwrap();
        process.terminate();
        let ended = DetachedEvent::Ended(Ending::Signalled(Signal::SIGTERM));
        assert_eq!(all(&mut process).await, [ended]);
    }
}
