//! Debug probes.

use jig_model::PlaceName;
use jig_probe::list_probes;
use serde::{Deserialize, Serialize};

use super::RigViewError;
use crate::{Catalogue, ServedPlace, served_places};

/// A probe of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedProbe {
    /// What it calls itself.
    pub name: String,
    /// What names it.
    pub selector: String,
    /// Which driver serves it.
    pub kind: String,
    /// The bus port it is attached to.
    pub port: Option<String>,
    /// The program that has it open.
    pub holder: Option<String>,
    /// Whether the user may open it.
    pub accessible: bool,
    /// The place that it belongs to.
    pub place: Option<PlaceName>,
    /// The chip behind it.
    pub chip: Option<String>,
}

/// Lists the probes of this host's bus, and those that serve an emulated board.
pub(super) async fn list(catalogue: &Catalogue) -> Result<Vec<ListedProbe>, RigViewError> {
    let mut probes = Vec::new();
    for probe in list_probes().await? {
        let place = catalogue.place_of_probe(&probe.selector);
        probes.push(ListedProbe {
            place: place.map(|(place, _)| place.clone()),
            chip: place.and_then(|(_, chip)| chip.map(str::to_owned)),
            name: probe.name,
            selector: probe.selector,
            kind: probe.kind,
            port: probe.port,
            holder: probe.holder,
            accessible: probe.accessible,
        });
    }
    for ServedPlace { place, selector, pid } in served_places(catalogue)? {
        let chip = catalogue.place(&place).ok().and_then(|(_, profile)| profile.chip.clone());
        probes.push(ListedProbe {
            name: "emulated board".to_owned(),
            selector,
            kind: "virtual".to_owned(),
            port: None,
            holder: Some(format!("pid {pid}")),
            accessible: true,
            place: Some(place),
            chip,
        });
    }
    Ok(probes)
}
