//! What has happened since the service started, from the stores of the rig.
//!
//! Runs are processes of their own and leave their end in the store of health; consoles leave files.
//! Both are read on from where the last look ended, so counters only grow, whatever is removed.

use std::collections::BTreeMap;

use jig_lab::{Catalogue, health_subject};
use jig_model::recovery::RecoveryStep;
use jig_model::{ConsoleName, PlaceName};
use jig_rig::capture_service::LogFolder;
use jig_rig::database::DatabaseError;
use jig_rig::health::{HealthEvent, HealthStore, HistoryEntry};

/// Upper bounds of the durations of runs, in seconds: from an emulated unit test to a night's soak.
pub(super) const DURATIONS: [f64; 12] =
    [0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0];

/// Most events of a place that are read at once: between two looks far fewer happen.
const MOST_EVENTS: u32 = 1000;

/// Counters since the start.
#[derive(Debug, Default)]
pub(super) struct RigCounters {
    /// Runs by verdict and cause; both are closed lists.
    pub(super) runs: BTreeMap<(&'static str, &'static str), u64>,
    /// Runs by the first bound that they do not exceed; the last number is those beyond all.
    pub(super) durations: [u64; DURATIONS.len() + 1],
    pub(super) seconds: f64,
    /// Recoveries by the step that succeeded; none where no step did.
    pub(super) recoveries: BTreeMap<Option<RecoveryStep>, u64>,
    pub(super) gaps: BTreeMap<PlaceName, u64>,
    pub(super) overruns: BTreeMap<PlaceName, u64>,
    pub(super) lost_bytes: BTreeMap<PlaceName, u64>,
    pub(super) garbled: BTreeMap<PlaceName, u64>,
    pub(super) captured: BTreeMap<(PlaceName, ConsoleName), u64>,
    /// The newest event of each place that is counted.
    seen: BTreeMap<PlaceName, i64>,
    /// File and length up to which each console is counted.
    read: BTreeMap<(PlaceName, ConsoleName), (u64, u64)>,
    started: bool,
}

impl RigCounters {
    /// Counts what has happened since the last look. The first look counts nothing.
    pub(super) fn look(
        &mut self,
        catalogue: &Catalogue,
        health: Option<&HealthStore>,
    ) -> Result<(), DatabaseError> {
        let logs = catalogue.places();
        for place in &catalogue.rig.places {
            for transport in &place.consoles {
                let folder = LogFolder::new(&logs, &place.name, &transport.console);
                self.read_on((place.name.clone(), transport.console.clone()), &folder);
            }
            if let Some(health) = health {
                self.take_in(
                    &place.name,
                    health.history_by(&health_subject(place), &place.name, MOST_EVENTS)?,
                );
            }
        }
        self.started = true;
        Ok(())
    }

    /// Counts the events of a place, the newest first, that were not counted yet.
    fn take_in(&mut self, place: &PlaceName, events: Vec<HistoryEntry>) {
        let newest = events.first().map_or(0, |event| event.seq);
        let before = self.seen.insert(place.clone(), newest);
        // A place that is new, while the service runs, has no events of before.
        let before = before.unwrap_or(if self.started { 0 } else { newest });
        for event in events.into_iter().take_while(|event| event.seq > before) {
            self.count(place, event.event);
        }
    }

    fn count(&mut self, place: &PlaceName, event: HealthEvent) {
        match event {
            HealthEvent::RunEnded {
                run: _,
                kind,
                cause,
                duration_ms,
                flash_ms: _,
                gaps,
                overruns,
                lost_bytes,
                garbled,
            } => {
                *self.runs.entry((kind.as_str(), cause.as_str())).or_default() += 1;
                let seconds = duration_ms as f64 / 1000.0;
                let fits = DURATIONS.iter().position(|bound| seconds <= *bound);
                if let Some(count) = self.durations.get_mut(fits.unwrap_or(DURATIONS.len())) {
                    *count += 1;
                }
                self.seconds += seconds;
                let of_place = [
                    (&mut self.gaps, u64::from(gaps)),
                    (&mut self.overruns, u64::from(overruns)),
                    (&mut self.lost_bytes, lost_bytes),
                    (&mut self.garbled, garbled),
                ];
                for (counts, more) in of_place {
                    let count = counts.entry(place.clone()).or_default();
                    *count = count.saturating_add(more);
                }
            }
            HealthEvent::RecoveryEnded { step, .. } => {
                let step = step.and_then(|step| {
                    RecoveryStep::ALL.iter().copied().find(|known| known.as_str() == step)
                });
                *self.recoveries.entry(step).or_default() += 1;
            }
            HealthEvent::Checked(_)
            | HealthEvent::Canary { .. }
            | HealthEvent::Quarantined { .. }
            | HealthEvent::Cleared { .. } => {}
        }
    }

    /// Counts the bytes by which the files of a console have grown.
    fn read_on(&mut self, console: (PlaceName, ConsoleName), folder: &LogFolder) {
        let size = |path: &std::path::Path| std::fs::metadata(path).map_or(0, |about| about.len());
        let files = folder.files().unwrap_or_default();
        let newest = files.last().map_or((0, 0), |file| (file.number, size(&file.paths.raw)));
        let before = self.read.get(&console).copied();
        let before = before.unwrap_or(if self.started { (0, 0) } else { newest });
        let grown = |file: &jig_rig::capture_service::LogFile| {
            let len = if file.number == newest.0 { newest.1 } else { size(&file.paths.raw) };
            if file.number == before.0 { len.saturating_sub(before.1) } else { len }
        };
        let new = files.iter().filter(|file| (before.0..=newest.0).contains(&file.number));
        let bytes: u64 = new.map(grown).sum();
        *self.captured.entry(console.clone()).or_default() += bytes;
        self.read.insert(console, newest.max(before));
    }
}

#[cfg(test)]
mod tests {
    use jig_model::{Cause, VerdictKind};
    use jig_rig::health::HealthState;

    use super::*;

    fn ended(seq: i64, duration_ms: u64) -> HistoryEntry {
        let event = HealthEvent::RunEnded {
            run: "20231114-221320-aaaa".parse().unwrap(),
            kind: VerdictKind::Pass,
            cause: Cause::Passed,
            duration_ms,
            flash_ms: None,
            gaps: 2,
            overruns: 1,
            lost_bytes: 300,
            garbled: 7,
        };
        let at = jiff::Timestamp::UNIX_EPOCH;
        HistoryEntry { seq, at, state: HealthState::Healthy, event }
    }

    #[test]
    fn each_event_is_counted_once_and_none_of_before() {
        let (mut counters, place) = (RigCounters::default(), "bench".parse().unwrap());
        counters.take_in(&place, vec![ended(7, 100)]);
        counters.started = true;
        assert!(counters.runs.is_empty());
        counters.take_in(&place, vec![ended(9, 20_000_000), ended(8, 700), ended(7, 100)]);
        counters.take_in(&place, vec![ended(9, 20_000_000), ended(8, 700)]);
        assert_eq!(counters.runs.values().copied().collect::<Vec<_>>(), [2]);
        assert_eq!((counters.durations[2], counters.durations[DURATIONS.len()]), (1, 1));
        assert_eq!((counters.gaps[&place], counters.overruns[&place]), (4, 2));
        assert_eq!((counters.lost_bytes[&place], counters.garbled[&place]), (600, 14));
        // A place that the rig file has since a moment ago.
        counters.take_in(&"new".parse().unwrap(), vec![ended(10, 1)]);
        assert_eq!(counters.runs.values().copied().collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn bytes_are_counted_over_files_and_their_removal() {
        let state = tempfile::tempdir().unwrap();
        let places = jig_rig::store::Places::new(state.path());
        let console = ("bench".parse().unwrap(), "uart0".parse().unwrap());
        let folder = LogFolder::new(&places, &console.0, &console.1);
        std::fs::create_dir_all(folder.path()).unwrap();
        let write = |number, len| std::fs::write(folder.file(number).paths.raw, vec![0; len]);
        let mut counters = RigCounters::default();
        write(1, 100).unwrap();
        counters.read_on(console.clone(), &folder);
        counters.started = true;
        write(1, 130).unwrap();
        write(2, 5).unwrap();
        counters.read_on(console.clone(), &folder);
        assert_eq!(counters.captured[&console], 35);
        std::fs::remove_file(folder.file(1).paths.raw).unwrap();
        write(2, 6).unwrap();
        counters.read_on(console.clone(), &folder);
        counters.read_on(console.clone(), &folder);
        assert_eq!(counters.captured[&console], 36);
    }
}
