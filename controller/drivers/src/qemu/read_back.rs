//! What an emulated board holds before its first instruction.
//!
//! An emulator is told which file to load, and believed as little as a flasher: the bytes are
//! read through the processor that is about to run them, and hashed as a probe's read-back is.

use std::path::Path;

use jig_model::image::{Image, hex};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::instance::ANSWER;
use super::monitor::{Monitor, MonitorError};

/// Most bytes that are read: more than any microcontroller's flash holds, and what is larger
/// boots for seconds. An image of some kibibytes takes 0.9 ms (median of twelve launches).
const MOST: u64 = 8 << 20;

/// Reads what a halted machine holds where an image was put; returns its SHA-256 in lower-case
/// hex, or nothing if it cannot be read, which proves nothing.
///
/// The pieces pass through a file in `folder`, which is gone afterwards.
pub(super) async fn read_back(
    monitor: &mut Monitor,
    image: &Image,
    folder: &Path,
) -> Option<String> {
    if image.payload_bytes == 0 || image.payload_bytes > MOST {
        return None;
    }
    let path = folder.join("read-back");
    let read = hash(monitor, image, &path).await;
    let _ = tokio::fs::remove_file(&path).await;
    read.inspect_err(|error| tracing::debug!(%error, "the image was not read back")).ok()
}

async fn hash(monitor: &mut Monitor, image: &Image, path: &Path) -> Result<String, MonitorError> {
    let mut digest = Sha256::new();
    for (start, end) in &image.payload_spans {
        let piece = json!({ "val": start, "size": end - start, "filename": path });
        monitor.call_with("memsave", &piece, ANSWER).await?;
        digest.update(tokio::fs::read(path).await?);
    }
    Ok(hex(&digest.finalize()))
}
