//! The rights that rules give.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::document::{Choice, did_you_mean};

/// What may be done at a place.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum AccessRight {
    /// See that it is there, its state, its runs and what its consoles print.
    See,
    /// Run tests, which deploy images and switch the power; send input, reset, debug, hold, lease.
    Use,
    /// Switch its power, and recover it.
    Power,
    /// Write and erase its flash outside of a run, and serve its debug port.
    Flash,
    /// All of it, also against other users: end their leases and commands, switch a shared outlet,
    /// inject faults, run programs on the rig's host.
    Administer,
}

impl AccessRight {
    /// All rights, from the least on.
    pub const ALL: [Self; 5] = [Self::See, Self::Use, Self::Power, Self::Flash, Self::Administer];

    /// Returns the stable text form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::See => "see",
            Self::Use => "use",
            Self::Power => "power",
            Self::Flash => "flash",
            Self::Administer => "administer",
        }
    }

    /// Tells whether this right brings another one along.
    pub fn brings(self, other: Self) -> bool {
        self == other || other == Self::See || self == Self::Administer
    }
}

impl fmt::Display for AccessRight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Choice for AccessRight {
    const WHAT: &'static str = "right";
    const CHOICES: &'static [(&'static str, Self)] = &[
        ("see", Self::See),
        ("use", Self::Use),
        ("power", Self::Power),
        ("flash", Self::Flash),
        ("administer", Self::Administer),
    ];
}

/// Says that a text names neither a right nor a verb that needs one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{verb:?} is no right, and no verb at a place; {help}")]
pub struct NoAccessRight {
    verb: String,
    help: String,
}

/// The verbs of the command line that are used at a place, and what each needs. What an option
/// changes is told by the command that it becomes.
const VERBS: &[(&str, AccessRight)] = &[
    ("bp", AccessRight::Use),
    ("bt", AccessRight::Use),
    ("console", AccessRight::Use),
    ("dump", AccessRight::Use),
    ("erase", AccessRight::Flash),
    ("gdb", AccessRight::Use),
    ("halt", AccessRight::Use),
    ("health", AccessRight::See),
    ("hold", AccessRight::Use),
    ("lease", AccessRight::Use),
    ("mem", AccessRight::Use),
    ("probe", AccessRight::Flash),
    ("recover", AccessRight::Power),
    ("regs", AccessRight::Use),
    ("reset", AccessRight::Use),
    ("resume", AccessRight::Use),
    ("rtt", AccessRight::Use),
    ("run", AccessRight::Use),
    ("runs", AccessRight::See),
    ("shell", AccessRight::Use),
    ("steal", AccessRight::Administer),
    ("step", AccessRight::Use),
    ("test", AccessRight::Use),
];

/// Reads a right, or the verb that needs it.
impl FromStr for AccessRight {
    type Err = NoAccessRight;

    fn from_str(text: &str) -> Result<Self, NoAccessRight> {
        let known = Self::CHOICES.iter().chain(VERBS);
        known.clone().find(|(name, _)| *name == text).map(|(_, right)| *right).ok_or_else(|| {
            let help = did_you_mean(text, known.map(|(name, _)| *name));
            NoAccessRight { verb: text.chars().take(64).collect(), help }
        })
    }
}
