//! Signals that ask this process to stop: the first cancels the command, a repeated one ends the
//! process.
//!
//! A thread of its own waits for them until the process ends: behind a command, its output may
//! still wait for a reader that does not read.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use jig_model::exit::CANCELLED;
use jig_rig::workflow::CancelToken;
use tokio::signal::unix::{SignalKind, signal};

/// The command that signals are for, and those that came for it.
struct Watched {
    /// None before the first command.
    cancel: Option<CancelToken>,
    requests: StopRequests,
}

static WATCHED: Mutex<Watched> =
    Mutex::new(Watched { cancel: None, requests: StopRequests { first: None } });

/// Has signals cancel a command, in place of the one before.
///
/// # Errors
/// The system refuses to tell of signals, or a thread.
pub(super) fn cancel_on_signals(cancel: &CancelToken) -> io::Result<()> {
    let mut watched = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
    if watched.cancel.is_none() {
        watch()?;
    }
    *watched = Watched { cancel: Some(cancel.clone()), requests: StopRequests::default() };
    Ok(())
}

fn watch() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let listening = runtime.enter();
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let [mut interrupts, mut terminations, mut hang_ups] =
        [signal(kinds[0])?, signal(kinds[1])?, signal(kinds[2])?];
    drop(listening);
    let wait = async move {
        loop {
            let kind = tokio::select! {
                _ = interrupts.recv() => kinds[0],
                _ = terminations.recv() => kinds[1],
                _ = hang_ups.recv() => kinds[2],
            };
            take(kind);
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(wait))?;
    Ok(())
}

fn take(kind: SignalKind) {
    let mut watched = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
    match watched.requests.take(kind, Instant::now()) {
        // The command may have cancelled itself, which is no signal.
        StopAction::Cancel => watched.cancel.iter().for_each(CancelToken::cancel),
        StopAction::Nothing => {}
        StopAction::Exit => std::process::exit(i32::from(CANCELLED)),
    }
}

/// How long signals of different kinds are one request: `make` passes SIGTERM on while the
/// terminal that closes sends SIGHUP.
const ONE_REQUEST: Duration = Duration::from_secs(1);

/// The signals that asked this process to stop.
#[derive(Debug, Default)]
struct StopRequests {
    first: Option<(SignalKind, Instant)>,
}

/// What a signal does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StopAction {
    /// Asks the command to stop in order.
    Cancel,
    /// Nothing: it belongs to the request before.
    Nothing,
    /// Ends this process at once.
    Exit,
}

impl StopRequests {
    fn take(&mut self, kind: SignalKind, now: Instant) -> StopAction {
        match self.first {
            None => {
                self.first = Some((kind, now));
                StopAction::Cancel
            }
            Some((first, at)) if kind != first && now.duration_since(at) < ONE_REQUEST => {
                StopAction::Nothing
            }
            Some(_) => StopAction::Exit,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use nix::sys::signal::{Signal, raise};

    use super::*;

    #[test]
    fn a_repeated_signal_ends_the_process_and_two_at_once_are_one_request() {
        let (interrupt, terminate) = (SignalKind::interrupt(), SignalKind::terminate());
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut requests = StopRequests::default();
        assert_eq!(requests.take(terminate, at(0)), StopAction::Cancel);
        assert_eq!(requests.take(SignalKind::hangup(), at(5)), StopAction::Nothing);
        assert_eq!(requests.take(interrupt, at(999)), StopAction::Nothing);
        assert_eq!(requests.take(interrupt, at(1000)), StopAction::Exit);
        let mut requests = StopRequests::default();
        assert_eq!(requests.take(interrupt, at(0)), StopAction::Cancel);
        assert_eq!(requests.take(interrupt, at(1)), StopAction::Exit);
    }

    /// Set in the process that signals itself.
    const SIGNALLED: &str = "JIG_TEST_SIGNALLED";

    #[test]
    fn a_repeated_signal_ends_a_process_whose_command_is_over() {
        if std::env::var_os(SIGNALLED).is_some() {
            let cancel = CancelToken::new();
            cancel_on_signals(&cancel).unwrap();
            raise(Signal::SIGTERM).unwrap();
            while !cancel.is_cancelled() {
                std::thread::yield_now();
            }
            raise(Signal::SIGTERM).unwrap();
            // As a write to a pipe that is not read.
            return std::thread::sleep(Duration::from_secs(20));
        }
        let name = std::thread::current().name().unwrap().to_owned();
        let ended = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &name])
            .env(SIGNALLED, "1")
            .stdout(Stdio::null())
            .status();
        assert_eq!(ended.unwrap().code(), Some(i32::from(CANCELLED)));
    }
}
