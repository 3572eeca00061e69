//! How many connections still have the output of a job to fetch.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the connections whose caller has begun or follows a job. Such a caller fetches the end of
/// the output and the files of the run after the job has ended.
#[derive(Debug, Clone, Default)]
pub struct JobWatchers(Arc<AtomicUsize>);

/// One connection that is counted; no longer when dropped.
#[derive(Debug)]
pub(super) struct JobWatcher(JobWatchers);

impl JobWatchers {
    /// Returns how many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }

    pub(super) fn add(&self) -> JobWatcher {
        self.0.fetch_add(1, Ordering::AcqRel);
        JobWatcher(self.clone())
    }
}

impl Drop for JobWatcher {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::AcqRel);
    }
}
