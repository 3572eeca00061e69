//! The argument list of one flasher. Pure.

use std::ffi::OsString;

use jig_model::image::Image;
use jig_model::profile::{DeployPart, deploy_parts};
use jig_model::rig_file::{Place, ProbePart};

/// What a place says about itself.
#[derive(Debug, Clone, Default)]
pub(super) struct FlasherFill {
    pub(super) serial: Option<String>,
    pub(super) port: Option<String>,
}

impl FlasherFill {
    pub(super) fn of(place: &Place) -> Self {
        let serial = place.probe.as_ref().and_then(ProbePart::serial);
        let port = place.flasher_port();
        Self { serial: serial.map(str::to_owned), port: port.map(str::to_owned) }
    }
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
    /// The image has no start for `{address}`.
    #[error("the flasher needs {{address}}, but the image loads no byte")]
    Address,
    /// There is no such placeholder.
    #[error("{0:?} of the profile is no flasher's argument")]
    Unknown(String),
}

/// Fills the placeholders of an argument list.
pub(super) fn arguments(
    argv: &[String],
    image: &Image,
    fill: &FlasherFill,
) -> Result<Vec<OsString>, Unfilled> {
    argv.iter().map(|arg| expand(arg, image, fill)).collect()
}

fn expand(arg: &str, image: &Image, fill: &FlasherFill) -> Result<OsString, Unfilled> {
    // The profile was checked, so nothing refuses here.
    let parts = deploy_parts(arg).map_err(|error| Unfilled::Unknown(error.text))?;
    let mut out = OsString::new();
    for part in parts {
        match part {
            DeployPart::Text(text) => out.push(text),
            DeployPart::Image => {
                out.push(&image.path);
            }
            DeployPart::Serial => out.push(fill.serial.as_ref().ok_or(Unfilled::Serial)?),
            DeployPart::Port => out.push(fill.port.as_ref().ok_or(Unfilled::Port)?),
            DeployPart::Address => {
                let (start, _) = image.payload_spans.first().ok_or(Unfilled::Address)?;
                out.push(format!("{start:#x}"));
            }
        }
    }
    Ok(out)
}
