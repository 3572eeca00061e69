//! What is known of all places of a rig at one moment, read from its files.
//!
//! Needs no service: health, leases, runs and console logs are files. Changes none of them. Tells of
//! the places that the user may see.

use std::collections::BTreeMap;
use std::time::SystemTime;

use jiff::Timestamp;
use jig_model::lease::{LeaseState, LeaseView};
use jig_model::rig_file::Place;
use jig_model::{ConsoleName, PlaceName, RunId, chain};
use jig_rig::capture_service::LogFolder;
use jig_rig::console::escape;
use jig_rig::health::{HealthState, PlaceHealth};
use jig_rig::store::{RunDir, RunStore};
use serde::{Deserialize, Serialize};

use super::console_tail::{last_line, last_lines};
use crate::{Catalogue, LeaseOverview, health_subject};

/// Number of the newest runs that are looked at for those under way: a host that begins more while
/// one goes on is not one that people watch by eye.
const NEWEST_RUNS: usize = 64;

/// All places at one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RigSnapshot {
    /// When it was taken.
    pub at: Timestamp,
    /// The places, by name.
    pub places: Vec<PlaceView>,
    /// How many wait for a lease.
    pub queue: usize,
    /// What could not be read, in words.
    pub missing: Vec<String>,
}

/// A place at one moment. Texts are safe for a terminal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlaceView {
    /// Its name.
    pub place: PlaceName,
    /// The kind of its board.
    pub board: String,
    /// Nothing if it cannot be read.
    pub health: Option<HealthState>,
    /// Why it has this health.
    pub why: String,
    /// Its lease, while it has one.
    pub lease: Option<HeldLease>,
    /// How many of the queue the place would do for.
    pub waiting: usize,
    /// The process that uses it.
    pub in_use_by: Option<String>,
    /// The run under way.
    pub run: Option<CurrentRun>,
    /// The last line of its primary console.
    pub console: Option<String>,
}

/// The lease of a place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeldLease {
    /// Who has it.
    pub owner: String,
    /// What for.
    pub comment: Option<String>,
    /// Until when, unless it is extended.
    pub until: Option<Timestamp>,
}

/// A run under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurrentRun {
    /// Its id.
    pub id: RunId,
    /// The name of its plan.
    pub plan: Option<String>,
    /// When it began.
    pub started: Option<Timestamp>,
}

/// Takes snapshots; remembers what saves reading.
#[derive(Debug, Default)]
pub struct SnapshotReader {
    /// When the folder of runs last changed, if no run was under way then.
    idle_since: Option<SystemTime>,
}

impl SnapshotReader {
    /// Reads what is known now.
    pub fn read(&mut self, catalogue: &Catalogue) -> RigSnapshot {
        let mut missing = Vec::new();
        let health = catalogue.health_store();
        let health = health.exists().then(|| catalogue.stores().health(&health)).transpose();
        let health = health.unwrap_or_else(|error| {
            missing.push(format!("health: {}", one_line(&chain(&error))));
            None
        });
        let LeaseOverview { mut active, queue, waiting } =
            catalogue.visible_leases().unwrap_or_else(|error| {
                missing.push(format!("leases: {}", one_line(&chain(&error))));
                LeaseOverview::default()
            });
        let runs = self.runs(catalogue, &mut missing);
        let locks = catalogue.places();
        let view = |place: &Place| {
            let now = match &health {
                Some(store) => store.of_by(&health_subject(place), &place.name).ok(),
                None => Some(PlaceHealth::unknown_to_anybody()),
            };
            let holder = locks.holder(&place.name).ok().flatten();
            let run = runs.get(&place.name);
            PlaceView {
                place: place.name.clone(),
                board: place.board.to_string(),
                health: now.as_ref().map(|now| now.state),
                why: now.map_or_else(String::new, |now| one_line(&now.why)),
                lease: active.remove(&place.name).map(|lease| HeldLease::of(&lease)),
                waiting: waiting.get(&place.name).copied().unwrap_or_default(),
                in_use_by: holder.map(|known| {
                    known.map_or_else(
                        || "another process".to_owned(),
                        |by| one_line(&by.to_string()),
                    )
                }),
                run: run.map(|(run, _)| run.clone()),
                console: primary(catalogue, place)
                    .and_then(|console| last_line(&log(catalogue, place, &console, run)?)),
            }
        };
        let mut places: Vec<PlaceView> = catalogue.visible_places().map(view).collect();
        places.sort_by(|a, b| a.place.cmp(&b.place));
        RigSnapshot { at: Timestamp::now(), places, queue: queue.len(), missing }
    }

    /// Reads the last lines of a place's primary console.
    pub fn console(&mut self, catalogue: &Catalogue, name: &PlaceName) -> Vec<String> {
        let Ok((place, _)) = catalogue.place(name) else { return Vec::new() };
        let runs = self.runs(catalogue, &mut Vec::new());
        let log = primary(catalogue, &place)
            .and_then(|console| log(catalogue, &place, &console, runs.get(name)));
        log.map(|path| last_lines(&path)).unwrap_or_default()
    }

    /// Finds the runs under way. An idle folder that has not changed is not listed again.
    fn runs(
        &mut self,
        catalogue: &Catalogue,
        missing: &mut Vec<String>,
    ) -> BTreeMap<PlaceName, (CurrentRun, RunDir)> {
        let folder = catalogue.runs_dir();
        let changed = std::fs::metadata(&folder).and_then(|about| about.modified()).ok();
        if changed.is_some() && changed == self.idle_since {
            return BTreeMap::new();
        }
        let mut runs = BTreeMap::new();
        match RunStore::new(folder).newest_first() {
            Ok(entries) => {
                for entry in entries.take(NEWEST_RUNS).filter(|entry| entry.live) {
                    let Ok(record) = entry.record else { continue };
                    let Some(place) = record.place else { continue };
                    let plan = record.plan.map(|plan| one_line(&plan.name));
                    let run = CurrentRun { id: record.id, plan, started: record.started };
                    // The newest of several on one emulated place.
                    runs.entry(place).or_insert((run, entry.dir));
                }
            }
            Err(error) => missing.push(format!("runs: {}", one_line(&chain(&error)))),
        }
        self.idle_since = changed.filter(|_| runs.is_empty());
        runs
    }
}

impl HeldLease {
    fn of(lease: &LeaseView) -> Self {
        let until = match &lease.state {
            LeaseState::Active { until, .. } => Some(*until),
            LeaseState::Queued { .. } | LeaseState::Ended { .. } => None,
        };
        let comment = lease.comment.as_deref().map(one_line);
        Self { owner: one_line(&lease.owner), comment, until }
    }
}

fn primary(catalogue: &Catalogue, place: &Place) -> Option<ConsoleName> {
    let profile = catalogue.profiles.get(&place.board)?;
    Some(profile.primary_console().clone())
}

/// Returns the newest log of a console: of the run under way, else what is captured between runs.
fn log(
    catalogue: &Catalogue,
    place: &Place,
    console: &ConsoleName,
    run: Option<&(CurrentRun, RunDir)>,
) -> Option<std::path::PathBuf> {
    let of_run = run.and_then(|(_, dir)| {
        let attempt = *dir.attempts().last()?;
        Some(dir.console_path(attempt, console))
    });
    of_run.or_else(|| {
        let files = LogFolder::new(&catalogue.places(), &place.name, console).files().ok()?;
        Some(files.last()?.paths.raw.clone())
    })
}

/// Makes a text harmless and puts it on one line.
fn one_line(text: &str) -> String {
    escape(text.as_bytes()).replace('\n', "\\n")
}
