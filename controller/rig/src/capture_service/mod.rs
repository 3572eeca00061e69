//! The capture service: captures consoles between runs and lends their transports to runs.
//!
//! Owns the transports of a rig's places while no run uses them. Each console has an actor
//! (`ConsoleCapture`) and a log in numbered files ([`LogFolder`]). A run borrows the transport
//! ([`Loan`]) when it powers its board on, and returns it when it powers the board off. At any
//! moment exactly one process reads a transport.
//!
//! This module does not open ports, pass descriptors between processes or listen on a socket. The
//! caller supplies a function that opens transports ([`OpenTransport`]) and forwards requests.
//!
//! # Design
//! *The transport stays open during a loan.* The borrower gets a copy of its descriptor. The
//! service keeps its own copy open and unread, so modem lines do not change, bytes wait in the
//! kernel, and the service reads on when the borrower dies. A transport with state beside its
//! descriptor (an RFC 2217 session) stays with the service, which relays the bytes over a socket
//! ([`relay`]); relayed bytes that the borrower did not read return to the service's log.
//!
//! *A loan lasts while the board has power, not for the whole run.* A board may print while it is
//! flashed. The run does not read then, and the kernel buffers only 64 KiB.
//!
//! *Missing bytes are recorded as a gap.* The log has a gap where the other end of the transport
//! was away, where a borrower died without returning the loan (it may have read bytes that it
//! never logged), where a port was released to another program, and at each start of the service
//! after the first. A loan that was returned in order leaves no gap: the log records that the
//! transport was detached and attached again, and the run's log has the bytes between.

mod console_capture;
mod files;
mod idle;
mod loans;
mod orders;
mod relay;
mod scroll;
mod service;
#[cfg(test)]
mod tests;

pub use files::{LogFile, LogFolder};
pub use idle::{IdleCheck, IdleRounds};
pub use orders::{
    CaptureError, CaptureHandle, CaptureSpec, InputWriter, Loan, OpenTransport, OpenTransportError,
};
pub use scroll::{Scroll, ScrollError, ScrollItem, ScrollSource};
pub use service::{Applied, CaptureObserver, CaptureService};
