//! Lines of a GPIO chip of this host.

use std::path::PathBuf;

use serde::Serialize;

use super::fields::{check_absolute, text};
use crate::document::{Findings, Located};
use crate::power::kind::{PowerKind, PowerTable, PowerTimes};
use crate::toml_table;

/// Lines of a GPIO chip.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GpioPower {
    /// The chip's device, such as `/dev/gpiochip0`.
    pub chip: PathBuf,
    /// Whether a low level switches on.
    pub active_low: bool,
}

impl PowerKind for GpioPower {
    fn times(&self) -> PowerTimes {
        PowerTimes::new(0, 5, 2)
    }
}

toml_table! {
    /// Lines of a GPIO chip of this host.
    pub(crate) struct RawGpio {
        /// The chip's device: "/dev/gpiochip0".
        chip: String = required,
        /// Whether a low level switches on; false if missing.
        active_low: bool = optional,
    }
}

impl PowerTable for RawGpio {
    type Kind = GpioPower;

    fn check(table: &Located<Self>, findings: &Findings) {
        if let Some(chip) = &table.value.chip {
            let example = "\"/dev/gpiochip0\" (see: gpiodetect)";
            check_absolute("rig::power-chip", chip, example, findings);
        }
    }

    fn lower(&self) -> Option<GpioPower> {
        Some(GpioPower {
            chip: PathBuf::from(text(&self.chip)?),
            active_low: self.active_low.as_ref().is_some_and(|low| low.value),
        })
    }
}
