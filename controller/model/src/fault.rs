//! Who is to blame, said in a type.

use serde::{Deserialize, Serialize};

/// Says who has to act before the same thing can work.
///
/// Match it without `_`: a new kind of blame must be thought about everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The command line was wrong, the image it names included.
    Usage,
    /// A profile, plan or rig file is wrong.
    Profile,
    /// The rig failed: power, transport, emulator, disk, host.
    Lab,
    /// The firmware under test failed.
    Target,
    /// The firmware or the rig: what was seen does not tell them apart.
    Unknown,
    /// The caller asked to stop.
    Cancelled,
    /// Jig itself is wrong.
    Bug,
}

/// Says an error with everything below it, once each.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut below = error.source();
    while let Some(source) = below {
        let words = source.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        below = source.source();
    }
    text
}
