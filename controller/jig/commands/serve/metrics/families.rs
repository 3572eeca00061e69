//! The families of samples, and what the process itself uses.

use std::fs::read_to_string;

use jig_lab::{Catalogue, health_subject};
use jig_model::recovery::RecoveryStep;
use jig_rig::health::{HealthState, HealthStore};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

use super::counters::{DURATIONS, RigCounters};
use super::exposition::{Exposition, FamilyKind};
use crate::failure::chain;

/// Most places that have samples of their own. Each has a handful of them, for as long as a
/// collector keeps its data.
const MOST_PLACES: usize = 500;

/// Writes all families. What cannot be read is left out and logged.
pub(super) fn text(catalogue: &Catalogue, counters: &mut RigCounters) -> String {
    let mut out = Exposition::default();
    out.family("jig_build_info", FamilyKind::Gauge, "Version of the service");
    out.sample("jig_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    let path = catalogue.health_store();
    // A look begins no store.
    let health = path.exists().then(|| HealthStore::open(&path)).transpose();
    let health = health.unwrap_or_else(|error| {
        tracing::warn!(error = chain(&error), "health of places is not among the metrics");
        None
    });
    if let Err(error) = counters.look(catalogue, health.as_ref()) {
        tracing::warn!(error = chain(&error), "events are missing among the metrics");
    }
    places(&mut out, catalogue, health.as_ref());
    leases(&mut out, catalogue);
    happened(&mut out, counters);
    process(&mut out);
    out.into_text()
}

fn places(out: &mut Exposition, catalogue: &Catalogue, health: Option<&HealthStore>) {
    let all = catalogue.rig.places.iter();
    let states: Vec<_> = all
        .map(|place| {
            let state = match health {
                None => Some(HealthState::Healthy),
                Some(store) => {
                    store.of_by(&health_subject(place), &place.name).ok().map(|h| h.state)
                }
            };
            (place, state)
        })
        .collect();
    out.family("jig_places", FamilyKind::Gauge, "Places by state of health");
    for state in HealthState::ALL {
        let count = states.iter().filter(|(_, now)| *now == Some(*state)).count();
        out.sample("jig_places", &[("state", state.as_str())], count);
    }
    let unknown = states.iter().filter(|(_, now)| now.is_none()).count();
    out.sample("jig_places", &[("state", "unknown")], unknown);
    out.family("jig_place_usable", FamilyKind::Gauge, "Whether a place is in service");
    for (place, state) in states.iter().take(MOST_PLACES) {
        let usable = state.is_some_and(HealthState::usable);
        out.sample("jig_place_usable", &[("place", place.name.as_str())], u8::from(usable));
    }
}

fn leases(out: &mut Exposition, catalogue: &Catalogue) {
    let leases = match catalogue.leases() {
        Ok(leases) => leases,
        Err(error) => {
            tracing::warn!(error = chain(&error), "leases are not among the metrics");
            return;
        }
    };
    let help = "Leases that wait for a place";
    out.single("jig_lease_queue_length", FamilyKind::Gauge, help, leases.queue.len());
    out.family("jig_place_leased", FamilyKind::Gauge, "Whether a place is leased");
    let places = || catalogue.rig.places.iter().take(MOST_PLACES).map(|place| &place.name);
    for place in places() {
        let leased = u8::from(leases.active.contains_key(place));
        out.sample("jig_place_leased", &[("place", place.as_str())], leased);
    }
    let help = "Waiting leases that a place would do for";
    out.family("jig_place_waiting", FamilyKind::Gauge, help);
    for place in places() {
        let waiting = leases.waiting.get(place).copied().unwrap_or_default();
        out.sample("jig_place_waiting", &[("place", place.as_str())], waiting);
    }
}

fn happened(out: &mut Exposition, counters: &RigCounters) {
    let name = "jig_runs_total";
    out.family(name, FamilyKind::Counter, "Runs that have ended, by verdict and cause");
    for ((verdict, cause), count) in &counters.runs {
        out.sample(name, &[("verdict", *verdict), ("cause", *cause)], count);
    }
    let name = "jig_run_duration_seconds";
    out.family(name, FamilyKind::Histogram, "Durations of runs that have ended");
    let (mut below, bucket) = (0, format!("{name}_bucket"));
    for (bound, count) in DURATIONS.iter().zip(counters.durations) {
        below += count;
        out.sample(&bucket, &[("le", &bound.to_string())], below);
    }
    let all: u64 = counters.durations.iter().sum();
    out.sample(&bucket, &[("le", "+Inf")], all);
    out.sample(&format!("{name}_sum"), &[], counters.seconds);
    out.sample(&format!("{name}_count"), &[], all);
    let name = "jig_recoveries_total";
    out.family(name, FamilyKind::Counter, "Recoveries of the rig, by the step that succeeded");
    for (step, count) in &counters.recoveries {
        let step = step.map_or("none", RecoveryStep::as_str);
        out.sample(name, &[("step", step)], count);
    }
    let by_place = [
        ("jig_console_gaps_total", "Times that console output of a run was lost", &counters.gaps),
        ("jig_console_overruns_total", "Gaps that were overruns of a port", &counters.overruns),
        ("jig_console_lost_bytes_total", "Bytes known to be lost in gaps", &counters.lost_bytes),
        (
            "jig_console_garbled_total",
            "Characters with a bad stop or parity bit",
            &counters.garbled,
        ),
    ];
    for (name, help, counts) in by_place {
        out.family(name, FamilyKind::Counter, help);
        for (place, count) in counts.iter().take(MOST_PLACES) {
            out.sample(name, &[("place", place.as_str())], count);
        }
    }
    let name = "jig_console_captured_bytes_total";
    out.family(name, FamilyKind::Counter, "Bytes of consoles captured between runs");
    for ((place, console), bytes) in counters.captured.iter().take(MOST_PLACES) {
        let labels = [("place", place.as_str()), ("console", console.as_str())];
        out.sample(name, &labels, bytes);
    }
}

/// Writes the families that collectors know of any process. Workers are processes of their own.
fn process(out: &mut Exposition) {
    let status = read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.strip_suffix("kB"));
    if let Some(kilobytes) = kilobytes.and_then(|number| number.trim().parse::<u64>().ok()) {
        let (name, help) = ("process_resident_memory_bytes", "Memory of the service");
        out.single(name, FamilyKind::Gauge, help, kilobytes << 10);
    }
    if let Ok(used) = getrusage(UsageWho::RUSAGE_SELF) {
        let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
        let (name, help) = ("process_cpu_seconds_total", "Processor time of the service");
        let value = seconds(used.user_time()) + seconds(used.system_time());
        out.single(name, FamilyKind::Counter, help, value);
    }
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        let (name, help) = ("process_open_fds", "Open files of the service");
        out.single(name, FamilyKind::Gauge, help, open.count());
    }
}
