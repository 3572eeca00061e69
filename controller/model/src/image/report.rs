//! What a deployment did.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Says what a deployment did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeployReport {
    /// How: `emulator-loader`, `probe`, a command's name.
    pub method: String,
    /// The file, as the user named it.
    pub image: String,
    /// SHA-256 of the file that was deployed.
    pub sha256: String,
    /// Its build id, if it carries one.
    pub build_id: Option<String>,
    /// Bytes of the payload; 0 where whoever deployed did not count them.
    #[serde(default)]
    pub bytes: u64,
    /// Whether what the board holds was compared with the payload after it was written.
    #[serde(default)]
    pub verified: bool,
    /// SHA-256 in lower-case hex of the payload's bytes as read back, in address order, if
    /// they were: the judge holds it against the image's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_back_sha256: Option<String>,
    /// Sectors that were left alone because they held the right bytes already.
    #[serde(default)]
    pub skipped_sectors: u32,
    /// How long it took.
    #[serde(default)]
    pub duration_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_earlier_versions_are_read() {
        let old = r#"{"method":"probe","image":"a.elf","sha256":"00","build_id":null}"#;
        let report: DeployReport = serde_json::from_str(old).unwrap();
        assert_eq!((report.verified, report.read_back_sha256), (false, None));
    }
}
