//! Attaching to a console that is there already: kept by `jig serve`, or used by a run.
//!
//! What is shown is read from the logs, so that any number of readers, however slow, disturb
//! neither the transport nor each other. What is typed goes to whoever keeps the transport.

use std::collections::VecDeque;
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use jig_drivers::serial::capture_service::{CaptureServiceError, WriterClient, status, writer};
use jig_lab::Catalogue;
use jig_model::capture_service::{CaptureState, MOST_INPUT, WriterEvent, WriterOrder};
use jig_model::protocol::LineControl;
use jig_model::rig_file::Place;
use jig_model::{ConsoleName, Fault, PlaceName, exit};
use jig_rig::capture_service::{LogFolder, Scroll, ScrollError, ScrollItem, Source};
use jig_rig::console::{Escaper, RecordKind, TailItem, escape};
use jig_rig::store::RunStore;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::{QUIET, RawTerminal, read_input, translate};
use crate::args::{AttachArgs, ConsoleArgs, Switch};
use crate::commands::execute::runtime;
use crate::failure::{Failure, chain};
use crate::render::Screen;

/// How far back to begin where nobody says so.
const BACK: Duration = Duration::from_secs(60);

/// How often the logs are looked at: an answer seems immediate below some 50 ms.
const LOOK: Duration = Duration::from_millis(20);

/// How many of these looks apart new files and runs are looked for.
const LOOKS_FOR_LOGS: u32 = 10;

/// Most bytes between two turns to the keyboard.
const AT_ONCE: usize = 256 << 10;

/// How long `jig serve` may take to say what it keeps.
const ANSWER: Duration = Duration::from_secs(5);

/// A console that somebody wants to attach to.
pub(super) struct Attach<'a> {
    pub(super) screen: &'a Screen,
    pub(super) catalogue: &'a Catalogue,
    pub(super) place: &'a PlaceName,
    pub(super) console: &'a ConsoleName,
    pub(super) args: &'a ConsoleArgs,
}

impl Attach<'_> {
    /// Attaches until the user ends it. Nothing where nobody keeps the console, and nothing
    /// was asked for that only a kept one has.
    pub(super) fn attach(&self) -> Result<Option<u8>, Failure> {
        let asked: &AttachArgs = &self.args.attach;
        let runtime = runtime()?;
        let outcome = runtime.block_on(async {
            let Some(state) = self.state().await? else {
                if !asked.wants_a_live_one() {
                    return Ok(None);
                }
                if !asked.listen_only {
                    let words =
                        format!("no process captures {} of place {}", self.console, self.place);
                    return Err(Failure::new(Fault::Usage, words).help(self.instead()));
                }
                return self.talk(None).await.map(Some);
            };
            let writer = self.writer(&state).await?;
            if asked.controls() {
                return self.control(writer).await.map(Some);
            }
            self.talk(writer).await.map(Some)
        });
        runtime.shutdown_background();
        outcome
    }

    /// Says what to do about a console that nobody keeps.
    fn instead(&self) -> String {
        let place = self.catalogue.rig.place(self.place.as_str());
        if place.is_ok_and(Place::is_emulated) {
            return format!(
                "an emulated board prints only while something runs it: jig console -b {} \
                 --image APP.elf; with --listen-only what its runs printed is shown",
                self.place
            );
        }
        "start `jig serve`; with --listen-only what was captured is shown all the same".to_owned()
    }

    /// Asks where the console stands; nothing where nobody keeps it.
    async fn state(&self) -> Result<Option<CaptureState>, Failure> {
        let client = self.catalogue.capture_client(self.place);
        let all = match timeout(ANSWER, status(&client)).await {
            Ok(all) => all.map_err(|error| refused(&error))?,
            Err(_) => {
                let words = format!("jig serve did not answer within {} s", ANSWER.as_secs());
                return Err(Failure::new(Fault::Lab, words).help("is it stopped? start it anew"));
            }
        };
        let mut all = all.into_iter().flatten();
        let ours = all.find(|at| at.place == *self.place && at.console == *self.console);
        Ok(ours.map(|ours| ours.state))
    }

    /// Asks for the right to send, where that is wanted and to be had.
    async fn writer(&self, state: &CaptureState) -> Result<Option<WriterClient>, Failure> {
        let asked = &self.args.attach;
        if asked.listen_only {
            return Ok(None);
        }
        if let CaptureState::Lent { by } = state
            && !asked.controls()
        {
            let by = escape(by.as_bytes());
            self.screen.say(&format!("{by} has the transport; what is typed goes nowhere"));
            return Ok(None);
        }
        let client = self.catalogue.capture_client(self.place);
        match writer(&client, self.console, asked.take).await {
            Ok(writer) => Ok(writer),
            Err(error) => {
                let failure = refused(&error);
                Err(match error {
                    CaptureServiceError::Refused(_) => failure
                        .help("listen with --listen-only, or take the right to send with --take"),
                    _ => failure,
                })
            }
        }
    }

    /// Does something to the line.
    async fn control(&self, writer: Option<WriterClient>) -> Result<u8, Failure> {
        let gone = || Failure::new(Fault::Lab, "jig serve has ended meanwhile");
        let mut writer = writer.ok_or_else(gone)?;
        let asked = &self.args.attach;
        let on = |switch: Switch| switch == Switch::On;
        let orders = [
            asked.dtr.map(|switch| LineControl::Dtr(on(switch))),
            asked.rts.map(|switch| LineControl::Rts(on(switch))),
            asked.send_break.then_some(LineControl::Break),
        ];
        for what in orders.into_iter().flatten() {
            writer.order(&WriterOrder::Line(what)).await.map_err(|error| refused(&error))?;
            match writer.event().await.map_err(|error| refused(&error))? {
                Some(WriterEvent::Done) => {}
                Some(WriterEvent::Failed(why) | WriterEvent::Taken(why)) => {
                    let words = format!("the line was not controlled: {why}");
                    return Err(Failure::new(Fault::Lab, escape(words.as_bytes())));
                }
                None => return Err(gone()),
            }
            if self.screen.json() {
                self.screen
                    .out_json(&json!({"place": self.place, "console": self.console, "done": what}));
            } else {
                let words = match what {
                    LineControl::Break => "a break was sent",
                    LineControl::Dtr(true) => "DTR is on",
                    LineControl::Dtr(false) => "DTR is off",
                    LineControl::Rts(true) => "RTS is on",
                    LineControl::Rts(false) => "RTS is off",
                };
                self.screen.say(words);
            }
        }
        Ok(exit::PASS)
    }

    /// Shows what is printed, and sends what is typed.
    async fn talk(&self, mut writer: Option<WriterClient>) -> Result<u8, Failure> {
        let asked = &self.args.attach;
        let follows = !asked.listen_only || asked.follow || asked.since.is_none();
        let mut view = View::new(self);
        let (input, mut typed) = mpsc::channel(4);
        let piped = !std::io::stdin().is_terminal();
        let terminal = match &writer {
            Some(_) if self.args.raw => RawTerminal::enter()?,
            _ => None,
        };
        if writer.is_some() {
            // A thread, because a blocking read cannot be taken back; it ends with the process.
            std::thread::spawn(move || read_input(|bytes| input.blocking_send(bytes).is_ok()));
            if !piped {
                self.screen.say(match terminal.is_some() {
                    true => "attached; Ctrl-] ends\r",
                    false => "attached; each line is sent when you press enter; Ctrl-D ends",
                });
            }
        }
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut unsent, mut busy, mut over) = (VecDeque::new(), false, false);
        loop {
            if !view.show()? && !follows {
                return Ok(exit::PASS);
            }
            if self.screen.closed() {
                return Ok(exit::PASS);
            }
            if !busy && let (Some(holder), Some(bytes)) = (&mut writer, unsent.pop_front()) {
                busy = holder.order(&WriterOrder::Send(bytes)).await.is_ok();
            }
            // After the end of the input, and of the answer to it, all is said.
            let said = over && !busy && unsent.is_empty();
            if said && (!piped || view.last.elapsed() >= QUIET) {
                return Ok(exit::PASS);
            }
            tokio::select! {
                _ = looks.tick() => {}
                some = typed.recv(), if writer.is_some() && !over && unsent.is_empty() => match some {
                    Some(bytes) => {
                        let (bytes, end) = translate(
                            bytes,
                            self.args.raw,
                            terminal.is_some(),
                            self.args.line_end.bytes(),
                        );
                        unsent.extend(bytes.chunks(MOST_INPUT).map(<[u8]>::to_vec));
                        if end {
                            return Ok(exit::PASS);
                        }
                    }
                    None => {
                        over = true;
                        view.last = Instant::now();
                    }
                },
                event = event_of(&mut writer) => {
                    busy = false;
                    let lost = match event {
                        Ok(Some(WriterEvent::Done)) => None,
                        Ok(Some(WriterEvent::Failed(why))) => {
                            let why = escape(why.as_bytes());
                            self.screen.insist(&format!("not all of it was sent: {why}"));
                            None
                        }
                        Ok(Some(WriterEvent::Taken(by))) => Some(format!("{by} may send now")),
                        Ok(None) => Some("jig serve has ended".to_owned()),
                        Err(error) => Some(chain(&error)),
                    };
                    if let Some(why) = lost {
                        let why = escape(why.as_bytes());
                        self.screen.insist(&format!("{why}; what is typed goes nowhere"));
                        writer = None;
                        unsent.clear();
                        over |= piped;
                    }
                }
            }
        }
    }
}

async fn event_of(
    writer: &mut Option<WriterClient>,
) -> Result<Option<WriterEvent>, CaptureServiceError> {
    match writer {
        Some(writer) => writer.event().await,
        None => std::future::pending().await,
    }
}

fn refused(error: &CaptureServiceError) -> Failure {
    Failure::new(Fault::Lab, escape(chain(error).as_bytes()))
}

/// What is shown of the logs.
struct View<'a> {
    at: &'a Attach<'a>,
    scroll: Scroll,
    escaper: Escaper,
    source: Option<Source>,
    turns: u32,
    /// When something was shown last.
    last: Instant,
}

impl<'a> View<'a> {
    fn new(at: &'a Attach<'a>) -> Self {
        let back = at.args.attach.since.unwrap_or(BACK);
        let now = jiff::Timestamp::now().as_nanosecond();
        let since = now.saturating_sub(i128::try_from(back.as_nanos()).unwrap_or(i128::MAX));
        let folder = LogFolder::new(&at.catalogue.places(), at.place, at.console);
        let runs = RunStore::new(at.catalogue.runs_dir());
        let names = (at.place.clone(), at.console.clone());
        let since = i64::try_from(since.max(0)).unwrap_or(i64::MAX);
        let scroll = Scroll::new(folder, runs, names, since);
        let (escaper, last) = (Escaper::default(), Instant::now());
        Self { at, scroll, escaper, source: None, turns: 0, last }
    }

    /// Shows what has come; tells whether there is more.
    fn show(&mut self) -> Result<bool, Failure> {
        let failed =
            |error: ScrollError| Failure::new(Fault::Lab, escape(chain(&error).as_bytes()));
        if self.turns.is_multiple_of(LOOKS_FOR_LOGS) {
            self.scroll.look().map_err(failed)?;
        }
        self.turns = self.turns.wrapping_add(1);
        let items = self.scroll.read(AT_ONCE).map_err(failed)?;
        let any = !items.is_empty();
        if any {
            self.last = Instant::now();
        }
        for item in items {
            self.put(item);
        }
        Ok(any)
    }

    fn put(&mut self, ScrollItem { source, item }: ScrollItem) {
        let screen = self.at.screen;
        if screen.json() {
            return self.put_json(&source, &item);
        }
        if self.source.as_ref() != Some(&source) {
            let before = self.source.replace(source.clone());
            match (before, &source) {
                (_, Source::Run(run, attempt)) => {
                    screen.say(&format!("[from here in attempt {attempt} of run {run}]"));
                }
                (Some(Source::Run(..)), Source::Captured(_)) => screen.say("[from here captured]"),
                (_, Source::Captured(_)) => {}
            }
        }
        match item {
            TailItem::Bytes { bytes, .. } if self.at.args.raw => screen.out_bytes(&bytes),
            TailItem::Bytes { bytes, .. } => {
                screen.out_bytes(self.escaper.escape(&bytes).as_bytes());
            }
            TailItem::Mark(record) => match record.kind {
                RecordKind::Gap { lost, reason } => {
                    let lost = lost.map_or_else(String::new, |lost| format!("{lost} "));
                    let why = reason.as_str();
                    screen.say(&format!("[{lost}bytes may be missing here: {why}]"));
                }
                RecordKind::Garbled(count) => {
                    screen.say(&format!("[{count} of the characters before may be wrong]"));
                }
                _ => {}
            },
        }
    }

    fn put_json(&self, source: &Source, item: &TailItem) {
        let at = jiff::Timestamp::from_nanosecond(i128::from(item.stamp().wall_ns)).ok();
        let mut line = match source {
            Source::Captured(file) => json!({"at": at, "file": file}),
            Source::Run(run, attempt) => json!({"at": at, "run": run, "attempt": attempt}),
        };
        let what = match item {
            TailItem::Bytes { offset, bytes, .. } => {
                json!({"offset": offset, "text": String::from_utf8_lossy(bytes)})
            }
            TailItem::Mark(record) => match record.kind {
                RecordKind::Gap { lost, reason } => {
                    json!({"offset": record.offset, "gap": reason.as_str(), "lost": lost})
                }
                RecordKind::Garbled(count) => {
                    json!({"offset": record.offset, "garbled": count})
                }
                _ => return,
            },
        };
        if let (Some(line), Some(what)) = (line.as_object_mut(), what.as_object()) {
            line.extend(what.clone());
        }
        self.at.screen.out_json(&line);
    }
}
