//! Sending the images of a command to the rig's host.

use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jig_model::Fault;
use jig_model::command::Command;
use jig_model::image::{BinAddress, ImageError, ImageSource};
use jig_rig::store::read_whole;

use super::{CallError, RigClient};
use crate::digest::digest_of_bytes;
use crate::protocol::{MOST_CHUNK, OfferFile, PutFile, RunFile};

/// Largest image that is sent: the host takes no larger one.
const MOST_IMAGE: u64 = 1 << 30;

/// Says why an image was not sent.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// It is named wrongly.
    #[error(transparent)]
    Name(#[from] ImageError),
    /// It cannot be read.
    #[error("cannot read image {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why, in the system's words.
        source: io::Error,
    },
    /// The host does not take it.
    #[error(transparent)]
    Call(#[from] CallError),
}

impl SentImage {
    /// Tells whether a file of a run is this image, which is here already.
    pub(super) fn is(&self, file: &RunFile) -> bool {
        file.sha256.as_ref() == Some(&self.sha256)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl UploadError {
    /// Says who is to blame.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Name(_) | Self::Read { .. } => Fault::Usage,
            Self::Call(error) => error.fault(),
        }
    }
}

/// An image, read.
pub(super) struct SentImage {
    source: ImageSource,
    bytes: Vec<u8>,
    sha256: String,
}

/// Reads the images of a command, in their order.
pub(super) fn read_images(command: &mut Command) -> Result<Vec<SentImage>, UploadError> {
    let images = command.files().images.into_iter();
    images.map(|named| read_image(named)).collect()
}

fn read_image(named: &Path) -> Result<SentImage, UploadError> {
    let source = ImageSource::of(named, Path::exists)?;
    let bytes = read_whole(&source.path, MOST_IMAGE)
        .map_err(|error| UploadError::Read { path: source.path.clone(), source: error })?;
    let sha256 = digest_of_bytes(&bytes);
    Ok(SentImage { source, bytes, sha256 })
}

/// Sends images that the host does not have, and names them in the command as the host does.
pub(super) async fn send_images(
    client: &RigClient,
    images: &[SentImage],
    command: &mut Command,
) -> Result<(), UploadError> {
    let mut paths = Vec::new();
    for image in images {
        paths.push(send(client, image).await?);
    }
    for (image, path) in command.files().images.into_iter().zip(paths) {
        *image = path.into();
    }
    Ok(())
}

async fn send(client: &RigClient, image: &SentImage) -> Result<String, UploadError> {
    let SentImage { source, bytes, sha256 } = image;
    let name = source.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let offer = OfferFile { sha256: sha256.clone(), size, name };
    let offered = client.call(&offer).await?;
    if offered.have < size {
        let mut offset = 0;
        for chunk in bytes.chunks(MOST_CHUNK) {
            let data = BASE64_STANDARD.encode(chunk);
            client.call(&PutFile { sha256: sha256.clone(), offset, data }).await?;
            offset += u64::try_from(chunk.len()).unwrap_or(0);
        }
    }
    Ok(match source.address {
        Some(BinAddress(address)) => format!("{}@{address:#x}", offered.path),
        None => offered.path,
    })
}
