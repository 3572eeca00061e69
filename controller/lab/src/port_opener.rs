//! Opens the ports of consoles that are captured between runs.

use std::time::Duration;

use jig_drivers::serial::{ReconnectingTransport, SerialPort};
use jig_model::protocol::{BoxFuture, Transport};
use jig_rig::capture_service::{CaptureSpec, OpenTransport, OpenTransportError};

/// Time limit for the answer of a port's server; it is asked again afterwards.
const ANSWER: Duration = Duration::from_secs(10);

/// How long to wait for the return of a port: without limit in practice, because a place without
/// its board is no reason to stop.
const EVER: Duration = Duration::from_secs(365 * 86_400);

/// Opens serial ports, and whatever else a console of a real board ends at.
pub struct PortOpener;

impl OpenTransport for PortOpener {
    fn open(
        &self,
        spec: &CaptureSpec,
    ) -> BoxFuture<'static, Result<Box<dyn Transport>, OpenTransportError>> {
        let baud = spec.transport.baud.unwrap_or(spec.baud);
        let port = SerialPort::new(spec.transport.end.clone(), baud);
        let port = port.ready_by(spec.transport.ready.clone());
        Box::pin(async {
            let opened = ReconnectingTransport::open_now(port, ANSWER, EVER).await;
            opened
                .map(|transport| Box::new(transport) as _)
                .map_err(|error| OpenTransportError(error.into()))
        })
    }
}
