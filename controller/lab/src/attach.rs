//! Attaches to a console that is there already: captured by `jig serve`, or used by a run.
//!
//! Output is read from the logs, so that any number of readers, however slow, disturb neither the
//! transport nor each other. Input goes to the capture service, which has the transport.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jig_drivers::serial::capture_service::{CaptureServiceError, WriterClient, status, writer};
use jig_model::capture_service::{CaptureState, MOST_INPUT, WriterEvent, WriterOrder};
use jig_model::command::{
    AttachCommand, AttachFollow, AttachInput, CommandEvent, ConsoleLogEvent, ConsoleLogItem,
    ConsoleLogSource, EndedReply, EventSink, InputLoss, LineControlCommand, Reply,
};
use jig_model::rig_file::Place;
use jig_model::{ConsoleName, Fault, PlaceName, chain};
use jig_rig::capture_service::{LogFolder, Scroll, ScrollError, ScrollItem, ScrollSource};
use jig_rig::console::{RecordKind, TailItem};
use jig_rig::store::{RunEntry, RunStore};
use jig_rig::workflow::CancelToken;
use tokio::sync::mpsc;
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::console_name::console_of;
use crate::{CatalogueError, Lab, NoConsole};

/// Interval at which the logs are read: an answer seems immediate below some 50 ms.
const READ_INTERVAL: Duration = Duration::from_millis(20);

/// New files and runs are looked for at each such multiple of [`READ_INTERVAL`].
const READS_PER_SEARCH: u32 = 10;

/// Most bytes that are told at once; input is looked at in between.
const MOST_AT_ONCE: usize = 256 << 10;

/// Most runs under way among which one that uses the console is looked for, newest first.
const RUNS_LOOKED_AT: usize = 200;

/// How long the last input of a user who leaves may take: a target that takes input at all has
/// taken it by then.
const LAST_INPUT_TIMEOUT: Duration = Duration::from_secs(1);

/// How long the last piped input may take: as long as a lost transport is waited for by default.
const LAST_PIPED_INPUT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the capture service may take to tell its status.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Says why a command did not attach to a console, or was broken off.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The place or its board is not known.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// The board has no such console.
    #[error(transparent)]
    NoConsole(#[from] NoConsole),
    /// No process captures the console, so there is none that input could go to.
    #[error("no process captures {console} of place {place}")]
    NotCaptured {
        /// The place.
        place: PlaceName,
        /// The console.
        console: ConsoleName,
        /// Whether the board is emulated, so that only a run or a holder has a console.
        emulated: bool,
        /// Whether another process holds the board, so that none is booted instead.
        held: bool,
    },
    /// The capture service does not answer.
    #[error("jig serve did not answer within {} s", ANSWER_TIMEOUT.as_secs())]
    Unresponsive,
    /// The capture service cannot be talked to.
    #[error(transparent)]
    Service(#[from] CaptureServiceError),
    /// The capture service does not grant the right to send.
    #[error(transparent)]
    Input(CaptureServiceError),
    /// The capture service has ended before the line was controlled.
    #[error("jig serve has ended meanwhile")]
    ServiceEnded,
    /// The console's transport has no lines to control.
    #[error("{console} of place {place} has no modem lines{}", because(.key.as_deref()))]
    NoLines {
        /// The place.
        place: PlaceName,
        /// The console.
        console: ConsoleName,
        /// The key of its transport in the rig file; none where its port has no lines.
        key: Option<String>,
        /// The consoles of the place whose transport may have lines.
        with_lines: Vec<ConsoleName>,
    },
    /// The serial line was not controlled, for this reason, which may hold any text.
    #[error("the line was not controlled: {0}")]
    Line(String),
    /// A log cannot be read.
    #[error(transparent)]
    Log(#[from] ScrollError),
    /// The task that reads the logs panicked.
    #[error(transparent)]
    Task(#[from] JoinError),
    /// The caller cancelled while the capture service had not answered.
    #[error("cancelled before jig serve answered")]
    Cancelled,
}

impl AttachError {
    /// Says who is to blame.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Catalogue(error) => error.fault(),
            Self::NoConsole(_) | Self::NotCaptured { .. } | Self::NoLines { .. } => Fault::Usage,
            Self::Unresponsive
            | Self::Service(_)
            | Self::Input(_)
            | Self::ServiceEnded
            | Self::Line(_)
            | Self::Log(_) => Fault::Lab,
            Self::Task(_) => Fault::Bug,
            Self::Cancelled => Fault::Cancelled,
        }
    }
}

/// Says why a console has no lines: the kind of its transport.
fn because(key: Option<&str>) -> String {
    match key {
        Some(key) => format!(": its transport is a `{key}`"),
        None => ": its port has none".to_owned(),
    }
}

/// A console of a place.
struct PlaceConsole<'l> {
    lab: &'l Lab,
    place: Place,
    name: ConsoleName,
}

impl Lab {
    /// Tells what a console prints and sends input to it, until the input ends or the caller
    /// cancels. The input is taken once the command is attached.
    pub(crate) async fn attach(
        &self,
        command: AttachCommand,
        input: &mut Option<mpsc::Receiver<Vec<u8>>>,
        events: &dyn EventSink,
        cancel: &CancelToken,
    ) -> Result<Reply, AttachError> {
        // What is printed from here on belongs to the session, however long attaching takes.
        let since = began_at(Duration::from_millis(command.since_ms));
        let AttachCommand { place, console, follow, input: wanted, quiet_ms, .. } = command;
        let console = self.place_console(place, console)?;
        let writer = async {
            match wanted {
                AttachInput::None => {
                    if follow == AttachFollow::Captured {
                        console.has_source().await?;
                    }
                    Ok((None, None))
                }
                AttachInput::Send => console.writer_unless_lent(false).await,
                AttachInput::Take => console.writer_unless_lent(true).await,
            }
        };
        let (writer, loss) = tokio::select! {
            biased;
            writer = writer => writer?,
            () = cancel.cancelled() => return Err(AttachError::Cancelled),
        };
        let (attached, sends) = (console.name.clone(), writer.is_some());
        events.event(CommandEvent::ConsoleAttached { console: attached, sends });
        if let Some(loss) = loss {
            events.event(CommandEvent::InputLost { loss });
        }
        let quiet = Duration::from_millis(quiet_ms);
        let sender = InputSender { writer, ..InputSender::default() };
        let output = LogOutput::new(&console, since);
        let follow = follow != AttachFollow::Logged;
        let input = input.take().filter(|_| wanted != AttachInput::None);
        let session = AttachSession { events, output, follow, input, sender, quiet };
        tokio::select! {
            ended = session.run() => ended?,
            () = cancel.cancelled() => {}
        }
        Ok(Reply::Ended(EndedReply { place: console.place.name }))
    }

    /// Controls the serial line of a captured console, unless the caller cancels.
    pub(crate) async fn control_line(
        &self,
        command: LineControlCommand,
        events: &dyn EventSink,
        cancel: &CancelToken,
    ) -> Result<Reply, AttachError> {
        tokio::select! {
            biased;
            done = self.order_line(command, events) => done,
            () = cancel.cancelled() => Err(AttachError::Cancelled),
        }
    }

    async fn order_line(
        &self,
        command: LineControlCommand,
        events: &dyn EventSink,
    ) -> Result<Reply, AttachError> {
        let LineControlCommand { place, console, controls, take } = command;
        let console = self.place_console(place, console)?;
        let end = console.place.console(&console.name).map(|transport| &transport.end);
        if let Some(end) = end.filter(|end| !end.has_lines()) {
            return Err(console.no_lines(Some(end.key())));
        }
        console.captured().await?;
        let mut writer = console.writer(take).await?.ok_or(AttachError::ServiceEnded)?;
        for done in controls {
            writer.order(&WriterOrder::Line(done)).await?;
            match writer.event().await? {
                Some(WriterEvent::Done) => {}
                Some(WriterEvent::Unsupported) => return Err(console.no_lines(None)),
                Some(WriterEvent::Failed(why) | WriterEvent::Taken(why)) => {
                    return Err(AttachError::Line(why));
                }
                None => return Err(AttachError::ServiceEnded),
            }
            let (place, console) = (console.place.name.clone(), console.name.clone());
            events.event(CommandEvent::LineControlled { place, console, done });
        }
        Ok(Reply::Ended(EndedReply { place: console.place.name }))
    }

    fn place_console(
        &self,
        place: PlaceName,
        console: Option<ConsoleName>,
    ) -> Result<PlaceConsole<'_>, AttachError> {
        let (place, board) = self.catalogue.place(&place)?;
        let name = console_of(&board, console)?;
        Ok(PlaceConsole { lab: self, place, name })
    }
}

impl PlaceConsole<'_> {
    /// Returns the state of a console that is captured.
    async fn captured(&self) -> Result<CaptureState, AttachError> {
        let client = self.lab.catalogue.capture_client(&self.place.name);
        let all = timeout(ANSWER_TIMEOUT, status(&client)).await;
        let mut all = all.map_err(|_| AttachError::Unresponsive)??.into_iter().flatten();
        let ours = all.find(|at| at.place == self.place.name && at.console == self.name);
        ours.map(|ours| ours.state).ok_or_else(|| AttachError::NotCaptured {
            place: self.place.name.clone(),
            console: self.name.clone(),
            emulated: self.place.is_emulated(),
            held: client.socket != self.lab.catalogue.places().capture_socket(),
        })
    }

    /// Fails where neither the capture service nor a run reads the console, so that nothing would
    /// come.
    async fn has_source(&self) -> Result<(), AttachError> {
        let free = match self.captured().await {
            Err(free @ AttachError::NotCaptured { .. }) => free,
            // A service that does not answer may capture it all the same.
            Ok(_) | Err(_) => return Ok(()),
        };
        let runs = RunStore::new(self.lab.catalogue.runs_dir());
        let place = self.place.name.clone();
        let used = spawn_blocking(move || {
            let mut runs = runs.newest_first()?.filter(|run| run.live).take(RUNS_LOOKED_AT);
            let here = |run: RunEntry| {
                run.record.is_ok_and(|record| record.place.as_ref() == Some(&place))
            };
            Ok::<_, ScrollError>(runs.any(here))
        });
        if used.await?? { Ok(()) } else { Err(free) }
    }

    fn no_lines(&self, key: Option<&str>) -> AttachError {
        let others = self.place.consoles.iter().filter(|other| other.console != self.name);
        let with_lines = others.filter(|other| other.end.has_lines());
        AttachError::NoLines {
            place: self.place.name.clone(),
            console: self.name.clone(),
            key: key.map(str::to_owned),
            with_lines: with_lines.map(|other| other.console.clone()).collect(),
        }
    }

    async fn writer(&self, take: bool) -> Result<Option<WriterClient>, AttachError> {
        let client = self.lab.catalogue.capture_client(&self.place.name);
        writer(&client, &self.name, take).await.map_err(AttachError::Input)
    }

    /// Asks for the right to send, or says why there is none; a run keeps it.
    async fn writer_unless_lent(
        &self,
        take: bool,
    ) -> Result<(Option<WriterClient>, Option<InputLoss>), AttachError> {
        if let CaptureState::Lent { by } = self.captured().await? {
            return Ok((None, Some(InputLoss::Lent { by })));
        }
        let writer = self.writer(take).await?;
        let loss = writer.is_none().then_some(InputLoss::ServiceEnded);
        Ok((writer, loss))
    }
}

/// A command that is attached.
struct AttachSession<'a> {
    events: &'a dyn EventSink,
    output: LogOutput,
    /// Whether later output is waited for.
    follow: bool,
    /// The input, until it has ended.
    input: Option<mpsc::Receiver<Vec<u8>>>,
    sender: InputSender,
    /// How long the console must have been quiet after the end of the input.
    quiet: Duration,
}

impl AttachSession<'_> {
    async fn run(mut self) -> Result<(), AttachError> {
        let mut reads = interval(READ_INTERVAL);
        reads.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let takes_input = self.input.is_some();
        let mut ended: Option<Instant> = None;
        loop {
            if !self.output.tell(self.events).await? && !self.follow {
                return Ok(());
            }
            self.sender.send_next().await;
            if let Some(why) = self.sender.dropped.take() {
                self.events.event(CommandEvent::InputFailed { why: why.to_owned() });
            }
            let over = takes_input && self.input.is_none();
            if over && self.sender.is_idle() && self.output.last.elapsed() >= self.quiet {
                return Ok(());
            }
            // A target that takes no input must not hold a user who wants to leave, nor a script.
            let timeout =
                if self.quiet.is_zero() { LAST_INPUT_TIMEOUT } else { LAST_PIPED_INPUT_TIMEOUT };
            let late = ended.is_some_and(|at| at.elapsed() >= timeout);
            if late && !self.sender.is_idle() {
                let why = "the target takes no input".to_owned();
                self.events.event(CommandEvent::InputFailed { why });
                return Ok(());
            }
            let more = self.sender.unsent.is_empty();
            tokio::select! {
                _ = reads.tick() => {}
                bytes = received(&mut self.input), if more => match bytes {
                    Some(bytes) => self.sender.push(&bytes),
                    None => {
                        self.input = None;
                        // The answer to the last input is waited for.
                        self.output.last = Instant::now();
                        ended = Some(self.output.last);
                    }
                },
                event = self.sender.event() => {
                    if let Some(event) = event {
                        self.events.event(event);
                    }
                }
            }
        }
    }
}

/// Waits for input; without any left, for ever.
async fn received(input: &mut Option<mpsc::Receiver<Vec<u8>>>) -> Option<Vec<u8>> {
    match input {
        Some(input) => input.recv().await,
        None => std::future::pending().await,
    }
}

/// Sends input to the capture service, piece by piece.
#[derive(Default)]
struct InputSender {
    /// None without the right to send: input is then dropped.
    writer: Option<WriterClient>,
    unsent: VecDeque<Vec<u8>>,
    /// A piece is on its way.
    busy: bool,
    /// Why input was dropped, until that is told.
    dropped: Option<&'static str>,
}

impl InputSender {
    fn is_idle(&self) -> bool {
        !self.busy && self.unsent.is_empty()
    }

    fn push(&mut self, bytes: &[u8]) {
        if self.writer.is_some() {
            self.unsent.extend(bytes.chunks(MOST_INPUT).map(<[u8]>::to_vec));
        } else if !bytes.is_empty() {
            self.dropped = Some("this session has no right to send");
        }
    }

    async fn send_next(&mut self) {
        if !self.busy
            && let Some(writer) = &mut self.writer
            && let Some(bytes) = self.unsent.pop_front()
        {
            // A connection that has failed is seen by the next event.
            self.busy = writer.order(&WriterOrder::Send(bytes)).await.is_ok();
        }
    }

    /// Waits for the answer to a piece, or the end of the right to send. Cancel-safe.
    async fn event(&mut self) -> Option<CommandEvent> {
        let event = match &mut self.writer {
            Some(writer) => writer.event().await,
            None => std::future::pending().await,
        };
        let busy = std::mem::take(&mut self.busy);
        let loss = match event {
            Ok(Some(WriterEvent::Done)) => return None,
            Ok(Some(WriterEvent::Failed(why))) => return Some(CommandEvent::InputFailed { why }),
            Ok(Some(WriterEvent::Unsupported)) => {
                let why = "the transport takes no input".to_owned();
                return Some(CommandEvent::InputFailed { why });
            }
            Ok(Some(WriterEvent::Taken(by))) => InputLoss::Taken { by },
            Ok(None) => InputLoss::ServiceEnded,
            Err(error) => InputLoss::Failed { why: chain(&error) },
        };
        self.writer = None;
        if busy || !self.unsent.is_empty() {
            self.dropped = Some("the right to send was lost before it was sent");
        }
        self.unsent.clear();
        Some(CommandEvent::InputLost { loss })
    }
}

/// Returns the wall-clock time so long ago, in nanoseconds since the Unix epoch.
fn began_at(ago: Duration) -> i64 {
    let ago = i128::try_from(ago.as_nanos()).unwrap_or(i128::MAX);
    let at = jiff::Timestamp::now().as_nanosecond().saturating_sub(ago).max(0);
    i64::try_from(at).unwrap_or(i64::MAX)
}

/// The logs of a console as events.
struct LogOutput {
    /// Read on a thread where it may block: the logs may lie on a slow disk.
    scroll: Arc<Mutex<Scroll>>,
    reads: u32,
    /// When the last entry was told, or the input ended.
    last: Instant,
}

impl LogOutput {
    fn new(console: &PlaceConsole<'_>, since: i64) -> Self {
        let catalogue = &console.lab.catalogue;
        let folder = LogFolder::new(&catalogue.places(), &console.place.name, &console.name);
        let runs = RunStore::new(catalogue.runs_dir());
        let names = (console.place.name.clone(), console.name.clone());
        let scroll = Arc::new(Mutex::new(Scroll::new(folder, runs, names, since)));
        Self { scroll, reads: 0, last: Instant::now() }
    }

    /// Tells what has come; returns whether there was anything.
    async fn tell(&mut self, events: &dyn EventSink) -> Result<bool, AttachError> {
        let (scroll, look) =
            (Arc::clone(&self.scroll), self.reads.is_multiple_of(READS_PER_SEARCH));
        self.reads = self.reads.wrapping_add(1);
        let items = spawn_blocking(move || {
            let mut scroll = scroll.lock().unwrap_or_else(PoisonError::into_inner);
            if look {
                scroll.look()?;
            }
            scroll.read(MOST_AT_ONCE)
        });
        let items = items.await??;
        let any = !items.is_empty();
        if any {
            self.last = Instant::now();
        }
        for event in items.into_iter().filter_map(log_event) {
            events.event(CommandEvent::ConsoleLog(event));
        }
        Ok(any)
    }
}

/// Converts an entry of a log; none for one that is not about bytes.
fn log_event(ScrollItem { source, item }: ScrollItem) -> Option<ConsoleLogEvent> {
    let wall_ns = i128::from(item.stamp().wall_ns);
    let (offset, item) = match item {
        TailItem::Bytes { offset, bytes, .. } => (offset, ConsoleLogItem::Output { bytes }),
        TailItem::Mark(record) => {
            let item = match record.kind {
                RecordKind::Gap { lost, reason } => {
                    ConsoleLogItem::Gap { lost, reason: reason.as_str().to_owned() }
                }
                RecordKind::Garbled(count) => ConsoleLogItem::Garbled { count },
                RecordKind::Bytes(_)
                | RecordKind::Boot
                | RecordKind::Attached
                | RecordKind::Detached
                | RecordKind::Sent(_) => return None,
            };
            (record.offset, item)
        }
    };
    let source = match source {
        ScrollSource::Captured(file) => ConsoleLogSource::Captured { file },
        ScrollSource::Run(run, attempt) => ConsoleLogSource::Run { run, attempt },
    };
    // Each time that fits 64 bits of nanoseconds has a date.
    let at = jiff::Timestamp::from_nanosecond(wall_ns).unwrap_or_default();
    Some(ConsoleLogEvent { at, source, offset, item })
}
