//! How much is kept of what consoles print between runs: what must hold of it.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::CaptureLimits;
use super::raw::RawCapture;
use crate::document::Findings;

/// Below 64 KiB a file would be full within seconds; few programs open a file of over a GiB.
const FILE_SIZE: RangeInclusive<u64> = (64 << 10)..=(1 << 30);

/// A minute of files is thousands a day; ten years is for ever.
const AGE: RangeInclusive<Duration> = Duration::from_secs(60)..=Duration::from_secs(3650 * 86_400);

/// Lowers the table; what is missing is as [`CaptureLimits::default`] says.
pub(super) fn lower(raw: RawCapture, origin: &str, findings: &Findings) -> CaptureLimits {
    let usual = CaptureLimits::default();
    let ages = [(&raw.file_age, "file_age"), (&raw.keep, "keep")];
    for (age, name) in ages.iter().filter_map(|(age, name)| Some((age.as_ref()?, name))) {
        if !AGE.contains(&age.value) {
            let message = format!("`{name}` cannot be that short or long");
            findings.add("rig::capture-age", age.at(), message, "use \"1m\" to \"3650d\"");
        }
    }
    let file_size = raw.file_size.as_ref().map_or(usual.file_size, |size| size.value.0);
    if let Some(size) = raw.file_size.as_ref().filter(|_| !FILE_SIZE.contains(&file_size)) {
        let help = "use \"64K\" to \"1G\"";
        findings.add("rig::capture-size", size.at(), "no file of a log is so small or big", help);
    }
    let keep_size = raw.keep_size.as_ref().map(|size| size.value.0);
    if let Some(size) = raw.keep_size.as_ref().filter(|size| size.value.0 < file_size) {
        let message = "this is less than one file of the log takes";
        let help = format!("use {file_size} or more, or lower `file_size`");
        findings.add("rig::capture-keep-size", size.at(), message, help);
    }
    CaptureLimits {
        file_size,
        file_age: raw.file_age.map_or(usual.file_age, |age| age.value),
        // If the files are big, at least a few of them are kept.
        keep_size: keep_size.unwrap_or(usual.keep_size.max(file_size.saturating_mul(4))),
        keep: raw.keep.map_or(usual.keep, |age| age.value),
        origin: Some(origin.to_owned()),
    }
}
