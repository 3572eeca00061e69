//! The thread that writes the chunks of a console to disk and publishes its progress.

use std::sync::Arc;

use tokio::sync::watch;

use super::clock::{ConsoleClock, Stamp};
use super::log::{GapReason, LogWriter, RecordKind};
use super::queue::{Chunk, ChunkQueue, QueueEntry, TransportEnd};

/// State of a log. Everything it counts is on disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogState {
    /// Committed bytes.
    pub len: u64,
    /// When the last of them came.
    pub printed_at: Option<Stamp>,
    /// How many transports have been attached so far.
    pub transports: u32,
    /// Length of the log when the last transport was attached: where its output begins.
    pub transport_start: u64,
    /// Whether a transport is attached now.
    pub attached: bool,
    /// How the last transport ended, if none is attached.
    pub ended: Option<TransportEnd>,
    /// Error of the first transport that broke. Kept after the next one is attached, so that a late
    /// reader still sees it.
    pub broken: Option<Arc<str>>,
    /// Why the other end of the transport is away now, in the words of the driver.
    pub away: Option<Arc<str>>,
    /// Why the other end was away last; kept after its return, so that a late reader still sees it.
    pub loss: Option<Arc<str>>,
    /// How often the other end was away.
    pub losses: u32,
    /// Characters so far that came with a wrong stop or parity bit.
    pub garbled: u64,
    /// Which program has opened the port last while it was captured.
    pub shared: Option<Arc<str>>,
    /// Boot boundaries marked so far.
    pub boots: u32,
    /// Gaps so far.
    pub gaps: u32,
    /// Bytes known to be lost.
    pub lost: u64,
    /// Why the log cannot be written any more; it does not grow then.
    pub error: Option<Arc<str>>,
    /// Nothing will follow: capture is over. An error may still come, from the last sync.
    pub closed: bool,
}

/// Writes until the queue is closed and empty.
pub(super) fn run(
    queue: &ChunkQueue,
    mut log: LogWriter,
    clock: &dyn ConsoleClock,
    state: &watch::Sender<LogState>,
) {
    while let Some(entries) = queue.take() {
        for entry in entries {
            write(entry, &mut log, state);
        }
    }
    let lost = state.borrow().lost;
    if state.borrow().error.is_some() {
        // The index may still be writable; if not, the published state holds the error.
        let gap = RecordKind::Gap { lost: Some(lost), reason: GapReason::Storage };
        let _ = log.last_words(clock.stamp(), gap);
    }
    let whole = state.borrow().error.is_none();
    state.send_modify(|s| {
        s.attached = false;
        s.closed = true;
    });
    // After the final state is published, so that the judge need not wait for the disk.
    if whole && let Err(error) = log.sync() {
        fail(state, &error);
    }
}

fn write(entry: QueueEntry, log: &mut LogWriter, state: &watch::Sender<LogState>) {
    let mut lost = 0;
    let result = match &entry {
        QueueEntry::Bytes(Chunk { first, bytes, .. }) => {
            lost = bytes.len() as u64;
            log.append(*first, bytes)
        }
        QueueEntry::Gap(stamp, lost, reason) => {
            log.record(*stamp, RecordKind::Gap { lost: *lost, reason: *reason })
        }
        QueueEntry::Boot(stamp) => log.record(*stamp, RecordKind::Boot),
        QueueEntry::Lost(stamp, _) => {
            log.record(*stamp, RecordKind::Gap { lost: None, reason: GapReason::Transport })
        }
        QueueEntry::Attached(stamp) | QueueEntry::Back(stamp) => {
            log.record(*stamp, RecordKind::Attached)
        }
        QueueEntry::Ended(stamp, _) => log.record(*stamp, RecordKind::Detached),
        QueueEntry::Sent(stamp, len) => log.record(*stamp, RecordKind::Sent(*len)),
        QueueEntry::Garbled(stamp, count) => log.record(*stamp, RecordKind::Garbled(*count)),
        QueueEntry::Shared(stamp, _) => {
            log.record(*stamp, RecordKind::Gap { lost: None, reason: GapReason::Shared })
        }
        QueueEntry::Ack(_) => Ok(()),
    };
    match result {
        Ok(()) => lost = 0,
        Err(error) => fail(state, &error),
    }
    let len = log.len();
    if let QueueEntry::Ack(done) = entry {
        // The caller may be gone; that is no failure.
        let _ = done.send(len);
        return;
    }
    state.send_modify(|s| {
        s.len = len;
        s.lost += lost;
        match entry {
            QueueEntry::Gap(_, missing, _) => {
                s.gaps += 1;
                s.lost += missing.unwrap_or(0);
            }
            QueueEntry::Boot(_) => s.boots += 1,
            QueueEntry::Attached(_) => {
                s.transports += 1;
                s.transport_start = len;
                s.attached = true;
                s.ended = None;
                s.away = None;
            }
            QueueEntry::Lost(_, why) => {
                s.gaps += 1;
                s.losses += 1;
                s.loss = Some(why.into());
                s.away = s.loss.clone();
            }
            QueueEntry::Back(_) => s.away = None,
            QueueEntry::Garbled(_, count) => s.garbled = s.garbled.saturating_add(count),
            QueueEntry::Shared(_, with) => {
                s.gaps += 1;
                s.shared = Some(with.into());
            }
            QueueEntry::Ended(_, end) => {
                s.attached = false;
                if let TransportEnd::Broken(error) = &end {
                    s.broken.get_or_insert_with(|| Arc::clone(error));
                }
                s.ended = Some(end);
            }
            QueueEntry::Bytes(chunk) => s.printed_at = Some(chunk.last),
            QueueEntry::Sent(..) | QueueEntry::Ack(_) => {}
        }
    });
}

/// Publishes the first storage error; it makes one gap that grows until the end.
fn fail(state: &watch::Sender<LogState>, error: &std::io::Error) {
    state.send_if_modified(|s| {
        let first = s.error.is_none();
        if first {
            tracing::warn!(%error, "console log cannot be written");
            s.error = Some(error.to_string().into());
            s.gaps += 1;
        }
        first
    });
}
