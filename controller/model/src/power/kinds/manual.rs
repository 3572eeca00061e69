//! A person who switches.

use serde::Serialize;

use super::fields::text;
use crate::power::kind::{PowerKind, PowerTable, PowerTimes};
use crate::toml_table;

/// A person who switches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ManualPower {
    /// What they are told beside the outlet, such as where the switch is.
    pub hint: Option<String>,
}

impl PowerKind for ManualPower {
    /// A person has to walk to the switch.
    fn times(&self) -> PowerTimes {
        PowerTimes::new(0, 300, 0)
    }

    fn reads_back(&self) -> bool {
        false
    }
}

toml_table! {
    /// A person who is asked to switch, on the terminal.
    pub(crate) struct RawManual {
        /// What they are told beside the outlet, such as where the switch is.
        hint: String = optional,
    }
}

impl PowerTable for RawManual {
    type Kind = ManualPower;

    fn lower(&self) -> Option<ManualPower> {
        Some(ManualPower { hint: text(&self.hint) })
    }
}
