//! Flashing by a copy to a mass-storage volume: boot loaders with UF2, probes such as DAPLink.

use std::ops::Range;
use std::time::Duration;

use serde::Serialize;

use crate::document::{Choice, Findings, Located};

/// How long a volume has to appear, to take the image and to come back: a probe that programs 1 MiB
/// by SWD takes some 20 s.
const VOLUME_TIMEOUT: Duration = Duration::from_secs(60);

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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub family: Option<u32>,
    /// How long it may take from the appearance of the volume to the end.
    pub timeout: Duration,
    /// The boot loader is started by opening the board's port at 1200 baud, and its volume takes so long
    /// to come at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub touch: Option<Duration>,
}

/// What a profile or a place says of a volume.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VolumeKeys<'a> {
    pub(crate) volume: Option<&'a Located<String>>,
    pub(crate) format: Option<&'a Located<VolumeFormat>>,
    pub(crate) family: Option<&'a Located<u32>>,
    pub(crate) timeout: Option<&'a Located<Duration>>,
    pub(crate) touch: Option<&'a Located<Duration>>,
}

impl VolumeKeys<'_> {
    /// Tells whether a key is given that belongs to nothing but a volume.
    pub(crate) fn any(&self) -> bool {
        self.volume.is_some() || self.format.is_some() || self.family.is_some()
    }

    /// Returns where the first of these keys stands.
    pub(crate) fn at(&self) -> Option<Range<usize>> {
        let volume = self.volume.and_then(Located::at);
        let format = || self.format.and_then(Located::at);
        volume.or_else(format).or_else(|| self.family.and_then(Located::at))
    }

    /// Checks what is said, but the time; a volume has to be named.
    pub(crate) fn check(&self, check: &'static str, findings: &Findings) {
        let Some(volume) = self.volume else {
            let help = "add `volume = \"LABEL\"`, or remove it";
            let message = "this belongs to a `volume`, and none is given";
            return findings.add(check, self.at(), message, help);
        };
        let text = volume.value.as_str();
        // A label of FAT has 11 characters; other file systems have longer ones.
        let is_label = text.len() <= 64 && !text.contains('/');
        if text.is_empty()
            || text.chars().any(char::is_control)
            || !(is_label || text.starts_with('/'))
        {
            let help = "write its label, such as \"RPI-RP2\", or the whole path of its folder";
            findings.add(check, volume.at(), "this names no volume", help);
        }
        if let (Some(family), Some(format)) = (self.family, self.format)
            && format.value != VolumeFormat::Uf2
        {
            let help = "remove it, or write `format = \"uf2\"`";
            findings.add(check, family.at(), "only UF2 has a family", help);
        }
    }

    /// Lowers what the check has passed; nothing if no volume is named.
    pub(crate) fn lower(&self) -> Option<VolumeChoice> {
        Some(VolumeChoice {
            volume: self.volume?.value.clone(),
            format: self.format.map(|format| format.value),
            family: self.family.map(|family| family.value),
            timeout: self.timeout.map(|timeout| timeout.value),
            touch: self.touch.map(|touch| touch.value),
        })
    }
}

/// A volume as a profile or a place names it, without what neither says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VolumeChoice {
    /// Its label, or the whole path of the folder where it is mounted.
    pub volume: String,
    /// What it takes.
    pub format: Option<VolumeFormat>,
    /// Family of the chip, for UF2.
    pub family: Option<u32>,
    /// How long it may take from the appearance of the volume to the end.
    pub timeout: Option<Duration>,
    /// How long it may take to come after the board's port was opened at 1200 baud.
    pub touch: Option<Duration>,
}

impl VolumeChoice {
    /// Returns the copy, with what another one says of the same board where this one says nothing.
    pub fn over(&self, other: Option<&VolumeCopy>) -> VolumeCopy {
        let family = self.family.or_else(|| other.and_then(|other| other.family));
        // A family that is given here is said of UF2.
        let implied = self.family.map(|_| VolumeFormat::Uf2);
        let of_other = || other.map(|other| other.format);
        let format = self.format.or(implied).or_else(of_other).unwrap_or(VolumeFormat::Hex);
        VolumeCopy {
            volume: self.volume.clone(),
            format,
            family: family.filter(|_| format == VolumeFormat::Uf2),
            timeout: self
                .timeout
                .or_else(|| other.map(|other| other.timeout))
                .unwrap_or(VOLUME_TIMEOUT),
            touch: self.touch.or_else(|| other.and_then(|other| other.touch)),
        }
    }
}
