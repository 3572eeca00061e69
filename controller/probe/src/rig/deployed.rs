//! What is known of the image on a board: where its control block is, how its log reads.

use std::ops::Range;

use jig_model::Cause;
use jig_model::image::{Image, ImageFormat, Payload};
use jig_model::protocol::DriverError;

use crate::{DefmtTable, RttBlock};

/// An image that was read.
pub(super) struct Deployed {
    pub(super) payload: Payload,
    /// Address of the RTT control block, if the image names it.
    pub(super) control_block: Option<u64>,
    elf: Option<Vec<u8>>,
}

impl Deployed {
    /// Reads an image's file.
    pub(super) async fn read(image: &Image) -> Result<Self, DriverError> {
        let name = &image.name;
        let bytes = tokio::fs::read(&image.path).await.map_err(|error| {
            DriverError::new(Cause::DeployFailed, format!("read {name}")).with_source(error)
        })?;
        let payload = Payload::read(image.format, &bytes).map_err(|error| {
            DriverError::new(Cause::DeployFailed, format!("use {name}")).with_source(error)
        })?;
        let elf = (image.format == ImageFormat::Elf).then_some(bytes);
        let control_block = elf.as_deref().and_then(RttBlock::address_in);
        Ok(Self { payload, control_block, elf })
    }

    /// Reads the image's table of log statements, if it has one.
    pub(super) fn defmt(&self) -> Option<DefmtTable> {
        DefmtTable::load(self.elf.as_deref()?).unwrap_or_else(|error| {
            tracing::warn!(%error, "the log is shown as it is");
            None
        })
    }
}

/// Takes what an image loads out of memory ranges: a control block in there may be the
/// initial content of one, which must not be wiped.
pub(super) fn without(ranges: &[Range<u64>], image: Option<&Deployed>) -> Vec<Range<u64>> {
    let mut left = ranges.to_vec();
    let spans = image.into_iter().flat_map(|image| image.payload.spans());
    for (start, end) in spans {
        left = left
            .into_iter()
            .flat_map(|range| {
                [
                    range.start..range.end.min(start).max(range.start),
                    range.start.max(end).min(range.end)..range.end,
                ]
            })
            .filter(|range| !range.is_empty())
            .collect();
    }
    left
}

#[cfg(test)]
mod tests {
    use jig_model::image::Segment;

    use super::*;

    #[test]
    fn what_an_image_loads_is_left_out() {
        let segment = |start: u64, len: usize| Segment { start, bytes: vec![0; len] };
        let image =
            |segments| Deployed { payload: Payload { segments }, control_block: None, elf: None };
        let ram = [0x100..0x200, 0x300..0x400];
        assert_eq!(without(&ram, None), ram);
        let two = image(vec![segment(0x80, 0x90), segment(0x340, 0x10)]);
        assert_eq!(without(&ram, Some(&two)), [0x110..0x200, 0x300..0x340, 0x350..0x400]);
        assert_eq!(without(&ram, Some(&image(vec![segment(0, 0x400)]))), []);
        assert_eq!(without(&ram, Some(&image(vec![segment(0x500, 4)]))), ram);
        assert!(two.defmt().is_none());
    }
}
