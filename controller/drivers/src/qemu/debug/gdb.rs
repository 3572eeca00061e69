//! The gdb stub: run control, registers, breakpoints, and writes that no bus would allow.
//!
//! # Design
//! *Answers are matched by acknowledgements.* The stub sends `+` for each packet that it has taken
//! in, and the answer right behind it; a stop reply has none. So the packet behind a `+` answers the
//! oldest packet that was not acknowledged, and any other packet is a stop reply. A stop that comes
//! before the `+` of `c` or `s` belongs to a run that is over.
//!
//! *A machine that runs is stopped before each packet.* Another channel may let it run at any time,
//! and the first byte for a machine that runs stops it and is lost. That byte must not be the `$` of
//! a packet: the packet would have no answer.
//!
//! *Breakpoints that are set are known here.* The stub refuses to remove one that is not set, and a look
//! that was cut off leaves some. So what begins anew removes those that there are.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::ANSWER;
use super::stream::{ChannelError, ChannelStream, quote};
use crate::OwnTimeout;
use crate::process::RunTime;

const NAME: &str = "gdb";

/// Longest packet the stub sends: 4 KiB, each byte of which may be two.
const MAX_PACKET: usize = 64 << 10;

/// Bytes of memory in one write packet: the stub takes 4 KiB of text.
const WRITE_CHUNK: usize = 0x7c0;

/// Bytes of memory in one read packet: the stub refuses answers longer than its packets.
const READ_CHUNK: usize = 0x7c0;

/// Stops a machine that runs; a machine that stands ignores it. The stub ignores anything but a
/// command or an acknowledgement while a stop reply is not acknowledged; to a machine that runs,
/// that is itself a request to stop.
const STOP: &[u8] = b"+\x03";

/// Write packets on their way at once. Their answers, of 6 bytes each, never fill a socket.
const WRITES_AHEAD: usize = 16;

/// Shortest wait for a machine that has not had all its time yet.
const LEAST: Duration = Duration::from_millis(1);

/// Why the machine stopped, as far as the stub tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// It was asked to.
    Interrupted,
    /// A step is done, or a breakpoint was reached.
    Trapped,
    /// Anything else, such as a watchdog of the emulator.
    Other,
}

impl Stop {
    fn parse(packet: &[u8]) -> Option<Self> {
        match packet {
            [b'T' | b'S', b'0', b'2', ..] => Some(Self::Interrupted),
            [b'T' | b'S', b'0', b'5', ..] => Some(Self::Trapped),
            [b'T' | b'S', ..] => Some(Self::Other),
            _ => None,
        }
    }
}

/// Packets that are sent in one write, each answered by `OK`.
#[derive(Debug, Default)]
pub struct Packets {
    bytes: Vec<u8>,
    count: usize,
    /// Breakpoints, and whether they are set or removed.
    breakpoints: BTreeMap<u32, bool>,
}

impl Packets {
    /// Adds the write of a 32-bit register by its number in the stub.
    pub fn write_register(&mut self, number: u32, value: u32) {
        self.push(&format!("P{number:x}={:08x}", value.swap_bytes()));
    }

    /// Adds the write of a register that is not 32 bits wide; the bytes as in memory.
    pub fn write_wide_register(&mut self, number: u32, bytes: &[u8]) {
        self.push(&format!("P{number:x}={}", hex(bytes)));
    }

    /// Adds a hardware breakpoint on a 2-byte instruction, once: the stub would set a second one there.
    pub fn insert_breakpoint(&mut self, address: u32) {
        if self.breakpoints.insert(address, true) != Some(true) {
            self.push(&format!("Z1,{address:x},2"));
        }
    }

    /// Adds the removal of such a breakpoint.
    pub fn remove_breakpoint(&mut self, address: u32) {
        self.push(&format!("z1,{address:x},2"));
        self.breakpoints.insert(address, false);
    }

    /// Tells whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn push(&mut self, body: &str) {
        frame(&mut self.bytes, body.as_bytes());
        self.count += 1;
    }
}

/// What went over the channel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GdbStats {
    /// Packets sent.
    pub packets: u64,
    /// Writes to the socket that were followed by a wait for answers.
    pub trips: u64,
    /// Stop replies that no caller waited for.
    pub stray_stops: u64,
    /// Time spent waiting for answers, runs of the machine not counted.
    pub time: Duration,
}

/// What a packet on its way leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// An answer that the caller waits for.
    Answer,
    /// `OK`; the next call reports anything else.
    Ok,
    /// An answer that the caller has given up.
    Dropped,
    /// A run of the machine, which has no answer.
    Run,
}

/// What the stub sends.
#[derive(Debug, PartialEq, Eq)]
enum Incoming {
    Answer(Vec<u8>),
    Stop(Stop),
}

/// A connection to the stub.
pub struct Gdb {
    stream: ChannelStream,
    /// Packets that the stub has not acknowledged yet.
    sent: VecDeque<Expected>,
    /// The packet that was acknowledged last, and whose answer comes next.
    answering: Option<Expected>,
    /// Breakpoints that are set.
    breakpoints: BTreeSet<u32>,
    stats: GdbStats,
    /// The emulator, if it is known.
    pid: Option<i32>,
}

impl Gdb {
    pub(super) fn new(socket: UnixStream) -> Result<Self, ChannelError> {
        let stream = ChannelStream::new(socket, NAME, MAX_PACKET)?;
        let (sent, stats) = (VecDeque::new(), GdbStats::default());
        let breakpoints = BTreeSet::new();
        Ok(Self { stream, sent, answering: None, breakpoints, stats, pid: None })
    }

    /// Says which process the emulator is.
    pub(super) fn of_process(self, pid: i32) -> Self {
        Self { pid: Some(pid), ..self }
    }

    /// Returns what went over the channel so far.
    pub fn stats(&self) -> GdbStats {
        self.stats
    }

    /// Reads a document of the stub's register description. The stub reads no single
    /// register before it was asked for one.
    ///
    /// # Errors
    /// There is no such document, it is longer than 1 MiB, or the channel fails.
    pub fn description(&mut self, document: &str) -> Result<String, ChannelError> {
        let mut text = Vec::new();
        loop {
            let body = format!("qXfer:features:read:{document}:{:x},ffb", text.len());
            let answer = self.call(body.as_bytes())?;
            match answer.split_first() {
                Some((b'm', part)) if !part.is_empty() && text.len() < 1 << 20 => {
                    text.extend_from_slice(part);
                }
                Some((b'l', part)) => {
                    text.extend_from_slice(part);
                    return Ok(String::from_utf8_lossy(&text).into_owned());
                }
                _ => return Err(refused(body.as_bytes(), &answer)),
            }
        }
    }

    /// Reads the registers the stub gives at once, each of 32 bits: the first `N`.
    ///
    /// # Errors
    /// The stub gives fewer, or the channel fails.
    pub fn registers<const N: usize>(&mut self) -> Result<[u32; N], ChannelError> {
        let answer = self.call(b"g")?;
        let mut values = [0; N];
        for (value, text) in values.iter_mut().zip(answer.chunks_exact(8)) {
            let bytes = unhex(text).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
            *value = u32::from_le_bytes(bytes.ok_or_else(|| garbled(&answer))?);
        }
        if answer.len() < N * 8 {
            return Err(garbled(&answer));
        }
        Ok(values)
    }

    /// Reads one register by its number in the stub; the bytes as in memory.
    ///
    /// # Errors
    /// There is no such register, or the channel fails.
    pub fn register(&mut self, number: u32) -> Result<Vec<u8>, ChannelError> {
        let body = format!("p{number:x}");
        let answer = self.call(body.as_bytes())?;
        match unhex(&answer) {
            Some(bytes) if !bytes.is_empty() => Ok(bytes),
            _ => Err(refused(body.as_bytes(), &answer)),
        }
    }

    /// Sends packets and waits until all are done.
    ///
    /// # Errors
    /// One is refused, or the channel fails.
    pub fn perform(&mut self, packets: &Packets) -> Result<(), ChannelError> {
        if packets.is_empty() {
            return Ok(());
        }
        self.send(&packets.bytes, (Expected::Answer, packets.count))?;
        self.note_breakpoints(&packets.breakpoints);
        self.expect_ok(packets.count)
    }

    /// Removes all breakpoints that are set.
    ///
    /// # Errors
    /// The channel fails.
    pub fn remove_breakpoints(&mut self) -> Result<(), ChannelError> {
        while !self.breakpoints.is_empty() {
            let mut packets = Packets::default();
            self.breakpoints.iter().for_each(|&place| packets.remove_breakpoint(place));
            match self.perform(&packets) {
                // One was refused when it was to be set, or the packets of an earlier call were, and
                // nothing was sent.
                Err(ChannelError::Refused { .. }) | Ok(()) => {}
                failed => return failed,
            }
        }
        Ok(())
    }

    fn note_breakpoints(&mut self, breakpoints: &BTreeMap<u32, bool>) {
        for (place, set) in breakpoints {
            match set {
                true => self.breakpoints.insert(*place),
                false => self.breakpoints.remove(place),
            };
        }
    }

    /// Reads memory as the core sees it in its present state. The machine must stand.
    ///
    /// # Errors
    /// Nothing is mapped there, or the channel fails.
    pub fn read_memory(&mut self, address: u32, out: &mut [u8]) -> Result<(), ChannelError> {
        let mut at = address;
        for chunk in out.chunks_mut(READ_CHUNK) {
            let body = format!("m{at:x},{:x}", chunk.len());
            let answer = self.call(body.as_bytes())?;
            match unhex(&answer).filter(|bytes| bytes.len() == chunk.len()) {
                Some(bytes) => chunk.copy_from_slice(&bytes),
                None => return Err(refused(body.as_bytes(), &answer)),
            }
            at = at.wrapping_add(chunk.len() as u32);
        }
        Ok(())
    }

    /// Writes memory past whatever protects it: flash and ROM too. The machine must stand.
    ///
    /// # Errors
    /// Nothing is mapped there, or the channel fails.
    pub fn write_memory(&mut self, address: u32, bytes: &[u8]) -> Result<(), ChannelError> {
        let mut at = address;
        for group in bytes.chunks(WRITE_CHUNK * WRITES_AHEAD) {
            let mut packets = Packets::default();
            for chunk in group.chunks(WRITE_CHUNK) {
                let mut body = format!("M{at:x},{:x}:", chunk.len());
                push_hex(&mut body, chunk);
                packets.push(&body);
                at = at.wrapping_add(chunk.len() as u32);
            }
            self.perform(&packets)?;
        }
        Ok(())
    }

    /// Chooses what a step leaves out: interrupts and timers, or nothing.
    ///
    /// # Errors
    /// The channel fails.
    pub fn mask_interrupts_in_steps(&mut self, mask: bool) -> Result<(), ChannelError> {
        let body: &[u8] = if mask { b"Qqemu.sstep=7" } else { b"Qqemu.sstep=1" };
        match self.call(body)?.as_slice() {
            b"OK" => Ok(()),
            answer => Err(refused(body, answer)),
        }
    }

    /// Performs packets and lets the machine run, in one write. That a packet was refused is
    /// told by the next call: waiting for the answers would cost a wake-up.
    ///
    /// # Errors
    /// The channel fails.
    pub fn resume(&mut self, before: Packets) -> Result<(), ChannelError> {
        self.send_and_run(before, b"c")
    }

    /// Performs packets and executes one instruction, in one write. After `timeout` the
    /// instruction is given up, as one that waits for an interrupt must be.
    ///
    /// # Errors
    /// A packet is refused, or the channel fails.
    pub fn step(&mut self, before: Packets, timeout: Duration) -> Result<Stop, ChannelError> {
        self.send_and_run(before, b"s")?;
        let began = Instant::now();
        let stop = self.wait_while_it_runs(timeout)?;
        self.stats.time += began.elapsed();
        match stop {
            Some(stop) => Ok(stop),
            None => self.interrupt(),
        }
    }

    /// Waits for a running machine to stop; nothing if it has not within `timeout`.
    ///
    /// # Errors
    /// The channel fails.
    pub fn wait(&mut self, timeout: Duration) -> Result<Option<Stop>, ChannelError> {
        match self.incoming(&mut OwnTimeout::new(timeout))? {
            Some(Incoming::Stop(stop)) => Ok(Some(stop)),
            Some(Incoming::Answer(answer)) => Err(garbled(&answer)),
            None => Ok(None),
        }
    }

    /// Waits for a running machine to stop; nothing if it has not although its emulator had `time` to
    /// run it. On a busy host that takes longer.
    ///
    /// # Errors
    /// The emulator does not get that time, or the channel fails.
    pub fn wait_while_it_runs(&mut self, time: Duration) -> Result<Option<Stop>, ChannelError> {
        let Some(mut run) = self.pid.map(RunTime::of) else { return self.wait(time) };
        let began = Instant::now();
        let mut rest = time;
        loop {
            if let Some(stop) = self.wait(rest)? {
                return Ok(Some(stop));
            }
            let had = run.had();
            if had >= time {
                return Ok(None);
            }
            if began.elapsed() > time + ANSWER {
                return Err(late(b"run"));
            }
            rest = (time - had).max(LEAST);
        }
    }

    /// Stops a running machine.
    ///
    /// # Errors
    /// It does not stop, or the channel fails.
    pub fn interrupt(&mut self) -> Result<Stop, ChannelError> {
        let began = Instant::now();
        self.stats.trips += 1;
        if !self.stream.send(STOP, &mut OwnTimeout::new(ANSWER))? {
            return Err(late(b"interrupt"));
        }
        let stop = self.wait(ANSWER)?.ok_or_else(|| late(b"interrupt"))?;
        self.stats.time += began.elapsed();
        Ok(stop)
    }

    /// Makes the machine stand, whether it runs or was stopped by another channel.
    ///
    /// # Errors
    /// The channel fails.
    pub fn stand(&mut self) -> Result<(), ChannelError> {
        self.call(b"qAttached").map(drop)
    }

    /// Takes in what the stub said of a machine that others run, so that its end of the
    /// channel never fills.
    ///
    /// # Errors
    /// The channel fails.
    pub fn drain(&mut self) -> Result<(), ChannelError> {
        while self.incoming(&mut OwnTimeout::new(Duration::ZERO))?.is_some() {
            self.stats.stray_stops += 1;
        }
        Ok(())
    }

    fn call(&mut self, body: &[u8]) -> Result<Vec<u8>, ChannelError> {
        let mut bytes = Vec::with_capacity(body.len() + 4);
        frame(&mut bytes, body);
        let began = Instant::now();
        self.send(&bytes, (Expected::Answer, 1))?;
        let answer = self.answer(body)?;
        self.stats.time += began.elapsed();
        Ok(answer)
    }

    fn send_and_run(&mut self, before: Packets, body: &[u8]) -> Result<(), ChannelError> {
        let Packets { mut bytes, count, breakpoints } = before;
        frame(&mut bytes, body);
        self.send(&bytes, (Expected::Ok, count))?;
        self.note_breakpoints(&breakpoints);
        self.stats.packets += 1;
        self.sent.push_back(Expected::Run);
        Ok(())
    }

    /// Sends packets in one write; a machine that runs is stopped first. Stop replies that arrived
    /// before are dropped.
    fn send(
        &mut self,
        packets: &[u8],
        (expected, count): (Expected, usize),
    ) -> Result<(), ChannelError> {
        self.drain()?;
        self.stats.packets += count as u64;
        self.stats.trips += 1;
        let mut bytes = Vec::with_capacity(STOP.len() + packets.len());
        bytes.extend_from_slice(STOP);
        bytes.extend_from_slice(packets);
        self.sent.extend(std::iter::repeat_n(expected, count));
        match self.stream.send(&bytes, &mut OwnTimeout::new(ANSWER))? {
            true => Ok(()),
            false => {
                self.give_up();
                Err(late(packets))
            }
        }
    }

    fn expect_ok(&mut self, count: usize) -> Result<(), ChannelError> {
        let began = Instant::now();
        // All answers are read even if one refuses.
        let mut refusal = None;
        for _ in 0..count {
            let answer = self.answer(b"packets")?;
            if answer != b"OK" {
                refusal.get_or_insert(answer);
            }
        }
        self.stats.time += began.elapsed();
        refusal.map_or(Ok(()), |answer| Err(refused(b"packets", &answer)))
    }

    /// Waits for the next answer of the packets that were sent last.
    fn answer(&mut self, what: &[u8]) -> Result<Vec<u8>, ChannelError> {
        let mut timeout = OwnTimeout::new(ANSWER);
        loop {
            match self.incoming(&mut timeout) {
                Ok(Some(Incoming::Answer(answer))) => return Ok(answer),
                Ok(Some(Incoming::Stop(_))) => self.stats.stray_stops += 1,
                Ok(None) => {
                    self.give_up();
                    return Err(late(what));
                }
                Err(error) => {
                    self.give_up();
                    return Err(error);
                }
            }
        }
    }

    /// The caller waits no longer: answers that come later are dropped.
    fn give_up(&mut self) {
        for expected in self.sent.iter_mut().chain(&mut self.answering) {
            if *expected == Expected::Answer {
                *expected = Expected::Dropped;
            }
        }
    }

    /// Takes the next answer that is waited for, or the next stop reply of the present run.
    fn incoming(&mut self, timeout: &mut OwnTimeout) -> Result<Option<Incoming>, ChannelError> {
        loop {
            let Some((message, used)) = unframe(self.stream.arrived()) else {
                match self.stream.fill(timeout)? {
                    true => continue,
                    false => return Ok(None),
                }
            };
            let body = match message {
                Message::Taken => None,
                Message::Damaged => {
                    self.stream.take(used);
                    self.sent.pop_front();
                    return Err(garbled(b"-"));
                }
                Message::Packet(body) => Some(body.to_vec()),
            };
            self.stream.take(used);
            let Some(body) = body else {
                self.answering = self.sent.pop_front().filter(|sent| *sent != Expected::Run);
                continue;
            };
            if let Some(b'W' | b'X') = body.first() {
                // The program ended, and with it the emulator.
                return Err(ChannelError::Closed { channel: NAME });
            }
            match self.answering.take() {
                Some(Expected::Answer) => return Ok(Some(Incoming::Answer(body))),
                Some(Expected::Ok) if body != b"OK" => return Err(refused(b"packets", &body)),
                Some(_) => {}
                None => {
                    let stop = Stop::parse(&body).ok_or_else(|| garbled(&body))?;
                    if !self.sent.contains(&Expected::Run) {
                        return Ok(Some(Incoming::Stop(stop)));
                    }
                    self.stats.stray_stops += 1;
                }
            }
        }
    }
}

/// Appends `$body#checksum`.
fn frame(out: &mut Vec<u8>, body: &[u8]) {
    let sum = body.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    out.push(b'$');
    out.extend_from_slice(body);
    out.push(b'#');
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0') as u8;
    out.extend_from_slice(&[digit(sum >> 4), digit(sum & 15)]);
}

/// One message of the stub.
#[derive(Debug, PartialEq, Eq)]
enum Message<'a> {
    /// A packet was taken in.
    Taken,
    /// A packet arrived damaged, and will have no answer.
    Damaged,
    /// The body of a packet.
    Packet(&'a [u8]),
}

/// Finds the first whole message; returns it and how many bytes it ends after. The socket loses
/// nothing, so the checksum is not looked at.
fn unframe(bytes: &[u8]) -> Option<(Message<'_>, usize)> {
    let start = bytes.iter().position(|byte| matches!(byte, b'+' | b'-' | b'$'))?;
    match bytes[start] {
        b'+' => Some((Message::Taken, start + 1)),
        b'-' => Some((Message::Damaged, start + 1)),
        _ => {
            let body = start + 1;
            let end = body + memchr(b'#', &bytes[body..])?;
            (bytes.len() >= end + 3).then(|| (Message::Packet(&bytes[body..end]), end + 3))
        }
    }
}

fn memchr(wanted: u8, bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|&byte| byte == wanted)
}

fn push_hex(out: &mut String, bytes: &[u8]) {
    out.reserve(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(out, "{byte:02x}");
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut out = String::new();
    push_hex(&mut out, bytes);
    out
}

fn unhex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = text.chunks(2).map(|pair| match pair {
        [high, low] => u8::try_from(digit(*high)? << 4 | digit(*low)?).ok(),
        _ => None,
    });
    pairs.collect()
}

fn late(what: &[u8]) -> ChannelError {
    ChannelError::TimedOut { channel: NAME, what: quote(what), timeout: ANSWER }
}

fn refused(what: &[u8], answer: &[u8]) -> ChannelError {
    ChannelError::Refused { channel: NAME, what: quote(what), answer: quote(answer) }
}

fn garbled(answer: &[u8]) -> ChannelError {
    ChannelError::Garbled { channel: NAME, answer: quote(answer) }
}
