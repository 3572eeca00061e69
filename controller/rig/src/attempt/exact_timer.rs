//! A timer that is as exact as the kernel's.
//!
//! # Design
//! The runtime's timers have ticks of a millisecond and are rounded up twice, in the wheel and in the
//! wait of its poll: 50 ms last up to 52. Each run ends with such a wait. A `timerfd` ends within a
//! tenth of a millisecond. The runtime's timer runs beside it: it has to do where no file can be opened,
//! and on a virtual clock.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::sys::timer::{Expiration, TimerSetTimeFlags};
use nix::sys::timerfd::{ClockId, TimerFd, TimerFlags};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, sleep_until};

/// Sleeps until a moment. On a virtual clock it may return early.
pub(super) async fn sleep_exactly_until(until: Instant) {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return;
    }
    let exact = timer(left);
    tokio::select! {
        () = sleep_until(until) => {}
        Ok(_) = async { exact?.readable().await.map(drop) } => {}
    }
}

/// Returns a file that can be read once this time, which is not zero, has passed.
fn timer(left: Duration) -> io::Result<AsyncFd<OwnedFd>> {
    let timer =
        TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?;
    timer.set(Expiration::OneShot(TimeSpec::from_duration(left)), TimerSetTimeFlags::empty())?;
    #[expect(deprecated, reason = "only types that may lie about their descriptor need more")]
    AsyncFd::with_interest(timer.into(), Interest::READABLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_is_never_early() {
        for us in [0, 1, 700, 3_000] {
            let until = Instant::now() + Duration::from_micros(us);
            sleep_exactly_until(until).await;
            assert!(Instant::now() >= until, "{us} us");
        }
    }

    #[tokio::test]
    async fn its_file_can_be_read_at_the_end() {
        let left = Duration::from_millis(2);
        let began = std::time::Instant::now();
        drop(timer(left).unwrap().readable().await.unwrap());
        assert!(began.elapsed() >= left);
    }
}
