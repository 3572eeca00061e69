//! Futures that need nobody to wake them.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// Returns what comes of a future that waits for nothing; nothing where it does wait.
pub(crate) fn poll_once<T>(mut work: Pin<Box<dyn Future<Output = T> + Send + '_>>) -> Option<T> {
    match work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}
