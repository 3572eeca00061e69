//! What the kernel tells of an open port beside its bytes.

use std::cell::Cell;
use std::os::fd::BorrowedFd;
use std::task::Context;

use jig_model::protocol::TransportEvent;

use super::line_errors::LineErrors;
use super::sharing::Sharing;

/// Watches one open port. Asked whenever the port was read empty.
#[derive(Debug)]
pub(super) struct PortWatch {
    errors: LineErrors,
    sharing: Sharing,
    /// Another process may have had the port since the last look: what it met, it tells.
    lent: Cell<bool>,
}

impl PortWatch {
    /// Begins with a port that was just opened, or borrowed.
    pub(super) fn of(port: BorrowedFd<'_>) -> Self {
        let (errors, sharing) = (LineErrors::of(port), Sharing::of(port));
        Self { errors, sharing, lent: Cell::new(false) }
    }

    /// Another process goes on with the port.
    pub(super) fn lend(&self) {
        self.lent.set(true);
    }

    /// Registers the caller's waker for events that come without a byte.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) {
        self.sharing.poll(cx);
    }

    /// Tells what has happened since the last look, one thing at a time.
    pub(super) fn event(&mut self, port: BorrowedFd<'_>) -> Option<TransportEvent> {
        if self.lent.take() {
            self.errors.forget(port);
            self.sharing.forget();
        }
        self.errors.event(port).or_else(|| self.sharing.event().map(TransportEvent::Shared))
    }
}
