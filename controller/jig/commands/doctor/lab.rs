//! What the places of the rig need besides their boards: what switches their power, images that
//! are known to work, and that they are in service.

use std::collections::BTreeMap;

use jig_lab::{Catalogue, health_subject};
use jig_rig::health::HealthStore;

use super::programs::{find, fix};
use super::{DoctorFinding, DoctorLevel};
use crate::failure::chain;

/// Looks at all of it. Asks no device.
pub(super) fn look(catalogue: &Catalogue) -> Vec<DoctorFinding> {
    let mut findings = power_programs(catalogue);
    findings.extend(canaries(catalogue));
    findings.extend(health(catalogue));
    findings
}

/// Looks for the programs that power devices are switched by.
fn power_programs(catalogue: &Catalogue) -> Vec<DoctorFinding> {
    let mut users: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for device in &catalogue.rig.power {
        for program in device.driver.programs() {
            let devices = users.entry(program).or_default();
            if !devices.contains(&device.name.as_str()) {
                devices.push(device.name.as_str());
            }
        }
    }
    let finding = |(program, devices): (&str, Vec<&str>)| match find(program) {
        Some(path) => DoctorFinding::ok(program, path.display().to_string()),
        None => {
            let found = format!("not there; needed to switch {}", devices.join(", "));
            DoctorFinding::bad(program, DoctorLevel::Warning, found, fix(program))
        }
    };
    users.into_iter().map(finding).collect()
}

/// Looks whether the images are there that places declare as known to work.
fn canaries(catalogue: &Catalogue) -> Vec<DoctorFinding> {
    let finding = |place: &jig_model::rig_file::Place| {
        let canary = catalogue.canary(place)?;
        let name = format!("canary {}", place.name);
        let path = canary.image.display();
        Some(match jig_rig::store::open_regular(&canary.image) {
            Ok(_) => DoctorFinding::ok(name, path.to_string()),
            Err(error) => {
                let found = format!("{path} cannot be read: {error}");
                let fix = format!("build it, or correct `image` in {}", place.origin);
                DoctorFinding::bad(name, DoctorLevel::Warning, found, fix)
            }
        })
    };
    catalogue.rig.places.iter().filter_map(finding).collect()
}

/// Finds places that are not fit for use; none if no health has been recorded yet.
fn health(catalogue: &Catalogue) -> Vec<DoctorFinding> {
    let path = catalogue.health_store();
    if !path.exists() {
        return Vec::new();
    }
    let store = match HealthStore::open(&path) {
        Ok(store) => store,
        Err(error) => {
            let fix = "jig health   # says what to do about it";
            return vec![DoctorFinding::bad("health", DoctorLevel::Warning, chain(&error), fix)];
        }
    };
    let places = catalogue.rig.places.iter();
    let ill = places.filter_map(|place| {
        let health = store.of_by(&health_subject(place), &place.name).ok()?;
        let found = format!("{}: {}", health.state, health.why);
        let fix = format!("jig recover -b {}", place.name);
        let name = format!("health {}", place.name);
        (!health.state.usable()).then(|| DoctorFinding::bad(name, DoctorLevel::Warning, found, fix))
    });
    let ill: Vec<DoctorFinding> = ill.collect();
    match ill.is_empty() {
        true => vec![DoctorFinding::ok("health", "every place is fit for use")],
        false => ill,
    }
}
