//! Devices that may become parts of a rig.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jig_drivers::discover::{HubFound, Roots, TtyFound, hubs, ttys};
use jig_model::profile::{BoardProfile, OnboardUsb};
use jig_model::rig_file::ResetLine;
use jig_model::{BoardId, ConsoleName, chain};
use jig_probe::{ProbeInfo, list_probes};
use serde::{Deserialize, Serialize};

use super::RigViewError;
use crate::{Catalogue, CatalogueReader, LabConfig, ServedPlace, served_places};

/// What is attached to a host. No device was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttachedDevices {
    /// Serial ports.
    pub ttys: Vec<TtyFound>,
    /// Debug probes.
    pub probes: Vec<ProbeInfo>,
    /// USB hubs.
    pub hubs: Vec<HubFound>,
    /// Emulated boards that a process serves.
    pub served: Vec<ServedPlace>,
    /// The boards there are profiles of.
    pub boards: Vec<BoardId>,
    /// The boards that an attached device may be, by the selector of a probe or the node of a serial
    /// port; without those that no profile knows.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub candidates: BTreeMap<String, Vec<CandidateBoard>>,
    /// Why boards and served places are unknown, if they are; may hold any text.
    pub unknown: Option<String>,
}

/// A board that an attached device may be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CandidateBoard {
    /// The board.
    pub board: BoardId,
    /// Its name for people.
    pub title: String,
    /// Whether the device is a debug probe on its chip.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub probe: bool,
    /// The console that the first serial port of the device carries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub console: Option<ConsoleName>,
    /// The line of that port that resets the board: "dtr" or "rts".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset: Option<ResetLine>,
    /// Whether boards that no profile describes have such a device, too, so that it decides nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
}

/// Finds the boards that a USB device may be.
fn candidates<'p>(
    profiles: impl Iterator<Item = &'p BoardProfile>,
    (vendor, product, serial): (u16, u16, Option<&str>),
    probe: bool,
) -> Vec<CandidateBoard> {
    let found = profiles.filter_map(|profile| {
        let is = |device: &&OnboardUsb| device.is(vendor, product, serial);
        let device = profile.usb.iter().find(is).filter(|device| device.probe || !probe)?;
        let (board, title) = (profile.id.clone(), profile.title.clone());
        // A serial number tells more than an id that many boards have.
        Some((
            device.serials.is_empty(),
            CandidateBoard {
                board,
                title,
                probe: device.probe,
                console: device.console.clone(),
                reset: device.reset,
                shared: device.shared,
            },
        ))
    });
    let mut found: Vec<(bool, CandidateBoard)> = found.collect();
    if found.iter().any(|(vague, _)| !vague) {
        found.retain(|(vague, _)| !vague);
    }
    found.into_iter().map(|(_, candidate)| candidate).collect()
}

/// Finds what each attached device may be.
fn all_candidates(
    catalogue: &Catalogue,
    probes: &[ProbeInfo],
    ttys: &[TtyFound],
) -> BTreeMap<String, Vec<CandidateBoard>> {
    let number = |text: &str| u16::from_str_radix(text, 16).ok();
    let of_probe = |probe: &ProbeInfo| {
        let mut parts = probe.selector.splitn(3, ':');
        let (vendor, product) = (number(parts.next()?)?, parts.next()?);
        let product = number(product.split_once('-').map_or(product, |(id, _)| id))?;
        Some((probe.selector.clone(), (vendor, product, parts.next().map(str::to_owned)), true))
    };
    let of_tty = |tty: &TtyFound| {
        let usb = tty.usb.as_ref()?;
        let id = (number(&usb.vendor)?, number(&usb.product)?, usb.serial.clone());
        Some((tty.node.clone(), id, false))
    };
    let devices = probes.iter().filter_map(of_probe).chain(ttys.iter().filter_map(of_tty));
    let with_boards = devices.map(|(name, (vendor, product, serial), probe)| {
        let profiles = catalogue.profiles.values().map(|profile| &**profile);
        (name, candidates(profiles, (vendor, product, serial.as_deref()), probe))
    });
    with_boards.filter(|(_, boards)| !boards.is_empty()).collect()
}

impl AttachedDevices {
    /// Looks around on this host; `roots` are where the kernel shows devices.
    ///
    /// # Errors
    /// The host cannot be looked at.
    pub async fn at(
        roots: &Roots,
        reader: &CatalogueReader,
        config: &LabConfig,
    ) -> Result<Self, RigViewError> {
        let probes = list_probes().await?;
        // A broken rig file may be the reason for this question.
        let ttys = ttys(roots);
        let mut found = Self { probes, hubs: hubs(roots), ..Self::default() };
        match reader.read(config) {
            Ok(catalogue) => {
                found.served = served_places(&catalogue)?;
                found.candidates = all_candidates(&catalogue, &found.probes, &ttys);
                found.boards = catalogue.profiles.keys().cloned().collect();
            }
            Err(error) => found.unknown = Some(chain(&error)),
        }
        Ok(Self { ttys, ..found })
    }
}

/// Looks around where the kernel shows devices by custom.
pub(super) async fn look_around(
    reader: &CatalogueReader,
    config: &LabConfig,
) -> Result<AttachedDevices, RigViewError> {
    let roots = Roots { sysfs: PathBuf::from("/sys"), dev: PathBuf::from("/dev") };
    AttachedDevices::at(&roots, reader, config).await
}
