//! What a place says of its power, as it is written.

use std::time::Duration;

use serde_json::{Value, json};

use crate::document::{Choice, FromToml, Node};
use crate::{DeviceName, toml_table};

toml_table! {
    /// What switches the power of a place.
    pub(in super::super) struct RawPlacePower {
        /// The device, by its name: one of `[[power]]`.
        device: DeviceName = required,
        /// Its outlet, in the device's own words; missing where it has only one.
        outlet: String = optional,
        /// How long the board stays off in a power cycle; as the device says if missing.
        off_time: Duration = optional,
        /// Who else sees whether the board has power: its "debug-port", its "console", an outlet
        /// of another device that is only read (the port of a hub that it hangs on, a program
        /// that looks), or "none". If missing: none where the device can be read back, else the
        /// debug port.
        sense: RawSense = optional,
    }

    /// An outlet that is only read, of a device other than the one that switches.
    pub(in super::super) struct RawSenseOutlet {
        /// The device, by its name: one of `[[power]]`.
        device: DeviceName = required,
        /// Its outlet, in the device's own words; missing where it has only one.
        outlet: String = optional,
    }
}

/// The power sense of a place: a word, or an outlet that is only read.
#[derive(Debug, Clone)]
pub(in super::super) enum RawSense {
    Outlet(RawSenseOutlet),
    Word(SenseWord),
}

/// A power sense that needs no further words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum SenseWord {
    DebugPort,
    Console,
    Absent,
}

impl FromToml for RawSense {
    fn schema() -> Value {
        json!({ "anyOf": [SenseWord::schema(), RawSenseOutlet::schema()] })
    }

    fn read(node: &Node<'_>) -> Option<Self> {
        match node.value() {
            toml::de::DeValue::Table(_) => RawSenseOutlet::read(node).map(Self::Outlet),
            _ => SenseWord::read(node).map(Self::Word),
        }
    }
}

impl Choice for SenseWord {
    const WHAT: &'static str = "sense of the power";
    const CHOICES: &'static [(&'static str, Self)] =
        &[("debug-port", Self::DebugPort), ("console", Self::Console), ("none", Self::Absent)];
}
