//! The checks of a place, from what it is made of.

use std::sync::Arc;
use std::time::SystemTime;

use jig_drivers::checks;
use jig_drivers::power::OutletPower;
use jig_model::Fault;
use jig_model::profile::{BoardProfile, CheckKind, HealthSpec};
use jig_model::protocol::HealthCheck;
use jig_model::rig_file::Place;
use jig_rig::session::StartChecks;
use tempfile::TempDir;

use crate::{BindError, Lab, SwitchError};

/// Says why the checks of a place cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ChecksError {
    /// There is no room for what drivers leave as evidence.
    #[error("could not make a folder for the checks")]
    Folder(#[source] std::io::Error),
    /// What switches the place cannot be asked.
    #[error(transparent)]
    Switch(#[from] SwitchError),
    /// The board cannot be asked.
    #[error(transparent)]
    Bind(#[from] BindError),
}

impl ChecksError {
    /// Says who is to blame.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Folder(_) => Fault::Lab,
            Self::Switch(error) => error.fault(),
            Self::Bind(error) => error.fault(),
        }
    }
}

/// The checks of a place, in the order in which they are run.
pub(crate) struct PlaceChecks {
    pub(crate) list: Vec<Box<dyn HealthCheck>>,
    /// What drivers leave as evidence; gone with the checks.
    _evidence: TempDir,
}

impl Lab {
    /// Makes the checks that a place's board asks for and the place has something for. Touches
    /// nothing yet. Call within a tokio runtime; the caller that runs the checks of a real board
    /// holds its place.
    pub(crate) fn checks_of(
        &self,
        place: &Place,
        profile: &Arc<BoardProfile>,
    ) -> Result<PlaceChecks, ChecksError> {
        let evidence = tempfile::tempdir().map_err(ChecksError::Folder)?;
        let mut list = self.stands_on(place, profile)?;
        if profile.health.checks_at(place).contains(&CheckKind::Board) {
            list.extend(self.board_checks(place, profile, &evidence)?);
        }
        Ok(PlaceChecks { list, _evidence: evidence })
    }

    /// Makes the checks at the start of a run: those that cost it nothing and touch nothing that it
    /// is about to use. Its outlet is not among them: the run begins with a command to it, which a
    /// question would only hold up.
    pub(crate) fn at_start(&self, place: &Place, profile: &BoardProfile) -> StartChecks {
        let mut checks = StartChecks::default();
        let bare = profile.health.barely();
        for kind in profile.health.checks_at(place) {
            match kind {
                CheckKind::Disk | CheckKind::Memory | CheckKind::Handles => {
                    checks.must.extend(self.host_check(kind, place, &bare));
                    checks.should.extend(self.host_check(kind, place, &profile.health));
                }
                CheckKind::Clock => {
                    checks.should.extend(self.host_check(kind, place, &profile.health));
                }
                CheckKind::Console => {
                    // Another program that has a port open reads bytes that are missing here, so
                    // no run begins beside it. One that only looks at new ports is soon gone.
                    let untaken = || {
                        let transports = place.consoles.iter();
                        transports.filter_map(|transport| {
                            checks::untaken(&transport.console, &transport.end)
                        })
                    };
                    checks.must.extend(untaken());
                    checks.should.extend(untaken());
                }
                CheckKind::Network | CheckKind::Power | CheckKind::Board => {}
            }
        }
        checks
    }

    /// Makes a check of the host, if it is one.
    fn host_check(
        &self,
        kind: CheckKind,
        place: &Place,
        spec: &HealthSpec,
    ) -> Option<Box<dyn HealthCheck>> {
        Some(match kind {
            CheckKind::Clock => checks::clock(
                self.catalogue.places().root().join(format!("{}.clock", place.name)),
                spec.clock_skew,
                installed(),
                checks::ClockSources::default(),
            ),
            CheckKind::Disk => checks::free_disk(self.catalogue.runs_dir(), spec.free_disk),
            CheckKind::Memory => checks::free_memory(spec.free_memory),
            CheckKind::Handles => checks::free_handles(spec.free_handles),
            CheckKind::Power | CheckKind::Console | CheckKind::Network | CheckKind::Board => {
                return None;
            }
        })
    }

    /// Makes the checks of what a place stands on: all of its checks but those of the board itself.
    pub(crate) fn stands_on(
        &self,
        place: &Place,
        profile: &BoardProfile,
    ) -> Result<Vec<Box<dyn HealthCheck>>, ChecksError> {
        let spec = &profile.health;
        let mut list: Vec<Box<dyn HealthCheck>> = Vec::new();
        for kind in spec.checks_at(place) {
            match kind {
                CheckKind::Clock | CheckKind::Disk | CheckKind::Memory | CheckKind::Handles => {
                    list.extend(self.host_check(kind, place, spec));
                }
                CheckKind::Power => {
                    list.extend(self.sensed_outlet(place)?.map(checks::outlet));
                }
                CheckKind::Console => {
                    for transport in &place.consoles {
                        let check = checks::console(&transport.console, &transport.end);
                        let while_off = checks::untaken(&transport.console, &transport.end);
                        list.push(match (self.board_outlet(place)?, while_off) {
                            (Some(outlet), Some(while_off)) => {
                                checks::excused(outlet, check, while_off)
                            }
                            (Some(_) | None, _) => check,
                        });
                    }
                }
                CheckKind::Network => {
                    for check in checks::network(&place.network) {
                        list.push(self.while_powered(place, check)?);
                    }
                }
                CheckKind::Board => {}
            }
        }
        Ok(list)
    }

    /// Returns the checks that the driver of the board itself offers.
    fn board_checks(
        &self,
        place: &Place,
        profile: &Arc<BoardProfile>,
        evidence: &TempDir,
    ) -> Result<Vec<Box<dyn HealthCheck>>, ChecksError> {
        let bound = self.bind_quietly(place, profile, evidence.path().to_owned())?;
        let mut list = Vec::new();
        for check in bound.health {
            list.push(self.while_powered(place, check)?);
        }
        Ok(list)
    }

    /// Has a board asked only while it has power, where that can be told.
    fn while_powered(
        &self,
        place: &Place,
        check: Box<dyn HealthCheck>,
    ) -> Result<Box<dyn HealthCheck>, ChecksError> {
        Ok(match self.board_outlet(place)? {
            Some(outlet) => checks::while_powered(outlet, check),
            None => check,
        })
    }

    /// Opens what switches a real board, if anything does.
    fn board_outlet(&self, place: &Place) -> Result<Option<OutletPower>, ChecksError> {
        if place.power.is_none() {
            return Ok(None);
        }
        Ok(Some(self.open_outlet(&self.switch_of(place)?)?))
    }
}

/// Returns a time that has surely passed: when this program was written to its disk.
fn installed() -> SystemTime {
    let program = std::env::current_exe().and_then(std::fs::metadata);
    program.and_then(|about| about.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
}
