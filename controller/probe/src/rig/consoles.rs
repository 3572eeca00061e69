//! The consoles of a board behind a probe: RTT, between a target's rings and the transports of
//! captures; and semihosting, whose text the owner of the board hands in.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jig_model::ConsoleName;
use jig_model::profile::{BoardProfile, ConsoleKind};
use jig_model::protocol::SharedSink;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::deployed::Deployed;
use super::transport::{NearEnd, pair};
use crate::{DefmtDecoder, DefmtItem, ProbeError, ProbeHandle, RttBlock, RttError, TargetMemory};

/// How long rings are left alone that were empty, at first and at most: short enough for a
/// conversation, and rare enough for a probe on a slow bus.
const REST: Duration = Duration::from_millis(1);
const LONG_REST: Duration = Duration::from_millis(8);

/// Between two looks for a control block: at a known address it costs one read, elsewhere a
/// read of all RAM.
const LOOK: Duration = Duration::from_millis(4);
const SCAN: Duration = Duration::from_millis(20);
const LONG_SCAN: Duration = Duration::from_millis(500);

/// How defmt's own writers call their channel.
const DEFMT: &str = "defmt";

/// All consoles of a board that its probe's owner serves.
pub(super) struct ProbeConsoles {
    lines: Vec<RttConsole>,
    hosted: Option<Hosted>,
    /// How long bytes of the board's serial ports may be under way, if its place has some.
    under_way: Duration,
    evidence: PathBuf,
    bell: Arc<Notify>,
    decoder: Option<DefmtDecoder>,
    rings: Rings,
    rest: Duration,
    /// When to look at the rings again.
    due: Instant,
}

/// The console of a program that prints by semihosting.
struct Hosted {
    name: ConsoleName,
    near: Option<NearEnd>,
}

struct RttConsole {
    name: ConsoleName,
    channel: usize,
    near: Option<NearEnd>,
    /// This boot's program has no such channel to the host.
    silent: bool,
    /// The channel carries defmt frames.
    encoded: bool,
    /// The frames as they came.
    raw: Option<File>,
}

/// Where this boot's control block is, or where to look for it.
#[derive(Default)]
struct Rings {
    block: Option<RttBlock>,
    known: Option<u64>,
    ram: Vec<Range<u64>>,
    look_at: Option<Instant>,
    pause: Duration,
}

/// What is wanted of one channel.
struct Want {
    channel: usize,
    read: bool,
    input: Vec<u8>,
}

/// What one turn on the probe's thread has moved.
#[derive(Default)]
struct Turn {
    block: Option<RttBlock>,
    moved: Vec<Moved>,
}

#[derive(Default)]
struct Moved {
    got: Vec<u8>,
    sent: usize,
    silent: bool,
    deaf: Option<String>,
}

impl ProbeConsoles {
    /// Takes the RTT consoles of a board; of a real one also semihosting, which an emulator
    /// serves itself. `under_way` is how long bytes of serial ports beside it may be under way.
    pub(super) fn new(
        profile: &BoardProfile,
        real: bool,
        evidence: PathBuf,
        under_way: Duration,
    ) -> Self {
        let of_kind = |kind| profile.consoles.iter().filter(move |console| console.kind == kind);
        let hosted = of_kind(ConsoleKind::Semihosting).next().filter(|_| real);
        let lines = profile.consoles.iter().filter(|console| console.kind == ConsoleKind::Rtt);
        let lines = lines.map(|console| RttConsole {
            name: console.name.clone(),
            channel: console.channel as usize,
            near: None,
            silent: false,
            encoded: false,
            raw: None,
        });
        Self {
            lines: lines.collect(),
            hosted: hosted.map(|console| Hosted { name: console.name.clone(), near: None }),
            under_way,
            evidence,
            bell: Arc::default(),
            decoder: None,
            rings: Rings::default(),
            rest: REST,
            due: Instant::now(),
        }
    }

    /// Returns what is rung when there is input.
    pub(super) fn bell(&self) -> Arc<Notify> {
        Arc::clone(&self.bell)
    }

    /// Tells when to look at the rings again; never where the board has no such console.
    pub(super) fn due(&self) -> Option<Instant> {
        (!self.lines.is_empty()).then_some(self.due)
    }

    /// Reads the log of another image from now on.
    pub(super) fn speaks(&mut self, image: &Deployed) {
        self.decoder = image.defmt().map(DefmtDecoder::new);
    }

    /// Hands new transports to the rig.
    pub(super) fn attach(&mut self, sink: &SharedSink) {
        if let Some(hosted) = &mut self.hosted {
            let (near, far) = pair(Arc::clone(&self.bell));
            near.set_deaf(Some("semihosting takes no input here".to_owned()));
            hosted.near = Some(near);
            sink.attach(&hosted.name, far);
        }
        for line in &mut self.lines {
            let (near, far) = pair(Arc::clone(&self.bell));
            line.near = Some(near);
            sink.attach(&line.name, far);
        }
    }

    /// Tells whether a program may print by semihosting, and the capture has room for more.
    pub(super) fn hosts(&self) -> Option<bool> {
        let near = self.hosted.as_ref()?.near.as_ref()?;
        Some(near.has_room())
    }

    /// Takes what a program printed by semihosting.
    pub(super) fn hosted(&self, text: &[u8]) {
        if let Some(near) = self.hosted.as_ref().and_then(|hosted| hosted.near.as_ref()) {
            near.put(text);
        }
    }

    /// Lets arrive what a core that stands has sent by serial ports.
    pub(super) async fn arrived(&self) {
        if !self.under_way.is_zero() {
            tokio::time::sleep(self.under_way).await;
        }
    }

    /// A new boot begins: its rings are not known yet.
    pub(super) fn begin(&mut self, known: Option<u64>, ram: Vec<Range<u64>>) {
        self.flush();
        self.rings = Rings { known, ram, pause: SCAN, ..Rings::default() };
        self.rest = REST;
        self.due = Instant::now();
        for line in &mut self.lines {
            line.silent = false;
            if let Some(near) = &line.near {
                near.set_deaf(None);
            }
        }
    }

    /// The target has reset itself: its rings are made anew where they were.
    pub(super) fn begin_again(&mut self) {
        let Rings { known, ram, .. } = std::mem::take(&mut self.rings);
        self.begin(known, ram);
    }

    /// Ends the transports behind what they hold.
    pub(super) fn end(&mut self) {
        self.flush();
        for near in self.lines.iter_mut().filter_map(|line| line.near.take()) {
            near.end();
        }
        if let Some(near) = self.hosted.as_mut().and_then(|hosted| hosted.near.take()) {
            near.end();
        }
    }

    /// Tells of a frame that will never be complete.
    fn flush(&mut self) {
        let rest = self.decoder.as_mut().and_then(DefmtDecoder::finish);
        let line = self.lines.iter().find(|line| line.encoded);
        if let (Some(item), Some(near)) = (rest, line.and_then(|line| line.near.as_ref())) {
            near.put(text_of(item).as_bytes());
        }
    }

    /// Moves the bytes that wait on either side; fails only where the probe does.
    pub(super) async fn pump(&mut self, handle: &ProbeHandle) -> Result<(), ProbeError> {
        if self.lines.is_empty() {
            return Ok(());
        }
        let moved = self.turn(handle, Instant::now()).await?;
        self.rest = if moved { REST } else { (self.rest * 2).min(LONG_REST) };
        self.due = Instant::now() + self.rest;
        Ok(())
    }

    /// Empties the rings of a target that stands.
    pub(super) async fn empty(&mut self, handle: &ProbeHandle) -> Result<(), ProbeError> {
        if self.rings.block.is_none() && self.rings.known.is_none() {
            // All RAM was looked through before, and nothing was there.
            return Ok(());
        }
        self.rings.look_at = None;
        // A ring is emptied in one turn; the second finds what the first had no room for.
        for _ in 0..2 {
            if !self.turn(handle, Instant::now()).await? {
                break;
            }
        }
        Ok(())
    }

    async fn turn(&mut self, handle: &ProbeHandle, now: Instant) -> Result<bool, ProbeError> {
        let Rings { block, known, ram, look_at, pause } = &mut self.rings;
        let looks = block.is_none();
        if looks && look_at.is_some_and(|at| now < at) {
            return Ok(false);
        }
        let wants: Vec<Want> = self
            .lines
            .iter()
            .map(|line| Want {
                channel: line.channel,
                read: !line.silent && line.near.as_ref().is_some_and(NearEnd::has_room),
                input: line.near.as_ref().map(NearEnd::input).unwrap_or_default(),
            })
            .collect();
        let (had, at) = (block.take(), *known);
        let places = if looks { ram.clone() } else { Vec::new() };
        let turn = handle.rtt(move |memory| carry_out(memory, had, at, &places, &wants)).await;
        let turn = match turn {
            Ok(turn) => turn,
            Err(RttError::Memory(error)) => return Err(error),
            // The job has dealt with these.
            Err(RttError::Corrupted { .. } | RttError::NoChannel { .. }) => Turn::default(),
        };
        *block = turn.block;
        if block.is_none() {
            let (wait, longest) = if known.is_some() { (LOOK, LOOK) } else { (*pause, LONG_SCAN) };
            // On a slow probe a scan takes a second: nine tenths of the time are for others.
            let wait = wait.max(now.elapsed() * 9);
            *look_at = Some(Instant::now() + wait);
            *pause = (wait * 2).min(longest);
        } else if looks {
            self.found();
        }
        Ok(self.take_in(turn.moved))
    }

    /// Decides which console carries frames: the channel that says so, else the first one.
    fn found(&mut self) {
        let Some(block) = &self.rings.block else { return };
        let named = block.up.iter().position(|channel| channel.name == DEFMT);
        let encoded = self.decoder.as_ref().map(|_| named.unwrap_or(0));
        for line in &mut self.lines {
            line.encoded = encoded == Some(line.channel);
            if line.encoded && line.raw.is_none() {
                let path = self.evidence.join(format!("{}.defmt", line.name));
                let file = OpenOptions::new().append(true).create(true).open(&path);
                line.raw = file.inspect_err(|error| not_kept(&path, error)).ok();
            }
        }
    }

    fn take_in(&mut self, moved: Vec<Moved>) -> bool {
        let mut any = false;
        for (line, moved) in self.lines.iter_mut().zip(moved) {
            let Some(near) = &line.near else { continue };
            any |= !moved.got.is_empty() || moved.sent > 0;
            near.sent(moved.sent);
            if moved.deaf.is_some() {
                near.set_deaf(moved.deaf);
            }
            if moved.silent {
                tracing::info!(console = %line.name, "the program has no such channel");
                line.silent = true;
            }
            match self.decoder.as_mut().filter(|_| line.encoded) {
                Some(decoder) => {
                    if let Some(raw) = &mut line.raw
                        && let Err(error) = raw.write_all(&moved.got)
                    {
                        not_kept(&self.evidence, &error);
                        line.raw = None;
                    }
                    for item in decoder.push(&moved.got) {
                        near.put(text_of(item).as_bytes());
                    }
                }
                None => near.put(&moved.got),
            }
        }
        any
    }
}

fn not_kept(path: &std::path::Path, error: &std::io::Error) {
    tracing::warn!(path = %path.display(), %error, "the log's frames are not kept");
}

fn text_of(item: DefmtItem) -> String {
    match item {
        DefmtItem::Line(line) => format!("{line}\n"),
        DefmtItem::Broken { bytes } => format!("[{bytes} bytes are no defmt frame]\n"),
    }
}

/// Tells whether an error is a state of the target's memory and no failure of the probe: a
/// program that starts is in the middle of writing its block, one that has gone wrong may
/// have overwritten it.
fn passes(error: &RttError) -> bool {
    matches!(error, RttError::Corrupted { .. } | RttError::Memory(ProbeError::BusFault { .. }))
}

/// Finds the control block if it is not known, and moves what is wanted.
fn carry_out(
    memory: &mut dyn TargetMemory,
    block: Option<RttBlock>,
    known: Option<u64>,
    ram: &[Range<u64>],
    wants: &[Want],
) -> Result<Turn, RttError> {
    let found = match (block, known) {
        (Some(block), _) => Ok(Some(block)),
        (None, Some(address)) => RttBlock::at(memory, address),
        (None, None) => RttBlock::find(memory, ram),
    };
    let block = match found {
        Ok(Some(block)) => block,
        Ok(None) => return Ok(Turn::default()),
        Err(error) if passes(&error) => return Ok(Turn::default()),
        Err(error) => return Err(error),
    };
    let mut turn = Turn::default();
    for want in wants {
        let mut moved = Moved::default();
        let done = move_one(memory, &block, want, &mut moved);
        turn.moved.push(moved);
        match done {
            Ok(()) => {}
            // The block is looked for again; what was moved before counts.
            Err(error) if passes(&error) => return Ok(turn),
            Err(error) => return Err(error),
        }
    }
    turn.block = Some(block);
    Ok(turn)
}

fn move_one(
    memory: &mut dyn TargetMemory,
    block: &RttBlock,
    want: &Want,
    moved: &mut Moved,
) -> Result<(), RttError> {
    if want.read {
        match block.read(memory, want.channel, &mut moved.got) {
            Err(RttError::NoChannel { .. }) => moved.silent = true,
            read => drop(read?),
        }
    }
    if !want.input.is_empty() {
        match block.write(memory, want.channel, &want.input) {
            Err(error @ RttError::NoChannel { .. }) => moved.deaf = Some(error.to_string()),
            written => moved.sent = written?,
        }
    }
    Ok(())
}
