//! The checks of a place, from what it is made of.

use std::sync::Arc;
use std::time::SystemTime;

use jig_drivers::checks;
use jig_drivers::power::{OutletPower, PowerError, open_outlet};
use jig_model::Fault;
use jig_model::profile::{BoardProfile, CheckKind, HealthSpec};
use jig_model::protocol::{BindContext, HealthCheck, NoLedger, NoSink};
use jig_model::rig_file::{Place, Resource};
use jig_rig::session::StartChecks;
use tempfile::TempDir;

use crate::args::Common;
use crate::catalogue::Catalogue;
use crate::commands::power::{context, sensed_outlet};
use crate::failure::Failure;
use crate::wire_up;

/// The checks of a place, in the order in which they are run.
pub(crate) struct PlaceChecks {
    pub(crate) list: Vec<Box<dyn HealthCheck>>,
    /// What drivers leave as evidence; gone with the checks.
    _evidence: TempDir,
}

/// Makes the checks that a place's board asks for and the place has something for. Touches
/// nothing yet. Call within a tokio runtime; whoever runs the checks of a real board holds its
/// place.
pub(crate) fn checks_of(
    catalogue: &Catalogue,
    common: &Common,
    place: &Place,
    profile: &Arc<BoardProfile>,
) -> Result<PlaceChecks, Failure> {
    let evidence = tempfile::tempdir().map_err(|error| {
        Failure::new(Fault::Lab, format!("could not make a folder for the checks: {error}"))
            .help("free some space in the folder of temporary files, or set TMPDIR")
    })?;
    let mut list = stands_on(catalogue, common, place, profile)?;
    if profile.health.checks_at(&place.resource).contains(&CheckKind::Board) {
        list.extend(board(catalogue, place, profile, &evidence)?);
    }
    Ok(PlaceChecks { list, _evidence: evidence })
}

/// Makes the checks at the start of a run: those that cost it nothing and touch nothing that it
/// is about to use. Its outlet is not among them: the run begins with a command to it, which a
/// question would only hold up.
pub(crate) fn at_start(
    catalogue: &Catalogue,
    common: &Common,
    place: &Place,
    profile: &BoardProfile,
) -> StartChecks {
    let mut checks = StartChecks::default();
    let bare = profile.health.barely();
    for kind in profile.health.checks_at(&place.resource) {
        match kind {
            CheckKind::Disk | CheckKind::Memory | CheckKind::Handles => {
                checks.must.extend(host(kind, catalogue, common, place, &bare));
                checks.should.extend(host(kind, catalogue, common, place, &profile.health));
            }
            CheckKind::Clock => {
                checks.should.extend(host(kind, catalogue, common, place, &profile.health));
            }
            CheckKind::Console => {
                let Resource::Probe(probe) = &place.resource else { continue };
                let wires = probe.wires.iter();
                checks
                    .should
                    .extend(wires.filter_map(|wire| checks::untaken(&wire.console, &wire.end)));
            }
            CheckKind::Network | CheckKind::Power | CheckKind::Board => {}
        }
    }
    checks
}

/// Makes a check of the host, if it is one.
fn host(
    kind: CheckKind,
    catalogue: &Catalogue,
    common: &Common,
    place: &Place,
    spec: &HealthSpec,
) -> Option<Box<dyn HealthCheck>> {
    Some(match kind {
        CheckKind::Clock => checks::clock(
            catalogue.places().root().join(format!("{}.clock", place.name)),
            spec.clock_skew,
            installed(),
            checks::ClockSources::default(),
        ),
        CheckKind::Disk => checks::free_disk(catalogue.runs_dir(common), spec.free_disk),
        CheckKind::Memory => checks::free_memory(spec.free_memory),
        CheckKind::Handles => checks::free_handles(spec.free_handles),
        CheckKind::Power | CheckKind::Console | CheckKind::Network | CheckKind::Board => {
            return None;
        }
    })
}

/// Makes the checks of what a place stands on: all of its checks but those of the board itself.
pub(crate) fn stands_on(
    catalogue: &Catalogue,
    common: &Common,
    place: &Place,
    profile: &BoardProfile,
) -> Result<Vec<Box<dyn HealthCheck>>, Failure> {
    let spec = &profile.health;
    let mut list: Vec<Box<dyn HealthCheck>> = Vec::new();
    for kind in spec.checks_at(&place.resource) {
        match kind {
            CheckKind::Clock | CheckKind::Disk | CheckKind::Memory | CheckKind::Handles => {
                list.extend(host(kind, catalogue, common, place, spec));
            }
            CheckKind::Power => {
                list.extend(sensed_outlet(catalogue, place)?.map(checks::outlet));
            }
            CheckKind::Console => {
                let Resource::Probe(probe) = &place.resource else { continue };
                for wire in &probe.wires {
                    let check = checks::console(&wire.console, &wire.end);
                    let while_off = checks::untaken(&wire.console, &wire.end);
                    list.push(match (outlet(catalogue, place)?, while_off) {
                        (Some(outlet), Some(while_off)) => {
                            checks::excused(outlet, check, while_off)
                        }
                        (Some(_) | None, _) => check,
                    });
                }
            }
            CheckKind::Network => {
                for check in checks::network(&place.network) {
                    list.push(while_powered(catalogue, place, check)?);
                }
            }
            CheckKind::Board => {}
        }
    }
    Ok(list)
}

/// Returns the checks that the driver of the board itself offers.
fn board(
    catalogue: &Catalogue,
    place: &Place,
    profile: &Arc<BoardProfile>,
    evidence: &TempDir,
) -> Result<Vec<Box<dyn HealthCheck>>, Failure> {
    let images = Catalogue::images_dir();
    let context = BindContext {
        profile: Arc::clone(profile),
        resource: place.resource.clone(),
        sink: Arc::new(NoSink),
        evidence: evidence.path().to_owned(),
        images: std::path::absolute(&images).unwrap_or(images),
        ledger: Arc::new(NoLedger),
    };
    let bound = wire_up::factory(profile, &place.resource)?.bind(context);
    let bound =
        bound.map_err(|error| Failure::of(error.cause.fault().unwrap_or(Fault::Lab), &error))?;
    let mut list = Vec::new();
    for check in bound.health {
        list.push(while_powered(catalogue, place, check)?);
    }
    Ok(list)
}

/// Has a board asked only while it has power, where that can be told.
fn while_powered(
    catalogue: &Catalogue,
    place: &Place,
    check: Box<dyn HealthCheck>,
) -> Result<Box<dyn HealthCheck>, Failure> {
    Ok(match outlet(catalogue, place)? {
        Some(outlet) => checks::while_powered(outlet, check),
        None => check,
    })
}

/// Opens what switches a place, if anything does.
fn outlet(catalogue: &Catalogue, place: &Place) -> Result<Option<OutletPower>, Failure> {
    let Some(power) = place.power.as_ref().filter(|_| matches!(place.resource, Resource::Probe(_)))
    else {
        return Ok(None);
    };
    let context = context(catalogue.places().root());
    let opened = open_outlet(power, &catalogue.rig.power, &context);
    let failed = |error: PowerError| {
        let fault = error.cause().fault().unwrap_or(Fault::Lab);
        let help = format!("see what is switched how: jig power --explain {}", place.name);
        Failure::of(fault, &error).help(help)
    };
    opened.map(Some).map_err(failed)
}

/// Returns a time that has surely passed: when this program was written to its disk.
fn installed() -> SystemTime {
    let program = std::env::current_exe().and_then(std::fs::metadata);
    program.and_then(|about| about.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
}
