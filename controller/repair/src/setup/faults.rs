//! Faults that are injected into runs of a plan, to see that they are blamed on no code.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Faults that strike one run of a plan, or the first behind it in which their moment comes. They
/// belong to the process that drives a run, and to no journal.
#[derive(Debug, Default)]
pub struct InjectedFaults(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    /// Runs of a plan in which nothing strikes yet.
    runs_before: u32,
    faults: Vec<String>,
}

impl InjectedFaults {
    /// Has faults strike the run of a plan with this number, from 1.
    pub fn at_run(number: u32, faults: Vec<String>) -> Self {
        Self(Mutex::new(Waiting { runs_before: number.saturating_sub(1), faults }))
    }

    /// Returns what is to strike the run that begins.
    pub(super) fn take(&self) -> Vec<String> {
        let mut waiting = self.waiting();
        match waiting.runs_before.checked_sub(1) {
            Some(left) => {
                waiting.runs_before = left;
                Vec::new()
            }
            None => std::mem::take(&mut waiting.faults),
        }
    }

    /// Keeps what has not struck for the next run.
    pub(super) fn put_back(&self, not_struck: Vec<String>) {
        self.waiting().faults.extend(not_struck);
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_strikes_one_run() {
        let faults = InjectedFaults::at_run(2, vec!["kill".to_owned()]);
        assert_eq!(faults.take(), [""; 0]);
        assert_eq!(faults.take(), ["kill"]);
        assert_eq!(faults.take(), [""; 0]);
        faults.put_back(vec!["kill".to_owned()]);
        assert_eq!(faults.take(), ["kill"]);
        assert_eq!(InjectedFaults::default().take(), [""; 0]);
    }
}
