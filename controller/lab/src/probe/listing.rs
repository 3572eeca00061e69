//! Which places are served by another process.

use jig_model::PlaceName;
use jig_rig::store::StoreError;
use serde::{Deserialize, Serialize};

use crate::Catalogue;

/// An emulated place whose debug port is served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedPlace {
    /// The place.
    pub place: PlaceName,
    /// What names its probe.
    pub selector: String,
    /// The process that serves it.
    pub pid: u32,
}

/// Lists the places that are served.
///
/// # Errors
/// The holder of a place cannot be found out.
pub fn served_places(catalogue: &Catalogue) -> Result<Vec<ServedPlace>, StoreError> {
    let places = catalogue.places();
    let mut served = Vec::new();
    for place in &catalogue.rig.places {
        let Some(holder) = places.holder(&place.name)?.flatten() else { continue };
        if let Some(selector) = holder.selector {
            served.push(ServedPlace { place: place.name.clone(), selector, pid: holder.pid });
        }
    }
    Ok(served)
}
