//! Files that a flasher takes instead of the image: converted images and scripts.
//!
//! They are left in the evidence folder of the run: what was flashed can be looked at.

use std::io;
use std::path::{Path, PathBuf};

use jig_model::image::{
    Image, ImageError, ImageKind, Payload, TooSparse, intel_hex_text, raw_binary,
};
use jig_model::profile::{DeployPart, FlashCommand};

use super::arguments::{FlasherFill, MadeFiles, Unfilled, script_text};

/// Names of the files, numbered as the logs are.
const IMAGE: &str = "flasher-image";
const SCRIPT: &str = "flasher-script";

/// Says why a file for the flasher was not made.
#[derive(Debug, thiserror::Error)]
pub enum NotMade {
    /// The image cannot be read again.
    #[error("read {}", path.display())]
    Unreadable {
        /// The image.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The image is no image any more: it was changed since it was checked.
    #[error("{} was changed since it was read", path.display())]
    Changed {
        /// The image.
        path: PathBuf,
        /// Why.
        #[source]
        source: ImageError,
    },
    /// Its segments lie too far apart for a raw binary.
    #[error("the flasher takes a raw binary, and the image makes none")]
    Sparse(#[source] TooSparse),
    /// An address does not fit into Intel HEX.
    #[error("the flasher takes Intel HEX, which has no addresses over 32 bits as the image has")]
    Wide,
    /// A placeholder of the script has no value.
    #[error(transparent)]
    Script(#[from] Unfilled),
    /// The file cannot be written.
    #[error("write {}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Makes the files that the arguments name, in a folder. An image that has the format already is
/// passed as it is.
pub(super) fn make_files(
    command: &FlashCommand,
    image: &Image,
    fill: &FlasherFill,
    folder: &Path,
    run: u32,
) -> Result<MadeFiles, NotMade> {
    let kind = image.format.kind();
    let mut made =
        MadeFiles { bin: image.path.clone(), hex: image.path.clone(), script: PathBuf::new() };
    let bin = command.uses(&DeployPart::Bin) && kind != ImageKind::Bin;
    let hex = command.uses(&DeployPart::Hex) && kind != ImageKind::Hex;
    if bin || hex {
        let payload = read_image(image)?;
        if bin {
            made.bin = folder.join(format!("{IMAGE}-{run}.bin"));
            write(&made.bin, &raw_binary(&payload).map_err(NotMade::Sparse)?)?;
        }
        if hex {
            made.hex = folder.join(format!("{IMAGE}-{run}.hex"));
            write(&made.hex, intel_hex_text(&payload).ok_or(NotMade::Wide)?.as_bytes())?;
        }
    }
    if command.uses(&DeployPart::Script) {
        made.script = folder.join(format!("{SCRIPT}-{run}.txt"));
        write(&made.script, &script_text(&command.script, image, fill, &made)?)?;
    }
    Ok(made)
}

/// Reads the image again: what is converted is what was checked.
pub(super) fn read_image(image: &Image) -> Result<Payload, NotMade> {
    let path = || image.path.clone();
    let unreadable = |source| NotMade::Unreadable { path: path(), source };
    let bytes = std::fs::read(&image.path).map_err(unreadable)?;
    let changed = |source| NotMade::Changed { path: path(), source };
    let payload = Payload::read(image.format, &bytes).map_err(changed)?;
    if payload.sha256() == image.payload_sha256 {
        return Ok(payload);
    }
    let message = "its bytes are others than those that were checked";
    Err(unreadable(io::Error::new(io::ErrorKind::InvalidData, message)))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), NotMade> {
    let failed = |source| NotMade::Unwritable { path: path.to_owned(), source };
    std::fs::write(path, bytes).map_err(failed)
}
