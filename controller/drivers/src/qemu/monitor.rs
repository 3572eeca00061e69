//! QEMU's machine protocol (QMP): commands out, answers and events in.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::pauses::{EventTime, Pauses};
use crate::OwnTimeout;

/// Says why the monitor is of no use any more.
#[derive(Debug, thiserror::Error)]
pub(super) enum MonitorError {
    /// The emulator closed it: it has ended, or is about to.
    #[error("the monitor was closed")]
    Closed,
    /// No answer in time.
    #[error("the monitor did not answer {command} within {after:?}")]
    TimedOut {
        /// The command.
        command: &'static str,
        /// How long was waited.
        after: Duration,
    },
    /// It refused.
    #[error("the monitor refused {command}: {reason}")]
    Refused {
        /// The command.
        command: &'static str,
        /// Its own words.
        reason: QmpError,
    },
    /// It cannot be understood or reached.
    #[error("the monitor cannot be used")]
    Io(#[from] io::Error),
}

/// An event of the machine that Jig cares about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MachineEvent {
    /// The machine was reset.
    Reset { by_guest: bool, reason: String },
    /// The machine is about to end.
    Shutdown { by_guest: bool, reason: String },
    /// A watchdog fired.
    Watchdog { action: String },
    /// The guest said that it panicked.
    Panicked { detail: String },
}

/// What arrived.
#[derive(Debug)]
pub(super) enum Arrival {
    /// An event.
    Event(MachineEvent),
    /// The answer to a command by its id.
    Answer { id: u64, result: Result<Value, QmpError> },
}

/// Longest message: an answer to what Jig asks has a few hundred bytes, and the longest
/// event (a panic with its registers) a few thousand.
const MAX_LINE: usize = 1 << 20;

/// A connection to the monitor, past its greeting.
pub(super) struct Monitor {
    read: BufReader<OwnedReadHalf>,
    /// The message that has arrived in part; kept here so that a dropped read loses nothing.
    line: Vec<u8>,
    write: OwnedWriteHalf,
    next_id: u64,
    /// Events that arrived while an answer was awaited.
    early: VecDeque<MachineEvent>,
    pauses: Pauses,
}

#[derive(Deserialize)]
struct RawMessage {
    id: Option<u64>,
    #[serde(rename = "return")]
    answer: Option<Value>,
    error: Option<QmpError>,
    event: Option<String>,
    #[serde(default)]
    data: Value,
    #[serde(default)]
    timestamp: EventTime,
}

/// The emulator's own words for why it does not do as asked.
#[derive(Debug, Deserialize, thiserror::Error)]
#[error("{desc}")]
pub(super) struct QmpError {
    desc: String,
}

impl Monitor {
    /// Greets a new emulator.
    ///
    /// # Errors
    /// The emulator ended first, or did not answer by the deadline.
    pub(super) async fn greet(stream: UnixStream, timeout: Duration) -> Result<Self, MonitorError> {
        let (read, write) = stream.into_split();
        let (read, line) = (BufReader::new(read), Vec::new());
        let (early, pauses) = (VecDeque::new(), Pauses::default());
        let mut monitor = Self { read, line, write, next_id: 0, early, pauses };
        // Written before the greeting has come: it waits in the socket and saves a round trip.
        monitor.call("qmp_capabilities", timeout).await?;
        Ok(monitor)
    }

    /// Sends a command without waiting for its answer; returns its id.
    ///
    /// Gives up after a while: an emulator that has stopped reads nothing, and a caller that waited
    /// for room in the socket could not even take its power.
    pub(super) async fn ask(
        &mut self,
        command: &'static str,
        timeout: Duration,
    ) -> Result<u64, MonitorError> {
        let late = || MonitorError::TimedOut { command, after: timeout };
        let sent = OwnTimeout::new(timeout).limit(self.send(command, &Value::Null)).await;
        sent.ok_or_else(late)?
    }

    async fn send(&mut self, command: &str, arguments: &Value) -> Result<u64, MonitorError> {
        let id = self.next_id;
        self.next_id += 1;
        let mut request = json!({ "execute": command, "id": id });
        if !arguments.is_null() {
            request["arguments"] = arguments.clone();
        }
        let mut line = request.to_string();
        line.push('\n');
        match self.write.write_all(line.as_bytes()).await {
            Ok(()) => Ok(id),
            // It has ended a moment before the end could be read.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(MonitorError::Closed),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends a command and waits for its answer; events that arrive meanwhile are kept.
    pub(super) async fn call(
        &mut self,
        command: &'static str,
        timeout: Duration,
    ) -> Result<Value, MonitorError> {
        self.call_with(command, &Value::Null, timeout).await
    }

    /// As [`Self::call`], with arguments.
    pub(super) async fn call_with(
        &mut self,
        command: &'static str,
        arguments: &Value,
        timeout: Duration,
    ) -> Result<Value, MonitorError> {
        let mut limit = OwnTimeout::new(timeout);
        let late = || MonitorError::TimedOut { command, after: timeout };
        let wanted = limit.limit(self.send(command, arguments)).await.ok_or_else(late)??;
        loop {
            match limit.limit(self.read()).await.ok_or_else(late)?? {
                Arrival::Event(event) => self.early.push_back(event),
                Arrival::Answer { id, result } if id == wanted => {
                    return result.map_err(|reason| MonitorError::Refused { command, reason });
                }
                Arrival::Answer { .. } => {}
            }
        }
    }

    /// Waits for an event that satisfies a condition; other events are kept.
    pub(super) async fn wait_for(
        &mut self,
        what: &'static str,
        timeout: Duration,
        wanted: impl Fn(&MachineEvent) -> bool,
    ) -> Result<(), MonitorError> {
        if let Some(at) = self.early.iter().position(&wanted) {
            self.early.remove(at);
            return Ok(());
        }
        let mut limit = OwnTimeout::new(timeout);
        let late = || MonitorError::TimedOut { command: what, after: timeout };
        loop {
            match limit.limit(self.read()).await.ok_or_else(late)?? {
                Arrival::Event(event) if wanted(&event) => return Ok(()),
                Arrival::Event(event) => self.early.push_back(event),
                Arrival::Answer { .. } => {}
            }
        }
    }

    /// Returns when the machine has stood since it was launched, as far as was read.
    pub(super) fn pauses(&self) -> &Pauses {
        &self.pauses
    }

    /// Returns the events that arrived while something else was awaited.
    pub(super) fn take_early(&mut self) -> VecDeque<MachineEvent> {
        std::mem::take(&mut self.early)
    }

    /// Returns what arrives next. Cancel-safe.
    pub(super) async fn next(&mut self) -> Result<Arrival, MonitorError> {
        match self.early.pop_front() {
            Some(event) => Ok(Arrival::Event(event)),
            None => self.read().await,
        }
    }

    /// Reads up to the end of a line. Cancel-safe.
    async fn fill_line(&mut self) -> Result<(), MonitorError> {
        loop {
            let arrived = match self.read.fill_buf().await {
                Ok([]) => return Err(MonitorError::Closed),
                Ok(arrived) => arrived,
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    return Err(MonitorError::Closed);
                }
                Err(error) => return Err(error.into()),
            };
            let end = arrived.iter().position(|&byte| byte == b'\n');
            let used = end.map_or(arrived.len(), |at| at + 1);
            self.line.extend_from_slice(&arrived[..used]);
            self.read.consume(used);
            if end.is_some() {
                return Ok(());
            }
            if self.line.len() > MAX_LINE {
                let why = format!("a message of over {MAX_LINE} bytes");
                return Err(io::Error::new(io::ErrorKind::InvalidData, why).into());
            }
        }
    }

    async fn read(&mut self) -> Result<Arrival, MonitorError> {
        loop {
            self.fill_line().await?;
            let message = serde_json::from_slice(&self.line).map_err(io::Error::other);
            self.line.clear();
            let message: RawMessage = message?;
            // Not arrivals: a debugger causes thousands a second.
            match message.event.as_deref() {
                Some("STOP") => self.pauses.begin(message.timestamp.happened()),
                Some("RESUME") => self.pauses.end(message.timestamp.happened()),
                _ => {}
            }
            if let Some(arrival) = understand(message) {
                return Ok(arrival);
            }
        }
    }
}

/// Sorts a message; the greeting and unused events are nothing.
fn understand(message: RawMessage) -> Option<Arrival> {
    let RawMessage { id, answer, error, event, data, .. } = message;
    if let (Some(id), Some(error)) = (id, error) {
        return Some(Arrival::Answer { id, result: Err(error) });
    }
    if let (Some(id), Some(answer)) = (id, answer) {
        return Some(Arrival::Answer { id, result: Ok(answer) });
    }
    let text = |key: &str| data.get(key).and_then(Value::as_str).unwrap_or("unknown").to_owned();
    let by_guest = data.get("guest").and_then(Value::as_bool).unwrap_or(false);
    let event = match event?.as_str() {
        "RESET" => MachineEvent::Reset { by_guest, reason: text("reason") },
        "SHUTDOWN" => MachineEvent::Shutdown { by_guest, reason: text("reason") },
        "WATCHDOG" => MachineEvent::Watchdog { action: text("action") },
        "GUEST_PANICKED" => MachineEvent::Panicked { detail: data.to_string() },
        _ => return None,
    };
    Some(Arrival::Event(event))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    /// Far longer than anything here can take.
    const MINUTE: Duration = Duration::from_secs(60);

    async fn monitor_of(script: &str) -> Result<Monitor, MonitorError> {
        let (near, mut far) = UnixStream::pair().unwrap();
        far.write_all(script.as_bytes()).await.unwrap();
        far.shutdown().await.unwrap();
        let monitor = Monitor::greet(near, MINUTE).await;
        let mut asked = String::new();
        drop(far.read_to_string(&mut asked));
        monitor
    }

    #[tokio::test]
    async fn events_that_come_early_are_kept_in_order() {
        let mut monitor = monitor_of(concat!(
            r#"{"QMP": {"version": {}}}"#,
            "\n",
            r#"{"event": "WATCHDOG", "data": {"action": "reset"}}"#,
            "\n",
            r#"{"event": "NIC_RX_FILTER_CHANGED"}"#,
            "\n",
            r#"{"return": {}, "id": 0}"#,
            "\n",
            r#"{"event": "RESET", "data": {"guest": true, "reason": "guest-reset"}}"#,
            "\n",
        ))
        .await
        .unwrap();
        let first = monitor.next().await.unwrap();
        assert!(matches!(first, Arrival::Event(MachineEvent::Watchdog { .. })), "{first:?}");
        let second = monitor.next().await.unwrap();
        assert!(matches!(second, Arrival::Event(MachineEvent::Reset { by_guest: true, .. })));
        assert!(matches!(monitor.next().await, Err(MonitorError::Closed)));
    }

    #[tokio::test]
    async fn a_message_survives_a_read_that_is_dropped() {
        let (near, mut far) = UnixStream::pair().unwrap();
        far.write_all(b"{\"return\": {}, \"id\": 0}\n{\"event\": \"WATCH").await.unwrap();
        let mut monitor = Monitor::greet(near, MINUTE).await.unwrap();
        // Until the first half was read, however late that is.
        while monitor.line.is_empty() {
            let early = tokio::time::timeout(Duration::from_millis(1), monitor.next()).await;
            assert!(early.is_err());
        }
        far.write_all(b"DOG\", \"data\": {\"action\": \"reset\"}}\n").await.unwrap();
        let arrival = monitor.next().await.unwrap();
        assert!(matches!(arrival, Arrival::Event(MachineEvent::Watchdog { .. })), "{arrival:?}");
    }

    #[tokio::test]
    async fn an_emulator_that_reads_nothing_is_given_up() {
        let (near, mut far) = UnixStream::pair().unwrap();
        far.write_all(b"{\"return\": {}, \"id\": 0}\n").await.unwrap();
        let mut monitor = Monitor::greet(near, MINUTE).await.unwrap();
        let error = loop {
            if let Err(error) = monitor.ask("query-status", Duration::from_millis(20)).await {
                break error;
            }
        };
        assert!(matches!(error, MonitorError::TimedOut { .. }), "{error:?}");
    }

    #[tokio::test]
    async fn asking_an_emulator_that_has_ended_is_no_fault_of_the_monitor() {
        let (near, mut far) = UnixStream::pair().unwrap();
        far.write_all(b"{\"return\": {}, \"id\": 0}\n").await.unwrap();
        let mut monitor = Monitor::greet(near, MINUTE).await.unwrap();
        drop(far);
        let asked = monitor.ask("query-status", MINUTE).await;
        assert!(matches!(asked, Err(MonitorError::Closed)), "{asked:?}");
    }

    #[tokio::test]
    async fn an_endless_message_is_refused() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let flood = async {
            let chunk = [b'x'; 64 << 10];
            while far.write_all(&chunk).await.is_ok() {}
        };
        let greeting = Monitor::greet(near, MINUTE);
        let greeted = tokio::select! { greeted = greeting => greeted, () = flood => panic!() };
        assert!(matches!(greeted.err(), Some(MonitorError::Io(_))));
    }

    #[tokio::test]
    async fn refusals_and_nonsense_are_errors() {
        let refusal = r#"{"id": 0, "error": {"class": "X", "desc": "no"}}"#.to_owned() + "\n";
        assert!(matches!(monitor_of(&refusal).await, Err(MonitorError::Refused { .. })));
        assert!(matches!(monitor_of("not json\n").await, Err(MonitorError::Io(_))));
        assert!(matches!(monitor_of("").await, Err(MonitorError::Closed)));
    }
}
