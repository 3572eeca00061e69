//! The qtest channel: true accesses to the machine's bus, whether it runs or stands.

use std::fmt::Write as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::ANSWER;
use super::stream::{ChannelError, ChannelStream, quote};
use crate::OwnTimeout;

const NAME: &str = "qtest";

/// Bytes of one bulk transfer; larger ones are cut.
const CHUNK: usize = 256 << 10;

/// Longest answer: a chunk in base64, and some words.
const MAX_LINE: usize = CHUNK / 3 * 4 + 64;

/// How wide an access is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// 8 bits.
    Byte,
    /// 16 bits.
    Half,
    /// 32 bits.
    Word,
}

impl Access {
    /// Returns how many bytes that is.
    pub fn bytes(self) -> usize {
        match self {
            Self::Byte => 1,
            Self::Half => 2,
            Self::Word => 4,
        }
    }

    fn letter(self) -> char {
        match self {
            Self::Byte => 'b',
            Self::Half => 'w',
            Self::Word => 'l',
        }
    }
}

/// What went over the channel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QtestStats {
    /// Commands sent.
    pub commands: u64,
    /// Writes to the socket that were followed by a wait for answers.
    pub trips: u64,
    /// Bytes of memory read and written.
    pub bytes: u64,
    /// Time spent waiting for answers.
    pub time: Duration,
}

/// A connection to the bus.
///
/// The emulator tells of no bus error here: reads of what is not mapped are zero, writes
/// are lost. A caller that needs to know asks the monitor what is mapped.
pub struct Qtest {
    stream: ChannelStream,
    stats: QtestStats,
}

/// How many accesses of a list are on their way at once: their answers fit a socket.
const AHEAD: usize = 64;

impl Qtest {
    pub(super) fn new(socket: UnixStream) -> Result<Self, ChannelError> {
        let stream = ChannelStream::new(socket, NAME, MAX_LINE)?;
        Ok(Self { stream, stats: QtestStats::default() })
    }

    /// Returns what went over the channel so far.
    pub fn stats(&self) -> QtestStats {
        self.stats
    }

    /// Reads one value.
    ///
    /// # Errors
    /// The channel fails.
    pub fn read(&mut self, address: u32, access: Access) -> Result<u32, ChannelError> {
        let mut value = [0];
        self.read_each(&[(address, access)], &mut value)?;
        Ok(value[0])
    }

    /// Reads values at several places, in order, as single accesses.
    ///
    /// # Errors
    /// The channel fails.
    pub fn read_each(
        &mut self,
        places: &[(u32, Access)],
        values: &mut [u32],
    ) -> Result<(), ChannelError> {
        for (places, values) in places.chunks(AHEAD).zip(values.chunks_mut(AHEAD)) {
            let mut text = String::new();
            for (address, access) in places {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "read{} {address:#x}", access.letter());
                self.stats.bytes += access.bytes() as u64;
            }
            self.send(text.as_bytes(), places.len())?;
            for value in values {
                let line = self.answer(&text)?;
                let digits = line.strip_prefix("0x").unwrap_or(&line);
                // A byte is told sign-extended to 64 bits by some machines; the low ones count.
                let parsed = u64::from_str_radix(digits, 16).map_err(|_| garbled(&line))?;
                *value = parsed as u32;
            }
        }
        Ok(())
    }

    /// Writes one value.
    ///
    /// # Errors
    /// The channel fails.
    pub fn write(&mut self, address: u32, access: Access, value: u32) -> Result<(), ChannelError> {
        self.write_each(&[(address, access, value)])
    }

    /// Writes values at several places, in order, as single accesses.
    ///
    /// # Errors
    /// The channel fails.
    pub fn write_each(&mut self, writes: &[(u32, Access, u32)]) -> Result<(), ChannelError> {
        for writes in writes.chunks(AHEAD) {
            let mut text = String::new();
            for (address, access, value) in writes {
                let _ = writeln!(text, "write{} {address:#x} {value:#x}", access.letter());
                self.stats.bytes += access.bytes() as u64;
            }
            self.send(text.as_bytes(), writes.len())?;
            for _ in writes {
                self.answer(&text)?;
            }
        }
        Ok(())
    }

    /// Reads plain memory in bulk.
    ///
    /// # Errors
    /// The channel fails.
    pub fn read_bytes(&mut self, address: u32, out: &mut [u8]) -> Result<(), ChannelError> {
        let mut at = address;
        for chunk in out.chunks_mut(CHUNK) {
            let text = format!("b64read {at:#x} {:#x}\n", chunk.len());
            self.send(text.as_bytes(), 1)?;
            let line = self.answer(&text)?;
            match STANDARD.decode_slice(&line, chunk) {
                Ok(count) if count == chunk.len() => {}
                _ => return Err(garbled(&line)),
            }
            self.stats.bytes += chunk.len() as u64;
            at = at.wrapping_add(chunk.len() as u32);
        }
        Ok(())
    }

    /// Writes plain memory in bulk.
    ///
    /// # Errors
    /// The channel fails.
    pub fn write_bytes(&mut self, address: u32, bytes: &[u8]) -> Result<(), ChannelError> {
        let mut at = address;
        for chunk in bytes.chunks(CHUNK) {
            let mut text = format!("b64write {at:#x} {:#x} ", chunk.len());
            STANDARD.encode_string(chunk, &mut text);
            text.push('\n');
            self.send(text.as_bytes(), 1)?;
            self.answer(&text)?;
            self.stats.bytes += chunk.len() as u64;
            at = at.wrapping_add(chunk.len() as u32);
        }
        Ok(())
    }

    fn send(&mut self, bytes: &[u8], commands: usize) -> Result<(), ChannelError> {
        let began = Instant::now();
        self.stats.commands += commands as u64;
        self.stats.trips += 1;
        let sent = self.stream.send(bytes, &mut OwnTimeout::new(ANSWER))?;
        self.stats.time += began.elapsed();
        if sent { Ok(()) } else { Err(late(bytes)) }
    }

    /// Waits for the answer to a command; returns what follows its `OK`.
    fn answer(&mut self, what: &str) -> Result<String, ChannelError> {
        let began = Instant::now();
        let mut timeout = OwnTimeout::new(ANSWER);
        let mut seen = 0;
        loop {
            let arrived = self.stream.arrived();
            if let Some(at) = arrived[seen..].iter().position(|&byte| byte == b'\n') {
                let end = seen + at;
                let line = String::from_utf8_lossy(&arrived[..end]).into_owned();
                self.stream.take(end + 1);
                self.stats.time += began.elapsed();
                return match line.strip_prefix("OK") {
                    Some(rest) => Ok(rest.trim().to_owned()),
                    // Interrupt lines are told only on request, and this client does not request
                    // them.
                    None => Err(ChannelError::Refused {
                        channel: NAME,
                        what: quote(what.trim_end().as_bytes()),
                        answer: quote(line.as_bytes()),
                    }),
                };
            }
            seen = arrived.len();
            if !self.stream.fill(&mut timeout)? {
                return Err(late(what.as_bytes()));
            }
        }
    }
}

fn late(what: &[u8]) -> ChannelError {
    ChannelError::TimedOut { channel: NAME, what: quote(what.trim_ascii_end()), timeout: ANSWER }
}

fn garbled(line: &str) -> ChannelError {
    ChannelError::Garbled { channel: NAME, answer: quote(line.as_bytes()) }
}
