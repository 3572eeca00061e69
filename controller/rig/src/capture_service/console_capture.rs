//! The actor of one kept console: opens its transport, writes its log, and does what is asked.

use std::collections::VecDeque;
use std::mem::take;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use jig_model::capture_service::{CaptureState, CaptureStatus};
use jig_model::protocol::Transport;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::files::LogFolder;
use super::orders::{CaptureSpec, LoanRequest, OpenTransport, Order, ReleaseRequest};
use super::relay::GivenBack;
use crate::console::{Clock, Console, ConsoleHandle, GapReason, LogState, TransportEnd};

/// How long after a port or a file could not be opened it is tried again: soon enough for
/// whoever has just freed it, and a try costs next to nothing.
const RETRY: Duration = Duration::from_secs(1);

/// Tells whoever shows it that a console stands elsewhere now.
pub(super) type Tell = Arc<dyn Fn(&CaptureStatus) + Send + Sync>;

/// The log that is being written.
pub(super) struct Log {
    pub(super) console: Console,
    pub(super) number: u64,
    began: Instant,
    /// How many transports it was given.
    transports: u32,
}

/// Who may send.
pub(super) struct CurrentWriter {
    pub(super) id: u64,
    pub(super) by: String,
    pub(super) taken: oneshot::Sender<String>,
}

pub(super) struct ConsoleCapture {
    pub(super) spec: CaptureSpec,
    pub(super) folder: LogFolder,
    pub(super) opener: Arc<dyn OpenTransport>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) tell: Tell,
    pub(super) inbox: mpsc::Receiver<Order>,
    /// What writers send by. Weak, so that the inbox ends with its last handle.
    pub(super) orders: mpsc::WeakSender<Order>,
    pub(super) status: watch::Sender<CaptureStatus>,
    pub(super) lends: VecDeque<LoanRequest>,
    pub(super) let_gos: VecDeque<ReleaseRequest>,
    pub(super) changed: Option<CaptureSpec>,
    pub(super) again: bool,
    pub(super) stopping: bool,
    pub(super) log: Option<Log>,
    /// Bytes may be missing before the next transport.
    pub(super) missed: bool,
    pub(super) writer: Option<CurrentWriter>,
    pub(super) writers: u64,
    /// What writers are doing; each waits for its own, so they are few.
    pub(super) strokes: JoinSet<()>,
    /// When a log that cannot be written is given up for a new one.
    pub(super) fresh_at: Option<Instant>,
}

/// Why a transport is looked after no longer.
enum Turn {
    Stop,
    /// The transport has ended for good, in these words.
    Ended(String),
    /// It is to be closed and opened anew.
    Close,
    NextFile,
    Lend(LoanRequest),
}

impl ConsoleCapture {
    /// Keeps the console until it is told to stop, or nobody can tell it anything any more.
    pub(super) async fn run(mut self) {
        // What an earlier capture service's log ends with is not what comes first now.
        self.missed = self.folder.files().is_ok_and(|files| !files.is_empty());
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

    /// Says where it stands, where that is new.
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

    /// Opens the transport, however long that takes; nothing when told to stop.
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
            if !self.let_gos.is_empty() {
                // Whoever opens it meanwhile is not to meet this one.
                opening = None;
                self.let_go().await;
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
                    Err(why) => {
                        self.show(CaptureState::Waiting { why });
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

    /// Keeps closed what another program needs, until all who asked are done.
    async fn let_go(&mut self) {
        while let Some(ReleaseRequest { by, reply, mut until }) = self.let_gos.pop_front() {
            if reply.send(Ok(())).is_err() {
                continue;
            }
            self.missed = true;
            self.show(CaptureState::LetGo { by });
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

    /// Captures a transport until it is to be opened anew; tells whether it is.
    async fn capture(&mut self, transport: Box<dyn Transport>) -> bool {
        let mut given = Some(GivenBack::whole(transport));
        loop {
            let Some(handle) = self.ready().await else { return false };
            if let Some(GivenBack { transport, first, event, missing }) = given.take() {
                if take(&mut self.missed) || missing {
                    let _ = handle.gap(None, GapReason::Transport);
                }
                // It has room for controls, and it is not closed.
                let _ = handle.resume(transport, first, event);
                if let Some(log) = &mut self.log {
                    log.transports += 1;
                }
            }
            match self.watch(&handle).await {
                Turn::Stop => return false,
                Turn::Ended(why) => {
                    self.missed = true;
                    self.show(CaptureState::Gone { why });
                    return self.rest().await;
                }
                Turn::Close => {
                    drop(handle.release().await);
                    self.missed = true;
                    self.drop_writer("nobody: the transport is closed");
                    return true;
                }
                Turn::NextFile => given = self.next_file(&handle).await,
                Turn::Lend(ask) => {
                    given = self.lend(&handle, ask).await;
                    if self.stopping {
                        return false;
                    }
                }
            }
        }
    }

    /// Waits until a transport that has gone for good may be tried again; tells whether it may.
    async fn rest(&mut self) -> bool {
        loop {
            if self.stopping {
                return false;
            }
            if take(&mut self.again) || self.changed.is_some() || !self.let_gos.is_empty() {
                return true;
            }
            let gone = self.status.borrow().state.clone();
            if let CaptureState::Gone { why } = gone {
                for ask in self.lends.drain(..) {
                    let _ = ask.reply.send(Err(super::Refusal::Away(why.clone())));
                }
            }
            let order = self.inbox.recv().await;
            self.take_in(order, None);
        }
    }

    /// Makes sure that there is a log; nothing when told to stop.
    async fn ready(&mut self) -> Option<ConsoleHandle> {
        loop {
            if let Some(log) = &self.log {
                return Some(log.console.handle().clone());
            }
            match self.begin() {
                Ok(log) => self.log = Some(log),
                Err(why) => {
                    self.missed = true;
                    self.show(CaptureState::Unwritten { why });
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

    /// Begins the next file, and removes those that are too many.
    fn begin(&self) -> Result<Log, String> {
        let file = self.folder.next().map_err(|error| jig_model::chain(&error))?;
        let console = Console::start(&file.paths, Arc::clone(&self.clock));
        let console = console.map_err(|error| jig_model::chain(&error))?;
        for number in self.folder.prune(&self.spec.limits, SystemTime::now()) {
            tracing::info!(place = %self.spec.place, number, "an old console log was removed");
        }
        Ok(Log { console, number: file.number, began: Instant::now(), transports: 0 })
    }

    /// Goes on in a new file; returns the transport, unless all stays as it is.
    async fn next_file(&mut self, handle: &ConsoleHandle) -> Option<GivenBack> {
        self.fresh_at = Some(Instant::now() + RETRY);
        let log = match self.begin() {
            Ok(log) => log,
            Err(why) => {
                self.show(CaptureState::Unwritten { why });
                return None;
            }
        };
        let transport = handle.release().await.ok().flatten();
        if let Some(old) = self.log.replace(log) {
            // It is made durable in the background: the transport waits meanwhile.
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
            // It ended at that very moment, and is opened anew.
            None => {
                self.again = true;
                None
            }
        }
    }

    /// Looks after a transport until something is to be done with it.
    async fn watch(&mut self, handle: &ConsoleHandle) -> Turn {
        let mut state = handle.state();
        loop {
            if self.stopping {
                return Turn::Stop;
            }
            if let Some(spec) = self.changed.take_if(|spec| spec.limits_only(&self.spec)) {
                self.spec = spec;
            }
            if self.changed.is_some() || !self.let_gos.is_empty() {
                return Turn::Close;
            }
            let Some(log) = &self.log else { return Turn::Stop };
            let (transports, began) = (log.transports, log.began);
            let now = state.borrow_and_update().clone();
            let settled = now.transports >= transports;
            if transports == 0 || (settled && !now.attached) {
                if take(&mut self.again) {
                    return Turn::Close;
                }
                return Turn::Ended(words(now.ended.as_ref()));
            }
            self.again = false;
            let limits = &self.spec.limits;
            let (next, due) = if now.error.is_some() {
                (u64::MAX, self.fresh_at.unwrap_or_else(Instant::now))
            } else {
                // A write under way is not broken off, unless it goes on for ever.
                let busy = if self.strokes.is_empty() { 1 } else { 2 };
                let age = if now.len == 0 { FAR } else { limits.file_age };
                (limits.file_size.saturating_mul(busy), began + age)
            };
            if now.len >= next || Instant::now() >= due {
                return Turn::NextFile;
            }
            if settled && now.away.is_none() {
                self.lends.retain(|ask| !ask.reply.is_closed());
                if let Some(ask) = self.lends.pop_front() {
                    return Turn::Lend(ask);
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
                _ = self.strokes.join_next(), if !self.strokes.is_empty() => {}
                () = laid_down(&mut self.writer) => self.writer = None,
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

/// Longer than anything runs, and short enough to be added to any moment.
const FAR: Duration = Duration::from_secs(3650 * 86_400);

/// Waits until whoever has the writer gives it up.
async fn laid_down(writer: &mut Option<CurrentWriter>) {
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
