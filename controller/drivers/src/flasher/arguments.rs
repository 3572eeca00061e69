//! The argument list of one flasher. Pure.

use std::ffi::OsString;
use std::path::PathBuf;

use jig_model::flasher::leave_out;
use jig_model::image::Image;
use jig_model::profile::{BoardProfile, DeployPart, deploy_parts};
use jig_model::rig_file::{Place, ProbePart};

/// What a place says about itself.
#[derive(Debug, Clone, Default)]
pub(super) struct FlasherFill {
    pub(super) serial: Option<String>,
    pub(super) port: Option<String>,
    pub(super) chip: Option<String>,
}

impl FlasherFill {
    pub(super) fn of(place: &Place, profile: &BoardProfile) -> Self {
        let probe = place.probe.as_ref();
        let chip = probe.and_then(|probe| probe.chip.clone()).or_else(|| profile.chip.clone());
        let serial = probe.and_then(ProbePart::serial);
        let port = place.flasher_port();
        Self { serial: serial.map(str::to_owned), port: port.map(str::to_owned), chip }
    }
}

/// Files that were made of the image for one run.
#[derive(Debug, Clone, Default)]
pub(super) struct MadeFiles {
    /// The image as a raw binary.
    pub(super) bin: PathBuf,
    /// The image as Intel HEX.
    pub(super) hex: PathBuf,
    /// The script.
    pub(super) script: PathBuf,
}

/// A placeholder without a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfilled {
    /// The place has no serial number for `{serial}`.
    #[error("the flasher needs {{serial}}, but the place's selector names no serial number")]
    Serial,
    /// The place has no port for `{port}`.
    #[error("the flasher needs {{port}}, but the place names no serial port")]
    Port,
    /// The board has no chip for `{chip}`.
    #[error(
        "the flasher needs {{chip}}, but neither the place's probe nor the profile names a chip \
         (add `chip = \"...\"` to the profile)"
    )]
    Chip,
    /// The image has no start for `{address}`.
    #[error("the flasher needs {{address}}, but the image loads no byte")]
    Address,
    /// There is no such placeholder.
    #[error("{0:?} of the profile is no flasher's argument")]
    Unknown(String),
}

/// Fills the placeholders of an argument list. An argument with `{serial?}` or `{port?}` is left out
/// where the place has none, and with one that is nothing else the switch before it.
pub(super) fn arguments(
    argv: &[String],
    image: &Image,
    fill: &FlasherFill,
    made: &MadeFiles,
) -> Result<Vec<OsString>, Unfilled> {
    let mut out: Vec<OsString> = Vec::with_capacity(argv.len());
    for arg in argv {
        // The profile was checked, so nothing refuses here.
        let parts = deploy_parts(arg).map_err(|error| Unfilled::Unknown(error.text))?;
        if !lacks(&parts, fill) {
            out.push(expand(&parts, image, fill, made)?);
        } else if parts.len() == 1 {
            leave_out(&mut out);
        }
    }
    Ok(out)
}

/// Tells whether the place has no value for a placeholder that may be left out.
fn lacks(parts: &[DeployPart<'_>], fill: &FlasherFill) -> bool {
    parts.iter().any(|part| match part {
        DeployPart::SerialIfAny => fill.serial.is_none(),
        DeployPart::PortIfAny => fill.port.is_none(),
        _ => false,
    })
}

/// Fills the placeholders of the lines of a script, by the same rule.
pub(super) fn script_text(
    lines: &[String],
    image: &Image,
    fill: &FlasherFill,
    made: &MadeFiles,
) -> Result<Vec<u8>, Unfilled> {
    let mut text = Vec::new();
    for line in lines {
        let parts = deploy_parts(line).map_err(|error| Unfilled::Unknown(error.text))?;
        if lacks(&parts, fill) {
            continue;
        }
        text.extend_from_slice(expand(&parts, image, fill, made)?.as_encoded_bytes());
        text.push(b'\n');
    }
    Ok(text)
}

fn expand(
    parts: &[DeployPart<'_>],
    image: &Image,
    fill: &FlasherFill,
    made: &MadeFiles,
) -> Result<OsString, Unfilled> {
    let mut out = OsString::new();
    for part in parts {
        match part {
            DeployPart::Text(text) => out.push(text),
            DeployPart::Image | DeployPart::Elf => out.push(&image.path),
            DeployPart::Bin => out.push(&made.bin),
            DeployPart::Hex => out.push(&made.hex),
            DeployPart::Script => out.push(&made.script),
            DeployPart::Serial | DeployPart::SerialIfAny => {
                out.push(fill.serial.as_ref().ok_or(Unfilled::Serial)?);
            }
            DeployPart::Port | DeployPart::PortIfAny => {
                out.push(fill.port.as_ref().ok_or(Unfilled::Port)?);
            }
            DeployPart::Chip => out.push(fill.chip.as_ref().ok_or(Unfilled::Chip)?),
            DeployPart::Address => {
                let (start, _) = image.payload_spans.first().ok_or(Unfilled::Address)?;
                out.push(format!("{start:#x}"));
            }
        }
    }
    Ok(out)
}
