//! Requests to a captured console: loans of its transport, and input.

use jig_model::capture_service::CaptureState;
use jig_model::protocol::Handing;
use tokio::sync::oneshot;

use super::console_capture::{ConsoleCapture, CurrentWriter};
use super::orders::{
    CaptureError, CaptureOrder, Input, InputWriter, Loan, LoanRequest, WriterRequest,
};
use super::relay::{GivenBack, Relay};
use crate::console::ConsoleHandle;

/// Longest queue for one transport. A place has one user at a time, so more callers are a mistake.
const MOST_WAITING: usize = 64;

impl ConsoleCapture {
    /// Accepts an order. `handle` belongs to the transport that is being captured, if any.
    pub(super) fn take_in(&mut self, order: Option<CaptureOrder>, handle: Option<&ConsoleHandle>) {
        match order {
            // The last handle was dropped.
            None | Some(CaptureOrder::Stop) => self.stopping = true,
            Some(CaptureOrder::Again) => self.again = true,
            Some(CaptureOrder::Change(spec)) => self.changed = Some(*spec),
            Some(CaptureOrder::Lend(ask)) => match self.lends.len() < MOST_WAITING {
                true => self.lends.push_back(ask),
                false => drop(ask.reply.send(Err(CaptureError::Crowded))),
            },
            Some(CaptureOrder::Release(ask)) => match self.releases.len() < MOST_WAITING {
                true => self.releases.push_back(ask),
                false => drop(ask.reply.send(Err(CaptureError::Crowded))),
            },
            Some(CaptureOrder::InputWriter(ask)) => self.give_writer(ask, handle),
            Some(CaptureOrder::Line { what, reply }) => {
                let Some(handle) = handle.cloned() else {
                    let _ = reply.send(Err(self.refusal()));
                    return;
                };
                self.writes.spawn(async move {
                    let _ = reply.send(handle.line(what).await.map_err(CaptureError::Input));
                });
            }
            Some(CaptureOrder::Input { writer, input, mut reply }) => {
                let mine = self.writer.as_ref().is_some_and(|holder| holder.id == writer);
                let Some(handle) = handle.filter(|_| mine).cloned() else {
                    let _ = reply.send(Err(self.refusal()));
                    return;
                };
                self.writes.spawn(async move {
                    let done = async {
                        match input {
                            Input::Send(bytes) => handle.send(bytes).await,
                            Input::Line(what) => handle.line(what).await,
                        }
                    };
                    let done = tokio::select! {
                        done = done => done,
                        // The caller is gone; bytes that were not accepted are not sent.
                        () = reply.closed() => return,
                    };
                    let _ = reply.send(done.map_err(CaptureError::Input));
                });
            }
        }
    }

    /// Returns why input is refused now.
    fn refusal(&self) -> CaptureError {
        let what = "input";
        match (&self.status.borrow().state, &self.writer) {
            (CaptureState::Lent { by } | CaptureState::Released { by }, _) => {
                CaptureError::Taken { what: "the transport", by: by.clone() }
            }
            (CaptureState::Captured, Some(writer)) => {
                CaptureError::Taken { what, by: writer.by.clone() }
            }
            (CaptureState::Captured, None) => {
                CaptureError::Taken { what, by: "no user any more".to_owned() }
            }
            (
                CaptureState::Waiting { why }
                | CaptureState::Away { why }
                | CaptureState::Gone { why },
                _,
            ) => CaptureError::Away(why.clone()),
            (CaptureState::Unwritten { why }, _) => CaptureError::Unwritten(why.clone()),
        }
    }

    fn give_writer(&mut self, ask: WriterRequest, handle: Option<&ConsoleHandle>) {
        let free = self.writer.as_ref().is_none_or(|writer| writer.taken.is_closed());
        let there = handle.is_some() && self.status.borrow().state == CaptureState::Captured;
        let Some(orders) = self.orders.upgrade().filter(|_| there && (free || ask.take)) else {
            let _ = ask.reply.send(Err(self.refusal()));
            return;
        };
        self.drop_writer(&ask.by);
        self.writers += 1;
        let (tell, taken) = oneshot::channel();
        let holder = CurrentWriter { id: self.writers, by: ask.by, taken: tell };
        let writer = InputWriter { id: holder.id, orders, taken };
        // If the caller is gone, dropping its writer frees the input.
        let _ = ask.reply.send(Ok(writer));
        self.writer = Some(holder);
        let state = self.status.borrow().state.clone();
        self.show(state);
    }

    /// Takes the right to send from its holder.
    pub(super) fn drop_writer(&mut self, by: &str) {
        if let Some(writer) = self.writer.take() {
            let _ = writer.taken.send(by.to_owned());
        }
    }

    /// Lends the transport, and waits until it is back. Nothing comes back of a transport that
    /// ended before it was lent, or when told to stop.
    pub(super) async fn lend(
        &mut self,
        handle: &ConsoleHandle,
        ask: LoanRequest,
    ) -> Option<GivenBack> {
        let transport = handle.release().await.ok().flatten();
        let offset = handle.drained().await.unwrap_or_default();
        let Some(transport) = transport else {
            self.lends.push_front(ask);
            return None;
        };
        let file = self.log.as_ref().map_or(0, |log| log.number);
        match transport.handing() {
            Ok(Handing::Away) => {
                // It tells why as soon as it is read again.
                self.lends.push_front(ask);
                Some(GivenBack::whole(transport))
            }
            Ok(Handing::Descriptor(end)) => {
                let (back, returned) = oneshot::channel();
                if ask.reply.send(Ok(Loan { end, file, offset, back })).is_err() {
                    return Some(GivenBack::whole(transport));
                }
                let read = self.until_back(ask.by, returned, None).await?;
                Some(GivenBack { missing: read.is_none(), ..GivenBack::whole(transport) })
            }
            Ok(Handing::Through) => {
                let (mut relay, end) = match Relay::begin(transport) {
                    Ok(begun) => begun,
                    Err((transport, error)) => {
                        let _ = ask.reply.send(Err(CaptureError::Lend(error)));
                        return Some(GivenBack::whole(transport));
                    }
                };
                let (back, returned) = oneshot::channel();
                let read = match ask.reply.send(Ok(Loan { end, file, offset, back })) {
                    Ok(()) => self.until_back(ask.by, returned, Some(&mut relay)).await?,
                    Err(_) => Some(0),
                };
                Some(relay.end(read).await)
            }
            Err(error) => {
                let _ = ask.reply.send(Err(CaptureError::Lend(error)));
                Some(GivenBack::whole(transport))
            }
        }
    }

    /// Waits until a borrower gives the transport back, and says how much it has read; `None` in it
    /// if it died. Nothing when told to stop.
    async fn until_back(
        &mut self,
        by: String,
        mut returned: oneshot::Receiver<u64>,
        mut relay: Option<&mut Relay>,
    ) -> Option<Option<u64>> {
        self.drop_writer(&by);
        self.show(CaptureState::Lent { by });
        loop {
            let pass = async {
                match &mut relay {
                    Some(relay) => relay.pass().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                read = &mut returned => return Some(read.ok()),
                order = self.inbox.recv() => self.take_in(order, None),
                () = pass => {}
            }
            if self.stopping {
                return None;
            }
        }
    }
}
