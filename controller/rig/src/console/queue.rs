//! The queue between a transport's reader and its disk thread, bounded by bytes.
//!
//! A plain channel counts messages, and a target that prints byte by byte would fill one
//! with next to nothing. Here the reader appends to the youngest chunk while the disk is
//! busy, so both memory and the index stay small whatever the target does.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot};

use super::clock::{ConsoleClock, Stamp, UnderWay};
use super::log::GapReason;

/// Bytes that may wait. Machines and kernels buffer 4 to 64 KiB before they freeze or
/// drop; 16 MiB cover a second of a stalled disk at emulator speed (4 MB/s) several times.
/// The disk thread may hold as much again while it writes.
pub(super) const LIMIT: usize = 16 << 20;
/// Chunks closer together than this become one: finer times mean nothing on a host with a
/// scheduler, and an index record is 32 bytes.
const MERGE_NS: u64 = 1_000_000;
/// Largest chunk: as much as the reader reads at once.
pub(super) const CHUNK: usize = 64 << 10;
/// What an entry counts at least, so that marks without bytes are bounded too.
const ENTRY_COST: usize = 64;

/// Says how a transport ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransportEnd {
    /// The other end closed it, or a new transport took its place.
    Closed,
    /// Reading failed; the system's words.
    Broken(Arc<str>),
}

/// Bytes that came within a moment.
#[derive(Debug)]
pub(super) struct Chunk {
    /// When the first of them came, and the last.
    pub(super) first: Stamp,
    pub(super) last: Stamp,
    pub(super) bytes: Vec<u8>,
}

/// What travels to the disk thread, in order.
#[derive(Debug)]
pub(super) enum QueueEntry {
    Bytes(Chunk),
    Gap(Stamp, Option<u64>, GapReason),
    Boot(Stamp),
    Attached(Stamp),
    Ended(Stamp, TransportEnd),
    /// The transport goes on, but its other end has gone for now.
    Lost(Stamp, String),
    /// The other end is back.
    Back(Stamp),
    Sent(Stamp, u64),
    /// Characters came with errors.
    Garbled(Stamp, u64),
    /// Another program has opened the port: which.
    Shared(Stamp, String),
    /// Answered with the log's length once everything before is on disk.
    Ack(oneshot::Sender<u64>),
}

impl QueueEntry {
    /// Makes an entry of bytes that came at once.
    pub(super) fn bytes(at: Stamp, bytes: Vec<u8>) -> Self {
        Self::Bytes(Chunk { first: at, last: at, bytes })
    }

    fn cost(&self) -> usize {
        match self {
            Self::Bytes(chunk) => ENTRY_COST + chunk.bytes.len(),
            Self::Gap(..)
            | Self::Boot(_)
            | Self::Attached(_)
            | Self::Ended(..)
            | Self::Lost(..)
            | Self::Back(_)
            | Self::Sent(..)
            | Self::Garbled(..)
            | Self::Shared(..)
            | Self::Ack(_) => ENTRY_COST,
        }
    }
}

#[derive(Default)]
struct Inner {
    entries: VecDeque<QueueEntry>,
    cost: usize,
    closed: bool,
    /// What the clock gave to hold from the first entry until the disk thread has nothing
    /// to do; once closed, until that thread has ended.
    under_way: Option<UnderWay>,
}

/// The queue; shared by the one producer and the one consumer.
pub(super) struct ChunkQueue {
    clock: Arc<dyn ConsoleClock>,
    inner: Mutex<Inner>,
    filled: Condvar,
    emptied: Notify,
}

impl ChunkQueue {
    pub(super) fn new(clock: Arc<dyn ConsoleClock>) -> Self {
        Self { clock, inner: Mutex::default(), filled: Condvar::new(), emptied: Notify::new() }
    }

    fn begin_work(&self, inner: &mut Inner) {
        if inner.under_way.is_none() {
            inner.under_way = self.clock.under_way();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing panics while holding the lock; the state is whole in any case.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends an entry; never blocks. The producer waits for room first.
    pub(super) fn push(&self, entry: QueueEntry) {
        let mut inner = self.lock();
        self.begin_work(&mut inner);
        let mut cost = entry.cost();
        match (entry, inner.entries.back_mut()) {
            (QueueEntry::Bytes(new), Some(QueueEntry::Bytes(chunk)))
                if new.last.mono_ns.saturating_sub(chunk.first.mono_ns) < MERGE_NS
                    && chunk.bytes.len() + new.bytes.len() <= CHUNK =>
            {
                chunk.bytes.extend_from_slice(&new.bytes);
                chunk.last = new.last;
                cost = new.bytes.len();
            }
            (entry, _) => inner.entries.push_back(entry),
        }
        inner.cost += cost;
        drop(inner);
        self.filled.notify_one();
    }

    /// Waits until less than the limit is queued.
    pub(super) async fn room(&self) {
        loop {
            let emptied = self.emptied.notified();
            if self.lock().cost < LIMIT {
                return;
            }
            // There is one producer, and a notification given in between is stored.
            emptied.await;
        }
    }

    /// Says that nothing will follow.
    pub(super) fn close(&self) {
        let mut inner = self.lock();
        self.begin_work(&mut inner);
        inner.closed = true;
        drop(inner);
        self.filled.notify_one();
    }

    /// Takes everything; blocks while there is nothing. `None` once closed and empty.
    pub(super) fn take(&self) -> Option<VecDeque<QueueEntry>> {
        let mut inner = self.lock();
        while inner.entries.is_empty() {
            if inner.closed {
                return None;
            }
            // All that was taken before is in the log by now.
            inner.under_way = None;
            inner = self.filled.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
        inner.cost = 0;
        let entries = std::mem::take(&mut inner.entries);
        drop(inner);
        self.emptied.notify_one();
        Some(entries)
    }
}
