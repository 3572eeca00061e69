//! Power senses: what sees the power of a board beside the device that switches it.
//!
//! # Design
//! *Only what is seen contradicts.* A board that prints or answers has power, whatever its outlet
//! says. One that is silent agrees with "off", but contradicts no "on": firmware hangs, plugs come
//! loose, and the next user of the board reports that with a more exact cause.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use jig_model::ConsoleName;
use jig_model::power::{PlaceSense, PowerDevice, SenseOutlet};
use jig_model::profile::BoardProfile;
use jig_model::protocol::{BoxFuture, DriverError, PowerSense, PowerState, Transport};
use jig_model::rig_file::Place;
use tokio::time::{Instant, sleep, timeout_at};

use super::open::{find, open};
use super::outlet_power::named;
use super::{OpenDevice, PowerContext, PowerError};
use crate::serial::SerialPort;

/// Makes the power sense that a place has. `debug_port` is the board's own, if it has one.
///
/// # Errors
/// The device that is to be read cannot be opened.
pub(super) fn sense(
    who: &PlaceSense,
    devices: &[PowerDevice],
    context: &PowerContext,
    (profile, place): (&BoardProfile, &Place),
    debug_port: Option<Box<dyn PowerSense>>,
) -> Result<Option<Box<dyn PowerSense>>, PowerError> {
    Ok(match who {
        PlaceSense::Outlet(outlet) => Some(Box::new(outlet_sense(outlet, devices, context)?)),
        PlaceSense::DebugPort => debug_port,
        PlaceSense::Console => Some(Box::new(ConsoleSense::new(profile, place))),
        PlaceSense::Absent => None,
    })
}

pub(super) fn outlet_sense(
    sense: &SenseOutlet,
    devices: &[PowerDevice],
    context: &PowerContext,
) -> Result<OutletSense, PowerError> {
    let context = PowerContext { between: None, ..context.clone() };
    let device = open(find(&sense.device, devices)?, &context)?;
    Ok(OutletSense { device, outlet: sense.outlet.clone() })
}

/// An outlet of another device, which is only read.
pub(super) struct OutletSense {
    device: OpenDevice,
    outlet: String,
}

impl PowerSense for OutletSense {
    fn name(&self) -> String {
        named(&self.outlet, &self.device)
    }

    fn look(&mut self) -> BoxFuture<'_, Result<Option<PowerState>, DriverError>> {
        Box::pin(async { self.device.read(&self.outlet).await.map_err(Into::into) })
    }

    fn look_timeout(&self) -> Duration {
        self.device.turn_timeout()
    }
}

/// How long a console must be silent for its board to look off: longer than an adapter or a
/// server on the network holds bytes back.
const SILENCE: Duration = Duration::from_millis(300);

/// Time limit for a transport: its previous user may still be closing it.
const OPENING: Duration = Duration::from_secs(2);

/// Pause between two tries to open one.
const AGAIN: Duration = Duration::from_millis(50);

/// How many printable bytes in a row are no noise. The receiver of a board without power hears
/// hum and breaks: of random bytes, three in eight are printable, so eight in a row are one in
/// two thousand.
const TEXT: usize = 8;

/// The transports of a board's consoles, listened to while no other process has them.
///
/// A transport that is kept by another process is borrowed there, and given back. What is heard
/// between two boots of a run stands in no log: a run's begins with its own boot.
pub(super) struct ConsoleSense {
    ports: Vec<(ConsoleName, SerialPort)>,
    open: Vec<Box<dyn Transport>>,
}

impl ConsoleSense {
    pub(super) fn new(profile: &BoardProfile, place: &Place) -> Self {
        let transports = place.consoles.as_slice();
        let port = |console: &ConsoleName| {
            let transport = transports.iter().find(|transport| transport.console == *console)?;
            let about = profile.consoles.iter().find(|about| about.name == *console)?;
            // Nothing that is lent here is part of a run's log.
            Some((
                console.clone(),
                SerialPort::of_transport(transport, about.baud, Arc::new(|_| ())),
            ))
        };
        let ports = transports.iter().filter_map(|transport| port(&transport.console)).collect();
        Self { ports, open: Vec::new() }
    }

    /// Opens the transports; fewer, if another process holds one.
    async fn open(&mut self) {
        for (console, port) in &self.ports {
            let end = Instant::now() + OPENING;
            loop {
                let why = match timeout_at(end, port.open()).await {
                    Ok(Ok(transport)) => break self.open.push(transport),
                    Ok(Err(error)) => jig_model::chain(&error),
                    Err(_) => "it did not answer".to_owned(),
                };
                if Instant::now() >= end {
                    tracing::debug!(%console, why, "this console cannot be listened to");
                    break;
                }
                sleep(AGAIN).await;
            }
        }
    }
}

impl PowerSense for ConsoleSense {
    fn name(&self) -> String {
        let names: Vec<&str> = self.ports.iter().map(|(console, _)| console.as_str()).collect();
        format!("console {}", names.join(", "))
    }

    fn look(&mut self) -> BoxFuture<'_, Result<Option<PowerState>, DriverError>> {
        Box::pin(async {
            if self.open.is_empty() {
                self.open().await;
            }
            let mut left = false;
            for transport in &mut self.open {
                match listen(transport.as_mut(), Instant::now() + SILENCE).await {
                    ConsoleHeard::Text => return Ok(Some(PowerState::On)),
                    ConsoleHeard::Nothing => left = true,
                    ConsoleHeard::End => {}
                }
            }
            Ok(left.then_some(PowerState::Off))
        })
    }

    fn look_timeout(&self) -> Duration {
        let transports = u32::try_from(self.ports.len()).unwrap_or(u32::MAX);
        (OPENING + SILENCE).saturating_mul(transports)
    }

    fn is_sure_of(&self, seen: PowerState) -> bool {
        seen == PowerState::On
    }

    fn rest(&mut self) {
        self.open.clear();
    }
}

enum ConsoleHeard {
    Text,
    Nothing,
    /// The transport has ended.
    End,
}

/// Listens to a transport until it prints text, or for some time.
async fn listen(transport: &mut dyn Transport, until: Instant) -> ConsoleHeard {
    let (mut row, mut buf) = (0, [0; 256]);
    loop {
        let read = poll_fn(|cx| transport.poll_read(cx, &mut buf));
        let count = match timeout_at(until, read).await {
            Err(_) => return ConsoleHeard::Nothing,
            Ok(Ok(count)) if count > 0 => count,
            Ok(Ok(_) | Err(_)) => return ConsoleHeard::End,
        };
        for byte in &buf[..count] {
            let printable = byte.is_ascii_graphic() || *byte == b' ';
            row = if printable { row + 1 } else { 0 };
            if row >= TEXT {
                return ConsoleHeard::Text;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::net::UnixListener;

    use jig_model::rig_file::{ConsoleTransport, Endpoint};

    use super::*;

    fn wired(at: &std::path::Path) -> ConsoleSense {
        let transport = ConsoleTransport {
            console: "uart0".parse().unwrap(),
            end: Endpoint::Unix(at.display().to_string()),
            baud: None,
            timeout: None,
            capture: None,
            ready: None,
        };
        let port = SerialPort::new(transport.end.clone(), 115_200);
        ConsoleSense { ports: vec![("uart0".parse().unwrap(), port)], open: Vec::new() }
    }

    #[tokio::test]
    async fn a_console_that_prints_has_power_and_noise_is_no_print() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("console");
        let listener = UnixListener::bind(&at).unwrap();
        let mut sense = wired(&at);
        assert_eq!(sense.name(), "console uart0");
        // A server whose board is off, then hums, then prints in pieces.
        assert_eq!(sense.look().await.unwrap(), Some(PowerState::Off));
        let (mut board, _) = listener.accept().unwrap();
        board.write_all(b"\0\xff\0~~~\x80\0abc\0\xfe").unwrap();
        assert_eq!(sense.look().await.unwrap(), Some(PowerState::Off));
        board.write_all(b"\0heart").unwrap();
        board.write_all(b"beat\r\n").unwrap();
        assert_eq!(sense.look().await.unwrap(), Some(PowerState::On));
        assert!(sense.is_sure_of(PowerState::On) && !sense.is_sure_of(PowerState::Off));
        // The transport is free again for the next run, and a closed server tells nothing.
        sense.rest();
        drop((listener, board));
        std::fs::remove_file(&at).unwrap();
    }
}
