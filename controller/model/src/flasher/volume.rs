//! Flashing by a copy to a mass-storage volume: boot loaders with UF2, probes such as DAPLink.

use std::time::Duration;

use serde::Serialize;

use crate::document::Choice;

/// How long a volume has to appear, to take the image and to come back: a probe that programs 1 MiB
/// by SWD takes some 20 s.
pub(crate) const VOLUME_TIMEOUT: Duration = Duration::from_secs(60);

/// What a volume takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum VolumeFormat {
    /// UF2, by a boot loader that starts the firmware and takes its volume away.
    Uf2,
    /// Intel HEX, by a debug probe that comes back with an empty volume.
    Hex,
    /// A raw binary, by such a probe.
    Bin,
}

impl Choice for VolumeFormat {
    const WHAT: &'static str = "format that a volume takes";
    const CHOICES: &'static [(&'static str, Self)] =
        &[("uf2", Self::Uf2), ("hex", Self::Hex), ("bin", Self::Bin)];
}

impl VolumeFormat {
    /// Returns the name of the copied file: short, as FAT had it first, with the ending that the
    /// boot loader or the probe knows the format by.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Uf2 => "JIG.UF2",
            Self::Hex => "JIG.HEX",
            Self::Bin => "JIG.BIN",
        }
    }
}

/// A volume that an image is copied to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VolumeCopy {
    /// Its label, or the whole path of the folder where it is mounted.
    pub volume: String,
    /// What it takes.
    pub format: VolumeFormat,
    /// Family of the chip, for UF2.
    pub family: Option<u32>,
    /// How long it may take from the appearance of the volume to the end.
    pub timeout: Duration,
}
