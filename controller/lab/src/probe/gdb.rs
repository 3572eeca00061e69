//! Serving a board to GDB.

use std::net::SocketAddr;

use jig_model::command::{CommandEvent, EndedReply, Reply};
use jig_probe::{GdbEndpoint, GdbServer, Leave, ProbeDebuggee, ResetInto};

use super::ProbeCommandError;
use super::port::{Port, PortDone};

pub(super) async fn gdb(port: &Port, listen: SocketAddr, reset: bool) -> PortDone {
    if reset {
        port.done(port.handle.reset(ResetInto::Halt).await)?;
    }
    let debuggee = ProbeDebuggee::new(port.handle.clone(), &port.attached);
    let server = GdbServer::start(&GdbEndpoint::Tcp(listen), Box::new(debuggee))
        .map_err(|source| ProbeCommandError::Listen { listen, source })?;
    let (place, address) = (port.place.clone(), server.address().to_string());
    port.events.event(CommandEvent::GdbServed { place: place.clone(), address });
    port.cancel.cancelled().await;
    server.stop();
    Ok((Reply::Ended(EndedReply { place }), Leave::Running))
}
