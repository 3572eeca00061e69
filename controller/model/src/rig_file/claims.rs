//! Hardware that belongs to one place: transports, debug probes and mass-storage volumes.
//!
//! Two places with one of them flash, reset and judge each other's board. Only names are compared: two
//! links to one serial port are met when it is opened, which takes a lock.

use std::collections::BTreeMap;
use std::ops::Range;

use super::Endpoint;
use super::console_transports::{ends, what};
use super::raw::RawPlace;
use crate::PlaceName;
use crate::document::{Findings, Located};
use crate::profile::{BoardProfile, Deploy};

/// What one place has to itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Claimed {
    /// What a transport ends at.
    End(Endpoint),
    /// A debug probe, by its selector in one way of writing.
    Probe(String),
    /// A volume, by its label or path.
    Volume(String),
}

impl Claimed {
    fn check(&self) -> &'static str {
        match self {
            Self::End(_) => "rig::transport-twice",
            Self::Probe(_) => "rig::probe-twice",
            Self::Volume(_) => "rig::volume-twice",
        }
    }

    fn what(&self) -> String {
        match self {
            Self::End(end) => what(end),
            Self::Probe(selector) => format!("debug probe {}", selector.escape_debug()),
            Self::Volume(volume) => format!("volume {volume:?}"),
        }
    }

    fn help(&self, place: &PlaceName) -> String {
        match self {
            Self::Probe(selector) if selector.splitn(3, ':').nth(2).is_none() => {
                "add the serial numbers of both: \"VID:PID:SERIAL\" (see: jig probes); of two alike \
                 without serial numbers only one can be attached"
                    .to_owned()
            }
            Self::Volume(volume) if !volume.starts_with('/') => format!(
                "give place \"{place}\" the whole path of the folder where its volume is mounted, or \
                 remove one of the two"
            ),
            _ => format!("give place \"{place}\" another one, or remove one of the two"),
        }
    }
}

/// What the places of the rig have to themselves: the place, and the file and line that say so.
#[derive(Default)]
pub(super) struct Claims(BTreeMap<Claimed, (PlaceName, String)>);

impl Claims {
    /// Checks that no other place, of this or an earlier file, has what a place has to itself.
    pub(super) fn claim(
        &mut self,
        place: &RawPlace,
        profile: Option<&BoardProfile>,
        (origin, text): (&str, &str),
        findings: &Findings,
    ) {
        let Some(name) = &place.name else { return };
        for (claimed, span) in of_place(place, profile) {
            match self.0.get(&claimed) {
                Some((other, at)) if *other != name.value => {
                    let message =
                        format!("{} belongs to place \"{other}\" at {at}", claimed.what());
                    let help = claimed.help(&name.value);
                    findings.add(claimed.check(), Some(span), message, help);
                }
                Some(_) => {}
                None => {
                    let before = text.get(..span.start).unwrap_or_default();
                    let line = before.matches('\n').count() + 1;
                    self.0.insert(claimed, (name.value.clone(), format!("{origin}:{line}")));
                }
            }
        }
    }
}

fn of_place(place: &RawPlace, profile: Option<&BoardProfile>) -> Vec<(Claimed, Range<usize>)> {
    let transports = place.console.iter().flat_map(|list| &list.value);
    let consoles = transports.flat_map(|transport| ends(&transport.value));
    // The port a flasher talks to may be a console of the same place, but of no other.
    let probe = place.probe.as_ref().map(|probe| &probe.value);
    let flasher = place.flasher.as_ref().map(|flasher| &flasher.value);
    let ports = [probe.and_then(|probe| probe.port.clone()), flasher.and_then(|f| f.port.clone())];
    let ports = ports.into_iter().flatten().map(|port| port.map(Endpoint::Tty));
    let mut claims: Vec<_> = consoles
        .chain(ports)
        // Each place starts a process of its own.
        .filter(|end| !matches!(end.value, Endpoint::Command(_)))
        .map(|end| (Claimed::End(end.value), end.span))
        .collect();
    if let Some(selector) = probe.and_then(|probe| probe.selector.as_ref()) {
        let claimed = Claimed::Probe(canonical(&selector.value));
        claims.push((claimed, selector.span.clone()));
    }
    if place.emulator.is_none() {
        claims.extend(volume_of(place, profile));
    }
    claims
}

/// Writes a selector in one way: ids and serial numbers are compared without case, paths of sockets are
/// not.
fn canonical(selector: &str) -> String {
    let mut parts = selector.splitn(3, ':');
    let mut id = || {
        let text = parts.next().unwrap_or_default();
        let (id, interface) = text.split_once('-').map_or((text, ""), |(id, number)| (id, number));
        let dash = if interface.is_empty() { "" } else { "-" };
        format!("{:0>4}{dash}{interface}", id.to_ascii_lowercase())
    };
    let (vendor, product) = (id(), id());
    match parts.next() {
        None | Some("") => format!("{vendor}:{product}"),
        Some(at) if at.starts_with("unix:") || at.starts_with("tcp:") => {
            format!("{vendor}:{product}:{at}")
        }
        Some(serial) => format!("{vendor}:{product}:{}", serial.to_ascii_lowercase()),
    }
}

/// Returns the volume that the image is copied to: that of the place, else that of the profile, which
/// the line of the board stands for.
fn volume_of(place: &RawPlace, profile: Option<&BoardProfile>) -> Option<(Claimed, Range<usize>)> {
    let flasher = place.flasher.as_ref().map(|flasher| &flasher.value);
    if let Some(Located { value, span }) = flasher.and_then(|flasher| flasher.volume.as_ref()) {
        return Some((Claimed::Volume(value.clone()), span.clone()));
    }
    if flasher.is_some_and(|flasher| flasher.keys().names_program()) {
        return None;
    }
    match (&profile?.deploy, &place.board) {
        (Some(Deploy::Volume(copy)), Some(board)) => {
            Some((Claimed::Volume(copy.volume.clone()), board.span.clone()))
        }
        _ => None,
    }
}
