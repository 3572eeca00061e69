//! All serial consoles of a place, while a run has them.

use std::sync::Arc;
use std::time::Duration;

use jig_model::ConsoleName;
use jig_model::capture_service::LoanPosition;
use jig_model::event::BoardEvent;
use jig_model::protocol::{BindContext, DriverError, LineControl, SharedSink};
use jig_model::rig_file::{ResetLine, ResetPart};
use tokio::time::sleep;

use super::console_port::ConsolePort;

/// How long bytes may be under way that a serial port has sent: most adapters hand on what
/// they have every 16 ms (FTDI, AN232B-04), and a hardware FIFO of 16 bytes takes 1.4 ms at
/// 115200 baud.
pub const UNDER_WAY: Duration = Duration::from_millis(20);

pub(super) struct ConsolePorts {
    ports: Vec<ConsolePort>,
    sink: SharedSink,
    /// The line that resets the board.
    line: Option<(ConsoleName, ResetLine)>,
    /// Whether the rig captures them.
    attached: bool,
}

impl ConsolePorts {
    pub(super) fn of(context: &BindContext) -> Self {
        let ports = context.profile.consoles.iter().filter_map(|console| {
            let transport = context.place.console(&console.name)?;
            Some(ConsolePort::new(transport, console.baud, Arc::clone(&context.ledger)))
        });
        let line = match context.place.reset_part() {
            Some(ResetPart::Line { console, line }) => Some((console, line)),
            _ => None,
        };
        Self { ports: ports.collect(), sink: Arc::clone(&context.sink), line, attached: false }
    }

    pub(super) fn is_attached(&self) -> bool {
        self.attached
    }

    /// Names the consoles, for messages.
    pub(super) fn names(&self) -> String {
        let names: Vec<&str> = self.ports.iter().map(|port| port.console.as_str()).collect();
        names.join(", ")
    }

    /// Opens the ports that are not open. A line that resets the board is released at once: most
    /// systems raise both lines of a port that is opened.
    pub(super) async fn open(&mut self) -> Result<(), DriverError> {
        let had_line =
            self.line.is_some() && self.ports.iter().any(|port| port.transport().is_some());
        for port in &mut self.ports {
            let (told, console) = (Arc::clone(&self.sink), port.console.clone());
            let told = Arc::new(move |lent: LoanPosition| {
                let (file, offset) = (lent.file, lent.offset);
                told.event(BoardEvent::TakenOver { console: console.clone(), file, offset });
            });
            port.open(told).await?;
        }
        if self.line.is_some() && !had_line {
            self.set_line(false).await?;
        }
        Ok(())
    }

    /// Hands the ports to the rig; what a board that is held in reset had printed before is no
    /// part of its log.
    pub(super) async fn attach(&mut self) {
        for port in &self.ports {
            if self.line.is_some() {
                sleep(UNDER_WAY).await;
                port.discard().await;
            }
            if let Some(transport) = port.transport() {
                self.sink.attach(&port.console, transport);
            }
        }
        self.attached = true;
    }

    /// Asserts or releases the line that resets the board. The other one is released: the usual
    /// circuit takes both together for neither.
    pub(super) async fn set_line(&self, asserted: bool) -> Result<(), DriverError> {
        let Some((console, line)) = &self.line else { return Ok(()) };
        let Some(port) = self.ports.iter().find(|port| port.console == *console) else {
            return Ok(());
        };
        let (other, line) = match line {
            ResetLine::Rts => (LineControl::Dtr(false), LineControl::Rts(asserted)),
            ResetLine::Dtr => (LineControl::Rts(false), LineControl::Dtr(asserted)),
        };
        port.control(other).await?;
        port.control(line).await
    }

    /// Begins to listen for text.
    pub(super) fn listen(&self) {
        self.ports.iter().for_each(ConsolePort::listen);
    }

    /// Tells whether any of them has shown text since.
    pub(super) fn heard(&self) -> bool {
        self.ports.iter().any(ConsolePort::heard)
    }

    /// Ends the transports, behind what is still in them.
    pub(super) async fn end(&mut self) {
        if self.line.is_some()
            && let Err(error) = self.set_line(false).await
        {
            tracing::debug!(%error, "the board's reset line was not released");
        }
        self.attached = false;
        self.ports.iter_mut().for_each(ConsolePort::end);
    }
}
