//! A second monitor, for the debugger: reset, memory map, and resets of the target's own.

use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::ANSWER;
use super::stream::{ChannelError, ChannelStream, quote};
use crate::OwnTimeout;

const NAME: &str = "monitor";

/// Longest message: the memory map of a machine has some ten thousand bytes.
const MAX_LINE: usize = 4 << 20;

/// How long a new emulator may take to greet, as for its first monitor.
const GREETING: Duration = Duration::from_secs(20);

/// Resets that happened since the last question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResetSeen {
    /// The target reset itself.
    pub by_target: bool,
    /// The host reset it: the board's owner, or another debugger.
    pub by_host: bool,
}

/// A connection to the monitor.
pub struct DebugMonitor {
    stream: ChannelStream,
    greeted: bool,
    seen: ResetSeen,
}

/// Something that the emulator can log of its core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogItem {
    /// The exceptions that it takes, and its resets.
    Exceptions,
    /// The instructions that it executes, each once.
    Code,
    /// Each block of instructions each time that it is entered; slow.
    Blocks,
}

impl LogItem {
    fn name(self) -> &'static str {
        match self {
            Self::Exceptions => "int,cpu_reset",
            Self::Code => "in_asm",
            // Blocks that are chained to each other would be told once.
            Self::Blocks => "exec,nochain",
        }
    }
}

impl DebugMonitor {
    pub(super) fn new(socket: UnixStream) -> Result<Self, ChannelError> {
        let stream = ChannelStream::new(socket, NAME, MAX_LINE)?;
        Ok(Self { stream, greeted: false, seen: ResetSeen::default() })
    }

    /// Resets the machine; returns when it is reset.
    ///
    /// # Errors
    /// The channel fails.
    pub fn system_reset(&mut self) -> Result<(), ChannelError> {
        self.resets()?;
        self.call("system_reset", &json!({}))?;
        let mut timeout = OwnTimeout::new(ANSWER);
        while !self.seen.by_host {
            self.hear(&mut timeout, "system_reset")?;
        }
        self.seen.by_host = false;
        Ok(())
    }

    /// Returns the resets since this was last asked, and forgets them.
    ///
    /// # Errors
    /// The channel fails.
    pub fn resets(&mut self) -> Result<ResetSeen, ChannelError> {
        while let Some(line) = self.line(&mut OwnTimeout::new(Duration::ZERO))? {
            self.note(&line);
        }
        Ok(std::mem::take(&mut self.seen))
    }

    /// Asks what people ask; returns what people read.
    ///
    /// # Errors
    /// The channel fails.
    pub fn ask(&mut self, command: &str) -> Result<String, ChannelError> {
        let answer = self.call("human-monitor-command", &json!({ "command-line": command }))?;
        Ok(answer.as_str().unwrap_or_default().to_owned())
    }

    /// Has the emulator log what its core does, and nothing else.
    ///
    /// # Errors
    /// The channel fails, or the emulator refuses.
    pub fn log(&mut self, items: &[LogItem]) -> Result<(), ChannelError> {
        let items: Vec<_> = items.iter().map(|item| item.name()).collect();
        let command = format!("log {}", items.join(","));
        match self.ask(&command)?.trim() {
            "" => Ok(()),
            answer => Err(ChannelError::Refused {
                channel: NAME,
                what: command,
                answer: quote(answer.as_bytes()),
            }),
        }
    }

    fn call(&mut self, command: &str, arguments: &Value) -> Result<Value, ChannelError> {
        if !self.greeted {
            self.send("qmp_capabilities", &json!({}))?;
            self.answer("qmp_capabilities", GREETING)?;
            self.greeted = true;
        }
        self.send(command, arguments)?;
        self.answer(command, ANSWER)
    }

    fn send(&mut self, command: &str, arguments: &Value) -> Result<(), ChannelError> {
        let mut line = json!({ "execute": command, "arguments": arguments }).to_string();
        line.push('\n');
        match self.stream.send(line.as_bytes(), &mut OwnTimeout::new(ANSWER))? {
            true => Ok(()),
            false => Err(late(command, ANSWER)),
        }
    }

    fn answer(&mut self, command: &str, timeout: Duration) -> Result<Value, ChannelError> {
        let mut timeout = OwnTimeout::new(timeout);
        loop {
            let Some(message) = self.hear(&mut timeout, command)? else { continue };
            if let Some(error) = message.get("error") {
                let answer = error.get("desc").and_then(Value::as_str).unwrap_or("no reason");
                return Err(ChannelError::Refused {
                    channel: NAME,
                    what: command.to_owned(),
                    answer: quote(answer.as_bytes()),
                });
            }
            if let Some(answer) = message.get("return") {
                return Ok(answer.clone());
            }
        }
    }

    /// Waits for a message; nothing if it was an event.
    fn hear(
        &mut self,
        timeout: &mut OwnTimeout,
        what: &str,
    ) -> Result<Option<Value>, ChannelError> {
        let line = self.line(timeout)?.ok_or_else(|| late(what, ANSWER))?;
        if self.note(&line) {
            return Ok(None);
        }
        let garbled = |_| ChannelError::Garbled { channel: NAME, answer: quote(&line) };
        serde_json::from_slice(&line).map(Some).map_err(garbled)
    }

    /// Takes in an event; tells whether it was one. Stops and runs of the machine are by far
    /// the most, and not worth being parsed.
    fn note(&mut self, line: &[u8]) -> bool {
        let has = |wanted: &[u8]| line.windows(wanted.len()).any(|window| window == wanted);
        if !has(b"\"event\"") || has(b"\"return\"") {
            return false;
        }
        if has(b"\"RESET\"")
            && let Ok(event) = serde_json::from_slice::<Value>(line)
            && event.get("event").and_then(Value::as_str) == Some("RESET")
        {
            let guest = event.pointer("/data/guest").and_then(Value::as_bool).unwrap_or(false);
            self.seen.by_target |= guest;
            self.seen.by_host |= !guest;
        }
        true
    }

    /// Takes the next line; nothing if none comes in time.
    fn line(&mut self, timeout: &mut OwnTimeout) -> Result<Option<Vec<u8>>, ChannelError> {
        let mut seen = 0;
        loop {
            let arrived = self.stream.arrived();
            if let Some(at) = arrived[seen..].iter().position(|&byte| byte == b'\n') {
                let line = arrived[..seen + at].to_vec();
                self.stream.take(seen + at + 1);
                return Ok(Some(line));
            }
            seen = arrived.len();
            if !self.stream.fill(timeout)? {
                return Ok(None);
            }
        }
    }
}

fn late(what: &str, timeout: Duration) -> ChannelError {
    ChannelError::TimedOut { channel: NAME, what: what.to_owned(), timeout }
}
