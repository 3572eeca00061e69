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
    /// The rig failed: power, wire, emulator, disk, host.
    Lab,
    /// The firmware under test failed.
    Target,
    /// Somebody asked to stop.
    Cancelled,
    /// Jig itself is wrong.
    Bug,
}
