//! How an image gets onto a board: a fact of its profile.
//!
//! A profile that says nothing is deployed as its place suggests: an emulated board by the
//! emulator's loader or out of its image set, a real one through its debug probe.

use std::ops::Range;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::placeholder::PlaceholderError;
use crate::document::Choice;
use crate::pattern::Pattern;

/// Names the ways to deploy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeployMethod {
    /// A debug probe writes flash or RAM.
    Probe,
    /// The emulator loads the image when it starts.
    EmulatorLoader,
    /// The emulator boots files that were built for it; no image is deployed.
    ImageSet,
    /// A program of its own writes the flash.
    Command,
}

impl Choice for DeployMethod {
    const WHAT: &'static str = "way to deploy";
    const CHOICES: &'static [(&'static str, Self)] = &[
        ("probe", Self::Probe),
        ("emulator-loader", Self::EmulatorLoader),
        ("image-set", Self::ImageSet),
        ("command", Self::Command),
    ];
}

impl DeployMethod {
    /// Returns the stable text form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Probe => "probe",
            Self::EmulatorLoader => "emulator-loader",
            Self::ImageSet => "image-set",
            Self::Command => "command",
        }
    }
}

impl std::fmt::Display for DeployMethod {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How an image gets onto a board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "method", rename_all = "kebab-case")]
pub enum Deploy {
    /// A debug probe writes flash or RAM.
    Probe,
    /// The emulator loads the image when it starts.
    EmulatorLoader,
    /// The emulator boots files that were built for it; no image is deployed.
    ImageSet,
    /// A program of its own writes the flash.
    Command(FlashCommand),
}

impl Deploy {
    /// Returns the method without what belongs to it.
    pub fn method(&self) -> DeployMethod {
        match self {
            Self::Probe => DeployMethod::Probe,
            Self::EmulatorLoader => DeployMethod::EmulatorLoader,
            Self::ImageSet => DeployMethod::ImageSet,
            Self::Command(_) => DeployMethod::Command,
        }
    }
}

/// A program that flashes a board, and how it is judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlashCommand {
    /// Program and arguments, one each and never a shell line, with placeholders (see
    /// [`deploy_parts`]). Never empty; the program holds none.
    pub argv: Vec<String>,
    /// How long it may take.
    pub timeout: Duration,
    /// Exit codes that mean success. Never empty.
    pub success_codes: Vec<i32>,
    /// Output that means failure, whatever the exit code.
    pub failure_patterns: Vec<Pattern>,
    /// Output that proves that the flash was read back and compared.
    pub verified_pattern: Option<Pattern>,
    /// Output whose first group is a percentage of the work done.
    pub progress_pattern: Option<Pattern>,
}

/// How long a flasher may take if its profile does not say: 2 MiB at 115200 baud take three
/// minutes, and the slow ones among them say so.
pub(crate) const FLASH_TIMEOUT: Duration = Duration::from_secs(240);

impl FlashCommand {
    /// Tells whether an argument holds a placeholder.
    pub fn uses(&self, placeholder: &DeployPart<'_>) -> bool {
        let parts = self.argv.iter().filter_map(|arg| deploy_parts(arg).ok()).flatten();
        parts.into_iter().any(|part| part == *placeholder)
    }
}

/// One part of a flasher's argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeployPart<'a> {
    /// Text that stays as it is.
    Text(&'a str),
    /// The path of the image: `{image}`.
    Image,
    /// The serial number of the place's probe: `{serial}`.
    Serial,
    /// The serial port of the place: `{port}`.
    Port,
    /// The lowest address of the image, such as `0x8000`: `{address}`.
    Address,
}

/// Splits an argument into text and placeholders. `{{` and `}}` stand for single braces,
/// because OpenOCD's own commands are quoted with them.
///
/// # Errors
/// Refuses unknown placeholders and braces that stand alone.
pub fn deploy_parts(arg: &str) -> Result<Vec<DeployPart<'_>>, PlaceholderError> {
    let mut parts = Vec::new();
    let mut at = 0;
    while let Some(rest) = arg.get(at..).filter(|rest| !rest.is_empty()) {
        let brace = rest.find(['{', '}']).unwrap_or(rest.len());
        let (part, length) = if brace > 0 {
            (Some(DeployPart::Text(&rest[..brace])), brace)
        } else if rest.starts_with("{{") || rest.starts_with("}}") {
            (Some(DeployPart::Text(&rest[..1])), 2)
        } else {
            let length = rest.find('}').map_or(rest.len(), |end| end + 1);
            let part = match &rest[..length] {
                "{image}" => Some(DeployPart::Image),
                "{serial}" => Some(DeployPart::Serial),
                "{port}" => Some(DeployPart::Port),
                "{address}" => Some(DeployPart::Address),
                _ => None,
            };
            (part, length)
        };
        let span: Range<usize> = at..at + length;
        let shown = || rest[..length].chars().take(40).collect();
        parts.push(part.ok_or_else(|| PlaceholderError { text: shown(), span: span.clone() })?);
        at = span.end;
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told_apart() {
        let parts = deploy_parts("program {{{image}}} {address}").unwrap();
        assert_eq!(
            parts,
            [
                DeployPart::Text("program "),
                DeployPart::Text("{"),
                DeployPart::Image,
                DeployPart::Text("}"),
                DeployPart::Text(" "),
                DeployPart::Address,
            ]
        );
        assert_eq!(deploy_parts(""), Ok(vec![]));
        for (arg, span) in
            [("a{imge}", 1..7), ("a{", 1..2), ("}", 0..1), ("{image:x}", 0..9), ("é{x}", 2..5)]
        {
            assert_eq!(deploy_parts(arg).unwrap_err().span, span, "{arg}");
        }
    }
}
