//! When a transport that floods is read again.
//!
//! # Design
//! An emulated UART is written to its pipe byte by byte. A reader that waits for each of them is woken
//! with each of them, which costs the emulator more than the write. So while small chunks follow each
//! other, output gathers for a millisecond before it is read: times of the log are no finer. The first
//! chunks of a burst are read at once, and so is what a drain takes.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// For how long output gathers.
const GATHER: Duration = Duration::from_millis(1);

/// Chunks that are less apart follow each other: `GATHER`, and what timer and scheduler add to it.
const FOLLOWS: Duration = Duration::from_millis(4);

/// Chunks in a row that make a flood.
const FLOOD: u32 = 32;

/// Bytes of a chunk that is worth waking up for.
const LARGE: usize = 16 << 10;

/// When a transport is read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// When something arrives.
    AtOnce,
    /// When output has gathered.
    Gather,
}

/// Decides from the chunks that were read when to read the next one.
#[derive(Debug, Default)]
pub(super) struct ReadPace {
    last: Option<Instant>,
    /// Small chunks that have followed each other.
    in_row: u32,
    pause: Option<Pin<Box<Sleep>>>,
}

impl ReadPace {
    /// Notes a chunk that was read now, and says how to go on.
    pub(super) fn took(&mut self, len: usize) -> Pace {
        let now = Instant::now();
        let follows = self.last.is_some_and(|last| now.duration_since(last) < FOLLOWS);
        self.in_row = if follows && len < LARGE { self.in_row.saturating_add(1) } else { 0 };
        self.last = Some(now);
        if self.in_row < FLOOD {
            return Pace::AtOnce;
        }
        self.pause = Some(Box::pin(sleep_until(now + GATHER)));
        Pace::Gather
    }

    /// Ready when the transport may be read.
    pub(super) fn poll_due(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(pause) = &mut self.pause {
            std::task::ready!(pause.as_mut().poll(cx));
            self.pause = None;
        }
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    async fn waited(pace: &mut ReadPace) -> Duration {
        let begin = Instant::now();
        poll_fn(|cx| pace.poll_due(cx)).await;
        begin.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_flood_of_small_chunks_gathers() {
        let mut pace = ReadPace::default();
        // Lines that are apart, however many, and large chunks are read as they come.
        for (len, apart) in [(80, FOLLOWS), (LARGE, Duration::ZERO)] {
            for _ in 0..2 * FLOOD {
                assert_eq!(pace.took(len), Pace::AtOnce);
                assert_eq!(waited(&mut pace).await, Duration::ZERO, "{len}");
                tokio::time::advance(apart).await;
            }
        }
        tokio::time::advance(FOLLOWS).await;
        for _ in 0..FLOOD {
            assert_eq!(pace.took(1), Pace::AtOnce);
            assert_eq!(waited(&mut pace).await, Duration::ZERO);
        }
        for _ in 0..FLOOD {
            assert_eq!(pace.took(900), Pace::Gather);
            assert_eq!(waited(&mut pace).await, GATHER);
        }
        // A pause in the output ends it.
        tokio::time::advance(FOLLOWS).await;
        assert_eq!(pace.took(1), Pace::AtOnce);
        assert_eq!(waited(&mut pace).await, Duration::ZERO);
    }
}
