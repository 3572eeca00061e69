//! The capture service: consoles captured between runs, and lent to runs.
//!
//! Owns the transports of a rig's places while no run uses them: each has a log of its own, in
//! files that follow one another ([`LogFolder`]), and an actor that writes it ([`ConsoleCapture`]).
//! A run that gives its board power borrows the transport ([`Lent`]) and gives it back with the
//! power; so at any moment one process reads a transport, and its log says so.
//!
//! **Refused here:** opening ports, passing descriptors between processes, listening on a
//! socket. Whoever binds the house hands in how a transport is opened ([`OpenTransport`]) and
//! passes on what is asked for.
//!
//! # Design
//! *The transport stays open.* What is lent is a copy of its descriptor. The capture service's own stays open
//! and unread, so no line drops, bytes wait in the kernel, and when the borrower dies, however it
//! dies, the capture service reads on. A transport that is more than a descriptor (RFC 2217 has a
//! state in its session) stays with the capture service, which passes the bytes on by a socket
//! ([`relay`]); what the borrower has not read of them comes back into the capture service's log.
//!
//! *A loan lasts as long as the board has power, not as long as the run.* A board prints while
//! it is flashed, too; nobody would read that, and kernels keep 64 KiB.
//!
//! *Missing bytes are said to be missing.* A gap stands in the log where the transport's other end
//! was away, where a borrower died without giving back (it may have read what it never wrote),
//! where a port was let go for another program, and at the start of each capture service after the
//! first: what came between two capture services nobody knows. A loan that ended in order is no
//! gap: the log then has an end of the transport and a new beginning, and the run's log lies
//! between.

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
pub use orders::{CaptureHandle, CaptureSpec, InputWriter, Lent, OpenTransport, Refusal};
pub use scroll::{Scroll, ScrollError, ScrollItem, Source};
pub use service::{Applied, CaptureObserver, CaptureService};
