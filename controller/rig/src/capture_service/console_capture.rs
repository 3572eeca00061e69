//! The actor of one captured console: opens its transport, writes its log, carries out requests.

use std::collections::VecDeque;
use std::mem::take;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use jig_model::capture_service::{CaptureState, CaptureStatus};
use jig_model::chain;
use jig_model::protocol::Transport;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::files::LogFolder;
use super::orders::{
    CaptureError, CaptureOrder, CaptureSpec, LoanRequest, OpenTransport, ReleaseRequest,
};
use super::relay::GivenBack;
use crate::console::{
    Console, ConsoleClock, ConsoleHandle, GapReason, LogError, LogState, TransportEnd,
};
use crate::store::StoreError;

/// Pause before a port or file that could not be opened is tried again. A try costs one system
/// call, so a freed port is picked up within a second.
const RETRY: Duration = Duration::from_secs(1);

/// Called when the status of a console has changed.
pub(super) type Tell = Arc<dyn Fn(&CaptureStatus) + Send + Sync>;

/// The log that is being written.
pub(super) struct CurrentLog {
    pub(super) console: Console,
    pub(super) number: u64,
    began: Instant,
    /// Number of transports attached to this log so far.
    transports: u32,
}

/// Reason why the next file of the log cannot be started.
#[derive(Debug, thiserror::Error)]
enum NextFileError {
    #[error(transparent)]
    Folder(#[from] StoreError),
    #[error(transparent)]
    Log(#[from] LogError),
}

/// Holder of the right to send.
pub(super) struct CurrentWriter {
    pub(super) id: u64,
    pub(super) by: String,
    pub(super) taken: oneshot::Sender<String>,
}

pub(super) struct ConsoleCapture {
    pub(super) spec: CaptureSpec,
    pub(super) folder: LogFolder,
    pub(super) opener: Arc<dyn OpenTransport>,
    pub(super) clock: Arc<dyn ConsoleClock>,
    pub(super) tell: Tell,
    pub(super) inbox: mpsc::Receiver<CaptureOrder>,
    /// Sender for new writers. Weak, so that the inbox closes with its last handle.
    pub(super) orders: mpsc::WeakSender<CaptureOrder>,
    pub(super) status: watch::Sender<CaptureStatus>,
    pub(super) lends: VecDeque<LoanRequest>,
    pub(super) releases: VecDeque<ReleaseRequest>,
    pub(super) changed: Option<CaptureSpec>,
    pub(super) again: bool,
    pub(super) stopping: bool,
    pub(super) log: Option<CurrentLog>,
    /// Whether bytes may be missing before the next transport.
    pub(super) missed: bool,
    pub(super) writer: Option<CurrentWriter>,
    pub(super) writers: u64,
    /// Writes under way; each writer has one in flight.
    pub(super) writes: JoinSet<()>,
    /// When a log that cannot be written is replaced by a new one.
    pub(super) fresh_at: Option<Instant>,
}

/// Reason why watching a transport ended.
enum Interruption {
    Stop,
    /// The transport has ended for good; the system's words.
    Ended(String),
    /// The transport is to be closed and opened again.
    Close,
    NextFile,
    Lend(LoanRequest),
}

impl ConsoleCapture {
    /// Captures the console until it is stopped or its last handle is dropped.
    pub(super) async fn run(mut self) {
        // Bytes between the end of an earlier service and now are missing.
        self.missed = self.opener.prints_uncaptured()
            && self.folder.files().is_ok_and(|files| !files.is_empty());
        while let Some(transport) = self.obtain().await {
            if !self.capture(transport).await {
                break;
            }
        }
        if let Some(log) = self.log.take() {
            let (state, syncing) = log.console.end().await;
            if state.error.is_none() {
                syncing.done().await;
            }
        }
    }

    /// Publishes the status if it has changed.
    pub(super) fn show(&self, state: CaptureState) {
        let (file, writer) = (self.log.as_ref().map(|log| log.number), self.writer.as_ref());
        let end = self.spec.transport.end.address();
        let new = self.status.send_if_modified(|now| {
            let moved = now.state != state || now.end != end;
            now.file = file.unwrap_or(now.file);
            now.writer = writer.map(|writer| writer.by.clone());
            now.end = end.clone().into_owned();
            now.state = state;
            moved
        });
        if new {
            (self.tell)(&self.status.borrow());
        }
    }

    /// Opens the transport, without a time limit; returns none when stopped.
    async fn obtain(&mut self) -> Option<Box<dyn Transport>> {
        let mut opening = None;
        loop {
            if let Some(spec) = self.changed.take() {
                self.spec = spec;
                opening = None;
            }
            if take(&mut self.again) {
                opening = None;
            }
            if !self.releases.is_empty() {
                // The other program must not find the port open.
                opening = None;
                self.release_port().await;
            }
            if self.stopping {
                return None;
            }
            let opening_now = opening.get_or_insert_with(|| self.opener.open(&self.spec));
            tokio::select! {
                biased;
                order = self.inbox.recv() => self.take_in(order, None),
                opened = opening_now => match opened {
                    Ok(transport) => return Some(transport),
                    Err(error) => {
                        self.show(CaptureState::Waiting { why: chain(&error) });
                        let (opener, spec) = (Arc::clone(&self.opener), self.spec.clone());
                        opening = Some(Box::pin(async move {
                            sleep(RETRY).await;
                            opener.open(&spec).await
                        }));
                    }
                },
            }
        }
    }

    /// Keeps the port closed until each program that requested it is done.
    async fn release_port(&mut self) {
        while let Some(ReleaseRequest { by, reply, mut until }) = self.releases.pop_front() {
            if reply.send(Ok(())).is_err() {
                continue;
            }
            self.missed = true;
            self.show(CaptureState::Released { by });
            loop {
                tokio::select! {
                    biased;
                    _ = &mut until => break,
                    order = self.inbox.recv() => self.take_in(order, None),
                }
                if self.stopping {
                    return;
                }
            }
        }
    }

    /// Captures a transport until it ends. Returns whether to open it again.
    async fn capture(&mut self, transport: Box<dyn Transport>) -> bool {
        let mut given = Some(GivenBack::whole(transport));
        loop {
            let Some(handle) = self.ready().await else { return false };
            if let Some(GivenBack { transport, first, event, missing }) = given.take() {
                if take(&mut self.missed) || missing {
                    let _ = handle.gap(None, GapReason::Transport);
                }
                // The log was just started, so it accepts controls.
                let _ = handle.resume(transport, first, event);
                if let Some(log) = &mut self.log {
                    log.transports += 1;
                }
            }
            match self.watch(&handle).await {
                Interruption::Stop => return false,
                Interruption::Ended(why) => {
                    self.missed = true;
                    self.show(CaptureState::Gone { why });
                    return self.rest().await;
                }
                Interruption::Close => {
                    drop(handle.release().await);
                    self.missed = true;
                    self.drop_writer("another program, for which the transport is closed");
                    return true;
                }
                Interruption::NextFile => given = self.next_file(&handle).await,
                Interruption::Lend(ask) => {
                    given = self.lend(&handle, ask).await;
                    if self.stopping {
                        return false;
                    }
                }
            }
        }
    }

    /// Waits until a transport that ended for good may be tried again. Returns whether it may.
    async fn rest(&mut self) -> bool {
        loop {
            if self.stopping {
                return false;
            }
            if take(&mut self.again) || self.changed.is_some() || !self.releases.is_empty() {
                return true;
            }
            let gone = self.status.borrow().state.clone();
            if let CaptureState::Gone { why } = gone {
                for ask in self.lends.drain(..) {
                    let _ = ask.reply.send(Err(CaptureError::Away(why.clone())));
                }
            }
            let order = self.inbox.recv().await;
            self.take_in(order, None);
        }
    }

    /// Returns a handle to the log, starting one if necessary; none when stopped.
    async fn ready(&mut self) -> Option<ConsoleHandle> {
        loop {
            if let Some(log) = &self.log {
                return Some(log.console.handle().clone());
            }
            match self.begin() {
                Ok(log) => self.log = Some(log),
                Err(error) => {
                    self.missed = true;
                    self.show(CaptureState::Unwritten { why: chain(&error) });
                    tokio::select! {
                        () = sleep(RETRY) => {}
                        order = self.inbox.recv() => self.take_in(order, None),
                    }
                    if self.stopping {
                        return None;
                    }
                }
            }
        }
    }

    /// Starts the next file and removes the files that exceed the limits.
    fn begin(&self) -> Result<CurrentLog, NextFileError> {
        let file = self.folder.next()?;
        let console = Console::start(&file.paths, Arc::clone(&self.clock))?;
        for number in self.folder.prune(&self.spec.limits, SystemTime::now()) {
            tracing::info!(place = %self.spec.place, number, "an old console log was removed");
        }
        Ok(CurrentLog { console, number: file.number, began: Instant::now(), transports: 0 })
    }

    /// Continues in a new file. Returns the transport, or none if the old file stays in use.
    async fn next_file(&mut self, handle: &ConsoleHandle) -> Option<GivenBack> {
        self.fresh_at = Some(Instant::now() + RETRY);
        let log = match self.begin() {
            Ok(log) => log,
            Err(error) => {
                self.show(CaptureState::Unwritten { why: chain(&error) });
                return None;
            }
        };
        let transport = handle.release().await.ok().flatten();
        if let Some(old) = self.log.replace(log) {
            // The old file is synced in the background, because the transport waits here.
            let (state, _) = old.console.end().await;
            if state.error.is_some()
                && let Some(log) = &self.log
            {
                let _ = log.console.handle().gap(Some(state.lost), GapReason::Storage);
            }
        }
        self.fresh_at = None;
        match transport {
            Some(transport) => Some(GivenBack::whole(transport)),
            // The transport ended at this moment, and is opened again.
            None => {
                self.again = true;
                None
            }
        }
    }

    /// Watches a transport until the actor has to act on it.
    async fn watch(&mut self, handle: &ConsoleHandle) -> Interruption {
        let mut state = handle.state();
        loop {
            if self.stopping {
                return Interruption::Stop;
            }
            if let Some(spec) = self.changed.take_if(|spec| spec.limits_only(&self.spec)) {
                self.spec = spec;
            }
            if self.changed.is_some() || !self.releases.is_empty() {
                return Interruption::Close;
            }
            let Some(log) = &self.log else { return Interruption::Stop };
            let (transports, began) = (log.transports, log.began);
            let now = state.borrow_and_update().clone();
            let settled = now.transports >= transports;
            if transports == 0 || (settled && !now.attached) {
                if take(&mut self.again) {
                    return Interruption::Close;
                }
                return Interruption::Ended(words(now.ended.as_ref()));
            }
            self.again = false;
            let limits = &self.spec.limits;
            let (next, due) = if now.error.is_some() {
                (u64::MAX, self.fresh_at.unwrap_or_else(Instant::now))
            } else {
                // A write under way is not interrupted before twice the size limit.
                let busy = if self.writes.is_empty() { 1 } else { 2 };
                let age = if now.len == 0 { FAR } else { limits.file_age };
                (limits.file_size.saturating_mul(busy), began + age)
            };
            if now.len >= next || Instant::now() >= due {
                return Interruption::NextFile;
            }
            if settled && now.away.is_none() {
                self.lends.retain(|ask| !ask.reply.is_closed());
                if let Some(ask) = self.lends.pop_front() {
                    return Interruption::Lend(ask);
                }
            }
            self.show_captured(&now);
            let next = if now.len == 0 { 1 } else { next };
            let other = |new: &LogState| {
                new.len >= next
                    || new.error.is_some() != now.error.is_some()
                    || (new.attached, new.transports) != (now.attached, now.transports)
                    || (new.losses, new.away.is_some()) != (now.losses, now.away.is_some())
            };
            tokio::select! {
                biased;
                order = self.inbox.recv() => self.take_in(order, Some(handle)),
                _ = self.writes.join_next(), if !self.writes.is_empty() => {}
                () = released(&mut self.writer) => self.writer = None,
                () = sleep_until(due) => {}
                changed = state.wait_for(other) => if changed.is_err() { self.stopping = true },
            }
        }
    }

    fn show_captured(&self, now: &LogState) {
        self.show(match (&now.error, &now.away) {
            (Some(error), _) => CaptureState::Unwritten { why: error.to_string() },
            (None, Some(why)) => CaptureState::Away { why: why.to_string() },
            (None, None) => CaptureState::Captured,
        });
    }
}

/// Ten years: longer than any run, and short enough to be added to any instant.
const FAR: Duration = Duration::from_secs(3650 * 86_400);

/// Waits until the holder releases the right to send.
async fn released(writer: &mut Option<CurrentWriter>) {
    match writer {
        Some(writer) => writer.taken.closed().await,
        None => std::future::pending().await,
    }
}

fn words(end: Option<&TransportEnd>) -> String {
    match end {
        Some(TransportEnd::Broken(why)) => why.to_string(),
        Some(TransportEnd::Closed) | None => "its other end has closed it".to_owned(),
    }
}

impl CaptureSpec {
    /// Tells whether nothing but the limits differs.
    fn limits_only(&self, other: &Self) -> bool {
        *other == Self { limits: other.limits.clone(), ..self.clone() }
    }
}

impl GivenBack {
    /// A transport of which nothing is known to have been read.
    pub(super) fn whole(transport: Box<dyn Transport>) -> Self {
        Self { transport, first: Vec::new(), event: None, missing: false }
    }
}
